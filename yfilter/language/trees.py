"""Going through syntax trees, whatever their nodes are: dataclasses, and tuples of such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from decimal import Decimal
from operator import attrgetter, is_
from typing import Any, TypeAlias, TypeVar, cast

Tree = TypeVar("Tree")
Made = TypeVar("Made")


def parts_of(node: object) -> tuple[object, ...] | None:
    """What a node is made of; None for one that is no tuple and no dataclass."""
    kind = type(node)
    if kind not in _READERS:
        _READERS[kind] = _reader_of(kind)
    read = _READERS[kind]
    return None if read is None else read(node)


def _reader_of(kind: type) -> Callable[[object], tuple[object, ...]] | None:
    if issubclass(kind, tuple):
        return cast("Callable[[object], tuple[object, ...]]", tuple)
    if not is_dataclass(kind):
        return None
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple([getattr(node, name) for name in names])


_READERS: dict[type, Callable[[object], tuple[object, ...]] | None] = {}


def nodes_of(tree: object) -> Iterator[object]:
    """All nodes but tuples, each before what is in it, in the order of the text."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if (parts := parts_of(node)) is not None:
            if not isinstance(node, tuple):
                yield node
            waiting.extend(reversed(parts))


def by_identity(found_max: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Memoises a function by the identity of its first argument, a node, and by the values of the
    others; it keeps so many results, with their nodes.

    PERF: profiles of a rule set share conditions (``QueryParser.condition``), and a comparison of
    equal ones costs as much as the function."""

    def remembering(make: Callable[..., Made]) -> Callable[..., Made]:
        known: dict[tuple[object, ...], tuple[object, Made]] = {}

        def made(node: object, *others: object) -> Made:
            key = (id(node), *others)
            entry = known.get(key)
            if entry is None:
                if len(known) >= found_max:
                    known.clear()
                entry = known[key] = node, make(node, *others)
            return entry[1]

        return made

    return remembering


def is_taller(tree: object, height: int) -> bool:
    """Whether more than so many nodes are in each other, tuples not counted."""
    level: list[object] = [tree]
    while level and height >= 0:
        height -= 1
        below: list[object] = []
        for node in level:
            parts = parts_of(node) or ()
            for part in parts:
                below += part if type(part) is tuple else (part,)
        level = below
    return bool(level)


def changed(tree: Tree, change: Callable[[Any], object]) -> Tree:
    """The tree with ``change`` of all in it but tuples, those below first."""
    return cast(Tree, _changed(tree, change))


def _changed(node: Any, change: Callable[[Any], object]) -> Any:
    parts = parts_of(node)
    if parts is None:
        return change(node)
    new = tuple([_changed(part, change) for part in parts])
    is_same = all(map(is_, parts, new))
    if type(node) is tuple:
        return node if is_same else new
    return change(node if is_same else type(node)(*new))


def split(tree: Tree, kind: type) -> tuple[Tree, ...]:
    """The parts of a node of a kind such as And; of any other itself."""
    return tree.parts if isinstance(tree, kind) else (tree,)  # type: ignore[attr-defined]


def flat(parts: Iterable[Tree], kind: type) -> tuple[Tree, ...]:
    """With their parts in the place of those of the kind."""
    return tuple(one for part in parts for one in split(part, kind))


# -------------------------------------------------------------------------------------------------
# Blanks: the literals and names that stand in the tree of a shape for the words of a profile.


# No text of a profile that is taken apart has this character: see shape_cache.py.
MARK = "\U000effff"


class NeedsWords(Exception):
    """What is asked depends on the words of a profile, not on its shape alone."""


class BlankString(str):
    number: int


class BlankInteger(int):
    number: int

    def __str__(self) -> str:
        return f"{MARK}{self.number}{MARK}"


class BlankDecimal(Decimal):
    number: int

    def __format__(self, specifier: str, context: object = None, /) -> str:
        return f"{MARK}{self.number}.{MARK}"


class BlankDouble(float):
    number: int


Blank: TypeAlias = BlankString | BlankInteger | BlankDecimal | BlankDouble
