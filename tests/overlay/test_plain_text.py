"""Texts of strangers reach a terminal without a character that it obeys."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
from contextlib import suppress
from io import StringIO

import pytest

from onyx.cli.values import table
from onyx.logs import configure_logging
from overlay.link.request_server import RequestRefused, read
from overlay.plain_text import PlainStream, is_plain, plain
from overlay.verbs import Asked, ProfileAdd, ProfileAddMany, SourceRegister

TITLE = "\x1b]0;owned\x07"
SAMPLES = {
    TITLE: r"\x1b]0;owned\x07",
    "a\rb": r"a\rb",
    "\x9b2J": r"\x9b2J",  # one byte of C1
    "abc\u202edef": r"abc\u202edef",  # written backwards from here
    "\x1b[8mhidden": r"\x1b[8mhidden",
}
SHOWN = [
    "Zürich 東京",
    "a\u3000b\xa0c",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "👩\u200d💻",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_what_a_terminal_obeys_is_an_escape(text: str) -> None:
    assert plain(text) == SAMPLES[text]
    assert not is_plain(text)
    stream = StringIO()
    print(f"a name: {text}", file=PlainStream(stream))
    assert stream.getvalue() == f"a name: {SAMPLES[text]}\n"


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_shown_stays(text: str) -> None:
    assert plain(text) == text
    assert is_plain(text)


def test_a_line_is_one_line() -> None:
    assert plain("a\tb\n") == "a\tb\n"
    assert plain("a\nb", "") == r"a\nb"
    assert not is_plain("a\nb")


def test_results_are_plain_and_headings_bold() -> None:
    stream = StringIO()
    out = PlainStream(stream)
    out.buffer.write(b"<a>\xc2\x9b\x1b[2J</a>\n")
    out.write("\x1b[1mNAME\x1b[0m")
    out.begin_line_again()
    assert stream.getvalue() == "<a>\\x9b\\x1b[2J</a>\n\x1b[1mNAME\x1b[0m\r\x1b[K"


def test_a_log_line_cannot_be_forged() -> None:
    stream = StringIO()
    try:
        configure_logging("B1", stream=stream)
        logging.getLogger("onyx.test").warning(
            "lost", extra={"source": "s\n2026 B1 info: all good"}
        )
    finally:
        logging.getLogger().handlers.clear()
    assert stream.getvalue().count("\n") == 1
    assert r"source=s\n2026" in stream.getvalue()


@pytest.mark.parametrize("name", [*SAMPLES, "two\nlines"])
def test_a_name_is_refused_that_is_not_plain(name: str) -> None:
    asked: tuple[tuple[type[Asked], dict[str, object]], ...] = (
        (SourceRegister, {"name": name}),
        (ProfileAdd, {"text": "/a", "user": name}),
        (ProfileAddMany, {"texts": ["/a"], "users": ["ann", name]}),
    )
    for kind, said in asked:
        with pytest.raises(RequestRefused, match=r"is .*; expected one line") as refused:
            read(kind, said)
        fault = refused.value.fault
        assert (fault.code, fault.where) == ("bad-argument", [*said][-1])


def test_a_command_writes_no_escape_of_a_stranger_to_a_terminal() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "onyx", "profile", "check", f"/a[b = '{TITLE}"]
    done = subprocess.run(command, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    written = b""
    with suppress(OSError):  # there is no more
        while True:
            written += os.read(ours, 65_536)
    os.close(ours)
    assert done.returncode == 66, "there is no such file"
    assert b"owned" in written
    assert b"\x1b" not in written and b"\x07" not in written


def test_cells_of_a_table_on_a_terminal_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    drawn = table(["NAME"], [["a\x1b[8mb\nforged"]])
    assert r"a\x1b[8mb\nforged" in drawn
