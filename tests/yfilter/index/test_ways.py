"""What a matching path asks of the index: looked up, verified, or found in several ways."""

from __future__ import annotations

import pytest

from yfilter.index.derived_condition import Derived
from yfilter.index.ways import Step, Verified, Way, ways_of
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import ANY, LeafCondition, Literal, NodeKind
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse


def ways(profile: str) -> list[list[str]]:
    """A list for each alternative; what has to be found beside its spine comes behind it."""
    part = matching_part(parse_profile(profile))
    alternatives = [one for path in part.paths for one in ways_of(path, part.verified)]
    return [
        [*described(spine), *(f"beside {line}" for way in others for line in described(way))]
        for spine, *others in alternatives
    ]


def described(way: Way) -> list[str]:
    """A line for each step and for each that is asked of its element, in their order."""
    lines = []
    for step in way:
        lines.append(_step(step))
        for condition in step.conditions:
            if isinstance(condition, LeafCondition):
                lines.append(f"  {_condition(condition)}")
            elif isinstance(condition, Derived):
                lines.append(f"  column {unparse(condition.value)}: {unparse(condition.condition)}")
            elif isinstance(condition, Verified):
                lines.append(f"  verified {unparse(condition.condition)}")
            else:
                lines += [f"  {line}" for line in described(condition)]
    return lines


def _step(step: Step) -> str:
    name = ANY if step.test.namespace == ANY else step.test.local
    return ("//" if step.descendant else "/") + name


def _condition(condition: LeafCondition) -> str:
    names = {NodeKind.TEXT: "text()", NodeKind.SELF: "."}
    text = f"@{condition.test.local}" if condition.test else names[condition.kind]
    if condition.operator is None:
        return text
    return f"{text} {condition.operator.value} {unparse(Literal(condition.value))}"


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        ("/a/b[@x]//c[@y]", ["/a", "/b", "  @x", "//c", "  @y"]),
        (
            '/nitf[@version][head/pubdata/@edition.area = "SF"][not(body)]//p',
            [
                *("/nitf", "  @version", "  /head", "  /pubdata"),
                *('    @edition.area = "SF"', "  verified not(body)", "//p"),
            ],
        ),
        (
            "/a[b[c]//d[@x = 1 and e]]/f",
            ["/a", "  /b", "    /c", "  //d", "    @x = 1", "    /e", "/f"],
        ),
        ("/a/b/@id", ["/a", "/b", "  @id"]),
        ("/a//text()", ["/a", "  verified .//text()"]),
        ("/a[b or c]/d", ["/a", "  verified b or c", "/d"]),
        ("/a[b/../c]", ["/a", "  /b", "  /c"]),
        ("/a/b[../c]", ["/a", "/b", "  verified ../c"]),
        ("/a[b//c/..]", ["/a", "  /b", "  //c", "    verified .."]),
        ("/a[/x]", ["/a", "beside /x"]),
        ("/a[b][/x[@k = 1]//y or c]", ["/a", "  /b", "  verified /x[@k = 1]//y or c"]),
        (
            'for $a in /a, $b in //b where $a/@k = $b/@k and $b/@z = "1" return $b',
            ["/a", "beside //b", 'beside   @z = "1"'],
        ),
        ("/a[.]", ["/a"]),
        ("/a[.[@x]]", ["/a", "  @x"]),
        ("/a[b][b]", ["/a", "  /b"]),
        ("/a[@n < 3][@m != 3]", ["/a", "  @n < 3", "  verified @m != 3"]),
        ("/a[@*][*:b/@c]", ["/a", "  verified @*", "  /*", "    @c"]),
        # A position among siblings is a count of these.
        (
            "/a/b[2]",
            [
                *("/a", "/b"),
                "  column count(preceding-sibling::b): count(preceding-sibling::b) + 1 = 2",
            ],
        ),
        ("/a[contains(b, 'x')]", ["/a", '  column b: contains(b, "x")']),
        # Other positions are verified on the element that the path leads to.
        ("/a/b/text()[2]", ["/a", "/b", "  text()", "  verified /a/b/text()[2]"]),
    ],
)
def test_a_path_is_taken_apart(profile: str, lines: list[str]) -> None:
    assert ways(profile) == [lines]


def test_equal_conditions_are_one_however_written() -> None:
    first = ways('/a[@x][b/@id = "1"][c]')
    assert ways('/a[@x and "1" = b/@id][c][@x]') == first


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        ('//i[@k = ("x", "y", "x")]', [["//i", '  @k = "x"'], ["//i", '  @k = "y"']]),
        ('//i[@k = "x" or . = 5]', [["//i", '  @k = "x"'], ["//i", "  . = 5"]]),
        ("/a | //b[@c]", [["/a"], ["//b", "  @c"]]),
        ("(/a | /b)[c]/d", [["/a", "  /c", "/d"], ["/b", "  /c", "/d"]]),
        # A condition on all nodes holds where there are none, or one of them is looked up.
        (
            '/a[every $d in d satisfies contains($d, "x")]',
            [
                ["/a", "  column count(d): count(d) = 0"],
                [
                    *("/a", "  /d", '    column .: contains(., "x")'),
                    '  verified not(d[not(contains(., "x"))])',
                ],
            ],
        ),
        # A text is changed where the pattern is found in it, or compared as it is.
        (
            '/a[replace(d, "p+", "q") = "x"]',
            [
                [
                    *("/a", '  column d: matches(d, "p+")'),
                    '  column replace(d, "p+", "q"): replace(d, "p+", "q") = "x"',
                ],
                [
                    *("/a", '  column string(d): string(d) = "x"'),
                    '  column replace(d, "p+", "q"): replace(d, "p+", "q") = "x"',
                ],
            ],
        ),
        # Conditions on one variable each are asked apart.
        (
            '/a[some $d in d, $e in e satisfies (contains($d, "x") and $e > 5)]',
            [["/a", "  /d", '    column .: contains(., "x")', "  /e", "    . > 5"]],
        ),
        # All of them have to be looked up, and nothing that is looked up anyway is taken apart.
        ('/a[@k = "x" or not(b)]', [["/a", '  verified @k = "x" or not(b)']]),
        (
            '/a[@k = "x"][@l = "y" or @l = "z"]',
            [["/a", '  @k = "x"', '  verified @l = "y" or @l = "z"']],
        ),
        ('/a[b = ("x", "y")]', [["/a", "  /b", '    . = "x"'], ["/a", "  /b", '    . = "y"']]),
        (
            'for $a in /a where $a/@k = ("x", "y") and not($a/b) return $a',
            [["/a", f'  @k = "{word}"', "  verified not(b)"] for word in "xy"],
        ),
    ],
)
def test_what_is_found_in_several_ways(profile: str, found: list[list[str]]) -> None:
    assert ways(profile) == found


def test_very_many_alternatives_are_verified() -> None:
    values = [f'"{number}"' for number in range(65)]
    assert len(ways(f"/a[@k = ({', '.join(values[:64])})]")) == 64
    assert len(ways(f"/a[@k = ({', '.join(values)})]")) == 1


def test_a_path_longer_than_a_residual_is_verified_from_there() -> None:
    (way,) = ways("/a" * 200)
    assert way[-1].startswith("  verified a/a")
    assert "".join(way[:-1]) + "/" + way[-1].removeprefix("  verified ") == "/a" * 200
