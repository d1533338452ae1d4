"""Why a rule set, or something in it, cannot be used."""

from __future__ import annotations


class SchematronRefused(Exception):
    """Something in a rule set cannot be used: where, and what was expected."""

    def __init__(self, reason: str, file: str = "", line: int = 0) -> None:
        super().__init__(": ".join(filter(None, (file, f"line {line}" if line else "", reason))))
        self.reason = reason
