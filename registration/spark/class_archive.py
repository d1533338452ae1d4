"""The classes of Spark as a JVM has read and checked them, in a file that later JVMs map.

A JVM reads, checks and lays out 15,000 classes for its start and first query, which is half of
their processor time.  Java keeps them in an archive (class data sharing, 190 MB).
``python -m registration.spark.class_archive`` makes the archive of this environment for its Java,
by a session with a query of each kind, and each session uses it from then on.  The archive stands
with the compiled modules of pyspark.  A JVM passes over an archive of other jars or another Java.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from registration.spark.session import (
    Java,
    Session,
    SparkOptions,
    SparkUnavailable,
    check_spark,
    find_java,
    spark_session,
)


def make(java: Java) -> Path:
    """The archive; OSError where the folder of pyspark cannot be written; SparkUnavailable."""
    check_spark()
    kept = java.spark_classes
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="onyx-classes-", dir=kept.parent) as name:
        if not java.own_classes.exists():
            base = Path(name, "java")
            dump = [
                str(java.home / "bin" / "java"),
                "-Xshare:dump",
                f"-XX:SharedArchiveFile={base}",
            ]
            subprocess.run(dump, check=True, stdout=subprocess.DEVNULL)
            base.replace(java.own_classes)
        made = Path(name, "spark")
        with spark_session(SparkOptions(java=replace(java, archives=str(made)))) as session:
            _query(session, Path(name))
        made.replace(kept)
    return kept


def _query(session: Session, folder: Path) -> None:
    """Use what queries use: rows of Python, Parquet, joins, groups, order, Arrow, a stream."""
    rows = session.createDataFrame([(n, str(n)) for n in range(100)], "a int, b string")
    file = str(folder / "rows")
    rows.write.parquet(file)
    session.read.parquet(file).createOrReplaceTempView("t")
    text = "SELECT x.b, count(*), sum(y.a) FROM t x JOIN t y USING (a) GROUP BY x.b ORDER BY 3 DESC"
    session.sql(text).mapInArrow(_same, "b string, n long, s long").collect()
    stream = session.readStream.schema("a int, b string").parquet(file).writeStream
    stream.trigger(availableNow=True).foreachBatch(_count).start().awaitTermination()


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _count(frame: Any, _: int) -> None:
    frame.count()


if __name__ == "__main__":
    try:
        make(find_java(os.environ))
    except (OSError, SparkUnavailable) as error:
        print(f"onyx: no archive of Spark's classes: {error}", file=sys.stderr)
