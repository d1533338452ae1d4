"""Solutions: what a pattern binds in one message, and what writers of results keep of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from yfilter.graph.message_graph import MessageGraph
from yfilter.graph.query_ast import Variable
from yfilter.graph.terms import GroundTerm

_EXTRA_FIRST = -2


@dataclass(frozen=True)
class Solutions:
    """``rows``: a term's number for each of ``columns``, 0 for none; those from -2 down are terms
    of ``extra``, which the message does not have."""

    graph: MessageGraph
    columns: tuple[Variable, ...]
    rows: Sequence[tuple[int, ...]]
    extra: Sequence[GroundTerm]
    _written: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def term(self, number: int) -> GroundTerm:
        """The term of a number."""
        return self.graph.term(number) if number > 0 else self.extra[_EXTRA_FIRST - number]

    def writer(self, syntax: str, write: Callable[[GroundTerm], bytes]) -> Callable[[int], bytes]:
        """``write`` by the number of a term; each is written once, those of the message for all
        who ask for this syntax."""
        own = self._written.setdefault(syntax, {})
        shared = self.graph.written.setdefault(syntax, {})

        def written(number: int) -> bytes:
            kept = shared if number > 0 else own
            found = kept.get(number)
            if found is None:
                found = kept[number] = write(self.term(number))
            return found

        return written

    def distinct(self) -> Solutions:
        """Each row once, in the order of the first."""
        rows = list(dict.fromkeys(self.rows))
        return Solutions(self.graph, self.columns, rows, self.extra)


def solutions_of(
    graph: MessageGraph,
    columns: Sequence[Variable],
    found: Iterable[Sequence[GroundTerm | None]],
) -> Solutions:
    """Solutions that somebody else has found, as terms."""
    numbers: dict[GroundTerm | None, int] = {None: 0}
    extra: list[GroundTerm] = []
    rows = []
    for terms in found:
        for term in terms:
            if term is not None and term not in numbers:
                numbers[term] = _EXTRA_FIRST - len(extra)
                extra.append(term)
        rows.append(tuple(numbers[term] for term in terms))
    return Solutions(graph, tuple(columns), rows, extra)
