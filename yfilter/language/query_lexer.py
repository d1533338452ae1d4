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
NAME_CHARACTERS = f"{_START}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"  # in a class
NCNAME = f"[{_START}][{NAME_CHARACTERS}]*"


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
        if self.kind is TokenKind.STRING:
            return f"the string {self.text}"
        return f"'${self.text}'" if self.kind is TokenKind.VARIABLE else f"'{self.text}'"


# One token with the white space before it; its groups are in the order of _KINDS.
_TOKEN = re.compile(
    rf"""[ \t\n]*
      (?:(Q\{{[^{{}}]*\}}(?:{NCNAME}|\*)
          | (?:{NCNAME}|\*):(?:{NCNAME}|\*)
          | {NCNAME})
      | \$[ \t\n]*(Q\{{[^{{}}]*\}}{NCNAME}|{NCNAME}(?::{NCNAME})?)
      | ((?>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![{_START}]))
      | ("[^"]*(?:""[^"]*)*"|'[^']*(?:''[^']*)*')
      | (//|/|\.\.|\.|::|:=|!=|<=|>=|<<|>>|=>|==|=<|<>|&&|\|\||\((?!:)|[][){{}},@*=<>|+;!?-]))
    """,
    re.VERBOSE,
)
_KINDS = (
    TokenKind.END,
    TokenKind.NAME,
    TokenKind.VARIABLE,
    TokenKind.NUMBER,
    TokenKind.STRING,
    TokenKind.SYMBOL,
)
_NUMBER_AND_NAME = re.compile(rf"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?([{_START}])")
WHITE_SPACE = re.compile(r"[ \t\n]*")
_COMMENT_EDGE = re.compile(r"\(:|:\)")
_TYPOGRAPHIC_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"


class Lexer:
    """Scans ``text`` from ``offset``; what was looked at ahead is not scanned again."""

    __slots__ = ("_ahead", "_offset", "_scanned", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._offset = 0
        self._ahead: Token | None = None
        self._scanned: dict[int, Token] = {}  # by where they were looked for

    @property
    def offset(self) -> int:
        """Where the next token is looked for."""
        return self._offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self._offset = offset
        self._ahead = None

    def peek(self) -> Token:
        token = self._ahead
        if token is None:
            token = self._ahead = self._scanned.get(self._offset) or self._scan(self._offset)
        return token

    def peek_second(self) -> Token:
        """The token after the next one."""
        end = self.peek().end
        return self._scanned.get(end) or self._scan(end)

    def after(self, token: Token) -> Token:
        return self._scanned.get(token.end) or self._scan(token.end)

    def take(self) -> Token:
        token = self.peek()
        self._offset = token.end
        self._ahead = None
        return token

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return ProfileRefused(code, reason, self.text, offset, expected)

    def _scan(self, offset: int) -> Token:
        match = _TOKEN.match(self.text, offset)
        if match is not None:
            group = match.lastindex or 0
            start = match.start(group)
            if group == 2:
                start = self.text.rindex("$", offset, start)
            # PERF: what Token(…) does, without its frame.
            token = tuple.__new__(Token, (_KINDS[group], match[group], start, match.end()))
        else:
            after_space = self._after_space(offset)
            if after_space == len(self.text):
                token = Token(TokenKind.END, "", after_space, after_space)
            elif self.text.startswith("(:", offset) or after_space > offset:
                token = self._scan(after_space)
            else:
                self._refuse_character(offset)
        self._scanned[offset] = token
        return token

    def _after_space(self, offset: int) -> int:
        while True:
            match = WHITE_SPACE.match(self.text, offset)
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
        number = _NUMBER_AND_NAME.match(self.text, offset)
        if number is not None:
            raise self.refusal(
                "syntax",
                f"a number runs into a name at '{number[1]}'",
                number.start(1),
                "white space or an operator after the number",
            )
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
