"""The same key is the same thing: after a lost answer, a restart, in another process."""

from __future__ import annotations

from overlay.link.frames import (
    PlaceProfiles,
    ProfilesChanged,
    ProfilesPlaced,
    SourceAnnounced,
    SourceReady,
)
from overlay.link.principal import Principal
from tests.registration.test_registration_core import Setting, refused

ASKED = {"text": "/a", "user": "ann", "key": "storms"}


def added(setting: Setting, request: str, **asked: object) -> str:
    """The id of a profile that is asked for."""
    answer = setting.request(request, "profile.add", **asked)
    if answer is None:
        for peer in setting.brokers.values():
            for frame in peer.take(PlaceProfiles):
                ids = [profile for profile, _, _ in frame.profiles]
                peer.send("registration", ProfilesPlaced(ids))
        answer = setting.client.answer(request)
    assert answer is not None and answer.ok, answer
    return str(answer.result["profile"])


def profiles(setting: Setting) -> list[str]:
    listed = setting.client.ask("profile.list")
    assert listed is not None
    return [entry["profile"] for entry in listed.result["profiles"]]


def test_a_profile_added_again_under_its_key_is_the_same_one() -> None:
    setting = Setting()
    first = added(setting, "q1", **ASKED)
    assert added(setting, "q2", **ASKED) == first
    setting.restart()
    assert added(setting, "q3", **ASKED) == first
    assert profiles(setting) == [first]


def test_whoever_asks_while_the_first_answer_is_on_its_way_waits_for_the_same_one() -> None:
    setting = Setting()
    assert setting.request("q1", "profile.add", **ASKED) is None
    second = added(setting, "q2", **ASKED)
    first = setting.client.answer("q1")
    assert first is not None and first.result["profile"] == second
    assert profiles(setting) == [second]


def test_another_text_under_the_key_is_refused_and_the_refusal_names_the_profile() -> None:
    setting = Setting()
    first = added(setting, "q1", **ASKED)
    answer = setting.request("q2", "profile.add", **{**ASKED, "text": "/b"})
    assert refused(answer) == "other-content"
    assert answer is not None and f"profile {first}" in answer.result["message"]


def test_what_was_asked_for_is_what_counts_not_what_it_became() -> None:
    setting = Setting()
    first = added(setting, "q1", **ASKED)
    host = next(iter(setting.brokers.values()))
    host.send("registration", ProfilesChanged([(first, 2, "/b")]))
    assert added(setting, "q2", **ASKED) == first


def test_a_key_is_its_users_own_and_goes_with_the_profile() -> None:
    setting = Setting()
    first = added(setting, "q1", **ASKED)
    other = added(setting, "q2", **{**ASKED, "user": "bob"})
    assert other != first
    host = next(iter(setting.brokers.values()))
    host.send("registration", ProfilesChanged([(first, 2, None)]))
    again = added(setting, "q3", **ASKED)
    assert again not in (first, other)


def test_a_key_names_its_profile_to_its_user_and_to_operators_alone() -> None:
    setting = Setting()
    first = added(setting, "q1", **ASKED)
    shown = setting.request("q2", "profile.show", profile="ann/storms")
    assert shown is not None and shown.result["profile"] == first
    assert refused(setting.request("q3", "profile.show", profile="storms")) == "unknown-profile"

    def found(named: str, role: str, name: str) -> bool:
        return setting.core.catalog.profile_named(named, Principal(role, name)) is not None

    assert found("storms", "user", "ann") and found("ann/storms", "user", "ann")
    assert found("ann/storms", "operator", "root") and not found("storms", "operator", "root")
    assert not found("ann/storms", "user", "eve") and not found("storms", "user", "eve")


def test_a_source_registered_again_under_its_key_is_the_same_one() -> None:
    setting = Setting()
    assert setting.request("q1", "source.register", name="news", key="wire") is None
    _, root = setting.holder(SourceAnnounced)
    root.send("registration", SourceReady(source="s1"))
    setting.restart()
    again = setting.request("q2", "source.register", name="news", key="wire", rate=50)
    assert again is not None and again.result["source"] == "s1"
    assert refused(setting.request("q3", "source.register", name="x", key="wire")) == (
        "other-content"
    )
