"""What it costs to find what is left of a message for many links, and to add their needs.

Processor time, as a broker spends it, in the matcher: the links are reached, and each has
the needs of profiles on feeds of 50 items (workloads.py).  Nothing is sent.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from random import Random
from time import process_time

from benchmarks.transformed.workloads import feeds
from formats import ElementStream, parse_text
from yfilter import LinkTarget, Matcher
from yfilter.language.query_parser import parse_profile
from yfilter.projection.needs import Need
from yfilter.projection.profile_needs import needs_of

ROOT = "root"
NEEDS_A_LINK = 10  # that links with equal needs have


def measure_links(
    messages: int = 20, rounds: int = 20, links: Sequence[int] = (1, 8, 32), seed: int = 1
) -> dict[str, float]:
    """Microseconds a message: ``links_N_us`` for N links with the same needs, those of a tenth of
    the items; ``links_different_N_us`` for N links with a need each, of other items; and
    ``links_different_each_us``, what each of them more costs."""
    workload = feeds(messages, Random(seed))
    streams = [parse_text(message) for message in workload.messages]
    by_profile = [needs_of(parse_profile(text)) for text in workload.profiles[100]]
    equal = [need for needs in by_profile[:NEEDS_A_LINK] for need in needs]
    found = {}
    for count in links:
        found[f"links_{count}_us"] = _measured(streams, [equal] * count, rounds)
        different = [list(by_profile[link % len(by_profile)]) for link in range(count)]
        found[f"links_different_{count}_us"] = _measured(streams, different, rounds)
    most = max(links)
    if most > 1 and 1 in links:
        more = found[f"links_different_{most}_us"] - found["links_different_1_us"]
        found["links_different_each_us"] = more / (most - 1)
    return found


def measure_added(count: int = 20_000) -> dict[str, float]:
    """Processor seconds for as many needs of one link, added to a matcher: ``needs_added_s`` with
    conditions that differ, ``needs_added_paths_s`` with other paths each."""
    conditions = (
        f'for $i in /feed/entry where $i/category/@term = "c{number}" return $i'
        for number in range(count)
    )
    paths = (f"for $i in /feed/entry return <x>{{$i/n{number}}}</x>" for number in range(count))
    return {
        "needs_added_s": _added([needs_of(parse_profile(text)) for text in conditions]),
        "needs_added_paths_s": _added([needs_of(parse_profile(text)) for text in paths]),
    }


def _measured(streams: Sequence[ElementStream], needs: Sequence[list[Need]], rounds: int) -> float:
    """Microseconds a message, the best of rounds, for whatever else runs only adds."""
    matcher = Matcher()
    names = [f"link{number}" for number in range(len(needs))]
    for name, those in zip(names, needs, strict=True):
        for need in those:
            matcher.add_need(need, LinkTarget(ROOT, name))

    def all_of_them() -> None:
        for stream in streams:
            matcher.transformed(stream, ROOT, names)

    all_of_them()  # until lazy states are there
    return 1e6 * min(_timed(all_of_them) for _ in range(rounds)) / len(streams)


def _added(needs: Sequence[tuple[Need, ...]]) -> float:
    matcher = Matcher()
    target = LinkTarget(ROOT, "link")

    def add() -> None:
        for those in needs:
            for need in those:
                matcher.add_need(need, target)

    return _timed(add)


def _timed(work: Callable[[], None]) -> float:
    gc.collect()
    start = process_time()
    work()
    return process_time() - start
