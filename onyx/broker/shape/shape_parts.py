"""ShapeParts: links and brokers that come, go, or are away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.packing.packing_parts import PackingParts
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.bypasses import Bypasses
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.shape_stages import ShapeStages
from onyx.broker.shape.source_releases import SourceReleases
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import (
    Action,
    CloseConnection,
    ConnectionLost,
    ConnectionOpened,
    DataReceived,
    Event,
    Flow,
    SendData,
)
from overlay.link.frame import GOING_ROUND
from overlay.link.frames import PassedOn, Relayed
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.principal import Principal, is_name
from overlay.link.stored_rows import StoredRows
from overlay.statistics import BrokerStatistics
from overlay.topology import Topology

# -------------------------------------------------------------------------------------------------
# KeptMessages: what a broker has taken and not passed on is still with the one above it.
#
# A broker that dies has messages on its disk that nobody else has any more, unless its parent keeps
# them (overlay/link/journal.py) until all children of it have acknowledged them::
#
#     B1 ─ 41, 42, 43 ─> B2 ─ 17 ─> B3        B1 keeps 41 to 43, which B2 has acknowledged
#     B1 <── passed on: 43 ── B2 <─ 17 ─ B3   now it does not
#
# So the tree can go round B2 (bypasses.py).  It costs a message nothing: once a tick a broker notes
# for each tree how far it has come and what it has sent down for that, and says so when that is
# acknowledged.  A child that is away for long is not counted, which is said as well: then what its
# parent keeps would not do for that child.


@dataclass(frozen=True, slots=True)
class _Mark:
    """All that came up to ``number`` has gone down when each child has this."""

    number: int
    children: Mapping[str, int]


class KeptMessages(Part):
    """What a child may have taken and not passed on; and what this broker tells its parents of
    itself, which is gone with the process and found out again."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        trees: TreeVersions,
        give_backs: GiveBacks,
        watch: LinkWatch,
    ) -> None:
        self._control = control
        self._links = context.links
        self._query = query
        self._trees = trees
        self._give_backs = give_backs
        self._watch = watch
        self._marks: dict[str, _Mark] = {}
        self._said: dict[str, tuple[int, int, bool]] = {}  # connection, number, partly

    def tick(self, now: float) -> None:
        """Keep for those below; say to those above."""
        trees = self._query.table.roots
        for tree in trees:
            for child in self._control.children(tree):
                self._look_after(tree, child)
            if self._control.children(tree) and self._control.giver(tree) is not None:
                self._say(tree, now)
        for known in (self._marks, self._said):
            for tree in known.keys() - set(trees):
                del known[tree]

    # --- helpers --------------------------------------------------------------------------

    def _look_after(self, tree: str, child: str) -> None:
        """A child may be of another release since the channel began."""
        peer = f"broker/{child}"
        channel = self._links.sending(peer, Flow.MESSAGE, tree)
        if channel is not None and self._links.connected(peer):
            keeps = self._links.keeps(peer, Flow.MESSAGE, tree)
            if keeps is not channel.keeps:
                self._links.journal(peer).keep(Flow.MESSAGE, tree, keeps=keeps)

    def _say(self, tree: str, now: float) -> None:
        if tree in self._control.shapes.above_lost:
            return
        peer = f"broker/{self._control.parent(tree)}"
        connection = self._links.connection_of(peer)
        if connection is None or GOING_ROUND not in self._links.features(peer):
            return
        away = {child for child in self._control.children(tree) if self._is_away(child, now)}
        mark = self._marks.get(tree)
        if mark is not None:
            if not all(
                child in away or self._acknowledged(child, tree) >= number
                for child, number in mark.children.items()
            ):
                return
            del self._marks[tree]
            said = connection, mark.number, bool(away)
            if self._said.get(tree) != said:
                self._said[tree] = said
                frame = PassedOn(Flow.MESSAGE, tree, mark.number, bool(away))
                self._links.reply(connection, frame)
        channel = self._links.journal(peer).receiving.get((Flow.MESSAGE, tree))
        number = 0 if channel is None else channel.last
        if self._said.get(tree) == (connection, number, bool(away)):
            return
        if not (self._trees.holds(tree) or self._give_backs.awaits(tree)):
            sent = {child: self._sent(child, tree) for child in self._control.children(tree)}
            self._marks[tree] = _Mark(number, sent)

    def _is_away(self, child: str, now: float) -> bool:
        is_gone = self._watch.is_long_gone(child, now)
        return is_gone or child in self._control.shapes.newest.away

    def _sent(self, child: str, tree: str) -> int:
        channel = self._links.sending(f"broker/{child}", Flow.MESSAGE, tree)
        return 0 if channel is None else channel.last

    def _acknowledged(self, child: str, tree: str) -> int:
        channel = self._links.sending(f"broker/{child}", Flow.MESSAGE, tree)
        return 0 if channel is None else channel.floor


