"""What operators may ask about transformation: what is done to one link's messages, and why."""

from __future__ import annotations

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.transformation import Transformation
from overlay.access import Right
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Result, Verb, name_argument
from overlay.routing.branches import Branch
from overlay.tree_name import root_of
from yfilter.projection.needs_query import as_xquery
from yfilter.projection.profile_needs import RDF_XML

QUERY_LENGTH_MAX = 256 * 1024  # characters


class TransformationRequests(Part):
    """The verb ``transform.show`` of a broker."""

    def __init__(self, control: ControlPlane, transformation: Transformation) -> None:
        self._control = control
        self._transformation = transformation
        self.verbs = {"transform.show": Verb(Right.OPERATE, self._show)}

    def _show(self, connection: int, request: Request) -> Result:
        """``link``: the neighbour; ``root``, if it is given: of one tree only."""
        link, here = name_argument(request, "link"), self._control.identity
        if link not in self._control.shapes.neighbours():
            raise RequestRefused("unknown-link", f"{link!r} is no neighbour of {here}")
        roots = self._control.open_trees
        if "root" in request.arguments:
            root = name_argument(request, "root")
            roots = {tree for tree in roots if root_of(tree) == root}
            if not roots:
                raise RequestRefused("unknown-root", f"{root!r} is the root broker of no source")
        below = {root: link in self._control.children(root) for root in roots}
        branches = {self._control.branch_of(link, root) for root in roots if below[root]}
        return {
            "broker": here,
            "link": link,
            "transformation": self._control.shapes.link(here, link).transformation.value,
            "branches": [
                self._branch(branch, sorted(roots & branch.roots))
                for branch in sorted(branches, key=lambda branch: branch.name)
            ],
            "sent": self._transformation.sent(link),
        }

    def _branch(self, branch: Branch, roots: list[str]) -> dict[str, object]:
        """``brokers``: those whose profiles are behind the link on these trees; ``query``: of those
        of the document reading, () if there is none."""
        behind = self._transformation.table.behind(roots[0], branch.broker)
        entries = () if behind is None else tuple(behind.entries)
        needs = [need for need in entries if need != RDF_XML]
        tree = self._control.tree(roots[0])
        brokers = [broker for broker in tree.breadth_first() if branch.broker in tree.path(broker)]
        return {
            "roots": roots,
            "brokers": brokers,
            "needs": len(entries),
            "needs_bytes": sum(len(need.text) for need in entries),
            "has_graph_profiles": len(needs) < len(entries),
            "query": as_xquery(needs)[:QUERY_LENGTH_MAX],
        }
