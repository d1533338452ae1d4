"""What the functions do.  ``functions.py`` says what each takes, and arguments come so converted.

==============================  ==========================================================
ArgumentKind                    the argument arrives as
==============================  ==========================================================
STRING, PATTERN, FLAGS          str
NUMBER                          int, Decimal, float, or None for the empty sequence
INTEGER                         int, or None
ATOM, TEMPORAL                  an atomic value, or None
ATOMS, STRINGS                  a list of atomic values
NODES, ITEMS, CONDITION         the value as it is
==============================  ==========================================================
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache, partial, reduce
from math import ceil, copysign, floor, inf, isfinite, isinf, isnan, nan
from typing import Any, NamedTuple, TypeAlias

from formats.characters import find_illegal_character, is_colonless_name
from formats.graph.iris import resolve
from formats.names import XML_NAMESPACE
from yfilter.language import query_ast as ast
from yfilter.language.atoms import (
    ORDERED,
    arithmetic,
    atom_text,
    cast,
    comparable,
    duration,
    evaluate,
    is_duration,
    is_number,
    qname,
    to_double,
    type_name,
)
from yfilter.language.budget import ELEMENTPATH_COST, ITEM_BYTES, POINTER_BYTES, TEXT_VISIT, Budget
from yfilter.language.evaluator import Evaluator, effective_boolean
from yfilter.language.functions import (
    CURRENT,
    FUNCTIONS,
    NEEDED,
    TYPES,
    ArgumentKind,
    argument_types,
)
from yfilter.language.namespaces import ERROR_NAMESPACE, braced
from yfilter.language.nodes import (
    NODES,
    AnyUri,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Float,
    Item,
    Node,
    NodeType,
    Opaque,
    Untyped,
    Value,
    element_node,
)
from yfilter.language.numbers import DECIMALS, DIGITS_MAX, parse_double
from yfilter.language.patterns import Pattern, PatternError, compile_pattern
from yfilter.language.places import (
    EXCHANGED,
    PAIRS_A_VISIT,
    Place,
    distance,
    read_place,
    relates,
    work,
)
from yfilter.language.temporal import Temporal, moment_at, parse_ietf_date
from yfilter.language.words import WORD_TESTS, WordTest, holds, spaced

# -------------------------------------------------------------------------------------------------
# Functions of XPath 2.0 about what is in force at a node: its language, its namespaces.


def _lang(evaluator: Evaluator, node: Node, wanted: Atom | None) -> Value:
    language = None
    for element in _around(evaluator, node):
        stream = evaluator.streams[element.tree]
        for number in stream.attributes_of(element.number):
            name = stream.names[stream.attribute_name[number]]
            if (name.namespace, name.local) == (XML_NAMESPACE, "lang"):
                language = stream.attribute_value(number).lower()
    asked = str(wanted or "").lower()
    return [language is not None and (language == asked or language.startswith(f"{asked}-"))]


def _node_name(evaluator: Evaluator, node: Node) -> Value:
    name = evaluator.name_of(node)
    return [] if name is None else [qname(name.namespace, str(name))]


def _resolve_qname(evaluator: Evaluator, node: Node, text: Atom | None) -> Value:
    if text is None:
        return []
    if node.type is not NodeType.ELEMENT:
        raise DynamicError("XPTY0004", "an element is wanted")
    lexical = str(text).strip()
    prefix, colon, local = lexical.rpartition(":")
    if not is_colonless_name(local) or (colon and not is_colonless_name(prefix)):
        raise DynamicError("FOCA0002", f"{lexical[:80]!r} is no name")
    scope = evaluator.streams[node.tree].namespaces_in_scope(node.number)
    evaluator.charge(len(scope))
    namespace = XML_NAMESPACE if prefix == "xml" else scope.get(prefix, "")
    if prefix and not namespace:
        raise DynamicError("FONS0004", "a prefix that is not declared there")
    return [qname(namespace, lexical)]


def _around(evaluator: Evaluator, node: Node) -> list[Node]:
    """The elements around a node, the outermost first."""
    around = evaluator.lineage(node)[::-1]
    return [one for one in around if one.type is NodeType.ELEMENT]


# Their last argument is the node, the one before it, if any, a string.
NODE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lang": _lang,
    "node-name": _node_name,
    "resolve-QName": _resolve_qname,
}

# -------------------------------------------------------------------------------------------------
# Pictures of ``format-number()``: ``#,##0.00``, ``0%``, ``0.0##e00``, and of ``format-integer()``:
# ``001``, ``1;o``, ``i``, ``A``, ``Ww``; words and ordinals are English.


_NUMBER_PICTURE = re.compile(
    r"(?P<prefix>[^0-9#.,]*)(?P<whole>[0-9#,]*)(?P<point>\.?)(?P<part>[0-9#,]*)"
    r"(?:e(?P<exponent>[0-9]+))?(?P<suffix>[^0-9#.,]*)"
)
_FAULTS = re.compile(r",,|,\.|\.,|^[^.]*[0-9][^.]*#|\..*#.*[0-9]|^[^.]*,$")
_PICTURE_MAX = 1_024
_PICTURES_MAX = 256


class _Picture(NamedTuple):
    """``wholes``, ``parts``: digits between the point and each comma; ``every``: between all commas
    before the point, 0 where they are irregular; ``least``, ``most``: digits behind the point;
    ``scale``: digits before the point of a number with an exponent."""

    prefix: str
    suffix: str
    wholes: frozenset[int]
    every: int
    parts: frozenset[int]
    size: int
    scale: int
    least: int
    most: int
    exponent: int


def format_number(number: int | float | Decimal | None, picture: str) -> str:
    """DynamicError FODF1310 for a picture that is none."""
    positive, negative = _pictures(picture)
    if number is None or (isinstance(number, float) and isnan(number)):
        return "NaN"
    is_negative = copysign(1, number) < 0 if isinstance(number, float) else number < 0
    shape = negative if is_negative else positive
    if isinstance(number, float) and isinf(number):
        return f"{shape.prefix}Infinity{shape.suffix}"
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    exact = exact.copy_abs()
    for sign, places in (("%", 2), ("‰", 3)):
        if sign in shape.prefix + shape.suffix:
            if isinstance(number, float):
                scaled = type(number)(abs(number) * 10.0**places)
                if isinf(scaled):
                    return f"{shape.prefix}Infinity{shape.suffix}"
                exact = Decimal(repr(scaled))
            else:
                exact = DECIMALS.scaleb(exact, places)
    power = 0
    if shape.exponent and exact:
        power = exact.adjusted() + 1 - shape.scale
        exact = DECIMALS.scaleb(exact, -power)
    rounded = exact.quantize(Decimal(1).scaleb(-shape.most), ROUND_HALF_EVEN, DECIMALS)
    whole, _, part = f"{rounded:f}".partition(".")
    whole = _with_commas(whole.lstrip("0").rjust(shape.size, "0"), shape)
    part = part.rstrip("0").ljust(shape.least, "0")
    part = "".join(f",{digit}" if at in shape.parts else digit for at, digit in enumerate(part))
    text = f"{whole}.{part}" if part else whole
    if shape.exponent:
        text += f"e{'-' * (power < 0)}{abs(power):0{shape.exponent}}"
    return f"{shape.prefix}{text}{shape.suffix}"


def _with_commas(whole: str, shape: _Picture) -> str:
    written = ""
    for at, digit in enumerate(reversed(whole)):
        is_after = at % shape.every == 0 if shape.every else at in shape.wholes
        written = f"{digit},{written}" if at and is_after else digit + written
    return written


@lru_cache(_PICTURES_MAX)
def _pictures(picture: str) -> tuple[_Picture, _Picture]:
    """Those of positive and negative numbers."""
    read = [_read(each, picture) for each in picture.split(";")]
    if len(read) > 2 or len(picture) > _PICTURE_MAX:
        raise _fault(picture)
    return read[0], read[1] if len(read) == 2 else read[0]._replace(prefix=f"-{read[0].prefix}")


def _read(text: str, picture: str) -> _Picture:
    found = _NUMBER_PICTURE.fullmatch(text)
    if found is None or _FAULTS.search(found["whole"] + found["point"] + found["part"]):
        raise _fault(picture)
    digits = (found["whole"] + found["part"]).strip(",")
    around = found["prefix"] + found["suffix"]
    signs = around.count("%") + around.count("‰")
    exponent = len(found["exponent"] or "")
    if not digits or signs > 1 or (signs and exponent):
        raise _fault(picture)
    size = sum(each.isdigit() for each in found["whole"])
    least = sum(each.isdigit() for each in found["part"])
    most = len(found["part"].replace(",", ""))
    scale = size
    if not size and not most:
        if exponent:
            least = most = 1
        else:
            size = 1
    if exponent and not size and "#" in found["whole"]:
        size = 1
    if not size and not least:
        least = 1
    wholes = _commas(found["whole"][::-1])
    step = min(wholes, default=0)
    length = len(found["whole"].replace(",", ""))
    is_regular = step and wholes.issuperset(range(step, length, step))
    every = step if is_regular and not any(each % step for each in wholes) else 0
    parts = _commas(found["part"])
    prefix, suffix = found["prefix"], found["suffix"]
    return _Picture(prefix, suffix, wholes, every, parts, size, scale, least, most, exponent)


def _commas(digits: str) -> frozenset[int]:
    """How many digits stand before each comma."""
    places = [at for at, each in enumerate(digits) if each == ","]
    return frozenset(place - number for number, place in enumerate(places))


def _fault(picture: str) -> DynamicError:
    return DynamicError("FODF1310", f"{picture[:80]!r} is no picture of a number")


_INTEGER_PICTURE = re.compile(
    r"(?P<token>.+?)(?:;(?P<ordinal>(?:[co](?:\(.+\))?)?)[at]?)?", re.DOTALL
)
_ALPHABETS = {first: "".join(map(chr, range(ord(first), ord(last) + 1))) for first, last in
              ("az", "AZ", "αω")} | {"Α": "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"}  # fmt: skip
_ROMANS = (("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50),
           ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))  # fmt: skip
_ROMANS_MAX, _WORDS_MAX = 10_000, 10**18
_WORDS = {"w": str.lower, "W": str.upper, "Ww": str.title}


def format_integer(number: int | None, picture: str) -> str:
    """DynamicError FODF1310 for a picture that is none; plain digits for an unknown sequence."""
    found = _INTEGER_PICTURE.fullmatch(picture)
    if found is None or (";" in found["token"] and found["ordinal"] is None):
        raise _fault(picture)
    token = found["token"]
    is_pattern = any(each.isdecimal() for each in token)
    pattern = _digit_pattern(token if is_pattern else "1", picture)
    if number is None:
        return ""
    sign, amount = "-" * (number < 0), abs(number)
    is_ordinal = (found["ordinal"] or "").startswith("o")
    if token in _WORDS and amount < _WORDS_MAX:
        (words,) = evaluate("format-integer($a0, $a1)", amount, "w;o" if is_ordinal else "w")
        return sign + _WORDS[token](str(words)).replace(" And ", " and ")
    if token in ("i", "I") and 0 < amount < _ROMANS_MAX:
        roman = _roman(amount)
        return sign + (roman if token == "I" else roman.lower())
    if token in _ALPHABETS and amount:
        return sign + _letters(amount, _ALPHABETS[token])
    zero, least, separators, every = pattern
    text = "".join(chr(zero + int(digit)) for digit in str(amount).rjust(least, "0"))
    written = ""
    for at, digit in enumerate(reversed(text)):
        separator = every[1] if every and at % every[0] == 0 else separators.get(at, "")
        written = digit + (separator if at else "") + written
    if is_ordinal and zero == ord("0"):
        is_teen = amount // 10 % 10 == 1
        written += "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(amount % 10, "th")
    return sign + written


@lru_cache(_PICTURES_MAX)
def _digit_pattern(
    token: str, picture: str
) -> tuple[int, int, dict[int, str], tuple[int, str] | None]:
    """The code of its zero, how many digits there are at least, the separators by the number of
    digits behind them, and the step of regular ones with the separator."""
    digits = [each for each in token if each.isdecimal()]
    zeros = {ord(each) - unicodedata.decimal(each) for each in digits}
    shape = "".join("0" if each.isdecimal() else "#" if each == "#" else "," for each in token)
    is_word = any(each != "#" and not each.isdecimal() and unicodedata.category(each)[0] in "LN"
                  for each in token)  # fmt: skip
    is_faulty = re.search("^,|,,|,$|0,*#", shape) is not None
    if len(zeros) != 1 or is_word or is_faulty or len(token) > _PICTURE_MAX:
        raise _fault(picture)
    separators: dict[int, str] = {}
    for at, each in enumerate(token):
        if shape[at] == ",":
            separators[len(shape[at:].replace(",", ""))] = each
    step = min(separators, default=0)
    is_regular = len(set(separators.values())) == 1 and set(separators) == set(
        range(step, len(shape.replace(",", "")), step)
    )
    every = (step, separators[step]) if is_regular else None
    return zeros.pop(), len(digits), separators, every


def _roman(number: int) -> str:
    written = ""
    for letters, amount in _ROMANS:
        written += letters * (number // amount)
        number %= amount
    return written


def _letters(number: int, alphabet: str) -> str:
    """a, b … z, aa, ab …"""
    written = ""
    while number:
        number, at = divmod(number - 1, len(alphabet))
        written = alphabet[at] + written
    return written


# -------------------------------------------------------------------------------------------------
# The functions of XPath's ``math:``, on doubles as IEEE 754 has them: never an exception.
#
# Arguments arrive as function_library.py says; the empty sequence gives the empty sequence.


def _of(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of doubles; NaN where it has no value."""

    def applied(*numbers: Number | None) -> Any:
        doubles = [to_double(number) for number in numbers if number is not None]
        if len(doubles) < len(numbers):
            return []
        try:
            return function(*doubles)
        except ValueError:
            return nan

    return applied


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: -inf if number == 0 else function(number)


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return inf


