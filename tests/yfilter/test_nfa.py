"""The NFA: what it accepts, how much it shares, and that it is freed again."""

from __future__ import annotations

from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.random_cases import random_message, random_profile, xpath1
from yfilter.engine.network_picture import NetworkPicture
from yfilter.engine.nfa import Nfa, State, StructuralStep
from yfilter.language.query_ast import ANY, LocationStep, NameTest, Origin, PathExpression
from yfilter.language.query_parser import parse_profile


def steps(path: str) -> tuple[StructuralStep, ...]:
    body = parse_profile(path).body
    assert isinstance(body, PathExpression)
    return structure(body.steps)


def structure(located: tuple[LocationStep, ...]) -> tuple[StructuralStep, ...]:
    return tuple((step.descendant, step.test) for step in located if step.test is not None)


def free(states: int) -> None:
    """Charges nothing."""


def shape(nfa: Nfa) -> set[tuple[tuple[object, ...], int]]:
    """Every state as its way from the start and the number of paths that end there."""
    found = set()
    for state in nfa.numbered(1000):
        way: list[object] = []
        current: State | None = state
        while current is not None:
            way.append("ε" if current.looping else current.symbol)
            current = current.source
        found.add((tuple(way), state.paths))
    return found


def accepted(path: str, message: bytes) -> list[int]:
    nfa = Nfa()
    state = nfa.add(steps(path))
    found = nfa.run(parse_text(message), free)
    assert set(found) <= {state}
    return found.get(state, [])


@pytest.mark.parametrize(
    ("path", "message", "elements"),
    [
        ("/a", b"<a/>", [0]),
        ("/a", b"<b><a/></b>", []),  # "/" is the document node, not any node
        ("//a", b"<a><b><a/></b></a>", [0, 2]),
        ("/a/b", b"<a><b/><c><b/></c><b/></a>", [1, 4]),
        ("/a//b", b"<a><b><b/></b></a>", [1, 2]),
        ("/a/*/b", b"<a><b><b/></b><c><b/></c></a>", [2, 4]),
        ("//a//a", b"<a><a><a/></a></a>", [1, 2]),
        ("//a//b//c", b"<c><a><c/><b><b><c/></b></b></a></c>", [5]),
        ("//*", b"<a><b/></a>", [0, 1]),
        ("/a/Q{urn:x}*", b'<a><b/><p:b xmlns:p="urn:x"/></a>', [2]),
        ("/a/*:b", b'<a><b/><p:b xmlns:p="urn:x"/><c/></a>', [1, 2]),
        ("/a/Q{urn:x}b", b'<a><b/><p:b xmlns:p="urn:x"/><q:b xmlns:q="urn:x"/></a>', [2, 3]),
    ],
)
def test_a_path_accepts_the_elements_it_selects(
    path: str, message: bytes, elements: list[int]
) -> None:
    assert accepted(path, message) == elements


def dump(nfa: Nfa) -> str:
    text = "\n".join(NetworkPicture(nfa, []).lines(100))
    return text.removeprefix("NFA\n").removesuffix("\n\nOperators")


def test_the_queries_of_figure_5_share_seven_states() -> None:
    nfa = Nfa()
    for path in ("/nitf/head/pubdata", "/nitf//tobject.subject", "/nitf//series"):
        nfa.add(steps(path))
    assert dump(nfa) == "\n".join(
        (
            "1 -nitf-> 2",
            "2 -head-> 3",
            "2 -ε-> 5⟲",
            "3 -pubdata-> (4: 1)",
            "5 -tobject.subject-> (6: 1)",
            "5 -series-> (7: 1)",
        )
    )
    assert nfa.statistics() == {
        "nfa_states": 7,
        "nfa_accepting_states": 3,
        "nfa_paths": 3,
        "nfa_symbols": 5,
    }


def test_equal_paths_end_in_one_state_that_lives_as_long_as_one_of_them() -> None:
    nfa = Nfa()
    first, second = nfa.add(steps("/a//b")), nfa.add(steps("/a//b"))
    assert first is second
    nfa.remove(first)
    assert nfa.run(parse_text(b"<a><b/></a>"), free) == {first: [1]}
    nfa.remove(first)
    assert nfa.run(parse_text(b"<a><b/></a>"), free) == {}
    with pytest.raises(KeyError):
        nfa.remove(first)


def test_removing_a_path_keeps_what_others_pass_through() -> None:
    nfa = Nfa()
    longer, shorter = nfa.add(steps("/a/b/c//d")), nfa.add(steps("/a/b"))
    nfa.remove(longer)
    only_shorter = Nfa()
    only_shorter.add(steps("/a/b"))
    assert shape(nfa) == shape(only_shorter)
    assert nfa.statistics() == only_shorter.statistics()
    nfa.remove(shorter)
    assert shape(nfa) == shape(Nfa())
    assert dump(nfa) == "1"


@pytest.mark.parametrize("seed", range(20))
def test_adding_and_removing_gives_what_building_anew_gives(seed: int) -> None:
    rng = Random(seed)
    nfa = Nfa()
    paths: list[tuple[tuple[StructuralStep, ...], State]] = []
    for _ in range(80):
        if paths and rng.random() < 0.45:
            _, state = paths.pop(rng.randrange(len(paths)))
            nfa.remove(state)
        else:
            path = structure(random_profile(rng, conditions=0).steps)
            if path:
                paths.append((path, nfa.add(path)))
        rebuilt = Nfa()
        for path, _ in paths:
            rebuilt.add(path)
        assert shape(nfa) == shape(rebuilt)
        assert nfa.statistics() == rebuilt.statistics()
    for _, state in paths:
        nfa.remove(state)
    assert nfa.statistics() == Nfa().statistics()


@pytest.mark.parametrize("seed", range(20))
def test_many_paths_in_one_run_accept_what_lxml_selects_for_each(seed: int) -> None:
    rng = Random(seed)
    nfa = Nfa()
    xpaths: dict[State, str] = {}
    while len(xpaths) < 40:
        located = tuple(
            step for step in random_profile(rng, conditions=0).steps if step.kind.value == "element"
        )
        path = PathExpression(Origin.MESSAGE, located)
        xpaths[nfa.add(structure(path.steps))] = xpath1(path)
    for _ in range(5):
        message = random_message(rng)
        wanted = {state: list(message.select(xpath)) for state, xpath in xpaths.items()}
        assert nfa.run(message.stream, free) == {
            state: elements for state, elements in wanted.items() if elements
        }


def test_a_path_has_steps() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        Nfa().add(())


def test_a_name_that_no_path_has_costs_no_symbol() -> None:
    nfa = Nfa()
    state = nfa.add(((False, NameTest("", "a")), (False, NameTest(ANY, ANY))))
    assert nfa.statistics()["nfa_symbols"] == 2
    nfa.remove(state)
    assert nfa.statistics()["nfa_symbols"] == 0
