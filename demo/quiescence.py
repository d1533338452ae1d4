"""Quiescence: knowing from the brokers' own counters that a network has nothing left to do.

Nothing here waits for a time to pass.  Messages are counted where they are sent over a link
(``crossings``) and where they arrive (``received``); the counters of different brokers are read
one after the other, so equal sums alone could be an accident of the moment.  But when two rounds
of reading, one after the other, show the same counters, and in them as many messages received as
sent, none was under way between the rounds, and since only a message makes another one, none will
be (Mattern's four counters).  What was sent to users is acknowledged when no backlog is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from overlay.statistics import BrokerStatistics


@dataclass(frozen=True, slots=True)
class Counters:
    """One round over all brokers."""

    published: int
    crossings: int
    received: int
    delivered: int
    backlog_bytes: int

    @property
    def balanced(self) -> bool:
        """Everything sent has arrived, and everybody has said so."""
        return self.crossings == self.received and self.backlog_bytes == 0


def read_counters(brokers: Mapping[str, BrokerStatistics]) -> Counters:
    """From the ``statistics`` of every broker, by its id."""
    data = [statistics.data for statistics in brokers.values()]
    return Counters(
        published=sum(part.published for part in data),
        crossings=sum(sum(part.crossings.values()) for part in data),
        received=sum(part.received for part in data),
        delivered=sum(part.delivered for part in data),
        backlog_bytes=sum(sum(_backlogs(statistics)) for statistics in brokers.values()),
    )


def is_over(before: Counters | None, now: Counters, published: int, arrived: int) -> bool:
    """Whether the network is done with ``published`` messages and users have ``arrived``
    deliveries; ``before`` is the round before ``now``."""
    return (
        before == now
        and now.balanced
        and now.published == published
        # More is an error, and no reason to wait.
        and arrived >= now.delivered
    )


def abnormal(brokers: Mapping[str, BrokerStatistics]) -> list[str]:
    """Counters that must be zero in a network where nothing goes wrong, as sentences."""
    found = []
    for broker, statistics in brokers.items():
        for name in ("abandoned", "dropped_deliveries", "results_over_limit"):
            if count := getattr(statistics.data, name):
                found.append(f"{broker}: {name} is {count}")
        if over_limit := statistics.query.matcher.over_limit:
            found.append(f"{broker}: {over_limit} evaluations cost more than a limit allows")
        for name, count in statistics.unexpected.items():
            found.append(f"{broker}: {count} unexpected frames ({name})")
    return found


def _backlogs(statistics: BrokerStatistics) -> Iterator[int]:
    """Bytes of messages and results that a peer has not acknowledged."""
    for journal in statistics.links.journals.values():
        for channel, state in journal.sending.items():
            if channel.startswith("message:"):
                yield state.backlog_bytes
    yield statistics.mailboxes.waiting_bytes
