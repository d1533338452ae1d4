"""One function decides who may do what."""

from __future__ import annotations

import pytest

from overlay.access import Access, AccessOptions, Right, Rule, check_rule
from overlay.errors import TopologyError
from overlay.link.principal import NOBODY, Principal
from overlay.topology import parse_topology, to_toml
from tests.overlay.topologies import PAIR

ANN, BOB = Principal("user", "ann"), Principal("user", "bob")
WIRE = Principal("source", "s1")
ROOT = Principal("operator", "root")
BROKER = Principal("broker", "B1")
DEFAULT = Access(AccessOptions().rules())


def rights(
    principal: Principal | None, scope: str = "", owner: str = "", access: Access = DEFAULT
) -> set[str]:
    return {right.value for right in Right if access.may(principal, right, scope, owner)}


def test_without_tls_nobody_is_asked() -> None:
    assert rights(None) == {right.value for right in Right}


def test_by_default_an_operator_may_everything_and_others_what_is_theirs() -> None:
    assert rights(ROOT, "p1", "user/ann") == {right.value for right in Right} - {"peer"}
    assert rights(ANN, "p1", "user/ann") == {"known", "subscribe", "own"}
    assert rights(ANN, "p2", "user/bob") == {"known", "subscribe"}
    assert rights(WIRE, "s1", "") == {"known", "publish"}
    assert rights(WIRE, "s2", "source/s1") == {"known", "publish"}
    assert rights(WIRE, "s2", "user/ann") == {"known"}


def test_whoever_has_shown_nothing_may_nothing_and_a_broker_is_no_operator() -> None:
    assert rights(NOBODY, "p1", "nobody/nobody") == set()
    assert rights(BROKER, "p1", "broker/B1") == {"known", "peer"}


def test_a_rule_is_of_one_of_a_role_or_of_anybody_and_about_one_thing_or_anything() -> None:
    access = Access([Rule("user/bob", "publish", "s7"), Rule("*", "subscribe", "s1")])
    assert access.may(BOB, Right.PUBLISH, "s7")
    assert not access.may(BOB, Right.PUBLISH, "s8")
    assert not access.may(BOB, Right.PUBLISH), "to register another is more"
    assert not access.may(ANN, Right.PUBLISH, "s7")
    assert [access.sees("ann", source) for source in ("s1", "s2")] == [True, False]


def test_a_role_includes_others() -> None:
    access = Access([Rule("user/ann", "operate", "*")])
    assert rights(ANN, "p1", "user/bob", access) == {
        "known", "publish", "subscribe", "read-archive", "own", "operate",
    }  # fmt: skip


def test_it_is_told_whether_anything_has_to_be_looked_at_message_by_message() -> None:
    assert not DEFAULT.is_restricted
    assert Access(AccessOptions(subscribe=()).rules()).is_restricted
    assert Access(AccessOptions(subscribe=("user/ann",)).rules()).is_restricted


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule("ann", "own", "own"), "expected ROLE/NAME"),
        (Rule("king/ann", "own", "own"), "expected one of"),
        (Rule("user/ann", "king", "*"), "expected one of publish"),
        (Rule("user/ann", "own", ""), "expected the id"),
        (Rule("user/ann", "subscribe", "own"), "with one of own, publish, read-archive"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_what_was_expected(rule: Rule, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        check_rule(rule)


def test_the_topology_says_who_may_without_being_granted_anything() -> None:
    topology = parse_topology(PAIR + '\n[access]\nsubscribe = ["user/ann"]\n', "a.toml")
    assert topology.access == AccessOptions(subscribe=("user/ann",))
    assert parse_topology(to_toml(topology), "b.toml") == topology
    with pytest.raises(TopologyError, match=r"access\.own"):
        parse_topology(PAIR + '\n[access]\nown = ["ann"]\n', "a.toml")
