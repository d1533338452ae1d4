"""Frames to bytes and back, strictly.

::

    0        4           6                    6+h                        4+length
    +--------+-----------+--------------------+--------------------------+
    | length | header h  | header             | body (if the type has    |
    | u32 BE | u16 BE    | MessagePack map    | such fields) and payload |
    +--------+-----------+--------------------+--------------------------+

``length`` counts what follows it.  The header holds ``t`` (the frame's type), for sequenced
frames ``k`` (channel key) and ``n`` (sequence), and the frame's short fields.  The body is a
second MessagePack map with the fields marked BODY; what is left is the payload.

Strict: the fields of the type, each of its type and within its bound, no key twice, no byte left
over.  A field that a later release has added is passed over, and goes on with a message (its
``unknown``); one that an earlier release does not have is at its default.  A violation is a
ProtocolError.  It is fatal if the frame was, or may have been,
sequenced as far as the header can be read: a receiver must not leave out a frame of a channel
silently.  A frame whose header cannot be read at all is not fatal: if it was sequenced, the next
one on its channel leaves a gap, which is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, cast

import msgpack
import msgspec
from msgspec.structs import fields

import overlay.link.frames  # noqa: F401 - its frames are known to the codec from here on
from overlay.link.carried_message import CarriedMessage
from overlay.link.errors import ProtocolError
from overlay.link.frame import (
    FRAME_TYPES,
    OLDEST_VERSION,
    PROTOCOL_VERSION,
    Frame,
    check_lengths,
)
from overlay.link.frame_fields import (
    KEY_BYTES_MAX,
    SEQUENCE_MAX,
    FieldCheck,
    exact_type,
    field_checks,
    header_fields,
)
from overlay.link.frames import Deliveries, Hello, packed_numbers, packed_slots
from overlay.link.message_headers import checked_headers

# -------------------------------------------------------------------------------------------------
# Headers of frames read by msgspec, where they are just as this release writes them.
#
# What is taken here passes the checks of ``frame_fields`` too, and gives the same values.
# Everything else is left to those, which know what may lack, what a later release has added, and
# how to say what is wrong: a key that is there twice among them, as then another one lacks or there
# are more keys than fields.


_FIXMAP, _FIXMAP_MOST = 0x80, 15
_PLACE = {
    "k": Annotated[str, msgspec.Meta(max_length=KEY_BYTES_MAX // 4)],
    "n": Annotated[int, msgspec.Meta(ge=1, le=SEQUENCE_MAX)],
}
NOT_EXACT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class ExactHeader:
    """How to take a header of one type of frame: ``first`` is the byte with which a map of just so
    many keys begins, ``values`` takes the fields' values in the order of the frame."""

    cls: type[Frame]
    first: int
    is_sequenced: bool
    values: Callable[[Any], tuple[Any, ...]]


class ExactHeaders:
    """``decode`` bytes, and look up in ``kinds`` how to take what comes of it, by its type; it is
    the header only if the bytes begin with ``first``.  Decoding raises ``NOT_EXACT``."""

    def __init__(self, types: Mapping[str, type[Frame]]) -> None:
        self.kinds: dict[type, ExactHeader] = {}
        for name, cls in types.items():
            self._add(name, cls)
        self.decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(_union(self.kinds)).decode

    def _add(self, name: str, cls: type[Frame]) -> None:
        hints = header_fields(cls)
        exact = {field: exact_type(hint) for field, hint in hints.items()}
        if None in exact.values():
            return
        place = _PLACE if cls.sequenced else {}
        struct = msgspec.defstruct(
            cls.__name__,
            [*place.items(), *exact.items()],
            tag_field="t",
            tag=name,
            frozen=True,
            forbid_unknown_fields=True,
            gc=False,
        )
        count = 1 + len(place) + len(exact)
        assert count <= _FIXMAP_MOST
        self.kinds[struct] = ExactHeader(cls, _FIXMAP + count, cls.sequenced, _values(tuple(exact)))


