"""What observers of a broker are told: by filters, up to a bound, and how many were left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from overlay.link.events import TimePassed
from overlay.link.frames import Observed, Publish
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import NEWS, SF, Setting, delta

OTHER = b"<nitf><body/></nitf>"


class Watched(Setting):
    """B4 is the root broker of s1; B5 wants the news, p1 and p2 here too."""

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4")
        self.children_ready(root="B4")
        self.brokers["B5"].send("B4", delta(SF, root="B4"))
        for profile in ("p1", "p2"):
            self.place(SF, profile=profile)
        self.source = self.beside.peer("source", "s1")
        self.observer = self.beside.peer("client", "o")

    def publish(self, *texts: bytes) -> None:
        for text in texts:
            self.source.send("s1", Publish("s1", "text", text))

    def seen(self) -> list[Mapping[str, Any]]:
        return [event for frame in self.observer.take(Observed) for event in frame.events]

    def ask(self, peer: Peer, **wants: object) -> None:
        answer = peer.ask("observe", **wants)
        assert answer is not None and answer.ok


def said(event: Mapping[str, Any]) -> str:
    end = event.get("link", event.get("profile", ""))
    return f"{event['kind']} {event['number']} {end}".rstrip()


ALL = ["accepted 1", "crossing 1 B5", "delivery 1 p1", "delivery 1 p2", "refused 2", "accepted 3"]


@pytest.mark.parametrize(
    ("wants", "events"),
    [
        ({}, ALL),
        ({"kinds": ["crossing", "refused"]}, ["crossing 1 B5", "refused 2"]),
        ({"sources": ["s2"]}, []),
        ({"links": ["B6"]}, []),
        ({"links": ["B5"]}, ["crossing 1 B5"]),
        ({"profiles": ["p2"]}, ["delivery 1 p2"]),
        ({"path": "//pubdata", "kinds": ["accepted"]}, ["accepted 1"]),
        ({"path": "//body"}, ["accepted 3"]),
    ],
)
def test_filters(wants: Mapping[str, object], events: list[str]) -> None:
    setting = Watched()
    setting.ask(setting.observer, **wants)
    setting.publish(NEWS, b"<nitf>", OTHER)
    assert sorted(map(said, setting.seen())) == sorted(events)


def test_events_beyond_the_most_of_a_second_are_counted_and_told_in_the_next() -> None:
    setting = Watched()
    setting.ask(setting.observer, events_max=3)
    setting.publish(NEWS, NEWS)
    seen = setting.seen()
    assert len(seen) == 3
    assert all(event["kind"] != "dropped" for event in seen)
    setting.beside.tell(TimePassed())
    assert setting.seen() == [{"kind": "dropped", "broker": "B4", "count": 5}]
    setting.publish(OTHER)
    assert [event["kind"] for event in setting.seen()] == ["accepted"]


@pytest.mark.parametrize(
    ("wants", "code"),
    [
        ({"path": "//a["}, "profile-refused"),
        ({"path": 3}, "bad-argument"),
        ({"events_max": -1}, "bad-argument"),
        ({"sources": "s1"}, "bad-argument"),
        ({"sources": ["s"] * 65}, "too-long"),
    ],
)
def test_bad_wishes_are_refused(wants: Mapping[str, object], code: str) -> None:
    setting = Watched()
    answer = setting.observer.ask("observe", **wants)
    assert answer is not None and not answer.ok
    assert answer.result["code"] == code
    assert not setting.core.data._observers.connections