def _power(base: float, exponent: float) -> float:
    is_odd = not isinf(exponent) and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -inf if base < 0 and is_odd else inf
    except ValueError:
        if base == 0 and not isnan(exponent):  # of a negative exponent
            return copysign(inf, base) if is_odd else inf
        return nan


MATH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math:pi": lambda: math.pi,
    "math:exp": _of(_exp),
    "math:exp10": _of(lambda number: _power(10.0, number)),
    "math:log": _of(_logarithm(math.log)),
    "math:log10": _of(_logarithm(math.log10)),
    "math:pow": _of(_power),
    **{
        f"math:{name}": _of(getattr(math, name))
        for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")
    },
}


# -------------------------------------------------------------------------------------------------
# The functions on strings; arguments arrive as function_library.py says.


PATTERN_COST = 256  # of one that may have many states, in visits
SIZE_STEP = 65_536  # characters of a result after which they are charged
_SPACE = re.compile("[ \\t\\n\\r]+")


def _normalize_space(text: str) -> str:
    if _SPACE.search(text) is None:
        return str(text)  # which may be untyped, or an xs:anyURI
    return " ".join(part for part in _SPACE.split(text) if part)


def _matches(budget: Budget, text: str, pattern: str, flags: str = "") -> bool:
    budget.charge_text(len(text))
    return _compiled(budget, pattern, flags).search(text, budget.charge)


