"""MetadataProvider: a provider of metadata on this machine's disk, without a network.

Its rows are in a store (``rows.onyx``), which is locked as long as it is open; the filter's tables
beside them (``filter.sqlite``) are derived, and made anew where they are gone or damaged.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import time
from typing import Self

from onyx.metadata.tables_file import open_tables, remove_tables
from onyx.store_errors import store_errors
from overlay.link.store import Store
from registration.metadata.provider import Provider

ROWS = "rows.onyx"
FILTER = "filter.sqlite"


class MetadataProvider(Provider):
    """A context manager; its methods are those of ``registration.metadata.provider.Provider``."""

    def __init__(self, directory: Path | str, name: str = "metadata") -> None:
        """``directory`` is made if it is not there.  StoreUnusable where another process has it."""
        directory = Path(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / FILTER
        with store_errors():
            self._rows = Store(directory / ROWS)
            try:
                try:
                    self._open(name, path)
                except sqlite3.DatabaseError:
                    remove_tables(path)
                    self._open(name, path)
            except BaseException:
                self._rows.close()
                raise

    def _open(self, name: str, path: Path) -> None:
        self._connection = open_tables(path, synchronous="NORMAL")
        try:
            super().__init__(name, self._rows, self._connection, time)
        except BaseException:
            self._connection.close()
            raise

    def verify(self) -> list[str]:  # type: ignore[override]
        """Evaluate all rules on all documents anew; what differs from what is kept, in words."""
        tables = sqlite3.connect(":memory:", isolation_level=None)
        try:
            return super().verify(tables)
        finally:
            tables.close()

    def close(self) -> None:
        self._connection.close()
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
