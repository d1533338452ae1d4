"""Why a profile was refused."""

from __future__ import annotations

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """A fault in a profile text, as the network, the command line and HTTP say it.

    ``code`` is a stable word ("syntax", "undeclared-prefix", "unsupported", "too-long", ...),
    ``reason`` the sentence for people, ``expected`` says what could stand there ("" if nothing
    helpful can be said), ``line`` and ``column`` count from 1 (0: not known).
    """

    code: str
    reason: str
    expected: str
    line: int
    column: int

    def shown(self, source_line: str) -> str:
        """The sentence, the line, a caret under the place."""
        wanted = f"; expected {self.expected}" if self.expected else ""
        caret = " " * (self.column - 1) + "^"
        return (
            f"line {self.line}, column {self.column}: {self.reason}{wanted} [{self.code}]\n"
            f"    {source_line}\n    {caret}"
        )


class ProfileRefused(Exception):
    """A profile text that is not in the language, or is beyond a limit.

    It has the fields of a Fault.  ``str()`` shows the line with a caret under the place.
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

    @property
    def fault(self) -> Fault:
        return msgspec.convert(self, Fault, from_attributes=True)

    def facts(self) -> dict[str, object]:
        """The fields of the fault by name, for machines."""
        return msgspec.structs.asdict(self.fault)

    def __str__(self) -> str:
        return self.fault.shown(self.source_line)


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
