"""Figure 1 of the seed as a market with rules, and its query as a graph."""

from __future__ import annotations

from registration.queries.providers import (
    CLIENT,
    Column,
    CycleProvider,
    Flow,
    Function,
    Link,
    Market,
    Permission,
    Relation,
)
from registration.queries.query_graph import Output, Predicate, QueryGraph, Step, Unit

A = CycleProvider("u:A", "A", port=1, cpu_megahertz=2000, cores=4)
B = CycleProvider("u:B", "B", port=2, cpu_megahertz=2000, cores=4)
ASKING = CycleProvider(CLIENT, "client")

R = Relation(
    "u:R", "a.R", "u:a", ("u:A",), "parquet", "r",
    (Column("id", "INT", 100_000), Column("v", "STRING", 50)), 100_000, 3e6,
)  # fmt: skip
S = Relation(
    "u:S", "a.S", "u:a", ("u:A",), "files", "s",
    (Column("id", "INT", 5_000), Column("name", "STRING", 4_000)), 5_000, 5e6, wrapper="u:wrap",
)  # fmt: skip
T = Relation(
    "u:T", "b.T", "u:b", ("u:B",), "parquet", "t",
    (Column("id", "INT", 2_000), Column("image", "BINARY", width=50_000)), 2_000, 1e8,
)  # fmt: skip
THUMBNAIL = Function(
    "u:thumbnail", "thumbnail", "u:f", "scalar", (("image", "BINARY"),), (("", "BINARY"),),
    seconds_per_row=1e-3, bytes_per_row=2_000,
)  # fmt: skip
WRAP = Function(
    "u:wrap", "wrap_s", "u:f", "table", (("path", "STRING"), ("content", "BINARY")),
    (("id", "INT"), ("name", "STRING")),
)  # fmt: skip


def market(*rules: Permission | Flow, a: CycleProvider = A, b: CycleProvider = B) -> Market:
    """Of Figure 1, with rules."""
    return Market(
        {},
        {},
        {each.uri: each for each in (a, b, ASKING)},
        {each.uri: each for each in (R, S, T)},
        {each.uri: each for each in (THUMBNAIL, WRAP)},
        (Link("u:A", CLIENT, 1e6, 0.05), Link("u:B", CLIENT, 1e6, 0.05)),
        tuple(each for each in rules if isinstance(each, Permission)),
        tuple(each for each in rules if isinstance(each, Flow)),
    )


def flow(resource: str, *to: CycleProvider, aggregates: bool = False) -> list[Flow]:
    """Rules by which rows or code go to these places alone, and where they are read."""
    return [
        Flow(f"rule:{resource}:{site.name}", resource, site.uri, aggregates_only=aggregates)
        for site in to
    ]


def denied(right: str, resource: str) -> Permission:
    """Only another user may do so."""
    return Permission(f"rule:{right}:{resource}", "user/other", right, resource)


def unit(alias: str, relation: Relation, *names: str) -> Unit:
    return Unit(alias, tuple(each for each in relation.columns if each.name in names), relation)


def applied(number: int, name: str, argument: str, *functions: Function) -> Step:
    """A function of a column of the unit of that number, whose result is the column ``name``."""
    text = f"{functions[0].name}(`{argument}`)"
    return Step(1 << number, text, (Column(name, "BINARY"),), (argument,), 0, functions)


FIGURE_1 = QueryGraph(
    units=(unit("r", R, "id", "v"), unit("s", S, "id", "name"), unit("t", T, "id", "image")),
    predicates=(
        Predicate(0b011, "`r.id` = `s.id`", ("r.id", "s.id")),
        Predicate(0b101, "`r.id` = `t.id`", ("r.id", "t.id")),
        Predicate(0b001, "`r.v` = 'x'"),
    ),
    steps=(applied(2, "f.small", "t.image", THUMBNAIL),),
    select=(Output("name", "STRING", "`s.name`"), Output("small", "BINARY", "`f.small`")),
)
