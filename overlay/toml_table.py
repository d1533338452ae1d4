"""TomlTable: one table of a TOML file, read key by key with a check at each.

Whatever is wrong becomes a ``TopologyError`` that names the file and the key.  Keys that nobody
knows are refused when the table is opened, so that a misspelt key is never silently a default.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from overlay.errors import TopologyError

KEY_PARTS_MAX = 3  # "limits.link.window_frames"
LINES_MAX = 100_000  # the largest network, every value written out, has 88,000
_SHOWN_BELOW = 10**20  # of an integer; Python writes none of more than 4,300 digits
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(  # where a key may stand
    rf"(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}\.[ \t]*+){{{KEY_PARTS_MAX}}}", re.MULTILINE
)


def read_toml(text: str, file: str) -> dict[str, object]:
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


class TomlTable:
    """A table at ``path`` ("" for the whole file) of which only the keys ``known`` are legal."""

    def __init__(
        self, file: str, path: str, entries: Mapping[str, object], known: Collection[str]
    ) -> None:
        self.file = file
        self.path = path
        self._entries = entries
        for key in entries:
            if key not in known:
                raise self.refusal(key, f"unknown key{did_you_mean(key, known)}")

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def refusal(self, key: str, reason: str) -> TopologyError:
        """The error to raise about ``key`` of this table ("" for the table itself)."""
        return TopologyError(self.file, self._path_of(key), reason)

    def text(self, key: str, default: str | None = None) -> str:
        """A string that is not empty."""
        value = self._value(key, default, "a string")
        if not isinstance(value, str):
            raise self._wrong_type(key, "a string", value)
        if not value:
            raise self.refusal(key, "must not be empty")
        return value

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        """One of ``choices``."""
        value = self.text(key, default)
        if value not in choices:
            *others, last = (quote(choice) for choice in choices)
            expected = f"{', '.join(others)} or {last}" if others else last
            raise self.refusal(
                key,
                f"{quote(value)} is not known, expected {expected}{did_you_mean(value, choices)}",
            )
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """An integer or a float, ``low <= value <= high``."""
        value = self._value(key, default, "a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong_type(key, "a number", value)
        return float(self._in_range(key, value, low, high))

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer, ``low <= value <= high``."""
        value = self._value(key, default, "an integer")
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong_type(key, "an integer", value)
        return int(self._in_range(key, value, low, high))

    def flag(self, key: str) -> bool:
        """A boolean."""
        value = self._value(key, None, "a boolean")
        if not isinstance(value, bool):
            raise self._wrong_type(key, "a boolean", value)
        return value

    def array(self, key: str, length: int, expected: str) -> list[object]:
        """An array of exactly ``length`` entries; ``expected`` describes it for the refusal."""
        value = self._value(key, None, expected)
        if not isinstance(value, list):
            raise self._wrong_type(key, expected, value)
        if len(value) != length:
            raise self.refusal(key, f"has {len(value)} entries, expected {expected}")
        return value

    def texts(self, key: str, default: list[str]) -> list[str]:
        """An array of strings."""
        value = self._value(key, default, "an array of strings")
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self._wrong_type(key, "an array of strings", value)
        return value

    def table(self, key: str, known: Collection[str]) -> TomlTable:
        """The table ``[key]``; an empty one when the file has none."""
        value = self._entries.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong_type(key, f"a table [{key}]", value)
        return TomlTable(self.file, self._path_of(key), value, known)

    def tables(self, key: str, known: Collection[str], entries_max: int) -> list[TomlTable]:
        """The array of tables ``[[key]]``, at most ``entries_max``; empty when there is none."""
        value = self._entries.get(key, [])
        if not isinstance(value, list):
            raise self._wrong_type(key, f"an array of tables [[{key}]]", value)
        if len(value) > entries_max:
            raise self.refusal(key, f"has {len(value)} entries, at most {entries_max} are allowed")
        opened = []
        for index, entry in enumerate(value):
            path = self._path_of(f"{key}[{index}]")
            if not isinstance(entry, dict):
                raise TopologyError(self.file, path, f"must be a table, not {_kind(entry)}")
            opened.append(TomlTable(self.file, path, entry, known))
        return opened

    def is_array(self, key: str) -> bool:
        """Whether ``key`` was written as ``[[key]]``."""
        return isinstance(self._entries.get(key), list)

    def _path_of(self, key: str) -> str:
        key = key if key.isprintable() and len(key) <= 80 else quote(key)
        return ".".join(part for part in (self.path, key) if part)

    def _value(self, key: str, default: object, expected: str) -> object:
        value = self._entries.get(key, default)
        if value is None:
            raise self.refusal(key, f"is missing, expected {expected}")
        return value

    def _wrong_type(self, key: str, expected: str, value: object) -> TopologyError:
        return self.refusal(key, f"must be {expected}, not {_kind(value)}")

    def _in_range(self, key: str, value: float, low: float, high: float) -> float:
        # Written so that NaN, which TOML allows, falls outside.
        if not low <= value <= high:
            shown = shown_number(value)
            bounds = [f"{each:.15g}" if each % 1 else str(int(each)) for each in (low, high)]
            raise self.refusal(key, f"{shown} is out of range, expected {' to '.join(bounds)}")
        return value


def quote(text: str) -> str:
    """``text`` in double quotes for a message, cut short and without control characters."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return f'"{shown[:80]}…"' if len(shown) > 80 else f'"{shown}"'


def shown_number(value: float) -> str:
    """A number of a file for a message."""
    if isinstance(value, int):
        return str(value) if abs(value) < _SHOWN_BELOW else "an integer of very many digits"
    return f"{value:g}" if math.isfinite(value) else str(value)


def toml_text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, except that TOML escapes DEL too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def table_lines(name: str, options: Any) -> Iterator[str]:
    """The lines of the table ``[name]``: every value of a dataclass, but None and ""."""
    yield from ("", f"[{name}]")
    for field in fields(options):
        value = getattr(options, field.name)
        if isinstance(value, bool):
            yield f"{field.name} = {str(value).lower()}"
        elif isinstance(value, int | float):
            yield f"{field.name} = {value!r}"
        elif value is not None and str(value):
            yield f"{field.name} = {toml_text(str(value))}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean X?"`` when a known word is close, otherwise ""."""
    candidates = sorted(known)
    folded = {candidate.casefold(): candidate for candidate in candidates}
    close = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f"; did you mean {quote(folded[close[0]])}?" if close else ""


def _kind(value: object) -> str:
    """What a TOML value is, for a message."""
    names: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "an integer"),
        (float, "a float"),
        (list, "an array"),
        (dict, "a table"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "a date or time")
