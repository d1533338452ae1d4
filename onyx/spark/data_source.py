"""``format("onyx")``: archives of brokers as frames of messages, or of what profiles get of them.

Rows that are written are published (publishing.py).
With the option ``registration`` it is the results of a running network (results_stream.py).

docs/spark.md tells the options.  ``bytes``, of an archive: so many bytes of its files at most, from
the first on.

Without profiles a row is a message: ``source``, ``number``, ``time``, ``media_type``, ``message``.
With them it is a result: ``source``, ``number``, ``time``, ``profile``, ``ordinal`` (from 0, of the
results of one message) and ``result``, or the columns.  ``source``, ``since`` and ``until`` skip
the parts of an archive without such messages.  Filters of Spark are not pushed down: up to Spark
4.3 a DataFrame that was filtered once keeps its filter when it is used again
(``PythonDataSourceV2.setReadInfo``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from formats.errors import DecodeError, MessageRefused
from onyx.spark.at_worker import AtWorker
from onyx.spark.filtering import Engine, Population, SparkMisused, kept_engine, read_message
from onyx.spark.network import OPTIONS as OF_NETWORK
from onyx.spark.network import Network, fails_on_loss, given_of, tell_lost
from onyx.spark.network_archive import NetworkPart, parts_of
from onyx.spark.publishing import Publishing
from onyx.spark.result_rows import Batch, RowSchema, check_columns, in_batches
from onyx.spark.results_stream import ResultsReader, StreamAsked
from onyx.spark.told import told_alone
from overlay.archive_file import (
    SUFFIXES,
    ArchivedMessage,
    Member,
    Span,
    files_of,
    is_archive,
    rows_of_file,
    time_said,
)
from registration.spark.archive_files import ArchiveFiles
from registration.spark.contract import DataSource, DataSourceReader, InputPartition
from yfilter import MatchLimitExceeded

OPTIONS = (
    *("archive", "path", *OF_NETWORK, "profile", "profiles", "columns"),
    *("source", "since", "until", "sample", "bytes", "failOnDataLoss"),
)
_MESSAGE = "source string, number bigint, time timestamp"
_SECOND = 1_000_000


class OnyxDataSource(DataSource):
    """What Spark makes of ``spark.read.format("onyx")``.

    Spark asks one for its schema, and copies of it, which know the answers, for its readers.
    """

    _archive: _Asked | None = None

    @classmethod
    def name(cls) -> str:
        return "onyx"

    def schema(self) -> str:
        with told_alone():
            if StreamAsked.is_meant(self.options):
                return StreamAsked.of(self.options).schema
            asked = self._asked()
            if asked.population is None:
                return f"{_MESSAGE}, media_type string, message string"
            return f"{_MESSAGE}, profile string, ordinal int, {asked.columns or 'result string'}"

    def reader(self, schema: Any) -> ArchiveReader:
        with told_alone():
            return ArchiveReader(self._asked(), schema)

    def writer(self, schema: Any, overwrite: bool) -> Publishing:
        return Publishing(self.options, schema, overwrite=overwrite, is_stream=False)

    def streamWriter(self, schema: Any, overwrite: bool) -> Publishing:  # noqa: N802 - of Spark
        return Publishing(self.options, schema, overwrite=overwrite, is_stream=True)

    def streamReader(self, schema: Any) -> ResultsReader:  # noqa: N802 - as Spark says it
        with told_alone():
            return ResultsReader(StreamAsked.of(self.options), schema)

    def _asked(self) -> _Asked:
        if self._archive is None:
            self._archive = _Asked.of(self.options)
        return self._archive


@dataclass(frozen=True, slots=True)
class Window:
    """``sources`` None: any; from ``since`` to before ``until``, in microseconds of the epoch."""

    sources: frozenset[str] | None
    since: int
    until: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Window:
        """SparkMisused for what is no time."""
        since, until = _time(options, "since"), _time(options, "until")
        if since is not None and until is not None and since >= until:
            raise SparkMisused(f"since {options['since']} is not before until {options['until']}")
        return cls(
            None if options.get("registration") else frozenset(_names(options)) or None,
            0 if since is None else since,
            1 << 62 if until is None else until,
        )

    def may_hold(self, spans: Mapping[str, Span]) -> bool:
        """Whether a member with these messages may have one that is wanted."""
        return any(
            (self.sources is None or source in self.sources)
            and span.until >= self.since
            and span.since < self.until
            for source, span in spans.items()
        )

    def holds(self, row: ArchivedMessage) -> bool:
        is_of = self.sources is None or row.source in self.sources
        return is_of and self.since <= row.time < self.until


def _time(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    try:
        return round(time_said(text) * _SECOND) if text else None
    except ValueError as error:
        raise SparkMisused(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options, checked: an ``archive``, or ``parts`` of those of a network.  SparkMisused."""

    archive: str
    parts: tuple[NetworkPart, ...]
    population: Population | None
    columns: str
    window: Window
    most: float
    fails: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Asked:
        given = given_of(options, OPTIONS)
        archive = next((given[name] for name in ("archive", "path") if given.get(name)), "")
        window = Window.of(given)
        if archive and given.get("registration"):
            raise SparkMisused("options archive and registration: expected one of them")
        if not (archive or given.get("registration")):
            raise SparkMisused(
                "option archive is missing, the folder that brokers archive into, or registration"
            )
        parts = _network_parts(given, window)
        if archive:
            _check_archive(Path(archive))
        if given.get("profile") and given.get("profiles"):
            raise SparkMisused("options profile and profiles: expected one of them")
        columns = given.get("columns", "")
        check_columns(columns, ("source", "number", "time", "profile", "ordinal"))
        texts = _profiles(given.get("profile", ""), given.get("profiles", ""))
        if columns and not texts:
            raise SparkMisused("columns are of results: option profile or profiles is missing")
        population = Population.checked(texts) if texts else None
        most = given.get("bytes", "")
        if most and not (archive and most.isdecimal()):
            raise SparkMisused(f"bytes: {most!r} is no number of bytes of an archive")
        bytes_max = int(most) if most else inf
        return cls(*(archive, parts, population, columns, window, bytes_max), fails_on_loss(given))


