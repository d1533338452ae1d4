from __future__ import annotations

from pathlib import Path

import pytest

from formats import SchemaRefused, read_schema
from tests.formats.support import SHARED_DATA

XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">\n{}</xs:schema>'
RELAXNG = '<element name="a" xmlns="http://relaxng.org/ns/structure/1.0">\n{}</element>'
ELEMENT = '<xs:element name="a" type="xs:string"/>'


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.dtd", "<!ELEMENT a (b*)>\n<!ELEMENT b (#PCDATA)>", "dtd"),
        ("any", "<!ELEMENT a ANY>", "dtd"),
        ("a.dtd", '<!ENTITY % c "a | b"><![INCLUDE[<!ELEMENT a (%c;)*>]]>', "dtd"),
        ("a.dtd", '<!ENTITY % c SYSTEM "/nowhere/c.mod">%c;<!ELEMENT a ANY>', "dtd"),
        ("a.xsd", XSD.format(ELEMENT), "xsd"),
        ("A.XSD", XSD.format(ELEMENT), "xsd"),
        ("any", XSD.format(ELEMENT), "xsd"),
        (
            "a.xsd",
            XSD.format(
                '<xs:import namespace="u" schemaLocation="/nowhere/b.xsd"/>'
                '<xs:element name="a" type="b" xmlns="u"/>'
            ),
            "xsd",
        ),
        ("a.rng", RELAXNG.format("<text/>"), "relaxng"),
        ("any", RELAXNG.format('<externalRef href="/nowhere/b.rng"/>'), "relaxng"),
    ],
)
def test_schemas_are_read(name: str, text: str, kind: str) -> None:
    schema = read_schema(name, text.encode())
    assert (schema.name, schema.kind, schema.data) == (name, kind, text.encode())


@pytest.mark.parametrize(
    ("name", "text", "code", "line", "column"),
    [
        ("a.dtd", "<!ELEMENT b EMPTY>\n<!ELEMENT a (b,c>", "malformed", 2, 17),
        ("a.dtd", "\n", "invalid-schema", 1, 1),
        ("a.xsd", "<a>\n</b>", "malformed", 2, 5),
        ("a.xsd", "", "malformed", 1, 1),
        ("a.xsd", "<a/>", "unknown-schema", 1, 1),
        ("a.rng", XSD.format(ELEMENT), "unknown-schema", 1, 1),
        ("a.rnc", "element a { text }", "unknown-schema", 0, 0),
        ("a.xsd", XSD.format('<xs:element name="a" type="xs:no"/>'), "invalid-schema", 2, 1),
        ("a.rng", RELAXNG.format('<ref name="no"/>'), "invalid-schema", 2, 1),
        ("a.xsd", XSD.format(" " * 5_000_000), "too-large", 0, 0),
        ("a.xsd", '<!DOCTYPE a [\n<!ENTITY e SYSTEM "/nowhere">]><a>&e;</a>', "malformed", 2, 35),
    ],
)
def test_schemas_are_refused(name: str, text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(SchemaRefused) as caught:
        read_schema(name, text.encode())
    refused = caught.value
    assert (refused.code, refused.line) == (code, line)
    if code == "malformed" and name == "a.dtd":
        assert refused.column == column
    assert (refused.column > 0) == (column > 0)
    assert f"[{code}]" in str(refused)


def test_the_dtd_of_the_paper() -> None:
    path = SHARED_DATA / "yfilter" / "nitf-2-5.dtd"
    if not path.exists():
        pytest.skip("the shared data is not here")
    assert read_schema(path.name, path.read_bytes()).kind == "dtd"
    assert read_schema("nitf", path.read_bytes()).kind == "dtd"


def test_nothing_is_opened(tmp_path: Path) -> None:
    secret = tmp_path / "part"
    secret.write_text("<!ELEMENT not-well-formed", encoding="utf-8")
    read_schema("a.dtd", f'<!ENTITY % p SYSTEM "{secret.as_uri()}">%p;'.encode())
    with pytest.raises(SchemaRefused, match="not defined"):
        read_schema(
            "a.xsd", f'<!DOCTYPE a [<!ENTITY e SYSTEM "{secret.as_uri()}">]><a>&e;</a>'.encode()
        )


def test_a_place_is_said_as_far_as_it_is_known() -> None:
    places = [(0, 0), (3, 0), (3, 4)]
    said = [str(SchemaRefused("malformed", "it is", *place)) for place in places]
    begin = ["", "line 3: ", "line 3, column 4: "]
    assert said == [f"{place}it is [malformed]" for place in begin]
