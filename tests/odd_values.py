"""Frames and arguments that are well typed and odd: what a peer that means harm may send.

Each is made from the annotations of its frame, with names and texts that mean something to the core
more often than not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta
from msgspec.structs import fields

from overlay.link.errors import ProtocolError
from overlay.link.frame import Frame
from overlay.link.frame_codec import encode
from overlay.link.frame_fields import INTEGER_MAX
from overlay.link.frames import Request, packed_numbers, packed_slots

FRAMES = 60  # of one run
TRIES = 50  # until a frame is one that its own checks let pass


class OddValues:
    """``names``, ``texts`` and ``payloads`` beside those that mean nothing to anybody."""

    def __init__(
        self,
        random: Random,
        names: Sequence[str],
        texts: Sequence[str],
        payloads: Sequence[bytes],
    ) -> None:
        self.random = random
        self.names = (
            *names,
            *names,
            *names,
            "",
            "|",
            "@",
            "B1@0",
            "B1@x",
            "é" * 128,
            "\0",
            "-1",
            "p99",
            "a/b",
        )
        self.texts = (
            *texts,
            *texts,
            "",
            "\0",
            "(" * 5_000,
            "9" * 5_001,
            "/a[",
            "{}",
            "[]",
            "é" * 1_000,
        )
        self.payloads = (*payloads, *payloads, b"", b"\0", b"\xff" * 9, b"\x80", b"\xc1")

    def frame(self, kind: type[Frame]) -> Frame | None:
        """None when no odd one is let pass."""
        hints = get_type_hints(kind, include_extras=True)
        for _ in range(TRIES):
            values = {each.name: self._field(each.name, hints[each.name]) for each in fields(kind)}
            frame = kind(**values)
            try:
                encode(frame, *(("k", 1) if kind.sequenced else ()))
            except ProtocolError:
                continue
            return frame
        return None

    def request(self, verbs: Sequence[str], arguments: Sequence[str]) -> Request:
        """One of the verbs; what it is about, half of the time of the right type."""
        said = {self.random.choice(arguments): self.argument() for _ in range(5)}
        if self.random.random() < 0.6:
            said |= {name: self.random.choice(self.names) for name in ("profile", "source", "link")}
            said |= {"text": self.random.choice(self.texts), "format": "text"}
            said |= {"message": self.random.choice(self.payloads), "root": said["source"]}
        if self.random.random() < 0.3:
            said["texts"] = [self.random.choice(self.texts) for _ in range(2)]
            said["profiles"] = [self.random.choice(self.names) for _ in range(2)]
        name = self.random.choice(["q1", "q2", "é" * 100, ""])
        return Request(name, self.random.choice(verbs), said)

    def argument(self, depth: int = 2) -> object:
        """Whatever a request may say."""
        choose = self.random.randrange(9 if depth else 6)
        if choose == 0:
            return self.random.choice([None, True, False])
        if choose == 1:
            return self.integer(INTEGER_MAX) * self.random.choice([1, 1, -1])
        if choose == 2:
            return self.random.choice([0.0, -0.5, 1e300, float("inf"), float("nan"), 12.5])
        if choose == 3:
            return self.random.choice(self.payloads)
        if choose in (4, 5):
            return self.random.choice([self.random.choice(self.names), *self.texts])
        if choose == 6:
            return {self.random.choice(self.names): self.argument(depth - 1) for _ in range(2)}
        return [self.argument(depth - 1) for _ in range(self.random.randrange(4))]

    def integer(self, most: int) -> int:
        small = self.random.randrange(5)
        return min(most, self.random.choice([0, 1, 2, 3, small, most, most - 1, most // 2, 2**32]))

    def _field(self, name: str, hint: Any) -> Any:
        if name == "payload":
            return self.random.choice(self.payloads)
        if name in ("slots", "numbers") and bytes in get_args(hint)[:1]:
            numbers = [self.integer(2**40) for _ in range(2)]
            slots = [number % 2**32 for number in numbers]
            return packed_slots(slots) if name == "slots" else packed_numbers(numbers)
        return self._value(hint)

    def _value(self, hint: Any) -> Any:
        most: Any = None
        if get_origin(hint) is Annotated:
            hint, *marks = get_args(hint)
            bound: Any = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
            most = bound.le if hint is int else bound.max_length
        origin, arguments = get_origin(hint), get_args(hint)
        if NoneType in arguments:
            inner = next(each for each in arguments if each is not NoneType)
            return self.random.choice([None, self._value(inner)])
        if origin is Literal:
            return self.random.choice([*arguments, self.random.choice(self.names)])
        if hint is int:
            return self.integer(most)
        if hint is float:
            return self.random.choice([0.0, -1.0, 1.0, 1e308, 1e-308, 90.0])
        if hint is bool:
            return self.random.random() < 0.5
        if hint is str:
            known = self.names if most is None or most <= 256 else self.texts
            return self.random.choice(known)
        if hint is bytes:
            return self.random.choice(self.payloads)
        if origin is tuple:
            return tuple(self._value(each) for each in arguments)
        if origin is Mapping:
            return {self.random.choice(self.names): self.argument() for _ in range(3)}
        assert origin in (list, Sequence), hint
        return [self._value(arguments[0]) for _ in range(self.random.randrange(4))]


def send_many(send_odd: Callable[[], Frame | None]) -> None:
    """Send odd frames to one core, and print each; one at which it falls over is the next after
    the last that was printed."""
    for _ in range(FRAMES):
        try:
            print(repr(send_odd())[:500])
        except ProtocolError as refusal:
            print(f"not sent: {refusal}")
