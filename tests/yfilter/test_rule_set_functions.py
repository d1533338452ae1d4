"""Functions and keys of XSLT in rule sets: random ones against Saxon, which runs them as they are,
and recorded answers."""

from __future__ import annotations

import os
from importlib.util import find_spec
from random import Random
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import lxml.etree
import pytest

from benchmarks.delivery.saxon import TimedSaxon
from tests.oracle.reference import ReferenceMatcher
from yfilter import Matcher
from yfilter.schematron import compile_schematron

VARIANTS = int(os.environ.get("ONYX_VARIANTS", "60"))
ERROR = "an error"
REFUSED = "refused"
MESSAGE = (
    '<stock><who><n>Ann</n><n>Bob</n></who><item no="2" at="3.5" ref="k2">x<t>y</t></item>'
    '<item no="1" ref="zz">z</item><item no="10"/><code id="k1">A</code><code id="k2">B</code>'
    '<in><code id="k2">C</code></in></stock>'
)
_NAMESPACES = 'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:u="urn:u"'
_XSLT = 'xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'


class Case(NamedTuple):
    """``declared``: functions and keys; ``probe``: an expression about them."""

    declared: str
    probe: str
    version: str = "2.0"


def saxon(cases: list[Case]) -> list[str]:
    sheets = [
        f"<xsl:stylesheet {_XSLT} {_NAMESPACES} version={quoteattr(case.version)}>{case.declared}"
        f'<xsl:template match="/"><p><xsl:for-each select="*"><xsl:value-of '
        f"select={quoteattr(case.probe)}/></xsl:for-each></p></xsl:template></xsl:stylesheet>"
        for case in cases
    ]
    with TimedSaxon() as processor:
        said = [processor.said(sheet, MESSAGE.encode()) for sheet in sheets]
    return [
        ERROR if each is None else lxml.etree.fromstring(each.encode()).text or "" for each in said
    ]


def ours(case: Case, engine: type[Matcher] | type[ReferenceMatcher] = Matcher) -> str:
    """What a report says whose text is the probe."""
    binding = "xslt" if case.version == "1.0" else "xslt2"
    rules = compile_schematron(
        f'<schema xmlns="http://purl.oclc.org/dsdl/schematron" {_XSLT} {_NAMESPACES} '
        f'queryBinding="{binding}">{case.declared}<pattern><rule context="/*"><report id="r" '
        f'test="true()">[<value-of select={quoteattr(case.probe)}/>]</report></rule></pattern>'
        "</schema>".encode()
    )
    if rules.refused:
        return f"{REFUSED}: {rules.refused[0].reason}"
    matcher = engine()
    matcher.add(rules.profiles[0].text)
    results = [result for each in matcher.deliver(MESSAGE.encode()) for result in each.results]
    if not results:
        return ERROR
    return "".join(lxml.etree.fromstring(results[0])[0].itertext())[1:-1]


# -- the grammar


def an_expression(rng: Random) -> str:
    return rng.choice(
        (
            "$a",
            "$a",
            "$a[1]",
            "'q'",
            "()",
            "2",
            "count($a)",
            "('x', 'y')",
            "string($a[1])",
            "($a, 3)",
        )
    )


def a_test(rng: Random) -> str:
    return rng.choice(("exists($a)", "string($a[1]) = 'q'", "count($a) > 1", "true()", "empty($a)"))


def a_body(rng: Random, depth: int = 2) -> str:
    return "".join(an_instruction(rng, depth) for _ in range(rng.randint(1, 3)))


