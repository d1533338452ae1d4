from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from formats import ElementStream, QualifiedName, XmlWriter, parse_text
from tests.examples import examples
from tests.formats.support import XML_NAMESPACE, documents, lxml_parse


def name(text: str, namespace: str = "") -> QualifiedName:
    prefix, _, local = text.rpartition(":")
    return QualifiedName(prefix, namespace, local)


def copied(message: bytes, element: int, around: tuple[str, str] = ("r", "")) -> bytes:
    writer = XmlWriter()
    writer.start_element(name(*around))
    writer.copy_element(parse_text(message), element)
    writer.end_element()
    return writer.getvalue()


def test_elements_attributes_and_text_are_escaped() -> None:
    writer = XmlWriter()
    writer.start_element(name("a"), [(name("b"), 'x<&">\t\n\r')])
    writer.text("1 < 2 & 3 ]]> \r\n")
    writer.text("")
    writer.comment(" c ")
    writer.processing_instruction("p", "d")
    writer.processing_instruction("q")
    writer.start_element(name("e"))
    assert writer.depth == 2
    writer.end_element()
    writer.end_element()
    assert writer.getvalue() == (
        b'<a b="x&lt;&amp;&quot;>&#9;&#10;&#13;">1 &lt; 2 &amp; 3 ]]&gt; &#13;\n'
        b"<!-- c --><?p d?><?q?><e/></a>"
    )


def test_missing_declarations_are_added_once() -> None:
    writer = XmlWriter()
    writer.start_element(
        name("p:a", "urn:p"), [(name("p:x", "urn:p"), ""), (name("q:y", "urn:q"), "")]
    )
    writer.start_element(name("p:b", "urn:p"), [(name("xml:lang", XML_NAMESPACE), "en")])
    writer.end_element()
    writer.start_element(name("q:b", "urn:q"), declarations=[("p", "urn:p"), ("z", "urn:z")])
    writer.end_element()
    writer.start_element(name("p:b", "urn:other"))
    writer.end_element()
    writer.start_element(name("p:c", "urn:p"))
    writer.end_element()
    writer.end_element()
    assert writer.getvalue() == (
        b'<p:a xmlns:p="urn:p" xmlns:q="urn:q" p:x="" q:y=""><p:b xml:lang="en"/>'
        b'<q:b xmlns:z="urn:z"/><p:b xmlns:p="urn:other"/><p:c/></p:a>'
    )


def test_the_default_namespace_is_undeclared_where_a_name_has_none() -> None:
    writer = XmlWriter()
    writer.start_element(name("a", "urn:a"))
    writer.start_element(name("b"), [(name("x"), "")])
    writer.start_element(name("c"))
    writer.end_element()
    writer.end_element()
    writer.start_element(name("d", "urn:a"))
    writer.end_element()
    writer.end_element()
    assert writer.getvalue() == b'<a xmlns="urn:a"><b xmlns="" x=""><c/></b><d/></a>'


@pytest.mark.parametrize(
    ("message", "element", "around", "expected"),
    [
        (b"<m><a>1<b/>2<!--c--></a>3</m>", 1, ("r",), b"<r><a>1<b/>2<!--c--></a></r>"),
        # what is in scope comes along, once
        (
            b'<m xmlns="urn:m" xmlns:p="urn:p"><a><p:b xmlns:p="urn:p"/></a></m>',
            1,
            ("r",),
            b'<r><a xmlns="urn:m" xmlns:p="urn:p"><p:b/></a></r>',
        ),
        (b'<m xmlns="urn:m"><a/></m>', 1, ("r", "urn:m"), b'<r xmlns="urn:m"><a/></r>'),
        (b"<m><a><b/></a></m>", 1, ("r", "urn:r"), b'<r xmlns="urn:r"><a xmlns=""><b/></a></r>'),
        # a default namespace is inherited until a name has none
        (
            b'<m xmlns:p="urn:p"><p:a><b><c/></b><p:d/></p:a></m>',
            1,
            ("r", "urn:r"),
            b'<r xmlns="urn:r"><p:a xmlns:p="urn:p"><b xmlns=""><c/></b><p:d/></p:a></r>',
        ),
        (
            b'<m xmlns="urn:m"><a><b xmlns=""/></a></m>',
            1,
            ("r",),
            b'<r><a xmlns="urn:m"><b xmlns=""/></a></r>',
        ),
        # another meaning of the same prefix around it
        (
            b'<p:m xmlns:p="urn:p" p:x="1"/>',
            0,
            ("p:r", "urn:r"),
            b'<p:r xmlns:p="urn:r"><p:m xmlns:p="urn:p" p:x="1"/></p:r>',
        ),
    ],
)
def test_copies(message: bytes, element: int, around: tuple[str, str], expected: bytes) -> None:
    assert copied(message, element, around) == expected


