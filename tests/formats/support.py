"""What the tests of this area share: oracles, document generators, the real files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from lxml import etree

from formats import ElementStream
from formats.binary import BinaryForms
from formats.columns import scan
from formats.limits import DEFAULT_LIMITS, MessageLimits
from formats.plain_wire import PlainModel, read_form, write_form
from formats.text import parse_with_expat
from tests.formats.stream_checks import check_stream

PLAIN_FORMS = BinaryForms(
    read_form, write_form, lambda known: PlainModel(known.strings, known.values, known.grammar)
)

SHARED_DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def real_files() -> list[Path]:
    return sorted(path for path in SHARED_DATA.rglob("*.xml")) + sorted(SHARED_DATA.rglob("*.cap"))


class _Nothing(etree.Resolver):  # type: ignore[misc]
    """Whatever a document wants from outside is empty."""

    def resolve(self, _url: str, _public_id: str, context: Any) -> Any:
        return self.resolve_string("", context)


def lxml_parse(data: bytes) -> Any:
    """lxml's view of a document: entities and defaults of the internal subset, nothing else."""
    parser = etree.XMLParser(
        resolve_entities="internal", attribute_defaults=True, no_network=True, huge_tree=True
    )
    parser.resolvers.add(_Nothing())
    return etree.fromstring(data, parser).getroottree()


def canonical(data: bytes) -> bytes:
    """Canonical XML 1.0 with comments; 2.0 where 1.0 is not defined (relative namespaces)."""
    tree = lxml_parse(data)
    try:
        result: bytes = etree.tostring(tree, method="c14n", with_comments=True)
    except etree.C14NError:
        result = etree.canonicalize(tree, with_comments=True).encode()
    return result


def columns(stream: ElementStream) -> dict[str, object]:
    """A stream as something that == compares."""
    return {slot: getattr(stream, slot) for slot in ElementStream.__slots__}


def outcome(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> str:
    """What the scanner does with a message: ``taken`` or ``given back``.

    Fails where what it takes is not what expat makes of it.
    """
    scanned = scan(data, limits)
    if scanned is None:
        return "given back"
    expected = columns(parse_with_expat(data, limits))
    actual = columns(scanned)
    for name, column in expected.items():
        assert actual[name] == column, (name, data)
        assert type(actual[name]) is type(column), (name, data)
        assert getattr(column, "typecode", "") == getattr(actual[name], "typecode", ""), name
    return "taken"


def assert_invariants(stream: ElementStream) -> None:
    """Everything that the docstring of ElementStream promises."""
    count = len(stream)
    assert count > 0
    assert len(set(stream.names)) == len(stream.names)
    for column in ("element_parent", "element_depth", "element_end"):
        assert len(getattr(stream, column)) == count
    for element in range(count):
        parent, end = stream.element_parent[element], stream.element_end[element]
        assert -1 <= parent < element
        assert (parent == -1) == (element == 0)
        assert element < end <= count
        assert stream.element_depth[element] == (
            stream.element_depth[parent] + 1 if parent >= 0 else 0
        )
        if parent >= 0:
            assert end <= stream.element_end[parent]
        assert (
            list(stream.children_of(element))
            == [other for other in range(count) if stream.element_parent[other] == element][
                : len(list(stream.children_of(element)))
            ]
        )
    for offsets, run, entries in (
        (stream.attribute_offset, stream.attribute_values, len(stream.attribute_name)),
        (stream.content_offset, stream.content_values, len(stream.content_kind)),
    ):
        assert len(offsets) == entries + 1
        assert offsets[0] == 0
        assert offsets[-1] == len(run)
        assert list(offsets) == sorted(offsets)
    assert list(stream.attribute_start) == sorted(stream.attribute_start)
    assert stream.attribute_start[-1] == len(stream.attribute_name)
    assert list(stream.declaration_element) == sorted(stream.declaration_element)
    assert list(stream.content_next) == sorted(stream.content_next)
    for parent, following in zip(stream.content_parent, stream.content_next, strict=True):
        if parent < 0:
            assert following in {0, count}
        else:
            # Its parent is open where the piece stands.
            assert parent < following <= stream.element_end[parent]
            assert following == count or stream.element_parent[following] <= parent
    check_stream(stream, DEFAULT_LIMITS)


_NAMES = st.sampled_from(["a", "b", "c", "item", "x-1", "é", "日本", "_.y"])
_PREFIXES = st.sampled_from(["", "", "p", "q", "xml"])
_NAMESPACES = st.sampled_from(["urn:one", "urn:two", "http://example.org/?a=1&b=2", "urn:x%20y"])
_TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r <>&\"']"),
    max_size=12,
)
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


