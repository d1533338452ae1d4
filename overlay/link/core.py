"""Core: what a broker and the registration service have in common: parts, and their turns.

``handle(event, now) -> actions`` is all there is to it; see events.py for the rule that makes it
safe to crash at any moment::

    event ──> the part that waits for it, or LinkLayer ──> arrivals ──> the part that takes it
    parts that have asked (part.py) ──> their turns
    actions <── rows to store, frames to send
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import msgpack
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from overlay import verbs
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext, Surroundings
from overlay.link.durable import StoredValue, fill
from overlay.link.errors import StoreError
from overlay.link.events import (
    Action,
    BatchHandled,
    CallAgain,
    CallAtEnd,
    CalledAgain,
    DiskRoom,
    Event,
    TakeSettings,
    TimePassed,
)
from overlay.link.frame import Frame
from overlay.link.frames import Request
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Agenda, FrameRefused, Part, Taker
from overlay.link.request_server import (
    RequestRefused,
    Result,
    Verb,
)
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.suspect import CoreFailed, mark_of
from overlay.link.tables import Row, Table
from overlay.link.work_mark import AT, BEHIND, IDLE, MARK
from overlay.live_settings import live_values, with_live_settings, with_values
from overlay.statistics import NodeStatistics
from overlay.topology import Topology

# -------------------------------------------------------------------------------------------------
# RunningSettings: which limits and other settings are in force in a process, and since what.
#
# They are those of the process's file, which it reads at its start and at SIGHUP, until the network
# is told others (``onyx topology apply``).  These are stored, and hold over a new start with the
# same file; a file that says something else by then is newer, and holds.


class _SettingsRow(Row, frozen=True):
    """The live settings of the file, and those in force, by key."""

    file: dict[str, object]
    held: dict[str, object]


SETTINGS = Table("settings", _SettingsRow)


class RunningSettings(Part):
    """Of one process; the last of its parts, as the others take what it restores."""

    def __init__(self, file: Topology, rows: RowLog) -> None:
        """``file``: what the process was started with."""
        self.now = file
        self._file = live_values(file)
        self._stored: StoredValue[_SettingsRow | None] = StoredValue(rows, SETTINGS, None, "live")

    def restore(self, rows: StoredRows) -> None:
        row = self._stored.now
        if row is not None and row.file == self._file:
            self._hold(*with_live_settings(self.now, with_values(self.now, row.held))[:2])
        else:
            self._stored.put(None)

    def take_file(self, file: Topology) -> tuple[list[str], list[str]]:
        """The file is read again: what of it is taken, and what takes a new start."""
        wanted, taken, left = with_live_settings(self.now, file)
        self._file = live_values(file)
        self._stored.put(None)
        if taken:
            self._hold(wanted, taken)
        return taken, left

    def take_change(self, before: Topology, after: Topology) -> None:
        """The network is told of other settings: of these what has changed."""
        old, new = live_values(before), live_values(after)
        changed = {key: new[key] for key in new if old.get(key) != new[key]}
        wanted, taken, _ = with_live_settings(self.now, with_values(self.now, changed))
        if taken:
            self._hold(wanted, taken)
            self._stored.put(_SettingsRow(self._file, live_values(wanted)))

    def _hold(self, wanted: Topology, taken: list[str]) -> None:
        self.now = wanted
        if self.agenda is not None:
            self.agenda.take_settings(wanted)
        self.ask_shell(TakeSettings(wanted, tuple(taken)))


# -------------------------------------------------------------------------------------------------
# StatisticsRequests: how a process is, asked from outside; short, however much there is of it.
#
# ::
#
#     statistics                       a summary of at most 64 KB; "cut": how many there are of what
#                                      it has not all
#     statistics of=links.connections  a page of one collection: entries whose name has ``match`` in
#                                      it, from the ``first`` on
#
# What is asked of a process that has 100,000 users is answered in between, by the one thread that
# everybody waits for: the summary looks at no collection from its beginning to its end.


SUMMARY_BYTES_MAX = 64 * 1024
PAGE_BYTES_MAX = 64 * 1024
PAGE_MAX = 100
ENTRIES_MAX = 100  # of a collection in a summary; of what is no number fewer, if they are too long
_FEWER = (100, 20, 5, 1, 0)


class StatisticsRequests:
    """``handle`` a request."""

    def __init__(self, statistics: Callable[[], Any], links: LinkLayer) -> None:
        self._statistics = statistics
        self._links = links

    def handle(self, connection: int, request: Request, asked: verbs.Statistics) -> Result:
        if not asked.of:
            return summary(self._statistics())
        return page(asked.of, self._collection(asked.of), int(asked.first), asked.match)

    def _collection(self, of: str) -> Iterator[tuple[str, Callable[[], object]]]:
        """Of each entry its name, and what it says if it is asked."""
        kept = self._links.kept.get(of.removeprefix("links."))
        if of.startswith("links.") and kept is not None:
            return ((str(name), entry.statistics) for name, entry in kept.items())
        found: Any = self._statistics()
        for part in of.split("."):
            found = found.get(part) if isinstance(found, Mapping) else getattr(found, part, None)
        if isinstance(found, Mapping):
            return ((str(name), _saying(entry)) for name, entry in found.items())
        if isinstance(found, Sequence) and not isinstance(found, str | bytes):
            return ((str(number), _saying(entry)) for number, entry in enumerate(found))
        raise RequestRefused("unknown-statistics", f"there is no collection {of!r} here")


def _saying(entry: object) -> Callable[[], object]:
    return lambda: entry


def page(
    of: str, entries: Iterator[tuple[str, Callable[[], object]]], first: int, match: str
) -> Result:
    """``entries``: [name, what it says] each; ``next``: the ``first`` of the next page, if any.
    Of a list the names are numbers, and what is matched is what it says."""
    found = (
        (name, say)
        for name, say in entries
        if not match or match in name or (name.isdecimal() and match in str(say()))
    )
    shown: list[list[object]] = []
    left = PAGE_BYTES_MAX
    for name, say in islice(found, first, None):
        entry = to_builtins(say())
        left -= len(msgpack.packb((name, entry), default=str))
        if shown and (left < 0 or len(shown) >= PAGE_MAX):
            return {"of": of, "entries": shown, "next": first + len(shown)}
        shown.append([name, entry])
    return {"of": of, "entries": shown, "next": None}


def summary(statistics: Struct) -> Result:
    """What fits: of each collection the first entries."""
    found: Result = {}
    for most in _FEWER:
        cut: dict[str, int] = {}
        found = to_builtins(_cut(statistics, most, "", cut))
        if cut:
            found["cut"] = cut
        if len(msgpack.packb(found, default=str)) <= SUMMARY_BYTES_MAX:
            break
    return found


def _cut(value: Any, most: int, path: str, cut: dict[str, int]) -> Any:
    """``most``: of entries that are no numbers; of numbers ENTRIES_MAX."""
    place = f"{path}." if path else ""
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return replace(value, **{n: _cut(getattr(value, n), most, place + n, cut) for n in names})
    if isinstance(value, Mapping):
        some = list(islice(value.items(), ENTRIES_MAX))
        are_named = path.count(".") < 1 or any(isinstance(e, bool | int | float) for _, e in some)
        kept = some if are_named else some[:most]
        if len(kept) < len(value):
            cut[path] = len(value)
        return {name: _cut(entry, most, f"{place}{name}", cut) for name, entry in kept}
    if isinstance(value, list | tuple | set | frozenset):
        if len(value) > most:
            cut[path] = len(value)
        return [_cut(entry, most, path, cut) for entry in islice(value, most)]
    return value


# -------------------------------------------------------------------------------------------------


N = TypeVar("N", bound=NodeStatistics)
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
        statistics = StatisticsRequests(self.statistics, self._links)
        self.verbs = self._server.verbs
        self.verbs |= agenda.verbs()
        self.verbs[verbs.Statistics.verb] = Verb(verbs.Statistics, statistics.handle)
        stored = StoredRows(self._links.restore(rows), self._around.progress, agenda.streams())
        fill(self._rows, stored)
        agenda.restore(stored)

    def handle(self, event: Event, now: float) -> list[Action]:
        """CoreFailed when something has gone wrong that nobody expected."""
        agenda = self._agenda
        agenda.now = now
        self._slice.until = 0.0
        if isinstance(event, DiskRoom):
            self._server.disk, self._links.disk_is_full = event, event.is_full
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
            for part in agenda.redirecting:
                actions = part.redirect(actions)
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
            hearers = self._agenda.hearers.get(type(event), ())
            if not hearers or not any(hear(event) for hear in hearers):
                for arrival in self._links.handle(event, now):
                    self._handle_arrival(arrival)

    def connected(self, peer: str) -> bool:
        """Whether a peer ("broker/B2", "registration/r1") is there."""
        return self._links.connected(peer)

    def refusal(self, peer: str) -> str:
        """Why the last connection with a peer that is away was closed; "" if it broke."""
        return self._links.refusal(peer)

    def statistics(self) -> NodeStatistics:
        """Of now; what counts in them goes on counting."""
        raise NotImplementedError

    def reported(self, said: N) -> N:
        """With the figures of all parts."""
        said.node, said.links = self._around.node(), self._links.statistics()
        said.unexpected = self._counters
        for part in self._agenda.parts:
            part.report(said)
        return said

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
        detail = refusal.reason or f"{frame} from {arrival.peer} is not expected here"
        self._links.refuse(arrival.connection, refusal.code, detail)
