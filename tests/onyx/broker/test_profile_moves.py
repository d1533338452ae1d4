"""A broker to which a profile comes, and one that it leaves: B4 of Figure 4, on the tree of B1."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from onyx.broker.moves import releases
from onyx.broker.requests.request_parts import CatalogReport
from overlay.link.events import TimePassed
from overlay.link.frame_fields import CLAIMED_SEQUENCE_MAX
from overlay.link.frames import (
    SHARED,
    CatalogTold,
    CatalogWanted,
    Delivery,
    HandedOver,
    HandoverWanted,
    LiveMarker,
    LiveReached,
    Missed,
    MoveEnded,
    ProfileReleased,
    ProfilesChanged,
    ProfilesHosted,
    ProfilesLive,
    ProfilesMoving,
    ProfileTaken,
    ReleaseProfile,
    Response,
    RoutingDelta,
    ShapeAgreed,
    StandBy,
    StandingBy,
    WatershedMarker,
    WatershedReached,
)
from overlay.network_shape import first_shape, next_shape, without_broker
from overlay.nodes import Link
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, SF, Setting, message
from tests.registration.test_registration_core import refused

LONG = NEWS.replace(b"</nitf>", b"<body>%s</body></nitf>" % (b"x" * 10_000))
BACKLOG = 9 * len(LONG) // 2  # four deliveries, which are the message, and what is around them


class Moving(Setting):
    """With a source at B1, and short of room for results."""

    def __init__(self, memory_bytes: int = 1_000_000) -> None:
        """``memory_bytes`` for what waits for peers."""
        link = replace(FIGURE4.limits.link, journal_memory_bytes=memory_bytes)
        limits = replace(FIGURE4.limits, link=link, delivery_backlog_bytes_max=BACKLOG)
        super().__init__(replace(FIGURE4, limits=limits))
        self.announce()
        self.children_ready()

    def lead(
        self, *frames: StandBy | ReleaseProfile | ProfileReleased | HandedOver | CatalogWanted
    ) -> None:
        for frame in frames:
            self.registration.send("registration", frame)

    def publish(self, *numbers: int) -> None:
        for number in numbers:
            self.brokers["B1"].send("B1", message(LONG, number))

    def live(self) -> None:
        """What was announced has come to the root."""
        for marker in self.brokers["B1"].take(LiveMarker):
            reached = LiveReached("B1", "B4", marker.marker, "B1", ["B1"])
            self.brokers["B1"].send("B1", reached)

    def watershed(self, number: int) -> None:
        """It is asked for, and the root answers."""
        for marker in self.brokers["B1"].take(WatershedMarker):
            reached = WatershedReached("B1", "B4", marker.marker, [("s1", number)])
            self.brokers["B1"].send("B1", reached)

    def subscriber(self) -> Peer:
        return self.beside.subscriber("p1")


def numbers(peer: Peer) -> list[int]:
    return [frame.number for frame in peer.take(Delivery)]


def stand_by(version: int = 1, text: str = SF, move: int = 5) -> StandBy:
    return StandBy(profile="p1", move=move, user="ann", text=text, version=version)


def released(acknowledged: int, floor: int, last: int, watershed: int) -> ProfileReleased:
    return ProfileReleased("p1", 5, 1, acknowledged, floor, last, 0, 0, [("s1", watershed)])


def handed_over(position: int, ends: bool = False) -> HandedOver:
    return HandedOver("p1", 5, position, ends, "s1", position, [len(LONG)], LONG)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_waited_comes_first_then_what_was_kept_beyond_the_watershed(restarts: bool) -> None:
    setting = Moving()

    def step() -> None:
        if restarts:
            setting.restart()

    setting.lead(stand_by())
    assert setting.brokers["B1"].take(RoutingDelta)
    setting.publish(4)
    step()
    assert setting.registration.all(StandingBy) == []
    setting.live()
    assert setting.registration.take(StandingBy) == [StandingBy("p1", 5, 1)]
    assert setting.registration.all(ProfilesChanged) == setting.registration.all(ProfilesLive) == []
    setting.publish(5, 6, 8)
    step()
    assert setting.subscriber().error == "moved"
    setting.lead(released(acknowledged=1, floor=2, last=4, watershed=6))
    assert setting.registration.take(HandoverWanted) == [HandoverWanted("p1", 5, 2)]
    step()
    setting.lead(handed_over(3, ends=True))
    assert setting.registration.take(HandoverWanted) == [HandoverWanted("p1", 5, 3)]
    step()
    setting.publish(9)
    setting.lead(handed_over(4, ends=True))
    assert setting.registration.take(ProfileTaken) == [ProfileTaken("p1", 5, 1)]
    step()
    subscriber = setting.subscriber()
    assert numbers(subscriber) == [3, 4, 8, 9]
    (missed,) = subscriber.all(Missed)
    assert (missed.through, missed.lost) == (2, 1), "as the old host would have said"
    setting.publish(6, 10)  # the first had a slow way here
    assert numbers(subscriber) == [10]
    step()
    setting.watershed(10)
    assert not [row for row in setting.beside.rows if row[0] in ("watershed", "settling", "kept")]


def test_what_a_registration_service_without_its_store_asks_for_again_comes_once() -> None:
    setting = Moving()
    setting.lead(stand_by())
    setting.live()
    setting.registration.take(StandingBy)
    setting.lead(CatalogWanted([]))
    assert setting.registration.take(ProfilesMoving) == [ProfilesMoving([("p1", 5, 1)], [])]
    assert setting.registration.take(StandingBy) == [StandingBy("p1", 5, 1)]
    setting.lead(released(acknowledged=0, floor=0, last=3, watershed=3), handed_over(1, ends=True))
    asked = [HandoverWanted("p1", 5, 0), HandoverWanted("p1", 5, 1)]
    assert setting.registration.take(HandoverWanted) == asked
    setting.lead(CatalogWanted([]))
    assert setting.registration.take(HandoverWanted) == asked[1:]
    setting.lead(handed_over(2), handed_over(2), handed_over(3, ends=True))
    setting.lead(handed_over(3, ends=True))
    assert setting.registration.take(ProfileTaken) == [ProfileTaken("p1", 5, 1)]
    assert numbers(setting.subscriber()) == [1, 2, 3]


def test_a_profile_that_is_here_does_not_stand_by() -> None:
    setting = Moving()
    setting.place(SF)
    setting.lead(stand_by())
    setting.live()
    assert setting.registration.all(StandingBy) == []
    assert "p1" not in setting.core.moves.coming


def test_a_broker_that_dies_while_it_tells_its_catalog_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Moving()
    setting.place(SF)
    with monkeypatch.context() as dying:
        dying.setattr(CatalogReport, "work", lambda report: None)
        setting.lead(CatalogWanted([], "run2"))
    setting.restart()
    (hosted,) = setting.registration.all(ProfilesHosted)
    assert [profile for profile, *_ in hosted.profiles] == ["p1"]
    assert [told.rebuild for told in setting.registration.all(CatalogTold)] == ["run2"]
    setting.restart()
    assert len(setting.registration.all(CatalogTold)) == 1


def test_who_has_taken_results_elsewhere_goes_on_behind_them() -> None:
    setting = Moving()
    setting.lead(stand_by())
    setting.live()
    setting.lead(released(acknowledged=1, floor=1, last=3, watershed=3))
    setting.publish(4)
    setting.lead(handed_over(2), handed_over(3, ends=True))
    assert numbers(setting.beside.subscriber("p1", received=2)) == [3, 4]


def test_of_what_is_kept_the_oldest_goes_and_with_it_what_waited_at_the_old_host() -> None:
    setting = Moving()
    setting.lead(stand_by())
    setting.live()
    setting.publish(*range(1, 11))  # six of them do not fit
    setting.restart()
    setting.lead(released(acknowledged=1, floor=2, last=5, watershed=3))
    assert setting.registration.all(HandoverWanted) == []
    assert setting.registration.all(ProfileTaken) == [ProfileTaken("p1", 5, 1)]
    subscriber = setting.subscriber()
    (missed,) = subscriber.all(Missed)
    # 2 to 5 of the old host, and of the messages beyond the watershed 4 to 6.
    assert (missed.through, missed.lost) == (8, 7)
    assert numbers(subscriber) == [7, 8, 9, 10]


def test_another_version_stands_by_anew_and_a_move_that_is_over_leaves_nothing() -> None:
    setting = Moving()
    before = len(setting.beside.rows)
    setting.lead(stand_by())
    setting.live()
    setting.publish(1)
    setting.lead(stand_by(version=2, text="//nitf"))
    setting.live()
    assert [frame.version for frame in setting.registration.take(StandingBy)] == [1, 2]
    setting.lead(stand_by(version=2, text="/wrong[", move=6))
    assert setting.registration.error == "profile-refused"
    setting.registration.connect()
    setting.registration.send("registration", MoveEnded("p1", 4))  # another move
    assert "p1" in setting.core.query.profiles
    setting.registration.send("registration", MoveEnded("p1", 5))
    assert setting.core.query.profiles == {}
    kept = {space for space, _ in setting.beside.rows}
    assert not kept & {"standby", "kept", "hosted", "release", "watershed"}
    assert before


@pytest.mark.parametrize("memory", [1, 1_000_000])
@pytest.mark.parametrize("restarts", [False, True])
def test_the_old_host_delivers_up_to_the_watershed_and_hands_over(
    restarts: bool, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "PORTION_BYTES", 2 * len(LONG))
    setting = Moving(memory)

    def step() -> None:
        if restarts:
            setting.restart()

    setting.place(SF)
    setting.live()
    subscriber = setting.subscriber()
    setting.publish(1)
    assert numbers(subscriber) == [1]
    user = setting.beside.peer("client", "u")
    setting.lead(ReleaseProfile("p1", 5, 2))
    assert setting.brokers["B1"].all(WatershedMarker) == [], "it has not that version"
    setting.lead(ReleaseProfile("p1", 5, 1))
    assert refused(user.ask("profile.update", profile="p1", text="/x")) == "moved"
    setting.publish(2)
    assert numbers(subscriber) == [2], "not known yet, so on this side"
    subscriber.disconnect()
    setting.publish(3, 4, 5)
    step()
    setting.watershed(5)
    (frame,) = setting.registration.take(ProfileReleased)
    assert frame == ProfileReleased("p1", 5, 1, 2, 2, 5, 0, 0, [("s1", 5)])
    setting.publish(6)
    assert setting.subscriber().error == "moved"
    step()
    got = []
    after = 2
    while after < 5:
        setting.registration.send("registration", HandoverWanted("p1", 5, after))
        portion = setting.registration.take(HandedOver)
        assert [handed.ends for handed in portion] == [False] * (len(portion) - 1) + [True]
        got += [(handed.position, handed.number) for handed in portion]
        after = portion[-1].position
        step()
    assert got == [(3, 3), (4, 4), (5, 5)]
    setting.registration.send("registration", MoveEnded("p1", 5))
    assert setting.subscriber().error == "unknown-profile"
    assert not [key for _, key in setting.beside.rows if "p1" in key]
    assert [response.ok for response in user.all(Response)] == [False]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("taken", "handed"), [((2, 4), [1, 3, 5]), ((1, 4, 5), [2, 3]), ((1, 2, 3, 4, 5), [])]
)
def test_what_those_who_share_a_profile_have_taken_is_not_handed_over(
    taken: tuple[int, ...], handed: list[int], restarts: bool
) -> None:
    """The rest keeps its numbers."""
    old, new = Moving(), Moving()
    old.place(SF)
    old.live()
    peers = [old.beside.subscriber("p1", name=name, mode=SHARED) for name in ("u1", "u2")]
    for peer in peers:
        peer.withhold = True
    old.publish(1, 2, 3, 4)
    assert [frame.number for frame in peers[0].all(Delivery)] == [1, 3]
    for peer in peers:
        for delivery in peer.all(Delivery):
            if delivery.number in taken:
                peer.acknowledge(delivery.number)
    old.publish(5)
    for peer in peers:
        if 5 in taken and any(delivery.number == 5 for delivery in peer.all(Delivery)):
            peer.acknowledge(5)
    old.lead(ReleaseProfile("p1", 5, 1))
    old.watershed(5)
    assert [peer.error for peer in peers] == ["moved", "moved"]
    (frame,) = old.registration.take(ProfileReleased)
    assert (frame.floor, frame.last) == (min(handed, default=6) - 1, 5)
    new.lead(stand_by())
    new.live()
    new.lead(frame)
    while wanted := new.registration.take(HandoverWanted):
        if restarts:
            old.restart()
            new.restart()
        old.registration.send("registration", wanted[0])
        new.lead(*old.registration.take(HandedOver))
    assert new.registration.take(ProfileTaken)
    new.publish(6)
    if restarts:
        new.restart()
    sharer = new.beside.subscriber("p1", received=4, name="u1", mode=SHARED)
    assert [(d.number, d.payload) for d in sharer.all(Delivery)] == [
        (number, LONG) for number in [*handed, 6]
    ]
    new.publish(7)
    assert numbers(new.beside.subscriber("p1", name="u3")) == []
    assert new.core.statistics().mailboxes.waiting == 0


@pytest.mark.parametrize("is_known", [False, True])
def test_the_old_host_takes_back_what_its_new_host_has_lost(is_known: bool) -> None:
    setting = Moving()
    setting.place(SF)
    setting.live()
    setting.publish(1, 2)
    setting.lead(ReleaseProfile("p1", 5, 1))
    if is_known:
        setting.watershed(2)
        assert setting.registration.take(ProfileReleased)
        assert "p1" not in setting.core.query.profiles
    setting.restart()
    setting.place(SF)
    setting.watershed(2)
    assert setting.registration.all(ProfileReleased) == []
    setting.publish(3)
    assert numbers(setting.subscriber()) == [1, 2, 3]
    assert not [row for row in setting.beside.rows if row[0] in ("release", "watershed")]


def test_a_marker_whose_tree_has_ended_is_sent_up_the_next() -> None:
    setting = Moving()
    setting.place(SF)
    setting.live()
    setting.publish(1)
    setting.lead(ReleaseProfile("p1", 5, 1))
    (marker,) = setting.brokers["B1"].take(WatershedMarker)
    setting.core.moves.end_tree("B1")
    setting.beside.tell(TimePassed())
    assert setting.brokers["B1"].all(WatershedMarker) == [marker]
    setting.watershed(1)
    (gone,) = setting.registration.all(ProfileReleased)
    assert gone.watershed == [("s1", 1)]


def test_a_root_broker_that_is_lost_is_not_waited_for() -> None:
    """All that came from there is on this side of the watershed."""
    setting = Moving()
    setting.place(SF)
    setting.live()
    setting.publish(1, 2)
    setting.lead(ReleaseProfile("p1", 5, 1))
    left = without_broker(FIGURE4, "B1")
    links = (*left.links, Link(("B2", "B4")), Link(("B3", "B4")))
    shape = next_shape(first_shape(FIGURE4), replace(left, links=links), lost=["B1"])
    setting.registration.send("registration", shape.announced(is_packed=True))
    setting.registration.send("registration", ShapeAgreed(shape.version))
    (gone,) = setting.registration.all(ProfileReleased)
    assert (gone.last, gone.watershed) == (2, [("s1", CLAIMED_SEQUENCE_MAX)])


def test_the_root_answers_behind_what_it_has_sent() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    setting.brokers["B5"].send("B4", WatershedMarker("B4", "B5", 7))
    assert setting.brokers["B5"].all(WatershedReached) == [
        WatershedReached("B4", "B5", 7, [("s1", 0)])
    ]
