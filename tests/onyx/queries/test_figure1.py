"""Figure 1 of seed 001 as real processes: the answer, and steps of a query killed by SIGKILL.

After each kill the query goes on at another provider, or ends with an error that names the one,
and nothing of it is left: no process, and no query at the providers that live.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from demo.queries.figure1 import QUERY
from onyx.errors import EXIT_UNAVAILABLE
from onyx.queries import Catalog, running
from onyx.queries.at_work import queries_at_work
from onyx.queries.identity import Identity
from onyx.queries.session import Session
from registration.queries.stopped import QueryStopped
from registration.spark.sandbox import missing
from tests.hanging import SAFETY_SECONDS
from tests.onyx.queries.figure1_network import (
    FIGURE,
    PAGE,
    PAGES,
    Network,
    Seen,
    group_is_gone,
    network,
    until,
)

STANDS_STILL_SECONDS = 10.0
"""Without an answer, after which a query leaves a provider: not the thirty of users."""
pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")


@pytest.fixture(scope="module")
def figure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network(tmp_path_factory.mktemp("figure1")) as found:
        yield found


def _begun(figure: Network, query: str, *more: str) -> subprocess.Popen[str]:
    """The command, in a process group of its own."""
    command = [sys.executable, "-m", "onyx", "query", query, "--catalog", str(figure.catalog)]
    return subprocess.Popen(
        [*command, "--insecure", "--json", *more], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _asked(figure: Network, query: str, *more: str) -> subprocess.CompletedProcess[str]:
    with _begun(figure, query, *more) as process:
        out, error = process.communicate(timeout=SAFETY_SECONDS)
    until(lambda: group_is_gone(process.pid), f"processes of the group {process.pid} are left")
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def _stopped(figure: Network, query: str) -> tuple[QueryStopped, int]:
    """The error that a query ends with, and the rows that it gave before."""
    with Session(Catalog.read(figure.catalog), insecure=True) as session:
        run = session.run(query)
        with pytest.raises(QueryStopped) as caught:
            for _ in run:
                pass
    assert not run.complete and run.stopped is caught.value
    return caught.value, int(run.actual.rows)


def _nothing_is_left(figure: Network, away: str = "") -> None:
    """Of any query, at providers that are there."""
    market = Catalog.read(figure.catalog).market
    until(lambda: queries_at_work(market, Identity()) == ([], [*away]), "a query is at work")
    living = [each.pid for each in figure.processes.values() if each.poll() is None]
    until(lambda: not any(map(figure.functions_of, living)), "a function runs on")


def _expected(market: Path) -> list[tuple[str, str, str, float]]:
    """By the generator's own files, without SQL: title, supplier, kind and weight."""
    lines = (market.parent / "R.csv").read_text().splitlines()[1:]
    titles = {int(i): (int(s), title) for i, s, title in (line.split(",") for line in lines)}
    found = []
    for row in pq.read_table(market.parent / "T.parquet").to_pylist():
        supplier, title = titles[row["r"]]
        if supplier < 5:
            parts = row["parts"] or ()
            found += [(title, f"maker {supplier}", p["kind"], p["weight"]) for p in parts]
    return sorted(found)


def _places(node: dict[str, Any]) -> set[tuple[str, str]]:
    found = {(node["operator"], node["cycle_provider"])}
    return found.union(*map(_places, node["inputs"]))


def test_explain_says_where_each_operator_is(figure: Network) -> None:
    done = _asked(figure, QUERY, "--explain")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    places = {(operator, uri.rpartition("#")[2]) for operator, uri in _places(said["root"])}
    assert {("scan", "A"), ("wrap", "A"), ("scan", "B")} <= places
    assert {("apply", "A"), ("apply", "B")} & places, "pictures are small before they are sent"
    assert set(said["estimate"]) >= {"rows", "bytes_read", "bytes_moved", "cost", "seconds"}


def test_the_answer_is_that_of_the_data(figure: Network, tmp_path: Path) -> None:
    figure.up("AB")
    out = tmp_path / "rows.parquet"
    done = _asked(figure, QUERY, "--out", str(out))
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    rows = pq.read_table(out).to_pylist()
    assert sorted((r["title"], r["name"], r["kind"], r["weight"]) for r in rows) == _expected(
        figure.catalog
    )
    assert all(0 < len(row["small"]) < 64 * 64 for row in rows)
    assert (last["rows"], last["complete"]) == (len(rows), True)
    _nothing_is_left(figure)


