"""From a TOML file to records and back; what msgspec refuses becomes a ``TopologyError`` with its
key and what was expected there.

A record is a frozen ``Struct`` that forbids unknown fields: a misspelt key is never silently a
default.  The annotations of its fields have their bounds, the line below each its meaning.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import fields

from overlay.errors import TopologyError
from overlay.unfit import unfit

KEY_PARTS_MAX = 3  # "limits.link.window_frames"
LINES_MAX = 100_000  # the largest network, every value written out, has 88,000
_SHOWN_BELOW = 10**20  # of an integer; Python writes none of more than 4,300 digits
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(  # where a key may stand
    rf"(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}\.[ \t]*+){{{KEY_PARTS_MAX}}}", re.MULTILINE
)
_NOTHING = frozenset({NoneType, UnsetType})
S = TypeVar("S", bound=Struct)

Text: TypeAlias = Annotated[str, Meta(min_length=1)]


def read_toml(text: str, file: str) -> dict[str, Any]:
    """The entries of a file; TopologyError when it is not TOML, or nested more deeply than any
    topology: a key of very many parts takes time by their square."""
    if text.count("\n") > LINES_MAX:
        raise TopologyError(file, "", f"is not read: it has more than {LINES_MAX} lines")
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        reason = f"line {line}: more than {KEY_PARTS_MAX} names with dots between them"
        raise TopologyError(file, "", f"is not read: {reason}")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # of a number with thousands of digits, too
        raise TopologyError(file, "", f"is not valid TOML: {error}") from None
    except RecursionError:
        raise TopologyError(file, "", "is not valid TOML: nested too deeply") from None


def read_record(given: object, kind: type[S], file: str, key: str = "") -> S:
    """The table ``key`` of a file ("" for the whole file); TopologyError."""
    try:
        return convert(given, kind, dec_hook=_parse)
    except ValidationError as error:
        raise _refusal(error, given, kind, file, key) from None


def taken_apart(hint: Any) -> tuple[Any, dict[str, Any]]:
    """The type that an annotation has, but for None and UNSET, and all that its Metas say."""
    said: dict[str, Any] = {}
    while get_origin(hint) is Annotated or _NOTHING.intersection(get_args(hint)):
        if get_origin(hint) is Annotated:
            hint, *metas = get_args(hint)
            said |= {name: value for meta in metas for name, value in meta.__rich_repr__()}
        else:
            (hint,) = (each for each in get_args(hint) if each not in _NOTHING)
    return hint, {**said, **(said.get("extra") or {})}


def toml_lines(record: Struct, name: str = "") -> Iterator[str]:
    """A record as a file, every value written out but for what is empty by itself; the tables in it
    come last, below ``name``."""
    tables: dict[str, Struct] = {}
    for field, key, default in _columns(type(record)):
        value = getattr(record, field)
        if isinstance(value, int | float | str) and value != "":
            yield f"{key} = {_text(value)}"
        elif isinstance(value, Struct):
            tables[f"{name}.{key}"] = value
        elif value or value != default:
            yield f"{key} = {_text(value)}"
    for path, table in tables.items():
        yield from ("", f"[{path}]", *toml_lines(table, path))


@cache
def _columns(kind: type[Struct]) -> list[tuple[str, str, object]]:
    """(field, key, default)."""
    names, usual = kind.__struct_fields__, kind.__struct_defaults__
    needed = [None] * (len(names) - len(usual))
    return list(zip(names, kind.__struct_encode_fields__, [*needed, *usual], strict=True))


def _text(value: Any) -> str:
    if isinstance(value, int | float):
        return repr(value).lower()  # true
    if type(value) is tuple or hasattr(value, "_fields"):
        return f"[{', '.join(map(_text, value))}]"
    return toml_text(str(value))


def quote(text: str) -> str:
    """``text`` in double quotes for a message, cut short and without control characters."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return f'"{shown[:80]}…"' if len(shown) > 80 else f'"{shown}"'


