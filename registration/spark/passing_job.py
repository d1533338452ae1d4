"""A fragment that computes nothing: its rows are streams and Parquet files, without Spark.

Each stream, and the files of each scan, have a thread that reads while earlier rows are taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from registration.queries.passed_rows import PassedRows, passed_rows
from registration.queries.query_plan import Fragment, Scan
from registration.queries.refusals import QueryRefused
from registration.spark.arrow_types import arrow_schema
from registration.spark.fragment_job import FragmentJob
from registration.spark.function_runner import Work
from registration.spark.job import Batch, Job, Scanned
from registration.spark.parquet_rows import Piece, plain_files, read_groups, row_groups
from registration.spark.receive_source import Stream
from registration.spark.scans import first_of, most_of
from registration.spark.sending import Waiting
from registration.spark.session import Session


def job_of(
    session: Callable[[], Session],
    fragment: Fragment,
    streams: Mapping[int, Stream],
    works: Mapping[str, Work] = MappingProxyType({}),
) -> Job:
    """The job of a fragment; the ``session`` is asked for only where it needs Spark.  The others as
    of ``FragmentJob``.  QueryStopped."""
    return PassingJob.of(fragment, streams) or FragmentJob(session(), fragment, streams, works)


def _schema(passed: PassedRows, fragment: Fragment, streams: Mapping[int, Stream]) -> Any:
    """QueryStopped, QueryRefused."""
    if all(receive.is_typed for receive in fragment.receives):
        return arrow_schema(passed.columns)
    (receive,) = fragment.receives
    sent = streams[receive.fragment].schema()
    names = zip(passed.columns, passed.parts[receive.view], strict=True)
    return import_module("pyarrow").schema([sent.field(of).with_name(n) for (n, _), of in names])


class PassingJob(Job):
    """Rows that are passed on as they come."""

    def __init__(self, fragment: Fragment, schema: Any) -> None:
        super().__init__(fragment)
        self.schema = schema
        self._streams: list[tuple[Stream, list[str]]] = []
        self._pieces: list[tuple[list[Piece], list[str]]] = []
        self._done = 0  # streams and row groups

    @classmethod
    def of(cls, fragment: Fragment, streams: Mapping[int, Stream]) -> Self | None:
        """None where the fragment is for Spark."""
        passed = passed_rows(fragment)
        if passed is None:
            return None
        try:
            job = cls(fragment, _schema(passed, fragment, streams))
        except QueryRefused:  # a type that Arrow has otherwise
            return None
        for receive in fragment.receives:
            job._streams.append((streams[receive.fragment], [*passed.parts[receive.view]]))
        is_plain = all(job._scan(scan, [*passed.parts[scan.view]]) for scan in fragment.scans)
        return job if is_plain else None

    def _scan(self, scan: Scan, columns: list[str]) -> bool:
        """Take up the row groups of a scan; False where Spark is to read it."""
        files = plain_files(scan, columns, self.schema)
        pieces = [each for path in files for each in row_groups(path, scan.columns)]
        taken = first_of(pieces, most_of(scan, sum(Path(each).stat().st_size for each in files)))
        whole, read = (sum(each.bytes for each in some) for some in (pieces, taken))
        rows = None if len(taken) < len(pieces) else sum(each.rows for each in pieces)
        self._scans.append(Scanned(read, whole - read, rows))
        self._pieces.append((taken, columns))
        return bool(files)

    def _share(self) -> float:
        parts = len(self._streams) + sum(len(pieces) for pieces, _ in self._pieces)
        return self._done / parts if parts else 0.0

    @contextmanager
    def _at_work(self) -> Iterator[Waiting]:
        waiting, is_over = Waiting(Path(), bool), threading.Event()
        cancels: list[Callable[[], None]] = []

        def opened(cancel: Callable[[], None]) -> None:
            cancels.append(cancel)
            if is_over.is_set():
                cancel()

        sources = [self._received(*each, opened) for each in self._streams]
        sources += [self._read(*each) for each in self._pieces]
        left = [*sources]

        def pump(source: Iterator[Batch]) -> None:
            try:
                if not all(map(waiting.put, source)):
                    return
            except Exception as error:
                waiting.put(error)
                return
            left.pop()
            if not left:
                waiting.put(None)

        threads = [threading.Thread(target=pump, args=(e,), daemon=True) for e in sources]
        for each in threads:
            each.start()
        try:
            yield waiting
        finally:
            is_over.set()
            waiting.close()
            for cancel in cancels:
                cancel()
            for each in threads:
                each.join()
            cancels.clear()  # each holds its stream

    def _received(
        self, stream: Stream, columns: list[str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[Batch]:
        for batch in stream.batches(opened):
            yield batch.select(columns)
        self._done += 1

    def _read(self, pieces: list[Piece], columns: list[str]) -> Iterator[Batch]:
        for path, groups in groupby(pieces, lambda each: each.path):
            for each in groups:
                yield from read_groups(path, [each.group], columns)
                self._done += 1
