"""Traffic: which message crossed which link, as the brokers' observers tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Crossing(NamedTuple):
    """A link of a broadcast tree, in the direction of its messages."""

    root: str
    parent: str
    child: str


@dataclass(slots=True)
class Visit:
    """What one broker did with one message, from one portion of its events."""

    broker: str
    source: str
    number: int
    accepted: bool = False
    refused: str = ""
    links: list[tuple[str, int]] = field(default_factory=list)  # (child, bytes)
    profiles: list[str] = field(default_factory=list)


class Traffic:
    """Counts crossings; ``roots`` says which root broker a source has."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self.crossings: Counter[Crossing] = Counter()
        self.bytes_by_link: Counter[Crossing] = Counter()
        self.links_of_message: dict[tuple[str, int], list[Crossing]] = {}

    def take(self, events: Iterable[Mapping[str, Any]]) -> list[Visit]:
        """Count a portion of a broker's events; what it did, message by message."""
        visits = list(_visits(events))
        for visit in visits:
            for child, size in visit.links:
                crossing = Crossing(self._roots[visit.source], visit.broker, child)
                self.crossings[crossing] += 1
                self.bytes_by_link[crossing] += size
                links = self.links_of_message.setdefault((visit.source, visit.number), [])
                links.append(crossing)
        return visits

    @property
    def total(self) -> int:
        return self.crossings.total()


def _visits(events: Iterable[Mapping[str, Any]]) -> Iterator[Visit]:
    """Events of one message stand together."""
    visit: Visit | None = None
    for event in events:
        here = (event["broker"], event["source"], event["number"])
        if visit is None or here != (visit.broker, visit.source, visit.number):
            if visit is not None:
                yield visit
            visit = Visit(*here)
        match event["kind"]:
            case "accepted":
                visit.accepted = True
            case "refused":
                visit.refused = event["code"]
            case "crossing":
                visit.links.append((event["link"], event["bytes"]))
            case "delivery":
                visit.profiles.append(event["profile"])
    if visit is not None:
        yield visit
