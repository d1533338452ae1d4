"""How two values are compared, in profiles of every language."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum
from typing import Any

_NAMES = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Operator(Enum):
    """General comparison: holds when some pair of items does."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    def __init__(self, sign: str) -> None:
        self.holds: Callable[[Any, Any], bool] = getattr(operator, _NAMES[sign])


GENERAL = {one.value: one for one in Operator}
VALUE_COMPARISONS = {one.name.lower(): one for one in Operator}
"""``eq`` and the others, which compare one value with one, by their words."""

MIRRORED = {
    **{one: one for one in Operator},
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""What says the same with the sides exchanged."""
