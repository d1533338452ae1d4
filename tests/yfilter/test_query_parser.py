"""What the parser accepts, what it refuses and where, and that nothing else comes out of it."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from yfilter import Matcher, ProfileMatch
from yfilter.errors import ProfileRefused
from yfilter.language import query_parser
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    ANY,
    And,
    Comparison,
    Constructor,
    Flwor,
    ForClause,
    FunctionCall,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Operator,
    Origin,
    PathExpression,
)
from yfilter.language.query_parser import (
    QueryParser,
    parse_anew,
    parse_expression,
    parse_path,
    parse_profile,
)
from yfilter.language.query_text import unparse


def _child(local: str, *predicates: object, namespace: str = "") -> LocationStep:
    return LocationStep(False, NodeKind.ELEMENT, NameTest(namespace, local), predicates)  # type: ignore[arg-type]


def _attribute(local: str) -> LocationStep:
    return LocationStep(False, NodeKind.ATTRIBUTE, NameTest("", local))


def _context(*steps: LocationStep) -> PathExpression:
    return PathExpression(Origin.CONTEXT, steps)


def test_the_papers_path() -> None:
    """Q1 of figure 5."""
    subject = LocationStep(
        True,
        NodeKind.ELEMENT,
        NameTest("", "tobject.subject"),
        (Comparison(_context(_attribute("tobject.subject.type")), Operator.EQ, Literal("Stock")),),
    )
    area = Comparison(_context(_attribute("edition.area")), Operator.EQ, Literal("SF"))
    expected = PathExpression(
        Origin.MESSAGE,
        (_child("nitf", _context(_child("head"), _child("pubdata", area)), _context(subject)),),
    )
    text = """$msg/nitf [head/pubdata[@edition.area = "SF"]]
                        [.//tobject.subject[@tobject.subject.type = "Stock"]]"""
    assert parse_profile(text).body == expected
    assert parse_profile(text).text == text


# As printed, but for quotation marks and hyphens, which are the typesetter's.
PAPER = {
    "2.1 filter": """$msg/nitf [head/pubdata[@edition.area = "SF"]]
        [.//tobject.subject[@tobject.subject.type = "Stock"]]""",
    "2.1 transformation": """for $n in $msg/nitf where $n/head/pubdata/@edition.area = "SF" and
        $n//tobject.subject/@tobject.subject.type = "Stock" return <stock_news>
        {$n/body/body.head/hedline} {$n/body/body.content} </stock_news>""",
    "3.2": """<batched-nitf> { for $n in $msg/batched-nitf/nitf
        where $n/head/pubdata/@edition.area ="SF" return $n } </batched-nitf>""",
    "figure 4, broker 2": '/nitf/head/pubdata[@edition.area="NY"]',
    "figure 4, broker 4": '/nitf/head/pubdata[@edition.area="SF"]',
    "figure 4, broker 5": """/nitf//tobject.subject[@tobject.subject.type="Stock"] |
        /nitf//tobject.subject[@tobject.subject.matter="fishing"]""",
    "figure 4, broker 6": '/nitf//series[@series.name ="Tide Forecasts"]',
    "figure 5, Q1": """$msg/nitf[head/pubdata[@edition.area="SF"]]
        [.//tobject.subject[@tobject.subject.type="Stock"]]""",
    "figure 5, Q2": """$msg/nitf[head/pubdata[@edition.area="SF"]]
        [.//tobject.subject[@tobject.subject.matter="fishing"]]""",
    "figure 5, Q3": """<nitf> { for $n in $msg/nitf where $n/head/pubdata/@edition.area ="SF" and
        $n//series/@series.name ="Tide Forecasts" return {$n/body/body.content} } </nitf>""",
    "figure 6, Q1": """/nitf[head/pubdata/@edition.area="SF"]
        [.//tobject.subject/@tobject.subject.type="Stock" ]""",
    "figure 6, Q2": """/nitf[head/pubdata/@edition.area="SF"]
        [.//tobject.subject/@tobject.subject.matter="fishing"]""",
    "4.4, one": "/a/b[@id=1]",
    "4.4, other": "//d",
}
NEWS = b"""<nitf><head><pubdata edition.area="SF"/></head>
<tobject tobject.type="n"><tobject.subject tobject.subject.type="Stock"/></tobject>
<series series.name="Tide Forecasts"/>
<body><body.head><hedline>Up</hedline></body.head><body.content><p>High</p></body.content></body>
</nitf>"""


@pytest.mark.parametrize("name", PAPER)
def test_the_queries_of_the_paper_are_read_as_printed(name: str) -> None:
    profile = parse_profile(PAPER[name])
    assert parse_profile(unparse(profile)) == profile


def test_the_queries_of_the_paper_do_what_it_says() -> None:
    matcher = Matcher()
    for name, text in PAPER.items():
        matcher.add(text, name)
    found = {
        match.profile_id: match.results()
        for match in matcher.match(NEWS)
        if isinstance(match, ProfileMatch)
    }
    assert sorted(found) == [
        *("2.1 filter", "2.1 transformation", "figure 4, broker 4", "figure 4, broker 5"),
        *("figure 4, broker 6", "figure 5, Q1", "figure 5, Q3", "figure 6, Q1"),
    ]
    assert found["figure 5, Q3"] == [b"<nitf><body.content><p>High</p></body.content></nitf>"]
    assert found["2.1 transformation"] == [
        b"<stock_news><hedline>Up</hedline><body.content><p>High</p></body.content></stock_news>"
    ]


def test_braces_around_what_return_yields_change_nothing() -> None:
    for inside in ("$a/b", "$a/b, $a/c", "for $b in $a/b return $b", "(: c :) <x/>"):
        braced = parse_profile(f"for $a in /a return {{ {inside} }}")
        assert braced == parse_profile(f"for $a in /a return ({inside})")


def test_the_papers_transformation() -> None:
    """Q3 of figure 5, with a namespace and attributes added."""
    profile = parse_profile(
        """declare namespace p = "urn:p";
        <nitf> {
          for $n in $msg/nitf
          where $n/head/pubdata/@edition.area = "SF" and $n//p:series
          return <p:r id="n{$n/@id}"> a {$n/body/body.content} </p:r>
        } </nitf>"""
    )
    assert isinstance(profile.body, Constructor)
    flwor = profile.flwor
    assert flwor is not None
    assert profile.body.content == (flwor,)  # boundary white space is gone
    assert flwor.clauses == (ForClause("n", PathExpression(Origin.MESSAGE, (_child("nitf"),))),)
    assert isinstance(flwor.where, And)
    assert flwor.where.parts[1] == PathExpression(
        Origin.VARIABLE,
        (LocationStep(True, NodeKind.ELEMENT, NameTest("urn:p", "series")),),
        "n",
    )
    result = flwor.result
    assert isinstance(result, Constructor)
    assert result.declarations == (("p", "urn:p"),)
    body = PathExpression(Origin.VARIABLE, (_child("body"), _child("body.content")), "n")
    assert result.content == (" a ", body)
    identity = PathExpression(Origin.VARIABLE, (_attribute("id"),), "n")
    assert result.attributes[0][1] == ("n", identity)


@pytest.mark.parametrize(
    ("step", "kind", "test"),
    [
        ("a", NodeKind.ELEMENT, NameTest("urn:d", "a")),
        ("*", NodeKind.ELEMENT, NameTest(ANY, ANY)),
        ("p:a", NodeKind.ELEMENT, NameTest("urn:p", "a")),
        ("p:*", NodeKind.ELEMENT, NameTest("urn:p", ANY)),
        ("*:a", NodeKind.ELEMENT, NameTest(ANY, "a")),
        ("Q{urn:q}a", NodeKind.ELEMENT, NameTest("urn:q", "a")),
        ("Q{}a", NodeKind.ELEMENT, NameTest("", "a")),
        ("Q{urn:q&amp;}*", NodeKind.ELEMENT, NameTest("urn:q&", ANY)),
        ("for", NodeKind.ELEMENT, NameTest("urn:d", "for")),
        ("text", NodeKind.ELEMENT, NameTest("urn:d", "text")),
        ("@a", NodeKind.ATTRIBUTE, NameTest("", "a")),
        ("@*", NodeKind.ATTRIBUTE, NameTest(ANY, ANY)),
        ("@p:a", NodeKind.ATTRIBUTE, NameTest("urn:p", "a")),
        ("@ *:a", NodeKind.ATTRIBUTE, NameTest(ANY, "a")),
        ("@xml:lang", NodeKind.ATTRIBUTE, NameTest("http://www.w3.org/XML/1998/namespace", "lang")),
        ("text()", NodeKind.TEXT, None),
    ],
)
def test_steps(step: str, kind: NodeKind, test: NameTest | None) -> None:
    prolog = 'declare default element namespace "urn:d"; declare namespace p = "urn:p"; '
    body = parse_profile(f"{prolog}/r//{step}").body
    assert isinstance(body, PathExpression)
    assert body.steps[1] == LocationStep(True, kind, test)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("$msg//a", "//a"),
        ("/a(: a (: nested :) comment :)/b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/.[b]/c", "/a[b]/c"),
        ("/a[./b/.]", "/a[b]"),
        ("/a[(b)]", "/a[b]"),
        ("/a[(b or c) or d]", "/a[b or c or d]"),
        ("/a[fn:contains(b, 'x')]", '/a[contains(b, "x")]'),
        ("/a[b = 'it''s']", '/a[b = "it\'s"]'),
        ("/a[b = '&lt;&#65;&#x42;']", "/a[b = '<AB']"),
        ("/a[b = 5.0]", "/a[b = 5.00]"),
        ("/a[b = +5]", "/a[b = 5]"),
        ("/a[b\r\n= 1]", "/a[b = 1]"),
        ("for $x in /a, $y in $x/b return $y", "for $x in /a for $y in $x/b return $y"),
        ("for $x in /a return <r> {$x} </r>", "for $x in /a return <r>{$x}</r>"),
        ("for $x in /a return <r>{<s/>}</r>", "for $x in /a return <r><s/></r>"),
        ("for $x in /a return <r a='&lt;{{}}''\t'/>", 'for $x in /a return <r a="&lt;{{}}\' "/>'),
        ("for $x in /a return <r><![CDATA[{&]]></r>", "for $x in /a return <r>{{&amp;</r>"),
        ("for $x in /a return <r><s></s ></r >", "for $x in /a return <r><s/></r>"),
    ],
)
def test_equal_profiles(written: str, same: str) -> None:
    assert parse_profile(written) == parse_profile(same)
    assert hash(parse_profile(written).body) == hash(parse_profile(same).body)


