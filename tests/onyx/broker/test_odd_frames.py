"""Whatever a peer of a broker sends, of whichever role, the broker goes on.

ONYX_ODD_RUNS is how many runs there are, of 60 frames each; ONYX_ODD_SEED is the first one's seed.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from formats import WireFormat, encode, parse_text
from overlay.link.frame import FRAME_TYPES, Frame
from overlay.link.frames import Hello, Ping, PlaceProfile, Pong, Relayed, Request
from overlay.topology import to_toml
from tests.beside import Peer
from tests.odd_values import OddValues, send_many
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, SF, Setting, delta, query

RUNS = int(os.environ.get("ONYX_ODD_RUNS", "60"))
FIRST = int(os.environ.get("ONYX_ODD_SEED", "0"))
OTHER_KINDS = [kind for kind in FRAME_TYPES.values() if kind not in (Hello, Ping, Pong)]
NAMES = (
    *("s1", "s2", "p1", "p2", "B1", "B2", "B4", "B5", "B6", "R1", "B1@1", "B4@1", "B1@2"),
    *("text", "binary", "dictionary", "text+zstd", "off", "reject", "dtd", "xsd", "news.dtd"),
)
TEXTS = (SF, "//a", "for $n in /nitf return <r>{$n/head}</r>", *query(SF), *query("//a[@b = 1]"))
PAYLOADS = (
    NEWS,
    encode(parse_text(NEWS), WireFormat.BINARY),
    b"<!ELEMENT nitf ANY>",
    to_toml(FIGURE4).encode(),
)
ARGUMENTS = (
    *("text", "texts", "profile", "profiles", "version", "wait", "timeout", "source", "root"),
    *("link", "format", "message", "number", "hops", "reflects", "pieces", "skip_refused", "id"),
)


class Odd(Setting):
    """B4 with two sources and two profiles; it is the root broker of s2."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.values = OddValues(random, NAMES, TEXTS, PAYLOADS)
        for source, root in (("s1", "B1"), ("s2", "B4")):
            self.announce(source, root)
            self.children_ready(source, root)
        self.brokers["B5"].send("B1", delta(SF))
        self.place(SF)
        self.place("//a", "p2")
        self.source = self.beside.peer("source", "s2")
        self.asking = [self.beside.peer("client", "c"), self.beside.subscriber("p1")]
        self.peers = [self.registration, *self.brokers.values(), self.source, *self.asking]

    def frame_from(self, peer: Peer) -> Frame | None:
        """Mostly one that this peer may send."""
        role = peer.name.partition("/")[0]
        places = {role, "parent", "child"} if role == "broker" else {role}
        takers = self.core.takers.values()
        kinds = [taker.kind for taker in takers if taker.senders & places]
        kind = self.random.choice(kinds if self.random.random() < 0.9 else OTHER_KINDS)
        if kind is Request and self.random.random() < 0.9:
            return self.values.request(list(self.core.verbs), ARGUMENTS)
        return self.values.frame(kind)

    def send_odd(self) -> Frame | None:
        peer = self.random.choice(self.peers)
        frame = None if peer.closed else self.frame_from(peer)
        if frame is None or (frame.sequenced and peer in self.asking):
            return None
        if not frame.sequenced:
            peer.reply(frame)
        elif self.random.random() < 0.05:
            peer.send(self.random.choice(NAMES), frame)
        elif peer in (self.registration, self.source):
            peer.send("registration" if peer is self.registration else "s2", frame)
        else:
            peer.send(self.random.choice(["B1", "B1", "B4", "registration"]), frame)
        return frame


@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
def test_no_frame_ends_a_broker(seed: int) -> None:
    print(f"seed {seed}")
    setting = Odd(Random(seed))
    send_many(setting.send_odd)
    assert setting.core.statistics().dead.kept == 0


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (PlaceProfile("p1", "ann", "//b", version=2, request="r"), "not-expected"),
        (Relayed("\0", tunnel=4, number=1, closing=False, payload=b""), "bad-field"),
    ],
)
def test_what_the_registration_service_would_never_say_is_refused(frame: Frame, code: str) -> None:
    """Each has once ended a broker."""
    setting = Odd(Random(0))
    if frame.sequenced:
        setting.registration.send("registration", frame)
    else:
        setting.registration.reply(frame)
    assert setting.registration.error == code
