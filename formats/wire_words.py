"""WireWords: the strings and names that have a number on a link, which heads are made of.

Beside a Dictionary's own it knows the names that were in order before, whoever's they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.known_names import KnownNames
from formats.name_table import NameTable


class WireWords:
    """``names`` and ``strings`` by number, and the numbers by them."""

    def __init__(self, strings: Sequence[str], names: Sequence[tuple[str, str]]) -> None:
        self.strings = strings
        self.string_numbers = {word: number for number, word in enumerate(strings)}
        self.names = names  # namespace, local name
        self.name_numbers = {name: number for number, name in enumerate(names)}
        self.name_count = len(names)
        self.known_names = KnownNames()
        self.name_table = NameTable() if not names else None  # made for names without a number
