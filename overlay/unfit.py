"""The refusals of msgspec, taken apart and said in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import ValidationError

from formats.errors import Fault

_REFUSAL = re.compile(r"(.*) - at `(?:key in `)?\$(.*)`", re.DOTALL)
_SHOWN = 1_000  # as long as this, a value is not written out
_MISSING = re.compile(r"Object missing required field `(.*)`")


class Unfit(NamedTuple):
    """A ``value`` that msgspec has refused, and ``why`` in its words, "" for a field that is not
    there.  ``path`` leads to it: names of fields, places in lists, "..." in a map."""

    path: list[str | int]
    value: Any
    why: str

    @property
    def name(self) -> str:
        """The field that is refused, or in which something is."""
        return str(self.path[0])

    @property
    def inside(self) -> str:
        """The way on from there: "[3]"."""
        steps = self.path[1:]
        return "".join(f".{s}" if isinstance(s, str) and s != "..." else f"[{s}]" for s in steps)


def unfit(error: ValidationError, given: Any) -> Unfit:
    """The refusal of what was given."""
    said = _REFUSAL.fullmatch(str(error))
    why, way = said.groups() if said else (str(error), "")
    path: list[str | int] = []
    for name, place in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", way):
        path.append(int(place) if place.isdecimal() else name or place)
        try:
            given = given[path[-1]]
        except (KeyError, IndexError, TypeError):
            given = None
    if missing := _MISSING.fullmatch(why):
        return Unfit([*path, missing[1]], None, "")
    return Unfit(path, given, why)


_WORDS = {
    "str": "a string",
    "bytes": "bytes",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a map",
    "null": "nothing",
}
_RELATIONS = {">=": "at least", "<=": "at most", "<": "less than", ">": "more than"}
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got .*)?")


def in_words(kind: Any, error: ValidationError, given: Any) -> Fault:
    """The refusal of the fields of a record ``kind``: "bad-argument" or "too-long"."""
    found = unfit(error, given)
    value, why = found.value, found.why
    if unknown := _UNKNOWN.fullmatch(why):
        known = ", ".join(_below(kind, found.path).__struct_fields__)
        inside = "".join(f"{each!r}: " for each in found.path)
        reason = f"{inside}there is no {unknown[1]!r}; there are {known}"
        return Fault("bad-argument", reason, known, where=".".join(map(str, found.path)))
    where, shown = found.name + found.inside, f"{found.name!r}{found.inside}"
    if why.startswith("Invalid enum value"):
        choices = ", ".join(get_args(_below(kind, found.path)))
        reason = f"{shown} must be one of {choices}, not {value!r}"
        return Fault("bad-argument", reason, choices, where=where)
    said = _EXPECTED.fullmatch(why)
    if not said:
        reason = f"{shown}: {why}" if why else f"{shown} is not given"
        return Fault("bad-argument", reason, where=where)
    kinds, bound = said.groups()
    for sign, words in _RELATIONS.items():
        bound = bound.replace(f" {sign} ", f" {words} ")
    if " of length " in bound and value is not None:
        unit = "characters" if isinstance(value, str) else "values"
        unit = "bytes" if isinstance(value, bytes) else unit
        code = "too-long" if " <= " in why else "bad-argument"
        expected = bound.removeprefix(" of length ")
        reason = f"{shown} has {len(value)} {unit}, expected {expected}"
        return Fault(code, reason, f"{expected} {unit}", where=where)
    expected = " or ".join(_WORDS.get(each, each) for each in kinds.split(" | "))
    expected += bound and f" of{bound}"
    size = len(value) if hasattr(value, "__len__") else 0
    other = repr(value)[:80] if size < _SHOWN else f"{type(value).__name__} of length {size}"
    other = "" if value is None and found.inside else f", not {other}"
    other = f" as a key{other}" if "`key in `" in str(error) else other
    return Fault("bad-argument", f"{shown} must be {expected}{other}", expected, where=where)


def _below(kind: Any, path: Iterable[str | int]) -> Any:
    """The type at a path of names below a record."""
    for name in path:
        hint = get_type_hints(kind)[str(name)]
        kind = next((each for each in get_args(hint) if hasattr(each, "__struct_fields__")), hint)
    return kind
