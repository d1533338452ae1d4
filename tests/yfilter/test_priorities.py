"""Routing queries, then transformation queries of links taken, then local profiles; what is saved.

Also of queries that the index finds and operators verify.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.yfilter.random_cases import (
    Message,
    random_message,
    random_profile,
)
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimits,
    ProfileMatch,
    ProfileRefused,
    RouteMatch,
    TransformationMatch,
    routing_query,
)
from yfilter.language.evaluation import select
from yfilter.language.matching_path import matching_path
from yfilter.language.query_ast import Profile

MESSAGE = b'<a id="x"><b n="1"/><b n="2"><c>t</c></b></a>'


def route(matcher: Matcher, conjunction: str, link: str, root: str = "r") -> None:
    matcher.add_route(Conjunction.parse(conjunction), LinkTarget(root, link))


def names(matcher: Matcher, message: bytes = MESSAGE, root: str = "r") -> list[str]:
    """Links as "-> link", transformations as "link: query", and profile ids, as they come."""
    found = []
    for match in matcher.match(message, root):
        if isinstance(match, RouteMatch):
            found.append(f"-> {match.link}")
        elif isinstance(match, TransformationMatch):
            found.append(f"{match.link}: {match.query.text}")
        else:
            found.append(match.profile_id)
    return found


def work(matcher: Matcher) -> dict[str, int]:
    """What was looked at beyond its access path, and what was not."""
    sizes = matcher.statistics()
    names = ("route", "transformation", "profile", "skipped_reached", "skipped_not_taken")
    counts = {name: sizes[f"candidates_{name}"] for name in names}
    return {name: count for name, count in counts.items() if count}


# -- order


def test_links_come_first_then_their_transformations_then_profiles() -> None:
    matcher = Matcher()
    matcher.add("/a", "alice")
    matcher.add("/a[not(x)]", "anna")  # verified by an operator
    matcher.add_transformation("/a/b[@n = 1]", LinkTarget("r", "left"))
    matcher.add_transformation("/a/b[not(x)]", LinkTarget("r", "left"))
    route(matcher, "//b[@n = 2] and //c and /a/b[@n = 1]", "left")
    route(matcher, "/a", "right")
    found = names(matcher)
    assert sorted(found[:2]) == ["-> left", "-> right"]
    assert sorted(found[2:4]) == ["left: /a/b[@n = 1]", "left: /a/b[not(x)]"]
    assert sorted(found[4:]) == ["alice", "anna"]


def test_what_is_not_asked_for_is_not_done() -> None:
    matcher = Matcher()
    matcher.add("/a[b[@n = 1]][b[@n = 2]]/b[c]")
    matcher.add_transformation("/a[b[@n = 1]]/b[@n = 2]", LinkTarget("r", "link"))
    route(matcher, '//c[. = "t"]', "link")
    matches = matcher.match(MESSAGE, "r")
    assert next(matches) == RouteMatch("link")
    del matches
    sizes = work(matcher)
    assert sizes.pop("route") == 1
    assert not sizes
    matches = matcher.match(MESSAGE, "r")
    assert next(matches) == RouteMatch("link")
    assert isinstance(next(matches), TransformationMatch)
    del matches
    assert "profile" not in work(matcher)
    assert matcher.statistics()["local_not_asked"] == 2
    assert len(names(matcher)) == 3
    assert matcher.statistics()["local_not_asked"] == 2


def test_nothing_is_looked_at_for_a_tree_without_routes() -> None:
    matcher = Matcher()
    route(matcher, "//b[@n = 2]", "link", root="other")
    matcher.add_transformation("/a/b[@n = 2]", LinkTarget("other", "link"))
    assert names(matcher) == []
    assert not {"route", "transformation"} & set(work(matcher))


def test_a_class_without_queries_costs_nothing() -> None:
    matcher = Matcher()
    route(matcher, "/a/x", "link")
    assert names(matcher) == []
    for_routes = matcher.statistics()["index_visits"]
    matcher.add_transformation("/a[not(x)]", LinkTarget("r", "link"))
    matcher.add_transformation("/a[not(x)]", LinkTarget("s", "link"))
    assert names(matcher) == []
    assert matcher.statistics()["index_visits"] == 2 * for_routes
    route(matcher, "/a", "link")
    assert names(matcher) == ["-> link", "link: /a[not(x)]"]
    assert set(work(matcher)) <= {"route", "transformation"}


# -- what leads only to targets already reached is skipped


def test_work_that_leads_only_to_reached_links_is_skipped() -> None:
    matcher = Matcher()
    route(matcher, "/a", "link")
    route(matcher, "//b[@n = 2] and //c", "link")
    route(matcher, "//x", "nobody")
    assert names(matcher) == ["-> link"]
    before = work(matcher)
    assert before["skipped_reached"] == 1
    # Another link behind the same query, and it is needed.
    route(matcher, "//b[@n = 2] and //c", "other")
    assert names(matcher) == ["-> link", "-> other"]
    after = work(matcher)
    assert after["route"] > before.get("route", 0)
    assert after["skipped_reached"] == 1


def test_a_link_reached_meanwhile_spares_what_waits_for_it() -> None:
    matcher = Matcher()
    route(matcher, "//b[@n = 1]", "link")
    route(matcher, '//c[. = "t"]', "link")
    route(matcher, "//x", "nobody")
    assert names(matcher) == ["-> link"]
    assert work(matcher) == {"route": 1, "skipped_reached": 1}


def test_the_run_ends_when_all_links_are_reached() -> None:
    matcher = Matcher()
    route(matcher, "/a", "left")
    route(matcher, "/a/b[@n = 1]", "right")
    route(matcher, "//c", "right")
    assert names(matcher) == ["-> left", "-> right"]
    assert matcher.statistics()["elements_spared"] == 1  # c, on the next level


def test_a_thousand_routes_to_a_reached_link_are_not_verified() -> None:
    matcher = Matcher()
    for number in range(1000):
        route(matcher, f"/a/b[@n > {-number}] and /a[@id]//c", "link")
    route(matcher, "//x", "nobody")
    assert names(matcher) == ["-> link"]
    assert work(matcher) == {"route": 1, "skipped_reached": 2 * 999}  # at two elements b


def test_what_a_reached_link_shares_with_a_profile_is_not_skipped() -> None:
    matcher = Matcher()
    route(matcher, "/a", "link")
    route(matcher, "//b[@n = 2]", "link")
    matcher.add("//b[@n = 2]", "alice")
    assert names(matcher) == ["-> link", "alice"]


# -- transformation queries


def test_transformations_are_those_of_links_taken_only() -> None:
    matcher = Matcher()
    route(matcher, "/a", "taken")
    route(matcher, "/a/x", "other")
    for link in ("taken", "other"):
        matcher.add_transformation("/a/b[@n = 1]", LinkTarget("r", link))
    matcher.add_transformation("/a/b[@n = 2]", LinkTarget("r", "other"))
    assert names(matcher) == ["-> taken", "taken: /a/b[@n = 1]"]
    sizes = work(matcher)
    assert sizes["skipped_not_taken"] == 1
    assert sizes["transformation"] == 1


def test_a_transformation_has_bindings_and_results() -> None:
    matcher = Matcher()
    target = LinkTarget("r", "link")
    route(matcher, "/a", "link")
    matcher.add_transformation("for $b in /a/b return <n>{$b/@n}</n>", target)
    matcher.add_transformation("for $b in /a/b, $x in $b/x return $x", target)  # no result
    _, match = matcher.match(MESSAGE, "r")
    assert isinstance(match, TransformationMatch)
    assert (match.link, match.bindings) == ("link", (1, 2))
    assert match.results() == [b'<n n="1"/>', b'<n n="2"/>']


def test_transformations_are_exact_pairs() -> None:
    matcher = Matcher(MatchLimits(transformations_max=2))
    empty = matcher.statistics()
    left, right = LinkTarget("r", "left"), LinkTarget("r", "right")
    matcher.add_transformation("/a", left)
    with pytest.raises(ValueError, match="already"):
        matcher.add_transformation("/a (: the same :)", left)
    matcher.add_transformation("/a", right)
    sizes = matcher.statistics()
    assert (sizes["transformations"], sizes["transformation_queries"]) == (2, 1)
    with pytest.raises(ProfileRefused) as refused:
        matcher.add_transformation("/b", right)
    assert refused.value.code == "too-many-transformations"
    with pytest.raises(KeyError):
        matcher.remove_transformation("/b", left)
    matcher.remove_transformation("/a", left)
    with pytest.raises(KeyError):
        matcher.remove_transformation("/a", left)
    matcher.remove_transformation("/a", right)
    left_over = matcher.statistics()
    assert {key: left_over[key] for key in empty if key != "index_bytes"} == {
        key: empty[key] for key in empty if key != "index_bytes"
    }


def test_transformations_are_settled_when_routes_change() -> None:
    matcher = Matcher()
    target = LinkTarget("r", "link")
    route(matcher, "/a", "link")
    matcher.add_transformation("/a/b", target)
    matches = matcher.match(MESSAGE, "r")
    matcher.remove_route(Conjunction.parse("/a"), target)
    matcher.remove_transformation("/a/b", target)
    matcher.add_transformation("/a/b[c]", target)
    assert [type(match).__name__ for match in matches] == ["RouteMatch", "TransformationMatch"]
    assert names(matcher) == []


# -- against definitions


class _Population:
    """Routes, transformations and profiles, and what they should give by their definition."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.routes: dict[tuple[Conjunction, LinkTarget], None] = {}
        self.transformations: dict[tuple[Profile, LinkTarget], None] = {}
        self.profiles: dict[str, Profile] = {}
        self._names = 0

    def change(self, matcher: Matcher) -> None:
        kind = self._rng.randrange(3)
        known = (self.routes, self.transformations, self.profiles)[kind]
        if known and self._rng.random() < 0.25:
            self._remove(matcher, kind)
            return
        conditions = self._rng.choice((0.1, 0.5))
        profile = Profile(random_profile(self._rng, conditions=conditions))
        target = LinkTarget(self._rng.choice("rrrs"), self._rng.choice(("l1", "l2")))
        if kind == 0:
            for conjunction in routing_query(profile):
                if (conjunction, target) not in self.routes:
                    matcher.add_route(conjunction, target)
                    self.routes[conjunction, target] = None
        elif kind == 1:
            if (profile, target) not in self.transformations:
                matcher.add_transformation(profile, target)
                self.transformations[profile, target] = None
        else:
            self._names += 1
            self.profiles[matcher.add(profile, f"q{self._names}")] = profile

    def _remove(self, matcher: Matcher, kind: int) -> None:
        if kind == 0:
            route = self._rng.choice(list(self.routes))
            matcher.remove_route(*route)
            del self.routes[route]
        elif kind == 1:
            transformation = self._rng.choice(list(self.transformations))
            matcher.remove_transformation(*transformation)
            del self.transformations[transformation]
        else:
            name = self._rng.choice(list(self.profiles))
            matcher.remove(name)
            del self.profiles[name]

    def clear(self, matcher: Matcher) -> None:
        for kind, known in enumerate((self.routes, self.transformations, self.profiles)):
            while known:
                self._remove(matcher, kind)

    def fill(self, matcher: Matcher) -> Matcher:
        for route in self.routes:
            matcher.add_route(*route)
        for transformation in self.transformations:
            matcher.add_transformation(*transformation)
        for name, profile in self.profiles.items():
            matcher.add(profile, name)
        return matcher

    def expected(self, message: Message, root: str) -> set[tuple[object, ...]]:
        links = {
            target.link
            for conjunction, target in self.routes
            if target.root == root
            and all(
                select(matching_path(Profile(path.expression)), message.stream)
                for path in conjunction.paths
            )
        }
        return {
            *((link,) for link in links),
            *(
                (target.link, profile.body)
                for profile, target in self.transformations
                if target.root == root
                and target.link in links
                and select(matching_path(profile), message.stream)
            ),
            *(
                ("", name)
                for name, profile in self.profiles.items()
                if select(matching_path(profile), message.stream)
            ),
        }


