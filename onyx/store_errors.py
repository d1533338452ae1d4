"""What is wrong with a store, as an error for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onyx.errors import LeaseLost, StoreUnusable
from overlay.link.errors import Fenced, StoreError


@contextmanager
def store_errors() -> Iterator[None]:
    """Around its opening, reading and writing: LeaseLost, StoreUnusable."""
    try:
        yield
    except Fenced as error:
        raise LeaseLost(str(error)) from error
    except StoreError as error:
        raise StoreUnusable(str(error)) from error