def _compiled(budget: Budget, pattern: str, flags: str) -> Pattern:
    is_large = "{" in pattern or len(pattern) > PATTERN_COST
    budget.charge(PATTERN_COST + len(pattern) // TEXT_VISIT if is_large else 1)
    try:
        return compile_pattern(pattern, flags)
    except PatternError as error:
        raise DynamicError(error.code, str(error)) from None
    except RecursionError:
        raise DynamicError("FORX0002", "a regular expression that is too deep") from None


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


def substring_at(start: Any, *lengths: Any) -> Callable[[str], str]:
    """``substring`` at a place that is known."""
    span = span_of(1 << 62, start, *lengths)
    return lambda text: text[span]


def span_of(size: int, start: Any, *lengths: Any) -> slice:
    """Of so many characters or items, those from ``start`` on, as many as a length says; none where
    one of the two is nothing or NaN (F&O 3.1, 5.4.3 and 14.1.9)."""
    if start is None or None in lengths:
        return slice(0)
    first = to_double(rounded(start))
    last = first + to_double(rounded(lengths[0])) if lengths else inf
    if isnan(first) or isnan(last):
        return slice(0)
    begin, end = (int(min(max(place, 1), size + 1)) - 1 for place in (first, last))
    return slice(begin, end)


def _substring_before(text: str, part: str) -> str:
    before, found, _ = text.partition(part) if part else ("", "", "")
    return before if found else ""


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str] = {}
    for index, character in enumerate(old):
        table.setdefault(ord(character), new[index : index + 1])
    return text.translate(table)


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
    "substring": lambda text, *span: text[span_of(len(text), *span)],
    "substring-before": _substring_before,
    "substring-after": lambda text, part: text.partition(part)[2] if part else text,
    "string-length": len,
    "compare": lambda one, other: (one > other) - (one < other),
    "codepoints-to-string": _codepoints_to_string,
}


def _contains_token(budget: Budget, atoms: list[Atom], token: str) -> bool:
    needle = token.strip(" \t\n\r")
    return any(needle in _SPACE.split(text) for text in _texts(budget, atoms) if needle)


def _contains_text(test: WordTest, budget: Budget, atoms: list[Atom], words: list[Atom]) -> bool:
    texts = _texts(budget, atoms)
    try:
        needles = test.needles(_texts(budget, words))
    except ValueError as error:
        raise DynamicError("FTDY0020", str(error)) from None
    return any(holds(spaced(text.encode(), test.spacing), needles, test.every) for text in texts)


def _texts(budget: Budget, atoms: list[Atom]) -> list[str]:
    texts = [atom for atom in atoms if isinstance(atom, str)]
    if len(texts) != len(atoms):
        raise DynamicError("XPTY0004", "words are looked for in strings")
    budget.charge_text(sum(map(len, texts)))
    return texts


# What may cost more than its arguments are long, by the budget of the evaluation.
CHARGED: dict[str, Callable[..., Any]] = {
    **{name: partial(_contains_text, test) for name, test in WORD_TESTS.items()},
    "contains-token": _contains_token,
    "matches": _matches,
    "replace": _replace,
    "tokenize": _tokenize,
    "string-to-codepoints": _codepoints,
    "concat": _concat,
    "string-join": _joined,
}


# -------------------------------------------------------------------------------------------------
# The functions on numbers; arguments arrive as function_library.py says.


_HALF = Decimal("0.5")
Number: TypeAlias = int | float | Decimal


def _number(atom: Atom | None) -> float:
    if isinstance(atom, str):
        number = None if isinstance(atom, AnyUri) else parse_double(atom)
        return nan if number is None else number
    if atom is None:
        return nan
    try:
        return to_double(atom)
    except DynamicError:
        return nan


def rounded(number: Number) -> Number:
    """``fn:round``: halves go up."""
    if isinstance(number, int):
        return number
    if isinstance(number, Decimal):
        return DECIMALS.add(number, _HALF).to_integral_value(ROUND_FLOOR)
    if isnan(number) or isinf(number) or abs(number) >= 1 << 52:
        return number
    whole = floor(number)
    whole += number - whole >= 0.5
    return copysign(float(whole), number) if whole == 0 else float(whole)


