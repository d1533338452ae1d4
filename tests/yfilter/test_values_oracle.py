"""Times, casts, numbers, URIs and conditions: variants by the hundred against Saxon and the
specifications' own examples.

A seed draws the variants of a run from a grammar of each kind (``value_variants.txt``);
``ONYX_VARIANTS=3000 ONYX_VARIANTS_SEED=7`` draws more, and others.  A difference is of one of the
classes in ``value_differences.py``, or a mistake.
"""

from __future__ import annotations

import locale
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from demo.saxon import Form, Saxon, SaxonError
from formats.text import parse_text
from tests.oracle.evaluation import MessageEvaluator
from tests.oracle.reference import ReferenceMatcher
from tests.yfilter.value_differences import class_of
from yfilter import Matcher, ProfileMatch, ProfileRefused
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus
from yfilter.language.query_parser import parse_expression

VARIANTS = int(os.environ.get("ONYX_VARIANTS", "250"))
SEED = os.environ.get("ONYX_VARIANTS_SEED", "")
ERROR = "an error"


def ours(expression: str) -> list[str] | str:
    answer = ours_with_code(expression)
    return ERROR if isinstance(answer, str) else answer


def ours_with_code(expression: str) -> list[str] | str:
    """The strings, or the code of the error."""
    evaluator = MessageEvaluator(parse_text(b"<none/>"), strict=True)
    try:
        value = evaluator.value(parse_expression(expression), Focus(DOCUMENT, 1, 1, {}))
        return [evaluator.string(item) for item in value]
    except DynamicError as error:
        return error.code
    except ProfileRefused as refused:
        return refused.code if refused.code == "unsupported" else f"refused: {refused.reason}"


# -- the grammar


PARAMETERS = {
    "kind": ("date", "time", "dateTime"),
    "span": ("dayTimeDuration", "yearMonthDuration", "duration"),
    "family": ("numbers", "untyped", "texts", "spans", "moments", "others"),
}
UNSEEN = str.maketrans("␠␉␊␍⍽␣␤␥⎵∅", " \t\n\r\u00a0\u2003\u0085\u2028\u3000\u200b")


def grammar(folder: Path) -> dict[str, list[str]]:
    """The alternatives by name; ``[name about @kind]`` is one for each kind."""
    found = {}
    text = (folder / "value_variants.txt").read_text(encoding="utf-8")
    for block in text.strip("\n").split("\n\n"):
        name, *lines = block.split("\n")
        for parameter, values in PARAMETERS.items():
            for value in values:
                alternatives = "¦".join(lines).replace(f"@{parameter}", value).split("¦")
                found[name.strip("[]").replace(f"@{parameter}", value)] = [
                    alternative.translate(UNSEEN) for alternative in alternatives
                ]
    return found


def drawn(rng: Random, name: str, rules: Mapping[str, Sequence[str]]) -> str:
    chosen = rng.choice(rules[name])
    return re.sub("⟨(.+?)⟩", lambda found: drawn(rng, found[1], rules), chosen)


