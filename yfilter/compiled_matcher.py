"""Matcher: one message against everything a broker holds; the one entry of the engine.

Routing queries, the needs of links and local profiles are one holistic plan (section 4.3.1).
Queries stand in the ``Index``: an automaton over the structure and the selective comparisons of all
of them, and behind it operators that verify the rest.  ``match`` yields in order of need: first the
links to forward to, then what is left of the message for each of them, then the local profiles.  It
is lazy: what the caller does not ask for is not computed.  Equal profiles are one internal query.

When profiles or routes change while an iterator is unfinished, it goes on with what there was when
``match`` was called: every link of that time is yielded, also one whose route has been removed
since (so that a route on the move loses no message), and every profile that is still registered.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple, TypeAlias
from weakref import WeakSet

from msgspec.structs import replace

from formats.element_stream import ElementStream
from formats.limits import DEFAULT_LIMITS, MessageLimits
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import (
    GRAPH_ROOT,
    Derive,
    Message,
    Reading,
    Readings,
    graph_meant,
    read,
)
from yfilter.engine.targets import LinkTarget, Transforming
from yfilter.engine.work import EngineStatistics, QueryCosts
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.explanation import Explanation
from yfilter.graph.graph_query import MadeOfWords
from yfilter.graph.query_ast import GraphQuery
from yfilter.graph_answers import GraphAnswers
from yfilter.index.automaton import KeyTable, SubscriberRuns
from yfilter.index.candidates import STEPS_MAX, FilledWay, Recipe
from yfilter.index.index import Index
from yfilter.index.recipes import WayRecipe, recipe_of
from yfilter.index.ways import Ways, ways_of
from yfilter.language.budget import too_much_time
from yfilter.language.failures import tells_failures
from yfilter.language.matching_path import delivers_message, matching_part, matching_path
from yfilter.language.profile_limits import DEFAULT_MATCH_LIMITS, EvaluationLimits, MatchLimits
from yfilter.language.query_ast import Expression, ForClause, Profile
from yfilter.language.query_parser import parse_profile, reread
from yfilter.language.query_text import unparse
from yfilter.language.shapes import PlainPath, Shaped, Word, blanks_in, filling
from yfilter.language.trees import NeedsWords
from yfilter.matches import (
    PAUSE,
    Delivered,
    MakesNow,
    Match,
    ProfileMatch,
    RouteMatch,
    TransformationMatch,
)
from yfilter.operators.compiler import Returned, returned
from yfilter.operators.operators import OperatorTable
from yfilter.operators.returns import Answer, Deliveries, ResultWriter
from yfilter.plan_graph import NODES_MAX, PlanGraph
from yfilter.projection.needs import Need
from yfilter.projection.parts import with_parts
from yfilter.projection.transformations import Transformations
from yfilter.system_clock import system_time

# -------------------------------------------------------------------------------------------------
# Answers: how the results of queries are made (yfilter/operators/returns.pyx), found out when each
# first matches.


ANSWERS_MAX = 16_384


def answer_of(profile: Profile) -> Answer:
    """How the results of a profile are made; it holds no operators yet."""
    # PERF: of a profile in thousands, found out once for each shape.
    parts = profile.parts
    fill = parts.shape.derived(_shaped_answer) if isinstance(parts, Shaped) else None
    if fill is not None and isinstance(parts, Shaped):
        found = fill(parts.words)
    else:
        found = _answer_parts(profile)
    body, graph = found.body, None
    if isinstance(body, GraphQuery):
        body, graph = None, body
    return Answer(
        None if body is None else Returned(Profile(body, profile.text), found.binds),
        partial(_with_pieces, profile),
        found.bound,
        graph=graph,
        is_message=found.is_message,
        fails=found.fails,
    )


class _AnswerParts(NamedTuple):
    """``bound`` as of a MatchingPart; ``body`` and ``binds`` of what is Returned, or of a graph
    profile its query; None: the result is the message."""

    bound: tuple[Expression, ...]
    body: Expression | None
    binds: bool
    is_message: bool
    fails: bool


def _answer_parts(profile: Profile) -> _AnswerParts:
    part = matching_part(profile)
    is_graph = isinstance(profile.body, GraphQuery)
    is_message = delivers_message(profile.body) and part.is_verified
    made = None if is_graph or is_message else returned(profile)
    body = profile.body if is_graph else made and made.profile.body
    binds = made is not None and made.binds
    return _AnswerParts(part.bound, body, binds, is_message, tells_failures(profile))


def _shaped_answer(tree: Expression) -> Callable[[tuple[Word, ...]], _AnswerParts] | None:
    """What puts words into the answer of a shape; None where it depends on them."""
    try:
        return filling(_answer_parts(Profile(tree)))
    except NeedsWords:
        return None


def _with_pieces(profile: Profile) -> Returned:
    """What a profile returns where its parts come as pieces of the message."""
    return Returned(with_parts(returned(profile).profile)[0], True)


class Answers:
    """By the number of a query; those made last are kept, up to ANSWERS_MAX."""

    def __init__(self, operators: OperatorTable, limits: EvaluationLimits) -> None:
        self.known: dict[int, Answer] = {}
        self.operators = operators
        self._limits = limits
        self._graphs = GraphAnswers(limits)
        self._writer: ResultWriter | None = None

    def learn(self, number: int, profile: Profile) -> Answer:
        """The answer of a query that is not among those known; it is from now on."""
        if len(self.known) >= ANSWERS_MAX:
            self.forget(next(iter(self.known)))
        answer = self.known[number] = answer_of(profile)
        answer.acquire(self.operators)
        answer.is_held = True
        return answer

    def forget(self, number: int) -> None:
        """A query is gone, or asks for nothing lately."""
        answer = self.known.pop(number, None)
        if answer is not None:
            answer.release(self.operators)
            answer.is_held = False

    def bindings(self, answer: Answer) -> list[int]:
        """The elements that an answer is made of, on the message that the index was shown last.

        Raises MatchLimitExceeded.
        """
        found: list[int]
        if answer.is_held:
            found = answer.bindings(self.operators)
        else:  # its query is gone
            answer.acquire(self.operators)
            try:
                found = answer.bindings(self.operators)
            finally:
                answer.release(self.operators)
        return found

    def selected(self, profile: Profile) -> list[int]:
        """The elements that a path of any kind, or the first ``for`` clause, selects, or in which
        it does so; of a profile without either the elements that its matching path selects."""
        body, flwor = profile.body, profile.flwor
        source = body if body.is_path() else matching_path(profile)
        if flwor is not None and flwor.clauses and isinstance(flwor.clauses[0], ForClause):
            source = flwor.clauses[0].path
        number = self.operators.acquire(source)
        try:
            found: list[int] = self.operators.elements(number)
        finally:
            self.operators.release(number)
        return found

    def whole_message(self, message: Readings) -> bytes:
        """The result of all profiles that deliver the message."""
        if message.document is None:
            return self._graphs.text(message.carried)
        return self.writer(message.document).whole_message()

    def syntax(self, message: Readings) -> str:
        """The media type of that: "" for XML."""
        return self._graphs.syntax(message.carried) if message.document is None else ""

    def media_type(self, answer: Answer, message: Readings) -> str:
        """Of the results of an answer, "" for XML."""
        if answer.graph is not None and not delivers_message(answer.graph):
            return answer.graph.results.value
        return self.syntax(message)

    def results(self, answer: Answer, message: Readings, reading: Reading) -> list[bytes]:
        """The results on that message, which has the reading.  Raises MatchLimitExceeded."""
        if answer.is_message:
            return [self.whole_message(message)]
        stream = message.in_(reading)
        if answer.graph is None:
            made: list[bytes] = self.writer(stream).answered(answer)
            return made
        if not delivers_message(answer.graph):
            return self._graphs.results(answer.graph, stream)
        return [self.whole_message(message)] if self.has_results(answer, message, reading) else []

    def has_results(self, answer: Answer, message: Readings, reading: Reading) -> bool:
        """Whether there are results on that message.  Raises MatchLimitExceeded."""
        if answer.graph is None:
            return bool(self.results(answer, message, reading))
        return self._graphs.has_results(answer.graph, message.in_(reading))

    def writer(self, stream: ElementStream) -> ResultWriter:
        """That of a message; the last one is kept, as many results are made of one."""
        if self._writer is None or self._writer.stream is not stream:
            self._writer = ResultWriter(stream, self.operators)
        return self._writer


# -------------------------------------------------------------------------------------------------
# LinkQueries: the routing queries of a broker's links.
#
# A routing query is a set of conjunctions for each link and tree, its disjuncts; an equal one of
# several links is one query with several targets.  They stand in the index.


@dataclass(slots=True)
class _Place:
    """Where a query is: under a number in the index."""

    number: int
    targets: dict[LinkTarget, None] = field(default_factory=dict)


class LinkQueries:
    """Add and remove (query, target) pairs; each is there once.  ``routes``: by disjunct."""

    def __init__(self, index: Index, limits: MatchLimits) -> None:
        self._index = index
        self._limits = limits
        self.routes: dict[Conjunction, _Place] = {}
        self._route_count = 0

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already."""
        place = self.routes.get(conjunction)
        if place is not None and target in place.targets:
            raise ValueError(f"{target} has this conjunction already: {conjunction}")
        _check_room(self._route_count, self._limits.routes_max, "routes")
        if place is None:
            place = self.routes[conjunction] = _Place(self._index.add_conjunction(conjunction))
        self._add_target(place, target)
        self._route_count += 1

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        place = self.routes[conjunction]
        self._remove_target(place, target)
        self._route_count -= 1
        if not place.targets:
            del self.routes[conjunction]
            self._index.remove(place.number)

    def report(self, said: EngineStatistics) -> None:
        said.routes, said.route_queries = self._route_count, len(self.routes)

    def _add_target(self, place: _Place, target: LinkTarget) -> None:
        place.targets[target] = None
        self._index.add_target(place.number, target)

    def _remove_target(self, place: _Place, target: LinkTarget) -> None:
        del place.targets[target]
        self._index.remove_target(place.number, target)


