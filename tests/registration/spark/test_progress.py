"""How far jobs are: steps, tasks, rows; what workers keep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from onyx.cli.spark_options import said
from registration.spark import kept, progress
from registration.spark.progress import Progress, TaskSteps, steps_of


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def test_steps_count_their_tasks_and_rows(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "of the user")
    told: list[Progress] = []
    with steps_of(spark, told.append) as steps:
        for step, rows in (("one", 1_000), ("two", 10)):
            steps.begin(step)
            frame = spark.range(0, rows, 1, 4).mapInArrow(steps.counted(identity), "id bigint")
            assert len(frame.collect()) == rows
            assert isinstance(steps, TaskSteps)
            found = steps.now()
            assert (found.step, found.tasks_done, found.tasks) == (step, 4, 4)
            assert (found.rows, found.seconds_left) == (rows, 0.0)
    assert [one.step for one in told if not one.tasks] == ["one", "two"]
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", None)


def test_a_step_tells_how_far_it_is_while_it_runs(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TOLD_SECONDS", 0.01)
    told: list[Progress] = []
    with steps_of(spark, told.append) as steps:
        steps.begin("many")
        while not any(one.tasks_done > 0 for one in told):
            spark.range(0, 64, 1, 64).mapInArrow(steps.counted(identity), "id bigint").count()
    assert told[0] == Progress("many")
    assert all(one.tasks_done <= one.tasks for one in told)


def test_progress_is_said_in_a_line() -> None:
    assert said(Progress("reading")) == "reading"
    far = Progress("reading", 3, 12, 4_000, 9.4)
    assert said(far) == "reading: 3 of 12 tasks, 4,000 rows, 9 s left"


def test_a_worker_keeps_what_was_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_kept", {})
    made: list[str] = []

    def make(digest: str) -> str:
        made.append(digest)
        return digest

    for digest in ("a", "b", "c", "d", "a", "e", "a", "b"):
        assert kept.kept(digest, partial(make, digest)) == digest
    assert made == ["a", "b", "c", "d", "e", "b"]
