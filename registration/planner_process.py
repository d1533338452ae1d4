"""``python -m registration.planner_process DIRECTORY``: makes one plan; not for people.

What it is to plan is in the directory, where it leaves the plan (plan_questions.py).  It ends with
whoever started it, at the end of its standard input, and takes with it what Spark has started.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

import msgspec

from formats.schema import Schema, SchemaKind
from overlay.topology import parse_topology
from registration.plan_questions import (
    PROFILES_FILE,
    RESULT_FILE,
    TASK_FILE,
    PlannerResult,
    PlannerTask,
)
from registration.planning.drift import MESSAGES_LEAST
from registration.planning.exclusiveness import Pattern
from registration.planning.plan import Plan
from registration.planning.plan_file import from_json, to_json
from registration.planning.planner import PlanOptions, measured_values
from registration.spark.input_files import are_small
from registration.spark.inputs import read_profiles
from registration.spark.plan_job import PlanJob, run_plan_job
from registration.spark.sent_code import is_here
from registration.spark.session import (
    Frame,
    Session,
    SparkOptions,
    SparkUnavailable,
    UnreadableData,
    spark_session,
)

NICENESS = 10
DATA_BYTES_MAX = 4 * 1024**3  # of each process
OUT_OF_MEMORY_FIRST = "800"  # of 1000


def main(argv: Sequence[str] | None = None) -> int:
    directory = Path((sys.argv[1:] if argv is None else argv)[0])
    _be_modest()
    threading.Thread(target=_end_with_starter, args=(directory,), daemon=True).start()
    task = msgspec.msgpack.decode((directory / TASK_FILE).read_bytes(), type=PlannerTask)
    try:
        result = PlannerResult(plan=make(task, directory))
    except (SparkUnavailable, UnreadableData, ValueError) as error:
        result = PlannerResult(failure=str(error))
    written = directory / "result"
    written.write_bytes(msgspec.msgpack.encode(result))
    written.rename(directory / RESULT_FILE)
    return 0


def make(task: PlannerTask, directory: Path) -> bytes:
    """The plan, as a plan.json; SparkUnavailable, UnreadableData, ValueError."""
    planning = parse_topology(task.topology, "the network").planning  # as it is by now
    asks_for_spark = planning.master or planning.conf
    if not asks_for_spark and are_small([str(directory / PROFILES_FILE)], task.archive):
        return made_by(None, task, directory)
    with spark_session(SparkOptions(planning.master, planning.conf)) as session:
        return made_by(session, task, directory)


def made_by(session: Session | None, task: PlannerTask, directory: Path) -> bytes:
    """The same, by a session that there is, or in this process."""
    before = from_json(task.plan) if task.plan else None
    topology = parse_topology(task.topology, "the network")
    job = PlanJob(
        profiles=_profiles(session, directory / PROFILES_FILE),
        options=PlanOptions(topology=topology, before=before),
        schemas=tuple(_schema(*each) for each in task.schemas),
        have_none=task.have_none,
        archive=tuple(task.archive),
        measured=_measured(task, before),
    )
    return to_json(run_plan_job(session, job).plan).encode()


def _profiles(session: Session | None, path: Path) -> Frame:
    """Of the file, which workers of a cluster do not see: there they come from here."""
    if session is None or is_here(session.sparkContext.master):
        return read_profiles(session, [str(path)])
    functions = import_module("pyspark.sql.functions")
    table = import_module("pyarrow.json").read_json(path)
    return session.createDataFrame(table).withColumn("load", functions.lit(1.0))


def _measured(task: PlannerTask, before: Plan | None) -> dict[Pattern, float]:
    if before is None or task.messages < MESSAGES_LEAST:
        return {}
    return measured_values(before, task.messages, task.matched)


def _schema(name: str, kind: str, data: bytes) -> Schema:
    return Schema(name, cast("SchemaKind", kind), data)


def _be_modest() -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))
    score = Path("/proc/self/oom_score_adj")
    if score.exists():
        score.write_text(OUT_OF_MEMORY_FIRST)


def _end_with_starter(directory: Path) -> None:
    while os.read(0, 1):
        pass
    shutil.rmtree(directory, ignore_errors=True)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
