"""Whatever a client asks, the registration service answers; it never falls over."""

from __future__ import annotations

from random import Random

import pytest

from overlay.link.frames import Request
from tests.registration.test_registration_core import DTD, Setting

VERBS = [
    "source.register", "source.show", "source.list", "profile.add", "profile.show",
    "profile.list", "profile.await", "network", "statistics", "x" * 256, "",
]  # fmt: skip
KEYS = [
    "name", "text", "user", "location", "rate", "size", "schema", "schema_name", "wait",
    "profile", "source", "after", "version", "validate",
]  # fmt: skip
VALUES: list[object] = [
    None, True, -1, 0, 1, 2.5, 1e300, 2**63 - 1, "", "s1", "p1", "é" * 256, "\U0001f600" * 256,
    "|", "a/b", "\0", "/a", "/a[@b = 'é']", "/a[", "é" * 65_536, [1.0, 2.0], [1, 2, 3], ["x", "y"],
    {"a": 1}, DTD, b"", b"\xff" * 50, "news.dtd", "news.xsd", "off", "reject",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_every_request_is_answered_or_waits(seed: int) -> None:
    random = Random(seed)
    print(f"seed {seed}")
    setting = Setting()
    for number in range(100):
        keys = random.sample(KEYS, random.randrange(6))
        arguments = {key: random.choice(VALUES) for key in keys}
        request = random.choice([f"h{number}", "é" * 100, ""])
        setting.client.reply(Request(request, random.choice(VERBS), arguments))
        assert not setting.client.closed
    setting.restart()
    answer = setting.client.ask("statistics")
    assert answer is not None and answer.ok


def test_a_name_that_a_frame_cannot_carry_is_refused() -> None:
    setting = Setting()
    for verb, argument in (("source.register", "name"), ("profile.add", "user")):
        answer = setting.client.ask(verb, **{argument: "é" * 200, "text": "/a"})
        assert answer is not None and answer.result["code"] == "too-long"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"a = {'1' * 5_001}", "Exceeds the limit"),
        ("a" + ".a" * 100_000 + " = 1", "line 1: more than 3 names with dots"),
        ("a = {b = 1, " + "a." * 100_000 + "a = 1}", "line 1: more than 3 names with dots"),
        ("x = 1\n[" + '"a" . ' * 100_000 + "a]", "line 2: more than 3 names with dots"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a.b.c = 1\n" * 100_001, "more than 100000 lines"),
    ],
)
def test_a_topology_that_is_made_to_hurt_is_refused(text: str, why: str) -> None:
    """Five requests with the first of them were once the end of a network; with the third the
    service answered nobody for 14 s."""
    setting = Setting()
    answer = setting.client.ask("topology.apply", text=text)
    assert answer is not None and answer.result["code"] == "topology-refused"
    assert why in answer.result["message"]
