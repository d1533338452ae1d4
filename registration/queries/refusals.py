"""The one error of queries: a code, a sentence, and the place or the rule that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

from formats.errors import Fault, Refusal

QueryCode = Literal[
    "syntax", "unknown-relation", "unknown-column", "unknown-function", "ambiguous",
    "forbidden-sql", "no-plan", "not-allowed", "over-limit", "no-resources", "bad-signature",
    "bad-digest", "not-certified", "provider-away", "function-failed", "function-over-cost",
]  # fmt: skip

_NAMES_COMPARED_MAX = 2_000
_LINE_SHOWN_MAX = 160


class QueryRefused(Refusal):
    """A query, a catalog, a query plan or a function that is refused.

    ``rule``: URIs of the rules that forbid it, a blank between two, or the thing that it is about.
    ``line`` and ``column`` count from 1 (0: not known), ``source_line`` is the text of that line:
    ``str()`` shows it with a caret.
    """

    def __init__(
        self,
        code: QueryCode,
        reason: str,
        rule: str = "",
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(Fault(code, reason, "", line, column, rule, hint))
        self.rule, self.source_line = rule, source_line

    def __str__(self) -> str:
        said = [str(self.fault)]
        if self.source_line and self.column:
            first = max(0, self.column - 1 - _LINE_SHOWN_MAX // 2)
            shown = self.source_line[first : first + _LINE_SHOWN_MAX].replace("\t", " ")
            said += [f"    {shown}", f"    {' ' * (self.column - 1 - first)}^"]
        if self.hint:
            said.append(f"    {self.hint}" if len(said) > 1 else self.hint)
        return "\n".join(said)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names up to three of ``known`` nearly of this name, or ""."""
    folded = {each.casefold(): each for each in known}
    if len(folded) > _NAMES_COMPARED_MAX:
        return ""
    near = get_close_matches(name.casefold()[:100], folded, n=3)
    return f"did you mean {' or '.join(folded[each] for each in near)}?" if near else ""