def toml_text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, except that TOML escapes DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean X?"`` when a known word is close, otherwise ""."""
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f"; did you mean {quote(folded[close[0]])}?" if close else ""


def _parse(kind: Any, value: object) -> object:
    """What is written as a text and is something else."""
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if not value:
        raise ValueError("must not be empty")
    if kind is not Path:
        return kind.parse(value)
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return Path(value)


_KINDS: Mapping[type, str] = {
    bool: "a boolean",
    str: "a string",
    int: "an integer",
    float: "a float",
    list: "an array",
    dict: "a table",
}


def _refusal(error: ValidationError, given: Any, hint: Any, file: str, key: str) -> TopologyError:
    path, value, why = unfit(error, given)
    for step in path:
        kind, _ = taken_apart(hint)
        if isinstance(step, str):
            hint = next(field.type for field in fields(kind) if field.encode_name == step)
            key = _below(key, step)
        elif hasattr(kind, "_fields"):
            key = _below(key, kind._fields[step])
            hint = get_type_hints(kind, include_extras=True)[kind._fields[step]]
        else:
            hints = get_args(kind)
            key, hint = f"{key}[{step}]", hints[0 if ... in hints else step]
    kind, says = taken_apart(hint)
    cause = error.__cause__
    if isinstance(cause, TopologyError):
        return TopologyError(file, _below(key, cause.key), cause.reason)
    if why.startswith("Object contains"):
        known = [*kind.__struct_encode_fields__, *getattr(kind, "OTHER_KEYS", ())]
        unknown = next(each for each in value if each not in known)
        shown = unknown if unknown.isprintable() and len(unknown) <= 80 else quote(unknown)
        return TopologyError(file, _below(key, shown), f"unknown key{did_you_mean(unknown, known)}")
    return TopologyError(file, key, _reason(kind, says, value, str(cause or why), key))


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _expected(kind: Any, name: str) -> tuple[tuple[type, ...], str]:
    """The types of a value that would do, and how they are called."""
    if kind is float:
        return (int, float), "a number"
    if kind in _KINDS:
        return (kind,), _KINDS[kind]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return (dict,), "a table" if name.endswith("]") else f"a table [{name}]"
    if get_origin(kind) is tuple or hasattr(kind, "_fields"):
        is_of_texts = str in get_args(kind)
        return (list,), "an array of strings" if is_of_texts else f"an array of tables [[{name}]]"
    return (str,), "a string"


def _reason(kind: Any, says: Mapping[str, Any], value: Any, why: str, key: str) -> str:
    takes, expected = _expected(kind, key.rpartition(".")[2])
    expected = says.get("title", expected)
    if "missing" in says and (not why or value == []):
        return str(says["missing"])
    if not why:
        return f"is missing, expected {expected}"
    if type(value) not in takes:
        return f"must be {expected}, not {_KINDS.get(type(value), 'a date or time')}"
    if value == "":
        return "must not be empty"
    if isinstance(value, list):
        most = f"at most {says['max_length']} are allowed" if "max_length" in says else ""
        return f"has {len(value)} entries, {most or f'expected {expected}'}"
    if isinstance(value, int | float):
        low, high = (f"{each:.15g}" if each % 1 else int(each) for each in (says["ge"], says["le"]))
        return f"{_shown(value)} is out of range, expected {low} to {high}"
    if why.startswith("Invalid enum"):
        *others, last = map(quote, choices := get_args(kind) or list(kind))
        known = f"{', '.join(others)} or {last}"
        return f"{quote(value)} is not known, expected {known}{did_you_mean(value, choices)}"
    return f"{quote(value)} {says['form']}" if "form" in says else why


def _shown(value: float) -> str:
    """A number of a file for a message."""
    if isinstance(value, int):
        return str(value) if abs(value) < _SHOWN_BELOW else "an integer of very many digits"
    return f"{value:g}" if math.isfinite(value) else str(value)
