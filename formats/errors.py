"""Why a message, a wire form or a schema was refused.

An error names the place (line and column for text, byte offset for binary) and a stable
``code`` that travels in frames, so that a source can be told exactly what was wrong.
"""

from __future__ import annotations

_REASON_LENGTH_MAX = 300


class FormatError(Exception):
    """Base of all refusals of this package.

    ``code`` is a stable word for machines ("malformed", "too-deep", ...), ``reason`` a sentence
    for people; a long one is cut, since it may quote what a stranger sent.
    """

    def __init__(self, code: str, reason: str) -> None:
        if len(reason) > _REASON_LENGTH_MAX:
            reason = reason[:_REASON_LENGTH_MAX] + "…"
        super().__init__(reason)
        self.code = code
        self.reason = reason


class _PlacedError(FormatError):
    """``line`` and ``column`` count from 1; 0 means that the place is not known."""

    def __init__(self, code: str, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(code, reason)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        place = f"line {self.line}{column}: " if self.line or column else ""
        return f"{place}{self.reason} [{self.code}]"


class MessageRefused(_PlacedError):
    """An XML text that is not well-formed, or is beyond a limit."""


class SchemaRefused(_PlacedError):
    """A source's schema that cannot be read."""


class DecodeError(FormatError):
    """Bytes that are not a valid wire form; ``offset`` is where that was noticed."""

    def __init__(self, code: str, reason: str, offset: int = 0) -> None:
        super().__init__(code, reason)
        self.offset = offset

    def __str__(self) -> str:
        return f"byte {self.offset}: {self.reason} [{self.code}]"
