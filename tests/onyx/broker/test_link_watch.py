"""Which links are said to be down, and when."""

from __future__ import annotations

from msgspec.structs import replace

from onyx.broker.shape.link_watch import NEVER_MET_TIMES
from overlay.link.events import TimePassed
from overlay.link.frames import LinkReported
from tests.onyx.broker.test_broker_core import FIGURE4, Setting

AFTER_S = 2.0


class Watched:
    """B4, to which only the registration service and some of its neighbours are connected."""

    def __init__(self, *met: str) -> None:
        limits = replace(FIGURE4.limits, link_down_after_s=AFTER_S)
        self.setting = Setting(replace(FIGURE4, limits=limits))
        for name, peer in self.setting.brokers.items():
            if name not in met:
                peer.disconnect()

    def pass_time(self, seconds: float) -> None:
        self.setting.beside.tell(TimePassed())  # who is here now
        self.setting.beside.now += seconds
        self.setting.beside.tell(TimePassed())

    def said(self) -> set[tuple[str, bool]]:
        """(neighbour, whether its link is up) since the last time."""
        frames = self.setting.registration.take(LinkReported)
        return {(frame.neighbour, frame.up) for frame in frames}


def test_a_link_over_which_both_ends_met_is_down_after_its_time() -> None:
    watched = Watched("B1", "B5")
    watched.pass_time(AFTER_S)
    assert watched.said() == {("B1", True), ("B5", True)}
    watched.setting.brokers["B5"].disconnect()
    watched.pass_time(AFTER_S - 1)
    assert watched.said() == set()
    watched.pass_time(1)
    assert watched.said() == {("B5", False)}


def test_one_over_which_they_never_met_has_ten_times_as_long() -> None:
    watched = Watched("B1", "B5")
    watched.pass_time(NEVER_MET_TIMES * AFTER_S - 1)
    assert ("B6", False) not in watched.said()
    watched.pass_time(1)
    assert watched.said() == {("B6", False)}


def test_whom_it_met_is_remembered_by_a_broker_that_starts_again() -> None:
    watched = Watched("B1", "B5")
    watched.pass_time(1)
    watched.setting.brokers["B5"].disconnect()
    watched.setting.beside.core = watched.setting.new_core("run2", watched.setting.beside.stored())
    watched.setting.registration.connect()
    watched.pass_time(AFTER_S)
    assert watched.said() == {("B1", False), ("B5", False)}
