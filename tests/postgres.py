"""A real PostgreSQL server for tests; where there is none they are skipped."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from onyx.errors import UserError
from onyx.trial_postgres import TrialServer, programs

LEASE_SECONDS = 2.0
_USERS = ("postgres", "nobody")  # of whom one runs it where this account is root
_names = count(1)


class Postgres(TrialServer):
    """With a name for each network, none of which has been there."""

    def new_schema(self) -> str:
        return f"test.{os.getpid()}-{next(_names)}"

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        """As whoever looks after the server."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def break_connections(self) -> None:
        """All of the others', as a restart does."""
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    user = postgres_user()
    folder = Path(tempfile.mkdtemp(prefix="onyx-pg"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        with Postgres(folder / "server", user) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_user() -> str | None:
    """Who runs a server, if not this account; skipped where nobody can."""
    try:
        programs()
    except UserError as error:
        pytest.skip(str(error))
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    pytest.skip("PostgreSQL does not run as root, and there is no other account")
