"""Texts of strangers, as people are shown them: without characters that a terminal obeys.

A name of a source, an error of another process or a result may hold ESC, BEL, carriage returns or
marks that turn the direction of writing, by which it could forge a line, hide one, or rename the
window.  Names may hold none of them (`is_plain`), logs write them as escapes, and the streams of a
command do where they go to a terminal (`PlainStream`); a file or a pipe gets texts as they are.
"""

from __future__ import annotations

import io
import re
import sys
import unicodedata
from typing import TextIO

JOINERS = "\u200c\u200d"  # that Persian, Hindi and emoji need
OWN = re.compile("\x1b\\[[01]?m")  # bold, and not: of the headings of our tables


def is_plain(text: str) -> bool:
    """Whether it is one line without characters that are not shown."""
    return plain(text, "") == text


def plain(text: str, keeps: str = "\n\t") -> str:
    """With escapes as of Python (``\\x1b``) for characters that are not shown, but for those of
    ``keeps``."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keeps or _is_harmless(char) else _escape(char)
        for char in text
    )


def _is_harmless(char: str) -> bool:
    return char in JOINERS or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class PlainStream(io.TextIOBase):
    """A terminal, to which texts go plain but for bold headings."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.buffer = _PlainBytes(self)

    def write(self, text: str) -> int:
        if text.isprintable():
            return self._stream.write(text)
        found: list[str] = []
        begin = 0
        for own in OWN.finditer(text):
            found += plain(text[begin : own.start()]), own.group()
            begin = own.end()
        self._stream.write("".join([*found, plain(text[begin:])]))
        return len(text)

    def begin_line_again(self) -> None:
        """The text that is written next replaces the last line."""
        self._stream.write("\r\x1b[K")

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding


class _PlainBytes(io.RawIOBase):
    """Results, as texts."""

    def __init__(self, stream: PlainStream) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._stream.write(data.decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def use_plain_streams() -> None:
    """Of this process, where they go to a terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty():
            setattr(sys, name, PlainStream(stream))
