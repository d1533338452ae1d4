"""Why a message takes a link or does not, in a few words however large the routing query is.

A disjunct comes the closer to a message the fewer of its literals are missing there; that is found
out for all of them by a look at the text, and only the closest are walked part by part::

    taken        disjuncts that hold, found among all, the closest first
    not taken    of the NEAR closest the nearest misses, one for each part that fails
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import nsmallest
from itertools import islice

from formats import ElementStream
from yfilter import LinkTarget, Matcher, MatchLimits
from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.engine.readings import Reading, Readings
from yfilter.explanation import Failure
from yfilter.language.query_ast import Origin, PathExpression, Profile

NEAR = 200  # disjuncts that are walked part by part
SHOWN = 3
_TOGETHER = 1_000  # disjuncts that are matched at a time
_LITERAL = re.compile(r'"([^"]*)"')


def why_taken(
    wanted: Collection[Conjunction], message: ElementStream | Readings, text: str
) -> list[str]:
    """Some disjuncts of a link that hold on a message, which is ``text``; empty if none does."""
    ordered = iter(_closest(wanted, text, len(wanted)))
    while some := list(islice(ordered, _TOGETHER)):
        held = list(islice(_holding(some, message), SHOWN))
        if held:
            return held
    return []


def why_not(
    wanted: Collection[Conjunction], message: ElementStream | Readings, text: str
) -> list[Mapping[str, object]]:
    """The nearest misses: ``disjunct``, the first ``part`` of it that does not hold (of the graph
    reading a whole path), a
    ``statement`` about that, and how many ``more`` of those looked at fail at the same part."""
    matcher = Matcher(MatchLimits(lazy_bytes_max=4096))
    near = _closest(wanted, text, NEAR)
    failures = [(disjunct, _failure(matcher, disjunct, message)) for disjunct in near]
    misses = [(disjunct, failure) for disjunct, failure in failures if failure is not None]
    misses.sort(key=lambda miss: -len(miss[1].before) / len(miss[0].text))
    by_part: dict[str, list[tuple[Conjunction, Failure]]] = {}
    for disjunct, failure in misses:
        by_part.setdefault(failure.text, []).append((disjunct, failure))
    return [
        {
            "disjunct": same[0][0].text,
            "part": part,
            "statement": same[0][1].statement,
            "more": len(same) - 1,
        }
        for part, same in islice(by_part.items(), SHOWN)
    ]


def _closest(wanted: Iterable[Conjunction], text: str, number: int) -> list[Conjunction]:
    """Those with the fewest literals that the message has not; of these, with most that it has."""
    is_there: dict[str, bool] = {}

    def distance(disjunct: Conjunction) -> tuple[int, int, str]:
        missing = there = 0
        for literal in _LITERAL.findall(disjunct.text):
            found = is_there.get(literal)
            if found is None:
                found = is_there[literal] = literal in text
            missing += not found
            there += found
        return missing, -there, disjunct.text

    return nsmallest(number, wanted, key=distance)


def _holding(disjuncts: Iterable[Conjunction], message: ElementStream | Readings) -> Iterator[str]:
    matcher = Matcher()
    for disjunct in disjuncts:
        matcher.add_route(disjunct, LinkTarget("", disjunct.text))
    return matcher.matched_links(message)


def _failure(
    matcher: Matcher, disjunct: Conjunction, message: ElementStream | Readings
) -> Failure | None:
    for path in disjunct.paths:
        failure = matcher.explain(_profile_of(path), message).failure
        if failure is not None:
            is_graph = disjunct.reading is Reading.GRAPH
            return replace(failure, text=str(path)) if is_graph else failure
    return None


def _profile_of(path: LinearPath) -> Profile:
    steps = tuple(step.location_step for step in path.steps)
    return Profile(PathExpression(Origin.MESSAGE, steps), str(path))
