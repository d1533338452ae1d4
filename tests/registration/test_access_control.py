"""The registration service asks the table before it does anything, and tells the brokers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from overlay.access import AccessOptions, Right, Token
from overlay.link.events import TimePassed
from overlay.link.frames import (
    AccessAnnounced,
    PlaceProfiles,
    ProfilesChanged,
    ProfilesPlaced,
    Request,
    Response,
    SourceAnnounced,
    SourceReady,
)
from overlay.link.request_server import Verb
from overlay.topology import to_toml
from registration.registration_core import RegistrationCore
from tests.beside import Peer
from tests.registration.test_registration_core import FIGURE4, Setting, refused


class Guarded(Setting):
    """With an operator, two users and a source."""

    def __init__(self) -> None:
        super().__init__()
        self.ann, self.bob = self.known("user/ann"), self.known("user/bob")
        self.wire, self.root = self.known("source/wire"), self.known("operator/root")

    def known(self, principal: str) -> Peer:
        return self.beside.peer("client", principal.replace("/", "-"), principal=principal)

    def bound(self, **limits: int) -> None:
        """Begin with these limits."""
        self.topology = replace(self.topology, limits=replace(FIGURE4.limits, **limits))
        known = (self.ann, self.bob, self.wire, self.root)
        for peer in known:
            peer.disconnect()
        self.restart()
        for peer in known:
            peer.connect()

    def issue(
        self, principal: str, seconds: int = 3_600, only: list[list[str]] | None = None
    ) -> str:
        """The id of a token with the secret SECRET."""
        digest = Token.digest_of(SECRET)
        asked = {"principal": principal, "digest": digest, "seconds": seconds, "only": only or []}
        return str(result(self.root.ask("token.issue", **asked))["token"])

    def add(self, peer: Peer, **asked: object) -> Response:
        """The answer, when the host has what was added."""
        answer = peer.ask("profile.add", text="/a", **asked)
        for broker in self.brokers.values():
            for frame in broker.take(PlaceProfiles):
                placed = ProfilesPlaced([profile for profile, _, _ in frame.profiles])
                broker.send("registration", placed)
        return answer or peer.all(Response)[-1]

    def remove(self, *profiles: str) -> None:
        """The hosts say that these are gone."""
        for host in self.brokers.values():
            host.send("registration", ProfilesChanged([(gone, 2, None) for gone in profiles]))

    def register(self, peer: Peer, name: str = "news") -> str:
        answer = peer.ask("source.register", name=name)
        for broker in self.brokers.values():
            for frame in broker.take(SourceAnnounced):
                broker.send("registration", SourceReady(frame.source))
        answer = answer or peer.all(Response)[-1]
        assert answer.ok, answer
        return str(answer.result["source"])


def result(answer: Response | None) -> dict[str, Any]:
    assert answer is not None and answer.ok, answer
    return dict(answer.result)


def verbs() -> dict[str, Verb[Any]]:
    core = RegistrationCore(FIGURE4, FIGURE4.registration[0].id, "run")
    return dict(core.verbs)


def test_every_verb_says_what_right_it_takes() -> None:
    assert {verb.asked.right for verb in verbs().values()} <= set(Right)
    known = {name for name, verb in verbs().items() if verb.asked.right is Right.KNOWN}
    assert known == {
        *("network", "source.list", "source.show", "source.schema"),
        *("taxonomy.list", "taxonomy.show", "access.whoami", "cert.renew"),
    }, "whoever is known may do little"


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_a_user_gets_nothing_of_what_operators_may(verb: str) -> None:
    if verbs()[verb].asked.right in (Right.OPERATE, Right.ADMIN):
        setting = Guarded()
        before = dict(setting.beside.rows)
        assert refused(setting.ann.ask(verb)) == "not-authorised"
        new = setting.beside.rows.items() - before.items()
        assert {space for (space, _), _ in new} == {"audit-refused"}, "that it was tried"


def test_a_profile_is_its_users_own() -> None:
    setting = Guarded()
    added = result(setting.add(setting.ann))
    assert added["user"] == "ann", "whoever names nobody is meant"
    profile = added["profile"]
    for verb in ("profile.show", "profile.await"):
        assert refused(setting.bob.ask(verb, profile=profile)) == "not-authorised"
    for verb in ("profile.find_many", "profile.warnings"):
        assert refused(setting.bob.ask(verb, profiles=[profile])) == "not-authorised"
    assert result(setting.ann.ask("profile.show", profile=profile))["text"] == "/a"
    assert result(setting.root.ask("profile.show", profile=profile))["user"] == "ann"


def test_nobody_adds_for_another_or_lists_what_another_has() -> None:
    setting = Guarded()
    result(setting.add(setting.ann))
    assert refused(setting.add(setting.bob, user="ann")) == "not-authorised"
    many = {"texts": ["/a", "/b"], "users": ["bob", "ann"]}
    assert refused(setting.bob.ask("profile.add_many", **many)) == "not-authorised"
    assert refused(setting.bob.ask("profile.list", user="ann")) == "not-authorised"
    assert result(setting.bob.ask("profile.list"))["profiles"] == []
    assert len(result(setting.root.ask("profile.list"))["profiles"]) == 1
    assert refused(setting.add(setting.wire)) == "not-authorised"


def test_a_request_or_a_key_of_another_finds_nothing_of_theirs() -> None:
    setting = Guarded()
    setting.ann.reply(Request("the-same", "profile.add", {"text": "/a", "key": "k"}))
    setting.bob.reply(Request("the-same", "profile.add", {"text": "/a", "key": "k"}))
    setting.add(setting.root, user="root")
    first, second = setting.ann.answer("the-same"), setting.bob.answer("the-same")
    assert (result(first)["user"], result(second)["user"]) == ("ann", "bob")
    assert result(first)["profile"] != result(second)["profile"]


def test_a_source_is_whose_certificate_registered_it() -> None:
    setting = Guarded()
    assert refused(setting.ann.ask("source.register", name="x")) == "not-authorised"
    source = setting.register(setting.wire)
    assert setting.beside.core is not None
    entry = setting.core.catalog.sources[source]
    assert entry.owner == "source/wire"


def test_nobody_hears_of_a_source_that_they_may_not_see() -> None:
    setting = Guarded()
    source = setting.register(setting.wire)
    grant = {"principal": "user/*", "role": "subscribe"}
    assert refused(setting.root.ask("access.revoke", **grant)) == "not-granted", "the topology's"
    assert [s["source"] for s in result(setting.ann.ask("source.list"))["sources"]] == [source]
    other = setting.known("source/other")
    assert result(other.ask("source.list"))["sources"] == []
    assert refused(other.ask("source.show", source=source)) == "unknown-source"


def test_what_is_granted_is_in_force_at_once_told_to_brokers_and_survives_a_restart() -> None:
    setting = Guarded()
    for broker in setting.brokers.values():
        broker.take(AccessAnnounced)
    grant = {"principal": "user/ann", "role": "operate", "scope": "*"}
    assert refused(setting.ann.ask("topology.show")) == "not-authorised"
    assert result(setting.root.ask("access.grant", **grant)) == {**grant, "changed": True}
    assert result(setting.root.ask("access.grant", **grant)) == {**grant, "changed": False}
    for broker in setting.brokers.values():
        (told,) = broker.take(AccessAnnounced)
        assert ("user/ann", "operate", "*") in told.rules
    assert result(setting.ann.ask("topology.show"))
    said = result(setting.ann.ask("access.whoami"))
    assert (said["principal"], said["operates"], said["administers"]) == ("user/ann", True, False)
    assert [*grant.values(), False] in said["rules"] and said["only"] == []
    assert refused(setting.ann.ask("access.grant", **grant)) == "not-authorised", "only admins"
    setting.restart()
    assert ["user/ann", "operate", "*", False] in result(setting.client.ask("access.list"))["rules"]
    assert result(setting.client.ask("access.revoke", **grant)) == {**grant, "changed": True}


def test_a_new_topology_changes_nothing_of_who_may_what() -> None:
    setting = Guarded()
    open_to_all = replace(FIGURE4, access=AccessOptions(publish=("*",)))
    answer = result(setting.root.ask("topology.apply", text=to_toml(open_to_all)))
    assert (answer["changes"], answer["takes_a_start"]) == ([], {"access": "every process"})
    assert refused(setting.ann.ask("source.register", name="s9")) == "not-authorised"


def test_the_audit_log_says_who_has_changed_what_also_after_a_restart() -> None:
    setting = Guarded()
    grant = {"principal": "user/ann", "role": "publish", "scope": "s1"}
    setting.root.ask("access.grant", **grant)
    setting.ann.ask("access.revoke", **grant)  # who may not
    setting.root.ask("access.revoke", **grant)
    text = (
        'name = "figure4"\n[registration]\nid = "R1"\nlisten = "r:1"\n'
        '[[broker]]\nid = "B1"\nlisten = "b:1"\n'
    )
    assert refused(setting.ann.ask("topology.apply", text=text)) == "not-authorised"
    setting.restart()
    entries = result(setting.client.ask("audit.list"))["entries"]
    assert [entry[2:5] for entry in entries] == [
        ["operator/root", "access.grant", "user/ann publish s1"],
        ["user/ann", "access.revoke", "refused: not-authorised"],
        ["operator/root", "access.revoke", "user/ann publish s1"],
        ["user/ann", "topology.apply", "refused: not-authorised"],
    ]
    assert result(setting.client.ask("audit.list", after=1))["entries"] == entries[1:]


SECRET = "a secret of thirty-two random bytes"


def test_what_is_kept_of_a_token_is_a_digest_and_its_end() -> None:
    setting = Guarded()
    issued = setting.issue("user/ann", seconds=60)
    assert refused(setting.ann.ask("token.list")) == "not-authorised"
    assert result(setting.root.ask("token.list"))["tokens"] == [[issued, "user/ann", 60, []]]
    assert not any(SECRET.encode() in value for value in setting.beside.rows.values())
    for broker in setting.brokers.values():
        ((_, digest, expires, _),) = broker.all(AccessAnnounced)[-1].tokens
        assert (digest, expires) == (Token.digest_of(SECRET), 60)


def test_whoever_shows_the_secret_is_who_the_token_says_until_it_ends() -> None:
    setting = Guarded()
    setting.issue("user/ann", seconds=60)
    stranger = setting.beside.peer("client", "x", principal="nobody/nobody", token="guess" * 8)
    assert stranger.error == "not-authenticated"
    holder = setting.beside.peer("client", "y", principal="nobody/nobody", token=SECRET)
    assert result(setting.add(holder))["user"] == "ann"
    assert refused(holder.ask("topology.show")) == "not-authorised"
    setting.wall = 60.0
    setting.beside.tell(TimePassed())
    assert holder.error == "not-authenticated" and holder.closed
    late = setting.beside.peer("client", "z", principal="nobody/nobody", token=SECRET)
    assert late.error == "not-authenticated"


def test_a_token_is_let_in_after_a_restart_and_not_once_it_is_revoked() -> None:
    setting = Guarded()
    name = setting.issue("user/ann")
    setting.restart()
    holder = setting.beside.peer("client", "y", principal="nobody/nobody", token=SECRET)
    assert result(holder.ask("profile.list"))["profiles"] == []
    assert result(setting.client.ask("token.revoke", token=name))
    setting.beside.tell(TimePassed())
    assert holder.error == "not-authenticated"
    assert refused(setting.client.ask("token.revoke", token=name)) == "unknown-token"


def test_a_token_does_nothing_beyond_what_it_is_bound_to() -> None:
    setting = Guarded()
    setting.issue("operator/root", only=[["subscribe", "*"]])
    holder = setting.beside.peer("client", "y", principal="nobody/nobody", token=SECRET)
    assert result(holder.ask("source.list"))["sources"] == []
    said = result(holder.ask("access.whoami"))
    assert (said["principal"], said["operates"]) == ("operator/root", False)
    assert said["only"] == [["subscribe", "*"]]
    for verb in ("profile.list", "topology.show", "access.list", "source.register"):
        assert refused(holder.ask(verb)) == "not-authorised"


def test_a_token_gives_nobody_more_than_its_principal_may() -> None:
    setting = Guarded()
    setting.issue("user/ann", only=[["admin", "*"]])
    holder = setting.beside.peer("client", "y", principal="nobody/nobody", token=SECRET)
    assert refused(holder.ask("access.list")) == "not-authorised"


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": "broker/B1"},
        {"principal": "ann"},
        {"digest": b"short"},
        {"seconds": 0},
        {"seconds": 1e12},
        {"only": [["king", "*"]]},
        {"only": ["own"]},
    ],
    ids=str,
)
def test_a_token_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    asked = {"principal": "user/ann", "digest": bytes(32), "seconds": 60, "only": []}
    assert refused(Guarded().root.ask("token.issue", **{**asked, **wrong})) == "bad-argument"


def test_a_user_has_so_many_profiles_and_an_operator_as_many_as_the_network() -> None:
    setting = Guarded()
    setting.bound(principal_profiles_max=3)
    for _ in range(3):
        last = result(setting.add(setting.ann))["profile"]
    assert refused(setting.add(setting.ann)) == "over-quota"
    many = {"texts": ["/a"] * 4}
    assert refused(setting.bob.ask("profile.add_many", **many)) == "over-quota"
    assert result(setting.add(setting.bob))["user"] == "bob", "of such a batch none was added"
    granted = [result(setting.add(setting.root, user="ann"))["profile"] for _ in range(4)]
    assert refused(setting.add(setting.ann)) == "over-quota"
    setting.remove(last)
    again = result(setting.add(setting.ann))["profile"]
    assert refused(setting.add(setting.ann)) == "over-quota", "her own are three, as before"
    setting.remove(*granted)
    assert refused(setting.add(setting.ann)) == "over-quota", "the operator's were not hers"
    setting.remove(again)
    assert result(setting.add(setting.ann))["user"] == "ann"


def test_what_an_operator_has_added_counts_for_nobody_after_a_restart_too() -> None:
    setting = Guarded()
    setting.bound(principal_profiles_max=2)
    result(setting.add(setting.root, user="ann"))
    many = setting.root.ask("profile.add_many", texts=["/a"] * 3, user="ann")
    assert many is None, "it waits for the brokers"
    result(setting.add(setting.ann))
    rows = setting.beside.stored()
    catalog = RegistrationCore(FIGURE4, setting.identity, "run2", rows).catalog
    assert len(catalog.profiles) == 5
    assert catalog.quota_used == {"ann": 1}


def test_a_principal_has_so_many_sources() -> None:
    setting = Guarded()
    setting.bound(principal_sources_max=2)
    for _ in range(2):
        setting.register(setting.wire)
    answer = setting.wire.ask("source.register", name="one more")
    assert refused(answer) == "over-quota"
    assert answer is not None and "2 sources" in answer.result["message"]
    assert setting.register(setting.root)


def test_brokers_are_told_which_certificates_are_revoked() -> None:
    """Once each time that another is, and when they come."""
    setting = Setting()
    revoked = frozenset({7})
    core = (FIGURE4, setting.identity, "run2", setting.beside.stored())
    setting.beside.core = RegistrationCore(*core, revoked=lambda: revoked)
    brokers = list(setting.brokers.values())
    for broker in brokers:
        broker.disconnect()
        broker.take(AccessAnnounced)
        broker.connect()
    for serials in ({7}, {7, 1 << 159}):
        revoked = frozenset(serials)
        for _ in range(2):
            setting.beside.tell(TimePassed())
        for broker in brokers:
            (told,) = broker.take(AccessAnnounced)
            assert [*map(int.from_bytes, told.revoked)] == sorted(serials)
