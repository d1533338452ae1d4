"""What is wrong with a store, as an error for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onyx.errors import LeaseLost, StoreUnusable, leaves
from overlay.link.errors import Fenced, StoreError


@contextmanager
def store_errors() -> Iterator[None]:
    """Around its opening, reading and writing: LeaseLost, StoreUnusable.  Several tasks may find
    out the same at once."""
    try:
        yield
    except Exception as error:
        found = leaves(error)
        if not all(isinstance(each, StoreError) for each in found):
            raise
        if all(isinstance(each, Fenced) for each in found):
            raise LeaseLost(str(found[0])) from error
        raise StoreUnusable(str(found[0])) from error
