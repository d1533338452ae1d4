"""The operator network: how much is shared, and that what is released is gone."""

from __future__ import annotations

from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.random_cases import random_profile
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.engine.matching_plan import decompose
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.targets import LinkTarget, Query
from yfilter.language.matching_path import matching_path
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile

# The queries of the paper's Figure 5.
FIGURE_5 = {
    "Q1": '$msg/nitf[head/pubdata[@edition.area = "SF"]]'
    '[.//tobject.subject[@tobject.subject.type = "Stock"]]',
    "Q2": '$msg/nitf[head/pubdata[@edition.area = "SF"]]'
    '[.//tobject.subject[@tobject.subject.matter = "fishing"]]',
    "Q3": '<nitf>{ for $n in $msg/nitf where $n/head/pubdata/@edition.area = "SF"'
    ' and $n//series/@series.name = "Tide Forecasts" return $n/body/body.content }</nitf>',
}


class Annotated:
    """A network with named profiles and routes in it."""

    def __init__(self) -> None:
        self.network = OperatorNetwork()
        self._profiles: dict[str, tuple[Operator, Query]] = {}

    def add(self, profile: str | Profile, name: str = "p") -> Operator:
        parsed = parse_profile(profile) if isinstance(profile, str) else profile
        operator = self.network.build_plan(decompose(matching_path(parsed)))
        query = Query(parsed, remainder=False)
        query.subscribers[name] = 0
        self.network.attach(operator, query)
        self._profiles[name] = (operator, query)
        return operator

    def remove(self, name: str) -> None:
        operator, query = self._profiles.pop(name)
        self.network.detach(operator, query)

    def sizes(self) -> dict[str, int]:
        """Sizes above zero, by short names."""
        sizes = self.network.statistics()
        kinds = ("path", "selection", "join", "residual", "and")
        short = {kind: sizes[f"operators_{kind}"] for kind in kinds}
        short["states"] = sizes["nfa_states"]
        assert sizes["operators"] == sum(short[kind] for kind in kinds)
        assert sizes["operators_path"] == sizes["nfa_accepting_states"] == sizes["nfa_paths"]
        return {kind: size for kind, size in short.items() if size}


def dump(network: OperatorNetwork) -> str:
    return "\n".join(network.picture().lines(1000))


def free(states: int) -> None:
    """Charges nothing."""


def shape(network: OperatorNetwork) -> set[str]:
    """Every operator with everything above it, written out."""
    operators = network._operators.values()

    def written(operator: Operator) -> str:
        inputs = ", ".join(sorted(written(upstream) for upstream in operator.inputs))
        return f"{operator.describe()} ({inputs})"

    return {f"{written(operator)} leads to {operator.leads_to}" for operator in operators}


def test_the_queries_of_figure_5_have_its_shape() -> None:
    annotated = Annotated()
    for name, profile in FIGURE_5.items():
        annotated.add(profile, name)
    # Four selections, of which the three queries share one; a join each; seven states.
    assert annotated.sizes() == {"path": 4, "selection": 4, "join": 3, "states": 7}
    text = dump(annotated.network)
    assert text.count('σ @edition.area = "SF"') == 1
    joins = [line for line in text.splitlines() if "⋈" in line]
    assert [line.split("-> ")[1] for line in joins] == ["Q1", "Q2", "Q3"]
    assert "(4: 1)" in text and "(6: 1)" in text and "(7: 1)" in text


def test_the_routing_queries_of_figure_6_have_its_shape() -> None:
    network = OperatorNetwork()
    for name, link in (("Q1", "broker 5"), ("Q2", "broker 5"), ("Q3", "broker 6")):
        (conjunction,) = routing_query(parse_profile(FIGURE_5[name]))
        network.attach(network.build_conjunction(conjunction), LinkTarget("4", link))
    sizes = network.statistics()
    # Box (c): joins have become ands; path /nitf alone says nothing more and is not kept.
    assert (sizes["operators_selection"], sizes["operators_and"]) == (4, 3)
    assert (sizes["operators_join"], sizes["operators_path"]) == (0, 3)
    assert sizes["nfa_states"] == 7
    assert dump(network).count("-> broker 5 (tree of 4)") == 2


