"""What the machine of the chaos does to a process, and that a store bears it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overlay.link.store import Store
from overlay.link.store_head import read_head
from tests.survival.machine import Machine, cut_power, machines
from tests.survival.separate_nodes import HERE

pytestmark = pytest.mark.usefixtures("real_starts")
COMMIT = """
import os, signal, sys
from overlay.link.events import Put
from overlay.link.store import Store
store = Store(sys.argv[1])
store.commit([Put("rows", "synced", b"")])
store._connection.execute("PRAGMA synchronous = OFF")
store.commit([Put("rows", "written", b"")])
os.kill(os.getpid(), signal.SIGKILL)
"""
OPEN = """
import os, signal, sys
from overlay.link.store import Store
store = Store(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""

REPLACE = """
import sys
from pathlib import Path
from overlay.link.store_head import Mark, write_head
write_head(Path(sys.argv[1]), Mark(7, b"digest".ljust(16)))
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = machines(tmp_path, ["B1"])
    if not found:
        pytest.skip("no C compiler here")
    return found["B1"]


def run(machine: Machine, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **machine.environment},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )


def rows_of(path: Path) -> list[str]:
    with Store(path) as store:
        return [key for _, key, _ in store.rows()]


def test_a_power_cut_leaves_what_was_synced(machine: Machine, tmp_path: Path) -> None:
    done = run(machine, COMMIT, str(tmp_path / "store.sqlite"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    cut_power(tmp_path, None)
    assert rows_of(tmp_path / "store.sqlite") == ["synced"]


def test_what_a_handle_for_writing_has_synced_stays(machine: Machine, tmp_path: Path) -> None:
    head = tmp_path / "store.sqlite-head"
    done = run(machine, REPLACE, str(head))
    assert done.returncode == 0, done.stderr
    cut_power(tmp_path, None)
    assert read_head(head)[0].number == 7


def test_what_a_process_has_found_at_its_start_stays(machine: Machine, tmp_path: Path) -> None:
    for script in (COMMIT, OPEN):
        done = run(machine, script, str(tmp_path / "store.sqlite"))
        assert done.returncode == -signal.SIGKILL, done.stderr
    cut_power(tmp_path, None)
    assert rows_of(tmp_path / "store.sqlite") == ["synced", "written"]


def test_the_clock_is_wrong(machine: Machine) -> None:
    machine.set_clock(-86_400)
    done = run(machine, "import time; print(time.time())")
    assert float(done.stdout) < time.time() - 80_000
