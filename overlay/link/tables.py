"""Table: the rows of one space of a store, each a record of one type.

A core's part declares its spaces once, and writes and reads records::

    @dataclass(frozen=True, slots=True)
    class HeldRow:
        peer: str
        frame: bytes

    HELD = Table("held", HeldRow)

    HELD.put(rows, key, HeldRow("broker/B1", frame))        # into a RowLog
    record = HELD.read(key, value)                          # at a restart

A record is a dataclass, or a NamedTuple where there are many.  What is on disk is a MessagePack map
with the fields' names, and each value is checked when it is read, by the annotation of its field.
A field that is new has a default, for rows of before.

=======================  ===========================================================
annotation               what is stored
=======================  ===========================================================
int, float, bool, str,   itself
bytes, an Enum of str
``X | None``             X or nil
``list[X]``, ``set[X]``  a list; a set's in order
``tuple[X, ...]``        a list
``tuple[X, Y]``, or a    a list of just these
NamedTuple within
``dict[str, X]``         a map; as well ``Mapping``
``object``               anything
=======================  ===========================================================

The type of a record may also be one of these itself, where a row has no fields.

PERF: rows that need nothing but to be checked are read in 1.9 us each, 0.5 more than without a
check, and written in 0.9 (eight fields; 2.8 and 1.2 with a loop over the fields).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgpack

from overlay.link.errors import StoreError
from overlay.link.row_log import RowLog

R = TypeVar("R")

Read: TypeAlias = Callable[[Any], Any]
"""A stored value -> the value as the record holds it; _Unexpected."""

_SCALARS = {
    int: "an integer",
    float: "a number",
    bool: "a bool",
    str: "text",
    bytes: "bytes",
}


class _Unexpected(Exception):
    """A stored value is not what was expected; says where within the row, and what it is."""

    def __init__(self, expected: str, found: object, where: str = "it is ") -> None:
        super().__init__(f"{where}{type(found).__name__}; expected {expected}")
        self.expected, self.found, self.where = expected, found, where


class Table(Generic[R]):
    """One space; ``record`` is the type of its records."""

    __slots__ = ("pack", "read", "space")

    def __init__(self, space: str, record: type[R]) -> None:
        self.space = space
        self.pack: Callable[[R], bytes] = _packer(record)
        """What is put."""
        self.read: Callable[[str, bytes], R] = _row_reader(space, record)
        """(key, value) -> a record that was put; StoreError says which row is not one, and what was
        expected."""

    def put(self, rows: RowLog, key: str, record: R) -> None:
        rows.put(self.space, key, self.pack(record))

    def delete(self, rows: RowLog, key: str) -> None:
        rows.delete(self.space, key)


def _row_reader(space: str, kind: Any) -> Callable[[str, bytes], Any]:
    read = _record(kind) if _is_record(kind) else _reader(kind)
    unpack = msgpack.unpackb

    def read_row(key: str, value: bytes) -> Any:
        try:
            return read(unpack(value))
        except _Unexpected as error:
            detail = str(error)
        except ValueError as error:
            detail = f"not MessagePack: {error}"
        raise StoreError(f"row {key!r} of space {space!r} is bad: {detail}")

    return read_row


def _packer(kind: Any) -> Callable[[Any], bytes]:
    """What packs records of a type, made as the methods of dataclasses are."""
    packed = "record"
    if _is_record(kind):
        packed = "{" + ", ".join(f"{name!r}: record.{name}" for name in _needed(kind)) + "}"
    names = {"packb": msgpack.packb, "plain": _plain}
    return eval(f"lambda record: packb({packed}, default=plain)", names)


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind) or _is_named_tuple(kind)


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _needed(kind: Any) -> dict[str, bool]:
    """The fields of a record, and whether a row must have them."""
    if _is_named_tuple(kind):
        return {name: name not in kind._field_defaults for name in kind._fields}
    return {
        each.name: each.default is MISSING and each.default_factory is MISSING
        for each in fields(kind)
    }


def _plain(value: object) -> object:
    """What MessagePack has no type for."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _reader(hint: Any) -> Read:
    """How values of a type are read; a TypeError here is a mistake in a record's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is object:
        return _anything
    if hint in _SCALARS:
        return _scalar(hint)
    if _is_named_tuple(hint):
        return _named_tuple(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if origin is UnionType or NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _optional(_reader(inner))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _tuple([_reader(argument) for argument in arguments])
    if origin in (list, set, tuple):
        return _values(origin, _reader(arguments[0]))
    if origin in (dict, Mapping):
        return _map(_reader(arguments[1]))
    raise TypeError(f"no table can hold {hint!r}")


def _anything(value: Any) -> Any:
    return value


def _scalar(kind: type) -> Read:
    def scalar(value: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise _Unexpected(_SCALARS[kind], value)

    return scalar


def _enum(kind: type[Enum]) -> Read:
    def enum(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise _Unexpected(f"one of {[each.value for each in kind]}", value) from None

    return enum


def _optional(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _values(kind: type, read: Read) -> Read:
    def values(value: Any) -> Any:
        if type(value) is not list:
            raise _Unexpected("a list", value)
        return kind(map(read, value))

    return values


def _tuple(reads: list[Read]) -> Read:
    def values(value: Any) -> Any:
        if type(value) is not list or len(value) != len(reads):
            raise _Unexpected(f"a list of {len(reads)}", value)
        return tuple(read(each) for read, each in zip(reads, value, strict=True))

    return values


def _map(read: Read) -> Read:
    def mapping(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unexpected("a map", value)
        return {key: read(each) for key, each in value.items()}

    return mapping


def _named_tuple(kind: Any) -> Read:
    hints = get_type_hints(kind)
    reads = [_reader(hint) for hint in hints.values()]
    least = sum(_needed(kind).values())
    is_plain = all(map(_is_plain, hints.values()))
    make = _maker(kind)
    forms: dict[tuple[type, ...], tuple[object, ...]] = {}  # types of good values -> the others

    def named(value: Any) -> Any:
        if type(value) is not list or not least <= len(value) <= len(reads):
            raise _Unexpected(f"a list of {len(reads)}", value)
        form = tuple(map(type, value))
        rest = forms.get(form)
        if rest is not None:
            return make((*value, *rest))
        found = kind(*(read(each) for read, each in zip(reads, value, strict=False)))
        if is_plain and form == tuple(map(type, found[: len(value)])):
            forms[form] = found[len(value) :]
        return found

    return named


def _record(kind: Any) -> Read:
    hints = get_type_hints(kind)
    reads = {name: _reader(hints[name]) for name in _needed(kind)}
    needed = {name for name, is_needed in _needed(kind).items() if is_needed}
    names = tuple(reads)
    described = f"a map with {', '.join(names) or 'nothing'}"
    make = _maker(kind)
    plain = [name for name in names if _is_plain(hints[name])]
    others = [(at, reads[name]) for at, name in enumerate(names) if name not in plain]
    forms: set[tuple[object, ...]] = set()  # names and types of rows whose plain fields are good

    def record(value: Any) -> Any:
        if type(value) is not dict:
            raise _Unexpected(described, value)
        form = (*value, *map(type, value.values()))
        if form in forms:
            if not others:
                return make(value.values())
            values = list(value.values())
            try:
                for at, read in others:
                    values[at] = read(values[at])
                return make(values)
            except _Unexpected:
                pass  # it is said below of which field
        if not needed <= value.keys() <= reads.keys():
            raise _Unexpected(described, value)
        found = {}
        for name, each in value.items():
            try:
                found[name] = reads[name](each)
            except _Unexpected as error:
                where = f"field {name!r} is "
                raise _Unexpected(error.expected, error.found, where) from None
        if tuple(value) == names and all(type(found[name]) is type(value[name]) for name in plain):
            forms.add(form)
        return kind(**found)

    return record


def _maker(kind: Any) -> Callable[[Iterable[Any]], Any]:
    """What makes a record of the values of all its fields, in order."""
    if _is_named_tuple(kind):
        return partial(tuple.__new__, kind)
    return lambda values: kind(*values)


def _is_plain(hint: Any) -> bool:
    """Whether the type of a value says that it is good, and it stays as it is."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    return all(kind in _SCALARS or kind in (object, list[object], NoneType) for kind in kinds)
