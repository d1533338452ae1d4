"""What XML 1.0 (fifth edition) allows in names and values.

The parser has this from expat; the binary decoder and the writer ask here, so that neither hostile
bytes nor a computed result can become a text that no XML parser reads.
"""

from __future__ import annotations

import re
import unicodedata

# In a class of a regular expression.
NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME = NAME_START + "\\-.0-9\u00b7\u0300-\u036f\u203f\u2040"
_COLONLESS_NAME = re.compile(f"[{NAME_START}][{NAME}]*")
_NAME_START_CHARACTER = re.compile(f"[{NAME_START}]")
_NAME_CHARACTERS = re.compile(f"[{NAME}]*")
# An XML declaration that says UTF-8, or nothing, of the encoding.
UTF_8_DECLARATION = re.compile(
    rb"""<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"1\.0"|'1\.0')"""
    rb"""(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"(?i:utf-?8)"|'(?i:utf-?8)'))?"""
    rb"""(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?"""
    rb"""[ \t\r\n]*\?>"""
)
_NO_CHARACTER = re.compile(b"\xef\xbf[\xbe\xbf]")  # U+FFFE, U+FFFF
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_SAFELY_SHOWN = frozenset(map(chr, range(0x20, 0x7F)))


def shown(text: str) -> str:
    """A text in a refusal, in quotation marks; characters that nobody sees, or takes for others, by
    number and name."""
    odd = [each for each in text if each not in _SAFELY_SHOWN and not _is_letter(each)]
    if not odd:
        return f"'{text}'"
    names = ", ".join(
        f"U+{ord(each):04X} {unicodedata.name(each, '')}".rstrip() for each in dict.fromkeys(odd)
    )
    if len(odd) == len(text) == 1:
        return names
    return f"'{''.join('?' if each in odd else each for each in text)}' with {names}"


def _is_letter(character: str) -> bool:
    return character.isalnum() and unicodedata.normalize("NFKC", character) == character


def is_colonless_name(value: str) -> bool:
    """Whether this is an NCName: a prefix, or the local part of a qualified name."""
    return _COLONLESS_NAME.fullmatch(value) is not None


def colonless_ending(value: str) -> int:
    """Where the longest ending that is an NCName begins; the length if there is none."""
    run = _NAME_CHARACTERS.match(value[::-1])
    assert run is not None
    found = _NAME_START_CHARACTER.search(value, len(value) - run.end())
    return found.start() if found else len(value)


def find_illegal_character(value: str) -> int:
    """The index of the first character that XML cannot carry at all, or -1."""
    found = _ILLEGAL.search(value)
    return found.start() if found else -1


def is_utf_8(data: bytes) -> bool:
    """Whether all bytes from 0x80 are UTF-8, of characters that XML can carry."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\xef\xbf" not in data or _NO_CHARACTER.search(data) is None


def is_comment(value: str) -> bool:
    """Whether this can stand between ``<!--`` and ``-->`` and be read back as it is.

    A carriage return cannot: a parser reads it as a line feed.
    """
    return not (
        "--" in value or value.endswith("-") or "\r" in value or find_illegal_character(value) >= 0
    )


def is_processing_instruction(target: str, data: str) -> bool:
    """Whether ``<?target data?>`` is read back as it is; see is_comment."""
    return (
        is_colonless_name(target)
        and target.lower() != "xml"
        and data[:1] not in {" ", "\t", "\n"}
        and "?>" not in data
        and "\r" not in data
        and find_illegal_character(data) < 0
    )
