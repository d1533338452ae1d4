"""The profile population as Spark sees it: read once, then only sums of it are taken.

::

    text --NeedReader, in the workers--> needs, kept on disk --> signatures, value loads, placements

Everything between the JVM and Python goes as Arrow batches; nothing here moves profiles between
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from registration.planning.choice import Choice, slot_of
from registration.planning.exclusiveness import Need, Pattern
from registration.planning.need_reader import NeedReader
from registration.planning.pattern_cover import Signature
from registration.planning.plan import Plan
from registration.planning.value_loads import ValueAt, ValueLoads
from registration.spark.session import Session
from yfilter.errors import ProfileRefused

Frame: TypeAlias = Any  # a Spark DataFrame
Batch: TypeAlias = Any  # a pyarrow.RecordBatch

# Neither can stand in XML, so neither is in a pattern or a value.
_BETWEEN = "\x1e"
_ALTERNATIVE = "\x1f"

_NEEDS = "profile string, text string, load double, patterns string, values string, refused string"
_SUMS_MAX = 200_000  # sums that a worker holds before it hands them on
_SIGNATURES_MAX = 500_000  # the rarest beyond are left out of the choice of patterns


@dataclass(frozen=True, slots=True)
class RefusedProfile:
    profile: str
    reason: str


class SparkPopulation:
    """A ``Population`` (planning/value_loads.py) over a frame of profile, text and load."""

    def __init__(self, session: Session, profiles: Frame) -> None:
        functions = import_module("pyspark.sql.functions")
        level = import_module("pyspark").StorageLevel
        self._session = session
        self._functions = functions
        self._all = profiles.mapInArrow(_read_needs, _NEEDS).persist(level.DISK_ONLY)
        self._needs = self._all.where(functions.col("refused").isNull())

    def refused(self, most: int) -> tuple[int, list[RefusedProfile]]:
        """How many texts are no profiles, and some of them."""
        refused = self._all.where(self._functions.col("refused").isNotNull())
        count = int(refused.count())
        rows = refused.select("profile", "refused").limit(most).collect() if count else []
        return count, [RefusedProfile(row["profile"], row["refused"]) for row in rows]

    def signatures(self) -> list[Signature]:
        functions = self._functions
        rows = (
            self._needs.groupBy("patterns")
            .agg(functions.sum("load").alias("load"))
            .orderBy(functions.desc("load"), "patterns")
            .limit(_SIGNATURES_MAX)
            .collect()
        )
        return [Signature(_split(row["patterns"]), row["load"]) for row in rows]

    def value_loads(
        self,
        choice: Choice,
        slots: Mapping[Pattern, int],
        heavy_above: float,
        asked: Collection[ValueAt],
    ) -> ValueLoads:
        functions = self._functions
        patterns = sorted(choice.rank, key=choice.rank.__getitem__)
        slot_counts = [slots[pattern] for pattern in patterns]
        sums = (
            self._needs.select("load", "patterns", "values")
            .mapInArrow(_sum_values(choice, slot_counts), "rank int, value string, load double")
            .groupBy("rank", "value")
            .agg(functions.sum("load").alias("load"))
            .persist()
        )
        try:
            found = ValueLoads()
            load = functions.col("load")
            for row in sums.where((functions.col("rank") >= 0) & (load > heavy_above)).collect():
                found.heavy[patterns[row["rank"]], row["value"]] = row["load"]
            light = sums.where((functions.col("rank") < 0) | (load <= heavy_above))
            by_slot = light.mapInArrow(_sum_slots(slot_counts), "rank int, slot int, load double")
            for row in by_slot.groupBy("rank", "slot").agg(functions.sum("load")).collect():
                rank, slot, total = row
                if rank < 0:
                    found.dont_care += total
                else:
                    found.slots.setdefault(patterns[rank], {})[slot] = total
            found.present = self._present(sums, patterns, asked)
        finally:
            sums.unpersist()
        return found

    def _present(
        self, sums: Frame, patterns: list[Pattern], asked: Collection[ValueAt]
    ) -> set[ValueAt]:
        if not asked:
            return set()
        arrow = import_module("pyarrow")
        rank_of = {pattern: rank for rank, pattern in enumerate(patterns)}
        wanted = sorted((rank_of[pattern], value) for pattern, value in asked)
        table = arrow.table(
            {
                "rank": arrow.array([rank for rank, _ in wanted], arrow.int32()),
                "value": arrow.array([value for _, value in wanted], arrow.string()),
            }
        )
        frame = self._functions.broadcast(self._session.createDataFrame(table))
        rows = sums.join(frame, ["rank", "value"]).select("rank", "value").collect()
        return {(patterns[row["rank"]], row["value"]) for row in rows}

    def placements(self, plan: Plan) -> Frame:
        """The assignment: profile, partition, pattern (null: "don't care") and broker."""
        schema = "profile string, partition int, pattern string, broker string"
        return self._needs.select("profile", "text", "patterns", "values").mapInArrow(
            _place(plan), schema
        )

    def close(self) -> None:
        self._all.unpersist()


# --- what runs in the workers ---------------------------------------------------------------


def _read_needs(batches: Iterator[Batch]) -> Iterator[Batch]:
    arrow = import_module("pyarrow")
    reader = NeedReader()
    for batch in batches:
        patterns: list[str | None] = []
        values: list[str | None] = []
        refused: list[str | None] = []
        for text in batch.column("text").to_pylist():
            try:
                needs = reader.read(text or "")
            except ProfileRefused as refusal:
                patterns.append(None)
                values.append(None)
                refused.append(str(refusal).splitlines()[0])
                continue
            patterns.append(_BETWEEN.join([need.pattern for need in needs]))
            values.append(_BETWEEN.join([_ALTERNATIVE.join(need.values) for need in needs]))
            refused.append(None)
        read = [arrow.array(column, arrow.string()) for column in (patterns, values, refused)]
        columns = [batch.column(name) for name in ("profile", "text", "load")] + read
        names = ["profile", "text", "load", "patterns", "values", "refused"]
        yield arrow.RecordBatch.from_arrays(columns, names)


def _sum_values(
    choice: Choice, _slot_counts: list[int]
) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """(rank, value, load) of the needs that decide; rank -1: none does."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        sums: dict[tuple[int, str], float] = {}
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("load", "patterns", "values")]
            for load, patterns, values in zip(*columns, strict=True):
                need = choice.need(_needs(patterns, values))
                key = (-1, "") if need is None else (choice.rank[need.pattern], need.values[0])
                sums[key] = sums.get(key, 0.0) + load
            if len(sums) > _SUMS_MAX:
                yield _sums_batch(sums, "value", "string")
                sums = {}
        yield _sums_batch(sums, "value", "string")

    return run


