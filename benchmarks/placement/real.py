"""Profiles derived from real messages: two of a message's own values, each by an equality.

Every message offers its attributes and its short texts.  Half of the messages are there to derive
profiles from; how many partitions a message matches is then measured on all, with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.benchmark import BenchmarkError
from benchmarks.placement.paper_pep import PaperPep
from formats import DEFAULT_LIMITS, ElementStream, MessageRefused, parse_text
from registration.planning.need_reader import NeedReader
from registration.planning.pattern_reader import PatternReader
from registration.planning.planner import Evidence, PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from yfilter import Matcher

TEXT_MAX = 60


@dataclass(frozen=True, slots=True)
class RealResult:
    """``percent``: scheme -> of the partitions that a message matches in full."""

    messages: int
    profiles: int
    patterns: int
    coverage: float
    predicted_percent: float
    imbalance: float
    matches: float
    percent: dict[str, float]


def measure_real(
    folder: Path, profiles: int, partitions: int, seed: int, progress: Callable[[str], None]
) -> RealResult:
    """BenchmarkError when there are no messages in the folder."""
    streams = _read(folder)
    if len(streams) < 10:
        raise BenchmarkError(f"{folder}: fewer than 10 messages (files .xml or .cap) found")
    random = Random(seed)
    random.shuffle(streams)
    progress(f"{profiles:,} profiles from {len(streams) // 2:,} messages")
    texts = _derive(streams[: len(streams) // 2], profiles, random)
    reader = NeedReader()
    needs = [reader.read(text) for text in texts]
    patterns = {need.pattern for found in needs for need in found}
    pattern_reader = PatternReader(patterns)
    samples = [(pattern_reader.values(stream), 1.0) for stream in streams[::2]]
    progress("planning")
    population = LocalPopulation(ProfileNeeds(found) for found in needs)
    plan = make_plan(population, PlanOptions(partitions), Evidence(messages=samples))
    placed = {
        "random": [random.randrange(partitions) for _ in texts],
        "paper": PaperPep(needs, partitions, seed).partition,
        "pep": [
            plan.place_needs(found, text).partition
            for found, text in zip(needs, texts, strict=True)
        ],
    }
    progress("matching")
    matcher = Matcher()
    for number, text in enumerate(texts):
        matcher.add(text, str(number))
    matched = [list(map(int, matcher.matched_ids(stream))) for stream in streams]
    percent = {
        scheme: 100
        * sum(len({where[number] for number in found}) for found in matched)
        / len(matched)
        / partitions
        for scheme, where in placed.items()
    }
    return RealResult(
        messages=len(streams),
        profiles=len(texts),
        patterns=len(plan.rules),
        coverage=plan.facts.coverage,
        predicted_percent=100 * plan.facts.matched_share,
        imbalance=plan.facts.imbalance,
        matches=sum(map(len, matched)) / len(matched),
        percent=percent,
    )


def _read(folder: Path) -> list[ElementStream]:
    streams = []
    for path in sorted((*folder.rglob("*.xml"), *folder.rglob("*.cap"))):
        try:
            streams.append(parse_text(path.read_bytes(), DEFAULT_LIMITS))
        except MessageRefused:
            continue
    return streams


def _derive(streams: Sequence[ElementStream], profiles: int, random: Random) -> list[str]:
    offers = [offer for offer in map(_comparisons, streams) if len(offer) > 1]
    texts = []
    for _ in range(profiles):
        conditions = random.sample(random.choice(offers), 2)
        texts.append("/*" + "".join(f"[{condition}]" for condition in conditions))
    return texts


def _comparisons(stream: ElementStream) -> list[str]:
    """Each value of a message as a condition on its root element, ``./head/title = "Today"``."""
    found = {}
    for element in range(1, len(stream)):
        way = _way(stream, element)
        for attribute in stream.attributes_of(element):
            name = stream.names[stream.attribute_name[attribute]]
            if not name.namespace:
                found[f"{way}/@{name.local}"] = stream.attribute_value(attribute)
        if stream.element_end[element] == element + 1:
            found[way] = stream.string_value(element)
    return [
        f'{way} = "{value}"'
        for way, value in found.items()
        if 0 < len(value.strip()) <= TEXT_MAX and not set(value) & set('"&\r\n')
    ]


def _way(stream: ElementStream, element: int) -> str:
    steps = []
    while stream.element_parent[element] >= 0:
        name = stream.name_of(element)
        steps.append(f"Q{{{name.namespace}}}{name.local}" if name.namespace else name.local)
        element = stream.element_parent[element]
    return "/".join(reversed(steps))
