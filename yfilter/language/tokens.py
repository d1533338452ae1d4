"""Tokens of a profile's text, whatever language it is in, and what all its parsers do with them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, NamedTuple, NoReturn, TypeVar

from formats.characters import NAME, NAME_START, find_illegal_character, shown
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import ProfileLimits

_TYPOGRAPHIC_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
Read = TypeVar("Read")


class TokenKind(Enum):
    NAME = "a name"  # name, p:name, p:*, *:name, Q{uri}name, Q{uri}*; in SPARQL with a prefix
    VARIABLE = "a variable"
    STRING = "a string"
    NUMBER = "a number"
    SYMBOL = "a symbol"
    END = "the end"
    # of SPARQL alone
    IRI = "an IRI in < >"
    BLANK = "a blank node"
    LANGUAGE = "a language tag"
    WORD = "a word"


class Token(NamedTuple):
    """``text`` as written, without what marks a variable; it stands at ``offset`` up to ``end``."""

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
        return f"'${self.text}'" if self.kind is TokenKind.VARIABLE else shown(self.text)


class TokenLexer(ABC):
    """Scans ``text`` from an offset on; what was looked at ahead is not scanned again."""

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
            offset = self._offset
            token = self._ahead = self._scanned.get(offset) or self._scan(offset)
        return token

    def after(self, token: Token) -> Token:
        return self._scanned.get(token.end) or self._scan(token.end)

    def peek_second(self) -> Token:
        """The token after the next one."""
        end = self.peek().end
        return self._scanned.get(end) or self._scan(end)

    def take(self) -> Token:
        token = self.peek()
        self._offset = token.end
        self._ahead = None
        return token

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return ProfileRefused(code, reason, self.text, offset, expected)

    @abstractmethod
    def _scan(self, offset: int) -> Token:
        """The token that is looked for there, noted; ProfileRefused."""

    def _refuse_character(
        self, offset: int, open_string: tuple[str, str], expected: str
    ) -> NoReturn:
        """``open_string``: reason and expected where a quotation mark begins no string."""
        character = self.text[offset]
        if character in _TYPOGRAPHIC_QUOTES:
            reason = f"'{character}' is a typographic quotation mark"
            expected = "a straight quotation mark, \" or '"
        elif character in "\"'":
            reason, expected = open_string
        elif character == "$":
            reason, expected = "'$' without a name", "the name of a variable"
        else:
            reason = f"{shown(character)} has no meaning here"
        raise self.refusal("syntax", reason, offset, expected)


class TokenParser(ABC):
    """Recursive descent over a lexer."""

    lexer: TokenLexer
    word_form: ClassVar[str]  # how messages write a word of the language

    def __init__(self, limits: ProfileLimits) -> None:
        self.limits = limits
        self._depth = 0

    @abstractmethod
    def meant(self, token: Token, expected: str) -> str:
        """What an unexpected token may have been meant for, or ``expected``."""

    def enter(self, token: Token) -> None:
        """One level of nesting begins at ``token``; ``leave`` ends it."""
        self._depth += 1
        if self._depth > self.limits.depth_max:
            what = f"nested more than {self.limits.depth_max} deep"
            raise self.refusal("too-deep", what, token.offset)

    def leave(self) -> None:
        self._depth -= 1

    def takes(self, *symbols: str) -> bool:
        """Whether the next token is one of these symbols; then it is taken."""
        token = self.lexer.peek()
        is_there = token.text in symbols and token.kind is TokenKind.SYMBOL
        if is_there:
            self.lexer.take()
        return is_there

    def takes_word(self, *words: str) -> bool:
        is_there = self.lexer.peek().is_word(*words)
        if is_there:
            self.lexer.take()
        return is_there

    def listed(self, read: Callable[[], Read], separator: str = ",") -> list[Read]:
        """One or more."""
        found = [read()]
        while self.takes(separator):
            found.append(read())
        return found

    def expect(self, symbol: str, why: str = "") -> Token:
        token = self.lexer.peek()
        if token.text != symbol or token.kind is not TokenKind.SYMBOL:
            raise self.unexpected(f"'{symbol}'{why}")
        return self.lexer.take()

    def expect_word(self, word: str) -> Token:
        if not self.lexer.peek().is_word(word):
            raise self.unexpected(self.word_form.format(word))
        return self.lexer.take()

    def unexpected(self, expected: str) -> ProfileRefused:
        token = self.lexer.peek()
        reason = f"unexpected {token}"
        return self.refusal("syntax", reason, token.offset, self.meant(token, expected))

    def unsupported(self, what: str, token: Token, instead: str = "") -> ProfileRefused:
        reason = f"{what} not in the profile language"
        return self.refusal("unsupported", reason, token.offset, instead)

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return self.lexer.refusal(code, reason, offset, expected)


# -------------------------------------------------------------------------------------------------
# Text of a profile -> tokens, one at a time.
#
# XQuery has no tokens of its own: inside a direct constructor characters count, elsewhere white
# space and ``(: comments :)`` do not.  So the lexer scans from an offset when asked, and the parser
# of constructors moves the offset itself.


NCNAME = f"[{NAME_START}][{NAME}]*"


NO_FUNCTION_VALUE = "a function is no value in the profile language"
FUNCTIONS_PLACE = "it as an argument of for-each(), filter(), sort() or their like, or a call"

# One token with the white space before it; its groups are in the order of _KINDS.
_TOKEN = re.compile(
    rf"""[ \t\n]*
      (?:(Q\{{[^{{}}]*\}}(?:{NCNAME}|\*)
          | (?:{NCNAME}|\*):(?:{NCNAME}|\*)
          | {NCNAME})
      | \$[ \t\n]*(Q\{{[^{{}}]*\}}{NCNAME}|{NCNAME}(?::{NCNAME})?)
      | ((?>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![{NAME_START}]))
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
_NUMBER_AND_NAME = re.compile(
    rf"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?([{NAME_START}])"
)
WHITE_SPACE = re.compile(r"[ \t\n]*")
_COMMENT_EDGE = re.compile(r"\(:|:\)")


class Lexer(TokenLexer):
    """Scans ``text``."""

    __slots__ = ()

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
                self._refuse(offset)
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

    def _refuse(self, offset: int) -> NoReturn:
        number = _NUMBER_AND_NAME.match(self.text, offset)
        if number is not None:
            what = f"a number runs into a name at '{number[1]}'"
            wanted = "white space or an operator after the number"
            raise self.refusal("syntax", what, number.start(1), wanted)
        if self.text[offset] == "#" and self.text[offset + 1 : offset + 2].isdigit():
            raise self.refusal("unsupported", NO_FUNCTION_VALUE, offset, FUNCTIONS_PLACE)
        open_string = "this string is not closed", f"a closing {self.text[offset]}"
        self._refuse_character(offset, open_string, "")


# -------------------------------------------------------------------------------------------------
# Character and entity references, as they stand in string literals and constructors.


_PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_REFERENCE = re.compile(r"&(?:#([0-9]{1,8})|#x([0-9a-fA-F]{1,8})|([a-z]+));")


def expand_references(text: str, start: int, end: int, doubled: str = "") -> str:
    """``text[start:end]`` with references resolved, and each ``doubled`` pair made one.

    Raises ProfileRefused for a bare ``&`` and for a reference to no character of XML.
    """
    parts: list[str] = []
    position = start
    while (ampersand := text.find("&", position, end)) >= 0:
        parts.append(_undouble(text[position:ampersand], doubled))
        character, position = read_reference(text, ampersand, end)
        parts.append(character)
    parts.append(_undouble(text[position:end], doubled))
    return "".join(parts)


def read_reference(text: str, offset: int, end: int) -> tuple[str, int]:
    """The character that the reference at ``offset`` stands for, and where the text goes on."""
    match = _REFERENCE.match(text, offset, end)
    if match is None:
        raise ProfileRefused(
            "syntax", "'&' does not begin a reference", text, offset, "'&amp;' for the character &"
        )
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        if name not in _PREDEFINED:
            raise ProfileRefused(
                "syntax",
                f"the entity &{name}; is not known",
                text,
                offset,
                "&lt; &gt; &amp; &quot; &apos; or a character reference",
            )
        return _PREDEFINED[name], match.end()
    number = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if number > 0x10FFFF or find_illegal_character(chr(number)) >= 0:
        raise ProfileRefused("syntax", f"{match[0]} is not a character of XML", text, offset)
    return chr(number), match.end()


def _undouble(text: str, doubled: str) -> str:
    return text.replace(doubled * 2, doubled) if doubled else text
