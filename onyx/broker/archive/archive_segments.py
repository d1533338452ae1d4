"""ArchiveSegments: the files of one broker's archive, bounded in size and age.

::

    DIR/onyx-B1-20261121T173000Z-00000007.jsonl.gz     finished: whole, on disk, never changed
    DIR/.onyx-B1-20261121T183000Z-00000008.part        being written; hidden from whoever reads DIR

    segment = gzip member*         each some lines, written at once
    line    = {"name": "s1/17", "source": "s1", "number": 17, "time": "...Z", "message": "<m/>"}

A reader never sees half a file: a segment gets its name once all of it is on disk.  What a process
left behind that died is cut back to its last whole member and finished when the broker starts
again.  Several brokers may share a directory; each touches only what bears its id.  Everything here
blocks, and raises OSError; message_archive.py calls it from a thread.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from overlay.archive import DROP, ArchiveOptions

SEGMENT_SUFFIX = ".jsonl.gz"
PART_SUFFIX = ".part"
_DAY_SECONDS = 86_400.0
_GZIP = 31  # zlib's wbits for gzip with its largest window
_PIECE_BYTES = 64 * 1024


class ArchiveSegments:
    """The archive of ``broker`` in the directory of ``options``, which must have one."""

    def __init__(self, broker: str, options: ArchiveOptions) -> None:
        assert options.directory is not None
        self._prefix = f"onyx-{broker}-"
        self.options = options
        self._directory = options.directory
        self._name = re.compile(re.escape(self._prefix) + r"\d{8}T\d{6}Z-(\d{8})")
        self._file: int | None = None
        self._part = Path()
        self._began = 0.0
        self._size = 0
        self._finished_bytes = 0
        self._finished_count = 0
        self._next = 1
        self.removed = 0

    def open(self) -> None:
        """Make the directory; finish what an earlier process has left behind.  To be called before
        ``write``, and after an OSError; nothing happens while a segment is being written."""
        if self._file is not None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        for part in sorted(self._directory.glob(f".{self._prefix}*{PART_SUFFIX}")):
            stem = part.name[1 : -len(PART_SUFFIX)]
            if self._name.fullmatch(stem):
                _cut_back(part)
                self._finish(part)
        self._next = 1 + max((self._number(path) for path in self._segments()), default=0)

    def write(self, lines: bytes, now: float) -> bool:
        """Append whole lines; False when there is no room for them by the policy.

        ``now``: seconds since 1970.  After an OSError nothing of them is in the archive.
        """
        member = gzip.compress(lines, 6, mtime=0)
        self._remove_old(now)
        if not self._has_room(len(member)):
            return False
        file = self._begin(now) if self._file is None else self._file
        try:
            _write_all(file, member)
        except OSError:
            self._take_back(file)
            raise
        self._size += len(member)
        self.rotate(now)
        return True

    def rotate(self, now: float) -> None:
        """Finish the segment if it is large or old enough."""
        if self._size >= self.options.segment_bytes_max or (
            self._size and now - self._began >= self.options.segment_seconds_max
        ):
            self.close()

    def close(self) -> None:
        """Finish the segment, if there is one."""
        if self._file is not None:
            file, self._file = self._file, None
            self._size = 0
            os.close(file)
            self._finish(self._part)
            self._count()

    def statistics(self) -> dict[str, object]:
        return {
            "directory": str(self._directory),
            "segments": self._finished_count,
            "bytes": self._finished_bytes + self._size,
            "removed_segments": self.removed,
        }

    # --- one segment ----------------------------------------------------------------------

    def _begin(self, now: float) -> int:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        stem = f"{self._prefix}{stamp}-{self._next:08d}"
        self._part = self._directory / f".{stem}{PART_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._part, flags, 0o644)
        self._next += 1
        self._began, self._size = now, 0
        return self._file

    def _take_back(self, file: int) -> None:
        """Half a member may be on disk, say because that is full."""
        try:
            os.ftruncate(file, self._size)
        except OSError:
            self._file, self._size = None, 0
            os.close(file)  # cut back by the next ``open``

    def _finish(self, part: Path) -> None:
        """Under its name only when all of it is on disk; nothing is left of an empty one."""
        if not part.stat().st_size:
            part.unlink()
            return
        _sync(part, os.O_RDONLY)
        part.rename(part.with_name(part.name[1 : -len(PART_SUFFIX)] + SEGMENT_SUFFIX))
        _sync(self._directory, os.O_RDONLY | os.O_DIRECTORY)

    # --- all segments ---------------------------------------------------------------------

    def _remove_old(self, now: float) -> None:
        oldest = now - self.options.days_max * _DAY_SECONDS
        for segment in self._segments():
            if segment.stat().st_mtime < oldest:
                self._remove(segment)
        self._count()

    def _has_room(self, wanted: int) -> bool:
        if shutil.disk_usage(self._directory).free < self.options.free_bytes_min + wanted:
            return False
        over = self._finished_bytes + self._size + wanted - self.options.bytes_max
        if over > 0 and self.options.at_bytes_max == DROP:
            for segment in self._segments():
                if over <= 0:
                    break
                over -= segment.stat().st_size
                self._remove(segment)
            self._count()
        return over <= 0

    def _remove(self, segment: Path) -> None:
        segment.unlink(missing_ok=True)
        self.removed += 1

    def _segments(self) -> list[Path]:
        """The finished ones, the oldest first."""
        found = [
            path
            for path in self._directory.glob(f"{self._prefix}*{SEGMENT_SUFFIX}")
            if self._name.fullmatch(path.name.removesuffix(SEGMENT_SUFFIX))
        ]
        return sorted(found, key=self._number)

    def _number(self, segment: Path) -> int:
        found = self._name.fullmatch(segment.name.removesuffix(SEGMENT_SUFFIX))
        return int(found[1]) if found else 0

    def _count(self) -> None:
        segments = self._segments()
        self._finished_count = len(segments)
        self._finished_bytes = sum(segment.stat().st_size for segment in segments)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def read_members(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(where it ends, its lines) of each whole gzip member from here on, up to the first that is
    damaged or cut off."""
    member, lines, rest = zlib.decompressobj(wbits=_GZIP), [], b""
    while piece := rest or file.read(_PIECE_BYTES):
        try:
            lines.append(member.decompress(piece))
        except zlib.error:
            return
        rest = member.unused_data
        if member.eof:
            yield file.tell() - len(rest), b"".join(lines)
            member, lines = zlib.decompressobj(wbits=_GZIP), []


def _cut_back(part: Path) -> None:
    with part.open("rb") as file:
        end = max((end for end, _ in read_members(file)), default=0)
    if end < part.stat().st_size:
        os.truncate(part, end)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
