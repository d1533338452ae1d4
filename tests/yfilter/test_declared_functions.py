"""Declared functions and ``typeswitch``: what bounds them, and what the rest of the system makes
of them.  That their values are right is said by Saxon (test_language_oracle.py) and the QT3 suite.
"""

from __future__ import annotations

import sys
from random import Random

import pytest

from demo.oracle import canonical
from formats.text import parse_text
from tests.yfilter.evaluated import select
from tests.yfilter.projection.test_profile_needs import check
from tests.yfilter.random_cases import random_message
from yfilter import Matcher, ProfileMatch
from yfilter.compiled_deciders import render
from yfilter.errors import MatchLimitExceeded
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import EvaluationLimits, ProfileLimits
from yfilter.language.query_parser import parse_profile, reread
from yfilter.language.query_text import unparse
from yfilter.language.shapes import parts_of, take_apart
from yfilter.projection.parts import with_parts
from yfilter.projection.profile_needs import needs_of

IDENTITY = (
    "declare function local:same($n as node()) as node()* { typeswitch ($n) "
    "case $e as element() return element { node-name($e) } "
    "{ $e/@*, for $c in $e/node() return local:same($c) } default return $n }; "
)
WITHOUT = IDENTITY.replace("case $e", "case element(b) return () case $e")
PROFILES = [
    f"{IDENTITY}for $a in //a return local:same($a)",
    f"{WITHOUT}for $a in //a[@id] where $a/c return <r>{{local:same($a)}}</r>",
    f"{WITHOUT}<all>{{for $a in //c return local:same($a/*[1])}}</all>",
    (
        "declare function local:up($n as element()) { $n/../@id }; "
        "for $b in //b return <r>{local:up($b)}</r>"
    ),
    "declare function local:all() { count(//a) }; for $b in //b return <r>{local:all()}</r>",
    (
        "declare function local:n($x as xs:double?) as xs:double { ($x, 0)[1] * 2 }; "
        "for $b in //b where local:n($b/@n) > 2 return <r>{$b/@n, local:n(3)}</r>"
    ),
    (
        "for $a in //a return <r>{typeswitch ($a/*[1]) case $b as element(b) return $b/@id "
        "case element() return $a/@n default $d return count($d)}</r>"
    ),
    (
        "for $a in //a return copy $c := $a modify (delete node $c//b, for $d in $c//d return "
        "rename node $d as 'e') return $c"
    ),
    (
        "for $a in //a return <r>{copy $c := $a/*[1] modify replace value of node $c with $a/@id "
        "return $c}{$a/c[@n]/@n}</r>"
    ),
    "for $a in //a group by $n := $a/@n return <g n='{$n}'>{$a/c, count($a)}</g>",
    (
        "for $a in //a for $b in $a/b where $b/@n group by $n := string($b/@n) let $c := count($a)"
        " where $c > 1 order by $c, $n return <g n='{$n}'>{$a/@id}</g>"
    ),
    "for $a in //a return <r>{$a/b ! (@id || name(..)), $a/*[1] => count()}</r>",
    (
        "for $a in //a return <r>{switch ($a/@n) case '1' return $a/b case $a/b/@n return $a/c"
        " default return count($a/d)}</r>"
    ),
    "for $a in //a return <r>{try { $a/@n + $a/b/@n } catch err:X { 0 } catch * { $a/c }}</r>",
    "//a[copy $c := . modify delete node $c/b return count($c/*) > 1]",
]


def results(text: str, message: bytes, limits: EvaluationLimits | None = None) -> list[bytes]:
    profile, stream = parse_profile(text), parse_text(message)
    bindings = [node.number for node in select(matching_path(profile), stream)]
    return render(profile, stream, bindings, limits or EvaluationLimits())


# -- bounds


@pytest.mark.parametrize(
    "function",
    [
        "declare function local:f($n) { local:f($n) };",
        "declare function local:f($n) { <a>{local:f($n)}</a> };",
        (
            "declare function local:f($n) { local:g($n) }; "
            "declare function local:g($n) { if (local:f($n)) then 1 else 2 };"
        ),
        "declare function local:f($n) { ((((((((((((((1 + local:f($n))))))))))))))) };",
        "declare function local:f($n) { for $x in $n, $y in $n where local:f($x) return $y };",
        "declare function local:f($n) { some $x in $n, $y in $n satisfies local:f($y) };",
        (
            "declare function local:f($n) { copy $c := $n modify insert node local:f($n) into $c "
            "return $c };"
        ),
    ],
)
def test_a_function_without_an_end_is_a_limit(function: str) -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(MatchLimitExceeded) as exceeded:
        results(f"{function} for $a in /a return <r>{{local:f($a)}}</r>", b"<a/>")
    assert exceeded.value.code == "too-many-calls"
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        ("declare function local:f() { if (//none) then local:f() else count(//a) };", b"<r>2</r>"),
        ("declare function local:f() { (//none[local:f()]/local:f(), //a)[1]/@n };", b'<r n="1"/>'),
        (
            (
                "declare function local:f() { if (//none) then sum(local:g()) else 3 }; "
                "declare function local:g() { count(//a[count(local:f()) > 1]) };"
            ),
            b"<r>3</r>",
        ),
        (
            (
                "declare variable $v := <v/>; "
                "declare function local:f() { ($v, if (//none) then local:f() else $v)/. };"
            ),
            b"<r><v/></r>",
        ),
    ],
)
def test_a_call_that_needs_nothing_but_the_message_may_call_itself(
    function: str, wanted: bytes
) -> None:
    """One value for all who ask, found by operators that all of them have."""
    assert results(f"{function} <r>{{local:f()}}</r>", b'<a n="1"><a/></a>') == [wanted]