def _check_room(count: int, bound: int, what: str) -> None:
    if count >= bound:
        raise ProfileRefused(f"too-many-{what}", f"{bound} {what} are registered already")


# -------------------------------------------------------------------------------------------------
# LocalQueries: the local profiles of a matcher, and who has registered them.
#
# Equal profiles are one query of the index.  Nothing else is kept of it but its text as
# ``unparse`` writes it, some 60 bytes, of which its tree is made again where somebody needs it; the
# last TREES_MAX of these are remembered.


# -------------------------------------------------------------------------------------------------
# IndexedPart: what the index can say of a profile, found out once for each shape.
#
# What a profile asks for is analysed on the tree of its shape, or of the shapes of its steps'
# conditions, where words are blanks.  The way found, with blanks, gives a recipe for each step (see
# draft.py); for each profile its words are put beside.


class IndexedPart(NamedTuple):
    """``ways``: alternatives, each of ways that all have to be found.  ``has_remainder``: the
    profile can have no result although these are there.  ``is_message``: it is the message."""

    ways: list[list[FilledWay]]
    has_remainder: bool
    is_message: bool

    @property
    def reading(self) -> Reading:
        """That of the profile: of the graph if all alternatives begin there."""
        return min(_reading(ways[0]) for ways in self.ways)


