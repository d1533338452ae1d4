"""What is known of a process that has died without a word: real processes, which die."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onyx.node_process import Death, watched_deaths

PROCESS = """
import faulthandler, os, signal, sys, threading
from pathlib import Path
from onyx.node_process import watched_deaths
from overlay.link.work_mark import MARK
with watched_deaths(Path({directory!r})) as (mark, death):
    MARK.pack_into(mark, 0, {state}, {text!r}.encode())
    {end}
"""
IDLE, AT, BEHIND = 0, 1, 2
SEGV = "faulthandler._sigsegv()"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"


def live(directory: Path, end: str, text: str = "it", state: int = AT) -> int:
    """A process that is at something when it ends; its exit code."""
    code = PROCESS.format(directory=str(directory), state=state, text=text, end=end)
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def death(directory: Path) -> Death | None:
    with watched_deaths(directory) as (_, found):
        return found


@pytest.mark.parametrize(("end", "said"), [(SEGV, "Segmentation fault"), ("os.abort()", "Aborted")])
def test_a_fault_is_blamed_on_what_the_process_was_at(tmp_path: Path, end: str, said: str) -> None:
    assert live(tmp_path, end) < 0
    found = death(tmp_path)
    assert found is not None and (found.at, found.is_vague) == ("it", False)
    assert found.blame.startswith(f"Fatal Python error: {said}")
    assert death(tmp_path) is None


def test_a_fault_behind_it_or_in_another_thread_is_not(tmp_path: Path) -> None:
    live(tmp_path, SEGV, state=BEHIND)
    assert death(tmp_path) == Death("it", "", is_vague=True)
    live(tmp_path, KILL)
    thread = f"thread = threading.Thread(target=lambda: {SEGV}); thread.start(); thread.join()"
    live(tmp_path, thread, text="another")
    assert death(tmp_path) == Death("another", "", is_vague=True)  # one of two in a row


def test_of_sigkill_only_the_second_in_a_row_is_blamed(tmp_path: Path) -> None:
    assert live(tmp_path, KILL) == -signal.SIGKILL
    assert death(tmp_path) == Death("it", "", is_vague=False)
    for _ in range(2):
        live(tmp_path, KILL)
    found = death(tmp_path)
    assert found is not None and "twice in a row" in found.blame


@pytest.mark.parametrize(("end", "state"), [("pass", AT), (KILL, IDLE)])
def test_an_end_in_order_or_of_an_idle_process_is_none(
    tmp_path: Path, end: str, state: int
) -> None:
    live(tmp_path, KILL)
    assert live(tmp_path, end, state=state) in (0, -signal.SIGKILL)
    live(tmp_path, KILL)
    assert death(tmp_path) == Death("it", "", is_vague=False)
