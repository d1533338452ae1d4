"""Table: the rows of one space of a store, each a record of one type.

A core's part declares its spaces once, and writes and reads records::

    class HeldRow(Row, frozen=True):
        peer: str
        frame: bytes

    HELD = Table("held", HeldRow)

    HELD.put(rows, key, HeldRow("broker/B1", frame))        # into a RowLog
    record = HELD.read(key, value)                          # at a restart

A stored record is a MessagePack map with the fields' names, in order; msgspec writes it, and checks
each value by the annotation of its field when the record is read.  A set is stored in order.  A
field that is new has a default, for rows of before.  A NamedTuple within a record is stored as a
list; as the record of a table it is a map too.  A row without fields is a plain value, such as
``dict[str, int]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, get_type_hints

import msgspec
from msgspec.structs import astuple

from overlay.link.errors import StoreError
from overlay.link.row_log import RowLog

R = TypeVar("R")

_BAD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A record that does not change; it refers to nothing that refers to it."""


class MutableRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record that its part changes, and puts again."""


class Table(Generic[R]):
    """One space; ``record`` is the type of its records, and where it ``is_keyed`` the first field
    of each is its key, which the map has not."""

    __slots__ = ("_read", "pack", "space")

    def __init__(self, space: str, record: type[R], *, is_keyed: bool = False) -> None:
        self.space = space
        stored: Any = record
        if is_keyed or _is_named_tuple(record):
            stored = _form(record, is_keyed)
        # Only sets are written in order: maps keep the order that they have.
        order: Literal["deterministic"] | None = "deterministic" if _holds_sets(record) else None
        encode = msgspec.msgpack.Encoder(enc_hook=_plain, order=order).encode
        decode = msgspec.msgpack.Decoder(stored).decode
        made: Any = record
        values_of: Any = tuple if _is_named_tuple(record) else astuple
        self.pack: Callable[[R], bytes] = encode
        self._read: Callable[[str, bytes], R] = lambda key, value: decode(value)
        if is_keyed:
            self.pack = lambda entry: encode(stored(*values_of(entry)[1:]))
            self._read = lambda key, value: made(key, *astuple(decode(value)))
        elif stored is not record:
            self.pack = lambda entry: encode(stored(*values_of(entry)))
            self._read = lambda key, value: made(*astuple(decode(value)))

    def read(self, key: str, value: bytes) -> R:
        """A record that was put; StoreError says which row is not one, and what was expected."""
        try:
            return self._read(key, value)
        except _BAD as error:
            raise StoreError(f"row {key!r} of space {self.space!r} is bad: {error}") from None

    def put(self, rows: RowLog, key: str, record: R) -> None:
        rows.put(self.space, key, self.pack(record))

    def delete(self, rows: RowLog, key: str) -> None:
        rows.delete(self.space, key)


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _form(kind: Any, is_keyed: bool) -> type[msgspec.Struct]:
    """The map that a record is stored as, made of the record's own fields."""
    field: Any = msgspec.field
    if _is_named_tuple(kind):
        defaults = kind._field_defaults
        fields = [
            (name, hint, field(default=defaults.get(name, msgspec.NODEFAULT)))
            for name, hint in get_type_hints(kind).items()
        ]
    else:
        fields = [
            (of.name, of.type, field(default=of.default, default_factory=of.default_factory))
            for of in msgspec.structs.fields(kind)
        ]
    return msgspec.defstruct(kind.__name__, fields[is_keyed:], bases=(Row,), frozen=True)


def _holds_sets(kind: Any) -> bool:
    fields = getattr(kind, "__struct_fields__", ())
    hints = get_type_hints(kind) if fields else {}
    return any("set[" in str(hints[name]) for name in fields)


def _plain(value: object) -> object:
    """The form of a value that MessagePack has no type for."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")
