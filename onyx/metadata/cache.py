"""MetadataCache: a repository's metadata in one file, which answers queries alone."""

from __future__ import annotations

import sqlite3
from math import inf
from pathlib import Path
from time import monotonic
from typing import Self

from formats.errors import Fault, Refusal
from onyx.errors import StoreUnusable
from onyx.metadata.tables_file import open_tables
from registration.metadata.repository_cache import Answer, RepositoryCache

_STEPS = 10_000  # of SQLite's machine between two looks at the clock


class MetadataCache(RepositoryCache):
    """A context manager; its methods are those of
    ``registration.metadata.repository_cache.RepositoryCache``."""

    def __init__(self, file: Path | str, repository: str = "") -> None:
        """``file`` is made if it is not there.  ``repository``: as the file says, where nothing is
        given.  StoreUnusable where it is no such file; Refusal where it is of another repository.
        """
        try:
            self._connection = open_tables(Path(file), synchronous="FULL")
            try:
                super().__init__(repository, self._connection)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise StoreUnusable(f"{file}: {error}") from None

    def query(self, text: str, seconds: float = inf) -> Answer:
        """As of a ``RepositoryCache``; Refusal ``timeout`` where it takes longer."""
        end = monotonic() + seconds
        self._connection.set_progress_handler(lambda: monotonic() > end, _STEPS)
        try:
            return super().query(text)
        except sqlite3.OperationalError:
            if monotonic() <= end:
                raise
            what = f"the query took more than {seconds:g} s"
            raise Refusal(Fault("timeout", what, "fewer variables, or conditions")) from None
        finally:
            self._connection.set_progress_handler(None, 0)

    def version(self) -> tuple[int, int]:
        """Another one after each change, by this process or by another."""
        (by_others,) = self._connection.execute("PRAGMA data_version").fetchone()
        return by_others, self._connection.total_changes

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
