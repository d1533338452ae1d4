"""What a process says of itself is short, however much there is, and can be asked in pages."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from overlay.link.core import (
    ENTRIES_MAX,
    PAGE_MAX,
    SUMMARY_BYTES_MAX,
    StatisticsRequests,
    summary,
)
from overlay.link.frames import Request
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.request_server import RequestRefused
from overlay.verbs import Statistics

FEW = {"broker": "B1", "data": {"published": 3, "crossings": {"B2": 1}}, "list": [1, 2]}
MANY: dict[str, Any] = {
    "broker": "B1",
    "data": {"published": 3, "crossings": {f"B{n}": n for n in range(1000)}},
    "budgets": {"suspended": {f"p{n}": "it takes too much " * 9 for n in range(100_000)}},
    "trees": [f"B{n}" for n in range(5000)],
    "links": {"open": 2, "journals": {f"x/{n}": {"a": {"b": "c" * 999}} for n in range(100)}},
}


def server(statistics: dict[str, Any]) -> StatisticsRequests:
    links = LinkLayer(role="broker", identity="B1", instance="i", formats=[], limits=LinkLimits())
    for number in range(250):
        links.journal(f"source/s{number}")
    return StatisticsRequests(lambda: statistics, links)


def asked(requests: StatisticsRequests, question: Statistics) -> dict[str, Any]:
    return requests.handle(1, Request("q", question.verb, question.arguments()), question)


def test_what_is_short_is_all_there() -> None:
    assert summary(FEW) == FEW
    assert asked(server(FEW), Statistics()) == FEW


def test_what_is_long_is_cut_and_says_so() -> None:
    found = summary(MANY)
    assert len(msgpack.packb(found)) <= SUMMARY_BYTES_MAX
    assert found["data"]["published"] == 3
    assert len(found["data"]["crossings"]) == ENTRIES_MAX
    assert next(iter(found["budgets"]["suspended"].items())) == ("p0", "it takes too much " * 9)
    cut = found["cut"]
    assert cut["data.crossings"] == 1000
    assert cut["budgets.suspended"] == 100_000
    assert cut["trees"] == 5000 and cut["links.journals"] == 100
    assert len(MANY["trees"]) == 5000  # it is a copy


@pytest.mark.parametrize(
    ("of", "match", "names"),
    [
        ("budgets.suspended", "", [f"p{n}" for n in range(100_000)]),
        ("budgets.suspended", "p99", [f"p{n}" for n in range(100_000) if str(n).startswith("99")]),
        ("data.crossings", "B99", ["B99", *(f"B{n}" for n in range(990, 1000))]),
        ("trees", "B499", ["499", *(str(n) for n in range(4990, 5000))]),
        ("links.journals", "source/s24", ["source/s24", *(f"source/s24{n}" for n in range(10))]),
    ],
)
def test_pages_have_all_of_a_collection(of: str, match: str, names: list[str]) -> None:
    requests, found, first, pages = server(MANY), [], 0, 0
    while first is not None and pages < 3:
        said = asked(requests, Statistics(of=of, match=match, first=first))
        assert len(said["entries"]) <= PAGE_MAX
        found += [name for name, _ in said["entries"]]
        first, pages = said["next"], pages + 1
    assert found == names[: len(found)]
    assert (first is None) == (len(found) == len(names))


def test_what_there_is_not_is_refused() -> None:
    for of in ("nothing", "data.published", "links.nothing", "data.crossings.B1"):
        with pytest.raises(RequestRefused, match="no collection"):
            asked(server(MANY), Statistics(of=of))
