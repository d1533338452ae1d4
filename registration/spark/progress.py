"""How far a job of Spark is: its step, the tasks and rows of that, and the time that is left.

::

    with steps_of(session, told) as steps:
        steps.begin("reading the profiles")
        frame.mapInArrow(steps.counted(read), schema)...

Spark's page shows the step as the description of its jobs.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeAlias

import msgspec

from overlay.archive_file import Gap
from registration.spark.session import Batch, Session, SparkUnavailable, UnreadableData, told_by

Run: TypeAlias = Callable[[Iterator[Batch]], Iterator[Batch]]

log = logging.getLogger(__name__)

TOLD_SECONDS = 2.0
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class Progress(msgspec.Struct, frozen=True):
    """A ``step`` of a job: ``rows`` that were read and ``tasks_done`` of ``tasks`` as far as they
    are known; ``seconds_left`` of the step, None while no task is done."""

    step: str
    tasks_done: int = 0
    tasks: int = 0
    rows: int = 0
    seconds_left: float | None = None


Told: TypeAlias = Callable[[Progress], None]


def nobody(progress: Progress) -> None:
    """Nobody is told."""


class _Gaps:
    """The gaps that tasks have found; a task that was run twice tells them twice."""

    def zero(self, value: set[Gap]) -> set[Gap]:
        return set()

    def addInPlace(self, value1: set[Gap], value2: set[Gap]) -> set[Gap]:  # noqa: N802 - of Spark
        return value1 | value2


def tasks_of(context: Any, group: str) -> tuple[int, int]:
    """How many tasks of a group of jobs are done, and how many are known."""
    tracker = context.statusTracker()
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for number in () if info is None else info.stageIds:
            stage = tracker.getStageInfo(number)
            if stage is not None:
                tasks += stage.numTasks
                is_over = info is not None and info.status == "SUCCEEDED"  # some were skipped
                done += stage.numTasks if is_over else stage.numCompletedTasks
    return done, tasks


class Steps:
    """The steps of a job in this process; ``told`` of each when it begins."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._found: set[Gap] = set()

    def begin(self, step: str) -> None:
        self._told(Progress(step))

    def counted(self, run: Run) -> Run:
        """A function for mapInArrow, whose rows are counted where there are tasks."""
        return run

    def noting(self) -> Callable[[Gap], None]:
        """A function to be called for a gap in an archive."""
        return self._found.add

    def gaps(self) -> set[Gap]:
        return self._found

    def tell_gaps(self) -> list[Gap]:
        """The gaps that were found by now, each of which is logged."""
        found = sorted(self.gaps(), key=lambda gap: (gap.file, gap.start))
        for gap in found:
            log.warning("%s", gap)
        return found


class TaskSteps(Steps):
    """The steps of a job on Spark, also told of while their tasks end."""

    def __init__(self, session: Session, told: Told) -> None:
        super().__init__(told)
        self._context = session.sparkContext
        self._rows = self._context.accumulator(0)
        self._gaps: Any = self._context.accumulator(set(), _Gaps())
        self._group = self._step = ""
        self._begun, self._rows_before = 0.0, 0

    def begin(self, step: str) -> None:
        self._begun, self._rows_before = monotonic(), self._rows.value
        self._group, self._step = f"onyx-{uuid.uuid4().hex}", step
        self._context.setJobGroup(self._group, step)
        self._told(Progress(step))

    def counted(self, run: Run) -> Run:
        rows = self._rows

        def counting(batches: Iterator[Batch]) -> Iterator[Batch]:
            for batch in batches:
                rows.add(batch.num_rows)
                yield batch

        return lambda batches: run(counting(batches))

    def noting(self) -> Callable[[Gap], None]:
        gaps = self._gaps
        return lambda gap: gaps.add({gap})

    def gaps(self) -> set[Gap]:
        return set(self._gaps.value)

    def now(self) -> Progress:
        """Of the step that was begun last."""
        done, tasks = tasks_of(self._context, self._group)
        took = monotonic() - self._begun
        left = round(took * (tasks - done) / done, 1) if done else None
        return Progress(self._step, done, tasks, self._rows.value - self._rows_before, left)

    def follow(self, is_over: threading.Event) -> None:
        """Tells until it is over, or the session is."""
        before = Progress("")
        while not is_over.wait(TOLD_SECONDS):
            try:
                found = self.now()
            except Exception:  # of py4j: the JVM has ended
                return
            if found.tasks_done and found != before:
                self._told(found)
            before = found


@contextmanager
def steps_of(session: Session | None, told: Told = nobody) -> Iterator[Steps]:
    """The steps of the jobs in this block, None: in this process; the group of jobs that the
    session had is its own again at the end.  SparkUnavailable where a worker refuses."""
    if session is None:
        yield Steps(told)
        return
    steps = TaskSteps(session, told)
    context = session.sparkContext
    before = [context.getLocalProperty(name) for name in _GROUP]
    is_over = threading.Event()
    follower = threading.Thread(target=steps.follow, args=(is_over,), daemon=True)
    if told is not nobody:
        follower.start()
    try:
        yield steps
    except Exception as error:
        if sentence := told_by(error):
            raise SparkUnavailable(sentence) from None
        if sentence := told_by(error, "UnreadableData"):
            raise UnreadableData(sentence) from None
        raise
    finally:
        is_over.set()
        if told is not nobody:
            follower.join()
        for name, value in zip(_GROUP, before, strict=True):
            context.setLocalProperty(name, value)
