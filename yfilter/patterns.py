"""Regular expressions of ``matches``: XPath's syntax, compiled once, and never run away.

Python's engine backtracks, so a pattern such as ``(a+)+`` can take time exponential in the
length of what it is matched with.  A message must not be able to stall a broker: a repetition
without bound inside another repetition, or around a choice, is refused at registration; so is a
back-reference.
"""

from __future__ import annotations

import re
from functools import lru_cache

from elementpath.regex import RegexError, translate_pattern

_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": re.VERBOSE}


class PatternError(ValueError):
    """A regular expression that is wrong, or that could take too long."""


def check_flags(flags: str) -> None:
    """Raises PatternError unless every character is a flag."""
    for flag in flags:
        if flag not in _FLAGS:
            raise PatternError(f"'{flag}' is not a flag of a regular expression")


def check_pattern(pattern: str, length_max: int) -> None:
    """Raises PatternError for what is wrong, too long or could take too long."""
    if len(pattern) > length_max:
        raise PatternError(f"a regular expression of more than {length_max} characters")
    compile_pattern(pattern)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str = "") -> re.Pattern[str]:
    """The compiled form of an XPath 2.0 regular expression; ``search`` decides ``matches``.

    Raises PatternError.
    """
    if "x" in flags:
        pattern = re.sub(r"[ \t\n\r]", "", pattern)
    combined = 0
    for flag in flags.replace("x", ""):
        combined |= _FLAGS[flag]
    try:
        translated = translate_pattern(pattern, combined)
        return re.compile(translated, combined)
    except (RegexError, re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None
