"""Rows are records of one type: what was put comes back, and what was not is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgpack
import msgspec
import pytest

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog
from overlay.link.tables import Row, Table


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Stored(Row, frozen=True):
    name: str
    number: int
    share: float
    is_done: bool
    payload: bytes | None
    colour: Colour
    lengths: tuple[int, ...]
    pair: tuple[str, int]
    children: set[str]
    numbers: Mapping[str, int]
    new: int = 7


class Mark(Row, frozen=True):
    """Its key says all."""


ROWS = Table("rows", Stored)
ROW = Stored(
    *("p1", 3, 0.5, True, b"x", Colour.RED, (1, 2), ("s1", 4)), {"b", "a"}, {"s1": 9, "s2": 1}
)


def stored(record: Stored = ROW) -> bytes:
    rows = RowLog()
    ROWS.put(rows, "k", record)
    (put,) = rows.drain()
    assert isinstance(put, Put)
    assert (put.space, put.key) == ("rows", "k")
    return put.value


def test_a_record_comes_back_as_it_was_put() -> None:
    assert ROWS.read("k", stored()) == ROW


def test_a_row_is_a_map_of_its_fields_and_sets_are_in_order() -> None:
    found = msgpack.unpackb(stored())
    assert found["children"] == ["a", "b"]
    assert found["colour"] == "red"
    assert list(found) == [*Stored.__struct_fields__]


def test_a_field_with_a_default_may_be_missing_in_rows_of_before() -> None:
    found = msgpack.unpackb(stored())
    del found["new"]
    assert ROWS.read("k", msgpack.packb(found)).new == 7


def test_a_row_may_be_nothing_but_its_key_or_no_record_at_all() -> None:
    rows = RowLog()
    Table("marks", Mark).put(rows, "tree", Mark())
    Table("numbers", dict[str, int]).put(rows, "p1", {"B1": 3})
    Table("marks", Mark).delete(rows, "tree")
    assert rows.drain() == [
        Put("marks", "tree", msgpack.packb({})),
        Put("numbers", "p1", msgpack.packb({"B1": 3})),
        Delete("marks", "tree"),
    ]
    assert Table("numbers", dict[str, int]).read("p1", msgpack.packb({"B1": 3})) == {"B1": 3}


class Pair(NamedTuple):
    first: int
    second: bytes = b""


class Short(NamedTuple):
    """One of many rows."""

    name: str
    share: float
    payload: bytes | None = None
    recipe: list[object] | None = None
    pair: Pair | None = None


class Plain(NamedTuple):
    """Rows that are good as they are."""

    name: str
    share: float
    payload: bytes | None = None
    recipe: list[object] | None = None


@pytest.mark.parametrize(
    "record", [Short("a", 0.5), Short("b", 1.5, b"x", [1, "y"], Pair(3, b"z")), Plain("c", 2.5)]
)
def test_a_named_tuple_is_a_record_with_its_fields_and_a_list_within_another(
    record: Short | Plain,
) -> None:
    rows, table = RowLog(), Table("short", type(record))
    table.put(rows, "k", record)
    (put,) = rows.drain()
    assert isinstance(put, Put)
    assert list(msgpack.unpackb(put.value)) == list(record._fields)
    assert table.read("k", put.value) == record


def test_rows_are_checked_however_many_good_ones_were_read_before() -> None:
    table = Table("plain", Plain)
    good = {"name": "a", "share": 0.5, "payload": None, "recipe": None}
    for _ in range(3):
        assert table.read("k", msgpack.packb(good)) == Plain("a", 0.5)
        assert table.read("k", msgpack.packb({**good, "payload": b"x"})) == Plain("a", 0.5, b"x")
        found = table.read("k", msgpack.packb({**good, "share": 2}))
        assert (found.share, type(found.share)) == (2.0, float)
        assert table.read("k", msgpack.packb({"share": 0.5, "name": "a"})) == Plain("a", 0.5)
        assert table.read("k", msgpack.packb(dict(reversed(good.items())))) == Plain("a", 0.5)
        for bad in ({"name": 1}, {"payload": "x"}, {"recipe": {}}, {"other": 1}):
            with pytest.raises(StoreError, match="row 'k' of space 'plain' is bad"):
                table.read("k", msgpack.packb({**good, **bad}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": "three"}, "Expected `int`, got `str` - at `$.number`"),
        ({"is_done": 1}, "Expected `bool`, got `int` - at `$.is_done`"),
        ({"payload": "x"}, "Expected `bytes | null`, got `str` - at `$.payload`"),
        ({"colour": "green"}, "Invalid enum value 'green' - at `$.colour`"),
        ({"pair": ["s1"]}, "Expected `array` of length 2, got 1 - at `$.pair`"),
        ({"lengths": [1, None]}, "Expected `int`, got `None` - at `$.lengths[1]`"),
        ({"numbers": []}, "Expected `object`, got `array` - at `$.numbers`"),
        ({"other": 1}, "Object contains unknown field `other`"),
    ],
)
def test_a_bad_row_says_space_key_and_what_was_expected(
    change: Mapping[str, object], said: str
) -> None:
    found = {**msgpack.unpackb(stored()), **change}
    with pytest.raises(StoreError) as refused:
        ROWS.read("k", msgpack.packb(found))
    assert str(refused.value).startswith("row 'k' of space 'rows' is bad: ")
    assert said in str(refused.value)


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x01\x02", msgpack.packb([1])])
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(StoreError, match="row 'k' of space 'rows' is bad"):
        ROWS.read("k", value)


class Entry(Row, frozen=True):
    """A record that knows its key."""

    name: str
    number: int
    children: list[str] = msgspec.field(default_factory=list)


class Known(NamedTuple):
    """The same as a tuple."""

    name: str
    number: int
    share: float = 1.0


@pytest.mark.parametrize("record", [Entry("a", 3), Entry("b", 4, ["c"]), Known("d", 5, 0.5)])
def test_a_record_that_has_its_key_is_stored_without_it(record: Entry | Known) -> None:
    table = Table("entries", type(record), is_keyed=True)
    packed = table.pack(record)
    assert "name" not in msgpack.unpackb(packed)
    assert table.read(record.name, packed) == record
    assert table.read("x", msgpack.packb({"number": 7})) == type(record)("x", 7)
    with pytest.raises(StoreError, match=r"row 'x' of space 'entries' is bad: .* field `name`"):
        table.read("x", msgpack.packb({"number": 7, "name": "x"}))
