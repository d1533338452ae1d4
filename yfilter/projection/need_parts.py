# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What a NeedTable is made of: bindings, groups, conditions and the questions in them."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from yfilter.language.query_ast import Expression, NameTest, Operator
from yfilter.projection.needs import Kept

# What a check looks at.
STRUCTURE = 0  # that the element is there
ATTRIBUTE = 1
TEXT = 2  # its text nodes
VALUE = 3  # its string value
OTHER = 4  # whatever the interpreter is needed for


class Atom:
    """A question; ``disjuncts`` are the conditions that ask it, each with its bit there."""

    def __init__(self) -> None:
        self.disjuncts: dict[Disjunct, int] = {}


class Disjunct:
    """One condition of a group: it holds when ``whole``, the bits of all its atoms, are found.

    ``bit`` is that of the group which it is in at present; ``touched`` (node, what is looked at).
    """

    def __init__(self, bit: int, atoms: tuple[Any, ...], touched: tuple[Any, ...]) -> None:
        self.bit = bit
        self.atoms = atoms
        self.whole = (1 << len(atoms)) - 1
        self.touched = touched


class Group:
    """Needs of one binding with the same kept paths and the same ``links``: ``bit`` in masks.

    ``needs``: how many there are, ``unconditional`` those of them that always hold.  ``places``:
    (node, what is kept there).
    """

    def __init__(self, bit: int, links: int, places: tuple[Any, ...]) -> None:
        self.bit = bit
        self.links = links
        self.places = places
        self.needs = 0
        self.unconditional = 0


class Binding:
    """Where elements are bound: the masks of the groups there.

    ``always`` are wanted at every such element, ``sometimes`` on a condition, ``full`` are those
    that want the whole element.  ``innermost`` is for the walk through a message: the open element
    that was bound here last.
    """

    def __init__(self) -> None:
        self.groups: dict[tuple[tuple[Kept, ...], int], Group] = {}
        self.always = 0
        self.sometimes = 0
        self.full = 0
        self.innermost: object = None

    def set_masks(self, group: Group) -> None:
        """After a change of the group's needs."""
        self.always &= ~group.bit
        self.sometimes &= ~group.bit
        if group.unconditional:
            self.always |= group.bit
        elif group.needs:
            self.sometimes |= group.bit


class Check:
    """Questions about elements at one node, for one binding above it; see the constants.

    ``numbers``: (rank, number, atom) in the order of the rank.  Those that hold for
    most values come first: once all is wanted the rest is spared.  ``accepted``: for each name of a
    message, that of ``names_version``, whether the attribute is called so.
    """

    def __init__(self, binding: Binding, subject: int, attribute: NameTest | None) -> None:
        self.binding = binding
        self.subject = subject
        self.attribute = attribute
        self.atoms: dict[tuple[Operator | None, object], Atom] = {}
        self.there: Atom | None = None
        self.equal: dict[bytes, Atom] = {}
        self.differs: dict[bytes, Atom] = {}
        self.substrings: dict[tuple[str, bytes], Atom] = {}  # by function and literal
        self.prefixes: dict[int, dict[bytes, Atom]] = {}  # by length
        self.equal_numbers: dict[float, Atom] = {}
        self.numbers: dict[Operator, list[tuple[float, float, Atom]]] = {}
        self.others: dict[Expression, Atom] = {}
        self.names_version = 0
        self.accepted = b""

    def atom(self, operator: Operator | None, value: object) -> Atom:
        found = self.atoms.get((operator, value))
        if found is None:
            found = self.atoms[operator, value] = Atom()
            self._enter(operator, value, found)
        return found

    def discard(self, operator: Operator | None, value: object) -> None:
        del self.atoms[operator, value]
        if isinstance(value, bytes):
            del (self.equal if operator is Operator.EQ else self.differs)[value]
        elif isinstance(value, float) and operator is Operator.EQ:
            del self.equal_numbers[value]
        elif isinstance(value, float) and operator is not None:
            rows = self.numbers[operator]
            del rows[bisect_left(rows, _rank(operator, value), key=lambda row: row[0])]
        elif isinstance(value, tuple) and value[0] == "starts-with":
            del self.prefixes[len(value[1])][value[1]]
            if not self.prefixes[len(value[1])]:
                del self.prefixes[len(value[1])]
        elif isinstance(value, tuple):
            del self.substrings[value]
        elif value is None:
            self.there = None
        else:
            del self.others[value]  # type: ignore[arg-type]

    def _enter(self, operator: Operator | None, value: object, atom: Atom) -> None:
        if isinstance(value, bytes):
            (self.equal if operator is Operator.EQ else self.differs)[value] = atom
        elif isinstance(value, float) and operator is Operator.EQ:
            self.equal_numbers[value] = atom
        elif isinstance(value, float) and operator is not None:
            rows = self.numbers.setdefault(operator, [])
            insort(rows, (_rank(operator, value), value, atom), key=lambda row: row[0])
        elif isinstance(value, tuple) and value[0] == "starts-with":
            self.prefixes.setdefault(len(value[1]), {})[value[1]] = atom
        elif isinstance(value, tuple):
            self.substrings[value] = atom
        elif value is None:
            self.there = atom
        else:
            self.others[value] = atom  # type: ignore[index]


def _rank(operator: Operator, value: float) -> float:
    return -value if operator in (Operator.LT, Operator.LE) else value
