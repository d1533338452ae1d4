"""The routing table against its definition, and its shape on the paper's examples."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from random import Random

import pytest

from overlay.routing.branches import Branch
from overlay.routing.delta import Delta, parse_delta, texts
from overlay.routing.routing_table import RoutingTable
from yfilter import Matcher, RouteMatch
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile


def disjunct(path: str) -> Conjunction:
    (only,) = routing_query(parse_profile(path))
    return only


def branch(root: str, broker: str, *others: str) -> Branch:
    """Of a neighbour of this broker, which is called B."""
    return Branch(root, "B", broker, frozenset({root, *others}), 1)


def own(root: str, *others: str) -> Branch:
    return Branch(root, "P", "B", frozenset({root, *others}), 3)


def opened(
    *roots: str, links: Iterable[str] = ("L", "L1", "L2"), table: RoutingTable | None = None
) -> RoutingTable:
    """A table with trees that have nothing in common."""
    table = RoutingTable(Matcher()) if table is None else table
    for root in roots:
        table.open_tree(root, own(root), [branch(root, link) for link in links])
    return table


def child(table: RoutingTable, root: str, link: str, delta: Delta) -> Delta:
    """What the parent on a tree is told when a child on it tells something."""
    return table.change_child(branch(root, link), delta.added, delta.removed).get(root, Delta())


A, B, C, D = (disjunct(f"/m/{name}") for name in "abcd")


def links(matcher: Matcher, xml: bytes, root: str) -> set[str]:
    return {match.link for match in matcher.match(xml, root) if isinstance(match, RouteMatch)}


def test_a_local_profile_is_announced_on_every_tree_once() -> None:
    table = opened("R1", "R2")
    assert table.change_local([A], []) == {"R1": Delta((A,)), "R2": Delta((A,))}
    assert table.change_local([A], []) == {}  # a second taker is no news
    assert table.change_local([], [A]) == {}
    assert table.change_local([], [A]) == {"R1": Delta((), (A,)), "R2": Delta((), (A,))}


def test_a_tree_that_opens_later_is_told_what_is_there() -> None:
    table = RoutingTable(Matcher())
    table.change_local([A, B], [])
    assert table.open_tree("R", own("R"), []) == {"R": Delta((A, B))}
    assert table.open_tree("R", own("R"), []) == {}


def test_trees_with_a_branch_in_common_have_it_once() -> None:
    """The child L is one branch on the trees of R1, R2 and B itself; this broker on those of R1
    and R2, to whose common parent it is told once."""
    matcher = Matcher()
    table = RoutingTable(matcher)
    both, below = own("R1", "R2"), branch("B", "L", "R1", "R2")
    assert table.open_tree("B", None, [below]) == {}
    assert table.change_child(below, (A,), ()) == {}
    table.change_local([B], [])
    assert table.open_tree("R1", both, [below]) == {"R1": Delta((B, A))}
    assert table.open_tree("R2", both, [below]) == {}
    assert table.change_child(below, (C,), ()) == {"R1": Delta((C,))}
    for root in ("B", "R1", "R2"):
        assert links(matcher, b"<m><c/></m>", root) == {"L"}
        assert set(table.wanted(root, "L")) == {A, C}
    assert matcher.statistics().routes == 2
    counted = table.statistics()
    assert (counted.entries, counted.branches) == (2, 1)
    assert table.change_child(below, (), (A, C)) == {"R1": Delta((), (A, C))}
    assert table.told("R1") == table.told("R2") == {B}
    assert matcher.statistics().routes == table.statistics().table_bytes == 0


def test_what_another_link_wants_already_is_not_sent_up_again() -> None:
    table = opened("R")
    assert child(table, "R", "L1", Delta((A, B))) == Delta((A, B))
    assert child(table, "R", "L2", Delta((B, C))) == Delta((C,))
    assert table.change_local([A], []) == {}
    # withdrawn only when the last taker goes
    assert child(table, "R", "L1", Delta((), (A, B))) == Delta()
    assert table.change_local([], [A]) == {"R": Delta((), (A,))}
    assert child(table, "R", "L2", Delta((), (B, C))) == Delta((), (B, C))


def test_a_delta_applied_twice_changes_nothing_the_second_time() -> None:
    table = opened("R")
    child(table, "R", "L", Delta((A,)))
    before = table.statistics()
    assert child(table, "R", "L", Delta((A,))) == Delta()
    assert child(table, "R", "L", Delta((), (D,))) == Delta()
    assert table.statistics() == before


def test_links_of_one_tree_share_one_plan() -> None:
    """Box (c) of the paper's Figure 6: the common path is there once."""
    matcher = Matcher()
    table = opened("R", table=RoutingTable(matcher))
    child(table, "R", "L1", Delta((A,)))
    one = matcher.statistics()
    child(table, "R", "L2", Delta((A,)))
    two = matcher.statistics()
    assert two.index_nodes == one.index_nodes
    assert links(matcher, b"<m><a/></m>", "R") == {"L1", "L2"}
    assert links(matcher, b"<m><b/></m>", "R") == set()


