"""The longest turn since the start, and of the last minute."""

from __future__ import annotations

from random import Random

from overlay.link.vitals import MINUTE, Turns
from overlay.statistics import Node


def figures(turns: Turns) -> Node:
    turns.report(said := Node())
    return said


def test_the_longest_is_kept_with_what_took_most_of_it() -> None:
    turns = Turns()
    for kind, seconds in (("DataReceived", 0.002), ("TimePassed", 0.007), ("DataReceived", 0.003)):
        turns.note(kind, seconds, 1.0)
    assert figures(turns) == Node(
        longest_turn_ms=7.0,
        longest_turn_of="TimePassed",
        longest_turn_minute_ms=7.0,
        turns_s=0.012,
    )
    assert turns.histogram.count == 3


def test_none_is_no_error() -> None:
    assert figures(Turns()).longest_turn_minute_ms == 0.0


def test_the_longest_of_the_last_minute_is_so_within_a_second() -> None:
    """Held against all turns; memory is one entry a second at most."""
    random = Random(3)
    turns = Turns()
    noted: list[tuple[float, float]] = []
    now = 0.0
    for _ in range(5_000):
        now += random.expovariate(20)
        seconds = random.expovariate(100)
        turns.note("x", seconds, now)
        noted.append((now, round(seconds * 1e3, 3)))
        said = figures(turns).longest_turn_minute_ms
        most = max(ms for at, ms in noted if now - at < MINUTE)
        least = max(ms for at, ms in noted if now - at < MINUTE - 1.0)
        assert least <= said <= most
    assert len(turns._recent) <= MINUTE + 1
