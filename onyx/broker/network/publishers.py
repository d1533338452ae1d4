"""Publishers: those of one source that publish at once, and the numbers that their messages get.

A publisher is a peer of its own, "source/s1/p" or, without a name, "source/s1": its channel keeps
the order of its messages and takes each once.  The messages of all get one sequence of numbers, in
the order in which they are taken.  A publisher's *shift* is what the number of a message has beyond
its place on the channel, and changes when others were in between; then a row is stored and the
publisher is told, in the commit of the message::

    source/s1      1 2 3                 shift 0     numbers 1 2 3
    source/s1/p          1 2             shift 3     numbers 4 5      Numbered(1, 4)
    source/s1                4           shift 2     number  6        Numbered(4, 6)

Where the source gets another root broker its publishers go along with the publish keys.

A publisher of one run of a process (RUN) is forgotten when it was away for as long as publish keys
are remembered, or when AWAY_MAX others are.  The one with the last number stays, as that is known
by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import Flow
from overlay.link.frame import PUBLISHERS
from overlay.link.frames import RUN, Hello, KeysReleased, Numbered, Skipped
from overlay.link.part import Hearer, Part, hears
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import BrokerStatistics

AWAY_MAX = 2_048
LOOK_SECONDS = 60.0  # between two looks for those to forget


class _ShiftRow(Row, frozen=True):
    shift: int


SHIFTS = Table("publisher", _ShiftRow)


@dataclass(slots=True, eq=False)
class Numbering:
    """``last``: the number of the last message that was taken; ``shifts`` by peer; ``away``: since
    when those are away that may be forgotten, the longest first, 0.0 until the next look."""

    last: int = 0
    shifts: dict[str, int] = field(default_factory=dict)
    away: dict[str, float] = field(default_factory=dict)


class Publishers(Part):
    """``sources``: of each that has had a publisher here."""

    def __init__(self, context: CoreContext) -> None:
        self._links = context.links
        self._rows = context.rows
        self.take_limits(context.limits)
        self.sources: dict[str, Numbering] = {}
        self._look_at = 0.0

    def take_limits(self, limits: Limits) -> None:
        self._most, self._age = limits.source_publishers_max, limits.publish_key_age_s

    def events(self) -> Iterable[Hearer]:
        yield hears(KeysReleased, self._take_released)

    def restore(self, rows: StoredRows) -> None:
        shifts = {peer: row.shift for peer, row in rows.take(SHIFTS)}
        for name in self._links.peers("source"):
            peer = f"source/{name}"
            self._add(peer, shifts.get(peer, 0))
            if _name(peer).startswith(RUN):
                self._numbering(peer).away[peer] = 0.0

    def enter(self, arrival: Arrival, source: str) -> str:
        """Let in a publisher that says hello; why not, where too many are known."""
        peer, hello = arrival.peer, arrival.frame
        assert isinstance(hello, Hello)
        numbering = self._numbering_of(source)
        is_new = peer not in numbering.shifts or peer in numbering.away
        if is_new and len(numbering.shifts) - len(numbering.away) >= self._most:
            return (
                f"{self._most} publishers of {source} are connected, or have a name of their own; "
                "no more may be (source_publishers_max)"
            )
        numbering.away.pop(peer, None)
        shift = numbering.shifts.setdefault(peer, 0)
        numbering.last = max(numbering.last, hello.numbered)
        if shift and PUBLISHERS in hello.features:  # this run may not know
            taken = self._taken(peer)
            self._links.send(peer, source, Numbered(source, taken + 1, taken + 1 + shift))
        return ""

    def renumber(self, numbering: Numbering, source: str, arrival: Arrival) -> int:
        """The number of a message that comes behind those of another publisher."""
        peer, number = arrival.peer, numbering.last + 1
        self._shift(peer, number - arrival.sequence)
        if PUBLISHERS in self._links.features(peer):
            self._links.send(peer, source, Numbered(source, arrival.sequence, number))
        return number

    def begin(self, source: str, taken: int) -> None:
        """This broker is the root of a source now, of which so many messages were ``taken``."""
        if taken > self._numbering_of(source).last:  # else it is known by its publishers
            self._skip(f"source/{source}", source, taken)
            self._add(f"source/{source}", 0)

    def send_away(self, source: str, code: str, detail: str) -> int:
        """Refuse them all; the highest number that a message of the source may have."""
        numbering = self.sources.get(source, Numbering())
        for peer in numbering.shifts:
            connection = self._links.connection_of(peer)
            if connection is not None:
                self._links.refuse(connection, code, detail)
        return max((self._highest(peer) for peer in numbering.shifts), default=0)

    def forget(self, source: str) -> None:
        """A source is gone."""
        for peer in self.sources.pop(source, Numbering()).shifts:
            self._forget(peer)

    def released(self, source: str) -> Iterator[KeysReleased]:
        """For another root broker; nothing where the only publisher has no name."""
        shifts = self.sources.get(source, Numbering()).shifts
        if shifts.keys() - {f"source/{source}"}:
            publishers = [(_name(peer), self._taken(peer), self._highest(peer)) for peer in shifts]
            yield KeysReleased(source, 0, [], b"", publishers)

    def connections(self, source: str) -> list[tuple[str, int]]:
        """Those that are here: peer and connection, the longest known first."""
        found = ((p, self._links.connection_of(p)) for p in self._numbering_of(source).shifts)
        return [(peer, connection) for peer, connection in found if connection is not None]

    def gone(self, arrival: Arrival) -> None:
        peer = arrival.peer
        if peer.startswith("source/") and _name(peer).startswith(RUN):
            numbering = self.sources.get(peer.split("/")[1])
            if numbering is not None and peer in numbering.shifts:
                numbering.away[peer] = 0.0

    def tick(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        for numbering in self.sources.values():
            many = len(numbering.away) - AWAY_MAX
            for place, (peer, since) in enumerate(list(numbering.away.items())):
                if not since:
                    numbering.away[peer] = now
                elif now - since <= self._age and place >= many:
                    break
                elif self._highest(peer) < numbering.last:
                    del numbering.away[peer], numbering.shifts[peer]
                    self._forget(peer)

    def report(self, said: BrokerStatistics) -> None:
        counted = Counter({source: len(self.connections(source)) for source in self.sources})
        said.data.publishers = +counted

    def _take_released(self, frame: KeysReleased) -> None:
        for name, taken, number in frame.publishers:
            peer = f"source/{frame.source}{name and '/'}{name}"
            self._skip(peer, frame.source, taken)
            self._shift(peer, number - taken)
            self._add(peer, number - taken)

    # --- helpers --------------------------------------------------------------------------

    def _numbering(self, peer: str) -> Numbering:
        return self._numbering_of(peer.split("/")[1])

    def _numbering_of(self, source: str) -> Numbering:
        return self.sources.setdefault(source, Numbering())

    def _add(self, peer: str, shift: int) -> None:
        numbering = self._numbering(peer)
        numbering.shifts[peer] = shift
        numbering.last = max(numbering.last, self._highest(peer))

    def _shift(self, peer: str, shift: int) -> None:
        self._numbering(peer).shifts[peer] = shift
        SHIFTS.put(self._rows, peer, _ShiftRow(shift))

    def _skip(self, peer: str, source: str, taken: int) -> None:
        self._links.journal(peer).skip(Skipped(Flow.MESSAGE, source, taken))

    def _taken(self, peer: str) -> int:
        """How many messages of a publisher were taken."""
        channel = self._links.journal(peer).receiving.get((Flow.MESSAGE, peer.split("/")[1]))
        return 0 if channel is None else channel.last

    def _highest(self, peer: str) -> int:
        """The number of the last of them."""
        return self._taken(peer) + self._numbering(peer).shifts[peer]

    def _forget(self, peer: str) -> None:
        self._links.forget(peer)
        SHIFTS.delete(self._rows, peer)


def _name(peer: str) -> str:
    return "".join(peer.split("/")[2:])
