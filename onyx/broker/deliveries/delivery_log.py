"""DeliveryLog: what is delivered to users, each result of a message once.

Equal results of a message are one *record*, whoever gets them; it lives as long as a mailbox holds
it.  Records are in the store, under their *positions*; their bytes are in memory, too, as long as
there is room (overlay/link/frame_memory.py).

=============  =======================  ============================================================
space          key                      value
=============  =======================  ============================================================
delivery       ``0000000000000042``     source and number of the message, the results, and who gets
                                        them: profiles, and the number that it has for each
=============  =======================  ============================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from overlay.link.errors import StoreError
from overlay.link.events import ReadRows, RowsRead
from overlay.link.frame_memory import FrameMemory
from overlay.link.row_log import RowLog, number_key, read_record

DELIVERY_SPACE = "delivery"
RECORD_BYTES = 64  # what a record counts for besides its payload


class Record:
    """``holders``: how many mailboxes hold it; ``payload`` None while it is in the store only."""

    __slots__ = ("holders", "lengths", "number", "payload", "size", "source")

    def __init__(
        self, source: str, number: int, lengths: list[int], payload: bytes, holders: int
    ) -> None:
        self.source = source
        self.number = number
        self.lengths = lengths
        self.payload: bytes | None = payload
        self.size = len(payload) + RECORD_BYTES
        self.holders = holders


class DeliveryLog:
    """``append`` results, ``release`` them when they were taken."""

    def __init__(self, rows: RowLog, bytes_max: int) -> None:
        """``bytes_max`` of payloads are in memory."""
        self.records: dict[int, Record] = {}
        self.last = 0
        self._rows = rows
        self._memory = FrameMemory(bytes_max)
        self._asked: dict[int, bool] = {}  # positions to be read -> whether that was said

    def append(
        self,
        source: str,
        number: int,
        results: Sequence[bytes],
        profiles: Sequence[str],
        numbers: Sequence[int],
    ) -> Record:
        """One record more, at ``last`` from then on; ``numbers`` are those of its row."""
        self.last += 1
        lengths, payload = list(map(len, results)), b"".join(results)
        record = Record(source, number, lengths, payload, len(profiles))
        self.records[self.last] = record
        self._memory.used += record.size
        stored = {
            "source": source,
            "number": number,
            "lengths": lengths,
            "payload": payload,
            "profiles": profiles,
            "numbers": numbers,
        }
        self._rows.put(DELIVERY_SPACE, number_key(self.last), stored)
        return record

    def restore(self, key: str, value: bytes) -> tuple[int, Sequence[str], Sequence[int]]:
        """A row, in any order; its position, and who gets it.  The caller counts its holders."""
        stored = _read(key, value)
        position = int(key)
        record = Record(stored["source"], stored["number"], stored["lengths"], stored["payload"], 0)
        self.records[position] = record
        self._memory.used += record.size
        self.let_go(record)
        self.last = max(self.last, position)
        return position, stored["profiles"], stored["numbers"]

    def release(self, position: int) -> None:
        """A mailbox does not hold a record any more."""
        record = self.records[position]
        record.holders -= 1
        if record.holders <= 0:
            del self.records[position]
            if record.payload is not None:
                self._memory.used -= record.size
            self._rows.delete(DELIVERY_SPACE, number_key(position))

    def let_go(self, record: Record) -> None:
        """Leave a record's bytes to the store if there is no room for them."""
        if self._memory.is_full and record.payload is not None:
            record.payload = None
            self._memory.used -= record.size
            self._memory.released += 1

    def ask(self, positions: Iterable[int]) -> None:
        """Records are wanted that are in the store only."""
        for position in positions:
            self._asked.setdefault(position, False)

    def reads(self) -> list[ReadRows]:
        """What is to be read when the rows up to now are stored; ``put_back`` takes it."""
        new = [position for position, is_said in self._asked.items() if not is_said]
        self._asked.update(dict.fromkeys(new, True))
        return [
            ReadRows(DELIVERY_SPACE, number_key(position), number_key(position)) for position in new
        ]

    def put_back(self, rows: RowsRead) -> None:
        """What was asked for; StoreError when it is not there."""
        position = int(rows.first)
        self._asked.pop(position, None)
        record = self.records.get(position)
        if record is None or record.payload is not None:
            return
        if not rows.rows:
            raise StoreError(f"row {rows.first!r} of {rows.space} is gone")
        ((key, value),) = rows.rows
        record.payload = _read(key, value)["payload"]
        self._memory.used += record.size
        self._memory.read += 1

    def statistics(self) -> dict[str, object]:
        return {
            "records": len(self.records),
            "stored_bytes": sum(record.size for record in self.records.values()),
            "memory": self._memory.statistics(),
        }


def _read(key: str, value: bytes) -> dict[str, Any]:
    try:
        stored = read_record(value)
        is_whole = key.isdecimal() and isinstance(stored["payload"], bytes)
    except (ValueError, KeyError):
        is_whole = False
    if not is_whole:
        raise StoreError(f"row {key!r} of {DELIVERY_SPACE} is not one of a broker")
    return stored
