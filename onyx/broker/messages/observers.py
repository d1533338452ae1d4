"""Observers: clients that watch what a broker does, as it does it (``onyx tap``).

A best-effort feed for people and for tests of the running system: events are sent once, on the
control flow, and nobody waits for an observer.  Each says what it wants to see; what is beyond its
events a second is left out, and it is told how many those were.

Who asks for ``figures`` gets no event for each message but where the broker's counters stand
(``Figures``), when they have changed, at most four times a second and at most a quarter of a second
late: however much the broker does, that costs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from msgspec import to_builtins

from formats import DecodeError, MessageRefused
from onyx.broker.deliveries.mailbox import Mailbox
from onyx.broker.packing.parcel import Parcel
from overlay import verbs
from overlay.answers import Observing
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import CalledLater, CallLater
from overlay.link.frames import Observed, Request
from overlay.link.part import Hearer, Part, hears
from overlay.link.request_server import Verb
from overlay.link.slices import SLICE_SECONDS
from overlay.statistics import Figures
from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import EvaluationLimits, MatchLimits
from yfilter.matcher import Matcher

EVENTS_PER_FRAME = 256
FIGURES_SECONDS = 0.25  # from one time that they are told to the next

VISITS_MAX = 200_000  # of one message, for an observer's path

EventFields = dict[str, object]


@dataclass(slots=True)
class Observer:
    """``asked``: the kinds, sources, links and profiles that it wants, empty: all; ``path`` finds
    the messages that it wants."""

    asked: verbs.Observe
    path: Matcher | None = None
    events: list[EventFields] = field(default_factory=list)
    dropped: int = 0
    seen: int = 0  # events of this second
    about: tuple[str, int] = "", 0  # the last message that the path was asked about
    is_found: bool = False

    def wants(
        self, kind: str, source: str, parcel: Parcel | None, link: str = "", count: int = 1
    ) -> bool:
        """So many events of this kind, for the first of which there is room; if there is none they
        are counted.  One that is of no profile is not for who asks for profiles."""
        asked = self.asked
        if asked.figures:
            return False
        for wanted, it in ((asked.kinds, kind), (asked.sources, source), (asked.links, link)):
            if wanted and it not in wanted:
                return False
        if asked.profiles and kind != "delivery":
            return False
        if self.is_full:
            self.dropped += count
            return False
        return self.path is None or (parcel is not None and self._finds(self.path, parcel))

    @property
    def is_full(self) -> bool:
        return bool(self.asked.events_max) and self.seen >= self.asked.events_max

    def _finds(self, path: Matcher, parcel: Parcel) -> bool:
        about = parcel.source, parcel.number
        if self.about != about:
            self.about = about
            try:
                self.is_found = any(True for _ in path.match(parcel.readings))
            except (MessageRefused, DecodeError, MatchLimitExceeded):
                self.is_found = False
        return self.is_found


class Observers(Part):
    """Connections that asked to observe, and the events of the call under way."""

    def __init__(self, context: CoreContext, figures: Callable[[], Figures]) -> None:
        """``figures``: where the counters of the broker stand."""
        self._identity = context.identity
        self._links = context.links
        self._clock = context.clock
        self._wall = context.wall
        self.verbs = (Verb(verbs.Observe, self._observe),)
        self.connections: dict[int, Observer] = {}  # none: nothing need be noted
        self._figures = figures
        self._for_figures: set[int] = set()  # of the connections
        self._told: Figures | None = None
        self._told_at = -inf
        self._is_called = False  # when they may be told again

    def events(self) -> Iterable[Hearer]:
        yield hears(CalledLater, self._called_later)

    def _observe(self, connection: int, request: Request, asked: verbs.Observe) -> Observing:
        """``kinds``, ``sources``, ``links``, ``profiles`` and a ``path`` say what is wanted, and
        ``events_max`` how much of it a second; what is not said is all.  Or ``figures``.  The
        last request counts."""
        finder = self._finder(asked.path) if asked.path else None
        self.connections[connection] = Observer(asked, finder)
        self._for_figures.discard(connection)
        if asked.figures:
            self._for_figures.add(connection)
            self._told = None
            self._tell_figures()
        return Observing()

    def gone(self, arrival: Arrival) -> None:
        self.connections.pop(arrival.connection, None)
        self._for_figures.discard(arrival.connection)

    def note(
        self, kind: str, source: str, number: int, parcel: Parcel | None = None, **fields: object
    ) -> None:
        """Something happened here to a message; ``link`` of ``fields``: on its way there."""
        link = str(fields.get("link", ""))
        for observer in self.connections.values():
            if observer.wants(kind, source, parcel, link):
                self._add(observer, kind, source, number, fields)
        if self._for_figures:
            self.flush_soon()

    def note_deliveries(self, parcel: Parcel, boxes: list[Mailbox]) -> None:
        """The same results for the profiles of these mailboxes; of very many only those are looked
        at for which there is room."""
        what = "delivery", parcel.source
        for observer in self.connections.values():
            if not observer.wants(*what, parcel, count=len(boxes)):
                continue
            wanted: Iterable[Mailbox] = boxes
            if observer.asked.profiles:
                wanted = [box for box in boxes if box.profile in observer.asked.profiles]
            elif observer.asked.events_max:
                wanted = list(islice(boxes, observer.asked.events_max - observer.seen))
                observer.dropped += len(boxes) - len(wanted)
            for box in wanted:
                self._add(observer, *what, parcel.number, {"profile": box.profile})
        if self._for_figures:
            self.flush_soon()

    def flush(self) -> None:
        """Send what was noted."""
        for connection, observer in self.connections.items():
            events, observer.events = observer.events, []
            if observer.dropped and not observer.is_full:
                about = {"kind": "dropped", "broker": self._identity, "count": observer.dropped}
                events.append(about)
                observer.dropped = 0
            for first in range(0, len(events), EVENTS_PER_FRAME):
                frame = Observed(events=events[first : first + EVENTS_PER_FRAME])
                self._links.reply(connection, frame)
        if self._for_figures and not self._is_called:
            now = 0.0 if self.agenda is None else self.agenda.now
            left = self._told_at + FIGURES_SECONDS - now
            if left <= 0:
                self._told_at = now
                self._tell_figures()
            else:
                self._is_called = True
                self.ask_shell(CallLater(left))

    def _called_later(self, event: CalledLater) -> bool:
        self._is_called = False
        self.flush_soon()
        return True

    def tick(self, now: float) -> None:
        if self._for_figures:  # links and waiting bytes change without anything that is noted
            self._told_at = now
            self._tell_figures()
        for observer in self.connections.values():
            observer.seen = 0
            if observer.dropped:
                self.flush_soon()

    def _tell_figures(self) -> None:
        """Where they stand, unless that was told."""
        figures = self._figures()
        if figures != self._told:
            self._told = figures
            told = to_builtins(figures)
            frame = Observed(events=[{"kind": "figures", "broker": self._identity, **told}])
            for connection in self._for_figures:
                self._links.reply(connection, frame)

    def _add(
        self,
        observer: Observer,
        kind: str,
        source: str,
        number: int,
        fields: Mapping[str, object],
    ) -> None:
        observer.seen += 1
        of = {"kind": kind, "broker": self._identity, "source": source, "number": number}
        observer.events.append({**of, **fields, "time": self._wall()})
        self.flush_soon()

    def _finder(self, path: str) -> Matcher:
        evaluation = EvaluationLimits(seconds_max=SLICE_SECONDS, clock=self._clock)
        finder = Matcher(MatchLimits(visits_max=VISITS_MAX, evaluation=evaluation))
        finder.add(path)
        return finder
