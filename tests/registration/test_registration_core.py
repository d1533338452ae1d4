"""The registration core alone, with brokers and clients beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from formats import SchemaRefused
from formats.schema_questions import ReadSchema, SchemaFound
from overlay.link.core_context import Surroundings
from overlay.link.events import DiskRoom, SchemaAnswered, TimePassed
from overlay.link.frames import (
    PlaceProfiles,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    Request,
    Response,
    SourceAnnounced,
    SourceReady,
)
from overlay.topology import Topology, load_topology, parse_topology
from registration.registration_core import RegistrationCore
from registration.schema_reading import WAITING_MAX
from tests.beside import Beside, Peer

FIGURE4 = load_topology(Path(__file__).parents[2] / "topologies" / "figure4.toml")
DTD = b"<!ELEMENT nitf (#PCDATA)>"


class Setting:
    def __init__(
        self, topology: Topology = FIGURE4, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.topology = topology
        self.identity = topology.registration[0].id
        self.wall = 0.0
        self._clock = clock
        core = self._new_core("run1", ())
        self.beside = Beside(f"registration/{self.identity}", core)
        self.brokers = {name: self.beside.peer("broker", name) for name in topology.broker_ids}
        self.client = self.beside.peer("client", "c")

    def _new_core(self, instance: str, rows: Iterable[tuple[str, str, bytes]]) -> RegistrationCore:
        core = (self.topology, self.identity, instance, rows)
        return RegistrationCore(*core, Surroundings(clock=self._clock, wall=lambda: self.wall))

    @property
    def core(self) -> RegistrationCore:
        core = self.beside.core
        assert isinstance(core, RegistrationCore)
        return core

    def restart(self) -> None:
        for peer in [*self.brokers.values(), self.client]:
            peer.disconnect()
        self.beside.core = self._new_core("run2", self.beside.stored())
        for peer in [*self.brokers.values(), self.client]:
            peer.connect()

    def pass_time(self, seconds: float) -> None:
        self.beside.tell(TimePassed())
        self.beside.now += seconds
        self.beside.tell(TimePassed())

    def request(self, request: str, verb: str, **arguments: object) -> Response | None:
        """With a request id of one's own."""
        self.client.reply(Request(request=request, verb=verb, arguments=arguments))
        return self.client.answer(request)

    def holder(self, kind: type[PlaceProfiles] | type[SourceAnnounced]) -> tuple[str, Peer]:
        """The one broker that was sent such a frame."""
        (found,) = [(name, peer) for name, peer in self.brokers.items() if peer.all(kind)]
        return found


def refused(answer: Response | None) -> str:
    assert answer is not None and not answer.ok
    return str(answer.result["code"])


def test_a_source_is_answered_when_it_is_ready() -> None:
    setting = Setting()
    schema = {"schema_name": "news.dtd", "schema": DTD}
    assert setting.request("q1", "source.register", name="news", rate=2, size=100, **schema) is None
    root, broker = setting.holder(SourceAnnounced)
    (announced,) = broker.all(SourceAnnounced)
    assert (announced.source, announced.root, announced.payload) == ("s1", root, DTD)
    assert announced.schema_kind == "dtd"
    broker.send("registration", SourceReady(source="s1"))
    answer = setting.client.answer("q1")
    assert answer is not None and answer.ok
    assert answer.result["source"] == "s1"
    assert answer.result["address"] == str(setting.topology.address(root))
    shown = setting.client.ask("source.show", source="s1")
    assert shown is not None and shown.result["ready"] is True


def test_nothing_is_added_while_the_disk_is_short() -> None:
    """What was there is asked for, changed and removed all the same."""
    setting = Setting()
    setting.beside.tell(DiskRoom(is_short=True))
    for number, (verb, arguments) in enumerate(
        [
            ("source.register", {"name": "news"}),
            ("profile.add", {"text": "/a", "user": "ann"}),
            ("profile.add_many", {"profiles": [["/a", "k"]], "user": "ann"}),
            ("taxonomy.put", {"name": "t", "text": "", "kind": "text/turtle"}),
        ]
    ):
        assert refused(setting.request(f"q{number}", verb, **arguments)) == "disk-full"
    listed = setting.client.ask("source.list")
    assert listed is not None and listed.ok
    assert setting.core.statistics().requests.disk_is_short is True
    setting.beside.tell(DiskRoom(is_short=False))
    assert setting.request("q", "profile.add", text="/a", user="ann") is None
    setting.holder(PlaceProfiles)


