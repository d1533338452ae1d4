"""Figure 1 and a large relation by real cycle providers with TLS: bytes that move, bytes a second,
and how soon a query that is cancelled has stopped everywhere.

Plain Spark at the client would have all relations sent whole; a cycle provider sends what is left
of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic, perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.report import Report
from demo.queries.figure1 import QUERY, free_ports, make
from onyx.identity.authority import Authority
from onyx.queries.catalog import Catalog
from onyx.queries.session import Session
from overlay.link.principal import Principal
from registration.queries.stopped import QueryStopped

_ROWS, _WIDTH = 200_000, 1_000
_OF_FIGURE = 2_000
_BIG = """
:Big a q:Relation ; q:name "Big" ; q:provider :B ; q:readAt :B ; q:format "parquet" ;
    q:location "{folder}/big" ; q:schema "id BIGINT, v BINARY" ; q:rows {rows} ; q:bytes {bytes} .
"""


def measure_executing(report: Report, options: argparse.Namespace) -> None:
    """``moved_ratio``, ``flight_mb_s`` and ``stop_s``, by the clock."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        catalog = make(folder, _OF_FIGURE, free_ports())
        whole = sum((folder / each).stat().st_size for each in ("R.csv", "T.parquet"))
        whole += sum(file.stat().st_size for file in (folder / "S").iterdir())
        big = {"folder": folder, "rows": _ROWS, "bytes": _written(folder / "big", options.seed)}
        catalog.write_text(catalog.read_text() + _BIG.format(**big))
        authority = Authority.make(folder / "identity", "market")
        pem = {each: folder / f"{each}.pem" for each in ("A", "B", "ann")}
        for each, file in pem.items():
            kind = "user" if each == "ann" else "provider"
            file.write_bytes(authority.issue(Principal(kind, each), 1.0))
        for each in "AB":
            stack.enter_context(_served(catalog, each, pem[each]))
        session = stack.enter_context(Session(Catalog.read(catalog), credentials=pem["ann"]))
        run = session.run(QUERY)
        if not run.table().num_rows:
            raise WrongAnswers("Figure 1 has no rows")
        report.figure(
            "moved_ratio", "bytes that moved, of Figure 1", run.actual.bytes_moved / whole
        )
        report.figure(
            "flight_mb_s", "a relation sent, by TLS", _megabytes_a_second(session), "MB/s"
        )
        report.figure("stop_s", "from cancel to the end everywhere", _stopping(session), "s")


def _megabytes_a_second(session: Session) -> float:
    """From the first batch to the last, of Arrow's bytes."""
    batches = iter(session.run("SELECT id, v FROM B.Big"))
    rows = next(batches).num_rows
    begun, size = perf_counter(), 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
    if rows != _ROWS:
        raise WrongAnswers(f"{rows} rows of {_ROWS} came")
    return size / (perf_counter() - begun) / 1e6


def _stopping(session: Session) -> float:
    run = session.run("SELECT id, v FROM B.Big")
    batches = iter(run)
    next(batches)
    begun = monotonic()
    run.cancel()
    with suppress(QueryStopped):
        for _ in batches:
            pass
    if run.complete:
        raise WrongAnswers("the query was over before it was cancelled")
    return monotonic() - begun


def _written(folder: Path, seed: int) -> int:
    """A relation of so many random rows, in four files; its bytes."""
    random, size = Random(seed), 0
    folder.mkdir()
    for number in range(4):
        ids = range(number, _ROWS, 4)
        rows = {"id": list(ids), "v": [random.randbytes(_WIDTH) for _ in ids]}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet", compression="none")
        size += (folder / f"{number}.parquet").stat().st_size
    return size


@contextmanager
def _served(catalog: Path, name: str, credentials: Path) -> Iterator[None]:
    words: Sequence[str] = ("provider", "serve", str(catalog), name)
    with subprocess.Popen(
        [sys.executable, "-m", "onyx", *words, "--credentials", str(credentials)],
        text=True,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            if not any("ready" in line for line in process.stdout):
                raise BenchmarkError(f"cycle provider {name} did not start")
            yield
        finally:
            process.terminate()
