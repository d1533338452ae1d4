"""Whether a repository has all that a query can ask for (MDV, section 2.2).

A repository holds what its rules match, with all that this strongly refers to.  So an answer is
complete when each variable of the query is implied by a rule (the rule's conjunction can be laid
over the query's, its registered variable on this one, so that each of its conditions follows from
one of the query's) or is reached over a strong reference from a variable that is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import contains, eq, ge, gt, le, lt, ne
from typing import Any

from formats.graph.rdf_schema import RdfSchema
from registration.metadata.atomic_rules import turned
from registration.metadata.rules import RESOURCE, Condition, Conjunction, Join


def missing(query: Conjunction, rules: Iterable[Conjunction], schema: RdfSchema) -> list[str]:
    """The variables of a query of which nobody knows that all of them are held; none: its answer
    is complete."""
    held = {
        variable
        for rule in rules
        for variable in query.classes
        if implies(query, variable, rule, schema)
    }
    while True:
        more = {
            target
            for join in query.joins
            for source, prop, target in _references(join)
            if source in held and target not in held and _is_strong(prop, schema)
        }
        if not more:
            return [variable for variable in query.classes if variable not in held]
        held |= more


def with_paths(
    query: Conjunction, columns: Iterable[tuple[str, Sequence[str]]], schema: RdfSchema
) -> Conjunction:
    """A query with a variable for each resource on the way to what is selected."""
    classes, joins = dict(query.classes), list(query.joins)
    for variable, path in columns:
        here = variable
        for prop in path[:-1]:
            known = schema.properties.get(prop)
            there = f"w{len(classes)}"
            while there in classes:
                there += "w"
            classes[there] = known.range if known is not None and known.range else RESOURCE
            joins.append(Join(here, prop, "=", there, ""))
            here = there
    return query._replace(classes=classes, joins=tuple(joins))


def _references(join: Join[str]) -> Iterator[tuple[str, str, str]]:
    """Over which properties ("": it is the same) a join leads from a resource to another."""
    for each in (join, turned(join)) if join.operator == "=" else ():
        if not each.right_property:
            yield each.left, each.left_property, each.right


def _is_strong(prop: str, schema: RdfSchema) -> bool:
    """Whether a property, or one above it, is a strong reference; "" is the resource itself."""
    names = (prop, *schema.properties_above.get(prop, ()))
    return not prop or any(
        name in schema.properties and schema.properties[name].is_strong for name in names
    )


def implies(query: Conjunction, variable: str, rule: Conjunction, schema: RdfSchema) -> bool:
    """Whether all that a query's variable can be is registered by a rule."""
    left = [each for each in rule.classes if each != rule.register]
    return any(_laid(query, rule, schema, {rule.register: variable}, left))


def _laid(
    query: Conjunction,
    rule: Conjunction,
    schema: RdfSchema,
    at: Mapping[str, str],
    left: list[str],
) -> Iterator[bool]:
    """The ways to lay a rule's variables on the query's."""
    for name, variable in at.items():
        of_class, needed = query.classes[variable], rule.classes[name]
        if needed not in (of_class, *schema.classes.get(of_class, ())):
            return
    for condition in rule.conditions:
        if condition.variable in at:
            wanted = condition._replace(variable=at[condition.variable])
            if not any(_follows(each, wanted, schema) for each in query.conditions):
                return
    for join in rule.joins:
        if join.left in at and join.right in at:
            wanted_join = join._replace(left=at[join.left], right=at[join.right])
            if not any(_is_join(each, wanted_join, schema) for each in query.joins):
                return
    if not left:
        yield True
        return
    for variable in query.classes:
        yield from _laid(query, rule, schema, {**at, left[0]: variable}, left[1:])


def _is_property(said: str, wanted: str, schema: RdfSchema) -> bool:
    return wanted in (said, *schema.properties_above.get(said, ()))


def _is_join(said: Join[str], wanted: Join[str], schema: RdfSchema) -> bool:
    return any(
        (each.left, each.operator, each.right, each.kind)
        == (wanted.left, wanted.operator, wanted.right, wanted.kind)
        and _is_property(each.left_property, wanted.left_property, schema)
        and _is_property(each.right_property, wanted.right_property, schema)
        for each in (said, turned(said))
    )


def _follows(said: Condition, wanted: Condition, schema: RdfSchema) -> bool:
    """Whether one condition makes sure of another."""
    return (
        said.variable == wanted.variable
        and _is_property(said.property, wanted.property, schema)
        and said.constant.kind == wanted.constant.kind
        and _value_follows(said, wanted)
    )


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "contains": contains,
    "lacks": lambda text, part: part not in text,
}


def _value_follows(said: Condition, wanted: Condition) -> bool:
    one, other = said.constant.value, wanted.constant.value
    holds, must_hold = _HOLDS[said.operator], _HOLDS[wanted.operator]
    if isinstance(one, str) or isinstance(other, str):
        if said.operator == "=" or said.operator == wanted.operator == "contains":
            return must_hold(one, other)
        return (said.operator, one) == (wanted.operator, other)
    # A number of each kind that there is, as these two see it.
    numbers = (-inf, one, one / 2 + other / 2, other, inf)
    return all(must_hold(each, other) for each in numbers if holds(each, one))
