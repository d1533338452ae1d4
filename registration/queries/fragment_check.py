"""A cycle provider's own look at a fragment that somebody's query plan wants of it (seed 001, 2.4).

A plan is never trusted: relations, functions and addresses are the provider's own records, its own
rules decide, and Spark is given SQL that is printed of a tree of allowed nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from registration.queries.compatibility import Compatibility
from registration.queries.providers import CycleProvider, Market
from registration.queries.query_plan import Fragment, Plug, Scan
from registration.queries.refusals import QueryRefused
from registration.queries.sql_functions import AGGREGATES, FUNCTIONS
from registration.queries.sql_language import Text, print_sql

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
    if not allowed.execute_mask & bit:
        raise _forbidden(allowed, site.uri, site.uri, "no fragments of this user are executed here")
    views = [scan.view for scan in fragment.scans]
    views += [receive.view for receive in fragment.receives]
    names = [each.name for each in fragment.plugs]
    return replace(
        fragment,
        site=site,
        scans=tuple(_own_scan(market, allowed, site, bit, each) for each in fragment.scans),
        plugs=tuple(_own_plug(market, allowed, site, bit, each) for each in fragment.plugs),
        sql=print_sql(_parsed(fragment.sql, views, names)),
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


def _own_scan(
    market: Market, allowed: Compatibility, site: CycleProvider, bit: int, scan: Scan
) -> Scan:
    uri = scan.relation.uri
    relation = market.relations.get(uri)
    if relation is None:
        raise QueryRefused("unknown-relation", f"{site.name} knows no relation {uri}", uri)
    if not allowed.read_mask(uri) & bit:
        raise _forbidden(allowed, uri, site.uri, f"{relation.name} is not read here for this user")
    unknown = sorted(set(scan.columns) - {column.name for column in relation.columns})
    if unknown:
        raise QueryRefused("unknown-column", f"{relation.name} has no column {unknown[0]}", uri)
    return replace(scan, relation=relation)


def _own_plug(
    market: Market, allowed: Compatibility, site: CycleProvider, bit: int, plug: Plug
) -> Plug:
    uri = plug.function.uri
    function = market.functions.get(uri)
    if function is None:
        raise QueryRefused("unknown-function", f"{site.name} knows no function {uri}", uri)
    if not allowed.function_mask(uri) & bit:
        raise _forbidden(allowed, uri, site.uri, f"{function.name} may not be loaded here")
    if plug.name.lower() in FUNCTIONS or not plug.name.isidentifier():
        raise QueryRefused("forbidden-sql", f"no function can be called {plug.name!r}", uri)
    return replace(plug, function=function)


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


def _forbidden(allowed: Compatibility, resource: str, site: str, reason: str) -> QueryRefused:
    rules = " ".join(allowed.why(resource, site))
    return QueryRefused("not-allowed", reason, rules or resource)
