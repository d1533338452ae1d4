"""The profile population as Spark sees it: read once, then only sums of it are taken.

::

    text --NeedReader, in the workers--> needs, kept on disk --> signatures, value loads, placements

Everything between the JVM and Python goes as Arrow batches; nothing here moves profiles between
workers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from registration.planning.choice import Choice, slot_of, stable_hash
from registration.planning.exclusiveness import Need, Pattern
from registration.planning.need_reader import NeedReader
from registration.planning.pattern_cover import Signature
from registration.planning.plan import Plan
from registration.planning.value_loads import (
    LocalPopulation,
    ProfileNeeds,
    ValueAt,
    ValueLoads,
)
from registration.spark.arrow_types import batch_of
from registration.spark.input_files import Rows
from registration.spark.progress import Run
from registration.spark.session import Batch, Frame, Session
from yfilter.errors import ProfileRefused

# Neither can stand in XML, so neither is in a pattern or a value.
_BETWEEN = "\x1e"
_ALTERNATIVE = "\x1f"

_NEEDS = (
    "profile string, hashed bigint, load double, patterns string, values string, refused string"
)
_VALUE_SUMS = "rank int, value string, also string, load double"
_SLOT_SUMS = "rank int, slot int, load double"
_PLACED = "profile string, partition int, pattern string, broker string"
_SUMS_MAX = 200_000  # sums that a worker holds before it hands them on
_SIGNATURES_MAX = 500_000  # the rarest beyond are left out of the choice of patterns


@dataclass(frozen=True, slots=True)
class RefusedProfile:
    profile: str
    reason: str


def needs_of(profiles: Frame, counted: Callable[[Run], Run] = lambda run: run) -> Frame:
    """A frame of the facts about each profile, or why its text is ``refused``."""
    return profiles.mapInArrow(counted(_read_needs), _NEEDS)


def placements_of(needs: Frame, plan: Plan) -> Frame:
    """Where a plan has each profile that was not refused: profile, partition, pattern, broker."""
    placed = needs.where("refused is null").select("profile", "hashed", "patterns", "values")
    return placed.mapInArrow(_place(plan), _PLACED)


class SparkPopulation:
    """A ``Population`` (planning/value_loads.py) over a frame of profile, text and load."""

    def __init__(
        self, session: Session, profiles: Frame, counted: Callable[[Run], Run] = lambda run: run
    ) -> None:
        functions = import_module("pyspark.sql.functions")
        level = import_module("pyspark").StorageLevel
        self._session = session
        self._functions = functions
        self._all = needs_of(profiles, counted).persist(level.DISK_ONLY)
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
            .mapInArrow(_sum_values(choice), _VALUE_SUMS)
            .groupBy("rank", "value", "also")
            .agg(functions.sum("load").alias("load"))
            .persist()
        )
        placing = sums.where(functions.col("also").isNull())
        try:
            found = ValueLoads()
            load = functions.col("load")
            for row in placing.where((functions.col("rank") >= 0) & (load > heavy_above)).collect():
                found.heavy[patterns[row["rank"]], row["value"]] = row["load"]
            light = placing.where((functions.col("rank") < 0) | (load <= heavy_above))
            by_slot = light.mapInArrow(_sum_slots(slot_counts), _SLOT_SUMS)
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
    ) -> dict[ValueAt, set[str]]:
        if not asked:
            return {}
        functions = self._functions
        arrow = import_module("pyarrow")
        rank_of = {pattern: rank for rank, pattern in enumerate(patterns)}
        wanted = sorted((rank_of[pattern], value) for pattern, value in asked)
        table = arrow.table(
            {
                "rank": arrow.array([rank for rank, _ in wanted], arrow.int32()),
                "needed": arrow.array([value for _, value in wanted], arrow.string()),
            }
        )
        frame = functions.broadcast(self._session.createDataFrame(table))
        needed = sums.withColumn("needed", functions.coalesce("also", "value"))
        found: dict[ValueAt, set[str]] = {}
        for row in needed.join(frame, ["rank", "needed"]).collect():
            at = (patterns[row["rank"]], row["needed"])
            found.setdefault(at, set()).add(row["value"])
        return found

    def write_placements(self, plan: Plan, path: str) -> None:
        """The assignment as Parquet: profile, partition, pattern (null: "don't care"), broker."""
        placements_of(self._all, plan).write.mode("overwrite").parquet(path)

    def close(self) -> None:
        self._all.unpersist()


class SmallPopulation(LocalPopulation):
    """The same over rows in this process."""

    def __init__(self, profiles: Rows) -> None:
        self._rows = profiles.mapInArrow(_read_needs, _NEEDS).collect()
        known = [row for row in self._rows if row[-1] is None]
        super().__init__(_needs(*row[2:5]) for row in known)
        columns = list(zip(*known, strict=True)) or ((),) * 6
        self._known = Rows([batch_of(_NEEDS, columns)])

    def refused(self, most: int) -> tuple[int, list[RefusedProfile]]:
        found = [RefusedProfile(row[0], row[-1]) for row in self._rows if row[-1] is not None]
        return len(found), found[:most]

    def write_placements(self, plan: Plan, path: str) -> None:
        """In a directory, as Spark writes it."""
        table = self._known.mapInArrow(_place(plan), _PLACED).table()
        made = Path(f"{path}.new")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        import_module("pyarrow.parquet").write_table(table, made / "part-0.parquet")
        shutil.rmtree(path, ignore_errors=True)
        made.rename(path)

    def close(self) -> None:
        """Nothing is kept elsewhere."""


def _needs(load: float, patterns: str, values: str) -> ProfileNeeds:
    texts = [tuple(text.split(_ALTERNATIVE)) for text in values.split(_BETWEEN)]
    return ProfileNeeds(tuple(map(Need, _split(patterns), texts)), load)


# --- what runs in the workers ---------------------------------------------------------------


def _read_needs(batches: Iterator[Batch]) -> Iterator[Batch]:
    reader = NeedReader()
    names_of: dict[tuple[Pattern, ...], str] = {}  # PERF: there are far fewer than profiles
    for batch in batches:
        hashed: list[int] = []
        patterns: list[str | None] = []
        values: list[str | None] = []
        refused: list[str | None] = []
        for text in batch.column("text").to_pylist():
            hashed.append(stable_hash(text or ""))
            try:
                found, found_values = reader.find(text or "")
            except ProfileRefused as refusal:
                patterns.append(None)
                values.append(None)
                refused.append(str(refusal).splitlines()[0])
                continue
            names = names_of.get(found)
            if names is None:
                names = names_of[found] = _BETWEEN.join(found)
            patterns.append(names)
            values.append(_BETWEEN.join([_ALTERNATIVE.join(texts) for texts in found_values]))
            refused.append(None)
        said = (batch.column("profile"), hashed, batch.column("load"), patterns, values, refused)
        yield batch_of(_NEEDS, said)


class _Deciding:
    """By which pattern, and by which of its values, a profile is placed."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._split: dict[str, tuple[Pattern, ...]] = {}

    def __call__(self, patterns: str, values: str) -> tuple[Pattern, tuple[str, ...]] | None:
        """The pattern, and the values there of which the first decides; None: "don't care"."""
        if not patterns:
            return None
        found = self._split.get(patterns)
        if found is None:
            found = self._split[patterns] = _split(patterns)
        texts = [tuple(text.split(_ALTERNATIVE)) for text in values.split(_BETWEEN)]
        place = self._choice.place(found, texts)
        return None if place is None else (found[place], texts[place])


