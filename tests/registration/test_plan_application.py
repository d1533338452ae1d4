"""A plan is applied: what is begun, when, and what becomes of it; brokers do as they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from overlay.link.events import TimePassed
from overlay.link.frames import (
    HandedOver,
    HandoverWanted,
    MoveEnded,
    PlaceProfile,
    PlaceProfiles,
    ProfileReleased,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    ProfileTaken,
    ReleaseProfile,
    StandBy,
    StandingBy,
)
from overlay.link.request_server import Result
from overlay.topology import parse_topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.beside import Peer
from tests.registration.test_registration_core import Setting, refused

TOPOLOGY = parse_topology(
    'name = "three"\n[registration]\nid = "R"\nlisten = "r:1"\n'
    + "".join(f'[[broker]]\nid = "B{n}"\nlisten = "b{n}:1"\ncapacity = 10\n' for n in (1, 2, 3))
    + '[[link]]\nends = ["B1", "B2"]\n[[link]]\nends = ["B2", "B3"]\n',
    "three",
)
TEXTS = [f'/m[@v = "{number}"]' for number in range(8)]
READER = NeedReader()
PLAN = make_plan(
    LocalPopulation(ProfileNeeds(READER.read(text)) for text in TEXTS), PlanOptions(4, TOPOLOGY)
)


class Network(Setting):
    """All profiles are at B1 to begin with."""

    def __init__(self) -> None:
        super().__init__(TOPOLOGY)
        self.use("B1")
        for text in TEXTS:
            self.client.ask("profile.add", text=text)
        for frame in self.brokers["B1"].take(PlaceProfiles):
            ((profile, _, _),) = frame.profiles
            self.brokers["B1"].send("registration", ProfilesPlaced([profile]))
            self.brokers["B1"].send("registration", ProfilesLive([(profile, 1)]))

    def use(self, *brokers: str) -> None:
        where = tuple(brokers[n % len(brokers)] for n in range(PLAN.partitions))
        plan = replace(PLAN, brokers=where)
        assert self.ask("plan.use", plan=to_json(plan).encode())["plan"] == plan_id(plan)

    def ask(self, verb: str, **arguments: object) -> Result:
        answer = self.client.ask(verb, **arguments)
        assert answer is not None and answer.ok, answer
        return dict(answer.result)

    def changed(self, broker: str, profile: str, text: str | None, version: int) -> None:
        frame = ProfilesChanged([(profile, version, text)])
        self.brokers[broker].send("registration", frame)

    def pass_time(self, seconds: float = 1.0) -> None:
        self.beside.now += seconds
        self.beside.tell(TimePassed())

    def begun(self, broker: str) -> list[StandBy]:
        return self.brokers[broker].all(StandBy)

    def finish(self) -> None:
        """Every broker does what it is asked, until nobody is asked anything more."""
        while any(map(obey, self.brokers.values())):
            pass

    def host(self, profile: str) -> str:
        return str(self.ask("profile.show", profile=profile)["host"])


def obey(peer: Peer) -> bool:
    stand_bys, releases = peer.take(StandBy), peer.take(ReleaseProfile)
    released = peer.take(ProfileReleased)
    for stand_by in stand_bys:
        standing_by = StandingBy(stand_by.profile, stand_by.move, stand_by.version)
        peer.send("registration", standing_by)
    for release in releases:
        frame = ProfileReleased(release.profile, release.move, release.version, 0, 0, 0, 0, 0, [])
        peer.send("registration", frame)
    for there in released:
        peer.send("registration", ProfileTaken(there.profile, there.move, there.version))
    return bool(stand_bys or releases or released)


@pytest.fixture
def network() -> Network:
    return Network()


def test_all_come_home_at_most_so_many_at_once_and_in_a_second(network: Network) -> None:
    network.use("B2")
    network.pass_time(5)
    assert network.ask("plan.apply", rate=2, at_once=3)["state"] == "running"
    assert len(network.begun("B2")) == 2, "a second's worth was saved up"
    network.pass_time()
    assert len(network.begun("B2")) == 3
    network.pass_time()
    assert len(network.begun("B2")) == 3
    network.finish()
    assert network.ask("plan.progress")["moved"] >= 3
    while network.ask("plan.progress")["state"] != "done":
        network.pass_time()
        network.finish()
    progress = network.ask("plan.progress")
    assert (progress["moved"], progress["under_way"], progress["put_off"]) == (8, 0, {})
    assert (progress["came"], progress["left"]) == ({"B2": 8}, {"B1": 8})
    assert {network.host(f"p{n}") for n in range(1, 9)} == {"B2"}
    assert network.core.catalog.profiles_by_broker == {"B1": 0, "B2": 8}
    assert len(network.brokers["B1"].all(MoveEnded)) == 8
    network.ask("plan.apply")
    assert network.ask("plan.progress")["moved"] == 0, "all are at home"


def test_it_goes_on_after_a_restart_at_any_step(network: Network) -> None:
    network.use("B2", "B3")
    network.ask("plan.apply", rate=1000, at_once=2)
    progress = network.ask("plan.progress")
    while progress["state"] != "done":
        network.restart()
        network.pass_time()
        any(map(obey, network.brokers.values()))  # one of them, one step
        progress = network.ask("plan.progress")
    assert (progress["moved"], progress["under_way"]) == (8, 0)
    assert sum(progress["came"].values()) == sum(progress["left"].values()) == 8


def test_who_is_away_is_waited_for_and_holds_up_no_others(network: Network) -> None:
    network.brokers["B3"].disconnect()
    network.use("B2", "B3")
    network.ask("plan.apply", rate=1000)
    network.pass_time()
    network.finish()
    network.pass_time(10)
    progress = network.ask("plan.progress")
    assert progress["state"] == "running"
    (reason,) = progress["put_off"]
    assert reason == "B3 is away"
    assert progress["moved"] + progress["put_off"][reason] == 8
    network.brokers["B3"].connect()
    network.pass_time(10)
    network.finish()
    network.pass_time(10)
    assert network.ask("plan.progress")["state"] == "done"


def test_a_home_that_is_full_takes_no_more(network: Network) -> None:
    for _ in range(6):
        network.client.ask("profile.add", text="/other", location=[0, 0], near=True)
    counts = dict(network.core.catalog.profiles_by_broker)
    full = max(("B2", "B3"), key=lambda broker: counts.get(broker, 0))
    network.use(full)
    network.ask("plan.apply", rate=1000)
    for _ in range(5):
        network.pass_time()
        network.finish()
    progress = network.ask("plan.progress")
    room = 10 - counts.get(full, 0)
    assert (progress["state"], progress["moved"]) == ("done", min(8, room))
    assert progress["put_off"] == ({f"{full} is full": 8 - room} if room < 8 else {})


def test_a_home_where_a_profile_is_not_live_in_time_is_given_up(network: Network) -> None:
    network.use("B2")
    network.ask("plan.apply", rate=1000, at_once=8)
    network.pass_time()
    for _ in range(3):
        assert len(network.brokers["B2"].take(StandBy)) == 8
        network.pass_time(31)
        network.pass_time()
    assert len(network.brokers["B2"].take(MoveEnded)) == 24
    progress = network.ask("plan.progress")
    assert (progress["state"], progress["given_up"]) == ("done", 24)
    assert progress["put_off"] == {"not live at B2 in time": 8}
    assert network.core.catalog.profiles_by_broker == {"B1": 8, "B2": 0}


def test_it_is_paused_resumed_and_aborted(network: Network) -> None:
    network.use("B2")
    network.ask("plan.apply", rate=1000, at_once=1)
    network.pass_time()
    assert network.ask("plan.pause")["state"] == "paused"
    network.finish()
    network.pass_time()
    assert network.ask("plan.progress")["moved"] == 1
    assert network.ask("plan.resume")["state"] == "running"
    assert len(network.begun("B2")) == 1
    assert network.ask("plan.abort")["state"] == "aborted"
    assert [frame.profile for frame in network.brokers["B2"].all(MoveEnded)] == [
        network.begun("B2")[0].profile
    ]
    network.finish()
    network.pass_time()
    assert network.ask("plan.progress")["moved"] == 1


def test_another_plan_takes_its_place(network: Network) -> None:
    network.use("B2")
    network.ask("plan.apply", rate=1000, at_once=2)
    network.pass_time()
    network.use("B3")
    network.pass_time()
    assert network.ask("plan.progress")["state"] == "aborted"
    network.ask("plan.apply", rate=1000, at_once=8)
    for _ in range(3):
        network.pass_time()
        network.finish()
    assert {network.host(f"p{n}") for n in range(1, 9)} == {"B3"}


def test_a_profile_that_changes_stands_by_anew_and_one_that_goes_is_let_go(
    network: Network,
) -> None:
    network.use("B2")
    network.ask("plan.apply", rate=1000, at_once=2)
    network.pass_time()
    first, second = network.brokers["B2"].take(StandBy)
    network.changed("B1", first.profile, "/changed", 2)
    (again,) = network.brokers["B2"].take(StandBy)
    assert (again.profile, again.text, again.version) == (first.profile, "/changed", 2)
    network.brokers["B2"].send("registration", StandingBy(first.profile, first.move, 1))
    assert network.brokers["B1"].all(ReleaseProfile) == [], "that version is past"
    network.changed("B1", second.profile, None, 2)
    assert MoveEnded(second.profile, second.move) in network.brokers["B2"].all(MoveEnded)
    assert network.ask("statistics")["catalog"]["profiles"] == 7


def test_frames_of_brokers_that_have_no_part_in_a_move_do_nothing(network: Network) -> None:
    network.use("B2")
    network.ask("plan.apply", rate=1000, at_once=1)
    network.pass_time()
    ((move, profile),) = [(frame.move, frame.profile) for frame in network.begun("B2")]
    stranger = network.brokers["B3"]
    for frame in (
        StandingBy(profile, move, 1),
        ProfileReleased(profile, move, 1, 0, 0, 0, 0, 0, []),
        HandoverWanted(profile, move, 0),
        HandedOver(profile, move, 1, False, "s1", 1, [], b""),
        ProfileTaken(profile, move, 1),
    ):
        stranger.send("registration", frame)
    assert network.host(profile) == "B1"
    assert network.ask("plan.progress")["under_way"] == 1
    assert network.brokers["B1"].all(ReleaseProfile) == []
    assert network.brokers["B2"].all(ProfileReleased) == []


def test_what_was_on_its_way_to_a_lost_broker_stays_or_is_taken_back(network: Network) -> None:
    network.use("B3")
    network.ask("plan.apply", rate=1000, at_once=2)
    network.pass_time()
    network.brokers["B1"].take(PlaceProfiles)
    first, second = network.begun("B3")
    network.brokers["B3"].send("registration", StandingBy(first.profile, first.move, 1))
    network.brokers.pop("B3").disconnect()
    network.ask("broker.lost", broker="B3")
    assert len(network.core.moves) == 0
    network.pass_time()
    (back,) = network.brokers["B1"].all(PlaceProfile)
    assert (back.profile, back.text, back.version) == (first.profile, first.text, 1)
    assert {network.host(frame.profile) for frame in (first, second)} == {"B1"}


def test_what_would_move_is_answered_with_sums(network: Network) -> None:
    plan = to_json(replace(PLAN, brokers=("B3",) * PLAN.partitions)).encode()
    census = network.ask("plan.census", plan=plan)
    assert (census["profiles"], census["misplaced"]) == (8, 8)
    assert census["moves"] == [["B1", "B3", 8]]
    assert network.ask("plan.census")["moves"] == []


def test_without_a_plan_nothing_is_applied() -> None:
    setting = Setting(TOPOLOGY)
    assert refused(setting.client.ask("plan.apply")) == "no-plan"
    assert refused(setting.client.ask("plan.census")) == "no-plan"
    assert refused(setting.client.ask("plan.census", plan=b"{}")) == "plan-refused"
    network = Network()
    assert refused(network.client.ask("plan.apply", rate=0)) == "bad-argument"
    assert refused(network.client.ask("plan.apply", at_once=0)) == "bad-argument"
