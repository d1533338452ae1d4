"""Contexts, completion, and tables on a terminal: no network is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onyx.cli.contexts import contexts_file
from onyx.cli.main import build_parser, main
from onyx.cli.network_option import context_of, data_directory_of, registration_address
from onyx.cli.values import table
from onyx.errors import UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("ONYX_REGISTRATION", "ONYX_CREDENTIALS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def found(*words: str) -> tuple[str, Path | None]:
    """Where a command line goes, and with which credentials of a context."""
    arguments = build_parser(["source"]).parse_args(["source", "list", *words])
    return registration_address(arguments), context_of(arguments).credentials_file


def test_a_context_counts_where_nothing_else_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="onyx context add one"):
        found()
    pem = home / "ann.pem"
    pem.write_text("")
    add = ["context", "add"]
    assert main([*add, "prod", "--registration", "h:1", "--credentials", str(pem)]) == 0
    assert main([*add, "here", "--registration", "127.0.0.1:2,127.0.0.1:3"]) == 0
    assert found() == ("h:1", pem)
    assert found("--context", "here") == ("127.0.0.1:2,127.0.0.1:3", None)
    assert found("--registration", "x:9") == ("x:9", None)
    assert main(["context", "use", "here"]) == 0
    assert found()[0] == "127.0.0.1:2,127.0.0.1:3"
    with pytest.raises(UsageError, match=r"no network at 127\.0\.0\.1:2;"):
        data_directory_of(build_parser(["backup"]).parse_args(["backup", "x.tar.zst"]))
    monkeypatch.setenv("ONYX_CREDENTIALS", "bob.pem")
    assert found("--context", "prod") == ("h:1", None), "others are said"
    monkeypatch.setenv("ONYX_REGISTRATION", "y:8")
    assert found()[0] == "y:8"
    capsys.readouterr()
    assert main(["context", "list", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["name"], each["used"]) for each in listed] == [("here", True), ("prod", False)]
    assert contexts_file().stat().st_mode & 0o077 == 0
    assert main(["context", "remove", "here"]) == 0
    assert main(["context", "use", "here"]) == 2
    contexts_file().write_text("[]")
    assert main(["context", "list"]) == 66


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_is_told_all_verbs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "taxonomy" in script and ("--ensure" in script or shell == "tcsh")


@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("source re", {"register", "remove", "resume"}),
        ("source register --j", {"--json"}),
        ("source register --h", {"--help"}),
    ],
)
def test_bash_completes_verbs_of_a_verb_and_options_of_all(
    begun: str, completed: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    last = len(begun.split())
    words = f"COMP_WORDS=(onyx {begun}); COMP_CWORD={last}; _shtab_onyx; echo ${{COMPREPLY[@]}}"
    said = subprocess.run(
        [bash], input=f"{script}\n{words}\n", text=True, capture_output=True, check=True
    )
    assert set(said.stdout.split()) == completed


def test_a_table_is_drawn_on_a_terminal_and_plain_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("B1", 12_345), ("[x]" * 20, None)]
    assert "\x1b" not in table(("ID", "COUNT"), rows)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    drawn = table(("ID", "COUNT"), rows)
    assert "\x1b[1m" in drawn and "12,345" in drawn
    assert drawn.count("x") == 20, "what is long is folded, not cut"
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in table(("ID", "COUNT"), rows)
