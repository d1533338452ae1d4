"""Schematron as profiles: what a rule set says of a message is what its profiles deliver."""

from __future__ import annotations

import re
from collections.abc import Mapping

import lxml.etree
import pytest

from tests.oracle.reference import ReferenceMatcher
from yfilter import Matcher, MatchLimits
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.matches import Delivered
from yfilter.schematron import RuleSet, SchematronRefused, compile_schematron

ORDER = """<o xmlns="" id="o7"><item no="1" price="9.50"><name>Tea</name></item>
<item no="2" price="x"><name/></item><extra><item no="3" price="-1"/></extra></o>"""

Fired = list[tuple[str, str, str]]


def _rules(
    content: str,
    attributes: str = 'queryBinding="xslt2"',
    phase: str | None = None,
    files: Mapping[str, str] | None = None,
) -> RuleSet:
    text = f'<schema xmlns="http://purl.oclc.org/dsdl/schematron" {attributes}>{content}</schema>'
    return compile_schematron(
        text.encode(),
        file="rules.sch",
        phase=phase,
        read=lambda name: (files or {})[name].encode(),
    )


def _fired(rules: RuleSet, message: str = ORDER) -> Fired:
    """(id, place, text) of what the message fails, in order."""
    assert rules.refused == ()
    matcher = Matcher()
    for rule in rules.profiles:
        matcher.add(rule.text, rule.key)
    found = []
    for delivered in matcher.deliver(message.encode()):
        assert delivered.exceeded is None
        for result in delivered.results:
            root = lxml.etree.fromstring(result)
            text = "".join(root[0].itertext())
            found.append((root.get("id", ""), root.get("location", ""), text))
    return sorted(found)


def test_an_assertion_that_fails_says_where_and_what() -> None:
    rules = _rules(
        """<pattern><rule context="item" role="warning">
             <assert id="named" test="name != ''">Item <value-of select="@no"/> of
               <name path=".."/> <emph>must</emph> have a {name} &amp; more.</assert>
           </rule></pattern>"""
    )
    assert _fired(rules) == [
        ("named", "/o[1]/extra[1]/item[1]", "Item 3 of extra must have a {name} & more."),
        ("named", "/o[1]/item[2]", "Item 2 of o must have a {name} & more."),
    ]
    (rule,) = rules.profiles
    assert (rule.key, rule.line, rule.context) == ("named", 2, "item")
    assert 'role="warning"' in rule.text


def test_a_report_says_what_holds_and_a_number_counts_as_a_condition() -> None:
    rules = _rules(
        """<pattern><rule context="o"><report id="r" test="count(item)">there are</report>
           <assert id="a" test="count(none)">there are none</assert></rule></pattern>"""
    )
    assert _fired(rules) == [("a", "/o[1]", "there are none"), ("r", "/o[1]", "there are")]


def test_a_node_is_the_first_rule_s_that_matches_it() -> None:
    rules = _rules(
        """<pattern>
             <rule context="extra/item | item[1]"><report id="first" test="true()">1</report></rule>
             <rule context="item"><report id="second" test="true()">2</report></rule>
             <rule context="*[@no]"><report id="third" test="true()">3</report></rule>
           </pattern>
           <pattern><rule context="item[@no = 1]"><report id="other" test="true()"/></rule>
           </pattern>"""
    )
    assert [(id_, place) for id_, place, _ in _fired(rules)] == [
        ("first", "/o[1]/extra[1]/item[1]"),
        ("first", "/o[1]/item[1]"),
        ("other", "/o[1]/item[1]"),
        ("second", "/o[1]/item[2]"),
    ]


@pytest.mark.parametrize(
    ("context", "places"),
    [
        ("/", [""]),
        ("/o", ["/o[1]"]),
        ("/o/item", ["/o[1]/item[1]", "/o[1]/item[2]"]),
        ("o//item[last()]", ["/o[1]/extra[1]/item[1]", "/o[1]/item[2]"]),
        ("(extra | none)/item", ["/o[1]/extra[1]/item[1]"]),
        ("item[1]/@no", ["/o[1]/extra[1]/item[1]/@no", "/o[1]/item[1]/@no"]),
        ("name/text()", ["/o[1]/item[1]/name[1]/text()"]),
        ("extra|/o/@id", ["/o[1]/@id", "/o[1]/extra[1]"]),
        ("item[contains(name, 'a|b') or @no = '2']", ["/o[1]/item[2]"]),
        ("child::extra/attribute::none", []),
    ],
)
def test_contexts_are_match_patterns(context: str, places: list[str]) -> None:
    rule = f'<rule context="{context}"><report id="r" test="true()"/></rule>'
    assert sorted(place for _, place, _ in _fired(_rules(f"<pattern>{rule}</pattern>"))) == places


