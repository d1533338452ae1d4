"""Traffic: which message crossed which link, as the brokers' observers tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Crossing(NamedTuple):
    """A link of a broadcast tree, in the direction of its messages."""

    root: str
    parent: str
    child: str


@dataclass(slots=True)
class Visit:
    """What one broker did with one message, as its events tell it."""

    broker: str
    source: str
    number: int
    accepted: bool = False
    refused: str = ""
    links: list[tuple[str, int]] = field(default_factory=list)  # (child, bytes)
    profiles: list[str] = field(default_factory=list)


class Traffic:
    """Counts crossings; ``roots`` (id of a source -> its root broker) is filled in while sources
    register."""

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}
        self.crossings: Counter[Crossing] = Counter()
        self.bytes_total = 0
        self.crossings_by_message: Counter[tuple[str, int]] = Counter()
        self._open: dict[str, Visit] = {}  # by broker; more of it may come

    @property
    def total(self) -> int:
        return self.crossings.total()

    def take(self, event: Mapping[str, Any]) -> Visit | None:
        """Count one event; the broker's last visit when this one begins another.

        A broker tells all about one message before it goes on to the next.
        """
        broker, source, number = event["broker"], event["source"], event["number"]
        visit, finished = self._open.get(broker), None
        if visit is None or (visit.source, visit.number) != (source, number):
            visit, finished = Visit(broker, source, number), visit
            self._open[broker] = visit
        match event["kind"]:
            case "accepted":
                visit.accepted = True
            case "refused":
                visit.refused = event["code"]
            case "crossing":
                visit.links.append((event["link"], event["bytes"]))
                self.crossings[Crossing(self.roots[source], broker, event["link"])] += 1
                self.crossings_by_message[source, number] += 1
                self.bytes_total += event["bytes"]
            case "delivery":
                visit.profiles.append(event["profile"])
        return finished

    def finish(self) -> list[Visit]:
        """The last visit of every broker, once all events have been taken."""
        visits = list(self._open.values())
        self._open.clear()
        return visits
