"""The Matcher's contract: ids, order, laziness, priorities, changes under way, limits."""

from __future__ import annotations

import gc
from contextlib import suppress
from random import Random

import pytest

from formats.errors import MessageRefused
from formats.limits import MessageLimits
from formats.text import parse_text
from tests.yfilter.random_cases import random_message, random_profile
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimitExceeded,
    MatchLimits,
    Profile,
    ProfileMatch,
    ProfileRefused,
    RouteMatch,
    parse_profile,
)
from yfilter.compiled_matcher import Answer, Answers
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.readings import Reading, Readings
from yfilter.index.automaton import ROOTS
from yfilter.language.profile_limits import EvaluationLimits

MESSAGE = b'<a id="x"><b n="1"/><b n="2"><c>t</c></b></a>'


def route(matcher: Matcher, conjunction: str, link: str, root: str = "r") -> None:
    matcher.add_route(Conjunction.parse(conjunction), LinkTarget(root, link))


def unroute(matcher: Matcher, conjunction: str, link: str, root: str = "r") -> None:
    matcher.remove_route(Conjunction.parse(conjunction), LinkTarget(root, link))


def names(matcher: Matcher, message: bytes = MESSAGE, root: str = "r") -> list[str]:
    """Links as "-> link" and profile ids, in the order in which they come."""
    return [
        f"-> {match.link}" if isinstance(match, RouteMatch) else match.profile_id
        for match in matcher.match(message, root)
    ]


def profile_match(matcher: Matcher, message: bytes = MESSAGE) -> ProfileMatch:
    (match,) = matcher.match(message)
    assert isinstance(match, ProfileMatch)
    return match


# -- profiles


def test_a_profile_is_matched_until_it_is_removed() -> None:
    matcher = Matcher()
    matcher.add("/a/b", "alice")
    matcher.add("/a/x", "bob")
    assert names(matcher) == ["alice"]
    matcher.remove("alice")
    assert names(matcher) == []
    with pytest.raises(KeyError):
        matcher.remove("alice")


def test_ids_are_unique_and_generated_where_none_is_named() -> None:
    matcher = Matcher()
    assert matcher.add("/a") == "p1"
    assert matcher.add("/a", "p2") == "p2"
    assert matcher.add(parse_profile("/a")) == "p3"
    with pytest.raises(ValueError, match="'p2' is in use"):
        matcher.add("/b", "p2")
    assert matcher.statistics().profiles == 3


def test_a_refused_profile_leaves_nothing_behind() -> None:
    matcher = Matcher(MatchLimits(profiles_max=1))
    with pytest.raises(ProfileRefused):
        matcher.add("/a[")
    assert matcher.statistics() == Matcher().statistics()
    matcher.add("/a")
    before = matcher.statistics()
    with pytest.raises(ProfileRefused) as refused:
        matcher.add("/b")
    assert refused.value.code == "too-many-profiles"
    assert matcher.statistics() == before


def test_bindings_are_the_elements_of_the_last_step_in_document_order() -> None:
    matcher = Matcher()
    matcher.add("//b[@n]")
    assert profile_match(matcher).bindings == (1, 2)
    matcher.remove("p1")
    matcher.add("/a/b/@n")
    assert profile_match(matcher).bindings == (1, 2)
    matcher.remove("p2")
    matcher.add("for $b in /a/b where $b/c return $b/c")
    assert profile_match(matcher).bindings == (2,)


@pytest.mark.parametrize(
    ("profile", "bindings"),
    [
        ("//b | //c", (1, 2, 3)),
        ("/a/(b | b/c)", (1, 2, 3)),
        ("//b except //b[c]", (1,)),
        ("(//b)[2]", (2,)),
        ("//b/..", (0,)),
        ("for $x in (//c, //b) return <k/>", (1, 2, 3)),
        ("for $x in //b except //b[c] return <k/>", (1,)),
    ],
)
def test_bindings_of_paths_that_are_combined(profile: str, bindings: tuple[int, ...]) -> None:
    matcher = Matcher()
    matcher.add(profile)
    assert profile_match(matcher).bindings == bindings


def test_results_are_what_the_profile_returns() -> None:
    matcher = Matcher()
    matcher.add("for $b in /a/b return <n>{$b/@n}</n>")
    results = profile_match(matcher).results()
    assert results == [b'<n n="1"/>', b'<n n="2"/>']