def _union(kinds: Mapping[type, ExactHeader]) -> Any:
    union: Any = None
    for struct in kinds:
        union = struct if union is None else union | struct
    return union


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda read: (one(read),)
    return attrgetter(*names) if names else lambda _: ()


# -------------------------------------------------------------------------------------------------


LENGTH_BYTES = 4
HEADER_BYTES_MAX = 65_535

_BIN8_MOST = 255
_pack = msgpack.Packer().pack
_PLAIN = frozenset((str, int, bytes, bool, float, type(None)))
_KEPT_BYTES_MAX = 64 * 1024  # an unpacker that is used again keeps as much memory as it once took


class Envelope(NamedTuple):
    """A decoded frame with its place on a channel; key "" and sequence 0 if unsequenced."""

    frame: Frame
    key: str = ""
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class _Layout:
    """How one frame type is laid out."""

    cls: type[Frame]
    header: tuple[FieldCheck, ...]
    body: tuple[FieldCheck, ...]
    usual_body: bytes  # where all its fields are at their defaults
    in_front: tuple[str, ...]  # fields of the header, and the payload
    is_in_order: bool  # the fields of the body are behind them
    payload_place: int  # in front; -1: it has none
    keeps_unknown: bool
    is_checked: bool  # beyond its single fields
    has_headers: bool


def encode(frame: Frame, key: str = "", sequence: int = 0) -> bytes:
    """The frame as bytes, length prefix included.

    ``key`` and ``sequence`` (from 1) belong to sequenced frames only.  Raises ProtocolError if a
    field does not hold what its type says: nothing leaves that a peer would have to refuse.
    """
    layout = _layout_of(type(frame))
    header: dict[str, object] = {"t": frame.type}
    if frame.sequenced:
        _check_place(key, sequence)
        header["k"] = key
        header["n"] = sequence
    elif key or sequence:
        raise ValueError(f"a {frame.type} frame is not sequenced")
    for field in layout.header:
        header[field.name] = field.check(field.name, getattr(frame, field.name))
    if layout.keeps_unknown:
        header |= cast(CarriedMessage, frame).unknown or {}
    if layout.has_headers and (headers := cast(CarriedMessage, frame).headers):
        header["headers"] = checked_headers(headers)
    packed = _pack(header)
    if len(packed) > HEADER_BYTES_MAX:
        raise ProtocolError(
            "too-long", f"header of {len(packed)} bytes; at most {HEADER_BYTES_MAX}"
        )
    body = b""
    if layout.body:
        body = _pack({f.name: f.check(f.name, getattr(frame, f.name)) for f in layout.body})
    if layout.is_checked:
        frame.check()
    payload = cast(bytes, getattr(frame, "payload", b""))
    length = 2 + len(packed) + len(body) + len(payload)
    if length >= 1 << 32:
        raise ProtocolError("too-long", f"frame of {length} bytes")
    return b"".join(
        (length.to_bytes(4, "big"), len(packed).to_bytes(2, "big"), packed, body, payload)
    )


class ResultsEncoder:
    """The frame ``deliveries`` of one result for many connections: only slots and numbers differ,
    so what comes before and behind them is written once, to the byte as ``encode`` writes it.

    ProtocolError when the frame would not hold what its type says.
    """

    __slots__ = ("_before", "_of", "_payload")

    def __init__(self, source: str, number: int, lengths: list[int], payload: bytes) -> None:
        self._of = source, number, lengths
        self._payload = payload
        check_lengths(lengths, payload)
        header = _pack({"t": Deliveries.type} | _checked(_DELIVERIES.header, (source, number)))
        given = _pack(lengths)
        self._before = b"%b%b\x83\xa7lengths%b" % (len(header).to_bytes(2, "big"), header, given)

    def frame(self, slots: list[int], numbers: list[int]) -> bytes:
        """For the profiles in these slots, with the number of the delivery in each."""
        packed = packed_slots(slots), packed_numbers(numbers)
        if len(packed[1]) > _BIN8_MOST:
            return encode(Deliveries(*self._of, *packed, self._payload))
        columns = b"\xa5slots\xc4%c%b\xa7numbers\xc4%c%b" % (
            *(len(packed[0]), packed[0]),
            *(len(packed[1]), packed[1]),
        )
        length = len(self._before) + len(columns) + len(self._payload)
        return b"".join((length.to_bytes(4, "big"), self._before, columns, self._payload))


