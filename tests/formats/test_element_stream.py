"""The navigation of ElementStream against plain walks over the columns and against lxml."""

from __future__ import annotations

import pyexpat

import pytest
from hypothesis import given

from formats import ContentKind, ElementStreamBuilder, QualifiedName, parse_text, to_text
from formats.characters import is_colonless_name, is_comment, is_processing_instruction
from tests.examples import examples
from tests.formats.support import assert_invariants, documents, lxml_parse

A, B = QualifiedName("", "", "a"), QualifiedName("", "", "b")


@examples(100)
@given(documents())
def test_navigation(document: bytes) -> None:
    stream = parse_text(document)
    # Not the document itself: libxml2 reads elements of entities without the default namespace.
    nodes = [
        node for node in lxml_parse(to_text(stream)).getroot().iter() if isinstance(node.tag, str)
    ]
    element_of = {node: element for element, node in enumerate(nodes)}
    assert len(stream) == len(nodes)
    for element, node in enumerate(nodes):
        children = [element_of[child] for child in node if child in element_of]
        assert list(stream.children_of(element)) == children
        assert stream.string_value(element) == node.xpath("string()")
        assert [stream.content_value(text) for text in stream.text_nodes_of(element)] == [
            str(text) for text in node.xpath("text()")
        ]
        within = [
            content
            for content, parent in enumerate(stream.content_parent)
            if parent >= 0 and element <= parent < stream.element_end[element]
        ]
        assert list(stream.content_within(element)) == within
        name = stream.name_of(element)
        assert node.tag == (f"{{{name.namespace}}}{name.local}" if name.namespace else name.local)
        assert name.prefix == (node.prefix or "")
        assert {
            (
                stream.names[stream.attribute_name[attribute]].local,
                stream.attribute_value(attribute),
            )
            for attribute in stream.attributes_of(element)
        } == {(key.rpartition("}")[2], value) for key, value in node.attrib.items()}


def test_builder_joins_text_and_keeps_the_rest_apart() -> None:
    builder = ElementStreamBuilder()
    builder.comment("0")
    builder.start_element(A, [(B, "é")], [("p", "u")])
    builder.text("1")
    builder.text("")
    builder.text("2")
    builder.comment("")
    builder.text("3")
    builder.start_element(B)
    assert (builder.depth, builder.element_count, builder.name_count) == (2, 2, 2)
    builder.end_element()
    builder.text("4")
    builder.processing_instruction("p", "")
    builder.processing_instruction("p", "d e")
    builder.end_element()
    assert builder.value_bytes == 2 + 1 + 4 + 1 + 5
    stream = builder.finish()
    assert_invariants(stream)
    assert [stream.content_value(content) for content in range(len(stream.content_kind))] == [
        "0",
        "12",
        "",
        "3",
        "4",
        "p",
        "p d e",
    ]
    assert [ContentKind(kind).name[0] for kind in stream.content_kind] == list("CTCTTPP")
    assert stream.namespaces_in_scope(1) == {"p": "u"}
    assert stream.declarations_of(1) == []


@pytest.mark.parametrize("start", [True, False])
def test_every_name_that_expat_reads_is_a_name(start: bool) -> None:
    accepted = 0
    for code in [*range(0x21, 0x3000), *range(0x3000, 0xD800, 7), *range(0xE000, 0x10000, 5)]:
        candidate = chr(code) if start else f"a{chr(code)}"
        if chr(code) in ":/>":
            continue
        try:
            pyexpat.ParserCreate("utf-8").Parse(f"<{candidate}/>".encode(), True)
        except pyexpat.ExpatError:
            continue
        accepted += 1
        assert is_colonless_name(candidate), hex(code)
    assert accepted > 3_000


@pytest.mark.parametrize("value", ["", "1", "-a", "a:b", "a b", "a\n", "·", "a×", "\u037e"])
def test_what_is_no_name(value: str) -> None:
    assert not is_colonless_name(value)


def test_comments_and_processing_instructions() -> None:
    assert is_comment("") and is_comment("-a - b\n")
    assert not any(map(is_comment, ["--", "a-", "\r", "\x00"]))
    assert is_processing_instruction("p", "") and is_processing_instruction("p", "d ? >")
    assert is_processing_instruction("xml-stylesheet", "href='a'")
    for target, data in [("XML", ""), ("", ""), ("p", " d"), ("p", "?>"), ("p", "\r"), ("p:q", "")]:
        assert not is_processing_instruction(target, data)
