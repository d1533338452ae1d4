"""Columns of numbers on the wire: the narrowest width that holds them all, little-endian."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from itertools import pairwise

NUMBER_MAX = 2**31 - 1  # what array('i') holds
_TYPECODES = {1: "B", 2: "H", 4: "I"}


def width_of(highest: int) -> int:
    """Bytes per entry of a column whose largest entry this is."""
    if highest < 0x100:
        return 1 if highest else 0
    return 2 if highest < 0x10000 else 4


def write_column(values: Iterable[int]) -> bytes:
    entries = list(values)
    width = width_of(max(entries, default=0))
    if not width:
        return b"\x00"
    column = array(_TYPECODES[width], entries)
    if sys.byteorder == "big":
        column.byteswap()
    return bytes((width,)) + column.tobytes()


def read_entries(run: bytes, width: int) -> list[int]:
    """The entries of a column of width 1, 2 or 4."""
    entries = array(_TYPECODES[width], run)
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tolist()


def write_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def differences(values: Iterable[int]) -> list[int]:
    return [after - before for before, after in pairwise(values)]