def test_variables_of_schema_phase_pattern_and_rule() -> None:
    content = """<let name="id" value="/o/@id"/><let name="first" value="o/item[1]"/>
      <phase id="p"><let name="limit" value="$low + 1"/><active pattern="x"/></phase>
      <pattern id="x"><let name="low" value="8"/>
        <rule context="item"><let name="n" value="@no"/><let name="m" value="concat($n, $id)"/>
          <report id="r" test="@price > $limit and . is $first"><value-of select="$m"/></report>
        </rule></pattern>
      <pattern id="y"><rule context="o"><report id="no" test="true()"/></rule></pattern>"""
    content = content.replace("<phase", '<let name="low" value="8"/><phase').replace(
        '<let name="low" value="8"/>\n', "", 1
    )
    assert _fired(_rules(content, phase="p")) == [("r", "/o[1]/item[1]", "1o7")]
    assert len(_rules(content, 'queryBinding="xslt2" defaultPhase="p"').profiles) == 1
    assert _rules(content, phase="#ALL").total == 2
    with pytest.raises(SchematronRefused, match="no phase 'q'; expected one of: p"):
        _rules(content, phase="q")


def test_abstract_patterns_and_rules() -> None:
    rules = _rules(
        """<pattern abstract="true" id="needs"><rule context="$thing">
             <assert id="needed" test="$part">no <value-of select="name($part/..)"/></assert>
           </rule></pattern>
           <pattern is-a="needs" id="a"><param name="thing" value="item"/>
             <param name="part" value="name"/></pattern>
           <pattern is-a="needs" id="b"><param name="thing" value="o"/>
             <param name="part" value="thing"/></pattern>
           <pattern><rule abstract="true" id="base"><let name="n" value="@no"/>
               <report id="shared" test="$n = 3"/></rule>
             <rule context="item"><extends rule="base"/></rule></pattern>"""
    )
    assert [rule.key for rule in rules.profiles] == ["needed", "needed.2", "shared"]
    assert [(id_, place) for id_, place, _ in _fired(rules)] == [
        ("needed", "/o[1]"),
        ("needed", "/o[1]/extra[1]/item[1]"),
        ("shared", "/o[1]/extra[1]/item[1]"),
    ]


def test_functions_and_keys_of_xslt_and_current() -> None:
    rules = _rules(
        """<ns prefix="u" uri="urn:u"/>
           <xsl:key name="by-no" match="item" use="@no"/>
           <xsl:function name="u:twice" as="xs:integer"><xsl:param name="n" as="xs:integer"/>
             <xsl:variable name="two" select="2"/>
             <xsl:variable name="product" as="xs:integer"><xsl:value-of select="$n * $two"/>
             </xsl:variable>
             <xsl:choose><xsl:when test="$n gt 0"><xsl:sequence select="$product"/></xsl:when>
               <xsl:otherwise><xsl:value-of select="0"/></xsl:otherwise></xsl:choose>
           </xsl:function>
           <pattern><rule context="item">
             <report id="f" test="u:twice(xs:integer(@no)) = 4"/>
             <report id="k" test="key('by-no', '3') is current()"/>
             <report id="c" test="/o/item[@no = current()/@no]/name = 'Tea'"/>
           </rule></pattern>""",
        'queryBinding="xslt2" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema"',
    )
    assert [(id_, place) for id_, place, _ in _fired(rules)] == [
        ("c", "/o[1]/item[1]"),
        ("f", "/o[1]/item[2]"),
        ("k", "/o[1]/extra[1]/item[1]"),
    ]


