"""Joins and groupings: looked up, and yet what looking at every pair gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from tests.yfilter.evaluated import select
from yfilter.compiled_deciders import render
from yfilter.errors import ProfileRefused
from yfilter.language.matching_path import matching_path
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus, Value
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.operators.evaluation import Evaluation

VALUES = ("1", "1.0", " 1 ", "2", "2.0", "x", "X", "NaN", "INF", "", "true", "1e0", "2026-01-01")
# Sides of an equality, by the variable that they are about.
SIDES = (
    *("{0}/@k", "{0}/@*", "{0}", "{0}/y", "number({0}/@k)", "string({0}/@k)", "xs:string({0}/@k)"),
    *("{0}/@k/string()", "({0}/@k, 1)", "xs:decimal({0}/@k)", "({0}/@k = 1)", "{0}/@k + 1"),
    *("xs:date({0}/@k)", "{0}/y/@k", "upper-case({0}/@k)", "count({0}/y)"),
)
QUERIES = (
    "for $a in //x, $b in //y where {a} = {b} return concat(count($a/preceding::*), $b/@n)",
    "for $a in //x, $b at $p in //y where $a/@n and {a} = {b} return ($p, string($b/@n))",
    "for $a in //x return for $b in //y where {b} = {a} return string($b/@n)",
    "for $a in //x return //y[{c} = {a}]/string(@n)",
    "for $a in //x return count(//y[{a} = {c} and @n][@k]/..)",
    "let $all := //y for $a in //x return $all[{c} = {a}]/string(@n)",
    "for $m in /m, $a in $m/x return $m//y[y][{c} = {a}]/string(@n)",
    "for $a in //x[{d} = //y/@k] return string($a/@n)",
    "for $a in //x[{d} = (//y/@k, 1)] return string($a/@n)",
    "for $a in //x where some $b in //y satisfies {a} = {b} return string($a/@n)",
    "for $a in //x where every $b in //y satisfies {a} = {b} return string($a/@n)",
    "for $a in //x where {a} = ('1', '2', 'x', 'a', 'b', 'c', 'd', 'e', 'f', 'g') return 1",
    "for $a in //x where {a} = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e3) return string($a/@n)",
    "for $a in //x where {a} = (1, 2, 3.5, 4, 5, 6, 7, 8, 9, 10, 1.5) return string($a/@n)",
    "for $v in distinct-values(//y/@k) return count(//x[@k = $v])",
    "for $v in distinct-values(//y/number(@k)) return count(//x[{d} = $v])",
    "for $a in //x, $b in distinct-values(//y/@k) where {a} = $b return $b",
    "for $a in //x group by $g := {a} return ($g, count($a), string($a[1]/@n))",
    "for $a in //x, $b in //y group by $g := {b}, $h := {a} return ($h, $g, count($a), '|')",
    "for $a in //x let $m := {a} group by $g := {a}, $h := ($g, $g)[1] return count($m)",
    "for $a at $p in //x order by {a} return $p",
    "for $a in //x, $b in //y order by {a} descending, {b} empty greatest return string($b/@n)",
    "for $a in //x let $v := {a} order by $v empty greatest, {a} descending return ($v, '|')",
    "for $a in //x where {a} = preceding-sibling::y/@k return string($a/@n)",
    "//x[{d} = preceding-sibling::y/number(@k)]/string(@n)",
    "//x[{d} = following-sibling::y/@k]/string(@n)",
)


def random_message(rng: Random) -> bytes:
    parts = []
    for number in range(rng.randint(0, 40)):
        name, key = rng.choice("xxy"), rng.choice(VALUES)
        inside = rng.choice(("", key, f'<y n="{number}y" k="{rng.choice(VALUES)}"/>'))
        attribute = f' k="{key}"' if rng.random() < 0.9 else ""
        parts.append(f'<{name} n="{number}"{attribute}>{inside}</{name}>')
    return f"<m>{''.join(parts)}</m>".encode()


def _answer(value: Callable[[], Value]) -> list[str]:
    """The items, or the error."""
    try:
        return [repr(item) for item in value()]
    except DynamicError as error:
        return [error.code]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_looked_up_is_what_every_pair_gives(seed: int) -> None:
    """The operators against the interpreter, which remembers nothing here."""
    rng = Random(seed)
    stream = parse_text(random_message(rng))
    evaluation = Evaluation(stream)
    for query in QUERIES:
        sides = [rng.choice(SIDES).format(start) for start in ("$a", "$b", ".", ".")]
        text = query.format(**dict(zip("abcd", sides, strict=True)))
        try:
            expression = parse_expression(text)
        except ProfileRefused:  # sides that nothing makes comparable
            continue
        plain = MessageEvaluator(stream)
        plain.memo = None
        expected = _answer(partial(plain.value, expression, Focus(DOCUMENT, 1, 1, {})))
        assert _answer(partial(evaluation.value, expression)) == expected, text


GROUPINGS = (
    "for $v in distinct-values(//x/@k) let $g := //x[@k = $v] return <g k='{$v}'>{count($g)}</g>",
    "for $m in /m, $v in distinct-values($m/x/@k) return <g>{count($m/x[@k = $v])}</g>",
    "let $all := //x for $v in distinct-values($all/@k) return <g>{$all[@k = $v]/@n}</g>",
    "for $a in //x, $b in //y where $a/@k = $b/@k return <p>{$a/@n}</p>",
    "for $a in //x return <p>{for $b in //y where $a/@k = $b/@k return $b/@n}</p>",
    "for $a in //x where some $b in //y satisfies $b/@k = $a/@k return <p>{$a/@n}</p>",
    "for $a in //x[@k = //y/@k] return <p>{$a/@n}</p>",
    "for $a in //x return <p>{//y[@k = $a/@k]/@n}</p>",
)


@pytest.mark.parametrize("text", GROUPINGS)
def test_the_cost_grows_with_the_message_and_not_with_its_square(text: str) -> None:
    """Visits of 2,000 values; as pairs they would be four million."""
    profile = parse_profile(text)
    message = "".join(f'<x n="{n}" k="{n}"/><y n="{n}" k="{n}"/>' for n in range(2_000))
    stream = parse_text(f"<m>{message}</m>".encode())
    bound = parse_profile(text.replace("[@k = //y/@k]", ""))  # all of them, found without a join
    bindings = [node.number for node in select(matching_path(bound), stream)]
    limits = EvaluationLimits(visits_max=80_000, tuples_max=7_000)
    assert (
        sum(
            result.count(b"<p") + result.count(b"<g")
            for result in render(profile, stream, bindings, limits)
        )
        == 2_000
    )