def decisions(matcher: Matcher, message: Message, root: str) -> set[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    classes = []
    for match in matcher.match(message.stream, root):
        if isinstance(match, RouteMatch):
            found.append((match.link,))
            classes.append(0)
        elif isinstance(match, TransformationMatch):
            found.append((match.link, match.query.body))
            classes.append(1)
        else:
            assert isinstance(match, ProfileMatch)
            found.append(("", match.profile_id))
            classes.append(2)
    assert classes == sorted(classes)
    assert len(set(found)) == len(found)  # each once
    return set(found)


@pytest.mark.parametrize("lazy_bytes_max", [1, 1 << 24])
@pytest.mark.parametrize("seed", range(5))
def test_interleaved_changes_agree_with_definition_and_a_rebuilt_engine(
    seed: int, lazy_bytes_max: int
) -> None:
    rng = Random(seed)
    limits = MatchLimits(lazy_bytes_max=lazy_bytes_max)
    population = _Population(rng)
    changed = Matcher(limits)
    matched = [0, 0, 0]
    for turn in range(10):
        for _ in range(rng.randint(1, 15)):
            population.change(changed)
        message = random_message(rng)
        root = rng.choice("rrrs")
        expected = population.expected(message, root)
        assert decisions(changed, message, root) == expected, message.text
        if turn % 5 == 4:
            assert decisions(population.fill(Matcher(limits)), message, root) == expected
            assert decisions(population.fill(Matcher()), message, root) == expected
        for decision in expected:
            matched[0 if len(decision) == 1 else 2 if decision[0] == "" else 1] += 1
    assert all(matched)
    population.clear(changed)
    assert structure(changed) == structure(Matcher(limits))


def structure(matcher: Matcher) -> dict[str, int]:
    """What is there and in use, apart from what was counted and what was only allocated."""
    names = ("nodes", "queries", "atoms", "records", "symbols", "attributes", "bytes_used")
    sizes = matcher.statistics()
    return {
        **{name: sizes[f"index_{name}"] for name in names},
        **{name: sizes[name] for name in ("target_groups", "operators", "queries")},
    }


@pytest.mark.parametrize("seed", range(6))
def test_changes_in_the_middle_of_a_match_do_not_change_what_is_urgent(seed: int) -> None:
    rng = Random(seed)
    population = _Population(rng)
    matcher = Matcher()
    for _ in range(15):
        for _ in range(10):
            population.change(matcher)
        message = random_message(rng)
        expected = {match for match in population.expected(message, "r") if match[0]}
        matches = matcher.match(message.stream, "r")
        found: list[tuple[object, ...]] = []
        for match in matches:
            if isinstance(match, RouteMatch):
                found.append((match.link,))
            elif isinstance(match, TransformationMatch):
                found.append((match.link, match.query.body))
            if rng.random() < 0.5:
                population.change(matcher)
        assert set(found) == expected and len(found) == len(expected), message.text
