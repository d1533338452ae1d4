"""MetadataCache: a repository's metadata in one file, which answers queries alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Self

from onyx.errors import StoreUnusable
from onyx.metadata.tables_file import open_tables
from registration.metadata.repository_cache import RepositoryCache


class MetadataCache(RepositoryCache):
    """A context manager; its methods are those of
    ``registration.metadata.repository_cache.RepositoryCache``."""

    def __init__(self, file: Path | str, repository: str = "") -> None:
        """``file`` is made if it is not there.  ``repository``: as the file says, where nothing is
        given.  StoreUnusable where it is no such file; Refusal where it is of another repository.
        """
        try:
            self._connection = open_tables(Path(file), synchronous="FULL")
        except sqlite3.Error as error:
            raise StoreUnusable(f"{file}: {error}") from None
        try:
            super().__init__(repository, self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreUnusable(f"{file}: {error}") from None
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
