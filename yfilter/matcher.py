"""Matcher: one message against everything a broker holds; the one entry of the engine.

A local profile goes into the ``Index`` if it can say all of the profile's matching path, which is
made for very many; the others, and all routing queries, go into the operator network (the holistic
plan of section 4.3.1).  ``match`` yields in order of urgency: first the links to forward to, then
the local profiles, those of the index before those of the network.  It is lazy: what the caller
does not ask for is not computed.  Equal profiles are one internal query.

When profiles or routes change while an iterator is unfinished, it goes on with what there was when
``match`` was called: every link of that time is yielded, also one whose route has been removed
since (so that a route on the move loses no message), and every profile that is still registered.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakSet

from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import parse_text
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.engine.match_limits import DEFAULT_MATCH_LIMITS, MatchLimits
from yfilter.engine.matching_plan import decompose
from yfilter.engine.message_run import MessageRun
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.targets import LinkTarget, Query
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.index.index import Index
from yfilter.index.subscriber_runs import SubscriberRuns
from yfilter.language.evaluation import Evaluator
from yfilter.language.matching_path import has_remainder, matching_path
from yfilter.language.nodes import DOCUMENT
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.result import render
from yfilter.registrations import Registrations

__all__ = ["LinkTarget", "Matcher", "ProfileMatch", "RouteMatch", "check_profile"]


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The message is wanted behind ``link``."""

    link: str


class ProfileMatch:
    """The message matches a local profile; equal to another of the same profile and bindings."""

    # PERF: a message may match thousands; a plain class is made faster than a frozen one.
    __slots__ = ("_rendering", "profile_id")

    def __init__(self, profile_id: str, rendering: _Rendering) -> None:
        self.profile_id = profile_id
        self._rendering = rendering

    def __repr__(self) -> str:
        return f"ProfileMatch(profile_id={self.profile_id!r})"

    @property
    def bindings(self) -> tuple[int, ...]:
        """The elements that the path, or the first for clause, selects, in document order.

        Where a profile has a remainder, some of them may come to nothing.  Computed when first
        asked for, once for equal profiles; raises MatchLimitExceeded when that costs more than
        EvaluationLimits allow.
        """
        return self._rendering.bindings()

    def results(self) -> list[bytes]:
        """The messages to deliver; rendered when first asked for, once for equal profiles.

        Raises MatchLimitExceeded when the rendering costs more than EvaluationLimits allow.
        """
        return self._rendering.results()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProfileMatch):
            return NotImplemented
        return self.profile_id == other.profile_id and self.bindings == other.bindings

    def __hash__(self) -> int:
        return hash(self.profile_id)


