"""Text of a graph profile -> tokens, one at a time (SPARQL 1.1, 19.8; comments are left out).

A token is as long as it can be, as the grammar has it: ``?a <?b&&?c> ?d`` has an IRI in it, and
``?x -1`` a number.
"""

from __future__ import annotations

import re
from typing import NoReturn

from formats.characters import NAME_START
from yfilter.language.tokens import Token, TokenKind, TokenLexer

_START = NAME_START.replace("_", "")
_NAME = f"{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040\\-"  # in a class
_VARIABLE = f"[{_START}_0-9][{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*"
_PREFIX = f"(?:[{_START}](?:[{_NAME}.]*[{_NAME}])?)?"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = f"(?:[{_START}_:0-9]|{_ESCAPED})(?:(?:[{_NAME}.:]|{_ESCAPED})*(?:[{_NAME}:]|{_ESCAPED}))?"
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_STRING_ESCAPE = rf"\\[tbnrf\\\"']|{_UNICODE}"


class SparqlToken(Token):
    """``text``: of a variable, IRI, blank node or language without what marks them."""

    __slots__ = ()

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in capitals here and in any case in the text."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def __str__(self) -> str:
        match self.kind:
            case TokenKind.VARIABLE:
                return f"'?{self.text}'"
            case TokenKind.BLANK:
                return f"'_:{self.text}'"
            case TokenKind.LANGUAGE:
                return f"'@{self.text}'"
            case TokenKind.IRI:
                return f"<{self.text}>"
            case _:
                return super().__str__()


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
_MEANT = {"&": "'&&'", "~": "regex(…)", "@": "a language tag: @en"}


class SparqlLexer(TokenLexer):
    """``taken`` are the tokens taken so far."""

    __slots__ = ("taken",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.taken: list[Token] = []

    def take(self) -> Token:
        token = self.peek()
        self._offset = token.end
        self._ahead = None
        self.taken.append(token)
        return token

    def _scan(self, offset: int) -> Token:
        match = _TOKEN.match(self.text, offset)
        if match is None:
            self._refuse(offset)
        group = match.lastindex or 0
        kind = _KINDS[group]
        start = match.start(group) - _MARKS.get(kind, 0)
        token = self._scanned[offset] = SparqlToken(kind, match[group], start, match.end())
        return token

    def _refuse(self, before: int) -> NoReturn:
        space = _SPACE.match(self.text, before)
        assert space is not None
        offset = space.end()
        character = self.text[offset]
        open_string = (
            "this string is not closed, or has an escape that there is not",
            f"a closing {character} on the same line; a backslash doubled",
        )
        self._refuse_character(offset, open_string, _MEANT.get(character, ""))


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
