"""PublisherJournal: what a publisher has to publish, on its own disk until its outcome is known.

::

    publish ──> entry 7: key, message ──> committed ──> sent with the key ──> outcome ──> no entry
                                              what a crash leaves is sent in the next run

An entry has the key that the publisher has given, or one of its own, so that a message whose
outcome nobody has heard is accepted once.  Publishes that wait together share a commit.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec

from onyx.errors import JournalFull, StoreUnusable
from onyx.own_store import open_own
from onyx.store_errors import store_errors
from overlay.link.events import Delete, Put
from overlay.link.message_headers import Headers
from overlay.link.row_log import RowLog, number_key
from overlay.link.tables import Row, Table

JOURNAL_BYTES_MAX = 64 * 1024 * 1024
_OVERHEAD_BYTES = 200  # of an entry, about


class Entry(Row, frozen=True):
    """``data`` None: it is settled, and here for its number."""

    source: str
    media_type: str
    key: str
    data: bytes | None
    headers: Headers = msgspec.field(default_factory=dict)


ENTRIES = Table("publication", Entry)


class PublisherJournal:
    """``add`` what is to be published, then ``settle`` it.  ``count`` is the number of the last
    entry that there ever was."""

    def __init__(self, path: Path | str, source: str, bytes_max: int = JOURNAL_BYTES_MAX) -> None:
        """StoreUnusable if another process has the file, or it is of something else."""
        self.path = Path(path)
        self._source = source
        self._bytes_max = bytes_max
        self._store, rows = open_own(path, ENTRIES)
        entries = [(int(key), entry) for key, entry in sorted(rows.items())]
        for _, entry in entries:
            if entry.source != source:
                self._store.close()
                detail = f"the journal of source {entry.source!r}; expected {source!r}"
                raise StoreUnusable(f"{path} is {detail}")
        self.count = entries[-1][0] if entries else 0
        self._left = [(number, entry) for number, entry in entries if entry.data is not None]
        self._sizes = {number: _size(entry) for number, entry in self._left}
        self._bytes = sum(self._sizes.values())
        self._rows = RowLog()
        self._unwritten: list[Put | Delete] = []  # as the disk would not have it
        self._asked = self._committed = 0  # changes
        self._committing = anyio.Lock()

    def take_left(self) -> list[tuple[int, Entry]]:
        """What the runs before have not settled, with its numbers."""
        left, self._left = self._left, []
        return left

    def has_room(self, data: bytes) -> bool:
        """Whether a message fits beside those that are not settled; one always does."""
        return not self._bytes or self._bytes + len(data) <= self._bytes_max

    async def add(
        self, data: bytes, media_type: str, key: str, headers: Headers | None = None
    ) -> tuple[int, str]:
        """The number of an entry that is on the disk, and its key; JournalFull."""
        if not self.has_room(data):
            raise JournalFull(
                f"{self.path} is full: {len(self._sizes)} messages of {self._bytes} bytes wait for "
                f"their outcome, at most {self._bytes_max} bytes may (journal_bytes_max); is the "
                "root broker there?"
            )
        self.count += 1
        number, entry = (
            self.count,
            Entry(*(self._source, media_type, key or uuid4().hex, data), dict(headers or {})),
        )
        ENTRIES.put(self._rows, number_key(number), entry)
        before = number - 1
        if before and before not in self._sizes:
            ENTRIES.delete(self._rows, number_key(before))
        self._sizes[number] = _size(entry)
        self._bytes += self._sizes[number]
        await self._commit()
        return number, entry.key

    def settle(self, number: int) -> None:
        """Its outcome is known; the disk forgets it with the next commit."""
        if number not in self._sizes:
            return
        self._bytes -= self._sizes.pop(number)
        if number == self.count:
            ENTRIES.put(self._rows, number_key(number), Entry(self._source, "", "", None))
        else:
            ENTRIES.delete(self._rows, number_key(number))

    def close(self) -> None:
        try:
            self._write([*self._unwritten, *self._rows.drain()])
        finally:
            self._store.close()

    async def _commit(self) -> None:
        """All that was asked for up to now is on the disk; in one commit with what others ask."""
        self._asked += 1
        asked = self._asked
        async with self._committing:
            if self._committed >= asked:
                return
            through = self._asked
            self._unwritten += self._rows.drain()
            await anyio.to_thread.run_sync(self._write, self._unwritten)
            self._unwritten = []
            self._committed = through

    def _write(self, changes: list[Put | Delete]) -> None:
        with store_errors(f"{self.path} cannot be written: "):
            self._store.commit(changes)


def _size(entry: Entry) -> int:
    headers = sum(len(name) + len(text) for name, text in entry.headers.items())
    return len(entry.data or b"") + headers + _OVERHEAD_BYTES