def test_a_profile_is_answered_when_placed_and_with_wait_when_live() -> None:
    setting = Setting()
    assert setting.request("q1", "profile.add", text="/a", user="ann") is None
    assert setting.request("q2", "profile.add", text="/a", user="bob", wait=True) is None
    placed = {
        profile: peer
        for peer in setting.brokers.values()
        for frame in peer.all(PlaceProfiles)
        for profile, _, _ in frame.profiles
    }
    assert sorted(placed) == ["p1", "p2"]
    for profile, broker in placed.items():
        broker.send("registration", ProfilesPlaced([profile]))
    first = setting.client.answer("q1")
    assert first is not None and first.result["live"] is False
    assert setting.client.answer("q2") is None
    placed["p2"].send("registration", ProfilesLive([("p2", 1)]))
    second = setting.client.answer("q2")
    assert second is not None and second.result["live"] is True


def test_who_waits_for_a_profile_is_answered_in_time() -> None:
    setting = Setting()
    ask = {"text": "/a", "user": "ann", "wait": True, "timeout": 5.0}
    assert setting.request("q1", "profile.add", **ask) is None
    _, broker = setting.holder(PlaceProfiles)
    setting.pass_time(10.0)
    assert setting.client.answer("q1") is None  # it has no host yet
    broker.send("registration", ProfilesPlaced(["p1"]))
    answer = setting.client.answer("q1")
    assert answer is not None and answer.result["live"] is False


def test_what_is_new_goes_to_brokers_that_are_there() -> None:
    """Even where the one that is away is nearest; it keeps what it has."""
    setting = Setting()
    nearest = setting.topology.broker("B4")
    location = [nearest.place.latitude, nearest.place.longitude] if nearest.place else None
    setting.brokers["B4"].disconnect()
    setting.pass_time(setting.topology.limits.link_down_after_s - 1)
    setting.request("q1", "profile.add", text="/a", location=location)
    setting.pass_time(1)
    setting.request("q2", "profile.add", text="/b", location=location)
    setting.request("q3", "source.register", location=location)
    catalog = setting.core.catalog
    assert [catalog.profiles[p].host == "B4" for p in ("p1", "p2")] == [True, False]
    assert catalog.sources["s1"].root != "B4"
    for name, peer in setting.brokers.items():
        if name != "B4":
            peer.disconnect()
    setting.pass_time(setting.topology.limits.link_down_after_s)
    setting.request("q4", "profile.add", text="/c", location=location)
    assert catalog.profiles["p3"].host == "B4"  # where none is there, each will do


def test_a_repeated_request_makes_nothing_twice() -> None:
    setting = Setting()
    setting.request("q1", "profile.add", text="/a")
    setting.restart()
    assert setting.request("q1", "profile.add", text="/a") is None
    name, broker = setting.holder(PlaceProfiles)
    assert [frame.profiles for frame in broker.all(PlaceProfiles)] == [[("p1", "", "/a")]]
    broker.send("registration", ProfilesPlaced(["p1"]))
    answer = setting.client.answer("q1")
    assert answer is not None and (answer.result["profile"], answer.result["host"]) == ("p1", name)
    again = setting.request("q1", "profile.add", text="/a")
    assert again is not None and again.result["profile"] == "p1"


def test_the_catalog_follows_what_host_brokers_report_and_survives_a_restart() -> None:
    setting = Setting()
    setting.request("q1", "profile.add", text="/a", user="ann")
    _, broker = setting.holder(PlaceProfiles)
    broker.send("registration", ProfilesPlaced(["p1"]))
    broker.send("registration", ProfilesChanged([("p1", 2, "/b")]))
    setting.restart()
    shown = setting.client.ask("profile.show", profile="p1")
    assert shown is not None
    assert (shown.result["version"], shown.result["text"], shown.result["user"]) == (2, "/b", "ann")
    broker.send("registration", ProfilesChanged([("p1", 3, None)]))
    assert refused(setting.client.ask("profile.show", profile="p1")) == "unknown-profile"
    setting.restart()
    assert refused(setting.client.ask("profile.show", profile="p1")) == "unknown-profile"
    # ids are never used again
    setting.request("q2", "profile.add", text="/a")
    _, broker = setting.holder(PlaceProfiles)
    assert broker.all(PlaceProfiles)[-1].profiles == [("p2", "", "/a")]


