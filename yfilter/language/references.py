"""Character and entity references, as they stand in string literals and constructors."""

from __future__ import annotations

import re

from formats.characters import find_illegal_character
from yfilter.errors import ProfileRefused

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
