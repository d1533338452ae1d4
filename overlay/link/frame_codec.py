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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from struct import Struct
from typing import Any, NamedTuple, cast, get_type_hints

import msgpack
import msgspec
from msgspec.structs import asdict, fields

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
    BODY,
    CLAIMED_SEQUENCE_MAX,
    NAME_BYTES_MAX,
    Name,
    Place,
    closer_look,
    refusal,
)
from overlay.link.frames import (
    Deliveries,
    Hello,
    packed_numbers,
    packed_slots,
)
from overlay.link.message_headers import checked_headers

LENGTH_BYTES = 4
HEADER_BYTES_MAX = 65_535

_FIXMAP, _FIXMAP_MOST = 0x80, 15
_BIN8_MOST = 255
_pack = msgpack.Packer().pack
_write = msgspec.msgpack.Encoder().encode
_PLAIN = frozenset((str, int, bytes, bool, float, type(None)))
_KEPT_BYTES_MAX = 64 * 1024  # an unpacker that is used again keeps as much memory as it once took
_NATIVE = (bytes,)  # no text in the place of bytes
_PLACE: Mapping[str, Any] = {"k": Name, "n": Place}
NOT_EXACT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Envelope(NamedTuple):
    """A decoded frame with its place on a channel; key "" and sequence 0 if unsequenced."""

    frame: Frame
    key: str = ""
    sequence: int = 0


class _Fields:
    """Fields of a frame that travel together, as a Struct by which msgspec validates them.  The
    Struct has no defaults: with all of its keys a map has no room for one that is there twice."""

    def __init__(self, cls: type[Frame], hints: Mapping[str, Any], *, is_header: bool) -> None:
        place = _PLACE if is_header and cls.sequenced else {}
        everything = {**place, **hints}
        self.names = tuple(everything)
        self.struct = msgspec.defstruct(
            cls.__name__,
            list(everything.items()),
            tag_field="t" if is_header else None,
            tag=cls.type if is_header else None,
            gc=False,
        )
        self._tag = {"t": cls.type} if is_header else {}
        self.of: Callable[[Any], tuple[Any, ...]] = _values(tuple(hints))
        """The values of a frame, or of the Struct, without its place."""
        self._decode = msgspec.msgpack.Decoder(self.struct).decode
        self._has_map = "Mapping" in str(hints)
        looks = ((name, closer_look(hint)) for name, hint in everything.items())
        self._looks = [(name, look) for name, look in looks if look]
        optional = (field for field in fields(cls) if field.name in hints and not field.required)
        self._defaults = {
            field.name: [] if field.default is msgspec.NODEFAULT else field.default
            for field in optional
        }

    def written(self, values: tuple[object, ...]) -> bytes:
        """The bytes of these values; ProtocolError for values that a peer would refuse."""
        if not self._has_map:
            # PERF: to read what was written takes half the time of looking at the values.
            try:
                struct = self._decode(_write(self.struct(*values)))
                packed = _write(struct)  # anew, as an integer may have become a float
            except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
                pass  # which is said below, or is of a class that only msgpack can write
            else:
                if len(packed) > NAME_BYTES_MAX:
                    self.look(struct)
                return packed
        struct = self.checked(dict(zip(self.names, values, strict=True)))
        self.look(struct)
        return _pack({**self._tag, **asdict(struct)})

    def read(self, given: Mapping[str, object]) -> Any:
        """The Struct of what a peer gives, where fields may lack, and others may be there."""
        return self.checked({**self._defaults, **given} if self._defaults else given)

    def checked(self, given: Mapping[str, object]) -> Any:
        try:
            return msgspec.convert(given, self.struct, builtin_types=_NATIVE)
        except msgspec.ValidationError as error:
            raise refusal(self.struct, error, given) from None

    def look(self, struct: Any) -> None:
        """Checks what msgspec cannot say."""
        for name, look in self._looks:
            look(name, getattr(struct, name))


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        one = attrgetter(names[0])
        return lambda read: (one(read),)
    return attrgetter(*names) if names else lambda _: ()


