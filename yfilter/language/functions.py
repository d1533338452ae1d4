"""The functions of the profile language: one table with what each takes and gives.

Every function is XPath's of the same name.  Two things are settled here that XPath leaves to
a dynamic error, since a message cannot be answered with one: an argument that must be one item
and is several is its first item in document order (XPath's 1.0 compatibility rule), and an
argument that must be one string and is none is the empty string, or NaN for ``number``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias

from yfilter.language.words import WORD_TESTS

# Patterns and flags that are literals are checked where they are parsed.
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
    CONDITION: anything with an effective boolean value; PATTERN: a string that is a regular
    expression; FLAGS: one with its flags; TEMPORAL: nodes, a date or a dateTime."""

    STRING = "a path or a string"
    STRINGS = "a path, or values as strings"
    ATOM = "a path, a string, a number or a date"
    NUMBER = "a path or a number"
    INTEGER = "a path or an integer"
    TEMPORAL = "a path, a date or a dateTime"
    NODES = "a path"
    ITEMS = "any expression"
    ATOMS = "a path or values"
    CONDITION = "a condition"
    PATTERN = "a regular expression as a path or a string"
    FLAGS = 'flags as a path or a string, of "s", "m", "i", "x", "q"'


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


def _alike(
    names: str,
    result: ResultKind,
    arguments: str = "",
    optional: int = 0,
    *,
    context: bool = False,
    variadic: bool = False,
) -> dict[str, Signature]:
    """``arguments``: names of ArgumentKind, of which the last ``optional`` may be left out."""
    kinds = tuple(ArgumentKind[name.upper()] for name in arguments.split())
    signature = Signature(result, kinds, len(kinds) - optional, context, variadic)
    return dict.fromkeys(names.split(), signature)


FUNCTIONS: dict[str, Signature] = {
    **_alike("not boolean", _BOOLEAN, "condition"),
    **_alike("true false", _BOOLEAN),
    **_alike("exists empty", _BOOLEAN, "items"),
    **_alike("deep-equal", _BOOLEAN, "items items"),
    **_alike("contains starts-with ends-with", _BOOLEAN, "string string"),
    **_alike("contains-token", _BOOLEAN, "atoms string"),
    **dict.fromkeys(WORD_TESTS, Signature(_BOOLEAN, (ArgumentKind.ATOMS,) * 2, 2)),
    **_alike("matches", _BOOLEAN, "string pattern flags", 1),
    **_alike("replace", _STRING, "string pattern string flags", 1),
    **_alike("tokenize", _STRING, "string pattern flags", 2),
    **_alike("normalize-space", _STRING, "string", context=True),
    **_alike("lower-case upper-case", _STRING, "string"),
    **_alike("translate", _STRING, "string string string"),
    **_alike("substring", _STRING, "string number number", 1),
    **_alike("substring-before substring-after", _STRING, "string string"),
    **_alike("string-length", _NUMBER, "string", context=True),
    **_alike("compare", _NUMBER, "string string"),
    **_alike("codepoints-to-string", _STRING, "atoms"),
    **_alike("string-to-codepoints", _NUMBER, "string"),
    **_alike("string", _STRING, "atom", context=True),
    **_alike("concat", _STRING, "atom atom", variadic=True),
    **_alike("string-join", _STRING, "strings string", 1),
    **_alike("number", _NUMBER, "atom", context=True),
    **_alike("abs floor ceiling", _NUMBER, "number"),
    **_alike("round round-half-to-even", _NUMBER, "number integer", 1),
    **_alike("count", _NUMBER, "items"),
    **_alike("sum", _NUMBER, "atoms atom", 1),
    **_alike("avg", _NUMBER, "atoms"),
    **_alike("min max distinct-values data", _ANY, "atoms"),
    **_alike("index-of", _NUMBER, "atoms atom"),
    **_alike("head tail reverse zero-or-one one-or-more exactly-one", _ANY, "items"),
    **_alike("error", _ANY, "atom string items", 3),
    **_alike("subsequence", _ANY, "items number number", 1),
    **_alike("insert-before", _ANY, "items integer items"),
    **_alike("remove", _ANY, "items integer"),
    **_alike("root", _ANY, "nodes", context=True),
    **_alike("name local-name namespace-uri", _STRING, "nodes", context=True),
    **_alike("svrl:location", _STRING, "nodes"),  # a path to a node, by the message's own prefixes
    **_alike("position last", _NUMBER),
    **_alike("year-from-date month-from-date day-from-date", _NUMBER, "temporal"),
    **_alike("year-from-dateTime month-from-dateTime day-from-dateTime", _NUMBER, "temporal"),
    **_alike("hours-from-dateTime minutes-from-dateTime", _NUMBER, "temporal"),
    **_alike("seconds-from-dateTime", _NUMBER, "temporal"),
    **_alike("current-date", ResultKind.DATE),
    **_alike("current-dateTime", ResultKind.DATE_TIME),
    **_alike("current-time", ResultKind.OTHER),
    **_alike("math:pi", _NUMBER),
    **_alike("math:exp math:exp10 math:log math:log10 math:sqrt", _NUMBER, "number"),
    **_alike("math:sin math:cos math:tan math:asin math:acos math:atan", _NUMBER, "number"),
    **_alike("math:pow math:atan2", _NUMBER, "number number"),
    **_alike("place:inside place:covers place:intersects", _BOOLEAN, "items items"),
    **_alike("place:distance", _NUMBER, "items items"),
    **_alike("place:read place:known", _STRING, "items"),
    **{name: Signature(result, (ArgumentKind.ATOM,), 1) for name, result in TYPES.items()},
}

