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


class MessageRefused(FormatError):
    """An XML text that is not well-formed, or is beyond a limit.

    ``line`` and ``column`` count from 1; 0 means that the place is not known.
    """

    def __init__(self, code: str, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(code, reason)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return _with_position(self.line, self.column, self)


class DecodeError(FormatError):
    """Bytes that are not a valid wire form; ``offset`` is where that was noticed."""

    def __init__(self, code: str, reason: str, offset: int = 0) -> None:
        super().__init__(code, reason)
        self.offset = offset

    def __str__(self) -> str:
        return f"byte {self.offset}: {self.reason} [{self.code}]"


class SchemaRefused(FormatError):
    """A source's schema that cannot be read; ``line`` and ``column`` as in MessageRefused."""

    def __init__(self, code: str, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(code, reason)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return _with_position(self.line, self.column, self)


def _with_position(line: int, column: int, refusal: FormatError) -> str:
    place = f"line {line}, column {column}: " if column else f"line {line}: " if line else ""
    return f"{place}{refusal.reason} [{refusal.code}]"
