"""The sandbox of functions refuses what gets out of it, as root and not, and names each end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pytest

from registration.queries.providers import Function
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped, stopped_in
from registration.spark import function_runner
from registration.spark.function_runner import (
    FunctionRunner,
    Work,
)
from registration.spark.sandbox import missing
from tests.registration.spark import hostile_functions
from tests.registration.spark.hostile_functions import ALLOWED, ATTEMPTS, COPY, KILLED, zipped

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")


# Another user than root that may read the interpreter wherever it lies.
AS_NOBODY = (
    *("setpriv", "--reuid", "65534", "--clear-groups"),
    *(
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    ),
)


@pytest.mark.parametrize("prefix", [(), AS_NOBODY], ids=["this user", "another user"])
def test_attempts_to_get_out_are_refused_and_work_is_not(prefix: tuple[str, ...]) -> None:
    if prefix and (os.geteuid() != 0 or shutil.which(prefix[0]) is None):
        pytest.skip("needs root and setpriv to become another user")
    command = [*prefix, sys.executable, "-m", "tests.registration.spark.hostile_functions"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = dict(line.split("\t") for line in done.stdout.splitlines())
    assert {name for name in ATTEMPTS if found[name] == "done"} == set()
    assert {name: found[name] for name in ALLOWED} == dict.fromkeys(ALLOWED, "done")


@pytest.mark.parametrize("name", KILLED)
def test_a_function_that_does_not_keep_to_its_signature_or_cost_is_stopped(name: str) -> None:
    code, body, said = KILLED[name]
    stopped = hostile_functions.stopped(body)
    assert stopped is not None
    assert stopped.code == code, stopped
    assert said in stopped.reason
    assert str(stopped_in(f"stack\n{stopped.marked()}\n  at org.apache")) == str(stopped)


TABLE = Function(
    *("urn:t", "lines", "urn:p", "table"),
    (("path", "STRING"), ("content", "BINARY")),
    (("path", "STRING"), ("line", "STRING"), ("number", "INT")),
    seconds_per_row=1e-2,
)
LINES = """\
import pyarrow as pa
def work(batches):
    for batch in batches:
        rows = [(path, line.decode(), number)
                for path, content in zip(*(c.to_pylist() for c in batch.columns))
                for number, line in enumerate(content.splitlines())]
        if rows:
            yield pa.record_batch([pa.array(column) for column in zip(*rows)], ["p", "l", "n"])
"""


def test_a_table_function_gives_rows_of_its_signature_and_a_process_serves_again() -> None:
    files = [
        {"path": "a", "content": b"x\ny"},
        {"path": "b", "content": b""},
        {"path": "c", "content": b"z"},
    ]
    schema = pa.schema([("path", pa.string()), ("content", pa.binary())])
    batches = [pa.RecordBatch.from_pylist([file], schema) for file in files]
    with FunctionRunner(Work(TABLE, zipped(LINES), "hostile:work")) as runner:
        for _ in range(2):
            made = pa.Table.from_batches(runner.run(iter(batches)))
            assert [tuple(row.values()) for row in made.to_pylist()] == [
                *(("a", "x", 0), ("a", "y", 1)),
                ("c", "z", 0),
            ]
            assert made.schema.types == [pa.string(), pa.string(), pa.int32()]


def test_a_module_may_be_called_as_one_of_pythons() -> None:
    """The sandbox has imported json before."""
    made = BytesIO()
    with ZipFile(made, "w") as file:
        file.writestr("json.py", "def work(x): return x")
    FunctionRunner(Work(COPY, made.getvalue(), "json:work")).close()


def test_nothing_of_a_function_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueryStopped, match="No module named 'nothing'"):
        FunctionRunner(Work(COPY, zipped(""), "nothing:work"))
    monkeypatch.setattr(function_runner, "missing", lambda: ("Landlock",))
    with pytest.raises(QueryRefused, match="cannot enforce the sandbox of functions: Landlock"):
        FunctionRunner(Work(COPY, zipped(""), "hostile:work"))
    with FunctionRunner(
        Work(COPY, zipped("def work(x): return x"), "hostile:work", weak=True)
    ) as r:
        process, file = r._process, Path(r._file)
        assert file.exists()
    assert process.returncode is not None
    assert not file.exists()


def test_a_process_that_has_ended_has_used_no_memory_that_is_told() -> None:
    with FunctionRunner(Work(COPY, zipped("copy = list"), "hostile:copy")) as runner:
        runner._process.kill()
        os.waitid(os.P_PID, runner._process.pid, os.WEXITED | os.WNOWAIT)
        assert runner.used().megabytes == 0.0
