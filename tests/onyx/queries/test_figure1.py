"""Figure 1 of seed 001 as real processes: the answer, and a provider that is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow.parquet as pq
import pytest

from demo.queries.figure1 import QUERY, free_ports, make
from onyx.errors import EXIT_UNAVAILABLE
from registration.spark.sandbox import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")
ROWS = 60
_GIVEN_UP_SECONDS = 300


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("figure1"), ROWS, free_ports())


@contextmanager
def _serving(market: Path, names: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    with ExitStack() as stack:
        found = {}
        for name in names:
            command = ["provider", "serve", str(market), name, "--insecure"]
            found[name] = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "onyx", *command], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            stack.callback(found[name].kill)
        for process in found.values():
            assert process.stdout is not None
            assert any("ready" in line for line in process.stdout)
        yield found


@pytest.fixture(scope="module")
def providers(market: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """A and B, ready."""
    with _serving(market, "AB") as found:
        yield found


def _asked(market: Path, *more: str, query: str = QUERY) -> subprocess.CompletedProcess[str]:
    """In a process group of its own, which is empty soon after it has ended."""
    command = [sys.executable, "-m", "onyx", "query", query, "--catalog", str(market)]
    with subprocess.Popen(
        [*command, "--insecure", "--json", *more], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        out, error = process.communicate(timeout=_GIVEN_UP_SECONDS)
    until = monotonic() + _GIVEN_UP_SECONDS
    with suppress(ProcessLookupError):
        while monotonic() < until:
            with suppress(ChildProcessError):  # orphans of tests are this process's to wait for
                os.waitpid(-process.pid, os.WNOHANG)
            os.killpg(process.pid, 0)
            sleep(0.05)
        raise AssertionError(f"processes of the group {process.pid} are left")
    return subprocess.CompletedProcess(command, process.returncode, out, error)


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


def test_explain_says_where_each_operator_is(market: Path) -> None:
    done = _asked(market, "--explain")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    places = {(operator, uri.rpartition("#")[2]) for operator, uri in _places(said["root"])}
    assert {("scan", "A"), ("wrap", "A"), ("scan", "B")} <= places
    assert {("apply", "A"), ("apply", "B")} & places, "pictures are small before they are sent"
    assert set(said["estimate"]) >= {"rows", "bytes_read", "bytes_moved", "cost", "seconds"}


def test_the_answer_is_that_of_the_data_and_a_killed_provider_is_named(
    market: Path, providers: dict[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    out = tmp_path / "rows.parquet"
    done = _asked(market, "--out", str(out))
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    rows = pq.read_table(out).to_pylist()
    assert sorted((r["title"], r["name"], r["kind"], r["weight"]) for r in rows) == _expected(
        market
    )
    assert all(0 < len(row["small"]) < 64 * 64 for row in rows)
    assert (last["rows"], last["complete"]) == (len(rows), True)
    providers["B"].send_signal(signal.SIGKILL)
    providers["B"].wait()
    gone = _asked(market, "--out", str(tmp_path / "none.parquet"))
    assert gone.returncode == EXIT_UNAVAILABLE, gone.stderr
    assert "provider-away" in gone.stdout + gone.stderr
    assert not (tmp_path / "none.parquet").exists()


class Passing:
    """A port in front of a provider; ``seen`` is told of each piece that is asked of it."""

    def __init__(self, port: int, seen: Callable[[bytes], None]) -> None:
        self._to, self._seen = port, seen
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                asking, _ = self._listener.accept()
                with suppress(OSError):
                    asked = socket.create_connection(("127.0.0.1", self._to))
                    ends = ((asking, asked, self._seen), (asked, asking, lambda _: None))
                    for each in ends:
                        threading.Thread(target=self._pass, args=each, daemon=True).start()
                    continue
                asking.close()

    def _pass(
        self, one: socket.socket, other: socket.socket, seen: Callable[[bytes], None]
    ) -> None:
        with suppress(OSError), one, other:
            while data := one.recv(1 << 16):
                seen(data)
                other.sendall(data)

    def close(self) -> None:
        self._listener.close()


def test_a_provider_is_killed_as_its_plan_arrives_and_nothing_is_left(tmp_path: Path) -> None:
    port, _ = free_ports()
    own = make(tmp_path / "B", ROWS, (1, port))
    with _serving(own, "B") as served:

        def seen(data: bytes) -> None:
            if b"plug" in data:
                served["B"].send_signal(signal.SIGKILL)
                served["B"].wait()

        passing = Passing(port, seen)
        catalog = make(tmp_path / "client", ROWS, (1, passing.port))
        out = tmp_path / "out" / "rows.parquet"
        out.parent.mkdir()
        done = _asked(catalog, "--out", str(out), query="SELECT id, image FROM B.T")
        passing.close()
        assert served["B"].poll() == -signal.SIGKILL
    assert done.returncode == EXIT_UNAVAILABLE, done.stdout + done.stderr
    assert "provider-away" in done.stdout + done.stderr
    assert list(out.parent.iterdir()) == []
