"""A selection copied by columns is the one built event by event, and every form takes it."""

from __future__ import annotations

from random import Random

import pytest

from formats import FORMS, ContentKind, ElementStream, decode, encode, parse_text, to_text
from formats.columns import BARE, VALUE, WHOLE, StreamSelection
from formats.element_stream_builder import ElementStreamBuilder
from formats.names import QualifiedName
from tests.formats.support import assert_invariants, canonical, columns
from tests.formats.test_subtree_writer import random_element

KEPT, CONTENT, ATTRIBUTES = 1, 2, 4


class Taken:
    """What one taker takes, by element as marks and by attribute."""

    def __init__(self, stream: ElementStream) -> None:
        self.elements = [0] * len(stream)
        self.attributes = [False] * len(stream.attribute_name)


def mark(rng: Random, stream: ElementStream, selection: StreamSelection, taker: int) -> None:
    """Any attributes, and all of the elements within any."""
    for attribute in range(len(stream.attribute_name)):
        if rng.random() < 0.3:
            selection.attributes[attribute] |= taker
    for element in range(len(stream)):
        if rng.random() < 0.2:
            for below in range(element, stream.element_end[element]):
                selection.wholes[below] |= taker


def take(rng: Random, stream: ElementStream, selection: StreamSelection, taker: int) -> Taken:
    """Bare elements and runs, at random."""
    taken = Taken(stream)
    share = rng.choice((0.1, 0.5, 0.9))
    selection.begin_taker(taker)
    element = 0
    while element < len(stream):
        parent = stream.element_parent[element]
        end = stream.element_end[element]
        if parent >= 0 and (not taken.elements[parent] or rng.random() > share):
            element = end
            continue
        kind = rng.choice((BARE, BARE, VALUE, WHOLE))
        selection.take(element, kind)
        for below in range(element, element + 1 if kind == BARE else end):
            is_whole = kind == WHOLE or (kind == VALUE and selection.wholes[below] & taker)
            taken.elements[below] = KEPT | (CONTENT if kind != BARE else 0)
            taken.elements[below] |= ATTRIBUTES if is_whole else 0
            for attribute in stream.attributes_of(below):
                taken.attributes[attribute] = bool(selection.attributes[attribute] & taker)
        element = element + 1 if kind == BARE else end
    return taken


def rebuilt(stream: ElementStream, selection: Taken, names: list[QualifiedName]) -> ElementStream:
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
def test_copied_is_rebuilt_for_each_taker(seed: int) -> None:
    rng = Random(seed)
    print(f"seed {seed}")
    selection = StreamSelection()  # used for one message after the other
    for _ in range(20):
        document = random_element(rng, rng.randint(0, 4))
        stream = parse_text(f"<?p i?><root xmlns:p='urn:p'>{document}</root><!--c-->".encode())
        selection.begin(stream)
        takers = [1 << place for place in rng.sample(range(64), 3)]
        for taker in takers:
            mark(rng, stream, selection, taker)
        for taker in takers:
            check(stream, selection, take(rng, stream, selection, taker))


def check(stream: ElementStream, selection: StreamSelection, taken: Taken) -> None:
    kept = selection.kept_bytes()
    selected = selection.selected()
    assert columns(selected) == columns(rebuilt(stream, taken, selected.names))
    unused = set(stream.names) - {selected.name_of(element) for element in range(len(selected))}
    unused -= {selected.names[name] for name in selected.attribute_name}
    assert 4 * len(unused) <= len(stream.names) or not unused & set(selected.names)
    assert_invariants(selected)
    assert kept == len(selected.attribute_values) + len(selected.content_values)
    assert len(selected) == selection.elements
    places = [place for place, mark in enumerate(taken.elements) if mark]
    assert [selection.place_of(element) for element in places] == list(range(len(selected)))
    text = canonical(to_text(selected))
    for form in FORMS:
        assert canonical(to_text(decode(encode(selected, form), form))) == text


def test_all_is_all() -> None:
    stream = parse_text(b"<a x='1'>t<b y='2'/><!--c-->u</a>")
    selection = StreamSelection()
    selection.begin(stream)
    selection.begin_taker(1)
    selection.take(0, WHOLE)
    assert columns(selection.selected()) == columns(stream)
