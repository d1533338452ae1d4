"""The functions of the profile language: one table with what each takes and gives.

Every function is XPath's of the same name.  Two things are settled here that XPath leaves to
a dynamic error, since a message cannot be answered with one: an argument that must be one item
and is several is its first item in document order (XPath's 1.0 compatibility rule), and an
argument that must be one string and is none is the empty string, or NaN for ``number``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# Their patterns and flags are literals, and checked where they are parsed.
PATTERN_FUNCTIONS = frozenset(("matches", "replace", "tokenize"))


class ResultKind(Enum):
    STRING = "a string"
    NUMBER = "a number"
    BOOLEAN = "a condition"
    DATE = "a date"
    DATE_TIME = "a dateTime"
    OTHER = "a value"
    ANY = "any items"


class ArgumentKind(Enum):
    """STRING: nodes or a string; ATOM: also a number or date; NUMBER: nodes or a number; INTEGER:
    the same, an xs:integer; NODES: a path; ITEMS: anything; ATOMS: any number of values;
    CONDITION: anything with an effective boolean value; PATTERN: a string literal that is a
    regular expression; FLAGS: a string literal with its flags; TEMPORAL: nodes, a date or a
    dateTime."""

    STRING = "a path or a string"
    STRINGS = "a path or strings"
    ATOM = "a path, a string, a number or a date"
    NUMBER = "a path or a number"
    INTEGER = "a path or an integer"
    TEMPORAL = "a path, a date or a dateTime"
    NODES = "a path"
    ITEMS = "any expression"
    ATOMS = "a path or values"
    CONDITION = "a condition"
    PATTERN = "a regular expression as a string literal"
    FLAGS = 'flags as a string literal, of "s", "m", "i", "x", "q"'


@dataclass(frozen=True, slots=True)
class Signature:
    """``arguments`` in order; the last one may repeat without end when ``variadic``.

    ``required`` is the least number of arguments; ``context`` says that a call without
    arguments is about the context item.
    """

    result: ResultKind
    arguments: tuple[ArgumentKind, ...]
    required: int
    context: bool = False
    variadic: bool = False

    def argument(self, index: int) -> ArgumentKind:
        return self.arguments[min(index, len(self.arguments) - 1)]

    @property
    def arity(self) -> str:
        """How many arguments, in words."""
        if self.variadic:
            return f"{self.required} or more arguments"
        most = len(self.arguments)
        least = 0 if self.context else self.required
        if least == most:
            return f"{most or 'no'} argument{'' if most == 1 else 's'}"
        return f"{least} {'or' if most - least == 1 else 'to'} {most} arguments"

    def takes(self, count: int) -> bool:
        if count == 0:
            return self.context or self.required == 0
        return count >= self.required and (self.variadic or count <= len(self.arguments))


def _signature(
    result: ResultKind,
    arguments: str = "",
    optional: int = 0,
    *,
    context: bool = False,
    variadic: bool = False,
) -> Signature:
    """``arguments``: names of ArgumentKind, of which the last ``optional`` may be left out."""
    kinds = tuple(ArgumentKind[name.upper()] for name in arguments.split())
    return Signature(result, kinds, len(kinds) - optional, context, variadic)


_STRING, _NUMBER, _BOOLEAN = ResultKind.STRING, ResultKind.NUMBER, ResultKind.BOOLEAN
_ANY = ResultKind.ANY

# Types, as ``xs:date("…")`` and in ``cast as``.
TYPES: dict[str, ResultKind] = {
    "xs:string": _STRING,
    "xs:untypedAtomic": ResultKind.ANY,
    "xs:boolean": _BOOLEAN,
    "xs:integer": _NUMBER,
    "xs:decimal": _NUMBER,
    "xs:double": _NUMBER,
    "xs:date": ResultKind.DATE,
    "xs:dateTime": ResultKind.DATE_TIME,
}

FUNCTIONS: dict[str, Signature] = {
    "not": _signature(_BOOLEAN, "condition"),
    "boolean": _signature(_BOOLEAN, "condition"),
    "true": _signature(_BOOLEAN),
    "false": _signature(_BOOLEAN),
    "exists": _signature(_BOOLEAN, "items"),
    "empty": _signature(_BOOLEAN, "items"),
    "deep-equal": _signature(_BOOLEAN, "items items"),
    "contains": _signature(_BOOLEAN, "string string"),
    "starts-with": _signature(_BOOLEAN, "string string"),
    "ends-with": _signature(_BOOLEAN, "string string"),
    "matches": _signature(_BOOLEAN, "string pattern flags", 1),
    "replace": _signature(_STRING, "string pattern string flags", 1),
    "tokenize": _signature(_STRING, "string pattern flags", 2),
    "normalize-space": _signature(_STRING, "string", context=True),
    "lower-case": _signature(_STRING, "string"),
    "upper-case": _signature(_STRING, "string"),
    "translate": _signature(_STRING, "string string string"),
    "substring": _signature(_STRING, "string number number", 1),
    "substring-before": _signature(_STRING, "string string"),
    "substring-after": _signature(_STRING, "string string"),
    "string-length": _signature(_NUMBER, "string", context=True),
    "compare": _signature(_NUMBER, "string string"),
    "codepoints-to-string": _signature(_STRING, "atoms"),
    "string-to-codepoints": _signature(_NUMBER, "string"),
    "string": _signature(_STRING, "atom", context=True),
    "concat": _signature(_STRING, "atom atom", variadic=True),
    "string-join": _signature(_STRING, "strings string", 1),
    "number": _signature(_NUMBER, "atom", context=True),
    "abs": _signature(_NUMBER, "number"),
    "round": _signature(_NUMBER, "number integer", 1),
    "round-half-to-even": _signature(_NUMBER, "number integer", 1),
    "floor": _signature(_NUMBER, "number"),
    "ceiling": _signature(_NUMBER, "number"),
    "count": _signature(_NUMBER, "items"),
    "sum": _signature(_NUMBER, "atoms atom", 1),
    "avg": _signature(_NUMBER, "atoms"),
    "min": _signature(_ANY, "atoms"),
    "max": _signature(_ANY, "atoms"),
    "distinct-values": _signature(_ANY, "atoms"),
    "index-of": _signature(_NUMBER, "atoms atom"),
    "head": _signature(_ANY, "items"),
    "tail": _signature(_ANY, "items"),
    "error": _signature(_ANY, "atom string items", 3),
    "reverse": _signature(_ANY, "items"),
    "subsequence": _signature(_ANY, "items number number", 1),
    "insert-before": _signature(_ANY, "items integer items"),
    "remove": _signature(_ANY, "items integer"),
    "data": _signature(_ANY, "atoms"),
    "zero-or-one": _signature(_ANY, "items"),
    "one-or-more": _signature(_ANY, "items"),
    "exactly-one": _signature(_ANY, "items"),
    "root": _signature(_ANY, "nodes", context=True),
    "name": _signature(_STRING, "nodes", context=True),
    "local-name": _signature(_STRING, "nodes", context=True),
    "namespace-uri": _signature(_STRING, "nodes", context=True),
    "position": _signature(_NUMBER),
    "last": _signature(_NUMBER),
    "year-from-date": _signature(_NUMBER, "temporal"),
    "month-from-date": _signature(_NUMBER, "temporal"),
    "day-from-date": _signature(_NUMBER, "temporal"),
    "year-from-dateTime": _signature(_NUMBER, "temporal"),
    "month-from-dateTime": _signature(_NUMBER, "temporal"),
    "day-from-dateTime": _signature(_NUMBER, "temporal"),
    "hours-from-dateTime": _signature(_NUMBER, "temporal"),
    "minutes-from-dateTime": _signature(_NUMBER, "temporal"),
    "seconds-from-dateTime": _signature(_NUMBER, "temporal"),
    "math:pi": _signature(_NUMBER),
    **{
        f"math:{name}": _signature(_NUMBER, "number")
        for name in (
            *("exp", "exp10", "log", "log10", "sqrt"),
            *("sin", "cos", "tan", "asin", "acos", "atan"),
        )
    },
    "math:pow": _signature(_NUMBER, "number number"),
    "math:atan2": _signature(_NUMBER, "number number"),
    **{name: _signature(result, "atom") for name, result in TYPES.items()},
}

# The arguments, counted from 0, whose value XPath does not let be the empty sequence.
NEEDED: dict[str, frozenset[int]] = {
    "index-of": frozenset((1,)),
    "math:atan2": frozenset((0, 1)),
    "math:pow": frozenset((1,)),
    "insert-before": frozenset((1,)),
    "remove": frozenset((1,)),
    "replace": frozenset((2,)),
    "round-half-to-even": frozenset((1,)),
    "string-join": frozenset((1,)),
    "translate": frozenset((1, 2)),
}

# Functions of XPath 2.0 that are left out on purpose: why, and what to write instead.
LEFT_OUT: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("current-date", "current-dateTime", "current-time"),
        (
            "the result would depend on when and where the message is matched",
            'a date as xs:date("…"), or a date of the message',
        ),
    ),
    **dict.fromkeys(
        ("doc", "doc-available", "collection", "unparsed-text", "document"),
        ("a profile sees one message and nothing else", "a path from $msg"),
    ),
    **dict.fromkeys(
        ("base-uri", "document-uri", "static-base-uri"),
        ("a message has no address", "an attribute of it, such as @xml:base"),
    ),
    **dict.fromkeys(
        ("id", "idref", "element-with-id"),
        ("a message has no types", 'a comparison, such as //*[@xml:id = "x"]'),
    ),
    **dict.fromkeys(
        ("in-scope-prefixes", "namespace-uri-for-prefix"),
        ("which prefixes an element sees changes when it is written anew", "namespace-uri(…)"),
    ),
    "nilled": ("a message has no types", '@*:nil = ("true", "1")'),
}
