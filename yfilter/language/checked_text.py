"""What every text of a profile has to be before a parser reads it, whatever its language."""

from __future__ import annotations

from formats.characters import find_illegal_character
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import ProfileLimits


def utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def checked_text(text: str, limits: ProfileLimits) -> str:
    """The text without a byte order mark, its line ends normalised; ProfileRefused if it is too
    long, or has a character that cannot stand in XML."""
    if utf8_length(text) > limits.length_max:
        raise ProfileRefused(
            "too-long", f"the profile is longer than {limits.length_max:,} bytes", text
        )
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    illegal = find_illegal_character(text)
    if illegal >= 0:
        raise ProfileRefused(
            "syntax", f"the character U+{ord(text[illegal]):04X} cannot stand in XML", text, illegal
        )
    return text