def test_diagnostics_roles_and_subjects() -> None:
    rules = _rules(
        """<pattern><rule context="o"><assert id="a" test="none" flag="fatal" role="error"
             diagnostics="d" subject="item[1]">short</assert></rule></pattern>
           <diagnostics><diagnostic id="d">it has <value-of select="count(item)"/></diagnostic>
           </diagnostics>"""
    )
    matcher = Matcher()
    matcher.add(rules.profiles[0].text)
    ((result,),) = [delivered.results for delivered in matcher.deliver(ORDER.encode())]
    assert result.decode() == (
        '<svrl:failed-assert xmlns:svrl="http://purl.oclc.org/dsdl/svrl" id="a" role="error" '
        'flag="fatal" location="/o[1]/item[1]"><svrl:text>short</svrl:text>'
        '<svrl:diagnostic-reference diagnostic="d"><svrl:text>it has 2</svrl:text>'
        "</svrl:diagnostic-reference></svrl:failed-assert>"
    )


def test_each_node_has_a_location_of_its_own() -> None:
    content = "".join(
        f'<pattern><rule context="{context}"><report id="r" test="true()"/></rule></pattern>'
        for context in ("text()", "comment()", "processing-instruction()", "@*", "*", "/")
    )
    message = "<!--0--><a><b>1<!--2-->3</b><!--4--><?p 5?><c/><?q 6?><b i='7'>8</b></a>"
    assert sorted(place for _, place, _ in _fired(_rules(content), message)) == [
        "",
        "/a[1]",
        "/a[1]/b[1]",
        "/a[1]/b[1]/comment()[1]",
        "/a[1]/b[1]/text()[1]",
        "/a[1]/b[1]/text()[2]",
        "/a[1]/b[2]",
        "/a[1]/b[2]/@i",
        "/a[1]/b[2]/text()",
        "/a[1]/c[1]",
        "/a[1]/comment()[1]",
        "/a[1]/processing-instruction()[1]",
        "/a[1]/processing-instruction()[2]",
        "/comment()[1]",
    ]


def test_a_thousand_failures_are_all_told_in_time_that_is_linear() -> None:
    content = """<pattern><rule context="item"><assert id="a" test="@no">no number</assert></rule>
      </pattern>"""
    (rule,) = _rules(content).profiles
    matcher = Matcher(MatchLimits(evaluation=EvaluationLimits(visits_max=100_000)))
    matcher.add(rule.text)
    for number in (1_000, 10_000):
        message = f"<o>{'<item><a/><b/></item>' * number}</o>".encode()
        (found,) = matcher.deliver(message)
        assert (found.exceeded, len(found.results)) == (None, number)
        assert f'location="/o[1]/item[{number}]"'.encode() in found.results[-1]


@pytest.mark.parametrize("make", [Matcher, ReferenceMatcher])
@pytest.mark.parametrize("context", ["item", "item/@price", "item[1]/../item"])
def test_where_a_bound_cuts_the_first_are_told_with_the_count_of_the_rest(
    context: str, make: type[Matcher] | type[ReferenceMatcher]
) -> None:
    content = f"""<pattern><rule context="{context}" flag="fatal"><assert id="a" test="false()">no
      <value-of select="name(), 1"/></assert></rule></pattern>"""
    (rule,) = _rules(content).profiles
    matcher = make(MatchLimits(evaluation=EvaluationLimits(bytes_max=10_000)))
    matcher.add(rule.text)
    (found,) = matcher.deliver(f"<o>{'<item price=$1$/>' * 500}</o>".replace("$", '"').encode())
    assert found.exceeded is None
    *told, last = map(lxml.etree.fromstring, found.results)
    assert 20 < len(told) < 200
    assert told[-1].get("location", "").startswith(f"/o[1]/item[{len(told)}]")
    assert (last.tag, last.get("id"), last.get("flag")) == (told[0].tag, "a", "fatal")
    assert "".join(map(str, last.itertext())) == (
        f"{500 - len(told)} more: the results of a profile are larger than 10000 bytes "
        "[result-too-large]"
    )


# Each fourth of 400 items fails, and to look at one costs about 800 visits.
FOURTHS = f"<o>{''.join(f'<item no={chr(34)}{at % 4}{chr(34)}/>' for at in range(400))}</o>"
FOURTH = "string(@no | self::attribute()) != '3'"
ALL_LONG = "count(//item[string-length(concat(@no, name(current()))) gt 100]) = 0"


