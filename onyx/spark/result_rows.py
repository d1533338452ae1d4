"""Rows of results as Arrow: columns of their own from each result, and types from their texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from formats import parse_text
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from onyx.spark.filtering import SparkMisused

Batch: TypeAlias = Any
Column: TypeAlias = Any  # of Arrow
T = TypeVar("T")

_ROWS = 1024  # of a batch
DIGITS_MAX = 38  # of a decimal of Spark
_COLUMN = re.compile(
    r"""\s*(`[^`]+`|\w+)\s+
    (?:string|boolean|tinyint|byte|smallint|short|int|integer|bigint|long|float|real|double|date|
    timestamp(?:_ntz|_ltz)?|(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?)\s*(?:,(?=.)|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)


def check_columns(text: str, others: Collection[str]) -> None:
    """The option ``columns``; SparkMisused for a type that no text says, as of arrays, and for a
    name that another column of the row has."""
    taken = {name.lower() for name in others}
    end = 0
    while end < len(text):
        found = _COLUMN.match(text, end)
        if found is None:
            wrong = text[end:].strip()
            raise SparkMisused(f"columns: {wrong!r}; expected as 'city string, t double'")
        name, end = found[1].strip("`"), found.end()
        if name.lower() in taken:
            raise SparkMisused(f"columns: a row has a column {name} already")
        taken.add(name.lower())
        digits, behind = int(found[2] or DIGITS_MAX), int(found[3] or 0)
        if not behind <= digits <= DIGITS_MAX or not digits:
            wrong = found[0].strip(" ,")
            raise SparkMisused(f"columns: {wrong!r}; a decimal has 1 to {DIGITS_MAX} digits")


def in_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """Rows as many at a time as a batch of Arrow holds."""
    left = iter(rows)
    while some := list(islice(left, _ROWS)):
        yield some


class RowSchema:
    """The columns of a schema of Spark; with ``named`` those from ``first`` to before ``end`` are
    made of each result, by their names."""

    def __init__(
        self, schema: Any, *, first: int = 0, end: int | None = None, named: bool = False
    ) -> None:
        to_arrow = import_module("pyspark.sql.pandas.types").to_arrow_schema
        self._arrow = import_module("pyarrow")
        self._schema = to_arrow(schema, timezone="UTC")
        self._made = list(self._schema)[first:end] if named else []

    def batch(self, columns: Sequence[Sequence[Any] | Column]) -> Batch:
        """Of values, or columns, in the order of the schema; a time is microseconds of the epoch,
        a text may be its bytes.  SparkMisused where a user has given another schema."""
        kind = self._arrow.Array
        try:
            arrays = [
                column if isinstance(column, kind) else self._column(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            return self._arrow.RecordBatch.from_arrays(arrays, schema=self._schema)
        except (ValueError, TypeError) as error:
            raise SparkMisused(f"leave out schema(): rows do not fit it: {error}") from None

    def of_results(self, results: Sequence[bytes | None]) -> list[Sequence[Any] | Column]:
        """The column of the results, or those that are made of them."""
        if not self._made:
            return [results]
        names = [field.name for field in self._made]
        columns = zip(*(cells(result, names) for result in results), strict=True)
        return [
            _typed(self._arrow, column, field.type)
            for column, field in zip(columns, self._made, strict=True)
        ]

    def _column(self, values: Sequence[Any], kind: Any) -> Column:
        arrow = self._arrow
        if arrow.types.is_timestamp(kind):
            return arrow.array(values, arrow.int64()).cast(kind)
        try:
            return arrow.array(values, kind)
        except arrow.ArrowInvalid:  # bytes that are no UTF-8
            return arrow.array(
                [
                    one.decode("utf-8", "replace") if isinstance(one, bytes) else one
                    for one in values
                ],
                kind,
            )


def cells(result: bytes | None, names: Sequence[str]) -> tuple[str | None, ...]:
    """The text of the first child, else of the attribute, of each name; None where there is none,
    or the result is no element."""
    try:
        stream = None if result is None else parse_text(result)
    except MessageRefused:
        stream = None
    return tuple(None if stream is None else _cell(stream, name) for name in names)


def _cell(stream: ElementStream, name: str) -> str | None:
    for child in stream.children_of(0):
        if stream.names[stream.element_name[child]].local == name:
            return stream.string_value(child)
    for attribute in stream.attributes_of(0):
        if stream.names[stream.attribute_name[attribute]].local == name:
            return stream.attribute_value(attribute)
    return None


def _typed(arrow: Any, texts: Sequence[str | None], kind: Any) -> Column:
    """Texts as the type of their column; null for one that does not say such a value."""
    try:
        return arrow.array(texts, arrow.string()).cast(kind)
    except arrow.ArrowInvalid:
        if len(texts) == 1:
            return arrow.nulls(1, kind)
        half = len(texts) // 2
        halves = (texts[:half], texts[half:])
        return arrow.concat_arrays([_typed(arrow, one, kind) for one in halves])
