"""Rule sets made from lists of expressions: the profiles say of a message as much as Saxon does,
which runs the stylesheet of the same rules (benchmarks/rules/stylesheet.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from itertools import islice

import lxml.etree
import pytest

from benchmarks.delivery.saxon import TimedSaxon
from benchmarks.rules.comparison import Fired, delivered_by, told_by
from benchmarks.rules.stylesheet import stylesheet
from yfilter import Matcher
from yfilter.schematron import compile_schematron
from yfilter.schematron.compiler import keys_of, no_other_files
from yfilter.schematron.schema_reader import read_schema

pytest.importorskip("saxonche")

SEEDS = 5  # no divisor of the places or predicates, so that each share has all of them

VOYAGE = """<voyage ship="Elbe"><crew><hand>Ida</hand><hand>Jon</hand></crew>
<leg no="2" miles="40"><port>Oslo</port></leg><leg no="1"><port>Kiel</port><port>Riga</port>dry<!--x
-->wet<?log a?><!--y--></leg><mark key="n">North</mark><mark key="s">South</mark><end/></voyage>"""

# One expression behind the other, with " ~ " or a new line between them.
SEQUENCES = """port, @no ~ @no, port ~ reverse(port) ~ (port, port) ~ (port, 'v', port)
(@miles, 'none') ~ ('none', @miles) ~ (1, port) ~ port/string() ~ for $x in port return string($x)
for $x in reverse(//leg) return $x/@no ~ (//leg, //leg)/@no ~ distinct-values((port, 'Oslo'))
(//mark, 5 * 2) ~ subsequence((port, @no, ..), 1, 2) ~ insert-before(port, 1, @no)
remove((port, port), 1) ~ (port, @no)[2] ~ (@no, port)[last()] ~ if (port) then (port, port) else ()
text() ~ (text(), 'a') ~ (text(), text()) ~ node() ~ comment(), text() ~ ('a', text(), 'b')
port/text() ~ (port/text(), port) ~ @*, * ~ reverse(@*) ~ data((port, @no)) ~ //mark/@key, port
count((port, port)) ~ (port | @no) ~ (port, port) intersect port ~ index-of((port, port), 'Oslo')
(true(), port) ~ xs:date('2020-01-01'), port ~ reverse(1 to 3) ~ sum((@no, @no)) ~ (., .)/@no
max((port, 'Zug')) ~ (.., .)/name() ~ for $x in (., ..) return name($x) ~ deep-equal((port, .), .)
() ~ ((), port) ~ (1.0, 1e0, 1.50) ~ (port, //mark)[position() lt 3] ~ @no + 1, port ~ /, port
current()/@no, port ~ reverse(ancestor-or-self::*)/name() ~ tokenize('b a b', ' ')"""
WHOLE = """voyage/leg/port, voyage/@ship ~ reverse(//leg/@no) ~ (//mark, 5 * 2) ~ 'a', 'b'
(voyage/leg, voyage/leg) ~ (voyage/leg/@miles, 'none') ~ //port/text() ~ (1, voyage/end, 2) ~ *
for $x in voyage/leg return count($x/port) ~ voyage/leg[2]/text() ~ (voyage/mark | voyage/leg)/@no
(/, voyage)/name() ~ if (voyage) then (voyage/mark, voyage/mark) else () ~ */*[1]/hand, */@ship
name(*), * ~ current()/voyage/@ship, 1 ~ ancestor::leg/@no ~ @no ~ .. ~ self::voyage ~ /.."""
TESTS = [*(f"count($v) = {count}" for count in range(4)), "string($v[1]) = 'Oslo'", "empty($v)"]

IDLE = """@x ~ port ~ text() ~ .. ~ ../port ~ ancestor::leg/@no ~ @no/b ~ text()/a ~ parent::voyage
following-sibling::* ~ self::text() ~ @*/@* ~ */text()/* ~ not(@x) ~ count(a) = 0 ~ empty(text()/b)
/@x ~ /.. ~ ancestor::node() ~ comment() ~ .[b] ~ name(..) ~ descendant::port"""
PLACES = ["leg", "@no", "text()", "comment()", "processing-instruction()", "/", "port", "voyage"]


# Predicates with an error for some legs, and what may stand around them.
ERRORS = """leg[upper-case(port) = 'OSLO'] ~ leg[contains(port, 'Kiel')] ~ leg[number(@miles) = 40]
leg[normalize-space(text())] ~ leg[port eq 'Oslo'] ~ leg[xs:integer(mark) = 2]
leg[lower-case(port)]
mark[xs:integer(@key) = 2] ~ mark[@key = 2] ~ mark[@key + 1 = 2] ~ mark[xs:date(.) = xs:date(.)]
leg[@no = 1] ~ mark[string-length(../leg/port) = 4] ~ leg[substring(port, 1) = 'Riga']"""
AROUND = """voyage[{}] ~ voyage[not({})] ~ voyage[empty({})] ~ voyage[exists({})]
voyage[count({}) = 1]
voyage[every $x in {} satisfies $x/@no] ~ voyage[if ({}) then false() else true()]
end[not(../{})]
voyage[not(not({}))] ~ voyage[@ship and not({})] ~ voyage[@ship = 'Saale' or not({})]
/voyage[not(.//{})]
voyage[not({} = 'q')] ~ voyage[string({}) = ''] ~ voyage[@ship][not({})]/end ~ voyage[{}][1]"""


# Functions and keys that give texts, also empty ones, and the context item more than once.
_XSLT = 'xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'
DECLARED = f"""<xsl:function {_XSLT} name="u:texts"><xsl:param name="of"/>
<xsl:sequence select="$of//text()"/></xsl:function><xsl:function {_XSLT} name="u:said">
<xsl:param name="of"/><xsl:text>a</xsl:text><xsl:sequence select="$of"/><xsl:text>b</xsl:text>
<xsl:value-of select="()"/><xsl:value-of select="'c'"/></xsl:function>
<xsl:key {_XSLT} name="port" match="port/text()" use="."/>"""
TEXTS = """u:texts(port) ~ u:texts(.), port ~ u:said(port) ~ u:said(port), u:said(@no) ~ u:said(())
'a', u:said(1), 'b' ~ (., .) ~ ., . ~ (., 'v', .) ~ (.[1], .[1]) ~ current(), .
string(.), string(.)
(current(), current()) ~ (., name(..), .) ~ key('port', 'Oslo'), key('port', 'Riga')
reverse(u:texts(..)) ~ u:texts(port)/.. ~ xs:string(@no), @no ~ count(u:said(port)) ~ u:said('')
u:said(('', 'x', '')) ~ insert-before(u:said(3), 2, 'z') ~ (u:said(())[2], u:said(())[1])
subsequence(u:said(()), 3, 1), 'x' ~ for $x in (., .) return $x ~ (., @no)[1], . ~ reverse((., .))
string-join((., .), '-') ~ *, * ~ @*, . ~ ..//port, . ~ (.)[1], (.)[1]"""


def _listed(text: str) -> list[str]:
    return text.replace("\n", " ~ ").split(" ~ ")


def _pattern(context: str, inside: str, before: str = "") -> str:
    return f'<pattern>{before}<rule context="{escape(context)}">{inside}</rule></pattern>'


def _shown(expression: str) -> str:
    return f'<assert id="a" test="false()">[<value-of select="{escape(expression)}"/>]</assert>'


def _let(expression: str) -> str:
    return f'<let name="v" value="{escape(expression)}"/>'


def _sequences() -> Iterator[str]:
    """In a text, a variable and by way of another one; each in a pattern of its own."""
    asked = "".join(f'<report id="t{at}" test="{test}"/>' for at, test in enumerate(TESTS))
    for expression in _listed(SEQUENCES):
        twice = '<let name="w" value="($v, 1, $v)"/>' + _shown("$w, count($w)")
        yield (
            _pattern("leg", _shown(expression))
            + _pattern("voyage", _let(expression) + _shown("$v") + asked)
            + _pattern("/voyage/leg[2]", _let(expression) + twice)
        )
    for expression in _listed(WHOLE):
        yield _let(expression) + _pattern("end", _shown("$v") + asked)
        yield _pattern("end", _shown("count($v), $v") + asked, before=_let(expression))


def _idle() -> Iterator[str]:
    for expression in _listed(IDLE):
        for context in PLACES:
            yield (
                _pattern(context, f'<assert id="a" test="{escape(expression)}">n</assert>')
                + _pattern(context, _let(expression) + '<report id="b" test="$v">n</report>')
                + _pattern(f"{context}[not({expression})]", '<report id="c" test="1">n</report>')
            )


def _contexts() -> Iterator[str]:
    """Each with a rule behind it, of which a node is that the first one does not match."""
    later = '<rule context="voyage|end"><report id="later" test="true()">l</report></rule>'
    for around in _listed(AROUND):
        for expression in _listed(ERRORS):
            context = around.replace("{}", expression)
            first = _pattern(context, '<report id="r" test="true()">r</report>')
            yield first.replace("</pattern>", f"{later}</pattern>")


def _texts() -> Iterator[str]:
    for expression in _listed(TEXTS):
        for context in ("leg", "text()", "@no"):
            yield DECLARED + _pattern(context, _shown(expression))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", [_sequences, _idle, _contexts, _texts])
def test_profiles_say_as_much_as_saxon(kind: Callable[[], Iterator[str]], seed: int) -> None:
    """Of each kind a share, from each seed another one."""
    compared = 0
    with TimedSaxon() as processor:
        for content in islice(kind(), seed, None, SEEDS):
            text = _schema(content)
            said = _by_saxon(processor, text)
            if said is None:  # an error, of which a stylesheet says nothing
                continue
            assert _by_profiles(text) == said, content
            compared += 1
    assert compared > 70 // SEEDS


def _schema(content: str) -> bytes:
    spaces = '<ns prefix="xs" uri="http://www.w3.org/2001/XMLSchema"/><ns prefix="u" uri="urn:u"/>'
    binding = 'xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2"'
    return f'<schema {binding} xmlns:u="urn:u">{spaces}{content}</schema>'.encode()


def _by_saxon(processor: TimedSaxon, text: bytes) -> Fired | None:
    schema = read_schema(text, "", None, no_other_files, {})
    keys = {key for pattern in keys_of(schema) for rule in pattern for key in rule}
    text_said = processor.said(stylesheet(schema, keys).decode(), VOYAGE.encode())
    if text_said is None:
        return None
    said = lxml.etree.fromstring(text_said.encode())
    return None if next(said.iter("error"), None) is not None else told_by(said)


def _by_profiles(text: bytes) -> Fired:
    rules = compile_schematron(text)
    assert rules.refused == ()
    matcher = Matcher()
    for rule in rules.profiles:
        matcher.add(rule.text, rule.key)
    return delivered_by(matcher, VOYAGE.encode())
