"""MessageTrace: what one broker would do with a message, and why; nothing is sent or counted.

For a link that would be taken, a disjunct of its routing query that holds; for one that would not,
the disjuncts that come closest, with the first part of each that does not hold (link_reasons.py).
What a child is to be asked with is what it would get, cut and with its pieces: ``trace.carried``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from formats import FormatError, MessageRefused, WireFormat
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.requests.dry_runs import DryRuns
from onyx.broker.requests.link_reasons import why_not, why_taken
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.frames import Message, Request
from overlay.link.part import Part
from overlay.link.request_server import (
    RequestRefused,
    Result,
    Verb,
    name_argument,
    number_argument,
)
from overlay.transformation.reflection import WHOLE
from overlay.tree_name import root_of, version_of
from yfilter import ProfileMatch, RouteMatch
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded

PROFILES_SHOWN = 100


class MessageTrace(Part):
    """The verbs ``trace`` and ``trace.carried`` of a broker.

    Both take ``source``, whose message it would be, and ``message`` in ``format`` (text unless
    said), at a child also what it ``reflects`` and its ``pieces``.
    """

    def __init__(self, control: ControlPlane, query: QueryPlane, dry: DryRuns) -> None:
        self._control = control
        self._query = query
        self._dry = dry
        self.verbs = {
            "trace": Verb(Right.OPERATE, self._trace),
            "trace.carried": Verb(Right.OPERATE, self._carried),
        }

    def take_limits(self, limits: Limits) -> None:
        self._dry.published.hold_to(limits.message)

    def _trace(self, connection: int, request: Request) -> Result:
        """Who of the children would get the message and why, and the profiles here that match."""
        message = self._message(request)
        tree = message.root
        with _refusals():
            run = self._dry.run(message)
            text = run.parcel.in_form(WireFormat.TEXT).decode("utf-8", "replace")
        taken = {match.link for match in run.decisions if isinstance(match, RouteMatch)}
        local = sorted(
            match.profile_id for match in run.decisions if isinstance(match, ProfileMatch)
        )
        return {
            "broker": self._control.identity,
            "root": root_of(tree),
            "tree": tree,
            "profiles": local[:PROFILES_SHOWN],
            "profiles_matched": len(local),
            **_said_of_graph(run.parcel.no_graph),
            "links": [
                {
                    "link": child,
                    "taken": child in taken,
                    **run.sizes.get(child, {}),
                    **self._reason(tree, child, child in taken, run.parcel.readings, text),
                }
                for child in self._control.children(tree)
            ],
        }

    def _carried(self, connection: int, request: Request) -> Result:
        """``link``: a child; the answer is the arguments to ask it with, less ``source``."""
        message, link = self._message(request), name_argument(request, "link")
        if link not in self._control.children(message.root):
            raise RequestRefused("unknown-link", f"{link!r} is no child on the tree {message.root}")
        with _refusals():
            carried = self._dry.carried(message, link)
        return {
            "message": carried.payload,
            "format": carried.format,
            "reflects": carried.reflects,
            "pieces": carried.pieces,
        }

    def _message(self, request: Request) -> Message:
        source = name_argument(request, "source")
        entry = self._control.sources.get(source)
        if entry is None:
            raise RequestRefused("unknown-source", f"there is no source {source!r}")
        return Message(
            root=self._newest_tree(entry.root),
            source=source,
            number=0,
            format=name_argument(request, "format", WireFormat.TEXT.value),
            hops=0,
            payload=_bytes_argument(request, "message"),
            reflects=int(number_argument(request, "reflects", WHOLE)),
            pieces=_bytes_argument(request, "pieces", b""),
        )

    def _newest_tree(self, root: str) -> str:
        """The one in use; while it is being changed, the one that is in use next."""
        if root == self._control.identity:
            return self._control.current_tree
        trees = [tree for tree in self._query.table.roots if root_of(tree) == root]
        if not trees:
            raise RequestRefused("unknown-source", f"no tree of {root} is in use here")
        return max(trees, key=version_of)

    def _reason(
        self, tree: str, child: str, taken: bool, message: Readings, text: str
    ) -> Mapping[str, object]:
        wanted = self._query.table.wanted(tree, child)
        if taken:
            return {"disjuncts": len(wanted), "held": why_taken(wanted, message, text)}
        return {"disjuncts": len(wanted), "failed": why_not(wanted, message, text)}


def _said_of_graph(refusal: MessageRefused | None) -> dict[str, object]:
    """Why RDF/XML has no graph, where profiles ask for one."""
    return {} if refusal is None else {"no_graph": str(refusal)}


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (FormatError, MatchLimitExceeded) as refusal:
        raise RequestRefused("message-refused", str(refusal)) from refusal


def _bytes_argument(request: Request, name: str, default: bytes | None = None) -> bytes:
    """No default means required."""
    value = request.arguments.get(name, default)
    if not isinstance(value, bytes):
        raise RequestRefused("bad-argument", f"{request.verb}: {name!r} must be bytes")
    return value
