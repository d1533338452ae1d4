"""Why a rule set, or something in it, cannot be used."""

from __future__ import annotations

from formats.errors import Fault, Refusal


class SchematronRefused(Refusal):
    """Something in a rule set cannot be used: where, and what was expected."""

    kind = "rules-refused"

    def __init__(self, reason: str, file: str = "", line: int = 0) -> None:
        super().__init__(Fault(reason=reason, where=file, line=line))
