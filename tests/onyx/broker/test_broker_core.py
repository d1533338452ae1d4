"""The broker core alone: B4 of the paper's Figure 4, between B1 and B5, B6."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from formats import MessageLimits, WireFormat, decode, encode, parse_text
from onyx.broker.broker_core import BrokerCore
from onyx.broker.messages.observers import FIGURES_SECONDS
from overlay.link.core import Rows
from overlay.link.core_context import Surroundings
from overlay.link.events import CalledLater, TimePassed
from overlay.link.frame import Frame
from overlay.link.frames import (
    Delivery,
    LiveMarker,
    LiveReached,
    Message,
    Observed,
    PlaceProfile,
    ProfilesChanged,
    ProfilesLive,
    Publish,
    Refused,
    Response,
    RoutingDelta,
    SourceAnnounced,
    SourceReady,
    SourceRemoved,
    TreeReady,
)
from overlay.routing.message_sample import SAMPLE_EVERY
from overlay.settings import Validation
from overlay.statistics import Data
from overlay.topology import Topology, load_topology, parse_topology
from tests.beside import Beside, Peer
from yfilter.engine.linear_paths import routing_query
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import check_profile

FIGURE4 = load_topology(Path(__file__).parents[3] / "topologies" / "figure4.toml")
NEWS = b'<nitf><head><pubdata edition.area="SF"/></head></nitf>'
SF = '/nitf/head/pubdata[@edition.area = "SF"]'


class Setting:
    """B4 with its neighbours and the registration service connected."""

    def __init__(
        self,
        topology: Topology = FIGURE4,
        identity: str = "B4",
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.topology = topology
        self._clock = clock
        self.identity = identity
        self.beside = Beside(f"broker/{identity}", self.new_core("run1"))
        self.beside.processor = clock
        self.registration = self.beside.peer("registration", topology.registration[0].id)
        self.brokers = {
            name: self.beside.peer("broker", name) for name in topology.neighbours(identity)
        }

    def new_core(self, instance: str, rows: Rows = ()) -> BrokerCore:
        return BrokerCore(self.topology, self.identity, instance, rows, Surroundings(self._clock))

    @property
    def core(self) -> BrokerCore:
        core = self.beside.core
        assert isinstance(core, BrokerCore)
        return core

    def announce(
        self,
        source: str = "s1",
        root: str = "B1",
        schema: bytes = b"",
        validation: Validation = "off",
        compression: Sequence[tuple[str, bytes]] = (),
        kind: str = "dtd",
        ready: bool = True,
    ) -> None:
        """``ready``: so are those below, where another broker is the root."""
        frame = announced(source, root, schema, validation, compression, kind)
        if root == self.identity:
            self.registration.send("registration", frame)
        else:
            parent = self.core.control.parent(root)
            assert parent is not None
            self.brokers[parent].send(root, frame)
            if ready:
                self.children_ready(source, root)

    def children_ready(self, source: str = "s1", root: str = "B1") -> None:
        for child in self.core.control.children(root):
            self.brokers[child].send(root, TreeReady(root=root, source=source))

    def place(self, text: str, profile: str = "p1", version: int = 1) -> None:
        frame = PlaceProfile(
            profile=profile, user="ann", text=text, version=version, request=f"r-{profile}"
        )
        self.registration.send("registration", frame)

    def restart(self) -> None:
        """The process dies and comes back with its rows; everybody connects again."""
        for peer in [*self.brokers.values(), self.registration]:
            if not peer.closed:
                peer.disconnect()
        self.beside.core = self.new_core("run2", self.beside.stored())
        for peer in [self.registration, *self.brokers.values()]:
            peer.connect()


def announced(
    source: str = "s1",
    root: str = "B1",
    schema: bytes = b"",
    validation: Validation = "off",
    compression: Sequence[tuple[str, bytes]] = (),
    kind: str = "dtd",
) -> SourceAnnounced:
    return SourceAnnounced(
        source=source, name="news", root=root, location=None, rate=1.0, size=1,
        schema_name=f"news.{kind}" if schema else "", schema_kind=kind if schema else "",
        validation=validation, compression=list(compression), payload=schema,
    )  # fmt: skip


def delta(*paths: str, root: str = "B1", removed: tuple[str, ...] = ()) -> RoutingDelta:
    return RoutingDelta(root=root, added=query(*paths), removed=query(*removed))


def query(*paths: str) -> list[str]:
    return [str(one) for path in paths for one in routing_query(parse_profile(path))]


def message(xml: bytes = NEWS, number: int = 1, fmt: WireFormat = WireFormat.BINARY) -> Message:
    payload = encode(parse_text(xml), fmt)
    return Message(root="B1", source="s1", number=number, format=fmt.value, hops=1, payload=payload)


# --- control plane ----------------------------------------------------------------------------


def test_a_source_is_passed_on_and_reported_ready_only_behind_all_children() -> None:
    setting = Setting()
    setting.announce(ready=False)
    for child in ("B5", "B6"):
        assert [f.source for f in setting.brokers[child].take(SourceAnnounced)] == ["s1"]
    setting.brokers["B5"].send("B1", TreeReady(root="B1", source="s1"))
    assert setting.brokers["B1"].all(TreeReady) == []
    setting.brokers["B6"].send("B1", TreeReady(root="B1", source="s1"))
    assert [f.source for f in setting.brokers["B1"].take(TreeReady)] == ["s1"]


def test_the_root_reports_to_the_registration_service() -> None:
    setting = Setting()
    setting.announce(root="B4")
    assert setting.registration.all(SourceReady) == []
    setting.children_ready(root="B4")
    assert [f.source for f in setting.registration.all(SourceReady)] == ["s1"]


def test_interests_go_up_before_tree_ready() -> None:
    setting = Setting()
    setting.place(SF)
    setting.announce(ready=False)
    setting.brokers["B5"].send("B1", delta("/nitf/body"))
    setting.children_ready()
    got = [
        type(frame) for frame in setting.brokers["B1"].got
        if isinstance(frame, RoutingDelta | TreeReady)
    ]  # fmt: skip
    assert got == [RoutingDelta, RoutingDelta, TreeReady]


# --- query plane ------------------------------------------------------------------------------


def test_a_profile_is_placed_announced_and_becomes_live() -> None:
    setting = Setting()
    setting.announce()
    setting.place(SF)
    assert [f.added for f in setting.brokers["B1"].take(RoutingDelta)] == [query(SF)]
    (marker,) = setting.brokers["B1"].take(LiveMarker)
    assert [f.profiles for f in setting.registration.take(ProfilesChanged)] == [[("p1", 1, SF)]]
    assert setting.registration.all(ProfilesLive) == []
    reached = LiveReached("B1", "B4", marker.marker, "B1", ["B1"])
    setting.brokers["B1"].send("B1", reached)
    assert [f.profiles for f in setting.registration.all(ProfilesLive)] == [[("p1", 1)]]


def test_markers_travel_up_and_are_answered_at_the_root() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", LiveMarker("B1", "B5", 7, ["B1"]))
    assert [f.marker for f in setting.brokers["B1"].all(LiveMarker)] == [7]
    assert [f.broker for f in setting.brokers["B5"].take(LiveReached)] == ["B4"]  # so far
    setting.brokers["B1"].send("B1", LiveReached("B1", "B5", 7, "B1", ["B1"]))
    assert [f.broker for f in setting.brokers["B5"].take(LiveReached)] == ["B1"]
    setting.announce(source="s2", root="B4")
    setting.brokers["B6"].send("B1", LiveMarker("B1", "B6", 9, ["B1", "B4"]))
    assert [f.marker for f in setting.brokers["B6"].all(LiveReached)] == [9]


def test_equal_interests_cost_one_entry_upward() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta(SF))
    setting.brokers["B6"].send("B1", delta(SF))
    setting.place(SF)
    assert [f.added for f in setting.brokers["B1"].take(RoutingDelta)] == [query(SF)]
    setting.brokers["B5"].send("B1", delta(removed=(SF,)))
    setting.brokers["B6"].send("B1", delta(removed=(SF,)))
    assert setting.brokers["B1"].all(RoutingDelta) == []
    user = setting.beside.peer("client", "u")
    answer = user.ask("profile.remove", profile="p1")
    assert answer is not None and answer.ok
    assert [f.removed for f in setting.brokers["B1"].take(RoutingDelta)] == [query(SF)]
    assert setting.registration.take(ProfilesChanged)[-1].profiles == [("p1", 2, None)]


def test_one_message_in_many_goes_to_all_who_want_anything() -> None:
    """So that they see what else there is, and generalise by that."""
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta("/nitf/body"))
    setting.children_ready()
    for number in range(1, SAMPLE_EVERY + 1):
        setting.brokers["B1"].send("B1", message(number=number))
    assert [one.number for one in setting.brokers["B5"].take(Message)] == [SAMPLE_EVERY]
    assert setting.brokers["B6"].all(Message) == []  # which wants nothing
    assert _data(setting).matched_nothing == SAMPLE_EVERY - 1


def test_one_message_in_many_comes_to_be_looked_at_and_is_no_useless_one() -> None:
    setting = Setting()
    setting.announce()
    setting.children_ready()
    setting.place("/nitf/body")
    for number in (SAMPLE_EVERY - 1, SAMPLE_EVERY):
        setting.brokers["B1"].send("B1", message(number=number))
    assert _data(setting).matched_nothing == 1


def test_an_update_sends_what_differs_and_answers_when_live() -> None:
    setting = Setting()
    setting.announce()
    setting.place(f"{SF} ")
    setting.brokers["B1"].got.clear()
    user = setting.beside.peer("client", "u")
    new = "/nitf/body"
    assert user.ask("profile.update", profile="p1", text=new, wait=True) is None
    (frame,) = setting.brokers["B1"].take(RoutingDelta)[:1]
    assert (frame.added, frame.removed) == (query(new), [])
    (marker,) = setting.brokers["B1"].take(LiveMarker)
    reached = LiveReached("B1", "B4", marker.marker, "B1", ["B1"])
    setting.brokers["B1"].send("B1", reached)
    (answer,) = user.all(Response)
    assert answer.ok
    assert answer.result == {"profile": "p1", "version": 2, "live": True, "missing": []}


def test_who_waits_in_vain_is_told_which_brokers_are_missing() -> None:
    setting = Setting()
    setting.announce(source="s5", root="B5")
    setting.announce()
    setting.place(SF)
    setting.brokers["B1"].take(LiveMarker)
    user = setting.beside.peer("client", "u")
    assert user.ask("profile.live", profile="p1", wait=True, timeout=5) is None
    now = user.ask("profile.live", profile="p1")
    assert now is not None and now.result["live"] is False
    (marker,) = setting.brokers["B5"].take(LiveMarker)
    setting.brokers["B5"].send("B5", LiveReached("B5", "B4", marker.marker, "B5", ["B5"]))
    user.take(Response)
    setting.beside.now = 4.9
    setting.beside.tell(TimePassed())
    assert not user.all(Response)
    setting.beside.now = 5.0
    setting.beside.tell(TimePassed())
    (answer,) = user.take(Response)
    assert answer.result == {"profile": "p1", "version": 1, "live": False, "missing": ["B1"]}
    setting.brokers["B1"].send("B1", LiveReached("B1", "B4", marker.marker, "B1", ["B1"]))
    now = user.ask("profile.live", profile="p1", wait=True)
    assert now is not None and now.result["live"] is True
    refused = user.ask("profile.live", profile="p1", wait=True, timeout=1e9)
    assert refused is not None and not refused.ok


def test_a_removal_is_answered_when_everybody_knows() -> None:
    setting = Setting()
    setting.announce()
    setting.place(SF)
    setting.brokers["B1"].got.clear()
    user = setting.beside.peer("client", "u")
    assert user.ask("profile.remove", profile="p1", wait=True, timeout=60) is None
    (marker,) = setting.brokers["B1"].take(LiveMarker)
    setting.brokers["B1"].send("B1", LiveReached("B1", "B4", marker.marker, "B1", ["B1"]))
    (answer,) = user.take(Response)
    assert answer.result == {"profile": "p1", "removed": True, "live": True, "missing": []}
    assert setting.registration.all(ProfilesLive) == []


def test_a_refused_update_changes_nothing() -> None:
    setting = Setting()
    setting.announce()
    setting.place(SF)
    setting.brokers["B1"].got.clear()
    user = setting.beside.peer("client", "u")
    answer = user.ask("profile.update", profile="p1", text="/nitf[")
    assert answer is not None and not answer.ok
    assert answer.result["code"] == "profile-refused"
    assert "line 1" in str(answer.result["message"])
    assert setting.brokers["B1"].got == []
    shown = user.ask("profile.show", profile="p1")
    assert shown is not None and shown.result["text"] == SF and shown.result["version"] == 1


# --- data plane -------------------------------------------------------------------------------


def test_a_message_goes_only_where_it_is_wanted() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta(SF))
    setting.brokers["B6"].send("B1", delta("/nitf/body"))
    setting.brokers["B1"].send("B1", message())
    (forwarded,) = setting.brokers["B5"].all(Message)
    assert (forwarded.source, forwarded.number, forwarded.hops) == ("s1", 1, 2)
    assert setting.brokers["B6"].all(Message) == []


def test_the_next_link_gets_its_own_format_and_untouched_bytes_in_the_same() -> None:
    text = FIGURE4_WITH_TEXT_TO_B6
    setting = Setting(text)
    setting.announce()
    for child in ("B5", "B6"):
        setting.brokers[child].send("B1", delta("/nitf"))
    sent = message()
    setting.brokers["B1"].send("B1", sent)
    (binary,) = setting.brokers["B5"].all(Message)
    (as_text,) = setting.brokers["B6"].all(Message)
    assert (binary.format, binary.payload) == ("binary", sent.payload)
    assert (as_text.format, as_text.payload) == ("text", NEWS)


FIGURE4_WITH_TEXT_TO_B6 = parse_topology(
    """
    name = "three"
    [registration]
    id = "r1"
    listen = "127.0.0.1:1"
    [[broker]]
    id = "B1"
    listen = "127.0.0.1:2"
    [[broker]]
    id = "B4"
    listen = "127.0.0.1:3"
    [[broker]]
    id = "B5"
    listen = "127.0.0.1:4"
    [[broker]]
    id = "B6"
    listen = "127.0.0.1:5"
    [[link]]
    ends = ["B1", "B4"]
    format = "binary"
    [[link]]
    ends = ["B4", "B5"]
    format = "binary"
    [[link]]
    ends = ["B4", "B6"]
    format = "text"
    [limits]
    link_backlog_bytes_max = 1024
    """,
    "three",
)


def test_results_wait_for_their_subscriber() -> None:
    setting = Setting()
    setting.announce()
    setting.place(f"for $n in {SF} return <hit>{{$n/@edition.area}}</hit>")
    setting.brokers["B1"].send("B1", message())
    subscriber = setting.beside.subscriber("p1")
    (delivery,) = subscriber.all(Delivery)
    assert (delivery.source, delivery.number) == ("s1", 1)
    assert delivery.results() == [b'<hit edition.area="SF"/>']


def test_results_of_who_is_away_are_made_by_the_text_of_then() -> None:
    """Also after a restart, and by texts that gave way meanwhile; nothing is made before."""
    setting = Setting()
    setting.announce()
    setting.place("for $i in /nitf return <first>{$i/@n}</first>")
    setting.brokers["B1"].send("B1", message(b'<nitf n="1"/>', 1))
    setting.core.query.update(
        "p1", check_profile("for $i in /nitf return <second>{$i/@n}</second>")
    )
    setting.brokers["B1"].send("B1", message(b'<nitf n="2"/>', 2))
    setting.core.query.update("p1", check_profile("for $i in /nitf return <third>{$i/@n}</third>"))
    setting.brokers["B1"].send("B1", message(b'<nitf n="3"/>', 3))
    setting.restart()
    assert not setting.core.statistics().data.results_made
    got = [frame.results() for frame in setting.beside.subscriber("p1").all(Delivery)]
    assert got == [[b'<first n="1"/>'], [b'<second n="2"/>'], [b'<third n="3"/>']]


def test_a_user_is_told_of_results_beyond_a_limit() -> None:
    limits = structs.replace(FIGURE4.limits, message=MessageLimits(bytes_max=60_000))
    link = structs.replace(limits.link, frame_bytes_max=70_000)
    setting = Setting(structs.replace(FIGURE4, limits=structs.replace(limits, link=link)))
    setting.announce()
    setting.place("for $i in /nitf return <x>{$i}{$i}{$i}</x>", profile="p1")
    setting.place("/nitf", profile="p2")
    for number, size in enumerate((10, 30_000, 20), 1):
        xml = b"<nitf>%s</nitf>" % (b"x" * size)
        setting.brokers["B1"].send("B1", message(xml, number))
    got = {
        profile: [
            (frame.number, sum(map(bool, frame.results())))
            for frame in setting.beside.subscriber(profile).all(Delivery)
        ]
        for profile in ("p1", "p2")
    }
    # The second is that there are none, and why.
    assert got == {"p1": [(1, 1), (2, 1), (3, 1)], "p2": [(1, 1), (2, 1), (3, 1)]}
    assert setting.core.statistics().data.results_over_limit == 1


def test_a_refused_message_is_told_with_its_place_and_goes_nowhere() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.brokers["B5"].send("B4", delta("/nitf", root="B4"))
    setting.children_ready(root="B4")
    source = setting.beside.peer("source", "s1")
    source.send("s1", Publish(source="s1", format="text", payload=b"<nitf>\n <open>\n</nitf>"))
    source.send("s1", Publish(source="s1", format="text", payload=NEWS))
    (refused,) = source.all(Refused)
    assert (refused.number, refused.line) == (1, 3)
    assert [frame.number for frame in setting.brokers["B5"].all(Message)] == [2]


@pytest.mark.parametrize("limit", ["[limits.link]\nframe_bytes_max", "[limits.message]\nbytes_max"])
def test_what_another_broker_would_not_take_is_refused_at_the_root(limit: str) -> None:
    """Entities make a small text large; no broker may choke on it later."""
    text = Path(__file__).parents[3].joinpath("topologies", "single.toml").read_text()
    setting = Setting(parse_topology(f"{text}{limit} = 4194304\n", "single"), "B1")
    setting.announce(root="B1")
    source = setting.beside.peer("source", "s1")
    entity = b'<!DOCTYPE m [<!ENTITY e "' + b"x" * 8_000 + b'">]>'
    for times in (500, 600):
        xml = entity + b"<m>" + b"&e;" * times + b"</m>"
        source.send("s1", Publish(source="s1", format="text", payload=xml))
    assert [(refused.number, refused.code) for refused in source.all(Refused)] == [(2, "too-large")]


def _data(setting: Setting) -> Data:
    return setting.core.statistics().data


def _trees(asker: Peer, link: str) -> list[dict[str, Any]]:
    """The routing queries of a link, as a client is shown them."""
    answer = asker.ask("routing.show", link=link)
    assert answer is not None
    result: Any = answer.result
    return list(result["trees"])


def test_how_long_the_oldest_waits_for_a_neighbour_is_told() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta("/nitf"))

    def told(now: float) -> object:
        setting.beside.now = now
        setting.beside.tell(TimePassed())
        return _data(setting).waiting_s

    assert told(0.0) == {"B1": 0.0, "B5": 0.0, "B6": 0.0}
    setting.brokers["B5"].withhold = True
    setting.brokers["B1"].send("B1", message())
    told(10.0)
    setting.brokers["B1"].send("B1", message(number=2))
    assert told(17.0) == {"B1": 0.0, "B5": 7.0, "B6": 0.0}
    setting.brokers["B5"].release()
    setting.brokers["B5"].withhold = True
    setting.brokers["B1"].send("B1", message(number=3))
    assert told(20.0) == {"B1": 0.0, "B5": 0.0, "B6": 0.0}
    assert told(21.0) == {"B1": 0.0, "B5": 1.0, "B6": 0.0}
    setting.brokers["B5"].release()
    assert told(22.0) == {"B1": 0.0, "B5": 0.0, "B6": 0.0}


def test_a_slow_child_holds_the_parent_back_and_only_on_that_tree() -> None:
    setting = Setting(FIGURE4_WITH_TEXT_TO_B6)
    setting.announce()
    setting.brokers["B5"].send("B1", delta("/nitf"))
    setting.brokers["B5"].withhold = True
    large = b"<nitf>" + b"x" * 2000 + b"</nitf>"
    sent = message(large)
    setting.brokers["B1"].send("B1", sent)
    assert setting.core.backlogs.may_grow("B1") is False
    assert setting.core.backlogs.may_grow("B4") is True
    setting.brokers["B5"].release()
    assert setting.core.backlogs.may_grow("B1") is True


def test_observers_see_what_happens() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta(SF))
    setting.place(SF)
    observer = setting.beside.peer("client", "o")
    observer.ask("observe")
    setting.brokers["B1"].send("B1", message())
    events = [event for frame in observer.all(Observed) for event in frame.events]
    assert [event["kind"] for event in events] == ["crossing", "delivery"]


def test_who_observes_figures_is_told_where_they_stand_and_not_of_each_message() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta(SF))
    setting.place(SF)
    observer = setting.beside.peer("client", "o")
    observer.ask("observe", figures=True)
    for _ in range(3):
        setting.brokers["B1"].send("B1", message())
    assert setting.beside.calls_later == [FIGURES_SECONDS]  # once, however many come
    setting.beside.now += FIGURES_SECONDS
    setting.beside.tell(CalledLater())
    told = [event for frame in observer.all(Observed) for event in frame.events]
    assert {event["kind"] for event in told} == {"figures"}
    assert (told[0]["delivered"], told[-1]["delivered"]) == (0, 3)
    assert told[-1]["profiles"] == 1
    links: Any = told[-1]["links"]
    assert links["B5"] == [3, 0, "binary", True]
    assert len(told) == 3  # at the begin, with the first message, and when they may be again
    setting.beside.tell(TimePassed())
    assert len(observer.all(Observed)) == 3  # they stand where they stood


def test_a_source_that_was_removed_is_counted_no_more() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    setting.beside.peer("source", "s1").send("s1", Publish("s1", "text", NEWS))
    assert _data(setting).sources == {"s1": 1}
    setting.registration.send("registration", SourceRemoved(source="s1"))
    assert _data(setting).sources == {}


def test_a_routing_query_is_shown_as_far_as_it_fits_on_a_page() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta(SF))
    asker = setting.beside.peer("client", "o")
    (tree,) = _trees(asker, "B5")
    assert (tree["tree"], tree["disjuncts"]) == ("B1", 1)
    assert "SF" in tree["first"][0]
    assert _trees(asker, "B9") == []


# --- who may do what --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "name", "code"),
    [
        ("broker", "B2", "unknown-broker"),  # no neighbour of B4
        ("source", "s1", "unknown-source"),  # its root is B1
    ],
)
def test_strangers_are_refused_at_the_door(role: str, name: str, code: str) -> None:
    setting = Setting()
    setting.announce()
    stranger = setting.beside.peer(role, name)
    assert (stranger.error, stranger.closed) == (code, True)


def test_a_subscriber_is_told_of_a_profile_that_is_not_here() -> None:
    subscriber = Setting().beside.subscriber("p9")
    assert (subscriber.error, subscriber.closed) == ("unknown-profile", False)


@pytest.mark.parametrize(
    "frame",
    [
        message(),
        Publish(source="s1", format="text", payload=NEWS),
        PlaceProfile(profile="p1", user="", text=SF, version=1, request="r"),
    ],
)
def test_frames_from_the_wrong_peer_end_its_connection_and_nothing_else(frame: Frame) -> None:
    setting = Setting()
    setting.announce()
    setting.place(SF)
    subscriber = setting.beside.subscriber("p1")
    stranger = setting.brokers["B5"]
    stranger.send("p1", frame)
    assert stranger.error == "not-expected"
    setting.brokers["B1"].send("B1", message())
    assert subscriber.connect().all(Delivery) != []


def test_a_routing_query_that_is_none_is_refused() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", RoutingDelta(root="B1", added=["/a["], removed=[]))
    assert setting.brokers["B5"].error == "routing-refused"
    setting.brokers["B1"].send("B4", RoutingDelta(root="B4", added=[], removed=[]))
    assert setting.brokers["B1"].error == "unknown-root"
    setting.brokers["B6"].send("B1", LiveMarker("B1", "B6", 1, ["B1", "B6"]))
    assert setting.brokers["B6"].error == "unknown-root"


def test_trees_that_have_a_branch_in_common_are_told_once() -> None:
    """Below B1 it is the same on the trees of B1, B2 and B3: one delta, one marker, one answer;
    and what B5 has told on one of them holds on all."""
    setting = Setting()
    for root in ("B1", "B2", "B3"):
        setting.announce(source=f"s-{root}", root=root)
    setting.place(SF)
    setting.brokers["B5"].send("B1", delta("/nitf/body"))
    added = [text for f in setting.brokers["B1"].take(RoutingDelta) for text in f.added]
    assert sorted(added) == query("/nitf/body", SF)
    (marker,) = setting.brokers["B1"].take(LiveMarker)
    assert (marker.root, marker.roots) == ("B1", ["B1", "B2", "B3"])
    for root in ("B2", "B3"):
        sent = msgspec.structs.replace(
            message(b"<nitf><body/></nitf>"), root=root, source=f"s-{root}"
        )
        setting.brokers["B1"].send(root, sent)
        assert [frame.root for frame in setting.brokers["B5"].take(Message)] == [root]
    reached = LiveReached("B1", "B4", marker.marker, "B1", marker.roots)
    setting.brokers["B1"].send("B1", reached)
    assert setting.registration.all(ProfilesLive) == []
    for root in ("B2", "B3"):
        setting.brokers["B1"].send(
            "B1", msgspec.structs.replace(reached, broker=root, roots=[root])
        )
    assert [f.profiles for f in setting.registration.all(ProfilesLive)] == [[("p1", 1)]]


def test_unknown_verbs_name_the_known_ones() -> None:
    user = Setting().beside.peer("client", "u")
    answer = user.ask("profile.eat")
    assert answer is not None and answer.result["code"] == "unknown-verb"
    assert "profile.update" in str(answer.result["message"])


# --- after a restart --------------------------------------------------------------------------


def test_profiles_routes_sources_and_undelivered_results_survive_a_restart() -> None:
    setting = Setting()
    setting.announce()
    setting.children_ready()
    setting.place(SF)
    setting.brokers["B5"].send("B1", delta(SF))
    setting.brokers["B1"].send("B1", message(number=1))
    before: Peer = setting.brokers["B5"]
    before.got.clear()
    setting.restart()
    setting.brokers["B1"].send("B1", message(number=2))
    assert [frame.number for frame in setting.brokers["B5"].all(Message)] == [2]
    subscriber = setting.beside.subscriber("p1")
    assert [frame.number for frame in subscriber.all(Delivery)] == [1, 2]
    assert all(decode(f.payload, WireFormat.TEXT) for f in subscriber.all(Delivery))


def test_a_marker_under_way_survives_a_restart() -> None:
    setting = Setting()
    setting.announce()
    setting.place(SF)
    (marker,) = setting.brokers["B1"].take(LiveMarker)
    setting.restart()
    reached = LiveReached("B1", "B4", marker.marker, "B1", ["B1"])
    setting.brokers["B1"].send("B1", reached)
    assert [f.profiles for f in setting.registration.all(ProfilesLive)] == [[("p1", 1)]]


def test_a_large_routing_query_travels_in_frames_of_its_own_size() -> None:
    """Text whose UTF-8 is much longer than its characters, and more disjuncts than fit a frame."""
    setting = Setting()
    long = "é" * 16_000
    for number in range(40):
        setting.place(f"/nitf[@a{number} = '{long}']", profile=f"p{number}")
    setting.announce()
    frames = setting.brokers["B1"].take(RoutingDelta)
    assert len(frames) > 1
    assert sum(len(frame.added) for frame in frames) == 40
    wide = "".join(f"[b{number} = '{long}']" for number in range(4))
    setting.place(f"/nitf{wide}", profile="p99")
    (frame,) = setting.brokers["B1"].take(RoutingDelta)
    assert len(frame.added[0].encode()) <= 256 * 1024


def test_a_message_beyond_the_matchers_bound_still_reaches_the_children() -> None:
    setting = Setting()
    setting.announce()
    setting.brokers["B5"].send("B1", delta("//a//a[b]//a[c]//a"))
    deep = b"<a>" * 200 + b"<b/><c/>" + b"</a>" * 200
    matcher = setting.core.query.matcher
    matcher.limits = replace(matcher.limits, visits_max=100)
    setting.brokers["B1"].send("B1", message(deep))
    for child in ("B5", "B6"):
        assert len(setting.brokers[child].all(Message)) == 1
    assert setting.core.statistics().data.match_over_limit == 1
