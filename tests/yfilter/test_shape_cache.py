"""A profile read by its shape is what the parser makes of its text."""

from __future__ import annotations

import ast
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given

import yfilter.language
from tests.examples import examples
from tests.yfilter.profile_strategies import profiles
from yfilter.errors import ProfileRefused
from yfilter.language import query_parser
from yfilter.language import query_parser as computed_parser
from yfilter.language import query_parser as condition_parser
from yfilter.language import query_parser as flwor_parser
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import Constructor, Expression, Flwor, PathExpression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.language.shape_cache import RESERVED, ShapeCache
from yfilter.language.shapes import PlainPath, Shaped, parts_of, take_apart
from yfilter.language.tokens import NCNAME

DIRECT = ProfileLimits()  # equal to the default, but not it: parsed without a cache


def parsed(text: str) -> Expression:
    return parse_profile(text, DIRECT).body


def outcome(read: ShapeCache | None, text: str) -> Expression | str:
    try:
        return read.read(text).body if read else parsed(text)
    except ProfileRefused as refusal:
        return str(refusal)


TEXTS = [
    '/a[@b = "x"]//c',
    "/a[@b = 'x']//c[. > 5][d < 1.5]",
    '/a["x" = @b and c or d != 3]',
    "/for/let[return]/if[div]",
    "/a[@b = -5][c = 5e3][d = .5][e = 5.]",
    '/a[b = "it\'s"][c = \'"\'][d = "&lt;"][e = "a""b"]',
    '/a[matches(@b, "^x+$", "i") and contains(c, "x")]',
    "/a[b[c[d[e = 1] = 2] = 3] = 4]",
    '/a[b = "]"]/c[d = "["]',
    "/a[(: ] :) b]",
    '/a[(: "x :) b = "x"]',
    "/a[2]/b[last()]",
    "/a/child::b/p:c",
    'declare namespace p = "urn:p"; /a/p:b[@p:c = "x"]/*:d/p:*',
    'declare default element namespace "urn:d"; /a/b[@c = 1]',
    'for $n in /nitf where $n/@id = "x" return $n',
    'for $n in /a/b let $m := $n/c where $m > 5 order by $n/@d return <r x="{$n/@y}">5 "x" y</r>',
    "for $n in /a return <a>it's {$n/b = 'x'} {'}'}</a>",
    "for $n in /a return <a x=\"{<b>it's</b> = 'v'}\"/>",
    'for $n in /a return <a x=\'{$n/b = "v"}\' y="\'"/>',
    "for $n in /a return element e { $n/b, attribute x {1} }",
    "for $n in /a return if ($n/b = 1) then $n else <c/>",
    "/a[some $x in b satisfies $x = 3]/c",
    '/a[processing-instruction("b c")]',
    '/a[processing-instruction("b")]',
    "/a[b cast as xs:integer = 3][xs:date(c) < xs:date('2020-01-01')]",
    "/a[Q{urn:x}b = 1][Q{}c = 2]/@d",
    "/a | /b[c = 1]",
    "$msg/a",
    " /a/b ",
    "/a [ b = 1 ] / c",
    "/a/b[c = 12345678901234567890123]",
    "/a[b = 900000000000000000]",
    "/\U000effff1/b",
    "/\u00aa/b",
    "/a/b\u00b7c[d]",
    "/a[b => 1]",
    "/a[@b = 'x",
    "/a[q:b = 1]",
    "/a[contain(b, 'x')]",
    "/a[b = \u201cx\u201d]",
    "/a\r\n[b = 'x\ry']",
    "/a[b = 5a]",
    "/a/b/",
    "/a[]",
    "/a]",
    "a/b",
    "/",
    "",
    "/a[\x01]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_with_and_without_the_cache(text: str) -> None:
    cache = ShapeCache(parsed)
    expected = outcome(None, text)
    for _ in range(2):  # learnt, then known
        assert outcome(cache, text) == expected
    other = re.sub(r"\bx\b", "zz", text.replace("5", "7"))
    assert outcome(cache, other) == outcome(None, other)


@examples(150)
@given(profiles(odd=True))
def test_random_profiles_with_and_without_the_cache(
    body: PathExpression | Flwor | Constructor,
) -> None:
    text = unparse(body)
    cache = ShapeCache(parsed)
    assert [cache.read(text).body for _ in range(2)] == [body, body]
    parts = parts_of(cache.read(text))
    assert parts.fill() == body
    assert parts.text() == text
    if isinstance(parts, PlainPath):
        assert parts.shaped() == take_apart(body)
    assert take_apart(body).fill() == body
    assert take_apart(body).text() == text


def test_profiles_of_one_shape_are_parsed_once() -> None:
    calls = []

    def parse(text: str) -> Expression:
        calls.append(text)
        return parsed(text)

    cache = ShapeCache(parse)
    for number in range(10):
        text = f'for $n in /a{number}/b where $n/@c{number} = "v{number}" return $n/d'
        assert cache.read(text).body == parsed(text)
    assert len(calls) == 1
    first, second = (cache.read(f"/a/b[@c = {number}]") for number in (1, 2))
    assert len(calls) == 2
    assert isinstance(first.parts, PlainPath)
    assert first != second
    assert len(cache.texts.entries) == 2


def test_words_keep_their_types() -> None:
    shapes = [take_apart(parsed(f"/a[b = {number}]")) for number in ("5", "5.0", "5e0", '"5"')]
    assert len({shape for shape, _ in shapes}) == 4
    assert [words[-1] for _, words in shapes] == [5, Decimal("5.0"), 5.0, "5"]


def test_equal_trees_have_one_shape() -> None:
    one = parts_of(Profile(parsed("/a/child::b")))
    other = parts_of(Profile(parsed("/x/y")))
    assert isinstance(one, Shaped)
    assert isinstance(other, Shaped)
    assert one.shape is other.shape


def test_what_is_kept_is_bounded() -> None:
    cache = ShapeCache(parsed, keys_max=3)
    for count in range(1, 8):
        cache.read("/a | /b[" + "c/" * count + "d]")
    assert len(cache.texts.entries) == 3


def test_every_word_that_a_parser_looks_for_is_reserved() -> None:
    """A word compared with a token's text, or in a set in which such a text is looked up."""
    found: set[str] = set()
    for file in Path(yfilter.language.__path__[0]).glob("*_parser.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                found |= constants(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found |= constants(node) if node.func.attr in ("is_word", "expect_word") else set()
    found |= set(query_parser.LEVEL_OF) | set(query_parser._TYPE_OPERATORS)
    found |= condition_parser._OPENING_WORDS | set(computed_parser._KINDS) | computed_parser._WORDS
    found |= set(flwor_parser._LEFT_OUT)
    words = {word for word in found if re.fullmatch(NCNAME, word)}
    assert {"for", "or", "then", "ordered"} <= words
    # Names of functions and prefixes stand before '(' and ':', those of types behind ':', where no
    # word is looked for.
    assert words - RESERVED <= {"xml", "xmlns", "position", "last", "replace", "e"} | {
        "tokenize",
        "matches",
        "switch-",
        "resolve-uri",
        "QName",
        "NOTATION",
        "anyAtomicType",
    }


def constants(node: ast.AST) -> set[str]:
    return {
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }
