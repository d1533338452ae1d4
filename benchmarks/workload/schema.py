"""DocumentSchema: element types in levels, what may stand in what, attributes and value domains.

The shape is that of a DTD for news: one root, 120 element types in eight levels, an element mostly
inside one of the level above, six types that may contain themselves or each other, attributes
shared between types, a third of the types with prose for text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.workload.domains import (
    OPEN_VALUES,
    Domain,
    Numbers,
    Words,
    make_word,
    zipf_weights,
)

LEVEL_SIZES = (1, 4, 10, 20, 27, 27, 20, 11)
ATTRIBUTE_NAMES = 45
VOCABULARY = 6_000
_RECURSIVE_TYPES = 6
_RECURSIVE_LEVELS = (3, 4)


@dataclass(frozen=True, slots=True)
class ElementType:
    """``attributes``: name and probability of each; ``text`` None stands for prose."""

    name: str
    attributes: tuple[tuple[str, float], ...]
    text: Domain | None


@dataclass(frozen=True, slots=True)
class DocumentSchema:
    """All by name of element or attribute; ``vocabulary`` is what prose is made of."""

    root: str
    types: dict[str, ElementType]
    children: dict[str, tuple[str, ...]]
    domains: dict[str, Domain]
    vocabulary: tuple[str, ...]


def make_schema(seed: int) -> DocumentSchema:
    """The schema of this seed."""
    return _SchemaMaker(Random(f"schema {seed}")).make()


class _SchemaMaker:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._words = _distinct(random, VOCABULARY, (2, 3, 3, 4))
        self._open_words = _distinct(random, OPEN_VALUES, (3, 4, 4, 5))
        self._open_weights = zipf_weights(OPEN_VALUES, 1.0)

    def make(self) -> DocumentSchema:
        random = self._random
        names = _distinct(random, sum(LEVEL_SIZES), (1, 2, 2, 3, 3, 4, 5), ".")
        attributes = _distinct(random, ATTRIBUTE_NAMES, (1, 2, 2, 3, 4))
        domains = {name: self._domain((0.5, 0.3, 0.2)) for name in attributes}
        levels = _cut(names, LEVEL_SIZES)
        types = {name: self._type(name, attributes) for name in names}
        children = self._children(levels)
        self._add_recursion(levels, children)
        return DocumentSchema(
            root=names[0],
            types=types,
            children={name: tuple(sorted(inner)) for name, inner in children.items()},
            domains=domains,
            vocabulary=tuple(self._words),
        )

    def _type(self, name: str, attributes: Sequence[str]) -> ElementType:
        random = self._random
        number = random.choice((0, 1, 2, 2, 3, 3, 4, 5))
        own = tuple(
            (attribute, random.choice((1.0, 0.7, 0.5)))
            for attribute in random.sample(attributes, number)
        )
        text = None if random.random() < 0.35 else self._domain((0.4, 0.3, 0.3))
        return ElementType(name, own, text)

    def _domain(self, shares: tuple[float, float, float]) -> Domain:
        """Of the three kinds (enumeration, open, number) with these probabilities."""
        random = self._random
        kind = random.random()
        if kind < shares[0]:
            words = random.sample(self._words, random.randint(2, 10))
            return Words(words, zipf_weights(len(words), 0.5))
        if kind < shares[0] + shares[1]:
            return Words(self._open_words, self._open_weights, random.randrange(OPEN_VALUES))
        return Numbers()

    def _children(self, levels: Sequence[Sequence[str]]) -> dict[str, set[str]]:
        random = self._random
        last = len(levels) - 1
        children: dict[str, set[str]] = {levels[0][0]: set(levels[1])}
        for depth in range(1, last + 1):
            for name in levels[depth]:
                inner = children[name] = set()
                for _ in range(random.randint(3, 8) if depth < last else 0):
                    skips = depth + 2 <= last and random.random() < 0.25
                    inner.add(random.choice(levels[depth + (2 if skips else 1)]))
        return children

    def _add_recursion(
        self, levels: Sequence[Sequence[str]], children: dict[str, set[str]]
    ) -> None:
        """Some types may contain themselves, and one another."""
        candidates = [name for depth in _RECURSIVE_LEVELS for name in levels[depth]]
        recursive = self._random.sample(candidates, _RECURSIVE_TYPES)
        for name in recursive:
            children[name] |= {name, self._random.choice(recursive)}


def _distinct(
    random: Random, number: int, syllables: Sequence[int], separator: str = ""
) -> list[str]:
    """Distinct words in the order of their making; some of two parts if a separator is given."""
    words: dict[str, None] = {}
    while len(words) < number:
        word = make_word(random, syllables)
        if separator and random.random() < 0.2:
            word += separator + make_word(random, (1, 2))
        words[word] = None
    return list(words)


def _cut(names: Sequence[str], sizes: Sequence[int]) -> list[Sequence[str]]:
    levels = []
    start = 0
    for size in sizes:
        levels.append(names[start : start + size])
        start += size
    return levels