@pytest.mark.parametrize(
    ("profiles", "sizes"),
    [
        (["/a/b", "/a/b"], {"path": 1, "states": 3}),
        (["/a/b", "/a/c"], {"path": 2, "states": 4}),
        # A selection in the middle is shared by whatever continues the path.
        (["/a[@x]/b", "/a[@x]/c"], {"path": 3, "selection": 1, "join": 2, "states": 4}),
        (["/a[@x][@y]", "/a[@y][@x]", "/a[@x]"], {"path": 1, "selection": 2, "states": 2}),
        (["/a[b][c]", "/a[c][b]"], {"path": 3, "join": 1, "states": 4}),
        (["/a[b]", "/a[b][b]"], {"path": 2, "join": 1, "states": 3}),
        # One branch, two joins above it.
        (
            ["/a[b/@x = 1][@y]", "/a[b[@x = 1]]"],
            {"path": 2, "selection": 2, "join": 2, "states": 3},
        ),
        (["/a[not(b)]", "/a[not(b)][@x]"], {"path": 1, "selection": 1, "residual": 2, "states": 2}),
        # Wherever something is asked there is one join, not one for each step.
        (["/a/b/c[@x]/d/e"], {"path": 2, "selection": 1, "join": 1, "states": 6}),
    ],
)
def test_equal_parts_are_one_operator(profiles: list[str], sizes: dict[str, int]) -> None:
    annotated = Annotated()
    for number, profile in enumerate(profiles):
        annotated.add(profile, str(number))
    assert annotated.sizes() == sizes


def test_a_profile_and_a_routing_query_share_their_paths() -> None:
    annotated = Annotated()
    profile = "/a[@x]//b[@y]"
    operator = annotated.add(profile)
    before = annotated.sizes()
    assert annotated.network.build_conjunction(Conjunction.parse(profile)) is operator
    assert annotated.sizes() == before


def test_what_a_removed_profile_shared_stays() -> None:
    annotated = Annotated()
    for name, profile in FIGURE_5.items():
        annotated.add(profile, name)
    annotated.remove("Q3")
    only_two = Annotated()
    for name in ("Q1", "Q2"):
        only_two.add(FIGURE_5[name], name)
    assert shape(annotated.network) == shape(only_two.network)
    assert annotated.sizes() == only_two.sizes()
    annotated.remove("Q1")
    annotated.remove("Q2")
    assert annotated.network.statistics() == OperatorNetwork().statistics()
    assert dump(annotated.network) == dump(OperatorNetwork())


def test_releasing_what_is_in_use_does_nothing() -> None:
    annotated = Annotated()
    operator = annotated.add("/a[@x]")
    annotated.network.release(operator)
    annotated.network.release(operator.inputs[0])
    assert annotated.sizes() == {"path": 1, "selection": 1, "states": 2}


@pytest.mark.parametrize("seed", range(15))
def test_adding_and_removing_gives_what_building_anew_gives(seed: int) -> None:
    rng = Random(seed)
    pool = [Profile(random_profile(rng, conditions=0.6)) for _ in range(25)]
    annotated = Annotated()
    present: dict[str, Profile] = {}
    for step in range(60):
        if present and rng.random() < 0.45:
            name = rng.choice(sorted(present))
            annotated.remove(name)
            del present[name]
        else:
            name = str(step)
            present[name] = rng.choice(pool)
            annotated.add(present[name], name)
        rebuilt = Annotated()
        for name, profile in present.items():
            rebuilt.add(profile, name)
        assert annotated.sizes() == rebuilt.sizes()
        if step % 10 == 0:
            assert shape(annotated.network) == shape(rebuilt.network)
    for name in list(present):
        annotated.remove(name)
    assert annotated.network.statistics() == OperatorNetwork().statistics()


def test_a_step_with_thousands_of_conditions_needs_no_deep_recursion() -> None:
    network = OperatorNetwork()
    conditions = "".join(f"[@a{number}]" for number in range(10_000, 15_000))
    operator = network.build_conjunction(Conjunction.parse(f"/a{conditions}"))
    link = LinkTarget("root", "link")
    network.attach(operator, link)
    assert network.statistics()["operators_selection"] == 5_000
    assert network.source(next(iter(network.nfa.run(parse_text(b"<a/>"), free)))).leads_to == [
        1,
        0,
        0,
    ]
    network.detach(operator, link)
    assert network.statistics() == OperatorNetwork().statistics()
