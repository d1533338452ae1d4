"""What can be seen of a plan: text and graph, bounded, and statistics that are all explained."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from yfilter import Conjunction, LinkTarget, Matcher
from yfilter.index.automaton import ROOTS
from yfilter.language.query_parser import parse_profile
from yfilter.projection.profile_needs import needs_of

ENGINE_PAGE = Path(__file__).parents[2] / "docs" / "engine.md"


def engine() -> Matcher:
    """Queries of every class, some with conditions that operators verify."""
    matcher = Matcher()
    matcher.add('/a/b[@id = "x"]/c', "alice")
    matcher.add('/a/b[@id = "x"][d]', "bob")
    matcher.add("/a//b[@n > 2]", "carol")
    matcher.add("/a//b[not(c)]", "dora")
    target = LinkTarget("r", "north")
    matcher.add_route(Conjunction.parse("/a//b and /a/c"), target)
    matcher.add_route(Conjunction.parse("/a[@x or @y]"), target)
    for need in needs_of(parse_profile("for $b in /a/b where $b/@n > 2 return <x>{$b/c}</x>")):
        matcher.add_need(need, target)
    return matcher


def test_the_text_of_a_plan() -> None:
    assert engine().dump().splitlines() == [
        "routing queries",
        "  a  -> north (tree of r) if …",
        "    //",
        "      b  -> north (tree of r) if …",
        "needs of links",
        "  a",
        "    b  -> binds, attribute @n",
        "      c  -> subtree .",
        "      [@n]",
        "        > number  -> a condition of needs",
        "local profiles",
        "  a",
        "    b",
        "      [@id]",
        '        = "x"  -> bob if …',
        "          c  -> alice",
        "    //",
        "      b  -> dora if …",
        "        [@n]",
        "          > number  -> carol",
        "",
        "twigs (nested paths of names alone)",
        "  d  -> twig 1",
        "",
        "operators (conditions that are verified, and what they share)",
        "  not(c)",
        "  @x or @y",
        "",
        "needs (binding, condition, what is kept)",
        '  ["/a/b","/*[@n > 2]",["attribute @n","subtree c"]]  -> north (tree of r)',
    ]


def test_operators_are_shown_with_what_they_share() -> None:
    matcher = Matcher()
    for profile in (
        "/a[b = /c/d]",
        "/e[b = /c/d]",
        "/e[not(/c)]",
        "/f[try { @g } catch * { false() }]",
    ):
        matcher.add(profile)
    lines = matcher.dump().partition("share)\n")[2].splitlines()
    assert sorted(lines) == [
        "  /c",
        "  b = /c/d",
        "  not(/c)",
        "  try {@g} catch * {false()}",
    ]


def test_an_empty_plan() -> None:
    assert Matcher().dump() == ""
    assert Matcher().dump_graphviz().startswith("digraph plan {")


def test_a_graph_has_a_node_for_each_state_operator_and_target() -> None:
    dot = engine().dump_graphviz()
    assert "are not shown" not in dot
    for title in ("local profiles", "needs of links", "routing queries", "twigs"):
        assert f'label="Index: {title}' in dot
    assert dot.count("doublecircle") == 2 + 3 + 4 + 1  # of the three roots, and of the twigs
    assert dot.count("fillcolor") == 10
    assert '[label="ε"]' in dot and 'label="= \\"x\\""' in dot
    assert 'label="bob if …"' in dot
    # Edges join nodes that are there.
    nodes = set(re.findall(r"^ +(n\d+) \[", dot, re.MULTILINE))
    ends = re.findall(r"^ +(n\d+) -> (n\d+) ", dot, re.MULTILINE)
    assert {end for edge in ends for end in edge} <= nodes


def test_a_picture_of_very_many_profiles_is_bounded_and_says_so() -> None:
    matcher = Matcher()
    for number in range(500):
        matcher.add(f'/a/b{number}[@id = "{number}"]')
        matcher.add(f"/a/b{number}[not(c{number})]")
    text = matcher.dump(50)
    assert len(text.splitlines()) < 50 + 2 * 50 + 10
    for what in ("nodes", "operators"):
        assert re.search(rf"… and \d+ {what} more", text)
    dot = matcher.dump_graphviz(60)
    assert 30 < len(re.findall(r"^ +n\d+ \[", dot, re.MULTILINE)) <= 60
    cut = matcher.statistics().index_nodes - ROOTS - 30  # the trie is cut at half of it
    more = re.search(r'label="(\d+) more nodes are not shown"', dot)
    assert more and int(more[1]) >= cut


def test_many_subscribers_are_counted() -> None:
    matcher = Matcher()
    for number in range(10):
        matcher.add("/a", f"q{number}")
    assert "a  -> q0, q1, q2 and 7 more" in matcher.dump()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("nodes_max", [1, 10, 300])
def test_graphviz_takes_it(nodes_max: int) -> None:
    matcher = engine()
    matcher.add('/a[@x = "\\ &quot; &#10; <"]')
    dot = matcher.dump_graphviz(nodes_max).encode()
    done = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, check=True)
    assert b"</svg>" in done.stdout and not done.stderr


def test_every_statistic_is_on_the_page_of_the_engine_and_no_other() -> None:
    table = ENGINE_PAGE.read_text().partition("| name |")[2].partition("\n\n")[0]
    named = {
        name
        for row in table.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", row.split("|")[1] + row.split("|")[2])
    }
    assert named == set(Matcher().statistics().__struct_fields__)


def test_matches_are_counted_by_class() -> None:
    matcher = engine()
    list(matcher.match(b'<a><c/><b id="x" n="3"><c/></b></a>', "r"))
    assert len(matcher.matched_ids(b"<a><b n='3'/></a>")) == 2
    said = matcher.statistics()
    assert (said.matched_route, said.matched_transformation, said.matched_profile) == (1, 1, 4)