def test_copies_side_by_side_do_not_share_declarations() -> None:
    stream = parse_text(b'<m xmlns:p="urn:p"><p:a/><p:b/></m>')
    writer = XmlWriter()
    for element in (1, 2):
        writer.copy_element(stream, element)
    writer.copy_content(parse_text(b"<a>&lt;</a>"), 0)
    assert writer.getvalue() == b'<p:a xmlns:p="urn:p"/><p:b xmlns:p="urn:p"/>&lt;'


def test_misuse_is_an_error() -> None:
    for attributes in (
        [(name("a"), ""), (name("a"), "")],
        [(name("p:a", "u"), ""), (name("q:a", "u"), "")],
        [(name("a", "u"), "")],
        [(name("p:a", ""), "")],
        [(name("p:a", "u"), ""), (name("p:b", "v"), "")],
        [(name("xmlns"), "u")],
        [(name("xmlns:p", "http://www.w3.org/2000/xmlns/"), "u")],
        [(name("xml:a", "u"), "")],
        [(name("p:a", XML_NAMESPACE), "")],
        [(name("a"), "\x00")],
    ):
        with pytest.raises(ValueError):
            XmlWriter().start_element(name("e"), attributes)
    with pytest.raises(ValueError, match="cannot mean both"):
        XmlWriter().start_element(name("e"), declarations=[("", "urn:e")])
    writer = XmlWriter()
    for call in (
        lambda: writer.text("\ufffe"),
        lambda: writer.comment("a--b"),
        lambda: writer.comment("a-"),
        lambda: writer.processing_instruction("xml", ""),
        lambda: writer.processing_instruction("p", "?>"),
        lambda: writer.processing_instruction("p q"),
        writer.end_element,
    ):
        with pytest.raises(ValueError):
            call()
    assert writer.getvalue() == b""
    writer.start_element(name("a"))
    with pytest.raises(ValueError, match="still open"):
        writer.getvalue()


def exclusive(tree: Any) -> bytes:
    result: bytes = etree.tostring(tree, method="c14n", exclusive=True, with_comments=True)
    return result


def elements_of(tree: Any) -> list[Any]:
    return [node for node in tree.getroot().iter() if isinstance(node.tag, str)]


@examples(200)
@given(documents(), st.data())
def test_a_copy_means_what_the_original_means(document: bytes, data: st.DataObject) -> None:
    stream: ElementStream = parse_text(document)
    element = data.draw(st.integers(0, len(stream) - 1))
    around = data.draw(st.sampled_from(["", "urn:one", "urn:other"]))
    writer = XmlWriter()
    writer.start_element(name("result", around), declarations=[("p", "urn:outer")])
    writer.text("before")
    writer.copy_element(stream, element)
    writer.copy_element(stream, element)
    writer.text("after")
    writer.end_element()
    result = lxml_parse(writer.getvalue())
    original = elements_of(lxml_parse(document))[element]
    in_scope = {prefix: namespace for prefix, namespace in original.nsmap.items() if namespace}
    scope = {prefix or "": namespace for prefix, namespace in in_scope.items() if prefix != "xml"}
    assert stream.namespaces_in_scope(element) == scope
    first, second = result.getroot()
    for copy in (first, second):
        for prefix, namespace in in_scope.items():
            assert copy.nsmap[prefix] == namespace
        copy.tail = None
    original.tail = None
    assert exclusive(first) == exclusive(second) == exclusive(original)
    assert result.getroot().text == "before"


def test_no_declaration_is_repeated() -> None:
    text = copied(b'<m xmlns:p="u" xmlns:q="v"><p:a><q:b xmlns:q="v"><p:c/></q:b></p:a></m>', 0)
    assert text.count(b"xmlns:p") == text.count(b"xmlns:q") == 1
