"""The inputs of a job: profiles, messages and weights; small files are read in this process.

=============  ===================================================================================
profiles       what it holds
=============  ===================================================================================
``lines``      text, a profile a line; ``.gz`` as well.  Ids are line numbers of a kind: stable for
               the same files
``files``      ``.xq`` or ``.rq`` files, a profile each; the id is the file's name
``jsonl``      an object a line (profile_lines.py); without an id, that is a number of the line
``parquet``    the columns ``profile`` and ``text``, and ``near`` if it is there
=============  ===================================================================================

An archive of messages is a directory of XML files, and of graphs by their names, Parquet with a
column ``message``, and ``media_type`` if it is there, or files that brokers have written
(overlay/archive_file.py), and ``.jsonl.gz`` files of earlier releases; names of unfinished ones
begin with a dot.

Spark takes ten seconds to start, in which one process is done with ``SMALL_BYTES`` of messages:
the functions of Spark's workers run here then, over ``Rows`` in place of a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any, TypeAlias

from overlay.archive_file import files_of, is_archive, unnoted
from registration.spark.archive_files import ARCHIVED_SCHEMA, Note, batches_of
from registration.spark.archived_message import ARCHIVED
from registration.spark.arrow_types import batch_of
from registration.spark.profile_lines import OBJECT_SUFFIXES, numbered, read_object, unpacked
from registration.spark.progress import Run
from registration.spark.session import Batch, UnreadableData

FORMATS = ("lines", "files", "jsonl", "parquet")
_FORMAT_OF_SUFFIX = {
    ".xq": "files",
    ".xquery": "files",
    ".rq": "files",
    ".sparql": "files",
    **dict.fromkeys(OBJECT_SUFFIXES, "jsonl"),
    ".parquet": "parquet",
}
MESSAGE_SUFFIXES = ("xml", "rdf", "rss", "ttl", "trig", "nt", "nq", "jsonld")
SMALL_BYTES = 8 * 1024 * 1024  # of all messages; packed ones count as they are
SMALL_PROFILES_BYTES = 1024 * 1024

PROFILES_SCHEMA = "profile string, text string, load double"
_Row: TypeAlias = tuple[str, str, float]
_BATCH_ROWS = 1024
_OF_SPARK = "*?[]{}:"


class Rows:
    """Batches in this process, with the methods of a frame that jobs call."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = batches

    def mapInArrow(self, run: Run, schema: str) -> Rows:  # noqa: N802 - of Spark
        return Rows(run(iter(self._batches)))

    def select(self, *names: str) -> Rows:
        return Rows(batch.select(list(names)) for batch in self._batches)

    def limit(self, most: int) -> Rows:
        return Rows(self.table().slice(0, most).to_batches())

    def table(self) -> Any:
        return import_module("pyarrow").Table.from_batches(self._batches)

    def collect(self) -> list[tuple[Any, ...]]:
        columns = ([each.to_pylist() for each in batch.columns] for batch in self._batches)
        return [row for some in columns for row in zip(*some, strict=True)]


def are_small(profiles: Sequence[str], archive: Sequence[str] = ()) -> bool:
    """Whether this process is to read both, by the bytes of their files."""
    parts = (profiles, SMALL_PROFILES_BYTES), (archive, SMALL_BYTES)
    is_possible = util.find_spec("pyarrow") is not None
    return is_possible and all(_size(paths, most) <= most for paths, most in parts)


def _size(paths: Sequence[str], most: int) -> int:
    """Bytes, as far as ``most``; beyond it where a path is for Spark to find, by its scheme or as
    a pattern."""
    total = 0
    for path in paths:
        if set(path) & set(_OF_SPARK):
            return most + 1
        for file in _each_file(Path(path)):
            total += file.stat().st_size if file.exists() else 0
            if total > most:
                return total
    return total


def _files(path: Path, *suffixes: str) -> list[Path]:
    """The same in the order of their names, of some suffixes."""
    found = _each_file(path)
    if not (suffixes and path.is_dir()):
        return sorted(found)
    return sorted(each for each in found if each.suffix[1:] in suffixes)


def _each_file(path: Path) -> Iterator[Path]:
    """A file, or those of a directory that Spark would read, as they come."""
    if not path.is_dir():
        yield path
        return
    for each in path.rglob("*"):
        parts = each.relative_to(path).parts
        if each.is_file() and not any(part.startswith((".", "_")) for part in parts):
            yield each


def profile_format(path: str) -> str:
    """By the suffix, or the one suffix of the files in a directory."""
    if holds(path, ".parquet"):
        return "parquet"
    where = Path(path)
    files = [file for file in where.iterdir() if file.is_file()] if where.is_dir() else [where]
    suffixes = {Path(file.name.removesuffix(".gz")).suffix for file in files}
    known = {_FORMAT_OF_SUFFIX.get(suffix, "lines") for suffix in suffixes}
    return known.pop() if len(known) == 1 else "lines"