def test_trees_share_what_is_large_about_a_disjunct_and_let_it_go() -> None:
    table = opened("R1", "R2", "R3")
    for root in ("R1", "R2", "R3"):
        delta = parse_delta(["/m/a", "/m/b[@x]"], [], table.pool.parse)
        assert child(table, root, "L", delta).added == delta.added
    assert len({id(disjunct) for _, disjunct in table.entries()}) == 2
    assert len(table.pool) == 2
    for root in ("R1", "R2", "R3"):
        child(table, root, "L", Delta((), delta.added))
    del delta
    gc.collect()
    assert len(table.pool) == 0


def test_trees_do_not_mix() -> None:
    matcher = Matcher()
    table = opened("R1", "R2", table=RoutingTable(matcher))
    child(table, "R1", "L1", Delta((A,)))
    child(table, "R2", "L2", Delta((A,)))
    assert links(matcher, b"<m><a/></m>", "R1") == {"L1"}
    assert links(matcher, b"<m><a/></m>", "R2") == {"L2"}


def test_deltas_survive_their_wire_form() -> None:
    rich = routing_query(parse_profile('/m[a[@x = "1"]][.//b > 2]'))
    delta = Delta(rich, (A,))
    assert parse_delta(texts(delta.added), texts(delta.removed)) == delta


def maximal(disjuncts: set[Conjunction]) -> set[Conjunction]:
    """Those that no other covers; the pool below has no two that cover each other."""
    patterns = [Pattern(disjunct) for disjunct in disjuncts]
    return {
        one.disjunct
        for one in patterns
        if not any(covers(other, one) for other in patterns if other is not one)
    }


def test_a_more_general_disjunct_swallows_the_special_ones_and_gives_them_back() -> None:
    table = opened("R")
    special = disjunct("/m/a[@x = '1']"), disjunct("/m/a/b"), disjunct("/m/a//b")
    general = disjunct("//a")
    assert set(table.change_local(special, [])["R"].added) == {special[0], special[2]}
    delta = child(table, "R", "L", Delta((general,)))
    assert delta == Delta((general,), (special[0], special[2]))
    assert table.change_local([disjunct("/*/a")], []) == {}
    assert table.change_local([], [disjunct("/*/a"), special[1]]) == {}
    delta = child(table, "R", "L", Delta((), (general,)))
    assert delta == Delta((special[0], special[2]), (general,))


def test_after_a_restart_the_parent_is_told_only_what_it_does_not_know() -> None:
    table = opened("R")
    for known in (A, B):
        table.restore_told("R", known)
    assert table.change_local([A, disjunct("/m/a[@x]"), C], [])["R"] == Delta((C,))
    assert table.settle()["R"] == Delta((), (B,))
    assert table.told("R") == {A, C}


@pytest.mark.parametrize("seed", range(20))
def test_the_parent_always_knows_exactly_what_is_not_covered(seed: int) -> None:
    """Random changes: what was sent up, summed, is the tops of local ∪ children, as a table made
    anew would tell them; after all removals nothing."""
    random = Random(seed)
    matcher = Matcher()
    empty = matcher.statistics()
    table = opened("R", links=("L1", "L2", "L3"), table=RoutingTable(matcher))
    known: set[Conjunction] = set()  # what the parent knows
    local: list[Conjunction] = []
    wanted: dict[str, set[Conjunction]] = {"L1": set(), "L2": set(), "L3": set()}
    pool = [disjunct(f"/m/{x}[@{y} = '1']") for x in "abc" for y in "xy"]
    pool += [disjunct(path) for path in ("/m/a", "//b", "//b[@x]", "//*[@y]", "/m/a[@x]", "/m//c")]
    pool += [disjunct("/m[a][b]"), disjunct("/m[a][c/@x]")]

    def apply(delta: Delta) -> None:
        assert not known & set(delta.added), "sent up twice"
        assert set(delta.removed) <= known, "withdrawn without having been sent"
        known.update(delta.added)
        known.difference_update(delta.removed)

    for _ in range(200):
        one = random.choice(pool)
        choice = random.randrange(4)
        if choice == 0:
            local.append(one)
            apply(table.change_local([one], []).get("R", Delta()))
        elif choice == 1 and local:
            gone = local.pop(random.randrange(len(local)))
            apply(table.change_local([], [gone]).get("R", Delta()))
        elif choice == 2:
            link = random.choice(list(wanted))
            wanted[link].add(one)
            apply(child(table, "R", link, Delta((one,))))
        else:
            link = random.choice(list(wanted))
            wanted[link].discard(one)
            apply(child(table, "R", link, Delta((), (one,))))
        every = set(local).union(*wanted.values())
        assert every == table.aggregate("R")
        assert known == table.told("R") == maximal(every)
    for gone in local:
        apply(table.change_local([], [gone]).get("R", Delta()))
    for link, disjuncts in wanted.items():
        apply(child(table, "R", link, Delta((), tuple(disjuncts))))
    assert table.aggregate("R") == table.told("R") == known == set()
    assert matcher.statistics().index_nodes == empty.index_nodes
