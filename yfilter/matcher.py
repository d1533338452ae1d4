"""Matcher: one message against everything a broker holds; the one entry of the engine.

Local profiles and routing queries go into one operator network (the holistic plan of section
4.3.1); ``match`` yields in order of urgency: first the links to forward to, then the local
profiles, each as soon as it is known.  It is lazy: what the caller does not ask for is not
computed.

When profiles or routes change while an iterator is unfinished, it goes on with what there was when
``match`` was called: every link of that time is yielded, also one whose route has been removed
since (so that a route on the move loses no message), and every profile that is still registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from weakref import WeakSet

from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.match_limits import DEFAULT_MATCH_LIMITS, MatchLimits
from yfilter.engine.matching_plan import decompose
from yfilter.engine.message_run import MessageRun
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.targets import LinkTarget, Query
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.matching_path import has_remainder, matching_path
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.result import render

__all__ = ["LinkTarget", "Matcher", "ProfileMatch", "RouteMatch"]


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The message is wanted behind ``link``."""

    link: str


@dataclass(frozen=True, slots=True)
class ProfileMatch:
    """The message matches a local profile.

    ``bindings``: the elements that the path, or the first for clause, selects, in document order
    (where a profile has a remainder, some of them may come to nothing).
    """

    profile_id: str
    bindings: tuple[int, ...]
    _render: Callable[[], list[bytes]] = field(repr=False, compare=False)

    def results(self) -> list[bytes]:
        """The messages to deliver; rendered when first asked for, once for equal profiles.

        Raises MatchLimitExceeded when the rendering costs more than EvaluationLimits allow.
        """
        return self._render()


