"""A profile whose results nobody ever comes for does not stay for ever."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from onyx.broker.broker_core import BrokerCore, Rows
from overlay.link.core_context import Surroundings
from overlay.link.events import TimePassed
from overlay.link.frames import (
    PlaceProfiles,
    ProfileReleased,
    ProfilesChanged,
    ReleaseProfile,
    Request,
)
from tests.onyx.broker.test_broker_core import FIGURE4, SF, Setting
from tests.onyx.broker.test_profile_moves import stand_by

WEEK = 7 * 86_400
HOUR = 3_600


class Aging(Setting):
    """A broker with a calendar."""

    def __init__(self, age_s_max: int = WEEK) -> None:
        self.wall = 1_000_000.0
        self.said: list[str] = []
        limits = replace(FIGURE4.limits, unclaimed_profile_s_max=age_s_max)
        super().__init__(replace(FIGURE4, limits=limits))

    def new_core(self, instance: str, rows: Rows = ()) -> BrokerCore:
        return BrokerCore(
            *(self.topology, self.identity, instance, rows),
            Surroundings(wall=lambda: self.wall, say=self.said.append),
        )

    def add(self, *profiles: str) -> None:
        frame = PlaceProfiles([(profile, "ann", SF) for profile in profiles])
        self.registration.send("registration", frame)

    def wait(self, seconds: float) -> list[str]:
        """Which profiles have gone by then."""
        self.wall += seconds
        self.beside.tell(TimePassed())
        return [
            profile
            for frame in self.registration.take(ProfilesChanged)
            for profile, _, text in frame.profiles
            if text is None
        ]

    def ask(self, verb: str, **arguments: object) -> None:
        self.beside.peer("client", "c").reply(Request(verb, verb, arguments))


def test_it_goes_after_the_time_and_everybody_is_told() -> None:
    setting = Aging()
    setting.add("p1", "p2")
    assert setting.wait(WEEK - HOUR) == []
    setting.add("p3")
    assert sorted(setting.wait(3 * HOUR)) == ["p1", "p2"]
    assert list(setting.core.query.profiles) == ["p3"]
    (said,) = setting.said
    assert "removed 2 profiles" in said and "p1" in said
    assert setting.core.statistics().query.unclaimed_removed == 2


@pytest.mark.parametrize("restarts", [False, True])
def test_what_somebody_has_come_for_or_changed_stays(restarts: bool) -> None:
    setting = Aging()
    setting.add("p1", "p2", "p3", "p4")
    setting.beside.subscriber("p1").disconnect()
    setting.ask("profile.update", profile="p2", text="/nitf")
    setting.ask("profile.positions", profiles=["p4"])
    if restarts:
        setting.restart()
    assert setting.wait(2 * WEEK) == ["p3"]


def test_a_start_does_not_make_it_younger() -> None:
    setting = Aging()
    setting.add("p1")
    assert setting.wait(WEEK / 2) == []
    setting.restart()
    assert setting.wait(WEEK / 2 + HOUR) == ["p1"]


def test_none_goes_where_the_topology_says_so() -> None:
    setting = Aging(age_s_max=0)
    setting.add("p1")
    assert setting.wait(100 * WEEK) == []


@pytest.mark.parametrize("is_claimed", [False, True])
def test_its_old_host_says_whether_it_was_claimed(is_claimed: bool) -> None:
    setting = Aging()
    setting.add("p1")
    if is_claimed:
        setting.beside.subscriber("p1").disconnect()
    setting.registration.send("registration", ReleaseProfile("p1", 5, 1))
    (frame,) = setting.registration.take(ProfileReleased)
    assert frame.unclaimed_since == (0 if is_claimed else 1_000_000)


@pytest.mark.parametrize("since", [0, 1_000_000])
def test_at_its_new_host_it_is_as_old_as_it_was(since: int) -> None:
    setting = Aging()
    setting.wait(WEEK - HOUR)
    setting.registration.send("registration", stand_by())
    setting.registration.send("registration", ProfileReleased("p1", 5, 1, 0, 0, 0, 0, since, []))
    setting.restart()
    assert setting.wait(2 * HOUR) == (["p1"] if since else [])
    assert setting.wait(WEEK) == []
