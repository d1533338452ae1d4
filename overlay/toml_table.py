"""From a TOML file to records and back; what msgspec refuses becomes a ``TopologyError`` with its
key and what was expected there.

A record is a frozen ``Struct`` that forbids unknown fields: a misspelt key is never silently a
default.  The annotations of its fields have their bounds, the line below each its meaning.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from overlay.errors import TopologyError
from overlay.unfit import WORDS, did_you_mean, quote, said_of, taken_apart, type_at, unfit

KEY_PARTS_MAX = 3  # "limits.link.window_frames"
LINES_MAX = 100_000  # the largest network, every value written out, has 88,000
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(  # where a key may stand
    rf"(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}\.[ \t]*+){{{KEY_PARTS_MAX}}}", re.MULTILINE
)
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


def line_said(text: str, key: str) -> str:
    """Where a file has the key of a map, which ends ``key`` in quotes: "line 7: "; else ""."""
    if not key.endswith('"'):
        return ""
    name = re.escape(key[:-1].rpartition('."')[2])
    found = re.search(rf"""^[ \t]*["']{name}["'][ \t]*=""", text, re.MULTILINE)
    return f"line {text.count(chr(10), 0, found.start()) + 1}: " if found else ""


def read_record(given: object, kind: type[S], file: str, key: str = "") -> S:
    """The table ``key`` of a file ("" for the whole file); TopologyError."""
    try:
        return convert(given, kind, dec_hook=_parse)
    except ValidationError as error:
        raise _refusal(error, given, kind, file, key) from None


def toml_lines(record: Struct, name: str = "") -> Iterator[str]:
    """A record as a file, every value written out but for what is empty by itself; the tables in it
    come last, below ``name``."""
    tables: dict[str, Struct | dict[str, str]] = {}
    for field, key, default in _columns(type(record)):
        value = getattr(record, field)
        if isinstance(value, int | float | str) and value != "":
            yield f"{key} = {_text(value)}"
        elif isinstance(value, Struct | dict):
            if value != {}:
                tables[f"{name}.{key}"] = value
        elif value or value != default:
            yield f"{key} = {_text(value)}"
    for path, table in tables.items():
        yield from ("", f"[{path}]")
        if isinstance(table, Struct):
            yield from toml_lines(table, path)
        else:
            yield from (f"{toml_text(key)} = {toml_text(text)}" for key, text in table.items())


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


def toml_text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, except that TOML escapes DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse(kind: Any, value: object) -> object:
    """What is written as a text and is something else."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {value!r:.80}")
    if not value:
        raise ValueError("must not be empty")
    if kind is not Path:
        return kind.parse(value)
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return Path(value)


_CALLED = ("a string", "", "a boolean", "an integer", "a number", "an array", "a table", "")
_WORDS = dict(zip(WORDS, _CALLED, strict=True))


def _refusal(error: ValidationError, given: Any, kind: Any, file: str, key: str) -> TopologyError:
    found, cause = unfit(error, given), error.__cause__
    where = [key, found.where]
    if isinstance(cause, TopologyError):
        where, reason = [*where, cause.key], cause.reason
    else:
        says, fault = taken_apart(type_at(kind, found.path))[1], said_of(kind, found, _WORDS)
        reason = fault.reason
        if "missing" in says and (not found.why or found.value == []):
            reason = says["missing"]
        elif not found.why:
            reason = f"is missing, expected {fault.expected}"
        elif unknown := fault.hint:
            is_plain = unknown.isprintable() and len(unknown) <= 80
            where = [*where, unknown if is_plain else quote(unknown)]
            reason = f"unknown key{did_you_mean(unknown, fault.expected.split(', '))}"
        elif isinstance(found.value, dict) and "str" in found.why:
            reason = f"{reason}; a key with dots is written in quotes"
    return TopologyError(file, ".".join(filter(None, where)), reason)
