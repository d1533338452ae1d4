"""NetworkView: what a network does just now, out of what its processes count, twice.

Rates are what has come between two looks; ages and bytes are those of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert

from onyx.errors import RequestFailed
from overlay.link.validity import AUTHORITY, ending
from overlay.statistics import (
    BrokerStatistics,
    Credentials,
    Node,
    NodeStatistics,
    RegistrationStatistics,
)
from overlay.unfit import in_words

DEAREST_MAX = 20

N = TypeVar("N", bound=NodeStatistics)


def decoded(said: Mapping[str, Any], kind: type[N]) -> N:
    """The statistics that a process has said; RequestFailed "bad-answer" where they are not as
    those of this release."""
    try:
        return convert(said, kind)
    except ValidationError as error:
        role = "broker" if "broker" in said else "registration"
        what, why = f"the statistics of {role}/{said.get(role, '?')}", in_words(kind, error, said)
        raise RequestFailed("bad-answer", f"{what} cannot be read: {why.reason}") from None


def read_statistics(said: Mapping[str, Any] | None) -> NodeStatistics | RequestFailed | None:
    """The statistics of a broker or registration service, whichever the answer names, or why they
    cannot be read; None: there is no answer."""
    if said is None:
        return None
    known: Mapping[str, type[NodeStatistics]] = {
        "broker": BrokerStatistics,
        "registration": RegistrationStatistics,
    }
    kind = next((known[role] for role in known if role in said), NodeStatistics)
    try:
        return decoded(said, kind)
    except RequestFailed as failed:
        return failed


def certificate_ends(node: Node) -> Iterator[tuple[str, str]]:
    """Certificates of which a process says that they end soon, or are over: whose, and when."""
    if not isinstance(node.tls, Credentials) or node.time is None:
        return
    tls = node.tls
    whose = {"own": "its certificate", "authority": AUTHORITY}
    found = [(whose.get(of, of), until) for of, until in tls.ends.items()]
    found += [(f"the certificate of {who}, who is connected,", u) for who, u in tls.ending.items()]
    for of, until in found:
        if said := ending(until, node.time):
            yield of, said


Rate = Callable[[float, float | None], float]
"""What has come in a second, of where a counter stood now and before; None: nowhere."""


# Rows, also as ``onyx top --json`` prints them: ``kind`` is that of the row.


class TopBroker(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    broker: str
    state: str  # "up", "down", "no answer" or "not allowed"
    profiles: int
    published_s: float
    received_s: float
    sent_s: float
    delivered_s: float
    refused_s: float
    waiting_bytes: int
    oldest_s: int  # how long the oldest that waits for a user has
    busy: float  # the share of the time that its processor was at work


class TopLink(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    sender: str
    receiver: str  # one way of a link
    messages_s: float
    bytes_s: float
    backlog_bytes: int
    waiting_s: float  # how long the oldest of the backlog has, at least
    online: bool


class TopSource(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    source: str
    root: str
    messages_s: float
    bytes_s: float
    messages: int


class TopProfile(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    profile: str
    user: str
    broker: str
    cost_ms: float  # processor time that it has taken, since its user had taken little


NOTHING = (0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0)  # of a broker that does not answer


@dataclass(frozen=True, slots=True)
class NetworkView:
    """Backlogs are in the rows of links and brokers.  ``latency_s``: of brokers that have
    measured it, (seconds in all from root brokers to mailboxes, of how many deliveries)."""

    brokers: list[TopBroker] = field(default_factory=list)
    links: list[TopLink] = field(default_factory=list)
    sources: list[TopSource] = field(default_factory=list)
    profiles: list[TopProfile] = field(default_factory=list)
    latency_s: dict[str, tuple[float, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a broker at a ``time``: its statistics, and its dearest profiles, each with its user and
    the seconds that it took."""

    time: float
    statistics: BrokerStatistics
    dearest: Sequence[tuple[str, str, float]] = ()


def view_of(
    answers: Mapping[str, tuple[Answer, Answer] | None],
    down: Collection[str] = (),
    refused: Collection[str] = (),
) -> NetworkView:
    """Of the last two answers of each broker; None: it does not answer, or has ``refused`` to."""
    view = NetworkView()
    for broker, pair in answers.items():
        if pair is None or broker in down:
            state = "not allowed" if broker in refused else "no answer"
            state = "down" if broker in down else state
            view.brokers.append(TopBroker("broker", broker, state, *NOTHING))
            continue
        before, now = pair
        seconds = max(now.time - before.time, 1e-9)
        of, was = now.statistics, before.statistics

        def rate(count: float, former: float | None, seconds: float = seconds) -> float:
            return round(max(0, count - (former or 0)) / seconds, 1)

        view.brokers.append(_broker_row(broker, of, was, rate, seconds))
        end, began = of.data.end_to_end, was.data.end_to_end
        if end.count > began.count:
            view.latency_s[broker] = (end.seconds - began.seconds, end.count - began.count)
        view.links.extend(_link_rows(broker, of, was, rate))
        sizes, former = of.data.source_bytes, was.data.source_bytes
        for source, count in of.data.sources.items():
            messages_s = rate(count, was.data.sources.get(source))
            bytes_s = rate(sizes.get(source, 0), former.get(source))
            view.sources.append(TopSource("source", source, broker, messages_s, bytes_s, count))
        view.profiles.extend(
            TopProfile("profile", profile, user, broker, round(taken * 1000, 3))
            for profile, user, taken in now.dearest
        )
    view.profiles.sort(key=lambda row: -row.cost_ms)
    del view.profiles[DEAREST_MAX:]
    view.sources.sort(key=lambda row: -row.messages_s)
    view.links.sort(key=lambda row: (-row.backlog_bytes, -row.bytes_s))
    return view


def _broker_row(
    broker: str, of: BrokerStatistics, was: BrokerStatistics, rate: Rate, seconds: float
) -> TopBroker:
    data, former = of.data, was.data
    crossings = ((count, former.crossings.get(to)) for to, count in data.crossings.items())
    busy = max(0.0, of.node.turns_s - was.node.turns_s)
    return TopBroker(
        kind="broker",
        broker=broker,
        state="up",
        profiles=of.query.profiles,
        published_s=rate(data.published, former.published),
        received_s=rate(data.received, former.received),
        sent_s=round(sum(rate(*pair) for pair in crossings), 1),
        delivered_s=rate(data.delivered, former.delivered),
        refused_s=rate(data.refused, former.refused),
        waiting_bytes=of.waiting_bytes,
        oldest_s=of.mailboxes.oldest_s,
        busy=round(min(1.0, busy / seconds), 3),
    )


def _link_rows(
    broker: str, of: BrokerStatistics, was: BrokerStatistics, rate: Rate
) -> Iterable[TopLink]:
    data, former = of.data, was.data
    for to, journal in of.links.brokers():
        yield TopLink(
            kind="link",
            sender=broker,
            receiver=to,
            messages_s=rate(data.crossings.get(to, 0), former.crossings.get(to)),
            bytes_s=rate(data.crossing_bytes.get(to, 0), former.crossing_bytes.get(to)),
            backlog_bytes=journal.backlog_bytes,
            waiting_s=data.waiting_s.get(to, 0.0),
            online=journal.online,
        )
