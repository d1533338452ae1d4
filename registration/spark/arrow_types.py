"""Arrow types of Spark's DDL, without a session: ``array<struct<name: string, image: binary>>``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from registration.queries.column_types import NoType, Type, read_columns, read_type
from registration.queries.refusals import QueryRefused

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN: dict[str, tuple[str, ...]] = {
    "boolean": ("bool_",), "tinyint": ("int8",), "smallint": ("int16",), "int": ("int32",),
    "bigint": ("int64",), "float": ("float32",), "double": ("float64",), "string": ("string",),
    "varchar": ("string",), "char": ("string",), "binary": ("binary",), "date": ("date32",),
    "timestamp": ("timestamp", "us", "UTC"), "timestamp_ntz": ("timestamp", "us"),
}  # fmt: skip
"""A function of pyarrow with its arguments."""


def arrow_schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Of names and types; QueryRefused ``syntax`` for a type that is none of Spark's DDL."""
    return import_module("pyarrow").schema([(name, arrow_type(ddl)) for name, ddl in columns])


@cache
def _schema_of(ddl: str) -> pa.Schema:
    return arrow_schema(read_columns(ddl))


def batch_of(ddl: str, columns: Iterable[Any]) -> pa.RecordBatch:
    """Columns of values, or Arrow arrays, with the names and types of a schema in DDL."""
    arrow, schema = import_module("pyarrow"), _schema_of(ddl)
    made = [
        column if isinstance(column, arrow.Array) else arrow.array(column, each.type)
        for column, each in zip(columns, schema, strict=True)
    ]
    return arrow.RecordBatch.from_arrays(made, schema.names)


def arrow_type(ddl: str) -> pa.DataType:
    try:
        return _of(read_type(ddl))
    except (NoType, KeyError, ValueError):
        hint = "a type of Spark's DDL, as STRING or ARRAY<STRUCT<name: STRING>>"
        raise QueryRefused("syntax", f"no type: {ddl!r}", hint=hint) from None


def _of(type_: Type) -> pa.DataType:
    arrow = import_module("pyarrow")
    inner = [arrow.field(name, _of(part)) for name, part in type_.parts]
    match type_.name:
        case "array":
            return arrow.list_(inner[0])
        case "map":
            return arrow.map_(inner[0].type, inner[1].type)
        case "struct":
            return arrow.struct(inner)
        case "decimal":
            return arrow.decimal128(*type_.numbers)
    name, *given = _PLAIN[type_.name]
    return getattr(arrow, name)(*given)
