"""PublishKeys: the numbers of messages that were accepted here, by their publish keys.

A source that does not know whether a message was accepted publishes it again with the same key, and
is told the number that it has.  So a key is remembered in the commit of its message::

    source s1     block    at 09:00    numbers 1 .. 70     64 keys ─┐ one row of the store each;
                  block    at 09:02    numbers 71 .. 90    20 keys ─┤ the last one is added to
                  KeyTable: digest of a key -> its entry ───────────┘

Where the source gets another root broker its keys go along, by way of the registration service.

Keys go as they came, a block at a time: the oldest block when there are too many keys, or when it
is too old.  A new one is begun after a part of that age, so a key is remembered at least so long.

A key takes about 50 bytes of memory here: the digest, its place in the table, its number.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.errors import StoreError
from overlay.link.frames import KEYS_MAX, KeysReleased
from overlay.link.message_headers import DIGEST_BYTES
from overlay.link.part import Part, Taker, takes
from overlay.link.row_log import RowLog, numbered_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import BrokerStatistics
from yfilter.keys import KeyTable

MOVED_MAX = 4096  # blocks of a source that go along to another root broker, the newest
BLOCKS_AN_AGE = 24  # at least, of a source that publishes all the time
LOOK_SECONDS = 60.0  # between two looks for what is too old


class _BlockRow(Row, frozen=True):
    """``at``: seconds of the calendar when it was begun; ``digests`` end to end, of ``numbers``."""

    source: str
    at: float
    numbers: list[int]
    digests: bytes


PUBLISH_KEYS = Table("publish-key", _BlockRow)


@dataclass(slots=True, eq=False)
class _Block:
    """Keys by their entries in the table, in order; ``row`` is the key of its row, ``first`` the
    number of its first message."""

    at: float
    row: str
    first: int
    entries: array[int] = field(default_factory=lambda: array("I"))


@dataclass(slots=True, eq=False)
class _Known:
    """What is known of a source; entries count from 1."""

    table: KeyTable = field(default_factory=KeyTable)
    numbers: array[int] = field(default_factory=lambda: array("Q", [0]))  # by entry
    free: array[int] = field(default_factory=lambda: array("I"))  # entries
    blocks: deque[_Block] = field(default_factory=deque)


class PublishKeys(Part):
    """``number`` of a key, ``note`` it with its message, ``forget`` it when that is refused."""

    def __init__(self, limits: Limits, rows: RowLog, wall: Callable[[], float]) -> None:
        """``wall``: seconds of the calendar."""
        self.take_limits(limits)
        self._rows = rows
        self._wall = wall
        self._sources: defaultdict[str, _Known] = defaultdict(_Known)
        self._changed: dict[_Block, str] = {}  # with the source
        self._look_at = 0.0

    def take_limits(self, limits: Limits) -> None:
        self._keys_max = limits.publish_keys_max
        self._age = limits.publish_key_age_s

    def frames(self) -> Iterable[Taker]:
        yield takes(KeysReleased, "registration", self._handle_released)

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(PUBLISH_KEYS):
            if len(row.digests) != DIGEST_BYTES * len(row.numbers):
                raise StoreError(
                    f"row {key!r} of space {PUBLISH_KEYS.space!r} is bad: {len(row.numbers)} "
                    f"numbers with {len(row.digests)} bytes; expected {DIGEST_BYTES} each"
                )
            known = self._sources[row.source]
            block = _Block(row.at, key, row.numbers[0] if row.numbers else 0)
            known.blocks.append(block)
            for number, digest in _pairs(row.numbers, row.digests):
                _enter(known, block, digest, number)

    def number(self, source: str, digest: bytes) -> int:
        """Of the message of a source that was accepted with a key; 0: there is none."""
        known = self._sources.get(source)
        return 0 if known is None else known.numbers[known.table.find(digest)]

    def note(self, source: str, digest: bytes, number: int) -> None:
        """The next message of a source, with a key that is not known."""
        known = self._sources[source]
        now = self._wall()
        last = known.blocks[-1] if known.blocks else None
        if (
            last is None
            or len(last.entries) == KEYS_MAX
            or now >= last.at + self._age / BLOCKS_AN_AGE
        ):
            last = _Block(now, numbered_key(source, number), number)
            known.blocks.append(last)
        _enter(known, last, digest, number)
        self._changed[last] = source
        self.flush_soon()
        self._bound(known)

    def forget(self, source: str, number: int) -> None:
        """A message was refused in the end: one with its key is another one."""
        known = self._sources.get(source)
        if known is None:
            return
        for block in reversed(known.blocks):
            if block.first <= number:
                for entry in block.entries:
                    if known.numbers[entry] == number:
                        block.entries.remove(entry)
                        _leave(known, entry)
                        self._put(known, block, source)  # at once, with the refusal
                        return
                return

    def flush(self) -> None:
        """One row for what came together, of each source."""
        changed, self._changed = self._changed, {}
        for block, source in changed.items():
            self._put(self._sources[source], block, source)

    def released(self, source: str) -> Iterator[KeysReleased]:
        """For another root broker, the oldest first."""
        known = self._sources.get(source)
        if known is None:
            return
        for block in tuple(known.blocks)[-MOVED_MAX:]:
            row = self._row(known, block, source)
            if row.numbers:
                yield KeysReleased(source, int(row.at), row.numbers, row.digests)

    def drop(self, source: str) -> None:
        """A source is gone, and all its keys with it."""
        known = self._sources.pop(source, None)
        for block in () if known is None else known.blocks:
            self._changed.pop(block, None)
            PUBLISH_KEYS.delete(self._rows, block.row)

    def tick(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        oldest = self._wall() - self._age * (1 + 1 / BLOCKS_AN_AGE)
        for source, known in list(self._sources.items()):
            while known.blocks and known.blocks[0].at < oldest:
                self._drop_oldest(known)
            if not known.blocks:
                del self._sources[source]

    def report(self, said: BrokerStatistics) -> None:
        said.data.publish_keys = sum(len(known.table) for known in self._sources.values())

    def _handle_released(self, frame: KeysReleased, arrival: Arrival) -> None:
        """This broker is to be the root of the source; it may have been before."""
        self.announce(frame)  # to whom its publishers matter
        source, known = frame.source, self._sources[frame.source]
        block: _Block | None = None
        for number, digest in _pairs(frame.numbers, frame.payload):
            if known.table.find(digest):
                continue
            if block is None:
                block = _Block(frame.at, numbered_key(source, number), number)
                known.blocks.append(block)
                self._changed[block] = source
                self.flush_soon()
            _enter(known, block, digest, number)
        self._bound(known)

    def _row(self, known: _Known, block: _Block, source: str) -> _BlockRow:
        digests = b"".join(map(known.table.key, block.entries))
        numbers = [known.numbers[entry] for entry in block.entries]
        return _BlockRow(source, block.at, numbers, digests)

    def _put(self, known: _Known, block: _Block, source: str) -> None:
        PUBLISH_KEYS.put(self._rows, block.row, self._row(known, block, source))

    def _bound(self, known: _Known) -> None:
        while len(known.table) > self._keys_max:
            self._drop_oldest(known)

    def _drop_oldest(self, known: _Known) -> None:
        block = known.blocks.popleft()
        self._changed.pop(block, None)
        for entry in block.entries:
            _leave(known, entry)
        PUBLISH_KEYS.delete(self._rows, block.row)


def _pairs(numbers: Iterable[int], digests: bytes) -> Iterator[tuple[int, bytes]]:
    """Of digests end to end."""
    for place, number in enumerate(numbers):
        yield number, digests[DIGEST_BYTES * place : DIGEST_BYTES * (place + 1)]


def _enter(known: _Known, block: _Block, digest: bytes, number: int) -> None:
    if known.free:
        entry = known.free.pop()
        known.numbers[entry] = number
    else:
        entry = len(known.numbers)
        known.numbers.append(number)
    known.table.insert(digest, entry)
    block.entries.append(entry)


def _leave(known: _Known, entry: int) -> None:
    known.table.remove(entry)
    known.numbers[entry] = 0
    known.free.append(entry)