class Matcher:
    """Add and remove profiles and routes at any time; match messages."""

    def __init__(
        self,
        limits: MatchLimits = DEFAULT_MATCH_LIMITS,
        message_limits: MessageLimits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._message_limits = message_limits
        self._network = OperatorNetwork()
        self._stamp = 0  # counts changes; see targets.Query
        self._unfinished: WeakSet[MessageRun] = WeakSet()
        self._queries: dict[Expression, tuple[Query, Operator]] = {}
        self._profiles: dict[str, Query] = {}
        self._routes: dict[Conjunction, tuple[Operator, dict[LinkTarget, None]]] = {}
        self._route_count = 0
        self._generated = 0
        self._counters = dict.fromkeys(
            ("messages", "operators_executed", "operators_skipped", "over_limit", "tuples"), 0
        )

    def add(self, profile: str | Profile, profile_id: str | None = None) -> str:
        """Register a profile; gives its id, "p1", "p2", ... unless one is named.

        Raises ProfileRefused, and ValueError for an id that is in use.
        """
        if profile_id is not None and profile_id in self._profiles:
            raise ValueError(f"the profile id {profile_id!r} is in use")
        if len(self._profiles) >= self._limits.profiles_max:
            raise ProfileRefused(
                "too-many-profiles", f"{self._limits.profiles_max} profiles are registered already"
            )
        parsed = parse_profile(profile) if isinstance(profile, str) else profile
        query = self._query(parsed)
        self._stamp += 1
        name = self._new_id() if profile_id is None else profile_id
        query.subscribers[name] = self._stamp
        self._profiles[name] = query
        return name

    def remove(self, profile_id: str) -> None:
        """Take a profile out; KeyError if it is not known."""
        query = self._profiles.pop(profile_id)
        self._stamp += 1
        del query.subscribers[profile_id]
        if not query.subscribers:
            _, operator = self._queries.pop(query.profile.body)
            operator.forget_query(query)
            self._network.release(operator)

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already."""
        operator, targets = self._routes.get(conjunction, (None, {}))
        if target in targets:
            raise ValueError(f"{target} has this conjunction already: {conjunction}")
        if self._route_count >= self._limits.routes_max:
            raise ProfileRefused(
                "too-many-routes", f"{self._limits.routes_max} routes are registered already"
            )
        self._settle_links()
        if operator is None:
            operator = self._network.build_conjunction(conjunction)
            self._routes[conjunction] = (operator, targets)
        targets[target] = None
        operator.annotate_link(target)
        self._route_count += 1

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        operator, targets = self._routes[conjunction]
        self._settle_links()
        del targets[target]
        operator.forget_link(target)
        self._route_count -= 1
        if not targets:
            del self._routes[conjunction]
            self._network.release(operator)

    def match(
        self, message: bytes | ElementStream, root: str = ""
    ) -> Iterator[RouteMatch | ProfileMatch]:
        """What the message matches: links of the tree of ``root``, then local profiles.

        Lazy; a message as text is parsed at once.  Raises MessageRefused for a text that is not
        XML or beyond the message limits, and MatchLimitExceeded ("too-many-tuples") from the
        iterator.  A local profile whose own conditions exceed EvaluationLimits on the message
        does not match it; statistics count that as ``over_limit``.
        """
        if isinstance(message, bytes):
            message = parse_text(message, self._message_limits)
        self._counters["messages"] += 1
        run = MessageRun(self._network, message, root, self._limits)
        self._unfinished.add(run)
        return self._finish(run, message, self._stamp)

    def statistics(self) -> dict[str, int]:
        """Sizes of the structure, and counts over all messages."""
        return {
            "profiles": len(self._profiles),
            "queries": len(self._queries),
            "routes": self._route_count,
            **self._network.statistics(),
            **self._counters,
        }

    def dump(self) -> str:
        """The NFA and the operator network with their targets, for people."""
        return self._network.dump()

    def _query(self, profile: Profile) -> Query:
        found = self._queries.get(profile.body)
        if found is not None:
            return found[0]
        operator = self._network.build_plan(decompose(matching_path(profile)))
        query = Query(profile, has_remainder(profile))
        operator.annotate_query(query)
        self._queries[profile.body] = (query, operator)
        return query

    def _new_id(self) -> str:
        while True:
            self._generated += 1
            name = f"p{self._generated}"
            if name not in self._profiles:
                return name

    def _settle_links(self) -> None:
        """Before a route changes: the links of every match under way, by the routes as they are."""
        for run in list(self._unfinished):
            run.settle_links()

    def _finish(
        self, run: MessageRun, stream: ElementStream, stamp: int
    ) -> Iterator[RouteMatch | ProfileMatch]:
        try:
            for link in run.links():
                yield RouteMatch(link)
            for query, elements in run.queries():
                yield from self._subscribers(query, stream, tuple(elements), stamp)
        finally:
            self._unfinished.discard(run)
            self._counters["operators_executed"] += run.executed
            self._counters["operators_skipped"] += run.skipped
            self._counters["over_limit"] += run.over_limit
            self._counters["tuples"] += run.tuples

    def _subscribers(
        self, query: Query, stream: ElementStream, bindings: tuple[int, ...], stamp: int
    ) -> Iterator[ProfileMatch]:
        rendering = _Rendering(query.profile, stream, bindings, self._limits.evaluation)
        names = [name for name, added in query.subscribers.items() if added <= stamp]
        if names and query.remainder:
            try:
                if not rendering():
                    return
            except MatchLimitExceeded:
                self._counters["over_limit"] += 1
                return
        for name in names:
            if name in query.subscribers:  # the caller may have removed it meanwhile
                yield ProfileMatch(name, bindings, rendering)


class _Rendering:
    """The results of one query on one message, made when first called."""

    __slots__ = ("_bindings", "_limits", "_profile", "_results", "_stream")

    def __init__(
        self,
        profile: Profile,
        stream: ElementStream,
        bindings: tuple[int, ...],
        limits: EvaluationLimits,
    ) -> None:
        self._profile = profile
        self._stream = stream
        self._bindings = bindings
        self._limits = limits
        self._results: list[bytes] | None = None

    def __call__(self) -> list[bytes]:
        if self._results is None:
            self._results = render(self._profile, self._stream, self._bindings, self._limits)
        return self._results
