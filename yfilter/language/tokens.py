"""Tokens of a profile's text, whatever language it is in, and what all its parsers do with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar, NamedTuple, NoReturn, TypeVar

from formats.characters import shown
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
