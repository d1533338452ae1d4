"""A broker asks the table: who publishes, who takes results, which messages a profile sees."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onyx.broker.broker_core import BrokerCore, Rows
from overlay.access import AccessOptions, Right, Rule, Token
from overlay.link.core_context import Surroundings
from overlay.link.errors import ProtocolError
from overlay.link.events import TimePassed
from overlay.link.frames import (
    AccessAnnounced,
    Delivery,
    Publish,
    Refused,
    Response,
    SourceAnnounced,
    TreeReady,
)
from overlay.link.part import OUTSIDE
from overlay.link.principal import Principal
from overlay.topology import Topology
from registration.registration_core import RegistrationCore
from tests.beside import Beside, Peer, SubscriberPeer
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, SF, Setting
from tests.overlay.link.samples import SAMPLES
from tests.registration.test_registration_core import refused

BASE = AccessOptions().rules()
NOT_ALL = AccessOptions(subscribe=()).rules()
OF_THE_REGISTRATION_SERVICE = {
    taker.kind.__name__
    for taker in BrokerCore(FIGURE4, "B4", "run").takers.values()
    if taker.senders == {"registration"}
}


class Guarded(Setting):
    """B4, the root broker of two sources that ``source/wire`` has registered, with two profiles
    of ann."""

    def __init__(self, topology: Topology = FIGURE4, **limits: int) -> None:
        super().__init__(replace(topology, limits=replace(topology.limits, **limits)))
        for source in ("s1", "s2"):
            self.registration.send(
                "registration",
                SourceAnnounced(
                    *(source, source, "B4", None, 1.0, 1, "", "", "off", []), owner="source/wire"
                ),
            )
            for child in self.core.control.children("B4"):
                self.brokers[child].send("B4", TreeReady(root="B4", source=source))
        self.place(SF, "p1")
        self.place("//*", "p2")

    def rules(self, *rules: Rule, base: tuple[Rule, ...] = BASE) -> None:
        self.registration.send("registration", AccessAnnounced([*base, *rules], [], []))

    def client(self, principal: str) -> Peer:
        return self.beside.peer("client", principal.replace("/", "-"), principal=principal)

    def source(self, principal: str, source: str = "s1") -> Peer:
        return self.beside.peer("source", source, principal=principal)

    def subscriber(self, profile: str, principal: str) -> SubscriberPeer:
        name = f"run@{principal.partition('/')[2]}"
        return self.beside.subscriber(profile, name=name, principal=principal)

    def publish(self, peer: Peer, source: str = "s1") -> None:
        peer.send(source, Publish(source=source, format="text", payload=NEWS))


def results(peer: Peer) -> list[tuple[str, int]]:
    return [(frame.source, frame.number) for frame in peer.all(Delivery)]


def of_an_issuer(token: str) -> Principal:
    if token != "a.b.c":
        raise ProtocolError("keys-awaited", "come again", fatal=True)
    return Principal("user", "ann", until=60.0)


@pytest.mark.parametrize("process", ["broker", "registration"])
def test_a_token_of_another_issuer_is_a_user_until_it_ends(process: str) -> None:
    wall = 0.0
    around = Surroundings(wall=lambda: wall, issuer=of_an_issuer)
    core = (
        BrokerCore(FIGURE4, "B4", "run", around=around)
        if process == "broker"
        else RegistrationCore(FIGURE4, FIGURE4.registration[0].id, "run", around=around)
    )
    beside = Beside(f"{process}/{core.identity}", core)
    ann, early = (
        beside.peer("client", token, principal="nobody/nobody", token=token)
        for token in ("a.b.c", "d.e.f")
    )
    assert early.error == "keys-awaited"
    assert refused(ann.ask("statistics")) == "not-authorised"
    wall = 59.0
    beside.tell(TimePassed())
    assert not ann.closed
    wall = 60.0
    beside.tell(TimePassed())
    assert ann.closed and ann.error == "not-authenticated"


def test_a_broker_keeps_which_certificates_are_revoked() -> None:
    known: list[frozenset[int]] = []

    class Told(Setting):
        def new_core(self, instance: str, rows: Rows = ()) -> BrokerCore:
            return BrokerCore(self.topology, "B4", instance, rows, revoke=known.append)

    setting = Told()
    setting.registration.send(
        "registration", AccessAnnounced(list(BASE), [], [b"\x07", b"\xff" * 20])
    )
    assert known == [{7, (1 << 160) - 1}]
    setting.restart()
    assert known[1:] == known[:1]


@pytest.mark.parametrize("kind", sorted(OF_THE_REGISTRATION_SERVICE))
def test_no_broker_speaks_for_the_registration_service(kind: str) -> None:
    frame = next(frame for frame in SAMPLES if type(frame).__name__ == kind)
    setting = Setting()
    before = dict(setting.beside.rows)
    neighbour = setting.brokers["B1"]
    if frame.sequenced:
        neighbour.send("B1", frame)
    else:
        neighbour.reply(frame)
    assert neighbour.error == "not-expected"
    changed = set(setting.beside.rows.items()) - set(before.items())
    assert {space for (space, _), _ in changed} <= {"inbox"}, "it is known how far it was read"


def test_every_verb_and_every_frame_from_outside_says_what_right_it_takes() -> None:
    core = BrokerCore(FIGURE4, "B4", "run")
    assert {verb.asked.right for verb in core.verbs.values()} <= set(Right)
    known = {name for name, verb in core.verbs.items() if verb.asked.right is Right.KNOWN}
    assert known == {"sync"}
    outside = [taker for taker in core.takers.values() if taker.senders & OUTSIDE]
    assert {taker.kind.__name__: taker.right.value for taker in outside} == {
        "Publish": "publish", "PublishOnce": "publish", "Attach": "own", "Taken": "own",
        "Rejected": "own", "Request": "known", "SourceAnswered": "publish",
    }  # fmt: skip


@pytest.mark.parametrize("verb", sorted(BrokerCore(FIGURE4, "B4", "run").verbs))
def test_a_user_gets_nothing_of_what_operators_may_or_others_own(verb: str) -> None:
    setting = Guarded()
    before = dict(setting.beside.rows)
    right = setting.core.verbs[verb].asked.right
    if verb.startswith("dead."):
        setting.core._dead.note_undeliverable("ann", "p1", ("s1", 1), "why", ([4], b"<a/>"))
        (letter,) = setting.core._dead._letters
        setting.beside.tell(TimePassed())  # the letter is stored
        before = dict(setting.beside.rows)
        about = {"user": "ann"} if verb == "dead.list" else {"id": letter}
        answer = setting.client("user/bob").ask(verb, **about)
    else:
        named = {"profile": "p1", "profiles": ["p1"], "text": "/x", "source": "s1", "through": 9}
        answer = setting.client("user/bob").ask(verb, **named, body=b"?", writes=True)
    if right is not Right.KNOWN:
        assert refused(answer) == "not-authorised"
    new = {space for (space, _), _ in setting.beside.rows.items() ^ before.items()}
    assert new <= {"outbox-floor"}, "the registration service is told that it was tried"


def test_an_owner_and_an_operator_change_a_profile() -> None:
    setting = Guarded()
    for principal, version in (("user/ann", 2), ("operator/root", 3)):
        answer: Response | None = setting.client(principal).ask(
            "profile.update", profile="p1", text=f"/v{version}"
        )
        result: dict[str, Any] = {} if answer is None else dict(answer.result)
        assert result["version"] == version


@pytest.mark.parametrize(
    ("principal", "error"),
    [
        ("source/wire", ""),
        ("operator/root", ""),
        ("source/s1", ""),
        ("source/other", "not-authorised"),
        ("user/ann", "not-authorised"),
    ],
)
def test_a_source_is_whoever_registered_it_itself_or_an_operator(
    principal: str, error: str
) -> None:
    setting = Guarded()
    source = setting.source(principal)
    assert source.error == error
    if not error:
        setting.publish(source)
        assert results(setting.subscriber("p1", "user/ann")) == [("s1", 1)]
    kept = any("source/s1" in key for _, key in setting.beside.rows)
    assert kept == (not error), "nothing is kept of who was refused"


def test_who_may_publish_by_a_grant_may_no_longer_when_it_is_revoked() -> None:
    setting = Guarded()
    setting.rules(Rule("user/ann", "publish", "s1"))
    source = setting.source("user/ann")
    assert (source.error, setting.source("user/ann", "s2").error) == ("", "not-authorised")
    setting.rules()
    assert source.error == "not-authorised" and source.closed


def test_nobody_takes_the_results_of_another() -> None:
    setting = Guarded()
    setting.publish(setting.source("source/wire"))
    stranger = setting.subscriber("p1", "user/bob")
    assert (stranger.error, results(stranger)) == ("not-authorised", [])
    assert results(setting.subscriber("p1", "user/ann")) == [("s1", 1)]


def test_who_was_let_take_them_is_sent_away_when_that_is_revoked() -> None:
    setting = Guarded()
    setting.rules(Rule("user/bob", "own", "p1"))
    helper = setting.subscriber("p1", "user/bob")
    assert helper.error == ""
    setting.rules()
    assert helper.error == "not-authorised" and helper.closed


@pytest.mark.parametrize("restarts", [False, True])
def test_a_profile_sees_only_sources_that_its_user_may(restarts: bool) -> None:
    setting = Guarded()
    setting.rules(Rule("user/ann", "subscribe", "s2"), base=NOT_ALL)
    if restarts:
        setting.restart()
    for source in ("s1", "s2"):
        setting.publish(setting.source("source/wire", source), source)
    for profile in ("p1", "p2"):
        assert results(setting.subscriber(profile, "user/ann")) == [("s2", 1)], "also //*"


def test_what_is_granted_or_revoked_is_so_from_the_next_message_on() -> None:
    setting = Guarded()
    source = setting.source("source/wire")
    setting.publish(source)
    setting.rules(base=NOT_ALL)
    setting.publish(source)
    setting.rules()
    setting.publish(source)
    assert results(setting.subscriber("p2", "user/ann")) == [("s1", 1), ("s1", 3)]


def test_without_tls_everything_is_as_it_was() -> None:
    setting = Guarded()
    setting.publish(setting.beside.peer("source", "s1"))
    assert results(setting.beside.subscriber("p1")) == [("s1", 1)]


def test_a_token_publishes_until_the_registration_service_says_otherwise() -> None:
    setting = Guarded()
    token = ("source/wire", Token.digest_of("secret"), 60, [("publish", "s1")])
    setting.registration.send("registration", AccessAnnounced(list(BASE), [token], []))
    setting.restart()
    peers = [
        setting.beside.peer("source", source, principal="nobody/nobody", token="secret")
        for source in ("s1", "s2")
    ]
    assert [peer.error for peer in peers] == ["", "not-authorised"], "it is bound to s1"
    setting.publish(peers[0])
    assert results(setting.subscriber("p1", "user/ann")) == [("s1", 1)]
    setting.rules()
    assert peers[0].error == "not-authenticated" and peers[0].closed


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"principal_messages_s_max": 2}, "2 messages a second"),
        ({"principal_bytes_s_max": 2 * len(NEWS)}, f"{2 * len(NEWS)} bytes a second"),
    ],
    ids=["messages", "bytes"],
)
def test_a_source_publishes_so_much_a_second_and_is_told_of_what_is_refused(
    limits: dict[str, int], said: str
) -> None:
    setting = Guarded(**limits)
    source, operator = setting.source("source/wire"), setting.source("operator/root", "s2")
    for _ in range(3):
        setting.publish(source)
        setting.publish(operator, "s2")
    (refusal,) = source.all(Refused)
    assert (refusal.number, refusal.code) == (3, "over-quota")
    assert said in refusal.reason
    assert operator.all(Refused) == []
    setting.beside.now += 1.0
    setting.publish(source)
    taken = results(setting.subscriber("p1", "user/ann"))
    assert [number for name, number in taken if name == "s1"] == [1, 2, 4]
