"""README and docs/, run as they stand (pages.py), in one network, with the files that they name.

What is no text of a page is in ``tests/documents``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.onyx.networks import RunningProcess
from tests.onyx.pages import HEREDOC, ROOT, Command, Page, blocks
from tests.onyx.test_cli_network import Shell

TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FILES = ROOT / "tests" / "documents"
NO_COMMANDS = ("export", "cat >", "echo $?")


@pytest.fixture
def figure4(tmp_path: Path) -> Iterator[RunningProcess]:
    """The network of the README, with a gateway."""
    how = ("--port", "0", "--gateway", "--data", str(tmp_path / "data"))
    running = RunningProcess.start(ROOT / "topologies" / "figure4.toml", *how)
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0


def test_the_commands_of_pages_are_right(
    figure4: RunningProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the order of PAGES, each in a folder of its own; a later one knows the source of the
    README as ``wire``."""
    monkeypatch.setenv("ONYX_REGISTRATION", figure4.registration)
    shell = Shell(capsys)
    gateway = figure4.up["gateway"].removeprefix("http://").removesuffix("/")
    for file in PAGES:
        folder = shutil.copytree(FILES, tmp_path / file.stem)
        (folder / "topologies").symlink_to(ROOT / "topologies")
        monkeypatch.chdir(folder)
        page = Page(
            file.read_text(encoding="utf-8"),
            {
                "127.0.0.1:7200": figure4.registration,
                "127.0.0.1:7300": gateway,
                "~/.local/state/onyx/figure4": str(tmp_path / "data"),
            },
        )
        try:
            page.follow(shell)
        except AssertionError as error:
            error.add_note(f"of {file}")
            raise
        if left := [profile["id"] for profile in shell.objects("profile", "list")]:
            shell.lines("profile", "remove", *left, "--wait")


@pytest.mark.parametrize("file", [*PAGES, *sorted(TUTORIALS.glob("*.md"))], ids=lambda it: it.stem)
def test_every_command_is_one(file: Path) -> None:
    """Also of blocks that are not run."""
    for block in blocks(file.read_text(encoding="utf-8")):
        assert block.commands or not block.why_not, f"{block.text} is no commands"
        for line, _ in block.commands:
            if not line.startswith(NO_COMMANDS) and not HEREDOC.match(line):
                Command.read(line).check()