def _delivered_of_fourths(
    make: type[Matcher] | type[ReferenceMatcher], context: str, text: str, limits: EvaluationLimits
) -> Delivered:
    content = f"""<pattern><rule context="{context}"><assert id="a" test="{FOURTH} and {ALL_LONG}">
      {text}</assert></rule></pattern>"""
    (rule,) = _rules(content).profiles
    matcher = make(MatchLimits(evaluation=limits))
    matcher.add(rule.text)
    (found,) = matcher.deliver(FOURTHS.encode())
    return found


@pytest.mark.parametrize("make", [Matcher, ReferenceMatcher])
@pytest.mark.parametrize(
    "context", ["item", "item[@no]", "item/@no", "item|thing", "thing|o/item", "item[1]/../item"]
)
def test_failures_before_a_bound_of_the_condition_are_told(
    context: str, make: type[Matcher] | type[ReferenceMatcher]
) -> None:
    limits = EvaluationLimits(visits_max=20_000)
    found = _delivered_of_fourths(make, context, "no", limits)
    assert found.exceeded is None
    *told, last = map(lxml.etree.fromstring, found.results)
    places = [each.get("location", "").removesuffix("/@no") for each in told]
    assert len(places) > 2
    assert places == [f"/o[1]/item[{4 * at}]" for at in range(1, len(places) + 1)]
    said = "".join(map(str, last.itertext()))
    unseen = int(
        said.removesuffix(
            " not looked at: a condition looks at too many nodes of this message [too-many-visits]"
        )
    )
    assert (400 - unseen) // 4 == len(places)
    assert (last.get("id"), last.get("location")) == ("a", "")


@pytest.mark.parametrize("make", [Matcher, ReferenceMatcher])
def test_a_bound_of_the_condition_and_one_of_the_results_are_told_together(
    make: type[Matcher] | type[ReferenceMatcher],
) -> None:
    limits = EvaluationLimits(visits_max=40_000, bytes_max=1_000)
    *told, last = _delivered_of_fourths(make, "item", "no" * 100, limits).results
    said = re.search(rb"(\d+) more and (\d+) not looked at: the results of a profile are ", last)
    assert said is not None
    more, unseen = map(int, said.groups())
    assert 0 < len(told) < 5
    assert len(told) + more == (400 - unseen) // 4


@pytest.mark.parametrize("make", [Matcher, ReferenceMatcher])
def test_what_is_no_failed_assertion_is_not_told_in_part(
    make: type[Matcher] | type[ReferenceMatcher],
) -> None:
    """Nor is a rule of which nothing was found before the bound."""
    limits = EvaluationLimits(visits_max=20_000)
    long = "count(//item[string-length(concat(@no, $i/@no)) > 100]) = 0"
    matcher = make(MatchLimits(evaluation=limits))
    matcher.add(f"for $i in //item where $i/@no = 3 and {long} return <r/>")
    (found,) = matcher.deliver(FOURTHS.encode())
    assert found.exceeded is not None
    assert (found.results, found.exceeded.code) == ([], "too-many-visits")
    found = _delivered_of_fourths(make, "item", "no", EvaluationLimits(visits_max=700))
    assert found.exceeded is not None
    assert (found.results, found.exceeded.code) == ([], "too-many-visits")


def test_an_error_in_a_text_or_a_variable_does_not_lose_the_failure() -> None:
    rules = _rules(
        """<pattern><rule context="item"><let name="p" value="xs:decimal(@price), 1"/>
             <assert id="shown" test="false()">of <value-of select="$p"/></assert>
             <assert id="said" test="false()">of <value-of select="xs:decimal(@price)"/></assert>
             <assert id="asked" test="$p > 0">of <value-of select="@no"/></assert>
           </rule></pattern>"""
    )
    assert {found for found in _fired(rules) if "extra" not in found[1]} == {
        ("shown", "/o[1]/item[1]", "of 9.5 1"),
        ("shown", "/o[1]/item[2]", "of "),
        ("said", "/o[1]/item[1]", "of 9.5"),
        ("said", "/o[1]/item[2]", "of "),
        ("asked", "/o[1]/item[2]", "of 2"),
    }


def _code_list(number: int, test: str) -> RuleSet:
    codes = ",".join(f"'c{at}'" for at in range(number))
    return _rules(
        f"""<let name="codes" value="({codes})"/><pattern><rule context="item">
            <assert id="a" test="{test}">no</assert></rule></pattern>"""
    )


