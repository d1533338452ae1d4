"""Static types of the profile language: what kinds of items an expression can yield.

There is no schema, so the kinds follow from the text alone (``Expression.kinds``).  They let the
parser refuse at registration what XQuery would call a type error, and what can never select
anything.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from yfilter.language.functions import ResultKind

# A set of ItemKinds, one bit each.  PERF: numbers, not an enum.Flag, whose operators are calls of
# Python (a third of the time of parsing a profile).
Kinds: TypeAlias = int


class ItemKind:
    """The kinds of items in a value; a union where several are possible."""

    DOCUMENT: Final = 1
    ELEMENT: Final = 2
    ATTRIBUTE: Final = 4
    TEXT: Final = 8
    COMMENT: Final = 16  # or a processing instruction
    STRING: Final = 32
    NUMBER: Final = 64
    BOOLEAN: Final = 128
    DATE: Final = 256
    DATE_TIME: Final = 512
    OTHER: Final = 1024  # durations, times and what else elementpath reckons with


NOTHING: Kinds = 0
PARENTS = ItemKind.DOCUMENT | ItemKind.ELEMENT
CHILDREN = ItemKind.ELEMENT | ItemKind.TEXT | ItemKind.COMMENT
NODES = PARENTS | ItemKind.ATTRIBUTE | CHILDREN
TEMPORAL = ItemKind.DATE | ItemKind.DATE_TIME
ATOMS = ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN | TEMPORAL | ItemKind.OTHER
ANYTHING = NODES | ATOMS

RESULTS = {
    ResultKind.STRING: ItemKind.STRING,
    ResultKind.NUMBER: ItemKind.NUMBER,
    ResultKind.BOOLEAN: ItemKind.BOOLEAN,
    ResultKind.DATE: ItemKind.DATE,
    ResultKind.DATE_TIME: ItemKind.DATE_TIME,
    ResultKind.OTHER: ItemKind.OTHER,
    ResultKind.ANY: ANYTHING,
}
