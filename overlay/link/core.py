"""Core: what a broker and the registration service have in common: parts, and their turns.

``handle(event, now) -> actions`` is all there is to it; see events.py for the rule that makes it
safe to crash at any moment::

    event ──> the part that waits for it, or LinkLayer ──> arrivals ──> the part that takes it
    parts that have asked (part.py) ──> their turns
    actions <── rows to store, frames to send
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from overlay.access import Right
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext, Surroundings
from overlay.link.errors import StoreError
from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    Event,
    TimePassed,
)
from overlay.link.frame import Frame
from overlay.link.part import Agenda, FrameRefused, Part, Taker
from overlay.link.request_server import Result, Verb
from overlay.link.running_settings import RunningSettings
from overlay.link.statistics_requests import StatisticsRequests
from overlay.link.stored_rows import StoredRows
from overlay.link.suspect import CoreFailed, mark_of
from overlay.link.work_mark import AT, BEHIND, IDLE, MARK

Rows = Iterable[tuple[str, str, bytes]]


class Core:
    """Without its parts, which ``begin`` gives it."""

    def __init__(self, context: CoreContext, around: Surroundings) -> None:
        self.identity = context.identity
        self.settings = RunningSettings(context.topology, context.rows)
        self._around = around
        self._links = context.links
        self._rows = context.rows
        self._slice = context.slice
        self._dead = context.dead
        self._server = context.server
        self._arrival: Arrival | None = None  # under way
        self._counters: Counter[str] = Counter()

    def begin(self, parts: Sequence[Iterable[Part]], rows: Rows) -> None:
        """The ``parts`` of each folder, in the order of their turns; they take back ``rows``.
        StoreError."""
        self._agenda = agenda = Agenda([self._dead, *chain(*parts), self.settings], self.hand_on)
        self.takers = agenda.takers()
        self._hearers = agenda.hearers()
        statistics = StatisticsRequests(self.statistics, self._links)
        self.verbs = self._server.verbs
        self.verbs |= {**agenda.verbs(), "statistics": Verb(Right.OPERATE, statistics.handle)}
        stored = StoredRows(self._links.restore(rows), self._around.progress, agenda.streams())
        agenda.restore(stored)

    def handle(self, event: Event, now: float) -> list[Action]:
        """CoreFailed when something has gone wrong that nobody expected."""
        agenda = self._agenda
        agenda.now = now
        self._slice.until = 0.0
        if not isinstance(event, BatchHandled):
            self._arrival = None
        else:
            self._dead.mark[0] = BEHIND if self._arrival is None else AT
        try:
            if isinstance(event, CalledAgain):
                agenda.work(self._slice.is_over)
            agenda.events.append(event)
            self._handle_events(now)
            if isinstance(event, TimePassed):
                agenda.tick(now)
                self._handle_events(now)
            elif isinstance(event, BatchHandled):
                agenda.end_batch(event.is_busy)
            agenda.flush()
            actions: list[Action] = [*self._rows.drain(), *self._links.drain()]
            for redirect in agenda.redirecting:
                actions = redirect(actions)
        except (CoreFailed, StoreError):
            raise
        except Exception as error:
            suspect = None if self._arrival is None else self._dead.suspect(self._arrival)
            raise CoreFailed(suspect) from error
        finally:
            self._dead.mark[0] = IDLE
        actions += agenda.take_actions()
        if agenda.working:
            actions.append(CallAgain())
        if agenda.due_at_end:
            actions.append(CallAtEnd())
        return actions

    def _handle_events(self, now: float) -> None:
        """What has come, and what parts have said meanwhile."""
        events = self._agenda.events
        while events:
            event = events.popleft()
            hearers = self._hearers.get(type(event), ())
            if not hearers or not any(hear(event) for hear in hearers):
                for arrival in self._links.handle(event, now):
                    self._handle_arrival(arrival)

    def connected(self, peer: str) -> bool:
        """Whether a peer ("broker/B2", "registration/r1") is there."""
        return self._links.connected(peer)

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._links.refusal(peer)

    def statistics(self) -> Result:
        return {
            **self._agenda.statistics(),
            "links": self._links.statistics(),
            "unexpected": dict(self._counters),
            "node": dict(self._around.node()),
        }

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        raise NotImplementedError

    def hand_on(self, arrival: Arrival) -> None:
        """To the part that takes its frame; what was held comes here when it is its turn."""
        raise NotImplementedError

    def _take(self, taker: Taker, frame: Frame, arrival: Arrival) -> None:
        self._arrival = arrival
        number = arrival.sequence
        at = frame.called(arrival.peer, arrival.key, number) if number else mark_of(arrival)
        MARK.pack_into(self._dead.mark, 0, AT, at.encode())
        if not (self._dead.passed_over and self._passes(arrival)):
            try:
                taker.take(frame, arrival)
            except FrameRefused as refusal:
                self._refuse(arrival, refusal)
        if not self._slice.caution:  # what fails behind it may have to do with others
            self._arrival = None
            self._dead.mark[0] = BEHIND

    def _passes(self, arrival: Arrival) -> bool:
        """Whether it is passed over."""
        return bool(self._dead.passes(arrival))

    def _refuse(self, arrival: Arrival, refusal: FrameRefused) -> None:
        """A frame that this peer has no business to send: counted, told, nothing else."""
        self._counters[refusal.code] += 1
        frame = type(arrival.frame).__name__
        detail = refusal.detail or f"{frame} from {arrival.peer} is not expected here"
        self._links.refuse(arrival.connection, refusal.code, detail)