KINDS = (
    *("times", "durations", "dates of mail", "casts", "casts of values", "arithmetic"),
    *("comparisons", "sequences", "strings", "integers as text", "numbers as text", "patterns"),
    *("roundings", "URIs"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_variants_give_what_saxon_gives(kind: str) -> None:
    """Or their difference is of a class that a specification decides."""
    if find_spec("saxonche") is None:
        pytest.skip("saxonche is not installed")
    rng, rules = Random(f"{kind}{SEED}"), grammar(Path(__file__).parent)
    expressions = list(dict.fromkeys(drawn(rng, kind, rules) for _ in range(VARIANTS)))
    counts: Counter[str] = Counter()
    unknown = []
    with Saxon() as saxon:
        saxon.load([b"<none/>"])
        for expression in expressions:
            answer = ours_with_code(expression)
            if answer == "unsupported":
                counts["not in the language"] += 1
                continue
            (found,) = saxon.answers(expression, Form.STRINGS)
            wanted = found if isinstance(found, SaxonError) else [text.decode() for text in found]
            are_errors = isinstance(answer, str) and isinstance(wanted, SaxonError)
            name = "errors" if are_errors else "equal" if answer == wanted else None
            name = name or class_of(expression, answer, wanted)
            counts[name or "unknown"] += 1
            if name is None:
                unknown.append((expression, answer, wanted))
    print(kind, len(expressions), dict(counts))
    assert not unknown, counts
    assert counts["equal"] > len(expressions) // 6


# -- recorded answers: examples of F&O 3.1 and RFC 3986, and where Saxon is not the authority


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("parse-ietf-date('Wed, 06 Jun 1994 07:29:35 GMT')", "1994-06-06T07:29:35Z"),
        ("parse-ietf-date('Wed, 6 Jun 94 07:29:35 GMT')", "1994-06-06T07:29:35Z"),
        ("parse-ietf-date('Wed Jun 06 11:54:45 EST 2013')", "2013-06-06T11:54:45-05:00"),
        ("parse-ietf-date('Sunday, 06-Nov-94 08:49:37 GMT')", "1994-11-06T08:49:37Z"),
        ("parse-ietf-date('Wed, 6 Jun 94 07:29:35 +0500')", "1994-06-06T07:29:35+05:00"),
        ("parse-ietf-date('Tue, 01 Dec 2026 10:00:00 -0500 (EST)')", "2026-12-01T10:00:00-05:00"),
        ("parse-ietf-date('Tue, 01 Dec 2026 10:00')", "2026-12-01T10:00:00Z"),
        ("parse-ietf-date('1 Dec 26 10:00:00.1234567 +530')", "1926-12-01T10:00:00.1234567+05:30"),
        ("parse-ietf-date('31 Dec 1999 24:00 GMT')", "2000-01-01T00:00:00Z"),
        ("xs:time('10:00:00.1234567891') = xs:time('10:00:00.1234567892')", "false"),
        ("xs:time('00:00:00Z') + xs:dayTimeDuration('PT0.0000000001S')", "00:00:00.0000000001Z"),
        ("xs:time('23:59:59.9') + xs:dayTimeDuration('PT0.2S')", "00:00:00.1"),
        ("round(35.425e0, 2)", "35.42"),
        ("round-half-to-even(35612.25, -2)", "35600"),
        ("format-number(xs:float('2.675'), '0.00')", "2.68"),
        ("format-number(14, '0.0e')", "14.0e"),
        ("resolve-uri('/../../x', 'https://ex.org/a/b')", "https://ex.org/x"),
        ("resolve-uri('?', 'http://a/b/c/d')", "http://a/b/c/d?"),
        ("resolve-uri('a//b', 'http://a/c')", "http://a/a//b"),
        ("resolve-uri('x')", ERROR),
        ("resolve-uri('http://a/b')", "http://a/b"),
        ("lang('', <a/>)", "false"),
        ("resolve-uri('x', ())", ERROR),
        ("resolve-uri('//[x', 'http://a/b')", ERROR),
        ("resolve-uri('?a[]=1', 'http://[::1]/b')", "http://[::1]/b?a[]=1"),
        ("xs:double('1_0')", ERROR),
        ("15 idiv xs:float('0.1')", "150"),
        ("1 idiv 5e-324", ERROR),
        ("xs:float('0.1') + 1 div 3", "0.43333334"),
        ("xs:dayTimeDuration('PT1000S') * xs:float('0.1')", "PT1M40.00000149011612S"),
        ("xs:dayTimeDuration('P99999999999999999999D')", ERROR),
        ("format-number(xs:float('3.4e38'), '%0')", "%Infinity"),
        ("format-integer(1234567, '#,##0')", "1,234,567"),
        ("format-integer(1234567, '0,00,000')", "12,34,567"),
        ("format-integer(602347826, '#(000)000-000')", "602)347-826"),
        ("format-integer(-5, '001;o')", "-005th"),
        ("format-integer(12, '𝟎')", "𝟏𝟐"),
        ("format-integer(2024, 'I')", "MMXXIV"),
        ("format-integer(99999999999999999999, 'I')", "99999999999999999999"),
        ("format-integer(703, 'a', 'de')", "aaa"),
        ("format-integer(22, 'Ww;o')", "Twenty-Second"),
        ("format-integer(1.5, '1')", ERROR),
        ("format-integer(1, '#0#')", ERROR),
        ("format-integer(1, '1;o()')", ERROR),
        ("xs:hexBinary('0a') < xs:hexBinary('0b')", "true"),
        ("max((xs:base64Binary('YWI='), xs:base64Binary('YWM=')))", "YWM="),
        ("for $d in (xs:duration('P1D'), xs:duration('P2D')) order by $d return 1", ERROR),
        ("substring('abc', -1 div 0e0)", "abc"),
        ("substring('abc', -1 div 0e0, 1 div 0e0)", ""),
        ("substring('abc', ())", ERROR),
        ("string-join((5, true(), xs:date('2026-01-01')), '|')", "5|true|2026-01-01"),
        ("string(1e-7 cast as xs:token)", "1.0E-7"),
        ("xs:token(xs:untypedAtomic(' a  b '))", "a b"),
        ("xs:language(xs:duration('P1M'))", ERROR),
        ("xs:time('10:00:00') castable as xs:gYear", "false"),
        ("'a\u00a0' castable as xs:QName", "false"),
        ("QName('u', ' a')", ERROR),
        ("local-name-from-QName(QName('u', 'p:漢\u3099'))", "漢\u3099"),
        ("lang(5, <a xml:lang='en'/>)", ERROR),
        ("count(distinct-values((9007199254740993, 9007199254740992e0)))", "1"),
        ("contains-token(('A', ' b c '), ' c ')", "true"),
        ("contains-token(('A', 'b'), 'a')", "false"),
        ("contains-token('a b', 'a b')", "false"),
        ("contains-token('a', ' ')", "false"),
        ("<a>x</a> = xs:QName('x')", "true"),
        ("<a>p:x</a> = QName('urn:p', 'p:x')", ERROR),
    ],
)  # fmt: skip
def test_recorded_answers(expression: str, wanted: str) -> None:
    assert ours(expression) == (wanted if wanted == ERROR else [wanted])