def test_the_asking_process_is_killed_while_a_function_runs(figure: Network) -> None:
    figure.up("AB")
    b = figure.processes["B"].pid
    with _begun(figure, "SELECT hold(id) AS id FROM B.T") as asking:
        until(lambda: bool(figure.functions_of(b)), "the function does not run")
        asking.send_signal(signal.SIGKILL)
        asking.wait()
        until(lambda: group_is_gone(asking.pid), "processes of the asking one are left")
    _nothing_is_left(figure)
    until(lambda: figure.connections() == 0, "connections are left")
    assert figure.processes["B"].poll() is None


def test_a_function_is_killed_as_it_runs(figure: Network) -> None:
    figure.up("AB")
    b = figure.processes["B"].pid

    def kill(data: bytes, is_answer: bool) -> bool:
        for each in figure.functions_of(b):
            os.kill(each, signal.SIGKILL)
        return True

    figure.in_front["B"].seen = kill  # the asking process looks on, three times a second
    stopped, rows = _stopped(figure, "SELECT hold(id) AS id FROM B.T WHERE id < 5")
    assert (stopped.code, stopped.provider, rows) == ("function-failed", f"{FIGURE}hold", 0)
    assert stopped.reason == "hold: its process ended with -9"
    _nothing_is_left(figure)


def test_a_provider_that_stands_still_is_planned_around(
    figure: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U is read at either provider; the one that has begun to send is stopped until the
    end."""
    figure.up("AB")
    monkeypatch.setitem(running.PATIENCE_SECONDS, "measured", STANDS_STILL_SECONDS)
    still: list[str] = []
    goes_on = threading.Event()

    def stop(name: str) -> Seen:
        def seen(data: bytes, is_answer: bool) -> bool:
            if is_answer and PAGE in data and still in ([], [name]):
                still[:] = [name]
                figure.processes[name].send_signal(signal.SIGSTOP)
                goes_on.wait(SAFETY_SECONDS)
            return True

        return seen

    for name, passing in figure.in_front.items():
        passing.seen = stop(name)
    try:
        with Session(Catalog.read(figure.catalog), insecure=True) as session:
            run = session.run("SELECT id, page FROM A.U")
            rows = run.table().num_rows
    finally:
        for each in still:
            figure.processes[each].send_signal(signal.SIGCONT)
        goes_on.set()
    assert (rows, run.complete, run.stopped, len(still)) == (PAGES, True, None, 1)
    _nothing_is_left(figure)


def _killing(figure: Network, name: str, after: int) -> None:
    """A provider is killed, and its connections break, once so many bytes of pages have come."""
    passed = 0

    def seen(data: bytes, is_answer: bool) -> bool:
        nonlocal passed
        passed += len(data) if is_answer and PAGE in data else 0
        if passed <= after:
            return True
        figure.kill(name)
        return False

    figure.in_front[name].seen = seen


def test_a_provider_is_killed_at_the_first_batch(figure: Network) -> None:
    """No row was given, so the query goes on at the other provider that has the relation."""
    figure.up("AB")
    _killing(figure, "B", 0)
    with Session(Catalog.read(figure.catalog), insecure=True) as session:
        run = session.run("SELECT id, page FROM A.U")
        rows = run.table().num_rows
    assert (rows, run.complete, run.stopped) == (PAGES, True, None)
    assert figure.processes["B"].poll() == -signal.SIGKILL
    _nothing_is_left(figure, away="B")


def test_a_provider_is_killed_in_the_middle_of_a_stream(figure: Network) -> None:
    """Rows were given, so the query ends with the name of the provider."""
    figure.up("A")
    _killing(figure, "A", PAGES * len(PAGE) * 10_000 // 2)
    stopped, rows = _stopped(figure, "SELECT id, page FROM A.U")
    assert (stopped.code, stopped.provider) == ("provider-away", f"{FIGURE}A")
    assert 0 < rows < PAGES
    assert figure.processes["A"].poll() == -signal.SIGKILL
    until(lambda: figure.connections() == 0, "connections are left")


def test_a_provider_is_killed_as_its_plan_arrives(figure: Network, tmp_path: Path) -> None:
    figure.up("A")

    def kill(data: bytes, is_answer: bool) -> bool:
        if not is_answer and b"plug" in data:
            figure.kill("A")
        return True

    figure.in_front["A"].seen = kill
    done = _asked(figure, "SELECT id, title FROM A.R", "--out", str(tmp_path / "rows.parquet"))
    assert figure.processes["A"].poll() == -signal.SIGKILL
    assert done.returncode == EXIT_UNAVAILABLE, done.stdout + done.stderr
    assert "provider-away" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
    until(lambda: figure.connections() == 0, "connections are left")