@pytest.mark.parametrize(
    "test",
    [
        "@c = $codes",
        "$codes = @c",
        "some $code in $codes satisfies $code = @c",
        "some $code in $codes satisfies normalize-space(@c) = $code",
        "every $c in @c satisfies $c = $codes",
    ],
)
def test_a_code_is_looked_up_in_a_long_list_once(test: str) -> None:
    """Not compared with each: 401 values with 7,000 codes would take 2.8 million visits."""
    (rule,) = _code_list(7_000, test).profiles
    limits = EvaluationLimits(visits_max=40_000)
    matcher = Matcher(MatchLimits(evaluation=limits))
    matcher.add(rule.text)
    items = "".join(f'<item c="c{at}"/>' for at in range(6_600, 7_000))
    (found,) = matcher.deliver(f'<o>{items}<item c="d"/></o>'.encode())
    assert found.exceeded is None
    (result,) = found.results
    assert lxml.etree.fromstring(result).get("location") == "/o[1]/item[401]"


def test_a_rule_that_is_longer_than_a_profile_may_be_is_refused_with_the_limit() -> None:
    assert not _code_list(30_000, "@c = $codes").refused
    rules = _code_list(36_000, "@c = $codes")
    (refused,) = rules.refused
    assert str(refused).startswith("rules.sch: line 2: a: the profile is longer than 262,144 bytes")


def test_what_is_an_error_has_failed() -> None:
    rules = _rules(
        """<pattern><rule context="item"><assert id="a" test="xs:decimal(@price) + 1 > 0">a</assert>
           <assert id="or" test="xs:decimal(@price) + 1 > 0 or @no = 2">or</assert>
           <assert id="every" test="every $n in @no satisfies
             (xs:decimal(@price) + 1 > 0 or $n = 2)">every</assert>
           <assert id="if" test="if (@no = 3) then true() else @no = 1 or @no = 2">if</assert>
           <report id="r" test="xs:decimal(@price) + 1 > 0">r</report></rule></pattern>"""
    )
    assert [(id_, place) for id_, place, _ in _fired(rules)] == [
        ("a", "/o[1]/extra[1]/item[1]"),
        ("a", "/o[1]/item[2]"),
        ("every", "/o[1]/extra[1]/item[1]"),
        ("or", "/o[1]/extra[1]/item[1]"),
        ("r", "/o[1]/item[1]"),
    ]


@pytest.mark.parametrize(
    ("context", "places"),
    [
        ("o[upper-case(item) = 'TEA']", []),
        ("o[contains(item/name, 'Tea') and @id]", []),
        ("o[not(starts-with(item, 'x'))]", []),
        ("o[item/upper-case(name) = 'TEA']", ["/o[1]"]),
        ("o[upper-case(extra/item) = '' or upper-case(item) = 'TEA']", ["/o[1]"]),
        ("o[fn:upper-case(item[1]) = 'TEA']", ["/o[1]"]),
        ("item[xs:decimal(@price) > 9]", ["/o[1]/item[1]"]),
        ("(o[number(item) = 1])/item", []),
    ],
)
def test_a_context_that_is_an_error_for_a_node_does_not_match_it(
    context: str, places: list[str]
) -> None:
    rule = f'<rule context="{context}"><report id="r" test="true()"/></rule>'
    assert sorted(place for _, place, _ in _fired(_rules(f"<pattern>{rule}</pattern>"))) == places
    later = '<rule context="o"><report id="later" test="true()"/></rule>'
    fired = _fired(_rules(f"<pattern>{rule}{later}</pattern>"))
    assert (("later", "/o[1]") in {found[:2] for found in fired}) is ("/o[1]" not in places)