# Functions of two places, each of which is any of several.
OF_PLACES = frozenset(("place:inside", "place:covers", "place:intersects", "place:distance"))

# Functions of the time at which the root broker accepted the message, by what they give.
CURRENT = {f"current-{kind}": f"xs:{kind}" for kind in ("date", "dateTime", "time")}

# The arguments, counted from 0, whose value XPath does not let be the empty sequence.
NEEDED: dict[str, frozenset[int]] = {
    **dict.fromkeys(("contains-token", "index-of"), frozenset((1,))),
    "math:atan2": frozenset((0, 1)),
    "math:pow": frozenset((1,)),
    "insert-before": frozenset((1,)),
    "remove": frozenset((1,)),
    "replace": frozenset((2,)),
    **dict.fromkeys(("round", "round-half-to-even"), frozenset((1,))),
    "string-join": frozenset((1,)),
    **dict.fromkeys(("substring", "subsequence"), frozenset((1, 2))),
    "translate": frozenset((1, 2)),
}

# Functions of XPath that are left out on purpose: why, and what to write instead.
LEFT_OUT: dict[str, tuple[str, str]] = {
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
    **dict.fromkeys(
        ("apply", "function-lookup", "function-name", "function-arity"),
        ("a function is no value here, nor is an array", "a call of the function"),
    ),
    "nilled": ("a message has no types", '@*:nil = ("true", "1")'),
}

# -------------------------------------------------------------------------------------------------
# The functions and types of XPath 2.0 that are not above, and a few of XPath 3.1; their names,
# numbers of arguments and types come from the table of elementpath's parser.


# Of XPath 3.1; what else is evaluated by elementpath is XPath 2.0.
NEWER_FUNCTIONS = frozenset(("format-integer", "format-number", "parse-ietf-date"))
ABOUT_NODES = frozenset(("lang", "node-name", "resolve-QName"))  # their last argument
# About the context item, which the parser adds, where their last argument is left out.
CONTEXT_FUNCTIONS = frozenset(("lang",))
_LISTS = frozenset(("ENTITIES", "IDREFS", "NMTOKENS"))  # no XPath 2.0 cast leads to them
_NEEDS_NAMES = frozenset(("NOTATION",))
_NEWER = frozenset(("dateTimeStamp",))  # of XML Schema 1.1

_NUMBERS = (
    "float long int short byte unsignedLong unsignedInt unsignedShort unsignedByte numeric"
    " nonNegativeInteger nonPositiveInteger positiveInteger negativeInteger"
)
_STRINGS = "anyURI normalizedString token language Name NCName NMTOKEN ID IDREF ENTITY"
_OTHERS = (
    "duration dayTimeDuration yearMonthDuration time QName hexBinary base64Binary"
    " gDay gMonth gMonthDay gYear gYearMonth"
)
_RESULTS = {
    **TYPES,
    **{f"xs:{name}": ResultKind.NUMBER for name in _NUMBERS.split()},
    **{f"xs:{name}": ResultKind.STRING for name in _STRINGS.split()},
    **{f"xs:{name}": ResultKind.OTHER for name in _OTHERS.split()},
}
OPAQUE_TYPES = frozenset(name for name, kind in _RESULTS.items() if kind is ResultKind.OTHER)


