"""Why a profile was refused."""

from __future__ import annotations


class ProfileRefused(Exception):
    """A profile text that is not in the language, or is beyond a limit.

    ``code`` is a stable word ("syntax", "undeclared-prefix", "unsupported", "too-long", ...),
    ``line`` and ``column`` count from 1, ``expected`` says what could stand there ("" if nothing
    helpful can be said).  ``str()`` shows the line with a caret under the place.
    """

    def __init__(
        self,
        code: str,
        reason: str,
        text: str = "",
        offset: int = 0,
        expected: str = "",
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.expected = expected
        before = text[:offset]
        self.line = before.count("\n") + 1
        self.column = offset - (before.rfind("\n") + 1) + 1
        lines = text.splitlines() or [""]
        self.source_line = lines[min(self.line, len(lines)) - 1]

    def facts(self) -> dict[str, object]:
        """For machines: ``code``, ``reason``, ``expected``, ``line``, ``column``."""
        names = ("code", "reason", "expected", "line", "column")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return at_place(
            self.line, self.column, self.source_line, self.reason, self.expected, self.code
        )


def at_place(
    line: int, column: int, source_line: str, reason: str, expected: str, code: str
) -> str:
    """What is said of a place in a profile: the sentence, the line, a caret under the place."""
    wanted = f"; expected {expected}" if expected else ""
    caret = " " * (column - 1) + "^"
    return (
        f"line {line}, column {column}: {reason}{wanted} [{code}]\n    {source_line}\n    {caret}"
    )


class MatchLimitExceeded(Exception):
    """A message that would cost the engine more than a stated bound; ``code`` names the bound.
    ``made``: the results of a profile that were made before, ``of`` as many as it has.  ``found``:
    the elements on which a condition holds, of those before the ``unseen``, which nobody looked
    at."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.made: list[bytes] = []
        self.of = 0
        self.found: list[int] = []
        self.unseen: list[int] = []

    @property
    def first(self) -> list[bytes]:
        """Of results that are too large all that were made."""
        return self.made if self.code == "result-too-large" else []