@dataclass(frozen=True, slots=True)
class _Layout:
    """How one frame type is laid out.  ``header`` begins with the frame's place, if it has one."""

    cls: type[Frame]
    header: _Fields
    body: _Fields | None
    first: int  # the byte with which a header of just these fields begins; -1: there are too many
    usual_body: bytes  # where all its fields are at their defaults
    in_front: tuple[str, ...]  # fields of the header, and the payload
    is_in_order: bool  # the fields of the body are behind them
    payload_place: int  # in front; -1: it has none
    keeps_unknown: bool
    is_checked: bool  # beyond its single fields
    has_headers: bool


class ExactHeaders:
    """``decode`` takes headers that are just as this release writes them, and raises ``NOT_EXACT``
    for others; ``layouts`` has the layout of what comes of it.  It is the header only if the bytes
    begin with the layout's ``first``: else a key is there twice, or there are more of them."""

    def __init__(self, layouts: Collection[_Layout]) -> None:
        union: Any = None
        for layout in layouts:
            union = layout.header.struct if union is None else union | layout.header.struct
        self.layouts = {layout.header.struct: layout for layout in layouts}
        self.decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(union).decode


def encode(frame: Frame, key: str = "", sequence: int = 0) -> bytes:
    """The frame as bytes, length prefix included.

    ``key`` and ``sequence`` (from 1) belong to sequenced frames only.  Raises ProtocolError if a
    field does not hold what its type says: nothing leaves that a peer would have to refuse.
    """
    layout = _layout_of(type(frame))
    values = layout.header.of(frame)
    more: dict[str, object] = {}
    if layout.keeps_unknown:
        more = dict(cast(CarriedMessage, frame).unknown or {})
    if layout.has_headers and (headers := cast(CarriedMessage, frame).headers):
        more["headers"] = checked_headers(headers)
    if frame.sequenced:
        values = (key, sequence, *values)
    elif key or sequence:
        raise ValueError(f"a {frame.type} frame is not sequenced")
    packed = _pack_header(layout, values, more)
    body = layout.body.written(layout.body.of(frame)) if layout.body else b""
    if layout.is_checked:
        frame.check()
    payload = cast(bytes, getattr(frame, "payload", b""))
    length = 2 + len(packed) + len(body) + len(payload)
    if length >= 1 << 32:
        raise ProtocolError("too-long", f"frame of {length} bytes")
    return b"".join(
        (length.to_bytes(4, "big"), len(packed).to_bytes(2, "big"), packed, body, payload)
    )


def _pack_header(layout: _Layout, values: tuple[object, ...], more: Mapping[str, object]) -> bytes:
    packed = layout.header.written(values)
    if more:
        packed = _pack({**msgpack.unpackb(packed), **more})
    if len(packed) > HEADER_BYTES_MAX:
        raise ProtocolError(
            "too-long", f"header of {len(packed)} bytes; at most {HEADER_BYTES_MAX}"
        )
    return packed


_LENGTHS, _FIXARRAY = b"\x83\xa7lengths", 0x90
_UINT_BYTES = {0xCC: 1, 0xCD: 2, 0xCE: 4}
_SLOT, _NUMBER = b"\xa5slots\xc4\x04", b"\xa7numbers\xc4\x08"
_ONE_PLACE = Struct(f"<{len(_SLOT)}sI{len(_NUMBER)}sQ")


class ResultsEncoder:
    """The frame ``deliveries`` of one result for many connections: only slots and numbers differ,
    so what comes before them is written once, to the byte as ``encode`` writes it.

    ProtocolError when the frame would not hold what its type says.
    """

    __slots__ = ("_before", "_of", "_of_one", "payload")

    def __init__(self, source: str, number: int, lengths: list[int], payload: bytes) -> None:
        self._of = source, number, lengths
        self.payload = payload
        check_lengths(lengths, payload)
        header = _pack_header(_LAYOUTS[Deliveries.type], (source, number), {})
        given = _pack(lengths)
        self._before = len(header).to_bytes(2, "big") + header + _LENGTHS + given
        self._of_one = self._length(_ONE_PLACE.size) + self._before

    def head(self, slots: Sequence[int], numbers: Sequence[int]) -> bytes:
        """All in front of the payload, for the profiles in these slots, with the number of the
        delivery in each."""
        packed = packed_slots(slots), packed_numbers(numbers)
        if len(packed[1]) > _BIN8_MOST:
            frame = encode(Deliveries(*self._of, *packed, self.payload))
            return frame[: len(frame) - len(self.payload)]
        columns = b"\xa5slots\xc4%c%b\xa7numbers\xc4%c%b" % (
            *(len(packed[0]), packed[0]),
            *(len(packed[1]), packed[1]),
        )
        return self._length(len(columns)) + self._before + columns

    def head_of_one(self, slot: int, number: int) -> bytes:
        """The same of one."""
        return self._of_one + _ONE_PLACE.pack(_SLOT, slot, _NUMBER, number)

    def _length(self, columns: int) -> bytes:
        return (len(self._before) + columns + len(self.payload)).to_bytes(4, "big")


