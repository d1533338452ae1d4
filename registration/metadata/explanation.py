"""Why a resource is in a cache, and why a rule does not match it (MDV, sections 2.3, 2.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from formats.graph.rdf_schema import RdfSchema, local_name
from registration.metadata.filter_tables import Tables
from registration.metadata.query_sql import query_sql
from registration.metadata.rules import Condition, Conjunction, Constant, Rule, normal_text
from registration.metadata.statement_tables import StatementTables


class Explanation(NamedTuple):
    """``held``: the ways in which it is held, each the id of a rule, and the URIs from the resource
    that the rule matches over strong references to this one.  ``not_matched``: by the ids of the
    other rules, in words what does not hold."""

    held: tuple[tuple[str, tuple[str, ...]], ...]
    not_matched: Mapping[str, tuple[str, ...]]


def ways_up(statements: StatementTables, resource: int) -> dict[int, tuple[int, ...]]:
    """From each resource that strongly reaches this one the shortest way down to it."""
    found: dict[int, tuple[int, ...]] = {resource: (resource,)}
    new = [resource]
    while new:
        on: list[int] = []
        for here, above in statements.steps(new, up=True):
            if above not in found:
                found[above] = (above, *found[here])
                on.append(above)
        new = on
    return found


def failures(
    rule: Rule, uri: str, statements: StatementTables, tables: Tables, schema: RdfSchema
) -> tuple[str, ...]:
    """What of a rule does not hold for a resource, which it does not match."""
    found: dict[str, None] = {}
    for each in rule.alternatives:
        found.update(dict.fromkeys(_failures(each, uri, statements, tables, schema)))
    return tuple(found)


def _failures(
    of: Conjunction, uri: str, statements: StatementTables, tables: Tables, schema: RdfSchema
) -> Iterator[str]:
    itself = Condition(of.register, "", "=", Constant("iri", uri, f"<{uri}>"))

    def holds(part: Conjunction) -> bool:
        made = query_sql((part._replace(conditions=(itself, *part.conditions)),), (), statements)
        return tables.execute(made.sql, made.arguments).fetchone() is not None

    own_class = of.classes[of.register]
    connected = of._replace(conditions=())
    failing = [part for each in of.conditions if not holds(part := of._replace(conditions=(each,)))]
    if not holds(Conjunction({of.register: own_class}, of.register, (), ())):
        yield f"it is no {local_name(own_class)}"
    elif not holds(connected):
        yield f"it has no such connections: {normal_text(connected, schema)}"
    else:
        yield from (f"this does not hold: {normal_text(part, schema)}" for part in failing)
        if not failing:
            yield "each condition holds by itself, but not all together"