def _half_to_even(number: Number | None, precision: Number | None = 0) -> Number | list[Any]:
    if number is None or precision is None:
        return []
    places = int(precision)
    if isinstance(number, float) and (isnan(number) or isinf(number)):
        return number
    if abs(places) > DIGITS_MAX:
        return number if places > 0 else type(number)(0)
    exact = Decimal(number)
    if places > -exact.as_tuple().exponent:  # type: ignore[operator]
        return number
    result = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, DECIMALS)
    if isinstance(number, float):
        return copysign(float(result), number)
    return int(result) if isinstance(number, int) else result


def _toward(
    of_float: Callable[[float], int], rounding: str
) -> Callable[[Number | None], Number | list[Any]]:
    def toward(number: Number | None) -> Number | list[Any]:
        if number is None:
            return []
        if isinstance(number, int):
            return number
        if isinstance(number, Decimal):
            return number.to_integral_value(rounding=rounding)
        if isnan(number) or isinf(number):
            return number
        whole = float(of_float(number))
        return whole if whole else copysign(0.0, number)

    return toward


def _abs(number: Number | None) -> Number | list[Any]:
    if number is None:
        return []
    return number.copy_abs() if isinstance(number, Decimal) else abs(number)


def _round(number: Number | None, digits: Number | None = None) -> Number | list[Any]:
    if number is None:
        return []
    if not digits or (isinstance(number, float) and not isfinite(number)):
        return rounded(number)
    places = int(digits)
    if abs(places) > DIGITS_MAX:
        return number if places > 0 else type(number)(0)
    exact = rounded(DECIMALS.scaleb(Decimal(number), places))
    found = type(number)(DECIMALS.scaleb(Decimal(exact), -places))
    return copysign(found, number) if isinstance(found, float) and not found else found


def _added(atoms: list[Atom]) -> Atom:
    numbers = [to_double(atom) if isinstance(atom, Untyped) else atom for atom in atoms]
    types = {number.type if isinstance(number, Opaque) else "" for number in numbers}
    if types not in _ADDED or not (types != {""} or all(map(is_number, numbers))):
        raise DynamicError("FORG0006", "sum() and avg() take numbers, or durations of one type")
    return reduce(lambda one, other: arithmetic("+", one, other), numbers)


_ADDED = ({""}, {"xs:dayTimeDuration"}, {"xs:yearMonthDuration"})
_DEFAULT = object()


def _sum(atoms: list[Atom], zero: Any = _DEFAULT) -> Any:
    if atoms:
        return _added(atoms)
    if zero is _DEFAULT:
        return 0
    return [] if zero is None else zero


def _check_ordered(values: list[Atom]) -> None:
    """FORG0006 for values of which none is the least: of types without order, or of several."""
    types = {value.type for value in values if isinstance(value, Opaque)}
    are_mixed = any(map(is_number, values)) and not all(map(is_number, values))
    if are_mixed or types - ORDERED or len(types) > 1:
        raise DynamicError("FORG0006", "values that have no order")


def _extreme(sign: int) -> Callable[[list[Atom]], Any]:
    def extreme(atoms: list[Atom]) -> Any:
        if not atoms:
            return []
        values = [cast(atom, "xs:double") if isinstance(atom, Untyped) else atom for atom in atoms]
        floats = [value for value in values if isinstance(value, float)]
        if floats and all(map(is_number, values)):
            is_single = all(isinstance(value, Float) for value in floats)
            values = [Float(v) if is_single else to_double(v) for v in values]  # type: ignore[arg-type]
        if any(type(value) is str for value in values):
            values = [str(value) if isinstance(value, AnyUri) else value for value in values]
        best = values[0]
        comparable_or_error(best, best)
        _check_ordered(values)
        for value in values:
            if isinstance(value, float) and isnan(value):
                return value
            one, other = comparable_or_error(value, best)
            if (one > other) if sign > 0 else (one < other):
                best = value
        return best

    return extreme


def comparable_or_error(one: Atom, other: Atom) -> tuple[Any, Any]:
    try:
        return comparable(one, other)
    except DynamicError as error:
        raise DynamicError("FORG0006", str(error)) from None


