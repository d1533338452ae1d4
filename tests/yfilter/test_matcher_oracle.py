"""The engine against lxml: each profile alone, by somebody else's XPath."""

from __future__ import annotations

from random import Random

import pytest

from demo.oracle import canonical, expected_results
from tests.yfilter import interpreted
from tests.yfilter.random_cases import (
    WORDS,
    Message,
    random_condition,
    random_flwor,
    random_linear_profile,
    random_message,
    random_profile,
    xpath1,
)
from yfilter import LinkTarget, Matcher, ProfileMatch, RouteMatch
from yfilter.engine.linear_paths import routing_query
from yfilter.language.query_ast import NodeKind, PathExpression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse


def bindings(matcher: Matcher, message: Message) -> dict[str, tuple[int, ...]]:
    found = [match for match in matcher.match(message.stream) if isinstance(match, ProfileMatch)]
    assert len({match.profile_id for match in found}) == len(found)
    return {match.profile_id: match.bindings for match in found}


def expected(message: Message, profiles: dict[str, str]) -> dict[str, tuple[int, ...]]:
    selected = {name: message.select(xpath) for name, xpath in profiles.items()}
    return {name: elements for name, elements in selected.items() if elements}


@pytest.mark.parametrize("seed", range(50))
def test_random_profiles_together_bind_what_lxml_selects_for_each_alone(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    profiles = {}
    for number in range(40):
        path = random_profile(rng)
        # By the text and by the tree: both are ways in.
        profile = unparse(path) if number % 2 else Profile(path)
        profiles[matcher.add(profile)] = xpath1(path)
    for _ in range(6):
        message = random_message(rng)
        assert bindings(matcher, message) == expected(message, profiles), message.text


@pytest.mark.parametrize("seed", range(20))
def test_changes_between_messages_leave_the_engine_as_if_built_anew(seed: int) -> None:
    rng = Random(seed)
    pool = [random_profile(rng) for _ in range(30)]
    changed = Matcher()
    profiles: dict[str, PathExpression] = {}
    for step in range(60):
        if profiles and rng.random() < 0.45:
            name = rng.choice(sorted(profiles))
            changed.remove(name)
            del profiles[name]
        else:
            path = rng.choice(pool)
            profiles[changed.add(Profile(path))] = path
        if step % 6 == 0:
            rebuilt = Matcher()
            for name, path in profiles.items():
                rebuilt.add(Profile(path), name)
            assert _sizes(changed) == _sizes(rebuilt)
            message = random_message(rng)
            assert bindings(changed, message) == bindings(rebuilt, message)
    for name in list(profiles):
        changed.remove(name)
    assert _sizes(changed) == _sizes(Matcher())
    assert changed.statistics().operators == 0


def _sizes(matcher: Matcher) -> dict[str, int]:
    """What depends neither on the order in which profiles came nor on what has matched."""
    sizes = matcher.statistics()
    names = ("profiles", "queries", "index_queries")
    return {name: getattr(sizes, name) for name in names}


def router(profiles: list[Profile], disjuncts_max: int = 32) -> Matcher:
    """The routing queries of profiles, each with a link of its own."""
    matcher = Matcher()
    for number, profile in enumerate(profiles):
        conjunctions = routing_query(profile, disjuncts_max)
        assert 1 <= len(conjunctions) <= disjuncts_max
        for conjunction in conjunctions:
            matcher.add_route(conjunction, LinkTarget("root", str(number)))
    return matcher


def routed(matcher: Matcher, message: Message) -> set[int]:
    matches = list(matcher.match(message.stream, "root"))
    assert all(isinstance(match, RouteMatch) for match in matches)
    return {int(match.link) for match in matches if isinstance(match, RouteMatch)}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("disjuncts_max", [1, 3, 32])
def test_a_routing_query_never_loses_a_message(seed: int, disjuncts_max: int) -> None:
    rng = Random(seed)
    paths = [random_profile(rng, conditions=0.6) for _ in range(20)]
    matcher = router([Profile(path) for path in paths], disjuncts_max)
    for _ in range(6):
        message = random_message(rng)
        wanted = {number for number, path in enumerate(paths) if message.select(xpath1(path))}
        assert wanted <= routed(matcher, message), message.text


@pytest.mark.parametrize("seed", range(20))
def test_the_routing_query_of_a_linear_path_is_exact(seed: int) -> None:
    rng = Random(seed)
    paths = [random_linear_profile(rng) for _ in range(30)]
    matcher = router([Profile(path) for path in paths])
    for _ in range(6):
        message = random_message(rng)
        wanted = {number for number, path in enumerate(paths) if message.select(xpath1(path))}
        assert routed(matcher, message) == wanted, message.text


def test_attributes_and_text_below_any_depth_match_when_lxml_finds_some() -> None:
    rng = Random(7)
    profiles = ("//@id", "//text()", "/a//@n", "//b//text()", "//a//@id", "/*/@n", "//*/@id")
    for _ in range(60):
        message = random_message(rng)
        matcher = Matcher()
        for profile in profiles:
            matcher.add(profile, profile)
        wanted = {profile for profile in profiles if message.select(profile)}
        assert set(bindings(matcher, message)) == wanted, message.text


@pytest.mark.parametrize("seed", range(12))
def test_profiles_of_every_kind_together_deliver_what_the_interpreter_says_of_each(
    seed: int,
) -> None:
    rng = Random(seed)
    matcher = Matcher()
    profiles: dict[str, Profile] = {}
    for _ in range(12):
        if profiles and rng.random() < 0.4:
            name = rng.choice(sorted(profiles))
            matcher.remove(name)
            del profiles[name]
        drawn = [
            Profile(random_profile(rng, conditions=0.6)),
            parse_profile(random_flwor(rng)),
            parse_profile(_several(rng)),
        ]
        for profile in drawn:
            profiles[matcher.add(profile)] = profile
        message = random_message(rng)
        wanted = {
            name: results
            for name, profile in profiles.items()
            if (results := interpreted.results(profile, message.stream))
        }
        delivered = {
            match.profile_id: match.results()
            for match in matcher.match(message.stream)
            if isinstance(match, ProfileMatch)
        }
        assert delivered == wanted, message.text
        assert sorted(matcher.matched_ids(message.stream)) == sorted(wanted)


def _several(rng: Random) -> str:
    """A profile that is found in several ways, or whose positions are verified."""
    one, other = (unparse(random_profile(rng, conditions=0.3)) for _ in range(2))
    words = ", ".join(f'"{rng.choice(WORDS)}"' for _ in range(rng.randint(1, 3)))
    condition = unparse(random_condition(rng, 2))
    element = _element(rng)
    return rng.choice(
        (
            f"{one} | {other}",
            f"({one} | {other})[1]",
            f"{element}[@id = ({words})]",
            f'{element}[@id = "{rng.choice(WORDS)}" or {condition}]',
            f"{element}[@id = ({words}) or @n = 2][{condition}]",
            f"{element}[{rng.randint(1, 3)}]",
            f"{element}[{condition}][last()]",
            f"{element}[not({condition})]",
            f"for $x in {_element(rng)} | {element}/* where $x/@id = ({words}) return $x",
        )
    )


def _element(rng: Random) -> str:
    """A path that selects elements."""
    while True:
        path = random_profile(rng, conditions=0.1)
        if path.steps[-1].kind is NodeKind.ELEMENT:
            return unparse(path)


@pytest.mark.parametrize("seed", range(12))
def test_flwor_profiles_deliver_what_the_oracle_builds(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    profiles = {matcher.add(text): text for text in (random_flwor(rng) for _ in range(25))}
    for _ in range(3):
        message = random_message(rng)
        wanted = {
            name: [canonical(result) for result in results]
            for name, text in profiles.items()
            if (results := expected_results(text, message.text))
        }
        delivered = {
            match.profile_id: [canonical(result) for result in match.results()]
            for match in matcher.match(message.text)
            if isinstance(match, ProfileMatch)
        }
        assert delivered == wanted, message.text


def test_the_oracle_itself_is_not_vacuous() -> None:
    """Random profiles of every kind match sometimes and fail sometimes."""
    rng = Random(0)
    outcomes = {True: 0, False: 0}
    kinds = set()
    for _ in range(300):
        path = random_profile(rng)
        kinds |= {type(part).__name__ for step in path.steps for part in step.predicates}
        outcomes[bool(random_message(rng).select(xpath1(path)))] += 1
    assert min(outcomes.values()) > 30
    assert kinds == {"And", "Or", "Comparison", "FunctionCall", "PathExpression"}
