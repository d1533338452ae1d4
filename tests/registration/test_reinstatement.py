"""What a registration service makes of all that brokers have told after its store was lost."""

from __future__ import annotations

import pytest

from overlay.link.frames import (
    SETTLED,
    AccessAnnounced,
    CatalogTold,
    CatalogWanted,
    MoveEnded,
    ProfilesHosted,
    ProfilesMoving,
)
from overlay.network_shape import first_shape
from registration.catalog_rebuild import marked
from tests.registration.test_registration_core import FIGURE4, Setting

Coming = list[tuple[str, int, int]]
Leaving = list[tuple[str, int, int, bool]]
STAND_BY = ("p1", "", "/a", 1, 1, True)


class Told(Setting):
    """Brokers tell of what comes to them and leaves them, those of ``coming`` first, in order."""

    def __init__(self, coming: dict[str, Coming], leaving: dict[str, Leaving]) -> None:
        super().__init__()
        for peer in self.brokers.values():
            peer.disconnect()
        self.beside.core = self._new_core("run2", [marked([])])
        for name in [*coming, *(name for name in self.brokers if name not in coming)]:
            peer = self.brokers[name]
            peer.connect()
            moves = [*coming.get(name, []), *leaving.get(name, [])]
            if name in coming:
                peer.send("registration", ProfilesHosted([STAND_BY]))
            peer.send("registration", first_shape(FIGURE4).announced(is_packed=True))
            highest = max((move[1] for move in moves), default=0)
            peer.send("registration", CatalogTold(0, 0, 0, SETTLED, 1, highest))
            said = ProfilesMoving(coming.get(name, []), leaving.get(name, []))
            peer.send("registration", said)

    def ended(self, broker: str) -> list[int]:
        return [frame.move for frame in self.brokers[broker].all(MoveEnded)]


def test_the_end_of_an_answer_to_another_rebuild_is_none() -> None:
    """It comes ahead, and its beginning went to the service that has lost its store since."""
    setting = Setting()
    for peer in setting.brokers.values():
        peer.disconnect()
    setting.beside.core = setting._new_core("run2", [marked([])])
    for peer in setting.brokers.values():
        peer.connect()
        (wanted,) = peer.take(CatalogWanted)
        peer.send("registration", CatalogTold(0, 0, 0, SETTLED, 7, 0, "run1"))
        peer.send("registration", ProfilesMoving([], [], "run1"))
    assert setting.core._rebuild.awaited() == sorted(setting.brokers)
    setting.restart()
    for name, peer in setting.brokers.items():
        hosted = [("p1", "ann", "/a", 1, 1, False)] if name == "B1" else []
        peer.send("registration", first_shape(FIGURE4).announced(is_packed=True))
        peer.send("registration", CatalogTold(0, 0, 0, SETTLED, 1, 0, wanted.rebuild))
        peer.send("registration", ProfilesHosted(hosted))
        peer.send("registration", ProfilesMoving([], [], wanted.rebuild))
    assert not setting.core._rebuild.is_under_way
    assert setting.core.catalog.profiles.keys() == {"p1"}


def test_what_a_broker_tells_of_its_catalog_a_second_time_is_passed_over() -> None:
    """Its access rules come behind the end of its answer, where only news does."""
    setting = Setting()
    for peer in (setting.client, *setting.brokers.values()):
        peer.disconnect()
    setting.beside.core = setting._new_core("run2", [marked([])])
    setting.client.connect()
    for peer in setting.brokers.values():
        peer.connect()
        (wanted,) = peer.take(CatalogWanted)
        peer.send("registration", first_shape(FIGURE4).announced(is_packed=True))
        peer.send("registration", CatalogTold(0, 0, 0, SETTLED, 1, 0, wanted.rebuild))
        peer.send("registration", AccessAnnounced([("ann", "operator", "")], [], [], version=2))
        peer.send("registration", ProfilesMoving([], [], wanted.rebuild))
    assert not setting.core._rebuild.is_under_way
    rules = setting.request("r1", "access.list")
    assert rules is not None and rules.ok and "ann" not in str(rules.result)


@pytest.mark.parametrize("names", [("B1", "B3"), ("B3", "B1")])
def test_of_the_moves_of_a_profile_only_the_last_goes_on(names: tuple[str, str]) -> None:
    """Move 7, to B1, had been given up, and B1 had not heard of that."""
    of = {"B1": 7, "B3": 8}
    coming = {name: [("p1", of[name], 1)] for name in names}
    told = Told(coming, {"B2": [("p1", 8, 1, True)]})
    (move,) = told.core.moves
    assert (move.number, move.old, move.new) == (8, "B2", "B3")
    assert (told.ended("B1"), told.ended("B3")) == ([7], [])