# -- conditions, by both engines


MESSAGE = (
    b'<r><i id="1" roles="a,b" n="0" day="2026-01-01"/><i id="2" roles=""><b>0</b><b/></i></r>'
)


@pytest.mark.parametrize(
    ("condition", "of_one", "of_two"),
    [
        ("tokenize($i/@roles, ',')", ERROR, False),
        ("xs:date($i/@day)", ERROR, False),
        ("$i/b/string()", False, ERROR),
        ("data($i/b)", False, ERROR),
        ("($i/@n, 1)", True, True),
        ("(1, $i)", ERROR, ERROR),
        ("$i/b", False, True),
        ("$i/b[1]/string()", False, True),
        ("xs:dayTimeDuration('P1D')[$i/@n]", ERROR, False),
        ("$i/@n/number()", False, False),
        ("distinct-values(('x', $i/@n))", ERROR, True),
    ],
)
def test_several_values_or_a_date_are_no_condition(
    condition: str, of_one: bool | str, of_two: bool | str
) -> None:
    truths = dict(zip("12", (of_one, of_two), strict=True))
    held = [name for name, truth in truths.items() if truth is True]
    failed = [name for name, truth in truths.items() if truth is False]
    answers = {
        f"for $i in //i where {condition} return <v>{{string($i/@id)}}</v>": held,
        f"for $i in //i return <v>{{if ({condition}) then $i/@id/string() else ()}}</v>": [
            "" if truth is False else name for name, truth in truths.items() if truth != ERROR
        ],
        f"for $i in //i where ({condition}) and $i/@id return <v>{{string($i/@id)}}</v>": held,
    }
    if not condition.startswith("xs:"):  # of which not() is refused
        answers[f"for $i in //i where not({condition}) return <v>{{string($i/@id)}}</v>"] = failed
    for profile, wanted in answers.items():
        results = [f"<v>{text}</v>".encode() for text in wanted]
        for engine in (Matcher, ReferenceMatcher):
            assert [
                each.replace(b"<v/>", b"<v></v>") for each in _results(engine, profile)
            ] == results


