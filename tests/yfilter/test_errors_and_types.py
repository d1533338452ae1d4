"""What XQuery says of single functions, operators and constructors, with its errors: F&O 3.1 and
XQuery 3.1, by hand; ``strict`` is how the W3C QT3 suite and ``try`` evaluate."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from yfilter.errors import ProfileRefused
from yfilter.language.evaluator import written
from yfilter.language.functions import ItemKind
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus
from yfilter.language.query_parser import parse_expression, parse_profile

_XML = "xmlns:xml='http://www.w3.org/XML/1998/namespace'"
_FUNCTIONS = "declare default function namespace"
_FN = "http://www.w3.org/2005/xpath-functions"
_LOCAL = "http://www.w3.org/2005/xquery-local-functions"
MESSAGE = b"<o d='2026-03-02' n='5'><a/><a/></o>"


def strictly(expression: str) -> str:
    """The value as it is written, or the code of its error."""
    evaluator = MessageEvaluator(parse_text(MESSAGE), strict=True)
    parsed = parse_expression(expression, context=ItemKind.DOCUMENT)
    try:
        return written(evaluator, evaluator.value(parsed, Focus(DOCUMENT, 1, 1, {}))).decode()
    except DynamicError as error:
        return error.code


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # sums of durations: all of one type that has sums
        ("sum((xs:dayTimeDuration('PT1H'), xs:dayTimeDuration('PT2H')))", "PT3H"),
        ("avg((xs:dayTimeDuration('PT1H'), xs:yearMonthDuration('P1M')))", "FORG0006"),
        ("sum(xs:duration('P1D'))", "FORG0006"),
        ("sum((1, xs:dayTimeDuration('PT1H')))", "FORG0006"),
        # code points are integers
        ("codepoints-to-string((104, 105))", "hi"),
        ("codepoints-to-string(/o/@n ! 104)", "h"),
        ("codepoints-to-string('h')", "XPTY0004"),
        ("codepoints-to-string(104.0)", "XPTY0004"),
        ("codepoints-to-string(0)", "FOCH0001"),
        # arguments that have to be there
        ("index-of((1, 2), ())", "XPTY0004"),
        ("insert-before(1, (), 2)", "XPTY0004"),
        ("remove(1, ())", "XPTY0004"),
        ("string-join('a', ())", "XPTY0004"),
        ("translate('a', (), 'b')", "XPTY0004"),
        ("replace('a', 'b', ())", "XPTY0004"),
        ("math:pow(1, ())", "XPTY0004"),
        ("math:atan2((), 1)", "XPTY0004"),
        # places are integers
        ("remove((1, 2), 2)", "1"),
        ("remove(1 to 6, /o/@n)", "1 2 3 4 6"),
        ("remove((1, 2), 2.0)", "XPTY0004"),
        ("insert-before((1, 2), 2e0, 3)", "XPTY0004"),
        # xs:anyURI beside xs:string, and as a number
        ("max((xs:anyURI('b'), 'a')) instance of xs:string", "true"),
        ("max((xs:anyURI('b'), xs:anyURI('a'))) instance of xs:anyURI", "true"),
        ("namespace-uri(/o) instance of xs:anyURI", "true"),
        ("namespace-uri(()) instance of xs:anyURI", "true"),
        ("number(xs:anyURI('1'))", "NaN"),
        # functions of one node
        ("node-name((/o/a))", "XPTY0004"),
        ("node-name((/o, 1))", "XPTY0004"),
        ("(1, /o) ! root(.)", "XPTY0004"),
        ("resolve-QName('a::', /o)", "FOCA0002"),
        ("resolve-QName('p:a', /o)", "FONS0004"),
        # numbers and days
        ("round-half-to-even(xs:float('0.05'), 1)", "0.1"),
        ("round-half-to-even(0.05, 1)", "0"),
        ("xs:gDay('---30-12:00') eq xs:gDay('---31+12:00')", "true"),
        ("xs:gMonthDay('--01-30-12:00') eq xs:gMonthDay('--01-31+12:00')", "true"),
        ("xs:gMonthDay('--01-30') eq xs:gMonthDay('--01-30Z')", "true"),
        ("xs:gDay('---30') eq xs:gDay('---31')", "false"),
        ("xs:date('9999-01-01') + xs:yearMonthDuration('P1Y')", "FODT0001"),
        # names
        ("xs:NCName(' \u0e40a ')", "\u0e40a"),
        ("xs:NCName('a:b')", "FORG0001"),
        # a sign makes a number of an untyped value
        ("+/o/@n instance of xs:double", "true"),
        ("+/o/@d", "FORG0001"),
        ("+xs:date('2026-01-01')", "XPTY0004"),
        # the base of addresses
        ("declare base-uri 'http://a.example/b'; resolve-uri('c')", "http://a.example/c"),
        ("resolve-uri('c')", "FONS0005"),
        # names of nodes that are renamed
        ("copy $c := /o modify rename node $c/@n as concat('xml', 'ns') return $c", "XQDY0044"),
        (
            "copy $c := <a><?p?></a> modify rename node $c/node() as concat('x', 'ml') return $c",
            "XQDY0064",
        ),
        # an xs:QName that is written down
        ("namespace-uri-from-QName(xs:QName('xs:a')) = ''", "false"),
        ("namespace-uri-from-QName('b' cast as xs:QName) = ''", "true"),
        ("declare default element namespace 'u'; namespace-uri-from-QName(xs:QName('a'))", "u"),
        ("node-name(/o) = xs:QName(' o ')", "true"),
        ("xs:QName(node-name(/o)) = xs:QName('o')", "true"),
        ("('a', 'b') ! 1, 'a' castable as xs:QName", "1 1 true"),
        ("('z:a' castable as xs:QName, '1' castable as xs:QName)", "false false"),
        ("(5 castable as xs:QName, node-name(/o) castable as xs:QName)", "false true"),
        ("() cast as xs:QName", "XPTY0004"),
        ("empty(() cast as xs:QName?)", "true"),
        # functions without a prefix
        (f"{_FUNCTIONS} '{_FN}'; count(/o/a)", "2"),
        (f"{_FUNCTIONS} 'u'; declare function f($a) {{ $a + 1 }}; f(1)", "2"),
        (f"{_FUNCTIONS} 'u'; declare function count() {{ 7 }}; count(), fn:count(1)", "7 1"),
        (f"{_FUNCTIONS} '{_LOCAL}'; declare function local:f() {{ 3 }}; f()", "3"),
        # constructors
        ("string(attribute xml:id { ' a  b ' })", "a b"),
        ("prefix-from-QName(node-name(attribute { QName('urn:a', 'b') } { 1 }))", "ns"),
        ("<r xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:a=''/>", '<r xml:a=""/>'),
        ("<r xmlns:p='urn:{{}}'/>", '<r xmlns:p="urn:{}"/>'),
        ("<r>{/o/@*:nil}</r>", "<r/>"),
        ("<r>{/o/@xsi:nil}</r>", "<r/>"),
    ],
)
def test_the_value_or_the_error_is_that_of_xquery(expression: str, value: str) -> None:
    assert strictly(expression) == value


@pytest.mark.parametrize("function", ["position()", "last()"])
def test_there_is_no_position_without_a_context_item(function: str) -> None:
    evaluator = MessageEvaluator(parse_text(MESSAGE), strict=True)
    with pytest.raises(DynamicError, match="XPDY0002"):
        evaluator.value(parse_expression(function), Focus(None, 1, 1, {}))


@pytest.mark.parametrize(
    ("marked", "code", "reason"),
    [
        ("<r>{/a, processing-instruction ^p:i {'x'}}</r>", "syntax", "the name of a processing"),
        ("<r xmlns:p='urn:p'>{/a}{(# p:x #) {^}}</r>", "syntax", "around nothing (XQST0079)"),
        ("<r>{/a, ^validate lax { /a }}</r>", "unsupported", "validate { } is not"),
        ("<r>{/a, ^validate { /a }}</r>", "unsupported", "validate { } is not"),
        ("<r ^xmlns:p='}'>{/a}</r>", "syntax", "is fixed"),
        (f"<r {_XML} ^{_XML}>{{/a}}</r>", "duplicate-declaration", "given twice"),
        ("<r ^xmlns:xml='urn:x'>{/a}</r>", "syntax", "cannot be declared"),
        ("declare namespace xml = ^'http://www.w3.org/XML/1998/namespace'; /a", "syntax",
         "cannot be declared"),
        ("declare function ^xsi:f() { 1 }; /a", "unsupported", "(XQST0045)"),
        ("declare function f^; /a", "syntax", "unexpected ';'"),
        ("xquery version '1.0' encoding ^'_utf'; /a", "syntax", "(XQST0087)"),
        (f"{_FUNCTIONS} 'u'; /a[^count(b) = 1]", "unknown-function", "count()"),
        (f"{_FUNCTIONS} 'u'; declare ^default function namespace 'u'; /a",
         "duplicate-declaration", "(XQST0066)"),
        (f"{_FUNCTIONS} ''; declare function ^f() {{1}}; /a", "unsupported", "(XQST0060)"),
        ("/a[^empty-sequence()]", "syntax", "empty-sequence() is no function"),
        ("declare function ^item() {1}; /a", "syntax", "item() is no function"),
        ("/a/schema-element(^)", "syntax", "unexpected ')'"),
        ("/a/schema-element(^z:b)", "undeclared-prefix", "'z'"),
        ("/a/^schema-attribute(b)", "unsupported", "(XPST0008)"),
        ("/a/document-node(element(^z:b))", "undeclared-prefix", "'z'"),
        ("/a/document-node(^element(b))", "unsupported", "a test in document-node()"),
        ("/a/element(b^, xs:nothing)", "unsupported", "there is no type xs:nothing (XPST0008)"),
        ("/a[b instance of ^xs:nothing]", "unsupported", "(XPST0051)"),
        ("/a[b instance of ^none()]", "syntax", "there is no type none()"),
        ("/a[b cast as ^node()]", "syntax", "no type of values"),
        ("/a[b cast as ^xs:NOTATION]", "unsupported", "(XPST0080)"),
        ("/a[node-name(.) = xs:QName(^b)]", "unsupported", "not written down"),
        ("/a[node-name(.) = xs:QName(^'z:b')]", "name", "(FONS0004)"),
        ("/a[node-name(.) = xs:QName(^'1')]", "name", "(FORG0001)"),
        ("/a[^resolve-QName('x', 'y', 'z')]", "arity", "with 3 arguments"),
    ],
)  # fmt: skip
def test_refused(marked: str, code: str, reason: str) -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(marked.replace("^", ""))
    refused = caught.value
    assert (refused.code, refused.column) == (code, marked.index("^") + 1), str(refused)
    assert reason in refused.reason, str(refused)
