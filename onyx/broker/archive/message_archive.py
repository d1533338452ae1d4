"""MessageArchive: writes what the core wants archived, without anybody waiting for it.

::

    core ─ArchiveMessage─> take: a bounded queue in memory ─ every second, in a thread ─> segments

The broker's own work never depends on it: a disk that is full or broken costs the archive messages,
which are counted and shown by ``onyx status``, and nothing else.  What could not be written waits
in the queue and is tried again; beyond the queue's bound messages are left out.  When the process
ends everything that waits is written; when it is killed, about the last second is missing.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock

import trio

from onyx.broker.archive.archive_pages import read_page
from onyx.broker.archive.archive_segments import ArchiveSegments
from overlay.archive import ArchiveOptions
from overlay.link.events import ArchiveMessage, ArchiveRead, ReadArchive

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
        self._written = 0
        self._left_out = 0
        self._failed_writes = 0
        self._problem = ""

    def take(self, message: ArchiveMessage) -> None:
        """Never blocks and never fails: a message for which there is no room is counted."""
        line = _line(message, self._clock())
        with self._lock:
            if self._waiting_bytes + len(line) > self._options.waiting_bytes_max:
                self._left_out += 1
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
                    self._written += count
                    self._tell("")
                else:
                    self._left_out += count
                    self._tell("no room: bytes_max or free_bytes_min is reached")
                self._drop(count)
            self._segments.rotate(now)
        except OSError as error:
            self._failed_writes += 1
            self._is_open = False
            self._tell(error.strerror or str(error))

    def close(self) -> None:
        """Write what waits and finish the segment; blocks.  What cannot be written is lost."""
        self.write_waiting()
        self._left_out += len(self._lines)
        self._drop(len(self._lines))
        try:
            self._segments.close()
        except OSError as error:
            self._tell(error.strerror or str(error))
        if self._left_out:
            log.warning("archive: %d messages were left out", self._left_out)

    def take_options(self, options: ArchiveOptions) -> None:
        """Other bounds are in force; where it is stays."""
        self._options = options
        self._segments.options = options

    def statistics(self) -> dict[str, object]:
        """``left_out``: messages that are not in the archive for want of room; ``problem``: what
        the last writing met with, "" if that went well."""
        return {
            "written": self._written,
            "left_out": self._left_out,
            "waiting": len(self._lines),
            "waiting_bytes": self._waiting_bytes,
            "failed_writes": self._failed_writes,
            "problem": self._problem,
            **self._segments.statistics(),
        }

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

    def _drop(self, count: int) -> None:
        with self._lock:
            for _ in range(count):
                self._waiting_bytes -= len(self._lines.popleft())

    def _tell(self, problem: str) -> None:
        """Log it once as long as it lasts."""
        if problem and problem != self._problem:
            log.warning("archive: %s", problem)
        self._problem = problem


def _line(message: ArchiveMessage, now: float) -> bytes:
    record = {
        "name": f"{message.source}/{message.number}",
        "source": message.source,
        "number": message.number,
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
        "message": message.text,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
