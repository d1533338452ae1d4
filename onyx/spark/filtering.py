"""Profiles over a frame of messages: the engine in each worker, batches of Arrow in and out.

The engine of a population is built once in each worker process and kept for all tasks and
micro-batches, by a digest of the population.  The driver sends the texts once (a broadcast).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

from formats.errors import DecodeError, Fault, MessageRefused, Refusal
from formats.media_types import XML
from formats.publication import read_publication
from onyx.spark.told import told_alone
from registration.spark.inputs import read_profiles
from registration.spark.kept import kept
from registration.spark.sent_code import send_code
from yfilter import Matcher, MatchLimitExceeded, MatchLimits, ProfileRefused, parse_profile

Frame: TypeAlias = Any
Batch: TypeAlias = Any
Profiles: TypeAlias = Mapping[str, str] | Frame | str | Sequence[str]

MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
MEDIA_TYPE = "media_type"
ERROR: Final = "struct<code: string, line: int, column: int>"


class SparkMisused(Refusal, ValueError):
    """A column, a profile or a mode that is not there; the text says which, and what there is."""

    kind = "usage"


class RowRefused(Refusal, ValueError):
    """A message that was refused; the text says why, and where."""

    kind = "message-refused"


@dataclass(frozen=True, slots=True)
class Population:
    """Profiles, each with a place: ``ids`` and ``texts`` in one order."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(
        cls, spark: Any, profiles: Mapping[str, str] | Frame | str | Sequence[str]
    ) -> Population:
        """From ids to texts, a frame with the columns ``profile`` and ``text``, or paths of files
        as ``onyx plan make`` takes them; those of a frame are in the order of their ids.

        Raises SparkMisused for a text that is no profile, with its id, place and line.
        """
        if isinstance(profiles, Mapping):
            pairs = [(str(name), str(text)) for name, text in profiles.items()]
        else:
            frame: Frame = profiles
            if not hasattr(profiles, "columns"):
                if not isinstance(profiles, str | Sequence):
                    kind = type(profiles).__name__
                    raise SparkMisused(f"profiles are {kind}; expected a mapping, a frame or paths")
                frame = read_profiles(spark, [profiles] if isinstance(profiles, str) else profiles)
            if missing := {"profile", "text"} - set(frame.columns):
                raise SparkMisused(
                    f"profiles: no column {' and '.join(sorted(missing))}; there are "
                    f"{', '.join(frame.columns)}"
                )
            rows = frame.select("profile", "text").collect()
            pairs = sorted((str(name), str(text)) for name, text in rows)
        return cls.checked(dict(pairs))

    @classmethod
    def checked(cls, texts: Mapping[str, str]) -> Population:
        """By id, in their order; SparkMisused."""
        pairs = list(texts.items())
        for name, text in pairs:
            try:
                parse_profile(text)
            except ProfileRefused as refused:
                raise SparkMisused(f"profile {name}: {refused}") from None
        return cls(tuple(name for name, _ in pairs), tuple(text for _, text in pairs))

    def digest(self) -> str:
        """Equal for equal populations alone."""
        return hashlib.sha256(repr((self.ids, self.texts)).encode()).hexdigest()


class Shipped:
    """A population on its way to the workers: sent once, and looked at where no engine is kept."""

    def __init__(self, spark: Any, population: Population) -> None:
        self._digest = population.digest()
        self._sent = spark.sparkContext.broadcast(population)

    def engine(self) -> Engine:
        """The engine in this worker."""
        return kept_engine(self._digest, lambda: self._sent.value)


class Engine:
    """The profiles of a population in a Matcher; the number of a profile is its place and 1."""

    def __init__(self, population: Population) -> None:
        self._arrow = import_module("pyarrow")
        limits = MatchLimits(profiles_max=len(population.ids) + 1)
        self.matcher = Matcher(limits)
        for place, text in enumerate(population.texts):
            self.matcher.add(text, str(place))
            assert self.matcher.number_of(str(place)) == place + 1
        self._ids = self._arrow.array(["", *population.ids], self._arrow.string())

    def ids(self, numbers: Sequence[int] | array[int]) -> Any:
        """A column of Arrow: the ids of the profiles of these numbers."""
        return self._ids.take(self._arrow.array(numbers, self._arrow.int32()))


def kept_engine(digest: str, population: Callable[[], Population]) -> Engine:
    """The engine of a population, made where it is not kept."""
    return kept(digest, lambda: Engine(population()))