def counted_render(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    results = Answers.results

    def counting(
        answers: Answers, answer: Answer, message: Readings, reading: Reading
    ) -> list[bytes]:
        calls.append(answer)
        return results(answers, answer, message, reading)

    monkeypatch.setattr(Answers, "results", counting)
    return calls


def test_equal_profiles_are_one_query_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_render(monkeypatch)
    matcher = Matcher()
    matcher.add("for $a in /a[b  and @id] return <x>{$a/b}</x>", "alice")
    matcher.add("for $a in /a[b and @id] return <x>{$a/b}</x> (: the same :)", "bob")
    assert matcher.statistics().queries == 1
    matches = [match for match in matcher.match(MESSAGE) if isinstance(match, ProfileMatch)]
    assert [match.profile_id for match in matches] == ["alice", "bob"]
    assert calls == []  # nobody has asked for the results yet
    assert matches[0].results() == matches[1].results()
    assert len(calls) == 1
    matcher.remove("alice")
    assert names(matcher) == ["bob"]
    matcher.remove("bob")
    assert matcher.statistics().queries == matcher.statistics().operators == 0


def test_a_profile_with_a_remainder_needs_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_render(monkeypatch)
    matcher = Matcher()
    matcher.add("for $b in /a/b, $c in $b/c return $c", "some")
    matcher.add("for $b in /a/b, $c in $b/c where count($c) > 1 return $c", "none")
    matches = [match for match in matcher.match(MESSAGE) if isinstance(match, ProfileMatch)]
    assert [match.profile_id for match in matches] == ["some"]
    assert len(calls) == 2
    assert matches[0].results() == [b"<c>t</c>"]
    assert len(calls) == 2  # rendered once, for the decision and for the delivery


def test_all_ids_at_once_are_those_of_the_matches() -> None:
    matcher = Matcher()
    for number, profile in enumerate(
        ("/a/b", "/a/b", "//c", "/x", "/a[@id = 'x']".replace("'", '"'))
    ):
        matcher.add(profile, f"q{number}")
    assert sorted(matcher.matched_ids(MESSAGE)) == ["q0", "q1", "q2", "q4"]
    matcher.remove("q0")
    matcher.add("/a[not(x)]", "general")
    matcher.add("for $b in /a/b, $c in $b/c where count($c) > 1 return $c", "none")
    route(matcher, "/a", "link")
    assert sorted(matcher.matched_ids(MESSAGE)) == ["general", "q1", "q2", "q4"]
    assert matcher.statistics().messages == 2
    numbers = matcher.matched_numbers(MESSAGE)
    assert sorted(map(matcher.id_of, numbers)) == ["general", "q1", "q2", "q4"]
    assert [matcher.number_of(matcher.id_of(number)) for number in numbers] == list(numbers)


# -- routes


def test_a_link_is_yielded_once_and_only_on_its_tree() -> None:
    matcher = Matcher()
    route(matcher, "/a/b", "left")
    route(matcher, "//c", "left")
    route(matcher, "//c", "right")
    route(matcher, "/a", "elsewhere", root="other")
    route(matcher, "/x", "nobody")
    assert sorted(names(matcher)) == ["-> left", "-> right"]
    assert names(matcher, root="other") == ["-> elsewhere"]
    assert names(matcher, root="") == []


def test_every_path_of_a_conjunction_has_to_be_found() -> None:
    matcher = Matcher()
    route(matcher, '//b[@n = 2] and /a[@id = "x"]', "both")
    route(matcher, '//b[@n = 3] and /a[@id = "x"]', "one")
    assert names(matcher) == ["-> both"]


def test_routes_are_exact_pairs() -> None:
    matcher = Matcher(limits=MatchLimits(routes_max=2))
    route(matcher, "/a", "left")
    with pytest.raises(ValueError, match="already"):
        route(matcher, "/a", "left")
    route(matcher, "/a", "right")
    with pytest.raises(ProfileRefused) as refused:
        route(matcher, "/b", "right")
    assert refused.value.code == "too-many-routes"
    with pytest.raises(KeyError):
        unroute(matcher, "/b", "left")
    unroute(matcher, "/a", "left")
    with pytest.raises(KeyError):
        unroute(matcher, "/a", "left")
    assert names(matcher) == ["-> right"]
    unroute(matcher, "/a", "right")
    sizes = matcher.statistics()
    assert (sizes.routes, sizes.index_queries, sizes.index_nodes) == (0, 0, ROOTS)


def test_links_come_before_profiles() -> None:
    matcher = Matcher()
    matcher.add("/a", "alice")
    route(matcher, "//b[@n = 2] and //c and /a/b[@n = 1]", "slow")
    route(matcher, "/a", "quick")
    matcher.add("//c", "bob")
    found = names(matcher)
    assert found[:2] == ["-> quick", "-> slow"]
    assert sorted(found[2:]) == ["alice", "bob"]


# -- in two stages


@pytest.mark.parametrize("seed", range(5))
def test_links_of_many_messages_first_and_then_their_profiles_is_the_same(seed: int) -> None:
    random = Random(seed)
    matcher = Matcher()
    for number in range(60):
        matcher.add(Profile(body=random_profile(random), text=""), f"p{number}")
    for number in range(12):
        for conjunction in routing_query(Profile(body=random_profile(random), text="")):
            with suppress(ValueError):
                matcher.add_route(conjunction, LinkTarget("r", f"l{number % 4}"))
    streams = [random_message(random).stream for _ in range(12)]
    whole = [
        [str(match.link if isinstance(match, RouteMatch) else match) for match in found]
        for found in (list(matcher.match(stream, "r")) for stream in streams)
    ]
    staged = [matcher.match_in_stages(stream, "r") for stream in streams]
    assert any(links for links, _ in staged)
    for (links, local), expected in zip(staged, whole, strict=True):
        found = [*links, *local]
        assert [
            str(match.link if isinstance(match, RouteMatch) else match) for match in found
        ] == expected
    assert len(matcher._unfinished) == 0


def test_a_message_beyond_the_bound_ends_with_its_links() -> None:
    matcher = Matcher(MatchLimits(visits_max=1))
    route(matcher, "/a/b/c", "link")
    matcher.add("//b[c]", "p")
    with pytest.raises(MatchLimitExceeded):
        matcher.match_in_stages(MESSAGE, "r")
    assert len(matcher._unfinished) == 0


# -- changes while a match is unfinished


def test_a_profile_added_meanwhile_is_for_the_next_message() -> None:
    matcher = Matcher()
    route(matcher, "/a", "link")
    matcher.add("/a/b", "alice")
    for new in ("/a/b", "/a/b[@n = 1]", "//c", "/a[b]/b"):
        matches = matcher.match(MESSAGE, "r")
        assert next(matches) == RouteMatch("link")
        matcher.add(new, "new")
        assert [match.profile_id for match in matches if isinstance(match, ProfileMatch)] == [
            "alice"
        ]
        assert sorted(names(matcher)) == ["-> link", "alice", "new"]
        matcher.remove("new")


def test_a_profile_removed_meanwhile_is_not_yielded_any_more() -> None:
    matcher = Matcher()
    route(matcher, "/a", "link")
    for name, profile in (("p", "/a"), ("q", "/a"), ("s", "//b[@n]"), ("t", "/a[b][b/c]")):
        matcher.add(profile, name)
    matches = matcher.match(MESSAGE, "r")
    next(matches)
    matcher.remove("s")
    first = next(matches)
    assert isinstance(first, ProfileMatch)
    matcher.remove("q" if first.profile_id == "p" else "p")
    matcher.remove("t")
    assert list(matches) == []
    assert first.results() == [MESSAGE]


def test_a_route_on_the_move_loses_no_message() -> None:
    matcher = Matcher()
    route(matcher, '//b[@n = 2] and //c and /a[@id = "x"]', "link")
    route(matcher, "/a", "first")
    not_begun, begun = matcher.match(MESSAGE, "r"), matcher.match(MESSAGE, "r")
    assert next(begun) == RouteMatch("first")
    route(matcher, "/a/b", "link")
    unroute(matcher, '//b[@n = 2] and //c and /a[@id = "x"]', "link")
    route(matcher, "/a", "newer")
    assert list(begun) == [RouteMatch("link")]
    assert list(not_begun) == [RouteMatch("first"), RouteMatch("link")]
    assert sorted(names(matcher)) == ["-> first", "-> link", "-> newer"]


def test_a_link_whose_route_is_removed_meanwhile_is_still_yielded() -> None:
    matcher = Matcher()
    route(matcher, "//b[@n = 2]", "link")
    matches = matcher.match(MESSAGE, "r")
    unroute(matcher, "//b[@n = 2]", "link")
    assert list(matches) == [RouteMatch("link")]
    assert names(matcher) == []


def test_two_matches_at_once_do_not_disturb_each_other() -> None:
    matcher = Matcher()
    matcher.add("//b[@n = 1][not(x)]", "alice")
    matcher.add("/a[b/c]/b", "bob")
    route(matcher, "//c", "link")
    other = b"<a><b n='1'/></a>"
    alone = list(matcher.match(MESSAGE, "r")), list(matcher.match(other, "r"))
    one, two = matcher.match(MESSAGE, "r"), matcher.match(other, "r")
    woven: tuple[list[object], list[object]] = ([], [])
    for _ in range(4):
        woven[0].extend(match for match in [next(one, None)] if match)
        woven[1].extend(match for match in [next(two, None)] if match)
    assert woven == alone


def test_an_abandoned_match_is_forgotten() -> None:
    matcher = Matcher()
    route(matcher, "/a", "link")
    matches = matcher.match(MESSAGE, "r")
    next(matches)
    del matches
    gc.collect()
    route(matcher, "/a", "other")  # must not settle the links of a match that is gone
    assert len(matcher._unfinished) == 0


# -- messages and limits


def test_a_message_is_text_or_a_stream() -> None:
    matcher = Matcher(message_limits=MessageLimits(depth_max=3))
    matcher.add("/a")
    assert list(matcher.match(MESSAGE)) == list(matcher.match(parse_text(MESSAGE)))
    with pytest.raises(MessageRefused):
        matcher.match(b"<a>")
    with pytest.raises(MessageRefused):
        matcher.match(b"<a><a><a><a/></a></a></a>")


def test_what_an_operator_said_of_a_message_is_not_said_of_its_successor() -> None:
    """A number of the operator table is given again, between two matches of one message."""
    matcher = Matcher()
    stream = parse_text(MESSAGE)
    for _ in range(3):
        for profile, wanted in (("//b[.//c]", True), ("//b[.//x]", False), ("//b[..//c]", True)):
            matcher.add(profile, "it")
            assert matcher.matched_ids(stream) == ["it"] * wanted
            assert matcher.matched_ids(stream) == ["it"] * wanted
            matcher.remove("it")
            assert matcher.matched_ids(stream) == []
            assert matcher.statistics().operators == 0


def test_a_message_too_costly_ends_the_match_but_links_found_are_handed_out() -> None:
    matcher = Matcher(MatchLimits(visits_max=30))
    route(matcher, "/a", "link")
    matcher.add("//a[.//b]")
    message = b"<a>" * 10 + b"<b/>" * 10 + b"</a>" * 10
    matches = matcher.match(message, "r")
    assert next(matches) == RouteMatch("link")
    with pytest.raises(MatchLimitExceeded) as exceeded:
        list(matches)
    assert exceeded.value.code == "too-many-visits"
    assert names(matcher, b"<a><b/></a>") == ["-> link", "p1"]  # the next is not affected


def test_a_failure_while_links_are_settled_is_the_iterators_not_the_changers() -> None:
    matcher = Matcher(MatchLimits(visits_max=5))
    route(matcher, "//b", "found")
    route(matcher, "//x", "not found")
    matches = matcher.match(b"<a>" + b"<b/>" * 10 + b"</a>", "r")
    route(matcher, "/a", "other")
    assert next(matches) == RouteMatch("found")
    with pytest.raises(MatchLimitExceeded):
        list(matches)


def test_a_profile_too_costly_for_a_message_does_not_spoil_it_for_others() -> None:
    limits = MatchLimits(evaluation=EvaluationLimits(visits_max=50, bytes_max=200))
    matcher = Matcher(limits)
    matcher.add("//b[count(../b[../b]) > 0]", "residual")
    matcher.add("for $b in /a/b, $c in /a/b return $c", "remainder")
    matcher.add("/a/b[@n = 1]", "modest")
    message = b"<a>" + b'<b n="1"/>' * 20 + b"</a>"
    assert names(matcher, message) == ["modest"]
    assert matcher.statistics().over_limit == 2


def test_results_beyond_the_limit_fail_when_they_are_asked_for() -> None:
    matcher = Matcher(MatchLimits(evaluation=EvaluationLimits(bytes_max=20)))
    matcher.add("for $b in /a/b return <x>{$b}</x>")
    match = profile_match(matcher)
    with pytest.raises(MatchLimitExceeded) as exceeded:
        match.results()
    assert exceeded.value.code == "result-too-large"


def test_statistics_and_dump_tell_what_there_is() -> None:
    matcher = Matcher()
    matcher.add("/a[b]", "alice")
    route(matcher, "/a/b", "link")
    names(matcher)
    sizes = matcher.statistics()
    assert {key: getattr(sizes, key) for key in ("profiles", "queries", "routes", "messages")} == {
        "profiles": 1,
        "queries": 1,
        "routes": 1,
        "messages": 1,
    }
    assert sizes.index_visits > 0
    dump = matcher.dump()
    assert "-> alice" in dump and "-> link (tree of r)" in dump
    assert "local profiles\n  a  -> alice if …" in dump


def test_all_ids_at_once_are_those_of_match() -> None:
    """Queries with one subscriber, with several, and with a subscriber that has gone."""
    matcher = Matcher()
    for name in ("one", "two", "three"):
        matcher.add("/a/b[@x = '1']", name)
    matcher.add("/a[c]", "sole")
    for gone, left in (("two", 3), ("one", 2), ("sole", 1), ("three", 0)):
        expected = {m.profile_id for m in matcher.match(DOCUMENT) if isinstance(m, ProfileMatch)}
        assert sorted(matcher.matched_ids(DOCUMENT)) == sorted(expected)
        assert len(expected) == left + 1
        matcher.remove(gone)
    assert matcher.matched_ids(DOCUMENT) == []


DOCUMENT = b'<a><b x="1"/><c/></a>'