def _of_its_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives an xs:float for one."""

    def typed(number: Number | None, *more: Any) -> Any:
        found = function(number, *more)
        return Float(found) if isinstance(number, Float) else found

    return typed


NUMBER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "number": _number,
    "abs": _of_its_type(_abs),
    "round": _of_its_type(_round),
    "round-half-to-even": _of_its_type(_half_to_even),
    "floor": _of_its_type(_toward(floor, ROUND_FLOOR)),
    "ceiling": _of_its_type(_toward(ceil, ROUND_CEILING)),
    "sum": _sum,
    "avg": lambda atoms: arithmetic("div", _added(atoms), len(atoms)) if atoms else [],
    "min": _extreme(-1),
    "max": _extreme(1),
}


# -------------------------------------------------------------------------------------------------
# The functions on sequences; arguments arrive as function_library.py says.


def _distinct_values(atoms: list[Atom]) -> list[Atom]:
    found: dict[Any, Atom] = {}
    floats = [atom for atom in atoms if isinstance(atom, float)]
    are_single = all(isinstance(atom, Float) for atom in floats)
    for atom in atoms:
        # As floats if there is one, which exact numbers are converted to where they are compared.
        key = atom
        if floats and is_number(atom):
            key = Float(to_double(atom)) if are_single else to_double(atom)
        found.setdefault(identity_of(key), atom)
    return list(found.values())


def identity_of(atom: Atom) -> Any:
    """Equal for values that are equal; NaN equals itself here."""
    if isinstance(atom, str):
        return ("string", str(atom))
    if isinstance(atom, bool):
        return ("boolean", atom)
    if is_number(atom):
        return "NaN" if isinstance(atom, float) and isnan(atom) else ("number", atom)
    if isinstance(atom, Opaque):
        return (atom.primitive, atom.key)
    return (atom.type, atom.instant) if not isinstance(atom, int | float) else atom  # type: ignore[union-attr]


def _index_of(evaluator: Evaluator, items: Value, value: Value) -> Value:
    """Texts are equal to texts alone; the places of these in a list are found once."""
    if evaluator.strict and len(value) != 1:
        raise DynamicError("XPTY0004", "index-of() takes one item")
    wanted = evaluator.atom(value[0]) if value else None
    if isinstance(wanted, str):
        if evaluator.places[0] is not items:
            texts: dict[str, list[int]] = {}
            for index, atom in enumerate(evaluator.atoms(items), 1):
                if isinstance(atom, str):
                    texts.setdefault(str(atom), []).append(index)
            evaluator.charge(len(items))
            evaluator.places = items, texts
        places = evaluator.places[1].get(str(wanted), [])
        evaluator.charge(1 + len(places))
        return list(places)
    evaluator.charge(len(items))
    found = []
    atoms = evaluator.atoms(items)
    for index, atom in enumerate(atoms, 1):
        try:
            one, other = comparable(atom, wanted)  # type: ignore[arg-type]
        except (DynamicError, AttributeError):
            continue
        if one == other:
            found.append(index)
    return found


def integers(evaluator: Evaluator, first: Atom, last: Atom) -> Value:
    """``first to last``, charged; XPTY0004."""
    bounds = []
    for bound in (first, last):
        whole = cast(bound, "xs:integer") if isinstance(bound, Untyped) else bound
        if not isinstance(whole, int) or isinstance(whole, bool):
            raise DynamicError("XPTY0004", "'to' takes integers")
        bounds.append(whole)
    size = max(0, bounds[1] - bounds[0] + 1)
    evaluator.charge_memory(ITEM_BYTES * size)
    evaluator.charge(size)
    return list(range(bounds[0], bounds[1] + 1))


def _subsequence(items: list[Item], start: Any, length: Any = None) -> list[Item]:
    lengths = () if length is None else (length,)
    return list(items[span_of(len(items), start, *lengths)])


def _insert_before(items: list[Item], position: Any, inserted: list[Item]) -> list[Item]:
    place = min(max(int(position or 1), 1), len(items) + 1) - 1
    return [*items[:place], *inserted, *items[place:]]


def _of_length(code: str, least: int, most: int | None) -> Callable[[list[Item]], list[Item]]:
    def checked(items: list[Item]) -> list[Item]:
        if len(items) < least or (most is not None and len(items) > most):
            raise DynamicError(code, f"a sequence of {len(items)} items")
        return list(items)

    return checked


def deep_equal(evaluator: Evaluator, one: Any, other: Any) -> bool:
    """Whether two sequences are equal, item by item, elements with all that is in them."""
    if len(one) != len(other):
        return False
    return all(_equal(evaluator, a, b) for a, b in zip(one, other, strict=True))


def _equal(evaluator: Evaluator, one: Item, other: Item) -> bool:
    one = evaluator.materialised(one) if isinstance(one, Construction) else one
    other = evaluator.materialised(other) if isinstance(other, Construction) else other
    if isinstance(one, Node) and isinstance(other, Node):
        return bool(_shape(evaluator, one) == _shape(evaluator, other))
    if isinstance(one, Detached) and isinstance(other, Detached):
        is_named_alike = _meaning(evaluator, one) == _meaning(evaluator, other)
        return one.kind is other.kind and is_named_alike and one.value == other.value
    if isinstance(one, Node | Detached) or isinstance(other, Node | Detached):
        return False
    return len(_distinct_values([one, other])) == 1


def _shape(evaluator: Evaluator, node: Node) -> Any:
    """A value that is equal for nodes that are."""
    stream = evaluator.streams[node.tree]
    evaluator.charge()
    if node.type is NodeType.ATTRIBUTE:
        return ("@", *_meaning(evaluator, node), evaluator.string_value(node))
    if node.type is NodeType.CONTENT:
        return (stream.content_kind[node.number], stream.content_value(node.number))
    children = [
        _shape(evaluator, child)
        for child in evaluator.children(node)
        if child.type is not NodeType.CONTENT or stream.content_kind[child.number] == 0
    ]
    if node.type is NodeType.DOCUMENT:
        return children
    attributes = {
        (stream.names[stream.attribute_name[number]][1:], stream.attribute_value(number))
        for number in stream.attributes_of(node.number)
    }
    return (*_meaning(evaluator, node), attributes, children)


def _meaning(evaluator: Evaluator, item: Node | Detached) -> tuple[str, ...]:
    """Namespace and local name; nothing where it has no name."""
    name = evaluator.name_of(item)
    return () if name is None else name[1:]


SEQUENCE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": len,
    "exists": bool,
    "empty": lambda items: not items,
    "distinct-values": _distinct_values,
    "reverse": lambda items: list(reversed(items)),
    "head": lambda items: list(items[:1]),
    "tail": lambda items: list(items[1:]),
    "subsequence": _subsequence,
    "insert-before": _insert_before,
    "remove": lambda items, at: [item for place, item in enumerate(items, 1) if place != at],
    "data": list,
    "zero-or-one": _of_length("FORG0003", 0, 1),
    "one-or-more": _of_length("FORG0004", 1, None),
    "exactly-one": _of_length("FORG0005", 1, 1),
}


# -------------------------------------------------------------------------------------------------
# Functions and types that ``functions.py`` does not have; elementpath does them, on values.


_AS_THEY_ARE = frozenset(("unordered", "trace"))


def falls_back(expression: ast.Expression) -> bool:
    """Whether elementpath has a part in evaluating it, as far as its text tells."""
    return any(
        (isinstance(part, ast.FunctionCall) and part.name not in FUNCTIONS)
        or (isinstance(part, ast.Cast) and part.type not in TYPES)
        for part in expression.within()
    )


def _other(evaluator: Evaluator, name: str, values: list[Value]) -> Value:
    """What a function of ``other_functions`` gives for the values of its arguments."""
    evaluator.charge(ELEMENTPATH_COST)
    if name in _AS_THEY_ARE:
        return values[0]
    if name.startswith("xs:"):
        (atom,) = _argument(evaluator, values[0], "?")
        return [] if atom is None else [cast(atom, name)]
    types = argument_types(name)
    nodes = _node(evaluator, name, values.pop()) if name in NODE_FUNCTIONS else []
    arguments = [
        _typed(_argument(evaluator, value, type_), type_)
        for value, type_ in zip(values, types, strict=False)
    ]
    if name in NODE_FUNCTIONS:
        return NODE_FUNCTIONS[name](evaluator, nodes[0], *arguments) if nodes else []
    if name in _OF_TIMES:
        return _of_times(name, arguments)
    if name == "QName":
        return [qname(arguments[0] or "", _wanted(arguments[1], str))]
    if name.endswith("-from-QName"):
        return _of_qname(name, arguments[0])
    if name == "format-number":
        return [_format_number(*arguments)]
    if name == "format-integer":
        return [_format_integer(*arguments)]
    if name == "resolve-uri":
        base = _wanted(arguments[1], str) if len(arguments) > 1 else None
        return [] if arguments[0] is None else [resolve_uri(_wanted(arguments[0], str), base)]
    variables = ", ".join(f"$a{number}" for number in range(len(arguments)))
    for argument in arguments:
        evaluator.charge(_cost(argument))
    return evaluate(f"{name}({variables})", *arguments)


def _of_times(name: str, arguments: list[Any]) -> Value:
    """What elementpath has in microseconds, or otherwise than F&O says."""
    if name == "implicit-timezone":
        return [duration("xs:dayTimeDuration", 0, Decimal(0))]
    first, *others = arguments
    if first is None or (name == "dateTime" and others[0] is None):
        return []
    if name == "parse-ietf-date":
        moment = parse_ietf_date(_wanted(first, str))
        if moment is None:
            raise DynamicError("FORG0010", f"{first[:80]!r} is no date and time of RFC 5322")
        return [moment]
    part, _, kind = name.partition("-from-")
    if kind == "duration":
        if not is_duration(first):
            raise DynamicError("XPTY0004", f"{name}() takes a duration")
        months, seconds = first.key
        whole = int(seconds.copy_abs())
        sign = -1 if months < 0 or seconds < 0 else 1
        amount = {
            "years": abs(months) // 12,
            "months": abs(months) % 12,
            "days": whole // 86_400,
            "hours": whole // 3_600 % 24,
            "minutes": whole // 60 % 60,
            "seconds": DECIMALS.remainder(seconds.copy_abs(), Decimal(60)),
        }[part]
        return [DECIMALS.multiply(sign, amount) if part == "seconds" else sign * amount]
    moment = _wanted(first, Temporal)
    if kind == "time" and part != "timezone":
        number = moment.seconds if part == "seconds" else getattr(moment.local, part[:-1])
        return [number]
    if part == "timezone":
        zone = moment.offset
        return [] if zone is None else [duration("xs:dayTimeDuration", 0, Decimal(60 * zone))]
    if name == "dateTime":
        time = _wanted(others[0], Temporal)
        zones = {zone for zone in (moment.offset, time.offset) if zone is not None}
        if len(zones) > 1:
            raise DynamicError("FORG0008", "a date and a time of two time zones")
        local = datetime.combine(moment.local.date(), time.local.time())
        return [Temporal("xs:dateTime", local, min(zones, default=None), time.fraction)]
    offset = 0 if not others else None if others[0] is None else _minutes(others[0])
    try:
        return [moment.in_zone(offset)]
    except OverflowError:
        raise DynamicError("FODT0001", "a date beyond the years 1 to 9999") from None


def _of_qname(name: str, atom: Atom | None) -> Value:
    if atom is None:
        return []
    if not (isinstance(atom, Opaque) and atom.type == "xs:QName"):
        raise DynamicError("XPTY0004", f"{name}() takes an xs:QName")
    namespace, local = atom.key
    prefix = atom.text.rpartition(":")[0]
    parts: dict[str, Value] = {
        "prefix-from-QName": [prefix] if prefix else [],
        "local-name-from-QName": [local],
        "namespace-uri-from-QName": [AnyUri(namespace)],
    }
    return parts[name]


def _format_number(number: Any, picture: Any, form: Any = None) -> str:
    if not (number is None or is_number(number)):
        raise DynamicError("XPTY0004", "format-number() takes a number")
    if form is not None:
        raise DynamicError("FODF1280", "a profile declares no decimal formats")
    return format_number(number, _wanted(picture, str))


def _format_integer(number: Any, picture: Any, language: Any = "") -> str:
    if number is not None:
        _wanted(number, int)
    _wanted("" if language is None else language, str)
    return format_integer(number, _wanted(picture, str))


def _wanted(atom: Any, kind: type[Any]) -> Any:
    if not isinstance(atom, kind) or (kind is int and isinstance(atom, bool)):
        given = "nothing" if atom is None else type_name(atom)
        raise DynamicError("XPTY0004", f"{given} is of another type than is wanted")
    return atom


def _minutes(zone: Atom) -> int:
    if not is_duration(zone) or zone.type != "xs:dayTimeDuration":
        raise DynamicError("XPTY0004", "a time zone is an xs:dayTimeDuration")
    seconds = zone.key[1]
    if seconds % 60 or abs(seconds) > 14 * 3_600:
        raise DynamicError("FODT0003", f"{zone} is no time zone")
    return int(seconds) // 60


_OF_TIMES = frozenset(
    (
        *("implicit-timezone", "parse-ietf-date", "dateTime"),
        *(f"{part}-from-time" for part in ("hours", "minutes", "seconds")),
        *(
            f"{part}-from-duration"
            for part in ("years", "months", "days", "hours", "minutes", "seconds")
        ),
        *(f"timezone-from-{kind}" for kind in ("date", "dateTime", "time")),
        *(f"adjust-{kind}-to-timezone" for kind in ("date", "dateTime", "time")),
    )
)


def _node(evaluator: Evaluator, name: str, value: Value) -> list[Node]:
    is_one = len(value) <= 1 or not evaluator.strict
    if not is_one or not all(isinstance(item, NODES) for item in value):
        raise DynamicError("XPTY0004", f"{name}() takes one node")
    return evaluator.nodes(value)


def _cost(argument: Any) -> int:
    """Visits of elementpath's for it: a character is a call, or several."""
    if isinstance(argument, list):
        return sum(map(_cost, argument))
    return len(argument) if isinstance(argument, str) else 1


