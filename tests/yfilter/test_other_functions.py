"""Functions and types that elementpath does, against Saxon and against elementpath itself."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from elementpath import XPathContext
from elementpath.xpath31 import XPath31Parser
from lxml import etree

from demo.oracle import canonical
from demo.saxon import Form, Saxon, SaxonError
from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from yfilter import LinkTarget, Matcher, ProfileMatch, ProfileRefused, RouteMatch, routing_query
from yfilter.errors import MatchLimitExceeded
from yfilter.language.functions import other_functions
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse

MESSAGE = (
    b'<o xmlns:p="urn:p" xml:lang="en-GB" d="2026-03-02" t="12:30:00" s="PT90M" y="P14M">'
    b'<a z="2026-01-01T00:00:00+05:00">caf\xc3\xa9 a/b</a><b xml:lang="de">x<c k="1"/></b>'
    b"<p:e>p:n</p:e></o>"
)

EXPRESSIONS = (
    *(
        "(math:pi() * 1000) idiv 1",
        "(count(round(/o/none)), deep-equal(/o/@*, /o/@*))",
        "(math:exp(1), math:exp10(2), math:log(10), math:log10(1000)) ! round(. * 1000)",
        "(math:exp(1000), math:exp(-1000), math:exp10(400), math:log(0), math:log(-1))",
        "(math:sqrt(/o/b/c/@k), math:sqrt(-1), math:pow(2, 10), math:pow(0, -3))",
        "(math:pow(-0e0, -3), math:pow(0, -2), math:pow(-2, 0.5), math:pow(-10, 309))",
        "(math:pow(-1, xs:double('INF')), math:pow(1, xs:double('NaN')), math:pow(0, -0.5))",
        "(math:sin(0), math:cos(0), math:tan(0), math:sin(xs:double('INF')), math:asin(2))",
        "(round(math:atan2(1, -1) * 1000), math:atan2(-0e0, 1), math:atan(0), math:acos(1))",
        "count((math:sqrt(()), math:pow((), 2)))",
        "format-integer(14, 'I')",
        "format-number(string-length(/o/a) * 1.5, '#,##0.00')",
        "format-number(/o/b/c/@k, '00.0')",
        "contains-token(('a b', 'c'), 'b')",
        "parse-ietf-date('Wed, 06 Jun 1994 07:29:35 GMT')",
        "xs:float('1.1') + 1",
        "xs:float(1) div 3",
        "(xs:float('0.000001'), xs:float('1.1') = 1.1)",
        "(-xs:float(2), abs(xs:float(-3)), max((1, xs:float(2.5)))) ! (. instance of xs:float)",
        "xs:dayTimeDuration('PT24H')",
        "xs:yearMonthDuration(/o/@y)",
        "xs:duration('P1Y2M3DT4H')",
        "xs:dayTimeDuration(/o/@s) > xs:dayTimeDuration('PT1H')",
        "/o/@s = xs:dayTimeDuration('PT1H30M')",
        "xs:dayTimeDuration('PT24H') = xs:duration('P1D')",
        "xs:duration('P1D') != xs:duration('PT24H')",
        "xs:date(/o/@d) + xs:dayTimeDuration('P30D')",
        "xs:date(/o/@d) - xs:yearMonthDuration('P1M')",
        "xs:date(/o/@d) - xs:date('2026-02-01')",
        "xs:dateTime(//@z) - xs:dateTime('2025-12-31T00:00:00Z')",
        "xs:dayTimeDuration('PT1H') * 2.5",
        "xs:dayTimeDuration('PT3H') div xs:dayTimeDuration('PT2H')",
        "sum((xs:dayTimeDuration('PT1H'), xs:dayTimeDuration('PT2H')))",
        "avg((xs:dayTimeDuration('PT1H'), xs:dayTimeDuration('PT2H')))",
        "max((xs:dayTimeDuration('PT1H'), xs:dayTimeDuration('PT2H')))",
        "count(distinct-values((xs:dayTimeDuration('PT24H'), xs:dayTimeDuration('P1D'))))",
    ),
    *(
        f"{part}-from-duration(xs:duration('P1Y2M3DT4H5M6.5S'))"
        for part in ("years", "months", "days", "hours", "minutes", "seconds")
    ),
    *(f"{part}-from-time(/o/@t)" for part in ("hours", "minutes", "seconds")),
    *(
        "/o/@t < xs:time('13:00:00')",
        "xs:time('12:00:00+01:00') = xs:time('11:00:00Z')",
        "index-of((xs:time('01:00:00Z'), xs:time('03:00:00+01:00')), xs:time('02:00:00Z'))",
        "xs:time('01:00:00') - xs:time('00:30:00')",
        "dateTime(xs:date(/o/@d), xs:time(/o/@t))",
        "timezone-from-dateTime(//@z)",
        "timezone-from-date(xs:date('2026-01-01+05:00'))",
        "timezone-from-time(xs:time('12:00:00-02:30'))",
        "adjust-date-to-timezone(xs:date('2026-01-01+05:00'), xs:dayTimeDuration('PT0S'))",
        "adjust-dateTime-to-timezone(xs:dateTime(//@z), ())",
        "adjust-time-to-timezone(xs:time('12:00:00Z'), xs:dayTimeDuration('PT2H'))",
    ),
    *(
        "xs:float('1.5') * 2",
        "xs:int(' 7 ') + 1",
        "xs:unsignedByte('255')",
        "string-length(xs:token(' a  b '))",
        "xs:language('en-gb')",
        "xs:anyURI('http://a/b') = 'http://a/b'",
        "xs:hexBinary('abCD') = xs:hexBinary('ABcd')",
        "xs:base64Binary('YWI=')",
        "string(xs:hexBinary(xs:base64Binary('YWI=')))",
        "xs:gYear('2026') = xs:gYear('2026')",
        "xs:gMonthDay('--03-02')",
        "xs:date('2026-03-02') cast as xs:gYearMonth",
        "xs:time(())",
        "'P1D' castable as xs:duration, 'x' castable as xs:time, '300' castable as xs:byte",
        "xs:dayTimeDuration('P1D') instance of xs:duration",
        "xs:float(3) instance of xs:double, xs:anyURI('u') instance of xs:string",
        "xs:float(3) instance of xs:float, xs:anyURI('u') instance of xs:anyURI",
        "xs:duration('P1D') instance of xs:dayTimeDuration",
    ),
    *(
        "encode-for-uri(//a)",
        "iri-to-uri(//a)",
        "escape-html-uri(//a)",
        "resolve-uri('b', 'http://x/a')",
        "codepoint-equal(//b, 'x')",
        "codepoint-equal(//a, ())",
        "string-to-codepoints(normalize-unicode(string(//a), 'NFD'))[5]",
        "count(unordered(//*))",
        "default-collation()",
    ),
    *(
        "//a[lang('en')]/@z",
        "//c/lang('en')",
        "//c/@k/lang('DE')",
        "count(//*[lang('en-gb')])",
        "lang('en', /o/a)",
        "string(node-name(//c/@k))",
        "node-name(/o) = QName('', 'o')",
        "local-name-from-QName(node-name(//*[4])), namespace-uri-from-QName(QName('urn:x', 'q:y'))",
        "prefix-from-QName(QName('urn:x', 'q:y'))",
        "namespace-uri-from-QName(resolve-QName(//*[last()]/*[last()], /o))",
    ),
    "for $x in ('PT2H', 'PT1H') order by xs:dayTimeDuration($x) return $x",
)
# XQuery, or what elementpath alone does otherwise: untyped arguments, namespaces of the message.
_SAXON_ONLY = (
    "math:",  # whose overflows are errors of Python there
    "-from-time(/o",
    "-dateTime(//",
    "6.5S",
    "node-name",
    "resolve-QName",
    "order by",
    "float",
    "lang(",
)


def _ours(expression: str) -> list[str]:
    evaluator = MessageEvaluator(parse_text(MESSAGE), strict=True)
    value = evaluator.value(parse_expression(expression), Focus(DOCUMENT, 1, 1, {}))
    return [evaluator.string(item) for item in value]


@pytest.fixture(scope="module")
def saxon_results() -> dict[str, str]:
    if find_spec("saxonche") is None:
        pytest.skip("saxonche is not installed")
    found = {}
    with Saxon() as saxon:
        saxon.load([MESSAGE])
        for expression in EXPRESSIONS:
            query = f"<r>{{for $v in ({expression}) return <i>{{string($v)}}</i>}}</r>"
            (answer,) = saxon.answers(query, Form.ITEMS)
            assert not isinstance(answer, SaxonError), (expression, answer)
            found[expression] = canonical(answer[0])
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_saxon_gives(expression: str, saxon_results: dict[str, str]) -> None:
    items = "".join(f"<i>{text}</i>" for text in _ours(expression))
    assert canonical(f"<r>{items}</r>".encode()) == saxon_results[expression]


@pytest.mark.parametrize(
    "expression", [text for text in EXPRESSIONS if not any(word in text for word in _SAXON_ONLY)]
)
def test_what_elementpath_gives(expression: str) -> None:
    root = etree.ElementTree(etree.fromstring(MESSAGE))
    found = XPath31Parser().parse(expression).select(XPathContext(root, timezone="Z"))
    texts = [str(getattr(item, "string_value", item)) for item in found]
    assert _ours(expression) == [
        text.lower() if text in ("True", "False") else text for text in texts
    ]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_they_are_written_as_they_are_read(expression: str) -> None:
    written = unparse(parse_expression(expression))
    assert _ours(written) == _ours(expression)


@pytest.mark.parametrize("name", sorted(other_functions().keys() - {"xs:QName"}))
def test_every_one_can_be_called(name: str) -> None:
    """With the least number of arguments: a value, or an error of XPath's."""
    count = other_functions()[name].required
    text = f"//*[count({name}({', '.join(['.'] * count)})) = 1]"
    MessageEvaluator(parse_text(MESSAGE)).select(parse_expression(text), DOCUMENT, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("error()", "FOER0000"),
        ("xs:double('INF') idiv 2", "FOAR0002"),
        ("xs:byte('300')", "FORG0001"),
        ("xs:gYear('2026') lt xs:gYear('2027')", "XPTY0004"),
        ("xs:dayTimeDuration('P1D') lt xs:yearMonthDuration('P1M')", "XPTY0004"),
        ("xs:dayTimeDuration('P1D') = 5", "XPTY0004"),
        ("xs:date('9999-12-31') + xs:dayTimeDuration('P1D')", "FODT0001"),
        ("resolve-QName('q:x', /o)", "FONS0004"),
        ("years-from-duration(5)", "XPTY0004"),
    ],
)
def test_errors(expression: str, code: str) -> None:
    with pytest.raises(DynamicError) as caught:
        _ours(expression)
    assert caught.value.code == code
    assert not _matches(f"/o[if (*) then {expression} else true()]")