def filter_frame(
    df: Frame,
    profiles: Profiles,
    *,
    message: str = "message",
    keep: Sequence[str] | None = None,
    numbers: bool = False,
    results: bool = False,
    mode: str = "PERMISSIVE",
) -> Frame:
    """Which profiles each message matches; of a batch or a stream.

    ``df`` has a column ``message`` of texts or bytes, XML or what its column ``media_type`` says.
    ``profiles``: ids to texts, a frame (``profile``, ``text``) or paths.  The frame that is
    returned has one row a message:

    =============  =============================================================================
    column         holds
    =============  =============================================================================
    kept columns   ``keep``, by default all but the message
    ``profiles``   ids of the profiles that match; with ``numbers`` their places from 0, in half
                   the time where they are many: in the order of the mapping, or of the ids
    ``error``      of a message that was refused: code, line and column, else null
    =============  =============================================================================

    ``results``: a row for all profiles that get equal results of a message, with ``results``, an
    array of texts; ``error`` says which limit left the profiles of a row without.  ``mode``:
    PERMISSIVE, DROPMALFORMED (no row for a refused message), FAILFAST (the job fails).

    Raises SparkMisused for a column that is not there or holds something else, for a text that is
    no profile, and for another mode.
    """
    if not hasattr(df, "mapInArrow"):
        raise SparkMisused(f"df is {type(df).__name__}; expected a DataFrame")
    kept = _columns(df, message, keep)
    made = ("profiles", *(["results"] if results else []), "error")
    if there := [name for name in made if name in kept]:
        raise SparkMisused(
            f"column {there[0]} would be there twice: rename it, or leave it out by keep"
        )
    send_code(df.sparkSession)
    if mode not in MODES:
        raise SparkMisused(f"mode {mode!r}; expected {', '.join(MODES)}")
    types = import_module("pyspark.sql.types")
    given = [message, *([MEDIA_TYPE] if MEDIA_TYPE in df.columns else [])]
    named = "array<int>" if numbers else "array<string>"
    added = f"profiles {named}, {'results array<string>, ' if results else ''}error {ERROR}"
    fields = [df.schema[name] for name in kept]
    schema = types.StructType([*fields, *types.StructType.fromDDL(added).fields])
    shipped = Shipped(df.sparkSession, Population.of(df.sparkSession, profiles))
    asked = _Asked(tuple(given), tuple(kept), numbers, results, mode)
    selected = df.select(*dict.fromkeys([*given, *kept]))  # each once
    return selected.mapInArrow(_filtering(shipped, asked), schema)


def _columns(df: Frame, message: str, keep: Sequence[str] | None) -> list[str]:
    kept = [name for name in df.columns if name != message] if keep is None else list(keep)
    for name in (message, *kept):
        if name not in df.columns:
            raise SparkMisused(f"no column {name}; there are {', '.join(df.columns)}")
    kind = df.schema[message].dataType.simpleString()
    if kind not in ("string", "binary"):
        raise SparkMisused(f"column {message} is {kind}; expected string or binary")
    return kept


@dataclass(frozen=True, slots=True)
class _Asked:
    """``given``: the columns of the message; ``kept``: those of the rows that are made."""

    given: tuple[str, ...]
    kept: tuple[str, ...]
    numbers: bool
    results: bool
    mode: str


def _filtering(shipped: Shipped, asked: _Asked) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        with told_alone():
            engine = shipped.engine()
            for batch in batches:
                yield _filtered(engine, batch, asked)

    return run


def _filtered(engine: Engine, batch: Batch, asked: _Asked) -> Batch:
    arrow = import_module("pyarrow")
    rows, flat, ends = array("i"), array("i"), array("i", [0])
    results: list[list[str] | None] = []
    errors: list[Fault | None] = []

    def add(row: int, numbers: Iterable[int], fault: Fault | None = None) -> None:
        rows.append(row)
        flat.extend(numbers)
        ends.append(len(flat))
        errors.append(fault)

    for row, given in enumerate(_given(batch, asked.given)):
        try:
            stream = read_message(*given)
            if not asked.results:
                add(row, engine.matcher.matched_numbers(stream))
                continue
            for made in engine.matcher.deliver(stream):
                add(row, made.numbers, None if made.exceeded is None else made.exceeded.fault)
                results.append([one.decode("utf-8", "replace") for one in made.results])
        except (MessageRefused, DecodeError, MatchLimitExceeded) as refused:
            if asked.mode == "FAILFAST":
                raise RowRefused(refused.fault) from None
            if asked.mode == "PERMISSIVE":
                add(row, (), refused.fault)
                results.append(None)
    taken = arrow.array(rows, arrow.int32())
    if asked.numbers:
        places, one = arrow.array(flat, arrow.int32()), arrow.scalar(1, arrow.int32())
        values = import_module("pyarrow.compute").subtract(places, one)
    else:
        values = engine.ids(flat)
    kept = [batch.column(name).take(taken) for name in asked.kept]
    made_columns = [arrow.ListArray.from_arrays(arrow.array(ends, arrow.int32()), values)]
    if asked.results:
        made_columns.append(arrow.array(results, arrow.list_(arrow.string())))
    made_columns.append(_errors(errors))
    names = [*asked.kept, "profiles", "results", "error"]
    if not asked.results:
        names.remove("results")
    return arrow.RecordBatch.from_arrays([*kept, *made_columns], names)


def _given(batch: Batch, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def read_message(message: str | bytes | None, media_type: str | None = None) -> Any:
    """A message of a row as an element stream.  MessageRefused, DecodeError."""
    if message is None:
        raise MessageRefused("no-message", "the message is null")
    data = message.encode() if isinstance(message, str) else message
    return read_publication(data, media_type or XML)


def _errors(faults: list[Fault | None]) -> Any:
    arrow = import_module("pyarrow")
    kind = arrow.struct(
        [("code", arrow.string()), ("line", arrow.int32()), ("column", arrow.int32())]
    )
    said = [
        None if one is None else {"code": one.code, "line": one.line, "column": one.column}
        for one in faults
    ]
    return arrow.array(said, kind)