@pytest.mark.parametrize(
    "text",
    [
        "/a[b != c]",
        "/a[-1 < b][+1 > b]",
        "/a[not(b) and count(c) >= 2]",
        "/a[matches(b, '^x+$', 'i')]",
        "/a[string-join(b, ',') = concat(c, 1, 'x')]",
        "/a[string-length() > 5][normalize-space() = 'x'][number() < 5][string() = 'x']",
        "/a[@b/../c[text()/.. = 'x']]",
        "/a[/b = $msg/c]",
        "//@a[. = 5]",
        "/a//text()",
        "for $a in /a let $b := $a/b, $c := 'x' where $b = $c return <r>{$c}</r>",
        "for $a in /a let $b := contains($a, 'x') where $b return $a",
        "for $a in /a for $b in $a//b where $a/@i = $b/@i return <r>{$b/@*}{$a/text()}</r>",
        "for $a in /a, $b in //b return $b",
        "for $a in /a where $a[b = $a/c] return $a/..",
        "<r x='{/a/@y}'>before{for $a in /a return $a/text()}<after/></r>",
        "<r>{for $a in /a return <s>{for $b in $a/b let $c := $b/c return $c}</s>}</r>",
        "for $a in /a return for $b in $a/b return $b",
    ],
)
def test_accepted(text: str) -> None:
    parse_profile(text)


