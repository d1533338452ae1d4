"""Text of a profile -> tokens, one at a time.

XQuery has no tokens of its own: inside a direct constructor characters count, elsewhere white
space and ``(: comments :)`` do not.  So the lexer scans from an offset when asked, and the parser
of constructors moves the offset itself.
"""

from __future__ import annotations

import re
from typing import NoReturn

from formats.characters import NAME, NAME_START, find_illegal_character
from yfilter.errors import ProfileRefused
from yfilter.language.tokens import Token, TokenKind, TokenLexer

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
