"""The types of which the fields of frames are made, and the checks that msgspec cannot say.

The annotations of a frame are its whole validation, on both ends: before a frame is encoded and
after it was decoded.  A value that passes on one side therefore passes on the other.  Two things
are said beside ``Meta``:

- ``max_length`` of a text counts bytes of UTF-8; msgspec counts characters, which are never more,
  and ``closer_look`` counts the bytes.
- A ``Mapping[str, object]`` has text keys at every level, is nested at most MAP_DEPTH_MAX deep, and
  holds what every MessagePack library can represent.

``Annotated[X, BODY]`` moves a field from the header (at most 64 KiB) to the frame's body.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from msgspec import Meta, ValidationError

from formats import COMPRESSION_DICTIONARY_BYTES_MAX
from overlay.link.errors import ProtocolError
from overlay.unfit import in_words, unfit

INTEGER_MAX = 2**63 - 1
SEQUENCE_MAX = 2 * 10**15
"""The largest number of a frame on a channel: ten thousand a second for six thousand years."""
CLAIMED_SEQUENCE_MAX = SEQUENCE_MAX // 2
"""The largest number that a peer may claim to have: a false claim leaves room to go on."""
ACCEPTED_MAX = 253_402_300_799_999_999  # the last microsecond of the year 9999
MAP_DEPTH_MAX = 16
NAME_BYTES_MAX = 256
"""The longest name, and the longest name of a channel; no text has a lower bound."""


@dataclass(frozen=True, slots=True)
class InBody:
    """Marks a field that may be long: it travels in the body, not in the header."""


BODY = InBody()

Whole: TypeAlias = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Finite: TypeAlias = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_BYTES_MAX)]
"""An identifier: a source, profile, broker, format, verb or code."""
Detail: TypeAlias = Annotated[str, Meta(max_length=4096)]
"""A sentence for people."""
Text: TypeAlias = Annotated[str, Meta(max_length=256 * 1024)]
"""The text of a profile or of a disjunct of a routing query."""
Place: TypeAlias = Annotated[int, Meta(ge=1, le=SEQUENCE_MAX)]
"""The number that a frame has on its channel."""
SequenceNumber: TypeAlias = Annotated[int, Meta(ge=0, le=CLAIMED_SEQUENCE_MAX)]
"""A position on a channel; the first frame is 1, so 0 means "nothing yet"."""
Accepted: TypeAlias = Annotated[int, Meta(ge=0, le=ACCEPTED_MAX)]
"""When a root broker accepted a message, in microseconds of the epoch; 0: that is unknown."""
FlowNumber: TypeAlias = Annotated[int, Meta(ge=0, le=3)]
GivenDictionaries: TypeAlias = Annotated[
    list[tuple[Name, Annotated[bytes, Meta(max_length=COMPRESSION_DICTIONARY_BYTES_MAX)]]],
    Meta(max_length=8),
    BODY,
]
"""Compression dictionaries, each with the form that it is for."""
Pieces: TypeAlias = Annotated[bytes, Meta(max_length=1 << 24), BODY]
"""What was computed of a message on the way, packed (yfilter/projection/parts.py)."""

Look: TypeAlias = Callable[[str, Any], None]
"""Takes the name of a field and its value; raises ProtocolError."""


def closer_look(hint: Any) -> Look | None:
    """The check of a value that msgspec has taken for this annotation; None where none is left."""
    inner, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    arguments = get_args(inner)
    if inner is str:
        return next(_look_at_text(m.max_length) for m in marks if isinstance(m, Meta))
    if get_origin(inner) is Mapping:
        return lambda name, value: _look_nested(name, value, MAP_DEPTH_MAX)
    if get_origin(inner) is tuple:
        looks = [
            (place, look) for place, each in enumerate(arguments) if (look := closer_look(each))
        ]
        return _look_at_each(looks) if looks else None
    if NoneType in arguments:
        (look,) = (closer_look(each) for each in arguments if each is not NoneType)
        return look and (lambda name, value: None if value is None else look(name, value))
    if get_origin(inner) in (list, Sequence) and (item := closer_look(arguments[0])):
        return _look_at_all(item)
    return None


def _look_at_text(most: int | None) -> Look:
    def look(name: str, value: str) -> None:
        if value.isascii():
            return
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            raise ProtocolError("bad-field", f"field {name!r} is not valid Unicode") from None
        if most is not None and length > most:
            raise ProtocolError("too-long", f"field {name!r} has {length} bytes; at most {most}")

    return look


def _look_at_each(looks: list[tuple[int, Look]]) -> Look:
    def look(name: str, value: Sequence[object]) -> None:
        for place, each in looks:
            each(name, value[place])

    return look


def _look_at_all(item: Look) -> Look:
    def look(name: str, value: Sequence[object]) -> None:
        for each in value:
            item(name, each)

    return look


def _look_nested(name: str, value: object, depth: int) -> None:
    if depth == 0:
        raise ProtocolError(
            "too-long", f"field {name!r} is nested deeper than {MAP_DEPTH_MAX} levels"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _holds(name, key, "text keys")
            _look_nested(name, item, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _look_nested(name, item, depth - 1)
    elif isinstance(value, int) and not -(2**63) <= value <= INTEGER_MAX:
        raise ProtocolError("bad-field", f"field {name!r} holds an integer beyond 64 bits")
    elif value is not None and not isinstance(value, bool | int | float | str | bytes):
        raise _holds(name, value, "nil, a bool, a number, text, bytes, a list or a map")


def _holds(name: str, value: object, expected: str) -> ProtocolError:
    return ProtocolError(
        "bad-field", f"field {name!r} holds {type(value).__name__}; expected {expected}"
    )


def refusal(kind: Any, error: ValidationError, given: Mapping[str, Any]) -> ProtocolError:
    """The refusal of the fields of a record ``kind`` as a peer is told."""
    fault = in_words(kind, error, given)
    code = fault.code
    if code == "bad-argument":
        code = "bad-field" if unfit(error, given).why else "missing-field"
    return ProtocolError(code, f"field {fault.reason}")
