"""Comparisons of the nodes of one message with each other, along axes and by keys: looked up by the
compiled engine, and yet what Saxon, libxml2 and the interpreter find pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from random import Random

import pytest
from lxml import etree

from demo.saxon import Form, Saxon, SaxonError
from formats.text import parse_text
from tests.yfilter.interpreted import results
from yfilter import Matcher
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import EvaluationLimits, MatchLimits
from yfilter.language.query_parser import parse_profile

AXES = ("preceding", "following", "preceding-sibling", "following-sibling")
NAMES = ("x", "y", "*")
KEYS = ("", "a", "b", "1", "1.0", " 1 ", "NaN")
# Of a context item; A is an axis with a name, K a key relative to a node, N the context's own.
SAME = (
    *("K = A/K", "not(K = A/K)", "K != A/K", "A/K = 'a'", "A/K != 'a'", "A/text() = K"),
    *("count(A) = 2", "count(A[@k]) > 1", "count(A[@k = 'a']) = 1", "A/y/@k = K", "A[y]//@k = K"),
    *("A[1]/K = K", "A[2]/K != K", "A[last()]/K = K", "A[@k][1]/K = K", "A[@k = 'b'][2]/K = '1'"),
    *("A[position() < 3]/@k = K", "not(A)", "A/y", "count(A/y) = 1", "not(A[@k]/x)", "A[1][x]"),
    *("../A/@k = K", "../@k = A/K", "../x/@k = K", "../../x/@k = K", "not(../y/@k != K)"),
    *("A = .", "string(A) = 'a'", "contains(A, 'a')", "A[1] = A[2]", "A/.. = K", "//x/@k = K"),
)
IN_XPATH_2 = (
    *("K < A/K", "K >= A/K", "A/K > K", "K lt A[1]/@k", "concat(@n, @k) = A/concat(@n, @k)"),
    *("number(K) = A/number(K)", "K = A/number(@k)", "string(K) = A/K", "K = (A | x)/K"),
    *("K = (A | B)/@k", "A/string(@k) = (K, 'b')", "index-of(//x/@k, @k)[2]", "@k = A/K/string()"),
    *("every $r in A satisfies $r/@k = K", "some $r in A satisfies $r/@k = K and $r/@n != @n"),
    *("some $r in //y satisfies $r/@k = @k and not($r is .)", "number(@k) = //y/@k"),
    *(
        "some $r in //x, $s in //y satisfies $r/@k = $s/@k and $s/@n = ../@n",
        "@k = ../x/string(@k)",
    ),
    *(
        "every $r in x, $s in y satisfies $r/@k = $s/@k",
        "some $v in ('a', '1') satisfies A[@k = $v]",
    ),
    *(
        "some $r in * satisfies ../*[@k = $r/@k]",
        "some $r in x satisfies A[@k = $r/@k][1]/@n = $r/@n",
    ),
    *("some $r in *, $s in *[@k = $r/@k] satisfies not($r is $s)", "some $r in A satisfies . = $r"),
    *(
        "some $v in A/@k satisfies count(//x[@k = $v]) = 2",
        "some $n in 1 to 2 satisfies A[@k = $n]",
    ),
)
TEXTS = ("A/text() = .", "count(A) = 1", "A/@k = .", "count(preceding-sibling::text()) = 1")
FLWOR = (
    "for $i in //{0} where count(//{1}[@k = $i/@k]) > 1 return <n>{{string($i/@n)}}</n>",
    "for $i in //{0} where exists(//x//{1}[@k = $i/@k][@n]) return <n>{{string($i/@n)}}</n>",
    "for $i in //{0} where not($i/../{1}[@k = $i/@k and @n != $i/@n]) return <n>{{$i/@n}}</n>",
    "for $i in //{0} where $i/@k = $i/preceding::{1}/@k return <n>{{string($i/@n)}}</n>",
    "for $i in //{0}, $j in $i/{1} where //{1}[@k = $i/@k]/@n = $j/@n return <n>{{$j/@n}}</n>",
    "for $v in distinct-values(//{0}/@k) where count(//{1}[@k = $v]) = 1 return <n>{{$v}}</n>",
    "let $m := (/) let $s := $m//{1} for $i in //{0}, $j in $s where $i/@k = $j/@k return $j",
    "let $s := //{1}[2] for $i in //{0}, $j in $s/{0} where $j/@k = $i/@k return <n>{{$j/@n}}</n>",
)


CHECKS = """
//order[count(//item) = count(distinct-values(//item/@no))]
//item[@no = preceding::item/@no]
//item[not(@no = preceding::*/@no)]
//item[@no = following-sibling::item/@no]
//item[@no = preceding-sibling::item/@no]
//item[not(@no = following::item/@no)]
//item[v = preceding::v][@ref]
//item[count(preceding::item) = 5]
//item[count(preceding-sibling::item[@no = '3']) = 2]
//text()[count(preceding-sibling::text()) = 7]
//text()[preceding::v = 'no']
//order[every $r in //item/@ref satisfies $r = //item/@no]
//item[not(@ref = //item/@no)]
//item[not(@ref = ../item/@no)]
//item[number(@no) = //item/number(@ref)]
//item[concat(@no, '|', @ref) = preceding-sibling::item/concat(@no, '|', @ref)]
//item[index-of(//item/@no, @no)[2]]
//item[@no = (preceding-sibling::item | following-sibling::item)/@no]
//item[@no < preceding-sibling::item[1]/@no]
//item[some $o in //item satisfies $o/@no = @ref and $o/@ref = @no and not($o/v = v)]
//order[every $i in item satisfies count(item[@no = $i/@no]) = 1]
//order[some $a in item, $b in item satisfies $a/@no = $b/@ref and $a/v = 'no']
for $i in //item where count(//item[@no = $i/@no]) > 1 return <twice/>
for $i in //item where $i/@no = ($i/preceding::item | $i/following::item)/@no return <twice/>
for $a in //item, $b in //item where $a/@no = $b/@ref return <r/>
for $v in distinct-values(//item/v) let $g := //item[v = $v] where count($g) > 1 return <r/>
let $o := //order let $s := $o/item for $i in //item for $t in $s where $t/@no = $i/@ref return <r/>
for $i in //item return if (count(//item[@no = $i/@no]) > 1) then <x/> else ()
""".strip().splitlines()


def message(rng: Random, left: int = 24) -> bytes:
    """Elements in each other, with texts, comments and instructions between them."""
    numbers = iter(range(1_000))

    def inside(depth: int) -> Iterator[str]:
        for _ in range(rng.randint(0, 5 if depth < 4 else 0)):
            number = next(numbers)
            if number > left:
                return
            key = f' k="{rng.choice(KEYS)}"' if rng.random() < 0.8 else ""
            name = rng.choice("xxyz")
            yield f'<{name} n="{number}"{key}>{"".join(inside(depth + 1))}</{name}>'
            yield rng.choice(("", "", "a", "1", "<!--a-->", "<?a b?>"))

    return f'<m n="m">{rng.choice(("", "a"))}{"".join(inside(0))}</m>'.encode()


def conditions(rng: Random) -> Iterator[tuple[str, str, bool]]:
    """What the context is, a condition, and whether it is one of XPath 1.0."""
    for form in (*SAME, *IN_XPATH_2):
        first, second = rng.sample(AXES, 2)
        one, other = rng.choice(NAMES), rng.choice(NAMES)
        key = rng.choice(("@k", "@k", "@*", "y/@k", "."))
        text = form.replace("A", f"{first}::{one}").replace("B", f"{second}::{other}")
        yield rng.choice(("*", "x", "@k", "text()")), text.replace("K", key), form in SAME
    for form in TEXTS:
        axis, test = rng.choice(AXES), rng.choice(("text()", "x", "*"))
        yield "text()", form.replace("A", f"{axis}::{test}"), True


def selecting(context: str, condition: str) -> str:
    of = "$i" if context in "*x" else "$i/.."
    return f"for $i in //{context}[{condition}] return <n>{{string({of}/@n)}}</n>"


def is_taken(profile: str) -> bool:
    """Not by a path that can never select anything, which is refused."""
    try:
        parse_profile(profile)
    except ProfileRefused as refused:
        assert refused.code == "idle-path", profile
        return False
    return True


def compiled(profile: str, data: bytes) -> list[str]:
    matcher = Matcher()
    matcher.add(profile)
    delivered = list(matcher.deliver(parse_text(data)))
    assert all(each.exceeded is None for each in delivered), profile
    return [result.decode() for each in delivered for result in each.results]


@pytest.mark.parametrize("seed", range(24))
def test_each_engine_and_libxml2_find_the_same(seed: int) -> None:
    rng = Random(seed)
    data = message(rng)
    stream, tree = parse_text(data), etree.fromstring(data)
    for context, condition, is_old in conditions(rng):
        profile = selecting(context, condition)
        if not is_taken(profile):
            continue
        found = compiled(profile, data)
        assert found == [each.decode() for each in results(profile, stream)], (profile, data)
        if is_old and context in "*x":  # of others libxml2 says another parent, or other followers
            expected = [
                f"<n>{node.get('n')}</n>" for node in tree.xpath(f"//{context}[{condition}]")
            ]
            assert found == expected, (profile, data)
    for form in FLWOR:
        profile = form.format(rng.choice(NAMES), rng.choice(NAMES))
        expected = [each.decode() for each in results(profile, stream)]
        assert compiled(profile, data) == expected, (profile, data)


def test_saxon_finds_the_same() -> None:
    if find_spec("saxonche") is None:
        pytest.skip("saxonche is not installed")
    compared = 0
    with Saxon() as saxon:
        for seed in range(100, 110):
            rng = Random(seed)
            data = message(rng)
            saxon.load([data])
            asked = [selecting(context, condition) for context, condition, _ in conditions(rng)]
            asked += [form.format(rng.choice(NAMES), rng.choice(NAMES)) for form in FLWOR]
            for profile in filter(is_taken, asked):
                (answer,) = saxon.answers(profile, Form.ITEMS)
                if isinstance(answer, SaxonError):
                    continue
                expected = [etree.tostring(etree.fromstring(each)).decode() for each in answer]
                assert compiled(profile, data) == expected, (profile, data)
                compared += 1
    assert compared > 300


def order(size: int) -> bytes:
    items = (
        f'<item no="{number}" ref="{7 * number % (2 * size)}"><v>{number}</v></item>'
        for number in range(size)
    )
    return f"<order>{''.join(items)}</order>".encode()


@pytest.mark.parametrize("profile", CHECKS)
def test_the_work_grows_with_the_items_and_not_with_their_pairs(profile: str) -> None:
    """Nodes that are looked at, of which pairs of 10,000 would be a hundred million."""
    for size in (1_000, 10_000):
        limits = EvaluationLimits(visits_max=60 * size)
        matcher = Matcher(MatchLimits(evaluation=limits))
        matcher.add(profile)
        for delivered in matcher.deliver(parse_text(order(size))):
            assert delivered.exceeded is None


def test_every_number_is_there_once() -> None:
    profile = "for $i in //item where count(//item[@no = $i/@no]) > 1 return <twice/>"
    data = order(1_000)
    assert compiled(profile, data) == []
    assert compiled(profile, data.replace(b'no="77"', b'no="78"')) == ["<twice/>"] * 2


def test_a_matcher_without_limits_has_a_bound_on_work() -> None:
    profile = "//order[every $a in item, $b in item satisfies $a is $b or $a/@no != $b/@no]"
    matcher = Matcher()
    matcher.add(profile)
    (delivered,) = matcher.deliver(parse_text(order(3_000)))
    assert delivered.exceeded is not None and delivered.exceeded.code == "too-many-visits"
