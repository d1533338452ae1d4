"""The reference engine: each profile alone on each message, in plain Python.

It has the interface of ``yfilter.matcher.Matcher`` and gives the same answers.  There is no index,
no operator, no plan and no state between messages: the interpreter evaluates a profile from its
beginning (``interpreted_result.py``), pyoxigraph answers a graph profile as standard
SPARQL, and a routing query is a condition like any other.  The tests hold the engine to this one.

Three things differ, and none of them is an answer about one message:

- a link gets whole messages: nothing is cut for it, and no piece is computed;
- ``MatchLimits.visits_max`` bounds the nodes that all evaluations of one message look at, and an
  index looks at far fewer;
- nothing ends pyoxigraph before its first solution.  Where profiles have slices of time, a graph
  profile that could take long is ``too-much-time`` at once, and so another process answers it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from msgspec.structs import replace

from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.text import to_text
from tests.oracle.evaluation import MessageEvaluator
from tests.oracle.interpreted_result import Asked, interpreted, interpreted_by
from tests.oracle.reference_answers import ReferenceGraph
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import (
    Derive,
    Message,
    Readings,
    graph_meant,
    read,
    reading_of,
)
from yfilter.engine.targets import LinkTarget, Transforming
from yfilter.engine.work import EngineStatistics, QueryCosts
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.explain import explain
from yfilter.explanation import Explanation
from yfilter.graph.query_ast import GraphQuery, ResultSyntax
from yfilter.graph.solutions import message_text, published_syntax
from yfilter.language.budget import too_much_time
from yfilter.language.failures import first_told
from yfilter.language.function_library import falls_back
from yfilter.language.matching_path import delivers_message, matching_part, matching_path
from yfilter.language.nodes import DOCUMENT, DynamicError, Node, NodeType
from yfilter.language.profile_limits import DEFAULT_MATCH_LIMITS, EvaluationLimits, MatchLimits
from yfilter.language.query_ast import Expression, ForClause, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matches import (
    PAUSE,
    Delivered,
    MakesNow,
    Match,
    ProfileMatch,
    RouteMatch,
    TransformationMatch,
)
from yfilter.operators.evaluation import Evaluation
from yfilter.plan_graph import NODES_MAX, PlanGraph
from yfilter.projection.needs import Need
from yfilter.projection.parts import with_parts
from yfilter.system_clock import system_time

PAUSE_QUERIES = 16  # asked between two pauses
DUMP_NODES_MAX = 2_000
SERVED_BY = "the reference engine, which evaluates each profile alone"


@dataclass(eq=False)
class _Query:
    """A profile, and the numbers of the registrations of it and of equal ones."""

    number: int
    text: str
    profile: Profile
    registrations: dict[int, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        body = self.profile.body
        self.graph = body if isinstance(body, GraphQuery) else None
        self.part = matching_part(self.profile)
        self.reading = min(reading_of(path.steps) for path in self.part.paths)
        self.delivers_message = delivers_message(body)
        # Its results decide whether it matches, and no part of the profile alone.
        self.has_remainder = self.part.has_remainder and not self.part.is_verified
        self.is_message = self.delivers_message and not self.has_remainder


@dataclass(slots=True)
class _Registration:
    """``since``: the count of changes when it was made."""

    name: str
    query: _Query
    since: int


class _Asked:
    """One message, and the answers of queries about it."""

    def __init__(self, message: Readings, limits: MatchLimits) -> None:
        self.message = message
        self._limits = limits.evaluation
        self._visits_left = limits.visits_max
        self._graph: ReferenceGraph | None = None
        self._whole: bytes | None = None

    def begin(self) -> None:
        """Before each query; MatchLimitExceeded where all together look at too much."""
        self._visits_left -= 1
        if self._visits_left < 0:
            raise MatchLimitExceeded(
                "too-many-visits", "profiles and routing queries look at too much of this message"
            )

    @contextmanager
    def _evaluator(self, stream: ElementStream) -> Iterator[MessageEvaluator]:
        evaluator = MessageEvaluator(stream, self._limits)
        try:
            yield evaluator
        finally:
            self._visits_left -= evaluator.visits

    def whole_message(self) -> bytes:
        """The message as it is delivered."""
        if self._whole is None:
            document = self.message.document
            if document is None:
                self._whole = message_text(self.message.carried, ResultSyntax.AS_PUBLISHED)
            else:
                self._whole = to_text(document)
        return self._whole

    def media_type(self, query: _Query | None = None) -> str:
        """Of the results of a query, or of the message; "": XML."""
        if query is not None and query.graph is not None and not query.delivers_message:
            return query.graph.results.value
        return "" if self.message.document is not None else published_syntax(self.message.carried)

    def results(self, query: _Query) -> list[bytes]:
        """The results of a query: none where it does not match.  MatchLimitExceeded."""
        stream = self.message.of(query.reading)
        if stream is None:
            return []
        if query.graph is None:
            profile = with_parts(query.profile)[0] if stream.pieces else query.profile
            with self._evaluator(stream) as evaluator:
                try:
                    return interpreted_by(evaluator, Asked(profile), (), self.whole_message)
                except MatchLimitExceeded as exceeded:
                    return first_told(profile, exceeded, self._limits)
        if query.delivers_message:
            holds = self._graph_of(stream).holds(query.graph)
            return [self.whole_message()] if holds else []
        return self._graph_of(stream).results(query.graph)

    def is_found(self, query: _Query) -> bool:
        """Whether the matching part of a query holds, for one whose results are too much."""
        stream = self.message.of(query.reading)
        if stream is None:
            return False
        verified = query.part.verified
        try:
            if query.graph is not None:
                return self._graph_of(stream).holds(query.graph)
            with self._evaluator(stream) as evaluator:
                return (
                    not query.has_remainder
                    and any(evaluator.holds(path, DOCUMENT, {}) for path in query.part.paths)
                    and (verified is None or evaluator.holds(verified, DOCUMENT, {}))
                )
        except MatchLimitExceeded:
            return False

    def bindings(self, query: _Query) -> tuple[int, ...]:
        """The elements of which the results are made; see ``ProfileMatch.bindings``."""
        stream = self.message.in_(query.reading)
        if not query.part.bound:
            return selected(query.profile, stream)
        evaluator = MessageEvaluator(stream, self._limits)
        found: set[int] = set()
        for path in query.part.bound:
            try:
                nodes = evaluator.select(path, DOCUMENT, {})
            except DynamicError:
                continue
            found.update(node.number for node in nodes if node.type is NodeType.ELEMENT)
        return tuple(sorted(found))

    def holds(self, conjunction: Conjunction) -> bool:
        """Whether all paths of a disjunct are found; one that costs too much is taken to be."""
        stream = self.message.of(conjunction.reading)
        if stream is None:
            return False
        try:
            with self._evaluator(stream) as evaluator:
                return all(
                    evaluator.holds(path.expression, DOCUMENT, {}) for path in conjunction.paths
                )
        except MatchLimitExceeded:
            return True

    def _graph_of(self, stream: ElementStream) -> ReferenceGraph:
        if self._graph is None:
            self._graph = ReferenceGraph(stream, self._limits)
        return self._graph


class _Rendering:
    """Bindings and results of a query that matched a message, each made when first asked for."""

    def __init__(self, asked: _Asked, query: _Query, results: list[bytes] | None) -> None:
        self._asked = asked
        self._query = query
        self._results = results
        self._bindings: tuple[int, ...] | None = None

    def bindings(self) -> tuple[int, ...]:
        if self._bindings is None:
            self._bindings = self._asked.bindings(self._query)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            self._results = self._asked.results(self._query)
        return self._results


class _Deciders:
    """For explanations: the interpreter decides everything, and pyoxigraph of graphs."""

    finder = "interpreter"

    def decider(self, condition: Expression) -> str:
        return "elementpath" if falls_back(condition) else "interpreter"

    verifier = decider

    def results(
        self, profile: Profile, stream: ElementStream, _: list[int], limits: EvaluationLimits
    ) -> int:
        asked = _Asked(Readings(stream), MatchLimits(evaluation=limits))
        return len(interpreted(Asked(profile), stream, (), limits, asked.whole_message))

    def evaluate_on(self, stream: ElementStream, limits: EvaluationLimits) -> MessageEvaluator:
        return MessageEvaluator(stream, limits)

    def look_at(self, stream: ElementStream, limits: EvaluationLimits) -> ReferenceGraph:
        return ReferenceGraph(stream, limits)


class ReferenceMatcher:
    """Add and remove profiles and routes at any time; match messages."""

    def __init__(
        self,
        limits: MatchLimits = DEFAULT_MATCH_LIMITS,
        message_limits: MessageLimits = DEFAULT_LIMITS,
        derive: Derive = graph_meant,
        clock: Callable[[], float] = system_time,
    ) -> None:
        """``derive``: the graph of an RDF/XML document, ``clock``: as of ``Matcher``."""
        self.limits = limits
        self._read = partial(read, limits=message_limits, derive=derive, clock=clock)
        self._changes = 0
        self._names = count(1)
        self._numbers = count(1)
        self._free: list[int] = []
        self._registrations: dict[int, _Registration] = {}
        self._by_name: dict[str, int] = {}
        self._queries: dict[str, _Query] = {}  # by their texts
        self._query_numbers = count(1)
        self._routes: dict[Conjunction, dict[LinkTarget, None]] = {}
        self._route_count = 0
        self._needs: dict[LinkTarget, dict[Need, int]] = {}
        self._modes: dict[str, Transforming] = {}
        self._costs = QueryCosts(limits.evaluation.late_messages)
        self._counted = EngineStatistics()

    # -- profiles

    def add(self, profile: str | Profile, profile_id: str | None = None) -> str:
        """Register a profile; gives its id, "p1", "p2", ... unless one is named.

        Raises ProfileRefused, and ValueError for an id that is in use.
        """
        if profile_id is not None and profile_id in self._by_name:
            raise ValueError(f"the profile id {profile_id!r} is in use")
        if len(self._registrations) >= self.limits.profiles_max:
            raise ProfileRefused(
                "too-many-profiles", f"{self.limits.profiles_max} profiles are registered already"
            )
        parsed = parse_profile(profile) if isinstance(profile, str) else profile
        name = self._new_id() if profile_id is None else profile_id
        query = self._query(parsed)
        self._queries[query.text] = query
        self._changes += 1
        number = self._free.pop() if self._free else next(self._numbers)
        self._registrations[number] = _Registration(name, query, self._changes)
        self._by_name[name] = number
        query.registrations[number] = None
        return name

    def remove(self, profile_id: str) -> None:
        """Take a profile out; KeyError if it is not known."""
        number = self._by_name.pop(profile_id)
        query = self._registrations.pop(number).query
        self._free.append(number)
        self._changes += 1
        del query.registrations[number]
        if not query.registrations:
            del self._queries[query.text]
            self._costs.forget(query.number)

    @property
    def changes(self) -> int:
        """How often profiles have been added and removed."""
        return self._changes

    def number_of(self, profile_id: str) -> int:
        """The number of a registered profile, from 1; KeyError if it is not known."""
        return self._by_name[profile_id]

    def id_of(self, number: int) -> str:
        """The profile id of a number that is in use."""
        return self._registrations[number].name

    def query_of(self, profile_id: str) -> int:
        """A number that equal profiles share; KeyError if the id is not known."""
        return self._registrations[self._by_name[profile_id]].query.number

    # -- links

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already.

        Raises ProfileRefused beyond ``routes_max``.
        """
        if target in self._routes.get(conjunction, ()):
            raise ValueError(f"{target} has this conjunction already: {conjunction}")
        if self._route_count >= self.limits.routes_max:
            raise ProfileRefused(
                "too-many-routes", f"{self.limits.routes_max} routes are registered already"
            )
        # A match that is not finished goes on with the table as it was.
        self._routes = {**self._routes}
        self._routes[conjunction] = {**self._routes.get(conjunction, {}), target: None}
        self._route_count += 1

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        targets = dict(self._routes[conjunction])
        del targets[target]
        self._routes = {**self._routes, conjunction: targets}
        if not targets:
            del self._routes[conjunction]
        self._route_count -= 1

    def open_needs(self, target: LinkTarget) -> None:
        """The needs of a link are known from now on; its messages are whole all the same."""
        self._needs.setdefault(target, {})

    def close_needs(self, target: LinkTarget) -> None:
        """A link is no longer transformed; KeyError if its needs are not open."""
        del self._needs[target]

    def add_need(self, need: Need, target: LinkTarget) -> None:
        """One taker more behind a link, whose needs are opened if they are not open."""
        needs = self._needs.setdefault(target, {})
        needs[need] = needs.get(need, 0) + 1

    def remove_need(self, need: Need, target: LinkTarget) -> None:
        """Undo one ``add_need`` of this pair; KeyError if it is not there."""
        needs = self._needs[target]
        needs[need] -= 1
        if not needs[need]:
            del needs[need]

    def set_transforming(self, link: str, transforming: Transforming) -> None:
        """The mode of a link, which changes only whether it gets a TransformationMatch."""
        self._modes[link] = transforming

    def transformed(
        self, message: Message, root: str, links: Sequence[str]
    ) -> dict[str, ElementStream]:
        """The message itself, for those of the links of a tree whose needs are open."""
        open_links = {target.link for target in self._needs if target.is_on(root)}
        return {
            link: self._read(message).carried
            for link in links
            if link in open_links and self._modes.get(link) is not Transforming.NOT
        }

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    # -- messages

    def match(self, message: Message, root: str = "") -> Iterator[Match]:
        """The matches of a message in order of need, lazily, as of ``Matcher.match``."""
        asked, links = self._begin(message, root)
        found = self._matched(asked, self._candidates())

        def matches() -> Iterator[Match]:
            yield from links
            yield from found

        return matches()

    def matched_links(self, message: Message) -> Iterator[str]:
        """The links whose routing query holds, lazily."""
        _, links = self._begin(message, "")
        return (found.link for found in links if isinstance(found, RouteMatch))

    def match_in_stages(
        self, message: Message, root: str = ""
    ) -> tuple[list[Match], Iterator[Match]]:
        """``match`` in two: the links at once, and the local profiles when they are asked for."""
        asked, links = self._begin(message, root)
        return list(links), self._matched(asked, self._candidates())

    def deliver_in_stages(
        self, message: Message, root: str = "", makes_now: MakesNow | None = None
    ) -> tuple[list[Match], Iterator[Delivered]]:
        """``match_in_stages`` with finished results for the local profiles, but for those for which
        ``makes_now`` is False.  Between profiles are pauses: PAUSE."""
        asked, links = self._begin(message, root)
        urgent = list(links)
        return urgent, self._delivered(asked, self._candidates(), makes_now, with_pauses=True)

    def deliver(self, message: Message) -> Iterator[Delivered]:
        """The finished results of local profiles; links are not looked at."""
        asked = _Asked(self._read(message), self.limits)
        self._counted.messages += 1
        self._counted.local_not_asked += 1
        return self._delivered(asked, self._candidates(), None, with_pauses=False)

    def deliver_to(self, message: Message, profile_ids: Iterable[str]) -> Iterator[Delivered]:
        """The results of some registered profiles, of a message that is known to match them."""
        asked = _Asked(self._read(message), self.limits)
        wanted: dict[_Query, array[int]] = {}
        for name in profile_ids:
            number = self._by_name[name]
            query = self._registrations[number].query
            wanted.setdefault(query, array("i")).append(number)
        return (self._made(asked, query, numbers) for query, numbers in wanted.items())

    def matched_ids(self, message: Message) -> list[str]:
        """The ids of all local profiles that the message matches, in no order."""
        return [self._registrations[number].name for number in self.matched_numbers(message)]

    def matched_numbers(self, message: Message) -> array[int]:
        """As ``matched_ids``, by number."""
        asked = _Asked(self._read(message), self.limits)
        self._counted.messages += 1
        found = array("i")
        for query in list(self._queries.values()):
            if self._results_if_matched(asked, query) is not _NO_MATCH:
                found.extend(query.registrations)
        self._counted.matched_profile += len(found)
        return found

    def take_costs(self, least: float) -> list[tuple[list[str], float]]:
        """(the ids of equal profiles, seconds) of those that have taken at least so many seconds of
        processor time since they were told here last."""
        names = {
            query.number: [self._registrations[number].name for number in query.registrations]
            for query in self._queries.values()
        }
        taken = self._costs.take(least).items()
        return [(names[query], seconds) for query, seconds in taken if query in names]

    # -- for people

    def explain(self, profile: str | Profile, message: Message | None = None) -> Explanation:
        """How a profile is served, and which of its parts hold on a message; a registered one by
        its id, or any by its text."""
        if isinstance(profile, str):
            number = self._by_name.get(profile)
            registered = None if number is None else self._registrations[number].query.profile
            profile = registered or parse_profile(profile)
        readings = None if message is None else self._read(message)
        return explain(profile, SERVED_BY, readings, self.limits.evaluation, _Deciders())

    def statistics(self) -> EngineStatistics:
        """As they are now; of an index there are none."""
        return replace(
            self._counted,
            profiles=len(self._registrations),
            queries=len(self._queries),
            profiles_bytes=sum(len(query.text) for query in self._queries.values()),
            routes=self._route_count,
            route_queries=len(self._routes),
            links_open=len(self._needs),
            link_needs=sum(map(len, self._needs.values())),
        )

    def dump(self, nodes_max: int = DUMP_NODES_MAX) -> str:
        """The profiles and routing queries for people, at most about so many of each."""
        return "\n\n".join(
            "\n".join((title, *lines[:nodes_max], *_more(len(lines) - nodes_max)))
            for title, lines in (
                ("profiles", [f"  {text}  -> {names}" for text, names in self._served()]),
                ("routing queries", [f"  {text}  -> {names}" for text, names in self._routed()]),
            )
            if lines
        )

    def dump_graphviz(self, nodes_max: int = NODES_MAX) -> str:
        """The same as a graph, in DOT."""
        graph = PlanGraph(nodes_max)
        for title, pairs in (("profiles", self._served()), ("routes", self._routed())):
            graph.group(title)
            for text, names in pairs:
                graph.node((title, text), text, "operator")
                graph.node((title, text, names), names, "target")
                graph.edge((title, text), (title, text, names))
        return graph.dot()

    # -- helpers

    def _query(self, profile: Profile) -> _Query:
        """The query of a profile: the one that is there for an equal profile, or a new one."""
        text = unparse(profile) if profile.parts is None else profile.parts.text()
        return self._queries.get(text) or _Query(next(self._query_numbers), text, profile)

    def _new_id(self) -> str:
        return next(name for name in map("p{}".format, self._names) if name not in self._by_name)

    def _begin(self, message: Message, root: str) -> tuple[_Asked, Iterator[Match]]:
        asked = _Asked(self._read(message), self.limits)
        self._counted.messages += 1
        self._counted.local_not_asked += 1
        open_targets = [target for target in self._needs if target.is_on(root)]
        return asked, self._urgent(asked, root, self._routes, open_targets)

    def _urgent(
        self,
        asked: _Asked,
        root: str,
        routes: dict[Conjunction, dict[LinkTarget, None]],
        open_targets: list[LinkTarget],
    ) -> Iterator[Match]:
        reached: dict[str, None] = {}
        for conjunction, targets in routes.items():
            links = {target.link for target in targets if target.is_on(root)}
            if links <= reached.keys():
                continue
            asked.begin()
            if not asked.holds(conjunction):
                continue
            for link in sorted(links - reached.keys()):
                reached[link] = None
                self._counted.matched_route += 1
                yield RouteMatch(link)
        transformed = {target.link for target in open_targets}
        for link in reached:
            if link in transformed and self._modes.get(link) is not Transforming.NOT:
                self._counted.matched_transformation += 1
                yield TransformationMatch(link, asked.message.carried)

    def _candidates(self) -> list[tuple[_Query, array[int]]]:
        """All queries with their registrations of this moment."""
        return [(query, array("i", query.registrations)) for query in list(self._queries.values())]

    def _open(self, query: _Query, numbers: array[int], stamp: int) -> array[int]:
        """The registrations that are still there."""
        known = self._registrations
        return array(
            "i",
            (
                number
                for number in numbers
                if number in known and known[number].query is query and known[number].since <= stamp
            ),
        )

    def _matched(
        self, asked: _Asked, candidates: list[tuple[_Query, array[int]]]
    ) -> Iterator[ProfileMatch]:
        stamp = self._changes

        def matches() -> Iterator[ProfileMatch]:
            self._counted.local_not_asked -= 1
            for query, numbers in candidates:
                if not self._open(query, numbers, stamp):
                    continue
                results = self._results_if_matched(asked, query)
                if results is _NO_MATCH:
                    continue
                rendering = _Rendering(asked, query, results)
                for number in numbers:
                    if self._open(query, array("i", [number]), stamp):
                        self._counted.matched_profile += 1
                        yield ProfileMatch(self._registrations[number].name, rendering)

        return matches()

    def _delivered(
        self,
        asked: _Asked,
        candidates: list[tuple[_Query, array[int]]],
        makes_now: MakesNow | None,
        *,
        with_pauses: bool,
    ) -> Iterator[Delivered]:
        """Of queries whose result is not the message one each, then one of all others."""
        stamp = self._changes

        def deliveries() -> Iterator[Delivered]:
            self._counted.local_not_asked -= 1
            made: list[tuple[_Query, Delivered]] = []
            for place, (query, found) in enumerate(candidates, 1):
                if with_pauses and place % PAUSE_QUERIES == 0:
                    yield PAUSE
                if numbers := self._open(query, found, stamp):
                    made.append((query, self._made(asked, query, numbers)))
            whole = array("i")
            for query, one in made:
                numbers = self._open(query, one.numbers, stamp)
                if not numbers:
                    continue  # removed meanwhile
                if one.exceeded is not None:
                    yield one._replace(numbers=numbers)
                elif one.results and query.is_message:
                    whole.extend(numbers)
                elif one.results:
                    yield self._given(
                        one._replace(numbers=numbers), makes_now, query.has_remainder, False
                    )
            if whole:
                message = Delivered(whole, [asked.whole_message()], None, True, asked.media_type())
                yield self._given(message, makes_now, False, True)

        return deliveries()

    def _given(
        self, made: Delivered, makes_now: MakesNow | None, remains: bool, is_whole: bool
    ) -> Delivered:
        """The results, or that there are some."""
        self._counted.matched_profile += len(made.numbers)
        if makes_now is None or makes_now(made.numbers, remains, is_whole):
            return made
        return Delivered(made.numbers, [], None, is_made=False)

    def _made(self, asked: _Asked, query: _Query, numbers: array[int]) -> Delivered:
        """The results of a query, or the limit that leaves it without."""
        asked.begin()
        if self._costs.is_late(query.number):
            return Delivered(numbers, [], too_much_time(self.limits.evaluation))
        try:
            results = self._timed(query, lambda: asked.results(query))
        except MatchLimitExceeded as exceeded:
            if self.limits.evaluation.is_final(exceeded.code):
                self._counted.over_limit += 1
            else:
                self._costs.note_late(query.number)
            return Delivered(numbers, exceeded.first, exceeded)
        return Delivered(numbers, results, media_type=asked.media_type(query) if results else "")

    def _results_if_matched(self, asked: _Asked, query: _Query) -> list[bytes] | None:
        """The results of a query that matches, None where they are too much and are to be asked
        for; _NO_MATCH of one that does not match."""
        asked.begin()
        try:
            return self._timed(query, lambda: asked.results(query)) or _NO_MATCH
        except MatchLimitExceeded:
            if asked.is_found(query):
                return None
            self._counted.over_limit += 1
            return _NO_MATCH

    def _timed(self, query: _Query, results: Callable[[], list[bytes]]) -> list[bytes]:
        clock = self.limits.evaluation.clock
        before = clock()
        try:
            return results()
        finally:
            self._costs.add(query.number, clock() - before)

    def _served(self) -> list[tuple[str, str]]:
        """Queries, and the ids of the profiles that are one."""
        return [
            (query.text, ", ".join(self._registrations[one].name for one in query.registrations))
            for query in self._queries.values()
        ]

    def _routed(self) -> list[tuple[str, str]]:
        """Routing queries, and their links."""
        return [
            (str(conjunction), ", ".join(name for target in targets for name in target.names()))
            for conjunction, targets in self._routes.items()
        ]


_NO_MATCH: list[bytes] = []


def _more(count_: int) -> list[str]:
    return [f"… and {count_} more"] if count_ > 0 else []


def selected(profile: Profile, stream: ElementStream) -> tuple[int, ...]:
    """The elements that a path of any kind, or the first ``for`` clause, selects, or in which it
    does so; of a profile without either the elements that its matching path selects."""
    body, flwor = profile.body, profile.flwor
    source: Expression = matching_path(profile)
    if body.is_path():
        source = body
    elif flwor is not None and flwor.clauses and isinstance(flwor.clauses[0], ForClause):
        source = flwor.clauses[0].path
    evaluation = Evaluation(stream)
    try:
        nodes = [item for item in evaluation.value(source) if isinstance(item, Node)]
    except DynamicError:
        return ()
    elements = {
        evaluation.trees.parent(node) or node
        if node.type in (NodeType.ATTRIBUTE, NodeType.CONTENT)
        else node
        for node in nodes
        if node.tree == DOCUMENT.tree
    }
    return tuple(sorted({max(element.number, 0) for element in elements}))