def indexed_part(profile: Profile) -> IndexedPart:
    """What a profile asks of the index."""
    parts = profile.parts
    if isinstance(parts, PlainPath):
        way = _plain_way(parts)
        if way is not None:
            return IndexedPart([[way]], False, True)
        parts = parts.shaped()
    elif isinstance(parts, MadeOfWords):
        parts = parts.shaped()
    if isinstance(parts, Shaped):
        shaped = parts.shape.derived(_shaped_recipe)
        if shaped is not None:
            ways = [[recipe.fill(parts.words) for recipe in recipes] for recipes in shaped.recipes]
            return IndexedPart(ways, shaped.has_remainder, shaped.is_message)
    part = _part(profile)
    ways = [[WayRecipe(way, filled=True).fill(()) for way in ways] for ways in part.ways]
    return IndexedPart(ways, part.has_remainder, part.is_message)


def _reading(way: FilledWay) -> Reading:
    descendant, test, _ = way[0]
    return Reading.GRAPH if test == GRAPH_ROOT and not descendant else Reading.DOCUMENT


class _Part(NamedTuple):
    """``ways`` say what the matching part ``of`` does."""

    of: object
    ways: tuple[Ways, ...]
    has_remainder: bool
    is_message: bool


class _ShapedRecipe(NamedTuple):
    recipes: list[list[WayRecipe]]
    has_remainder: bool
    is_message: bool


class _StepRecipe(NamedTuple):
    """``recipe`` None: nothing is asked.  ``word_count``: how many words it puts somewhere."""

    recipe: Recipe | None
    word_count: int


def _plain_way(path: PlainPath) -> FilledWay | None:
    way: FilledWay = []
    for descendant, test, shaped in path.steps:
        if shaped is None:
            way.append((descendant, test, None))
            continue
        found = shaped.shape.derived(_step_recipe)
        if found is None or found.word_count < len(shaped.words):
            return None
        asked = None if found.recipe is None else (found.recipe, shaped.words)
        way.append((descendant, test, asked))
    return way if len(way) <= STEPS_MAX else None


def _step_recipe(tree: Expression) -> _StepRecipe | None:
    """For the one step of a path, whatever its name; None where that does not say what is asked."""
    if tree.steps[0].is_positional:
        return None
    try:
        part = _part(Profile(tree))
    except NeedsWords:
        return None
    if part.has_remainder or len(part.ways) != 1 or len(part.ways[0]) != 1:
        return None
    (way,) = part.ways[0]
    if len(way) != 1:
        return None
    (step,) = way
    return _StepRecipe(recipe_of(step.conditions), len(blanks_in(step.conditions)))


def _shaped_recipe(tree: Expression) -> _ShapedRecipe | None:
    """None where that alone does not say what is asked, or a blank got lost on the way."""
    try:
        part = _part(Profile(tree))
    except NeedsWords:
        return None
    if not blanks_in(part.of) <= blanks_in(part.ways):
        return None
    recipes = [[WayRecipe(way) for way in ways] for ways in part.ways]
    return _ShapedRecipe(recipes, part.has_remainder, part.is_message)


def _part(profile: Profile) -> _Part:
    part = matching_part(profile)
    ways = tuple(way for path in part.paths for way in ways_of(path, part.verified))
    remains = part.has_remainder and not part.is_verified
    return _Part(
        (part.paths, part.verified), ways, remains, delivers_message(profile.body) and not remains
    )


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Registrations: profile ids under numbers, and the query that each has asked for.
#
# A number is from 1, and given again when its registration is closed.  A registration costs the
# octets of its id and about 35 bytes.


class Registrations:
    """By number: ``since``, the count of changes to the matcher when it was opened, and ``query``,
    the number that its query has in the index, or -1 when closed."""

    def __init__(self) -> None:
        self.since = array("q", [0])
        self.query = array("i", [-1])
        self._ids = KeyTable()
        self._free = array("i")

    def open(self, name: str, stamp: int, query: int) -> int:
        """A number for a profile id that has none."""
        if self._free:
            number = self._free.pop()
            self.since[number] = stamp
            self.query[number] = query
        else:
            number = len(self.since)
            self.since.append(stamp)
            self.query.append(query)
        self._ids.insert(_octets(name), number)
        return number

    def close(self, number: int) -> None:
        self._ids.remove(number)
        self.query[number] = -1
        self._free.append(number)

    def find(self, name: str) -> int:
        """The number of a profile id, 0 if it has none."""
        number: int = self._ids.find(_octets(name))
        return number

    def name(self, number: int) -> str:
        """The profile id of an open registration."""
        return self._ids.key(number).decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._ids)

    def size_bytes(self) -> int:
        return self._ids.size_bytes() + 12 * len(self.since) + 4 * len(self._free)


