"""A selection copied by columns is the one built event by event, and every form takes it."""

from __future__ import annotations

from random import Random

import pytest

from formats import FORMS, ContentKind, ElementStream, decode, encode, parse_text, to_text
from formats.element_stream_builder import ElementStreamBuilder
from formats.names import QualifiedName
from formats.stream_selection import ATTRIBUTES, CONTENT, KEPT, StreamSelection
from tests.formats.support import assert_invariants, canonical, columns
from tests.formats.test_subtree_writer import random_element


def random_marks(rng: Random, stream: ElementStream, selection: StreamSelection) -> None:
    """Valid marks; often the same all over, so that runs of any length are copied."""
    selection.begin(stream)
    share = rng.choice((0.1, 0.5, 0.9, 1.0))
    for element in range(len(stream)):
        parent = stream.element_parent[element]
        above = selection.elements[parent] if parent >= 0 else KEPT
        if above and (parent < 0 or above & CONTENT or rng.random() < share):
            mark = KEPT
            mark |= CONTENT if rng.random() < share else 0
            mark |= ATTRIBUTES if rng.random() < share else 0
            selection.elements[element] = mark
            for attribute in stream.attributes_of(element):
                selection.attributes[attribute] = rng.random() < share


def rebuilt(
    stream: ElementStream, selection: StreamSelection, names: list[QualifiedName]
) -> ElementStream:
    """The same selection by events, on a table of names."""
    builder = ElementStreamBuilder()
    builder._stream.names = list(names)
    builder._name_ids = {name: number for number, name in enumerate(names)}

    def content(first: int, element: int, following: int) -> int:
        """What stands before an element, and inside another one."""
        while (
            first < len(stream.content_kind)
            and stream.content_next[first] == following
            and stream.content_parent[first] == element
        ):
            if element >= 0 and selection.elements[element] & CONTENT:
                value = stream.content_value(first)
                match stream.content_kind[first]:
                    case ContentKind.TEXT:
                        builder.text(value)
                    case ContentKind.COMMENT:
                        builder.comment(value)
                    case _:
                        target, _, data = value.partition(" ")
                        builder.processing_instruction(target, data)
            first += 1
        return first

    def element_events(element: int, piece: int) -> int:
        kept = selection.elements[element]
        if kept:
            attributes = [
                (stream.names[stream.attribute_name[number]], stream.attribute_value(number))
                for number in stream.attributes_of(element)
                if kept & ATTRIBUTES or selection.attributes[number]
            ]
            builder.start_element(
                stream.name_of(element), attributes, stream.declarations_of(element)
            )
        child = element + 1
        while True:
            piece = content(piece, element, child)
            if child >= stream.element_end[element]:
                break
            piece = element_events(child, piece)
            child = stream.element_end[child]
        if kept:
            builder.end_element()
        return piece

    element_events(0, content(0, -1, 0))
    return builder.finish()


@pytest.mark.parametrize("seed", range(12))
def test_copied_is_rebuilt(seed: int) -> None:
    rng = Random(seed)
    selection = StreamSelection()  # used for one message after the other
    for _ in range(40):
        document = random_element(rng, rng.randint(0, 4))
        stream = parse_text(f"<?p i?><root xmlns:p='urn:p'>{document}</root><!--c-->".encode())
        random_marks(rng, stream, selection)
        selected = selection.selected()
        assert columns(selected) == columns(rebuilt(stream, selection, selected.names))
        unused = set(stream.names) - {selected.name_of(element) for element in range(len(selected))}
        unused -= {selected.names[name] for name in selected.attribute_name}
        assert 4 * len(unused) <= len(stream.names) or not unused & set(selected.names)
        assert_invariants(selected)
        assert selection.kept_bytes() == len(selected.attribute_values) + len(
            selected.content_values
        )
        text = canonical(to_text(selected))
        for form in FORMS:
            assert canonical(to_text(decode(encode(selected, form), form))) == text


def test_all_is_all() -> None:
    stream = parse_text(b"<a x='1'>t<b y='2'/><!--c-->u</a>")
    selection = StreamSelection()
    selection.begin(stream)
    for element in range(len(stream)):
        selection.elements[element] = KEPT | CONTENT | ATTRIBUTES
    assert columns(selection.selected()) == columns(stream)
