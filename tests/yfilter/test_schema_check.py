"""Warnings for profiles that no valid message can match."""

from __future__ import annotations

from random import Random

import pytest

from formats.allowed_content import read_allowed_content
from formats.schema import read_schema
from formats.text import parse_text
from formats.validation import Validator
from tests.yfilter.random_cases import random_flwor, random_profile
from tests.yfilter.random_schemas import Grammar
from yfilter import Matcher
from yfilter.language.query_text import unparse
from yfilter.language.schema_check import SchemaCheck

DTD = """<!ELEMENT order (customer, item*)>
<!ATTLIST order id CDATA #REQUIRED state (open|closed) "open">
<!ELEMENT customer EMPTY>
<!ELEMENT item (title, price?, note?)>
<!ATTLIST item no CDATA #IMPLIED unit CDATA #FIXED "kg">
<!ELEMENT title (#PCDATA)>
<!ELEMENT price (#PCDATA)>
<!ELEMENT note ANY>
"""

HEAD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:o" '
XSD = (
    HEAD
    + """ targetNamespace="urn:o" elementFormDefault="qualified">
<xs:element name="order"><xs:complexType><xs:sequence>
  <xs:element name="item" type="Item"/><xs:element ref="mark"/>
  <xs:element name="state" type="State"/></xs:sequence>
  <xs:attribute name="id" type="State"/></xs:complexType></xs:element>
<xs:complexType name="Item"><xs:sequence><xs:element name="price" type="xs:decimal"/></xs:sequence>
</xs:complexType>
<xs:complexType name="BigItem"><xs:complexContent><xs:extension base="Item"><xs:sequence>
  <xs:element name="weight" type="xs:decimal"/></xs:sequence></xs:extension></xs:complexContent>
</xs:complexType>
<xs:element name="mark" type="xs:string" abstract="true"/>
<xs:element name="star" substitutionGroup="mark"/>
<xs:element name="box"><xs:complexType><xs:sequence><xs:any processContents="lax"/></xs:sequence>
</xs:complexType></xs:element>
<xs:simpleType name="State"><xs:restriction base="xs:token"><xs:enumeration value="open"/>
  <xs:enumeration value="shut"/></xs:restriction></xs:simpleType>
</xs:schema>"""
)
RELAXNG = """<grammar xmlns="http://relaxng.org/ns/structure/1.0" ns="urn:o">
<start><ref name="o"/></start><define name="o"><element name="order"><attribute name="id">
<choice><value>a</value><value>b</value></choice></attribute>
<zeroOrMore><ref name="i"/></zeroOrMore></element></define>
<define name="i"><element name="item"><zeroOrMore><attribute><nsName ns="urn:x"/>
</attribute></zeroOrMore><choice><text/><ref name="other"/></choice></element></define>
<define name="other"><element><nsName ns="urn:y"/><text/></element></define></grammar>"""

IN_O = 'declare default element namespace "urn:o"; '


COPY = "for $i in //item return copy $c := $i/x modify () return $c"
SWITCH = "for $i in //item return typeswitch ($i) case element(a) return $i/a default return $i/x"


@pytest.mark.parametrize(
    ("name", "schema", "profile", "column", "words"),
    [
        ("o.dtd", DTD, "/orders", 2, "a message is never orders; expected order"),
        ("o.dtd", DTD, "/order/item[prise < 20]", 13, "no element prise in <item>; expected price"),
        ("o.dtd", DTD, "//item/@nu", 8, "no attribute @nu in <item>; expected @no"),
        ("o.dtd", DTD, "/order[@state = 'opn']", 8, '@state is never "opn"; expected "open"'),
        ("o.dtd", DTD, "//item[@unit eq 'g']", 8, '@unit is never "g"; expected "kg"'),
        ("o.dtd", DTD, "//item[@unit = ('g', 'lb')]", 8, 'never "g" or "lb"'),
        ("o.dtd", DTD, "//title/price", 9, "no element price in <title>"),
        ("o.dtd", DTD, "//customer/text()", 12, "text() selects nothing from <customer>"),
        ("o.dtd", DTD, "//title[ancestor::customer]", 9, "ancestor::customer selects nothing"),
        ("o.dtd", DTD, "/order//Item", 9, "no element Item below <order>; expected item"),
        ("o.dtd", DTD, "/order/text()[. = 'x']/..[title]", 27, "no element title in <order>"),
        ("o.dtd", DTD, "//item[a or b][title]", 8, "no element a in <item>"),
        ("o.dtd", DTD, "for $i in //item where $i/x = 1 return <r/>", 27, "no element x"),
        ("o.dtd", DTD, "for $i in //item let $x := $i/x where $x return <r/>", 31, "element x"),
        ("o.dtd", DTD, "<r>{for $i in //item return $i/x}</r>", 32, "no element x in <item>"),
        ("o.dtd", DTD, "//item[some $t in title satisfies $t/x]", 38, "no element x in <title>"),
        ("o.dtd", DTD, "//item[contains(x, 'a')]", 17, "no element x in <item>"),
        ("o.dtd", DTD, COPY, 39, "no element x in <item>"),
        ("o.dtd", DTD, SWITCH, 67, "no element a in <item>"),
        ("o.xsd", XSD, "/order", 2, "a message is never order; expected o:order"),
        ("o.xsd", XSD, IN_O + "/order/state[. = 'x']/y", 66, "no element y in <state>"),
        ("o.xsd", XSD, IN_O + "/order[state = 'Open']", 51, 'is never "Open"; expected "open"'),
        ("o.xsd", XSD, IN_O + "/order/@no", 51, "no attribute @no in <order>; expected @id"),
        ("o.rng", RELAXNG, IN_O + "/order[@id = 'c']", 51, '@id is never "c"; expected "a" or "b"'),
        ("o.rng", RELAXNG, IN_O + "/item", 45, "a message is never item"),
    ],
)
def test_the_first_impossible_step_is_named(
    name: str, schema: str, profile: str, column: int, words: str
) -> None:
    warning = SchemaCheck(read_allowed_content(read_schema(name, schema.encode()))).warning(profile)
    assert warning is not None
    assert words in str(warning)
    assert (warning.line, warning.column) == (1, column)


