"""Scans of fragments: relations as frames of Spark, within the bytes that a query may read.

A scan that may not read all reads the first pieces of its relation's files by their names: whole
files, of the next one row groups of Parquet or lines of texts, and members of archives.  A relation
without files here is cut by rows, in proportion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from overlay.archive_file import files_of
from registration.queries.providers import Relation
from registration.queries.query_plan import Scan
from registration.queries.stopped import QueryStopped
from registration.spark.archive_files import ArchiveFiles
from registration.spark.function_runner import Work, table_function
from registration.spark.parquet_rows import Piece, has_all, read_groups, row_groups
from registration.spark.session import Batch, Frame, Session

Reading: TypeAlias = Callable[[Iterator[Batch]], Iterator[Batch]]

# Formats of relations, and by each the options that a query may give as arguments.
ARGUMENTS = {"archive": frozenset({"profile", "columns", "source", "since", "until"})}

_WHOLE_FILES = ("multiline", "linesep", "encoding", "charset", "compression")
"""Options of texts of which lines are not cut here."""
_LOOK_BYTES = 1 << 16
_PART_BYTES = 16 << 20  # of lines, that a task reads


@dataclass(frozen=True, slots=True)
class Opened:
    """``bytes`` of files that the scan reads, of Parquet those of its columns; ``left``: bytes that
    it was not allowed to read.  ``rows`` of the whole relation where the files say them."""

    frame: Frame
    bytes: int
    left: int = 0
    rows: int | None = None


def open_scan(session: Session, scan: Scan, wrapper: Work | None = None) -> Opened:
    """The columns of a relation that a scan reads, of its files by ``wrapper``.  QueryStopped."""
    relation = scan.relation
    options = options_of(scan)
    if relation.format == "archive" and "archive" in options:
        opened = _archive(session, scan, options)
    else:
        opened = _files(session, scan, options)
    frame = opened.frame
    if wrapper is not None and relation.format == "files":
        frame = frame.mapInArrow(table_function(wrapper), ddl_of(wrapper.function.outputs))
    if scan.columns:
        frame = frame.select(*(f"`{name}`" for name in scan.columns))
    return Opened(frame, opened.bytes, opened.left, opened.rows)


def _url(relation: Relation) -> str:
    """Of a relation of JDBC: its location, or a secret."""
    return dict(relation.options).get("url", relation.location)


def options_of(scan: Scan) -> dict[str, str]:
    """Those of the catalog and the arguments of the query that its format takes, which are others:
    a source that the catalog names stays the one.  An archive is read in its folder where that
    is here, else by the brokers of its network.  QueryStopped."""
    relation = scan.relation
    options = dict(relation.options)
    taken = ARGUMENTS.get(relation.format, frozenset()) - options.keys()
    wrong = sorted({name for name, _ in scan.arguments} - taken)
    if wrong:
        raise QueryStopped("failed", f"{relation.name} takes no argument {wrong[0]}", relation.uri)
    is_here = bool(relation.location) and Path(relation.location).exists()
    if relation.format == "archive" and (is_here or not options.get("registration")):
        options.pop("registration", None)
        options["archive"] = relation.location
    return options | dict(scan.arguments)


def ddl_of(columns: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def most_of(scan: Scan, whole: float) -> float:
    """Bytes that the scan may read of so many that the relation has."""
    return min(inf if scan.most_bytes is None else scan.most_bytes, int(scan.share * whole))


def _archive(session: Session, scan: Scan, options: Mapping[str, str]) -> Opened:
    files = ArchiveFiles.of(files_of(Path(scan.relation.location)))
    most = most_of(scan, files.bytes)
    within = files.within(most)
    if within.bytes < files.bytes:
        options = {**options, "bytes": str(most)}
    frame = session.read.format("onyx").options(**options).load()
    return Opened(frame, within.bytes, files.bytes - within.bytes)


def _files(session: Session, scan: Scan, options: Mapping[str, str]) -> Opened:
    relation = scan.relation
    reader = session.read.options(**options)
    match relation.format:
        case "parquet":
            reader = reader.format("parquet")
        case "csv" | "json":
            columns = ((column.name, column.type) for column in relation.columns)
            reader = reader.schema(ddl_of(columns)).format(relation.format)
        case "files":
            reader = reader.format("binaryFile").option("recursiveFileLookup", "true")
        case "jdbc":
            return _by_rows(scan, reader.format("jdbc").option("url", _url(relation)).load())
        case "archive":
            return _by_rows(scan, reader.format("onyx").load())
        case other:
            raise QueryStopped("failed", f"{relation.name}: no format {other}", relation.uri)
    frame = reader.load(relation.location)
    paths = sorted(unquote(urlsplit(name).path) for name in frame.inputFiles())
    sizes = {path: Path(path).stat().st_size for path in paths if Path(path).exists()}
    if len(sizes) < len(paths) or not paths:
        return _by_rows(scan, _shown(frame, relation.format))
    pieces = [Piece(path, size) for path, size in sizes.items()]
    if relation.format == "parquet":
        pieces = [each for path in sizes for each in row_groups(path, scan.columns)]
    whole = sum(each.bytes for each in pieces)
    most = most_of(scan, sum(sizes.values()))
    rows = sum(each.rows for each in pieces) if relation.format == "parquet" else None
    if whole <= most:
        return Opened(_shown(frame, relation.format), whole, 0, rows)
    taken = first_of(pieces, most)
    read = sum(each.bytes for each in taken)
    by_file: dict[str, list[Piece]] = {}
    for each in taken:
        by_file.setdefault(each.path, []).append(each)
    last = pieces[len(taken)].path
    cut = by_file.pop(last, [])  # of this file not all row groups are read
    base = relation.location if Path(relation.location).is_dir() else str(Path(last).parent)
    whole_files = reader.option("basePath", base).load(list(by_file)) if by_file else None
    rest = None
    if relation.format == "parquet" and cut and has_all(last, frame.columns):
        rest = session.range(0, len(cut), 1, len(cut)).mapInArrow(
            _reading_groups(last, [each.group for each in cut], frame.schema), frame.schema
        )
    elif relation.format in ("csv", "json") and _has_lines(last, options):
        parts = _lines(last, int(most) - read)
        if parts:
            lines = session.range(0, len(parts), 1, len(parts))
            lines = lines.mapInArrow(_reading_lines(last, parts), "value string")
            given = session.read.options(**options).schema(frame.schema)
            rest = given.csv(lines) if relation.format == "csv" else given.json(lines)
            read += parts[-1][1]
    if rest is None:
        read -= sum(each.bytes for each in cut)
    frames = [each for each in (whole_files, rest) if each is not None]
    found = frames[0] if frames else frame.limit(0)
    for each in frames[1:]:
        found = found.unionByName(each)
    return Opened(_shown(found, relation.format), read, whole - read)


def _shown(frame: Frame, kind: str) -> Frame:
    return frame.select("path", "content") if kind == "files" else frame


def _by_rows(scan: Scan, frame: Frame) -> Opened:
    """Of what has no files here, as its catalog says."""
    relation = scan.relation
    whole = scan.estimate.bytes_read or relation.bytes or 0.0
    most = most_of(scan, relation.bytes or whole)
    rows = scan.estimate.rows or relation.rows or 0.0
    if scan.most_bytes is None and scan.share == 1:
        return Opened(frame, round(whole))
    if not (whole and rows):
        reason = f"nobody says how many bytes and rows {relation.name} has, so it is not read"
        raise QueryStopped("over-limit", reason, relation.uri)
    if whole <= most:
        return Opened(frame, round(whole))
    return Opened(frame.limit(int(rows * most / whole)), int(most), round(whole) - int(most))


def first_of(pieces: Iterable[Piece], most: float) -> list[Piece]:
    found: list[Piece] = []
    for each in pieces:
        most -= each.bytes
        if most < 0:
            break
        found.append(each)
    return found


# --- Parquet --------------------------------------------------------------------------------------


def _reading_groups(path: str, groups: list[int], schema: Any) -> Reading:
    def read(batches: Iterator[Batch]) -> Iterator[Batch]:
        arrow = import_module("pyarrow")
        made = import_module("pyspark.sql.pandas.types").to_arrow_schema(schema, timezone="UTC")
        for number in _numbers(batches):
            for batch in read_groups(path, [groups[number]], made.names):
                pairs = zip(batch.columns, made, strict=True)
                columns = [column.cast(f.type, safe=False) for column, f in pairs]
                yield arrow.RecordBatch.from_arrays(columns, schema=made)

    return read


def _numbers(batches: Iterator[Batch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


# --- texts ----------------------------------------------------------------------------------------


def _has_lines(path: str, options: Mapping[str, str]) -> bool:
    is_plain = not path.endswith((".gz", ".bz2", ".zst", ".lz4", ".snappy", ".xz"))
    return is_plain and not {name.lower() for name in options} & {*_WHOLE_FILES}


def _lines(path: str, most: int) -> list[tuple[int, int]]:
    """From and to of parts of the first so many bytes of a file, each of whole lines."""
    found: list[tuple[int, int]] = []
    start = 0
    with Path(path).open("rb") as file:
        while start < most:
            end = min(start + _PART_BYTES, most)
            while True:
                first = max(start, end - _LOOK_BYTES)
                file.seek(first)
                at = file.read(end - first).rfind(b"\n")
                end = first + at + 1 if at >= 0 else first
                if at >= 0 or end <= start:
                    break
            if end <= start:
                break
            found.append((start, end))
            start = end
    return found


def _reading_lines(path: str, parts: list[tuple[int, int]]) -> Reading:
    def read(batches: Iterator[Batch]) -> Iterator[Batch]:
        arrow = import_module("pyarrow")
        for number in _numbers(batches):
            start, end = parts[number]
            with Path(path).open("rb") as file:
                file.seek(start)
                lines = file.read(end - start).decode("utf-8", "replace").split("\n")
            said = arrow.array([line.removesuffix("\r") for line in lines[:-1]], arrow.string())
            yield arrow.RecordBatch.from_arrays([said], ["value"])

    return read
