"""DeliveryLog: what is delivered to users, each message once.

A *record* is what one message gives to users here, whoever they are; it lives as long as a mailbox
holds it.  It has either the message, of which each result is made when it is taken, or the results
where these were made at once and are no longer than it.  Records are in the store, under their
*positions*; results and messages are in memory, too, as long as there is room
(overlay/link/frame_memory.py)::

    append ──> row of its head, row of its body         results that were made: memory
    wanted ──> memory ─ ─ ─ (not there) ─ ─ ─> read the body ──> its results, or the message

=============  =======================  ============================================================
space          key                      value
=============  =======================  ============================================================
delivery       ``0000000000000042``     source and number of the message, the second it came in, who
                                        gets it (mailboxes, by index), and a body of at most INLINE
                                        bytes
delivery-body  ``0000000000000042``     a longer one; no start reads it
=============  =======================  ============================================================
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from operator import sub
from typing import NamedTuple, Protocol, TypeAlias

import msgpack
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from onyx.broker.deliveries.late_spaces import BODY_SPACE
from onyx.broker.packing.parcel import KeptMessage
from overlay.link.errors import StoreDamaged, StoreError
from overlay.link.events import ReadRows, RowsRead
from overlay.link.frame_codec import ResultsEncoder
from overlay.link.frame_memory import FrameMemory
from overlay.link.frames import with_limit
from overlay.link.row_log import RowLog, number_key
from overlay.link.tables import Row, Table


class DeliveryRow(Row, frozen=True):
    """What a message gives, and to which mailboxes (``pack_ascending``); ``rules`` where results
    are still to be made.  A long body is in BODY_SPACE."""

    source: str
    number: int
    second: int
    size: int
    stored: int
    boxes: bytes
    rules: int | None = None
    body: bytes | None = None


DELIVERIES = Table("delivery", DeliveryRow)

RULES = 1
"""By which results are made of a message.  A release that makes others raises it: then what waits
has to be made by the release of before (``onyx make-results``)."""

INLINE_BYTES = 512  # a longer body has a row of its own
RECORD_BYTES = 64  # what a record counts for besides its body

ReadStore: TypeAlias = Callable[[str, str, str], Sequence[tuple[str, bytes]]]
"""(space, first key, last key) -> the rows (key, value)."""


class Results:
    """Those of a message for some mailboxes, end to end in ``payload``, with their ``lengths``,
    as ``overlay.link.frames.contents`` reads them.  ``encoder`` once they have left; ``is_counted``
    while a record counts them as in memory, for whoever gets them."""

    __slots__ = ("encoder", "is_counted", "lengths", "payload")

    def __init__(self, lengths: list[int], payload: bytes) -> None:
        self.lengths = lengths
        self.payload = payload
        self.encoder: ResultsEncoder | None = None
        self.is_counted = False

    def encode(self, record: Record) -> ResultsEncoder:
        """They leave for the first time."""
        self.encoder = ResultsEncoder(record.source, record.number, self.lengths, self.payload)
        return self.encoder

    @property
    def key(self) -> tuple[bytes, tuple[int, ...]]:
        """The same for equal results."""
        return self.payload, tuple(self.lengths)


def without_results(code: str, reason: str) -> Results:
    """Of a profile that a limit leaves without."""
    return joined(with_limit([], f"{reason} [{code}]"))


def joined(results: Sequence[bytes]) -> Results:
    """Results that were made one by one."""
    return Results(list(map(len, results)), b"".join(results))


NOTHING = Results([], b"")
"""Of a profile that gets nothing of a message after all."""


class Message(Protocol):
    """One that can be kept; ``payload`` as it came."""

    @property
    def payload(self) -> bytes: ...

    def kept(self) -> KeptMessage:
        """To be read at any time."""


class Group(NamedTuple):
    """Mailboxes, by index and ascending, that get the same; ``results`` None: they are not made
    yet."""

    boxes: list[int]
    results: Results | None


class Record:
    """What one message gives.  ``holders``: mailboxes that hold it; ``size``: what it counts for
    in each of them; ``stored``: bytes in the store, of results, or of the message whose results
    wait to be made (``is_unmade``).

    In memory as far as there is room: ``common``, the results for all who get it, or those ``made``
    by mailbox, or the ``message``.
    """

    __slots__ = (
        "common",
        "holders",
        "in_memory",
        "is_apart",
        "is_unmade",
        "made",
        "message",
        "number",
        "second",
        "size",
        "source",
        "stored",
    )

    def __init__(self, source: str, number: int, second: int, size: int, stored: int) -> None:
        self.source = source
        self.number = number
        self.second = second
        self.size = size
        self.stored = stored
        self.holders = 0
        self.is_apart = self.is_unmade = False
        self.in_memory = 0
        self.common: Results | None = None
        self.made: dict[int, Results] | None = None
        self.message: KeptMessage | None = None

    def results(self, box: int) -> Results | None:
        """For a mailbox; None if they are not in memory."""
        if self.common is not None:
            return self.common
        return None if self.made is None else self.made.get(box)


class DeliveryLog:
    """``append`` what a message gives, ``release`` it when it was taken."""

    def __init__(self, rows: RowLog, bytes_max: int) -> None:
        """``bytes_max`` of bodies are in memory."""
        self.records: dict[int, Record] = {}  # by position, the oldest first
        self.last = 0
        self.stored_bytes = 0
        self._rows = rows
        self._memory = FrameMemory(bytes_max)
        self._last_boxes: list[int] = []
        self._last_packed = b""
        self._asked: dict[int, bool] = {}  # positions to be read -> whether that was said
        self._restored: list[tuple[int, list[int]]] = []  # positions, and who gets it

    @property
    def is_full(self) -> bool:
        """Whether no more bodies are to be in memory."""
        return self._memory.is_full

    def append(
        self,
        source: str,
        number: int,
        second: int,
        groups: Sequence[Group],
        message: Message | None,
    ) -> Record:
        """One record more, at ``last`` from then on; every mailbox is in one of the ``groups``.

        Without the ``message`` all results must be there; with it, they are kept if they are all
        there and no longer.
        """
        self.last += 1
        lengths = sum(len(group.results.payload) for group in groups if group.results)
        is_made = message is None or (
            lengths <= len(message.payload) and all(group.results for group in groups)
        )
        kept = None if is_made or message is None else message.kept()
        body = _pack_results(groups) if kept is None else _pack_message(kept)
        whole = 0 if kept is None else len(kept.payload)
        size = RECORD_BYTES + (whole or lengths // len(groups))
        record = Record(source, number, second, size, len(body) + RECORD_BYTES)
        record.holders = sum(len(group.boxes) for group in groups)
        if len(groups) == 1 and is_made:
            record.common = groups[0].results
        else:
            record.message = kept
            record.made = _by_box(groups)
        self._hold(record, lengths + whole)
        boxes = groups[0].boxes
        if len(groups) > 1:
            boxes = sorted([box for group in groups for box in group.boxes])
        record.is_unmade = kept is not None
        record.is_apart = len(body) > INLINE_BYTES
        if record.is_apart:
            self._rows.put(BODY_SPACE, number_key(self.last), body)
        row = DeliveryRow(
            *(source, number, second, size, record.stored, self._packed(boxes)),
            RULES if record.is_unmade else None,
            None if record.is_apart else body,
        )
        # PERF: DELIVERIES.put would be a file and a call more on every message's way.
        self._rows.put(DELIVERIES.space, number_key(self.last), DELIVERIES.pack(row))
        self.records[self.last] = record
        self.stored_bytes += record.stored
        return record

    def _packed(self, boxes: list[int]) -> bytes:
        # PERF: the same many mailboxes often get message after message.
        if boxes is not self._last_boxes:
            self._last_boxes, self._last_packed = boxes, pack_ascending(boxes)
        return self._last_packed

    def restore(self, key: str, row: DeliveryRow) -> None:
        """A row of DELIVERIES, in any order."""
        if row.rules not in (None, RULES) or not key.isdecimal() or row.size < 0:
            raise _refused(key, row)
        position = int(key)
        record = Record(row.source, row.number, row.second, row.size, row.stored)
        record.is_apart = row.body is None
        record.is_unmade = row.rules is not None
        self.records[position] = record
        self.stored_bytes += record.stored
        try:
            self._restored.append((position, unpack_ascending(row.boxes)))
        except (ValueError, TypeError):
            raise _damaged(DELIVERIES.space, key) from None

    def restored(self) -> Iterator[tuple[int, Record, list[int]]]:
        """The records that were restored, in the order of positions, with the mailboxes that got
        them; each is held by the caller until all who still hold it are counted."""
        restored, self._restored = sorted(self._restored), []
        records = self.records
        self.records = {position: records[position] for position, _ in restored}
        self.last = max(self.last, *self.records, 0)
        for position, boxes in restored:
            record = records[position]
            record.holders = 1
            yield position, record, boxes

    def release(self, position: int) -> None:
        """A mailbox does not hold a record any more."""
        record = self.records[position]
        record.holders -= 1
        if record.holders <= 0:
            del self.records[position]
            self._forget(record)
            self.stored_bytes -= record.stored
            self._rows.delete(DELIVERIES.space, number_key(position))
            if record.is_apart:
                self._rows.delete(BODY_SPACE, number_key(position))

    def let_go(self, record: Record) -> None:
        """Leave a record to the store if there is no room for it."""
        if self._memory.is_full and record.in_memory:
            self._forget(record)

    def make(self, record: Record, boxes: Iterable[int], results: Results) -> None:
        """Results for some mailboxes have been made."""
        if record.made is None:
            record.made = {}
        record.made.update(dict.fromkeys(boxes, results))
        if not results.is_counted:
            results.is_counted = True
            self._hold(record, len(results.payload))

    def ask(self, positions: Iterable[int]) -> None:
        """Records are wanted that are in the store only."""
        for position in positions:
            self._asked.setdefault(position, False)

    def reads(self) -> list[ReadRows]:
        """What is to be read when the rows up to now are stored; ``put_back`` takes it."""
        if not self._asked:
            return []
        runs: list[tuple[str, int, int]] = []  # a space, and the ends of positions in a row
        for position in sorted(at for at, is_said in self._asked.items() if not is_said):
            record = self.records.get(position)
            if record is None:
                del self._asked[position]
                continue
            self._asked[position] = True
            space, first = BODY_SPACE if record.is_apart else DELIVERIES.space, position
            if runs and runs[-1][::2] == (space, position - 1):
                first = runs.pop()[1]
            runs.append((space, first, position))
        return [ReadRows(space, number_key(a), number_key(b)) for space, a, b in runs]

    def put_back(self, rows: RowsRead) -> None:
        """Rows that were asked for; StoreDamaged where one of a record is not there."""
        bodies = dict(rows.rows)
        for position in range(int(rows.first), int(rows.last) + 1):
            self._asked.pop(position, None)
            record = self.records.get(position)
            if record is None or record.common is not None or record.message is not None:
                continue
            key = number_key(position)
            if key not in bodies:
                raise StoreDamaged(f"row {key!r} of {rows.space} is gone")
            self._put_back(record, rows.space, key, bodies[key])

    def _put_back(self, record: Record, space: str, key: str, value: bytes) -> None:
        body = value if space == BODY_SPACE else DELIVERIES.read(key, value).body or b""
        found = _read_body(space, key, body)
        if isinstance(found, KeptMessage):
            record.message = found
            self._hold(record, len(found.payload))
        else:
            if len(found) == 1:
                record.common = found[0].results
            else:
                record.made = _by_box(found)
            self._hold(record, sum(len(one.results.payload) for one in found if one.results))
        self._memory.frames_read_back += 1

    # --- for another release --------------------------------------------------------------

    def unmade(self) -> list[int]:
        """The positions of messages whose results wait to be made."""
        return [position for position, record in self.records.items() if record.is_unmade]

    def read_whole(self, position: int, read: ReadStore) -> list[int]:
        """Have what a record holds in memory; the mailboxes that got it, as of then."""
        key = number_key(position)
        row = DELIVERIES.read(key, dict(read(DELIVERIES.space, key, key))[key])
        space = BODY_SPACE if self.records[position].is_apart else DELIVERIES.space
        self.put_back(RowsRead(space, key, tuple(read(space, key, key)), key))
        return unpack_ascending(row.boxes)

    def keep_results(self, position: int) -> None:
        """The results that were made of a record, which are all that are wanted, are stored in
        place of its message, and leave memory.  It counts for as much as before in mailboxes."""
        record = self.records[position]
        boxes_of: dict[int, Group] = {}
        for box, results in (record.made or {}).items():
            boxes_of.setdefault(id(results), Group([], results)).boxes.append(box)
        groups = [Group(sorted(boxes), results) for boxes, results in boxes_of.values()]
        body = _compressed(_pack_results(groups))
        self.stored_bytes += len(body) + RECORD_BYTES - record.stored
        record.stored = len(body) + RECORD_BYTES
        record.is_apart, record.is_unmade = len(body) > INLINE_BYTES, False
        if record.is_apart:
            self._rows.put(BODY_SPACE, number_key(position), body)
        else:
            self._rows.delete(BODY_SPACE, number_key(position))
        row = DeliveryRow(
            *(record.source, record.number, record.second, record.size, record.stored),
            boxes=pack_ascending(sorted(record.made or ())),
            body=None if record.is_apart else body,
        )
        DELIVERIES.put(self._rows, number_key(position), row)
        self._forget(record)

    def kept_between(self) -> tuple[int, int]:
        """The positions of the first and the last record that somebody holds."""
        return next(iter(self.records), self.last + 1), self.last

    def oldest_seconds(self, now: float) -> int:
        oldest = next(iter(self.records.values()), None)
        return 0 if oldest is None else max(0, int(now) - oldest.second)

    def _hold(self, record: Record, size: int) -> None:
        record.in_memory += size
        self._memory.bytes += size

    def _forget(self, record: Record) -> None:
        self._memory.bytes -= record.in_memory
        record.in_memory = 0
        for results in (record.made or {}).values():
            results.is_counted = False
        record.common = record.made = record.message = None


def pack_ascending(numbers: Sequence[int]) -> bytes:
    """Numbers that ascend, by their differences: a byte each where these are less than 256."""
    if not numbers:
        return b""
    steps = list(map(sub, islice(numbers, 1, None), numbers))
    largest = max(steps, default=0)
    width = "B" if largest < 1 << 8 else "H" if largest < 1 << 16 else "I"
    column = array(width, steps)
    if sys.byteorder == "big":
        column.byteswap()
    packed: bytes = msgpack.packb([numbers[0], width, column.tobytes()])
    return packed


def unpack_ascending(packed: bytes) -> list[int]:
    """What ``pack_ascending`` was given; ValueError."""
    if not packed:
        return []
    first, width, steps = msgpack.unpackb(packed)
    if not steps:
        return [first]
    column = array(width, steps)
    if sys.byteorder == "big":
        column.byteswap()
    return list(accumulate(column, initial=first))


_MESSAGE, _RESULTS = 0, 1  # kinds of bodies
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # no MessagePack array begins so
_COMPRESSOR, _DECOMPRESSOR = ZstdCompressor(level=1), ZstdDecompressor()


def _pack_message(message: KeptMessage) -> bytes:
    body: bytes = msgpack.packb([_MESSAGE, *message])
    return _compressed(body)


def _compressed(body: bytes) -> bytes:
    """Where that saves anything: a message may wait for long."""
    if len(body) <= INLINE_BYTES:
        return body
    packed = _COMPRESSOR.compress(body)
    return packed if len(packed) < len(body) else body


def _by_box(groups: Iterable[Group]) -> dict[int, Results]:
    made: dict[int, Results] = {}
    for boxes, results in groups:
        if results is not None:
            made.update(dict.fromkeys(boxes, results))
    return made


def _pack_results(groups: Sequence[Group]) -> bytes:
    """One group is of all who get the record, and not said again; NOTHING has no lengths."""
    columns: list[object] = [_RESULTS]
    for boxes, results in groups:
        assert results is not None
        packed = pack_ascending(boxes) if len(groups) > 1 else b""
        columns += (packed, None if results is NOTHING else results.lengths, results.payload)
    body: bytes = msgpack.packb(columns)
    return body


def _read_body(space: str, key: str, body: bytes) -> KeptMessage | list[Group]:
    try:
        if body.startswith(_ZSTD_MAGIC):
            body = _DECOMPRESSOR.decompress(body)
        kind, *columns = msgpack.unpackb(body)
        if kind == _MESSAGE:
            return KeptMessage(*columns)
        if kind == _RESULTS and columns and len(columns) % 3 == 0:
            return [
                Group(unpack_ascending(columns[at]), _read_results(*columns[at + 1 : at + 3]))
                for at in range(0, len(columns), 3)
            ]
    except (ValueError, TypeError, ZstdError):
        pass
    raise _damaged(space, key)


def _read_results(lengths: list[int] | None, payload: bytes) -> Results:
    return NOTHING if lengths is None else Results(lengths, payload)


def _damaged(space: str, key: str) -> StoreError:
    return StoreError(f"row {key!r} of {space} is not one of a broker")


def _refused(key: str, row: DeliveryRow) -> StoreError:
    if row.rules in (None, RULES):
        return _damaged(DELIVERIES.space, key)
    return StoreError(
        f"row {key!r} of {DELIVERIES.space} waits for results by the rules {row.rules}, and "
        f"this release makes them by {RULES}. Stop the network, say onyx make-results TOPOLOGY "
        "with the release of before, then start this one"
    )
