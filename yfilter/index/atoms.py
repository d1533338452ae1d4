# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Atoms: the comparisons that stand in profiles, each once.

An *equality* ``@name = "value"`` is found by hashing the bytes of a value as they stand in the
message; that with a number, ``@name = 9``, by the number that they say, since ``9.0`` equals it,
too.  Its value is ``number_key``, which is no text's.  A *range* is what all comparisons ``@name <
number`` of one attribute and operator have in common; their numbers stand with the profiles, in
order, each kept once.

An atom is a row of ATOM_WIDTH numbers in ``atoms``, 32 bytes::

    ATTRIBUTE           whose values it is about
    HASH                of attribute and value
    PLACE, LENGTH       of the value in ``octets``; of a range the operator, and -1
    USERS               how many hold it; a free row has none
    FIRST_EDGE, EDGES   the first node of the trie on an edge of it, and how many there are
    SEEN                where it was met last (see message_view.py)

``contains`` and its like are atoms with keys of their own, which are found by text_tests.py.

Equalities of one attribute stand in an open-addressing table together with all others.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

import struct
from array import array
from typing import Protocol, cast

from yfilter.index.columns import doubles, grown, ints, longs, octets
from yfilter.language.numbers import number_text

if cython.compiled:
    from cython.cimports.yfilter.index.value_hash import value_hash
else:
    from yfilter.index.value_hash import value_hash

if not cython.compiled:
    ATOM_ATTRIBUTE, ATOM_HASH, ATOM_PLACE, ATOM_LENGTH, ATOM_USERS = range(5)
    ATOM_FIRST_EDGE, ATOM_EDGES, ATOM_SEEN, ATOM_WIDTH = range(5, 9)

    ATOM_BITS = 24

    LESS, AT_MOST, GREATER, AT_LEAST = range(1, 5)
    RANGES = 4

    TEXT_TEST, NUMBER_KEY = 0xFE, 0xFF
    CONTAINS, STARTS_WITH, ENDS_WITH, MATCHES = range(1, 5)

# The key of a text test: TEXT_TEST, its kind, the text; at most TEXT_MAX octets of it.
TEXT_TESTS = {
    "contains": CONTAINS,
    "starts-with": STARTS_WITH,
    "ends-with": ENDS_WITH,
    "matches": MATCHES,
}
TEXT_MAX = 64

_SEED = hash("yfilter.index.atoms") & 0xFFFFFFFFFFFF


class TextTestTable(Protocol):
    """Who finds text tests in values: see text_tests.py."""

    def add(self, attribute: int, key: bytes, atom: int) -> int: ...
    def remove(self, attribute: int, key: bytes) -> int: ...


