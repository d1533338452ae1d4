"""MessageArchive: writes what the core wants archived, without anybody waiting for it.

::

    core ─ArchiveMessage─> take: a bounded queue in memory ─ every second, in a thread ─> segments

The broker's own work never depends on it: a disk that is full or broken costs the archive messages,
which are counted and shown by ``onyx status``, and nothing else.  What could not be written waits
in the queue and is tried again; beyond the queue's bound messages are left out.  When the process
ends everything that waits is written; when it is killed, about the last second is missing.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, NamedTuple

import trio

from overlay.archive import DROP, ArchiveOptions
from overlay.archive_file import (
    OLD_SUFFIX,
    SUFFIX,
    SUFFIXES,
    ArchivedMessage,
    Gap,
    Member,
    Span,
    Summing,
    member_at,
    member_of,
    old_rows_of,
    packed,
    rows_of,
    summary_of,
    to_the_damage,
    unnoted,
    whole_members,
)
from overlay.link.events import ArchiveMessage, ArchiveRead, ReadArchive
from overlay.statistics import Archive

# -------------------------------------------------------------------------------------------------
# ArchiveSegments: the files of one broker's archive, bounded in size and age.
#
# ::
#
#     DIR/onyx-B1-20261121T173000Z-00000007.msgpack.zst  finished: whole, on disk, never changed
#     DIR/.onyx-B1-20261121T183000Z-00000008.part        being written; hidden from readers of DIR
#
# overlay/archive_file.py says what is in a segment: members, each the messages that were written at
# once, and a summary.  Segments that an earlier release has written are files of JSON lines.
#
# A reader never sees half a file: a segment gets its name once all of it is on disk.  What a
# process left behind that died is cut back to its last whole member and finished when the broker
# starts again.  Several brokers may share a directory; each touches only what bears its id.
# Everything here blocks, and raises OSError; message_archive.py calls it from a thread.


class Written(NamedTuple):
    """The file that is being written, "" for none, and its members up to now."""

    name: str
    members: list[Member]


PART_SUFFIX = ".part"
_NOTHING = Written("", [])
_DAY_SECONDS = 86_400.0
_GZIP_BEGINS = b"\x1f\x8b"


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
        self._summing = Summing()
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
                self._finish(part, _cut_back(part))
        self._next = 1 + max((self._number(path) for path in self._segments()), default=0)

    def write(self, rows: Sequence[bytes], now: float) -> bool:
        """Append packed rows; False when there is no room for them by the policy.

        ``now``: seconds since 1970.  After an OSError nothing of them is in the archive.
        """
        member = member_of(rows)
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
        self._summing.add(len(member), rows)
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
            self._finish(self._part, self._summing)
            self._count()

    @property
    def written(self) -> Written:
        """The segment that is being written."""
        return _NOTHING if self._file is None else Written(self._part.name, self._summing.members)

    def sizes(self) -> tuple[int, int]:
        """Files that are finished, and bytes of all."""
        return self._finished_count, self._finished_bytes + self._size

    # --- one segment ----------------------------------------------------------------------

    def _begin(self, now: float) -> int:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        stem = f"{self._prefix}{stamp}-{self._next:08d}"
        self._part = self._directory / f".{stem}{PART_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._part, flags, 0o640)  # of users: not everybody's
        self._next += 1
        self._began, self._size, self._summing = now, 0, Summing()
        return self._file

    def _take_back(self, file: int) -> None:
        """Half a member may be on disk, say because that is full."""
        try:
            os.ftruncate(file, self._size)
        except OSError:
            self._file, self._size = None, 0
            os.close(file)  # cut back by the next ``open``

    def _finish(self, part: Path, summing: Summing | None) -> None:
        """Under its name only when all of it is on disk; nothing is left of an empty one.
        ``summing`` None: a file of JSON lines."""
        if not part.stat().st_size:
            part.unlink()
            return
        if summing is not None:
            with part.open("ab") as file:
                file.write(summing.frame())
        _sync(part, os.O_RDONLY)
        suffix = OLD_SUFFIX if summing is None else SUFFIX
        part.rename(part.with_name(part.name[1 : -len(PART_SUFFIX)] + suffix))
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
        found = [path for path in self._directory.iterdir() if self._number(path)]
        return sorted(found, key=self._number)

    def _number(self, path: Path) -> int:
        """Of a finished segment of this broker; else 0."""
        for suffix in SUFFIXES:
            if found := self._name.fullmatch(path.name.removesuffix(suffix)):
                return int(found[1]) if path.name.endswith(suffix) else 0
        return 0

    def _count(self) -> None:
        segments = self._segments()
        self._finished_count = len(segments)
        self._finished_bytes = sum(segment.stat().st_size for segment in segments)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _cut_back(part: Path) -> Summing | None:
    """The file ends behind its last whole member; its summary so far, None for JSON lines."""
    with part.open("rb") as file:
        is_old = file.read(2) == _GZIP_BEGINS
        file.seek(0)
        end, summing = 0, Summing()
        for member in whole_members(file, is_old=is_old):
            if not is_old:
                summing.add(member.end - end, map(packed, rows_of(member.data)))
            end = member.end
    lost = part.stat().st_size - end
    if lost:
        log.warning("archive: %s: its last %d bytes are half a member, or damaged", part.name, lost)
        os.truncate(part, end)
    return None if is_old else summing


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


def read_page(directory: Path, broker: str, asked: ReadArchive, written: Written) -> ArchiveRead:
    """OSError.  A segment that goes meanwhile is as one that has gone before."""
    number, offset = _place(asked.after)
    found: list[bytes] = []
    damaged: list[Gap] = []
    size = read = 0
    for segment in _segments(directory, broker, asked):
        if segment.number < number:
            continue
        start = offset if segment.number == number else 0
        for end, length, lines in _members(segment.path, start, asked, written, damaged.append):
            found += lines
            size += sum(map(len, lines))
            read += length
            if size >= FOUND_BYTES_MAX or read >= READ_BYTES_MAX:
                place = f"{segment.number}:{end}"
                return ArchiveRead(asked.key, b"".join(found), place, tuple(map(str, damaged)))
    return ArchiveRead(asked.key, b"".join(found), "", tuple(map(str, damaged)))


def _place(after: str) -> tuple[int, int]:
    matched = re.fullmatch(r"(\d{1,8}):(\d{1,15})", after, re.ASCII)
    return (int(matched[1]), int(matched[2])) if matched else (0, 0)


def _segments(directory: Path, broker: str, asked: ReadArchive) -> list[_Segment]:
    """Those with messages of the time, the oldest first."""
    suffix = "|".join(map(re.escape, (*SUFFIXES, PART_SUFFIX)))
    name = re.compile(rf"\.?onyx-{re.escape(broker)}-(\d{{8}}T\d{{6}}Z)-(\d{{8}})(?:{suffix})")
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
    stem = path.name.removeprefix(".").removesuffix(PART_SUFFIX)
    for name in (path.name, *(stem + suffix for suffix in SUFFIXES)):
        with suppress(FileNotFoundError):
            return path.with_name(name).open("rb")
    return None


def _members(
    path: Path,
    start: int,
    asked: ReadArchive,
    written: Written,
    note: Callable[[Gap], None],
) -> Iterator[tuple[int, int, list[bytes]]]:
    """(where it ends, its length, the lines that are asked for) of each member behind a place; a
    member is passed over where the summary tells that it has none of these.  ``note`` is told of
    those that are damaged."""
    file = _open(path)
    if file is None:
        return
    with file:
        name = Path(file.name).name
        is_old = file.read(2) == _GZIP_BEGINS
        summary = None if is_old else summary_of(file)
        if summary is None and name != written.name:
            is_finished = not name.endswith(PART_SUFFIX)
            told = note if is_finished else unnoted
            for whole in to_the_damage(file, name, start, told, is_old=is_old):
                yield whole.end, whole.end - start, _lines(whole.data, asked, is_old=is_old)
                start = whole.end
            return
        for member in written.members if summary is None else summary.members:
            span = member.sources.get(asked.source)
            if member.start < start or span is None or not _is_in(span, asked):
                continue
            data, lines = member_at(file, member), []
            if data is None:
                note(Gap(name, member.start, span.messages))
            else:
                lines = _lines(data, asked, is_old=False)
            yield member.start + member.length, member.length, lines


def _is_in(span: Span, asked: ReadArchive) -> bool:
    return span.until >= asked.since * 1e6 and span.since < asked.until * 1e6


def _lines(data: bytes, asked: ReadArchive, *, is_old: bool) -> list[bytes]:
    since, until = asked.since * 1e6, asked.until * 1e6
    return [
        row.line()
        for row in (old_rows_of(data) if is_old else rows_of(data))
        if row.source == asked.source and since <= row.time < until
    ]


# -------------------------------------------------------------------------------------------------


WRITE_SECONDS = 1.0
_MEMBER_BYTES = 1024 * 1024  # of rows that are compressed together

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
        self._rows: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lock = Lock()  # of the two above; held for moments only
        self._is_open = False
        self._counted = Archive(str(self._directory), 0, 0)

    def take(self, message: ArchiveMessage) -> None:
        """Never blocks and never fails: a message for which there is no room is counted."""
        at = message.accepted or round(self._clock() * 1_000_000)
        row = packed(ArchivedMessage(message.source, message.number, at, "", message.text))
        with self._lock:
            if self._waiting_bytes + len(row) > self._options.waiting_bytes_max:
                self._left_out(1)
                return
            self._rows.append(row)
            self._waiting_bytes += len(row)

    def read(self, asked: ReadArchive) -> ArchiveRead:
        """A page of what is on disk; blocks.  Of what cannot be read nothing is there."""
        try:
            return read_page(self._directory, self._broker, asked, self._segments.written)
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
            while self._rows:
                rows = self._next_member()
                count = len(rows)
                if self._segments.write(rows, now):
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
        self._left_out(len(self._rows))
        self._drop(len(self._rows))
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
        counted.waiting = len(self._rows)
        counted.segments, counted.bytes = self._segments.sizes()
        return counted

    def _next_member(self) -> list[bytes]:
        """The first rows that wait, about a megabyte; they stay where they are."""
        taken: list[bytes] = []
        size = 0
        with self._lock:
            for row in self._rows:
                if taken and size + len(row) > _MEMBER_BYTES:
                    break
                size += len(row)
                taken.append(row)
        return taken

    def _left_out(self, count: int) -> None:
        self._counted.left_out = (self._counted.left_out or 0) + count

    def _drop(self, count: int) -> None:
        with self._lock:
            for _ in range(count):
                self._waiting_bytes -= len(self._rows.popleft())

    def _tell(self, problem: str) -> None:
        """Log it once as long as it lasts."""
        if problem and problem != self._counted.problem:
            log.warning("archive: %s", problem)
        self._counted.problem = problem
