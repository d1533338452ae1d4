"""Rule sets whose expressions read code lists beside the rules, by ``doc()`` and ``document()``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from lxml import etree

from formats.text import parse_text
from onyx.rule_sets import read_rule_set
from tests.oracle.reference import ReferenceMatcher
from yfilter import Matcher
from yfilter.errors import SchematronRefused
from yfilter.schematron import compile_schematron

LIST = b"""<?xml version="1.0"?><!-- units --><g:list xmlns:g="urn:units" issued="2026">
  <g:unit code="KGM" since="7">kilogram</g:unit><g:unit code="MTR">{metre} &amp; more</g:unit>
</g:list>"""
UNITS = "doc('lists/units.xml')"
TESTS = (  # that hold for the first of two lines, and not for the second
    f"@u = {UNITS}/g:list/g:unit/@code",
    "@u = document('lists/units.xml')//g:unit/@code",
    '@u = fn:doc ( "lists/units.xml" )//@code',
    "@u = doc('./lists/../lists/units.xml')/*/g:unit/@code",
    f"{UNITS}//g:unit[@code = current()/@u]",
    f"some $c in {UNITS}//g:unit satisfies $c/@code = @u and $c/@since = 7",
    "exists($units[@code = current()/@u])",
    "$codes = @u",
    f"string({UNITS}//g:unit[@code = current()/@u]) = 'kilogram'",
    f"@u = {UNITS}/g:list[@issued = '2026']//@code",
)


def schema(test: str, text: str = "wrong") -> bytes:
    return f"""<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
      <ns prefix="g" uri="urn:units"/><let name="units" value="{UNITS}//g:unit"/>
      <pattern><let name="codes" value="document('lists/units.xml')//@code"/>
        <rule context="line">
          <assert id="a" test="{test.replace('"', "&quot;")}">{text}</assert></rule>
      </pattern></schema>""".encode()


def failed(
    engine: type[Matcher] | type[ReferenceMatcher],
    rules: bytes,
    documents: Mapping[str, bytes] = {"lists/units.xml": LIST},
) -> list[str]:
    """The texts of what a message with a unit that is listed, and one that is not, fails."""
    compiled = compile_schematron(rules, file="rules.sch", documents=documents)
    assert not compiled.refused
    matcher = engine()
    for each in compiled.profiles:
        matcher.add(each.text)
    message = parse_text(b"<order><line u='KGM'/><line u='LBR'/></order>")
    results = [result for each in matcher.deliver(message) for result in each.results]
    return [str(etree.fromstring(result).xpath("string(*)")) for result in results]


@pytest.mark.parametrize("engine", [Matcher, ReferenceMatcher])
@pytest.mark.parametrize("test", TESTS)
def test_a_rule_reads_a_code_list(
    test: str, engine: type[Matcher] | type[ReferenceMatcher]
) -> None:
    assert failed(engine, schema(test, '<value-of select="@u"/>')) == ["LBR"]


def test_the_text_of_a_rule_reads_it_too() -> None:
    text = f"""<value-of select="{UNITS}//g:unit[@code = 'MTR']"/>"""
    assert failed(Matcher, schema("@u = 'KGM'", text)) == ["{metre} & more"]


def test_a_string_that_looks_like_a_call_is_a_string() -> None:
    test = "'doc(''lists/units.xml'')' = \"doc('lists/units.xml')\" and @u = 'KGM'"
    (profile,) = compile_schematron(schema(test), documents={"lists/units.xml": LIST}).profiles
    assert "urn:units" not in profile.text.partition("for ")[0]
    assert failed(Matcher, schema(test)) == ["wrong"]


@pytest.mark.parametrize(
    "call",
    [
        *("doc('other.xml')", "doc('/lists/units.xml')", "doc('../lists/units.xml')"),
        *("doc('http://e.example/units.xml')", "doc(@u)", "document('')"),
        "document('lists/units.xml', /)",
    ],
)
def test_nothing_else_is_read(call: str) -> None:
    compiled = compile_schematron(schema(f"{call}//x"), documents={"lists/units.xml": LIST})
    (refused,) = compiled.refused
    assert "not in the profile language" in refused.reason


@pytest.mark.parametrize(
    "data", [b"<a", b'<a xml:lang="en"/>', b"<!DOCTYPE a [<!ENTITY b SYSTEM 'b'>]><a>&b;</a>"]
)
def test_a_code_list_that_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(SchematronRefused, match=re.escape("lists/units.xml")):
        compile_schematron(schema(TESTS[0]), documents={"lists/units.xml": data})


def test_code_lists_are_those_that_are_named_seen_from_each_file(tmp_path: Path) -> None:
    """And none that merely lies there."""
    rules, lists = tmp_path / "rules", tmp_path / "rules" / "lists"
    lists.mkdir(parents=True)
    (lists / "units.xml").write_bytes(LIST)
    (lists / "part.sch").write_bytes(
        b'<pattern xmlns="http://purl.oclc.org/dsdl/schematron"><rule context="line">'
        b"<assert id='p' test=\"@u = doc('units.xml')//@code\">p</assert></rule></pattern>"
    )
    main = rules / "main.sch"
    main.write_bytes(
        b'<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">'
        b'<include href="lists/part.sch"/></schema>'
    )
    assert len(read_rule_set(main).refused) == 1
    taken = read_rule_set(main, documents=[lists / "units.xml"])
    assert (len(taken.profiles), len(taken.refused)) == (1, 0)
