"""Declared variables: what a value costs, what it may say, and what the system makes of it.  That
values are right is said by Saxon (test_language_oracle.py) and the QT3 suite.
"""

from __future__ import annotations

from random import Random

import pytest

from demo.oracle import canonical
from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from tests.yfilter.projection.test_profile_needs import check
from tests.yfilter.random_cases import random_message
from tests.yfilter.test_declared_functions import results
from yfilter import Matcher
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.matching_path import matching_part
from yfilter.language.nodes import DOCUMENT
from yfilter.language.query_parser import parse_profile, reread
from yfilter.language.query_text import unparse
from yfilter.language.shapes import parts_of

PROFILES = [
    "declare variable $m := max(//a/@n); //b[@n = $m]",
    "declare variable $m := count(//a); for $b in //b where $b/@n < $m return <r>{$m, $b/@n}</r>",
    (
        "declare function local:ids() { distinct-values(//a/@id) }; "
        "declare variable $ids := local:ids(); //c[@id = $ids]"
    ),
    "declare variable $all := (//a, //b); for $x in $all return <r>{$x/@id}</r>",
    "declare variable $c := <a><b n='2'/></a>; for $b in //b where $b/@n = $c/b/@n return $c",
    (
        "declare variable $n := //a[1]; declare variable $k := ($n/b, $n/c); "
        "declare function local:k() { count($k) }; for $a in //a return <r>{local:k(), $k/@id}</r>"
    ),
    "declare namespace p = 'urn:p'; declare variable $p:x := count(//c); //a[@n >= $p:x]",
    "declare variable $either := (//a | //b); $either[@n > 2]/c",
]
ITEMS = b"<o>" + b"".join(b"<i><v>%d</v></i>" % number for number in range(500)) + b"</o>"


def visits(text: str) -> int:
    evaluator = MessageEvaluator(parse_text(ITEMS))
    evaluator.evaluate(parse_profile(text).body, DOCUMENT, {})
    return evaluator.visits


def test_a_value_is_found_once_a_message() -> None:
    once = visits("declare variable $m := max(//v); //i[1][v = $m]")
    assert visits("declare variable $m := max(//v); //i[v = $m]") < 3 * once


def test_names_that_double_stay_names() -> None:
    first = "declare variable $v0 := (/o/i[1], /o/i[2]);"
    more = (f"declare variable $v{n} := ($v{n - 1}, $v{n - 1});" for n in range(1, 8))
    text = f"{first}{''.join(more)} for $o in /o return <r>{{count($v7)}}</r>"
    assert results(text, ITEMS) == [b"<r>256</r>"]
    assert len(unparse(parse_profile(text))) < 2 * len(text)
    sums = (f"declare variable $v{n} := $v{n - 1} + $v{n - 1};" for n in range(1, 60))
    text = f"declare variable $v0 := count(//i);{''.join(sums)} for $o in /o return <r>{{$v59}}</r>"
    assert results(text, ITEMS) == [b"<r>%d</r>" % (500 * 2**59)]
    assert visits(text) < 5_000


def test_a_value_that_grows_too_large_is_a_limit() -> None:
    first = "declare variable $v0 := //i;"
    more = (f"declare variable $v{n} := ($v{n - 1}, $v{n - 1});" for n in range(1, 40))
    with pytest.raises(MatchLimitExceeded):
        results(f"{first}{''.join(more)} for $o in /o return <r>{{count($v39)}}</r>", ITEMS)


def test_a_limit_in_a_value_is_a_limit_again() -> None:
    matcher = Matcher()
    matcher.add("declare variable $v := for $a in //i, $b in //i return $a/v; //i[v = $v]", "large")
    for _ in range(2):
        (delivered,) = matcher.deliver(ITEMS)
        assert delivered.exceeded is not None


def test_a_variable_has_one_identity() -> None:
    text = "declare variable $e := <e/>; for $o in /o return <r>{$e is $e, <e/> is <e/>}</r>"
    assert results(text, ITEMS) == [b"<r>true false</r>"]


def test_only_what_uses_a_wrong_value_is_wrong() -> None:
    declared = "declare variable $wrong := 1 idiv count(//x); for $o in /o return "
    assert results(f"{declared}<r>{{if ($wrong) then 1 else 2}}</r>", ITEMS) == []
    assert results(f"{declared}<r>{{if (//x) then $wrong else 2}}</r>", ITEMS) == [b"<r>2</r>"]


def test_a_variable_that_needs_itself_has_no_value() -> None:
    text = (
        "declare function local:f() { $v }; declare variable $v := local:f(); "
        "for $o in /o return <r>{$v}</r>"
    )
    with pytest.raises(ProfileRefused, match="not bound"):
        parse_profile(text)
    text = (
        "declare variable $v := local:f() + 1; declare function local:f() { local:g($v) }; "
        "declare function local:g($n) { $n }; for $o in /o return <r>{$v}</r>"
    )
    with pytest.raises(ProfileRefused, match=r"the value of \$v needs itself"):
        parse_profile(text)


def test_what_is_declared_as_a_path_is_one_however_long() -> None:
    wide = " | ".join(f"//i[v = {n}]" for n in range(20))
    for value in ("//i[v = 7]", wide):
        profile = parse_profile(f"declare variable $i := ({value}); $i/v")
        assert profile.body.is_path()
    short = matching_part(parse_profile("declare variable $i := //i[v = 7]; $i/v"))
    assert unparse(short.path) == "//i[v = 7]/v"


@pytest.mark.parametrize("text", PROFILES)
def test_texts_are_read_again(text: str) -> None:
    profile = parse_profile(text)
    assert parse_profile(unparse(profile)) == profile == reread(unparse(profile))
    assert parts_of(profile).fill() == profile.body


@pytest.mark.parametrize("seed", range(12))
def test_engine_and_links_come_to_the_same(seed: int) -> None:
    message = random_message(Random(seed))
    matcher = Matcher()
    for number, text in enumerate(PROFILES):
        matcher.add(text, str(number))
    found = {match.profile_id: match.results() for match in matcher.match(message.stream)}
    for number, text in enumerate(PROFILES):
        body = parse_profile(text).body
        if body.is_path():
            selected = MessageEvaluator(message.stream).evaluate(body, DOCUMENT, {})
            wanted = [message.text] if selected else []
        else:
            wanted = results(text, message.text)
        got = found.get(str(number), [])
        assert [*map(canonical, got)] == [*map(canonical, wanted)], text
    check(PROFILES, message.stream)
