"""DiskReserve: how much of a disk is to stay free, looked at now and then."""

from __future__ import annotations

import os
from pathlib import Path

ENOUGH = 1.125  # times the reserve: there is room again


class DiskReserve:
    """``is_short``: as of the last look; ``reserve`` may change.
    The shell looks, and tells its core (DiskRoom)."""

    def __init__(self, path: Path | None, reserve: int) -> None:
        """The disk on which a file or directory is, None for one that is not to be seen here;
        ``reserve`` in bytes, 0 for none."""
        self.free = 0
        self.is_short = False
        self._path = path
        self.reserve = reserve

    def look(self) -> bool:
        """Whether it has become short, or is so no more."""
        if not self.reserve or self._path is None:
            if self.is_short:
                self.is_short = False
                return True
            return False
        disk = os.statvfs(self._path)
        self.free = disk.f_bavail * disk.f_frsize
        before = self.is_short
        self.is_short = self.free < self.reserve * (ENOUGH if before else 1)
        return self.is_short != before
