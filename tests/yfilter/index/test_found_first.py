"""A condition that nearly all elements satisfy is found at the first, and skipped at the others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from yfilter import Matcher

CONDITIONS: dict[str, Callable[[str | None, str | None, str], bool]] = {
    "@c != '{}'": lambda c, d, text: c is not None and c != text,
    "not(@c = '{}')": lambda c, d, text: c != text,
    "not(contains(d, '{}'))": lambda c, d, text: text not in (d or ""),
    "d != '{}'": lambda c, d, text: d is not None and d != text,
    "@c = '{}'": lambda c, d, text: c == text,
    "../@k = 'x' and @c = '{}'": lambda c, d, text: c == text,
    "@c = '{}' and not(d)": lambda c, d, text: c == text and d is None,
}


@pytest.mark.parametrize("seed", range(12))
def test_profiles_match_where_each_holds_of_an_element_while_they_come_and_go(seed: int) -> None:
    print("seed", seed)
    rng = Random(seed)
    matcher = Matcher()
    profiles: dict[str, tuple[str, str]] = {}
    for step in range(200):
        if profiles and rng.random() < 0.3:
            gone = rng.choice(sorted(profiles))
            matcher.remove(gone)
            del profiles[gone]
        else:
            chosen = rng.choice(sorted(CONDITIONS)), rng.choice("abcdefgh")
            profiles[matcher.add(f"/r/i[{chosen[0].format(chosen[1])}]")] = chosen
        if step % 5 == 4:
            elements = [
                (rng.choice((None, *"abcd")), rng.choice((None, *"abcd")))
                for _ in range(rng.randint(0, 6))
            ]
            items = "".join(
                f"<i{f' c={c!r}' if c else ''}>{f'<d>{d}</d>' if d else ''}</i>"
                for c, d in elements
            )
            expected = {
                name
                for name, (condition, text) in profiles.items()
                if any(CONDITIONS[condition](c, d, text) for c, d in elements)
            }
            assert set(matcher.matched_ids(f"<r k='x'>{items}</r>".encode())) == expected


def test_at_the_other_elements_nothing_is_looked_at() -> None:
    matcher = Matcher()
    for number in range(1_000):
        matcher.add(f"/r/i[@c != 'c{number}']")

    def visits(elements: int) -> int:
        before = matcher.statistics().index_visits
        items = '<i c="x"/>' * elements
        assert len(matcher.matched_ids(f"<r>{items}</r>".encode())) == 1_000
        return matcher.statistics().index_visits - before

    visits(1)
    assert visits(500) < 10 * visits(1)