class Matcher:
    """Add and remove profiles and routes at any time; match messages.

    Without ``index`` all profiles go into the network: slower, the answers are the same.
    """

    def __init__(
        self,
        limits: MatchLimits = DEFAULT_MATCH_LIMITS,
        message_limits: MessageLimits = DEFAULT_LIMITS,
        *,
        index: bool = True,
    ) -> None:
        self._limits = limits
        self._message_limits = message_limits
        self._network = OperatorNetwork()
        self._index = Index(limits.lazy_bytes_max) if index else None
        self._indexed: list[Query | None] = [None]  # by the number in the index, from 1
        self._registrations = Registrations()
        self._runs = SubscriberRuns()  # the registrations of queries in the index
        self._with_remainder = 0
        self._stamp = 0  # counts changes; see targets.Query
        self._unfinished: WeakSet[MessageRun] = WeakSet()
        self._queries: dict[Expression, _Place] = {}
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
        query.subscribers[name] = number = self._registrations.open(name, self._stamp)
        if query.number:
            self._runs.add(query.number, number)
        self._profiles[name] = query
        return name

    def remove(self, profile_id: str) -> None:
        """Take a profile out; KeyError if it is not known."""
        query = self._profiles.pop(profile_id)
        self._stamp += 1
        number = query.subscribers.pop(profile_id)
        if query.number:
            self._runs.remove(query.number, number)
        self._registrations.close(number)
        if not query.subscribers:
            place = self._queries.pop(query.profile.body)
            if place.operator is not None:
                place.operator.forget_query(query)
                self._network.release(place.operator)
            elif self._index is not None:
                self._index.remove(place.number)
                self._indexed[place.number] = None
                self._with_remainder -= query.remainder

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

    def matched_ids(self, message: bytes | ElementStream) -> list[str]:
        """The ids of all local profiles that the message matches, at once; in no order.

        What ``match`` says of them, without an object for each; links are not looked at.  Raises
        what ``match`` and its iterator raise.
        """
        name = self._registrations.name
        return [name(number) for number in self.matched_numbers(message)]

    def matched_numbers(self, message: bytes | ElementStream) -> array[int]:
        """As ``matched_ids``, by number: ``number_of`` a profile id, which ``id_of`` gives back.

        Thousands of ids are thousands of strings, each somewhere in memory; their numbers are one
        column.  The number of a profile that was removed is given again.
        """
        if self._index is None or self._with_remainder or not self._network.is_empty:
            matches = self.match(message)
            names = [match.profile_id for match in matches if isinstance(match, ProfileMatch)]
            return array("i", map(self.number_of, names))
        if isinstance(message, bytes):
            message = parse_text(message, self._message_limits)
        self._counters["messages"] += 1
        return self._index.match_runs(message, self._limits.tuples_max, self._runs)

    def number_of(self, profile_id: str) -> int:
        """The number of a registered profile, from 1; KeyError if it is not known."""
        return self._profiles[profile_id].subscribers[profile_id]

    def id_of(self, number: int) -> str:
        """The profile id of a number that is in use."""
        return self._registrations.name(number)

    def statistics(self) -> dict[str, int]:
        """Sizes of the structure, and counts over all messages."""
        return {
            "profiles": len(self._profiles),
            "queries": len(self._queries),
            "routes": self._route_count,
            **(self._index.statistics() if self._index else {}),
            **self._network.statistics(),
            **self._counters,
        }

    def dump(self) -> str:
        """The NFA and the operator network with their targets, and the index, for people."""
        if self._index is None:
            return self._network.dump()
        queries = [
            f"  #{number}  " + "  ".join(f"-> {name}" for name in query.subscribers)
            for number, query in enumerate(self._indexed)
            if query is not None
        ]
        return "\n".join((self._network.dump(), "", self._index.dump(), *queries))

    def _query(self, profile: Profile) -> Query:
        found = self._queries.get(profile.body)
        if found is not None:
            return found.query
        plan = decompose(matching_path(profile))
        query = Query(profile, has_remainder(profile))
        number = self._index.add(plan) if self._index is not None else None
        if number is None:
            operator = self._network.build_plan(plan)
            operator.annotate_query(query)
            self._queries[profile.body] = _Place(query, operator, 0)
        else:
            if number == len(self._indexed):
                self._indexed.append(None)
            self._indexed[number] = query
            query.number = number
            self._with_remainder += query.remainder
            self._queries[profile.body] = _Place(query, None, number)
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
            run.raise_failure()
            for query in self._of_index(run, stream):
                rendering = _Rendering(query.profile, stream, None, self._limits.evaluation)
                yield from self._subscribers(query, rendering, stamp)
            for query, elements in run.queries():
                bindings = tuple(elements)
                rendering = _Rendering(query.profile, stream, bindings, self._limits.evaluation)
                yield from self._subscribers(query, rendering, stamp)
        finally:
            self._unfinished.discard(run)
            self._counters["operators_executed"] += run.executed
            self._counters["operators_skipped"] += run.skipped
            self._counters["over_limit"] += run.over_limit
            self._counters["tuples"] += run.tuples

    def _of_index(self, run: MessageRun, stream: ElementStream) -> Iterator[Query]:
        """The queries of the index that match, also those added and not removed meanwhile."""
        if self._index is None:
            return
        for number in self._index.match(stream, self._limits.tuples_max - run.tuples):
            query = self._indexed[number]
            if query is not None:
                yield query

    def _subscribers(
        self, query: Query, rendering: _Rendering, stamp: int
    ) -> Iterator[ProfileMatch]:
        since = self._registrations.since
        names = [name for name, number in query.subscribers.items() if since[number] <= stamp]
        if names and query.remainder and not self._has_results(rendering):
            return
        for name in names:
            if name in query.subscribers:  # the caller may have removed it meanwhile
                yield ProfileMatch(name, rendering)

    def _has_results(self, rendering: _Rendering) -> bool:
        try:
            return bool(rendering.results())
        except MatchLimitExceeded:
            self._counters["over_limit"] += 1
            return False


class _Place(NamedTuple):
    """Where a query is: at an operator of the network, or under a number in the index."""

    query: Query
    operator: Operator | None
    number: int


class _Rendering:
    """Bindings and results of one query on one message, each made when first called."""

    __slots__ = ("_bindings", "_limits", "_profile", "_results", "_stream")

    def __init__(
        self,
        profile: Profile,
        stream: ElementStream,
        bindings: tuple[int, ...] | None,
        limits: EvaluationLimits,
    ) -> None:
        self._profile = profile
        self._stream = stream
        self._bindings = bindings
        self._limits = limits
        self._results: list[bytes] | None = None

    def bindings(self) -> tuple[int, ...]:
        if self._bindings is None:
            evaluator = Evaluator(self._stream, self._limits)
            found = evaluator.select(matching_path(self._profile), DOCUMENT, {})
            self._bindings = tuple(node.number for node in found)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            self._results = render(self._profile, self._stream, self.bindings(), self._limits)
        return self._results


def check_profile(text: str) -> Profile:
    """The profile of a text with which everything that a broker does to a profile works.

    Raises ProfileRefused otherwise; to be asked before anything is changed or promised.
    """
    profile = parse_profile(text)
    Matcher(index=False).add(profile)  # the network can say everything, and costs nothing to make
    routing_query(profile)
    return profile