@pytest.mark.parametrize(
    ("expression", "code", "expected"),
    [
        ("hours-from-duratoin(.)", "unknown-function", "hours-from-duration()"),
        ("a cast as xs:dayTimeDuraton", "unsupported", "xs:dayTimeDuration"),
        ("encode-for-uri()", "arity", "1 argument"),
        ("xs:QName(a)", "unsupported", "QName("),
        ("not(xs:duration(.))", "type", "a condition"),
        ("xs:date(.) + 1", "type", "a number"),
        ("id('x')", "unsupported", "@xml:id"),
    ],
)
def test_refusals(expression: str, code: str, expected: str) -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(f"/o[{expression}]")
    assert caught.value.code == code
    assert expected in str(caught.value)


def _matches(profile: str) -> bool:
    """Whether it matches; the routing query must not lose the message then."""
    matcher = Matcher()
    matcher.add(profile, "p")
    for conjunction in routing_query(parse_profile(profile)):
        matcher.add_route(conjunction, LinkTarget("root", "l"))
    found = list(matcher.match(parse_text(MESSAGE), "root"))
    matched = any(isinstance(match, ProfileMatch) for match in found)
    assert not matched or any(isinstance(match, RouteMatch) for match in found)
    return matched


@pytest.mark.parametrize(
    ("profile", "matches"),
    [
        ("/o[xs:dayTimeDuration(@s) > xs:dayTimeDuration('PT1H')]/a", True),
        ("/o[@s > xs:dayTimeDuration('PT2H')]", False),
        ("//c[lang('de')]", True),
        ("//c[@k][lang('en')]", False),
        ("/o[hours-from-time(@t) >= 12][encode-for-uri(b) = 'x']", True),
        ("for $a in //a where codepoint-equal($a/../b, 'x') return <r/>", True),
        ("/o[xs:date(@d) + xs:dayTimeDuration(a) = xs:date('2026-01-01') or true()]", True),
        ("/o[xs:date(@d) + xs:dayTimeDuration(a) = xs:date('2026-01-01') and true()]", False),
    ],
)  # fmt: skip
def test_profiles_match_and_routing_loses_nothing(profile: str, matches: bool) -> None:
    assert _matches(profile) is matches