# text with ^ before the place, code, a part of the reason, what was expected
REFUSED = [
    # the shape of a profile
    ("^a/b", "syntax", "unexpected 'a'", "a path that starts with $msg"),
    ("^$msg", "type", "the whole message", "$msg/* for every message"),
    ("/a/^", "syntax", "the end of the profile", "a step: a name"),
    ("/a^]", "syntax", "unexpected ']'", "the end of the profile"),
    ("<r>{for $a in /a return $a}</r>^)", "syntax", "unexpected ')'", "the end of the"),
    # lexis
    ("/a[^“x”]", "syntax", "typographic", "a straight quotation mark"),
    ('/a[b = ^"x]', "syntax", "not closed", 'a closing "'),
    ("/a[^(: b]", "syntax", "comment is not closed", "':)'"),
    ("/a[b = 5^x]", "syntax", "a number runs into a name", "white space"),
    ("/a[^#]", "syntax", "'#' has no meaning", ""),
    ("/a[b = 'x^&y']", "syntax", "'&' does not begin", "'&amp;'"),
    ("/a[b = 'x^&copy;']", "syntax", "the entity &copy;", "&lt;"),
    ("/a[b = '^&#0;']", "syntax", "not a character", ""),
    ("/a^\x00", "syntax", "U+0000", ""),
    ("/a[b = ^1e999]", "number", "too large", "at most 64"),
    # names
    ("/^p:a", "undeclared-prefix", "'p' is not declared", 'declare namespace p = "…";'),
    ("for $a in /a return <^p:r/>", "undeclared-prefix", "'p'", "declare namespace p"),
    ("/^*:*", "syntax", "'*:*'", "'*'"),
    ("/^Q{*}a", "syntax", "'*' is not a namespace", "the URI"),
    ('declare namespace ^= "u"; /a', "syntax", "unexpected '='", "a prefix"),
    ('declare namespace xml = ^"u"; /a', "syntax", "'xml' cannot be declared", ""),
    ('declare namespace p = ""; /^p:a', "undeclared-prefix", "'p' is not declared", ""),
    ('declare namespace p = "u" ^/a', "syntax", "unexpected '/'", "';'"),
    (
        'declare namespace p = "u"; declare ^namespace p = "v"; /a',
        "duplicate-declaration",
        "'p' is declared twice",
        "",
    ),
    ("declare ^option o 'x'; /a", "unsupported", "a declaration of", "'namespace', "),
    ("declare function ^f() { 5 }; /a", "unsupported", "cannot declare", "local:f"),
    ('xquery version ^"2.0"; /a', "unsupported", "another version", "3.1"),
    ("declare copy-namespaces ^no-preserve, inherit; /a", "unsupported", "without namespaces", ""),
    ("declare default collation ^'urn:c'; /a", "unsupported", "a collation", "codepoint"),
    ("declare ordering ordered; declare ^ordering ordered; /a", "duplicate-declaration", "", ""),
    # steps
    ("/^namespace::a", "unsupported", "the axis namespace::", "namespace-uri("),
    ("/^chidl::a", "syntax", "the axis chidl::", "child::"),
    ("/a/@^comment()", "type", "can never select an attribute", "a name"),
    ("/a[b/text(^c)]", "syntax", "unexpected 'c'", "')'"),
    ("/a/^item()", "unsupported", "item() is", "node()"),
    ("/a/element(b^, xs:date)", "unsupported", "a type in a test", "the name alone"),
    ("/a/comment()/^b", "idle-path", "can never select", ""),
    # whole profiles
    ("^", "syntax", "the end of the profile", "a path, a literal"),
    ("^$x/b", "unbound-variable", "$x is not bound", "$msg"),
    ("^b/c", "syntax", "unexpected 'b'", "a path that starts with $msg"),
    ("^/a = 5", "type", "is a condition", "in brackets: /*[…]"),
    ("^1 + 1", "type", "not an element", ""),
    ("^<r/>", "unsupported", "holds nothing of the message", "{ for … return … }"),
    ("^<r><s>{/a}</s></r>", "unsupported", "holds nothing of the message", ""),
    ("/^@a", "idle-path", "can never select", ""),
    ("/a/@b/^c", "idle-path", "can never select", ""),
    ("/a[b/text()/^@c]", "idle-path", "can never select", ""),
    # conditions
    ("/a[^]", "syntax", "unexpected ']'", "a condition"),
    ("/a[b^", "syntax", "the end of the profile", "']' or an operator"),
    ("/a[b ^=> 5]", "syntax", "'=>' is not an operator", "'>='"),
    ("/a[b ^== 5]", "syntax", "'=='", "'='"),
    ("/a[b ^&& c]", "syntax", "'&&'", "'and'"),
    ("/a[^!b]", "syntax", "'!'", "not()"),
    ("/a[b = c ^= d]", "syntax", "a comparison of a comparison", "'and'"),
    ("/a[^string(b) = 5]", "type", "a string is compared with a number", "number(…)"),
    ("/a[^'x' < 5]", "type", "a string is compared with a number", ""),
    ("/a[contains(b, 'x') ^= 'true']", "type", "cannot compare a condition", ""),
    ("/a[b = ^]", "syntax", "unexpected ']'", "a path, a literal or a function call"),
    ("/a[b ^+ 'x' = 6]", "type", "'+' cannot reckon with a string", "number(…)"),
    ("/a[^-'x' = b]", "type", "a sign", "a number"),
    ("/a['y' ^| 'x']", "type", "joins nodes", "paths"),
    ("/a[^xs:date(b) = 'x']", "type", "a date is compared with a string", "a conversion"),
    ("/a[1 to 2 ^to 3]", "syntax", "a range of ranges", "one 'to'"),
    ("/a[if (b) then c^]", "syntax", "unexpected ']'", "'else'"),
    ("/a[some $x in b ^return $x]", "syntax", "unexpected 'return'", "'satisfies'"),
    ("/a[b cast as ^xs:datTime]", "unsupported", "no type that can be cast to", "xs:dateTime"),
    ("/a[b instance of ^xs:int]", "unsupported", "the type xs:int", "xs:date"),
    ("/a[b treat ^of node()]", "syntax", "unexpected 'of'", "'as'"),
    ("/a[typeswitch (b)^]", "syntax", "unexpected", "'case'"),
    # functions
    ("/a[^doc('x')]", "unsupported", "doc()", "$msg"),
    ("/a[^xs:dat(b)]", "unknown-function", "xs:dat()", "xs:date()"),
    ("/a[^contain(b, 'x')]", "unknown-function", "contain()", "contains()"),
    ("/a[^true(1)]", "arity", "with 1 argument", "no arguments"),
    ("/a[^contains(b)]", "arity", "with 1 argument", "2 arguments"),
    ("/a[^not()]", "arity", "with 0 arguments", "1 argument"),
    ("/a[^concat(b)]", "arity", "with 1 argument", "2 or more arguments"),
    ("/a[contains(b, ^5)]", "type", "argument 2 of contains()", "a path or a string"),
    ("/a[matches(b, ^5)]", "type", "argument 2 of matches()", "a regular expression as a path"),
    ("/a[matches(b, ^'(x')]", "pattern", "without its", ""),
    ("/a[matches(b, ^'x', 'g')]", "pattern", "'g' is not a flag", ""),
    ("for $a in /a where ^string() = 'x' return $a", "no-context", "string()", "string($variable)"),
    # FLWOR
    ("for $a in /a where ^b return $a", "no-context", "relative path", "starts with a variable"),
    ("for $a in /a where ^$b return $a", "unbound-variable", "$b is not bound", "$msg, $a"),
    ("for $a in /a^", "syntax", "the end of the profile", "'return'"),
    ("for $a in /a where $a/b^", "syntax", "the end of the profile", "'return' or an operator"),
    ("for $a as ^item in /a return $a", "unsupported", "the type item is", "xs:string"),
    ("for $a in /a order by $a ^collation 'x' return $a", "unsupported", "a collation", ""),
    ("for $a in /a order by $a empty ^last return $a", "syntax", "unexpected 'last'", "'least'"),
    ("for $a in /a group by $b := $a/b ^group by $a return $a", "unsupported", "group by", ""),
    ("for $a at ^$a in /a return $a", "duplicate-variable", "$a", "another name"),
    ("for $a ^of /a return $a", "syntax", "unexpected 'of'", "'in'"),
    ("for ^$msg in /a return $msg", "duplicate-variable", "$msg", "another name"),
    ("for $a in /a let $b ^= $a/b return $b", "syntax", "unexpected '='", "':='"),
    ("for $a in /a let $b := 'x' return <r>{$b^/c}</r>", "type", "needs nodes", ""),
    ("for $a in /a return ^$a/@b", "type", "not an element", "or a constructor: <result>"),
    ("for $a in /a return ^string($a)", "type", "not an element", "a constructor"),
    ("for $a in /a return ^for $t in $a/text() return $t", "type", "not an element", ""),
    # constructors
    ("for $a in /a return ^<r>", "syntax", "<r> is not closed", "</r>"),
    ("for $a in /a return <r>^</s>", "syntax", "</s> closes <r>", "</r>"),
    ("for $a in /a return <r ^{$a}/>", "syntax", "not a name", "an attribute"),
    ("for $a in /a return <r b^/>", "syntax", "has no value", "'='"),
    ("for $a in /a return <r b=^5/>", "syntax", "not quoted", "a quotation mark"),
    ("for $a in /a return <r b=^'/>", "syntax", "not closed", "a closing '"),
    ("for $a in /a return <r b='^<'/>", "syntax", "'<' in the value", "'&lt;'"),
    ("for $a in /a return <r b='1' ^b='2'/>", "duplicate-attribute", "b is given twice", ""),
    ("for $a in /a return <r ^xmlns:p='{$a}'/>", "syntax", "is fixed", "a URI without"),
    ("for $a in /a return <r>{$a^</r>", "syntax", "an end tag in an", "'}' before it"),
    ("for $a in /a return <r>{^}</r>", "syntax", "unexpected '}'", "an expression between"),
    ("for $a in /a return <r>^}</r>", "syntax", "'}' without '{'", "'}}'"),
    ("for $a in /a return <r>^<!-- c </r>", "syntax", "not closed", "'-->'"),
    ("for $a in /a return <r>^<!-- -- --></r>", "syntax", "no comment of XML", ""),
    ("for $a in /a return <r>^<?xml x?></r>", "syntax", "no processing instruction", ""),
    ("for $a in /a return ^document { $a }", "unsupported", "document { }", ""),
    ("for $a in /a return <r>^<![CDATA[x</r>", "syntax", "CDATA", "']]>'"),
    ("for $a in /a return <r>x^{$a/@b}</r>", "type", "an attribute after", "the attribute first"),
]


