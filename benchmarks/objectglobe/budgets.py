"""Bytes that scans read beyond what they may.

Relations of Parquet, CSV, JSON lines, files and an archive are read with random shares.  Each row
that comes back has its own bytes in the files, whatever the scan says that it has read.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from overlay.archive_file import SUFFIX, summary_of
from registration.queries.providers import Column, CycleProvider, Relation
from registration.queries.query_plan import Fragment, Scan
from registration.spark.fragment_job import STATIC_SETTINGS, FragmentJob, query_session
from registration.spark.session import SparkOptions, spark_session
from tests.overlay.test_archive_file import file_of, message

_FILES, _OF_FILE, _GROUP = 3, 700, 150
_SITE = CycleProvider("urn:a", "A")
_COLUMNS = (Column("id", "bigint"), Column("v", "string"))
_KINDS = ("parquet", "csv", "json", "files", "archive")


def measure_budgets(report: Report, options: argparse.Namespace) -> None:
    """``overbudget_bytes``; WrongAnswers where a scan that may read all reads less."""
    random = Random(options.seed)
    over = scans = 0
    settings = SparkOptions("local[2]", STATIC_SETTINGS)
    with tempfile.TemporaryDirectory() as name, spark_session(settings) as spark:
        for kind in _KINDS:
            folder = Path(name) / kind
            folder.mkdir()
            sizes = dict(_written(folder, kind, random))
            whole = sum(file.stat().st_size for file in folder.iterdir())
            for share in (1.0, random.uniform(0.5, 1), random.uniform(0, 0.5), 1e-4):
                keys, said = _read(spark, folder, kind, share)
                read = sum(size for key, size in sizes.items() if key in keys)
                if share == 1 and len(keys) < len(sizes):
                    raise WrongAnswers(f"{kind}: {len(keys)} parts of {len(sizes)} were read")
                over += max(0, round(max(read, said) - share * whole))
                scans += 1
    report.figure("overbudget_bytes", "bytes read beyond budgets", over)
    report.condition("budgets", "scans with a budget", scans)


def _read(spark: Any, folder: Path, kind: str, share: float) -> tuple[set[str], int]:
    """The parts that rows came from, and the bytes that the scan says it has read."""
    columns = _COLUMNS if kind in ("parquet", "csv", "json") else ()
    relation = Relation("urn:r", "A.R", "urn:p", (_SITE.uri,), kind, str(folder), columns)
    scan = Scan("r", relation, (), share=share)
    job = FragmentJob(
        query_session(spark), Fragment(0, _SITE, (scan,), (), (), "SELECT * FROM r"), {}
    )
    rows = [row for batch in job.batches() for row in batch.to_pylist()]
    return {_part(kind, row) for row in rows}, job.measured().scans[0].bytes


def _part(kind: str, row: dict[str, Any]) -> str:
    match kind:
        case "parquet":
            return f"{row['id'] // _OF_FILE} {row['id'] % _OF_FILE // _GROUP}"
        case "files":
            return str(row["path"]).rpartition("/")[2]
        case "archive":
            return f"{row['source']} {row['number'] // _GROUP}"
    return str(row["id"])


def _written(folder: Path, kind: str, random: Random) -> Iterator[tuple[str, int]]:
    """The smallest parts that are read of files, with their bytes."""
    for number in range(_FILES):
        first = number * _OF_FILE
        rows = [{"id": n, "v": f"v{random.random()}"} for n in range(first, first + _OF_FILE)]
        match kind:
            case "parquet":
                file = folder / f"{number}.parquet"
                pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=_GROUP)
                said = pq.read_metadata(file)
                for at in range(said.num_row_groups):
                    group = said.row_group(at)
                    sizes = (group.column(n).total_compressed_size for n in range(2))
                    yield f"{number} {at}", sum(sizes)
            case "files":
                (folder / f"f{number}").write_bytes(random.randbytes(1_000 * (number + 1)))
                yield f"f{number}", 1_000 * (number + 1)
            case "archive":
                source = f"s{number}"
                data = file_of([message(n, source) for n in range(_OF_FILE)], _GROUP)
                (folder / f"onyx-B1-{number}{SUFFIX}").write_bytes(data)
                summary = summary_of(import_module("io").BytesIO(data))
                assert summary is not None
                for member in summary.members:
                    yield f"{source} {member.sources[source].first // _GROUP}", member.length
            case _:
                lines = [f"{row['id']},{row['v']}\n" for row in rows]
                if kind == "json":
                    lines = [f"{json.dumps(row)}\n" for row in rows]
                (folder / f"{number}.{kind}").write_text("".join(lines))
                yield from ((str(first + n), len(line)) for n, line in enumerate(lines))
