"""Portions: what waits in a mailbox, for the broker at which it goes on."""

from __future__ import annotations

from onyx.broker.deliveries.delivery_log import DeliveryLog, Record
from onyx.broker.deliveries.lines import Lines
from onyx.broker.deliveries.mailbox import Mailbox
from overlay.link.delivery_frames import Delivery


class Portions:
    def __init__(self, log: DeliveryLog, lines: Lines) -> None:
        self._log = log
        self._lines = lines

    def of(self, box: Mailbox, after: int, bytes_max: int) -> list[tuple[int, Delivery]]:
        """(number, delivery) of the next ones behind ``after``, some bytes of them; none where the
        next one has to be read, which is asked for."""
        found: list[tuple[int, Delivery]] = []
        records: list[Record] = []
        size = 0
        for number, position in box.waiting(after):
            record = self._log.records[position]
            if record.results(box.index) is None and record.message is not None:
                self._lines.make(record, position, [box])
            results = record.results(box.index)
            if results is None:
                if not found:
                    ahead = (position for _, position in box.waiting(number - 1))
                    self._lines.read_ahead(box.index, ahead)
                break
            what = record.source, record.number, results.lengths, results.payload
            found.append((number, Delivery(box.profile, *what)))
            records.append(record)
            size += len(results.payload)
            if size >= bytes_max:
                break
        for record in records:
            self._log.let_go(record)
        return found
