"""Rows are records of one type: what was put comes back, and what was not is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgpack
import pytest

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog
from overlay.link.tables import Table


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Row:
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


@dataclass(frozen=True, slots=True)
class Mark:
    """Its key says all."""


ROWS = Table("rows", Row)
ROW = Row(
    *("p1", 3, 0.5, True, b"x", Colour.RED, (1, 2), ("s1", 4)), {"b", "a"}, {"s1": 9, "s2": 1}
)


def stored(record: Row = ROW) -> bytes:
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
    assert list(found) == [*Row.__dataclass_fields__]


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
        ({"number": "three"}, "field 'number' is str; expected an integer"),
        ({"is_done": 1}, "field 'is_done' is int; expected a bool"),
        ({"payload": "x"}, "field 'payload' is str; expected bytes"),
        ({"colour": "green"}, "field 'colour' is str; expected one of ['red', 'blue']"),
        ({"pair": ["s1"]}, "field 'pair' is list; expected a list of 2"),
        ({"lengths": [1, None]}, "field 'lengths' is NoneType; expected an integer"),
        ({"numbers": []}, "field 'numbers' is list; expected a map"),
        ({"other": 1}, "it is dict; expected a map with name, number, share"),
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


def test_a_type_that_no_table_can_hold_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="no table can hold"):
        Table("rows", complex)
