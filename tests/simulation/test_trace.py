"""What ``trace`` says of a message is what happens to it when it is published: at every broker, on
every link, to the byte, however links cut and write it."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from tests.simulation.scenario import Scenario
from tests.simulation.seeds import known_seeds
from tests.simulation.test_transformation import random_message, random_profile
from yfilter.projection import transformations

MESSAGES = 8
FORMATS = ("text", "text+zlib", "dictionary", "binary", "dictionary+zstd")


def traced(scenario: Scenario, source: str, root: str, message: bytes) -> dict[str, dict[str, Any]]:
    """What the brokers on the way answer, each asked as ``onyx trace`` asks."""
    answers = {}
    pending: list[tuple[str, dict[str, object]]] = [(root, {"message": message})]
    while pending:
        broker, carried = pending.pop()
        question = {**carried, "source": source}
        answers[broker] = answer = scenario.ask(scenario.hosts[broker], "trace", **question)
        for link in cast("list[dict[str, Any]]", answer["links"]):
            if link["taken"]:
                asker, child = scenario.hosts[broker], link["link"]
                asked_with = scenario.ask(asker, "trace.carried", **question, link=child)
                pending.append((child, asked_with))
    return cast("dict[str, dict[str, Any]]", answers)


def figures(scenario: Scenario) -> Counter[tuple[str, str]]:
    """By (broker, child) the bytes that crossed, and by ("", profile) what was delivered."""
    counts: Counter[tuple[str, str]] = Counter()
    for broker in scenario.topology.broker_ids:
        for child, sent in scenario._core(broker).query.transformation.statistics().links.items():
            counts[broker, child] = sent.bytes
    for profile, interest in scenario.interests.items():
        counts["", profile] = sum(interest.subscriber.got.values())
    return counts


def cuts_shown(seed: int) -> Counter[bool]:
    """How often a message was traced over a link that cut it, by whether it had been cut before."""
    modes = ("off", "projection", "projection") if seed % 2 else ("projection", "full")
    scenario = Scenario(seed, 3 + seed % 4, FORMATS, modes)
    scenario.net.faulty = False
    for _ in range(6):
        scenario.add_profile(random_profile(scenario))
    sources = [scenario.register_source() for _ in range(2)]
    cuts: Counter[bool] = Counter()
    for number in range(MESSAGES):
        source, message = sources[number % 2], random_message(scenario)
        before = figures(scenario)
        answers = traced(scenario, source.source, source.root, message)
        assert figures(scenario) == before, f"seed {seed}: a trace is counted"
        scenario.publish(source, message)
        scenario.settle()
        said: Counter[tuple[str, str]] = Counter()
        cut: set[str] = set()
        for broker, answer in answers.items():
            said.update({("", profile): 1 for profile in answer["profiles"]})
            for link in answer["links"]:
                if link["taken"]:
                    said[broker, link["link"]] = link["bytes"]
                    if link["bytes"] < link["bytes_whole"]:
                        cuts[broker in cut] += 1
                        cut.add(link["link"])
        assert figures(scenario) - before == said, f"seed {seed}, message {number}"
    return cuts


def test_what_is_traced_is_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    # Links that restructure choose their way anew for each message, a traced one as a real one, and
    # none passes on a message without a look, which a trace does not count.
    monkeypatch.setattr(transformations, "MEASURED_EVERY", 0)
    monkeypatch.setattr(transformations, "WHOLES_BEFORE_REST", 1_000_000)
    these = known_seeds(24)
    cuts = sum(map(cuts_shown, these), Counter[bool]())
    assert cuts[False] > 4 * len(these)
    assert cuts[True]
