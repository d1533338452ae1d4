"""What a rule matches by nested loops: the independent answer to each faster evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import isnan
from operator import eq, ge, gt, le, lt, ne

from formats.graph.rdf_schema import RdfSchema
from formats.graph.vocabulary import RDF_TYPE, RDFS, XSD
from registration.metadata.documents import Statement
from registration.metadata.rules import Condition, Conjunction, Constant, Join, Rule

RESOURCE = RDFS + "Resource"
_INTEGERS = "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger"
_MORE = "negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte decimal double float"
NUMBERS = {XSD + name for name in f"{_INTEGERS} {_MORE}".split()}
MOMENTS = {XSD + name for name in ("date", "dateTime", "dateTimeStamp")}
_OPERATORS = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Graph:
    """All statements, with what the schema says of them: classes and properties above."""

    def __init__(self, statements: Iterable[Statement], schema: RdfSchema) -> None:
        self.classes: dict[str, set[str]] = {}
        self.values: dict[tuple[str, str], set[Statement]] = {}
        for each in statements:
            classes = self.classes.setdefault(each.subject, {RESOURCE})
            if each.property == RDF_TYPE:
                classes |= {each.value, *schema.classes.get(each.value, ())}
            for name in (each.property, *schema.properties_above.get(each.property, ())):
                self.values.setdefault((each.subject, name), set()).add(each)

    def of_class(self, name: str) -> list[str]:
        return [resource for resource, classes in self.classes.items() if name in classes]

    def values_of(self, resource: str, name: str) -> Iterable[Statement]:
        """With "" for the name the resource itself."""
        if not name:
            return (Statement(resource, "", resource, "", ""),)
        return self.values.get((resource, name), ())


def matches(rule: Rule, statements: Iterable[Statement], schema: RdfSchema) -> set[str]:
    """The resources that a rule registers."""
    graph = Graph(statements, schema)
    return {each for conjunction in rule.alternatives for each in _matches(conjunction, graph)}


def _matches(conjunction: Conjunction, graph: Graph) -> Iterator[str]:
    variables = [conjunction.register]
    variables += (each for each in conjunction.classes if each not in variables)
    parts = [*conjunction.conditions, *conjunction.joins]
    for resource in graph.of_class(conjunction.classes[conjunction.register]):
        if _holds(conjunction, graph, variables, 1, parts, {conjunction.register: resource}):
            yield resource


def _holds(
    conjunction: Conjunction,
    graph: Graph,
    variables: list[str],
    bound: int,
    parts: list[Condition | Join[str]],
    at: dict[str, str],
) -> bool:
    """Whether what is bound so far holds, and some resources for the variables that are left."""
    for each in parts:
        names = (each.variable,) if isinstance(each, Condition) else (each.left, each.right)
        if (
            at.keys() >= {*names}
            and variables[bound - 1] in names
            and not _part_holds(each, graph, at)
        ):
            return False
    if bound == len(variables):
        return True
    new = variables[bound]
    return any(
        _holds(conjunction, graph, variables, bound + 1, parts, {**at, new: resource})
        for resource in graph.of_class(conjunction.classes[new])
    )


def _part_holds(part: Condition | Join[str], graph: Graph, at: dict[str, str]) -> bool:
    if isinstance(part, Condition):
        values = graph.values_of(at[part.variable], part.property)
        return any(meets(each, part.operator, part.constant) for each in values)
    lefts = graph.values_of(at[part.left], part.left_property)
    rights = list(graph.values_of(at[part.right], part.right_property))
    return any(both(x, part.operator, y, part.kind) for x in lefts for y in rights)


def seen_as(value: Statement, kind: str) -> str | float | None:
    """A value as one of a kind, None if it has none."""
    if (kind == "iri") != (not value.datatype):
        return None
    if kind == "number" and value.datatype in NUMBERS:
        number = float(value.value)
        return None if isnan(number) else number
    if kind == "moment" and value.datatype in MOMENTS:
        day, zone = value.value[:10], value.value[10:]
        moment = datetime.fromisoformat(day + (zone if "T" in zone else f"T00:00:00{zone}"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return value.value if kind in ("text", "iri") else None


def kind_of(value: Statement) -> str:
    """By its datatype alone: not-a-number is a number that nothing equals."""
    if not value.datatype:
        return "iri"
    return (
        "number" if value.datatype in NUMBERS else "moment" if value.datatype in MOMENTS else "text"
    )


def compares(left: str | float | None, operator: str, right: str | float | None) -> bool:
    if left is None or right is None:
        return False
    if operator in ("contains", "lacks"):
        return (str(right) in str(left)) == (operator == "contains")
    return bool(_OPERATORS[operator](left, right))


def meets(value: Statement, operator: str, constant: Constant) -> bool:
    return compares(seen_as(value, constant.kind), operator, constant.value)


def both(left: Statement, operator: str, right: Statement, kind: str) -> bool:
    """``kind``: as that of a Join."""
    if not kind and kind_of(left) != kind_of(right):
        return False
    kind = kind or kind_of(left)
    if operator[0] in "<>" and kind not in ("number", "moment"):
        return False
    return compares(seen_as(left, kind), operator, seen_as(right, kind))