def test_calls_in_calls_are_bounded_by_an_option() -> None:
    text = (
        "declare function local:f($n) { if ($n > 0) then 1 + local:f($n - 1) else 0 }; "
        "for $a in /a return <r>{local:f(number($a/@n))}</r>"
    )
    limits = EvaluationLimits(calls_max=50)
    assert results(text, b'<a n="49"/>', limits) == [b"<r>49</r>"]
    assert results(text, b'<a n="500"/>') == [b"<r>500</r>"]
    with pytest.raises(MatchLimitExceeded):
        results(text, b'<a n="50"/>', limits)


def test_limits_are_not_caught() -> None:
    text = (
        "declare function local:f($n) { try { local:f($n) } catch * { 1 } }; "
        "for $a in /a return <r>{local:f(1)}</r>"
    )
    with pytest.raises(MatchLimitExceeded):
        results(text, b"<a/>")


def test_calls_that_double_are_bounded_by_visits() -> None:
    text = (
        "declare function local:f($n) { if ($n = 0) then 1 else local:f($n - 1) + local:f($n - 1) "
        "}; for $a in /a return <r>{local:f(40)}</r>"
    )
    with pytest.raises(MatchLimitExceeded) as exceeded:
        results(text, b"<a/>", EvaluationLimits(visits_max=20_000))
    assert exceeded.value.code == "too-many-visits"


def test_the_deepest_message_is_transcoded() -> None:
    message = b"<a>" * 256 + b"x" + b"</a>" * 256
    assert results(f"{IDENTITY}for $a in /a return local:same($a)", message) == [message]


def test_a_limit_of_one_profile_is_not_anothers() -> None:
    matcher = Matcher()
    matcher.add("declare function local:f($n) { local:f($n) }; //a[local:f(.)]", "endless")
    matcher.add("//a[b]", "other")
    found = matcher.match(b"<a><b/></a>")
    assert [m.profile_id for m in found if isinstance(m, ProfileMatch)] == ["other"]


def test_the_text_of_functions_is_bounded_as_all_is() -> None:
    text = "declare function local:f($n) { " + "$n/a/" * 40 + "b }; //a"
    limits = ProfileLimits(all_steps_max=20)
    with pytest.raises(Exception, match="more than 20 steps"):
        parse_profile(text, limits)


# -- all else


@pytest.mark.parametrize("text", PROFILES)
def test_texts_are_read_again(text: str) -> None:
    profile = parse_profile(text)
    written = unparse(profile)
    assert parse_profile(written) == profile
    assert reread(written) == profile
    assert parts_of(profile).fill() == profile.body
    assert take_apart(profile.body).text() == written


@pytest.mark.parametrize("seed", range(12))
def test_engine_and_links_come_to_the_same(seed: int) -> None:
    rng = Random(seed)
    message = random_message(rng)
    direct = [results(text, message.text) for text in PROFILES]
    matcher = Matcher()
    for number, text in enumerate(PROFILES):
        matcher.add(text, str(number))
    found: dict[str, list[bytes]] = {}
    for match in matcher.match(message.stream):
        assert isinstance(match, ProfileMatch)
        found[match.profile_id] = match.results()
    for number, wanted in enumerate(direct):
        got = found.get(str(number), [])
        assert [*map(canonical, got)] == [*map(canonical, wanted)], PROFILES[number]
    check(PROFILES, message.stream)


def test_a_function_that_stays_in_its_arguments_needs_no_more() -> None:
    (need,) = needs_of(parse_profile(PROFILES[1]))
    assert need.text == "//a where /*/c/@id and /*/@id keep" or "//a" in need.text
    assert "whole" not in need.text
    everything = needs_of(parse_profile(PROFILES[3]))
    assert everything != (need,)


def test_calls_are_left_to_the_host_and_copies_are_computed_on_the_way() -> None:
    _, called = with_parts(parse_profile(PROFILES[1]))
    assert called == ()
    _, copied = with_parts(parse_profile(PROFILES[8]))
    assert len(copied) == 1
    assert "copy $c := $binding/*[1]" in copied[0].text


@pytest.mark.parametrize("text", PROFILES)
def test_profiles_are_explained(text: str) -> None:
    matcher = Matcher()
    explanation = matcher.explain(text, b'<a id="x" n="2"><b id="y" n="3"/><c/><d/></a>')
    assert explanation.matched is not None
