"""unparse is the inverse of the parser."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.examples import examples
from tests.yfilter.profile_strategies import conditions, profiles
from yfilter.language.query_ast import Constructor, Expression, Flwor, PathExpression
from yfilter.language.query_parser import parse_expression, parse_path, parse_profile
from yfilter.language.query_text import unparse


@examples(250)
@given(profiles(odd=True))
def test_profiles_survive_the_round_trip(body: PathExpression | Flwor | Constructor) -> None:
    text = unparse(body)
    profile = parse_profile(text)
    assert profile.body == body, text
    assert unparse(profile) == text


@examples(200)
@given(conditions())
def test_conditions_survive_the_round_trip(condition: Expression) -> None:
    assert parse_expression(unparse(condition)) == condition


@pytest.mark.parametrize(
    "body",
    [
        *("(count(/a) treat as xs:integer) + 1", "(count(/a) treat as xs:integer) * 2"),
        *("2 * (count(/a) treat as xs:integer) + 1", "-(count(/a) treat as xs:integer) + 1"),
        *("(//a treat as element()) | //b", "//a instance of element(a)+"),
        "every $a as empty-sequence() in (), $b as xs:integer in $a satisfies $b",
    ],
)
def test_a_type_ends_before_the_operator_behind_it(body: str) -> None:
    """Which it would take for the sign of how often it occurs."""
    profile = parse_profile(f"for $o in /* return <r>{{{body}}}</r>")
    text = unparse(profile)
    assert parse_profile(text).body == profile.body, text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("$msg/a//b", "/a//b"),
        ("/a/./b[.]", "/a/b[.]"),
        (
            'declare namespace p = "urn:p"; //p:a/@p:b[. = "x"]',
            '//Q{urn:p}a/@Q{urn:p}b[. = "x"]',
        ),
        ('declare default element namespace "urn:d"; /a/@b', "/Q{urn:d}a/@b"),
        ("//*:a[*]/@*", "//*:a[*]/@*"),
        ("/a[(b and c) and (d or e)]", "/a[b and c and (d or e)]"),
        ("/a[.//b][../c][./d]", "/a[.//b][../c][d]"),
        ("/a[b = 1.50 or b = 1e3 or b = 1000000]", "/a[b = 1.50 or b = 1000e0 or b = 1000000]"),
        ("/a[@b = 'it''s \"&amp;']", '/a[@b = "it\'s ""&amp;"]'),
        (
            'for $x in /a return <r xml:lang="de"/>',
            'for $x in /a return <r xml:lang="de"/>',
        ),
        (
            "for $x in /a, $y in $x/b return <r k='1'> {$y} <![CDATA[ ]]></r>",
            'for $x in /a for $y in $x/b return <r k="1">{$y}&#32; </r>',
        ),
        (
            'declare namespace p="urn:p"; for $x in /a return <p:r><p:s/></p:r>',
            'for $x in /a return <p:r xmlns:p="urn:p"><p:s/></p:r>',
        ),
    ],
)
def test_what_is_written(text: str, written: str) -> None:
    profile = parse_profile(text)
    assert unparse(profile) == written
    assert parse_profile(written) == profile


def test_paths_alone() -> None:
    path = parse_path("/Q{urn:a}b[@c > 5]")
    assert parse_path(unparse(path)) == path
