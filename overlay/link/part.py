"""Part: what the parts of a core are to the core; each does one thing, and says what that takes.

::

    frame ──> the part that takes it       ``frames``: which, and from whom
    asked ──> the part that answers it     ``verbs``
    event ──> the part that waits for it   ``events``: of those that are not the link layer's
    news  ──> the parts that hear of it    ``events`` as well; another part ``announces`` them
    rows  ──> the parts that stored them   ``streams`` and ``restore``, once, at a restart
    time  ──> parts that wait for it       ``tick``
              parts that have asked        ``flush`` and ``work``, see Agenda

A part that has nothing to do is not asked.  What it needs not say it leaves as it is here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from formats.errors import Fault, Refusal
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.events import Action, Event
from overlay.link.frame import Frame
from overlay.link.request_server import Verb
from overlay.link.slices import never
from overlay.link.stored_rows import StoredRows, Stream
from overlay.topology import Topology

F = TypeVar("F", bound=Frame)
E = TypeVar("E")

Hearer = tuple[type[Any], Callable[[Any], object]]
"""A kind of event or news, and what is told of one: of an event, whether it was waited for."""

OUTSIDE = frozenset({"client", "source", "subscriber"})
"""Roles that no process of the network has."""


class FrameRefused(Refusal):
    """A frame that its sender has no business to send, or with bad contents: it is counted, the
    sender is told, and nothing else happens."""

    def __init__(self, code: str, reason: str = "") -> None:
        super().__init__(Fault(code, reason))


@dataclass(frozen=True, slots=True)
class Taker:
    """Who takes a kind of frame, and from whom: a role, or a place on the tree that it names.
    ``is_aside``: it makes no difference to what messages give that came before it.  ``right``: what
    whoever sends it must have, as is looked at where it says who it is about."""

    kind: type[Frame]
    senders: frozenset[str]
    take: Callable[[Any, Arrival], object]
    is_aside: bool = False
    right: Right = Right.PEER


def takes(
    kind: type[F],
    sender: str,
    take: Callable[[F, Arrival], object],
    *,
    is_aside: bool = False,
    right: Right = Right.PEER,
) -> Taker:
    """``sender``: one or several, with spaces between; ``take`` may raise FrameRefused.

    ValueError where it comes from outside the network and names no ``right``.
    """
    senders = frozenset(sender.split())
    if right is Right.PEER and senders & OUTSIDE:
        raise ValueError(f"{kind.__name__} comes from outside: it must say what right that takes")
    return Taker(kind, senders, take, is_aside, right)


def hears(kind: type[E], hear: Callable[[E], object]) -> Hearer:
    """``hear`` says whether the event is for it; if not, others are asked; news are for all."""
    return kind, hear


class Part:
    """The base of all parts."""

    verbs: Sequence[Verb[Any]] = ()
    """What may be asked of it."""
    agenda: Agenda | None = None

    def frames(self) -> Iterable[Taker]:
        """The frames that it takes; asked for once."""
        return ()

    def events(self) -> Iterable[Hearer]:
        """What it has asked the shell for comes as these, and news of other parts; asked for
        once."""
        return ()

    def streams(self) -> Iterable[Stream]:
        """Of rows that are too many to be in memory; these come ahead of ``restore``."""
        return ()

    def restore(self, rows: StoredRows) -> None:
        """Take back what was stored; the parts before it are restored already."""

    def gone(self, arrival: Arrival) -> None:
        """A connection is gone."""

    def tick(self, now: float) -> None:
        """Time goes on; about once a second."""

    def flush(self) -> None:
        """What is due at the end of an event, or of a batch of them."""

    def work(self) -> None:
        """Go on with what nobody waits for, a bounded step of it."""

    def report(self, said: Any) -> None:
        """Write its figures into the statistics of the core, the record of its kind."""

    def take_limits(self, limits: Limits) -> None:
        """Others than at the start are in force from now on, of those that may change while a
        network runs (``live_settings.py``)."""

    def take_settings(self, now: Topology) -> None:
        """The same of all settings, for those who take more than the limits."""
        self.take_limits(now.limits)

    def use_topology(self, topology: Topology) -> None:
        """The network has other brokers, as the parts of the registration service are told."""

    def redirect(self, actions: list[Action]) -> list[Action]:
        """Leave what is for the shell; for a part in ``Agenda.redirecting``."""
        return actions

    # --- what it has to do ----------------------------------------------------------------

    def flush_soon(self) -> None:
        """Be flushed at the end of this event; from its own ``flush``, of the next one."""
        if self.agenda is not None:
            self.agenda.due.add(self)

    def flush_at_end(self) -> None:
        """Be flushed at the end of the events that wait together."""
        if self.agenda is not None:
            self.agenda.due_at_end.add(self)

    def work_soon(self) -> None:
        """Be called to ``work`` when what was said up to now has left."""
        if self.agenda is not None:
            self.agenda.working.add(self)

    def hand_on(self, arrival: Arrival) -> None:
        """To the part that takes its frame: it was held until now."""
        assert self.agenda is not None
        self.agenda.hand_on(arrival)

    def announce(self, news: object) -> None:
        """Tell the parts that hear of such news, at once."""
        if self.agenda is not None:
            for hear in self.agenda.hearers.get(type(news), ()):
                hear(news)

    def ask_shell(self, action: Action) -> None:
        """Behind the rows and frames of this call."""
        if self.agenda is not None:
            self.agenda.actions.append(action)


class Agenda:
    """What the parts of a core have to do: they say so themselves, so that nobody else is asked."""

    def __init__(
        self, parts: Sequence[Part], hand_on: Callable[[Arrival], None] = lambda arrival: None
    ) -> None:
        """``parts`` have their turns in this order; ``hand_on``: see Part."""
        self.parts = parts
        self.hand_on = hand_on
        self.due: set[Part] = set()
        self.due_at_end: set[Part] = set()
        self.working: set[Part] = set()
        self._next = 0  # the place of the part that works first
        self.events: deque[Event] = deque()  # that the core has still to handle
        self.actions: list[Action] = []
        self.redirecting: set[Part] = set()
        self.now = 0.0  # of the event under way
        self.is_busy = (
            True  # more events may wait; False at the end of a batch behind which none do
        )
        self.hearers: dict[type, list[Callable[[Any], object]]] = {}
        """Who waits for what; several may wait for a kind of event."""
        for part in parts:
            part.agenda = self
            for kind, hear in part.events():
                self.hearers.setdefault(kind, []).append(hear)
        self._ticking = [part for part in parts if type(part).tick is not Part.tick]
        self._noticing = [part for part in parts if type(part).gone is not Part.gone]

    def takers(self) -> Mapping[type[Frame], Taker]:
        """Who takes what; of one kind of frame there is one taker."""
        found: dict[type[Frame], Taker] = {}
        for taker in (taker for part in self.parts for taker in part.frames()):
            if found.setdefault(taker.kind, taker) is not taker:
                raise ValueError(f"two parts take {taker.kind.__name__}")
        return found

    def verbs(self) -> Mapping[str, Verb[Any]]:
        """Who answers what; ValueError where two do."""
        found: dict[str, Verb[Any]] = {}
        for verb in (each for part in self.parts for each in part.verbs):
            if found.setdefault(verb.asked.verb, verb) is not verb:
                raise ValueError(f"two parts answer {verb.asked.verb!r}")
        return found

    def streams(self) -> list[Stream]:
        """Of all parts, for the rows of a restart."""
        return [stream for part in self.parts for stream in part.streams()]

    def restore(self, rows: StoredRows) -> None:
        """StoreError when there are rows of nobody."""
        for part in self.parts:
            part.restore(rows)
        rows.check_taken()

    def take_settings(self, now: Topology) -> None:
        for part in self.parts:
            part.take_settings(now)

    def tick(self, now: float) -> None:
        for part in self._ticking:
            part.tick(now)

    def gone(self, arrival: Arrival) -> None:
        for part in self._noticing:
            part.gone(arrival)

    def flush(self) -> None:
        for part in self.parts:
            if part in self.due:
                self.due.remove(part)
                part.flush()
        self.is_busy = True

    def end_batch(self, is_busy: bool = False) -> None:
        """Those that wait for the end are flushed with the others."""
        self.is_busy = is_busy
        self.due |= self.due_at_end
        self.due_at_end.clear()

    def work(self, is_over: Callable[[], bool] = never) -> None:
        """Those that have asked, until the slice is over; then whoever was first comes last."""
        working, self.working = self.working, set()
        parts = (*self.parts[self._next :], *self.parts[: self._next])
        order = list(filter(working.__contains__, parts))
        self._next = 0
        for number, part in enumerate(order):
            if number and is_over():
                self.working.update(order[number:])
                self._next = self.parts.index(order[0]) + 1
                break
            part.work()

    def take_actions(self) -> list[Action]:
        actions, self.actions = self.actions, []
        return actions
