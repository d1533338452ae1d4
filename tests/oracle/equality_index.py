"""EqualityIndex: which of many values a value equals, without looking at each of them.

Values are compared as a general comparison does (atoms.py): untyped with untyped or a string as
strings, a number with an untyped value as xs:double.  So a value is entered by its text, and what
is a number, or may be read as one, by that number::

    Untyped("5.0")    by text "5.0" and by number 5.0
    5                 by number 5.0

An index that cannot say something exactly says None, and pairs are looked at instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from yfilter.language.atoms import is_number, to_double
from yfilter.language.nodes import Atom, Untyped
from yfilter.language.numbers import parse_double

FEW = 8  # so many items are looked at one by one

_EXACT_MAX = 1 << 53


class EqualityIndex:
    """Places by the values that were entered there."""

    def __init__(self, entries: Iterable[tuple[int, Iterable[Atom]]]) -> None:
        self._is_exact = True  # whether all that was entered can be found
        self._by_text: dict[str, list[int]] = {}
        self._by_number: dict[float, list[int]] = {}
        self._untyped: dict[float, list[int]] | None = None
        self._typed_texts: set[str] = set()
        for place, atoms in entries:
            for atom in atoms:
                self._enter(atom, place)

    def places(self, atoms: Iterable[Atom]) -> list[int] | None:
        """Where a value is that equals one of these, in order; None if that cannot be told."""
        if not self._is_exact:
            return None
        found: list[list[int]] = []
        for atom in atoms:
            lists = self._lists(atom)
            if lists is None:
                return None
            found += lists
        if len(found) == 1:
            return found[0]
        return sorted({place for places in found for place in places})

    def first(self, atoms: Iterable[Atom]) -> int | None:
        """The first such place, -1 for none; None if that cannot be told."""
        if not self._is_exact:
            return None
        least = -1
        for atom in atoms:
            lists = self._lists(atom)
            if lists is None:
                return None
            for places in lists:
                least = places[0] if least < 0 else min(least, places[0])
        return least

    def _enter(self, atom: Atom, place: int) -> None:
        if isinstance(atom, str):
            _append(self._by_text, str(atom), place)
            if not isinstance(atom, Untyped):
                self._typed_texts.add(str(atom))
        elif _is_exact(atom):
            if not isnan(number := to_double(atom)):
                _append(self._by_number, number, place)
        else:
            self._is_exact = False

    def _lists(self, atom: Atom) -> list[list[int]] | None:
        if isinstance(atom, str):
            found = [self._by_text[atom]] if atom in self._by_text else []
            if self._by_number and isinstance(atom, Untyped):
                number = parse_double(atom)
                if number is not None and number in self._by_number:
                    found.append(self._by_number[number])
            return found
        is_comparable = _is_exact(atom) or (is_number(atom) and not self._by_number)
        if not is_comparable or self._typed_texts:
            return None
        number = to_double(atom)
        return [places[number] for places in (self._by_number, self._read()) if number in places]

    def _read(self) -> dict[float, list[int]]:
        """The untyped values that are numbers, by those."""
        if self._untyped is None:
            self._untyped = {}
            for text, places in self._by_text.items():
                number = parse_double(text)
                if number is not None and not isnan(number):
                    self._untyped[number] = sorted({*self._untyped.get(number, ()), *places})
        return self._untyped


def _is_exact(atom: Atom) -> bool:
    """Whether it is a number that loses nothing as xs:double."""
    return is_number(atom) and (
        isinstance(atom, float) or (isinstance(atom, int) and abs(atom) < _EXACT_MAX)
    )


def _append(places: dict[str, list[int]] | dict[float, list[int]], key: object, place: int) -> None:
    known = places.setdefault(key, [])  # type: ignore[arg-type]
    if not known or known[-1] != place:
        known.append(place)
