"""Properties of plans: covering, balance, determinism, exclusiveness; and the artefact."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.topology import parse_topology
from registration.planning.exclusiveness import Need
from registration.planning.pattern_cover import Signature, choose_patterns
from registration.planning.plan import Placer, Plan
from registration.planning.plan_file import PlanError, from_json, plan_id, to_json
from registration.planning.planner import (
    REPEATED,
    Evidence,
    PlanOptions,
    make_plan,
    measured_values,
    partitions_for,
)
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.registration.planning.populations import PATTERNS, FigureNine, profile_text

signatures = st.lists(
    st.builds(
        Signature,
        st.sets(st.sampled_from(PATTERNS), max_size=4).map(lambda found: tuple(sorted(found))),
        st.integers(1, 50).map(float),
    ),
    max_size=30,
)
costs = st.fixed_dictionaries({pattern: st.sampled_from([0.1, 1.0, 5.0]) for pattern in PATTERNS})


@given(signatures, costs)
def test_every_profile_with_a_pattern_has_a_chosen_one_and_none_is_chosen_in_vain(
    population: list[Signature], cost: dict[str, float]
) -> None:
    chosen = choose_patterns(population, cost.__getitem__)
    assert len(set(chosen)) == len(chosen)
    for signature in population:
        assert not signature.patterns or set(signature.patterns) & set(chosen)
    for pattern in chosen:
        others = set(chosen) - {pattern}
        assert any(s.patterns and not set(s.patterns) & others for s in population), pattern
    assert choose_patterns(population[::-1], cost.__getitem__) == chosen


def test_what_occurs_at_most_once_is_preferred() -> None:
    once, often = "/m/@once", "/m/x/@often"
    population = [Signature((once, often), 60.0), Signature((often,), 40.0)]
    occurs = {once: 1.0, often: 10.0}
    assert choose_patterns(population, occurs.__getitem__) == (often,)
    population.append(Signature((once,), 10.0))
    assert choose_patterns(population, occurs.__getitem__) == (once, often)
    assert choose_patterns(population[:1], occurs.__getitem__) == (once,)


def test_pairs_of_ten_patterns_need_nine() -> None:
    population = [Signature(pair, 1.0) for pair in combinations(PATTERNS, 2)]
    assert len(choose_patterns(population, lambda _: 1.0)) == 9


def _plan(profiles: list[ProfileNeeds], partitions: int, **more: object) -> Plan:
    return make_plan(LocalPopulation(profiles), PlanOptions(partitions, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(("zipf", "most"), [(False, 1.05), (True, 1.2)])
def test_every_profile_is_in_one_partition_and_these_are_even(zipf: bool, most: float) -> None:
    figure = FigureNine(1, zipf=zipf)
    profiles = figure.profiles(30_000)
    plan = _plan(profiles, 50)
    loads = Counter(
        plan.place_needs(profile.needs, profile_text(profile.needs)).partition
        for profile in profiles
    )
    assert sum(loads.values()) == 30_000
    assert set(loads) == set(range(50))
    # As packed; then as placed, where a value that is split goes by the texts of its profiles.
    assert plan.facts.imbalance <= most
    assert max(loads.values()) / 600 <= most
    assert plan.facts.coverage == 1
    if not zipf:
        assert [loads[p] for p in range(50)] == list(plan.facts.loads)


def test_a_message_with_each_pattern_once_visits_one_partition_a_pattern() -> None:
    figure = FigureNine(2)
    plan = _plan(figure.profiles(20_000), 100)
    assert len(plan.rules) == 9
    for _ in range(50):
        assert len(plan.visited(figure.message())) <= 9
    mean = sum(len(plan.visited(figure.message(40))) for _ in range(50)) / 50
    assert mean <= 40


@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_message_matches_is_in_a_partition_that_it_visits(seed: int) -> None:
    rng = Random(seed)
    figure = FigureNine(seed, values=6, zipf=bool(seed % 2))
    profiles = [
        ProfileNeeds(figure.needs()[: rng.choice((0, 1, 2, 2))]) for _ in range(rng.randint(1, 200))
    ]
    plan = _plan(profiles, rng.choice((1, 2, 7, 30)))
    new = [ProfileNeeds(figure.needs()) for _ in range(50)]
    for _ in range(10):
        message = figure.message(rng.randint(0, 10))
        visited = plan.visited(message) | set(plan.dont_care)
        for profile in profiles + new:
            if all(set(need.values) & set(message[need.pattern]) for need in profile.needs):
                assert plan.place_needs(profile.needs, "/m").partition in visited, f"seed {seed}"


@pytest.mark.parametrize("seed", range(10))
def test_the_prediction_is_never_below_what_matches(seed: int) -> None:
    """With profiles that have alternatives, which are placed by the first of them."""
    rng = Random(seed)
    figure = FigureNine(seed, values=20, zipf=bool(seed % 2))
    profiles = []
    for _ in range(300):
        needs = [
            Need(need.pattern, tuple(sorted({figure.value() for _ in range(rng.randint(1, 4))})))
            for need in figure.needs()
        ]
        profiles.append(ProfileNeeds(tuple(needs)))
    messages = [figure.message(rng.randint(0, 5)) for _ in range(20)]
    evidence = Evidence(messages=[(message, 1.0) for message in messages])
    plan = make_plan(LocalPopulation(profiles), PlanOptions(30), evidence)
    matched = sum(
        len(
            {
                plan.place_needs(profile.needs, "/m").partition
                for profile in profiles
                if all(set(need.values) & set(message[need.pattern]) for need in profile.needs)
            }
        )
        for message in messages
    )
    assert matched / len(messages) / 30 <= plan.facts.matched_share < 1


def test_dont_care_profiles_are_confined_to_partitions_of_their_own() -> None:
    figure = FigureNine(3)
    profiles = figure.profiles(9_000) + [ProfileNeeds(())] * 1_000
    plan = _plan(profiles, 50)
    assert plan.dont_care == tuple(range(45, 50))
    assert plan.facts.coverage == pytest.approx(0.9)
    assert plan.facts.imbalance <= 1.05
    texts = [f"//x{number}" for number in range(300)]
    assert {plan.place_needs((), text).partition for text in texts} == set(plan.dont_care)
    assert plan.place_needs((), texts[0]) == plan.place_needs((), texts[0])


def test_weights_count_as_load() -> None:
    heavy = [ProfileNeeds((Need("/m/@v", ("hot",)),), load=5.0) for _ in range(10)]
    light = [ProfileNeeds((Need("/m/@v", (str(n),)),)) for n in range(50)]
    plan = _plan(heavy + light, 2)
    assert plan.facts.load == 100
    assert plan.facts.imbalance == 1


def test_plans_are_deterministic_whatever_the_order() -> None:
    profiles = FigureNine(4, zipf=True).profiles(3_000)
    assert plan_id(_plan(profiles, 20)) == plan_id(_plan(profiles[::-1], 20))


def test_without_profiles_or_partitions_there_is_no_plan() -> None:
    with pytest.raises(ValueError, match="no profiles"):
        _plan([], 5)
    with pytest.raises(ValueError, match="at least one partition"):
        _plan(FigureNine(1).profiles(3), 0)


def test_samples_predict_what_is_visited() -> None:
    figure = FigureNine(5, values=100)
    profiles = figure.profiles(20_000)
    seen = Evidence(messages=[(figure.message(5), 1.0) for _ in range(600)])
    plan = make_plan(LocalPopulation(profiles), PlanOptions(100), seen)
    fresh = [figure.message(5) for _ in range(600)]
    visited = sum(len(plan.visited(message)) for message in fresh) / 600 / 100
    assert plan.facts.matched_share == pytest.approx(visited, rel=0.05)


def test_without_samples_what_brokers_have_measured_counts() -> None:
    often, rare = PATTERNS[:2]
    profiles = [ProfileNeeds([Need(often, (str(n),))]) for n in range(60)]
    profiles += [ProfileNeeds([Need(rare, (str(n),))]) for n in range(40)]
    plan = _plan(profiles, 10)
    of_often = plan.rule_of[often].where - plan.rule_of[rare].where
    of_rare = plan.rule_of[rare].where - plan.rule_of[often].where
    matched = [(partition, 90.0) for partition in of_often]
    matched += [(partition, 10.0) for partition in of_rare]
    measured = measured_values(plan, 100, matched)
    assert measured[often] == pytest.approx(0.9 * len(of_often))
    assert measured[rare] == pytest.approx(0.1 * len(of_rare))
    other = PATTERNS[2]
    expected = Evidence(measured=measured).expected([often, rare, other])
    assert expected == {**measured, other: REPEATED}
    assert Evidence(lambda _: 1.0, measured=measured).expected([often]) == {often: 1.0}
    with_samples = Evidence(messages=[({rare: ["1", "2"]}, 1.0)], measured=measured)
    assert with_samples.expected([often, rare]) == {often: 0.0, rare: 2.0}


@pytest.mark.parametrize(("profiles", "partitions"), [(0, 3), (100, 12), (10_000, 24)])
def test_a_network_has_as_many_partitions_as_are_filled(profiles: int, partitions: int) -> None:
    text = 'name = "t"\n[registration]\nid = "R"\nlisten = "r:1"\n' + "".join(
        f'[[broker]]\nid = "B{n}"\nlisten = "b{n}:1"\n' for n in (1, 2, 3)
    )
    topology = parse_topology(
        text + '[[link]]\nends = ["B1", "B2"]\n[[link]]\nends = ["B2", "B3"]\n', "t"
    )
    assert partitions_for(topology, profiles) == partitions
    assert partitions_for(None, profiles) == min(max(profiles // 8, 1), 64)


def test_the_placer_reads_texts() -> None:
    figure = FigureNine(6)
    profiles = figure.profiles(2_000)
    plan = _plan(profiles, 10)
    placer = Placer(plan)
    for profile in profiles[:200]:
        text = profile_text(profile.needs)
        assert placer.place(text) == plan.place_needs(profile.needs, text)
    assert placer._reader._read == 200


# --- the artefact -----------------------------------------------------------------------------


def test_a_plan_is_read_back_equal() -> None:
    figure = FigureNine(7, zipf=True)
    evidence = Evidence(lambda pattern: inf if pattern == PATTERNS[0] else 1.0)
    plan = make_plan(LocalPopulation(figure.profiles(3_000)), PlanOptions(20), evidence)
    assert from_json(to_json(plan)) == plan


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "version"),
        ({"id": "0" * 16}, "id"),
        ({"partitions": 0}, "partitions"),
        ({"partitions": 7}, "facts.loads"),
        ({"dont_care": []}, "dont_care"),
        ({"dont_care": [5]}, "dont_care"),
        ({"brokers": ["B1"]}, "brokers"),
        ({"rules": [3]}, "rules[0]"),
        ({"facts": None}, "facts"),
        ({"topology": "other"}, "id"),
    ],
)
def test_a_plan_that_is_not_what_it_was_is_refused(change: dict[str, object], key: str) -> None:
    text = to_json(_plan(FigureNine(8).profiles(100), 5))
    with pytest.raises(PlanError) as refused:
        from_json(json.dumps({**json.loads(text), **change}), "plan.json")
    assert refused.value.fault.where == f"plan.json: {key}"
    assert str(refused.value).startswith(f"plan.json: {key}: ")


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(PlanError, match="is not JSON"):
        from_json("{", "plan.json")


# --- brokers ----------------------------------------------------------------------------------


def _line(*capacities: int) -> str:
    lines = ['name = "line"', "[registration]", 'id = "R"', 'listen = "r:1"']
    for number, capacity in enumerate(capacities, 1):
        lines += ["[[broker]]", f'id = "B{number}"', f'listen = "b{number}:1"']
        lines += [f"capacity = {capacity}"]
    for number in range(1, len(capacities)):
        lines += ["[[link]]", f'ends = ["B{number}", "B{number + 1}"]']
    return "\n".join(lines)


def test_brokers_get_partitions_by_capacity() -> None:
    topology = parse_topology(_line(100, 0, 300, 100), "line")
    plan = _plan(FigureNine(9).profiles(10_000), 50, topology=topology)
    shares = Counter(plan.brokers)
    assert shares == {"B1": 10, "B3": 30, "B4": 10}
    assert plan.topology == "line"
    assert plan.broker_of(0) == plan.brokers[0]


def test_partitions_that_match_together_come_together() -> None:
    """Two kinds of messages; each kind's partitions end up at one broker."""
    kinds = [[f"/k{kind}/f{number}/@v" for number in range(5)] for kind in range(2)]
    rng = Random(10)
    profiles = [
        ProfileNeeds((Need(pattern, (str(rng.randrange(50)),)),))
        for patterns in kinds
        for pattern in patterns
        for _ in range(400)
    ]
    messages = [
        ({pattern: [str(rng.randrange(50))] for pattern in kinds[number % 2]}, 1.0)
        for number in range(200)
    ]
    topology = parse_topology(_line(100, 100), "line")
    plan = make_plan(
        LocalPopulation(profiles), PlanOptions(20, topology), Evidence(messages=messages)
    )
    for values, _ in messages:
        assert len({plan.broker_of(partition) for partition in plan.visited(values)}) == 1