def _sum_slots(slot_counts: list[int]) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """(rank, slot, load) of values; rank -1 stays as it is."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        sums: dict[tuple[int, int], float] = {}
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("rank", "value", "load")]
            for rank, value, load in zip(*columns, strict=True):
                key = (rank, slot_of(value, slot_counts[rank]) if rank >= 0 else 0)
                sums[key] = sums.get(key, 0.0) + load
        yield _sums_batch(sums, "slot", "int32")

    return run


def _place(plan: Plan) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        arrow = import_module("pyarrow")
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("text", "patterns", "values")]
            placed = [
                plan.place_needs(_needs(patterns, values), text)
                for text, patterns, values in zip(*columns, strict=True)
            ]
            partitions = [placement.partition for placement in placed]
            brokers = [plan.brokers[p] if plan.brokers else None for p in partitions]
            yield arrow.RecordBatch.from_arrays(
                [
                    batch.column("profile"),
                    arrow.array(partitions, arrow.int32()),
                    arrow.array([placement.pattern for placement in placed], arrow.string()),
                    arrow.array(brokers, arrow.string()),
                ],
                ["profile", "partition", "pattern", "broker"],
            )

    return run


def _sums_batch(sums: Mapping[tuple[int, Any], float], key: str, kind: str) -> Batch:
    arrow = import_module("pyarrow")
    return arrow.RecordBatch.from_arrays(
        [
            arrow.array([rank for rank, _ in sums], arrow.int32()),
            arrow.array([value for _, value in sums], kind),
            arrow.array(list(sums.values()), arrow.float64()),
        ],
        ["rank", key, "load"],
    )


def _needs(patterns: str, values: str) -> tuple[Need, ...]:
    if not patterns:
        return ()
    return tuple(
        Need(pattern, tuple(texts.split(_ALTERNATIVE)))
        for pattern, texts in zip(patterns.split(_BETWEEN), values.split(_BETWEEN), strict=True)
    )


def _split(patterns: str) -> tuple[Pattern, ...]:
    return tuple(patterns.split(_BETWEEN)) if patterns else ()
