"""Refusals as Spark tells them: by a sentence, without the stack of a process of Python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from formats.errors import Refusal
from onyx.errors import UserError


@contextmanager
def told_alone() -> Iterator[None]:
    """Spark tells a refusal in this block by its sentence, without the stack of the process that it
    runs the block in."""
    try:
        yield
    except (Refusal, UserError):
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # pyspark.util.handle_worker_exception
        raise
