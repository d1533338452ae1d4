"""Explanation: how a profile is served, and on a message, what held and what did not.

A tree of parts in the order of the profile: the steps of its matching path, the conditions at each
step, the steps of nested paths within those::

    /o                       1 of 1    /o
    /a                       2 of 2    /o/a[1], /o/a[2]
      [@n = 1]               1 of 2    /o/a[1]
      [b/c]                  0 of 1
        b                    1 of 1    /o/a[1]/b
        c                    0 of 1    does not hold

A part says of how many elements it was asked and how many are left.  The first that leaves none is
the *failure*, and it is minimal: without it and what comes after it, the profile's path holds.
What comes after it was not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from yfilter.graph.said_paths import said_disjunct

POSITIONS_MAX = 5  # elements named in an outcome
_FOUND = ("step", "triple pattern", "group")  # what may leave more than it was asked of


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kept`` of ``asked`` elements; a step is asked of elements above it.  Of a graph profile
    they are bindings, with those before it.

    ``positions``: where the first POSITIONS_MAX of those kept are in the message, or their values.
    """

    asked: int
    kept: int
    positions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A step, or a condition; ``parts`` are its conditions, or the steps of a nested path.

    ``kind``: "step", "selection", "nested path" or "residual"; of a graph profile "triple pattern",
    "filter", "minus" or "group".  ``by``: who decides it, "index",
    "operator", "elementpath" (for a function or type that only that has) or "join".
    Alternatives count as an operator's, which has them where the index does not look them up.
    ``outcome``: None without a message, and for what comes after the failure.
    """

    kind: str
    text: str
    by: str
    outcome: Outcome | None
    parts: tuple[Part, ...] = ()

    def renamed(self, short: Callable[[str], str]) -> Part:
        parts = tuple(part.renamed(short) for part in self.parts)
        return replace(self, text=short(self.text), parts=parts)


@dataclass(frozen=True, slots=True)
class Failure:
    """The first thing that does not hold.

    ``statement`` is the beginning of the matching path up to and with ``text``, and selects
    nothing; ``before``, without it, selects something, unless it is "": the message itself.
    ``positions``: the first elements of which it was asked.  For what is evaluated at the end the
    statement is the profile.  ``hint``: what is there and nearly the same, "" for nothing.
    """

    text: str
    statement: str
    before: str
    positions: tuple[str, ...]
    hint: str = ""

    def renamed(self, short: Callable[[str], str]) -> Failure:
        text, statement, before = map(short, (self.text, self.statement, self.before))
        return Failure(text, statement, before, self.positions, self.hint)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Texts are of the profile language, names written in full.

    ``served_by``: the access paths by which the index finds it.  ``linear_paths``: what the
    automaton finds.  ``remainder``: what the matching path does not say, "" for nothing, and
    ``remainder_by`` who decides it: "index", "operator" or "elementpath".
    ``routing_query``: disjuncts, each of linear paths that all have to be found.  ``matched`` and
    ``results``, of the message, and ``failure``, are None without one, or where nothing failed.
    """

    matching_path: str
    served_by: str
    linear_paths: tuple[str, ...]
    parts: tuple[Part, ...]
    remainder: str
    routing_query: tuple[tuple[str, ...], ...]
    matched: bool | None = None
    results: int | None = None
    failure: Failure | None = None
    remainder_by: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def renamed(self, short: Callable[[str], str]) -> Explanation:
        """With the parts and the failure as ``short`` writes their names, for people."""
        parts = tuple(part.renamed(short) for part in self.parts)
        return replace(self, parts=parts, failure=self.failure and self.failure.renamed(short))

    def lines(self) -> Iterator[str]:
        """The explanation for people."""
        yield from ("Matching path", f"  {self.matching_path}", "")
        yield from ("Served by", f"  {self.served_by}", "")
        yield "Linear paths, found by the automaton"
        yield from (f"  {path}" for path in self.linear_paths)
        yield from (
            "",
            "Parts" if self.matched is None else "Parts, and what they leave of the message",
        )
        rows = list(_rows(self.parts, 1, self.matched is not None))
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for left, found, right in rows:
            yield f"{left:<{widths[0]}}  {found:<{widths[1]}}  {right}".rstrip()
        if self.remainder:
            yield from ("", f"What is left, by the {self.remainder_by}", f"  {self.remainder}")
        yield from ("", "Routing query")
        for number, disjunct in enumerate(self.routing_query):
            said = "\n     and ".join(map(said_disjunct, disjunct))
            yield f"  {'or ' if number else ''}{said}"
        if self.matched is not None:
            yield from ("", "On the message")
            yield from (f"  {line}" for line in self._verdict())

    def _verdict(self) -> Iterator[str]:
        if self.failure is None:
            yield f"matches; results: {self.results}"
            return
        yield f"does not match; the first that does not hold: {self.failure.text}"
        if self.failure.positions:
            yield f"  asked of       {', '.join(self.failure.positions)}"
        yield f"  there is       {self.failure.before or 'the message'}"
        yield f"  there is no    {self.failure.statement}"
        if self.failure.hint:
            yield f"  hint           {self.failure.hint}"


def _rows(
    parts: tuple[Part, ...], depth: int, with_outcome: bool
) -> Iterator[tuple[str, str, str]]:
    """Of each part its text, its outcome, and what else there is to say."""
    for part in parts:
        outcome, what = part.outcome, []
        found = ""
        if outcome is not None:
            found = f"{outcome.kept} {'found' if part.kind in _FOUND else f'of {outcome.asked}'}"
            more = outcome.kept - len(outcome.positions)
            what.append(", ".join(outcome.positions) + (f" and {more} more" if more else ""))
        elif with_outcome:
            found = "not looked at"
        if part.kind != "step":
            what.append(f"({part.kind}{'' if part.by == 'index' else f', by {part.by}'})")
        yield "  " * depth + part.text, found, "  ".join(filter(None, what))
        yield from _rows(part.parts, depth + 1, with_outcome)
