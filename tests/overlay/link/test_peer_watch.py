"""PeerWatch: who is there, and when all have been seen."""

from __future__ import annotations

from overlay.link.events import Action, ConnectionLost, DataReceived, Event, TimePassed
from overlay.link.peer_watch import PeerWatch


class Core:
    """Knows who is connected because the test says so."""

    def __init__(self) -> None:
        self.here: set[str] = set()
        self.events: list[Event] = []
        self.refusals: dict[str, str] = {}

    def handle(self, event: Event, now: float) -> list[Action]:
        self.events.append(event)
        return []

    def connected(self, peer: str) -> bool:
        return peer in self.here

    def refusal(self, peer: str) -> str:
        return self.refusals.get(peer, "")


class Scene:
    def __init__(self, *peers: str) -> None:
        self.core = Core()
        self.said: list[str] = []
        self.watch = PeerWatch(
            self.core,
            peers,
            lambda: self.said.append("ready"),
            lambda peer, here: self.said.append(f"{peer} {'came' if here else 'went'}"),
            lambda peer, why: self.said.append(f"{peer}: {why}"),
        )

    def hear(self, event: Event, *here: str) -> list[str]:
        """What is said when these are there after the event."""
        self.said.clear()
        self.core.here = set(here)
        self.watch.handle(event, 0.0)
        return list(self.said)


def test_without_peers_it_is_ready_at_the_first_look() -> None:
    scene = Scene()
    scene.watch.check()
    scene.watch.check()
    assert scene.said == ["ready"]


def test_it_is_ready_once_all_have_been_seen_even_if_not_together() -> None:
    scene = Scene("broker/B1", "broker/B2")
    assert scene.hear(DataReceived(1, b""), "broker/B1") == ["broker/B1 came"]
    assert scene.watch.missing == {"broker/B2"}
    assert scene.hear(ConnectionLost(1)) == ["broker/B1 went"]
    assert scene.hear(DataReceived(2, b""), "broker/B2") == ["broker/B2 came", "ready"]
    assert scene.hear(TimePassed(), "broker/B1", "broker/B2") == ["broker/B1 came"]


def test_once_ready_it_does_not_look_after_every_piece_of_data() -> None:
    scene = Scene("broker/B1")
    assert scene.hear(DataReceived(1, b""), "broker/B1") == ["broker/B1 came", "ready"]
    assert scene.hear(DataReceived(1, b"")) == []
    assert scene.hear(TimePassed()) == ["broker/B1 went"]


def test_every_event_reaches_the_core() -> None:
    scene = Scene("broker/B1")
    events: list[Event] = [DataReceived(1, b"x"), TimePassed(), ConnectionLost(1)]
    for event in events:
        scene.hear(event)
    assert scene.core.events == events


def test_why_somebody_is_not_wanted_is_said_once() -> None:
    scene = Scene("broker/B1", "broker/B2")
    scene.core.refusals["broker/B2"] = "store-lost"
    assert scene.hear(DataReceived(1, b""), "broker/B1") == [
        "broker/B1 came",
        "broker/B2: store-lost",
    ]
    assert scene.hear(TimePassed(), "broker/B1") == []
    scene.core.refusals.clear()
    assert scene.hear(TimePassed(), "broker/B1", "broker/B2") == ["broker/B2 came", "ready"]