def test_a_profile_that_falls_back_is_explained() -> None:
    matcher = Matcher()
    matcher.add("//item[@n = 1][xs:time(@at) > xs:time('12:00:00')]", "p")
    assert "elementpath" in str(matcher.explain("p"))


@pytest.mark.parametrize(
    "expression",
    [
        "for $i in 1 to 100 return xs:dayTimeDuration('P1D')",
        "for $i in 1 to 100 return 'P1D' castable as xs:duration",
        "let $d := xs:duration('P1D') return (for $i in 1 to 40 return string($i)) = $d",
        "for $d in xs:date('2026-01-01'), $i in 1 to 100 return $d - $d",
    ],
)
def test_calls_are_charged(expression: str) -> None:
    limits = EvaluationLimits(visits_max=1_000)
    evaluator = MessageEvaluator(parse_text(MESSAGE), limits)
    with pytest.raises(MatchLimitExceeded):
        evaluator.value(parse_expression(expression), Focus(DOCUMENT, 1, 1, {}))


def test_the_text_of_a_call_about_the_context_item_is_read_again() -> None:
    """What lang() is about is no node here: an error of messages, and no refusal."""
    for text in ('1[lang("en-us")]', '//b[lang("de", .)]', '() ! lang("en")'):
        tree = parse_expression(text)
        assert parse_expression(unparse(tree)) == tree
