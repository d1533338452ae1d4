"""Values of type xs:QName: in constructors, where their namespaces are declared, and compared."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from tests.yfilter import interpreted
from yfilter import Matcher
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse

MESSAGE = (
    b'<r xmlns="urn:d" xmlns:p="urn:p" p:at="v" b="p:q"><p:e c="1">t</p:e><f/><?target x?></r>'
)


def delivered(profile: str) -> list[bytes]:
    """What the engine delivers; the interpreter and the profile written anew deliver the same."""
    matcher = Matcher()
    matcher.add(profile)
    found = [result for _, results, *_ in matcher.deliver(MESSAGE) for result in results]
    stream = parse_text(MESSAGE)
    assert interpreted.results(profile, stream) == found
    assert interpreted.results(unparse(parse_profile(profile)), stream) == found
    return found


@pytest.mark.parametrize(
    ("profile", "result"),
    [
        (
            "for $x in //*:e return element { node-name($x) } { $x/text() }",
            b'<p:e xmlns:p="urn:p">t</p:e>',
        ),
        (
            "<a>{ for $x in /*/@* return attribute { node-name($x) } { string($x) } }</a>",
            b'<a xmlns:p="urn:p" p:at="v" b="p:q"/>',
        ),
        (
            "<a>{ //*:e/@*/attribute { node-name(.) } { 2 } }</a>",
            b'<a c="2"/>',
        ),
        ('element { QName("urn:x", "p:q") } {}', b'<p:q xmlns:p="urn:x"/>'),
        (
            'element { QName("urn:x", "q") } { <in/> }',
            b'<q xmlns="urn:x"><in xmlns=""/></q>',
        ),
        (
            'element { QName("urn:x", "p:q") } { attribute { QName("urn:y", "p:r") } { 1 } }',
            b'<p:q xmlns:p="urn:x" xmlns:p1="urn:y" p1:r="1"/>',
        ),
        (
            "for $x in /* return element { resolve-QName($x/@b, $x) } { 1 }",
            b'<p:q xmlns:p="urn:p">1</p:q>',
        ),
        (
            "for $x in //processing-instruction() return element { node-name($x) } {}",
            b"<target/>",
        ),
        (
            (
                "declare function local:c($n) { element { node-name($n) } { $n/@*,"
                " for $k in $n/* return local:c($k) } }; for $x in /*/*:f return local:c($x)"
            ),
            b'<f xmlns="urn:d"/>',
        ),
        (
            (
                "<n>{ for $x in /*:r let $n := node-name($x/*:e), $q := QName('u', 'a:b') return ("
                "local-name-from-QName($n), namespace-uri-from-QName($n), prefix-from-QName($q),"
                " prefix-from-QName(node-name($x))) }</n>"
            ),
            b"<n>e urn:p a</n>",
        ),
        (
            (
                "<n>{ for $x in //*:e return (node-name($x) eq QName('urn:p', 'other:e'),"
                " node-name($x) = (QName('', 'e'), QName('urn:p', 'f'))) }</n>"
            ),
            b"<n>true false</n>",
        ),
    ],
)
def test_names_that_are_computed(profile: str, result: bytes) -> None:
    assert delivered(profile) == [result]


@pytest.mark.parametrize(
    "name",
    [
        'QName("urn:x", concat("xmlns:", name($x)))',
        'QName("urn:x", concat("xml:", name($x)))',
        'QName("", concat("p:", name($x)))',
        'concat("1", name($x))',
        'concat("z:", name($x))',
    ],
)
def test_what_is_no_name_of_an_element_is_an_error_of_the_message(name: str) -> None:
    assert delivered(f"for $x in /* return element {{ {name} }} {{}}") == []
