"""A PostgreSQL server with a synchronous replica, which goes on when it is lost for good."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from onyx.trial_postgres import OWNER
from tests.postgres import Postgres, postgres_user


class Replicated(Postgres):
    """The primary; every commit is on the disk of the replica too."""

    def __init__(self, directory: Path, user: str | None) -> None:
        super().__init__(directory / "primary", user)
        self._replica = Postgres(directory / "replica", user)

    @property
    def url(self) -> str:
        """Of both; whichever takes changes is found."""
        hosts = ",".join(str(server._directory) for server in (self, self._replica))
        return f"postgresql:///postgres?host={quote(hosts, safe=',')}&user={OWNER}"

    def start(self) -> None:
        super().start()
        replica = self._replica._directory
        replica.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(replica, self._user)
        whose = (f"--host={self._directory}", f"--username={OWNER}")
        self._replica._run("pg_basebackup", *whose, "--write-recovery-conf", "--checkpoint=fast")
        self._replica.start()
        self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.ask("SELECT pg_reload_conf()")

    def stop(self, mode: str = "fast") -> None:
        self._replica.stop(mode)
        super().stop(mode)

    def lose_primary(self) -> None:
        """Its machine, with the disk; the replica goes on once it is told to."""
        super().stop("immediate")
        shutil.rmtree(self._directory)
        self._directory.mkdir()

    def promote(self) -> None:
        self._replica._run("pg_ctl", "promote", "--wait")


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
