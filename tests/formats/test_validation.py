from __future__ import annotations

from pathlib import Path

import pytest

from formats import Validator, read_schema
from formats.schema import stands_alone

DTD = b"<!ELEMENT report (city+)><!ELEMENT city (#PCDATA)><!ATTLIST city id CDATA #REQUIRED>"
XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="report">
<xs:complexType><xs:sequence><xs:element name="city" maxOccurs="9"><xs:complexType>
<xs:simpleContent><xs:extension base="xs:string"><xs:attribute name="id" use="required"/>
</xs:extension></xs:simpleContent></xs:complexType></xs:element></xs:sequence></xs:complexType>
</xs:element></xs:schema>"""
RELAXNG = b"""<element name="report" xmlns="http://relaxng.org/ns/structure/1.0"><oneOrMore>
<element name="city"><attribute name="id"/><text/></element></oneOrMore></element>"""
SCHEMAS = [("r.dtd", DTD), ("r.xsd", XSD), ("r.rng", RELAXNG)]


@pytest.mark.parametrize(("name", "data"), SCHEMAS)
def test_valid_and_not(name: str, data: bytes) -> None:
    validator = Validator(read_schema(name, data))
    good = b'<report><city id="1">Lyon</city></report>'
    assert validator.check(good) is None
    bad = b'<report>\n<city id="1"/>\n<city/></report>'
    found = validator.check(bad)
    assert found is not None
    assert "id" in found.reason and found.line == 3
    # What was wrong once is forgotten.
    assert validator.check(good) is None


@pytest.mark.parametrize(("name", "data"), SCHEMAS)
def test_encodings_and_entities(name: str, data: bytes) -> None:
    validator = Validator(read_schema(name, data))
    text = '<?xml version="1.0" encoding="utf-16"?><report><city id="é">x</city></report>'
    encoded = text.encode("utf-16")
    assert validator.check(encoded) is None
    entity = b'<!DOCTYPE report [<!ENTITY e "x">]><report><city id="1">&e;</city></report>'
    assert validator.check(entity) is None


def test_what_libxml2_does_not_read_is_not_valid() -> None:
    found = Validator(read_schema("r.dtd", DTD)).check(b'<report xml:id="1"/>')
    assert found is not None
    assert found.reason == "the message is beyond what the validator reads"


def test_a_schema_that_needs_others_cannot_validate(tmp_path: Path) -> None:
    other = tmp_path / "other.xsd"
    other.write_bytes(XSD)
    xsd = (
        f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
        f'<xs:include schemaLocation="{other.as_uri()}"/></xs:schema>'
    )
    rng = (
        f'<grammar xmlns="http://relaxng.org/ns/structure/1.0"><include href="{other}"/></grammar>'
    )
    dtd = f'<!ENTITY % more SYSTEM "{other.as_uri()}">%more;<!ELEMENT a EMPTY>'
    for name, text in (("a.xsd", xsd), ("a.rng", rng), ("a.dtd", dtd)):
        schema = read_schema(name, text.encode())
        assert not stands_alone(schema)
        with pytest.raises(ValueError, match="other documents"):
            Validator(schema)


def test_an_external_doctype_is_not_opened(tmp_path: Path) -> None:
    outside = tmp_path / "outside.dtd"
    outside.write_bytes(b'<!ATTLIST city id CDATA "given outside">')
    text = f'<!DOCTYPE report SYSTEM "{outside.as_uri()}"><report><city/></report>'.encode()
    assert Validator(read_schema("r.xsd", XSD)).check(text) is not None