def _escape(value: str) -> str:
    return re.sub('[&<>"\r\t\n]', lambda match: f"&#{ord(match[0])};", value)


@st.composite
def _comments(draw: st.DrawFn) -> str:
    body = draw(_TEXTS).replace("-", "=")
    return f"<!--{body}-->"


@st.composite
def _instructions(draw: st.DrawFn) -> str:
    body = draw(_TEXTS).replace("?", "!").lstrip()
    return f"<?{draw(_NAMES)}{' ' * draw(st.integers(1, 2))}{body}?>"


@st.composite
def _content(draw: st.DrawFn, scope: dict[str, str], depth: int) -> str:
    kind = draw(st.sampled_from(["text", "cdata", "comment", "pi", "entity", "element", "element"]))
    if kind == "element" and depth < 5:
        return draw(_elements(scope, depth + 1))
    if kind == "cdata":
        return f"<![CDATA[{draw(_TEXTS).replace(']', '[')}]]>"
    if kind == "comment":
        return draw(_comments())
    if kind == "pi":
        return draw(_instructions())
    if kind == "entity":
        return draw(st.sampled_from(["&amp;", "&lt;", "&#13;", "&#x1F600;", "&e;", "&nested;"]))
    text = draw(_TEXTS)
    # As it stands where XML allows that, so that line ends are the parser's to normalise.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@st.composite
def _elements(draw: st.DrawFn, scope: dict[str, str], depth: int) -> str:
    scope = dict(scope)
    markup = []
    for prefix in draw(st.sets(st.sampled_from(["", "p", "q"]), max_size=3)):
        namespace = "" if not prefix and draw(st.booleans()) else draw(_NAMESPACES)
        scope[prefix] = namespace
        label = f"xmlns:{prefix}" if prefix else "xmlns"
        markup.append(f'{label}="{_escape(namespace)}"')
    seen = set()
    for _ in range(draw(st.integers(0, 3))):
        prefix, local = draw(_PREFIXES), draw(_NAMES)
        if prefix and prefix not in scope:
            continue
        key = (scope[prefix] if prefix else "", local)
        if key not in seen and (key[0] or prefix == ""):
            seen.add(key)
            label = f"{prefix}:{local}" if prefix else local
            markup.append(f'{label}="{_escape(draw(_TEXTS))}"')
    prefix = draw(_PREFIXES)
    tag = draw(_NAMES)
    if prefix and prefix in scope:
        tag = f"{prefix}:{tag}"
    start = " ".join([tag, *draw(st.permutations(markup))])
    inner = "".join(draw(st.lists(_content(scope, depth), max_size=4)))
    space = draw(st.sampled_from(["", " ", "\n"]))
    return f"<{start}{space}>{inner}</{tag}{space}>" if inner else f"<{start}{space}/>"


_DOCTYPE = """<!DOCTYPE any [
  <!-- not part of the document -->
  <!ENTITY e "text &#38;amp; <b/>"><?nor this?>
  <!ENTITY nested "[&e;&e;]">
  <!ATTLIST item kind CDATA "default" xml:lang CDATA "en">
]>"""


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Well-formed documents with everything that a message may have."""
    around = st.lists(_comments() | _instructions(), max_size=2).map("\n".join)
    scope = {"": "", "xml": XML_NAMESPACE}
    text = f"{draw(around)}{_DOCTYPE}{draw(around)}{draw(_elements(scope, 0))}{draw(around)}"
    encoding = draw(st.sampled_from(["", "utf-8", "utf-16"]))
    if encoding:
        text = f'<?xml version="1.0" encoding="{encoding}"?>{text}'
    return text.encode(encoding or "utf-8")