@pytest.mark.parametrize(
    ("name", "schema", "profile"),
    [
        *(
            ("o.dtd", DTD, profile)
            for profile in (
                "/order[@state = ' open ']/item[2]/title",
                "//note/item/note/order",  # ANY: all that is declared
                "//item[not(x)][count(x) = 0]",
                "//item[x or title]",
                "for $i in //item let $x := $i/x return <r>{$x}</r>",
                "for $i in //item return <r>{$i/x}</r>",
                "//item[if (x) then y else title]",
                "for $i in //item return copy $c := $i modify () return $c/x",
                (
                    "for $i in //item return typeswitch ($i/*) case item() return $i/*"
                    " default return ()"
                ),
                "declare function local:f($a) { $a/x }; for $i in //item return local:f($i)",
                "//item[every $x in x satisfies $x = 1]",
                "//item/text()",  # white space
                "/comment()",
                "//title[starts-with(x, '')]",
                "<r>{//x}{//item}</r>",
                "(//x, //item)",
            )
        ),
        *(
            ("o.xsd", XSD, profile)
            for profile in (
                IN_O + "/order/star",  # substitution
                IN_O + "/order/item/weight",  # xsi:type
                IN_O + "/box/x[y]",  # xs:any
                IN_O + "/order/state[. = '']",  # xsi:nil
                "/*[@*:type]",
            )
        ),
        ("o.rng", RELAXNG, "//*:item/@*:anything"),
        ("o.rng", RELAXNG, IN_O + "//item/*:name[. = 'x']"),
        ("o.rng", RELAXNG, IN_O + "/order/item/text()[. = 'x']"),
        ("o.dtd", DTD + '<!ENTITY % more SYSTEM "more.dtd">%more;', "/x"),
        ("o.dtd", DTD + "<!ATTLIST order xmlns CDATA #IMPLIED>", IN_O + "/order"),
        ("o.xsd", XSD.replace("<xs:element", '<xs:import namespace="u"/><xs:element', 1), "/x"),
    ],
)
def test_what_may_be_is_not_warned_of(name: str, schema: str, profile: str) -> None:
    check = SchemaCheck(read_allowed_content(read_schema(name, schema.encode())))
    assert check.warning(profile) is None


def test_xml_names_may_be_imported() -> None:
    imported = '<xs:import namespace="http://www.w3.org/XML/1998/namespace"/><xs:element'
    schema = XSD.replace("<xs:element", imported, 1)
    check = SchemaCheck(read_allowed_content(read_schema("o.xsd", schema.encode())))
    assert check.warning(IN_O + "/order/x") is not None


def test_a_place_is_named_on_its_line() -> None:
    check = SchemaCheck(read_allowed_content(read_schema("o.dtd", DTD.encode())))
    warning = check.warning("for $i in //item\r\nwhere $i/titel = 'x'\r\nreturn $i")
    assert warning is not None
    assert str(warning) == (
        "line 2, column 10: under the schema there is no element titel in <item>; "
        "expected title [never-matches]\n"
        "    where $i/titel = 'x'\n"
        "             ^"
    )


def test_too_much_work_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    check = SchemaCheck(read_allowed_content(read_schema("o.dtd", DTD.encode())))
    monkeypatch.setattr("yfilter.language.schema_check.PLACES_MAX", 3)
    assert check.warning("/order/item/title/x") is None


AXES = ("following-sibling", "ancestor", "descendant", "preceding", "self", "parent")


def _random_profile(rng: Random) -> str:
    if rng.random() < 0.3:
        return random_flwor(rng)
    if rng.random() < 0.3:
        names = [rng.choice("abcde*") for _ in range(3)]
        axis = rng.choice(AXES)
        return f"//{names[0]}[{axis}::{names[1]}{rng.choice(('', '/text()', '/..'))}]//{names[2]}"
    return unparse(random_profile(rng))


@pytest.mark.parametrize("seed", range(4))
def test_what_matches_a_valid_message_gets_no_warning(seed: int) -> None:
    """Random grammars, valid messages and profiles; and warnings do occur."""
    rng = Random(seed)
    warned = matched = 0
    for _ in range(5):
        grammar = Grammar(rng)
        texts = {"g.dtd": grammar.dtd(), "g.rng": grammar.relaxng(), "g.xsd": grammar.xsd()}
        schemas = [read_schema(name, text.encode()) for name, text in texts.items()]
        written = [grammar.message(rng).encode() for _ in range(4)]
        for schema in schemas:
            validator = Validator(schema)
            assert not any(map(validator.check, written)), schema.name
        messages = list(map(parse_text, written))
        checks = [SchemaCheck(read_allowed_content(schema)) for schema in schemas]
        profiles = [_random_profile(rng) for _ in range(60)]
        matcher = Matcher()
        for number, profile in enumerate(profiles):
            matcher.add(profile, str(number))
        matching = {name for message in messages for name in matcher.matched_ids(message)}
        matched += len(matching)
        for number, profile in enumerate(profiles):
            for schema, check in zip(schemas, checks, strict=True):
                warning = check.warning(profile)
                warned += warning is not None
                assert warning is None or str(number) not in matching, (schema.name, profile)
    assert warned > 50
    assert matched > 8
