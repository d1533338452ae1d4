"""What a field of a frame may hold, read from the annotations of the frame's Struct.

A frame's fields are annotated with the types below; ``field_checks(cls)`` turns the annotations
into one function per field, which is used on both ends: before a frame is encoded and after it
was decoded.  A value that passes on one side therefore passes on the other.

=========================  ================================================
annotation                 accepted
=========================  ================================================
``int``                    0 .. 2**63 - 1 (``Bound`` narrows it); never a bool
``float``                  a finite number; an integer becomes a float
``bool``                   a bool
``str``                    UTF-8 text of at most ``Bound`` bytes
``bytes``                  bytes of at most ``Bound`` bytes
``list[X]``                at most ``Bound`` values X (tuples are taken too)
``tuple[X, Y, Z]``         a list of exactly these
``Mapping[str, object]``   a map with text keys, nested at most MAP_DEPTH_MAX deep
``X | None``               X or nil
=========================  ================================================

``Annotated[X, BODY]``     moves a field from the header (at most 64 KiB) to the frame's body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import Meta
from msgspec.structs import fields

from formats import COMPRESSION_DICTIONARY_BYTES_MAX
from overlay.link.errors import ProtocolError

INTEGER_MAX = 2**63 - 1
SEQUENCE_MAX = 2 * 10**15
"""The largest number of a frame on a channel: ten thousand a second for six thousand years."""
CLAIMED_SEQUENCE_MAX = SEQUENCE_MAX // 2
"""The largest number that a peer may claim to have: a false claim leaves room to go on."""
ACCEPTED_MAX = 253_402_300_799_999_999  # the last microsecond of the year 9999
MAP_DEPTH_MAX = 16
DEFAULT_LENGTH_MAX = 256
KEY_BYTES_MAX = 256
"""The longest name of a channel."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest integer, the most bytes of a text, the most values of a list."""

    most: int


@dataclass(frozen=True, slots=True)
class InBody:
    """Marks a field that may be long: it travels in the body, not in the header."""


BODY = InBody()

Name: TypeAlias = Annotated[str, Bound(256)]
"""An identifier: a source, profile, broker, format, verb or code."""
Detail: TypeAlias = Annotated[str, Bound(4096)]
"""A sentence for people."""
Text: TypeAlias = Annotated[str, Bound(256 * 1024)]
"""The text of a profile or of a disjunct of a routing query."""
SequenceNumber: TypeAlias = Annotated[int, Bound(CLAIMED_SEQUENCE_MAX)]
"""A position on a channel; the first frame is 1, so 0 means "nothing yet"."""
Accepted: TypeAlias = Annotated[int, Bound(ACCEPTED_MAX)]
"""When a root broker accepted a message, in microseconds of the epoch; 0: that is unknown."""
FlowNumber: TypeAlias = Annotated[int, Bound(3)]
GivenDictionaries: TypeAlias = Annotated[
    list[tuple[Name, Annotated[bytes, Bound(COMPRESSION_DICTIONARY_BYTES_MAX)]]], Bound(8), BODY
]
"""Compression dictionaries, each with the form that it is for."""
Pieces: TypeAlias = Annotated[bytes, Bound(1 << 24), BODY]
"""What was computed of a message on the way, packed (yfilter/projection/pieces.py)."""

_ELSEWHERE = frozenset({"payload", "unknown", "headers"})  # fields that the codec takes care of

Check: TypeAlias = Callable[[str, object], object]
"""(name of the field, value) -> the value as the frame holds it; raises ProtocolError."""


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """One field of a frame type: its name, where it travels, what it may hold, and whether one
    that is not there has its default."""

    name: str
    in_body: bool
    check: Check
    may_lack: bool


