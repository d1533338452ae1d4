# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Symbols and labels: name tests and names of messages as small numbers.

A *symbol* is a name test that some path asks for.  A *label* stands for all names that the
symbols cannot tell apart; it is the triple of the symbols that accept them besides ``*``::

    symbols  1 a    2 Q{u}*    3 *:a    0 *          (0 is always there)

    name     a      accepted by 1, 3       label 1 = (1, 0, 3)
             u:a                2, 3       label 2 = (0, 2, 3)
             b                             label 0 = (0, 0, 0)

The automaton moves on labels, which makes one transition of up to four.  The names of a message
are translated once.  A label's number is never used for another triple, so that a new symbol
outdates no transition: names that it accepts get new labels.

Attributes are asked for by full name only.  Numbers below ATTRIBUTES are the two values of an
element that are no attribute: its text nodes and its string value.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array
from typing import TypeAlias

from formats.names import QualifiedName
from yfilter.index.columns import grown, ints
from yfilter.language.query_ast import ANY, NameTest

if cython.compiled:
    from cython.cimports.yfilter.index.edge_bits import edge_bit
else:
    from yfilter.index.edge_bits import edge_bit
    from yfilter.index.trie import EDGE_SHIFT

if not cython.compiled:
    ANY_SYMBOL = 0
    ELSEWHERE = 0  # the label of a name that no symbol but ``*`` accepts

    TEXT_NODE, STRING_VALUE, ATTRIBUTES = range(1, 4)

    KNOWN_ADDRESS, KNOWN_MEANING, KNOWN_WIDTH = range(3)

    SEVERAL = -1  # only_label of a symbol with more labels than one

Name: TypeAlias = "tuple[str, str]"  # as NameTest: namespace, local

_NAMES_REMEMBERED = 100_000
_SLOTS = 2048  # for names that are the same objects; a power of 2


class Numbers:
    """Numbers for name tests, with a count of users each; a number is free again without users."""

    def __init__(self, first: cython.int) -> None:
        self.of: dict[tuple[str, str], int] = {}
        self._users = ints(64)
        self._keys = [NameTest("", "")] * first
        self._free: list[int] = []

    def acquire(self, key: Name) -> cython.int:
        """The number of a key; if it is new, minus the number."""
        number: cython.int
        found = self.of.get(key)
        if found is not None:
            number = found
            self._users[number] += 1
            return number
        test = key if isinstance(key, NameTest) else NameTest(*key)
        if self._free:
            number = self._free.pop()
            self._keys[number] = test
        else:
            number = len(self._keys)
            self._keys.append(test)
            if number >= len(self._users):
                self._users = grown(self._users, 2 * number)
        self._users[number] = 1
        self.of[test] = number
        return -number

    def retain(self, number: cython.int) -> cython.int:
        self._users[number] += 1
        return 0

    def release(self, number: cython.int) -> cython.bint:
        """Whether that was the last user."""
        self._users[number] -= 1
        if self._users[number]:
            return False
        del self.of[self._keys[number]]
        self._free.append(number)
        return True

    def key(self, number: int) -> NameTest:
        return self._keys[number]

    def __len__(self) -> int:
        return len(self.of)


