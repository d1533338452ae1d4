"""A host broker's profiles that ask for what is above a class, when the taxonomies change: B4."""

from __future__ import annotations

import zlib

from formats.graph.taxonomy import Taxonomy
from overlay.link.frames import (
    LiveMarker,
    LiveReached,
    PlaceProfiles,
    ProfileReleased,
    ProfilesChanged,
    ProfilesLive,
    ReleaseProfile,
    RoutingDelta,
    TaxonomiesAnnounced,
)
from tests.onyx.broker.test_broker_core import Setting, query
from tests.onyx.broker.test_unclaimed_profiles import WEEK, Aging

E = "urn:"
CAT = "ASK { ?x a/^<http://www.w3.org/2000/01/rdf-schema#subClassOf>* <urn:Cat> }"
PET_CAT = "# above <urn:Cat>: <urn:Pet>\n" + CAT
OTHERS = ("//item[@n >= 5]", CAT.replace("^", "").replace("Cat", "Dog"))


def announce(setting: Setting, version: int, **above: str) -> None:
    classes = {f"urn:{name}".encode(): (f"urn:{each}".encode(),) for name, each in above.items()}
    payload = zlib.compress(Taxonomy(classes=classes).to_bytes()) if classes else b""
    setting.registration.send("registration", TaxonomiesAnnounced(version, payload))


def changed(setting: Setting) -> list[tuple[str, int, str | None]]:
    return [one for frame in setting.registration.take(ProfilesChanged) for one in frame.profiles]


def placed(*texts: str) -> Setting:
    """p1, p2, ... on the tree of B1, live."""
    setting = Setting()
    setting.announce()
    given = [(f"p{number}", "ann", text) for number, text in enumerate(texts, start=1)]
    setting.registration.send("registration", PlaceProfiles(given))
    make_live(setting)
    setting.registration.take(ProfilesLive)
    setting.brokers["B1"].take(RoutingDelta)
    return setting


def make_live(setting: Setting) -> None:
    for marker in setting.brokers["B1"].take(LiveMarker):
        setting.brokers["B1"].send("B1", LiveReached("B1", "B4", marker.marker, "B1", ["B1"]))


def test_a_change_makes_a_version_which_is_live_when_its_interests_are() -> None:
    setting = placed(CAT, *OTHERS)
    announce(setting, 1, Cat="Pet")
    assert changed(setting) == [("p1", 2, PET_CAT)]
    told = setting.brokers["B1"].take(RoutingDelta)
    assert [one for frame in told for one in frame.added] == query(PET_CAT)
    assert [one for frame in told for one in frame.removed] == query(CAT)
    assert setting.registration.all(ProfilesLive) == []
    make_live(setting)
    assert [frame.profiles for frame in setting.registration.take(ProfilesLive)] == [[("p1", 2)]]
    announce(setting, 2, Dog="Pet", Cat="Pet")
    assert changed(setting) == [], "nothing else is above it"
    announce(setting, 3)
    assert changed(setting) == [("p1", 3, CAT)]


def test_who_changes_their_profile_gets_what_the_taxonomies_say() -> None:
    setting = placed(CAT)
    announce(setting, 1, Cat="Pet", Dog="Wolf")
    changed(setting)
    client = setting.beside.peer("client", "c")
    dog = CAT.replace("Cat", "Dog")
    answer = client.ask("profile.update", profile="p1", text=dog)
    assert answer is not None and answer.ok
    assert changed(setting) == [("p1", 3, "# above <urn:Dog>: <urn:Wolf>\n" + dog)]
    repeated = client.ask("profile.update_many", profiles=["p1"], texts=[dog])
    assert repeated is not None and repeated.result["versions"] == [3]
    assert changed(setting) == []


def test_a_profile_that_comes_is_looked_at() -> None:
    setting = Setting()
    announce(setting, 1, Cat="Pet")
    setting.place(CAT)
    assert changed(setting) == [("p1", 1, CAT), ("p1", 2, PET_CAT)]
    setting.place(PET_CAT, profile="p2")
    assert changed(setting) == [("p2", 1, PET_CAT)]


def test_one_that_leaves_stays_as_it_is() -> None:
    setting = placed(CAT)
    setting.registration.send("registration", ReleaseProfile("p1", 1, 1))
    announce(setting, 1, Cat="Pet")
    assert changed(setting) == []
    assert setting.registration.all(ProfileReleased) == []


def test_after_a_restart_it_goes_on_where_it_was() -> None:
    setting = placed(CAT)
    announce(setting, 1, Cat="Pet")
    assert changed(setting) == [("p1", 2, PET_CAT)]
    setting.restart()
    assert changed(setting) == []
    assert setting.core.query.profiles.text_of("p1") == PET_CAT
    announce(setting, 2, Cat="Animal")
    assert changed(setting) == [("p1", 3, PET_CAT.replace("Pet", "Animal"))]


def test_a_change_claims_no_profile() -> None:
    setting = Aging()
    setting.registration.send("registration", PlaceProfiles([("p1", "ann", CAT)]))
    announce(setting, 1, Cat="Pet")
    assert changed(setting) == [("p1", 2, PET_CAT)]
    assert setting.wait(WEEK) == ["p1"]


def test_one_that_is_suspended_follows_when_its_text_is_given_again() -> None:
    setting = placed(CAT)
    setting.core.query.suspend("p1", "too much")
    announce(setting, 1, Cat="Pet")
    assert changed(setting) == []
    assert setting.core.query.profiles.suspended == {"p1": "too much"}
    setting.beside.peer("client", "c").ask("profile.update", profile="p1", text=CAT)
    assert changed(setting) == [("p1", 2, PET_CAT)]


def test_one_for_which_that_is_too_much_stays_as_it_is() -> None:
    setting = placed(CAT)
    announce(setting, 1, Cat="x" * 70_000)
    assert changed(setting) == []
    assert setting.core.statistics().taxonomies.profiles_with_too_many == 1