class AtomTable:
    """Equalities, ranges and numbers, with a count of users each.

    ``equalities`` of an attribute counts those with a text, ``number_equalities`` those with a
    number, ``tests`` those that ``text_tests`` finds; ``length_max`` is the longest text ever among
    them (longer ones of a message need not be hashed).  ``ranges`` of ``attribute * RANGES +
    operator - 1`` is the range, 0 where there is none, and ``range_counts`` how many an attribute
    has; ``numbers`` are the doubles that ranges
    compare with.
    """

    def __init__(self) -> None:
        self.atoms = ints(ATOM_WIDTH * 64)
        self.octets = octets(256)
        self.length_max = ints(16)
        self.equalities = ints(16)
        self.number_equalities = ints(16)
        self.tests = ints(16)
        self.ranges = ints(16 * RANGES)
        self.range_counts = ints(16)
        self.numbers = doubles(64)
        self._slots = longs(64)  # tag << 32 | atom, or 0
        self._bound = 1
        self._count = 0
        self._octets_used = 0
        self._octets_free = 0
        self._free_atoms: list[int] = []
        self._free_octets: dict[int, list[int]] = {}
        self._number_of: dict[float, int] = {}
        self._number_users: list[int] = []
        self._free_numbers: list[int] = []
        self._seed = _SEED
        self.text_tests: TextTestTable | None = None
        self._touched = 0
        self._which = ints(256)
        self._slot = array("I", bytes(4 * 256))
        self._hash = array("I", bytes(4 * 256))
        # From 7 on: number_key of the second double.
        self._key = self._key_bytes = bytearray(b"\xff" * 16)
        self._double = cast("array[float]", memoryview(self._key_bytes).cast("d"))

    def find_all(
        self,
        values: cython.p_const_uchar,
        attributes: cython.int[::1],
        offsets: cython.int[::1],
        count: cython.int,
        found: cython.int[::1],
    ) -> cython.int:
        """Set ``found`` to the equality of each of ``count`` values that lie end to end, or to 0.

        ``attributes`` has the attribute of each, or 0 where nobody asks for it.
        """
        # PERF: each loop is of cache misses that do not wait for each other.
        slots: cython.longlong[::1] = self._slots
        mask: cython.uint = len(slots) - 1
        low: cython.longlong = 0xFFFFFFFF
        attribute: cython.int
        hashed: cython.uint
        slot: cython.uint
        tag: cython.longlong
        touched: cython.int = 0
        wanted: cython.int = 0
        kept: cython.int = 0
        i: cython.int
        k: cython.int
        if count > len(self._which):
            self._which = ints(2 * count)
            self._slot = array("I", bytes(8 * count))
            self._hash = array("I", bytes(8 * count))
        for i in range(count):
            found[i] = 0
            attribute = attributes[i]
            if attribute and offsets[i + 1] - offsets[i] <= self.length_max[attribute]:
                hashed = value_hash(self._seed, attribute, values, offsets[i], offsets[i + 1])
                touched ^= slots[hashed & mask] != 0
                self._which[wanted] = i
                self._hash[wanted] = hashed
                wanted += 1
        for k in range(wanted):
            hashed = self._hash[k]
            slot = hashed & mask
            tag = hashed & 0x7FFFFFFF
            while slots[slot] != 0 and slots[slot] >> 32 != tag:
                slot = (slot + 1) & mask
            if slots[slot] != 0:
                touched ^= self.atoms[ATOM_WIDTH * (slots[slot] & low) + ATOM_PLACE]
                self._which[kept] = self._which[k]
                self._hash[kept] = hashed
                self._slot[kept] = slot
                kept += 1
        for k in range(kept):
            touched ^= self.octets[
                self.atoms[ATOM_WIDTH * (slots[self._slot[k]] & low) + ATOM_PLACE]
            ]
        self._touched = touched
        for k in range(kept):
            i = self._which[k]
            found[i] = self._find_from(
                self._slot[k], attributes[i], values, offsets[i], offsets[i + 1], self._hash[k]
            )
        return 0

    def find(
        self,
        attribute: cython.int,
        values: cython.p_const_uchar,
        first: cython.int,
        last: cython.int,
    ) -> cython.int:
        """The equality of an attribute with ``values[first:last]``, or 0."""
        hashed: cython.uint = value_hash(self._seed, attribute, values, first, last)
        slot: cython.uint = hashed & (len(self._slots) - 1)
        return self._find_from(slot, attribute, values, first, last, hashed)

    def find_number(self, attribute: cython.int, number: cython.double) -> cython.int:
        """The equality of an attribute with a number, which is not NaN, or 0."""
        self._double[1] = number + 0.0  # of 0 and -0 the first
        return self.find(attribute, self._key, 7, 16)

    def _find_from(
        self,
        slot: cython.uint,
        attribute: cython.int,
        values: cython.p_const_uchar,
        first: cython.int,
        last: cython.int,
        hashed: cython.uint,
    ) -> cython.int:
        """The same, from a slot on that is on its way."""
        atom: cython.longlong
        i: cython.int
        place: cython.int
        length: cython.int = last - first
        mask: cython.uint = len(self._slots) - 1
        low: cython.longlong = 0xFFFFFFFF
        tag: cython.longlong = hashed & 0x7FFFFFFF
        while self._slots[slot] != 0:
            if self._slots[slot] >> 32 == tag:
                atom = self._slots[slot] & low
                if (
                    self.atoms[ATOM_WIDTH * atom + ATOM_ATTRIBUTE] == attribute
                    and self.atoms[ATOM_WIDTH * atom + ATOM_LENGTH] == length
                ):
                    place = self.atoms[ATOM_WIDTH * atom + ATOM_PLACE]
                    i = 0
                    while i < length and self.octets[place + i] == values[first + i]:
                        i += 1
                    if i == length:
                        return atom
            slot = (slot + 1) & mask
        return 0

    def acquire(self, attribute: cython.int, value: bytes) -> cython.int:
        """The equality of an attribute with a text in UTF-8 or ``number_key``; see ``release``."""
        atom: cython.int
        row: cython.int
        i: cython.int
        place: cython.int
        length: cython.int = len(value)
        hashed: cython.uint
        slot: cython.uint
        values: cython.p_const_uchar = value
        self.cover(attribute)
        atom = self.find(attribute, values, 0, length)
        if atom:
            self.atoms[ATOM_WIDTH * atom + ATOM_USERS] += 1
            return atom
        if 2 * (self._count + 1) > len(self._slots):
            self._rehash(2 * len(self._slots))
        atom = self._new_atom()
        place = self._place_for(length)
        for i in range(length):
            self.octets[place + i] = values[i]
        row = ATOM_WIDTH * atom
        hashed = value_hash(self._seed, attribute, values, 0, length)
        self.atoms[row + ATOM_ATTRIBUTE] = attribute
        self.atoms[row + ATOM_HASH] = hashed & 0x7FFFFFFF
        self.atoms[row + ATOM_PLACE] = place
        self.atoms[row + ATOM_LENGTH] = length
        if _is_number(value):
            self.number_equalities[attribute] += 1
        elif value[:1] == b"\xfe":
            self.tests[attribute] += 1
            assert self.text_tests is not None
            self.text_tests.add(attribute, value, atom)
        else:
            self.equalities[attribute] += 1
            self.length_max[attribute] = max(self.length_max[attribute], length)
        self._count += 1
        slot = hashed & (len(self._slots) - 1)
        while self._slots[slot] != 0:
            slot = (slot + 1) & (len(self._slots) - 1)
        self._slots[slot] = _entry(hashed, atom)
        return atom

    def acquire_range(self, attribute: cython.int, operator: cython.int) -> cython.int:
        """The range of an attribute and an operator; ``release`` undoes it."""
        atom: cython.int
        self.cover(attribute)
        atom = self.ranges[attribute * RANGES + operator - 1]
        if atom:
            self.atoms[ATOM_WIDTH * atom + ATOM_USERS] += 1
            return atom
        atom = self._new_atom()
        self.ranges[attribute * RANGES + operator - 1] = atom
        self.range_counts[attribute] += 1
        self.atoms[ATOM_WIDTH * atom + ATOM_ATTRIBUTE] = attribute
        self.atoms[ATOM_WIDTH * atom + ATOM_PLACE] = operator
        self.atoms[ATOM_WIDTH * atom + ATOM_LENGTH] = -1
        return atom

    def release(self, atom: cython.int) -> cython.int:
        """Take back one use; gives the attribute whose atom is gone by that, or 0."""
        row: cython.int = ATOM_WIDTH * atom
        attribute: cython.int = self.atoms[row + ATOM_ATTRIBUTE]
        self.atoms[row + ATOM_USERS] -= 1
        if self.atoms[row + ATOM_USERS] > 0:
            return 0
        if self.atoms[row + ATOM_LENGTH] < 0:
            self.ranges[attribute * RANGES + self.atoms[row + ATOM_PLACE] - 1] = 0
            self.range_counts[attribute] -= 1
        else:
            self._unlink(atom)
            if (
                self.octets[self.atoms[row + ATOM_PLACE]] == NUMBER_KEY
                and self.atoms[row + ATOM_LENGTH]
            ):
                self.number_equalities[attribute] -= 1
            elif (
                self.octets[self.atoms[row + ATOM_PLACE]] == TEXT_TEST
                and self.atoms[row + ATOM_LENGTH]
            ):
                self.tests[attribute] -= 1
                assert self.text_tests is not None
                self.text_tests.remove(attribute, self._value(atom))
            else:
                self.equalities[attribute] -= 1
                if self.equalities[attribute] == 0:
                    self.length_max[attribute] = 0
            self._free_octets.setdefault(_rounded(self.atoms[row + ATOM_LENGTH]), []).append(
                self.atoms[row + ATOM_PLACE]
            )
            self._octets_free += _rounded(self.atoms[row + ATOM_LENGTH])
            self._count -= 1
        self.atoms[row + ATOM_ATTRIBUTE] = 0
        self._free_atoms.append(atom)
        return attribute

    def acquire_number(self, value: cython.double) -> cython.int:
        """The place of a double in ``numbers``; not NaN."""
        number: cython.int
        known = self._number_of.get(value)
        if known is not None:
            self._number_users[known] += 1
            return known
        if self._free_numbers:
            number = self._free_numbers.pop()
            self._number_users[number] = 1
        else:
            number = len(self._number_users)
            self._number_users.append(1)
            if number >= len(self.numbers):
                self.numbers = grown(self.numbers, 2 * number)
        self.numbers[number] = value
        self._number_of[value] = number
        return number

    def release_number(self, number: cython.int) -> cython.int:
        self._number_users[number] -= 1
        if not self._number_users[number]:
            del self._number_of[self.numbers[number]]
            self._free_numbers.append(number)
        return 0

    def cover(self, attribute: cython.int) -> cython.int:
        """Make the columns long enough for an attribute's number."""
        if attribute >= len(self.equalities):
            size = 2 * attribute
            self.equalities = grown(self.equalities, size)
            self.number_equalities = grown(self.number_equalities, size)
            self.tests = grown(self.tests, size)
            self.length_max = grown(self.length_max, size)
            self.ranges = grown(self.ranges, size * RANGES)
            self.range_counts = grown(self.range_counts, size)
        return 0

    def constants(self, attribute: cython.int) -> cython.int:
        """How many texts and numbers an attribute is to be equal to."""
        if attribute >= len(self.equalities):
            return 0
        return (
            self.equalities[attribute] + self.number_equalities[attribute] + self.tests[attribute]
        )

    def is_range(self, atom: cython.int) -> cython.bint:
        return self.atoms[ATOM_WIDTH * atom + ATOM_LENGTH] < 0

    def describe(self, atom: int) -> str:
        """For people."""
        if self.is_range(atom):
            return ("<", "<=", ">", ">=")[
                self.atoms[ATOM_WIDTH * atom + ATOM_PLACE] - 1
            ] + " number"
        key = self._value(atom)
        if _is_number(key):
            (number,) = struct.unpack_from("=d", key, 1)
            return f"= {number_text(number)}"
        if key[:1] == b"\xfe":
            name = next(name for name, kind in TEXT_TESTS.items() if kind == key[1])
            return f'{name} "{key[2:].decode()}"'
        return f'= "{key.decode()}"'

    def value(self, atom: int) -> str:
        """The text of an equality that has one."""
        return self._value(atom).decode()

    @property
    def bound(self) -> int:
        """All atoms are below."""
        return self._bound

    def statistics(self) -> dict[str, int]:
        return {"index_atoms": self._bound - 1 - len(self._free_atoms)}

    def size_bytes(self) -> int:
        return (
            4 * (len(self.atoms) + 2 * len(self._slots) + 8 * len(self.equalities))
            + len(self.octets)
            + 8 * len(self.numbers)
        )

    def used_bytes(self) -> int:
        atoms = self._bound - 1 - len(self._free_atoms)
        return 32 * atoms + 16 * self._count + self._octets_used - self._octets_free

    def _value(self, atom: int) -> bytes:
        place, length = (
            self.atoms[ATOM_WIDTH * atom + ATOM_PLACE],
            self.atoms[ATOM_WIDTH * atom + ATOM_LENGTH],
        )
        return bytes(self.octets[place + i] for i in range(length))

    def _new_atom(self) -> cython.int:
        atom: cython.int
        i: cython.int
        if self._free_atoms:
            atom = self._free_atoms.pop()
        else:
            atom = self._bound
            if ATOM_WIDTH * (atom + 1) > len(self.atoms):
                self.atoms = grown(self.atoms, ATOM_WIDTH * (atom + atom // 2 + 8))
            self._bound = atom + 1
        for i in range(ATOM_WIDTH):
            self.atoms[ATOM_WIDTH * atom + i] = 0
        self.atoms[ATOM_WIDTH * atom + ATOM_USERS] = 1
        return atom

    def _place_for(self, length: cython.int) -> cython.int:
        """Room for a value; rooms are multiples of 8 bytes."""
        place: cython.int
        room: cython.int = _rounded(length)
        free = self._free_octets.get(room)
        if free:
            self._octets_free -= room
            place = free.pop()
            if not free:
                del self._free_octets[room]
            return place
        place = self._octets_used
        if place + room > len(self.octets):
            self.octets = grown(self.octets, (place + room) * 3 // 2)
        self._octets_used = place + room
        return place

    def _rehash(self, capacity: cython.int) -> cython.int:
        atom: cython.int
        slot: cython.uint
        hashed: cython.uint
        mask: cython.uint = capacity - 1
        self._slots = longs(capacity)
        for atom in range(1, self._bound):
            if (
                self.atoms[ATOM_WIDTH * atom + ATOM_USERS] > 0
                and self.atoms[ATOM_WIDTH * atom + ATOM_LENGTH] >= 0
            ):
                hashed = self.atoms[ATOM_WIDTH * atom + ATOM_HASH]
                slot = hashed & mask
                while self._slots[slot] != 0:
                    slot = (slot + 1) & mask
                self._slots[slot] = _entry(hashed, atom)
        return 0

    def _unlink(self, atom: cython.int) -> cython.int:
        """Take an equality out of the table, and close the hole."""
        mask: cython.uint = len(self._slots) - 1
        hole: cython.uint = self.atoms[ATOM_WIDTH * atom + ATOM_HASH]
        slot: cython.uint
        home: cython.uint
        low: cython.longlong = 0xFFFFFFFF
        hole = hole & mask
        while self._slots[hole] & low != atom:
            hole = (hole + 1) & mask
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            home = (self._slots[slot] >> 32) & mask
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        return 0


def number_key(number: float) -> bytes:
    """The value of an equality with a number: an octet that no UTF-8 has, and the double."""
    return b"\xff" + struct.pack("=d", number + 0.0)


def test_key(name: str, text: str) -> bytes:
    """The key of a text test, by the name of its function."""
    return bytes((TEXT_TEST, TEXT_TESTS[name])) + text.encode()


def _is_number(key: bytes) -> bool:
    return key[:1] == b"\xff"


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _entry(hashed: cython.uint, atom: cython.int) -> cython.longlong:
    tag: cython.longlong = hashed & 0x7FFFFFFF
    return tag << 32 | atom


def _rounded(length: int) -> int:
    return (length + 7) // 8 * 8