def _argument(evaluator: Evaluator, value: Value, type_: str) -> list[Atom | None]:
    """The values of an argument; where one is wanted, the first one, None if there is none."""
    evaluator.charge(len(value))
    if type_.endswith(("*", "+")):
        return list(evaluator.atoms(value))
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", "a function that takes one item is given several")
    return [evaluator.atom(value[0]) if value else None]


def _typed(atoms: list[Atom | None], type_: str) -> Any:
    """An argument of the type that is wanted, where it is untyped or an xs:anyURI."""
    wanted = type_.rstrip("?*+").replace("xs:numeric", "xs:double")
    is_castable = wanted.startswith("xs:") and wanted != "xs:anyAtomicType"
    typed = [
        cast(atom, wanted) if is_castable and isinstance(atom, Untyped | AnyUri) else atom
        for atom in atoms
    ]
    if wanted == "xs:string":
        typed = [atom if atom is None else _wanted(atom, str) for atom in typed]
    return typed if type_.endswith(("*", "+")) else typed[0]


FEW_ITEMS = 8  # which cost no more than the call


def applied(evaluator: Evaluator, name: str, values: list[Value]) -> Value:
    """What a function gives for the values of its arguments; DynamicError."""
    signature = FUNCTIONS.get(name)
    if signature is None:
        return _other(evaluator, name, values)
    if name in _ABOUT_MESSAGES:
        return _ABOUT_MESSAGES[name](evaluator, *values)
    if name == "compare" and not all(values):
        return []
    if evaluator.strict and not all(values):
        _check_needed(name, values)
    arguments = [
        _converted(evaluator, name, signature.argument(index), value)
        for index, value in enumerate(values)
    ]
    if name in TYPES or name in _OF_ONE:
        return _of_one(name, arguments[0])
    if name in CHARGED:
        return as_value(evaluator, CHARGED[name](evaluator, *arguments))
    for argument in arguments:
        if isinstance(argument, str):
            if len(argument) >= TEXT_VISIT:
                evaluator.charge_text(len(argument))
        elif isinstance(argument, list) and len(argument) >= FEW_ITEMS:
            evaluator.charge_memory(POINTER_BYTES * len(argument))
            evaluator.charge(len(argument))
    return as_value(evaluator, _FUNCTIONS[name](*arguments))