def read_one(data: bytes, begin: int, stop: int) -> tuple[Deliveries, int, int] | None:
    """A frame ``deliveries`` of one profile as a ResultsEncoder writes it, from one place in some
    bytes to another, with the slot and the number of the delivery there; None for any other, and
    for what ``decode`` may refuse."""
    start = begin + 2 + int.from_bytes(data[begin : begin + 2], "big")
    if start - begin > NAME_BYTES_MAX or not data.startswith(_LENGTHS, start, stop):
        return None
    at = start + len(_LENGTHS)
    count = data[at] - _FIXARRAY if at < stop else -1
    if not 0 <= count <= _FIXMAP_MOST:
        return None
    at += 1
    lengths: list[int] = []
    for _ in range(count):
        kind = data[at] if at < stop else 0xFF
        size = 0 if kind < _FIXMAP else _UINT_BYTES.get(kind, -1)
        if size < 0:
            return None
        lengths.append(int.from_bytes(data[at + 1 : at + 1 + size], "big") if size else kind)
        at += 1 + size
    if not (data.startswith(_SLOT, at) and data.startswith(_NUMBER, at + len(_SLOT) + 4)):
        return None
    end = at + _ONE_PLACE.size
    if stop != end + sum(lengths):
        return None
    try:
        header = _exact.decode(data[begin + 2 : start])
    except NOT_EXACT:
        return None
    layout = _exact.layouts[type(header)]
    _, slot, _, number = _ONE_PLACE.unpack_from(data, at)
    is_exact = layout.cls is Deliveries and data[begin + 2] == layout.first
    if not is_exact or number > CLAIMED_SEQUENCE_MAX:
        return None
    slots, numbers = data[at + len(_SLOT) : at + len(_SLOT) + 4], data[end - 8 : end]
    what = header.source, header.number, lengths, slots, numbers, data[end:stop]
    return Deliveries(*what), slot, number


def decode(data: bytes) -> Envelope:
    """One frame without its length prefix.  Raises ProtocolError, see the module's text."""
    header_bytes = int.from_bytes(data[:2], "big")
    start = 2 + header_bytes
    if len(data) < 2 or start > len(data):
        raise ProtocolError("malformed", f"{len(data)} bytes do not hold the header they announce")
    try:
        header = _exact.decode(data[2:start])
    except NOT_EXACT:
        header = None
    layout = _exact.layouts.get(type(header))
    if layout is None or data[2] != layout.first:
        return _decode_closely(data, start)
    try:
        return _decode_rest(layout, header, {}, data, start)
    except ProtocolError as error:
        error.fatal = error.fatal or layout.cls.sequenced
        raise