def test_what_is_included_is_part_of_it() -> None:
    part = (
        '<pattern xmlns="http://purl.oclc.org/dsdl/schematron">\n<rule context="o">\n'
        '<report id="included" test="doc(1)"/><report id="r" test="true()"/></rule></pattern>'
    )
    rules = _rules('<include href="part.sch"/>', files={"part.sch": part})
    assert [rule.key for rule in rules.profiles] == ["r"]
    (refused,) = rules.refused
    assert str(refused).startswith("part.sch: line 3: included: doc() is not in the profile")
    with pytest.raises(SchematronRefused, match=r"rules\.sch: line 1: a cannot.*a includes itself"):
        loop = '<pattern xmlns="http://purl.oclc.org/dsdl/schematron"><include href="a"/></pattern>'
        _rules('<include href="a"/>', files={"a": loop})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("<pattern><rule><report test='1'/></rule></pattern>", "line 1: a rule without a context"),
        ("<pattern is-a='x'/>", "there is no abstract pattern 'x'"),
        ("<pattern documents='@href'/>", "a profile sees one message"),
        ("<pattern><rule context='a'><extends rule='x'/></rule></pattern>", "no abstract rule 'x'"),
    ],
)
def test_what_is_no_rule_set_is_refused_as_a_whole(content: str, why: str) -> None:
    with pytest.raises(SchematronRefused, match=why):
        _rules(content)


def test_other_documents_and_entities_are_refused() -> None:
    with pytest.raises(SchematronRefused, match="expected <schema> of Schematron"):
        compile_schematron(b"<a/>")
    with pytest.raises(SchematronRefused, match="this is no XML"):
        compile_schematron(b"<a>")
    with pytest.raises(SchematronRefused, match="query binding is 'exslt'; expected one of xslt"):
        _rules("", 'queryBinding="exslt"')


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ('<!ENTITY e "A &#38;lt; B">', ""),
        ('<!ENTITY d "A"><!ENTITY e "&d; &#38;lt; B">', ""),
        ('<!ENTITY e SYSTEM "codes.txt">', "rules.sch: line 1: external entity 'codes.txt'"),
        ("<!ENTITY % p '<!ENTITY e \"x\">'>%p;", "rules.sch: line 1: parameter entity %p;"),
        ('<!ENTITY e "&e;">', "rules.sch: this is no XML: Detected an entity reference loop"),
        (
            f'<!ENTITY d "{"d" * 1000}"><!ENTITY e "{"&d;" * 9000}">',
            "rules.sch: this is no XML: Maximum entity amplification factor exceeded",
        ),
    ],
)
def test_entities_of_a_rule_file_are_expanded_within_the_bounds_of_messages(
    declared: str, why: str
) -> None:
    text = (
        f'<!DOCTYPE schema [{declared}]><schema xmlns="http://purl.oclc.org/dsdl/schematron">'
        '<pattern><rule context="o"><report id="r" test="1">&e;</report></rule></pattern></schema>'
    ).encode()
    if why:
        with pytest.raises(SchematronRefused, match=f"^{why}"):
            compile_schematron(text, file="rules.sch")
    else:
        assert _fired(compile_schematron(text)) == [("r", "/o[1]", "A < B")]


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ('test="base-uri() = @u"', "a message has no address"),
        ('test="u:f(.)"', "u"),
        ('test="position() = 2"', "depends on how a stylesheet visits nodes"),
        ('test="a[1] or last() = 1"', "last() of the rule's node"),
        ('test="1 (: (: :)"', "a comment does not end"),
        ('test=" "', "an assertion without a test"),
        ('test="1" diagnostics="d"', "there is no diagnostic 'd'"),
        ('test="f(("', "brackets or quotation marks do not match"),
        ('test="1) or (1"', "brackets or quotation marks do not match"),
        ('test="\'x"', "brackets or quotation marks do not match"),
        ('test="o +"', "syntax"),
    ],
)
def test_an_assertion_that_cannot_be_taken_says_why(check: str, why: str) -> None:
    rule = f'<rule context="o"><assert {check}>x</assert></rule>'
    rules = _rules(f'<pattern id="p">\n{rule}</pattern>')
    assert rules.total == 1
    (refused,) = rules.refused
    assert (refused.key, refused.line) == ("p/1/1", 2)
    assert why in refused.reason


@pytest.mark.parametrize(
    ("before", "inside", "lines"),
    [
        ("<let name='v' value='1'/>\n<let name='v' value='2'/>", "", "1 and in line 2"),
        ("", "<let name='v' value='1'/>\n\n<let name='v' value='2'/>", "1 and in line 3"),
    ],
)
def test_two_variables_of_one_name_are_refused(before: str, inside: str, lines: str) -> None:
    rule = f"<rule context='o'>{inside}<report id='r' test='$v = 2'/></rule>"
    (refused,) = _rules(f"{before}<pattern>{rule}</pattern>").refused
    assert f"there are two variables $v, in line {lines}; expected one" in refused.reason
    shadowed = "<let name='v' value='1'/><pattern><rule context='o'><let name='v' value='2'/>"
    assert _fired(_rules(f"{shadowed}<report id='r' test='$v = 2'/></rule></pattern>")) == [
        ("r", "/o[1]", "")
    ]


