"""What a profile costs on a message, and profiles that may cost much.

The oracle is no clock: it counts calls of functions, which are the same in every run, and the bytes
that the process holds more than before.  Work within one call of compiled code is seen by its
memory alone.
"""

from __future__ import annotations

import sys
from inspect import CO_GENERATOR
from random import Random
from types import FrameType

from tests.fuzz.decoders import peak_bytes, peak_from_now
from yfilter import Matcher, MatchLimits
from yfilter.errors import ProfileRefused

CALLS_MAX = 2_000_000
BYTES_MAX = 64 * 1024 * 1024
LOOK_CALLS = 1_024  # between two looks at the memory
NUMBERS = (0, 1, 3, 300, 100_000)
COMPARISONS = ("=", "!=", "<", ">=")


class TooCostly(BaseException):
    """Beyond the oracle's bounds; no part of the engine may take it for an error of its own."""


class Meter:
    """Counts what goes on within it; ``calls`` may serve as a clock."""

    def __init__(self, calls_max: int = CALLS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self.calls = 0
        self.peak_bytes = 0
        self._before = 0
        self._next_look = LOOK_CALLS
        self._calls_max = calls_max
        self._bytes_max = bytes_max

    def __enter__(self) -> Meter:
        self._before = peak_from_now()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        self._look()

    def seconds(self) -> float:
        """A clock of processor time, at a hundred nanoseconds a call."""
        return self.calls * 1e-7

    def check(self) -> None:
        """TooCostly if it was."""
        if self.calls > self._calls_max or self.peak_bytes > self._bytes_max:
            raise TooCostly(f"{self.calls:,} calls, {self.peak_bytes:,} bytes")

    def _note(self, frame: FrameType, what: str, argument: object) -> None:
        if what in ("call", "c_call"):
            self.calls += 1
            # A generator that is given up by an error from outside has no one to tell of it.
            if self.calls >= self._next_look and not frame.f_code.co_flags & CO_GENERATOR:
                self._next_look = self.calls + LOOK_CALLS
                self._look()
                self.check()

    def _look(self) -> None:
        self.peak_bytes = peak_bytes() - self._before


def evaluate(profile: str, message: bytes, limits: MatchLimits, meter: Meter) -> None:
    """All that a broker would do for one profile and one message; TooCostly."""
    matcher = Matcher(limits)
    try:
        matcher.add(profile)
    except ProfileRefused:
        return
    with meter:
        for _ in matcher.deliver(message):
            pass
    meter.check()


def a_message(chance: Random) -> bytes:
    """Short, long of equal elements, or deep."""
    kind = chance.randrange(4)
    if kind == 0:
        return b"<a><v>1</v></a>"
    if kind == 1:
        return b"<a>" + b"".join(b'<v k="%d">%d</v>' % (n % 7, n) for n in range(100)) + b"</a>"
    if kind == 2:
        return b"<a>" * 40 + b"<v>x</v>" + b"</a>" * 40
    return b"<a><v>" + b"x" * 2_000 + b"</v></a>"


def a_profile(chance: Random) -> str:
    """Often one that says much in few words."""
    kind = chance.randrange(6)
    if kind < 3:
        return f"//a[{_condition(chance, 3)}]"
    if kind == 3:
        return f"for $x in //a where {_condition(chance, 3)} return <r>{{{_value(chance, 2)}}}</r>"
    if kind == 4:
        lets = "".join(f"let $y{n} := {_sequence(chance, 2)} " for n in range(chance.randrange(4)))
        return f"for $x in //a {lets}return <r>{{count({_sequence(chance, 2)})}}</r>"
    return f"for $x in //a return <r>{{{_sequence(chance, 3)}}}</r>"


def _condition(chance: Random, depth: int) -> str:
    kind = chance.randrange(6 if depth else 1)
    if kind == 0:
        return f"{_value(chance, depth)} {chance.choice(COMPARISONS)} {_value(chance, depth)}"
    if kind in (1, 2):
        variables = ("a", "b", "c")[: 1 + chance.randrange(3)]
        bound = ", ".join(f"${name} in {_sequence(chance, depth - 1)}" for name in variables)
        result = " + ".join(f"${name}" for name in variables)
        return f"({chance.choice(('some', 'every'))} {bound} satisfies {result} = -1)"
    if kind == 3:
        return f"count({_sequence(chance, depth - 1)}) > {chance.choice(NUMBERS)}"
    if kind == 4:
        return f"not({_condition(chance, depth - 1)})"
    return f"v[{_condition(chance, depth - 1)}]"


def _sequence(chance: Random, depth: int) -> str:
    kind = chance.randrange(6 if depth else 3)
    if kind == 0:
        return f"(1 to {chance.choice(NUMBERS)})"
    if kind == 1:
        return chance.choice(("v", "//v", "../a", ".//*/ancestor::*", "v/@k"))
    if kind == 2:
        return str(chance.choice(NUMBERS))
    if kind == 3:
        return f"({_sequence(chance, depth - 1)}, {_sequence(chance, depth - 1)})"
    if kind == 4:
        inner = _sequence(chance, depth - 1)
        return f"(for $i in {inner}, $j in {inner} return concat($i, $j))"
    return f"reverse({_sequence(chance, depth - 1)})"


def _value(chance: Random, depth: int) -> str:
    kind = chance.randrange(4 if depth else 2)
    if kind == 0:
        return str(chance.choice(NUMBERS))
    if kind == 1:
        return "string(.)"
    if kind == 2:
        return f"string-join((for $s in {_sequence(chance, depth - 1)} return string($s)), '-')"
    return f"concat({_value(chance, depth - 1)}, {_value(chance, depth - 1)})"
