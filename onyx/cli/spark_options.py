"""The options of verbs that compute on Spark, and the session they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onyx.cli.verb import add_arguments
from registration.spark.session import Session, SparkOptions, spark_session

SPARK_HELP = """\
Runs on Spark inside this command on all cores; no cluster and no Java are needed. With
--master it runs on your cluster with your settings: this code is sent along, its
dependencies have to be there. It can also be submitted, as
  spark-submit [options] path/to/onyx/__main__.py VERB ..."""


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    takes = {
        "--master URL =": "a cluster (default: here)",
        "--conf KEY=VALUE...": "a setting of Spark, as spark.driver.memory=4g; may be repeated",
    }
    add_arguments(group, takes)


@contextmanager
def open_spark(arguments: argparse.Namespace, report: Callable[[str], None]) -> Iterator[Session]:
    """The session that the arguments ask for; SparkUnavailable when there can be none."""
    report("starting Spark")
    options = SparkOptions(arguments.master, dict(arguments.conf))
    with spark_session(options) as session:
        yield session
