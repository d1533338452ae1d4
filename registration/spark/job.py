"""A fragment of a query plan at work (seed 001, 2.1 step 4): its rows, figures, and end.

Threads and tasks put batches into a ``Waiting``, from which whoever wants the rows takes them.
``fragment_job`` has Spark execute the fragment; ``passing_job`` needs no Spark.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from time import monotonic
from typing import Any, TypeAlias

from registration.queries.providers import Secret
from registration.queries.query_plan import Fragment
from registration.queries.stopped import QueryStopped, stopped_in
from registration.spark.sending import LOOK_SECONDS, Waiting

Batch: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Scanned:
    """Of a scan: ``bytes`` that it reads, ``left``: that it was not allowed to; ``rows`` of the
    relation, None where it was not read whole, or nobody has counted."""

    bytes: int = 0
    left: int = 0
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a fragment so far: ``rows`` and ``bytes_sent`` as Arrow, ``bytes_read`` of the files
    of its scans, ``seconds`` since its start and ``first_row_s`` from there to the first batch;
    ``share``: of its work that is done, from 0 to 1; ``scans``: in the order of the
    fragment's."""

    number: int
    rows: int = 0
    bytes_sent: int = 0
    bytes_read: int = 0
    first_row_s: float = 0.0
    seconds: float = 0.0
    share: float = 0.0
    scans: tuple[Scanned, ...] = ()


class Job(ABC):
    """One fragment; ``batches`` executes it, once.

    ``schema``: its columns as an Arrow schema."""

    schema: Any

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self._rows = self._bytes = 0
        self._scans: list[Scanned] = []
        self._begun = self._first = self._ended = 0.0
        self._is_cancelled = threading.Event()

    @abstractmethod
    def _at_work(self) -> AbstractContextManager[Waiting]:
        """Batches are made for the block, with columns in the order of ``schema``, and None or an
        error behind them; nothing of the job runs on behind the block."""

    @abstractmethod
    def _share(self) -> float:
        """Of the work that is done, from 0 to 1."""

    def measured(self) -> Measured:
        now = self._ended or monotonic()
        share = (1.0 if self._ended else self._share()) if self._begun else 0.0
        return Measured(
            self.fragment.number,
            self._rows,
            self._bytes,
            round(sum(each.bytes for each in self._scans) * share),
            self._first - self._begun if self._first else 0.0,
            now - self._begun if self._begun else 0.0,
            share,
            tuple(self._scans),
        )

    @property
    def is_at_work(self) -> bool:
        """Whether somebody takes its rows."""
        return bool(self._begun) and not self._ended

    def cancel(self) -> None:
        """End it within a second; ``batches`` raises QueryStopped ``cancelled``."""
        self._is_cancelled.set()

    def batches(self, is_gone: Callable[[], bool] = bool) -> Generator[Batch]:
        """Its rows, with ``schema``, as they are made, until ``is_gone`` is true of who takes
        them; nothing of it runs on when this ends or is closed.  QueryStopped."""
        self._begun = monotonic()
        batch_of = import_module("pyarrow").RecordBatch.from_arrays
        with self._at_work() as waiting:
            try:
                for batch in self._taken(waiting, is_gone):
                    self._first = self._first or monotonic()
                    self._rows += batch.num_rows
                    self._bytes += batch.nbytes
                    pairs = zip(batch.columns, self.schema, strict=True)
                    yield batch_of([c.cast(f.type) for c, f in pairs], schema=self.schema)
            finally:
                self._ended = monotonic()

    def _taken(self, waiting: Waiting, is_gone: Callable[[], bool]) -> Iterator[Batch]:
        while True:
            if self._is_cancelled.is_set() or is_gone():
                raise QueryStopped("cancelled", "the query was cancelled")
            try:
                found = waiting.take(LOOK_SECONDS)
            except TimeoutError:
                continue
            if found is None:
                return
            if isinstance(found, Exception):
                raise self._stopped(found) from None
            yield found

    def _stopped(self, error: Exception) -> QueryStopped:
        if isinstance(error, QueryStopped):
            return error
        options = (pair for scan in self.fragment.scans for pair in scan.relation.options)
        said = str(error)
        for secret in (value for _, value in options if isinstance(value, Secret)):
            said = said.replace(secret, "***") if secret else said
        reason = _reason(said) or type(error).__name__
        return stopped_in(said) or QueryStopped("failed", reason, self.fragment.site.uri)


def _reason(said: str) -> str:
    """The line of an error that says most: the last of a Python trace, else the first."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    trace = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (trace or lines or [""])[0]