def signature_of(name: str) -> Signature | None:
    """What a function takes and gives, whoever does it; None if there is no such function."""
    return FUNCTIONS.get(name) or other_functions().get(name)


def type_result(name: str) -> ResultKind | None:
    """The result kind of a cast to a type; None if there is no such cast."""
    if name in TYPES:
        return TYPES[name]
    signature = other_functions().get(name) if name.startswith("xs:") else None
    return None if signature is None else signature.result


@cache
def other_functions() -> dict[str, Signature]:
    """All of them, types with ``xs:`` included."""
    found = {"xs:QName": Signature(ResultKind.OTHER, (ArgumentKind.ATOM,), required=1)}
    for name, token in _tokens().items():
        label = str(token.label)
        if "function" in label and name not in FUNCTIONS and name not in LEFT_OUT:
            if label != "constructor function":
                found[name] = _signature(name, token)
            elif f"xs:{name}" not in TYPES and name not in _LISTS | _NEEDS_NAMES | _NEWER:
                found[f"xs:{name}"] = Signature(
                    _RESULTS[f"xs:{name}"], (ArgumentKind.ATOM,), required=1
                )
    return found


def argument_types(name: str) -> tuple[str, ...]:
    """What one of the other functions takes and, last, gives, as sequence types."""
    types: tuple[str, ...] = _tokens()[name].sequence_types
    return types


@cache
def _tokens() -> dict[str, Any]:
    """The classes of elementpath's parser by what they are called there, without namespaces."""
    from elementpath import XPath2Parser  # noqa: PLC0415
    from elementpath.xpath31 import XPath31Parser  # noqa: PLC0415

    table: dict[str, Any] = {**XPath2Parser.symbol_table}
    table.update((name, XPath31Parser.symbol_table[name]) for name in NEWER_FUNCTIONS)
    return {key: token for key, token in table.items() if hasattr(token, "sequence_types")}


def _signature(name: str, token: Any) -> Signature:
    least, most = token.nargs if isinstance(token.nargs, tuple) else (token.nargs, token.nargs)
    if name in ("dateTime", "QName"):  # with one argument they are elementpath's constructors
        least = 2
    kinds = [ArgumentKind.ATOMS] * most
    if name in ABOUT_NODES:
        kinds[-1] = ArgumentKind.NODES
    result = token.sequence_types[-1].rstrip("?*+")
    return Signature(_RESULTS.get(result, ResultKind.ANY), tuple(kinds), least)


# -------------------------------------------------------------------------------------------------
# Static types of the profile language: what kinds of items an expression can yield.
#
# There is no schema, so the kinds follow from the text alone (``Expression.kinds``).  They let the
# parser refuse at registration what XQuery would call a type error, and what can never select
# anything.


# A set of ItemKinds, one bit each.  PERF: numbers, not an enum.Flag, whose operators are calls of
# Python (a third of the time of parsing a profile).
Kinds: TypeAlias = int


class ItemKind:
    """The kinds of items in a value; a union where several are possible."""

    DOCUMENT: Final = 1
    ELEMENT: Final = 2
    ATTRIBUTE: Final = 4
    TEXT: Final = 8
    COMMENT: Final = 16  # or a processing instruction
    STRING: Final = 32
    NUMBER: Final = 64
    BOOLEAN: Final = 128
    DATE: Final = 256
    DATE_TIME: Final = 512
    OTHER: Final = 1024  # durations, times and what else elementpath reckons with


NOTHING: Kinds = 0
PARENTS = ItemKind.DOCUMENT | ItemKind.ELEMENT
CHILDREN = ItemKind.ELEMENT | ItemKind.TEXT | ItemKind.COMMENT
NODES = PARENTS | ItemKind.ATTRIBUTE | CHILDREN
TEMPORAL = ItemKind.DATE | ItemKind.DATE_TIME
ATOMS = ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN | TEMPORAL | ItemKind.OTHER
ANYTHING = NODES | ATOMS

RESULTS = {
    ResultKind.STRING: ItemKind.STRING,
    ResultKind.NUMBER: ItemKind.NUMBER,
    ResultKind.BOOLEAN: ItemKind.BOOLEAN,
    ResultKind.DATE: ItemKind.DATE,
    ResultKind.DATE_TIME: ItemKind.DATE_TIME,
    ResultKind.OTHER: ItemKind.OTHER,
    ResultKind.ANY: ANYTHING,
}
