"""History: the last hour of a network, as its gateway keeps it in memory.

::

    brokers ──watch_network, each half a minute──> take ──> rings of POINTS ──charts──> a page
            ──gather, each minute──> examine ──> findings, and since when

A ring has a fixed size.  Brokers have one, sources that publish, and the PROFILES_MAX profiles that
somebody looked at last, so that neither a million profiles nor sources that are idle cost anything.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import isnan, nan
from typing import TypeAlias

import trio

from onyx.charts import Curve, curves_svg
from onyx.doctor import DoctorFinding, examine
from onyx.doctor_facts import gather
from onyx.errors import UserError
from onyx.network_looks import watch_network
from onyx.network_view import NetworkView
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.link.lone_error import lone_errors

STEP_SECONDS = 30.0
POINTS = 120  # an hour
SOURCES_MAX = 1_000  # the busiest
PROFILES_MAX = 64  # those that were looked at last
DOCTOR_SECONDS = 60.0
TABLE_STEPS = 10  # from one row of a table to the next

Key: TypeAlias = tuple[str, str]
"""Of what there is a history: ("network", ""), or "broker", "source", "profile" and its id."""

log = logging.getLogger("onyx.gateway")


@dataclass(frozen=True, slots=True)
class Measure:
    """A chart: its ``curves`` are (name, what is measured), all in one ``unit``."""

    title: str
    unit: str
    curves: Sequence[tuple[str, str]]


RATES, WAITING = "messages a second", "Waiting"
MEASURES: dict[str, Sequence[Measure]] = {
    "broker": (
        Measure("Rates", RATES, [("published", "published"), ("delivered", "delivered")]),
        Measure(WAITING, "kB", [("waiting", "waiting")]),
        Measure("Time to mailboxes", "ms, mean", [("time to mailboxes", "latency")]),
    ),
    "source": (Measure("Rate", RATES, [("measured", "published"), ("declared", "declared")]),),
    "profile": (
        Measure("Rate", "deliveries a second", [("delivered", "delivered")]),
        Measure(WAITING, "deliveries", [("waiting", "waiting")]),
    ),
}
MEASURES["network"] = MEASURES["broker"]


@dataclass(frozen=True, slots=True)
class Chart:
    """``svg`` without style, for a page that has it; ``said``: the last values, in words;
    ``rows``: (time, a value for each of ``names`` or None)."""

    title: str
    unit: str
    svg: str
    said: str
    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float | None]]]


class Ring:
    """By what is measured, the value of each step; NaN: nobody knows it."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}
        self.last = -1  # step with a value other than 0

    def put(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._values.setdefault(name, array("f", [nan]) * POINTS)[step % POINTS] = value
        if any(values.values()):
            self.last = step

    def begin(self, step: int) -> None:
        """A step of which nothing is known yet."""
        for values in self._values.values():
            values[step % POINTS] = nan

    def hour(self, name: str, step: int) -> list[float]:
        """POINTS values, that of ``step`` last."""
        values = self._values.get(name) or array("f", [nan]) * POINTS
        at = (step + 1) % POINTS
        return [*values[at:], *values[:at]]


@dataclass(slots=True)
class Found:
    """``since``: when the doctor found it first, in seconds of the epoch."""

    finding: DoctorFinding
    since: float


@dataclass(slots=True)
class History:
    findings: list[Found] = field(default_factory=list)
    _rings: dict[Key, Ring] = field(default_factory=dict)
    _profiles: dict[str, _Watched] = field(default_factory=dict)
    _step: int = 0
    _time: float = 0.0
    _stepped: trio.Event = field(default_factory=trio.Event)

    def take(self, view: NetworkView, now: float) -> None:
        """What a network does at a second of the epoch, a step after the last."""
        self._step, self._time = self._step + 1, now
        waiting = {row.broker: row.waiting_bytes / 1000 for row in view.brokers}
        for (kind, name), ring in [*self._rings.items()]:
            ring.begin(self._step)
            is_idle = kind == "source" and ring.last <= self._step - POINTS
            if is_idle or (kind == "broker" and name not in waiting):
                del self._rings[kind, name]
        up = [row for row in view.brokers if row.state == "up"]
        for row in up:
            seconds, count = view.latency_s.get(row.broker, (nan, 1))
            self._put(
                ("broker", row.broker),
                published=row.published_s,
                delivered=row.delivered_s,
                waiting=waiting[row.broker],
                latency=1000 * seconds / count,
            )
        measured = view.latency_s.values()
        count = sum(count for _, count in measured)
        self._put(
            ("network", ""),
            published=sum(row.published_s for row in up),
            delivered=sum(row.delivered_s for row in up),
            waiting=sum(waiting.values()),
            latency=1000 * sum(seconds for seconds, _ in measured) / count if count else nan,
        )
        self._stepped.set()
        self._stepped = trio.Event()
        for source in view.sources[:SOURCES_MAX]:
            if source.messages_s or ("source", source.source) in self._rings:
                self._put(("source", source.source), published=source.messages_s)

    def _put(self, key: Key, **values: float) -> None:
        self._rings.setdefault(key, Ring()).put(self._step, values)

    def diagnose(self, found: Sequence[DoctorFinding], now: float) -> None:
        """What the doctor has found; a finding of the same about the same goes on."""
        since = {(each.finding.check, each.finding.about): each.since for each in self.findings}
        self.findings = [Found(f, since.get((f.check, f.about), now)) for f in found]

    def look_at(self, profile: str, address: str) -> None:
        """Keep a profile's history from now on, of which the host broker is at an address."""
        watched = self._profiles.pop(profile, None) or _Watched(address)
        watched.address = address
        self._profiles[profile] = watched  # the last
        while len(self._profiles) > PROFILES_MAX:
            gone = next(iter(self._profiles))
            del self._profiles[gone]
            self._rings.pop(("profile", gone), None)

    def take_positions(self, profile: str, gone: int, last: int) -> None:
        """Where the mailbox of a profile that is looked at stands."""
        if (watched := self._profiles.get(profile)) is not None:
            delivered = nan
            if watched.last is not None and self._time > watched.time:
                delivered = (last - watched.last) / (self._time - watched.time)
            watched.last, watched.time = last, self._time
            self._put(("profile", profile), delivered=delivered, waiting=float(last - gone))

    def charts(self, kind: str, name: str = "", declared: float | None = None) -> list[Chart]:
        """Of what a page is about, none before the first step; ``declared``: the rate that a
        source's owner has said."""
        if not self._step:
            return []
        ring = self._rings.get((kind, name)) or Ring()
        return [self._chart(ring, measure, declared) for measure in MEASURES[kind]]

    def _chart(self, ring: Ring, measure: Measure, declared: float | None) -> Chart:
        hours = {
            title: [declared or 0.0] * POINTS if of == "declared" else ring.hour(of, self._step)
            for title, of in measure.curves
        }
        begin = self._time - (POINTS - 1) * STEP_SECONDS
        curves = [curve for title, hour in hours.items() for curve in _pieces(title, hour)]
        said = "; ".join(f"{title} {_in_words(hour)}" for title, hour in hours.items())
        x_label = f"minutes since {_clock(begin)}"
        minutes = (POINTS - 1) * STEP_SECONDS / 60
        svg = curves_svg(measure.title, x_label, measure.unit, curves, is_bare=True, x_max=minutes)
        rows = [
            (
                _clock(begin + at * STEP_SECONDS),
                [None if isnan(hour[at]) else hour[at] for hour in hours.values()],
            )
            for at in range(POINTS - 1, -1, -TABLE_STEPS)
        ]
        return Chart(measure.title, measure.unit, svg, said, [*hours], rows)

    # --- what is asked ----------------------------------------------------------------------

    async def watch(self, registration: str) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            for look in (self._watch_brokers, self._watch_profiles, self._examine):
                nursery.start_soon(_again_and_again, partial(look, registration))

    async def _watch_brokers(self, registration: str) -> None:
        await watch_network(registration, STEP_SECONDS, lambda view: self.take(view, time.time()))

    async def _watch_profiles(self, registration: str) -> None:
        await self._stepped.wait()
        for address in {watched.address for watched in self._profiles.values()}:
            there = [p for p, watched in self._profiles.items() if watched.address == address]
            async with NetworkClient(address, patience_seconds=0.0) as client:
                answer = await client.ask(verbs.ProfilePositions(profiles=there))
            for position in answer.positions:
                self.take_positions(position.profile, position.gone, position.last)

    async def _examine(self, registration: str) -> None:
        self.diagnose(examine(await gather(registration, None)), time.time())
        await trio.sleep(DOCTOR_SECONDS)


@dataclass(slots=True)
class _Watched:
    """A profile; ``last``: its highest position at the ``time`` of a step."""

    address: str
    last: int | None = None
    time: float = 0.0


async def _again_and_again(look: Callable[[], object]) -> None:
    """Whatever does not answer is asked again."""
    while True:
        try:
            with lone_errors():
                await look()  # type: ignore[misc]
        except UserError as error:
            log.info("the history has a gap: %s", error)
            await trio.sleep(STEP_SECONDS)


def _pieces(name: str, hour: Sequence[float]) -> Iterator[Curve]:
    """A curve for each time through which values are known."""
    piece: list[tuple[float, float]] = []
    for at, value in enumerate([*hour, nan]):
        if not isnan(value):
            piece.append((at * STEP_SECONDS / 60, value))
        elif piece:
            yield Curve(name, piece)
            piece = []


def _in_words(hour: Sequence[float]) -> str:
    known = [value for value in hour if not isnan(value)]
    return f"{known[-1]:,.4g}, at most {max(known):,.4g}" if known else "not known yet"


def _clock(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%H:%M Z")
