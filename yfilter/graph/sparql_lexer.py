"""Text of a graph profile -> tokens, one at a time (SPARQL 1.1, 19.8; comments are left out).

A token is as long as it can be, as the grammar has it: ``?a <?b&&?c> ?d`` has an IRI in it, and
``?x -1`` a number.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple, NoReturn

from yfilter.errors import ProfileRefused

_START = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040\\-"  # in a class
_VARIABLE = f"[{_START}_0-9][{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*"
_PREFIX = f"(?:[{_START}](?:[{_NAME}.]*[{_NAME}])?)?"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = f"(?:[{_START}_:0-9]|{_ESCAPED})(?:(?:[{_NAME}.:]|{_ESCAPED})*(?:[{_NAME}:]|{_ESCAPED}))?"
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_STRING_ESCAPE = rf"\\[tbnrf\\\"']|{_UNICODE}"


class TokenKind(Enum):
    IRI = "an IRI in < >"
    NAME = "a name with a prefix"
    BLANK = "a blank node"
    VARIABLE = "a variable"
    STRING = "a string"
    LANGUAGE = "a language tag"
    NUMBER = "a number"
    WORD = "a word"
    SYMBOL = "a symbol"
    END = "the end"


class Token(NamedTuple):
    """``text`` as written (variable, IRI, blank node and language without what marks them)."""

    kind: TokenKind
    text: str
    offset: int
    end: int

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text in symbols

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in capitals here and in any case in the text."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def __str__(self) -> str:
        match self.kind:
            case TokenKind.END:
                return "the end of the profile"
            case TokenKind.STRING:
                return f"the string {self.text}"
            case TokenKind.VARIABLE:
                return f"'?{self.text}'"
            case TokenKind.BLANK:
                return f"'_:{self.text}'"
            case TokenKind.LANGUAGE:
                return f"'@{self.text}'"
            case TokenKind.IRI:
                return f"<{self.text}>"
            case _:
                return f"'{self.text}'"


# One token with the white space and comments before it; its groups are in the order of _KINDS.
_TOKEN = re.compile(
    rf"""(?:[ \t\r\n]+|\#[^\r\n]*)*+
      (?:[?$]({_VARIABLE})
      | <((?:[^\x00-\x20<>"{{}}|^`\\]|{_UNICODE})*+)>
      | _:([{_START}_0-9](?:[{_NAME}.]*[{_NAME}])?)
      | ({_PREFIX}:(?:{_LOCAL})?)
      | ([{_START}_][{_START}_0-9]*)
      | (\"\"\"(?:"{{0,2}}(?:[^"\\]|{_STRING_ESCAPE}))*+\"\"\"
         |'''(?:'{{0,2}}(?:[^'\\]|{_STRING_ESCAPE}))*+'''
         |"(?:[^"\\\r\n]|{_STRING_ESCAPE})*+"|'(?:[^'\\\r\n]|{_STRING_ESCAPE})*+')
      | @([A-Za-z]+(?:-[A-Za-z0-9]+)*)
      | ([+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+))
      | (\^\^|&&|\|\||!=|<=|>=|<<|>>|[][(){{}}.,;=<>!+*/|^?-])
      | (\Z))
    """,
    re.VERBOSE,
)
_KINDS = (
    TokenKind.END,
    TokenKind.VARIABLE,
    TokenKind.IRI,
    TokenKind.BLANK,
    TokenKind.NAME,
    TokenKind.WORD,
    TokenKind.STRING,
    TokenKind.LANGUAGE,
    TokenKind.NUMBER,
    TokenKind.SYMBOL,
    TokenKind.END,
)
_MARKS = {TokenKind.VARIABLE: 1, TokenKind.IRI: 1, TokenKind.BLANK: 2, TokenKind.LANGUAGE: 1}
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*+")
_ESCAPE = re.compile(rf"{_UNICODE}|\\(.)", re.DOTALL)
_SINGLE = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_TYPOGRAPHIC_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"


class SparqlLexer:
    """Scans ``text`` from the front; ``taken`` are the tokens taken so far."""

    __slots__ = ("_ahead", "taken", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.taken: list[Token] = []
        self._ahead = self._scan(0)

    def peek(self) -> Token:
        return self._ahead

    def after(self, token: Token) -> Token:
        return self._scan(token.end)

    def peek_second(self) -> Token:
        """The token after the next one."""
        return self._scan(self._ahead.end)

    def take(self) -> Token:
        token = self._ahead
        self.taken.append(token)
        self._ahead = self._scan(token.end)
        return token

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return ProfileRefused(code, reason, self.text, offset, expected)

    def _scan(self, offset: int) -> Token:
        match = _TOKEN.match(self.text, offset)
        if match is None:
            self._refuse_character(offset)
        group = match.lastindex or 0
        kind = _KINDS[group]
        start = match.start(group) - _MARKS.get(kind, 0)
        return Token(kind, match[group], start, match.end())

    def _refuse_character(self, before: int) -> NoReturn:
        space = _SPACE.match(self.text, before)
        assert space is not None
        offset = space.end()
        character = self.text[offset]
        if character in _TYPOGRAPHIC_QUOTES:
            raise self.refusal(
                "syntax",
                f"'{character}' is a typographic quotation mark",
                offset,
                "a straight quotation mark, \" or '",
            )
        if character in "\"'":
            raise self.refusal(
                "syntax",
                "this string is not closed, or has an escape that there is not",
                offset,
                f"a closing {character} on the same line; a backslash doubled",
            )
        if character == "$":
            raise self.refusal("syntax", "'$' without a name", offset, "the name of a variable")
        expected = {"&": "'&&'", "~": "regex(…)", "@": "a language tag: @en"}.get(character, "")
        raise self.refusal("syntax", f"'{character}' has no meaning here", offset, expected)


def unescaped(text: str) -> str | None:
    """What the escapes of a string, an IRI or a local name mean; None for no character."""
    if "\\" not in text:
        return text
    try:
        plain = _ESCAPE.sub(_character, text)
    except ValueError:
        return None
    return None if any("\ud800" <= character <= "\udfff" for character in plain) else plain


def _character(match: re.Match[str]) -> str:
    if match[1] is not None:
        return _SINGLE.get(match[1], match[1])
    return chr(int(match[0][2:], 16))


def unquoted(text: str) -> str:
    """What stands between the quotation marks of a string, its escapes as written."""
    return text[3:-3] if text.startswith(('"""', "'''")) else text[1:-1]
