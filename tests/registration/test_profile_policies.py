"""The registration service knows how profiles are kept, and tells each host ahead of them."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict, astuple

from overlay.delivery_policy import DROP_NEWEST, DeliveryPolicy
from overlay.link.frame import Frame
from overlay.link.frames import (
    DeliveryPolicies,
    PlaceProfile,
    PlaceProfiles,
    ProfilesChanged,
    ProfilesPlaced,
    StandBy,
)
from registration.catalog import POLICIES
from tests.beside import Peer
from tests.registration.test_registration_core import Setting, refused

STRICT = DeliveryPolicy(DROP_NEWEST, deliveries_max=3)
SHORT = DeliveryPolicy(ttl_s=60)


def added(policy: DeliveryPolicy = STRICT) -> tuple[Setting, str, Peer]:
    """A profile p1 with a policy, and its host."""
    setting = Setting()
    setting.request("q1", "profile.add", text="/a", user="ann", policy=asdict(policy))
    host, broker = setting.holder(PlaceProfiles)
    broker.send("registration", ProfilesPlaced(["p1"]))
    return setting, host, broker


def told(peer: Peer, *kinds: type[Frame]) -> list[Frame]:
    return [frame for frame in peer.got if isinstance(frame, (DeliveryPolicies, *kinds))]


def shown(setting: Setting) -> object:
    answer = setting.client.ask("profile.show", profile="p1")
    assert answer is not None and answer.ok
    return answer.result.get("policy")


def test_a_host_is_told_ahead_of_the_profile() -> None:
    setting, _, broker = added()
    first, second = told(broker, PlaceProfiles)
    assert first == DeliveryPolicies([("p1", *astuple(STRICT))])
    assert isinstance(second, PlaceProfiles)
    assert shown(setting) == asdict(STRICT)


def test_of_profiles_that_are_kept_as_usual_nothing_is_told_or_stored() -> None:
    setting, _, broker = added(DeliveryPolicy())
    assert not told(broker)
    assert shown(setting) is None
    assert not any(space == POLICIES.space for space, _ in setting.beside.rows)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_its_host_says_is_kept_and_told_to_the_next_host(restarts: bool) -> None:
    setting, host, broker = added()
    broker.send("registration", DeliveryPolicies([("p1", *astuple(SHORT))]))
    if restarts:
        setting.restart()
    assert shown(setting) == asdict(SHORT)
    new = next(name for name in setting.brokers if name != host)
    setting.core.moves.begin("p1", new)
    setting.client.ask("source.list")  # what was said leaves with it
    first, second = told(setting.brokers[new], StandBy)
    assert first == DeliveryPolicies([("p1", *astuple(SHORT))])
    assert isinstance(second, StandBy)
    setting.brokers[host].send("registration", DeliveryPolicies([("p1", *astuple(STRICT))]))
    assert told(setting.brokers[new])[-1] == DeliveryPolicies([("p1", *astuple(STRICT))])
    setting.core.moves.lost(new)
    setting.client.ask("source.list")
    assert not setting.brokers[host].all(PlaceProfile), "it was never released"


def test_only_its_host_says_how_a_profile_is_kept() -> None:
    setting, host, _ = added()
    other = next(peer for name, peer in setting.brokers.items() if name != host)
    other.send("registration", DeliveryPolicies([("p1", *astuple(SHORT))]))
    assert shown(setting) == asdict(STRICT)


def test_a_policy_goes_with_its_profile() -> None:
    setting, _, broker = added()
    broker.send("registration", ProfilesChanged([("p1", 2, None)]))
    assert not any(space == POLICIES.space for space, _ in setting.beside.rows)


def test_what_is_no_policy_adds_no_profile() -> None:
    setting = Setting()
    answer = setting.request(
        "q1", "profile.add", text="/a", user="ann", policy={"when_full": "burn"}
    )
    assert refused(answer) == "bad-argument"
    assert answer is not None and "drop-newest" in str(answer.result["message"])
    assert not setting.core.catalog.profiles
