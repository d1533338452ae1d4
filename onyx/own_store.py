"""What a publisher or a subscriber has on its own disk."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from onyx.store_errors import store_errors
from overlay.link.errors import StoreError
from overlay.link.store import Store
from overlay.link.tables import Table

R = TypeVar("R")


def open_own(path: Path | str, table: Table[R]) -> tuple[Store, dict[str, R]]:
    """A store in a file, made if it is not there, that has rows of one table, and these by key.

    StoreUnusable if another process has it, or it is of something else.
    """
    with store_errors():
        store = Store(path)
    found = {}
    with ExitStack() as stack, store_errors(f"{path} is of something else: "):
        stack.callback(store.close)
        for space, key, value in store.rows():
            if space != table.space:
                raise StoreError(f"rows of {space!r}; expected {table.space!r} only")
            found[key] = table.read(key, value)
        stack.pop_all()
    return store, found