def _check_archive(path: Path) -> None:
    """A directory may be empty, as none of its files is finished yet."""
    if not path.exists():
        raise SparkMisused(f"archive {path}: there is no such file or directory")
    if not is_archive(path) and (path.is_file() or any(path.iterdir())):
        raise SparkMisused(f"archive {path}: none of {', '.join(SUFFIXES)}, as brokers write them")


def _network_parts(given: Mapping[str, str], window: Window) -> tuple[NetworkPart, ...]:
    """Of each source the whole of the window; none without a network."""
    if not given.get("registration"):
        for name in ("credentials", "token", "sample"):
            if given.get(name):
                raise SparkMisused(f"{name} is for a network: option registration is missing")
        return ()
    sample = given.get("sample")
    if sample is not None and not (sample.isdecimal() and int(sample)):
        raise SparkMisused(f"sample: {sample!r} is no number of messages")
    between = window.since, window.until, int(sample) if sample else None
    return parts_of(Network.of(given), _names(given), *between)


def _names(given: Mapping[str, str]) -> list[str]:
    return [name for one in given.get("source", "").split(",") if (name := one.strip())]


def _profiles(text: str, path: str) -> dict[str, str]:
    """By id: one text, or files (a profile each) and lines, as ``read_profiles`` has them."""
    if text:
        return {"profile": text}
    if not path:
        return {}
    place = Path(path)
    if not place.exists():
        raise SparkMisused(f"profiles {path}: there is no such file or directory")
    files = sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else [place]
    found: dict[str, str] = {}
    for file in files:
        try:
            content = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SparkMisused(f"profiles {file}: byte {error.start + 1} is no UTF-8") from None
        if file.suffix in (".xq", ".xquery", ".rq", ".sparql"):
            found[file.name] = content
            continue
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                found[f"{file.name}:{number}"] = line.strip()
    if not found:
        raise SparkMisused(f"profiles {path}: there is none")
    return found


@dataclass
class _Part(InputPartition):
    """Rows of a file, some of its members or all (None), or of a network; "": none."""

    file: str
    members: list[Member] | None = None
    part: NetworkPart | None = None

    def rows(self, tell: Callable[[object], None]) -> Iterator[ArchivedMessage]:
        """``tell`` is called for each gap."""
        if self.part is not None:
            return self.part.rows(tell)
        return rows_of_file(Path(self.file), self.members, tell) if self.file else iter(())


class ArchiveReader(AtWorker, DataSourceReader):
    """Rows of an archive for one query."""

    def __init__(self, asked: _Asked, schema: Any) -> None:
        self._asked = asked
        self._schema = schema

    def partitions(self) -> Sequence[_Part]:
        with told_alone():
            return self._partitions()

    def _partitions(self) -> Sequence[_Part]:
        if not self._asked.archive:
            cut = (part for whole in self._asked.parts for part in whole.cut())
            return [_Part("", part=part) for part in cut] or [_Part("")]
        archives = ArchiveFiles.of(files_of(Path(self._asked.archive))).within(self._asked.most)
        parts = archives.slices(self._asked.window.may_hold)
        return [_Part(name, members) for name, members in parts] or [_Part("")]

    def _tell_gap(self, gap: object) -> None:
        """SparkMisused, unless the query may go on without the messages."""
        tell_lost(str(gap), fails=self._asked.fails)

    def read(self, partition: InputPartition) -> Iterator[Batch]:
        assert isinstance(partition, _Part)
        with told_alone():
            messages = filter(self._asked.window.holds, partition.rows(self._tell_gap))
            population = self._asked.population
            if population is None:
                schema = RowSchema(self._schema)
                for some in in_batches(messages):
                    columns = [[row.media_type for row in some], [row.message for row in some]]
                    yield schema.batch([*_places(some), *columns])
                return
            engine = kept_engine(population.digest(), lambda: population)
            schema = RowSchema(self._schema, first=5, named=bool(self._asked.columns))
            for found in in_batches(_results(engine, messages)):
                rows, numbers, ordinals, results = zip(*found, strict=True)
                made = schema.of_results(results)
                yield schema.batch([*_places(rows), engine.ids(numbers), ordinals, *made])


def _places(rows: Sequence[ArchivedMessage]) -> list[list[Any]]:
    """Their columns source, number and time."""
    return [
        [row.source for row in rows],
        [row.number for row in rows],
        [row.time for row in rows],
    ]


def _results(
    engine: Engine, rows: Iterable[ArchivedMessage]
) -> Iterator[tuple[ArchivedMessage, int, int, bytes]]:
    """(message, number of a profile, ordinal, result); a message that is refused, or over a limit,
    has none."""
    for row in rows:
        try:
            stream = read_message(row.message, row.media_type)
            stream.accepted = row.time
            delivered = list(engine.matcher.deliver(stream))
        except (MessageRefused, DecodeError, MatchLimitExceeded):
            continue
        for made in delivered:
            for ordinal, result in enumerate(made.results):
                for number in sorted(made.numbers):
                    yield row, number, ordinal, result
