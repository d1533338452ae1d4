"""Schemas of relations and signatures of functions: text -> names and types.

Types are those of Spark's DDL, without comments, ``NOT NULL`` and time zones.  They are given back
in lower case and without blanks: ``array<struct<a:int,b:decimal(10,2)>>``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from formats.errors import Fault, Refusal
from registration.queries.refusals import did_you_mean

Columns: TypeAlias = tuple[tuple[str, str], ...]

_TOKEN = re.compile(r"\s*(?:`([^`]+)`|(\w+)|(->|[<>(),:]))")
_SAME = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp",
}  # fmt: skip
_SIMPLE = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "boolean"),
    *("date", "timestamp", "timestamp_ntz", "variant"),
)
_NUMBERED: dict[str, tuple[int, tuple[int, ...]]] = {
    "decimal": (2, (10, 0)), "char": (1, ()), "varchar": (1, ()),
}  # fmt: skip
"""The most numbers that these take, and those that they mean without; (): they need one."""
_NESTED = ("array", "map", "struct")
_DEPTH_MAX = 32
_LENGTH_MAX = 100_000
_NAME = "a name"


class NoType(Refusal):
    """A text that is no schema or no signature; ``column`` of its fault counts from 1."""


class Type(NamedTuple):
    """``parts``: fields of a struct, the ``element`` of an array, ``key`` and ``value`` of a map;
    ``numbers``: digits of a decimal, or a length."""

    name: str
    parts: tuple[tuple[str, Type], ...] = ()
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        said = [str(of) for _, of in self.parts]
        if self.name == "struct":
            said = [f"{_quoted(name)}:{of}" for name, of in self.parts]
        if said:
            return f"{self.name}<{','.join(said)}>"
        return f"{self.name}({','.join(map(str, self.numbers))})" if self.numbers else self.name


@lru_cache(4_096)
def read_type(text: str) -> Type:
    """NoType."""
    reader = _Reader(text)
    found = reader.type(0)
    reader.end()
    return found


def read_columns(text: str) -> Columns:
    """``id INT, tags ARRAY<STRING>`` -> names and types; NoType."""
    reader = _Reader(text)
    found = reader.columns("")
    reader.end()
    return _said(found)


def read_signature(text: str) -> tuple[Columns, Columns]:
    """``(image BINARY) -> BINARY``, or ``-> (id INT, name STRING)`` of a table function: inputs and
    outputs; the output of a scalar function is named ""; NoType."""
    reader = _Reader(text)
    inputs = reader.in_parentheses()
    reader.take("->")
    outputs = reader.in_parentheses() if reader.sees("(") else (("", reader.type(0)),)
    reader.end()
    return _said(inputs), _said(outputs)


def _said(columns: tuple[tuple[str, Type], ...]) -> Columns:
    return tuple((name, str(of)) for name, of in columns)


class _Reader:
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str) -> None:
        if len(text) > _LENGTH_MAX:
            raise NoType(Fault("too-long", f"more than {_LENGTH_MAX:,} characters"))
        self._text = text.rstrip()
        self._at = 0

    def _next(self) -> re.Match[str] | None:
        return _TOKEN.match(self._text, self._at)

    def sees(self, sign: str) -> bool:
        found = self._next()
        return found is not None and found[3] == sign

    def take(self, sign: str) -> None:
        if not self.sees(sign):
            raise self._wrong(f'"{sign}"')
        self._word()

    def _word(self, wanted: str = "") -> str:
        """The next token, which is a word where one is ``wanted``."""
        found = self._next()
        if found is None or (wanted and found[3]):
            raise self._wrong(wanted)
        self._at = found.end()
        return found[1] or found[2] or found[3]

    def _wrong(self, expected: str, hint: str = "") -> NoType:
        at = self._at + len(self._text[self._at :]) - len(self._text[self._at :].lstrip())
        there = self._text[at : at + 20]
        reason = f"{there!r} stands there" if there else "it ends there"
        return NoType(Fault("syntax", reason, expected, 1, at + 1, "", hint))

    def end(self) -> None:
        if self._at < len(self._text):
            raise self._wrong("nothing more")

    def in_parentheses(self) -> tuple[tuple[str, Type], ...]:
        self.take("(")
        found = () if self.sees(")") else self.columns("")
        self.take(")")
        return found

    def columns(self, between: str, depth: int = 0) -> tuple[tuple[str, Type], ...]:
        """Names and types with commas; ``between`` each name and its type, where a sign is."""
        found: dict[str, tuple[str, Type]] = {}
        while True:
            at = self._at
            name = self._word(_NAME)
            if name.lower() in found:
                self._at = at
                raise self._wrong("another name for each column")
            if between and self.sees(between):
                self._word()
            found[name.lower()] = name, self.type(depth)
            if not self.sees(","):
                return tuple(found.values())
            self._word()

    def type(self, depth: int) -> Type:
        if depth > _DEPTH_MAX:
            raise self._wrong(f"at most {_DEPTH_MAX} types within each other")
        at = self._at
        said = self._word("a type").lower()
        name = _SAME.get(said, said)
        if name in _SIMPLE:
            return Type(name)
        if name in _NUMBERED:
            return Type(name, (), self._numbers(*_NUMBERED[name]))
        if name not in _NESTED:
            self._at = at
            known = (*_SIMPLE, *_NUMBERED, *_NESTED)
            raise self._wrong("a type of Spark's DDL", did_you_mean(said, known))
        self.take("<")
        if name == "struct":
            parts = self.columns(":", depth + 1)
        elif name == "array":
            parts = (("element", self.type(depth + 1)),)
        else:
            key = self.type(depth + 1)
            self.take(",")
            parts = ("key", key), ("value", self.type(depth + 1))
        self.take(">")
        return Type(name, parts)

    def _numbers(self, most: int, usual: tuple[int, ...]) -> tuple[int, ...]:
        if usual and not self.sees("("):
            return usual
        self.take("(")
        found = [self._number()]
        while len(found) < most and self.sees(","):
            self._word()
            found.append(self._number())
        self.take(")")
        return tuple(found)

    def _number(self) -> int:
        at = self._at
        number = self._word("a number")
        if not number.isdecimal():
            self._at = at
            raise self._wrong("a number")
        return int(number)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"