def _sum_values(choice: Choice) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """(rank, value, also, load) of the needs that decide; rank -1: none does.

    ``also``: a further value of such a need, with the first; these rows have no load.
    """

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        sums: dict[tuple[int, str, str | None], float] = {}
        deciding = _Deciding(choice)
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("load", "patterns", "values")]
            for load, patterns, values in zip(*columns, strict=True):
                found = deciding(patterns, values)
                if found is None:
                    key: tuple[int, str, str | None] = (-1, "", None)
                else:
                    pattern, (first, *others) = found
                    rank = choice.rank[pattern]
                    key = (rank, first, None)
                    for other in others:
                        sums[rank, first, other] = 0.0
                sums[key] = sums.get(key, 0.0) + load
            if len(sums) > _SUMS_MAX:
                yield _value_sums(sums)
                sums = {}
        yield _value_sums(sums)

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
        keys = zip(*sums, strict=True) if sums else ((), ())
        yield batch_of(_SLOT_SUMS, (*keys, list(sums.values())))

    return run


def _place(plan: Plan) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        arrow = import_module("pyarrow")
        deciding = _Deciding(plan.choice)
        names = arrow.array([rule.pattern for rule in plan.rules], arrow.string())
        brokers = arrow.array(plan.brokers or [None] * plan.partitions, arrow.string())
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in ("hashed", "patterns", "values")]
            partitions: list[int] = []
            ranks: list[int | None] = []
            for hashed, patterns, values in zip(*columns, strict=True):
                found = deciding(patterns, values)
                pattern, texts = found or (None, ("",))
                partitions.append(plan.partition(pattern, texts[0], hashed))
                ranks.append(None if pattern is None else plan.choice.rank[pattern])
            where = arrow.array(partitions, arrow.int32())
            pattern_of = names.take(arrow.array(ranks, arrow.int32()))
            placed = (batch.column("profile"), where, pattern_of, brokers.take(where))
            yield batch_of(_PLACED, placed)

    return run


def _value_sums(sums: Mapping[tuple[int, str, str | None], float]) -> Batch:
    keys = zip(*sums, strict=True) if sums else ((), (), ())
    return batch_of(_VALUE_SUMS, (*keys, list(sums.values())))


def _split(patterns: str) -> tuple[Pattern, ...]:
    return tuple(patterns.split(_BETWEEN)) if patterns else ()