def _results(
    engine: type[Matcher] | type[ReferenceMatcher], profile: str, message: bytes = MESSAGE
) -> list[bytes]:
    matcher = engine()
    matcher.add(profile)
    matches = [match for match in matcher.match(message) if isinstance(match, ProfileMatch)]
    return [result for match in matches for result in match.results()]


@pytest.mark.parametrize(
    ("profile", "shown"),
    [
        ("//a\u200b[b]", "U+200B ZERO WIDTH SPACE has no meaning here"),
        ("//a[\u00a0b]", "U+00A0 NO-BREAK SPACE has no meaning here"),
        (" \ufeff//a", "unexpected U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    ],
)
def test_a_refusal_names_what_nobody_sees(profile: str, shown: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        Matcher().add(profile)
    assert shown in refused.value.reason


def test_contains_token_does_not_ask_the_locale() -> None:
    before = locale.setlocale(locale.LC_COLLATE)
    try:
        locale.setlocale(locale.LC_COLLATE, "C.UTF-8")
        assert ours("contains-token('a b', 'b')") == ["true"]
    finally:
        locale.setlocale(locale.LC_COLLATE, before)


# -- ticks that are nanoseconds apart, in everything that compares, orders, groups or reckons


TICKS = (
    b'<f><t at="2026-03-09T08:00:01.200000007Z" u="08:00:01.1" d="PT0.000000001S" id="a"/>'
    b'<t at="2026-03-09T09:00:01.200000009+01:00" u="08:00:01.100000Z" d="PT1S" id="b"/>'
    b'<t at="2026-03-09T08:00:01.2Z" u="08:00:01.100000001" d="PT0.000000001S" id="c"/>'
    b'<t at="2026-03-09T08:00:01.200000007" u="09:00:01.1+01:00" d="PT2S" id="d"/></f>'
)


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [
        ("for $a in //t where $a/@at = xs:dateTime('2026-03-09T08:00:01.2Z') return $a/@id", "c"),
        ("//t[@at > xs:dateTime('2026-03-09T08:00:01.200000007Z')]/@id", "b"),
        ("for $a in //t/@at, $b in //t where $b/@at = xs:dateTime($a) return 1", "111111"),
        ("for $a in //t where $a/@at = //t[@id = 'a']/xs:dateTime(@at) return $a/@id", "ad"),
        ("for $a in //t where $a/@u < xs:time('08:00:01.100000001') return $a/@id", "abd"),
        ("for $a in //t order by xs:dateTime($a/@at) descending, $a/@id return $a/@id", "badc"),
        ("for $a in //@at group by $k := xs:dateTime($a) order by $k return count($a)", "121"),
        ("for $a in //t let $k := xs:time($a/@u) group by $k order by $k return count($a)", "31"),
        ("count(distinct-values(//t/xs:dayTimeDuration(@d)))", "3"),
        ("sum(//t/xs:dayTimeDuration(@d))", "PT3.000000002S"),
        ("max(//t/xs:dateTime(@at)) - min(//t/xs:dateTime(@at))", "PT0.000000009S"),
        ("//t[1]/seconds-from-dateTime(@at)", "1.200000007"),
        ("//t[3]/(xs:time(@u) + xs:dayTimeDuration(@d))", "08:00:01.100000002"),
        ("//t[2]/adjust-dateTime-to-timezone(@at)", "2026-03-09T08:00:01.200000009Z"),
    ],
)  # fmt: skip
def test_ticks_are_told_apart(profile: str, wanted: str) -> None:
    text = f"<r>{{for $x in ({profile}) return string($x)}}</r>"
    for engine in (Matcher, ReferenceMatcher):
        (result,) = _results(engine, text, TICKS)
        assert result.decode().replace(" ", "") == f"<r>{wanted}</r>"