def _check_needed(name: str, values: list[Value]) -> None:
    needed = NEEDED.get(name, ())
    if any(not value and index in needed for index, value in enumerate(values)):
        raise DynamicError("XPTY0004", f"{name}() takes one item, this is none")


def as_value(evaluator: Evaluator, result: Any) -> Value:
    """What a function has made, charged."""
    if isinstance(result, list):
        evaluator.charge(len(result))
        return result
    if isinstance(result, str):
        evaluator.charge(len(result) // 16)
    return [result]


# PERF: a member of an Enum costs more than to take it for an argument.
_AS_THEY_STAND = (ArgumentKind.NODES, ArgumentKind.ITEMS, ArgumentKind.CONDITION)
_ATOM, _ATOMS, _STRINGS = ArgumentKind.ATOM, ArgumentKind.ATOMS, ArgumentKind.STRINGS
_NUMBER, _INTEGER, _TEMPORAL = ArgumentKind.NUMBER, ArgumentKind.INTEGER, ArgumentKind.TEMPORAL
_PATTERN, _FLAGS = ArgumentKind.PATTERN, ArgumentKind.FLAGS


def _converted(evaluator: Evaluator, name: str, kind: ArgumentKind, value: Value) -> Any:
    if kind in _AS_THEY_STAND:
        return value
    if kind is _ATOMS:
        return evaluator.atoms(value)
    if kind is _STRINGS:
        return [atom_text(atom) for atom in evaluator.atoms(value)]
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", f"{name}() takes one item, these are several")
    atom = evaluator.atom(value[0]) if value else None
    if kind is _ATOM or kind is _TEMPORAL:
        return atom
    if kind is _NUMBER:
        if atom is None or is_number(atom):
            return atom
        if not isinstance(atom, Untyped):
            raise DynamicError("XPTY0004", f"{name}() takes a number")
        return to_double(atom)
    if kind is _INTEGER:
        whole = cast(atom, "xs:integer") if isinstance(atom, Untyped) else atom
        if whole is not None and (not isinstance(whole, int) or isinstance(whole, bool)):
            raise DynamicError("XPTY0004", f"{name}() takes an integer")
        return whole
    is_pattern = kind is _PATTERN or kind is _FLAGS
    if (atom is not None and not isinstance(atom, str)) or (is_pattern and len(value) != 1):
        raise DynamicError("XPTY0004", f"{name}() takes a string")
    return atom or ""


# -- functions of places (places.py)


_HOLES = frozenset(("interior", "innerBoundaryIs"))


def _places_in(evaluator: Evaluator, value: Value) -> list[Place]:
    """The places of nodes and texts; of an element with others in it those of the innermost, but
    for the holes of areas."""
    found = []
    for item in value:
        if not isinstance(item, NODES):
            found.append(read_place(atom_text(evaluator.atom(item))))
            continue
        for node in evaluator.nodes([item]):
            found += [_place_at(evaluator, leaf) for leaf in _innermost(evaluator, node)]
    return [place for place in found if place is not None]


def _innermost(evaluator: Evaluator, node: Node) -> list[Node]:
    stream = evaluator.streams[node.tree]
    if node.type is NodeType.DOCUMENT:
        element = 0
    elif node.type is NodeType.ELEMENT:
        element = node.number
    else:
        return [node]
    end, found = stream.element_end[element] if len(stream) else 0, []
    while element < end:
        inner = element_node(element, node.tree)
        after = stream.element_end[element]
        evaluator.charge()
        if after == element + 1:
            found.append(inner)
        elif (name := evaluator.name_of(inner)) is not None and name.local in _HOLES:
            element = after
            continue
        element += 1
    return found


def _place_at(evaluator: Evaluator, node: Node) -> Place | None:
    text = evaluator.string_value(node)
    evaluator.charge_text(len(text))
    name = evaluator.name_of(node)
    said = {"srsName": "", "srsDimension": ""}
    for element in _around(evaluator, node):
        stream = evaluator.streams[element.tree]
        for number in stream.attributes_of(element.number):
            attribute = stream.names[stream.attribute_name[number]]
            if attribute.local in said and not attribute.namespace:
                said[attribute.local] = stream.attribute_value(number).strip()
    return read_place(text, name.local if name else "", *said.values())


def _pairs(
    name: str, evaluator: Evaluator, one: Value, other: Value
) -> Iterator[tuple[Place, Place]]:
    others = _places_in(evaluator, other)
    for place in _places_in(evaluator, one):
        for known in others:
            evaluator.charge(1 + work(name, place, known) // PAIRS_A_VISIT)
            yield place, known


def _relates(name: str) -> Callable[[Evaluator, Value, Value], Value]:
    return lambda *asked: [any(relates(name, *pair) for pair in _pairs(name, *asked))]


def _distance(evaluator: Evaluator, one: Value, other: Value) -> Value:
    """The least one; nothing where there is no place."""
    pairs = _pairs("place:distance", evaluator, one, other)
    least = min((distance(*pair) for pair in pairs), default=None)
    return [] if least is None else [least]


def _place_texts(evaluator: Evaluator, value: Value) -> Value:
    texts = [place.text for place in _places_in(evaluator, value)]
    evaluator.charge_memory(sum(map(len, texts)))
    return list(texts)


def _known_places(evaluator: Evaluator, value: Value) -> Value:
    texts = _place_texts(evaluator, value)
    if value and not texts:
        said = evaluator.first_string(value)[:80]
        raise DynamicError("FORG0001", f"{said!r} is no place")
    return texts


_PLACE_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _relates(name) for name in EXCHANGED},
    "place:distance": _distance,
    "place:read": _place_texts,
    "place:known": _known_places,
}


