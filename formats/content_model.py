"""ContentModel: which elements a schema lets stand in which, and how often at the most.

So that "at most once in any message" can be said of a path (sections 3.1 and 4.4 of the paper).
What is said is an upper bound: local names alone count, declarations of the same name are taken
together, a choice counts as its largest alternative.  An element whose content is not known is
``open``.

::

    <!ELEMENT nitf (head?, body)>         nitf  ->  head 1, body 1
    <!ELEMENT body (p | table)*>          body  ->  p inf, table inf
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from formats.schema import Schema
from formats.schema_model import ANY, Elements, Particle, SchemaModel
from formats.schema_reader import read_schema_model

# How often an element can occur, by its local name or the number of its declaration.
Counts: TypeAlias = dict[str, float]
_Numbers: TypeAlias = dict[int, float]


@dataclass(frozen=True, slots=True)
class ContentModel:
    """``roots`` may be the root element of a message.  ``children`` of an element by local name;
    ``open`` elements may contain anything."""

    roots: frozenset[str]
    children: Mapping[str, Counts]
    open: frozenset[str] = frozenset()

    def may_contain_anything(self, element: str) -> bool:
        return element in self.open or element not in self.children


def read_content_model(schema: Schema) -> ContentModel:
    """The content model of a schema that ``read_schema`` has accepted."""
    return _Counter(read_schema_model(schema)).content_model()


class _Counter:
    """Remembers what is in each particle: those that are referred to are shared."""

    def __init__(self, model: SchemaModel) -> None:
        self._model = model
        self._counted: dict[int, _Numbers] = {}  # by id of a particle, all of which the model keeps

    def content_model(self) -> ContentModel:
        children: dict[str, Counts] = {}
        for number, declaration in enumerate(self._model.declarations):
            contents = (declaration.content, *declaration.instead)
            inside = _one_of(self._count(content.particle) for content in contents)
            by_name: Counts = {}
            for child, count in inside.items():
                for name in self._local_names(child):
                    by_name[name] = by_name.get(name, 0.0) + count
            for name in self._local_names(number) - {ANY}:
                known = children.setdefault(name, {})
                for child_name, count in by_name.items():
                    known[child_name] = max(known.get(child_name, 0.0), count)
        is_open = frozenset(name for name, inside in children.items() if ANY in inside)
        for name in is_open:
            del children[name][ANY]
        roots = {name for root in self._model.outermost for name in self._local_names(root)}
        return ContentModel(frozenset(roots), children, is_open)

    def _local_names(self, number: int) -> set[str]:
        return {name.local for name in self._model.declarations[number].names}

    def _count(self, particle: Particle) -> _Numbers:
        known = self._counted.get(id(particle))
        if known is None:
            if isinstance(particle, Elements):
                inside: _Numbers = dict.fromkeys(particle.declarations, 1.0)
            else:
                combine = _one_of if particle.is_choice else _all_of
                inside = combine(map(self._count, particle.parts))
            known = {number: count * particle.most for number, count in inside.items()}
            self._counted[id(particle)] = known
        return known


def _all_of(parts: Iterable[_Numbers]) -> _Numbers:
    total: _Numbers = {}
    for part in parts:
        for number, count in part.items():
            total[number] = total.get(number, 0.0) + count
    return total


def _one_of(parts: Iterable[_Numbers]) -> _Numbers:
    largest: _Numbers = {}
    for part in parts:
        for number, count in part.items():
            largest[number] = max(largest.get(number, 0.0), count)
    return largest
