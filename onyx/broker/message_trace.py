"""MessageTrace: what one broker would do with a message, and why; nothing is sent or counted.

For a link that would be taken, a disjunct of its routing query that holds; for one that would not,
the disjuncts that come closest, with the first part of each that does not hold (link_reasons.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from formats import ElementStream, FormatError
from onyx.broker.control_plane import ControlPlane
from onyx.broker.data_plane import DataPlane
from onyx.broker.link_reasons import why_not, why_taken
from onyx.broker.query_plane import QueryPlane
from overlay.link.frames import Request
from overlay.link.request_server import RequestRefused, Result, name_argument
from overlay.network_shape import root_of, version_of
from yfilter import ProfileMatch, RouteMatch
from yfilter.errors import MatchLimitExceeded

PROFILES_SHOWN = 100


class MessageTrace:
    """The verb ``trace`` of a broker."""

    def __init__(self, control: ControlPlane, query: QueryPlane, data: DataPlane) -> None:
        self._control = control
        self._query = query
        self._data = data

    def handle(self, connection: int, request: Request) -> Result:
        """``source``: whose message it would be; ``message``: its text, as bytes."""
        source = name_argument(request, "source")
        message = request.arguments.get("message")
        if not isinstance(message, bytes):
            raise RequestRefused("bad-argument", "'message' must be bytes")
        entry = self._control.sources.get(source)
        if entry is None:
            raise RequestRefused("unknown-source", f"there is no source {source!r}")
        tree = self._newest_tree(entry.root)
        try:
            run = self._data.dry_run(tree, source, message)
        except (FormatError, MatchLimitExceeded) as refusal:
            raise RequestRefused("message-refused", str(refusal)) from refusal
        taken = {match.link for match in run.decisions if isinstance(match, RouteMatch)}
        local = sorted(
            match.profile_id for match in run.decisions if isinstance(match, ProfileMatch)
        )
        return {
            "broker": self._control.identity,
            "root": entry.root,
            "tree": tree,
            "profiles": local[:PROFILES_SHOWN],
            "profiles_matched": len(local),
            "links": [
                {
                    "link": child,
                    "taken": child in taken,
                    **run.sizes.get(child, {}),
                    **self._reason(tree, child, child in taken, run.stream, message),
                }
                for child in self._control.children(tree)
            ],
        }

    def _newest_tree(self, root: str) -> str:
        """The one in use; while it is being changed, the one that is in use next."""
        if root == self._control.identity:
            return self._control.current_tree
        trees = [tree for tree in self._query.table.roots if root_of(tree) == root]
        if not trees:
            raise RequestRefused("unknown-source", f"no tree of {root} is in use here")
        return max(trees, key=version_of)

    def _reason(
        self, tree: str, child: str, taken: bool, stream: ElementStream, message: bytes
    ) -> Mapping[str, object]:
        wanted = self._query.table.wanted(tree, child)
        text = message.decode("utf-8", "replace")
        if taken:
            return {"disjuncts": len(wanted), "held": why_taken(wanted, stream, text)}
        return {"disjuncts": len(wanted), "failed": why_not(wanted, stream, text)}