@pytest.mark.parametrize(("marked", "code", "reason", "expected"), REFUSED)
def test_refused(marked: str, code: str, reason: str, expected: str) -> None:
    text = marked.replace("^", "", 1)
    # Behind a line end, so that lines are counted too.
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(f"\n {text}")
    refused = caught.value
    assert (refused.line, refused.column) == (2, marked.index("^") + 2), str(refused)
    assert refused.code == code, str(refused)
    assert reason in refused.reason, str(refused)
    assert expected in refused.expected, str(refused)
    assert bool(refused.expected) or not expected


def test_a_refusal_shows_the_place() -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile('//a[b]\n  [contian(c, "x")]')
    assert str(caught.value) == (
        "line 2, column 4: there is no function contian(); expected contains() "
        "[unknown-function]\n"
        '      [contian(c, "x")]\n'
        "       ^"
    )


def test_nothing_is_remembered_between_profiles() -> None:
    parse_profile('declare namespace p = "urn:p"; declare default element namespace "urn:d"; //p:a')
    with pytest.raises(ProfileRefused):
        parse_profile("//p:a")
    assert parse_profile("/a").body == PathExpression(Origin.MESSAGE, (_child("a"),))


def test_namespaces_of_constructors_hold_inside_them_only() -> None:
    flwor = parse_profile("for $a in /a return <r><s xmlns='urn:s'>{$a/b}</s>{$a/b}</r>").body
    assert isinstance(flwor, Flwor)
    assert isinstance(flwor.result, Constructor)
    inner, after = flwor.result.content
    assert isinstance(inner, Constructor)
    assert inner.content == (
        PathExpression(Origin.VARIABLE, (_child("b", namespace="urn:s"),), "a"),
    )
    assert after == PathExpression(Origin.VARIABLE, (_child("b"),), "a")


