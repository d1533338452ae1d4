"""A PostgreSQL server with a synchronous replica, which goes on when it is lost for good."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

from onyx.trial_postgres import OWNER
from tests.postgres import Postgres, postgres_user


class Replicated:
    """Two of them; every commit is on the disk of the replica too."""

    def __init__(self, directory: Path, user: str | None) -> None:
        self._user = user
        self._primary, self._replica = (Postgres(directory / name, user) for name in "ab")

    @property
    def url(self) -> str:
        """Of both; whichever takes changes is found."""
        hosts = ",".join(sorted(str(each._directory) for each in (self._primary, self._replica)))
        return f"postgresql:///postgres?host={quote(hosts, safe=',')}&user={OWNER}"

    def new_schema(self) -> str:
        return self._primary.new_schema()

    def __enter__(self) -> Self:
        self._primary.start()
        self.add_replica()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._replica, self._primary):
            if each._directory.exists():  # it is not lost
                each.stop()

    def add_replica(self) -> None:
        """Where there is none; from now on commits wait for it."""
        replica = self._replica._directory
        replica.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(replica, self._user)
        whose = (f"--host={self._primary._directory}", f"--username={OWNER}")
        self._replica._run("pg_basebackup", *whose, "--write-recovery-conf", "--checkpoint=fast")
        self._replica.start()
        self._wait_for("'*'")

    def crash(self) -> None:
        """The primary, which starts again with its disk."""
        self._primary.stop("immediate")
        self._primary.start()

    def lose_primary(self) -> None:
        """Its machine, with the disk."""
        self._primary.stop("immediate")
        shutil.rmtree(self._primary._directory)

    def promote(self) -> None:
        """The replica goes on as the primary, alone."""
        self._primary, self._replica = self._replica, self._primary
        self._primary._run("pg_ctl", "promote", "--wait")
        self._wait_for("''")

    def _wait_for(self, replicas: str) -> None:
        self._primary.ask(f"ALTER SYSTEM SET synchronous_standby_names = {replicas}")
        self._primary.ask("SELECT pg_reload_conf()")


@contextmanager
def replicated_postgres() -> Iterator[Replicated]:
    """Skipped where there is none."""
    user = postgres_user()
    folder = Path(tempfile.mkdtemp(prefix="onyx-pg"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        with Replicated(folder, user) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
