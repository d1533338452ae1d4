"""Backtests: what profiles would have got from an archive of messages.

Two jobs.  A few profiles over many messages: the engine is built once in each worker, kept for all
its tasks, and says for each profile what matched, what came out, and what routing would have
carried.  A whole population over some messages: each worker builds the engine for a part of the
profiles; what comes out are their loads, for ``onyx plan make --weights``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from formats.errors import DecodeError, MessageRefused
from overlay.archive_file import Gap
from overlay.routing.broadcast_tree import BroadcastTree
from registration.planning.pattern_reader import PatternReader
from registration.planning.plan import Placer, Plan
from registration.spark.archived_message import ARCHIVED, read_archived
from registration.spark.arrow_types import batch_of
from registration.spark.inputs import read_messages, read_profiles, read_sample
from registration.spark.kept import kept
from registration.spark.progress import Told, nobody, steps_of
from registration.spark.session import Batch, Session
from yfilter import (
    LinkTarget,
    Matcher,
    MatchLimitExceeded,
    ProfileMatch,
    ProfileRefused,
    RouteMatch,
    parse_profile,
)
from yfilter.engine.linear_paths import routing_query

_SEEN = "profile int, count int, amounts array<bigint>, name string, result string"
_MATCHES = "profile string, matches bigint"
PROFILES_MAX = 5_000  # more are a population
SAMPLES = 3
_RESULT_BYTES_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class RoutingBefore:
    """The network that a profile would come to: where the plan has everybody, and the tree of the
    messages' root broker."""

    plan: Plan
    tree: BroadcastTree


@dataclass(frozen=True, slots=True)
class BacktestJob:
    """``profiles``: id -> text; ``archive``: paths; ``samples`` of results of each profile."""

    profiles: dict[str, str]
    archive: tuple[str, ...]
    samples: int = SAMPLES
    routing: RoutingBefore | None = None


@dataclass(slots=True)
class ProfileRecord:
    """What a profile would have got.

    ``matches``: messages; ``results`` and their ``bytes``; ``routed``: messages that satisfy its
    routing query.  With a network: ``host``, ``new_visits``: messages that would come to the host
    for its sake only, ``crossings`` that this takes.  ``samples``: (message, result).
    """

    matches: int = 0
    results: int = 0
    bytes: int = 0
    routed: int = 0
    host: str = ""
    new_visits: int = 0
    crossings: int = 0
    samples: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BacktestResult:
    """``days``: how many the archive covers, 0: it does not say; ``refused``: messages that could
    not be read; ``gaps`` in the archive."""

    messages: int
    refused: int
    days: int
    records: dict[str, ProfileRecord]
    gaps: list[Gap]


def run_backtest(session: Session | None, job: BacktestJob, told: Told = nobody) -> BacktestResult:
    """``session`` None: in this process.  ProfileRefused if one of the profiles is none;
    UnreadableData for the archive."""
    for text in job.profiles.values():
        parse_profile(text)
    names = list(job.profiles)
    with steps_of(session, told) as steps:
        steps.begin(f"replaying the archive for {len(job.profiles):,} profiles")
        messages = read_messages(session, job.archive, steps.noting())
        rows = messages.mapInArrow(steps.counted(_replay(job)), _SEEN).collect()
        gaps = steps.tell_gaps()
    records = {name: ProfileRecord(host=_host(job, text)) for name, text in job.profiles.items()}
    found = refused = 0
    days: set[int] = set()
    for profile, count, amounts, name, result in rows:
        if profile < 0:
            found, refused = found + count, refused + amounts[0]
            days.update(amounts[1:])
            continue
        record = records[names[profile]]
        if amounts is None:
            if len(record.samples) < job.samples:
                record.samples.append((name, result))
            continue
        record.matches += count
        for key, amount in zip(_AMOUNTS, amounts, strict=True):
            setattr(record, key, getattr(record, key) + amount)
    return BacktestResult(found, refused, len(days), records, gaps)


def run_population_backtest(
    session: Session,
    profiles: Sequence[str],
    kind: str,
    archive: Sequence[str],
    messages_max: int,
    out: str,
    told: Told = nobody,
) -> tuple[int, int, list[Gap]]:
    """Writes ``profile``, ``matches`` and ``load`` as Parquet; (messages, profiles that matched,
    gaps in the archive).

    A load is half for being there and half for what is delivered: 1 on average.
    """
    functions = import_module("pyspark.sql.functions")
    with steps_of(session, told) as steps:
        steps.begin("reading sampled messages")
        asked = steps.counted, steps.noting()
        messages = read_sample(session, archive, messages_max, *asked).collect()
        gaps = steps.tell_gaps()
        data = [(one, bytes(message), *others) for one, message, *others in messages]
        steps.begin(f"replaying {len(data):,} messages for each profile")
        counting = steps.counted(_count_matches(data))
        frame = read_profiles(session, profiles, kind)
        counted = frame.mapInArrow(counting, _MATCHES).persist()
        try:
            mean, matching = counted.agg(
                functions.avg("matches"), functions.count_if(functions.col("matches") > 0)
            ).first()
            share = functions.col("matches") / mean if mean else functions.lit(1.0)
            loads = counted.withColumn("load", 0.5 + 0.5 * share)
            steps.begin("writing the loads")
            loads.write.mode("overwrite").parquet(out)
            return len(data), int(matching), gaps
        finally:
            counted.unpersist()


