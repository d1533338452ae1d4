"""Rows of a query as messages of a source: ``onyx query --publish SOURCE``.

A result of a column ``message`` (and ``key``, ``media_type``, ``headers``) is published as
``format("onyx")`` publishes it.  Of any other result each row is an element, with an element for
each value that is not null::

    <row><id>7</id><tags>a</tags><tags>b</tags><maker><name>Ann</name></maker></row>

A list is an element for each item, a struct has its fields as children, a map is an element for
each entry with ``key`` and ``value``.  A column whose name is none of XML is ``<column
name="…">``.  A row without a key has one by the text of the query, its own text, and how many equal
rows there were before, so that a query that is asked again publishes no row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from hashlib import sha256
from math import isnan
from typing import Any, Final, Self

import pyarrow as pa

from formats.characters import is_colonless_name
from formats.escapes import escaped_text, escaped_value
from formats.media_types import XML
from onyx.queries.result_files import plain
from onyx.spark.filtering import RowRefused
from onyx.spark.network import Network
from onyx.spark.publishing import (
    COLUMNS,
    Connection,
    Publisher,
    check_source,
    rows_of,
)
from registration.queries.refusals import QueryRefused

_KINDS: Final[Mapping[str, pa.DataType]] = {
    **dict.fromkeys(("message", "key", "media_type"), pa.string()),
    "headers": pa.map_(pa.string(), pa.string()),
}


class PublishedRows:
    """A context manager; ``counts``: rows accepted, refused, and known by their keys.

    ``tell`` is called for each row that is refused, and the others are published."""

    def __init__(
        self, network: Network, source: str, query: str, tell: Callable[[RowRefused], None]
    ) -> None:
        """The network's refusal of a source that is not there."""
        check_source(network, source)
        self._network, self._source = network, source
        self._query = sha256(query.encode()).hexdigest()[:16]
        self._publisher = Publisher(tell)
        self.counts = self._publisher.counts
        self._rows = 0

    def __enter__(self) -> Self:
        self._connection: Connection | None = Connection(self._network, self._source)
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Publishes it: its rows are on the disk of the root broker then, or refused.  QueryRefused
        for a column of another type; the network's refusal."""
        rows = rows_of(messages(batch), keyed=False)
        placed = self._publisher.keyed(rows, self._query, "row", self._rows + 1)
        self._rows += batch.num_rows
        connection, self._connection = self._connection, None  # which ends with a failure
        assert connection is not None
        connection.publish(self._publisher, placed)
        self._connection = connection


def messages(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as messages, by the columns of ``format("onyx")``."""
    names = batch.schema.names
    if "message" not in names or not set(names) <= COLUMNS.keys():
        rows = zip(*(each.to_pylist() for each in batch.columns), strict=True)
        return pa.RecordBatch.from_pydict(
            {"message": [_row(row, batch.schema) for row in rows], "media_type": [XML] * len(batch)}
        )
    columns = [_cast(batch.column(name), name) for name in names]
    return pa.RecordBatch.from_arrays(columns, names)


def _cast(column: pa.Array, name: str) -> pa.Array:
    if name == "message" and pa.types.is_binary(column.type):
        return column
    try:
        return column.cast(_KINDS[name])
    except pa.ArrowException:
        reason = f"column {name} is {column.type}; expected {' or '.join(COLUMNS[name])}"
        raise QueryRefused("forbidden-sql", reason, hint="give it another name by AS") from None


def _row(values: tuple[Any, ...], schema: pa.Schema) -> str:
    found = (_elements(field, value) for field, value in zip(schema, values, strict=True))
    return f"<row>{''.join(each for some in found for each in some)}</row>"


def _elements(field: pa.Field, value: Any) -> Iterator[str]:
    """Of a value; none for null."""
    kind = field.type
    if value is None:
        return
    if pa.types.is_map(kind):
        parts = pa.field("key", kind.key_type), pa.field("value", kind.item_type)
        for entry in value:
            inner = (_elements(part, each) for part, each in zip(parts, entry, strict=True))
            yield _element(field.name, "".join(each for some in inner for each in some))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        for item in value:
            yield from _elements(pa.field(field.name, kind.value_type), item)
    elif pa.types.is_struct(kind):
        inner = (_elements(part, value[part.name]) for part in kind)
        yield _element(field.name, "".join(each for some in inner for each in some))
    else:
        yield _element(field.name, escaped_text(_text(value)))


def _element(name: str, inner: str) -> str:
    if is_colonless_name(name):
        return f"<{name}>{inner}</{name}>"
    return f'<column name="{escaped_value(name)}">{inner}</column>'


def _text(value: Any) -> str:
    """As XML Schema writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case float() if value - value != 0:  # NaN, INF
            return "NaN" if isnan(value) else "INF" if value > 0 else "-INF"
    return str(plain(value))
