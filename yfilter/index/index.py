"""Index: very many profiles, of which one message touches few.

For each profile an access path is chosen (``access_path``); its spine with the access predicate
becomes a path of the ``trie``, the rest a residual (``residual_writer``).  A message is moved
through the trie by lazily made deterministic states (``lazy_states``, ``run``), and candidates are
verified (``residuals``) on the message's own columns (``message_view``)::

    MatchingPlan ─▶ AccessPath ─▶ Trie ───────▶ LazyStates ─┐
                         └──────▶ RecordPool ─▶ Residuals ──┤
    ElementStream ─▶ SymbolTable ─▶ MessageView ────────────┴─▶ Run ─▶ query numbers

=====================  =========================================================================
a query                24 bytes, and what it does not share with others of:
a node of the trie     40 bytes and 6 to 12 in the table of children
an equality            32 bytes, its value, and 8 to 16 in the table of values
a residual             8 bytes, 4 a number, and 6 to 12 in the table of records
the lazy states        up to ``lazy_bytes_max``, in two generations
=====================  =========================================================================

An added or removed query changes only the states that hold a changed node, when they are used
next; removed rows are used again.
"""

from __future__ import annotations

from array import array

from formats.element_stream import ElementStream
from yfilter.engine.matching_plan import MatchingPlan
from yfilter.errors import MatchLimitExceeded
from yfilter.index.access_path import AccessPath, Condition, choose, indexable
from yfilter.index.atoms import AtomTable
from yfilter.index.lazy_states import LazyStates
from yfilter.index.message_view import MessageView
from yfilter.index.record_pool import RecordPool
from yfilter.index.residual_writer import ResidualWriter
from yfilter.index.residuals import Residuals
from yfilter.index.run import TOO_COSTLY, Run
from yfilter.index.subscriber_runs import SubscriberRuns
from yfilter.index.symbols import SymbolTable
from yfilter.index.trie import EDGE, FIRST_QUERY, LOOP, NEXT, NODE, NUMBER, RESIDUAL, ROOT, Trie
from yfilter.language.query_ast import NodeKind

LAZY_BYTES_MAX = 512 * 1024 * 1024
_TIME_MAX = 2_000_000_000  # epochs and times of changes are columns of 32 bits


