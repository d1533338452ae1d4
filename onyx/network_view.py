"""NetworkView: what a network does just now, out of what its processes count, twice.

Rates are what has come between two looks; ages and bytes are those of the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DEAREST_MAX = 20

Statistics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """``busy``: the share of the time that its processor was at work; ``oldest_s``: how long the
    oldest that waits for a user has.  ``state``: "up", "down" or "no answer"."""

    broker: str
    state: str
    profiles: int = 0
    published_s: float = 0.0
    received_s: float = 0.0
    sent_s: float = 0.0
    delivered_s: float = 0.0
    refused_s: float = 0.0
    waiting_bytes: int = 0
    oldest_s: int = 0
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One way of a link; ``waiting_s``: how long the oldest of its backlog has waited, at least."""

    sender: str
    receiver: str
    messages_s: float
    bytes_s: float
    backlog_bytes: int
    waiting_s: float
    online: bool


@dataclass(frozen=True, slots=True)
class SourceRow:
    source: str
    root: str
    messages_s: float
    bytes_s: float
    messages: int


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """``cost_ms``: processor time that it has taken, since its user had taken little."""

    profile: str
    user: str
    broker: str
    cost_ms: float


@dataclass(frozen=True, slots=True)
class NetworkView:
    """Backlogs are in the rows of links and brokers."""

    brokers: list[BrokerRow] = field(default_factory=list)
    links: list[LinkRow] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)
    profiles: list[ProfileRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a broker at a ``time``: its statistics, and its dearest profiles, each with its user and
    the seconds that it took."""

    time: float
    statistics: Statistics
    dearest: Sequence[tuple[str, str, float]] = ()


def view_of(
    answers: Mapping[str, tuple[Answer, Answer] | None], down: Collection[str] = ()
) -> NetworkView:
    """Of the last two answers of each broker; None: it does not answer."""
    view = NetworkView()
    for broker, pair in answers.items():
        if pair is None or broker in down:
            view.brokers.append(BrokerRow(broker, "down" if broker in down else "no answer"))
            continue
        before, now = pair
        seconds = max(now.time - before.time, 1e-9)
        said = now.statistics
        rate = _Rates(before.statistics["data"], said["data"], seconds)
        view.brokers.append(_broker_row(broker, said, before.statistics, rate, seconds))
        view.links.extend(_link_rows(broker, said, rate))
        view.sources.extend(
            SourceRow(source, broker, *rate.of_source(source), count)
            for source, count in said["data"]["sources"].items()
        )
        view.profiles.extend(
            ProfileRow(profile, user, broker, round(taken * 1000, 3))
            for profile, user, taken in now.dearest
        )
    view.profiles.sort(key=lambda row: -row.cost_ms)
    del view.profiles[DEAREST_MAX:]
    view.sources.sort(key=lambda row: -row.messages_s)
    view.links.sort(key=lambda row: (-row.backlog_bytes, -row.bytes_s))
    return view


class _Rates:
    """A second, of counters of two looks at a section."""

    def __init__(self, before: Statistics, now: Statistics, seconds: float) -> None:
        self._before = before
        self._now = now
        self._seconds = seconds

    def of(self, *path: str) -> float:
        """0 where it has begun anew."""
        more = _number(self._now, path) - _number(self._before, path)
        return round(max(0, more) / self._seconds, 1)

    def of_source(self, source: str) -> tuple[float, float]:
        return self.of("sources", source), self.of("source_bytes", source)

    def sum_of(self, key: str) -> float:
        names: Iterable[str] = self._now.get(key, {})
        return round(sum(self.of(key, name) for name in names), 1)


def _number(section: Statistics, path: tuple[str, ...]) -> float:
    found: Any = section
    for key in path:
        found = found.get(key, {})
    return found if isinstance(found, int | float) else 0


def _broker_row(
    broker: str, said: Statistics, former: Statistics, rate: _Rates, seconds: float
) -> BrokerRow:
    mailboxes = said["mailboxes"]
    busy = said["node"].get("turns_s", 0.0) - former.get("node", {}).get("turns_s", 0.0)
    return BrokerRow(
        broker=broker,
        state="up",
        profiles=said["query"]["profiles"],
        published_s=rate.of("published"),
        received_s=rate.of("received"),
        sent_s=rate.sum_of("crossings"),
        delivered_s=rate.of("delivered"),
        refused_s=rate.of("refused"),
        waiting_bytes=said["links"]["backlog_bytes"] + mailboxes["stored_bytes"],
        oldest_s=mailboxes["oldest_s"],
        busy=round(min(1.0, max(0.0, busy) / seconds), 3),
    )


def _link_rows(broker: str, said: Statistics, rate: _Rates) -> Iterable[LinkRow]:
    for peer, journal in said["links"]["journals"].items():
        role, _, to = peer.partition("/")
        if role == "broker":
            yield LinkRow(
                sender=broker,
                receiver=to,
                messages_s=rate.of("crossings", to),
                bytes_s=rate.of("crossing_bytes", to),
                backlog_bytes=sum(c["backlog_bytes"] for c in journal["sending"].values()),
                waiting_s=said["data"]["waiting_s"].get(to, 0.0),
                online=journal["online"],
            )