def test_no_capacity_no_brokers() -> None:
    topology = parse_topology(_line(0, 0), "line")
    with pytest.raises(ValueError, match="no broker of line has room"):
        _plan(FigureNine(1).profiles(10), 4, topology=topology)


# --- what a new plan keeps --------------------------------------------------------------------


def _moved(old: Plan, new: Plan, profiles: list[ProfileNeeds]) -> float:
    """The share of the profiles that have another broker by the new plan."""
    texts = [(profile.needs, profile_text(profile.needs)) for profile in profiles]
    places = [
        [plan.broker_of(plan.place_needs(*t).partition) for t in texts] for plan in (old, new)
    ]
    return sum(a != b for a, b in zip(*places, strict=True)) / len(profiles)


@pytest.mark.parametrize("zipf", [False, True])
def test_a_new_plan_moves_few_profiles_and_is_as_good(zipf: bool) -> None:
    figure = FigureNine(11, zipf=zipf)
    old = figure.profiles(6_000)
    new = old[300:] + figure.profiles(300)
    topology = parse_topology(_line(*[100] * 6), "line")
    evidence = Evidence(messages=[(figure.message(5), 1.0) for _ in range(100)])

    def plan(profiles: list[ProfileNeeds], before: Plan | None = None) -> Plan:
        options = PlanOptions(48, topology, before)
        return make_plan(LocalPopulation(profiles), options, evidence)

    before = plan(old)
    assert _moved(before, plan(old, before), old) == 0
    fresh, kept = plan(new), plan(new, before)
    assert _moved(before, kept, new) < 0.05
    assert _moved(before, fresh, new) > 0.3
    assert kept.facts.imbalance <= fresh.facts.imbalance + 0.03
    assert kept.facts.matched_share <= fresh.facts.matched_share * 1.1
    assert kept.facts.brokers_share <= fresh.facts.brokers_share * 1.1
    assert set(Counter(kept.brokers).values()) <= {7, 8, 9}


