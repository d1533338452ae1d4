"""Rows of a query as messages: elements that say all values, or the messages that the rows have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from onyx.cli.main import main
from onyx.errors import EXIT_USAGE
from onyx.queries.published_rows import messages
from onyx.spark.filtering import RowRefused
from onyx.spark.publishing import Publisher, rows_of
from registration.queries.refusals import QueryRefused


def read(text: str) -> Any:
    """A row's element by lxml: texts, lists of repeated children, or children by name."""

    def value(element: Any) -> Any:
        found: dict[str, list[Any]] = {}
        for child in element:
            found.setdefault(child.get("name", child.tag), []).append(value(child))
        return found or element.text or ""

    return value(etree.fromstring(text.encode()))


def test_a_row_is_an_element_with_all_its_values() -> None:
    maker = pa.struct([("name", pa.string()), ("born", pa.date32())])
    columns: dict[str, tuple[pa.DataType, Any, Any]] = {
        "id": (pa.int64(), 7, ["7"]),
        "text": (pa.string(), "a <b> & \r\n]]> c", ["a <b> & \r\n]]> c"]),
        "none": (pa.string(), None, None),
        "empty": (pa.string(), "", [""]),
        "ok": (pa.bool_(), True, ["true"]),
        "price": (pa.decimal128(8, 2), Decimal("1E+2"), ["100.00"]),
        "odd": (pa.float64(), float("-inf"), ["-INF"]),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, tzinfo=UTC), None),
        "raw": (pa.binary(), b"\x00\xff", ["AP8="]),
        "tags": (pa.list_(pa.string()), ["a", None, "b"], ["a", "b"]),
        "maker": (maker, {"name": "Ann", "born": date(1999, 1, 2)}, None),
        "prices": (pa.map_(pa.string(), pa.int32()), {"x": 1, "y": 2}, None),
        'count("1")': (pa.int32(), 3, ["3"]),
    }
    batch = pa.RecordBatch.from_arrays(
        [pa.array([given], kind) for kind, given, _ in columns.values()], list(columns)
    )
    (text,) = messages(batch).column("message").to_pylist()
    expected = {name: said for name, (_, _, said) in columns.items() if said is not None}
    expected["at"] = ["2026-01-02T00:00:00+00:00"]
    expected["maker"] = [{"name": ["Ann"], "born": ["1999-01-02"]}]
    expected["prices"] = [{"key": [k], "value": [v]} for k, v in (("x", "1"), ("y", "2"))]
    assert read(text) == expected


def test_a_column_message_is_the_message_with_its_key_and_headers() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"key": [1, 2], "message": ["<a/>", "<b/>"], "headers": [{"h": "x"}, None]},
        pa.schema(
            [
                ("key", pa.int32()),
                ("message", pa.string()),
                ("headers", pa.map_(pa.string(), pa.string())),
            ]
        ),
    )
    one, two = rows_of(messages(batch), keyed=False)
    assert (one.message, one.key, one.headers, one.digest) == (b"<a/>", "1", {"h": "x"}, b"")
    assert (two.message, two.key, two.headers) == (b"<b/>", "2", {})
    wrong = pa.RecordBatch.from_pydict({"message": ["<a/>"], "headers": [1]})
    with pytest.raises(QueryRefused, match="column headers is int64; expected map<string,string>"):
        messages(wrong)
    other = pa.RecordBatch.from_pydict({"message": ["<a/>"], "n": [1]})
    (row,) = rows_of(messages(other), keyed=False)
    assert row.message == b"<row><message>&lt;a/&gt;</message><n>1</n></row>"


def test_a_row_has_the_same_key_whenever_the_query_is_asked_and_equal_rows_have_others() -> None:
    def keys(values: list[int], query: str) -> list[str]:
        publisher = Publisher(_raise)
        found: list[str] = []
        for at in range(0, len(values), 2):  # in batches
            batch = messages(pa.RecordBatch.from_pydict({"n": values[at : at + 2]}))
            rows = rows_of(batch, keyed=False)
            placed: Iterator[tuple[str, Any]] = publisher.keyed(rows, query, "row", at + 1)
            found += [f"{place} {row[2]}" for place, row in placed]
        assert [each.split()[1] for each in found] == [str(n + 1) for n in range(len(values))]
        return [each.split()[2] for each in found]

    once = keys([5, 6, 5, 5, 7], "q")
    assert len(set(once)) == 5
    assert sorted(keys([7, 5, 5, 6, 5], "q")) == sorted(once), "in whatever order the rows come"
    assert not set(keys([5, 6], "other")) & set(once)


def _raise(refused: RowRefused) -> None:
    raise refused


def test_rows_go_to_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["query", "SELECT 1", "--catalog", "none.ttl", "--publish", "s", "--out", "x.csv"]
    assert main(command) == EXIT_USAGE
    assert "--out FILE, or to --publish SOURCE" in capsys.readouterr().err
