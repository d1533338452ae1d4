"""Profiles on what is archived, over HTTP and, without one, how a backtest runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
import trio

from onyx.errors import RequestFailed
from onyx.gateway.backtests import KEPT_MAX, RUNNING_MAX, Backtest, Backtests
from onyx.gateway.trial_process import Replay
from overlay.answers import ArchivePage
from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Client
from yfilter import Matcher


def lines(*messages: str) -> bytes:
    time = "2026-11-21T17:00:{:02}.000+00:00"
    records = [
        {"name": f"s1/{at}", "source": "s1", "number": at, "time": time.format(at), "message": text}
        for at, text in enumerate(messages, 1)
    ]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def until_done(client: Client, path: str) -> dict[str, Any]:
    while (said := client.ask("GET", path).said)["state"] == "running":
        pass
    return dict(said)


def test_a_profile_is_tried_on_the_archive_of_a_source(client: Client, source: str) -> None:
    for number in range(3):
        client.publish(source, f"<replayed><n>{number}</n></replayed>")
    about = {"profile": "for $n in /replayed/n where $n > 0 return <r>{$n}</r>", "source": "wire"}
    found: dict[str, Any] = {"matches": 0}
    while found["matches"] < 2:  # what was published just now is not written yet
        begun = client.ask("POST", "/v1/backtests", about)
        assert begun.status == 201, begun
        found = until_done(client, begun.headers["location"])
    assert (found["state"], found["share"], found["source"]) == ("done", 1.0, source)
    assert found["messages"] >= 3
    assert (found["matches"], found["results"], found["bytes"]) == (2, 2, 30)
    assert [each["results"] for each in found["samples"]] == ["<r><n>1</n></r>", "<r><n>2</n></r>"]
    assert found["id"] in [
        each["id"] for each in client.ask("GET", "/v1/backtests").said["backtests"]
    ]
    where = begun.headers["location"]
    assert client.ask("DELETE", where).status == 204
    assert client.ask("GET", where).said["code"] == "unknown-backtest"
    later = client.ask("POST", "/v1/backtests", {**about, "since": "2999-01-01"})
    assert until_done(client, later.headers["location"])["messages"] == 0


@pytest.mark.parametrize(
    ("about", "status", "code"),
    [
        ({"profile": "/a[b => 1]"}, 422, "syntax"),
        ({"source": "s0-none"}, 404, "unknown-source"),
        ({"since": "yesterday"}, 400, "bad-argument"),
        ({"source": None}, 400, "bad-argument"),
    ],
)
def test_what_cannot_be_tried_is_refused(
    client: Client, source: str, about: dict[str, object], status: int, code: str
) -> None:
    answer = client.ask("POST", "/v1/backtests", {"profile": "/a", "source": source, **about})
    assert (answer.status, answer.said["code"]) == (status, code)


def test_a_page_is_counted() -> None:
    replay = Replay("for $b in /a/b return <r>{$b}</r>", Matcher)
    found = replay.page(lines("<a><b>1</b><b>2</b></a>", "<a/>", "<a><b></a>"))
    named = ("messages", "unread", "given_up", "matches", "results", "bytes")
    assert [found[name] for name in named] == [3, 1, 0, 1, 2, 30]
    assert (found["first"][17:19], found["last"][17:19]) == ("01", "03")
    (sample,) = found["samples"]
    assert (sample["number"], sample["results"]) == (1, "<r><b>1</b></r>\n<r><b>2</b></r>")


def test_it_is_the_time_at_which_a_message_was_accepted() -> None:
    replay = Replay("for $b in /a/b return <t>{current-dateTime()}</t>", Matcher)
    (sample,) = replay.page(lines("<a><b/></a>"))["samples"]
    said = datetime.fromisoformat(sample["results"].removeprefix("<t>").removesuffix("</t>"))
    assert said == datetime.fromisoformat(sample["time"])


async def test_a_backtest_ends_when_it_is_cancelled() -> None:
    pages = 0
    backtests = Backtests()
    page = ArchivePage(lines("<a/>", "<b/>"), "more")

    async def read(after: str) -> ArchivePage:
        nonlocal pages
        pages += 1
        await trio.lowlevel.checkpoint()
        return page

    async def tried(question: Mapping[str, object]) -> dict[str, Any]:
        return replay.page(page.lines)

    replay = Replay("/a", Matcher)
    running = backtests.add("/a", "s1", 0.0, 1e10)
    with trio.fail_after(SAFETY_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.run, page, read, tried)
            while pages < 3:
                await trio.lowlevel.checkpoint()
            said = running.shown
            assert (said.state, said.matches) == ("running", said.messages // 2)
            assert 0 < said.messages <= 2 * pages + 2
            backtests.end(running.id)
    assert backtests.all() == []


async def test_a_backtest_says_what_it_failed_of_and_others_go_on() -> None:
    backtests = Backtests()

    async def read(after: str) -> ArchivePage:
        raise RequestFailed("busy", "16 pages are being read")

    async def tried(question: Mapping[str, object]) -> dict[str, Any]:
        if question["lines"] == b"costly":
            raise RequestFailed("too-costly", "that takes more")
        return Replay("/a", Matcher).page(lines("<a/>"))

    begun = [backtests.add("/a", "s1", 0.0, 1.0) for _ in range(RUNNING_MAX)]
    with pytest.raises(RequestFailed, match="end one"):
        backtests.add("/a", "s1", 0.0, 1.0)
    await begun[0].run(ArchivePage(b"costly", ""), read, tried)
    await begun[1].run(ArchivePage(b"", "more"), read, tried)
    failures = [each.shown.failure and each.shown.failure.code for each in begun]
    assert failures == ["too-costly", "busy"]
    assert begun[1].shown.matches == 1
    for _ in range(2 * KEPT_MAX):
        backtests.add("/a", "s1", 0.0, 1.0).change(state="done")
    assert len(backtests.all()) == KEPT_MAX
    assert isinstance(backtests.all()[0], Backtest)
