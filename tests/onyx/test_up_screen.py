"""On a terminal ``onyx up`` says how far it is and what to do next; what is logged is in a file."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from onyx.cli.up_screen import LOG_BYTES_MAX, UpScreen
from overlay.plain_text import PlainStream
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology_text

AGAIN = "\r\x1b[K"
INFO = "2026-02-03T04:05:06.789012Z B1 info onyx.process: ready"
WARNING = INFO.replace("info", "warning")


def test_warnings_are_shown_above_the_progress_and_all_is_in_the_file(tmp_path: Path) -> None:
    terminal, log = io.StringIO(), tmp_path / "up.log"
    screen = UpScreen(PlainStream(terminal), log, shows_all=False)
    screen.show_progress("1 of 2")
    assert not log.exists()
    screen.write_line(INFO)
    screen.write(f"{WARNING}\n")
    screen.write_line("Traceback %s")
    screen.close()
    above = f"{AGAIN}{WARNING}\n1 of 2{AGAIN}Traceback %s\n1 of 2"
    assert terminal.getvalue() == f"{AGAIN}1 of 2{above}{AGAIN}"
    assert log.read_text() == f"{INFO}\n{WARNING}\nTraceback %s\n"


def test_all_is_shown_where_that_is_asked_for(tmp_path: Path) -> None:
    terminal = io.StringIO()
    screen = UpScreen(PlainStream(terminal), tmp_path / "up.log", shows_all=True)
    screen.write_line(INFO)
    screen.close()
    assert INFO in terminal.getvalue()


def test_the_file_is_bounded_and_a_line_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    screen = UpScreen(PlainStream(io.StringIO()), tmp_path / "up.log", shows_all=False)
    for _ in range(5):
        screen.write_line("x" * (LOG_BYTES_MAX // 2))
    screen.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2 * LOG_BYTES_MAX
    terminal = io.StringIO()
    nowhere = UpScreen(PlainStream(terminal), tmp_path / "none" / "up.log", shows_all=False)
    nowhere.write_line(WARNING)
    nowhere.close()
    assert WARNING in terminal.getvalue()


def test_a_network_on_a_terminal_says_what_to_do_next(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data", brokers=1))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "onyx", "up", str(file)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as up:
        os.close(theirs)
        try:
            said = b""
            while b"profile add - --wait" not in said:
                said += os.read(ours, 4096)
        finally:
            up.send_signal(signal.SIGTERM)
            assert up.wait(SAFETY_SECONDS) == 0
            os.close(ours)
    progress, _, rest = said.decode().replace("\r\n", "\n").rpartition(AGAIN)
    assert f"{AGAIN}onyx: 1 of 2 processes are ready" in progress
    assert "info" not in progress + rest
    first, empty, look, stop, attempt = rest.splitlines()
    assert (first, empty) == ("The network small is up.", "")
    assert look.startswith("Look:  onyx status --registration 127.0.0.1:")
    assert stop == f"Stop:  Ctrl-C; its data stay in {tmp_path / 'data'}, with the log (up.log)"
    assert attempt.startswith("Try:   export ONYX_REGISTRATION=127.0.0.1:")
    assert "B1 info onyx.process: ready" in (tmp_path / "data" / "up.log").read_text()
