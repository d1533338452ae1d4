"""The functions on strings; arguments arrive as function_library.py says."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf, isnan
from typing import Any

from formats.characters import find_illegal_character
from yfilter.language.atoms import atom_text, cast
from yfilter.language.budget import ITEM_BYTES, Budget
from yfilter.language.nodes import Atom, DynamicError, Untyped
from yfilter.language.number_functions import rounded
from yfilter.language.patterns import Pattern, compile_pattern

PATTERN_COST = 256  # of one that may have many states, in visits
SIZE_STEP = 65_536  # characters of a result after which they are charged
_SPACE = re.compile("[ \\t\\n\\r]+")


def _normalize_space(text: str) -> str:
    if _SPACE.search(text) is None:
        return text
    return " ".join(part for part in _SPACE.split(text) if part)


def _matches(budget: Budget, text: str, pattern: str, flags: str = "") -> bool:
    budget.charge_text(len(text))
    return _compiled(budget, pattern, flags).search(text, budget.charge)


def _compiled(budget: Budget, pattern: str, flags: str) -> Pattern:
    budget.charge(PATTERN_COST if "{" in pattern else 1)
    return compile_pattern(pattern, flags)


def _tokenize(budget: Budget, text: str, pattern: str, flags: str = "") -> list[str]:
    if not text:
        return []
    compiled = _never_empty(budget, "tokenize", pattern, flags)
    tokens = []
    place = 0
    for start, end, _ in compiled.finditer(text, budget.charge):
        budget.charge()
        tokens.append(text[place:start])
        place = end
    return [*tokens, text[place:]]


def _replace(budget: Budget, text: str, pattern: str, replacement: str, flags: str = "") -> str:
    compiled = _never_empty(budget, "replace", pattern, flags)
    template = [replacement] if "q" in flags else _template(replacement, compiled.groups)
    parts: list[str] = []
    place = 0
    size = len(text)
    for start, end, groups in compiled.finditer(text, budget.charge):
        made = [
            part if isinstance(part, str) else _group(text, part, (start, end), groups)
            for part in template
        ]
        size += sum(map(len, made))
        if size > SIZE_STEP:
            budget.charge_memory(size)
            size = 0
        budget.charge()
        parts += (text[place:start], *made)
        place = end
    budget.charge_memory(size)
    return "".join((*parts, text[place:]))


def _never_empty(budget: Budget, name: str, pattern: str, flags: str) -> Pattern:
    compiled = _compiled(budget, pattern, flags)
    if compiled.is_nullable:
        raise DynamicError("FORX0003", f"the pattern of {name}() matches the empty string")
    return compiled


def _template(replacement: str, groups: int) -> list[str | int]:
    """The replacement as text and numbers of groups."""
    template: list[str | int] = []
    place = 0
    while place < len(replacement):
        character = replacement[place]
        following = replacement[place + 1 : place + 2]
        if character == "\\":
            if following not in ("\\", "$") or not following:
                raise DynamicError("FORX0004", "a backslash stands before \\ or $")
            template.append(following)
            place += 2
        elif character == "$":
            if not following.isdecimal():
                raise DynamicError("FORX0004", "a digit stands after $")
            number, place = int(following), place + 2
            while replacement[place : place + 1].isdecimal() and (
                number * 10 + int(replacement[place]) <= groups
            ):
                number, place = number * 10 + int(replacement[place]), place + 1
            template.append(number)
        else:
            template.append(character)
            place += 1
    return template


def _group(
    text: str, number: int, whole: tuple[int, int], groups: tuple[tuple[int, int] | None, ...]
) -> str:
    span = whole if number == 0 else groups[number - 1] if number <= len(groups) else None
    return text[span[0] : span[1]] if span else ""


def _substring(text: str, start: Any, length: Any = inf) -> str:
    if start is None or length is None:
        return ""
    first = float(rounded(start))
    last = first + float(rounded(length))
    if isnan(first) or isnan(last):
        return ""
    begin = max(first, 1)
    end = min(last, len(text) + 1)
    return text[int(begin) - 1 : int(end) - 1] if begin < end else ""


def _substring_before(text: str, part: str) -> str:
    before, found, _ = text.partition(part) if part else ("", "", "")
    return before if found else ""


def _substring_after(text: str, part: str) -> str:
    return text.partition(part)[2] if part else text


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str] = {}
    for index, character in enumerate(old):
        table.setdefault(ord(character), new[index : index + 1])
    return text.translate(table)


def _compare(one: str, other: str) -> int:
    return (one > other) - (one < other)


def _codepoints_to_string(codes: list[Atom]) -> str:
    codes = [cast(code, "xs:integer") if isinstance(code, Untyped) else code for code in codes]
    if not all(isinstance(code, int) and not isinstance(code, bool) for code in codes):
        raise DynamicError("XPTY0004", "codepoints-to-string() takes integers")
    try:
        text = "".join(map(chr, codes))  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        raise DynamicError("FOCH0001", "no code point of XML") from None
    if find_illegal_character(text) >= 0:
        raise DynamicError("FOCH0001", "no code point of XML")
    return text


def _concat(budget: Budget, *atoms: Atom | None) -> str:
    return _joined(budget, ["" if atom is None else atom_text(atom) for atom in atoms], "")


def _joined(budget: Budget, texts: list[str], separator: str = "") -> str:
    size = sum(map(len, texts)) + len(separator) * len(texts)
    budget.charge_memory(size)
    budget.charge_text(size)
    return separator.join(texts)


def _codepoints(budget: Budget, text: str) -> list[int]:
    budget.charge_memory(ITEM_BYTES * len(text))
    return list(map(ord, text))


STRING_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "contains": lambda text, part: part in text,
    "starts-with": str.startswith,
    "ends-with": str.endswith,
    "normalize-space": _normalize_space,
    "lower-case": str.lower,
    "upper-case": str.upper,
    "translate": _translate,
    "substring": _substring,
    "substring-before": _substring_before,
    "substring-after": _substring_after,
    "string-length": len,
    "compare": _compare,
    "codepoints-to-string": _codepoints_to_string,
}

# What may cost more than its arguments are long, by the budget of the evaluation.
CHARGED: dict[str, Callable[..., Any]] = {
    "matches": _matches,
    "replace": _replace,
    "tokenize": _tokenize,
    "string-to-codepoints": _codepoints,
    "concat": _concat,
    "string-join": _joined,
}