def holds(path: str, suffix: str) -> bool:
    """Whether it is such a file by its name, or a directory of such files."""
    return path.rstrip("/").endswith(suffix) or (
        Path(path).is_dir() and next(Path(path).glob(f"*{suffix}"), None) is not None
    )


# -- profiles


def small_profiles(paths: Sequence[str], kind: str) -> Rows:
    """PROFILES_SCHEMA of files of one kind; UnreadableData."""
    if kind == "parquet":
        rows = [row for path in paths for row in _parquet_rows(path)]
    else:
        files = [file for path in paths for file in _files(Path(path))]
        whole = ((file.name, unpacked(str(file)), 1.0) for file in files)
        rows = list(whole if kind == "files" else _line_rows(files, kind))
    return Rows([batch_of(PROFILES_SCHEMA, list(zip(*rows, strict=True)) or ((), (), ()))])


def small_weighted(profiles: Rows, path: str) -> Rows:
    """See ``weighted`` in inputs.py."""
    table = parquet_table(path, "profile", "load")
    loads = dict(zip(*(table[name].to_pylist() for name in ("profile", "load")), strict=True))
    rows = [(name, text, loads.get(name, load)) for name, text, load in profiles.collect()]
    return Rows([batch_of(PROFILES_SCHEMA, list(zip(*rows, strict=True)) or ((), (), ()))])


def _line_rows(files: Sequence[Path], kind: str) -> Iterator[_Row]:
    before = number = 0
    for file in files:
        before += number
        number = 0
        for number, text in numbered(str(file)):
            usual = str(before + number - 1)
            if kind == "lines":
                yield usual, text.strip(), 1.0
            elif (row := row_of(text, f"{file}: line {number}", usual)) is not None:
                yield row


def row_of(text: str, where: str, usual: str) -> _Row | None:
    """Of an object, by its id or the ``usual`` one; None: it insists on its place.
    UnreadableData."""
    try:
        line = read_object(text, "text")
    except ValueError as error:
        raise UnreadableData(f"{where}: {error}") from None
    return None if line.near else (line.profile or usual, line.text, line.load)


def _parquet_rows(path: str) -> Iterator[_Row]:
    table = parquet_table(path, "profile", "text")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    for number in range(table.num_rows):
        near, load = (columns[n][number] if n in columns else None for n in ("near", "load"))
        if not near:
            load = 1.0 if load is None else float(load)
            yield str(columns["profile"][number]), columns["text"][number] or "", load


def parquet_table(path: str, *needed: str) -> Any:
    """UnreadableData for another file, or one without a column."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise UnreadableData(f"{path}: {str(error).splitlines()[0]}") from None
    check_columns(path, table.column_names, *needed)
    return table


def check_columns(name: str, columns: Sequence[str], *needed: str) -> None:
    """UnreadableData where one is missing."""
    if missing := set(needed) - set(columns):
        there = ", ".join(columns)
        raise UnreadableData(
            f"{name}: no column {' and '.join(sorted(missing))}; there are {there}"
        )


# -- messages


def small_messages(paths: Sequence[str], note: Note = unnoted) -> Rows:
    """ARCHIVED_SCHEMA; ``note`` is told of damaged archives.  UnreadableData, as it is read."""
    return Rows(batch for path in paths for batch in _messages(path, note))


def _messages(path: str, note: Note) -> Iterator[Batch]:
    if not Path(path).exists():
        raise UnreadableData(f"{path}: there is no such file or directory")
    if holds(path, ".parquet"):
        yield from _archived(path)
    elif is_archive(Path(path)):
        for file in files_of(Path(path)):
            yield from batches_of(str(file), None, note)
    else:
        for file in _files(Path(path), *MESSAGE_SUFFIXES):
            yield batch_of(ARCHIVED_SCHEMA, ([file.name], [file.read_bytes()], [None], [None]))


def _archived(path: str) -> Iterator[Batch]:
    """See ``archived_of`` in inputs.py."""
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    table = parquet_table(path, "message")
    table = table.filter(compute.is_valid(table["message"]))
    names = arrow.repeat("", table.num_rows)
    nulls = arrow.nulls(table.num_rows)

    def said(name: str, kind: Any, usual: Any = nulls) -> Any:
        found = table[name] if name in table.column_names else usual
        try:
            return found.cast(kind)
        except arrow.ArrowException:
            raise UnreadableData(f"{path}: column {name} is {found.type}") from None

    kinds = said("media_type", arrow.string())
    times = said("time", arrow.timestamp("us")).cast(arrow.int64())
    columns = (
        said("name", arrow.string(), names),
        said("message", arrow.binary()),
        compute.if_else(compute.equal(kinds, ""), None, kinds),
        times,
    )
    made = arrow.Table.from_arrays(list(columns), names=list(ARCHIVED))
    yield from made.to_batches(max_chunksize=_BATCH_ROWS)
