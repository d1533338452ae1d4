"""Attacks on a real network, and what each gets: a code, and nothing else.

Who attacks: somebody without TLS (""), with TLS and no certificate (``nobody``), with one of
another authority (``forger``), a user of the network (``user``), a source of it (``source``).
Where: a node, and its door.  OURS is the source that attacks, THEIRS another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import trio

from overlay.link.frame import PROTOCOL_VERSION, Frame
from overlay.link.frame_codec import encode
from overlay.link.frames import Ack, Ping, Publish, Request
from tests.issuer import public_key_as_secret, signed, token
from tests.onyx.networks import RunningProcess, check_it_serves
from tests.overlay.link.samples import SAMPLES
from tests.security.attacker import (
    CLOSED,
    FORGER,
    NOBODY,
    SOURCE,
    USER,
    Victim,
    attacker,
    framed,
    hello,
    learn_next_number,
)

Said = Callable[[Victim], bytes]
KIB = 1024


class Attack(NamedTuple):
    """What is said to whom by whom, after which hello, and the code that comes of it."""

    what: str
    who: str
    node: str
    door: str
    said: Said
    gets: str

    def __str__(self) -> str:
        return f"{self.who or 'without TLS'}, {self.what}".replace(" ", "-")


def raw(data: bytes) -> Said:
    return lambda victim: data


def as_(role: str, peer: str, version: int = PROTOCOL_VERSION, channels: int = 0) -> Said:
    """A hello; OURS and THEIRS are put in."""
    return lambda victim: hello(role, _named(victim, peer), version, channels)


def client(*frames: Frame | bytes) -> Said:
    """A hello as a client, then frames."""
    return lambda victim: hello("client", "1") + b"".join(map(_bytes, frames))


def ask(verb: str, **arguments: object) -> Said:
    return client(Request("1", verb, arguments))


def add(text: str) -> Said:
    return ask("profile.add", text=text, user="mallory", name="mallory")


def publish(
    message: bytes, form: str = "text", source: str = "OURS", ahead: int = 0, key: str = "OURS"
) -> Said:
    """As the source that attacks; ``ahead`` of the number that is awaited."""

    def said(victim: Victim) -> bytes:
        frame = Publish(_named(victim, source), form, message)
        channel = _named(victim, key)
        return hello("source", victim.ours) + encode(frame, channel, victim.next_number + ahead)

    return said


def source(*frames: Frame) -> Said:
    return lambda victim: hello("source", victim.ours) + b"".join(map(_bytes, frames))


def with_token(token: str | Callable[[], str], *frames: Frame, peer: str = "client/1") -> Said:
    """A hello of somebody without a certificate who shows one of the victim's tokens, by its name,
    or another."""

    def said(victim: Victim) -> bytes:
        shown = victim.tokens.get(token, token) if isinstance(token, str) else token()
        role, _, name = _named(victim, peer).partition("/")
        return hello(role, name, token=shown) + b"".join(map(_bytes, frames))

    return said


def mallory(key: str = "rsa", **claims: object) -> Callable[[], str]:
    """A token of the issuer."""
    return lambda: token(key, **{"sub": "mallory", **claims})


def unsigned() -> str:
    return signed("", "none", "rsa", sub="mallory")


def _bytes(frame: Frame | bytes) -> bytes:
    if isinstance(frame, bytes):
        return frame
    return encode(frame, *(("k", 1) if frame.sequenced else ()))


def _named(victim: Victim, text: str) -> str:
    return text.replace("OURS", victim.ours).replace("THEIRS", victim.theirs)


N_A, N_R, N_E, B_A = "not-authenticated", "not-authorised", "not-expected", "bad-argument"
N_V, SERVICE = "unsupported-version", "registration"
P_R = "profile-refused"
KING = hello("client", "1").replace(b"client", b"a king")
NO_ZSTD, UNKNOWN_PROFILE = "bad-compression", "unknown-profile"
NO_HEADER = framed(b"\0\1\xc1")
ASK = Request("1", "profile.list", {})
MESSAGE = encode(Publish("s", "text", b"<a/>"), "s", 1)
UNKNOWN = framed(b"\0\x07\x81\xa1t\xa3xyz")
PATTERN = "/a[matches(., '((a{50}){50}){50}')]"
WIDE = b"<a " + b" ".join(b'a%d=""' % n for n in range(2_000)) + b"/>"
NAMES = b"<a>" + b"".join(b"<n%d/>" % n for n in range(25_000)) + b"</a>"
LARGE = b"<a>" + b"x" * 5_000_000 + b"</a>"
EXTERNAL = b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>'
BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(8))
    + b"]><a>&i;</a>"
)
APPLY = ask("topology.apply", text="name = " + "9" * 5_001)
SHOW = ask("profile.show", profile="p9")
SAMPLE = {frame.type: frame for frame in SAMPLES}
TLS_RECORD = b"\x16\x03\x01\x40\x00\x01\x01\xff\xff" + bytes(16 * KIB - 4)

MINE, LATE = "mallory's", 1 << 40
SHAPE = Request("1", "topology.show", {})
TOKEN = Request("1", "token.issue", {"principal": "operator/root", "digest": b"", "seconds": 9})
ANNS = with_token(MINE, peer="subscriber/1@ann")
ANNS_BY_ISSUER = with_token(mallory(), peer="subscriber/1@ann")
THEIRS_BY_TOKEN = with_token(MINE, peer="source/THEIRS")

ATTACKS = [
    # -- who speaks no TLS
    Attack("a hello as a user", "", "B1", "clients", as_("client", "1"), CLOSED),
    Attack("a hello as a broker", "", "B1", "links", as_("broker", "B2"), CLOSED),
    Attack("a request of the web", "", "B1", "clients", raw(b"GET / HTTP/1.1\r\n\r\n"), CLOSED),
    Attack("a long hello of TLS", "", "B1", "clients", raw(TLS_RECORD * 5), CLOSED),
    Attack("noise", "", SERVICE, "links", raw(bytes(range(256)) * 300), CLOSED),
    # -- who has no certificate, or one of another authority
    Attack("another's results", NOBODY, "B1", "clients", as_("subscriber", "1@ann"), N_A),
    Attack("another's source", NOBODY, "B1", "clients", as_("source", "THEIRS"), N_A),
    Attack("questions", NOBODY, SERVICE, "clients", as_("client", "1"), N_A),
    Attack("a broker's place", NOBODY, "B1", "links", as_("broker", "B2"), N_A),
    Attack("the service's place", NOBODY, "B1", "links", as_("registration", "registration"), N_A),
    Attack("a broker at the service", NOBODY, SERVICE, "links", as_("broker", "B1"), N_A),
    Attack(
        "another version", NOBODY, "B1", "clients", as_("client", "1", PROTOCOL_VERSION - 1), N_V
    ),
    Attack("a role of its own", NOBODY, "B1", "clients", raw(KING), "bad-field"),
    Attack("a question first", NOBODY, "B1", "clients", raw(encode(ASK)), "not-expected"),
    Attack("a ping first", NOBODY, "B1", "clients", raw(encode(Ping(1))), "not-expected"),
    Attack("a publication first", NOBODY, "B1", "clients", raw(MESSAGE), "not-expected"),
    Attack("a long hello", NOBODY, "B1", "clients", as_("client", "1", channels=900), "too-long"),
    Attack(
        "a long hello of links",
        NOBODY,
        "B1",
        "links",
        as_("broker", "B2", channels=900),
        "too-long",
    ),
    Attack("four gigabytes", NOBODY, "B1", "clients", raw(b"\xff\xff\xff\xff"), "too-long"),
    Attack("an empty frame", NOBODY, "B1", "clients", raw(bytes(4)), "malformed"),
    Attack("a header that is none", NOBODY, "B1", "clients", raw(NO_HEADER), "malformed"),
    Attack("an unknown frame", NOBODY, "B1", "clients", raw(UNKNOWN), "unknown-frame"),
    Attack("an operator's certificate", FORGER, "B1", "clients", as_("client", "1"), CLOSED),
    Attack("the same at a link", FORGER, "B1", "links", as_("broker", "B2"), CLOSED),
    # -- a user as somebody else
    Attack("another's results", USER, "B1", "clients", as_("subscriber", "1@ann"), N_R),
    Attack("everybody's results", USER, "B1", "clients", as_("subscriber", "1@"), N_R),
    Attack("a source", USER, "B1", "clients", as_("source", "THEIRS"), N_R),
    Attack("a broker's place", USER, "B1", "links", as_("broker", "B2"), N_R),
    Attack("the broker itself", USER, "B1", "links", as_("broker", "B1"), "not-expected"),
    Attack("a broker among clients", USER, "B1", "clients", as_("broker", "B2"), N_R),
    Attack("the service", USER, "B1", "links", as_("registration", "evil"), N_R),
    Attack("through the door of links", USER, "B1", "links", as_("client", "1"), "wrong-door"),
    # -- a user who says what users do not
    Attack("a second hello", USER, "B1", "clients", client(hello("client", "2")), "not-expected"),
    Attack("a message", USER, "B1", "clients", client(SAMPLE["publish"]), "not-expected"),
    Attack("a tree's message", USER, "B1", "clients", client(SAMPLE["message"]), "not-expected"),
    Attack("what a link wants", USER, "B1", "clients", client(SAMPLE["routing-delta"]), N_E),
    Attack("a profile placed", USER, "B1", "clients", client(SAMPLE["place-profile"]), N_E),
    Attack("a shape", USER, "B1", "clients", client(SAMPLE["shape-announced"]), N_E),
    Attack("a source announced", USER, "B1", "clients", client(SAMPLE["source-announced"]), N_E),
    Attack("a tunnel", USER, SERVICE, "clients", client(SAMPLE["relayed"]), N_E),
    Attack("an acknowledgement", USER, "B1", "clients", client(Ack(3, "B1", 1)), N_E),
    Attack("results taken", USER, "B1", "clients", client(SAMPLE["taken"]), N_E),
    Attack("results asked for", USER, "B1", "clients", client(SAMPLE["attach"]), N_E),
    # -- a user who asks
    Attack("an unknown verb", USER, "B1", "clients", ask("kill"), "unknown-verb"),
    Attack("a profile of numbers", USER, SERVICE, "clients", ask("profile.add", text=7), B_A),
    Attack("a profile of nothing", USER, SERVICE, "clients", ask("profile.add"), B_A),
    Attack("a long profile", USER, SERVICE, "clients", add("/a" * 40_000), "too-long"),
    Attack("a deep profile", USER, SERVICE, "clients", add("(" * 5_000), P_R),
    Attack("a profile of no words", USER, SERVICE, "clients", add("/a["), P_R),
    Attack("a pattern of states", USER, SERVICE, "clients", add(PATTERN), P_R),
    Attack("a topology of digits", USER, SERVICE, "clients", APPLY, N_R),
    Attack(
        "what is not there",
        USER,
        "B1",
        "clients",
        ask("profile.show", profile="p9"),
        "unknown-profile",
    ),
    # -- who has a token
    Attack("a guess", NOBODY, "B1", "clients", with_token("guess" * 8), N_A),
    Attack("its id", NOBODY, "B1", "clients", with_token("t-3f0a5c1e9b7d"), N_A),
    Attack("a revoked one", NOBODY, "B1", "clients", with_token("revoked"), N_A),
    Attack("a revoked one, there", NOBODY, SERVICE, "clients", with_token("revoked"), N_A),
    Attack("results of another by a token", NOBODY, "B1", "clients", ANNS, N_R),
    Attack("a source by a token", NOBODY, "B1", "clients", THEIRS_BY_TOKEN, N_R),
    Attack("a broker by a token", NOBODY, "B1", "links", with_token(MINE, peer="broker/B2"), N_R),
    Attack("an operator's verb", NOBODY, SERVICE, "clients", with_token(MINE, SHAPE), N_R),
    Attack("a token for others", NOBODY, SERVICE, "clients", with_token(MINE, TOKEN), N_R),
    Attack("what it is not for", NOBODY, SERVICE, "clients", with_token("to subscribe", ASK), N_R),
    Attack("a long one", NOBODY, "B1", "clients", with_token("x" * 4_096), N_A),
    Attack("one as a user", USER, "B1", "clients", with_token(MINE, peer="subscriber/1@ann"), N_R),
    # -- who has a token of the issuer, or none
    Attack("one that is over", NOBODY, "B1", "clients", with_token(mallory(exp=1)), N_A),
    Attack("one not yet good", NOBODY, "B1", "clients", with_token(mallory(nbf=LATE)), N_A),
    Attack("of another network", NOBODY, "B1", "clients", with_token(mallory(aud="net")), N_A),
    Attack("of another issuer", NOBODY, "B1", "clients", with_token(mallory(iss="evil")), N_A),
    Attack("of a key of their own", NOBODY, "B1", "clients", with_token(mallory("other")), N_A),
    Attack("of no key", NOBODY, "B1", "clients", with_token(unsigned), N_A),
    Attack("of the public key", NOBODY, "B1", "clients", with_token(public_key_as_secret), N_A),
    Attack("of an odd name", NOBODY, "B1", "clients", with_token(mallory(sub="a/b")), N_A),
    Attack("of two parts", NOBODY, "B1", "clients", with_token("a.b"), N_A),
    Attack("another's results by it", NOBODY, "B1", "clients", ANNS_BY_ISSUER, N_R),
    Attack("a verb by it", NOBODY, SERVICE, "clients", with_token(mallory(), SHAPE), N_R),
    # -- a source
    Attack("another's source", SOURCE, "root", "clients", as_("source", "THEIRS"), N_R),
    Attack("a user's results", SOURCE, "root", "clients", as_("subscriber", "1@ann"), N_R),
    Attack("a broker's place", SOURCE, "root", "links", as_("broker", "B2"), N_R),
    Attack("another's message", SOURCE, "root", "clients", publish(b"<a/>", source="THEIRS"), N_E),
    Attack("another's channel", SOURCE, "root", "clients", publish(b"<a/>", key="THEIRS"), N_E),
    Attack("a gap", SOURCE, "root", "clients", publish(b"<a/>", ahead=9), N_E),
    Attack("no XML", SOURCE, "root", "clients", publish(b"<a>"), "malformed"),
    Attack("a bomb of entities", SOURCE, "root", "clients", publish(BOMB), "entity-expansion"),
    Attack("depth", SOURCE, "root", "clients", publish(b"<a>" * 9_000), "too-deep"),
    Attack("width", SOURCE, "root", "clients", publish(WIDE), "too-many-attributes"),
    Attack("names", SOURCE, "root", "clients", publish(NAMES), "too-many-names"),
    Attack("five megabytes", SOURCE, "root", "clients", publish(LARGE), "too-large"),
    Attack("an external entity", SOURCE, "root", "clients", publish(EXTERNAL), "external-entity"),
    Attack("no format", SOURCE, "root", "clients", publish(b"<a/>", "pdf"), "unknown-format"),
    Attack(
        "binary that is none",
        SOURCE,
        "root",
        "clients",
        publish(b"\xff" * 99, "binary"),
        "bad-magic",
    ),
    Attack(
        "zstd that is none", SOURCE, "root", "clients", publish(b"\xff" * 99, "text+zstd"), NO_ZSTD
    ),
    Attack("a tree's end", SOURCE, "root", "clients", source(SAMPLE["tree-ended"]), N_E),
    Attack("what a link wants", SOURCE, "root", "clients", source(SAMPLE["routing-delta"]), N_E),
]


@pytest.fixture(scope="module")
def victim(network: RunningProcess, tmp_path_factory: pytest.TempPathFactory) -> Victim:
    victim = Victim(network, tmp_path_factory.mktemp("attackers"))
    trio.run(victim.prepare)
    return victim


def test_there_are_ninety() -> None:
    assert len(ATTACKS) >= 90
    assert len({str(attack) for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_an_attack_gets_a_code(victim: Victim, attack: Attack) -> None:
    if attack.who == SOURCE:
        await learn_next_number(victim)
    async with attacker(victim, attack.who, attack.node, attack.door) as connection:
        await connection.say(attack.said(victim))
        assert await connection.outcome(victim.next_number) == attack.gets


async def test_nothing_came_of_them(victim: Victim) -> None:
    """Whoever uses the network does as ever, in the same processes."""
    await check_it_serves(victim.network.registration)
