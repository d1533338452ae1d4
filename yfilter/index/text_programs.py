"""Very many conditions on one text, which differ in the constants of functions on it.

``translate(d, "ab", "") = "x"`` could be a column of ``translate(d, "ab", "")``; where each profile
has constants of its own, there are as many columns.  So it is a test of the text ``d``, a *program*
of steps that C takes for all profiles at once (TextPrograms in automaton.pyx)::

    translate(d, "ab", "") = "x"                            translate ab "", = x
    string-length(substring-after(d, "-")) > 3              substring-after -, length 4 inf
    string-length(d) - string-length(translate(d, ",", ""))
        > 2                                                 keep ",", length 3 inf
    concat(d, "-b") = "a-b"                                 d = "a"     an equality, as any other
"""

from __future__ import annotations

import json
from math import ceil, floor, isfinite
from typing import Any, NamedTuple, TypeAlias

from yfilter.language import query_ast as ast
from yfilter.language.function_library import span_of
from yfilter.language.shapes import blanks_in, plain_size
from yfilter.language.trees import Blank

TEXT_MAX = 64  # characters of a constant
LENGTH_MAX = (1 << 30) - 1
# A name and its two texts, or two numbers.
Step: TypeAlias = "tuple[str, str | int, str | int]"


class About(NamedTuple):
    """A condition said of a ``text``: equal to ``constant``, or a ``program`` if that is None.
    ``is_dear``: the value costs much more than a program."""

    text: ast.Expression
    constant: str | None
    program: str = ""
    is_dear: bool = False


def is_about_text(value: ast.Expression, test: str, constant: object) -> bool:
    """Whether a test of a value, of the kinds ``contains``, ``starts-with``, ``ends-with`` and
    "", a comparison, may be said of a text in it; of words or of their blanks."""
    if test not in _TESTS:
        return False
    if not isinstance(constant, str):
        value = _measured(value) or ast.DOT
    return bool(_stripped(value))


def about_text(
    value: ast.Expression, test: str, relation: ast.Operator, constant: Any
) -> About | None:
    """The same said of the text; None where that is too long, or a test of words."""
    if isinstance(constant, str):
        call = ast.FunctionCall(test, (value, ast.Literal(constant)))
        if test == "contains" and call.token_source() is not None:
            return None
        last: Step = test or "=", constant, ""
    else:
        measured = _measured(value)
        if measured is None or not isfinite(constant):
            return None
        value = measured
        last = ("length", *_lengths(relation, constant))
    found = _stripped(value)
    if not found:
        return None
    steps = [last, *(step for _, step in found)]
    text = ast.FunctionCall("string", (found[-1][0],))
    while len(steps) > 1 and steps[0][0] == "=" and steps[1][0] == "concat":
        (_, equal, _), (_, before, after) = steps[:2]
        assert isinstance(equal, str) and isinstance(before, str) and isinstance(after, str)
        rest = equal.removeprefix(before).removesuffix(after)
        if before + rest + after != equal:
            break
        steps[:2] = [("=", rest, "")]
    if len(steps) == 1 and steps[0][0] == "=":
        return About(text, str(steps[0][1]))
    if any(isinstance(part, str) and len(part) > TEXT_MAX for step in steps for part in step):
        return None
    is_dear = any(step[0] in _WITH_PATTERNS for step in steps)
    return About(text, None, json.dumps(steps[::-1], ensure_ascii=False), is_dear)


_TESTS = frozenset(("", "contains", "starts-with", "ends-with"))
_PARTS = frozenset(("substring-before", "substring-after"))
_WITH_PATTERNS = frozenset(("replace", "tokenize"))


def _measured(value: ast.Expression) -> ast.Expression | None:
    """The text of which a number is the length; ``keep`` stands for the characters that
    ``translate`` takes out, ``tokens`` for as many characters as there are."""
    match value:
        case ast.FunctionCall("string-length", (text,)):
            return text
        case ast.Operation(
            "-",
            (
                ast.FunctionCall("string-length", (text,)),
                ast.FunctionCall(
                    "string-length",
                    (ast.FunctionCall("translate", (same, letters, ast.Literal(new))),),
                ),
            ),
        ) if _is_same(text, same) and (isinstance(new, Blank) or new == ""):
            return ast.FunctionCall("keep", (text, letters))
        case ast.FunctionCall("count", (ast.FunctionCall("tokenize", (text, part)) as call,)) if (
            plain_size(call)
        ):
            return ast.FunctionCall("tokens", (text, part))
    return None


