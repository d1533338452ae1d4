"""MetadataProvider: a provider of metadata on this machine's disk, without a network.

Its rows are in a store (``rows.onyx``), which is locked as long as it is open, or in a server; the
filter's tables (``filter.sqlite``) are derived, and made anew where they are gone or damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from time import time
from typing import Self

from onyx.data_directory import ROWS_FILE
from onyx.metadata.tables_file import open_tables, remove_tables
from onyx.store_errors import store_errors
from overlay.link.row_store import NodeStore
from overlay.link.store import Store, reading
from registration.metadata.member import Member
from registration.metadata.provider_reader import ReaderBeside

FILTER = "filter.sqlite"


class MetadataProvider(Member):
    """A context manager; its methods are those of ``registration.metadata.provider.Provider``,
    and of ``registration.metadata.member.Member``."""

    def __init__(
        self, directory: Path | str, name: str = "metadata", rows: NodeStore | None = None
    ) -> None:
        """``directory`` is made if it is not there.  ``rows`` are taken, and closed with it; None:
        those in the directory.  StoreUnusable where another process has it."""
        directory = Path(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = directory / FILTER
        self._seam = Lock()
        with store_errors():
            self._rows: NodeStore = Store(directory / ROWS_FILE) if rows is None else rows
            try:
                try:
                    self._open(name)
                except sqlite3.DatabaseError:
                    remove_tables(self._file)
                    self._open(name)
            except BaseException:
                self._rows.close()
                raise

    def _open(self, name: str) -> None:
        self._connection = open_tables(self._file, synchronous="NORMAL")
        try:
            super().__init__(name, self._rows, self._connection, time, self._seam)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def beside(self) -> Iterator[ReaderBeside]:
        """A reader for another thread, which waits for none of what this one does."""
        with closing(self._rows.beside()) as rows, closing(reading(self._file)) as tables:
            yield ReaderBeside(self.name, rows, tables, time, self._seam)

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