def test_nothing_is_kept_at_a_broker_that_hosts_no_more() -> None:
    profiles = FigureNine(12).profiles(4_000)
    before = _plan(profiles, 32, topology=parse_topology(_line(100, 100, 100, 100), "line"))
    less = parse_topology(_line(100, 100, 0, 100), "line")
    after = _plan(profiles, 24, topology=less, before=before)
    assert set(after.brokers) == {"B1", "B2", "B4"}
    assert after.facts.imbalance <= 1.05
    assert (
        _moved(before, after, profiles)
        < 0.5
        < _moved(before, _plan(profiles, 24, topology=less), profiles)
    )


def test_a_plan_of_other_profiles_is_no_hindrance() -> None:
    other = [ProfileNeeds((Need("/o/@v", (str(n),)),)) for n in range(500)] + [ProfileNeeds(())] * 9
    before = _plan(other, 10)
    profiles = FigureNine(13).profiles(2_000)
    plan = _plan(profiles, 20, before=before)
    assert plan.facts.imbalance <= _plan(profiles, 20).facts.imbalance + 0.03
    loads = Counter(plan.place_needs(p.needs, profile_text(p.needs)).partition for p in profiles)
    assert [loads[p] for p in range(20)] == list(plan.facts.loads)


def test_fewer_profiles_than_partitions_are_not_said_to_be_even() -> None:
    profiles = [ProfileNeeds((Need("/m/@v", (str(n),)),)) for n in range(5)]
    plan = _plan([*profiles, ProfileNeeds(())], 60)
    assert sum(plan.facts.loads) == 6
    assert max(plan.facts.loads) >= 1
    assert plan.facts.imbalance >= 10
    few = make_plan(LocalPopulation(profiles), PlanOptions())
    assert (few.partitions, few.facts.imbalance) == (1, 1)