class FrameDecoder:
    """Cuts received bytes into frames; keeps at most one frame and what was not taken out.

    ``frame_bytes_max`` may be raised between frames (after the peer's hello).
    """

    __slots__ = ("_buffer", "_start", "frame_bytes_max", "unfinished")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.unfinished = 0  # bytes of a frame that is not all there
        self._buffer: bytes | bytearray = b""  # bytes where all that is left came together
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        left = self._buffer[self._start :] if self._start else self._buffer
        self._start = 0
        if not left:
            self._buffer = data
            return
        self._buffer = left if isinstance(left, bytearray) else bytearray(left)
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The next whole frame without its length, None if it is not all there yet.

        Raises a fatal ProtocolError if it is announced longer than allowed: from there on the
        bytes cannot be cut into frames any more.
        """
        place = self.next_place()
        return None if place is None else place[0][place[1] : place[2]]

    def next_place(self) -> tuple[bytes, int, int] | None:
        """The same where it lies: from one place in some bytes to another."""
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
                if isinstance(buffer, bytes):
                    return buffer, start, start + length
                with memoryview(buffer) as view:
                    return bytes(view[start : start + length]), 0, length
        if begin:  # whoever is silent from here on takes no memory for what was long
            self._buffer = buffer[begin:]
            self._start = 0
        self.unfinished = left
        return None

    def put_back(self, length: int) -> None:
        """The last one that was taken out, of this length, is the next one again."""
        self._start -= LENGTH_BYTES + length

    @property
    def buffered_bytes(self) -> int:
        """Bytes kept that are not a whole frame yet (or not taken out)."""
        return len(self._buffer) - self._start


def _decode_closely(data: bytes, start: int) -> Envelope:
    """Of a header in which fields may lack, or be of a later release, or be wrong."""
    given = _unpack_map(data[2:start], "header")
    name = given.pop("t", None)
    layout = _LAYOUTS.get(name) if isinstance(name, str) else None
    try:
        if layout is None:
            raise ProtocolError("unknown-frame", f"no frame has the type {name!r:.80}")
        if layout.cls is Hello:
            _check_version(given)
        if "n" in given and not layout.cls.sequenced:
            raise ProtocolError("bad-field", f"a {name} has no place on a channel ('n')")
        more: dict[str, Any] = {}
        if layout.has_headers and (headers := given.get("headers")) is not None:
            more["headers"] = checked_headers(headers)
        if layout.keeps_unknown:
            unknown = given.keys() - {*layout.header.names, "headers"}
            if unknown:
                more["unknown"] = {field: given[field] for field in given if field in unknown}
        return _decode_rest(layout, layout.header.read(given), more, data, start)
    except ProtocolError as error:
        error.fatal = error.fatal or "n" in given or (layout is not None and layout.cls.sequenced)
        raise


def _decode_rest(
    layout: _Layout, header: Any, more: dict[str, Any], data: bytes, start: int
) -> Envelope:
    """The frame of a header that msgspec has taken; ``more``: other fields."""
    # PERF: half the time of most frames (python -m benchmarks frames).
    if start > NAME_BYTES_MAX:
        layout.header.look(header)
    cls: Any = layout.cls
    values = layout.header.of(header)
    body = layout.body
    if not body:
        rest = data[start:]
    elif layout.usual_body and data.startswith(layout.usual_body, start):
        rest = data[start + len(layout.usual_body) :]
    else:
        given, rest = _unpack_body(data[start:])
        checked = body.read(given)
        body.look(checked)
        more |= asdict(checked)
    place = layout.payload_place
    if place >= 0:
        values = (*values[:place], rest, *values[place:])
    elif rest:
        raise ProtocolError("malformed", f"{len(rest)} bytes after a {cls.type}")
    if layout.is_in_order:
        frame = cls(*values, **more)
    else:
        frame = cls(**dict(zip(layout.in_front, values, strict=True)), **more)
    if layout.is_checked:
        frame.check()
    return Envelope(frame, header.k, header.n) if cls.sequenced else Envelope(frame)


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
    hints = get_type_hints(cls, include_extras=True)
    all_names = [name for name in cls.__struct_fields__ if name not in ("unknown", "headers")]
    body = {n: hints[n] for n in all_names if BODY in getattr(hints[n], "__metadata__", ())}
    names = [name for name in all_names if name not in body]
    short = {name: hints[name] for name in names if name != "payload"}
    header = _Fields(cls, short, is_header=True)
    usual = {field.name: field.default for field in fields(cls) if field.name in body}
    return _Layout(
        cls=cls,
        header=header,
        body=_Fields(cls, body, is_header=False) if body else None,
        first=_FIXMAP + keys if (keys := 1 + len(header.names)) <= _FIXMAP_MOST else -1,
        usual_body=b"" if msgspec.NODEFAULT in usual.values() else _pack(usual),
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
_exact = ExactHeaders([layout for layout in _LAYOUTS.values() if layout.cls is not Hello])
