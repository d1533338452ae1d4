"""The share of rows that a predicate keeps, by statistics of columns and else by rules of thumb.

The rules are those of System R (Selinger et al. 1979): an equality with a constant keeps a tenth, a
range a third, columns of two relations are equal as if the larger relation had a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlglot
from sqlglot import expressions as sql

from registration.queries.providers import Column
from registration.queries.query_graph import bare

EQUAL, RANGE, LIKE, NULL, OTHER = 0.1, 1 / 3, 0.1, 0.05, 1 / 3
GROUPS = 0.1
"""Groups by row, where nobody knows how many values the columns have."""
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Values:
    """A column with the rows of its relation."""

    column: Column
    rows: float

    @property
    def distinct(self) -> float | None:
        return None if self.column.distinct is None else max(self.column.distinct, 1.0)


ValuesOf = Callable[[str], Values | None]
"""Of a full name, ``alias.column``; None where nothing is known (of a result of a function)."""


def selectivity(text: str, values_of: ValuesOf) -> float:
    """The share of rows, above 0 and at most 1, for which a predicate is true."""
    try:
        read = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.ParseError:
        return OTHER
    return min(1.0, max(_LEAST, _share(read, values_of)))


def groups(rows: float, columns: Iterable[str], values_of: ValuesOf) -> float:
    """How many groups so many rows have by the texts of ``columns``; one for none."""
    known = 1.0
    guess = False
    for text in columns:
        values = values_of(bare(text))
        if values is None or values.distinct is None:
            guess = True
        else:
            known *= values.distinct
    if guess:
        known = max(known, rows * GROUPS)
    return max(1.0, min(rows, known))


def _share(node: sql.Expr, values_of: ValuesOf) -> float:
    match node:
        case sql.Paren():
            return _share(node.this, values_of)
        case sql.And():
            return _share(node.this, values_of) * _share(node.expression, values_of)
        case sql.Or():
            one, other = _share(node.this, values_of), _share(node.expression, values_of)
            return one + other - one * other
        case sql.Not():
            return 1.0 - _share(node.this, values_of)
        case sql.Boolean():
            return 1.0 if node.this else 0.0
        case sql.EQ() | sql.NullSafeEQ():
            return _equal(node.this, node.expression, values_of)
        case sql.NEQ():
            return 1.0 - _equal(node.this, node.expression, values_of)
        case sql.LT() | sql.LTE():
            return _below(node.this, node.expression, values_of)
        case sql.GT() | sql.GTE():
            return _below(node.expression, node.this, values_of)
        case sql.Between():
            low = _below(node.args["low"], node.this, values_of)
            high = _below(node.this, node.args["high"], values_of)
            return max(low + high - 1.0, low * high * 0.1)
        case sql.In() if node.expressions:
            one = _equal(node.this, node.expressions[0], values_of)
            return min(0.5, one * len(node.expressions))
        case sql.Like() | sql.ILike() | sql.RegexpLike() | sql.Contains() | sql.StartsWith():
            return LIKE
        case sql.Is():
            values = _values(node.this, values_of)
            return NULL if values is None or values.column.nulls is None else values.column.nulls
    return OTHER


def _values(node: sql.Expr, values_of: ValuesOf) -> Values | None:
    if not isinstance(node, sql.Column):
        return None
    return values_of(".".join(part.name for part in node.parts))


def _present(values: Values | None) -> float:
    nulls = None if values is None else values.column.nulls
    return 1.0 - (nulls or 0.0)


def _equal(one: sql.Expr, other: sql.Expr, values_of: ValuesOf) -> float:
    left, right = _values(one, values_of), _values(other, values_of)
    both = isinstance(one, sql.Column) and isinstance(other, sql.Column)
    present = _present(left) * _present(right)
    known = [each.distinct for each in (left, right) if each is not None and each.distinct]
    if known:
        return present / max(known)
    if both:
        rows = [each.rows for each in (left, right) if each is not None]
        return present / max(rows, default=1 / EQUAL)
    return present * EQUAL


def _below(one: sql.Expr, other: sql.Expr, values_of: ValuesOf) -> float:
    """The share of rows in which ``one`` is less than ``other``."""
    left, right = _values(one, values_of), _values(other, values_of)
    values = left or right
    constant = _number(_text(other if left is not None else one))
    if values is None or (left is not None and right is not None) or constant is None:
        return RANGE
    low, high = _number(values.column.minimum), _number(values.column.maximum)
    if low is None or high is None:
        return RANGE * _present(values)
    if high <= low:
        share = float(low < constant)
    else:
        share = min(1.0, max(0.0, (constant - low) / (high - low)))
    return (share if left is not None else 1.0 - share) * _present(values)


def _text(node: sql.Expr) -> str | None:
    """The text of a constant, also of ``DATE '…'`` and of a negative number."""
    match node:
        case sql.Literal():
            return str(node.this)
        case sql.Neg(this=sql.Literal() as literal):
            return f"-{literal.this}"
        case sql.Cast() | sql.TsOrDsToDate():
            return _text(node.this)
    return None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
