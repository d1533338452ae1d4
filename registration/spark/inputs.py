"""The inputs of a job (input_files.py), from any path that Spark reads; small files without it.

``onyx://HOST:PORT?credentials=FILE&source=NAME`` are the archives of a network's brokers: Spark
finds ``format("onyx")`` by its name, and the query has options of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from overlay.archive_file import files_of, is_archive, unnoted
from registration.spark.archive_files import (
    ARCHIVED_SCHEMA,
    ArchiveFiles,
    Note,
    batch_of_rows,
)
from registration.spark.archived_message import ARCHIVED
from registration.spark.arrow_types import batch_of
from registration.spark.input_files import (
    MESSAGE_SUFFIXES,
    PROFILES_SCHEMA,
    Rows,
    check_columns,
    holds,
    profile_format,
    row_of,
    small_messages,
    small_profiles,
    small_weighted,
)
from registration.spark.progress import Run
from registration.spark.sent_code import is_here
from registration.spark.session import Batch, Frame, Session, UnreadableData, told_by

_NETWORK = "onyx://"
_MESSAGE_FILES = f"*.{{{','.join(MESSAGE_SUFFIXES)}}}"


def read_profiles(session: Session | None, paths: Sequence[str], kind: str = "") -> Frame:
    """A frame of PROFILES_SCHEMA, ``load`` 1.0 where none is said; ``kind`` "": by the suffixes.
    ``session`` None: in this process.

    Profiles that insist on a place (``near``) are left out.
    """
    kinds = {kind or profile_format(path) for path in paths}
    if len(kinds) > 1:
        raise UnreadableData(f"{', '.join(paths)}: files of several kinds; say --format")
    if session is None:
        return small_profiles(paths, kinds.pop())
    return profiles_of(_read(session, list(paths), kinds.pop()), ", ".join(paths))


def profiles_of(frame: Frame, name: str) -> Frame:
    """``read_profiles`` of a frame with the columns ``profile`` and ``text``, and ``near`` and
    ``load`` if they are there; UnreadableData says the ``name``."""
    functions = import_module("pyspark.sql.functions")
    check_columns(name, frame.columns, "profile", "text")
    if "near" in frame.columns:
        # What insists on its user's location is placed by that, whatever the plan says.
        frame = frame.where(~functions.coalesce("near", functions.lit(False)))
    load = functions.col("load").cast("double") if "load" in frame.columns else functions.lit(1.0)
    return frame.select(
        functions.col("profile").cast("string").alias("profile"),
        functions.col("text").cast("string").alias("text"),
        load.alias("load"),
    )


def weighted(session: Session | None, profiles: Frame, path: str) -> Frame:
    """The profiles with the loads that a backtest found; 1.0 for one that it did not know."""
    if session is None:
        return small_weighted(profiles, path)
    functions = import_module("pyspark.sql.functions")
    weights = _checked(lambda: session.read.parquet(path), path)
    check_columns(path, weights.columns, "profile", "load")
    loads = weights.select("profile", functions.col("load").cast("double").alias("weight"))
    joined = profiles.join(loads, "profile", "left")
    return joined.select("profile", "text", functions.coalesce("weight", "load").alias("load"))


def read_messages(session: Session | None, paths: Sequence[str], note: Note = unnoted) -> Frame:
    """A frame of ``name``, ``message`` (bytes), ``media_type`` (null: by the name) and
    ``accepted`` (microseconds of the epoch, or null); ``note`` is told of damaged archives.
    ``session`` None: in this process."""
    if session is None:
        return small_messages(paths, note)
    first, *others = (_read_archive(session, path, note) for path in paths)
    for other in others:
        first = first.unionByName(other)
    return first


def read_sample(
    session: Session | None,
    archive: Sequence[str] | Frame,
    most: int,
    counted: Callable[[Run], Run] = lambda run: run,
    note: Note = unnoted,
) -> Frame:
    """At most so many of the rows of ``read_messages`` of paths, or of a frame of messages, the
    same ones every time.

    No message is read where the summaries of an archive have enough of them; else each is read
    once (``counted``).  The workers of a cluster need not have the files of an archive: they are
    read here, and fewer messages are enough.  The brokers of a network are asked for the first
    messages of some spans of time.
    """
    if not isinstance(archive, Sequence):
        frame = archived_of(archive, "messages")
    else:
        if all(is_archive(Path(path)) for path in archive):
            archives = ArchiveFiles.of([file for path in archive for file in files_of(Path(path))])
            is_near = session is None or is_here(session.sparkContext.master)
            chosen = archives.sample(most, None if is_near else 1, note=note)
            if chosen is None and not is_near:
                chosen = archives.read_sample(most, note)
            if chosen is not None:
                if session is None:
                    return Rows([batch_of_rows(chosen)])
                rows = [(row.name, row.message, row.media_type or None, row.time) for row in chosen]
                return session.createDataFrame(rows, ARCHIVED_SCHEMA)
        frame = read_messages(session, [_sampled(path, most) for path in archive], note)
    ranked = frame.mapInArrow(counted(_lowest(most)), f"{ARCHIVED_SCHEMA}, rank bigint")
    if session is None:  # where one task has seen all
        return ranked.select(*ARCHIVED)
    return ranked.orderBy("rank").limit(most).drop("rank")


def _sampled(path: str, most: int) -> str:
    if not path.startswith(_NETWORK):
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode({'sample': most})}"


def _lowest(most: int) -> Run:
    """The messages of the lowest ranks of a task, each with its rank, a digest."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        arrow = import_module("pyarrow")
        chosen: Any = None
        for batch in batches:
            names, messages = (batch.column(name).to_pylist() for name in ARCHIVED[:2])
            ranks = [
                int.from_bytes(blake2b(f"{name}/".encode() + message, digest_size=7).digest())
                for name, message in zip(names, messages, strict=True)
            ]
            table = arrow.Table.from_batches([batch]).append_column(
                "rank", arrow.array(ranks, arrow.int64())
            )
            both = table if chosen is None else arrow.concat_tables([chosen, table])
            chosen = both.take(both["rank"].to_numpy().argsort(kind="stable")[:most])
        yield from () if chosen is None else chosen.to_batches()

    return run