def test_white_space_in_constructors() -> None:
    flwor = parse_profile("for $a in /a return <r> x {$a} &#32;{$a} <![CDATA[]]></r>").body
    assert isinstance(flwor, Flwor)
    assert isinstance(flwor.result, Constructor)
    variable = PathExpression(Origin.VARIABLE, (), "a")
    assert flwor.result.content == (" x ", variable, "  ", variable, " ")


def test_expressions_alone() -> None:
    assert parse_path("Q{u}a/@b") == _context(_child("a", namespace="u"), _attribute("b"))
    assert parse_expression("not(a)") == FunctionCall("not", (_context(_child("a")),))
    with pytest.raises(ProfileRefused, match="not a path"):
        parse_path("not(a)")
    with pytest.raises(ProfileRefused):
        parse_expression("a b")


# -- bounds


def test_a_prolog_says_what_is_so_anyway() -> None:
    prolog = (
        'xquery version "1.0" encoding "utf-8"; declare boundary-space preserve; '
        "declare default order empty greatest; declare ordering unordered; "
        "declare construction strip; declare copy-namespaces preserve, inherit; "
        "declare base-uri 'urn:b'; "
    )
    profile = parse_profile(f"{prolog}for $a in /a order by $a/b return <r> {{$a}} </r>")
    written = "for $a in /a order by $a/b empty greatest return <r>&#32;{$a}&#32;</r>"
    assert unparse(profile) == written
    assert parse_profile(written) == profile


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("/a" + "[b]" * 90_000, "too-long"),
        ("/a[b = '" + "é" * 131_072 + "']", "too-long"),
        ("/a" + "/b" * 1_024, "too-many-steps"),
        ("/a[" + " or ".join(["b/c"] * 4_096) + "]", "too-many-steps"),
        ("/a" + "[b" * 65 + "]" * 65, "too-deep"),
        ("/a[" + "(" * 64 + "b" + ")" * 64 + "]", "too-deep"),
        ("/a[" + "not(" * 64 + "b" + ")" * 64 + "]", "too-deep"),
        ("for $a in /a return " + "<r>" * 64 + "</r>" * 64, "too-deep"),
        (
            "for $a in /a " + "".join(f"return for $b{i} in /b " for i in range(64)) + "return $a",
            "too-deep",
        ),
        (
            "for $a in /a " + "".join(f"let $b{i} := 1 " for i in range(256)) + "return $a",
            "too-many-clauses",
        ),
        (f"/Q{{{'u' * 1_025}}}a", "too-long"),
        (f"/a[matches(b, '{'x' * 16_385}')]", "pattern"),
    ],
)
def test_bounds(text: str, code: str) -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile(text)
    assert caught.value.code == code