def _host(job: BacktestJob, text: str) -> str:
    if job.routing is None:
        return ""
    plan = job.routing.plan
    return plan.broker_of(Placer(plan).place(text).partition)


# --- what runs in the workers ---------------------------------------------------------------

_DAY_MICROSECONDS = 86_400_000_000
_AMOUNTS = ("results", "bytes", "routed", "new_visits", "crossings")


class _Engine:
    """The profiles of a job in a Matcher, each under its place, and as a link by its routing
    query."""

    def __init__(self, job: BacktestJob) -> None:
        self.job = job
        self.matcher = Matcher()
        for place, text in enumerate(job.profiles.values()):
            self.matcher.add(text, str(place))
            for conjunction in routing_query(parse_profile(text)):
                self.matcher.add_route(conjunction, LinkTarget("", str(place)))
        self.hosts = [_host(job, text) for text in job.profiles.values()]
        self.patterns = PatternReader(
            [rule.pattern for rule in job.routing.plan.rules] if job.routing else []
        )

    def reached(self, stream: Any) -> set[str]:
        """The brokers that a message comes to already, by the plan's rules."""
        if self.job.routing is None:
            return set()
        plan, tree = self.job.routing.plan, self.job.routing.tree
        hosts = {plan.broker_of(p) for p in plan.visited(self.patterns.values(stream))}
        if plan.facts.dont_care:
            hosts |= {plan.broker_of(partition) for partition in plan.dont_care}
        return {broker for host in hosts for broker in tree.path(host)} | {tree.root}


def _replay(job: BacktestJob) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    digest = hashlib.sha256(repr(job).encode()).hexdigest()

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        tally = _Tally(kept(digest, lambda: _Engine(job)))
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ARCHIVED)
            for archived in zip(*columns, strict=True):
                tally.take(*archived)
        yield tally.batch()

    return run


class _Tally:
    """What one task has seen."""

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine
        self._records: dict[int, ProfileRecord] = {}
        self._messages = 0
        self._refused = 0
        self._days: set[int] = set()

    def take(self, name: str, message: bytes, media_type: str | None, accepted: int | None) -> None:
        self._messages += 1
        if accepted is not None:
            self._days.add(accepted // _DAY_MICROSECONDS)
        try:
            stream = read_archived(name, message, media_type, accepted)
            reached = self._engine.reached(stream)
            for match in self._engine.matcher.match(stream):
                if isinstance(match, RouteMatch):
                    self._take_route(int(match.link), reached)
                elif isinstance(match, ProfileMatch):
                    self._take_match(int(match.profile_id), name, match)
        except (MessageRefused, DecodeError, MatchLimitExceeded):
            self._refused += 1

    def batch(self) -> Batch:
        """(profile, count, amounts, name, result): sums, and samples without amounts."""
        rows: list[tuple[int, int, list[int] | None, str | None, str | None]] = [
            (-1, self._messages, [self._refused, *sorted(self._days)], None, None)
        ]
        for place, record in self._records.items():
            amounts = [getattr(record, key) for key in _AMOUNTS]
            rows.append((place, record.matches, amounts, None, None))
            rows += [(place, 0, None, name, result) for name, result in record.samples]
        return batch_of(_SEEN, zip(*rows, strict=True))

    def _record(self, place: int) -> ProfileRecord:
        return self._records.setdefault(place, ProfileRecord())

    def _take_route(self, place: int, reached: set[str]) -> None:
        record = self._record(place)
        record.routed += 1
        routing = self._engine.job.routing
        if routing is not None:
            new = [b for b in routing.tree.path(self._engine.hosts[place]) if b not in reached]
            record.new_visits += bool(new)
            record.crossings += len(new)

    def _take_match(self, place: int, name: str, match: ProfileMatch) -> None:
        record = self._record(place)
        results = match.results()
        record.matches += 1
        record.results += len(results)
        record.bytes += sum(map(len, results))
        if results and len(record.samples) < self._engine.job.samples:
            shown = results[0][:_RESULT_BYTES_SHOWN].decode("utf-8", "replace")
            record.samples.append((name, shown))


def _count_matches(
    messages: list[tuple[str, bytes, str | None, int | None]],
) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """(profile, matches) over all messages; texts that are no profiles match nothing."""

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            matcher = Matcher()
            texts = batch.column("text").to_pylist()
            for place, text in enumerate(texts):
                try:
                    matcher.add(text or "", str(place))
                except ProfileRefused:
                    continue
            counts = [0] * len(texts)
            for archived in messages:
                try:
                    stream = read_archived(*archived)
                    for name in matcher.matched_ids(stream):
                        counts[int(name)] += 1
                except (MessageRefused, DecodeError, MatchLimitExceeded):
                    continue
            yield batch_of(_MATCHES, (batch.column("profile"), counts))

    return run
