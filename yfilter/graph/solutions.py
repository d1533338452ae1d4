"""Solutions: what a pattern binds in one message, and what writers of results keep of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from yfilter.graph.join import (
    BLANK_LETTER,
    KIND_BLANK,
    MessageGraph,
    TermKey,
    key_of,
)
from yfilter.graph.query_ast import GroundTerm, Variable
from yfilter.language.budget import Budget

_EXTRA_FIRST = -2
_LETTER = BLANK_LETTER.encode()
_CHARGED = 4096  # bytes that are charged at once


@dataclass(frozen=True)
class Solutions:
    """``rows``: a term's number for each of ``columns``, 0 for none; those from -2 down are terms
    of ``extra``, which the message does not have."""

    graph: MessageGraph
    columns: tuple[Variable, ...]
    rows: Sequence[tuple[int, ...]]
    extra: Sequence[GroundTerm]

    def term(self, number: int) -> GroundTerm:
        """The term of a number."""
        return self.graph.term(number) if number > 0 else self.extra[_EXTRA_FIRST - number]

    def _key(self, number: int) -> TermKey:
        if number < 0:
            return key_of(self.extra[_EXTRA_FIRST - number])
        kind, tag_kind, tag, lexical = self.graph.key(number)
        if kind == KIND_BLANK:
            lexical = _LETTER + lexical
        return kind, tag_kind, tag, lexical

    def written(self, syntax: str, write: Callable[[TermKey], bytes]) -> dict[int, bytes]:
        """All terms of the rows by their numbers, 0 left out; those of the message are written
        once for all who ask for this syntax."""
        shared = self.graph.written.setdefault(syntax, {})
        texts = {}
        for number in set(chain.from_iterable(self.rows)):
            text = shared.get(number)
            if text is None and number:
                text = write(self._key(number))
                if number > 0:
                    shared[number] = text
            if text is not None:
                texts[number] = text
        return texts

    def distinct(self) -> Solutions:
        """Each row once, in the order of the first."""
        rows = list(dict.fromkeys(self.rows))
        return Solutions(self.graph, self.columns, rows, self.extra)


@dataclass(frozen=True)
class RowLayout:
    """How a row is written: ``before`` and ``after`` each term, ``separator`` between two."""

    opening: bytes
    before: Sequence[bytes]
    after: bytes
    separator: bytes
    closing: bytes

    def rows(
        self, rows: Iterable[tuple[int, ...]], texts: dict[int, bytes], budget: Budget
    ) -> list[bytes]:
        """The rows with the texts of their terms, what is unbound left out; MatchLimitExceeded if
        they are too large."""
        # PERF: most rows bind all columns, and are filled in at once; benchmarks graph.
        places = [before.replace(b"%", b"%%") + b"%b" + self.after for before in self.before]
        full = self.opening + self.separator.join(places) + self.closing
        written = []
        size = 0
        for row in rows:
            if 0 in row:
                bound = zip(self.before, row, strict=True)
                fields = [each + texts[number] + self.after for each, number in bound if number]
                text = self.opening + self.separator.join(fields) + self.closing
            else:
                text = full % tuple([texts[number] for number in row])
            written.append(text)
            size += len(text)
            if size > _CHARGED:
                budget.charge_bytes(size)
                size = 0
        budget.charge_bytes(size)
        return written


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
