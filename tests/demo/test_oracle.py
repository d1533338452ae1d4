"""The oracle itself, on results written by hand; and the system against the oracle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from lxml import etree

import demo
from demo.oracle import canonical, expected_results
from demo.oracle_text import NotUnderstoodError
from demo.saxon_oracle import can_ask
from formats.text import parse_text
from tests.examples import examples
from tests.yfilter.evaluated import holds, select
from tests.yfilter.profile_strategies import conditions, messages, profiles
from yfilter.compiled_deciders import render
from yfilter.language.matching_path import matching_part, matching_path
from yfilter.language.query_ast import (
    Constructor,
    Expression,
    Flwor,
    Origin,
    PathExpression,
    Profile,
)
from yfilter.language.query_parser import parse_path, parse_profile
from yfilter.language.query_text import unparse

MESSAGE = b"""<?xml version="1.0"?>
<!DOCTYPE s [<!ENTITY e "five &#53;">]>
<s:s xmlns:s="urn:s" xmlns="urn:d" day="1"><?pi x?>
  <item id="i1" n="5">one<!--c--> more &e;</item>
  <item id="i2" n="x">two</item>
  <s:item id="i3" n=" 1e1 "><plain xmlns="">p</plain></s:item>
</s:s>"""


@pytest.mark.parametrize(
    ("profile", "results"),
    [
        ("//*:item[@n = 5]", [MESSAGE]),
        ("//item", []),
        ('declare default element namespace "urn:d"; //item[. = "two"]', [MESSAGE]),
        ('declare namespace q = "urn:s"; /q:s[q:item/@n = 10]/@day', [MESSAGE]),
        ("//*:item[@n != 5][@n = 'x']", []),  # "x" is no number, so it does not differ from 5
        ("//*[contains(*:item, 'one')]", [MESSAGE]),  # the first of three items
        ("//*[contains(*:item, 'two')]", []),
        ("//*:item[. = 'one more five 5']", [MESSAGE]),
        (
            "for $i in //*:item where $i/@n >= 5 return <r n='{$i/@n}'>{$i/@id}{$i/text()}</r>",
            [b'<r n="5" id="i1">one more five 5</r>', b'<r n=" 1e1 " id="i3"/>'],
        ),
        (
            """for $i in //Q{urn:s}item, $p in $i/plain let $n := count($i/*)
            return <r xmlns='urn:d'>{ (: comment :) $p } {$n} <![CDATA[ ]]></r>""",
            [b'<r xmlns="urn:d"><plain xmlns="">p</plain>1  </r>'],
        ),
        (
            "for $s in /*:s return <r>{$s//@id}{$s/*//text()}</r>",
            [b'<r id="i1">one more five 5twop</r>'],
        ),
        (
            "for $s in //*:s[string-join(.//text(), '') = .] return <r>{$s/*//text()/..}</r>",
            [
                b"""<r><item xmlns="urn:d" id="i1" n="5">one<!--c--> more five 5</item><item
                xmlns="urn:d" id="i2" n="x">two</item><plain>p</plain></r>""",
            ],
        ),
        (
            "<all>{for $i in //*:item return string($i/@id)}{{&lt;</all>",
            [b"<all>i1 i2 i3{&lt;</all>"],
        ),
        ("<all>{for $i in //*:item where $i/@n = 7 return $i}</all>", []),
        (
            "for $i in //*:item where $i/@id = 'i2' return $i",
            [b'<item xmlns="urn:d" id="i2" n="x">two</item>'],
        ),
        (
            "for $p in //plain return <x a='1'>{$p/../@id}{$p/../../@day}{$p/../@id} z {1e10}</x>",
            [b'<x a="1" id="i3" day="1"> z 1.0E10</x>'],
        ),
        (
            """for $p in //plain let $for := $p/.. where $for/@n
            return <return for='for $x return'>{$for/plain}</return>""",
            [b'<return for="for $x return"><plain>p</plain></return>'],
        ),
    ],
)
def test_by_hand(profile: str, results: list[bytes]) -> None:
    expected = [canonical(result) for result in results]
    assert [canonical(result) for result in expected_results(profile, MESSAGE)] == expected
    assert [canonical(result) for result in _results(parse_profile(profile), MESSAGE)] == expected


def test_canonical_ignores_prefixes_and_unused_declarations_only() -> None:
    assert canonical(b'<p:a xmlns:p="u" xmlns:q="v"/>') == canonical(b'<a xmlns="u"></a>')
    assert canonical(b"<a b='1' c='2'/>") == canonical(b'<a c="2" b="1"/>')
    different = [b"<a/>", b"<a> </a>", b"<a><!--c--></a>", b'<a xmlns="u"/>', b"<a b=''/>"]
    assert len({canonical(document) for document in different}) == len(different)


def test_entities_outside_the_message_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    message = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{secret.as_uri()}">]><a>&e;</a>'.encode()
    try:
        found = expected_results('/a[contains(., "secret")]', message)
    except etree.XMLSyntaxError:
        found = []
    assert found == []


def test_what_is_no_profile() -> None:
    with pytest.raises(NotUnderstoodError):
        expected_results("for $a in /b", MESSAGE)


def test_shares_no_code_with_the_system() -> None:
    for name in ("oracle.py", "oracle_text.py"):
        tree = ast.parse((Path(demo.__file__).parent / name).read_text())
        imported = {
            alias.name if isinstance(node, ast.Import) else str(node.module)
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        packages = {module.partition(".")[0] for module in imported}
        assert not packages & {"formats", "yfilter", "overlay", "registration", "onyx"}


@examples(200)
@given(conditions(), messages())
def test_conditions_agree(condition: Expression, message: bytes) -> None:
    stream = parse_text(message)
    ours = [element for element in range(len(stream)) if holds(condition, stream, element)]
    text = f"for $e in //*[{unparse(condition)}] return <e>{{count($e//*)}}</e>"
    expected = [f"<e>{stream.element_end[e] - e - 1}</e>".encode() for e in ours]
    assert expected_results(text, message) == expected, text
    paths = select(parse_path(f"//*[{unparse(condition)}]"), stream)
    assert [node.number for node in paths] == ours


@examples(200)
@given(profiles(), messages())
def test_results_agree(body: PathExpression | Flwor | Constructor, message: bytes) -> None:
    text = unparse(body)
    ours = _results(Profile(body), message)
    expected = expected_results(text, message)
    assert [canonical(result) for result in ours] == [canonical(result) for result in expected]
    path = matching_path(Profile(body))
    assert path.origin is Origin.MESSAGE
    assert parse_path(unparse(path)) == path
    matched = bool(select(path, parse_text(message)))
    assert matched or not expected, "the matching path says more than the profile"
    if not matching_part(Profile(body)).has_remainder:
        assert matched == bool(expected), "the matching path says less than the profile"


def _results(profile: Profile, message: bytes) -> list[bytes]:
    stream = parse_text(message)
    bindings = [node.number for node in select(matching_path(profile), stream)]
    return render(profile, stream, bindings)


@pytest.mark.skipif(not can_ask(), reason="needs saxonche")
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("for $x at $n in //a return <r>{$n}</r>", [b"<r>1</r>", b"<r>2</r>"]),
        (
            "for $x in //a order by $x/@n descending return <r>{$x/@n}</r>",
            [b'<r n="2"/>', b'<r n="1"/>'],
        ),
        ("(: a :) <r>{ for $x in //a order by $x/@n return <s/> }</r>", [b"<r><s/><s/></r>"]),
        ("<r>{ for $x in //z order by $x/@n return <s/> }</r>", []),
        ("for $x in //a return if ($x/b) then element y { 1 } else <n/>", [b"<y>1</y>", b"<n/>"]),
    ],
)
def test_what_elementpath_cannot_say_is_left_to_saxon(profile: str, expected: list[bytes]) -> None:
    message = b'<o><a n="1"><b/></a><a n="2"/></o>'
    found = expected_results(profile, message)
    assert [canonical(result) for result in found] == [canonical(one) for one in expected]


@pytest.mark.skipif(not can_ask(), reason="needs saxonche")
def test_an_error_of_saxon_is_none_of_the_oracles_answers() -> None:
    with pytest.raises(NotUnderstoodError):
        expected_results("for $x in //a order by xs:date($x) return $x", b"<a>x</a>")
    with pytest.raises(NotUnderstoodError):
        expected_results("<r>{//a}<b/>{for $x in //a order by $x return $x}</r>", b"<a>x</a>")
