"""Where the nodes of valid messages can be, seen from each other: axes over a AllowedContent.

A *place* stands for all nodes that could be there under the schema: the document, an element that
follows a declaration, an attribute of one, its text, or its comments and processing instructions.
A step from a place leads to every place that the step could reach in some valid message, and
perhaps to more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from formats.allowed_content import Allowed, AllowedContent
from formats.schema_model import ANY, Name, TextContent, Values
from yfilter.language.query_ast import Axis, LocationStep, NameTest, NodeKind

NO_NAME = Name("", "")


class PlaceKind(IntEnum):
    DOCUMENT = 0
    ELEMENT = 1
    ATTRIBUTE = 2
    TEXT = 3
    OTHER = 4  # a comment or processing instruction


class Place(NamedTuple):
    """``declaration`` of the element, or of the one that holds the node; -1 for the document.

    ``attribute``: the name of an attribute, else NO_NAME.
    """

    kind: PlaceKind
    declaration: int
    attribute: Name = NO_NAME


MESSAGE = Place(PlaceKind.DOCUMENT, -1)
_KINDS = {
    NodeKind.ELEMENT: (PlaceKind.ELEMENT,),
    NodeKind.ATTRIBUTE: (PlaceKind.ATTRIBUTE,),
    NodeKind.TEXT: (PlaceKind.TEXT,),
    NodeKind.COMMENT: (PlaceKind.OTHER,),
    NodeKind.PROCESSING_INSTRUCTION: (PlaceKind.OTHER,),
    NodeKind.DOCUMENT: (PlaceKind.DOCUMENT,),
}


class SchemaPlaces:
    """The places of one schema."""

    def __init__(self, model: AllowedContent) -> None:
        self._model = model
        self._parents: dict[int, set[int]] = {}
        for number, declaration in enumerate(model.declarations):
            for child in declaration.children:
                self._parents.setdefault(child, set()).add(number)
        self._below: dict[int, frozenset[int]] = {}

    def declaration(self, place: Place) -> Allowed | None:
        """Of an element, or of what holds another node; None for the document."""
        return None if place.declaration < 0 else self._model.declarations[place.declaration]

    def after_step(self, place: Place, step: LocationStep) -> set[Place]:
        """Where a step from one place leads; its predicates are not looked at."""
        starts: Iterable[Place] = (place,)
        if step.descendant:
            starts = self._descendants_or_self(place)
        reached = {there for start in starts for there in self._along(start, step)}
        return {there for there in reached if self._passes(there, step.kind, step.test)}

    def values(self, place: Place) -> Values:
        """The string values that a node can have, collapsed; None where they are not listed."""
        declaration = self.declaration(place)
        if declaration is None:
            return None
        nothing = frozenset(("",))
        if place.kind is PlaceKind.ATTRIBUTE:
            return declaration.attributes.get(place.attribute)
        is_blank = declaration.text is not TextContent.ANY
        if place.kind is PlaceKind.TEXT:
            return nothing if is_blank else None
        if place.kind is PlaceKind.ELEMENT:
            return nothing if is_blank and not declaration.children else declaration.values
        return None

    # -- axes

    def _along(self, place: Place, step: LocationStep) -> Iterator[Place]:
        match step.axis:
            case None:
                yield from self._by_kind(place, step.kind)
            case Axis.SELF:
                yield place
            case Axis.PARENT:
                yield from self._parents_of(place)
            case Axis.DESCENDANT | Axis.DESCENDANT_OR_SELF:
                if step.axis is Axis.DESCENDANT_OR_SELF:
                    yield place
                for above in self._descendants_or_self(place):
                    yield from self._children(above)
            case Axis.ANCESTOR | Axis.ANCESTOR_OR_SELF:
                if step.axis is Axis.ANCESTOR_OR_SELF:
                    yield place
                yield from self._ancestors(place)
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                for parent in self._parents_of(place):
                    yield from self._children(parent)
            case Axis.FOLLOWING | Axis.PRECEDING:
                for above in self._descendants_or_self(MESSAGE):
                    yield from self._children(above)

    def _by_kind(self, place: Place, kind: NodeKind) -> Iterator[Place]:
        if kind is NodeKind.SELF:
            yield place
        elif kind is NodeKind.PARENT:
            yield from self._parents_of(place)
        elif kind is NodeKind.ATTRIBUTE:
            yield from self._attributes(place)
        else:
            yield from self._children(place)

    def _attributes(self, place: Place) -> Iterator[Place]:
        declaration = self.declaration(place)
        if declaration is None or place.kind is not PlaceKind.ELEMENT:
            return
        for name in declaration.attributes:
            yield Place(PlaceKind.ATTRIBUTE, place.declaration, name)
        if declaration.any_attribute:
            yield Place(PlaceKind.ATTRIBUTE, place.declaration, Name(ANY, ANY))

    def _children(self, place: Place) -> Iterator[Place]:
        if place.kind is PlaceKind.DOCUMENT:
            yield Place(PlaceKind.OTHER, -1)
            yield from (Place(PlaceKind.ELEMENT, root) for root in self._model.roots)
        declaration = self.declaration(place)
        if declaration is None or place.kind is not PlaceKind.ELEMENT:
            return
        yield from (Place(PlaceKind.ELEMENT, child) for child in declaration.children)
        if declaration.text is not TextContent.NONE:
            yield Place(PlaceKind.TEXT, place.declaration)
            yield Place(PlaceKind.OTHER, place.declaration)

    def _descendants_or_self(self, place: Place) -> Iterator[Place]:
        """The place and all elements below it."""
        yield place
        if place.kind not in (PlaceKind.ELEMENT, PlaceKind.DOCUMENT):
            return
        below = self._below.get(place.declaration)
        if below is None:
            found: set[int] = set()
            waiting = [there.declaration for there in self._elements_in(place)]
            while waiting:
                number = waiting.pop()
                if number not in found:
                    found.add(number)
                    waiting += self._model.declarations[number].children
            below = self._below[place.declaration] = frozenset(found)
        yield from (Place(PlaceKind.ELEMENT, number) for number in below)

    def _elements_in(self, place: Place) -> Iterator[Place]:
        return (there for there in self._children(place) if there.kind is PlaceKind.ELEMENT)

    def _parents_of(self, place: Place) -> Iterator[Place]:
        if place.kind is PlaceKind.DOCUMENT:
            return
        if place.kind is not PlaceKind.ELEMENT:
            yield MESSAGE if place.declaration < 0 else Place(PlaceKind.ELEMENT, place.declaration)
            return
        if place.declaration in self._model.roots:
            yield MESSAGE
        for parent in self._parents.get(place.declaration, ()):
            yield Place(PlaceKind.ELEMENT, parent)

    def _ancestors(self, place: Place) -> set[Place]:
        found: set[Place] = set()
        waiting = list(self._parents_of(place))
        while waiting:
            above = waiting.pop()
            if above not in found:
                found.add(above)
                waiting += self._parents_of(above)
        return found

    # -- node tests

    def _passes(self, place: Place, kind: NodeKind, test: NameTest | None) -> bool:
        if kind in (NodeKind.SELF, NodeKind.PARENT, NodeKind.NODE):
            return True
        if place.kind not in _KINDS[kind]:
            return False
        if test is None or kind not in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            return True
        return any(name.meets(test.namespace, test.local) for name in self.names(place))

    def names(self, place: Place) -> tuple[Name, ...]:
        """The names that an element or attribute there can have."""
        if place.kind is PlaceKind.ATTRIBUTE:
            return (place.attribute,)
        declaration = self.declaration(place)
        is_element = place.kind is PlaceKind.ELEMENT and declaration is not None
        return declaration.names if is_element and declaration else ()