def test_lists_come_in_pages_by_user() -> None:
    setting = Setting()
    for number, user in enumerate(["ann", "bob", "ann"]):
        setting.request(f"q{number}", "profile.add", text="/a", user=user)
    listed = setting.client.ask("profile.list", user="ann")
    assert listed is not None
    assert [entry["profile"] for entry in listed.result["profiles"]] == ["p1", "p3"]  # type: ignore[attr-defined]
    rest = setting.client.ask("profile.list", after="p1")
    assert rest is not None
    assert [entry["profile"] for entry in rest.result["profiles"]] == ["p2", "p3"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        ("profile.add", {"text": "/a["}, "profile-refused"),
        ("profile.add", {"text": 7}, "bad-argument"),
        ("profile.add", {}, "bad-argument"),
        ("profile.add", {"text": "/" + "a" * 270_000}, "too-long"),
        ("profile.add", {"text": "/a", "location": [91, 0]}, "bad-argument"),
        ("profile.add", {"text": "/a", "location": "here"}, "bad-argument"),
        ("source.register", {"rate": -1}, "bad-argument"),
        ("source.register", {"schema_name": "x.dtd", "schema": b"<!ELEMENT"}, "schema-refused"),
        ("source.register", {"schema_name": "x.dtd", "schema": "text"}, "bad-argument"),
        ("source.register", {"validate": "sometimes"}, "bad-argument"),
        ("source.register", {"validate": 1}, "bad-argument"),
        ("source.register", {"validate": "report"}, "schema-refused"),
        (
            "source.register",
            {
                "schema_name": "x.dtd",
                "schema": b"<!ENTITY % e SYSTEM 'e'>%e;<!ELEMENT a EMPTY>",
                "validate": "reject",
            },
            "schema-refused",
        ),
        ("source.show", {"source": "s9"}, "unknown-source"),
        ("profile.show", {"profile": "p9"}, "unknown-profile"),
        ("profile.eat", {}, "unknown-verb"),
    ],
)
def test_bad_requests_are_refused_and_leave_no_trace(
    verb: str, arguments: dict[str, object], code: str
) -> None:
    setting = Setting()
    before = dict(setting.beside.rows)
    assert refused(setting.client.ask(verb, **arguments)) == code
    assert setting.beside.rows == before


def test_bounds_on_what_may_be_registered() -> None:
    text = Path(__file__).parents[2].joinpath("topologies", "single.toml").read_text()
    limits = "\n[limits]\nprofiles_max = 1\nsources_max = 1\n"
    setting = Setting(parse_topology(text + limits, "small"))
    setting.request("q1", "profile.add", text="/a")
    assert refused(setting.request("q2", "profile.add", text="/a")) == "too-many-profiles"
    setting.request("q3", "source.register")
    assert refused(setting.request("q4", "source.register")) == "too-many-sources"


@pytest.mark.parametrize(
    ("role", "name", "code"),
    [("broker", "B77", "unknown-broker"), ("source", "s1", "not-expected")],
)
def test_strangers_are_refused(role: str, name: str, code: str) -> None:
    stranger = Setting().beside.peer(role, name)
    assert (stranger.error, stranger.closed) == (code, True)


def test_the_network_says_where_its_brokers_are() -> None:
    answer = Setting().client.ask("network")
    assert answer is not None
    assert answer.result["brokers"] == {broker.id: str(broker.listen) for broker in FIGURE4.brokers}


def _added(setting: Setting, number: int, text: str) -> object:
    """The warnings with which a profile is added."""
    setting.request(f"p{number}", "profile.add", text=text)
    for broker in setting.brokers.values():
        for frame in broker.all(PlaceProfiles):
            if frame.profiles == [(f"p{number}", "", text)]:
                broker.send("registration", ProfilesPlaced([f"p{number}"]))
    answer = setting.client.answer(f"p{number}")
    assert answer is not None
    return answer.result["warnings"]


