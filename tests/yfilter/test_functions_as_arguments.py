"""Functions that take functions: variants against Saxon, both engines, and what is refused.

A seed draws the variants from a grammar; ``ONYX_VARIANTS=2000`` draws more.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from random import Random

import pytest

from demo.saxon import Form, Saxon, SaxonError
from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from tests.oracle.reference import ReferenceMatcher
from yfilter import Matcher, ProfileMatch, ProfileRefused
from yfilter.errors import MatchLimitExceeded
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus
from yfilter.language.query_parser import parse_expression, parse_profile
from yfilter.language.query_text import unparse

VARIANTS = int(os.environ.get("ONYX_VARIANTS", "150"))
ERROR = "an error"
MESSAGE = (
    b'<o k="2"><a n="3" f="true">x</a><a n="1" f="0">y<b/></a><a n="2">x<b>1</b><b>2</b></a>'
    b'<a n="10" f="no">z</a><c/></o>'
)
NUMBER, STRING, NODE, FLAG = "number", "string", "node", "flag"


def ours(expression: str, *, strict: bool = True) -> list[str] | str:
    evaluator = MessageEvaluator(parse_text(MESSAGE), strict=strict)
    try:
        tree = parse_expression(expression)
        assert parse_expression(unparse(tree)) == tree
        value = evaluator.value(tree, Focus(DOCUMENT, 1, 1, {}))
        return [evaluator.string(item) for item in value]
    except (DynamicError, ProfileRefused):
        return ERROR


# -- the grammar: items of one kind, and functions that take such ones


def some_items(rng: Random, depth: int) -> tuple[str, str]:
    """Items, and their kind."""
    if depth and rng.random() < 0.4:
        return a_call(rng, depth - 1)
    return rng.choice(
        (
            ("//a", NODE),
            ("//a[b]", NODE),
            ("(//a[3], //a[1], //a[3])", NODE),
            ("//none", NODE),
            ("(3, 1, 2)", NUMBER),
            ("1 to 5", NUMBER),
            ("(1.5, 2e0, -3, 0)", NUMBER),
            ("()", NUMBER),
            ("//a/@n ! number(.)", NUMBER),
            ("(xs:double('NaN'), 5, xs:double('-INF'))", NUMBER),
            ('("b", "a", "", "c", "a")', STRING),
            ("//a ! string(.)", STRING),
            ("//a/@f", NODE),
            ("//a/string(@n)", STRING),
            ("(true(), false())", FLAG),
        )
    )


def a_value(rng: Random, name: str, kind: str) -> tuple[str, str]:
    """A value of one item at most that a function makes of one of a kind, and its kind."""
    x = f"${name}"
    of_kind = {
        NODE: (
            (f"{x}", NODE),
            (f"string({x})", STRING),
            (f"number({x}/@n)", NUMBER),
            (f"{x}/@n * 2", NUMBER),
            (f"xs:integer({x}/@n) + $k", NUMBER),
            (f"count({x}/b)", NUMBER),
            (f"{x}/@f", NODE),
            (f"{x}/@n", NODE),
            (f"xs:boolean({x}/@f)", FLAG),
            (f"{x}/@n = 2", FLAG),
            (f'{x} = "x"', FLAG),
            (f"exists({x}/b) and {x}/@n > 1", FLAG),
            (f"{x}/b", NODE),
        ),
        NUMBER: (
            (x, NUMBER),
            (f"-{x}", NUMBER),
            (f"{x} * $k", NUMBER),
            (f"12 idiv {x}", NUMBER),
            (f"string({x})", STRING),
            (f"{x} > 1", FLAG),
            (f"{x} gt $k", FLAG),
            (f"not({x} = (1, 5))", FLAG),
            (f"$msg//a[@n = {x}]", NODE),
            (f"if ({x} > 2) then {x} else ()", NUMBER),
        ),
        STRING: (
            (x, STRING),
            (f"upper-case({x})", STRING),
            (f'concat({x}, "-", $k)', STRING),
            (f"string-length({x})", NUMBER),
            (f"xs:integer({x})", NUMBER),
            (f'{x} = ("a", "x")', FLAG),
            (f'{x} eq "a"', FLAG),
            (f"$msg//a[. = {x}][1]", NODE),
        ),
        FLAG: ((f"not({x})", FLAG), (x, FLAG), (f"string({x})", STRING)),
    }
    return rng.choice(of_kind[kind])


TYPES = {
    NUMBER: ("xs:double", "item()", "xs:integer", "xs:anyAtomicType"),
    STRING: ("xs:string", "item()?", "xs:anyAtomicType"),
    NODE: ("node()", "item()", "xs:string", "xs:integer", "xs:boolean"),
    FLAG: ("xs:boolean", "item()"),
}
KINDS = {" as xs:string": STRING, " as xs:integer": NUMBER, " as xs:boolean": FLAG}
NAMED = {
    NUMBER: (("string#1", STRING), ("abs#1", NUMBER), ("fn:not#1", FLAG), ("xs:string#1", STRING)),
    STRING: (
        ("upper-case#1", STRING),
        ("string-length#1", NUMBER),
        ('contains(?, "a")', FLAG),
        ("concat(?, $k, ?)", ""),
        ("xs:integer#1", NUMBER),
        ('substring-before(//o[1]/a[1]/@f ! "abc", ?)', STRING),
    ),
    NODE: (("string#1", STRING), ("exists#1", FLAG), ("name#1", STRING), ("data#1", STRING)),
    FLAG: (("not#1", FLAG), ("string#1", STRING), ("boolean#1", FLAG)),
}


def a_type(rng: Random, kind: str) -> str:
    return f" as {rng.choice(TYPES[kind])}" if rng.random() < 0.2 else ""


def a_function(rng: Random, kind: str, wanted: str = "") -> tuple[str, str]:
    """One of one argument, and the kind of what it yields."""
    while True:
        if rng.random() < 0.2:
            found = rng.choice(NAMED[kind])
        else:
            name = rng.choice("xyk")
            body, result = a_value(rng, name, kind)
            if name == "k":
                body = body.replace(" $k", " 2")
            takes, gives = a_type(rng, kind), a_type(rng, result)
            if kind == NODE and takes in KINDS:
                body, result = f"${name}", KINDS[takes]
            found = f"function(${name}{takes}){gives} {{ {body} }}", KINDS.get(gives, result)
        if found[1] and (not wanted or found[1] == wanted or rng.random() < 0.1):
            return found


def a_call(rng: Random, depth: int) -> tuple[str, str]:
    items, kind = some_items(rng, depth)
    name = rng.choice(("for-each", "filter", "sort", "sort", "for-each-pair", "fold", "let"))
    if name == "filter":
        function, _ = a_function(rng, kind, FLAG)
        form = rng.choice(("filter({}, {})", "({}) => filter({})", "fn:filter(({}), {})"))
        return form.format(items, function), kind
    if name == "sort" and rng.random() < 0.3:
        return f"sort(({items}))", kind
    if name == "sort":
        function, _ = a_function(rng, kind)
        if rng.random() < 0.3:
            first, second = a_value(rng, "x", kind)[0], a_value(rng, "x", kind)[0]
            function = f"function($x) {{ {first}, {second} }}"
        return f"sort(({items}), (), {function})", kind
    if name == "for-each-pair":
        others, other = some_items(rng, 0)
        one, two = a_value(rng, "x", kind)[0], a_value(rng, "y", other)[0]
        body = rng.choice((f'string-join((({one}), ({two})) ! string(.), "/")', f"({two}, {one})"))
        return f"for-each-pair(({items}), ({others}), function($x, $y) {{ {body} }}) ! string(.)", (
            STRING
        )
    if name == "fold":
        side = rng.choice(("left", "right"))
        x, sum_ = ("$y", "$x") if side == "left" else ("$x", "$y")
        value, _ = a_value(rng, x[1:], kind)
        body, zero = rng.choice(
            (
                (f'concat("(", {sum_}, string(({value})[1]), ")")', '""'),
                (f"({sum_}, ({value}) ! string(.))", "()"),
                (f"(({value}) ! string(.), {sum_})[position() < 4]", '"z"'),
                (f"{sum_} + count(({value}))", "$k"),
            )
        )
        call = f"fold-{side}(({items}), {zero}, function($x, $y) {{ {body} }})"
        return f"({call}) ! string(.)", STRING
    function, result = a_function(rng, kind)
    if name == "let":
        use = rng.choice(("for-each(({}), $f)", "for $k in ({}) return $f($k)", "({}) ! $f(.)"))
        return f"(let $f := {function} return {use.format(items)})", result
    return f"for-each({items}, {function})", result


def a_variant(rng: Random) -> str:
    return f"let $k := 2 return {a_call(rng, 2)[0]}"


@pytest.mark.skipif(find_spec("saxonche") is None, reason="Saxon is not installed")
def test_variants_are_what_saxon_says_of_them() -> None:
    rng = Random(20260729)
    variants = [a_variant(rng) for _ in range(VARIANTS)]
    wrong = []
    errors = lazy = 0
    with Saxon() as saxon:
        saxon.load([MESSAGE])
        for expression in variants:
            (answer,) = saxon.answers(expression, Form.STRINGS)
            theirs = ERROR if isinstance(answer, SaxonError) else [one.decode() for one in answer]
            errors += theirs == ERROR
            mine = ours(expression)
            if mine == ERROR and re.search(r"-pair|position\(", expression):
                lazy += theirs != ERROR  # Saxon has not looked at what nothing needs
            elif isinstance(answer, SaxonError) and "required item type" in answer.reason:
                lazy += mine != ERROR  # what it says of types, before there are items
            elif mine != theirs:
                wrong.append((expression, mine, answer))
    assert not wrong, "\n".join(map(str, wrong[:20]))
    assert lazy <= VARIANTS // 50
    assert errors < VARIANTS // 2


# -- whole profiles, in both engines

ITEMS = b"""<order k="2"><item no="1" price="9.50"><tag>tea</tag></item><item no="2" price="120"/>
<item no="3" price="on request"><tag>tea</tag><tag>cup</tag></item></order>"""
PROFILES = (
    "for-each(//item, function($i) { <i>{$i/@no}</i> })",
    'filter(//item, function($i) { $i/tag = "tea" })',
    "filter(//item, function($i) { $i/@price > 20 })",
    "/order[count(filter(item, function($i) { $i/@price < 20 })) = 1]",
    "sort(//item, (), function($i) { -count($i/tag) })",
    "for-each-pair(//item, reverse(//item), function($a, $b) { <p>{$a/@no, $b/@no/..}</p> })",
    "<sum>{fold-left(//item/@no, @k, function($sum, $n) { $sum + $n })}</sum>".replace("@k", "0"),
    "let $dear := function($i) { $i/@price > 20 } for $i in //item where $dear($i) return $i",
    "declare variable $tagged := function($i) { exists($i/tag) }; filter(//item, $tagged)",
    "declare function local:no($i) { $i/@no }; for $n in sort(//item, (), local:no#1) return $n",
    (
        "declare variable $k := 3; declare function local:f($s) { fold-left($s, $k, "
        "function($a, $b) { $a * $b }) }; for $o in /order where local:f($o/*/@no) = 18 return $o"
    ),
    "//item ! (let $f := function($n) { <n>{$n}</n> } return for-each(string(@no), $f))",
    "for-each(//item, function($i) { <i>{xs:decimal($i/@price)}</i> })",
    "for $i in //item return <i>{for-each($i/@price, function($p) { xs:decimal($p) })}</i>",
    "for $o in //order[filter(item, function($i) { xs:decimal($i/@price) > 1 })] return $o",
)


@pytest.mark.parametrize("profile", PROFILES)
def test_both_engines_deliver_the_same(profile: str) -> None:
    answers = []
    for engine in (Matcher(), ReferenceMatcher()):
        engine.add(profile, "p")
        engine.add(unparse(parse_profile(profile)), "again")
        found = {
            one.profile_id: one for one in engine.match(ITEMS) if isinstance(one, ProfileMatch)
        }
        answers.append({name: one.results() for name, one in found.items()})
    assert answers[0] == answers[1]
    assert answers[0].get("p") == answers[0].get("again")


# -- by hand


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # A name means in a function what it means where the function stands.
        ("let $a := 1 let $f := function($x) { $x + $a } for $a in (5, 6) return $f($a)", "6 7"),
        ("let $f := function($x) { for $y in 1 to 2 return $x } for $y in 7 return $f($y)", "7 7"),
        (
            "let $f := function($x) { $x * 2 } let $f := function($x) { $f($x) + 1 } return $f(3)",
            "7",
        ),
        ("for-each((1, 2), function($x) { for-each((1, 2), function($x) { $x }) })", "1 2 1 2"),
        ("(let $f := function($x) { $x } return $f(1), let $f := 2 return $f)", "1 2"),
        # The context item of an argument is that of the call.
        ("//a[1] ! for-each(1, concat(?, @n))", "13"),
        ("//a[filter(@n, function($n) { $n = 2 })]/string(@n)", "2"),
        # What is given to a function is found once, and converted as an argument is.
        ("filter(//a/@f, function($f as xs:boolean) { $f })/..", ERROR),
        ("filter(//a[1]/@f, function($f as xs:boolean) { $f })/../string(@n)", "3"),
        ("filter(('a', 'b'), function($x) { $x[. = 'a'] ! true() })", ERROR),
        ("filter((1, 2), function($x) { true(), true() })", ERROR),
        # Keys are compared value by value; a shorter one comes first.
        ("sort(//a, (), function($a) { $a/b })/string(@n)", "3 10 1 2"),
        ("sort((2, 1), (), function($x) { 1 to 9 })", ERROR),
        ("sort((1, 'a'))", ERROR),
        ("sort(('b', 'a'), 'http://www.w3.org/2005/xpath-functions/collation/codepoint')", "a b"),
        # An error of a function is one of the call.
        ("count(for-each(//a/@f, function($f) { xs:boolean($f) }))", ERROR),
        ("count(sort(//a/@f, (), function($f) { xs:boolean($f) }))", ERROR),
        ("fold-left((), 'none', function($a, $b) { $a + $b })", "none"),
        ("fold-right((), 'none', function($a, $b) { $a + $b })", "none"),
    ],
)
def test_an_expression_is(expression: str, value: str) -> None:
    found = ours(expression, strict=False)
    assert (found if isinstance(found, str) else " ".join(found)) == value


@pytest.mark.parametrize(
    ("expression", "code", "reason"),
    [
        ("function($x) { 1 }", "unsupported", "a function is no value"),
        ("//a ! string#1", "unsupported", "a function is no value"),
        ("let $f := string#1 return ($f, 1)", "unsupported", "a function is no value"),
        ("let $f as function(*) := string#1 return 1", "unsupported", "a function is no value"),
        ("for-each(//a, $k)", "unsupported", "a function is no value"),
        ("for-each(//a, string(.))", "unsupported", "a function is no value"),
        ("for-each(//a, for-each#2)", "arity", "takes 2 arguments"),
        ("fold-left(1, 2, filter#2)", "unsupported", "a function is no value"),
        ("apply(concat#2, ('a', 'b'))", "unsupported", "nor is an array"),
        ("for-each(//a, 1)", "syntax", "expected a function"),
        ("for-each(//a)", "arity", "called with 1 argument"),
        ("filter(//a, exists#1, 1)", "arity", "has more arguments"),
        ("filter(//a, function($x, $y) { true() })", "arity", "takes 2 arguments"),
        ("filter(//a, function($x) { . = $x })", "no-context", "there is no context item"),
        ("filter(//a, function($x) { @n = 1 })", "no-context", "nothing is there"),
        ("//a ! (let $f := concat(?, .) return $f(1))", "no-context", "there is no context item"),
        ("for-each(//a, lang#1)", "no-context", "lang() has nothing here"),
        ("sort(//a, 'de')", "unsupported", "a collation"),
        ("let $f := function($x) { $y } return 1", "unbound-variable", "$y"),
        ("//a/namespace::b", "unsupported", "sees changes when it is written anew"),
        ("function-lookup(xs:QName('a'), 1)", "unsupported", "a function is no value"),
    ],
)
def test_what_no_expression_says_is_refused(expression: str, code: str, reason: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        parse_expression(f"let $k := 2 return {expression}")
    assert refused.value.code == code
    assert reason in str(refused.value)


def test_a_fold_is_of_many_items() -> None:
    assert ours("fold-left(1 to 5000, 0, function($a, $b) { $a + $b })") == ["12502500"]
    assert ours("fold-right(1 to 5000, 0, function($a, $b) { $b - $a })") == ["-12502500"]
    assert ours("count(for-each-pair(1 to 5000, 1 to 5000, function($a, $b) { $a }))") == ["5000"]
    with pytest.raises(MatchLimitExceeded):
        ours("fold-left(1 to 100000, (), function($a, $b) { $a, $b })")


def test_copies_of_functions_are_bounded() -> None:
    """Functions that call each other twice would double a text with each name."""
    doubling = "let $f0 := function($x) { $x + 1 } "
    for number in range(1, 12):
        doubling += f"let $f{number} := function($x) {{ $f{number - 1}($f{number - 1}($x)) }} "
    with pytest.raises(ProfileRefused) as refused:
        parse_profile(f"for $a in //a return <r>{{{doubling} return $f11(1)}}</r>")
    assert refused.value.code in ("too-long", "too-many-clauses")
    long = ", ".join(["1"] * 500)
    calls = ", ".join(["$f()"] * 200)
    with pytest.raises(ProfileRefused) as refused:
        parse_profile(f"<r>{{let $f := function() {{ {long} }} return (//a, {calls})}}</r>")
    assert refused.value.code == "too-long"
    nested = "for-each(1, function($x) { " * 40 + "1" + " })" * 40
    with pytest.raises(ProfileRefused) as refused:
        parse_profile(f"<r>{{//a, {nested}}}</r>")
    assert refused.value.code == "too-deep"


def test_a_function_that_is_no_error_is_served_by_the_index() -> None:
    written = "for $i in //item where $i/@price > 20 return $i"
    for text in (
        "filter(//item, function($i) { $i/@price > 20 })",
        "let $dear := function($x) { $x/@price > 20 } for $i in //item where $dear($i) return $i",
    ):
        assert parse_profile(text) == parse_profile(written)


@pytest.mark.parametrize(
    "condition",
    [
        "exists(filter(item, exists#1)) and string(@no) = 'n1'",
        "for-each-pair(item, item, concat#2) = 'milkmilk' and @no = 'n1'",
        "fold-left(item, 'a', concat#2) = 'agreen teamilk' and @no = 'n1'",
        "for-each(item, upper-case#1) = 'MILK' and string(@no) = 'n1'",
        "exists(for-each(item, contains(?, 'tea'))[.]) and @no = 'n1'",
        "count(sort(item, (), function($x) { string($x) })) = 2 and @no",
        "fold-left(item, 0, function($n, $x) { $n + string-length($x) }) > 5",
    ],
)
def test_profiles_that_share_a_condition_have_it_each_of_their_own(condition: str) -> None:
    """A condition is remembered for the next profile, but not what is declared for it."""
    matcher = Matcher()
    names = [
        matcher.add(f"{before}/order[{condition}]/{after}")
        for before in ("", "declare variable $v := 1; ", "declare function local:f() { 2 }; ")
        for after in ("item", "@no/..", "item[2]")
    ]
    message = b"<order no='n1'><item>green tea</item><item>milk</item></order>"
    assert sorted(matcher.matched_ids(message)) == sorted(names)
    assert not matcher.matched_ids(b"<order><item/></order>")
