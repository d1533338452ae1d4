"""Results as a stream: ``spark.readStream.format("onyx")``.

===========================  =================================================================
option                       says
===========================  =================================================================
``registration``, ``credentials``, ``token``
                             of the network (network.py)
``profile``                  ids of profiles, with commas between them
``query``, ``queryKey``      text of a profile in their place, registered once under the key
``columns``                  "city string, t double": in place of each result
``maxDeliveriesPerTrigger``  at most so many in a micro-batch
``startingPositions``        of a new query: ``earliest`` (as usual), or ``latest``
``failOnDataLoss``           ``true`` (as usual): the query fails where deliveries are gone;
                             ``false``: offsets count them
===========================  =================================================================

A row is a result: ``profile``, ``position``, ``source``, ``number``, ``ordinal`` (from 0, of the
results of one message), ``result`` or the columns, ``media_type``, ``limit`` (why there is no more
of it; a delivery without results is one row without ``ordinal`` and ``result``).

An offset is a position by profile.  Each host broker is a partition, which an executor reads *held*
(``User.results``): so a batch that is run again reads the same.  ``commit`` releases, which Spark
calls as the next batch begins.  Profiles that move are followed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from onyx.blocking import User
from onyx.client_values import Delivery, Page
from onyx.errors import NetworkUnreachable
from onyx.spark.at_worker import AtWorker
from onyx.spark.filtering import Population, SparkMisused
from onyx.spark.network import OPTIONS as OF_NETWORK
from onyx.spark.network import Network, fails_on_loss, given_of, one_of, tell_lost
from onyx.spark.result_rows import Batch, RowSchema, check_columns, in_batches
from onyx.spark.told import told_alone
from overlay.answers import Position
from registration.spark.contract import (
    DataSourceStreamReader,
    InputPartition,
    SupportsTriggerAvailableNow,
)
from registration.spark.session import check_spark

Offset: TypeAlias = dict[str, int]
"""By profile the position through which it was read; by LOST and the profile how many deliveries
were gone before that, of which a query has gone on."""

Row: TypeAlias = tuple[Delivery, int | None, bytes | None]
"""A delivery, with the ordinal of a result and the result; None for one without results."""

LOST = "lost "

OPTIONS = (
    *(*OF_NETWORK, "profile", "query", "queryKey", "columns"),
    *("maxDeliveriesPerTrigger", "startingPositions", "failOnDataLoss"),
)
PATIENCE_SECONDS = 120.0  # of a task without a delivery
_BEFORE = "profile string, position bigint, source string, number bigint, ordinal int"
_BEHIND = "media_type string, `limit` string"
_OTHERS = f"{_BEFORE}, {_BEHIND}".split(", ")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamAsked:
    """The options, checked; ``most`` 0: any number of deliveries."""

    network: Network
    profiles: tuple[str, ...]
    query: str
    query_key: str
    columns: str
    most: int
    begins_latest: bool
    fails: bool

    @staticmethod
    def is_meant(options: Mapping[str, str]) -> bool:
        """Whether options are of results of a network, and not of the archive of a source."""
        given = {name.lower() for name in options}
        return "registration" in given and not given & {"source", "archive", "path"}

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StreamAsked:
        """SparkMisused."""
        given = given_of(options, OPTIONS)
        where = Network.of(given)
        profiles = tuple(filter(None, map(str.strip, given.get("profile", "").split(","))))
        query, key = given.get("query", ""), given.get("querykey", "")
        if bool(profiles) == bool(query):
            archive = "" if profiles else "; or option source, whose archive is read"
            what = "expected either option profile, with ids, or option query"
            raise SparkMisused(what + archive)
        if query and not key:
            raise SparkMisused("option queryKey is missing: a name by which query is known again")
        if query:
            Population.checked({"query": query})
        columns = given.get("columns", "")
        check_columns(columns, [one.split()[0].strip("`") for one in _OTHERS])
        return cls(
            network=where,
            profiles=tuple(dict.fromkeys(profiles)),
            query=query,
            query_key=key,
            columns=columns,
            most=_count(given, "maxdeliveriespertrigger", "maxDeliveriesPerTrigger"),
            begins_latest=one_of(given, "startingPositions", "earliest", "latest") == "latest",
            fails=fails_on_loss(given),
        )

    @property
    def schema(self) -> str:
        return f"{_BEFORE}, {self.columns or 'result string'}, {_BEHIND}"


def _count(given: Mapping[str, str], name: str, called: str) -> int:
    text = given.get(name, "0")
    if not text.isdecimal() or (text == "0" and name in given):
        raise SparkMisused(f"{called}: {text!r} is no number of deliveries")
    return int(text)


@dataclass
class _Part(InputPartition):
    """Profiles of one host broker, each behind a position through another."""

    ranges: dict[str, tuple[int, int]]


class ResultsReader(AtWorker, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query: in its driver as long as it runs, and for each partition in an executor."""

    def __init__(self, asked: StreamAsked, schema: Any) -> None:
        """SparkUnavailable for a Spark that is too old."""
        check_spark()
        self._asked = asked
        self._schema = schema
        self._stack: ExitStack | None = None  # of the connection, in the driver
        self._user: User
        self._ids: tuple[str, ...] = asked.profiles
        self._initial: Offset = {}
        self._is_new = False  # no batch was planned behind the initial offset
        self._target: Offset | None = None  # of a query that ends when it has read what there is
        self._seen: Offset = {}  # the positions through which losses are counted
        self._lost: Offset = {}  # and are in no offset yet

    # --- in the driver --------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802 - as Spark says it
        with told_alone():
            # From now on all is kept, of a profile that was ephemeral as well.
            self._open()
            said = self._user.positions(released=dict.fromkeys(self._ids, 0))
            self._initial, self._is_new = self._begun(said), True
            return self._initial

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802
        with told_alone():
            self._open()
            is_first, self._is_new = self._is_new, False
            if is_first and self._asked.begins_latest:
                return start  # a first batch without rows, since its start is not kept by Spark
            try:
                said = self._user.positions(*self._ids)
            except NetworkUnreachable as error:
                log.warning("nothing is read: %s", error)
                return start
            self._check(start, said)
            lost = {name: count for name, count in start.items() if name.startswith(LOST)}
            lost |= {name: lost.get(name, 0) + count for name, count in self._lost.items()}
            self._lost = {}
            ahead = {name: position.last for name, position in said.items()}
            if self._target is not None:
                ahead = {name: min(last, self._target[name]) for name, last in ahead.items()}
            new = self._begun({name: said[name] for name in self._ids if name not in start})
            known = {name: last for name, last in ahead.items() if name in start}
            return lost | new | _limited(start, known, getattr(limit, "max_rows", None))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        limits = import_module("pyspark.sql.streaming.datasource")
        return (
            limits.ReadMaxRows(self._asked.most) if self._asked.most else limits.ReadAllAvailable()
        )

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with told_alone():
            self._open()
            said = self._user.positions(*self._ids)
            self._target = {name: position.last for name, position in said.items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Part]:
        with told_alone():
            self._open()
            is_again = self._asked.begins_latest and start == self._initial  # of the first batch
            ranges = {}
            for name, last in end.items():
                since = start.get(name, last)
                if name in self._ids and (since < last or (since > last and not is_again)):
                    ranges[name] = (since if since < last else 0, last)  # 0: of a lost store
            for name, position in self._user.positions(*ranges).items() if ranges else ():
                since, last = ranges[name]
                if since:
                    self._count_gone(name, since, min(position.gone, last))
                    ranges[name] = max(since, min(position.gone, last)), last
            ranges = {name: some for name, some in ranges.items() if some[0] < some[1]}
            hosts = self._user.hosts(*ranges)
            return [_Part({name: ranges[name] for name in some}) for some in hosts.values()]

    def commit(self, end: Offset) -> None:
        with told_alone():
            self._open()
            self._user.positions(released={p: n for p, n in end.items() if p in self._ids})

    def stop(self) -> None:
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def _open(self) -> None:
        """Connect; register the query, which is known by its key in each run after the first."""
        if self._stack is None:
            with ExitStack() as stack:
                self._user = stack.enter_context(self._asked.network.connected())
                if self._asked.query:
                    made = self._user.add_profile(self._asked.query, key=self._asked.query_key)
                    self._ids = (made.id,)
                self._stack = stack.pop_all()

    def _begun(self, said: Mapping[str, Position]) -> Offset:
        """Where profiles begin that were not read before."""
        if self._asked.begins_latest:
            return {name: position.last for name, position in said.items()}
        return {name: position.gone for name, position in said.items()}

    def _check(self, start: Offset, said: Mapping[str, Position]) -> None:
        """Count the deliveries behind an offset that are gone.  SparkMisused."""
        for name, position in said.items():
            since = start.get(name, position.last)
            if position.last < since:
                what = f"its broker has lost its store, and knows of {position.last} deliveries"
                lost = f"profile {name}: {since} were read, {what}"
                tell_lost(lost, fails=self._asked.fails)
            else:
                self._count_gone(name, since, position.gone)

    def _count_gone(self, name: str, since: int, through: int) -> None:
        since = max(since, self._seen.get(name, 0))
        if through > since:
            self._seen[name] = through
            self._lost[LOST + name] = self._lost.get(LOST + name, 0) + through - since
            self._tell_gone(name, through - since, through)

    def _tell_gone(self, name: str, count: int, through: int) -> None:
        what = f"{count} deliveries through position {through} were thrown away"
        lost = f"profile {name}: {what} before they were read"
        tell_lost(lost, fails=self._asked.fails)

    # --- in executors ---------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Batch]:
        assert isinstance(partition, _Part)
        with told_alone():
            schema = RowSchema(self._schema, first=5, end=-2, named=bool(self._asked.columns))
            for rows in in_batches(self._rows(partition.ranges)):
                yield _batch(schema, rows)

    def _rows(self, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Row]:
        for name, page in self._pages(ranges):
            if page.lost:
                self._tell_gone(name, page.lost, page.through)
            for delivery in page.deliveries:
                for ordinal, result in enumerate(delivery.results):
                    yield delivery, ordinal, result
                if not delivery.results:
                    yield delivery, None, None

    def _pages(self, ranges: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, Page]]:
        """By profile; the broker makes the next page while rows are made of one."""
        with ThreadPoolExecutor(1) as ahead, self._asked.network.connected() as user:
            for name, (start, end) in ranges.items():
                coming = ahead.submit(user.waiting, name, start, end, PATIENCE_SECONDS)
                is_last = False
                while not is_last:
                    page = coming.result()
                    is_last = page.through >= end
                    if not is_last:
                        asked = name, page.through, end
                        coming = ahead.submit(user.waiting, *asked, PATIENCE_SECONDS)
                    yield name, page


def _limited(start: Offset, ahead: Offset, most: int | None) -> Offset:
    """So many deliveries of all profiles together, none of them left waiting for the others."""
    left = {name: max(0, last - start[name]) for name, last in ahead.items()}
    if most is None or sum(left.values()) <= most:
        return ahead
    found = dict(start)
    for place, name in enumerate(sorted(left, key=lambda name: (left[name], name))):
        some = min(left[name], -(-most // (len(left) - place)))
        found[name] += some
        most -= some
    return {name: found[name] for name in ahead}


def _batch(schema: RowSchema, rows: Sequence[Row]) -> Batch:
    # PERF: by columns, as a tuple of all cells for each row takes four times as long.
    deliveries, ordinals, results = zip(*rows, strict=True)
    return schema.batch(
        [
            [one.profile for one in deliveries],
            [one.position for one in deliveries],
            [one.source for one in deliveries],
            [one.number for one in deliveries],
            ordinals,
            *schema.of_results(results),
            [one.media_type for one in deliveries],
            [one.limit or None for one in deliveries],
        ]
    )