def an_instruction(rng: Random, depth: int) -> str:
    select = quoteattr(an_expression(rng))
    separator = rng.choice(("", "", " separator=','", " separator=''"))
    plain = (
        f"<xsl:sequence select={select}/>",
        f"<xsl:value-of select={select}{separator}/>",
        f"<xsl:copy-of select={select}/>",
        "no. ",
        " [",
        "\n  ",
        "<xsl:text> </xsl:text>",
        "<xsl:text/>",
        "<!-- c -->",
        "<xsl:message select='$a'/>",
        f"<xsl:number value='{rng.choice(('1', '2.5'))}' format='{rng.choice('1Ai')}'/>",
    )
    if depth == 0 or rng.random() < 0.5:
        return rng.choice(plain)
    inside, other = a_body(rng, depth - 1), a_body(rng, depth - 1)
    test = quoteattr(a_test(rng))
    type_ = rng.choice(("", "", " as='xs:string*'", " as='item()*'"))
    read = rng.choice(("string-join($v, '-')", "count($v)", "string($v[1])"))
    if not type_:
        read = rng.choice(("string($v)", "$v = 'q'", "count($v)", "if ($v) then 1 else 2"))
    return rng.choice(
        (
            f"<xsl:if test={test}>{inside}</xsl:if>",
            (
                f"<xsl:choose><xsl:when test={test}>{inside}</xsl:when>"
                f"<xsl:otherwise>{other}</xsl:otherwise></xsl:choose>"
            ),
            f"<xsl:value-of{separator}>{inside}<xsl:sequence select='1'/></xsl:value-of>",
            f"<xsl:for-each select={select}>{inside}<xsl:value-of select='.'/></xsl:for-each>",
            (
                f"<xsl:variable name='v'{type_}>{inside}<xsl:text>.</xsl:text></xsl:variable>"
                f"<xsl:sequence select={quoteattr(read)}/>"
            ),
            f"<xsl:variable name='v' select={select}/><xsl:sequence select='count($v)'/>",
        )
    )


def a_function(rng: Random) -> Case:
    type_ = rng.choice(("", "", "", " as='xs:string*'", " as='item()*'"))
    declared = (
        f"<xsl:function name='u:f'{type_}><xsl:param name='a'/>{a_body(rng)}</xsl:function>"
        "<xsl:function name='u:f'><xsl:param name='a'/><xsl:param name='b'/>"
        "<xsl:sequence select='$b'/></xsl:function>"
    )
    given = rng.choice(("'q'", "item/@no", "item[1]/@no", "()", "2", "who/n", "who/n/text()"))
    call = f"u:f({given})"
    probe = rng.choice(
        (
            f"count({call})",
            f"string-join(for $x in {call} return concat('&lt;', string($x), '>'), '')",
            f"string-join(for $x in {call} return concat('&lt;', string($x), '>'), '')",
            f"some $x in {call} satisfies string($x) = 'q'",
            f"string(u:f({given}, {given})[1])",
        )
    ).replace("&lt;", "<")
    return Case(declared, probe)


def a_key(rng: Random) -> Case:
    match, uses = rng.choice(
        (
            ("item", ("@no", "number(@no)", "@ref", "(@no, @ref)", "string(@no)", "t")),
            ("code", ("@id", ".", "concat(@id, '')", "xs:string(@id)")),
            ("code | item", ("@id", "@no", "string-length(.)")),
        )
    )
    use = rng.choice(uses)
    is_content = rng.random() < 0.4
    declared = (
        f"<xsl:key name='k' match='{match}'><xsl:sequence select={quoteattr(use)}/></xsl:key>"
        if is_content
        else f"<xsl:key name='k' match='{match}' use={quoteattr(use)}/>"
    )
    if rng.random() < 0.3:
        declared += "<xsl:key name='k' match='n' use='.'/>"
    value = rng.choice(("2", "'2'", "item/@no", "'k2'", "item/@ref", "1", "('k1', 2)", "2.0", "()"))
    top = rng.choice(("", "", ", /", ", in", ", item[1]"))
    name = rng.choice(("'k'", "'k'", "concat('', 'k')"))
    return Case(
        declared, f"string-join(for $n in key({name}, {value}{top}) return string($n), '|')"
    )


KINDS = {"functions": a_function, "keys": a_key}


