"""Index: very many profiles, of which one message touches few.

A query comes as ways whose steps have recipes (``recipes``), which a ``draft`` carries out.  Its
access path is chosen (``access_path``); the spine of that with the access predicate becomes a path
of the ``trie``, the rest a residual (``query_writer``).  A message is moved through the trie by
lazily made deterministic states (``lazy_states``, ``run``), and ``candidates`` are verified
(``residuals``) on the message's own columns (``message_view``).  Values that conditions compute of
elements are columns, too, each once for all profiles (``columns``)::

    ways ─▶ Draft ─▶ AccessPath ─▶ Trie ───────▶ LazyStates ─▶ Run ─┬─▶ Candidates ─▶ queries
                          └──────▶ RecordPool ─▶ Residuals ─────────┴─▶ Locations ─▶ also where
    ElementStream ─▶ SymbolTable ─▶ MessageView ─▶ (both)

=====================  =========================================================================
a query                20 bytes, and what it does not share with others of:
a node of the trie     40 bytes and 6 to 12 in the table of children
an equality            32 bytes, its value, and 8 to 16 in the table of values
a residual             8 bytes, 4 a number, and 6 to 12 in the table of records
the lazy states        up to ``lazy_bytes_max``, in two generations
=====================  =========================================================================

An added or removed query changes only the states that hold a changed node, when they are used
next; removed rows are used again.

Queries of all priority classes live in one index and share symbols, atoms, residuals, and the view
of a message, which is bound once.  Each class has its own root of the trie, so that a run of one
meets no node of the others: what a message costs the routing queries does not depend on how many
local profiles there are.  So has each reading (``readings``): a message that has both is run from
both roots, on the stream of each, and its graph is derived only where a class has queries of that.
The caller asks class by class, and only for what it needs.  Routing queries have targets, by which
candidates are passed over (``target_groups``).  What links need is asked for with the elements at
which it is found (``locations``).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping

from formats.element_stream import ElementStream
from yfilter.engine.linear_paths import Conjunction, StructuralStep
from yfilter.engine.readings import Reading, Readings
from yfilter.engine.targets import LinkTarget, Priority
from yfilter.engine.work import EngineStatistics
from yfilter.errors import MatchLimitExceeded
from yfilter.index.automaton import (
    EDGE_ATTRIBUTE,
    EDGE_KIND,
    EDGE_LOOP,
    EDGE_NAME,
    EDGE_SHIFT,
    ROOTS,
    AtomTable,
    Column,
    LazyStates,
    RecordPool,
    SubscriberRuns,
    SymbolTable,
    TextTests,
    Trie,
    root_of,
)
from yfilter.index.candidates import (
    MORE,
    TOO_COSTLY,
    Candidates,
    DerivedColumns,
    Draft,
    FilledWay,
    Locations,
    MessageView,
    QueryWriter,
    Residuals,
    Run,
    Twigs,
)
from yfilter.index.derived_condition import MOMENTS
from yfilter.index.number_tests import NumberTests
from yfilter.index.recipes import WayRecipe, recipe_of
from yfilter.index.target_groups import TargetGroups
from yfilter.index.ways import Conditions, way_of_path
from yfilter.language.numbers import number_text
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.temporal import elapsed_text
from yfilter.operators.compiler import Compiler
from yfilter.operators.operators import OperatorTable
from yfilter.plan_graph import PlanGraph, some_of

# -------------------------------------------------------------------------------------------------
# IndexPicture: the trie of an index, for people: as text and as a graph.
#
# One node a line, with the targets of the queries that it accepts; ``if …`` stands where a residual
# is left to verify::
#
#     local profiles
#       nitf
#         //
#           series  -> bob
#         head
#           pubdata
#             [@edition.area]
#               = "SF"  -> alice if …
#
# A picture of the twigs is made in the same way.


_TITLES = {
    Priority.ROUTE: "routing queries",
    Priority.TRANSFORMATION: "needs of links",
    Priority.PROFILE: "local profiles",
}
# By root.
QUERIES = {
    root_of(priority, reading): title if reading is Reading.DOCUMENT else f"{title}, of graphs"
    for priority, title in _TITLES.items()
    for reading in Reading
}
TWIGS = {1: "twigs (nested paths of names alone)"}


class IndexPicture:
    """``names`` gives the targets of a query, for people, ``titles`` the name of each root."""

    def __init__(
        self,
        trie: Trie,
        symbols: SymbolTable,
        atoms: AtomTable,
        names: Callable[[int], list[str]],
        titles: Mapping[int, str],
    ) -> None:
        self._trie = trie
        self._symbols = symbols
        self._atoms = atoms
        self._names = names
        self._titles = titles
        self._kind = "twigs" if titles is TWIGS else "index"

    def lines(self, nodes_max: int) -> Iterator[str]:
        """The oldest nodes, and how many more there are."""
        children = self._trie.children(nodes_max)
        for root, title in self._titles.items():
            if root not in children:
                continue
            yield title
            pending = [(child, 1) for child in reversed(children[root])]
            while pending:
                node, depth = pending.pop()
                targets = ", ".join(self._targets(node))
                yield "  " * depth + self._edge(node) + (f"  -> {targets}" if targets else "")
                pending.extend((child, depth + 1) for child in reversed(children.get(node, [])))
        more = self._more(children)
        if more:
            yield f"… and {more} nodes more"

    def draw(self, graph: PlanGraph) -> None:
        """The oldest nodes, as far as there is room; targets take half of it."""
        children = self._trie.children(graph.room // 2)
        for root, title in self._titles.items():
            if root not in children:
                continue
            graph.group(f"Index: {title}")
            graph.node((self._kind, root), "", "state")
            pending = list(reversed(children[root]))
            while pending:
                node = pending.pop()
                self._draw_node(graph, node)
                pending.extend(reversed(children.get(node, [])))
        graph.cut(self._more(children))

    def describe_query(self, query: int) -> str:
        """The access paths of a query, and whether there is more to verify."""
        bound = self._trie.query_bound
        rows = [row for row in range(1, bound) if self._trie.answers(row) == query]
        left = any(self._trie.query(row).residual for row in rows)
        paths = " or ".join(self._access_path(row) for row in rows)
        return f"the index, by {paths}{', then what is left' if left else ''}"

    def _access_path(self, row: int) -> str:
        node = self._trie.query(row).node
        text = ""
        while node > ROOTS:
            text = self._as_path(node, row) + text
            node = self._trie.parent_of(node)
        return text

    def _draw_node(self, graph: PlanGraph, node: int) -> None:
        targets = self._targets(node)
        key = (self._kind, node)
        graph.node(key, "", "accepting" if targets else "state")
        is_loop = self._trie.edge_of(node) == EDGE_LOOP
        parent = (self._kind, self._trie.parent_of(node))
        graph.edge(parent, key, "ε" if is_loop else self._edge(node))
        if is_loop:
            graph.edge(key, key, "*")
        if targets:
            graph.node((self._kind, "targets", node), "\n".join(targets), "target")
            graph.edge(key, (self._kind, "targets", node))

    def _edge(self, node: int) -> str:
        edge = self._trie.edge_of(node)
        if edge == EDGE_LOOP:
            return "//"
        if edge & EDGE_KIND == EDGE_NAME:
            return self._symbols.describe(edge >> EDGE_SHIFT)
        if edge & EDGE_KIND == EDGE_ATTRIBUTE:
            return f"[{self._symbols.describe_attribute(edge >> EDGE_SHIFT)}]"
        return self._atoms.describe(edge >> EDGE_SHIFT)

    def _as_path(self, node: int, query: int) -> str:
        edge = self._trie.edge_of(node)
        text = self._edge(node)
        if edge == EDGE_LOOP:
            return "/"
        if edge & EDGE_KIND == EDGE_NAME:
            return f"/{text}"
        if edge & EDGE_KIND == EDGE_ATTRIBUTE:
            return f"{text[:-1]} "
        if self._atoms.is_range(edge >> EDGE_SHIFT):
            bound = self._atoms.numbers[self._trie.query(query).number]
            above = self._trie.parent_of(node)
            key = self._symbols.attributes.key(self._trie.edge_of(above) >> EDGE_SHIFT)
            is_moment = isinstance(key, Column) and key.items in MOMENTS.values()
            said = elapsed_text(bound) if is_moment else number_text(bound)
            text = f"{text.split()[0]} {said}"
        return f"{text}]"

    def _targets(self, node: int) -> list[str]:
        """A line for each of the first queries that a node accepts."""
        queries = self._trie.queries_of(node)
        lines = [
            some_of(self._names(self._trie.answers(query)))
            + " if …" * bool(self._trie.query(query).residual)
            for query in queries[:3]
        ]
        more = len(queries) - 3
        return lines + ([f"{more} queries more"] if more > 0 else [])

    def _more(self, children: dict[int, list[int]]) -> int:
        shown = sum(map(len, children.values()))
        return self._trie.node_count - ROOTS - shown


# -------------------------------------------------------------------------------------------------


# The bound of the lazy states where none is given: so much a query, within these two.
_LAZY_BYTES_A_QUERY = 4096
_LAZY_BYTES = 512 << 20, 4096 << 20
_READY_BYTES_A_QUERY = 320  # what the first hundred messages need of it, at 100,000 queries
_READY_BYTES_MAX = 100 << 20
PIECE_VISITS = 16_384  # of a long message, between two pauses
UNFINISHED = -1
# By class, then by reading.
_ROOTS = [tuple(root_of(priority, reading) for reading in Reading) for priority in Priority]
_TIME_MAX = 2_000_000_000  # epochs, stamps and times of changes are columns of 32 bits


class Index:
    """Add and remove plans; match messages.

    ``lazy_bytes_max`` bounds the lazy states, 0 for what so many queries may need (see
    MatchLimits); the answers do not depend on it.  ``candidates`` and
    ``passed_over`` count by class, over all messages; ``visits_last`` is what the class matched
    last has cost.  ``unsure`` are the queries that it neither found nor ruled out, as a condition
    costs too much, with the limit.
    """

    def __init__(
        self,
        lazy_bytes_max: int = 0,
        evaluation: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
    ) -> None:
        self._lazy_bytes_max = lazy_bytes_max
        self._symbols = SymbolTable()
        self._atoms = AtomTable()
        self._records = RecordPool()
        self._trie = Trie(self._atoms)
        self._twig_trie = Trie(self._atoms)
        text_tests = self._atoms.text_tests = TextTests(Trie(self._atoms))
        self._view = MessageView(self._atoms, text_tests)
        self._twigs = Twigs(
            self._view, self._symbols, self._records, self._twig_trie, self._new_twig_states
        )
        self.operators = OperatorTable(self._view, evaluation, Compiler)
        text_tests.integers = NumberTests(self.operators)
        self._columns = DerivedColumns(self._view, self._symbols, text_tests, self.operators)
        self._draft = Draft(self._symbols)
        self._writer = QueryWriter(
            self._draft,
            self._symbols,
            self._atoms,
            self._records,
            self._trie,
            self._twigs,
            self._columns,
        )
        self._residuals = Residuals(
            self._view, self._records, self._symbols, self._twigs, self._columns
        )
        self._candidates = Candidates(self._view, self._residuals, self._trie)
        self.locations = Locations(self._view, self._residuals)
        self._run = Run(self._view, self._columns, self._candidates, self._trie, self._new_states)
        self._groups = TargetGroups()
        self._epoch = 0
        self._changes = 0
        self._shown: tuple[ElementStream, int] | None = None  # to the run, after how many changes
        self.reached: list[str] = []
        self.candidates = [0] * len(Priority)
        self.passed_over = [0] * len(Priority)
        self.visits_last = 0
        self.unsure: dict[int, MatchLimitExceeded] = {}
        self._before = 0, 0, 0  # candidates, those passed over, visits: when the last match began

    def add(self, ways: list[list[FilledWay]], reading: Reading = Reading.DOCUMENT) -> int:
        """Add a local query of alternatives, each of ways that all have to be found; its number,
        from 1.

        Numbers of removed queries are given again.
        """
        root = root_of(Priority.PROFILE, reading)
        query = self._add(ways[0], root)
        for alternative in ways[1:]:
            self._draft.fill(alternative)
            self._writer.write_other(root, query)
        return query

    def add_conjunction(self, conjunction: Conjunction) -> int:
        """Add a routing query, all of whose paths have to be found; as ``add``."""
        ways = [WayRecipe(way_of_path(path), filled=True).fill(()) for path in conjunction.paths]
        return self._add(ways, root_of(Priority.ROUTE, conjunction.reading))

    def add_place(self, steps: Iterable[StructuralStep], conditions: Conditions = ()) -> int:
        """Add a query of what links need of documents: the elements at the end of a path, those on
        which conditions hold; as ``add``."""
        way: FilledWay = [(descendant, test, None) for descendant, test in steps]
        recipe = recipe_of(conditions)
        if recipe is not None:
            descendant, test, _ = way[-1]
            way[-1] = descendant, test, (recipe, ())
        return self._add([way], root_of(Priority.TRANSFORMATION, Reading.DOCUMENT))

    def add_target(self, query: int, target: LinkTarget) -> None:
        """A routing query leads to a link, too; ``remove_target`` undoes it."""
        self._groups.add(query, target)

    def remove_target(self, query: int, target: LinkTarget) -> None:
        self._groups.remove(query, target)

    def remove(self, query: int) -> None:
        """Take a query out, whose targets were taken from it; its memory is used again."""
        self._changes += 1
        self._candidates.forget(query)
        self._writer.erase(query)

    def prepare(self) -> None:
        """Get the memory that the first messages will need for lazy states, before they come.

        For when very many queries were added; it makes no difference to any answer.
        """
        if self._epoch == 0:
            self._fit_bound()
        wanted = _READY_BYTES_A_QUERY * self._trie.query_count
        self._run.states.get_ready(min(wanted, _READY_BYTES_MAX, self._run_bytes // 8))

    def match(self, message: Readings, visits_max: int) -> list[int]:
        """The numbers of the local queries that a message matches, each once, in no order.

        ``visits_max`` bounds the heads and elements looked at; MatchLimitExceeded beyond.
        """
        found: list[int] = []
        for root, stream in self._asked(message, Priority.PROFILE):
            self._begin(stream)
            numbers = self._numbers(self._match(root, visits_max))
            found = found + numbers if found else numbers
        return found

    def match_in_steps(self, message: Readings, visits_max: int) -> Iterator[list[int] | None]:
        """As ``match``, with a pause (None) after each piece of a long message.  When the index was
        asked something else meanwhile, or has changed, it begins anew, and then has no pauses."""
        found: list[int] = []
        for root, stream in self._asked(message, Priority.PROFILE):
            self._begin(stream)
            at = self._epoch, self._changes
            count = self._match(root, visits_max, PIECE_VISITS)
            while count == UNFINISHED:
                yield None
                if (self._epoch, self._changes) != at:
                    yield self.match(message, visits_max)
                    return
                self.show(stream)
                count = self._match(root, visits_max, PIECE_VISITS, goes_on=True)
            found += self._numbers(count)
        yield found

    def links(self, message: Readings, root: str, visits_max: int) -> list[str]:
        """The links of the tree of ``root`` whose routing query holds, in the order found.

        Raises as ``match``; ``reached`` is what was found until then.
        """
        groups = self._groups
        self.reached = []
        if groups.begin_tree(root):
            self.reached = groups.reached
            for start, stream in self._asked(message, Priority.ROUTE):
                self._begin(stream)
                if groups.begin_run(self._epoch):
                    self._match(start, visits_max, groups=groups)
        return self.reached

    def locate(self, stream: ElementStream, visits_max: int) -> Locations:
        """Where on a document the queries of what links need are found; until the next call.

        Raises as ``match``.
        """
        found = self.locations
        root = root_of(Priority.TRANSFORMATION, Reading.DOCUMENT)
        self._begin(stream)
        found.begin(visits_max)
        if not self._run.is_empty(root):
            costly = self._run.go(found, root, visits_max) == TOO_COSTLY
            self.candidates[Priority.TRANSFORMATION] += found.end()
            if costly:
                raise self._too_costly(visits_max)
        return found

    def match_runs(self, message: Readings, visits_max: int, runs: SubscriberRuns) -> array[int]:
        """As ``match``, all registrations of the queries instead of their numbers."""
        found = array("i")
        for root, stream in self._asked(message, Priority.PROFILE):
            self._begin(stream)
            self._match(root, visits_max)
            registered = self._candidates.registrations(runs)
            found = found + registered if found else registered
        return found

    def take_costs(self, least: int) -> list[tuple[int, int]]:
        """(query, nanoseconds) of those whose conditions, or columns, have taken at least so many
        since they were told last."""
        shares = self._columns.take_costs(least, self._trie)
        return [*self._candidates.take_costs(least), *shares]

    def report(self, said: EngineStatistics) -> None:
        """Sizes of the structure, and counts over all messages."""
        parts = (self._trie, self._twig_trie, self._atoms, self._records)
        said.index_nodes, said.index_queries = self._trie.node_count, self._trie.query_count
        said.index_twig_nodes = self._twig_trie.node_count
        said.index_twigs = self._twig_trie.query_count
        said.index_atoms, said.index_records = self._atoms.count, self._records.count
        said.index_symbols = len(self._symbols.symbols)
        said.index_attributes = len(self._symbols.attributes)
        said.operators = len(self.operators)
        said.over_limit += self.operators.over_limit
        said.index_bytes = sum(part.size_bytes() for part in parts)
        said.index_bytes_used = sum(part.used_bytes() for part in parts)
        said.index_lazy_bytes = self._run.states.used_bytes()
        said.index_lazy_steps_computed = self._run.states.computed
        said.index_lazy_turns, said.index_heads = self._run.turns, self._run.heads
        said.index_candidates = self._candidates.candidates
        said.index_visits, said.index_twig_visits = self._candidates.visits, self._twigs.walked
        said.target_groups = self._groups.count
        said.candidates_route = self.candidates[Priority.ROUTE]
        said.candidates_profile = self.candidates[Priority.PROFILE]
        said.candidates_skipped_reached = self.passed_over[Priority.ROUTE]
        said.elements_spared = self._run.elements_spared

    def picture(self, names: Callable[[int], list[str]]) -> IndexPicture:
        """The queries for people; ``names`` gives the subscribers of a local one."""
        return IndexPicture(
            self._trie,
            self._symbols,
            self._atoms,
            lambda query: self._groups.names(query) or names(query),
            QUERIES,
        )

    def twig_picture(self) -> IndexPicture:
        """The twigs for people, by their numbers."""
        return IndexPicture(
            self._twig_trie, self._symbols, self._atoms, lambda twig: [f"twig {twig}"], TWIGS
        )

    def _add(self, ways: list[FilledWay], root: int) -> int:
        self._changes += 1
        self._draft.fill(ways)
        query: int = self._writer.write(root)
        return query

    def _asked(self, message: Readings, priority: Priority) -> list[tuple[int, ElementStream]]:
        """The roots of a class behind which there are queries of a reading that a message has, each
        with that; the class is asked about it anew."""
        self.visits_last = 0
        self.unsure = {}
        of_documents, of_graphs = _ROOTS[priority]
        document = message.document
        asked = []
        if document is not None and not self._run.is_empty(of_documents):
            asked.append((of_documents, document))
        if not self._run.is_empty(of_graphs):
            graph = message.graph
            if graph is not None:
                asked.append((of_graphs, graph))
        return asked

    def _begin(self, stream: ElementStream) -> None:
        """Begin a run on a message."""
        times = self._trie.clock, self._twigs.trie.clock, self._twigs.stamp
        if max(self._epoch, self._groups.stamp, *times) >= _TIME_MAX:
            self._restart()
        if self._epoch == 0:
            self._fit_bound()
        self._epoch += 1
        self.show(stream)

    def show(self, stream: ElementStream) -> None:
        """Look at a message, unless it was the last one and nothing has changed since."""
        if self._shown is not None and self._shown[0] is stream and self._shown[1] == self._changes:
            return
        self._shown = stream, self._changes
        self._symbols.translate(stream.names)
        self._run.states.begin(self._symbols)
        self._view.bind(stream, self._symbols)
        self._columns.begin()
        self.operators.begin(stream)
        self._twigs.begin()

    def _fit_bound(self) -> None:
        """Before the first message: the states may be of when there were no queries yet."""
        if self._run.states.bytes_max != self._run_bytes:
            self._run.forget_states()

    def _match(
        self,
        root: int,
        visits_max: int,
        piece: int = 0,
        *,
        groups: TargetGroups | None = None,
        goes_on: bool = False,
    ) -> int:
        """How many queries behind a root stand in the candidates' ``found``; UNFINISHED after so
        many visits as are a ``piece``, and then again with ``goes_on``."""
        taken = self._candidates
        visits_left = visits_max - self.visits_last
        if not goes_on:
            self._before = taken.candidates, taken.passed_over, taken.visits
            taken.begin(self._epoch, visits_left, groups)
            self._run.begin(taken, root)
        state = self._run.go_on(visits_left, piece)
        if state == MORE:
            return UNFINISHED
        candidates, passed_over, visits = self._before
        count: int = taken.end()
        priority = Priority.PROFILE if groups is None else Priority.ROUTE
        self.unsure = {**self.unsure, **taken.unsure} if self.unsure else taken.unsure
        self.candidates[priority] += taken.candidates - candidates
        self.passed_over[priority] += taken.passed_over - passed_over
        self.visits_last += taken.visits - visits
        if state == TOO_COSTLY:
            raise self._too_costly(visits_max)
        return count

    def _too_costly(self, visits_max: int) -> MatchLimitExceeded:
        reason = f"the message needs more than {visits_max} visits to be matched"
        return MatchLimitExceeded("too-many-visits", reason)

    def _numbers(self, count: int) -> list[int]:
        found: list[int] = memoryview(self._candidates.found)[:count].tolist()
        return found

    def _new_states(self, older: LazyStates | None) -> LazyStates:
        return self._states(self._trie, self._run_bytes, older)

    def _new_twig_states(self, older: LazyStates | None) -> LazyStates:
        return self._states(self._twig_trie, self._lazy_bytes // 16, older)

    def _states(self, trie: Trie, bytes_max: int, older: LazyStates | None) -> LazyStates:
        """A generation of lazy states, of two that share a bound."""
        return LazyStates(trie, self._atoms, self._records, self._symbols, bytes_max, older)

    @property
    def _run_bytes(self) -> int:
        return self._lazy_bytes * 7 // 16

    @property
    def _lazy_bytes(self) -> int:
        low, high = _LAZY_BYTES
        wanted = _LAZY_BYTES_A_QUERY * self._trie.query_count
        return self._lazy_bytes_max or min(max(low, wanted), high)

    def _restart(self) -> None:
        """Count epochs and times from the beginning again; no one may remember the old ones."""
        self._epoch = 0
        self._groups.restart()
        self._twigs.restart()
        self._trie.restart_clock()
        self._run.forget_states()