class Index:
    """Add and remove plans; match messages.

    ``lazy_bytes_max`` bounds the lazy states; the answers do not depend on it.
    """

    def __init__(self, lazy_bytes_max: int = LAZY_BYTES_MAX) -> None:
        self._lazy_bytes_max = lazy_bytes_max
        self._symbols = SymbolTable()
        self._atoms = AtomTable()
        self._records = RecordPool()
        self._trie = Trie(self._atoms)
        self._writer = ResidualWriter(self._symbols, self._atoms, self._records)
        self._view = MessageView(self._atoms)
        self._residuals = Residuals(self._view, self._records, self._symbols)
        self._run = Run(self._view, self._residuals, self._trie, self._new_states)
        self._epoch = 0

    def add(self, plan: MatchingPlan) -> int | None:
        """Add a query; its number, from 1, or None for a plan that the index cannot say.

        Numbers of removed queries are given again.
        """
        spine = indexable(plan)
        if spine is None:
            return None
        path = choose(spine, self._constants)
        node = self._node(path)
        number = 0
        if path.access is not None and not isinstance(path.access.value, str):
            number = self._atoms.acquire_number(path.access.value)
        return self._trie.add_query(node, self._writer.acquire(path), number)

    def remove(self, query: int) -> None:
        """Take a query out; its memory is used again."""
        row = 5 * query
        node = self._trie.queries[row + NODE]
        residual = self._trie.queries[row + RESIDUAL]
        number = self._trie.queries[row + NUMBER]
        edges = self._edges(node)
        self._trie.remove_query(query)
        for edge in edges:
            if edge & 3 == 3:
                if self._atoms.is_range(edge >> 2):
                    self._atoms.release_number(number)
                self._writer.release_atom(edge >> 2)
            elif edge & 3 == 0:
                self._symbols.release(edge >> 2)
        self._writer.release(residual)

    def match(self, stream: ElementStream, visits_max: int) -> list[int]:
        """The numbers of the queries that a message matches, each once, in no order.

        ``visits_max`` bounds the heads and elements looked at; MatchLimitExceeded beyond.
        """
        count = self._match(stream, visits_max)
        found: list[int] = memoryview(self._run.found)[:count].tolist()
        return found

    def match_runs(
        self, stream: ElementStream, visits_max: int, runs: SubscriberRuns
    ) -> array[int]:
        """As ``match``, all registrations of the queries instead of their numbers."""
        count = self._match(stream, visits_max)
        return runs.collect(self._run.found, count)

    def statistics(self) -> dict[str, int]:
        """Sizes of the structure, and counts over all messages."""
        parts = (self._trie, self._atoms, self._records)
        return {
            **self._trie.statistics(),
            **self._atoms.statistics(),
            **self._records.statistics(),
            **self._symbols.statistics(),
            "index_bytes": sum(part.size_bytes() for part in parts),
            "index_bytes_used": sum(part.used_bytes() for part in parts),
            **self._run.states.statistics(),
            "index_lazy_turns": self._run.turns,
            "index_candidates": self._run.candidates,
            "index_heads": self._run.heads,
            "index_visits": self._run.visits,
        }

    def dump(self) -> str:
        """The trie, one node a line, with the queries that it accepts."""
        children = self._trie.children()
        lines = ["Index"]
        pending = [(child, 1) for child in reversed(children.get(ROOT, []))]
        while pending:
            node, depth = pending.pop()
            lines.append("  " * depth + self._describe(node))
            pending.extend((child, depth + 1) for child in reversed(children.get(node, [])))
        return "\n".join(lines)

    def _match(self, stream: ElementStream, visits_max: int) -> int:
        """How many queries stand in the run's ``found``."""
        if self._epoch >= _TIME_MAX or self._trie.clock >= _TIME_MAX:
            self._restart()
        self._epoch += 1
        self._symbols.translate(stream.names)
        self._run.states.begin(self._symbols)
        self._view.bind(stream, self._symbols)
        count = self._run.match(self._epoch, visits_max)
        if count == TOO_COSTLY:
            raise MatchLimitExceeded(
                "too-many-tuples", f"the message needs more than {visits_max} visits to be matched"
            )
        return count

    def _node(self, path: AccessPath) -> int:
        node = ROOT
        for at, step in enumerate(path.spine):
            if step.descendant:
                node = self._trie.loop_of(node)
            node = self._trie.extend(node, self._symbols.acquire(step.test) << 2)
            if at == path.at and path.access is not None:
                atom = self._writer.acquire_atom(path.access)
                attribute = self._atoms.atoms[8 * atom]
                node = self._trie.extend(node, attribute << 2 | 2)
                node = self._trie.extend(node, atom << 2 | 3)
        return node

    def _edges(self, node: int) -> list[int]:
        """The edges from the root to a node, backwards."""
        edges = []
        while node != ROOT:
            edges.append(self._trie.nodes[10 * node + EDGE])
            node = self._trie.nodes[10 * node]
        return edges

    def _constants(self, condition: Condition) -> int:
        if not condition.is_equality:
            return 0
        if condition.test is not None:
            attribute = self._symbols.attribute_number(condition.test)
        else:
            attribute = 1 if condition.kind is NodeKind.TEXT else 2
        return self._atoms.equalities[attribute] if attribute < len(self._atoms.equalities) else 0

    def _describe(self, node: int) -> str:
        edge = self._trie.nodes[10 * node + EDGE]
        if edge == LOOP:
            text = "//"
        elif edge & 3 == 0:
            text = self._symbols.describe(edge >> 2)
        elif edge & 3 == 2:
            text = f"[{self._symbols.describe_attribute(edge >> 2)}]"
        else:
            text = self._atoms.describe(edge >> 2)
        queries = []
        query = self._trie.nodes[10 * node + FIRST_QUERY]
        while query:
            residual = self._trie.queries[5 * query + RESIDUAL]
            queries.append(f"#{query}{' if …' if residual else ''}")
            query = self._trie.queries[5 * query + NEXT]
        return f"{text}  -> {', '.join(queries)}" if queries else text

    def _new_states(self, older: LazyStates | None) -> LazyStates:
        return LazyStates(
            self._trie,
            self._atoms,
            self._records,
            self._symbols,
            self._lazy_bytes_max // 2,
            older,
        )

    def _restart(self) -> None:
        """Count epochs and times from the beginning again; no one may remember the old ones."""
        self._epoch = 0
        self._trie.restart_clock()
        self._run.forget_states()
