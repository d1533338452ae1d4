"""Arrow types of Spark's DDL, without a session: ``array<struct<name: string, image: binary>>``."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from sqlglot import exp

from registration.queries.refusals import QueryRefused
from registration.queries.sql_types import parsed

_PLAIN = {
    exp.DataType.Type.BOOLEAN: pa.bool_(), exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(), exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(), exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(), exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.VARCHAR: pa.string(), exp.DataType.Type.CHAR: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(), exp.DataType.Type.VARBINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMPLTZ: pa.timestamp("us", tz="UTC"),
    exp.DataType.Type.TIMESTAMPNTZ: pa.timestamp("us"),
}  # fmt: skip


def arrow_schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Of names and types; QueryRefused ``syntax`` for a type that is none of Spark's DDL."""
    return pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in columns])


def arrow_type(ddl: str) -> pa.DataType:
    found = parsed(ddl)
    try:
        if found is not None:
            return _of(found)
    except (KeyError, ValueError, AttributeError):
        pass
    hint = "a type of Spark's DDL, as STRING or ARRAY<STRUCT<name: STRING>>"
    raise QueryRefused("syntax", f"no type: {ddl!r}", hint=hint)


def _of(found: exp.DataType) -> pa.DataType:
    inner = found.expressions
    match found.this:
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return pa.list_(_of(inner[0]))
        case exp.DataType.Type.MAP:
            return pa.map_(_of(inner[0]), _of(inner[1]))
        case exp.DataType.Type.STRUCT:
            return pa.struct([pa.field(part.this.name, _of(part.args["kind"])) for part in inner])
        case exp.DataType.Type.DECIMAL:
            digits = [int(part.this.name) for part in inner] or [10]
            return pa.decimal128(*digits)
        case kind:
            return _PLAIN[kind]