def _read(session: Session, paths: list[str], kind: str) -> Frame:
    functions = import_module("pyspark.sql.functions")
    name = ", ".join(paths)
    if kind == "parquet":
        return _checked(lambda: session.read.parquet(*paths), name)
    if kind == "jsonl":
        lines = _checked(lambda: session.read.text(paths), name)
        number = functions.monotonically_increasing_id()
        return lines.select("value", number).mapInArrow(partial(_rows_of, name), PROFILES_SCHEMA)
    whole = kind == "files"
    text = _checked(lambda: session.read.text(paths, wholetext=whole), name)
    if whole:
        file = functions.element_at(functions.split(functions.input_file_name(), "/"), -1)
        return text.select(file.alias("profile"), functions.col("value").alias("text"))
    lines = text.select(
        functions.monotonically_increasing_id().cast("string").alias("profile"),
        functions.trim("value").alias("text"),
    )
    return lines.where(functions.col("text") != "")


def _rows_of(name: str, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Of lines with the places that Spark gives them, which are those of a file only as long as
    one task reads all of it: a wrong line is told with its beginning."""
    for batch in batches:
        rows = [
            row_of(text, f"{name}: the line {text[:60]!r}", str(number))
            for text, number in zip(*(each.to_pylist() for each in batch.columns), strict=True)
            if text.strip()
        ]
        columns = list(zip(*filter(None, rows), strict=True)) or ((), (), ())
        yield batch_of(PROFILES_SCHEMA, columns)


def _read_archive(session: Session, path: str, note: Note) -> Frame:
    functions = import_module("pyspark.sql.functions")
    if path.startswith(_NETWORK):
        asked = urlsplit(path)
        options = {"registration": asked.netloc, "source": "", **dict(parse_qsl(asked.query))}
        # Spark lists no modules of an editable install, where it would find this one by its name.
        session.dataSource.register(import_module("pyspark_onyx").DefaultSource)
        network = session.read.format("onyx").options(**options)
        found = _checked(network.load, asked.netloc)
        name = functions.concat_ws("/", "source", "number")
        return archived_of(found.withColumn("name", name), path)
    if holds(path, ".parquet"):
        return archived_of(_checked(lambda: session.read.parquet(path), path), path)
    if is_archive(Path(path)):
        return ArchiveFiles.of(files_of(Path(path))).frame(session, note)
    reader = session.read.format("binaryFile")
    if Path(path).is_dir():
        reader = reader.option("recursiveFileLookup", "true")
        reader = reader.option("pathGlobFilter", _MESSAGE_FILES)
    files = _checked(lambda: reader.load(path), path)
    name = functions.element_at(functions.split("path", "/"), -1)
    content = functions.col("content").alias("message")
    return archived_of(files.select(name.alias("name"), content), path)


def archived_of(frame: Frame, path: str) -> Frame:
    """``read_messages`` of a frame with a column ``message`` of texts or bytes, and ``name``,
    ``media_type`` and ``time`` if they are there."""
    functions = import_module("pyspark.sql.functions")
    kinds = dict(frame.dtypes)
    if kinds.get("message") not in ("string", "binary"):
        has = f"column message is {kinds['message']}" if "message" in kinds else "no column message"
        raise UnreadableData(f"{path}: {has}; there are {', '.join(kinds)}")

    def said(column: str, kind: str, usual: object = None) -> Any:
        found = functions.col(column) if column in kinds else functions.lit(usual)
        return found.cast(kind).alias(column)

    time = functions.unix_micros(functions.to_timestamp("time")) if "time" in kinds else None
    return frame.where("message is not null").select(
        said("name", "string", ""),
        said("message", "binary"),
        functions.nullif(said("media_type", "string"), functions.lit("")).alias("media_type"),
        (functions.lit(None).cast("bigint") if time is None else time).alias("accepted"),
    )


def _checked(read: Callable[[], Frame], name: str) -> Frame:
    """Spark's refusal of a path in one line."""
    spark_error = import_module("pyspark.errors").PySparkException
    java_error = import_module("py4j.protocol").Py4JJavaError
    try:
        return read()
    except spark_error as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise UnreadableData(f"{name}: there is no such file or directory") from None
        if told := told_by(error):
            raise UnreadableData(told) from None
        raise UnreadableData(f"{name}: {str(error).splitlines()[0]}") from None
    except java_error as error:
        cause = str(error.java_exception.getMessage()).splitlines()[0]
        raise UnreadableData(f"{name}: cannot be read: {cause}") from None
