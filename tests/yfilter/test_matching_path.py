"""The matching part of a profile as a path (section 4.2.1)."""

from __future__ import annotations

import pytest

from yfilter.language.matching_path import LIFTED_STEPS_MAX, matching_part, matching_path
from yfilter.language.query_parser import parse_path, parse_profile
from yfilter.language.query_text import unparse

# A condition with a variable inside a predicate is asked of the element as a whole.
_BOUND = "/a[some $a in . satisfies $a/b[c = $a/d]][e]"


@pytest.mark.parametrize(
    ("profile", "path", "remainder"),
    [
        ("//a[b]/c", "//a[b]/c", False),
        ("/a/@b", "/a[@b]", False),
        ("/a[c]//@b[. = 5]", "/a[c][.//@b[. = 5]]", False),
        ("/a//text()", "/a[.//text()]", False),
        ("//@b", "//*[@b]", False),
        (
            'for $n in $msg/nitf where $n/head/@e = "SF" and $n//series return <r/>',
            '/nitf[head/@e = "SF"][.//series]',
            False,
        ),
        (
            "for $a in /x/a[b] where $a = 5 or not($a/c) return $a",
            "/x/a[b][. = 5 or not(c)]",
            False,
        ),
        ("for $a in /a where contains($a, /b/c) return $a", "/a[contains(., /b/c)]", False),
        ("for $a in /a where $a[b]/c return $a", "/a[.[b]/c]", False),
        ("for $a in /a where count($a/b) return $a", "/a[boolean(count(b))]", False),
        ("for $a in /a return $a/b", "/a", True),
        ("for $a in /a return for $b in $a/b return $b", "/a", True),
        ("for $a in /a, $b in $a/b where $a/c and $b/d return $a", "/a[c][b/d]", True),
        ("for $a in /a, $b in $a/b return <r/>", "/a[b]", True),
        ("for $a in /a where $a/b[c = $a/d] and $a/e return $a", _BOUND, False),
        (
            "for $a in /a let $b := $a/b, $x := 'x' where $b/c = $x and $b[d] return <r/>",
            '/a[b/c = "x"][b[d]]',
            False,
        ),
        ("for $a in /a let $s := string($a) where $s = 'x' return <r/>", "/a", True),
        ("for $a in /a let $b := $a/b return $b", "/a", True),
        ("<r>{for $a in /a where $a/b return $a/@c = 5}</r>", "/a[b]", False),
        ("<r>{for $a in /a where $a/b return string($a)}</r>", "/a[b]", False),
        ("<r>{for $a in /a return $a/text()}</r>", "/a", True),
        ("for $v in distinct-values(/a[b]/@c) return <r>{/d[@e = $v]}</r>", "/a[b][@c]", True),
        ("for $a in /a return <r>{$a/@b}{$a/c}</r>", "/a", False),
        ("for $a in /a return <r>{$a/c}{$a/@b}</r>", "/a", True),  # an error if there are both
    ],
)
def test_matching_path(profile: str, path: str, remainder: bool) -> None:
    parsed = parse_profile(profile)
    found = matching_path(parsed)
    assert unparse(found) == path
    assert parse_path(path) == found
    assert matching_part(parsed).has_remainder is remainder


def test_writing_out_variables_is_bounded() -> None:
    steps = "/b" * 100
    uses = " and ".join(["$b = 'x'"] * 10)
    profile = parse_profile(f"for $a in /a let $b := $a{steps} where {uses} return <r/>")
    (step,) = matching_path(profile).steps
    assert len(step.predicates) == LIFTED_STEPS_MAX // 100
    assert matching_part(profile).has_remainder


def test_paths_of_the_deepest_profiles_can_be_read() -> None:
    condition = "$a/b" + "[c" * 63 + "]" * 63
    profile = parse_profile(f"for $a in /a where {condition} return $a")
    path = matching_path(profile)
    assert parse_path(unparse(path)) == path
