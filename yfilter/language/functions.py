"""The functions of the profile language: one table with what each takes and gives.

Every function is XPath 2.0's of the same name.  Two things are settled here that XPath leaves to
a dynamic error, since a message cannot be answered with one: an argument that must be one item
and is several is its first item in document order (XPath's 1.0 compatibility rule), and an
argument that must be one item and is none is the empty string, or NaN for ``number``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ResultKind(Enum):
    STRING = "a string"
    NUMBER = "a number"
    BOOLEAN = "a condition"


class ArgumentKind(Enum):
    """STRING: nodes or a string; ATOM: also a number; NODES: a path; CONDITION: anything with an
    effective boolean value; PATTERN: a string literal that is a regular expression; FLAGS: a
    string literal with its flags."""

    STRING = "a path or a string"
    STRINGS = "a path or string"
    ATOM = "a path, a string or a number"
    NODES = "a path"
    CONDITION = "a condition"
    PATTERN = "a regular expression as a string literal"
    FLAGS = 'flags as a string literal, of "s", "m", "i", "x"'


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
            return f"{most} argument{'' if most == 1 else 's'}"
        return f"{least} or {most} arguments"

    def takes(self, count: int) -> bool:
        if count == 0:
            return self.context
        return count >= self.required and (self.variadic or count <= len(self.arguments))


_STRING, _ATOM = ArgumentKind.STRING, ArgumentKind.ATOM

FUNCTIONS: dict[str, Signature] = {
    "not": Signature(ResultKind.BOOLEAN, (ArgumentKind.CONDITION,), 1),
    "contains": Signature(ResultKind.BOOLEAN, (_STRING, _STRING), 2),
    "starts-with": Signature(ResultKind.BOOLEAN, (_STRING, _STRING), 2),
    "ends-with": Signature(ResultKind.BOOLEAN, (_STRING, _STRING), 2),
    "matches": Signature(
        ResultKind.BOOLEAN, (_STRING, ArgumentKind.PATTERN, ArgumentKind.FLAGS), 2
    ),
    "normalize-space": Signature(ResultKind.STRING, (_STRING,), 1, context=True),
    "lower-case": Signature(ResultKind.STRING, (_STRING,), 1),
    "upper-case": Signature(ResultKind.STRING, (_STRING,), 1),
    "string-length": Signature(ResultKind.NUMBER, (_STRING,), 1, context=True),
    "count": Signature(ResultKind.NUMBER, (ArgumentKind.NODES,), 1),
    "number": Signature(ResultKind.NUMBER, (_ATOM,), 1, context=True),
    "string": Signature(ResultKind.STRING, (_ATOM,), 1, context=True),
    "concat": Signature(ResultKind.STRING, (_ATOM, _ATOM), 2, variadic=True),
    "string-join": Signature(ResultKind.STRING, (ArgumentKind.STRINGS, _STRING), 2),
}
