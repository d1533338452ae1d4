"""Nothing that is accepted fails later because of its text: constants that can only be errors.

The oracle is the interpreter on messages: what is an error on each of them, and asks nothing of
them, is one by its text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from formats.text import parse_text
from yfilter import Matcher, parse_profile
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.constants import constants_in, first_fault
from yfilter.language.function_library import NODE_FUNCTIONS
from yfilter.language.functions import (
    CONTEXT_FUNCTIONS,
    CURRENT,
    FUNCTIONS,
    OF_PLACES,
    PATTERN_FUNCTIONS,
    other_functions,
    signature_of,
)
from yfilter.language.nodes import DynamicError
from yfilter.language.query_ast import Expression, Flwor, LetClause
from yfilter.language.query_parser import parse_anew, parse_expression, parse_template
from yfilter.language.shape_cache import ShapeCache
from yfilter.language.words import WORD_TESTS
from yfilter.operators.evaluation import Evaluation

MESSAGES = [
    parse_text(text)
    for text in (
        b'<o><a k="1" d="2026-03-02">5</a><b/></o>',
        b'<o><a k="x" d="never">text<c/></a><b>7</b></o>',
        b'<o><a k="" d="1999-12-31"/><a k="0" d="">0</a><b n="2">x</b></o>',
    )
]

# Where a constant C may stand; 10 of 20 profiles ask for it in brackets.
FORMS = (
    "//a[@k = (C)]",
    "//a[@k][not(deep-equal(@d, (C)))]/..",
    "//a[exists((@k, (C)))]",
    "//a[@k or exists((C))]",
    "//a[some $x in @k satisfies $x = (C)]",
    "//a[every $x in (C) satisfies $x = @k]",
    "for $i in //a where exists((C)) return $i",
    "for $i in //a order by head((C)) return $i",
    "for $i in //a let $c := (C) return <r>{$i, $c}</r>",
    "for $i in //a return <r n='{(C)}'>{$i}</r>",
    "for $i in //a return element r { $i/@k, text { (C) } }",
    "for $i in //a return if (empty((C))) then $i else <r/>",
    "for $i in //a return typeswitch ((C)) case xs:date return $i default return <r/>",
    "for $i in //a return copy $c := $i modify replace value of node $c with (C) return $c",
    "for $i in //a group by $g := head((C)) return <r>{$i}</r>",
    "declare variable $c := (1 to 2, (C)); for $i in //a[@k = $c] return $i",
    "declare function local:f() { (C) }; for $i in //a[@k = local:f()] return $i",
    "declare function local:f($x) { $x }; for $i in //a[@k = local:f((C))] return $i",
    "<r>{ for $i in //a return (C) }</r>",
    "for $i in //a return <r>{$i ! (@k, (C))}</r>",
)
GUARDED = (
    "//a[if (@k) then exists((C)) else false()]",
    "for $i in //a return <r>{switch ($i/@k) case 'x' return (C) default return $i}</r>",
    "for $i in //a return <r>{typeswitch ($i) case text() return (C) default return $i}</r>",
    "for $i in //a return <r>{try { (C) } catch * { $i }}</r>",
    "for $i in //a return <r>{try { error() } catch * { (C) }, $i}</r>",
    "declare function local:f() { (C) }; for $i in //a return if ($i/@k) then $i else local:f()",
    "declare function local:f() { (C) }; //a",
    "declare variable $c := (C); //a",
)
TYPES = (
    *("xs:string", "xs:boolean", "xs:integer", "xs:decimal", "xs:double", "xs:date", "xs:dateTime"),
    *("xs:time", "xs:dayTimeDuration", "xs:duration", "xs:gYear", "xs:byte", "xs:hexBinary"),
    *("xs:untypedAtomic", "xs:anyURI", "xs:float", "xs:NCName"),
)
LITERALS = (
    *("0", "1", "-3", "12345678901234567890", "1.5", "0.0", "2e0", "1e308", "()", "true()"),
    *('""', '"a"', '"12"', '" 1.5 "', '"2026-03-02"', '"2026-02-30"', '"P1D"', '"12:30:00"'),
    *('"true"', '"urn:x"', '"é"', '"1000000000000"'),
)
OPERATORS = (
    *("+", "-", "*", "div", "idiv", "mod", "to", "||", ",", "and", "or", "=", "<", "eq", "lt"),
)


class ConstantMaker:
    """Makes random constants as texts."""

    def __init__(self, seed: int, literals: Sequence[str] = LITERALS) -> None:
        self._random = Random(seed)
        self._literals = literals
        names = [*FUNCTIONS, *other_functions()]
        left_out = {"position", "last", *CURRENT, *PATTERN_FUNCTIONS, *NODE_FUNCTIONS}
        left_out |= CONTEXT_FUNCTIONS | OF_PLACES | set(WORD_TESTS)
        self._functions = [name for name in names if name not in left_out]

    def make(self, depth: int = 2) -> str:
        one_of = self._random.choice
        if depth == 0 or self._random.random() < 0.15:
            return one_of(self._literals)
        one = self.make(depth - 1)
        match one_of(("operator", "operator", "cast", "type", "call", "call", "call")):
            case "operator":
                return f"({one} {one_of(OPERATORS)} {self.make(depth - 1)})"
            case "cast":
                return f"({one} {one_of(('cast', 'castable'))} as {one_of(TYPES)}?)"
            case "type":
                return f"({one} {one_of(('treat as', 'instance of'))} {one_of(TYPES)}*)"
            case _:
                name = one_of(self._functions)
                signature = signature_of(name)
                assert signature is not None
                most = len(signature.arguments)
                count = self._random.randint(max(signature.required, min(most, 1)), most)
                return f"{name}({', '.join(self.make(depth - 1) for _ in range(count))})"


def fault_on(expression: Expression, message: int, let: LetClause | None = None) -> str:
    """The error that an expression is on a message; "" if it is none, or takes too much."""
    evaluation, variables = Evaluation(MESSAGES[message]), {}
    try:
        if let is not None:
            variables[let.variable] = evaluation.value(let.value)
        evaluation.value(expression, variables=variables)
    except DynamicError as error:
        return error.code
    except MatchLimitExceeded:
        pass
    return ""


def refusal(text: str) -> ProfileRefused | None:
    try:
        parse_profile(text)
    except ProfileRefused as refused:
        return refused
    return None


@pytest.mark.parametrize("seed", range(6))
def test_a_constant_is_refused_if_it_is_an_error_on_every_message(seed: int) -> None:
    maker, random = ConstantMaker(seed), Random(seed)
    outcomes: Counter[str] = Counter()
    while outcomes.total() < 400:
        constant = maker.make()
        form, guarded = random.choice(FORMS), random.choice(GUARDED)
        try:  # without a look at constants
            expression = parse_expression(constant)
            parse_template(form.replace("C", constant))
            parse_template(guarded.replace("C", constant))
        except ProfileRefused:
            continue
        faults = {fault_on(expression, message) for message in range(len(MESSAGES))}
        assert len(faults) == 1, constant
        fault = faults.pop()
        refused = refusal(form.replace("C", constant))
        said = f"seed {seed}: {form.replace('C', constant)}: {fault or 'a value'}, {refused}"
        assert (refused is not None) == bool(fault), said
        if refused is not None:
            assert refused.code == "error", said
            assert refused.reason.endswith(f"({fault})"), said
            assert refused.column > form.index("C") - len("(("), said
        assert refusal(guarded.replace("C", constant)) is None, said
        outcomes["refused" if fault else "accepted"] += 1
    assert min(outcomes.values()) > 80, outcomes


@pytest.mark.parametrize("seed", range(3))
def test_a_variable_that_is_a_constant_is_followed(seed: int) -> None:
    random = Random(seed)
    maker = ConstantMaker(seed, [*LITERALS, *["$z"] * len(LITERALS)])
    outcomes: Counter[str] = Counter()
    while outcomes.total() < 150:
        bound = f"let $z := {random.choice(LITERALS)} return ({maker.make()})"
        text = f"for $i in //a return <r>{{{bound}}}</r>"
        try:
            expression = parse_expression(bound)
            parse_template(text)
        except ProfileRefused:
            continue
        assert isinstance(expression, Flwor)
        (let,) = expression.clauses
        assert isinstance(let, LetClause)
        faults = {fault_on(expression.result, number, let) for number in range(len(MESSAGES))}
        assert len(faults) == 1, bound
        refused = refusal(text)
        said = f"seed {seed}: {text}: {faults}, {refused}"
        assert (refused.code if refused else "") == ("error" if any(faults) else ""), said
        outcomes["refused" if refused else "accepted"] += 1
    assert min(outcomes.values()) > 30, outcomes


ERRORS = [
    ('//a[@d > xs:date("2026-02-30")]', "FORG0001", 'xs:date("2026-02-30")'),
    ('//a[@d = ("a" cast as xs:byte)]', "FORG0001", "cast"),
    ('//a[@d = xs:time("25:00:00")]', "FORG0001", "xs:time"),
    ('//a[@k = xs:integer("1.5")]', "FORG0001", "xs:integer"),
    ("//a[@k and @d = 1 + xs:integer(xs:date('x'))]", "FORG0001", "xs:date"),
    ("//a[@k or @d = 1 idiv 0]", "FOAR0001", "idiv"),
    ("//a[10 idiv (1 - 1)]", "FOAR0001", "idiv"),
    ("//a[@k = 1 div 0]", "FOAR0001", "div"),
    ("//a[exactly-one(())]", "FORG0005", "exactly-one"),
    ("//a[. = codepoints-to-string(0)]", "FOCH0001", "codepoints"),
    ('//a["a" treat as xs:integer = 1]', "XPDY0050", "treat"),
    ('//a[. = sum(("a", "b"))]', "FORG0006", "sum"),
    ('//a[-("a" cast as xs:integer) = @k]', "FORG0001", "cast"),
    ('//a[. = string-join("a" || xs:date("x"), "b")]', "FORG0001", "xs:date"),
    ('for $i as xs:integer in ("a", "b") return <r>{$i, //a}</r>', "XPTY0004", '("a"'),
    ('for $i in //a let $k as xs:integer := "x" return <r>{$k}</r>', "XPTY0004", '"x"'),
    ("for $i in //a return error()", "FOER0000", "error"),
    ('//a[. = error(QName("urn:e", "e:E1"), "no")]', "Q{urn:e}E1", "error"),
    ('declare variable $d := xs:date("x"); //a[@d = $d]', "FORG0001", "xs:date"),
    ('declare variable $d := 1 + xs:integer("x"); //a[@d = $d]', "FORG0001", "xs:integer"),
    ('for $i in //a let $d := "x" where $i/@d = xs:date($d) return $i', "FORG0001", "xs:date($d)"),
    (
        "for $i in //a let $d := 1, $e := $d - 1 return <r>{$i[@k = 2 idiv $e]}</r>",
        "FOAR0001",
        "idiv $e",
    ),
    (
        'declare function local:f($n as xs:integer) { $n }; //a[@k = local:f("x")]',
        "XPTY0004",
        'local:f("x")',
    ),
    (
        'declare function local:f() as xs:date { "x" }; //a[@k = local:f()]',
        "XPTY0004",
        "local:f()]",
    ),
    (
        (
            "declare function local:f() { local:g() }; "
            "declare function local:g() { 1 idiv 0 }; //a[@k = local:f()]"
        ),
        "FOAR0001",
        "idiv",
    ),
]
FINE = [
    '//a[@d > xs:date("2026-02-28")]',
    "//a[false() and 1 idiv 0 = 1]",
    "//a[true() or exactly-one(())]",
    '//a["x" castable as xs:date or @k]',
    '//a[if ("x" castable as xs:date) then xs:date("x") = @d else @k]',
    "for $i in //a return if ($i/@k) then $i else error()",
    "for $i in //a return <r>{try { xs:date('x') } catch * { $i }}</r>",
    "declare function local:f($n as xs:double) { $n }; //a[@k = local:f(2)]",
    "declare function local:f($n) { local:f($n) }; //a[@k = local:f(2)]",
    "declare function local:f() { error() }; //a[if (@k) then @k = 'x' else local:f()]",
    "//a[@k = xs:integer(@d)]",
    "for $i in //a let $d := 'x' return if ($d castable as xs:date) then error() else $i",
    "for $i in //a return <r>{let $d := 'x' return $d, for $d in $i/@d return xs:date($d)}</r>",
    "for $i in //a return <r>{let $d := 'x' return $d, some $d in $i/@d satisfies xs:date($d)}</r>",
    (
        "declare function local:f($d) { xs:date($d) }; "
        "for $i in //a let $d := 'x' return <r>{local:f($i/@d), $d}</r>"
    ),
    "for $i in //a let $d := 1 group by $k := $i/@k return <r>{exactly-one($d)}</r>",
    "//a[. = round(1.5, 100000000) or . = round(1.5, -100000000)]",
]


@pytest.mark.parametrize(("text", "fault", "place"), ERRORS)
def test_a_constant_that_can_only_be_an_error_is_refused(text: str, fault: str, place: str) -> None:
    refused = refusal(text)
    assert refused is not None
    assert refused.code == "error"
    assert refused.reason.endswith(f"({fault})")
    assert refused.expected
    assert text.index(place) == refused.column - 1


@pytest.mark.parametrize("text", FINE)
def test_what_may_be_a_value_is_accepted(text: str) -> None:
    assert refusal(text) is None


def test_a_refusal_says_where_and_what_was_expected() -> None:
    refused = refusal('for $i in //a\nwhere $i/@d = xs:date("2026-02-30")\nreturn $i')
    assert str(refused).splitlines() == [
        (
            "line 2, column 15: xs:date(\"2026-02-30\") can only be an error: '2026-02-30' is no "
            "xs:date (FORG0001); expected a value of the type, "
            'such as xs:date("2026-03-02") [error]'
        ),
        '    where $i/@d = xs:date("2026-02-30")',
        "                  ^",
    ]


@pytest.mark.parametrize(
    "form",
    [
        '//a[@d > xs:date("WORD")]',
        'for $i in //a where $i/@d = xs:date("WORD") return <r>{$i}</r>',
        'for $i in //a let $d := "WORD" where $i/@d = xs:date($d) return <r>{$i}</r>',
        'declare function local:f($d as xs:date) { $d }; //a[@d = local:f(xs:date("WORD"))]',
        '/o/a[@k]/b[c = "x"][@d = xs:date("WORD") + xs:dayTimeDuration("P1D")]',
    ],
)
def test_a_known_shape_does_not_hide_the_error_of_a_word(form: str) -> None:
    parsed: list[str] = []

    def parse(text: str) -> Expression:
        parsed.append(text)
        return parse_anew(text)

    cache = ShapeCache(parse, parse_template)
    for day in range(10, 28):
        text = form.replace("WORD", f"2026-02-{day}")
        assert cache.read(text).body == parse_anew(text)
    assert not parsed  # all by their shape
    for wrong in ("2026-02-30", "x", "2026-02-30", ""):
        with pytest.raises(ProfileRefused, match="FORG0001"):
            cache.read(form.replace("WORD", wrong))
    assert len(parsed) == 4


@pytest.mark.parametrize(
    "constant",
    [
        "count(1 to 100000000)",
        "codepoints-to-string((100 to 3000, 100 to 3000))",
        "sum((1 to 3000, 1 to 3000))",
        f"replace('{'a' * 9_000}', 'a', '{'b' * 9_000}')",
        f"matches('{'a' * 3_000}', '(a*)*\\1b')",
        f"encode-for-uri('{'é' * 9_000}')",
        "+".join(["xs:dayTimeDuration('P1D')"] * 200),
    ],
)
def test_a_constant_that_costs_much_is_left_to_the_messages(constant: str) -> None:
    constants = constants_in(parse_expression(f"({constant}, 1 idiv 0)"))
    assert constants
    assert first_fault(constants) is None  # as far as that went


def test_what_is_guarded_is_delivered() -> None:
    matcher = Matcher()
    matcher.add("for $i in //a return <r>{try { 1 idiv 0 } catch err:FOAR0001 { $i/@k }}</r>", "p")
    ((delivery,),) = [found.results for found in matcher.deliver(MESSAGES[0])]
    assert delivery == b'<r k="1"/>'


def test_a_refusal_names_things_with_the_prefixes_of_the_profile() -> None:
    refused = refusal('declare namespace m = "urn:m"; //a["x" treat as element(m:b)]')
    assert (
        str(refused)
        .splitlines()[0]
        .startswith('line 1, column 40: "x" treat as element(m:b) can only be an error: ')
    )
