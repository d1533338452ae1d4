"""Rows of Parquet files, read by row groups without Spark.

Spark and Arrow read columns of some types otherwise: a relation is read here where its columns have
just the types of its catalog in each of its files, and the files lie in one folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from registration.queries.query_plan import Scan

Batch: TypeAlias = Any

BATCH_BYTES = 4 << 20
_ROWS_MAX = 1 << 16  # of a batch
_ROWS_SEEN = 64
_PATTERN = frozenset("*?[{\\")
"""Characters of a location that Spark takes for a pattern of names."""
_OF_SPARK = b"org.apache.spark"
"""Begins keys of a file by which Spark reads dates of old calendars."""


class Piece(NamedTuple):
    """A file, or a row group of one; ``bytes`` of the columns that are read, and ``rows``."""

    path: str
    bytes: int
    rows: int = 0
    group: int = 0


def row_groups(path: str, columns: Iterable[str]) -> Iterator[Piece]:
    """The row groups of a file with the bytes of some columns, none: of all."""
    wanted = set(columns)
    said = import_module("pyarrow.parquet").read_metadata(path)
    for number in range(said.num_row_groups):
        group = said.row_group(number)
        chunks = (group.column(at) for at in range(group.num_columns))
        size = sum(
            chunk.total_compressed_size
            for chunk in chunks
            if not wanted or chunk.path_in_schema.partition(".")[0] in wanted
        )
        yield Piece(path, size, group.num_rows, number)


def has_all(path: str, columns: Iterable[str]) -> bool:
    """Whether a file has these columns itself, and not in the names of its folders."""
    return {*columns} <= {*import_module("pyarrow.parquet").read_schema(path).names}


def plain_files(scan: Scan, columns: Sequence[str], schema: Any) -> list[str]:
    """The files of a scan whose ``columns`` have the types of an Arrow schema; none where Spark is
    to read the relation."""
    relation = scan.relation
    where = urlsplit(relation.location)
    if relation.format != "parquet" or relation.options or relation.wrapper or scan.arguments:
        return []
    if where.scheme not in ("", "file") or _PATTERN & {*relation.location}:
        return []
    path = Path(unquote(where.path) if where.scheme else relation.location)
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [str(each) for each in found if not each.name.startswith((".", "_"))]
    if all(Path(each).is_file() and _has_types(each, columns, schema) for each in files):
        return files
    return []


def _has_types(path: str, columns: Sequence[str], schema: Any) -> bool:
    arrow = import_module("pyarrow")
    try:
        own = import_module("pyarrow.parquet").read_schema(path)
    except (OSError, arrow.ArrowException):
        return False
    is_old = any(key.startswith(_OF_SPARK) for key in own.metadata or ())
    return not (is_old and any(arrow.types.is_temporal(each.type) for each in schema)) and all(
        len(own.get_all_field_indices(name)) == 1 and own.field(name).type == of.type
        for name, of in zip(columns, schema, strict=True)
    )


def read_groups(path: str, groups: Sequence[int], columns: Sequence[str]) -> Iterator[Batch]:
    """The rows of some row groups in order, in batches of about BATCH_BYTES."""
    with import_module("pyarrow.parquet").ParquetFile(path, memory_map=True) as file:
        for number in groups:
            group = file.metadata.row_group(number)
            names = list(dict.fromkeys(columns))
            # The file may have each text once, so some rows say how many bytes one has.
            first = next(file.iter_batches(_ROWS_SEEN, row_groups=[number], columns=names), None)
            seen = 0 if first is None else first.nbytes / max(first.num_rows, 1)
            width = max(seen, group.total_byte_size / max(group.num_rows, 1), 1.0)
            rows = max(1, min(_ROWS_MAX, int(BATCH_BYTES / width)))
            for batch in file.iter_batches(rows, row_groups=[number], columns=names):
                yield batch.select(list(columns))
