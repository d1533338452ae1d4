"""Arrow types of Spark's DDL, without a session: ``array<struct<name: string, image: binary>>``."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from registration.queries.column_types import NoType, Type, read_type
from registration.queries.refusals import QueryRefused

_PLAIN = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "varchar": pa.string(), "char": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip


def arrow_schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Of names and types; QueryRefused ``syntax`` for a type that is none of Spark's DDL."""
    return pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in columns])


def arrow_type(ddl: str) -> pa.DataType:
    try:
        return _of(read_type(ddl))
    except (NoType, KeyError, ValueError):
        hint = "a type of Spark's DDL, as STRING or ARRAY<STRUCT<name: STRING>>"
        raise QueryRefused("syntax", f"no type: {ddl!r}", hint=hint) from None


def _of(type_: Type) -> pa.DataType:
    inner = [pa.field(name, _of(part)) for name, part in type_.parts]
    match type_.name:
        case "array":
            return pa.list_(inner[0])
        case "map":
            return pa.map_(inner[0].type, inner[1].type)
        case "struct":
            return pa.struct(inner)
        case "decimal":
            return pa.decimal128(*type_.numbers)
    return _PLAIN[type_.name]
