"""The options of verbs that compute on Spark, and the session they ask for."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from onyx.cli.verb import add_arguments
from registration.spark.input_files import SMALL_BYTES, SMALL_PROFILES_BYTES
from registration.spark.progress import Progress, Told
from registration.spark.session import Session, SparkOptions, spark_session

_MEGABYTES = SMALL_BYTES >> 20, SMALL_PROFILES_BYTES >> 20
SMALL_HELP = f"""\
Up to {_MEGABYTES[0]} MB of messages and {_MEGABYTES[1]} MB of profiles are read here;
for more, Spark is started, which takes ten seconds."""
SPARK_HELP = """\
Runs on Spark inside this command on all cores; no cluster and no Java are needed.
With --master it runs on your cluster with your settings: this code is sent along, its
dependencies have to be there. It can also be submitted, as
  spark-submit [options] path/to/onyx/__main__.py VERB ..."""


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    takes = {
        "--master URL =": "a cluster (default: here)",
        "--conf KEY=VALUE...": "a setting of Spark, as spark.driver.memory=4g",
    }
    add_arguments(group, takes)


@contextmanager
def open_spark(
    arguments: argparse.Namespace, verb: str, *, is_small: bool = False
) -> Iterator[tuple[Session, Told]]:
    """The session that the arguments ask for, None for what ``is_small`` where they ask for none,
    and what says on standard error how far its jobs are; SparkUnavailable when there can be
    none."""
    start = time.monotonic()

    def tell(progress: Progress) -> None:
        seconds = time.monotonic() - start
        if arguments.json:
            facts = {"event": "progress", "seconds": round(seconds, 1)}
            text = msgspec.json.encode(facts | msgspec.structs.asdict(progress)).decode()
        else:
            text = f"{verb}: {seconds:6.1f} s  {said(progress)}"
        print(text, file=sys.stderr, flush=True)

    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if is_small and not (arguments.master or arguments.conf or is_submitted):
        yield None, tell
        return
    tell(Progress("starting Spark"))
    options = SparkOptions(arguments.master, dict(arguments.conf))
    with spark_session(options) as session:
        yield session, tell


def said(progress: Progress) -> str:
    """How far it is, in a line."""
    if not progress.tasks:
        return progress.step
    parts = [f"{progress.tasks_done:,} of {progress.tasks:,} tasks"]
    if progress.rows:
        parts.append(f"{progress.rows:,} rows")
    if progress.seconds_left is not None:
        parts.append(f"{progress.seconds_left:,.0f} s left")
    return f"{progress.step}: {', '.join(parts)}"
