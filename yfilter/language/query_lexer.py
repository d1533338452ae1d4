"""Text of a profile -> tokens, one at a time.

XQuery has no tokens of its own: inside a direct constructor characters count, elsewhere white
space and ``(: comments :)`` do not.  So the lexer scans from an offset when asked, and the parser
of constructors moves the offset itself.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple, NoReturn

from yfilter.errors import ProfileRefused

_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NCNAME = f"[{_START}][{_START}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040]*"


class TokenKind(Enum):
    NAME = "a name"  # name, p:name, p:*, *:name, Q{uri}name, Q{uri}*
    VARIABLE = "a variable"
    STRING = "a string"
    NUMBER = "a number"
    SYMBOL = "a symbol"
    END = "the end"


class Token(NamedTuple):
    """``text`` as written (a variable without ``$``); it stands at ``offset`` up to ``end``."""

    kind: TokenKind
    text: str
    offset: int
    end: int

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text in symbols

    def is_word(self, *words: str) -> bool:
        return self.kind is TokenKind.NAME and self.text in words

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end of the profile"
        return f"'${self.text}'" if self.kind is TokenKind.VARIABLE else f"'{self.text}'"


_TOKEN = re.compile(
    rf"""(?P<name>Q\{{[^{{}}]*\}}(?:{NCNAME}|\*)
                | (?:{NCNAME}|\*):(?:{NCNAME}|\*)
                | {NCNAME})
      | \$[ \t\n]*(?P<variable>{NCNAME}(?::{NCNAME})?)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>"[^"]*(?:""[^"]*)*"|'[^']*(?:''[^']*)*')
      | (?P<symbol>//|/|\.\.|\.|::|:=|!=|<=|>=|<<|>>|=>|==|=<|<>|&&|\|\||[][(){{}},@*=<>|+;!?-])
    """,
    re.VERBOSE,
)
_WHITE_SPACE = re.compile(r"[ \t\n]*")
_COMMENT_EDGE = re.compile(r"\(:|:\)")
_TYPOGRAPHIC_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"


class Lexer:
    """Scans ``text`` from ``offset``; one token of look-ahead is kept, more are scanned anew."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._offset = 0
        self._ahead: Token | None = None

    @property
    def offset(self) -> int:
        """Where the next token is looked for."""
        return self._offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self._offset = offset
        self._ahead = None

    def peek(self) -> Token:
        if self._ahead is None:
            self._ahead = self._scan(self._offset)
        return self._ahead

    def peek_second(self) -> Token:
        """The token after the next one."""
        return self.after(self.peek())

    def after(self, token: Token) -> Token:
        return self._scan(token.end)

    def take(self) -> Token:
        token = self.peek()
        self.offset = token.end
        return token

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return ProfileRefused(code, reason, self.text, offset, expected)

    def _scan(self, offset: int) -> Token:
        offset = self._after_space(offset)
        if offset == len(self.text):
            return Token(TokenKind.END, "", offset, offset)
        match = _TOKEN.match(self.text, offset)
        if match is None:
            self._refuse_character(offset)
        kind = TokenKind[str(match.lastgroup).upper()]
        if kind is TokenKind.NUMBER and re.match(
            f"[{_START}]", self.text[match.end() : match.end() + 1]
        ):
            raise self.refusal(
                "syntax",
                f"a number runs into a name at '{self.text[match.end()]}'",
                match.end(),
                "white space or an operator after the number",
            )
        return Token(kind, match[str(match.lastgroup)], offset, match.end())

    def _after_space(self, offset: int) -> int:
        while True:
            match = _WHITE_SPACE.match(self.text, offset)
            offset = match.end() if match else offset
            if not self.text.startswith("(:", offset):
                return offset
            offset = self._after_comment(offset)

    def _after_comment(self, start: int) -> int:
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.text, start):
            depth += 1 if edge[0] == "(:" else -1
            if depth == 0:
                return edge.end()
        raise self.refusal("syntax", "this comment is not closed", start, "':)'")

    def _refuse_character(self, offset: int) -> NoReturn:
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
                "syntax", "this string is not closed", offset, f"a closing {character}"
            )
        if character == "$":
            raise self.refusal("syntax", "'$' without a name", offset, "the name of a variable")
        raise self.refusal("syntax", f"'{character}' has no meaning here", offset)


def is_ncname(text: str) -> bool:
    """Whether ``text`` is a name without a prefix."""
    return re.fullmatch(NCNAME, text) is not None
