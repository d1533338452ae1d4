"""The key table against a dict."""

from __future__ import annotations

from random import Random

import pytest

from yfilter.index.automaton import KeyTable


@pytest.mark.parametrize("seed", range(3))
def test_keys_are_found_both_ways(seed: int) -> None:
    rng = Random(seed)
    table = KeyTable()
    wanted: dict[int, bytes] = {}
    free = list(range(1, 400))
    for _ in range(3_000):
        if wanted and rng.random() < 0.45:
            number = rng.choice(sorted(wanted))
            del wanted[number]
            table.remove(number)
            free.append(number)
            continue
        key = bytes(rng.choices(b"ab\x00\xff", k=rng.randint(0, 12)))
        if key in wanted.values():
            assert wanted[table.find(key)] == key
        elif free:
            number = free.pop(rng.randrange(len(free)))
            assert table.find(key) == 0
            table.insert(key, number)
            wanted[number] = key
    assert len(table) == len(wanted) > 0
    for number, key in wanted.items():
        assert table.find(key) == number
        assert table.key(number) == key


def test_the_memory_of_keys_is_used_again() -> None:
    table = KeyTable()
    sizes = []
    for turn in range(3):
        for number in range(1, 2_000):
            table.insert(b"%d.%d" % (turn, number), number)
        for number in range(1, 2_000):
            table.remove(number)
        sizes.append(table.size_bytes())
        assert len(table) == 0
    assert sizes[0] == sizes[1] == sizes[2]
