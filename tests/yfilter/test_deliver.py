"""Matcher.deliver: finished results of all profiles, as ``match`` and the interpreter have them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from random import Random

import pytest

from benchmarks.random_queries import Level, QueryWriter, random_message
from formats.text import parse_text
from tests.oracle.reference import ReferenceMatcher
from tests.yfilter import interpreted
from yfilter import (
    Matcher,
    MatchLimitExceeded,
    MatchLimits,
    ProfileMatch,
    ProfileRefused,
    compiled_matcher,
)
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.matches import Delivered
from yfilter.operators.compiler import Returned, returned

MESSAGE = b'<a id="x"><b n="1"/><b n="2"><c>t</c></b></a>'


def delivered(matcher: Matcher, message: bytes = MESSAGE) -> dict[str, list[bytes]]:
    """The results of each profile that gets any."""
    found: dict[str, list[bytes]] = {}
    for numbers, results, exceeded, *_ in matcher.deliver(message):
        assert exceeded is None
        for number in numbers:
            assert matcher.id_of(number) not in found, "delivered twice"
            found[matcher.id_of(number)] = results
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_profiles_get_what_the_interpreter_says(seed: int) -> None:
    rng = Random(seed)
    matcher = Matcher()
    profiles: dict[str, str] = {}
    while len(profiles) < 40:
        text = QueryWriter(rng, Level.XQUERY).profile()
        try:
            profiles[matcher.add(text)] = text
        except ProfileRefused:
            continue
    for _ in range(4):
        message = random_message(rng)
        stream = parse_text(message)
        expected = {name: interpreted.results(text, stream) for name, text in profiles.items()}
        assert delivered(matcher, message) == {k: v for k, v in expected.items() if v}, seed
        matched = {
            match.profile_id: match.results()
            for match in matcher.match(message)
            if isinstance(match, ProfileMatch)
        }
        assert {k: v for k, v in matched.items() if v} == {k: v for k, v in expected.items() if v}


@pytest.mark.parametrize("seed", range(12))
def test_results_that_were_put_off_are_made_later_as_they_would_have_been(seed: int) -> None:
    """Meanwhile other messages were matched, and other profiles came and went."""
    print(f"seed {seed}")
    rng = Random(seed)
    matcher = Matcher()
    while matcher.statistics().profiles < 40:
        try:
            matcher.add(QueryWriter(rng, Level.XQUERY).profile())
        except ProfileRefused:
            continue
    waiting = []
    for _ in range(4):
        message = parse_text(random_message(rng))
        expected = delivered_of(matcher, matcher.deliver(message))
        _, put_off = matcher.deliver_in_stages(message, "", lambda *asked: False)
        names = [matcher.id_of(number) for one in put_off for number in one.numbers]
        assert set(names) >= set(expected)
        waiting.append((message, names, expected))
    matcher.add("for $b in //b return <later>{$b}</later>", "later")
    for message, names, expected in reversed(waiting):
        assert delivered_of(matcher, matcher.deliver_to(message, names)) == expected


def test_what_is_put_off_says_whether_it_is_certain_that_there_are_results() -> None:
    matcher = Matcher()
    matcher.add("//b/c", "whole")
    matcher.add("for $b in //b return <r>{$b}</r>", "certain")
    matcher.add("for $b in //b return $b/none", "uncertain")
    asked: dict[str, tuple[bool, bool]] = {}

    def makes_now(numbers: array[int], is_uncertain: bool, is_whole: bool) -> bool:
        asked.update((matcher.id_of(number), (is_uncertain, is_whole)) for number in numbers)
        return is_uncertain

    _, local = matcher.deliver_in_stages(MESSAGE, "", makes_now)
    found = {matcher.id_of(one.numbers[0]): one.is_made for one in local}
    assert asked == {
        "whole": (False, True),
        "certain": (False, False),
        "uncertain": (True, False),
    }
    assert found == {"whole": False, "certain": False}, "the uncertain one came to nothing"


def delivered_of(matcher: Matcher, made: Iterable[Delivered]) -> dict[str, list[bytes]]:
    """The results of each profile that gets any."""
    return {
        matcher.id_of(number): one.results for one in made if one.results for number in one.numbers
    }


def test_all_who_get_the_message_are_told_at_once_and_last() -> None:
    matcher = Matcher()
    for name, text in (("p", "/a/b"), ("q", "//c"), ("r", "//b[2]"), ("no", "/x")):
        matcher.add(text, name)
    matcher.add("for $b in //b return $b/c", "s")
    made, message = matcher.deliver(MESSAGE)
    assert ([*map(matcher.id_of, made.numbers)], made.results) == (["s"], [b"<c>t</c>"])
    assert sorted(map(matcher.id_of, message.numbers)) == ["p", "q", "r"]
    assert message.results == [MESSAGE]


def test_equal_profiles_are_one_result() -> None:
    matcher = Matcher()
    for number in range(100):
        matcher.add("for $b in //b return <n>{$b/@n}</n>", str(number))
    (one,) = matcher.deliver(MESSAGE)
    assert len(one.numbers) == 100
    assert one.results == [b'<n n="1"/>', b'<n n="2"/>']


def test_messages_in_turns_do_not_mix() -> None:
    matcher = Matcher()
    for number in range(4):
        matcher.add(f"for $b in //b return <r{number}>{{$b/@n}}</r{number}>", str(number))
    one, other = (matcher.deliver(f'<b n="{name}"/>'.encode()) for name in ("one", "other"))
    found = [(first.results, second.results) for first, second in zip(one, other, strict=True)]
    for number, ((first,), (second,)) in enumerate(sorted(found)):
        assert first == f'<r{number} n="one"/>'.encode()
        assert second == f'<r{number} n="other"/>'.encode()


def test_profiles_that_come_and_go_meanwhile() -> None:
    matcher = Matcher()
    names = [matcher.add(f"for $b in //b return <r{n}>{{$b/@n}}</r{n}>") for n in range(3)]
    message = matcher.add("/a")
    left = matcher.deliver(MESSAGE)
    first = matcher.id_of(next(left).numbers[0])
    gone, kept = (name for name in names if name != first)
    matcher.remove(gone)
    matcher.remove(message)
    matcher.add("//c", "new")  # may have the number of one that is gone
    matcher.add("for $b in //b return <new/>", "newer")
    assert [matcher.id_of(number) for one in left for number in one.numbers] == [kept]
    assert set(delivered(matcher)) == {first, kept, "new", "newer"}


@pytest.mark.parametrize("make", [Matcher, ReferenceMatcher])
@pytest.mark.parametrize("order", ["", "order by $n descending"])
def test_of_results_that_are_too_large_the_first_are_given(
    make: type[Matcher] | type[ReferenceMatcher], order: str
) -> None:
    matcher = make(MatchLimits(evaluation=EvaluationLimits(bytes_max=45)))
    matcher.add(f"for $b in //b let $n := number($b/@n) {order} return <long>{{$b/@n}}</long>")
    numbers = [4, 3, 2, 1] if order else [1, 2, 3, 4]
    (found,) = matcher.deliver(b"<a><b n='1'/><b n='2'/><b n='3'/><b n='4'/></a>")
    assert found.results
    assert found.results == [b'<long n="%d"/>' % n for n in numbers][: len(found.results)]
    assert found.exceeded is not None
    assert found.exceeded.code == "result-too-large"


def test_what_exceeds_a_limit_is_told_and_others_get_theirs() -> None:
    matcher = Matcher(MatchLimits(evaluation=EvaluationLimits(bytes_max=30)))
    matcher.add("for $b in //b return <long>{'x' , $b/@n, 'aaaaaaaaaaaaaaaaaaaaaaa'}</long>", "l")
    matcher.add("for $b in //b return <s>{$b/c}</s>", "s")
    found = {
        matcher.id_of(one.numbers[0]): (one.results, one.exceeded)
        for one in matcher.deliver(b"<a><b/><b/></a>")
    }
    results, exceeded = found["l"]
    assert results == [] and isinstance(exceeded, MatchLimitExceeded)
    assert found["s"] == ([b"<s/>", b"<s/>"], None)
    assert matcher.statistics().over_limit == 1


@pytest.mark.parametrize(
    "form",
    [
        "for $b in /a/b[{0}] return <r>{{$b}}</r>",
        "for $b in /a/b[position() < {0}] return $b",
        "for $b in /a/b where $b/@n = {0} return <r>{{$b/c[{0}]}}</r>",
        "for $b in /a/b[c > {0}] let $c := $b/c[. = {0}] where count($c) < {0} return $c",
        "for $a in /a/b, $b in /a/b[@m = {0}] where $a/@n = $b/@m return $a",
        "for $v in distinct-values(/a/b/@n) return <g v='{{$v}}'>{{/a/b[@n = $v][{0}]}}</g>",
        "<r>{{for $b in (/a/b | /a/d)[c = {0}] order by $b/@n return $b/c}}</r>",
        "for $b in /a/*[. = 'b{0}'] return if ($b/@n > {0}) then $b else ()",
    ],
)
def test_profiles_of_one_shape_get_what_the_interpreter_says(form: str) -> None:
    message = (
        b'<a><b n="1" m="2"><c>1</c><c>2</c></b><b n="2" m="1"><c>2</c><c>0</c></b>'
        b'<d n="2"><c>1</c></d><b n="2" m="0">b2</b></a>'
    )
    texts = [form.format(word) for word in range(5)]
    matcher = Matcher()
    for text in texts:
        matcher.add(text, text)
    wanted = {text: interpreted.results(text, parse_text(message)) for text in texts}
    assert delivered(matcher, message) == {text: made for text, made in wanted.items() if made}


def test_how_results_are_made_is_found_out_once_for_a_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = Matcher()
    for number in range(50):
        matcher.add(f'for $b in /a/b where $b/@n = "{number}" return <r>{{$b}}</r>')
    analysed: list[Profile] = []

    def analyse(profile: Profile) -> Returned:
        analysed.append(profile)
        return returned(profile)

    monkeypatch.setattr(compiled_matcher, "returned", analyse)
    message = "".join(f'<b n="{number}"/>' for number in range(50))
    assert len([*matcher.deliver(f"<a>{message}</a>".encode())]) == 50
    assert len(analysed) <= 1
