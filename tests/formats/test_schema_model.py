"""One reading of a schema, three views: the languages agree, and hostile schemas cost little."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from formats.allowed_content import read_allowed_content
from formats.content_model import read_content_model
from formats.dictionary import read_grammar
from formats.schema import Schema, SchemaKind, read_schema
from formats.schema_model import ANYTHING
from formats.schema_reader import read_schema_model
from tests.yfilter.random_schemas import Grammar

DTD = """<!ELEMENT order (customer?, (item | gift)+, note*)><!ATTLIST order id CDATA #REQUIRED>
<!ELEMENT customer EMPTY><!ELEMENT item (#PCDATA)><!ELEMENT gift (item)><!ELEMENT note (#PCDATA)>"""
XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="order"><xs:complexType><xs:sequence>
 <xs:element name="customer" minOccurs="0"><xs:complexType/></xs:element>
 <xs:group ref="things" maxOccurs="unbounded"/>
 <xs:element name="note" type="xs:string" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
 <xs:attribute name="id" use="required"/></xs:complexType></xs:element>
<xs:group name="things"><xs:choice><xs:element name="item" type="xs:string"/>
 <xs:element name="gift"><xs:complexType><xs:sequence><xs:element name="item" type="xs:string"/>
 </xs:sequence></xs:complexType></xs:element></xs:choice></xs:group></xs:schema>"""
RELAXNG = """<grammar xmlns="http://relaxng.org/ns/structure/1.0"><start><element name="order">
<attribute name="id"/><optional><element name="customer"><empty/></element></optional>
<oneOrMore><ref name="things"/></oneOrMore>
<zeroOrMore><element name="note"><text/></element></zeroOrMore></element></start>
<define name="things"><choice><ref name="item"/><element name="gift"><ref name="item"/></element>
</choice></define><define name="item"><element name="item"><text/></element></define></grammar>"""


@pytest.mark.parametrize(("name", "text"), [("o.dtd", DTD), ("o.xsd", XSD), ("o.rng", RELAXNG)])
def test_the_languages_agree(name: str, text: str) -> None:
    schema = read_schema(name, text.encode())
    model = read_content_model(schema)
    assert model.roots == {"order"}
    assert not model.open
    assert model.children == {
        "order": {"customer": 1.0, "item": inf, "gift": inf, "note": inf},
        "gift": {"item": 1.0},
        **{leaf: {} for leaf in ("customer", "item", "note")},
    }
    grammar = read_grammar(schema)
    names = [local for _, local in grammar.names]
    assert names == ["customer", "gift", "item", "note", "order", "id"]
    assert grammar.attributes == ((), (), (), (), (5,), ())
    allowed = read_allowed_content(schema)
    local = [allowance.names[0].local for allowance in allowed.declarations]
    (order,) = (number for number in allowed.roots if local[number] == "order")
    inside = {local[child] for child in allowed.declarations[order].children}
    assert inside == {"customer", "item", "gift", "note"}


@pytest.mark.parametrize("seed", range(6))
def test_random_schemas_say_the_same_in_every_language(seed: int) -> None:
    print(f"seed {seed}")
    grammar = Grammar(Random(seed))
    texts = {"g.dtd": grammar.dtd(), "g.rng": grammar.relaxng(), "g.xsd": grammar.xsd()}
    found = [read_content_model(read_schema(name, text.encode())) for name, text in texts.items()]
    for name, rule in grammar.rules.items():
        for model in found:
            assert model.children[name] == dict.fromkeys(rule.children, inf)


def _relaxng(defines: str) -> str:
    return f"""<grammar xmlns="http://relaxng.org/ns/structure/1.0"><start><element name="a">
    <ref name="d0"/></element></start>{defines}</grammar>"""


def _xsd(globals_: str, content: str) -> str:
    return f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
    <xs:element name="a"><xs:complexType><xs:sequence>{content}</xs:sequence></xs:complexType>
    </xs:element>{globals_}</xs:schema>"""


def _group(name: str, inner: str) -> str:
    return f'<xs:group name="{name}"><xs:sequence>{inner}</xs:sequence></xs:group>'


LONG = 5_000
B = '<element name="b"><empty/></element>'
HOSTILE: dict[str, tuple[SchemaKind, str]] = {
    "eight to the thirtieth": (
        "relaxng",
        _relaxng(
            "".join(
                f'<define name="d{n}">' + f'<ref name="d{n + 1}"/>' * 8 + "</define>"
                for n in range(30)
            )
            + f'<define name="d30">{B}</define>'
        ),
    ),
    "a long chain of patterns": (
        "relaxng",
        _relaxng(
            "".join(
                f'<define name="d{n}"><optional>{B}</optional><ref name="d{n + 1}"/></define>'
                for n in range(LONG)
            )
            + f'<define name="d{LONG}">{B}</define>'
        ),
    ),
    "a pattern in itself": (
        "relaxng",
        _relaxng(f'<define name="d0"><choice>{B}<ref name="d0"/></choice></define>'),
    ),
    "groups of groups": (
        "xsd",
        _xsd(
            "".join(_group(f"g{n}", f'<xs:group ref="g{n + 1}"/>' * 8) for n in range(30))
            + _group("g30", '<xs:element name="b"/>'),
            '<xs:group ref="g0"/>',
        ),
    ),
    "a long chain of types": (
        "xsd",
        _xsd(
            "".join(
                f'<xs:complexType name="t{n}"><xs:complexContent><xs:extension base="t{n + 1}">'
                '<xs:sequence><xs:element name="b"/></xs:sequence></xs:extension>'
                "</xs:complexContent></xs:complexType>"
                for n in range(LONG)
            )
            + f'<xs:complexType name="t{LONG}"/>',
            '<xs:element name="b" type="t0"/>',
        ),
    ),
    "a group and a type in themselves": (
        "xsd",
        _xsd(
            _group("g", '<xs:group ref="g"/><xs:element name="b" type="t"/>')
            + '<xs:complexType name="t"><xs:complexContent><xs:extension base="t"/>'
            "</xs:complexContent></xs:complexType>",
            '<xs:group ref="g"/>',
        ),
    ),
    "parentheses": ("dtd", f"<!ELEMENT a {'(' * 1_000}b{',b)' * 1_000}><!ELEMENT b EMPTY>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_read_in_bounds_and_nothing_too_little_is_said(name: str) -> None:
    """None of them passes ``read_schema``, or none for sure: the readers do not rely on it."""
    kind, text = HOSTILE[name]
    schema = Schema("a", kind, text.encode())
    grammar = read_grammar(schema)
    assert ("", "a") in grammar.names
    model = read_content_model(schema)
    assert model.may_contain_anything("a") or model.children["a"]["b"] >= 1
    allowed = read_allowed_content(schema)
    (root,) = (
        number for number in allowed.roots if allowed.declarations[number].names[0][1] == "a"
    )
    children = allowed.declarations[root].children
    inside = {allowed.declarations[child].names[0].local for child in children}
    assert "b" in inside or ANYTHING in children


def test_the_model_depends_on_the_bytes_alone() -> None:
    schema = read_schema("o.xsd", XSD.encode())
    assert read_grammar(schema) == read_grammar(schema)
    first, second = read_schema_model(schema), read_schema_model(schema)
    assert [d.names for d in first.declarations] == [d.names for d in second.declarations]