@pytest.mark.parametrize("kind", KINDS)
def test_random_ones_do_what_saxon_says(kind: str) -> None:
    if find_spec("saxonche") is None:
        pytest.skip("saxonche is not installed")
    rng = Random(kind)
    cases = [KINDS[kind](rng) for _ in range(VARIANTS)]
    answers = saxon(cases)
    for case, answer in zip(cases, answers, strict=True):
        if answer != ERROR:  # with which all ends there, and an assertion here
            assert ours(case) == answer, case
    assert len(set(answers)) > 5


# -- recorded answers


def _f(body: str, type_: str = "") -> str:
    return f"<xsl:function name='u:f'{type_}><xsl:param name='a'/>{body}</xsl:function>"


_BY_ID = "<xsl:key name='k' match='code' use='@id'/>"
_OF_CONTENT = "<xsl:key name='k' match='code'><xsl:sequence select='@id'/></xsl:key>"
_COMPOSITE = "<xsl:key name='k' match='code' use='@id' composite='yes'/>"
_BY_NO = "<xsl:key name='k' match='item' use='@no'/>"


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (Case(_f("&lt;<xsl:value-of select='$a'/>&gt;"), "string-join(u:f('q'), '')"), "<q>"),
        (Case(_f("<xsl:if test='$a'>p. <xsl:copy-of select='$a'/></xsl:if>"), "u:f(7)[1]"), "p. "),
        (Case(_f("<xsl:value-of select='$a' separator=';'/>"), "u:f(item/@no)"), "2;1;10"),
        (Case(_f("<xsl:value-of><xsl:copy-of select='$a'/></xsl:value-of>"), "u:f(//n)"), "AnnBob"),
        (
            Case(
                _f("<xsl:variable name='v'><xsl:value-of select='$a'/>?</xsl:variable>"
                "<xsl:sequence select='string($v)'/>"),
                "u:f('why')",
            ),
            "why?",
        ),
        (Case(_f("<xsl:message select='$a'/><xsl:number value='4' format='i'/>"), "u:f(1)"), "iv"),
        (Case(_f("<xsl:number select='$a'/>"), "u:f(item[2])"), "2"),
        (Case(_OF_CONTENT, "count(key('k', item/@ref))"), "2"),
        (Case(_BY_NO, "count(key('k', 2))"), "0"),
        (Case(_BY_NO, "count(key('k', '2'))"), "1"),
        (Case(_BY_NO, "count(key('k', 2))", "1.0"), "1"),
        (Case(_BY_ID, "key('k', 'k2', in)"), "C"),
        (Case(_BY_ID, "count(key(concat('k', ''), item/@ref, /))"), "2"),
    ],
)  # fmt: skip
def test_what_functions_and_keys_give(case: Case, wanted: str) -> None:
    for engine in (Matcher, ReferenceMatcher):
        assert ours(case, engine) == wanted


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (Case(_f("<xsl:apply-templates select='$a'/>"), "u:f(1)"), "apply-templates in a function"),
        (Case(_f("<xsl:for-each select='$a'><xsl:sort/></xsl:for-each>"), "u:f(1)"), "sort in a"),
        (Case(_f("<xsl:number count='x'/>"), "u:f(1)"), "number with count"),
        (Case(_f("<xsl:value-of/>"), "u:f(1)"), "value-of with neither select nor content"),
        (Case(_f("<xsl:value-of select='1'>x</xsl:value-of>"), "u:f(1)"), "select and content"),
        (Case(_f("<xsl:analyze-string select='$a' regex='x'/>"), "u:f(1)"), "analyze-string in a"),
        (Case(_BY_ID, "key('zz', 'k1')"), "there is no key 'zz'"),
        (Case("<xsl:key name='k' match='code'/>", "key('k', 'k1')"), "neither use nor content"),
        (Case(_COMPOSITE, "key('k', 1)"), "composite"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where_and_why(case: Case, why: str) -> None:
    answer = ours(case)
    assert answer.startswith(REFUSED)
    assert why in answer
