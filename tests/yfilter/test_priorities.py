"""Routing queries, then what links taken need, then local profiles; what is saved.

Also of queries that the index finds and operators verify.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from formats import to_text
from tests.yfilter.evaluated import select
from tests.yfilter.random_cases import (
    Message,
    random_flwor,
    random_message,
    random_profile,
)
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimits,
    ProfileMatch,
    RouteMatch,
    TransformationMatch,
    routing_query,
)
from yfilter.index.index import Index
from yfilter.language.matching_path import matching_path
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import Transforming
from yfilter.projection.needs import Need
from yfilter.projection.profile_needs import needs_of
from yfilter.projection.transformations import projector_of

MESSAGE = b'<a id="x"><b n="1"/><b n="2"><c>t</c></b></a>'


def route(matcher: Matcher, conjunction: str, link: str, root: str = "r") -> None:
    matcher.add_route(Conjunction.parse(conjunction), LinkTarget(root, link))


def needs(matcher: Matcher, profile: str, link: str, root: str = "r") -> None:
    for need in needs_of(parse_profile(profile)):
        matcher.add_need(need, LinkTarget(root, link))


def names(matcher: Matcher, message: bytes = MESSAGE, root: str = "r") -> list[str]:
    """Links as "-> link", what is left for them as "link: text", and profile ids, as they come."""
    found = []
    for match in matcher.match(message, root):
        if isinstance(match, RouteMatch):
            found.append(f"-> {match.link}")
        elif isinstance(match, TransformationMatch):
            found.append(f"{match.link}: {to_text(match.stream).decode()}")
        else:
            found.append(match.profile_id)
    return found


def work(matcher: Matcher) -> dict[str, int]:
    """What was looked at beyond its access path, and what was not."""
    sizes = matcher.statistics()
    names = ("route", "profile", "skipped_reached")
    counts = {name: getattr(sizes, f"candidates_{name}") for name in names}
    counts["projected"] = sizes.projected_links
    return {name: count for name, count in counts.items() if count}


# -- order


def test_links_come_first_then_what_is_left_for_them_then_profiles() -> None:
    matcher = Matcher()
    matcher.add("/a", "alice")
    matcher.add("/a[not(x)]", "anna")  # on the network in any case
    needs(matcher, "for $b in /a/b where $b/@n = 1 return <x>{$b/@n}</x>", "left")
    needs(matcher, "for $b in /a/b[c] return <x>{count($b/c)}</x>", "right")
    route(matcher, "//b[@n = 2] and //c and /a/b[@n = 1]", "left")
    route(matcher, "/a", "right")
    found = names(matcher)
    assert sorted(found[:2]) == ["-> left", "-> right"]
    assert sorted(found[2:4]) == ['left: <a><b n="1"/></a>', "right: <a><b><c/></b></a>"]
    assert sorted(found[4:]) == ["alice", "anna"]


def test_what_is_not_asked_for_is_not_done() -> None:
    matcher = Matcher()
    matcher.add("/a[b[@n = 1]][b[@n = 2]]/b[c]")
    needs(matcher, "for $b in /a/b return <x>{$b/@n}</x>", "link")
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
    assert matcher.statistics().local_not_asked == 2
    assert len(names(matcher)) == 3
    assert matcher.statistics().local_not_asked == 2


def test_nothing_is_looked_at_for_a_tree_without_routes() -> None:
    matcher = Matcher()
    route(matcher, "//b[@n = 2]", "link", root="other")
    needs(matcher, "/a/b[@n = 2]", "link", root="other")
    assert names(matcher) == []
    assert not {"route", "projected"} & set(work(matcher))


def test_a_class_without_queries_costs_nothing() -> None:
    matcher = Matcher()
    route(matcher, "/a/x", "link")
    needs(matcher, "for $b in /a/b return <x>{$b/c}</x>", "link")
    assert names(matcher) == []
    assert matcher.statistics().projected_messages == 0
    route(matcher, "/a", "link")
    assert names(matcher) == ["-> link", "link: <a><b/><b><c>t</c></b></a>"]
    alone = Matcher()
    alone.add("/a[not(x)]", "alice")
    assert names(alone) == ["alice"]
    assert alone.statistics().index_heads == 0


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
    assert matcher.statistics().elements_spared == 1  # c, on the next level


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


# -- what links need


def test_only_what_links_taken_need_is_looked_at() -> None:
    matcher = Matcher()
    route(matcher, "/a", "taken")
    route(matcher, "/a/x", "other")
    for link in ("taken", "other"):
        needs(matcher, "for $b in /a/b where $b/@n = 1 return <x>{$b/@n}</x>", link)
    needs(matcher, "for $b in /a/b where $b/c return <x>{$b/c}</x>", "other")
    assert names(matcher) == ["-> taken", 'taken: <a><b n="1"/></a>']
    assert matcher.statistics().projected_links == 1


def test_links_with_equal_needs_share_what_is_left() -> None:
    matcher = Matcher()
    for number in range(8):
        route(matcher, "/a", f"l{number}")
        needs(matcher, "for $b in /a/b return <x>{$b/@n}</x>", f"l{number}")
    urgent, _ = matcher.match_in_stages(MESSAGE, "r")
    left = [match.stream for match in urgent if isinstance(match, TransformationMatch)]
    assert len(left) == 8
    assert len(set(map(id, left))) == 1
    assert matcher.statistics().needs == 1


def test_links_whose_needs_are_not_open_or_not_to_be_looked_at_get_all() -> None:
    matcher = Matcher()
    for link in ("open", "off", "unknown"):
        route(matcher, "/a", link)
    matcher.open_needs(LinkTarget("r", "open"))
    needs(matcher, "for $b in /a/b return <x/>", "off")
    matcher.set_transforming("off", Transforming.NOT)
    assert sorted(names(matcher)) == ["-> off", "-> open", "-> unknown", "open: <a/>"]
    matcher.close_needs(LinkTarget("r", "open"))
    assert sorted(names(matcher)) == ["-> off", "-> open", "-> unknown"]
    with pytest.raises(KeyError):
        matcher.close_needs(LinkTarget("r", "open"))


def test_needs_are_counted_pairs() -> None:
    matcher = Matcher()
    empty = matcher.statistics()
    left, right = LinkTarget("r", "left"), LinkTarget("r", "right", frozenset(("s",)))
    (need,) = needs_of(parse_profile("for $b in /a/b where $b/@n = 2 return $b/c"))
    for target in (left, left, right):
        matcher.add_need(need, target)
    sizes = matcher.statistics()
    assert (sizes.needs, sizes.link_needs, sizes.links_open) == (1, 2, 2)
    route(matcher, "/a", "right", "s")
    assert names(matcher, root="s") == ["-> right", 'right: <a><b n="2"><c>t</c></b></a>']
    matcher.remove_need(need, left)
    matcher.remove_need(need, left)
    with pytest.raises(KeyError):
        matcher.remove_need(need, left)
    matcher.close_needs(left)
    matcher.close_needs(right)
    assert matcher.statistics().needs == empty.needs == 0


def test_what_is_left_is_settled_when_needs_change() -> None:
    matcher = Matcher()
    target = LinkTarget("r", "link")
    route(matcher, "/a", "link")
    (need,) = needs_of(parse_profile("for $b in /a/b return <x>{$b/@n}</x>"))
    matcher.add_need(need, target)
    matches = matcher.match(MESSAGE, "r")
    matcher.remove_route(Conjunction.parse("/a"), target)
    matcher.remove_need(need, target)
    taken, left = matches
    assert taken == RouteMatch("link")
    assert isinstance(left, TransformationMatch)
    assert to_text(left.stream) == b'<a><b n="1"/><b n="2"/></a>'
    assert names(matcher) == []


# -- against definitions


class _Population:
    """Routes, needs and profiles, and what they should give by their definition."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.routes: dict[tuple[Conjunction, LinkTarget], None] = {}
        self.needs: dict[tuple[Need, LinkTarget], None] = {}
        self.profiles: dict[str, Profile] = {}
        self._names = 0

    def change(self, matcher: Matcher) -> None:
        kind = self._rng.randrange(3)
        known = (self.routes, self.needs, self.profiles)[kind]
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
            for need in needs_of(parse_profile(random_flwor(self._rng))):
                if (need, target) not in self.needs:
                    matcher.add_need(need, target)
                    self.needs[need, target] = None
        else:
            self._names += 1
            self.profiles[matcher.add(profile, f"q{self._names}")] = profile

    def _remove(self, matcher: Matcher, kind: int) -> None:
        if kind == 0:
            route = self._rng.choice(list(self.routes))
            matcher.remove_route(*route)
            del self.routes[route]
        elif kind == 1:
            pair = self._rng.choice(list(self.needs))
            matcher.remove_need(*pair)
            del self.needs[pair]
            if all(target != pair[1] for _, target in self.needs):
                matcher.close_needs(pair[1])
        else:
            name = self._rng.choice(list(self.profiles))
            matcher.remove(name)
            del self.profiles[name]

    def clear(self, matcher: Matcher) -> None:
        for kind, known in enumerate((self.routes, self.needs, self.profiles)):
            while known:
                self._remove(matcher, kind)

    def fill(self, matcher: Matcher) -> Matcher:
        for route in self.routes:
            matcher.add_route(*route)
        for pair in self.needs:
            matcher.add_need(*pair)
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
            *((link, text) for link, text in self._left(message, root) if link in links),
            *(
                ("", name)
                for name, profile in self.profiles.items()
                if select(matching_path(profile), message.stream)
            ),
        }

    def _left(self, message: Message, root: str) -> Iterator[tuple[str, bytes]]:
        """What a structure for the needs of one link alone leaves."""
        for target in {target: None for _, target in self.needs if target.root == root}:
            alone = projector_of(Index())
            for need, other in self.needs:
                if other == target:
                    alone.add(need, 0)
            ((_, left),) = alone.project(message.stream, 1)
            yield target.link, to_text(left.stream or message.stream)


def decisions(matcher: Matcher, message: Message, root: str) -> set[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    classes = []
    for match in matcher.match(message.stream, root):
        if isinstance(match, RouteMatch):
            found.append((match.link,))
            classes.append(0)
        elif isinstance(match, TransformationMatch):
            found.append((match.link, to_text(match.stream)))
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
        **{name: getattr(sizes, f"index_{name}") for name in names},
        **{name: getattr(sizes, name) for name in ("target_groups", "operators", "queries")},
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
                found.append((match.link, to_text(match.stream)))
            if rng.random() < 0.5:
                population.change(matcher)
        assert set(found) == expected and len(found) == len(expected), message.text
