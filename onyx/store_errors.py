"""What is wrong with a store, as an error for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onyx.errors import LeaseLost, StoreGone, StoreUnusable, leaves
from overlay.link.errors import Fenced, StoreDamaged, StoreError, StoreLost


@contextmanager
def store_errors(about: str = "") -> Iterator[None]:
    """Around its opening, reading and writing: LeaseLost, StoreGone, StoreUnusable, with words
    ``about`` it first.  Several tasks may find out the same at once."""
    try:
        yield
    except Exception as error:
        found = leaves(error)
        if not all(isinstance(each, StoreError) for each in found):
            raise
        if all(isinstance(each, Fenced) for each in found):
            raise LeaseLost(f"{about}{found[0]}") from error
        for each in found:
            if isinstance(each, StoreLost | StoreDamaged):
                raise StoreGone(f"{about}{each}") from error
        raise StoreUnusable(f"{about}{found[0]}") from error
