"""A registration service whose store is gone, or is an older copy, does not begin anew."""

from __future__ import annotations

import pytest

from overlay.link.errors import StoreError
from overlay.link.frames import PlaceProfiles, ProfilesPlaced
from registration.registration_core import RegistrationCore
from tests.registration.test_registration_core import Setting

EMPTIED = "was emptied, or is an older copy"


def with_a_profile() -> Setting:
    """Whose host broker has acknowledged it."""
    setting = Setting()
    setting.request("q1", "profile.add", text="/a", user="ann")
    _, broker = setting.holder(PlaceProfiles)
    broker.send("registration", ProfilesPlaced(["p1"]))
    return setting


def restart_with(setting: Setting, rows: list[tuple[str, str, bytes]]) -> None:
    setting.beside.rows = {(space, key): value for space, key, value in rows}
    peers = [setting.client, *setting.brokers.values()]  # clients may be faster
    for peer in peers:
        if not peer.closed:
            peer.disconnect()
    core = (setting.topology, setting.identity, "another run", rows)
    setting.beside.core = RegistrationCore(*core)
    for peer in peers:
        peer.connect()


def test_with_an_empty_store_it_ends() -> None:
    setting = with_a_profile()
    with pytest.raises(StoreError, match=EMPTIED):
        restart_with(setting, [])


def test_an_empty_store_is_found_after_another_start() -> None:
    """Of a service that has met clients only: nobody was answered."""
    setting = with_a_profile()
    core = RegistrationCore(setting.topology, setting.identity, "alone", ())
    setting.beside.core, setting.beside.rows = core, {}
    client = setting.beside.peer("client", "other")
    assert client.ask("profile.add", text="/b") is None
    assert setting.beside.rows
    with pytest.raises(StoreError, match=EMPTIED):
        restart_with(setting, setting.beside.stored())


def test_an_older_copy_of_the_store_is_as_good_as_none() -> None:
    setting = with_a_profile()
    older = setting.beside.stored()
    for _ in range(20):  # every broker hears of one
        setting.request(f"q{_}", "profile.add", text="/b")
    with pytest.raises(StoreError, match=EMPTIED):
        restart_with(setting, older)


def test_what_it_has_said_it_may_say_again() -> None:
    setting = with_a_profile()
    restart_with(setting, setting.beside.stored())
    answer = setting.client.ask("profile.show", profile="p1")
    assert answer is not None and answer.ok


def test_a_broker_that_joins_again_with_its_former_store_is_the_one_that_is_wrong() -> None:
    setting = with_a_profile()
    host, broker = setting.holder(PlaceProfiles)
    broker.disconnect()
    setting.core._links.forget(f"broker/{host}")  # as it had left
    broker.connect()
    assert broker.error == "store-lost"
    answer = setting.client.ask("profile.show", profile="p1")
    assert answer is not None and answer.ok


def test_a_broker_whose_first_acknowledgement_was_not_heard_is_met_again() -> None:
    setting = Setting()
    host = next(iter(setting.brokers))
    setting.brokers[host].withhold = True
    for _ in range(20):
        setting.client.ask("profile.add", text="/a")
    setting.restart()
    assert setting.core.connected(f"broker/{host}")
    assert not setting.brokers[host].error