# -- functions of the whole value


def _named(part: str) -> Callable[..., Value]:
    def name_of(evaluator: Evaluator, value: Value) -> Value:
        if len(value) > 1 and evaluator.strict:
            raise DynamicError("XPTY0004", f"{part}() takes one node, these are several")
        name = None
        for first in value[:1]:
            if not isinstance(first, NODES):
                raise DynamicError("XPTY0004", f"{part}() takes a node")
            name = evaluator.name_of(first)
        if part == "namespace-uri":
            return [AnyUri(name.namespace if name else "")]
        return [("" if name is None else str(name) if part == "name" else name.local)]

    return name_of


def _root(evaluator: Evaluator, value: Value) -> Value:
    if len(value) > 1 or not all(isinstance(item, NODES) for item in value):
        raise DynamicError("XPTY0004", "root() takes one node")
    nodes = evaluator.nodes(value)
    if not nodes:
        return []
    return [evaluator.root(nodes[0])]


def _location(evaluator: Evaluator, value: Value) -> Value:
    """``/a[1]/b[2]/@c``, ``/a[1]/text()[2]``; "" of no node, the path of the first of several."""
    node = next(iter(evaluator.nodes(value)), None)
    return ["" if node is None else evaluator.location(node)]


def _string(evaluator: Evaluator, value: Value) -> Value:
    if len(value) > 1 and evaluator.strict:
        raise DynamicError("XPTY0004", "string() takes one item")
    return [evaluator.first_string(value)]


def _error(evaluator: Evaluator, name: Value = (), reason: Value = (), value: Value = ()) -> Value:
    code = evaluator.one_atom(name)
    if code is not None and not (isinstance(code, Opaque) and code.type == "xs:QName"):
        raise DynamicError("XPTY0004", "error() takes the name of an error")
    namespace, local = (ERROR_NAMESPACE, "FOER0000") if code is None else code.key
    is_known = namespace == ERROR_NAMESPACE
    said = evaluator.first_string(reason) or "an error of the profile's own"
    raise DynamicError(local if is_known else f"{braced(namespace)}{local}", said, value)


def _current(type_: str) -> Callable[[Evaluator], Value]:
    def current(evaluator: Evaluator) -> Value:
        if not evaluator.stream.accepted:
            raise DynamicError("XPDY0002", "nobody knows when the message was accepted")
        return [cast(moment_at(evaluator.stream.accepted), type_)]

    return current


_ABOUT_MESSAGES: dict[str, Callable[..., Value]] = {
    **{name: _current(type_) for name, type_ in CURRENT.items()},
    "not": lambda _, value: [not effective_boolean(value)],
    "boolean": lambda _, value: [effective_boolean(value)],
    "name": _named("name"),
    "local-name": _named("local-name"),
    "namespace-uri": _named("namespace-uri"),
    "root": _root,
    "svrl:location": _location,
    "error": _error,
    "string": _string,
    "deep-equal": lambda *arguments: [deep_equal(*arguments)],
    "index-of": _index_of,
    **_PLACE_FUNCTIONS,
}


# -- functions of one value, empty for the empty sequence

_OF_ONE = frozenset(name for name in FUNCTIONS if "-from-" in name)


def _of_one(name: str, atom: Atom | None) -> Value:
    if atom is None:
        return []
    if name in TYPES:
        return [cast(atom, name)]
    part, _, kind = name.partition("-from-")
    moment = cast(atom, f"xs:{kind}") if isinstance(atom, Untyped) else atom
    if not isinstance(moment, Temporal) or moment.type != f"xs:{kind}":
        raise DynamicError("XPTY0004", f"{name}() takes a {kind}")
    if part == "seconds":
        return [moment.seconds]
    return [int(getattr(moment.local, part.removesuffix("s")))]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "true": lambda: True,
    "false": lambda: False,
    **STRING_FUNCTIONS,
    **NUMBER_FUNCTIONS,
    **SEQUENCE_FUNCTIONS,
    **MATH_FUNCTIONS,
}


_PARTS = re.compile(r"(?:([^:/?#]+):)?(//[^/?#]*)?([^?#]*)(?:\?[^#]*)?(#.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_NO_URI = re.compile(r"[<>\"{}|\\^`\x00-\x1f]|%(?![0-9A-Fa-f]{2})|#.*#")
_BRACKETS = re.compile(r"[\[\]]")
_LITERAL = re.compile(r"//([^/@]*@)?\[([0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[^\[\]/]+)\](:[0-9]*)?")


def resolve_uri(reference: str, base: str | None) -> AnyUri:
    """A reference as RFC 3986, section 5.2, resolves it.  FORG0002 where one is no IRI, or nothing
    can be resolved against the base; FONS0005 where the reference needs a base and has none."""
    if _parts(reference)[0] is not None:
        return AnyUri(reference)
    if base is None:
        raise DynamicError("FONS0005", "a message has no base URI, and the reference is relative")
    scheme, authority, path, fragment = _parts(base)
    is_hierarchic = authority is not None or path.startswith("/")
    if scheme is None or fragment is not None or not is_hierarchic:
        raise DynamicError("FORG0002", f"nothing can be resolved against {base[:80]!r}")
    resolved = resolve(base.encode(), reference.encode()).decode()
    return AnyUri(" ".join(filter(None, resolved.split(" "))))  # white space of a URI collapses


def _parts(text: str) -> tuple[str | None, str | None, str, str | None]:
    """Scheme, authority, path and fragment; None for one that is not there."""
    found = _PARTS.fullmatch(text)
    is_scheme = found is not None and _SCHEME.fullmatch(found[1] or "a")
    if found is None or not is_scheme or _NO_URI.search(text) or text.startswith(":"):
        raise DynamicError("FORG0002", f"{text[:80]!r} is no IRI")
    # Brackets in a query are against RFC 3986 and usual all the same.
    if _BRACKETS.search(_LITERAL.sub("", found[2] or "") + found[3]):
        raise DynamicError("FORG0002", f"{text[:80]!r} has brackets around no address")
    return found[1], found[2], found[3], found[4]
