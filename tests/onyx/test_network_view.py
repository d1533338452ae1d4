"""What onyx top shows: rates between two answers, rows in order, and the screen itself."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from msgspec import convert

from onyx.cli.json_lines import decode_line
from onyx.cli.top_rows import HEADINGS, KINDS, objects, shown
from onyx.network_looks import whole
from onyx.network_view import DEAREST_MAX, Answer, TopBroker, TopLink, TopSource, view_of
from onyx.registration_client import NetworkClient
from overlay.statistics import BrokerStatistics


def statistics(**data: Any) -> BrokerStatistics:
    said = {
        "broker": "B1",
        "node": {"turns_s": data.pop("turns_s", 0.0)},
        "data": {"waiting_s": {"B2": 3.0}, **data},
        "mailboxes": {"stored_bytes": 5, "oldest_s": 7},
        "query": {"profiles": 2},
        "links": {
            "backlog_bytes": 10,
            "journals": {
                "broker/B2": {
                    "online": True,
                    "sending": {
                        "message:B1": {"backlog_bytes": 6},
                        "query:B1": {"backlog_bytes": 4},
                    },
                },
                "registration/R1": {"online": True, "sending": {}},
            },
        },
    }
    return convert(said, BrokerStatistics)


BEFORE = statistics(published=10, sources={"s1": 10}, source_bytes={"s1": 100}, crossings={"B2": 4})
NOW = statistics(
    published=30,
    delivered=8,
    turns_s=0.5,
    sources={"s1": 25, "s2": 5},
    source_bytes={"s1": 400, "s2": 50},
    crossings={"B2": 24},
    crossing_bytes={"B2": 900},
)


def pair(*dearest: tuple[str, str, float]) -> tuple[Answer, Answer]:
    return Answer(100.0, BEFORE), Answer(102.0, NOW, dearest)


def test_rates_are_of_what_has_come_between() -> None:
    view = view_of({"B1": pair(("p1", "ann", 0.25))})
    assert view.brokers == [
        TopBroker("broker", "B1", "up", 2, 10.0, 0.0, 10.0, 4.0, 0.0, 15, 7, 0.25),
    ]
    assert view.links == [TopLink("link", "B1", "B2", 10.0, 450.0, 10, 3.0, True)]
    assert view.sources == [
        TopSource("source", "s1", "B1", 7.5, 150.0, 25),
        TopSource("source", "s2", "B1", 2.5, 25.0, 5),
    ]
    assert [(row.profile, row.cost_ms) for row in view.profiles] == [("p1", 250.0)]


def test_a_process_that_has_begun_anew_has_no_negative_rates() -> None:
    view = view_of({"B1": (Answer(1.0, NOW), Answer(2.0, BEFORE))})
    assert view.brokers[0].published_s == view.brokers[0].busy == 0.0


def test_brokers_that_do_not_answer_are_shown_too() -> None:
    view = view_of({"B1": None, "B2": None, "B3": None}, down=["B2"], refused=["B3"])
    assert [(row.broker, row.state) for row in view.brokers] == [
        ("B1", "no answer"),
        ("B2", "down"),
        ("B3", "not allowed"),
    ]


def test_the_dearest_profiles_of_all_brokers_come_first() -> None:
    many = [(f"p{number}", "ann", float(number)) for number in range(DEAREST_MAX)]
    view = view_of({"B1": pair(*many), "B2": pair(("q", "bob", 0.5))})
    assert [row.profile for row in view.profiles[-2:]] == ["p1", "q"]
    assert len(view.profiles) == DEAREST_MAX


def test_each_row_is_an_object_and_has_a_heading_for_each_cell() -> None:
    view = view_of({"B1": pair(("p1", "ann", 0.25))})
    said = list(objects(view))
    for line in said:
        decode_line("top", json.dumps(line))
    assert [line["kind"] for line in said] == ["broker", "link", "source", "source", "profile"]
    for kind in KINDS:
        for row in getattr(view, kind):
            assert len(shown(row)) == len(HEADINGS[kind])


def test_the_screen_shows_a_view_and_then_the_next() -> None:
    pytest.importorskip("textual")
    import asyncio  # noqa: PLC0415 - what textual runs on

    from textual.widgets import DataTable  # noqa: PLC0415

    from onyx.cli.top_screen import TopScreen  # noqa: PLC0415

    async def look() -> None:
        screen = TopScreen("127.0.0.1:7200", 1.0)
        async with screen.run_test() as pilot:
            for expected in (["s1", "s2"], []):
                answers = {"B1": pair(("p1", "ann", 0.25))} if expected else {"B1": None}
                screen.show(view_of(answers))
                await pilot.pause()
                table: DataTable[Any] = screen.query_one("#sources", DataTable)
                rows = [table.get_row_at(number)[0] for number in range(table.row_count)]
                assert rows == expected
            assert screen.query_one("#brokers", DataTable).get_row_at(0)[:2] == ["B1", "no answer"]
            await pilot.press("q")

    asyncio.run(look())


class Pages:
    """A process whose summary has not all of its sources."""

    async def statistics_of(
        self, collection: str, *, match: str = "", first: int = 0
    ) -> tuple[list[tuple[str, object]], int | None]:
        assert collection == "data.sources"
        return [(f"s{first}", first)], first + 1 if first < 2 else None


async def test_what_a_summary_has_cut_is_asked_for() -> None:
    said = {"data": {"sources": {"s0": 0}, "published": 3}, "cut": {"data.sources": 3}}
    found = await whole(cast(NetworkClient, Pages()), said)
    assert found["data"] == {"sources": {"s0": 0, "s1": 1, "s2": 2}, "published": 3}
