"""CoreContext: what all parts of one core are made with.

::

    Surroundings  what a core sees of the process that it is in: clocks, who shows which token
    CoreContext   besides that links, rows, limits, the slice of the event: one of each in a core
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from overlay.access import Access, AccessTable, Rule
from overlay.link.arrival import always
from overlay.link.dead_letters import DeadLetters
from overlay.link.events import Flow
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import Principal, nobody
from overlay.link.request_server import RequestServer
from overlay.link.row_log import RowLog
from overlay.link.slices import Slice
from overlay.link.stored_rows import Progress, unsaid
from overlay.link.work_mark import WorkMark
from overlay.statistics import Node
from overlay.topology import Topology

# -------------------------------------------------------------------------------------------------
# TokenHolders: who shows which token to a process, and when that is over.


class TokenHolders:
    """``table`` has the network's own tokens; those of others are the issuer's business."""

    def __init__(
        self,
        rules: Iterable[Rule],
        wall: Callable[[], float],
        issuer: Callable[[str], Principal] = nobody,
    ) -> None:
        """``rules``: until there are others.  ``wall``: seconds of the calendar.  ``issuer`` says
        whose a JSON Web Token is, and raises ProtocolError where it is nobody's."""
        self.table = AccessTable(Access(rules))
        self._wall = wall
        self._issuer = issuer

    def holder(self, secret: str) -> Principal:
        """Whoever shows a token; ProtocolError, or NOBODY."""
        if "." in secret:  # no secret of ours has one
            return self._issuer(secret)
        return self.table.now.holder(secret, self._wall())

    def send_away(self, links: LinkLayer) -> None:
        """Close the connections of those whose tokens are revoked, or over."""
        now = self._wall()
        for connection, _, principal in links.principals():
            if self.table.now.is_over(principal, now):
                detail = f"the token of {principal} is revoked, or over"
                links.refuse(connection, "not-authenticated", detail)


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``clock`` gives seconds of processor time, in which work is done in slices (by one that
    stands still no slice is ever over), ``wall`` those of the calendar; ``node`` says how the shell
    fares, for statistics; ``progress`` is told how far the rows are taken, ``say`` what people
    should know; ``caution``: see slices.py; ``issuer``: see TokenHolders; ``mark``: where the core
    says what it is at; ``epoch``: see link_layer.py."""

    clock: Callable[[], float] = float
    wall: Callable[[], float] = float
    node: Callable[[], Node] = Node
    progress: Progress = unsaid
    say: Callable[[str], None] = lambda text: None
    caution: int = 0
    issuer: Callable[[str], Principal] = nobody
    mark: WorkMark | None = None
    epoch: int = 0


STILL = Surroundings()


class CoreContext:
    """``limits`` are those of the topology file, until parts are told others."""

    def __init__(
        self,
        role: str,
        topology: Topology,
        identity: str,
        instance: str,
        around: Surroundings,
        formats: Collection[str] = (),
        may_acknowledge: Callable[[str, Flow, str], bool] = always,
        keeps: Callable[[str, Flow, str], bool] = lambda peer, flow, key: False,
        keeps_all: Callable[[str], bool] = lambda peer: False,
        unsafe: Collection[str] = (),
    ) -> None:
        """``instance`` is new for every start; ``formats`` to ``keeps_all``: see LinkLayer;
        ``unsafe`` verbs: see RequestServer."""
        self.topology = topology
        self.limits = topology.limits
        self.identity = identity
        self.clock, self.wall, self.say = around.clock, around.wall, around.say
        self.rows = RowLog()
        self.slice = Slice(around.clock, around.caution)
        self.holders = TokenHolders(topology.access.rules(), around.wall, around.issuer)
        self.access = self.holders.table
        self.links = LinkLayer(
            role=role,
            identity=identity,
            instance=instance,
            formats=[*formats],
            limits=topology.limits.link,
            may_acknowledge=may_acknowledge,
            keeps=keeps,
            keeps_all=keeps_all,
            stored=True,
            is_over=self.slice.is_over,
            holder=self.holders.holder,
            epoch=around.epoch,
        )
        self.dead = DeadLetters(self.links, self.rows, around.wall, around.mark)
        who = "a broker" if role == "broker" else "the registration service"
        self.server = RequestServer(
            *(self.links, who, self.access, self.rows.__len__, self.dead.answer_failed, unsafe)
        )
