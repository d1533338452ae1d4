"""Whatever a client asks and a broker says, the registration service goes on.

ONYX_ODD_RUNS is how many runs there are, of 60 frames each; ONYX_ODD_SEED is the first one's seed.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from overlay.link.events import TimePassed
from overlay.link.frame import Frame
from overlay.link.frame_fields import INTEGER_MAX
from overlay.link.frames import PartitionsMatched, Relayed
from overlay.topology import to_toml
from tests.odd_values import OddValues, send_many
from tests.registration.test_registration_core import DTD, FIGURE4, Setting

RUNS = int(os.environ.get("ONYX_ODD_RUNS", "40"))
FIRST = int(os.environ.get("ONYX_ODD_SEED", "0"))
NAMES = (
    *("s1", "s2", "p1", "p2", "B1", "B2", "B4", "B5", "B6", "R1", "B1@1", "B4@1"),
    *("text", "binary", "off", "report", "reject", "dtd", "news.dtd", "moved"),
)
TEXTS = (
    *("/nitf", "//a[@b = 1]", "for $n in /nitf return <r>{$n/head}</r>", to_toml(FIGURE4)),
    to_toml(FIGURE4).replace("B6", "B7"),
)
ARGUMENTS = (
    *("name", "text", "texts", "user", "users", "location", "rate", "size", "schema", "wait"),
    *("schema_name", "profile", "profiles", "source", "after", "version", "validate", "plan"),
    *("at_once", "lost", "dry_run", "key", "near", "skip_refused", "compression", "id", "down"),
)


class Odd(Setting):
    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.values = OddValues(random, NAMES, TEXTS, (b"<nitf/>", DTD, TEXTS[3].encode()))
        self.client.ask("profile.add", text="/nitf")
        self.client.ask("source.register", name="news")
        takers = self.core.takers.values()
        self.kinds = [taker.kind for taker in takers if "broker" in taker.senders]

    def send_odd(self) -> Frame | None:
        if self.random.random() < 0.05:
            self.beside.tell(TimePassed())
            return None
        if self.random.random() < 0.6:
            frame: Frame | None = self.values.request(list(self.core.verbs), ARGUMENTS)
            peer = self.client
        else:
            frame = self.values.frame(self.random.choice(self.kinds))
            peer = self.random.choice(list(self.brokers.values()))
        if frame is None or peer.closed:
            return None
        if frame.sequenced:
            peer.send("registration", frame)
        else:
            peer.reply(frame)
        return frame


@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
def test_nothing_ends_the_registration_service(seed: int) -> None:
    print(f"seed {seed}")
    setting = Odd(Random(seed))
    send_many(setting.send_odd)
    assert setting.core.statistics().dead.kept == 0


def test_what_a_broker_would_never_say_does_no_harm() -> None:
    """The first has once ended the service, the second every answer to ``plan.show``."""
    setting = Odd(Random(0))
    broker = setting.brokers["B1"]
    broker.reply(Relayed("B9", tunnel=1, number=INTEGER_MAX, closing=False, payload=b""))
    assert [frame.closing for frame in broker.all(Relayed)] == [True]
    broker.send("registration", PartitionsMatched(plan="", accepted=1, matched=[]))
    answer = setting.client.ask("plan.show")
    assert answer is not None and answer.ok
