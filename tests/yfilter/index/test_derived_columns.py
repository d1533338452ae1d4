"""Derived columns: computed values whose constants are indexed, held against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import count
from math import inf, nan
from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.interpreted import matches
from yfilter import Matcher, MatchLimits, ProfileRefused
from yfilter.language.numbers import as_double, is_exact
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile

TEXTS = ("d", "@c", "(d)", "translate(d, 'AB', 'ab')", "normalize-space(d)", "normalize-space()")
TEXTS += ("lower-case(@c)", "substring(d, 1, 2)", "substring-before(d, ' ')", "concat(@c, e)")
TEXTS += ("string-join(d, ',')", "string(e)", "*[1]", "preceding-sibling::*[1]/@c", "d/text()")
TEXTS += ("following::d", "@*", "if (@c) then d else e", "(d, e)", "upper-case(d[2])")
NUMBERS = (
    "e",
    "number(e)",
    "e * 2",
    "e + @c",
    "count(f)",
    "count(d | e)",
    "sum(e)",
    "-e",
    "max(e)",
)
NUMBERS += ("string-length(d)", "round(e)", "e cast as xs:decimal", "e mod 2", "xs:double(@c)")
NUMBERS += ("xs:integer(e) * 0.1", "0.1 * count(f) + 0.2", "e div 3", "count(preceding-sibling::i)")
INTEGERS = [
    f"{about} {operator} {constant}"
    for about in ("position()", "count(f)", "string-length(d)")
    for operator in ("mod", "*", "idiv", "-")
    for constant in (1, 2, 3, 3)
]
ARITHMETIC = [
    form.format(about=about)
    for about in ("e", "@c", "number(d[1])", "count(f)", "string-length(@c)", "sum(e)", "sum(d)")
    for form in (
        *("{about} * 3", "{about} * -0.5", "7 - {about}", "{about} idiv 2", "{about} idiv 0.3"),
        *("-({about} + 1) div 3", "abs({about} - 1)", "abs(2 * {about})", "({about} + 1) mod 3"),
        *("{about} div 0", "{about} * 0", "{about} * 0.1 + 0.2", "({about} idiv 2) * 3 - 1"),
    )
]
ENDS = ("substring(d, 2)", "substring-before(@c, 'b')", "substring-after(d, 'a')")
ENDS += ("substring(d, string-length(d) - 1)", "substring-after(d, ' ')", "substring-before(d, '')")
STRINGS = ("", "a", "b", "ab", " a ", "A", "ß", "aB 7", "7", "-0", "NaN", "INF", "1e1", "x y")
DATES = ("2026-01-01", "2026-01-01Z", "2026-01-01+05:00", " 2025-12-31 ", "2026-01-01T00:00:00")
DATES += ("2026-01-01T00:00:00.0000000001Z", "2025-12-31T19:00:00Z", "2026-02-30")
MOMENTS = ("@c", "d", "xs:date(@c)", "xs:dateTime(@c)", "(@c, d)", "xs:date(d[1])", "concat(@c, d)")
PATTERNS = ("a", "[0-9]", " ", "b?", "^a.*$", "AB")
LITERALS = ("0", "1", "2", "7", "-1", "0.3", "0.5", "1e1", "14", "0.10000000000000000001")


def of_text(rng: Random) -> str:
    """A condition that differs from others in the constants of functions of a text."""
    value = rng.choice(("d", "@c", "string(e)", "normalize-space(d)", "d[1]", "."))
    parts = ("", "a", "b", " ", "ab", "B", "ßa", "x y", "7 ", "1")
    for _ in range(rng.choice((1, 1, 2, 3))):
        one, other, number = rng.choice(parts), rng.choice(parts), rng.choice("-10123")
        value = rng.choice(
            (
                f"translate({value}, '{one}', '{other}')",
                f"concat('{one}', {value}, '{other}')",
                f"substring-before({value}, '{one}')",
                f"substring-after({value}, '{one}')",
                f"substring({value}, {rng.choice(('0', '1', '2', '1.5', '-1'))}, {number})",
                f"substring({value}, {number})",
                f"substring({value}, string-length({value}) - {number})",
                f"normalize-space({value})",
                f"replace({value}, '{one or 'a'}', '{one[:1] and other[: len(one)]}')",
            )
        )
    test = rng.choice(("contains", "starts-with", "ends-with"))
    relation, literal = rng.choice(("=", "<", "<=", ">", ">=")), rng.choice(LITERALS)
    letters, part = rng.choice(parts), rng.choice(parts)
    found = rng.choice(
        (
            f"{value} = '{part}'",
            f"'{part}' eq {value}",
            f"{test}({value}, '{part}')",
            f"string-length({value}) {relation} {literal}",
            (
                f"string-length({value}) - string-length(translate({value}, '{letters}', '')) "
                f"{relation} {literal}"
            ),
            f"count(tokenize({value}, '{part or 'a'}')) {relation} {literal}",
            f"{test}(translate(tokenize({value}, ' '), '{part}', 'b'), '{letters}')",
        )
    )
    return f"not({found})" if rng.random() < 0.3 else found


def of_pairs(rng: Random) -> str:
    """A comparison of two numbers, to one of which a constant is added."""
    sign, relation = rng.choice("+-"), rng.choice(("=", "<", "<=", ">", ">="))
    added = f"{sign} {rng.choice((*LITERALS, '0.1', '0', '2147483648'))}"
    one, other = (rng.choice(("e", "d", "@c", "i/@c", "e[2]")) for _ in range(2))
    sides = [f"$v {relation} $w {added}", f"$v {added} {relation} $w"]
    return rng.choice(
        (
            f"some $v in {one}, $w in {other} satisfies {rng.choice(sides)}",
            f"{one} {relation} {other} {added}",
            f"{one} {added} {relation} {other}",
        )
    )


def condition(rng: Random) -> str:
    """A comparison of a computed value with a constant, or a text test of it."""
    text, number, pattern = rng.choice(TEXTS), rng.choice(NUMBERS), rng.choice(PATTERNS)
    constant, literal = f'"{rng.choice(STRINGS)}"', rng.choice(LITERALS)
    relation = rng.choice(("=", "<", "<=", ">", ">=", "!="))
    test = rng.choice(("contains", "starts-with", "ends-with", "contains-token"))
    return rng.choice(
        (
            f"{text} = {constant}",
            f"{constant} = {text}",
            f"{text} eq {constant}",
            f"{text} {relation} {literal}",
            f"{text} = ({constant}, 'b', 'q')",
            f"{test}({text}, {constant})",
            f"matches({text}, '{rng.choice(('^a', '[0-9]', 'B.', 'x y$'))}')",
            f"{number} {relation} {literal}",
            f"{literal} {relation} {number}",
            f"{number} {rng.choice(('eq', 'lt', 'ge'))} {literal}",
            f"{number} = {constant}",
            f"some $v in {rng.choice(('d', './/d', '(d, e)'))} satisfies $v {relation} {literal}",
            f"some $v in {rng.choice(('i', '*', '//i'))} satisfies ($v/d = {constant} and $v/e)",
            f"some $v in d, $w in {rng.choice(('e', '@c', '$v/..'))} satisfies $v {relation} $w",
            f"let $v := {rng.choice(('d', 'i/d'))} return {test}($v[1], {constant})",
            f"let $v := {rng.choice(('d', 'i'))} where $v/@c return $v = {constant}",
            f"{rng.choice(('count(//i)', 'sum(//e)', 'string-length(/r)'))} {relation} {literal}",
            f"{rng.choice(INTEGERS)} {relation} {rng.choice('0123')}",
            f"lang('{rng.choice(('de', 'EN', 'de-at', 'd', ''))}')",
            f"not({rng.choice((f'{text} = {constant}', f'{test}({text}, {constant})'))})",
            f"not({rng.choice((f'{text} eq {constant}', f'count(f) = {literal}', 'e = 7'))})",
            f"not(exists(d[some $v in . satisfies $v = {constant}]))",
            f"not({rng.choice((number, 'e', 'd', '@c', './/e'))} {rng.choice('<>')} {literal})",
            f"every $v in {rng.choice(('e', './/e', 'd'))} satisfies $v {relation} {literal}",
            f"every $v in {rng.choice(('i', '*'))} satisfies $v/@c {relation} {literal}",
            f"every $v in d satisfies $v = {constant}",
            f"every $v in d satisfies {test}($v, {constant})",
            f"if (e > 1) then d = {constant} else {test}({text}, {constant})",
            f"if ({test}(@c, {constant})) then {rng.choice(('true()', 'false()', 'e > 1'))} else d",
            f"let $v := {text} return {test}($v, {constant}) or $v = {constant}",
            f"compare({rng.choice(('@c', 'd[1]'))}, {constant}) {relation} 0",
            f"e = 0 to {literal.rpartition('.')[2] if literal.isdigit() else 3}",
            f"data(d) {rng.choice(('eq', '='))} {constant} or head(e) = {literal}",
            f"try {{ xs:integer(e) = {literal} }} catch * {{ false() }}",
            f"count(e[. > {literal}]) > {rng.choice('01')}",
            f"string-length(substring-after(d, {constant})) > {rng.choice('01')}",
            f"e {rng.choice(('mod', 'idiv'))} {rng.choice(('2', 'e', '0', '@c'))} = {literal}",
            f"{rng.choice(ARITHMETIC)} {relation} {literal}",
            f"{rng.choice(ENDS)} = {constant}",
            f"not({rng.choice(ARITHMETIC)} {relation} {literal})",
            (
                f"count({rng.choice(('e', 'd', './/e', '*'))}[{rng.choice(('.', '@c', '. * 2'))} "
                f"{rng.choice('<>')} {literal}]) {relation} {rng.choice('0123')}"
            ),
            f"i[count(@c[. {rng.choice('<>')} {literal}]) {relation} {rng.choice('01')}]",
            f"every $v in {rng.choice(('e', 'i/d', '*'))} satisfies {test}($v, {constant})",
            f"not({rng.choice(('d', './/d', 'd[2]'))}[not({test}(., {constant}))])",
            (f"{test}(replace({rng.choice(('d', '@c', 'e[1]'))}, '{pattern}', 'b'), {constant})"),
            f"replace({rng.choice(('@c', 'd'))}, '{pattern}', '') = {constant}",
            (
                f"some $v in e, $w in {rng.choice(('d', '@c', 'e'))} satisfies "
                f"$v {rng.choice('-*+')} $w {relation} {literal}"
            ),
            (
                f"some $v in d, $w in {rng.choice(('e', 'i', '*/e'))} satisfies "
                f"({test}($v, {constant}) and $w {relation} {literal})"
            ),
            f"some $v in d, $w in @c satisfies {test}(concat($v, $w), {constant})",
            (
                f"{rng.choice(('e', '@c'))} = {rng.choice('01')} to {rng.choice('12')} + "
                f"{rng.choice(('1', '99'))}"
            ),
            (
                f"{rng.choice(('e', '@c', 'number(d[1])'))} mod {rng.choice('123')} {relation} "
                f"{rng.choice('012')}"
            ),
            f"{rng.choice(MOMENTS)} {relation} xs:date('{rng.choice(DATES[:4])}')",
            f"xs:dateTime('{rng.choice(DATES[4:7])}') {relation} {rng.choice(MOMENTS)}",
            (
                f"xs:date({rng.choice(('@c', 'd'))}) - xs:date('{rng.choice(DATES[:4])}') "
                f"{relation} xs:dayTimeDuration('{rng.choice(('P0D', 'PT5H', '-P1D'))}')"
            ),
            (
                f"xs:dateTime('{rng.choice(DATES[4:7])}') - xs:dateTime(@c) {relation} "
                f"xs:dayTimeDuration('{rng.choice(('P0D', 'PT5H', '-PT0.1S'))}')"
            ),
            f"{rng.choice(('floor', 'ceiling', 'round'))}({rng.choice(ARITHMETIC)}) = {literal}",
            f"({rng.choice('de')}[. > {literal}] | {rng.choice(('d', '@c'))}[. = {constant}])",
            rng.choice(
                ("1", "2", "last()", "last() - 1", "position() < 3", "position() mod 2 = 1")
            ),
        )
    )


def message(rng: Random) -> str:
    def value() -> str:
        return rng.choice((*STRINGS, *LITERALS, *DATES))

    def item(depth: int) -> str:
        parts = [f"<d>{value()}</d>" for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        parts += [f"<e>{value()}</e>" for _ in range(rng.choice((0, 1, 1, 2)))]
        parts += ["<f/>"] * rng.choice((0, 0, 1, 3))
        parts += [value(), "<!--x-->"] * rng.choice((0, 0, 1))
        if depth and rng.random() < 0.4:
            parts.append(item(depth - 1))
        rng.shuffle(parts)
        attribute = f' c="{value()}"' if rng.random() < 0.7 else ""
        if rng.random() < 0.2:
            attribute += f' xml:lang="{rng.choice(("de", "de-AT", "en", "En-gb", ""))}"'
        return f"<i{attribute}>{''.join(parts)}</i>"

    return f"<r>{''.join(item(2) for _ in range(rng.randint(1, 4)))}</r>"


def profile(rng: Random, form: Callable[[Random], str] = condition) -> str:
    """One that the parser takes: it refuses to compare texts with numbers."""
    while True:
        drawn = drawn_profile(rng, form)
        try:
            parse_profile(drawn)
        except ProfileRefused:
            continue
        return drawn


def drawn_profile(rng: Random, form: Callable[[Random], str]) -> str:
    asked = "".join(f"[{form(rng)}]" for _ in range(rng.choice((1, 1, 1, 2))))
    if rng.random() < 0.2:
        asked = f"[{form(rng)} or {condition(rng)}]"
    return (
        rng.choice(("/r/i", "//i", "//*", "/r//i", "/*/*/i")) + asked + rng.choice(("", "", "/d"))
    )


@pytest.mark.parametrize("form", [condition, of_text, of_pairs])
@pytest.mark.parametrize("seed", range(8))
def test_profiles_match_as_the_interpreter_says_while_they_come_and_go(
    seed: int, form: Callable[[Random], str]
) -> None:
    rng = Random(seed)
    matcher = Matcher()
    texts: dict[str, str] = {}
    for _ in range(6):
        for gone in rng.sample(sorted(texts), len(texts) // 3):
            matcher.remove(gone)
            del texts[gone]
        for _ in range(25):
            text = profile(rng, form)
            texts[matcher.add(text)] = text
        for _ in range(3):
            stream = parse_text(message(rng).encode())
            wanted = {name for name, text in texts.items() if matches(text, stream)}
            assert set(matcher.matched_ids(stream)) == wanted, seed
    for name in texts:
        matcher.remove(name)
    sizes = matcher.statistics()
    assert (sizes.operators, sizes.index_atoms, sizes.index_attributes) == (0, 0, 0)


@pytest.mark.parametrize(
    "form",
    [
        *("contains(d, 'v{}')", "string-length(d) > {}", "number(e) * 2 = {}", "sum(e) < {}", "{}"),
        *("e idiv {} = 1", "e * {} > 7", "{} - e >= 2", "abs(e - {}) < 1", "sum(e) + {} > 9"),
        *("count(d) * {} > 3", "e div {} != 2", "(@k + 1) mod {} > 1"),
        *("@k mod {} = 1", "e mod {} = 1", "count(e[. > {}]) > 1", "count(e[. < {}]) <= 2"),
        *("some $x in e, $y in d satisfies $x - $y > {}", "translate(d, '{}', 'x') = 'vx'"),
        *("string-length(translate(d, '{}', '')) > 2", "concat(d, '-{}') = 'a-b'"),
        *("contains(concat(d, '-{}'), 'v')", "starts-with(substring-after(d, 'v{}'), ' ')"),
        *("normalize-space(concat(d, ' {}')) = 'v 7'", "substring(d, {}, 3) = 'and'"),
        *("count(tokenize(d, 'v{}')) > 1", "replace(d, 'v{}', '') = 'v'", "floor(e div {}) = 3"),
        "string-length(d) - string-length(translate(d, '{}', '')) > 1",
        "xs:date(d) - xs:date('2020-01-01') > xs:dayTimeDuration('P{}D')",
    ],
)
def test_profiles_of_one_form_share_a_column_and_none_is_verified(form: str) -> None:
    matcher = Matcher()
    for number in range(1, 300):
        matcher.add(f"/r/i[{form.format(number)}]")
    matcher.matched_ids(b"<r><i><d>v12 and v7</d><e>8</e></i><i/></r>")
    assert matcher.statistics().operators <= 2  # the first of a text's functions is a column


def test_an_exact_number_compares_with_exact_constants_as_it_is() -> None:
    rng = Random(3)
    constants = [Decimal(f"{rng.uniform(-9, 9):.{rng.randint(0, 14)}f}") for _ in range(200)]
    for constant in constants:
        near = [constant + Decimal(change) for change in (0, "1e-20", "-1e-20", "1e-30")]
        for number in (*near, Decimal(float(constant))):
            for other in (constant, rng.choice(constants)):
                assert is_exact(other)
                assert (as_double(number) < float(other)) == (number < other)
                assert (as_double(number) == float(other)) == (number == other)
    assert as_double(10**400) == inf
    assert as_double(-(10**400)) == -inf
    assert as_double(nan) != as_double(nan)
    assert not is_exact(10**15)


def test_what_a_column_costs_is_shared_by_those_who_ask_for_it() -> None:
    ticks = count()
    evaluation = EvaluationLimits(seconds_max=10, clock=lambda: next(ticks) / 1_000)
    matcher = Matcher(MatchLimits(evaluation=evaluation))
    for number in range(3):
        matcher.add(f"/r/i[string-length(string-join(.//d, '')) > {number}]", f"{number}")
    matcher.add("/r/i[@k = 1]", "plain")
    matcher.matched_ids(f"<r><i>{'<d/>' * 2_000}</i></r>".encode())
    told = matcher.take_costs(1e-4)
    assert sorted(names for names, _ in told) == [["0"], ["1"], ["2"]]
    assert len({seconds for _, seconds in told}) == 1
    assert matcher.take_costs(1e-4) == []


def test_a_column_that_costs_too_much_leaves_all_who_ask_for_it_in_doubt() -> None:
    evaluation = EvaluationLimits(visits_max=50)
    matcher = Matcher(MatchLimits(evaluation=evaluation))
    for number in range(3):
        matcher.add(f"/r/i[sum(//i/@k) * @k > {number}]", f"costly {number}")
    matcher.add("/r/i[string-length(@k) = 1]", "cheap")
    items = "".join(f'<i k="{number % 10}"/>' for number in range(300))
    found = matcher.deliver(parse_text(f"<r>{items}</r>".encode()))
    told = {matcher.id_of(number): one for one in found for number in one.numbers}
    assert told["cheap"].results
    for number in range(3):
        exceeded = told[f"costly {number}"].exceeded
        assert exceeded is not None
        assert exceeded.code == "too-many-visits"


def test_a_place_in_brackets_asks_for_each_place_that_there_is() -> None:
    matcher = Matcher()
    for place in range(6):
        matcher.add(f"//i[b[{place}]]", str(place))
    assert matcher.matched_ids(b"<r><i><b/><b/><c/><b/></i><i/></r>") == ["1", "2", "3"]


@pytest.mark.parametrize("relation", ["=", "!=", "<"])
def test_a_quotient_of_what_is_no_number_is_an_error_that_not_raises(relation: str) -> None:
    text = f"/r/i[not(number(d[1]) idiv 2 {relation} 14)]"
    matcher = Matcher()
    matcher.add(text, text)
    for value in ("b", "28", "30", "2"):
        stream = parse_text(f"<r><i><d>{value}</d></i></r>".encode())
        assert bool(matcher.matched_ids(stream)) == matches(text, stream), value


@pytest.mark.parametrize("asked", ["e + @c", "@c + e", "e * 2 + @c", "@c - -e", "e + @k", "@k + e"])
@pytest.mark.parametrize("values", [("1", "a"), ("a", "1"), ("1", "2"), ("a",), ("1",), ()])
def test_arithmetic_with_a_missing_value(asked: str, values: tuple[str, ...]) -> None:
    """Nothing comes of it, though the other value is no number; but several values are an error."""
    texts = (f"/r[not({asked} < 10)]", f"/r[{asked} < 10]", f"/r[{asked} >= 10 or @k]")
    inside = "".join(f"<e>{value}</e>" for value in values)
    stream = parse_text(f'<r k="3">{inside}</r>'.encode())
    matcher = Matcher()
    for text in texts:
        matcher.add(text, text)
    wanted = {text for text in texts if matches(text, stream)}
    assert set(matcher.matched_ids(stream)) == wanted
