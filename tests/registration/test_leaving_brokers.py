"""What the registration service says to an operator who wants a broker to leave."""

from __future__ import annotations

from msgspec.structs import replace

from overlay.link.events import TimePassed
from overlay.link.frames import (
    PlaceProfiles,
    ProfilesPlaced,
    ShapeAnnounced,
    ShapeReached,
    SourceAnnounced,
    SourceReady,
    SourceReleased,
    StandBy,
)
from overlay.nodes import Link
from overlay.topology import parse_topology
from tests.registration.test_registration_core import Setting, refused
from tests.registration.test_shape_changes import all_reach

CHAIN = parse_topology(
    """
    name = "chain"
    [registration]
    id = "r1"
    listen = "127.0.0.1:1"
    [[broker]]
    id = "A"
    listen = "127.0.0.1:2"
    [[broker]]
    id = "B"
    listen = "127.0.0.1:3"
    [[broker]]
    id = "C"
    listen = "127.0.0.1:4"
    [[broker]]
    id = "D"
    listen = "127.0.0.1:5"
    [[link]]
    ends = ["A", "B"]
    [[link]]
    ends = ["B", "C"]
    [[link]]
    ends = ["C", "D"]
    """,
    "chain",
)


RING = replace(CHAIN, links=(*CHAIN.links, Link(("A", "D"))))


def ask(setting: Setting, verb: str, broker: str, **arguments: object) -> dict[str, object]:
    answer = setting.client.ask(verb, broker=broker, **arguments)
    assert answer is not None and answer.ok, answer
    return dict(answer.result)


def hosted(setting: Setting) -> tuple[str, str]:
    """A profile that is placed, and its host broker."""
    setting.client.ask("profile.add", text="/a")
    host, broker = setting.holder(PlaceProfiles)
    broker.send("registration", ProfilesPlaced(["p1"]))
    return "p1", host


def test_a_broker_that_holds_the_network_together_stays_and_who_would_be_cut_off_is_named() -> None:
    setting = Setting(CHAIN)
    for verb in ("broker.drain", "broker.lost"):
        answer = setting.client.ask(verb, broker="B")
        assert refused(answer) == "network-cut"
        assert answer is not None
        assert "without B no link leads to A:" in str(answer.result["message"])


def test_a_broker_that_is_there_is_not_lost_and_one_that_nobody_knows_neither() -> None:
    setting = Setting(CHAIN)
    assert refused(setting.client.ask("broker.lost", broker="D")) == "broker-here"
    answer = setting.client.ask("broker.lost", broker="d")
    assert refused(answer) == "bad-argument"
    setting.brokers["D"].disconnect()
    assert ask(setting, "broker.lost", "D", dry_run=True)["version"] == 1
    assert ask(setting, "broker.lost", "D")["version"] == 1
    assert ask(setting, "broker.lost", "D")["version"] == 1, "it is said once more"
    assert setting.brokers["A"].all(ShapeAnnounced)[-1].lost == ["D"]
    del setting.brokers["D"]
    setting.restart()
    assert setting.beside.peer("broker", "D").error == "lost"


def test_a_broker_is_not_drained_where_there_is_no_room() -> None:
    small = tuple(replace(b, capacity=int(b.id in "CD")) for b in CHAIN.brokers)
    setting = Setting(replace(CHAIN, brokers=small))
    _, host = hosted(setting)
    other = "C" if host == "D" else "D"
    setting.client.ask("profile.add", text="/b")
    setting.brokers[other].send("registration", ProfilesPlaced(["p2"]))
    assert refused(setting.client.ask("broker.drain", broker="D")) == "network-full"


def test_a_drained_broker_is_given_nothing_and_may_stay_after_all() -> None:
    setting = Setting(RING)
    profile, host = hosted(setting)
    progress = ask(setting, "broker.drain", host)
    assert (progress["state"], progress["profiles"]) == ("its profiles move away", 1)
    setting.restart()
    setting.beside.tell(TimePassed())
    (moved,) = [name for name, peer in setting.brokers.items() if peer.all(StandBy)]
    assert moved != host
    for _ in range(20):
        setting.client.ask("profile.add", text="/b")
    placed = setting.core.catalog.profiles.values()
    assert [entry.profile for entry in placed if entry.host == host] == [profile]
    assert ask(setting, "broker.drain", host, stop=True)["state"] == "staying"
    assert not list(setting.core.moves)
    for _ in range(20):
        setting.client.ask("profile.add", text="/b")
    assert sum(entry.host == host for entry in placed) > 1


def test_a_source_goes_on_at_another_root_broker_behind_what_was_taken() -> None:
    setting = Setting(RING)
    setting.client.ask("source.register", name="news")
    root, broker = setting.holder(SourceAnnounced)
    broker.send("registration", SourceReady("s1"))
    ask(setting, "broker.drain", root)
    setting.beside.tell(TimePassed())
    shown = ask_about(setting)
    assert (shown["root"], shown["ready"]) == (root, False)
    for each in setting.brokers.values():
        each.send("registration", ShapeReached(1, 1))
    broker.send("registration", SourceReleased("s1", 41))
    setting.restart()
    all_reach(setting, 1, 3)
    shown = ask_about(setting)
    assert shown["root"] != root
    new = setting.brokers[str(shown["root"])]
    assert [(f.root, f.taken) for f in new.all(SourceAnnounced)] == [(shown["root"], 41)]
    new.send("registration", SourceReady("s1"))
    assert ask_about(setting)["ready"] is True
    setting.beside.tell(TimePassed())
    assert ask(setting, "broker.progress", root)["state"] == "staying", "it has left"


def ask_about(setting: Setting) -> dict[str, object]:
    answer = setting.client.ask("source.show", source="s1")
    assert answer is not None
    return dict(answer.result)
