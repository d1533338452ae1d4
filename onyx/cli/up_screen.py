"""UpScreen: what ``onyx up`` shows on a terminal.

One line, written over and over, says how far a start is.  Lines that processes log go to a file;
warnings and errors are shown as well, above that line.
"""

from __future__ import annotations

import logging
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path
from shutil import get_terminal_size

from overlay.plain_text import PlainStream

LOG_BYTES_MAX = 10 * 1024 * 1024  # of the file; as much of before is kept beside it
_QUIET = re.compile(r"\S+Z \S+ (?:debug|info) ")  # as logs.py writes the beginning of a line


class _Log(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A full disk ends nothing."""


class UpScreen:
    """Also a stream of a log, of which each ``write`` is whole lines."""

    def __init__(self, terminal: PlainStream, log: Path, *, shows_all: bool) -> None:
        """``log``: the file, made with the first line; ``shows_all``: not warnings alone."""
        self._terminal = terminal
        self._log = _Log(log, maxBytes=LOG_BYTES_MAX, backupCount=1, encoding="utf-8", delay=True)
        self._shows_all = shows_all
        self._progress = ""

    def write(self, text: str) -> int:
        self.write_line(text.removesuffix("\n"))
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def write_line(self, line: str) -> None:
        self._log.emit(logging.makeLogRecord({"msg": line}))
        if self._shows_all or not _QUIET.match(line):
            self._write_again(f"{line}\n{self._progress}")

    def show_progress(self, text: str) -> None:
        """In place of what was shown before; "": no more."""
        self._progress = text[: get_terminal_size().columns - 1]
        self._write_again(self._progress)

    def close(self) -> None:
        self.show_progress("")
        self._log.close()

    def _write_again(self, text: str) -> None:
        self._terminal.begin_line_again()
        self._terminal.write(text)
        self._terminal.flush()
