"""TrialServer: a PostgreSQL server for a network that is tried out (``[stores] url = "trial"``).

::

    DATA/postgres/
    ├── data, log           the cluster, made by initdb at the first start
    └── .s.PGSQL.5432       its socket: it listens nowhere else

It is started and stopped with the network, on the same machine, so what a second machine would
survive it does not.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import trio

from onyx.errors import UserError

log = logging.getLogger(__name__)

OWNER = "onyx"
SOCKET_BYTES_MAX = 107 - len("/.s.PGSQL.5432")
LOOK_SECONDS = 1.0
_FOLDERS = "/usr/lib/postgresql"  # where distributions have them that put them on no path


class TrialServer:
    """A context manager in which it runs."""

    def __init__(self, directory: Path, user: str | None = None) -> None:
        """``user``: who runs it, where that is not this account.  UserError when it cannot be."""
        self._directory = directory
        self._user = user
        if os.geteuid() == 0 and user is None:
            raise UserError(
                'url = "trial": PostgreSQL does not run as root; start the network from another '
                'account, or name a server, url = "postgresql://HOST/DATABASE"'
            )
        if len(os.fsencode(directory)) > SOCKET_BYTES_MAX:
            raise UserError(
                f"{directory} is too long a name for the socket of a server, expected at most "
                f"{SOCKET_BYTES_MAX} bytes: give another --data"
            )
        self._programs = programs()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"postgresql:///postgres?host={quote(str(self._directory), safe='')}&user={OWNER}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Until it answers; one that whoever was killed has left running is taken as it is."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        if not (self._directory / "data" / "PG_VERSION").exists():
            how = ("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions")
            self._run("initdb", f"--username={OWNER}", *how, "--data-checksums")
        if self._run("pg_ctl", "status", may_fail=True) != 0:
            options = f"-c listen_addresses='' -c unix_socket_directories='{self._directory}'"
            log = f"--log={self._directory / 'log'}"
            self._run("pg_ctl", "start", "--wait", "--silent", log, f"--options={options}")

    async def keep(self) -> None:
        """Start it again whenever it has died, as the processes that it serves are."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            if self._is_there():
                continue
            log.warning("PostgreSQL in %s died; starting it again", self._directory)
            try:
                await trio.to_thread.run_sync(self.start)
            except UserError as error:  # what it has left behind may still be ending
                log.warning("%s", error)

    def _is_there(self) -> bool:
        with suppress(OSError, ValueError):
            pid = (self._directory / "data" / "postmaster.pid").read_text().partition("\n")[0]
            os.kill(int(pid), 0)
            return True
        return False

    def stop(self, mode: str = "fast") -> None:
        """``mode``: fast, or immediate, which is as if the machine had failed."""
        self._run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}", may_fail=True)

    def _run(self, program: str, *arguments: str, may_fail: bool = False) -> int:
        done = subprocess.run(
            [self._programs / program, f"--pgdata={self._directory / 'data'}", *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            user=self._user,
        )
        if done.returncode and not may_fail:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise UserError(f"{program} of PostgreSQL has failed in {self._directory}: {said}")
        return done.returncode


def programs() -> Path:
    """The folder of initdb and pg_ctl, of the newest version; UserError where there is none."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(Path(_FOLDERS).glob("*/bin/initdb"), key=lambda path: _number(path.parts[-3]))
    if not folders:
        raise UserError(
            'url = "trial": PostgreSQL is not installed, expected initdb on the path or in '
            f"{_FOLDERS}"
        )
    return folders[-1].parent


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