# -------------------------------------------------------------------------------------------------
# LinkBacklogs: how much may wait for a neighbour before sources are held back for its sake.
#
# A neighbour that is here and slow has ``link_backlog_bytes_max`` on each broadcast tree.  One that
# is away would use that up in seconds, and hold back all who get anything by the same trees.  What
# waits for it is on disk in any case (overlay/link/journal.py), so it has ``link_away_bytes_max``
# on all trees together, from the moment that it goes until it has caught up::
#
#     here ── away ──> behind ── here again, and every tree within its limit ──> here
#
# Beyond that nothing is thrown away: the trees by which something waits for it go on when it is
# back, or is taken out of the network.  Trees by which nobody behind it wants anything go on
# meanwhile.


class LinkBacklogs(Part):
    """Asked where a child has more waiting than a slow one may have (data_plane.py).  Nothing is
    stored: what waits says who is behind."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._control = control
        self._links = context.links
        self._limits = context.limits
        self._behind: set[str] = set()  # neighbours that were away and have not caught up
        # Of each channel with something waiting: what waited at a time and has not all gone since.
        self._waits: dict[tuple[str, Flow, str], tuple[int, float]] = {}
        self._now = 0.0

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits

    def restore(self, rows: StoredRows) -> None:
        """Whoever has that much waiting was away."""
        limit = self._limits.link_backlog_bytes_max
        for broker in self._links.peers("broker"):
            if max(self._waiting(broker), default=0) > limit:
                self._behind.add(broker)

    def tick(self, now: float) -> None:
        limit = self._limits.link_backlog_bytes_max
        neighbours = self._control.shapes.neighbours()
        self._behind &= neighbours
        for broker in neighbours:
            if not self._links.connected(f"broker/{broker}"):
                self._behind.add(broker)
            elif broker in self._behind and max(self._waiting(broker), default=0) <= limit:
                self._behind.discard(broker)
        self._note_ages(now)

    def is_behind(self, broker: str) -> bool:
        """Whether a neighbour was away, and has not caught up."""
        return broker in self._behind

    def may_grow(self, tree: str) -> bool:
        """Whether messages of a tree may go on coming: there is room for every child.

        Withheld acknowledgements fill the window of whoever sends here, and so on up to the
        source.  Waiting follows the direction of one tree, so it can never go round in a circle.
        """
        return all(self._has_room(child, tree) for child in self._control.children(tree))

    def _has_room(self, child: str, tree: str) -> bool:
        peer = f"broker/{child}"
        waiting = self._links.backlog_bytes(peer, Flow.MESSAGE, tree)
        if waiting <= self._limits.link_backlog_bytes_max:
            return True
        if child in self._behind or not self._links.connected(peer):
            return sum(self._waiting(child)) <= self._limits.link_away_bytes_max
        return False

    def _waiting(self, broker: str) -> list[int]:
        channels = self._links.channels_to(f"broker/{broker}")
        return [channel.backlog_bytes for channel in channels if channel.flow is Flow.MESSAGE]

    def _note_ages(self, now: float) -> None:
        """Of the oldest that waits on each channel at least, to a second."""
        waits = {}
        for broker in self._control.shapes.neighbours():
            for channel in self._links.channels_to(f"broker/{broker}"):
                if channel.backlog_bytes:
                    name = broker, channel.flow, channel.key
                    through, since = self._waits.get(name, (0, now))
                    if channel.floor >= through:
                        through, since = channel.last, now
                    waits[name] = through, since
        self._waits, self._now = waits, now

    def report(self, said: BrokerStatistics) -> None:
        waiting = said.data.waiting_s = dict.fromkeys(self._control.shapes.neighbours(), 0.0)
        for (broker, _, _), (_, since) in self._waits.items():
            waiting[broker] = max(waiting.get(broker, 0.0), self._now - since)
        said.data.behind = {broker: sum(self._waiting(broker)) for broker in sorted(self._behind)}


# -------------------------------------------------------------------------------------------------
# Tunnels: connections to a neighbour whose link is gone, by way of the registration service.
#
# When a link dies for good, frames may wait at one end that the other has already, or has not: only
# what the two ends keep on disk can tell.  So they talk once more, over another way, and the link
# layer does what it does after every broken connection: each end says what it has, the rest is
# sent, and the old trees run dry (tree_versions.py)::
#
#     B1 ══════ x ══════ B2        LinkLayer ── connection -1 ── Relayed pieces ──┐
#      └── registration ──┘        LinkLayer ── connection -4 <─ Relayed pieces <─┘
#
# A tunnel is only there while a link that is not in use any more has something to finish.  It
# promises no more than a connection does: pieces are numbered, and a gap ends it.  Its connections
# have negative numbers.


PIECE_BYTES = 48 * 1024  # so that every process accepts a piece


@dataclass(slots=True)
class _Tunnel:
    """``number`` was given by the end that opened it; ``sent`` and ``come`` count pieces."""

    broker: str
    number: int
    connection: int
    sent: int = 0
    come: int = 0


class Tunnels(Part):
    """The tunnels of one broker; gone with the process, as connections are."""

    def __init__(self, context: CoreContext, control: ControlPlane, watch: LinkWatch) -> None:
        self._control = control
        self._links = context.links
        self._watch = watch
        self.open: dict[str, _Tunnel] = {}  # by the broker at the other end
        self._opened = 0

    def frames(self) -> Iterable[Taker]:
        yield takes(Relayed, "registration", self._handle_relayed)

    def tick(self, now: float) -> None:
        """Open what is needed, close what is not; of two ends that with the smaller id opens."""
        for broker in list(self.open):
            if not self._is_needed(broker):
                self._close(self.open[broker], tell=True)
        if not self._links.connected(self._control.registration):
            return
        neighbours = self._control.shapes.neighbours()
        for broker in sorted(neighbours | self._control.shapes.beside_lost):
            if (
                self._control.identity < broker
                and broker not in self.open
                and self._is_needed(broker)
                and (broker not in neighbours or self._watch.is_long_gone(broker, now))
            ):
                self._open(broker, int(now * 1000), f"broker/{broker}")

    def _handle_relayed(self, frame: Relayed, arrival: Arrival) -> None:
        """A piece from the other end; the first one opens a tunnel."""
        if not is_name(frame.broker):
            raise FrameRefused("bad-field", f"{frame.broker!r} is no broker")
        tunnel = self.open.get(frame.broker)
        if tunnel is None or tunnel.number != frame.tunnel:
            if frame.number != 1 or frame.closing or frame.broker > self._control.identity:
                return
            if tunnel is not None:
                self._close(tunnel)
            tunnel = self._open(frame.broker, frame.tunnel, "")
        tunnel.come += 1
        if frame.closing or frame.number != tunnel.come:
            self._close(tunnel, tell=not frame.closing)
        else:
            self._tell_links(DataReceived(tunnel.connection, frame.payload))

    def gone(self, arrival: Arrival) -> None:
        """With the connection with the registration service all tunnels are lost."""
        if arrival.peer == self._control.registration:
            for tunnel in list(self.open.values()):
                self._close(tunnel)

    def redirect(self, actions: list[Action]) -> list[Action]:
        """The actions that are for the shell; what is for tunnels is on its way."""
        left = []
        for action in actions:
            if isinstance(action, SendData | CloseConnection) and action.connection < 0:
                self._carry(action)
            else:
                left.append(action)
        return left + self._links.drain()

    # --- helpers --------------------------------------------------------------------------

    def _is_needed(self, broker: str) -> bool:
        """Whether a link was in use and is not any more, or a broker between is lost, and that is
        not settled yet."""
        shapes = self._control.shapes
        return shapes.is_retiring(broker) or (
            broker in shapes.beside_lost and broker not in shapes.neighbours()
        )

    def _open(self, broker: str, number: int, dialled: str) -> _Tunnel:
        if self.agenda is not None:
            self.agenda.redirecting.add(self)
        self._opened += 1
        tunnel = self.open[broker] = _Tunnel(broker, number, -self._opened)
        principal = Principal("broker", broker)  # so the registration service says, who knows
        self._tell_links(ConnectionOpened(tunnel.connection, dialled, principal))
        return tunnel

    def _close(self, tunnel: _Tunnel, *, tell: bool = False) -> None:
        if tell:
            self._send(tunnel, b"", closing=True)
        del self.open[tunnel.broker]
        self._tell_links(ConnectionLost(tunnel.connection))

    def _tell_links(self, event: Event) -> None:
        if self.agenda is not None:
            self.agenda.events.append(event)

    def _carry(self, action: SendData | CloseConnection) -> None:
        for tunnel in self.open.values():
            if tunnel.connection == action.connection:
                break
        else:
            return
        if isinstance(action, CloseConnection):
            self._close(tunnel, tell=True)
            return
        for start in range(0, len(action.data), PIECE_BYTES):
            self._send(tunnel, action.data[start : start + PIECE_BYTES])

    def _send(self, tunnel: _Tunnel, payload: bytes, *, closing: bool = False) -> None:
        connection = self._links.connection_of(self._control.registration)
        if connection is not None:
            tunnel.sent += 1
            frame = Relayed(tunnel.broker, tunnel.number, tunnel.sent, closing, payload)
            self._links.reply(connection, frame)


# -------------------------------------------------------------------------------------------------


class ShapeParts:
    def __init__(
        self,
        context: CoreContext,
        network: NetworkParts,
        packing: PackingParts,
        query: QueryPlane,
        releases: SourceReleases,
        change_settings: Callable[[Topology, Topology], None],
    ) -> None:
        """``change_settings``: see ShapeStages."""
        control, give_backs = network.control, packing.give_backs
        self.backlogs = LinkBacklogs(context, control)
        bypasses = Bypasses(context, control)
        self.trees = trees = TreeVersions(
            context, control, query, packing.trained, give_backs, bypasses
        )
        self.watch = LinkWatch(context, control, trees.is_whole, self.backlogs.is_behind)
        kept = KeptMessages(context, control, query, trees, give_backs, self.watch)
        tunnels = Tunnels(context, control, self.watch)
        self.stages = ShapeStages(context, control, query, trees, releases, change_settings)
        self.parts = (
            *(self.backlogs, self.watch, kept, tunnels),
            *(bypasses, trees, self.stages),
        )