def _is_same(one: ast.Expression, other: ast.Expression) -> bool:
    """Whether two parts of a condition are equal, or may be with other words in their blanks."""
    return one == other or bool(blanks_in(one))


def _lengths(relation: ast.Operator, number: Any) -> tuple[int, int]:
    """The least and the greatest length that compares so with a number."""
    least, most = 0, LENGTH_MAX
    match relation:
        case ast.Operator.LT:
            most = ceil(number) - 1
        case ast.Operator.LE:
            most = floor(number)
        case ast.Operator.GT:
            least = floor(number) + 1
        case ast.Operator.GE:
            least = ceil(number)
        case _:
            least, most = ceil(number), floor(number)
    return min(max(least, 0), LENGTH_MAX), max(min(most, LENGTH_MAX), -1)


def _stripped(value: ast.Expression) -> list[tuple[ast.Expression, Step]]:
    """The texts that functions in each other are about, and the steps that these are; the innermost
    has constants."""
    found = []
    while (step := _step(value)) is not None:
        found.append(step)
        value = step[0]
    while found and found[-1][1][0] == "normalize-space":
        found.pop()
    return found


def _step(value: ast.Expression) -> tuple[ast.Expression, Step] | None:
    match value:
        case ast.FunctionCall("normalize-space", (text,)):
            return text, ("normalize-space", "", "")
        case ast.FunctionCall("tokens", (text, ast.Literal(str(part)))):
            return text, ("tokenize", part, "")
        case ast.FunctionCall(
            "replace", (text, ast.Literal(str(part)), ast.Literal(str(other)))
        ) if plain_size(value):
            return text, ("replace", part, other)
        case ast.FunctionCall("translate", (text, ast.Literal(str(old)), ast.Literal(str(new)))):
            return text, ("translate", old, new)
        case ast.FunctionCall("keep", (text, ast.Literal(str(letters)))):
            return text, ("keep", letters, "")
        case ast.FunctionCall(name, (text, ast.Literal(str(part)))) if name in _PARTS:
            return text, (name, part, "")
        case ast.FunctionCall("concat", parts):
            texts = [part.value if isinstance(part, ast.Literal) else None for part in parts]
            if texts.count(None) == 1 and all(isinstance(one, str | None) for one in texts):
                place = texts.index(None)
                before, after = (
                    "".join(map(str, some)) for some in (texts[:place], texts[place + 1 :])
                )
                return parts[place], ("concat", before, after)
        case ast.FunctionCall("substring", (text, *places)):
            numbers = [place.value for place in places if isinstance(place, ast.Literal)]
            if len(numbers) == len(places):
                span = span_of(LENGTH_MAX, *numbers)
                return text, ("substring", span.start or 0, span.stop)
            match places:
                case [
                    ast.Operation(
                        "-",
                        (ast.FunctionCall("string-length", (same,)), ast.Literal(int(number))),
                    )
                ] if _is_same(same, text):
                    return text, ("last", min(max(number + 1, 0), LENGTH_MAX), 0)
    return None


# The numbers of steps, as automaton.pyx has them.
_NAMES = (
    *("translate", "keep", "substring-before", "substring-after", "concat", "substring", "last"),
    *("normalize-space", "replace", "tokenize"),
    *("=", "contains", "starts-with", "ends-with", "length"),
)
STEPS = {name: number for number, name in enumerate(_NAMES)}


def described(program: str) -> str:
    """A program, for people."""
    text = "…"
    for name, one, other in json.loads(program):
        match name:
            case "=":
                text = f"{text} = {json.dumps(one, ensure_ascii=False)}"
            case "length":
                text = f"{one} <= string-length({text}) <= {other}"
            case _:
                constants = [one, other] if other != "" else [one] if one != "" else []
                said = [json.dumps(constant, ensure_ascii=False) for constant in constants]
                text = f"{name}({', '.join((text, *said))})"
    return text
