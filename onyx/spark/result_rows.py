"""Rows of results as Arrow: columns of their own from each result, and types from their texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

from formats import parse_text
from formats.element_stream import ElementStream
from formats.errors import MessageRefused, Refusal
from onyx.errors import UserError

Batch: TypeAlias = Any

_ROWS = 1024  # of a batch


@contextmanager
def told_alone() -> Iterator[None]:
    """Spark tells a refusal in this block by its sentence, without the stack of the process that it
    runs the block in."""
    try:
        yield
    except (Refusal, UserError):
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # pyspark.util.handle_worker_exception
        raise


def record_batches(rows: Iterable[tuple[Any, ...]], schema: Any) -> Iterator[Batch]:
    """Of tuples in the order of a schema of Spark; texts are cast to the types of their columns."""
    arrow = import_module("pyarrow")
    kinds = import_module("pyspark.sql.pandas.types").to_arrow_schema(schema, timezone="UTC")
    rows = iter(rows)
    while some := list(islice(rows, _ROWS)):
        columns = list(zip(*some, strict=True))
        yield arrow.RecordBatch.from_arrays(
            [_typed(column, field.type) for column, field in zip(columns, kinds, strict=True)],
            schema=kinds,
        )


def cells(result: bytes, names: Sequence[str]) -> tuple[str | None, ...]:
    """The text of the first child, else of the attribute, of each name; None where there is none,
    or the result is no element.  Without names the result itself."""
    if not names:
        return (result.decode("utf-8", "replace"),)
    try:
        stream = parse_text(result)
    except MessageRefused:
        return (None,) * len(names)
    return tuple(_cell(stream, name) for name in names)


def _cell(stream: ElementStream, name: str) -> str | None:
    for child in stream.children_of(0):
        if stream.names[stream.element_name[child]].local == name:
            return stream.string_value(child)
    for attribute in stream.attributes_of(0):
        if stream.names[stream.attribute_name[attribute]].local == name:
            return stream.attribute_value(attribute)
    return None


def _typed(values: Sequence[Any], kind: Any) -> Any:
    """Texts as the type of their column; null for one that does not say such a value."""
    arrow = import_module("pyarrow")
    if not any(isinstance(value, str) for value in values):
        return arrow.array(values, kind)
    try:
        return arrow.array(values, arrow.string()).cast(kind)
    except arrow.ArrowInvalid:
        if len(values) == 1:
            return arrow.nulls(1, kind)
        half = len(values) // 2
        return arrow.concat_arrays([_typed(values[:half], kind), _typed(values[half:], kind)])
