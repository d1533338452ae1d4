"""The cost of the sandbox a row, and attempts to get out of it.

A function that cuts texts of 4 KB runs in its sandbox and, beside it, in this process as a bare UDF
would; processor time of both processes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from time import process_time
from typing import Any

import pyarrow as pa

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from registration.queries.providers import Function
from registration.spark.function_runner import FunctionRunner, Work
from tests.registration.spark.hostile_functions import (
    ATTEMPTS,
    KILLED,
    outcomes,
    stopped,
    zipped,
)

_ROWS, _BATCH, _BYTES = 20_000, 500, 4096
_CUT = """\
import pyarrow as pa
def work(given):
    return pa.array([value[:16] for value in given.to_pylist()], pa.binary())
"""
_FUNCTION = Function(
    *("urn:cut", "cut", "urn:provider", "scalar", (("image", "BINARY"),), (("", "BINARY"),)),
    seconds_per_row=1e-3,
)


def measure_sandbox(report: Report, options: argparse.Namespace) -> None:
    """``sandbox_row_us``, ``escaped``; WrongAnswers if an attempt escapes."""
    image = [pa.array([os.urandom(_BYTES) for _ in range(_BATCH)], pa.binary())]
    batches = [pa.RecordBatch.from_arrays(image, names=["image"])] * (_ROWS // _BATCH)
    scope: dict[str, Callable[[Any], Any]] = {}
    exec(_CUT, scope)
    start = process_time()
    for batch in batches:
        scope["work"](batch.column(0))
    bare = process_time() - start
    with FunctionRunner(Work(_FUNCTION, zipped(_CUT), "hostile:work")) as runner:
        start = process_time()
        rows = sum(batch.num_rows for batch in runner.run(batches))
        spent = process_time() - start + runner.used().seconds
    if rows != _ROWS:
        raise WrongAnswers(f"{rows} rows came back of {_ROWS}")
    report.figure("bare_row_us", "a row of 4 KB, bare", bare / _ROWS * 1e6, "us")
    report.figure("sandbox_row_us", "more in the sandbox", (spent - bare) / _ROWS * 1e6, "us")
    found = outcomes(ATTEMPTS)
    escaped = [name for name in ATTEMPTS if found[name] == "done"]
    for name, (code, body, said) in KILLED.items():
        end = stopped(body)
        if end is None or end.code != code or said not in end.reason:
            escaped.append(name)
    report.figure("hostile", "hostile functions", len(ATTEMPTS) + len(KILLED))
    report.figure("escaped", "of these escaped, or were not named", len(escaped))
    if escaped:
        raise WrongAnswers(f"functions escaped: {', '.join(escaped)}")
