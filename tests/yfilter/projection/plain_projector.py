"""What needs.py says of projection, done element by element: the oracle of the projector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from formats.element_stream import ContentKind, ElementStream, ElementStreamBuilder
from yfilter.engine.linear_paths import Conjunction, LinearStep
from yfilter.language.evaluation import Evaluator
from yfilter.language.nodes import Focus, element_node
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS
from yfilter.language.query_ast import NameTest
from yfilter.projection.needs import Kind, Need, Steps, touched

DOCUMENT = -1


def project(stream: ElementStream, needs: Iterable[Need]) -> ElementStream:
    """The message with what the needs keep of it; ``stream`` itself when that is everything."""
    marks = _Marks(stream)
    for need in needs:
        for binding in _reached(stream, [DOCUMENT], need.binding):
            if need.condition is None or _holds(stream, need.condition, binding):
                for kept in need.kept:
                    for element in _reached(stream, [binding], kept.steps):
                        marks.mark(element, kept.kind, kept.attribute)
    marks.keep_ancestors()
    looks = [
        (element, kept)
        for need in needs
        if need.condition is not None
        for kept in touched(need.condition)
        for element in _touched_elements(stream, need, kept.steps)
    ]
    for element, kept in sorted(looks, key=lambda look: (-look[1].kind, look[0])):
        if element in marks.kept:
            marks.mark(element, kept.kind, kept.attribute)
    return marks.stream()


def _touched_elements(stream: ElementStream, need: Need, steps: Steps) -> set[int]:
    if not need.binding:
        return _reached(stream, [DOCUMENT], steps)
    return _reached(stream, _reached(stream, [DOCUMENT], need.binding), steps[1:])


class _Marks:
    def __init__(self, stream: ElementStream) -> None:
        self._stream = stream
        self._whole = False
        self.kept: set[int] = {0}
        self._attributes: set[int] = set()
        self._content: set[int] = set()  # of these elements

    def mark(self, element: int, kind: Kind, attribute: NameTest | None) -> None:
        if element == DOCUMENT:
            self._whole |= kind >= Kind.VALUE
            return
        stream = self._stream
        self.kept.add(element)
        if kind is Kind.ATTRIBUTE:
            assert attribute is not None
            for number in stream.attributes_of(element):
                name = stream.names[stream.attribute_name[number]]
                if attribute.accepts(name.namespace, name.local):
                    self._attributes.add(number)
        if kind >= Kind.VALUE:
            below = range(element, stream.element_end[element])
            self.kept.update(below)
            self._content.update(below)
            if kind is Kind.SUBTREE:
                for each in below:
                    self._attributes.update(stream.attributes_of(each))

    def keep_ancestors(self) -> None:
        for element in sorted(self.kept, reverse=True):
            while (element := self._stream.element_parent[element]) >= 0:
                self.kept.add(element)

    def stream(self) -> ElementStream:
        stream = self._stream
        everything = (
            len(self.kept) == len(stream)
            and len(self._attributes) == len(stream.attribute_name)
            and all(parent in self._content for parent in stream.content_parent)
        )
        if self._whole or everything:
            return stream
        builder = ElementStreamBuilder()
        self._copy(builder, 0)
        return builder.finish()

    def _copy(self, builder: ElementStreamBuilder, element: int) -> None:
        stream = self._stream
        attributes = [
            (stream.names[stream.attribute_name[number]], stream.attribute_value(number))
            for number in stream.attributes_of(element)
            if number in self._attributes
        ]
        name = stream.name_of(element)
        builder.start_element(name, attributes, stream.declarations_of(element))
        inside = [(child, 1, child) for child in stream.children_of(element) if child in self.kept]
        if element in self._content:
            inside += [
                (stream.content_next[piece], 0, piece)
                for piece in stream.content_within(element)
                if stream.content_parent[piece] == element
            ]
        for _, is_element, number in sorted(inside):
            if is_element:
                self._copy(builder, number)
            else:
                self._copy_content(builder, number)
        builder.end_element()

    def _copy_content(self, builder: ElementStreamBuilder, piece: int) -> None:
        value = self._stream.content_value(piece)
        match self._stream.content_kind[piece]:
            case ContentKind.TEXT:
                builder.text(value)
            case ContentKind.COMMENT:
                builder.comment(value)
            case _:
                target, _, data = value.partition(" ")
                builder.processing_instruction(target, data)


def _reached(stream: ElementStream, starts: Iterable[int], steps: Steps) -> set[int]:
    reached = set(starts)
    for descendant, test in steps:
        reached = {
            below
            for element in reached
            for below in _below(stream, element, descendant)
            if test.accepts(stream.name_of(below).namespace, stream.name_of(below).local)
        }
    return reached


def _below(stream: ElementStream, element: int, descendant: bool) -> Iterator[int]:
    if element == DOCUMENT:
        yield from range(len(stream)) if descendant else (0,)
    elif descendant:
        yield from range(element + 1, stream.element_end[element])
    else:
        yield from stream.children_of(element)


def _holds(stream: ElementStream, condition: Conjunction, binding: int) -> bool:
    for path in condition.paths:
        first, *rest = path.steps
        if binding == DOCUMENT:
            found, rest = {DOCUMENT}, [first, *rest]
        else:
            found = {binding} if _passes(stream, binding, first) else set()
        for step in rest:
            found = {
                element
                for element in _reached(stream, found, (step.structure,))
                if _passes(stream, element, step)
            }
        if not found:
            return False
    return True


def _passes(stream: ElementStream, element: int, step: LinearStep) -> bool:
    evaluator = Evaluator(stream, DEFAULT_EVALUATION_LIMITS)
    focus = Focus(element_node(element), 1, 1, {})
    return all(evaluator.condition(selection, focus) for selection in step.selections)