def test_a_profile_has_more_steps_than_a_path() -> None:
    """As rules of real rule sets have that look at all of a document in one condition."""
    text = "/a[" + " or ".join(f"b{number}/c" for number in range(900)) + "]"
    matcher = Matcher()
    matcher.add(text)
    assert list(matcher.match(b"<a><b899><c/></b899></a>"))
    assert not list(matcher.match(b"<a><b899/></a>"))
    assert parse_profile(unparse(parse_profile(text))).body == parse_profile(text).body


@pytest.mark.parametrize(
    "text",
    [
        "/a" + "[b" * 64 + "]" * 64,
        "/a[" + "(" * 63 + "b" + ")" * 63 + "]",
        "/a[" + "not(" * 63 + "b" + ")" * 63 + "]",
        "for $a in /a return " + "<r>" * 63 + "</r>" * 63,
        "for $a in /a return " + "<r>{" * 63 + "$a" + "}</r>" * 63,
    ],
)
def test_the_bounds_are_within_pythons_stack(text: str) -> None:
    """Also when the caller is deep in its own calls."""

    def deep(levels: int) -> object:
        return deep(levels - 1) if levels else hash(parse_profile(text).body)

    deep(150)


def test_bounds_are_options() -> None:
    with pytest.raises(ProfileRefused) as caught:
        parse_profile("/a[b]", ProfileLimits(depth_max=0))
    assert caught.value.code == "too-deep"


