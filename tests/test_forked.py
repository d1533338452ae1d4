"""A forked process is what one is that was started; all tests with processes rely on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forked import STARTED

CHECK = [sys.executable, "-m", "onyx", "profile", "check"]


def said(starts: type[subprocess.Popen[Any]], words: tuple[str, ...], folder: Path) -> object:
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "COLUMNS": "50"}
    with starts([*CHECK, *words], **pipes, cwd=folder, env=environment) as process:
        return process.communicate(b"/a["), process.returncode


@pytest.mark.parametrize("words", [("-",), ("right.xq",), ("wrong.xq", "--json"), ("--none",)])
def test_it_says_and_ends_as_one_that_is_started(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "right.xq").write_text("//a")
    (tmp_path / "wrong.xq").write_text("//a[")
    assert said(subprocess.Popen, words, tmp_path) == said(STARTED, words, tmp_path)


@pytest.mark.parametrize("group", [None, 0])
def test_it_is_a_child_with_a_group_and_signals(tmp_path: Path, group: int | None) -> None:
    said(subprocess.Popen, ("--none",), tmp_path)  # which may be the first
    command = [*CHECK, "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=group)
    with process:
        assert b"forked.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert os.getpgid(process.pid) == (os.getpgrp() if group is None else process.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_one_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    said(subprocess.Popen, ("--none",), tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        subprocess.Popen(CHECK, cwd=tmp_path / "nowhere")


def test_other_code_is_not_forked_from_ours(tmp_path: Path) -> None:
    (tmp_path / "onyx").mkdir()
    (tmp_path / "onyx" / "__main__.py").write_text("import os; print(os.environ['IT'])")
    (tmp_path / "onyx" / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "IT": "is another"}
    for _ in range(2):
        assert subprocess.check_output(CHECK, cwd=tmp_path, env=environment) == b"is another\n"