class SymbolTable:
    """Symbols with a count of users each, labels, and the names of one message at a time.

    Columns for the run: ``exact``, ``in_namespace`` and ``any_namespace`` of a label are the
    symbols of its triple, 0 where there is none, ``label_bits`` their edge bits; ``only_label`` of
    a symbol is its label if it has one only, 0 if it has none, else SEVERAL.  ``seen`` of a symbol
    is the index of a name that it accepts in the message translated last, if that name's label has
    the symbol; else it
    was not seen (so that nothing has to be cleared).  ``label``, ``attribute`` and ``first`` are
    about the names of that message: label, attribute number or 0, and the first equal name.
    """

    def __init__(self) -> None:
        self._symbols = Numbers(1)
        self._attributes = Numbers(ATTRIBUTES)
        self._labels: dict[tuple[int, int, int], int] = {}
        self._labels_of: dict[int, list[tuple[int, int, int]]] = {}
        self._next_label = 1
        self._remembered: dict[QualifiedName, tuple[int, int]] = {}
        self._slots = array("Q", bytes(8 * KNOWN_WIDTH * _SLOTS))  # address, meaning
        self._slot_names: list[QualifiedName | None] = [None] * _SLOTS
        self.exact = ints(64)
        self.in_namespace = ints(64)
        self.any_namespace = ints(64)
        self.only_label = ints(64)
        self.label_bits = ints(64)
        self.seen = ints(64)
        self.label = ints(64)
        self.attribute = ints(64)
        self.first = ints(64)

    def acquire(self, test: Name) -> cython.int:
        """The symbol of a name test; ``release`` undoes it."""
        symbol: cython.int
        if test[1] == ANY and test[0] == ANY:
            return 0
        symbol = self._symbols.acquire(test)
        if symbol < 0:
            symbol = -symbol
            if symbol >= len(self.only_label):
                self.only_label = grown(self.only_label, 2 * symbol)
                self.seen = grown(self.seen, 2 * symbol)
            self.only_label[symbol] = 0
            self.seen[symbol] = 0
            self._forget_names()
        return symbol

    def retain(self, symbol: cython.int) -> cython.int:
        if symbol:
            self._symbols.retain(symbol)
        return 0

    def release(self, symbol: cython.int) -> cython.int:
        if symbol and self._symbols.release(symbol):
            self._forget_names()
            for triple in self._labels_of.pop(symbol, ()):
                self._labels.pop(triple, None)
        return 0

    def acquire_attribute(self, test: Name) -> cython.int:
        """The number of an attribute; ``release_attribute`` undoes it."""
        attribute: cython.int = self._attributes.acquire(test)
        if attribute < 0:
            self._forget_names()
            return -attribute
        return attribute

    def retain_attribute(self, attribute: cython.int) -> cython.int:
        if attribute >= ATTRIBUTES:
            self._attributes.retain(attribute)
        return 0

    def release_attribute(self, attribute: cython.int) -> cython.int:
        if attribute >= ATTRIBUTES and self._attributes.release(attribute):
            self._forget_names()
        return 0

    def translate(self, names: list[QualifiedName]) -> cython.int:
        """Set ``label``, ``attribute``, ``first`` and ``seen`` for the names of a message."""
        index: cython.int
        label: cython.int
        exact: cython.int
        name: cython.int
        slot: cython.int
        address: cython.ulonglong
        low: cython.ulonglong = 0xFFFFFFFF
        count: cython.int = len(names)
        if count > len(self.label):
            self.label = ints(2 * count)
            self.attribute = ints(2 * count)
            self.first = ints(2 * count)
        for index in range(count):
            # PERF: the names of messages are the same objects again and again.
            address = _address(names[index])
            slot = KNOWN_WIDTH * ((address >> 4 ^ address >> 15) & (_SLOTS - 1))
            if self._slots[slot + KNOWN_ADDRESS] != address:
                self._learn(names[index], slot, address)
            label = self._slots[slot + KNOWN_MEANING] >> 32
            self.attribute[index] = self._slots[slot + KNOWN_MEANING] & low
            self.label[index] = label
            self.first[index] = index
            if label:
                exact = self.exact[label]
                name = self.seen[exact]
                if exact and name < index and self.exact[self.label[name]] == exact:
                    self.first[index] = name  # with another prefix
                else:
                    self.seen[exact] = index
                self.seen[self.in_namespace[label]] = index
                self.seen[self.any_namespace[label]] = index
        return count

    def describe(self, symbol: int) -> str:
        if symbol == ANY_SYMBOL:
            return ANY
        namespace, local = self._symbols.key(symbol)
        if namespace == ANY:
            return f"*:{local}"
        return f"Q{{{namespace}}}{local}" if namespace or local == ANY else local

    def describe_attribute(self, attribute: int) -> str:
        if attribute < ATTRIBUTES:
            return "text()" if attribute == TEXT_NODE else "."
        namespace, local = self._attributes.key(attribute)
        return f"@Q{{{namespace}}}{local}" if namespace else f"@{local}"

    def statistics(self) -> dict[str, int]:
        return {
            "index_symbols": len(self._symbols),
            "index_labels": len(self._labels),
            "index_attributes": len(self._attributes),
        }

    def _learn(
        self, name: QualifiedName, slot: cython.int, address: cython.ulonglong
    ) -> cython.int:
        """Put what is known of a name, by its address, into a slot instead of another."""
        known = self._remembered.get(name)
        if known is None:
            known = self._remember(name)
        label: cython.ulonglong
        attribute: cython.ulonglong
        label, attribute = known
        self._slots[slot + KNOWN_ADDRESS] = address
        self._slots[slot + KNOWN_MEANING] = label << 32 | attribute
        self._slot_names[slot // KNOWN_WIDTH] = name  # as long as it is held, nothing else is there
        return 0

    def _forget_names(self) -> None:
        """What names mean has changed."""
        if self._remembered:
            self._remembered.clear()
            self._slots = array("Q", bytes(8 * KNOWN_WIDTH * _SLOTS))

    def _remember(self, name: QualifiedName) -> tuple[int, int]:
        """The label and the attribute number of a name."""
        symbol_of = self._symbols.of
        triple = (
            symbol_of.get((name.namespace, name.local), 0),
            symbol_of.get((name.namespace, ANY), 0),
            symbol_of.get((ANY, name.local), 0),
        )
        label = self._labels.get(triple) or (any(triple) and self._new_label(triple)) or ELSEWHERE
        known = label, self._attributes.of.get((name.namespace, name.local), 0)
        # Messages may hold any names; what is remembered of them has a bound.
        if len(self._remembered) >= _NAMES_REMEMBERED:
            self._forget_names()
        self._remembered[name] = known
        return known

    def _new_label(self, triple: tuple[int, int, int]) -> int:
        label = self._next_label
        self._next_label += 1
        if label >= len(self.exact):
            self.exact = grown(self.exact, 2 * label)
            self.in_namespace = grown(self.in_namespace, 2 * label)
            self.any_namespace = grown(self.any_namespace, 2 * label)
            self.label_bits = grown(self.label_bits, 2 * label)
        self.exact[label], self.in_namespace[label], self.any_namespace[label] = triple
        self._labels[triple] = label
        for symbol in triple:
            if symbol:
                self.label_bits[label] |= edge_bit(symbol << EDGE_SHIFT)
                triples = self._labels_of.setdefault(symbol, [])
                triples.append(triple)
                self.only_label[symbol] = label if len(triples) == 1 else SEVERAL
        return label


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _address(name: object) -> cython.size_t:
    if cython.compiled:
        return cython.cast(cython.size_t, cython.cast(cython.p_void, name))
    else:  # noqa: RET505 - which is not compiled
        return id(name)
