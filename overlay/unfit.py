"""The refusals of msgspec, taken apart and said in plain words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, UnsetType, ValidationError
from msgspec.structs import fields

from formats.errors import Fault

_REFUSAL = re.compile(r"(.*) - at `(?:key in `)?\$(.*)`", re.DOTALL)
_SHOWN = 80  # as long as this, a value is not written out
_MISSING = re.compile(r"Object missing required field `(.*)`")
_NOTHING = frozenset({NoneType, UnsetType})


class Unfit(NamedTuple):
    """A ``value`` that msgspec has refused, and ``why`` in its words, "" for a field that is not
    there.  ``path`` leads to it: names of fields, places in lists, the key in a map, "..." where
    it cannot be told."""

    path: list[str | int]
    value: Any
    why: str

    @property
    def where(self) -> str:
        """As ``broker[2].listen`` or ``conf."spark.cores.max"``."""
        return "".join(map(_step, self.path)).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int) or step == "...":
        return f"[{step}]"
    return f".{step}" if re.fullmatch(r"[\w-]+", step) else f".{quote(step)}"


def unfit(error: ValidationError, given: Any) -> Unfit:
    """The refusal of what was given."""
    said = _REFUSAL.fullmatch(str(error))
    why, way = said.groups() if said else (str(error), "")
    path: list[str | int] = []
    for name, place in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", way):
        path.append(int(place) if place.isdecimal() else name or place)
        if place == "..." and isinstance(given, dict):
            path[-1] = _key_of(given, why)
        try:
            given = given[path[-1]]
        except (KeyError, IndexError, TypeError):
            given = None
    if missing := _MISSING.fullmatch(why):
        return Unfit([*path, missing[1]], None, "")
    return Unfit(path, given, why)


def _key_of(given: Mapping[Any, Any], why: str) -> str:
    """Of the first value of the type that msgspec has not expected; "..." where there is none."""
    got = why.rpartition("got `")[2].rstrip("`")
    found = (key for key, value in given.items() if _KINDS.get(type(value)) == got)
    return next((key for key in found if isinstance(key, str)), "...")


_KINDS = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}
WORDS: Mapping[str, str] = {
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
_EXPECTED = re.compile(r"Expected `([^`]+)`(.*?)(?:, got .*)?")


def in_words(kind: Any, error: ValidationError, given: Any) -> Fault:
    """The refusal of the fields of a record ``kind``: "bad-argument" or "too-long"."""
    found = unfit(error, given)
    fault, where = said_of(kind, found), found.where
    reason = fault.reason
    if "`key in `" in str(error):
        reason = reason.replace(", not ", " as a key, not ")
    if where:
        first = str(found.path[0])
        between = " " if reason.startswith(("must ", "has ", "is ")) else ": "
        reason = f"{first!r}{where.removeprefix(first)}{between}{reason}"
    return Fault(fault.code, reason, fault.expected, where=where)


def said_of(kind: Any, found: Unfit, words: Mapping[str, str] = WORDS) -> Fault:
    """A refusal without the name of the field, whose types are called by ``words``; ``hint``: the
    field that there is not."""
    hint, says = taken_apart(type_at(kind, found.path))
    value, why = found.value, found.why
    code, unknown = "bad-argument", ""
    said, title = _EXPECTED.fullmatch(why), says.get("title")
    kinds, bound = said.groups() if said else ("", "")
    for sign, relation in _RELATIONS.items():
        bound = bound.replace(f" {sign} ", f" {relation} ")
    if why.startswith("Object contains unknown field"):
        known = [*hint.__struct_encode_fields__, *getattr(hint, "OTHER_KEYS", ())]
        unknown = next((str(each) for each in value or () if each not in known), "")
        expected, more = ", ".join(known), did_you_mean(unknown, known)
        reason = f"there is no {unknown!r}{more}; there are {expected}"
    elif why.startswith("Invalid enum value"):
        expected = ", ".join(choices := [str(each) for each in get_args(hint) or hint])
        more = did_you_mean(value, choices) if isinstance(value, str) else ""
        reason = f"must be one of {expected}, not {_shown(value, words)}{more}"
    elif not why:
        expected, reason = title or _word_of(hint, words), "is not given"
    elif isinstance(value, str) and "form" in says:
        expected, reason = "", f"{quote(value)} {says['form']}"
    elif not said:
        expected, reason = "", why
    elif " of length " in bound and value is not None:
        unit = "characters" if isinstance(value, str) else "values"
        unit = "bytes" if isinstance(value, bytes) else unit
        code = "too-long" if " <= " in why else code
        most = bound.removeprefix(" of length ")
        wanted = title if title and most.isdigit() else most
        has = f"has {len(value)} {unit}, expected {wanted}"
        expected, reason = f"{most} {unit}", has if value != "" else "must not be empty"
    else:
        called = (words.get(each, each) for each in kinds.split(" | "))
        expected = " or ".join(filter(None, called))
        within = bound and f" of{bound}"
        if bound and {"ge", "le"} <= says.keys():
            ends = (says["ge"], says["le"])
            within = " from {} to {}".format(*(f"{e:.15g}" if e % 1 else int(e) for e in ends))
        expected = title or f"{expected}{within}"
        other = "" if value is None and len(found.path) > 1 else f", not {_shown(value, words)}"
        reason = f"must be {expected}{other}"
    return Fault(code, reason, expected, hint=unknown)


def _shown(value: Any, words: Mapping[str, str]) -> str:
    if isinstance(value, dict | list):
        return words["object" if isinstance(value, dict) else "array"]
    if isinstance(value, int) and abs(value) >= 10**20:  # Python writes none of 4,300 digits
        return f"{words['int']} of very many digits"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    size = len(value) if hasattr(value, "__len__") else 0
    return repr(value) if size < _SHOWN else f"{type(value).__name__} of length {size}"


def _word_of(hint: Any, words: Mapping[str, str]) -> str:
    kind = get_origin(hint) or hint
    if isinstance(kind, type) and issubclass(kind, Struct | dict):
        return words["object"]
    return words.get(getattr(kind, "__name__", ""), words["array" if kind is tuple else "str"])


def taken_apart(hint: Any) -> tuple[Any, dict[str, Any]]:
    """The type that an annotation has, but for None and UNSET, and all that its Metas say."""
    said: dict[str, Any] = {}
    while get_origin(hint) is Annotated or _NOTHING.intersection(get_args(hint)):
        if get_origin(hint) is Annotated:
            hint, *others = get_args(hint)
            metas = (each for each in others if isinstance(each, Meta))
            said |= {name: value for meta in metas for name, value in meta.__rich_repr__()}
        elif len(others := [each for each in get_args(hint) if each not in _NOTHING]) == 1:
            hint = others[0]
        else:
            break
    return hint, {**said, **(said.get("extra") or {})}


def type_at(hint: Any, path: Iterable[str | int]) -> Any:
    """The type at a path below a record; Any where it cannot be told."""
    for step in path:
        hint, _ = taken_apart(hint)
        inner = get_args(hint)
        if isinstance(hint, type) and issubclass(hint, Struct):
            hint = next((each.type for each in fields(hint) if each.encode_name == step), Any)
        elif hasattr(hint, "_fields") and isinstance(step, int):
            hint = get_type_hints(hint, include_extras=True)[hint._fields[step]]
        elif isinstance(step, int) and inner and len(inner) > step and ... not in inner:
            hint = inner[step]
        else:
            hint = inner[-1 if step == "..." or get_origin(hint) is dict else 0] if inner else Any
    return hint


def quote(text: str) -> str:
    """``text`` in double quotes for a message, cut short and without control characters."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return f'"{shown[:80]}…"' if len(shown) > 80 else f'"{shown}"'


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean X?"`` when a known word is close, otherwise ""."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f"; did you mean {quote(folded[close[0]])}?" if close else ""
