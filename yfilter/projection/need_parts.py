# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What a NeedTable is made of: places, bindings, groups, conditions and the questions in them."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

from yfilter.language.query_ast import Expression, NameTest
from yfilter.projection.needs import Kept, Steps

# The number of a kind, and the attribute or the part.
Looked: TypeAlias = tuple[int, NameTest | str | None]


class Atom:
    """A question: is there an element at the end of a path, on which a condition holds?

    ``asked`` by conditions of bindings above it, each with its bit there.  ``query`` finds it, 0
    where that is the query of the place.
    """

    def __init__(self, query: int, steps: Steps, selection: Expression | None) -> None:
        self.query = query
        self.steps = steps
        self.selection = selection
        self.asked: dict[Binding, dict[Disjunct, int]] = {}


class Disjunct:
    """One condition of a group: it holds when ``whole``, the bits of all its atoms, are found.

    ``bit`` is that of the group which it is in at present; ``touched`` (place, what is looked at).
    """

    def __init__(
        self, bit: int, binding: Binding, atoms: tuple[Any, ...], touched: tuple[Any, ...]
    ) -> None:
        self.bit = bit
        self.binding = binding
        self.atoms = atoms
        self.whole = (1 << len(atoms)) - 1
        self.touched = touched


class Group:
    """Needs of one binding with the same kept paths and the same ``links``: ``bit`` in masks.

    ``needs``: how many there are, ``unconditional`` those of them that always hold.  ``places``:
    (place, what is kept there).
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


class Place:
    """The elements at the end of a path from the message; no steps are the document node.

    ``query`` finds them.  ``binding`` if they are bound, ``there`` if it is asked whether there is
    one; ``kept``: of which groups, ``touched``: for which sets of links, and by how many
    conditions.
    """

    def __init__(self, query: int, steps: Steps) -> None:
        self.query = query
        self.steps = steps
        self.binding: Binding | None = None
        self.there: Atom | None = None
        self.kept: dict[Looked, int] = {}
        self.touched: dict[Looked, Counter[int]] = {}
        self._touched_by: dict[Looked, int] | None = None

    @property
    def is_used(self) -> bool:
        return bool(self.binding or self.there or self.kept or self.touched)

    def keep(self, looked: Looked, groups: int, wanted: bool) -> None:
        """What groups keep there, or keep no more."""
        kept = self.kept.get(looked, 0) & ~groups | (groups if wanted else 0)
        if kept:
            self.kept[looked] = kept
        else:
            del self.kept[looked]

    def touch(self, looked: Looked, links: int, count: int) -> None:
        """So many conditions more of a set of links look at something there."""
        self._touched_by = None
        sets = self.touched.setdefault(looked, Counter())
        sets[links] += count
        if not sets[links]:
            del sets[links]
            if not sets:
                del self.touched[looked]

    def touched_by(self) -> dict[Looked, int]:
        """What conditions look at there, and the links whose these are."""
        if self._touched_by is None:
            self._touched_by = {}
            for looked, sets in self.touched.items():
                links = 0
                for those in sets:
                    links |= those
                self._touched_by[looked] = links
        return self._touched_by