def _octets(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


# -------------------------------------------------------------------------------------------------


TREES_MAX = 4_096


class LocalQueries:
    """Add and remove registrations by their profile ids.

    ``remainders`` are the queries that can have no result although the index found them, ``made``
    those whose results are made of the message, and not the message itself, ``graphs`` those of the
    graph reading.  ``runs`` are the registrations of the queries, ``changes`` counts what was added
    and removed.
    """

    def __init__(self, index: Index) -> None:
        self.remainders: set[int] = set()
        self.made: set[int] = set()
        self.graphs: set[int] = set()
        self.runs = SubscriberRuns()
        self.changes = 0
        self.registrations = Registrations()
        self._index = index
        self._texts = KeyTable()  # of the queries, by their number in the index

    def add(self, profile: Profile, name: str) -> None:
        """Register a profile under an id that is not in use."""
        text = text_of(profile)
        number = self._texts.find(text) or self._install(profile, text)
        self.changes += 1
        self.runs.add(number, self.registrations.open(name, self.changes, number))

    def remove(self, name: str) -> int:
        """Undo ``add``; the number of a query that is gone by that, or 0.  KeyError if the id is
        not known."""
        registration = self.number_of(name)
        number = self.registrations.query[registration]
        self.registrations.close(registration)
        self.changes += 1
        if not self.runs.remove(number, registration):
            self._texts.remove(number)
            self._index.remove(number)
            self.remainders.discard(number)
            self.made.discard(number)
            self.graphs.discard(number)
            return number
        return 0

    def number_of(self, name: str) -> int:
        """The number of a registration; KeyError if the id is not known."""
        number = self.registrations.find(name)
        if not number:
            raise KeyError(name)
        return number

    def by_query(self, names: Iterable[str]) -> dict[int, array[int]]:
        """The numbers of registrations, by their query; KeyError for an id that is not known."""
        found: dict[int, array[int]] = {}
        for number in map(self.number_of, names):
            found.setdefault(self.registrations.query[number], array("i")).append(number)
        return found

    def profile_of(self, name: str) -> Profile | None:
        """What is registered under an id, None for one that is not known."""
        registration = self.registrations.find(name)
        if not registration:
            return None
        return tree_of(self.text(self.registrations.query[registration]))

    def index_number(self, profile: Profile) -> int:
        """The number of a profile's query, 0 if it has none."""
        number: int = self._texts.find(text_of(profile))
        return number

    def reading(self, number: int) -> Reading:
        """Of what a query is."""
        return Reading.GRAPH if number in self.graphs else Reading.DOCUMENT

    def text(self, number: int) -> bytes:
        """What is kept of a query; ``tree_of`` makes its profile of it."""
        return self._texts.key(number)

    def open_since(self, number: int, stamp: int) -> list[int]:
        """The registrations of a query that were there at a count of changes."""
        since = self.registrations.since
        found = self.runs.of(number)
        # PERF: a query that one profile has asked for is most of them.
        if len(found) == 1:
            return found if since[found[0]] <= stamp else []
        return [one for one in found if since[one] <= stamp]

    def names_of(self, number: int) -> list[str]:
        """The ids of the profiles that are a query."""
        return list(map(self.registrations.name, self.runs.of(number)))

    def report(self, said: EngineStatistics) -> None:
        said.profiles, said.queries = len(self.registrations), len(self._texts)
        kept = self.registrations, self.runs, self._texts
        said.profiles_bytes = sum(each.size_bytes() for each in kept)

    def _install(self, profile: Profile, text: bytes) -> int:
        """The number of a new query."""
        part = indexed_part(profile)
        number = self._index.add(part.ways, part.reading)
        self._texts.insert(text, number)
        if part.has_remainder:
            self.remainders.add(number)
        if not part.is_message:
            self.made.add(number)
        if part.reading is Reading.GRAPH:
            self.graphs.add(number)
        return number


def text_of(profile: Profile) -> bytes:
    """Equal for equal trees, and only for those."""
    text = unparse(profile) if profile.parts is None else profile.parts.text()
    return text.encode()


@lru_cache(maxsize=TREES_MAX)
def tree_of(text: bytes) -> Profile:
    """The profile of a text that is kept."""
    return reread(text.decode())


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# LocalDelivery: what local profiles get of a message that they match, as finished results.
#
# Queries whose result is the message share one ``Delivered``; each other one has its own, made when
# it is asked for, on the reading of the message that it is of.


# -------------------------------------------------------------------------------------------------
# Rendering: bindings and results of one query of the index on one message.


class Rendering:
    """Bindings and results of one query on one message, each made when first called.

    ``answer`` None: the result is the message.  ``show`` has the index look at a message, which
    ``answers`` are about.
    """

    __slots__ = (
        "_answer",
        "_answers",
        "_bindings",
        "_message",
        "_reading",
        "_results",
        "_show",
        "_text",
    )

    def __init__(
        self,
        text: bytes,
        answer: Answer | None,
        message: Readings,
        reading: Reading,
        answers: Answers,
        show: Callable[[ElementStream], None],
    ) -> None:
        self._text = text
        self._answer = answer
        self._message = message
        self._reading = reading
        self._answers = answers
        self._show = show
        self._bindings: tuple[int, ...] | None = None
        self._results: list[bytes] | None = None

    def bindings(self) -> tuple[int, ...]:
        if self._bindings is None:
            profile = tree_of(self._text)
            answer = self._answer or answer_of(profile)
            self._show(self._message.in_(self._reading))
            found = self._answers.bindings(answer) if answer.paths else None
            self._bindings = tuple(self._answers.selected(profile) if found is None else found)
        return self._bindings

    def results(self) -> list[bytes]:
        if self._results is None:
            if self._answer is None:
                self._results = [self._answers.whole_message(self._message)]
            else:
                self._show(self._message.in_(self._reading))
                self._results = self._answers.results(self._answer, self._message, self._reading)
        return self._results


# -------------------------------------------------------------------------------------------------


class LocalDelivery:
    """Results of the queries that ``local`` has in the ``index``; ``costs`` are theirs."""

    def __init__(
        self, index: Index, local: LocalQueries, limits: EvaluationLimits, counted: EngineStatistics
    ) -> None:
        self.costs = QueryCosts(limits.late_messages)
        self.local = local
        self.counted = counted
        self.answers = Answers(index.operators, limits)
        self.look = index.show
        self._index = index
        self._limits = limits

    def forget(self, query: int) -> None:
        """A query is gone."""
        self.answers.forget(query)
        self.costs.forget(query)

    def given_up(self, stamp: int, found: list[int]) -> Iterator[Delivered]:
        """Queries of which the index does not know whether they match, as that costs too much;
        those of failed assertions are ``found``, as the first of them may be told."""
        for number, limit in self._index.unsure.items():
            if (
                self._limits.is_final(limit.code)
                and number in self.local.made
                and self._answer(number).fails
            ):
                found.append(number)
            elif numbers := array("i", self.local.open_since(number, stamp)):
                yield Delivered(numbers, [], limit)

    def to(self, message: Readings, profile_ids: Iterable[str]) -> Iterator[Delivered]:
        """What some registered profiles get of a message that is known to match them."""
        local = self.local
        syntax = self.answers.syntax(message)
        for query, registered in local.by_query(profile_ids).items():
            if query in local.made:
                yield self.made_of(message, query, registered)
            else:
                yield Delivered(
                    registered, [self.answers.whole_message(message)], None, True, syntax
                )

    def of(
        self, message: Readings, found: list[int], makes_now: MakesNow | None, stamp: int
    ) -> Iterator[Delivered]:
        """What queries that were found give, to registrations as of a count of changes."""
        local, made = self.local, self.local.made
        whole = [number for number in found if number not in made] if made else found
        whole_of = local.runs.collect(array("i", whole), len(whole))
        if made:
            yield from Deliveries(self, message, found, makes_now, stamp)
        if local.changes != stamp:
            since, query = local.registrations.since, local.registrations.query
            whole_of = array(
                "i", (one for one in whole_of if query[one] >= 0 and since[one] <= stamp)
            )
        if whole_of:
            self.counted.matched_profile += len(whole_of)
            if makes_now is None or makes_now(whole_of, False, True):
                syntax = "" if message.document is not None else self.answers.syntax(message)
                yield Delivered(whole_of, [self.answers.whole_message(message)], None, True, syntax)
            else:
                yield Delivered(whole_of, [], None, is_made=False)

    def rendering(self, number: int, message: Readings) -> Rendering:
        """Bindings and results of a query that was found."""
        answer = self._answer(number) if number in self.local.made else None
        reading, text = self.local.reading(number), self.local.text(number)
        return Rendering(text, answer, message, reading, self.answers, self.look)

    def has_results(
        self, number: int, message: Readings, rendering: Rendering | None = None
    ) -> bool:
        """Whether a query with a remainder, which was found, has results after all."""
        try:
            answer = self._answer(number)
            if answer.graph is not None:
                # PERF: most of thousands that a message finds (``benchmarks graph``).
                return self.answers.has_results(answer, message, Reading.GRAPH)
            return bool((rendering or self.rendering(number, message)).results())
        except MatchLimitExceeded:
            self.counted.over_limit += 1
            return False

    def made_of(self, message: Readings, query: int, numbers: array[int]) -> Delivered:
        """The results of one query."""
        if self.costs.is_late(query):
            return Delivered(numbers, [], too_much_time(self._limits))
        answer = self._answer(query)
        stream = message.of(self.local.reading(query))
        if stream is None:
            return Delivered(numbers, [])
        try:
            if answer.graph is not None:
                media_type = self.answers.media_type(answer, message)
                results = self._joined(message, query, answer)
                return Delivered(numbers, results, media_type=media_type)
            writer = self.answers.writer(stream)
            self.look(stream)  # the caller may have matched another meanwhile
            before = writer.seconds
            try:
                return Delivered(numbers, writer.answered(answer))
            finally:
                self.costs.add(query, writer.seconds - before)
        except MatchLimitExceeded as exceeded:
            return self.cut(query, numbers, exceeded)

    def cut(self, query: int, numbers: array[int], exceeded: MatchLimitExceeded) -> Delivered:
        """What is left of results that cost too much."""
        if self._limits.is_final(exceeded.code):
            self.counted.over_limit += 1
        else:
            self.costs.note_late(query)
        return Delivered(numbers, exceeded.first, exceeded)

    def _joined(self, message: Readings, query: int, answer: Answer) -> list[bytes]:
        """The results of a graph profile."""
        before = self._limits.clock()
        try:
            return self.answers.results(answer, message, Reading.GRAPH)
        finally:
            self.costs.add(query, self._limits.clock() - before)

    def _answer(self, number: int) -> Answer:
        """How a local query is answered."""
        answer = self.answers.known.get(number)
        return answer or self.answers.learn(number, tree_of(self.local.text(number)))


# -------------------------------------------------------------------------------------------------
# MessageMatch: one message on the index, one priority class after the other.
#
# ::
#
#     routing queries    links that are reached
#     needs              what is left for these; not looked at without any
#     local profiles     when the caller asks for them
#
# The first two are *urgent*: a broker can send the message on before any local profile is looked
# at.  They can be settled before the structure changes, so that a route on the move loses no
# message; what was found then is handed out later.


# A link that is reached, or what is left of the message for it.
Urgent: TypeAlias = str | tuple[str, ElementStream]


class MessageMatch:
    """``urgent`` and then ``local`` drive it; or, in steps, the index with the ``visits_left``."""

    def __init__(
        self,
        index: Index,
        link_queries: LinkQueries,
        transformations: Transformations,
        message: Readings,
        root: str,
        limits: MatchLimits,
    ) -> None:
        self.message = message
        self._index = index
        self._transformations = transformations
        self._root = root
        self.visits_left = limits.visits_max
        self._found: deque[Urgent] = deque()
        self._failure: MatchLimitExceeded | None = None
        self._finding: Iterator[Urgent] = iter(())
        if link_queries.routes:
            self._finding = self._find_urgent()

    def urgent(self) -> Iterator[Urgent]:
        """Each link of the tree whose routing query holds, once, as soon as it is known; then what
        is left for those of them that are transformed.  Raises MatchLimitExceeded."""
        while True:
            if self._found:
                yield self._found.popleft()
                continue
            if self._failure is not None:
                raise self._failure
            found = next(self._finding, None)
            if found is None:
                return
            yield found

    def settle(self) -> None:
        """Find all that is urgent now; ``urgent`` hands it out later, as it does a failure."""
        try:
            self._found.extend(self._finding)
        except MatchLimitExceeded as exceeded:
            self._failure = exceeded

    def local(self) -> list[int]:
        """The numbers of the local queries that match."""
        return self._index.match(self.message, self.visits_left)

    def _find_urgent(self) -> Iterator[Urgent]:
        reached: list[str] = []
        for link in self._links():
            reached.append(link)
            yield link
        if reached and not self._transformations.is_empty:
            yield from self._transformations.left(self.message, self._root, reached).items()

    def _links(self) -> Iterator[str]:
        try:
            links = self._index.links(self.message, self._root, self.visits_left)
        except MatchLimitExceeded:
            yield from self._index.reached
            raise
        self.visits_left -= self._index.visits_last
        yield from links


# -------------------------------------------------------------------------------------------------


__all__ = ["Matcher"]

DUMP_NODES_MAX = 2_000


class Matcher:
    """Add and remove profiles and routes at any time; match messages."""

    def __init__(
        self,
        limits: MatchLimits = DEFAULT_MATCH_LIMITS,
        message_limits: MessageLimits = DEFAULT_LIMITS,
        derive: Derive = graph_meant,
        clock: Callable[[], float] = system_time,
    ) -> None:
        """``derive``: the graph of an RDF/XML document, which is asked for once a call and only
        where some query is of graphs; whoever has it gives the message as Readings.  ``clock``
        says the current time, in seconds of the epoch, for a message of which nobody has said when
        it was accepted."""
        self.limits = limits
        self._read = partial(read, limits=message_limits, derive=derive, clock=clock)
        self._index = Index(limits.lazy_bytes_max, limits.evaluation)
        self._local = LocalQueries(self._index)
        self._unfinished: WeakSet[MessageMatch] = WeakSet()
        self._link_queries = LinkQueries(self._index, limits)
        self._transformations = Transformations(self._index, limits=limits.evaluation)
        self._generated = 0
        self._counted = EngineStatistics()
        self._delivery = LocalDelivery(self._index, self._local, limits.evaluation, self._counted)

    def add(self, profile: str | Profile, profile_id: str | None = None) -> str:
        """Register a profile; gives its id, "p1", "p2", ... unless one is named.

        Raises ProfileRefused, and ValueError for an id that is in use.
        """
        registrations = self._local.registrations
        if profile_id is not None and registrations.find(profile_id):
            raise ValueError(f"the profile id {profile_id!r} is in use")
        if len(registrations) >= self.limits.profiles_max:
            raise ProfileRefused(
                "too-many-profiles", f"{self.limits.profiles_max} profiles are registered already"
            )
        parsed = parse_profile(profile) if isinstance(profile, str) else profile
        name = self._new_id() if profile_id is None else profile_id
        self._local.add(parsed, name)
        return name

    def remove(self, profile_id: str) -> None:
        """Take a profile out; KeyError if it is not known."""
        gone = self._local.remove(profile_id)
        if gone:
            self._delivery.forget(gone)

    def add_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """A disjunct of the target's routing query; ValueError if it is there already.

        Raises ProfileRefused beyond ``routes_max``.
        """
        self._settle()
        self._link_queries.add_route(conjunction, target)

    def remove_route(self, conjunction: Conjunction, target: LinkTarget) -> None:
        """Undo ``add_route`` of exactly this pair; KeyError if it is not there."""
        self._settle()
        self._link_queries.remove_route(conjunction, target)

    def open_needs(self, target: LinkTarget) -> None:
        """What nobody behind a link needs is left out of its messages from now on, on its trees; so
        far nobody needs anything."""
        self._settle()
        self._transformations.open(target)

    def close_needs(self, target: LinkTarget) -> None:
        """A link is no longer transformed; KeyError if its needs are not open."""
        self._settle()
        self._transformations.close(target)

    def add_need(self, need: Need, target: LinkTarget) -> None:
        """One taker more behind a link, whose needs are opened if they are not open."""
        self._settle()
        self._transformations.add(need, target)

    def remove_need(self, need: Need, target: LinkTarget) -> None:
        """Undo one ``add_need`` of this pair; KeyError if it is not there."""
        self._settle()
        self._transformations.remove(need, target)

    def set_transforming(self, link: str, transforming: Transforming) -> None:
        """What is done to the messages of a link whose needs are open: CUTTING, if nothing is
        said."""
        self._settle()
        self._transformations.set_mode(link, transforming)

    def transformed(
        self, message: Message, root: str, links: Sequence[str]
    ) -> dict[str, ElementStream]:
        """What is left of a message for those of the links of a tree that are transformed; one
        object for those that keep the same, the message itself where that is nearly all."""
        return self._transformations.left(self._read(message), root, links)

    def prepare(self) -> None:
        """Get memory ready for the first messages, after very many profiles were added at once.

        No answer depends on it; without it the first messages wait for the memory.
        """
        self._index.prepare()

    def match(self, message: Message, root: str = "") -> Iterator[Match]:
        """What the message matches, in order of need.

        First a RouteMatch for each link of the tree of ``root`` whose routing query holds, then a
        TransformationMatch for each of these links whose needs are open, then a ProfileMatch for
        each local profile.  Lazy; a message as text is parsed at once.  Raises
        MessageRefused for a text that is not XML or beyond the message limits, and
        MatchLimitExceeded ("too-many-visits") from the iterator.  A query whose
        own conditions exceed EvaluationLimits on the message does not match it; statistics count
        that as ``over_limit``.
        """
        matching = self._begin(message, root)
        return self._finish(matching, self._local.changes)

    def matched_links(self, message: bytes | ElementStream | Readings) -> Iterator[str]:
        """The links whose routing query holds, and nothing else of ``match``; lazy, and raises what
        that does."""
        matching = self._begin(message, "")
        try:
            for found in self._urgent(matching):
                if isinstance(found, RouteMatch):
                    yield found.link
        finally:
            self._end(matching)

    def match_in_stages(
        self, message: Message, root: str = ""
    ) -> tuple[list[Match], Iterator[Match]]:
        """``match`` in two: what links need, at once, and the local profiles, when they are asked
        for, which may be after other messages were matched.

        Raises what ``match`` and, as to the links, its iterator raise.
        """
        urgent, matching = self._in_stages(message, root)
        return urgent, self._finish_local(matching, self._local.changes)

    def deliver_in_stages(
        self, message: Message, root: str = "", makes_now: MakesNow | None = None
    ) -> tuple[list[Match], Iterator[Delivered]]:
        """``match_in_stages`` with finished results for the local profiles, as of ``deliver``; but
        for those for which ``makes_now`` is False.  Matching a long message has pauses: PAUSE."""
        urgent, local = self._in_stages(message, root)
        return urgent, self._finish_delivered(local, self._local.changes, makes_now)

    def deliver_to(self, message: Message, profile_ids: Iterable[str]) -> Iterator[Delivered]:
        """What some registered profiles get of a message that is known to match them; KeyError.

        Nothing is matched.  One ``Delivered`` for each distinct query, made when it is asked for;
        no results and no limit exceeded: it comes to nothing.
        """
        return self._delivery.to(self._read(message), profile_ids)

    def _in_stages(self, message: Message, root: str) -> tuple[list[Match], MessageMatch]:
        matching = self._begin(message, root)
        try:
            return list(self._urgent(matching)), matching
        except BaseException:
            self._end(matching)
            raise

    def matched_ids(self, message: Message) -> list[str]:
        """The ids of all local profiles that the message matches, at once; in no order.

        What ``match`` says of them, without an object for each; links are not looked at.  Raises
        what ``match`` and its iterator raise.
        """
        name = self._local.registrations.name
        return [name(number) for number in self.matched_numbers(message)]

    def matched_numbers(self, message: Message) -> array[int]:
        """As ``matched_ids``, by number: ``number_of`` a profile id, which ``id_of`` gives back.

        Thousands of ids are thousands of strings, each somewhere in memory; their numbers are one
        column.  The number of a profile that was removed is given again.
        """
        readings = self._read(message)
        self._counted.messages += 1
        local, visits_max = self._local, self.limits.visits_max
        if not local.remainders:
            found = self._index.match_runs(readings, visits_max, local.runs)
        else:
            kept = [
                number
                for number in self._index.match(readings, visits_max)
                if number not in local.remainders or self._delivery.has_results(number, readings)
            ]
            found = local.runs.collect(array("i", kept), len(kept))
        self._counted.matched_profile += len(found)
        return found

    def deliver(self, message: Message) -> Iterator[Delivered]:
        """What local profiles get of a message, as finished results; links are not looked at.

        One ``Delivered`` for all profiles that get the message itself, the last one, and one for
        each other query, made when it is asked for.  Profiles that are added or removed meanwhile
        are treated as in ``match``.  Raises what ``match`` and its iterator raise; a query whose
        results exceed EvaluationLimits is delivered without any, and says which limit.
        """
        readings = self._read(message)
        self._counted.messages += 1
        stamp = self._local.changes
        found = self._index.match(readings, self.limits.visits_max)
        given_up = list(self._delivery.given_up(stamp, found))
        return chain(given_up, self._delivery.of(readings, found, None, stamp))

    def number_of(self, profile_id: str) -> int:
        """The number of a registered profile, from 1; KeyError if it is not known."""
        return self._local.number_of(profile_id)

    def take_costs(self, least: float) -> list[tuple[list[str], float]]:
        """(the ids of equal profiles, seconds) of those that have taken at least so many seconds of
        processor time, about, since they were told here last; what is less is told later."""
        costs: dict[int, float] = {}
        for query, nanos in self._index.take_costs(int(least * 1e9)):
            costs[query] = costs.get(query, 0.0) + nanos * 1e-9
        for query, seconds in self._delivery.costs.take(least).items():
            costs[query] = costs.get(query, 0.0) + seconds
        found = ((self._local.names_of(query), seconds) for query, seconds in costs.items())
        return [(names, seconds) for names, seconds in found if names]

    @property
    def changes(self) -> int:
        """How often profiles have been added and removed."""
        return self._local.changes

    def query_of(self, profile_id: str) -> int:
        """A number that equal profiles share until one is added or removed; KeyError if the id is
        not known."""
        return self._local.registrations.query[self._local.number_of(profile_id)]

    def id_of(self, number: int) -> str:
        """The profile id of a number that is in use."""
        return self._local.registrations.name(number)

    def explain(self, profile: str | Profile, message: Message | None = None) -> Explanation:
        """How a profile is served, and which of its parts hold on a message; see Explanation.

        A registered one by its id, or any by its text.  Raises ProfileRefused, MessageRefused,
        and MatchLimitExceeded where the profile does not match because that would cost too much.
        """
        from yfilter.compiled_deciders import CompiledDeciders  # noqa: PLC0415 - as below
        from yfilter.explain import explain  # noqa: PLC0415 - who runs need not explain

        if isinstance(profile, str):
            profile = self._local.profile_of(profile) or parse_profile(profile)
        readings = None if message is None else self._read(message)
        served_by, limits = self._served_by(profile), self.limits.evaluation
        return explain(profile, served_by, readings, limits, CompiledDeciders())

    def statistics(self) -> EngineStatistics:
        """As they are now."""
        said = replace(self._counted)
        self._local.report(said)
        self._link_queries.report(said)
        self._transformations.report(said)
        self._index.report(said)
        return said

    def dump(self, nodes_max: int = DUMP_NODES_MAX) -> str:
        """The plan for people: the automaton, its tree patterns and operators, the needs of links.

        At most about ``nodes_max`` nodes of each, the oldest, and how many more there are.
        """
        index = self._index
        pictures = (
            *(index.picture(self._names_of), index.twig_picture(), index.operators),
            self._transformations,
        )
        return "\n\n".join(
            filter(None, ("\n".join(picture.lines(nodes_max)) for picture in pictures))
        )

    def dump_graphviz(self, nodes_max: int = NODES_MAX) -> str:
        """The same as a graph, in DOT, the language of Graphviz; of all together ``nodes_max``."""
        graph = PlanGraph(nodes_max)
        self._index.picture(self._names_of).draw(graph)
        self._index.twig_picture().draw(graph)
        return graph.dot()

    def _served_by(self, profile: Profile) -> str:
        number = self._local.index_number(profile)
        if not number:
            trial = Matcher(MatchLimits(lazy_bytes_max=4096))
            trial.add(profile)
            return trial._served_by(profile)
        return self._index.picture(self._names_of).describe_query(number)

    def _names_of(self, query: int) -> list[str]:
        """For people: who has a query that is no routing query."""
        return self._transformations.names_of(query) or self._local.names_of(query)

    def _new_id(self) -> str:
        while True:
            self._generated += 1
            name = f"p{self._generated}"
            if not self._local.registrations.find(name):
                return name

    def _settle(self) -> None:
        """Before a link's queries change: what is urgent in every match under way, as it is."""
        for matching in list(self._unfinished):
            matching.settle()

    def _begin(self, message: Message, root: str) -> MessageMatch:
        readings = self._read(message)
        self._counted.messages += 1
        self._counted.local_not_asked += 1
        matching = MessageMatch(
            *(self._index, self._link_queries, self._transformations),
            *(readings, root, self.limits),
        )
        if self._link_queries.routes:
            self._unfinished.add(matching)
        return matching

    def _end(self, matching: MessageMatch) -> None:
        self._unfinished.discard(matching)

    def _finish(self, matching: MessageMatch, stamp: int) -> Iterator[Match]:
        try:
            yield from self._urgent(matching)
            yield from self._matched_profiles(matching, stamp)
        finally:
            self._end(matching)

    def _finish_local(self, matching: MessageMatch, stamp: int) -> Iterator[Match]:
        try:
            yield from self._matched_profiles(matching, stamp)
        finally:
            self._end(matching)

    def _finish_delivered(
        self, matching: MessageMatch, stamp: int, makes_now: MakesNow | None
    ) -> Iterator[Delivered]:
        try:
            self._counted.local_not_asked -= 1
            for found in self._index.match_in_steps(matching.message, matching.visits_left):
                if found is not None:
                    if self._index.unsure:
                        yield from list(self._delivery.given_up(stamp, found))
                    yield from self._delivery.of(matching.message, found, makes_now, stamp)
                    break
                yield PAUSE
        finally:
            self._end(matching)

    def _urgent(self, matching: MessageMatch) -> Iterator[Match]:
        for found in matching.urgent():
            if isinstance(found, str):
                self._counted.matched_route += 1
                yield RouteMatch(found)
            else:
                self._counted.matched_transformation += 1
                yield TransformationMatch(*found)

    def _matched_profiles(self, matching: MessageMatch, stamp: int) -> Iterator[ProfileMatch]:
        self._counted.local_not_asked -= 1
        for number in matching.local():
            yield from self._matches(number, matching.message, stamp)

    def _matches(self, number: int, message: Readings, stamp: int) -> Iterator[ProfileMatch]:
        """The registrations of a query, without those added or removed meanwhile."""
        local = self._local
        found = local.open_since(number, stamp)
        if not found:
            return
        rendering = self._delivery.rendering(number, message)
        if number in local.remainders and not self._delivery.has_results(
            number, message, rendering
        ):
            return
        query, since, name = (
            local.registrations.query,
            local.registrations.since,
            local.registrations.name,
        )
        for registration in found:
            # The caller may have removed it meanwhile, and added another one.
            if query[registration] == number and since[registration] <= stamp:
                self._counted.matched_profile += 1
                yield ProfileMatch(name(registration), rendering)
