"""Whatever well-formed frames a peer sends, the core answers or refuses; it never falls over."""

from __future__ import annotations

from random import Random
from typing import Any, get_type_hints

import pytest
from msgspec.structs import fields

from overlay.link.errors import ProtocolError
from overlay.link.frame import FRAME_TYPES, Frame
from overlay.link.frames import Attach, Hello, packed_numbers, packed_slots
from tests.onyx.broker.test_broker_core import NEWS, SF, Setting, delta, message, query

WORDS = [
    "B1", "B4", "B5", "B9", "s1", "s9", "p1", "p9", "", "registration", "text", "binary",
    "/nitf", "/a[", *query(SF), "profile.update", "profile.remove", "profile.show", "observe",
    "statistics", "dump", "profile.list", "ann|bob", "x" * 200,
]  # fmt: skip
SENDERS = [
    ("broker", "B1"), ("broker", "B5"), ("broker", "B6"), ("registration", "R1"),
    ("source", "s1"), ("source", "s2"), ("subscriber", "p1"), ("client", "c"),
]  # fmt: skip


def random_value(random: Random, hint: str, name: str) -> Any:
    if name == "payload":
        return random.choice(
            [b"", NEWS, message().payload, b"\x00" * 20, b"<a>", random.randbytes(30)]
        )
    if "Mapping" in hint or "dict" in hint:
        return {random.choice(["profile", "text", "wait"]): random.choice([*WORDS, 1, None, True])}
    if "list" in hint:
        return random.choice([[], None] if "None" in hint else [[]]) or (
            [random.choice(WORDS) for _ in range(random.randrange(3))]
            if "str" in hint or "Text" in hint
            else []
        )
    if "str" in hint:
        return random.choice([*WORDS, None] if "None" in hint else WORDS)
    if "bool" in hint:
        return random.random() < 0.5
    if "float" in hint:
        return random.choice([0.0, 1.5, 1e9])
    return random.choice([0, 1, 2, 3, 7, 10**9])


def random_frame(random: Random) -> Frame:
    kind = random.choice([cls for cls in FRAME_TYPES.values() if cls is not Hello])
    hints = get_type_hints(kind)
    values = {
        field.name: random_value(random, str(hints[field.name]), field.name)
        for field in fields(kind)
    }
    if "slots" in values:
        slots = [random.randrange(4) for _ in range(random.randrange(4))]
        values["slots"] = packed_slots(slots)
        values["numbers"] = packed_numbers([random.choice([0, 1, 2, 10**9]) for _ in slots])
    if kind is Attach:
        values["profiles"] = [
            (random.randrange(4), random.choice(["p1", "p9", ""]), random.choice([0, 1, 10**9]))
            for _ in range(random.randrange(4))
        ]
    if "lengths" in values:
        values["lengths"] = [len(values["payload"])]
    return kind(**values)


@pytest.mark.parametrize("seed", range(60))
def test_a_core_survives_any_frames(seed: int) -> None:
    random = Random(seed)
    print(f"seed {seed}")
    setting = Setting()
    if random.random() < 0.9:
        setting.announce()
        setting.announce(source="s2", root="B4")
        setting.children_ready(source="s2", root="B4")
        setting.place(SF)
        setting.brokers["B5"].send("B1", delta(SF))
    peers = {
        (role, name): setting.beside.peer(role, name)
        for role, name in SENDERS
        if role not in ("broker", "registration")
    }
    peers |= {("broker", name): peer for name, peer in setting.brokers.items()}
    peers["registration", "R1"] = setting.registration
    for _ in range(60):
        peer = peers[random.choice(SENDERS)]
        if peer.closed:
            peer.connect()
        try:
            frame = random_frame(random)
            if frame.sequenced:
                root = getattr(frame, "root", None)
                peer.send(
                    str(root) if root and random.random() < 0.7 else random.choice(WORDS), frame
                )
            else:
                peer.reply(frame)
        except (ProtocolError, ValueError):
            continue  # the peer's own link layer would not send it
    setting.restart()
    setting.brokers["B1"].send("B1", message(number=99))
    assert setting.core.statistics().broker == "B4"
