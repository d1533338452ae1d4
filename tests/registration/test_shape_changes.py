"""How the registration service takes a network from one shape to the next."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from overlay.link.events import DataReceived, SendData
from overlay.link.frames import (
    LinkReported,
    PlaceProfile,
    ProfilesPlaced,
    Relayed,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
    SourceAnnounced,
    SourceReady,
)
from overlay.network_shape import NetworkShape
from overlay.nodes import Address, BrokerNode, Link
from overlay.topology import Topology, to_toml
from tests.registration.test_registration_core import FIGURE4, Setting, refused

ANOTHER = Link(("B2", "B3"), latency_ms=1.0)
MORE = replace(FIGURE4, links=(*FIGURE4.links, ANOTHER))
NEW = BrokerNode("B7", Address("127.0.0.1", 7907))
JOINED = replace(
    FIGURE4, brokers=(*FIGURE4.brokers, NEW), links=(*FIGURE4.links, Link(("B1", "B7")))
)


def without(topology: Topology, gone: str) -> Topology:
    """A leaf of Figure 4."""
    return replace(
        topology,
        brokers=tuple(broker for broker in topology.brokers if broker.id != gone),
        links=tuple(link for link in topology.links if gone not in link.ends),
    )


def apply(setting: Setting, topology: Topology, **options: object) -> dict[str, object]:
    answer = setting.client.ask("topology.apply", text=to_toml(topology), **options)
    assert answer is not None and answer.ok, answer
    return dict(answer.result)


def all_reach(setting: Setting, version: int, stage: int) -> None:
    for broker in setting.brokers.values():
        broker.send("registration", ShapeReached(version=version, stage=stage))


def progress(setting: Setting) -> dict[str, object]:
    answer = setting.client.ask("topology.progress")
    assert answer is not None
    return dict(answer.result)


def test_an_earlier_release_is_told_the_topology_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever is away, who may come as such."""
    setting = Setting()
    setting.brokers["B4"].disconnect()
    earlier = setting.brokers["B2"]
    earlier.disconnect()
    with monkeypatch.context() as patched:
        patched.setattr("overlay.link.link_layer.FEATURES", frozenset())
        earlier.connect()
    apply(setting, MORE)
    setting.brokers["B4"].connect()
    told = {name: peer.all(ShapeAnnounced)[0] for name, peer in setting.brokers.items()}
    text = {name for name, frame in told.items() if frame.payload.startswith(b"name")}
    assert text == {"B2", "B4"}
    shapes = {name: NetworkShape.from_announced(frame) for name, frame in told.items()}
    assert all(shape == shapes["B1"] for shape in shapes.values())


def test_a_change_goes_on_when_all_are_as_far_and_survives_a_restart() -> None:
    setting = Setting()
    result = apply(setting, MORE)
    assert (result["version"], result["changes"]) == (1, ["+ link B2 - B3"])
    (announced,) = setting.brokers["B5"].all(ShapeAnnounced)
    changed = {root for root, since in announced.trees if since == 1}
    assert sorted(changed) == result["trees"]
    last = setting.brokers.pop("B6")
    all_reach(setting, 1, 1)
    assert progress(setting)["missing"]["announced"] == ["B6"]  # type: ignore[index]
    assert not setting.brokers["B1"].all(ShapeAgreed)
    setting.brokers["B6"] = last
    setting.restart()
    last.send("registration", ShapeReached(version=1, stage=1))
    assert [frame.version for frame in setting.brokers["B1"].all(ShapeAgreed)] == [1]
    all_reach(setting, 1, 2)
    assert progress(setting)["stage"] == "agreed"
    all_reach(setting, 1, 3)
    assert progress(setting)["stage"] == "settled"
    assert all(peer.all(ShapeSettled) for peer in setting.brokers.values())
    assert apply(setting, MORE)["changes"] == []


def test_a_dry_run_changes_nothing_and_changes_come_one_at_a_time() -> None:
    setting = Setting()
    assert apply(setting, MORE, dry_run=True)["version"] == 1
    assert progress(setting)["version"] == 0
    apply(setting, MORE)
    again = setting.client.ask("topology.apply", text=to_toml(FIGURE4))
    assert refused(again) == "change-under-way"


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (replace(FIGURE4, name="other"), "name is other"),
        (without(FIGURE4, "B1"), "no way from"),
        (replace(JOINED, brokers=(*FIGURE4.brokers, replace(NEW, listen=Address("h", 0)))), "B7"),
        (FIGURE4.with_addresses({"B2": ("127.0.0.1", 9)}), "B2 listens at"),
    ],
)
def test_what_cannot_be_changed_is_refused(topology: Topology, said: str) -> None:
    answer = Setting().client.ask("topology.apply", text=to_toml(topology))
    assert refused(answer) == "topology-refused"
    assert answer is not None and said in str(answer.result["message"])


