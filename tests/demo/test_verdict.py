"""The verdict notices everything that can be wrong with deliveries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from demo.verdict import FAULT_KINDS, DeliveryKey, judge
from tests.examples import examples

A, B = DeliveryKey("p1", "news", 1), DeliveryKey("p2", "news", 1)
EXPECTED = {A: (b"x", b"y"), B: (b"z",)}
RIGHT = [(A, (b"x", b"y")), (B, (b"z",))]


def kinds(delivered: list[tuple[DeliveryKey, tuple[bytes, ...]]]) -> list[tuple[str, DeliveryKey]]:
    return [(fault.kind, fault.key) for fault in judge(EXPECTED, delivered).faults]


def test_all_right() -> None:
    verdict = judge(EXPECTED, reversed(RIGHT))
    assert (verdict.right, verdict.results, verdict.faults) == (2, 3, ())


def test_nothing_expected_and_nothing_come_is_right_too() -> None:
    assert judge({A: ()}, []).faults == ()


def test_missing() -> None:
    assert kinds([RIGHT[0]]) == [("missing", B)]


def test_extra() -> None:
    other = DeliveryKey("p1", "news", 2)
    assert kinds([*RIGHT, (other, (b"x",))]) == [("extra", other)]


def test_a_delivery_without_results_is_extra_where_none_is_expected() -> None:
    other = DeliveryKey("p1", "news", 2)
    assert kinds([*RIGHT, (other, ())]) == [("extra", other)]


def test_twice() -> None:
    assert kinds([*RIGHT, RIGHT[1]]) == [("twice", B)]


def test_wrong_content() -> None:
    assert kinds([RIGHT[0], (B, (b"Z",))]) == [("wrong", B)]


def test_a_result_lacking_or_too_many_or_doubled() -> None:
    for results in ((b"x",), (b"x", b"y", b"y"), (b"x", b"x"), ()):
        assert kinds([(A, results), RIGHT[1]]) == [("wrong", A)]


def test_another_order() -> None:
    assert kinds([(A, (b"y", b"x")), RIGHT[1]]) == [("out of order", A)]


def test_faults_count_what_is_right_around_them() -> None:
    verdict = judge(EXPECTED, [RIGHT[0]])
    assert (verdict.right, verdict.results) == (1, 2)


keys = st.builds(DeliveryKey, st.sampled_from("pq"), st.just("s"), st.integers(1, 3))
results = st.lists(st.sampled_from([b"x", b"y"]), max_size=3).map(tuple)


@examples(300)
@given(st.dictionaries(keys, results, max_size=5), st.lists(st.tuples(keys, results), max_size=6))
def test_good_only_if_exactly_what_is_expected_came_once(expected, delivered) -> None:
    wanted = sorted((key, made) for key, made in expected.items() if made)
    verdict = judge(expected, delivered)
    assert (not verdict.faults) == (sorted(delivered) == wanted)
    assert {fault.kind for fault in verdict.faults} <= set(FAULT_KINDS)
    assert len({fault.key for fault in verdict.faults}) == len(verdict.faults)
