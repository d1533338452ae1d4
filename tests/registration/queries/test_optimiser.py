"""Query plans of Figure 1: where each operator stands, and which rules move or refuse it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from registration.queries.access_plans import Places
from registration.queries.block_plans import BlockPlans
from registration.queries.compatibility import Compatibility
from registration.queries.cost_model import CHEAPEST, SPARK, USUAL, Weights
from registration.queries.idp import USUAL_EFFORT
from registration.queries.optimiser import Optimiser
from registration.queries.providers import Column, CycleProvider, Flow, Function, Market, Permission
from registration.queries.query_graph import Output, Predicate, QueryGraph, Step, Unit
from registration.queries.query_plan import PlanNode, digest, drawing, to_json
from registration.queries.refusals import QueryRefused
from tests.registration.queries.markets import (
    ASKING,
    FIGURE_1,
    THUMBNAIL,
    A,
    B,
    R,
    S,
    T,
    applied,
    denied,
    flow,
    market,
    unit,
)

UNITS = FIGURE_1.units
IDS = (Output("id", "INT", "`r.id`"),)
COUNTED = QueryGraph(
    units=UNITS[:2],
    predicates=FIGURE_1.predicates[:1],
    steps=(),
    select=(Output("name", "STRING", "`s.name`"), Output("n", "BIGINT", "count(1)")),
    group=("`s.name`",),
    aggregated=True,
)
COUNTED_COLUMNS = (Column("name", "STRING"), Column("n", "BIGINT"))
FREE = market()
S_KEPT = (*flow("u:S"), *flow("u:S", B, ASKING, aggregates=True))


def _plan(graph: QueryGraph, ruled: Market = FREE, weights: Weights = USUAL) -> PlanNode:
    return Optimiser(ruled, Compatibility(ruled), weights=weights).plan(graph)


def _site(plan: PlanNode, operator: str, text: str = "") -> str:
    """The cycle provider of the only such operator."""
    (found,) = (each for each in plan.walk() if each.operator == operator and text in each.text)
    return found.site.name


def _refused(graph: QueryGraph, ruled: Market) -> QueryRefused:
    with pytest.raises(QueryRefused) as caught:
        _plan(graph, ruled)
    assert caught.value.fault.code == "no-plan"
    return caught.value


def test_operators_stand_where_their_data_is() -> None:
    plan = _plan(FIGURE_1)
    assert _site(plan, "scan", "a.R") == _site(plan, "wrap") == "A"
    assert _site(plan, "scan", "b.T") == _site(plan, "apply") == "B"
    assert plan.site == ASKING
    assert plan.operator == "project"


def test_pictures_are_made_small_before_they_are_sent() -> None:
    plan = _plan(FIGURE_1)
    assert plan.figures.bytes_moved < 1e6 < plan.figures.bytes_read


def test_a_function_moves_to_where_its_code_may_be() -> None:
    for site in (A, ASKING, B):
        plan = _plan(FIGURE_1, market(*flow("u:thumbnail", site)))
        assert _site(plan, "apply") == site.name


def test_rows_stay_where_a_rule_keeps_them_and_others_come_to_them() -> None:
    plan = _plan(COUNTED, market(*S_KEPT))
    assert _site(plan, "nest") == _site(plan, "join") == "A"
    assert plan.operator == "receive"
    assert plan.site == ASKING


def test_rows_do_not_leave_without_the_aggregate_that_a_rule_wants() -> None:
    rows = replace(COUNTED, aggregated=False, group=(), select=COUNTED.select[:1])
    refused = _refused(rows, market(*S_KEPT))
    assert set(refused.rule.split()) == {"rule:u:S:B", "rule:u:S:client"}
    assert "a.S may not go to client" in refused.fault.reason


@pytest.mark.parametrize(
    ("rules", "named", "said"),
    [
        ([denied("read", "u:R")], {"rule:read:u:R"}, "a.R"),
        (flow("u:wrap", B), {"rule:u:wrap:B"}, "a.S"),
        ([denied("execute", "u:thumbnail")], {"rule:execute:u:thumbnail"}, "thumbnail"),
        ([*flow("u:R", A), *flow("u:T", B)], {"rule:u:R:A", "rule:u:T:B"}, "a.R, a.S, b.T"),
        (
            [*flow("u:T", ASKING), *flow("u:thumbnail", A)],
            {"rule:u:T:client", "rule:u:thumbnail:A"},
            "the code of thumbnail",
        ),
    ],
)
def test_a_query_without_a_plan_names_the_rules_that_forbid_it(
    rules: list[Permission | Flow], named: set[str], said: str
) -> None:
    refused = _refused(FIGURE_1, market(*rules))
    assert set(refused.rule.split()) == named
    assert said in refused.fault.reason


def test_a_function_with_too_little_memory_goes_elsewhere() -> None:
    large = replace(A, memory_megabytes=8_000.0)
    step = applied(2, "f.small", "t.image", replace(THUMBNAIL, megabytes=4_000.0))
    assert _site(_plan(replace(FIGURE_1, steps=(step,)), market(a=large)), "apply") == "A"


def test_the_cheaper_of_two_functions_of_one_name_is_chosen() -> None:
    dear = replace(THUMBNAIL, provider="u:g", price_per_row=5.0)
    for order in ((dear, THUMBNAIL), (THUMBNAIL, dear)):
        plan = _plan(replace(FIGURE_1, steps=(applied(2, "f.small", "t.image", *order),)))
        (apply,) = (each for each in plan.walk() if each.operator == "apply")
        assert apply.function == THUMBNAIL


def test_an_outer_join_keeps_its_sides_and_predicates_of_its_null_side_stand_above_it() -> None:
    graph = replace(
        FIGURE_1,
        predicates=(*FIGURE_1.predicates[1:], Predicate(0b010, "`s.name` IS NULL")),
        outer=(("left", 0b001, 0b010, "`r.id` = `s.id`"),),
    )
    (select,) = (each for each in _plan(graph).walk() if each.text == "`s.name` IS NULL")
    join = next(each for each in select.walk() if each.kind == "left")
    scans = [each for side in join.inputs for each in side.walk() if each.operator == "scan"]
    assert [each.relation for each in scans] == [R, S]


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("left", 1e5, 1e6), ("right", 5e3, 1e6), ("full", 1e5, 1e6),
        ("semi", 1, 1e5), ("anti", 1, 1e5), ("filter", 1, 1e5),
    ],
)  # fmt: skip
def test_every_kind_of_outer_join_is_planned(kind: str, least: float, most: float) -> None:
    outer = ((kind, 0b01, 0b10, "`r.id` = `s.id`"),)
    plan = _plan(QueryGraph(UNITS[:2], (), (), IDS, outer=outer))
    (join,) = (each for each in plan.walk() if each.operator == "join")
    assert (join.kind, join.index) == (kind, 0)
    assert least <= join.figures.rows <= most


def test_a_unit_that_the_result_asks_for_is_where_the_result_is_made() -> None:
    """``SELECT (SELECT max(v) FROM r) FROM t``: rows are not sent between the join and the top."""
    select = (Output("id", "INT", "`t.id`"), Output("m", "STRING", "(SELECT max(`r.v`) FROM `r`)"))
    graph = QueryGraph((UNITS[2], UNITS[0]), (), (), select, outer=(("filter", 0b01, 0b10, ""),))
    (project,) = (each for each in _plan(graph).walk() if each.operator == "project")
    assert project.inputs[0].operator == "join"


def test_a_block_is_planned_where_its_rows_may_be() -> None:
    graph = QueryGraph(
        units=(Unit("b", COUNTED_COLUMNS, block=COUNTED), UNITS[2]),
        predicates=(Predicate(0b11, "`b.n` = `t.id`", ("b.n", "t.id")),),
        steps=(),
        select=(Output("name", "STRING", "`b.name`"),),
    )
    plan = _plan(graph, market(*S_KEPT, *flow("u:T", ASKING)))
    assert _site(plan, "nest") == "A"
    assert _site(plan, "join", "b.n") in ("B", "client")
    (block,) = (each for each in plan.walk() if each.operator == "block")
    assert block.index == 0


@pytest.mark.parametrize("how", ["union all", "union", "intersect", "except", "except all"])
def test_combined_rows_meet_at_one_site(how: str) -> None:
    ids = (Column("id", "INT"),)
    branches = (
        Unit("x", ids, block=QueryGraph((UNITS[0],), (), (), IDS)),
        Unit("y", ids, block=QueryGraph((UNITS[2],), (), (), (Output("id", "INT", "`t.id`"),))),
    )
    graph = QueryGraph(
        branches, (), (), (Output("id", "INT", "`x.id`"),), combine=how, order=("`x.id`",), limit=10
    )
    plan = _plan(graph)
    (union,) = (each for each in plan.walk() if each.operator == "union")
    assert [each.site for each in union.inputs] == [union.site] * 2
    assert union.kind == how
    assert plan.figures.rows == 10
    assert _refused(graph, market(*flow("u:T", B))).rule == "rule:u:T:B"


def test_an_unnest_stands_below_a_predicate_and_a_function_over_its_elements() -> None:
    elements = Step(0b001, "explode(split(`r.v`, ' '))", (Column("e.each", "STRING"),), ("r.v",))
    call = Step(
        0, "thumbnail(`e.each`)", (Column("g.small", "BINARY"),), ("e.each",), 0b01, (THUMBNAIL,)
    )
    graph = replace(
        FIGURE_1,
        steps=(elements, call),
        predicates=(*FIGURE_1.predicates[:2], Predicate(0, "`e.each` = 'x'", steps=0b01)),
        select=(Output("small", "BINARY", "`g.small`"),),
    )
    plan = _plan(graph)
    for operator in ("select", "apply"):
        (above,) = (each for each in plan.walk() if each.operator == operator)
        assert any(each.operator == "unnest" for each in above.walk())


def test_rows_of_an_archive_are_as_its_sample_says() -> None:
    asked = []
    archive = replace(unit("r", R, "id"), arguments=(("profile", "/a"),))

    def rows_of(relation: object, arguments: tuple[tuple[str, str], ...]) -> float:
        asked.append((relation, arguments))
        return 17

    optimiser = Optimiser(FREE, Compatibility(FREE), rows_of=rows_of)
    assert optimiser.plan(QueryGraph((archive,), (), (), IDS)).figures.rows == 17
    assert set(asked) == {(R, (("profile", "/a"),))}


def test_money_buys_seconds_where_the_limits_ask_for_it() -> None:
    dear = replace(B, price_per_second=1e4, cpu_megahertz=1e6)
    ruled = replace(market(*flow("u:thumbnail", A, B), b=dear), links=())
    pictures = unit("t", replace(T, read_at=("u:A", "u:B")), "image")
    ruled = replace(ruled, relations={**ruled.relations, "u:T": pictures.relation or T})
    step = applied(0, "f.small", "t.image", replace(THUMBNAIL, seconds_per_row=10.0))
    graph = QueryGraph((pictures,), (), (step,), (Output("small", "BINARY", "`f.small`"),))
    optimiser = Optimiser(ruled, Compatibility(ruled), weights=CHEAPEST)
    cheap = optimiser.plan(graph)
    fast = optimiser.plan(graph, lambda figures: figures.seconds < cheap.figures.seconds / 10)
    assert _site(cheap, "apply") == "A"
    assert _site(fast, "apply") == "B"
    assert cheap.figures.cost < fast.figures.cost


def _started(start_s: float, ruled: Market = FREE) -> PlanNode:
    graph = replace(FIGURE_1, select=(Output("page", "BINARY", "encode(`r.id`, 'utf-8')"),))
    return Optimiser(ruled, Compatibility(ruled), start_s=start_s).plan(graph)


def test_others_compute_where_the_asking_process_starts_slower_than_it_saves() -> None:
    assert (_started(0).operator, _started(0).site) == ("project", ASKING)
    assert _started(1e-6).operator == "project"
    plan = _started(5)
    assert [each.operator for each in plan.walk() if each.site == ASKING] == ["receive"]
    assert plan.figures.bytes_moved > _started(0).figures.bytes_moved


def test_the_asking_process_starts_where_nobody_else_may_compute() -> None:
    plan = _started(5, market(*flow("u:thumbnail", ASKING)))
    assert _site(plan, "apply") == "client"


def test_the_search_and_the_nodes_count_the_same_money() -> None:
    links = tuple(replace(each, price_per_megabyte=2.0) for each in FREE.links)
    priced = market(a=replace(A, price_per_second=3.0), b=replace(B, price_per_second=1.0))
    ruled = replace(priced, links=links)
    may = Compatibility(ruled)
    branch = Unit("b", COUNTED_COLUMNS, block=COUNTED)
    combined = QueryGraph(
        (branch, branch), (), (), (Output("n", "BIGINT", "`b.n`"),), combine="union"
    )
    for graph in (FIGURE_1, COUNTED, combined):
        places = Places(ruled, may, 0b111, SPARK, Weights(1.0, 0.0), lambda *_: None)
        plans = BlockPlans(places, graph, USUAL_EFFORT)
        for site in range(3):
            assert plans.node(site).figures.cost == pytest.approx(plans.cost[site])


@pytest.mark.parametrize("site", [A, B, ASKING])
def test_each_predicate_and_function_stands_once_and_rows_change_their_place_by_sends(
    site: CycleProvider,
) -> None:
    plan = _plan(FIGURE_1, market(*flow("u:thumbnail", site)))
    nodes = list(plan.walk())
    predicates = Counter(each.index for each in nodes if each.operator in ("select", "join"))
    assert predicates == {0: 1, 1: 1, 2: 1}
    assert [each.operator for each in nodes].count("apply") == 1
    for each in nodes:
        if each.operator == "receive":
            assert [below.operator for below in each.inputs] == ["send"]
        else:
            assert all(below.site == each.site for below in each.inputs)


def test_first_rows_come_before_the_last_and_figures_grow_upwards() -> None:
    for node in _plan(FIGURE_1).walk():
        assert 0 < node.figures.first_row_s <= node.figures.seconds
        for below in node.inputs:
            assert node.figures.bytes_moved >= below.figures.bytes_moved
            assert node.figures.seconds >= below.figures.seconds
            assert node.figures.bytes_read >= below.figures.bytes_read


def test_a_plan_is_shown_as_json_and_as_a_drawing() -> None:
    plan = _plan(FIGURE_1)
    said = to_json(plan)
    assert list(said) == ["query_plan", "estimate", "root"]
    assert said["query_plan"] == digest(plan) == digest(_plan(FIGURE_1))
    assert digest(plan) != digest(_plan(FIGURE_1, market(*flow("u:thumbnail", A))))
    root = said["root"]
    assert isinstance(root, dict)
    assert root["cycle_provider"] == "client"
    lines = drawing(plan).splitlines()
    assert lines[0].split() == ["operator", "cycle", "provider", "function", "rows"]
    assert len(lines) == len(list(plan.walk())) + 1


def test_a_large_star_is_planned_with_its_functions() -> None:
    count = 20
    edges = [(f"`t0.id` = `t{n}.id`", ("t0.id", f"t{n}.id"), 1 | 1 << n) for n in range(1, count)]
    functions = [
        Function(f"u:f{n}", f"f{n}", "u:f", "scalar", (("id", "INT"),), (("", "INT"),))
        for n in range(3)
    ]
    ruled = replace(FREE, functions={**FREE.functions, **{each.uri: each for each in functions}})
    graph = QueryGraph(
        tuple(unit(f"t{n}", R if n % 2 else S, "id") for n in range(count)),
        tuple(Predicate(units, text, equal) for text, equal, units in edges),
        tuple(applied(n, f"f{n}.value", f"t{n}.id", functions[n]) for n in range(3)),
        (Output("f", "INT", "`f0.value` + `f1.value` + `f2.value`"),),
    )
    nodes = [each.operator for each in _plan(graph, ruled).walk()]
    assert (nodes.count("scan"), nodes.count("join"), nodes.count("apply")) == (20, 19, 3)


def test_of_a_large_market_a_few_machines_are_looked_at() -> None:
    """The fastest one of the many takes a function that is slow elsewhere."""
    others = [
        CycleProvider(f"u:many/{n}", f"many{n}", port=1, cpu_megahertz=500.0 + n)
        for n in range(1_000)
    ]
    large = replace(FREE, cycle_providers={**FREE.cycle_providers, **{s.uri: s for s in others}})
    step = applied(2, "f.small", "t.image", replace(THUMBNAIL, seconds_per_row=3_000.0))
    fastest = replace(others[7], cpu_megahertz=1e6)
    large = replace(large, cycle_providers={**large.cycle_providers, fastest.uri: fastest})
    assert _site(_plan(replace(FIGURE_1, steps=(step,)), large), "apply") == "many7"


@pytest.mark.parametrize("shape", ["star", "chain", "none"])
def test_a_block_of_very_many_relations_is_planned_up_to_a_bound(shape: str) -> None:
    def joined(count: int) -> QueryGraph:
        edges = [(0 if shape == "star" else n - 1, n) for n in range(1, count) if shape != "none"]
        predicates = tuple(
            Predicate(1 << one | 1 << two, f"`t{one}.id` = `t{two}.id`",
                      (f"t{one}.id", f"t{two}.id"))
            for one, two in edges
        )  # fmt: skip
        units = tuple(unit(f"t{n}", R, "id") for n in range(count))
        return QueryGraph(units, predicates, (), (Output("id", "INT", "`t0.id`"),))

    nodes = [each.operator for each in _plan(joined(50)).walk()]
    assert nodes.count("join") == 49
    with pytest.raises(QueryRefused, match="more than 150"):
        _plan(joined(151))
