"""MessageArchive: writes what the core wants archived, without anybody waiting for it.

::

    core ─ArchiveMessage─> take: a bounded queue in memory ─ every second, in a thread ─> segments

The broker's own work never depends on it: a disk that is full or broken costs the archive messages,
which are counted and shown by ``onyx status``, and nothing else.  What could not be written waits
in the queue and is tried again; beyond the queue's bound messages are left out.  When the process
ends everything that waits is written; when it is killed, about the last second is missing.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import shutil
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, NamedTuple

import trio

from overlay.archive import DROP, ArchiveOptions
from overlay.link.events import ArchiveMessage, ArchiveRead, ReadArchive
from overlay.statistics import Archive

# -------------------------------------------------------------------------------------------------
# ArchiveSegments: the files of one broker's archive, bounded in size and age.
#
# ::
#
#     DIR/onyx-B1-20261121T173000Z-00000007.jsonl.gz     finished: whole, on disk, never changed
#     DIR/.onyx-B1-20261121T183000Z-00000008.part        being written; hidden from readers of DIR
#
#     segment = gzip member*         each some lines, written at once
#     line    = {"name": "s1/17", "source": "s1", "number": 17, "time": "...Z", "message": "<m/>"}
#
# A reader never sees half a file: a segment gets its name once all of it is on disk.  What a
# process left behind that died is cut back to its last whole member and finished when the broker
# starts again.  Several brokers may share a directory; each touches only what bears its id.
# Everything here blocks, and raises OSError; message_archive.py calls it from a thread.


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

    def sizes(self) -> tuple[int, int]:
        """Files that are finished, and bytes of all."""
        return self._finished_count, self._finished_bytes + self._size

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


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# What a broker's archive has of a source, a bounded page at a time; see message_archive.py.
#
# A page ends behind a member of a segment, named ``NUMBER:OFFSET``; the segment that is being
# written is read as far as it is whole.


FOUND_BYTES_MAX = 512 * 1024  # then a page ends
READ_BYTES_MAX = 8 * 1024 * 1024  # or then, however little there is; compressed
WAITED_SECONDS_MAX = 60.0  # from when a message comes until it is written


class _Segment(NamedTuple):
    number: int
    began: float
    path: Path


def read_page(directory: Path, broker: str, asked: ReadArchive) -> ArchiveRead:
    """OSError.  A segment that goes meanwhile is as one that has gone before."""
    number, offset = _place(asked.after)
    prefix = b'{"name":' + json.dumps(f"{asked.source}/", ensure_ascii=False)[:-1].encode()
    found: list[bytes] = []
    size = read = 0
    for segment in _segments(directory, broker, asked):
        if segment.number < number:
            continue
        start = offset if segment.number == number else 0
        for end, lines in _members(segment.path, start):
            for line in lines.splitlines(keepends=True):
                if line.startswith(prefix) and _is_between(line, asked):
                    found.append(line)
                    size += len(line)
            read += end - start
            start = end
            if size >= FOUND_BYTES_MAX or read >= READ_BYTES_MAX:
                return ArchiveRead(asked.key, b"".join(found), f"{segment.number}:{end}")
    return ArchiveRead(asked.key, b"".join(found), "")


def _place(after: str) -> tuple[int, int]:
    matched = re.fullmatch(r"(\d{1,8}):(\d{1,15})", after, re.ASCII)
    return (int(matched[1]), int(matched[2])) if matched else (0, 0)


def _segments(directory: Path, broker: str, asked: ReadArchive) -> list[_Segment]:
    """Those with messages of the time, the oldest first."""
    suffix = f"(?:{re.escape(SEGMENT_SUFFIX)}|{re.escape(PART_SUFFIX)})"
    name = re.compile(rf"\.?onyx-{re.escape(broker)}-(\d{{8}}T\d{{6}}Z)-(\d{{8}}){suffix}")
    found = {}
    for path in directory.iterdir():
        if matched := name.fullmatch(path.name):
            began = datetime.strptime(matched[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            found[int(matched[2])] = _Segment(int(matched[2]), began.timestamp(), path)
    ordered = [found[number] for number in sorted(found)]
    ends = [segment.began + 1 for segment in ordered[1:]] + [asked.since + 1]
    return [
        segment
        for segment, end in zip(ordered, ends, strict=True)
        if end > asked.since and segment.began < asked.until + WAITED_SECONDS_MAX
    ]


def _open(path: Path) -> BinaryIO | None:
    """It may be finished meanwhile, or gone."""
    finished = path.name.removeprefix(".").removesuffix(PART_SUFFIX) + SEGMENT_SUFFIX
    for name in (path.name, finished):
        with suppress(FileNotFoundError):
            return path.with_name(name).open("rb")
    return None


def _members(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """(where it ends, its lines) of each whole one behind a place."""
    file = _open(path)
    if file is None:
        return
    with file:
        file.seek(start)
        yield from read_members(file)


def _is_between(line: bytes, asked: ReadArchive) -> bool:
    at = datetime.fromisoformat(json.loads(line)["time"]).timestamp()
    return asked.since <= at < asked.until


# -------------------------------------------------------------------------------------------------


WRITE_SECONDS = 1.0
_MEMBER_BYTES = 1024 * 1024  # of lines that are compressed together

log = logging.getLogger("onyx.archive")


class MessageArchive:
    """The archive of ``broker``; ``clock`` gives seconds since 1970."""

    def __init__(
        self, broker: str, options: ArchiveOptions, clock: Callable[[], float] = time.time
    ) -> None:
        assert options.directory is not None
        self._broker, self._directory = broker, options.directory
        self._segments = ArchiveSegments(broker, options)
        self._options = options
        self._clock = clock
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lock = Lock()  # of the two above; held for moments only
        self._is_open = False
        self._counted = Archive(str(self._directory), 0, 0)

    def take(self, message: ArchiveMessage) -> None:
        """Never blocks and never fails: a message for which there is no room is counted."""
        line = _line(message, self._clock())
        with self._lock:
            if self._waiting_bytes + len(line) > self._options.waiting_bytes_max:
                self._left_out(1)
                return
            self._lines.append(line)
            self._waiting_bytes += len(line)

    def read(self, asked: ReadArchive) -> ArchiveRead:
        """A page of what is on disk; blocks.  Of what cannot be read nothing is there."""
        try:
            return read_page(self._directory, self._broker, asked)
        except (OSError, ValueError) as error:
            log.warning("archive: a page cannot be read: %s", error)
            return ArchiveRead(asked.key, b"", "")

    async def run(self) -> None:
        """Write now and then, until cancelled; then ``close``."""
        while True:
            await trio.sleep(WRITE_SECONDS)
            await trio.to_thread.run_sync(self.write_waiting)

    def write_waiting(self) -> None:
        """All that waits, as far as there is room; blocks."""
        now = self._clock()
        try:
            if not self._is_open:
                self._segments.open()
                self._is_open = True
            while self._lines:
                count, lines = self._next_member()
                if self._segments.write(lines, now):
                    self._counted.written = (self._counted.written or 0) + count
                    self._tell("")
                else:
                    self._left_out(count)
                    self._tell("no room: bytes_max or free_bytes_min is reached")
                self._drop(count)
            self._segments.rotate(now)
        except OSError as error:
            self._is_open = False
            self._tell(error.strerror or str(error))

    def close(self) -> None:
        """Write what waits and finish the segment; blocks.  What cannot be written is lost."""
        self.write_waiting()
        self._left_out(len(self._lines))
        self._drop(len(self._lines))
        try:
            self._segments.close()
        except OSError as error:
            self._tell(error.strerror or str(error))
        if self._counted.left_out:
            log.warning("archive: %d messages were left out", self._counted.left_out)

    def take_options(self, options: ArchiveOptions) -> None:
        """Other bounds are in force; where it is stays."""
        self._options = options
        self._segments.options = options

    def statistics(self) -> Archive:
        counted = self._counted
        counted.waiting = len(self._lines)
        counted.segments, counted.bytes = self._segments.sizes()
        return counted

    def _next_member(self) -> tuple[int, bytes]:
        """The first lines that wait, about a megabyte; they stay where they are."""
        taken: list[bytes] = []
        size = 0
        with self._lock:
            for line in self._lines:
                if taken and size + len(line) > _MEMBER_BYTES:
                    break
                size += len(line)
                taken.append(line)
        return len(taken), b"".join(taken)

    def _left_out(self, count: int) -> None:
        self._counted.left_out = (self._counted.left_out or 0) + count

    def _drop(self, count: int) -> None:
        with self._lock:
            for _ in range(count):
                self._waiting_bytes -= len(self._lines.popleft())

    def _tell(self, problem: str) -> None:
        """Log it once as long as it lasts."""
        if problem and problem != self._counted.problem:
            log.warning("archive: %s", problem)
        self._counted.problem = problem


def _line(message: ArchiveMessage, now: float) -> bytes:
    at = message.accepted / 1_000_000 or now
    record = {
        "name": f"{message.source}/{message.number}",
        "source": message.source,
        "number": message.number,
        "time": datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds"),
        "message": message.text,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
