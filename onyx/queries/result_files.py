"""Results of queries as files: Parquet, CSV, JSON lines, Arrow; a file is whole or not there."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from math import isfinite
from pathlib import Path
from tempfile import mkstemp
from typing import Any, TypeAlias

import pyarrow as pa

from onyx.errors import UsageError, file_errors

Write: TypeAlias = Callable[[pa.RecordBatch], Any]

SUFFIXES = (".parquet", ".csv", ".jsonl", ".arrow")


@contextmanager
def result_file(path: Path, schema: pa.Schema) -> Iterator[Write]:
    """A function that writes batches into a file of the kind that its suffix says; the file has its
    name when the block has ended well.  UsageError for another suffix, UnwritableOutput."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: expected a name with {', '.join(SUFFIXES)}")
    with file_errors(path):
        handle, name = mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
    temporary = Path(name)
    try:
        with file_errors(path), os.fdopen(handle, "wb") as file:
            with _writer(path.suffix, file, schema) as write:
                yield write
            file.flush()
        with file_errors(path):
            temporary.chmod(0o644)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _writer(suffix: str, file: Any, schema: pa.Schema) -> Iterator[Write]:
    if suffix == ".jsonl":
        yield lambda batch: file.write("".join(json_lines(batch)).encode())
        return
    if suffix == ".parquet":
        made = import_module("pyarrow.parquet").ParquetWriter(file, schema)
    elif suffix == ".arrow":
        made = pa.ipc.new_file(file, schema)
    else:
        flat = pa.schema([(field.name, _in_csv(field.type)) for field in schema])
        made = import_module("pyarrow.csv").CSVWriter(file, flat)
        with made:
            yield lambda batch: made.write(_flat(batch, flat))
        return
    with made:
        yield made.write_batch if suffix == ".parquet" else made.write


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """A row a line; bytes in base64, times as ISO 8601 has them, decimals as text."""
    for row in batch.to_pylist():
        yield json.dumps(plain(row), ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """A value as JSON can have it."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case dict():
            return {str(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case float() if not isfinite(value):
            return None
    return value


def _in_csv(kind: pa.DataType) -> pa.DataType:
    is_text = pa.types.is_nested(kind) or pa.types.is_binary(kind)
    return pa.string() if is_text else kind


def _flat(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Lists and structs as JSON, bytes in base64."""

    def texts(values: Iterable[Any]) -> list[str | None]:
        said = (plain(value) for value in values)
        return [v if v is None or isinstance(v, str) else json.dumps(v) for v in said]

    columns = [
        column if column.type == field.type else pa.array(texts(column.to_pylist()), pa.string())
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
