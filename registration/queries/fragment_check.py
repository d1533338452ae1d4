"""A cycle provider's own look at a fragment that somebody's query plan wants of it (seed 001, 2.4).

A plan is never trusted: relations, functions and addresses are the provider's own records, its own
rules decide, and Spark is given SQL that is printed of a tree of allowed nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from sqlglot import exp

from registration.queries.compatibility import Compatibility
from registration.queries.providers import CycleProvider, Market
from registration.queries.query_plan import Fragment, Plug, Scan
from registration.queries.refusals import QueryCode, QueryRefused
from registration.queries.sql_functions import AGGREGATES, FUNCTIONS
from registration.queries.sql_language import Text, print_sql

R = TypeVar("R")
Aggregated: TypeAlias = Mapping[str, bool]
"""By URI of a relation whether rows are aggregates of its rows alone."""

_GIVING_ROWS = AGGREGATES.keys() & {
    *("any", "any_value", "array_agg", "collect_list", "collect_set", "every", "first"),
    *("first_value", "last", "last_value", "listagg", "max_by", "min_by", "mode", "string_agg"),
}
"""Aggregates with the values of rows in them, which are no aggregates to a flow rule."""


def checked_fragment(
    market: Market, allowed: Compatibility, site: CycleProvider, fragment: Fragment
) -> Fragment:
    """The fragment with the records of the market and SQL of allowed nodes.  QueryRefused
    (``not-allowed`` with the rules, ``unknown-relation``, ``unknown-function``, ``unknown-column``,
    ``forbidden-sql``, ``syntax``)."""
    bit = 1 << next(at for at, each in enumerate(allowed.sites) if each.uri == site.uri)

    def check(mask: int, resource: str, reason: str) -> None:
        if not mask & bit:
            rules = " ".join(allowed.why(resource, site.uri))
            raise QueryRefused("not-allowed", reason, rules or resource)

    def own(records: Mapping[str, R], uri: str, code: QueryCode) -> R:
        if uri not in records:
            kind = code.removeprefix("unknown-")
            raise QueryRefused(code, f"{site.name} knows no {kind} {uri}", uri)
        return records[uri]

    def scan(said: Scan) -> Scan:
        uri = said.relation.uri
        relation = own(market.relations, uri, "unknown-relation")
        check(allowed.read_mask(uri), uri, f"{relation.name} is not read here for this user")
        unknown = sorted(set(said.columns) - {column.name for column in relation.columns})
        if unknown:
            raise QueryRefused("unknown-column", f"{relation.name} has no column {unknown[0]}", uri)
        return replace(said, relation=relation)

    def plug(said: Plug) -> Plug:
        uri = said.function.uri
        function = own(market.functions, uri, "unknown-function")
        check(allowed.function_mask(uri), uri, f"{function.name} may not be loaded here")
        if said.name.lower() in FUNCTIONS or not said.name.isidentifier():
            raise QueryRefused("forbidden-sql", f"no function can be called {said.name!r}", uri)
        return replace(said, function=function)

    check(allowed.execute_mask, site.uri, "no fragments of this user are executed here")
    views = [each.view for each in fragment.scans]
    views += (each.view for each in fragment.receives)
    return replace(
        fragment,
        site=site,
        scans=tuple(map(scan, fragment.scans)),
        plugs=tuple(map(plug, fragment.plugs)),
        sql=print_sql(_parsed(fragment.sql, views, [each.name for each in fragment.plugs])),
    )


def rows_sent(fragments: Sequence[Fragment]) -> Mapping[int, Aggregated]:
    """By number of a fragment of which relations its rows are made.  QueryRefused ``syntax`` where
    fragments wait for each other in a circle, or for one that there is not."""
    by_number = {each.number: each for each in fragments}
    found: dict[int, Aggregated] = {}
    waiting = list(fragments)
    while waiting:
        ready = [each for each in waiting if all(r.fragment in found for r in each.receives)]
        if not ready or len(by_number) < len(fragments):
            raise QueryRefused("syntax", "the fragments of the query plan make no tree")
        for each in ready:
            raw = raw_views(each.sql)
            rows: dict[str, bool] = {}
            for scan in each.scans:
                aggregated = scan.view.lower() not in raw
                rows[scan.relation.uri] = rows.get(scan.relation.uri, True) and aggregated
            for receive in each.receives:
                for relation, before in found[receive.fragment].items():
                    aggregated = before or receive.view.lower() not in raw
                    rows[relation] = rows.get(relation, True) and aggregated
            found[each.number] = rows
        waiting = [each for each in waiting if each.number not in found]
    return found


def raw_views(sql: str) -> set[str]:
    """Names in lower case of the views whose rows are in the result other than in aggregates.
    QueryRefused ``syntax``, ``forbidden-sql``."""
    tree = Text(sql).parse()
    tables = {each.alias.lower(): each.this for each in tree.find_all(exp.CTE)}
    found: set[str] = set()
    seen: set[str] = set()
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.SetOperation):
            waiting += (node.this, node.expression)
        elif not _is_aggregate(node):
            names = {t.name.lower() for t in node.find_all(exp.Table) if not _is_within(t, node)}
            found |= names - tables.keys()
            waiting += (tables[name] for name in names & tables.keys() - seen)
            seen |= names
    return found


def _is_within(table: exp.Expr, node: exp.Expr) -> bool:
    """Whether a table stands in a common table expression of the node, and not in the node."""
    around = table.find_ancestor(exp.CTE)
    return around is not None and around.find_ancestor(type(node)) is node


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether all rows of a SELECT are aggregates, with no value of a row that is not grouped."""
    if not isinstance(node, exp.Select) or any(inner.find(exp.Query) for inner in node.expressions):
        return False
    called = [each for one in node.expressions for each in one.find_all(exp.Anonymous)]
    names = {str(each.this).lower() for each in called if not each.find_ancestor(exp.Window)}
    if names & _GIVING_ROWS:
        return False
    return bool(node.args.get("group")) or bool(names & AGGREGATES.keys())


def _parsed(sql: str, views: Collection[str], functions: Collection[str]) -> exp.Query:
    """The tree, over views and functions of the fragment and nothing else."""
    text = Text(sql)
    tree = text.parse()
    here = {each.lower() for each in views} | {
        each.alias.lower() for each in tree.find_all(exp.CTE)
    }
    for table in tree.find_all(exp.Table):
        if table.args.get("db") or table.name.lower() not in here:
            reason = f"{table.name[:40]!r} is no view of the fragment"
            raise text.refuse("unknown-relation", reason, table)
    called = FUNCTIONS.keys() | {each.lower() for each in functions}
    for call in tree.find_all(exp.Anonymous):
        if str(call.this).lower() not in called:
            reason = f"{str(call.this)[:40]!r} is no function of the fragment"
            raise text.refuse("forbidden-sql", reason, call)
    return tree