def test_a_broker_in_use_does_not_leave_unless_it_is_lost() -> None:
    setting = Setting()
    place = setting.topology.broker("B6").place
    assert place is not None
    setting.request("p", "profile.add", text="/a", location=list(place), near=True)
    setting.brokers["B6"].send("registration", ProfilesPlaced(["p1"]))
    answer = setting.client.ask("topology.apply", text=to_toml(without(FIGURE4, "B6")))
    assert refused(answer) == "broker-in-use"
    assert answer is not None and "it hosts p1" in str(answer.result["message"])
    lost = apply(setting, without(FIGURE4, "B6"), lost=["B6"])
    assert lost["lost"] == {"profiles": ["p1"], "sources": []}
    del setting.brokers["B6"]
    all_reach(setting, 1, 3)
    assert progress(setting)["stage"] == "settled"
    shown = setting.client.ask("profile.show", profile="p1")
    assert shown is not None and shown.result["host"] != "B6"
    (again,) = setting.brokers[str(shown.result["host"])].all(PlaceProfile)
    assert (again.profile, again.text, again.version, again.lost) == ("p1", "/a", 1, "B6")
    assert again.behind > 1_000_000_000


def test_who_joins_has_the_catalog_first_and_new_sources_wait() -> None:
    setting = Setting()
    setting.request("s1", "source.register")
    root, broker = setting.holder(SourceAnnounced)
    broker.send("registration", SourceReady(source="s1"))
    apply(setting, JOINED)
    joined = setting.brokers["B7"] = setting.beside.peer("broker", "B7")
    kinds = [type(f) for f in joined.got if isinstance(f, SourceAnnounced | ShapeAnnounced)]
    assert kinds == [SourceAnnounced, ShapeAnnounced]
    assert setting.request("s2", "source.register") is None
    assert [frame.source for frame in setting.brokers[root].all(SourceAnnounced)] == ["s1"]
    all_reach(setting, 1, 3)
    told = {
        frame.source for peer in setting.brokers.values() for frame in peer.all(SourceAnnounced)
    }
    assert told == {"s1", "s2"}


def test_who_has_left_and_joins_again_at_once_begins_anew() -> None:
    setting = Setting()
    apply(setting, JOINED)
    setting.brokers["B7"] = setting.beside.peer("broker", "B7")
    all_reach(setting, 1, 3)
    apply(setting, FIGURE4)
    all_reach(setting, 2, 3)
    setting.brokers.pop("B7").disconnect()
    apply(setting, JOINED)
    again = setting.brokers["B7"] = setting.beside.peer("broker", "B7")  # with an empty store
    assert [frame.version for frame in again.all(ShapeAnnounced)] == [3]
    all_reach(setting, 3, 3)
    assert progress(setting)["stage"] == "settled"


def test_a_link_goes_out_of_use_when_both_ends_say_so_and_others_are_left() -> None:
    setting = Setting(MORE)
    a, b = setting.brokers["B2"], setting.brokers["B3"]
    a.send("registration", LinkReported(neighbour="B3", up=False))
    assert progress(setting)["version"] == 0
    b.send("registration", LinkReported(neighbour="B2", up=False))
    (announced,) = a.all(ShapeAnnounced)
    assert announced.down == [("B2", "B3")]
    for end, other in ((a, "B1"), (setting.brokers["B1"], "B2")):  # no other way to B2 then
        end.send("registration", LinkReported(neighbour=other, up=False))
    assert progress(setting)["version"] == 1
    a.send("registration", LinkReported(neighbour="B3", up=True))
    b.send("registration", LinkReported(neighbour="B2", up=True))
    shown = setting.client.ask("topology.show")
    assert shown is not None and shown.result["down"] == [["B1", "B2"]]


def test_links_that_are_lost_in_the_same_moment_go_out_of_use_at_once() -> None:
    setting = Setting(replace(MORE, links=(*MORE.links, Link(("B3", "B4")))))
    end = setting.brokers["B3"]
    for other in ("B1", "B2"):
        setting.brokers[other].send("registration", LinkReported(neighbour="B3", up=False))
        end.links.send(setting.beside.name, "registration", LinkReported(other, up=False))
    sent = b"".join(each.data for each in end.links.drain() if isinstance(each, SendData))
    setting.beside.tell(DataReceived(end.number, sent))
    (announced,) = end.all(ShapeAnnounced)
    assert sorted(announced.down) == [("B1", "B3"), ("B2", "B3")]


def test_pieces_of_a_tunnel_are_passed_on_or_sent_back() -> None:
    setting = Setting()
    piece = Relayed("B5", 7, 1, False, b"bytes")
    setting.brokers["B2"].reply(piece)
    assert setting.brokers["B5"].all(Relayed) == [msgspec.structs.replace(piece, broker="B2")]
    setting.brokers["B5"].disconnect()
    setting.brokers["B2"].reply(msgspec.structs.replace(piece, number=2))
    (closed,) = setting.brokers["B2"].all(Relayed)
    assert (closed.broker, closed.closing) == ("B5", True)


def test_a_dead_link_that_the_new_shape_can_do_without_does_not_hold_it_up() -> None:
    setting = Setting()
    for end, other in (("B1", "B2"), ("B2", "B1")):  # the only way to B2
        setting.brokers[end].send("registration", LinkReported(neighbour=other, up=False))
    assert progress(setting)["version"] == 0
    apply(setting, MORE)
    assert progress(setting)["version"] == 2
    assert setting.brokers["B5"].all(ShapeAnnounced)[-1].down == [("B1", "B2")]