def header_fields(cls: type) -> dict[str, Any]:
    """The annotations of the fields in the header of a frame, by their names, in order."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.name: hints[field.name]
        for field in fields(cls)
        if field.name not in _ELSEWHERE
        and BODY not in getattr(hints[field.name], "__metadata__", ())
    }


def exact_type(hint: Any) -> Any:
    """The type by which msgspec takes some of the values that the check of this annotation takes,
    and nothing else; None where there is no such type."""
    inner, most = _inner_and_bound(hint)
    origin, arguments = get_origin(inner), get_args(inner)
    if inner is bool:
        return bool
    if inner is int:
        return Annotated[int, Meta(ge=0, le=INTEGER_MAX if most is None else int(most))]
    if inner in (str, bytes):
        length = DEFAULT_LENGTH_MAX if most is None else most
        # Characters, which have at most four bytes.
        return Annotated[inner, Meta(max_length=length // 4 if inner is str else length)]
    items = [exact_type(argument) for argument in arguments]
    if not items or None in items:
        return None
    if origin in (list, Sequence):
        some: Any = list.__class_getitem__(items[0])
        return Annotated[some, Meta(max_length=DEFAULT_LENGTH_MAX if most is None else most)]
    return tuple.__class_getitem__(tuple(items)) if origin is tuple else None


def field_checks(cls: type) -> tuple[FieldCheck, ...]:
    """The fields of a frame in order, but for ``payload``, ``unknown``, ``headers``."""
    hints = get_type_hints(cls, include_extras=True)
    checks = []
    for field in fields(cls):
        if field.name not in _ELSEWHERE:
            hint = hints[field.name]
            in_body = BODY in getattr(hint, "__metadata__", ())
            may_lack = not field.required
            checks.append(FieldCheck(field.name, in_body, _check_for(hint), may_lack))
    return tuple(checks)


def _check_for(hint: Any) -> Check:
    """The check for one annotation; a TypeError here is a mistake in a frame's declaration."""
    hint, most = _inner_and_bound(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType or NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _optional(_check_for(Annotated[inner, Bound(most)] if most is not None else inner))
    if hint is int:
        return _integer(INTEGER_MAX if most is None else most)
    if hint is str:
        return _string(DEFAULT_LENGTH_MAX if most is None else most)
    if hint is bytes:
        return _bytes(DEFAULT_LENGTH_MAX if most is None else most)
    if hint is bool:
        return _boolean
    if hint is float:
        return _float
    if origin in (list, Sequence):
        return _list(_check_for(arguments[0]), DEFAULT_LENGTH_MAX if most is None else most)
    if origin is tuple:
        return _tuple([_check_for(argument) for argument in arguments])
    if origin is Mapping:
        return _map
    raise TypeError(f"no check for a field annotated {hint!r}")


def _inner_and_bound(hint: Any) -> tuple[Any, int | None]:
    if get_origin(hint) is not Annotated:
        return hint, None
    inner, *marks = get_args(hint)
    return inner, next((mark.most for mark in marks if isinstance(mark, Bound)), None)


def _bad(name: str, value: object, expected: str) -> ProtocolError:
    return ProtocolError(
        "bad-field", f"field {name!r} is {type(value).__name__}; expected {expected}"
    )


def _optional(check: Check) -> Check:
    def optional(name: str, value: object) -> object:
        return None if value is None else check(name, value)

    return optional


def _integer(most: int) -> Check:
    def integer(name: str, value: object) -> object:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _bad(name, value, "an integer")
        if not 0 <= value <= most:
            raise ProtocolError("bad-field", f"field {name!r} is {value}; expected 0 to {most}")
        return int(value)

    return integer


def _float(name: str, value: object) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _bad(name, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ProtocolError("bad-field", f"field {name!r} is not a finite number")
    return number


def _boolean(name: str, value: object) -> object:
    if not isinstance(value, bool):
        raise _bad(name, value, "a bool")
    return value


def _string(most: int) -> Check:
    def string(name: str, value: object) -> object:
        if not isinstance(value, str):
            raise _bad(name, value, "text")
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            raise ProtocolError("bad-field", f"field {name!r} is not valid Unicode") from None
        if length > most:
            raise _too_long(name, length, most, "bytes")
        return value

    return string


def _bytes(most: int) -> Check:
    def octets(name: str, value: object) -> object:
        if not isinstance(value, bytes):
            raise _bad(name, value, "bytes")
        if len(value) > most:
            raise _too_long(name, len(value), most, "bytes")
        return value

    return octets


def _list(check: Check, most: int) -> Check:
    def values(name: str, value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _bad(name, value, "a list")
        if len(value) > most:
            raise _too_long(name, len(value), most, "values")
        return [check(name, item) for item in value]

    return values


def _tuple(checks: list[Check]) -> Check:
    def record(name: str, value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _bad(name, value, f"a list of {len(checks)}")
        if len(value) != len(checks):
            raise ProtocolError(
                "bad-field", f"field {name!r} has {len(value)} values; expected {len(checks)}"
            )
        return tuple(check(name, item) for check, item in zip(checks, value, strict=True))

    return record


def _map(name: str, value: object) -> object:
    if not isinstance(value, dict):
        raise _bad(name, value, "a map")
    _check_nested(name, value, MAP_DEPTH_MAX)
    return value


def _check_nested(name: str, value: object, depth: int) -> None:
    """A value inside a map: only what every MessagePack library can represent."""
    if depth == 0:
        raise ProtocolError(
            "too-long", f"field {name!r} is nested deeper than {MAP_DEPTH_MAX} levels"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _bad(name, key, "text keys")
            _check_nested(name, item, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_nested(name, item, depth - 1)
    elif isinstance(value, int) and not -(2**63) <= value <= INTEGER_MAX:
        raise ProtocolError("bad-field", f"field {name!r} holds an integer beyond 64 bits")
    elif value is not None and not isinstance(value, bool | int | float | str | bytes):
        raise _bad(name, value, "nil, a bool, a number, text, bytes, a list or a map")


def _too_long(name: str, length: int, most: int, unit: str) -> ProtocolError:
    return ProtocolError("too-long", f"field {name!r} has {length} {unit}; at most {most}")