@pytest.mark.parametrize(
    ("test", "fails"),
    [
        ("matches(@no, @like)", ["/a[1]/b[2]", "/a[1]/b[3]"]),  # none is an error
        ("matches(@no, concat('^', '1', '$'))", ["/a[1]/b[2]", "/a[1]/b[3]"]),
        ("count(tokenize(string-join(../b/@no, ','), $comma)) = 3", []),
        ("replace(@no, $re, '') = ''", ["/a[1]/b[3]"]),
        ("matches('A', 'a', @flags)", ["/a[1]/b[1]", "/a[1]/b[3]"]),
        ("matches(@no, $long)", ["/a[1]/b[1]", "/a[1]/b[2]", "/a[1]/b[3]"]),
        ("matches(@no, $deep)", ["/a[1]/b[1]", "/a[1]/b[2]", "/a[1]/b[3]"]),
    ],
)
def test_a_pattern_may_be_computed(test: str, fails: list[str]) -> None:
    rules = _rules(
        f"""<let name="long" value="string-join(for $x in 1 to 20000 return '.?', '')"/>
            <let name="deep" value="string-join(for $x in 1 to 2000 return '(', '')"/>
            <pattern><rule context="b"><let name="comma" value="','"/>
            <let name="re" value="'^[12]$'"/><assert id="a" test="{test}"/></rule></pattern>"""
    )
    message = "<a><b no='1' like='^1$'/><b no='2' like='(' flags='i'/><b no='3'/></a>"
    assert [place for _, place, _ in _fired(rules, message)] == fails


def test_an_error_beneath_a_not_ends_the_whole_context() -> None:
    message = "<a><b><c>1</c><c>2</c></b><b><c>3</c></b><b n='x'/></a>"
    for context, places in {
        "b[empty(c[string(../c) = '1'])]": ["/a[1]/b[2]", "/a[1]/b[3]"],
        "b[not(@n = 1)]": ["/a[1]/b[1]", "/a[1]/b[2]"],
        "b[not(c eq '3')]": ["/a[1]/b[3]"],
        "b[count(c[xs:integer(concat('x', .)) = 1]) = 0]": ["/a[1]/b[3]"],
        "b[every $c in c satisfies number(../b/c) = $c]": ["/a[1]/b[3]"],
        "b[if (c + 1 = 4) then false() else true()]": ["/a[1]/b[3]"],
        "a[not(b[c + 1 = 4])]": [],
        "a[b/c[. = 1 or string(../c) = '3']]": ["/a[1]"],
        "b[c = current()/c[2]]": ["/a[1]/b[1]"],
        "b[not(current()/@n)]/c[current() = 3]": ["/a[1]/b[2]/c[1]"],
    }.items():
        rule = f'<rule context="{context}"><report id="r" test="true()"/></rule>'
        spaces = '<ns prefix="xs" uri="http://www.w3.org/2001/XMLSchema"/>'
        found = _fired(_rules(f"{spaces}<pattern>{rule}</pattern>"), message)
        assert [place for _, place, _ in found] == places, context


def test_comments_stand_in_comments_and_names_are_computed() -> None:
    rules = _rules(
        """<pattern><rule context="item (: all (: of :) them's :)"><report id="r"
             test="@no = 3 (: (: not :) '2' :)"><name path="name(..)"/> <name path=".."/>
             <name/></report></rule></pattern>"""
    )
    assert _fired(rules) == [("r", "/o[1]/extra[1]/item[1]", "extra extra item")]


def test_a_test_that_only_a_trial_refuses_is_named_with_its_line() -> None:
    tall = "+".join(["1", *["b"] * 200])
    found = _rules(
        f'<pattern><rule context="a">\n<assert id="tall" test="{tall}"/><assert test="b"/></rule>'
        "</pattern>"
    )
    assert len(found.profiles) == 1
    (refused,) = found.refused
    assert (refused.key, refused.line) == ("tall", 2)
    assert "too many operators" in refused.reason
