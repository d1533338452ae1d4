"""Blanks: the literals and names that stand in the tree of a shape for the words of a profile."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

# No text of a profile that is taken apart has this character: see shape_cache.py.
MARK = "\U000effff"


class NeedsWords(Exception):
    """What is asked depends on the words of a profile, not on its shape alone."""


class BlankString(str):
    number: int


class BlankInteger(int):
    number: int

    def __str__(self) -> str:
        return f"{MARK}{self.number}{MARK}"


class BlankDecimal(Decimal):
    number: int

    def __format__(self, specifier: str, context: object = None, /) -> str:
        return f"{MARK}{self.number}.{MARK}"


class BlankDouble(float):
    number: int


Blank: TypeAlias = BlankString | BlankInteger | BlankDecimal | BlankDouble