_PIECES = [
    *("for ", "let ", "where ", "return ", "$a", "$msg", " in ", ":=", "/", "//", "a", "p:a", "@"),
    *("[", "]", "(", ")", "{", "}", "<r>", "</r>", "<r ", "/>", "=", "!=", "<", ">", ",", "|", "*"),
    *("..", ".", "text()", "contains(", "not(", "matches(", "'x'", '"', "'", "5", "1e9", "-", " "),
    *("declare namespace p = 'u';", "(:", ":)", "&", "&lt;", "{{", "xmlns='u'", "<![CDATA[", "]]>"),
    *(" and ", " or ", "b='{", "}'", "Q{u}a", "\n", "<!--"),
]


@examples(1_500)
@given(st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
@example("for $a in /a return <r b='{")
@example("<r a='{'>")
@example("for $a in /a return <r a='{(:'/>")
def test_only_refusals_come_out(text: str) -> None:
    _parse_or_refuse(text)


@examples(500)
@given(st.text(st.sampled_from(string.printable + "é“\ud800\x00"), max_size=20))
def test_only_refusals_come_out_of_any_characters(text: str) -> None:
    _parse_or_refuse(text)


_WHOLE = """declare namespace p = "urn:p";
<p:r a="x{/a/@b}">{ for $n in $msg/nitf[head/p:b/@c >= 5], $m in $n//b let $k := $n/@k
where contains($n/x, "SF") and not($m/@i = $k or matches($m, "^a+"))
return <s t='{$n/@t} {{'>{$n/@*} text &amp; {string-join($m/c, ", ")} </s> }</p:r>"""


@examples(1_000)
@given(
    st.integers(0, len(_WHOLE) - 1),
    st.integers(0, 6),
    st.sampled_from(["", *_PIECES]),
)
def test_only_refusals_come_out_of_a_damaged_profile(at: int, cut: int, put: str) -> None:
    parse_profile(_WHOLE)
    _parse_or_refuse(_WHOLE[:at] + put + _WHOLE[at + cut :])
    _parse_or_refuse(_WHOLE[:at])


def _parse_or_refuse(text: str) -> None:
    try:
        parse_profile(text)
    except ProfileRefused as refused:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 1 <= refused.line <= len(lines)
        assert 1 <= refused.column <= len(lines[refused.line - 1]) + 1
        assert refused.reason
        assert str(refused)


LONG = 'normalize-space(p:name) = "a long text of it" and contains(b, "c")'
FAULTY = 'b = "a long text of it" and c = xs:date("2026-02-30")'
FAULTLESS = 'b = "a long text of it" and contains(c, "d")'
SURROUNDED = [
    f'declare namespace p = "urn:p"; /a[{LONG}]/b[{LONG}]',
    f'declare namespace p = "urn:p"; /a[{LONG}]/c[{LONG}][b/c[{LONG}]]',
    f'declare namespace p = "urn:q"; /a[{LONG}]',
    f'declare namespace p = "urn:p"; declare default element namespace "urn:d"; /a[{LONG}]',
    f"/a[{LONG}]",
    f'declare namespace p = "urn:p"; /a/@b[{LONG}]',
    f'declare namespace p = "urn:p"; declare option svrl:idle-paths "empty"; /a/@b[{LONG}]',
    f'declare namespace p = "urn:p"; /c/@b[{LONG}]',
    f'declare namespace p = "urn:p"; {"/a[" * 63}b[{LONG}]{"]" * 63}',
    f'declare namespace p = "urn:p"; {"/a[" * 64}b[{LONG}]{"]" * 64}',
    f"/a[{FAULTY}]",
    f"/a/b/c[{FAULTY}]/d[{FAULTY}]",
    *(
        f"declare namespace p = 'urn:p'; declare {declared}; for $v in /{v} return $v/a[{asked}]"
        for declared in (
            "variable $d := 'one text'",
            "variable $d := 'other text'",
            "function p:f($a) { $a + 1 }",
            "function p:f($a) { $a + 2 }",
        )
        for v in "xy"
        for asked in (
            "@a = $d and @b = 'a long text of it'",
            "@a = p:f(3) and @b = 'a long text of it'",
            "@a = $v and @b = 'a long text of it'",
            "switch (@a) case 'a long text of it' return b default return c",
            "delete node b/c/d, 'a long text of it'",
            "contains(b, 'a ] long [ text of it')",
            "contains(b, 'a long text of it') (: ] :) and c",
            "b/element e { 'a long text of it' }",
        )
    ),
]


def outcome_of(text: str) -> object:
    """What is read, or why not and where."""
    try:
        return parse_anew(text)
    except ProfileRefused as refused:
        return str(refused)


def test_a_condition_of_another_profile_is_read_as_if_it_were_new() -> None:
    known = query_parser._CONDITIONS
    known.clear()
    after_others = [outcome_of(text) for text in SURROUNDED]
    for text, outcome in zip(SURROUNDED, after_others, strict=True):
        known.clear()
        assert outcome == outcome_of(text)
        assert outcome == outcome_of(text)
    assert {type(outcome) is str for outcome in after_others} == {True, False}


def test_a_condition_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (first, _) = (parse_anew(f"/{name}[{FAULTLESS}]") for name in "ab")
    read: list[QueryParser] = []
    sequence = QueryParser.sequence
    monkeypatch.setattr(
        QueryParser, "sequence", lambda self: (read.append(self), sequence(self))[1]
    )
    second = parse_anew(f"/c/d[{FAULTLESS}]")
    assert len(read) == 1  # the path itself
    assert isinstance(first, PathExpression)
    assert isinstance(second, PathExpression)
    assert second.steps[-1].predicates[0] is first.steps[-1].predicates[0]


def test_declarations_of_another_profile_are_read_as_if_they_were_new() -> None:
    spaces = 'declare namespace p = "urn:p"; declare namespace q = "urn: q ";'
    texts = [
        f"{spaces} /p:a/q:b",
        f"(: another :) {spaces} /q:a/p:b",
        f'{spaces} declare namespace r = "urn:r"; /r:a',
        f'{spaces} declare namespace p = "urn:r"; /p:a',
        f"{spaces.replace('urn:p', 'urn:r')} /p:a",
        f"{spaces} /r:a",
        f"{spaces[:-1]} /p:a",
    ]
    query_parser._PROLOGS.clear()
    first, second = ([outcome_of(text) for text in texts] for _ in range(2))
    assert first == second
    for text, outcome in zip(texts, first, strict=True):
        query_parser._PROLOGS.clear()
        assert outcome == outcome_of(text)
