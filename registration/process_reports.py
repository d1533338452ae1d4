"""ProcessReports: which processes do not run just now, as whoever runs them says.

Nothing of it is stored: it is said again to a registration service that starts anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from overlay.access import Right
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Result, Verb
from registration.shape_changes import ShapeChanges

WHY_LENGTH_MAX = 256


class ProcessReports(Part):
    """The verbs ``processes.report`` and ``network``; ``statistics`` are what it was told last."""

    section = "processes"

    def __init__(self, shapes: ShapeChanges, identity: str) -> None:
        self._shapes = shapes
        self._identity = identity
        self._down: dict[str, str] = {}
        self.verbs: dict[str, Verb] = {
            "processes.report": Verb(Right.OPERATE, self._report),
            "network": Verb(Right.KNOWN, self._network),
        }

    def statistics(self) -> Mapping[str, object]:
        """Why, by node."""
        return {"down": self._down}

    def _network(self, connection: int, request: Request) -> Result:
        """Where every broker is, and who does not run: what a client needs to look at the
        network."""
        topology = self._shapes.topology
        return {
            "name": topology.name,
            "registration": self._identity,
            "brokers": {id_: topology.where(id_) for id_ in topology.broker_ids},
            "down": sorted(self._down),
        }

    def _report(self, connection: int, request: Request) -> Result:
        """``down``: why a node does not run, of all that do not."""
        down = request.arguments.get("down")
        if not isinstance(down, dict) or not all(
            self._is_node(node) and isinstance(why, str) and len(why) <= WHY_LENGTH_MAX
            for node, why in down.items()
        ):
            raise RequestRefused(
                "bad-argument",
                f"{request.verb}: 'down' must say of nodes of this network why they do not run, in "
                f"at most {WHY_LENGTH_MAX} characters",
            )
        self._down = down
        return {}

    def _is_node(self, node: str) -> bool:
        return node == self._identity or self._shapes.knows(node)