def _warnings_after_change(setting: Setting, number: int) -> object:
    """The warnings of who waits for a change that has been made."""
    placed = setting.request(f"p{number}", "profile.add", text="")
    assert placed is not None
    profile = placed.result["profile"]
    answer = setting.request(f"w{number}", "profile.await", profile=profile, version=1)
    assert answer is not None
    assert answer.result["gone"] is False
    return answer.result["warnings"]


def test_nobody_waits_while_a_schema_is_read() -> None:
    setting = Setting()
    asked = setting.beside.schemas_asked = []
    schema = {"schema_name": "news.dtd", "schema": DTD}
    for request in ("q1", "q2"):
        assert setting.request(request, "source.register", **schema) is None
    (question,) = asked  # the same schema is read once
    assert question.question == ReadSchema("news.dtd", DTD)
    answer = setting.request("q3", "source.list")
    assert answer is not None and answer.result["sources"] == []
    setting.beside.tell(SchemaAnswered(question.key, SchemaFound("dtd")))
    _, broker = setting.holder(SourceAnnounced)
    for source in ("s1", "s2"):
        broker.send("registration", SourceReady(source=source))
    for request, source in (("q1", "s1"), ("q2", "s2")):
        answer = setting.client.answer(request)
        assert answer is not None and answer.result["source"] == source


def test_what_costs_too_much_to_read_is_told_and_only_so_many_are_read_at_once() -> None:
    setting = Setting()
    asked = setting.beside.schemas_asked = []
    for number in range(WAITING_MAX):
        schema = {"schema_name": f"{number}.dtd", "schema": DTD}
        assert setting.request(f"q{number}", "source.register", **schema) is None
    schema = {"schema_name": "more.dtd", "schema": DTD}
    assert refused(setting.request("more", "source.register", **schema)) == "busy"
    costly = SchemaRefused("schema-too-costly", "it takes more than 2 s")
    setting.beside.tell(SchemaAnswered(asked[0].key, costly))
    answer = setting.client.answer("q0")
    assert refused(answer) == "schema-refused"
    assert answer is not None and "[schema-too-costly]" in str(answer.result["message"])
    assert setting.request("later", "source.register", **schema) is None


def test_a_profile_that_no_source_can_match_is_warned_of() -> None:
    setting = Setting()
    assert _added(setting, 1, "/nitf/body") == []
    schema = {"schema_name": "news.dtd", "schema": DTD}
    setting.request("q1", "source.register", **schema)
    (warning,) = _added(setting, 2, "/nitf/body")  # type: ignore[misc]
    assert str(warning).startswith(
        "it can match no message that follows news.dtd: line 1, column 7"
    )
    assert _added(setting, 3, "/nitf") == []
    assert _warnings_after_change(setting, 2) == [warning]
    other = {"schema_name": "other.dtd", "schema": b"<!ELEMENT nitf (body)><!ELEMENT body EMPTY>"}
    setting.request("q2", "source.register", **other)
    assert _added(setting, 4, "/nitf/body") == []
    assert len(_added(setting, 5, "/nitf/head")) == 2  # type: ignore[arg-type]
    setting.request("q3", "source.register", name="anything")
    assert _added(setting, 6, "/nitf/head") == []


def test_settings_of_a_profile_are_changed_and_kept() -> None:
    setting = Setting()
    setting.client.ask("profile.add", text="/nitf", user="ann")
    _, broker = setting.holder(PlaceProfiles)
    ((profile, _, _),) = broker.all(PlaceProfiles)[0].profiles
    for near in (True, False, True):
        answer = setting.request(f"set {near}", "profile.set", profile=profile, near=near)
        assert answer is not None and answer.result["near"] is near
    assert refused(setting.request("q1", "profile.set", profile=profile, near=1)) == "bad-argument"
    assert refused(setting.request("q2", "profile.set", profile="p9")) == "unknown-profile"
    setting.restart()
    answer = setting.request("q3", "profile.set", profile=profile)
    assert answer is not None and answer.result["near"] is True
