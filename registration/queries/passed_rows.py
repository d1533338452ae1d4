"""Fragments that compute nothing: their rows are those of their views, with other names.

Such a fragment renames columns, casts them to the types that they have, and appends the rows of one
view to those of another.  Its rows need no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused
from registration.queries.sql_language import Text
from registration.queries.sql_types import ddl

PASSED = ("parquet",)
"""Formats of relations that are read without Spark."""


@dataclass(frozen=True, slots=True)
class PassedRows:
    """``columns``: names and types (DDL, "" where the only stream says it) of the result;
    ``parts``: by name of a view its columns in the order of the result."""

    columns: tuple[tuple[str, str], ...]
    parts: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Of a table; ``columns``: names with types."""

    columns: dict[str, str]
    parts: dict[str, tuple[str, ...]]


class _Computes(Exception):
    """The fragment does more than to pass rows on."""


def passed_rows(fragment: Fragment) -> PassedRows | None:
    """None where the fragment computes anything, or leaves a view out."""
    if any(scan.relation.format not in PASSED for scan in fragment.scans):
        return None
    views = {
        scan.view: {each.name: each.type for each in scan.relation.columns}
        for scan in fragment.scans
    }
    views |= {receive.view: dict(receive.columns) for receive in fragment.receives}
    try:
        found = _Tables(Text(fragment.sql).parse(), views).result()
    except (_Computes, QueryRefused):
        return None
    if found.parts.keys() != views.keys():
        return None
    return PassedRows(tuple(found.columns.items()), found.parts)


class _Tables:
    """The common table expressions of a fragment, each taken once: so a text has no more parts than
    tables, and no stream is read twice."""

    def __init__(self, tree: exp.Query, views: Mapping[str, Mapping[str, str]]) -> None:
        """_Computes where a name means two tables."""
        around = tree.args.get("with_")
        named = around.expressions if around is not None else []
        self._tree, self._views = tree, dict(views)
        self._named = {each.alias: each for each in named}
        names = [each.lower() for each in (*views, *(table.alias for table in named))]
        if len(set(names)) < len(names):
            raise _Computes

    def result(self) -> _Rows:
        """_Computes."""
        self._tree.set("with_", None)
        return self._rows(self._tree)

    def _rows(self, query: exp.Expr) -> _Rows:
        said = {name for name, value in query.args.items() if value}
        if isinstance(query, exp.Union) and said == {"this", "expression"}:
            return _both(self._rows(query.this), self._rows(query.expression))
        if not isinstance(query, exp.Select) or said != {"expressions", "from_"}:
            raise _Computes
        below = self._table(query.args["from_"].this)
        places = {name: at for at, name in enumerate(below.columns)}
        columns: dict[str, str] = {}
        taken: list[int] = []
        for each in query.expressions:
            column = each.this if isinstance(each, exp.Alias) else each
            type_ = None
            if type(column) is exp.Cast:
                column, type_ = column.this, ddl(column.to)
            if not isinstance(column, exp.Column) or column.table:
                raise _Computes
            known = below.columns.get(column.name)
            if known is None or type_ not in (None, known) or each.alias_or_name in columns:
                raise _Computes
            columns[each.alias_or_name] = known
            taken.append(places[column.name])
        parts = {view: tuple(own[at] for at in taken) for view, own in below.parts.items()}
        return _Rows(columns, parts)

    def _table(self, table: exp.Expr) -> _Rows:
        said = {name for name, value in table.args.items() if value}
        if not isinstance(table, exp.Table) or said != {"this"}:
            raise _Computes
        view = self._views.pop(table.name, None)
        if view is not None:
            return _Rows(dict(view), {table.name: tuple(view)})
        named = self._named.pop(table.name, None)
        if named is None:
            raise _Computes
        rows = self._rows(named.this)
        names = [each.name for each in named.args["alias"].columns] or list(rows.columns)
        return _Rows(dict(zip(names, rows.columns.values(), strict=True)), rows.parts)


def _both(one: _Rows, other: _Rows) -> _Rows:
    types = [*one.columns.values()]
    if types != [*other.columns.values()] or "" in types:
        raise _Computes
    return _Rows(one.columns, one.parts | other.parts)