def decode(data: bytes) -> Envelope:
    """One frame without its length prefix.  Raises ProtocolError, see the module's text."""
    header_bytes = int.from_bytes(data[:2], "big")
    start = 2 + header_bytes
    if len(data) < 2 or start > len(data):
        raise ProtocolError("malformed", f"{len(data)} bytes do not hold the header they announce")
    try:
        exact = _exact.decode(data[2:start])
    except NOT_EXACT:
        exact = None
    kind = _exact.kinds.get(type(exact))
    if kind is not None and data[2] == kind.first:
        try:
            return _decode_exact(kind, exact, data, start)
        except ProtocolError as error:
            error.fatal = error.fatal or kind.is_sequenced
            raise
    header = _unpack_map(data[2:start], "header")
    name = header.pop("t", None)
    layout = _LAYOUTS.get(name) if isinstance(name, str) else None
    try:
        if layout is None:
            shown = repr(name)[:80]
            raise ProtocolError("unknown-frame", f"no frame has the type {shown}")
        return _decode_known(layout, header, data, start)
    except ProtocolError as error:
        error.fatal = error.fatal or "n" in header or (layout is not None and layout.cls.sequenced)
        raise


class FrameDecoder:
    """Cuts received bytes into frames; keeps at most one frame and what was not taken out.

    ``frame_bytes_max`` may be raised between frames (after the peer's hello).
    """

    __slots__ = ("_buffer", "_start", "frame_bytes_max", "unfinished")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.unfinished = 0  # bytes of a frame that is not all there
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The next whole frame without its length, None if it is not all there yet.

        Raises a fatal ProtocolError if it is announced longer than allowed: from there on the
        bytes cannot be cut into frames any more.
        """
        buffer, begin = self._buffer, self._start
        left = len(buffer) - begin
        if left >= LENGTH_BYTES:
            start = begin + LENGTH_BYTES
            length = int.from_bytes(buffer[begin:start], "big")
            if length > self.frame_bytes_max:
                raise ProtocolError(
                    "too-long",
                    f"frame of {length} bytes announced; at most {self.frame_bytes_max}",
                    fatal=True,
                )
            if left >= LENGTH_BYTES + length:
                self._start = start + length
                self.unfinished = 0
                return bytes(buffer[start : start + length])
        if begin:  # whoever is silent from here on takes no memory for what was long
            del buffer[:begin]
            self._start = 0
        self.unfinished = left
        return None

    def put_back(self, frame: bytes) -> None:
        """The last one that was taken out is the next one again."""
        self._start -= LENGTH_BYTES + len(frame)

    @property
    def buffered_bytes(self) -> int:
        """Bytes kept that are not a whole frame yet (or not taken out)."""
        return len(self._buffer) - self._start


def _decode_exact(kind: ExactHeader, header: Any, data: bytes, start: int) -> Envelope:
    """As ``_decode_known``, of a header that needs no other look."""
    # PERF: half the time of most frames (python -m benchmarks frames).
    cls: Any = kind.cls
    values = kind.values(header)
    layout = _LAYOUTS[cls.type]
    body: dict[str, Any] = {}
    if not layout.body:
        rest = data[start:]
    elif layout.usual_body and data.startswith(layout.usual_body, start):
        rest = data[start + len(layout.usual_body) :]
    else:
        given, rest = _unpack_body(data[start:])
        body = _take_fields(layout.body, given)
    place = layout.payload_place
    if place >= 0:
        values = (*values[:place], rest, *values[place:])
    elif rest:
        raise ProtocolError("malformed", f"{len(rest)} bytes after a {cls.type}")
    if layout.is_in_order:
        frame = cls(*values, **body)
    else:
        frame = cls(**dict(zip(layout.in_front, values, strict=True)), **body)
    if layout.is_checked:
        frame.check()
    return Envelope(frame, header.k, header.n) if kind.is_sequenced else Envelope(frame)


def _checked(checks: tuple[FieldCheck, ...], values: tuple[object, ...]) -> dict[str, object]:
    return {
        field.name: field.check(field.name, value)
        for field, value in zip(checks, values, strict=True)
    }


def _decode_known(layout: _Layout, header: dict[str, object], data: bytes, start: int) -> Envelope:
    if layout.cls is Hello:
        _check_version(header)
    key, sequence = "", 0
    if layout.cls.sequenced:
        if "k" not in header or "n" not in header:
            raise ProtocolError("missing-field", "a sequenced frame without 'k' or 'n'")
        # Checked here, taken out after the fields: "n" in the header makes an error fatal.
        key, sequence = _check_place(header["k"], header["n"])
    elif "n" in header:
        raise ProtocolError("bad-field", f"a {layout.cls.type} has no place on a channel ('n')")
    headers = header.pop("headers", None) if layout.has_headers else None
    values = _take_fields(layout.header, header)
    if layout.keeps_unknown and len(header) > len(values) + 2:
        known = values.keys() | {"k", "n"}
        values["unknown"] = {name: header[name] for name in header if name not in known}
    if headers is not None:
        values["headers"] = checked_headers(headers)
    rest = data[start:]
    if layout.body:
        body, rest = _unpack_body(rest)
        values |= _take_fields(layout.body, body)
    if layout.payload_place >= 0:
        values["payload"] = rest
    elif rest:
        raise ProtocolError("malformed", f"{len(rest)} bytes after a {layout.cls.type}")
    frame = layout.cls(**values)
    frame.check()
    return Envelope(frame, key, sequence)


def _take_fields(checks: tuple[FieldCheck, ...], given: dict[str, object]) -> dict[str, Any]:
    """The values of these fields; others may be there, of a later release."""
    values: dict[str, Any] = {}
    for field in checks:
        if field.name in given:
            values[field.name] = field.check(field.name, given[field.name])
        elif not field.may_lack:
            raise ProtocolError("missing-field", f"field {field.name!r} is not there")
    return values


def _check_place(key: object, sequence: object) -> tuple[str, int]:
    if not isinstance(key, str) or len(key.encode(errors="replace")) > KEY_BYTES_MAX:
        raise ProtocolError("bad-field", f"'k' is not text of at most {KEY_BYTES_MAX} bytes")
    if not isinstance(sequence, int) or isinstance(sequence, bool):
        raise ProtocolError("bad-field", "'n' is not an integer")
    if not 1 <= sequence <= SEQUENCE_MAX:
        raise ProtocolError("bad-field", f"'n' is {sequence}; expected 1 to {SEQUENCE_MAX}")
    return key, sequence


def _check_version(header: dict[str, object]) -> None:
    """Before the fields: a version that is not spoken here may well have others."""
    newest = header.get("version")
    oldest = header.get("oldest", newest)
    if not isinstance(newest, int) or not isinstance(oldest, int):
        return  # which is said of the field
    if oldest > PROTOCOL_VERSION or newest < OLDEST_VERSION:
        there = f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
        raise ProtocolError(
            "unsupported-version",
            f"{there} of the protocol there, {OLDEST_VERSION} to {PROTOCOL_VERSION} here: one of "
            "the two releases is too old for the other",
            fatal=True,
        )


def _unpack_map(data: bytes, where: str) -> dict[str, object]:
    plain = _unpack_plain(data)
    if plain is not None and not plain[1]:
        return plain[0]
    try:
        value = msgpack.unpackb(data, object_pairs_hook=_distinct, strict_map_key=True)
    except ProtocolError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ProtocolError("malformed", f"{where} is not MessagePack: {error}"[:200]) from None
    if not isinstance(value, dict):
        raise ProtocolError("malformed", f"{where} is not a map")
    return value


def _unpack_body(rest: bytes) -> tuple[dict[str, object], bytes]:
    """The body map in the beginning, and the payload."""
    plain = _unpack_plain(rest)
    if plain is not None:
        return plain
    unpacker = msgpack.Unpacker(
        object_pairs_hook=_distinct, strict_map_key=True, max_buffer_size=max(len(rest), 1)
    )
    unpacker.feed(rest)
    try:
        value = unpacker.unpack()
    except ProtocolError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ProtocolError("malformed", f"body is not MessagePack: {error}"[:200]) from None
    if not isinstance(value, dict):
        raise ProtocolError("malformed", "body is not a map")
    return value, rest[unpacker.tell() :]


def _unpack_plain(data: bytes) -> tuple[dict[str, object], bytes] | None:
    """A short map that holds no other one, and what follows it; None where a closer look is
    needed."""
    # PERF: a hook in Python for each map is most of what a short frame costs.
    count = data[0] - _FIXMAP if data else -1
    if not 0 <= count <= _FIXMAP_MOST:
        return None
    try:
        value, rest = _first.of(data)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None
    for key, item in value.items():
        is_plain = type(item) in _PLAIN or (
            type(item) is list and _PLAIN.issuperset(map(type, item))
        )
        if type(key) is not str or not is_plain:
            return None
    return (value, rest) if len(value) == count else None


class _First:
    """The first value of some bytes, and what follows it."""

    # PERF: an unpacker for each, or an exception with a copy of what follows, takes twice as long.

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(strict_map_key=True)

    def of(self, data: bytes) -> tuple[Any, bytes]:
        if len(data) > _KEPT_BYTES_MAX:
            try:
                return msgpack.unpackb(data, strict_map_key=True), b""
            except msgpack.ExtraData as more:
                return more.unpacked, more.extra
        unpacker = self._unpacker
        try:
            unpacker.feed(data)
            return unpacker.unpack(), unpacker.read_bytes(len(data))
        except BaseException:
            self._unpacker = msgpack.Unpacker(strict_map_key=True)  # that one is of no use any more
            raise


def _distinct(pairs: list[tuple[object, object]]) -> dict[str, object]:
    """A map without a key twice and with text keys only."""
    result: dict[str, object] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise ProtocolError("malformed", "a map with a key that is not text")
        if key in result:
            raise ProtocolError("malformed", f"the key {key[:80]!r} twice in one map")
        result[key] = value
    return result


_first = _First()


def _lay_out(cls: type[Frame]) -> _Layout:
    checks = field_checks(cls)
    body = tuple(check for check in checks if check.in_body)
    in_body = {check.name for check in body}
    aside = ("unknown", "headers")
    all_names = [field.name for field in fields(cls) if field.name not in aside]
    names = [name for name in all_names if name not in in_body]
    defaults = {field.name: field.default for field in fields(cls) if field.name in in_body}
    return _Layout(
        cls=cls,
        header=tuple(check for check in checks if not check.in_body),
        body=body,
        usual_body=b"" if msgspec.NODEFAULT in defaults.values() else _pack(defaults),
        in_front=tuple(names),
        is_in_order=all_names[: len(names)] == names,
        payload_place=names.index("payload") if "payload" in names else -1,
        keeps_unknown=issubclass(cls, CarriedMessage),
        is_checked=cls.check is not Frame.check,
        has_headers="headers" in cls.__struct_fields__,
    )


def _layout_of(cls: type[Frame]) -> _Layout:
    layout = _LAYOUTS.get(cls.type)
    if layout is None or layout.cls is not cls:
        raise ValueError(f"{cls.__name__} is not a frame of the protocol")
    return layout


_LAYOUTS = {name: _lay_out(cls) for name, cls in FRAME_TYPES.items()}
_DELIVERIES = _LAYOUTS[Deliveries.type]
_exact = ExactHeaders({name: cls for name, cls in FRAME_TYPES.items() if cls is not Hello})
