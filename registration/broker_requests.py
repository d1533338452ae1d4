"""What an operator may ask about one broker: one verb, one function.

===================  =========================================================================
``broker.drain``     let a broker leave: its profiles and sources go elsewhere first; with ``stop``
                     let it stay
``broker.progress``  how far that is
``broker.lost``      a broker is gone for good: the network goes on without it, its profiles at
                     other brokers, its sources with other root brokers
===================  =========================================================================
"""

from __future__ import annotations

from overlay.access import Right
from overlay.link.core_context import CoreContext
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Result, Verb, name_argument
from overlay.network_shape import cut_off, kept_down, without_broker
from overlay.toml_table import did_you_mean
from overlay.topology import Topology
from registration.audit_log import AuditLog
from registration.catalog import Catalog
from registration.drains import Drains
from registration.shape_changes import ShapeChanges


class BrokerRequests(Part):
    """Checks and begins it."""

    def __init__(
        self,
        context: CoreContext,
        shapes: ShapeChanges,
        catalog: Catalog,
        drains: Drains,
        audit: AuditLog,
    ) -> None:
        self._shapes = shapes
        self._catalog = catalog
        self._drains = drains
        self._audit = audit
        self._principal = context.links.principal
        self._connected = context.links.connected
        self.verbs = {
            "broker.drain": Verb(Right.OPERATE, self._drain),
            "broker.progress": Verb(Right.OPERATE, self._progress),
            "broker.lost": Verb(Right.OPERATE, self._lose),
        }

    def _drain(self, connection: int, request: Request) -> Result:
        broker = name_argument(request, "broker")
        is_stopped = request.arguments.get("stop") is True
        if broker not in self._drains and not is_stopped:
            self._without(broker)
            self._check_room(broker)
        if request.arguments.get("dry_run") is not True:
            self._change(connection, request, broker, is_stopped)
        return self._drains.progress(broker)

    def _progress(self, connection: int, request: Request) -> Result:
        return self._drains.progress(name_argument(request, "broker"))

    def _change(self, connection: int, request: Request, broker: str, is_stopped: bool) -> None:
        if is_stopped:
            if not self._drains.stop(broker):
                raise RequestRefused(
                    "too-late", f"{broker} is leaving the network already; nothing is left there"
                )
            self._audit.note(self._principal(connection), request.verb, f"{broker} stays")
        elif broker not in self._drains:
            self._drains.begin(broker)
            self._audit.note(self._principal(connection), request.verb, broker)

    def _lose(self, connection: int, request: Request) -> Result:
        """``dry_run``: only say what would be."""
        broker = name_argument(request, "broker")
        shapes = self._shapes
        if shapes.lost_since(broker):
            return {"version": shapes.lost_since(broker), "profiles": 0, "sources": 0}
        declared = self._without(broker)
        if self._connected(f"broker/{broker}"):
            raise RequestRefused(
                "broker-here", f"{broker} is here, so it is not lost; onyx broker drain lets it go"
            )
        result: Result = {
            "version": shapes.newest.version + 1,
            "profiles": len(self._catalog.hosted_by(broker)),
            "sources": len(self._catalog.rooted_at(broker)),
        }
        if request.arguments.get("dry_run") is not True:
            shapes.change(declared, kept_down(shapes.newest, declared), [broker])
            detail = f"version {shapes.newest.version}: without {broker}"
            self._audit.note(self._principal(connection), request.verb, detail)
        return result

    def _without(self, broker: str) -> Topology:
        """The network without a broker; RequestRefused where there is no such one, or the others
        could not do without it."""
        declared = self._shapes.newest.declared
        if broker not in declared.broker_ids:
            hint = did_you_mean(broker, declared.broker_ids)
            raise RequestRefused("bad-argument", f"there is no broker {broker!r}{hint}")
        if len(declared.brokers) == 1:
            raise RequestRefused("network-cut", f"{broker} is the only broker")
        left = without_broker(declared, broker)
        cut = cut_off(left)
        if cut:
            raise RequestRefused(
                "network-cut",
                f"without {broker} no link leads to {', '.join(cut)}: add links that do so "
                "(onyx topology apply), then ask again",
            )
        return left

    def _check_room(self, broker: str) -> None:
        placed = self._catalog.profiles_by_broker
        others = [b for b in self._shapes.topology.brokers if b.id != broker]
        room = sum(max(0, b.capacity - placed.get(b.id, 0)) for b in others)
        if placed[broker] > room:
            raise RequestRefused(
                "network-full",
                f"{broker} hosts {placed[broker]} profiles, and the others have room for {room}",
            )
