"""Priority scheduling: how long from a parsed message to its first forward, by local profiles.

With it (section 4.3.1) links are decided before local profiles are looked at; without it, all that
matches is found first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from formats import parse_text
from yfilter import LinkTarget, Matcher
from yfilter.engine.linear_paths import routing_query
from yfilter.language.query_parser import parse_profile

ROUNDS = 5


def first_forward_us(
    local: Sequence[str], routes: Sequence[str], messages: Sequence[bytes]
) -> tuple[float, float]:
    """(with priorities, without them): median over messages of the best of some rounds."""
    matcher = Matcher()
    for number, text in enumerate(local):
        matcher.add(text, str(number))
    for text in routes:
        for disjunct in routing_query(parse_profile(text)):
            matcher.add_route(disjunct, LinkTarget("R", "L"))
    streams = [parse_text(message) for message in messages]
    first, every = [], []
    for stream in streams:
        times: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            begun = time.thread_time_ns()
            matches = matcher.match(stream, "R")
            next(matches)
            forward = time.thread_time_ns()
            for _ in matches:
                pass
            times.append((forward - begun, time.thread_time_ns() - begun))
        first.append(min(time[0] for time in times) / 1000)
        every.append(min(time[1] for time in times) / 1000)
    return median(first), median(every)
