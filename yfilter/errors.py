"""Why a profile or a rule set was refused, or a message costs too much."""

from __future__ import annotations

from formats.errors import Fault, Refusal
from formats.kernel import REASON


class ProfileRefused(Refusal):
    """A profile text that is not in the language, or is beyond a limit; ``str()`` shows the line
    with a caret under the place."""

    kind = "profile-refused"

    def __init__(
        self,
        code: str,
        reason: str,
        text: str = "",
        offset: int = 0,
        expected: str = "",
        hint: str = "",
    ) -> None:
        before = text[:offset]
        line, column = before.count("\n") + 1, offset - before.rfind("\n")
        super().__init__(Fault(code, reason, expected, line, column, hint=hint))
        self.source_line = (text.splitlines() or [""])[:line][-1]

    def __str__(self) -> str:
        shown = f"{self.fault}\n    {self.source_line}\n    {' ' * (self.column - 1)}^"
        return f"{shown}\n    {self.fault.hint}" if self.fault.hint else shown


class MatchLimitExceeded(Refusal):
    """A message that would cost the engine more than a stated bound; ``code`` names the bound.
    ``made``: the results of a profile that were made before, ``of`` as many as it has.  ``found``:
    the elements on which a condition holds, of those before the ``unseen``, which nobody looked
    at."""

    kind = "message-refused"

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(Fault(code, reason))
        self.made: list[bytes] = []
        self.of = 0
        self.found: list[int] = []
        self.unseen: list[int] = []

    @property
    def first(self) -> list[bytes]:
        """Of results that are too large all that were made."""
        return self.made if self.code == "result-too-large" else []


class SchematronRefused(Refusal):
    """Something in a rule set cannot be used: where, and what was expected."""

    kind = "rules-refused"

    def __init__(self, reason: str, file: str = "", line: int = 0) -> None:
        super().__init__(Fault(reason=reason, where=file, line=line))


class KernelMissing(Refusal):
    """What was asked for takes the engine, and the compiled modules are not used here."""

    kind = "not-compiled"

    def __init__(self) -> None:
        super().__init__(
            f"the engine needs the compiled modules, which are not used here: {REASON}. Install a "
            "wheel that has them, or a C compiler: docs/installing.md"
        )
