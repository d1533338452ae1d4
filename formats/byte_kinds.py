"""What a byte of XML in UTF-8 may be, as bits: the table that the scanner runs on.

Bytes from 0x80 count as plain in every value, since the scanner knows before that the whole is
UTF-8, and as nothing in names, since names beyond ASCII are not ordinary.
"""

from __future__ import annotations

import string

NAME_START = 0x01  # the first character of a name
NAME = 0x02  # the others, without the colon
SPACE = 0x04
# Plain: stands for itself and ends nothing, in
TEXT = 0x08
CDATA = 0x10
COMMENT = 0x20  # and processing instructions
DOUBLE_QUOTED = 0x40
SINGLE_QUOTED = 0x80

_VALUES = TEXT | CDATA | COMMENT | DOUBLE_QUOTED | SINGLE_QUOTED


def _byte_kinds() -> bytes:
    kinds = [0] * 0x20 + [_VALUES] * 0xE0
    for characters, are in (
        ("\t\n", TEXT | CDATA | COMMENT),
        (" \t\r\n", SPACE),
        (string.ascii_letters + "_", NAME_START | NAME),
        (string.digits + "-.", NAME),
    ):
        for character in characters:
            kinds[ord(character)] |= are
    for characters, are_not in (
        ("<&", TEXT | DOUBLE_QUOTED | SINGLE_QUOTED),
        ("]", TEXT | CDATA),
        ("-?", COMMENT),
        ('"', DOUBLE_QUOTED),
        ("'", SINGLE_QUOTED),
    ):
        for character in characters:
            kinds[ord(character)] &= ~are_not
    return bytes(kinds)


BYTE_KINDS = _byte_kinds()
