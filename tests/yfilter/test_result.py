"""Results written out in full; tests/demo/test_oracle.py compares random ones with the oracle."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from tests.yfilter.evaluated import select
from yfilter.compiled_deciders import render
from yfilter.errors import MatchLimitExceeded
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile

MESSAGE = (
    b'<?pi x?>\n<r xmlns:p="urn:p" xmlns="urn:d" p:n="1"><a n="1" m="&lt;">x<!--c--> y</a>'
    b'<a n="2"><b xmlns="">z</b></a></r>\n<!--end-->'
)


def _results(text: str, limits: EvaluationLimits | None = None) -> list[str]:
    profile = parse_profile(f'declare default element namespace "urn:d"; {text}')
    stream = parse_text(MESSAGE)
    bindings = [node.number for node in select(matching_path(profile), stream)]
    results = render(profile, stream, bindings, limits or EvaluationLimits())
    return [result.decode() for result in results]


@pytest.mark.parametrize(
    ("profile", "results"),
    [
        ("//a[@n = 2]", [MESSAGE.decode()]),
        ("//a[@n = 3]", []),
        # one document for each item, in order
        (
            "for $a in //a return <n>{$a/@n}</n>",
            ['<n xmlns="urn:d" n="1"/>', '<n xmlns="urn:d" n="2"/>'],
        ),
        (
            "for $b in //Q{}b return $b",
            ['<b xmlns:p="urn:p">z</b>'],  # no declaration of "": there is none in scope
        ),
        ("for $a in //a return $a/Q{}b", ['<b xmlns:p="urn:p">z</b>']),
        ("for $a in //a, $b in $a/Q{}b where $b = 'y' return $a", []),
        ("for $a in //a return $a/../..", [MESSAGE.decode()] * 2),
        # content
        (
            "for $r in /r return <e xmlns=''>{$r/a/text()}-{string($r/a)}-{$r/a/@n = 1}</e>",
            ["<e>--false</e>"],  # xmlns='' holds for the paths too: no such a
        ),
        (
            "for $r in /r return <Q xmlns:o='urn:o'>{$r/a/text()}-{string($r/a)}-{$r/a/@n = 1}</Q>",
            ['<Q xmlns:o="urn:o" xmlns="urn:d">x y-x y-true</Q>'],
        ),
        (
            """for $r in /r return <e>{for $a in $r/a return string($a/@n)}
            {for $a in $r/a return $a/@n = 1}{1}{2}</e>""",
            ['<e xmlns="urn:d">1 2true false12</e>'],
        ),
        (
            "for $r in /r return <e a='{$r/a/@n},{$r/a[@n = 3]}' b='{1000000}{{'>{' '}</e>",
            ['<e xmlns="urn:d" a="1 2," b="1000000{"> </e>'],
        ),
        # attributes of the message: the first of a name counts, prefixes stay apart
        (
            "for $r in /r return <e n='0'>{$r/a/@*}{$r/@*}!</e>",
            ['<e xmlns="urn:d" xmlns:p="urn:p" n="0" m="&lt;" p:n="1">!</e>'],
        ),
        (
            "for $r in /r return <e xmlns:p='urn:o' p:m='0'>{$r/@*}</e>",
            ['<e xmlns:p="urn:o" xmlns="urn:d" xmlns:p1="urn:p" p:m="0" p1:n="1"/>'],
        ),
        # copies keep their meaning and their namespaces
        (
            "for $a in //a[Q{}b] return <e>{$a}</e>",
            ['<e xmlns="urn:d"><a xmlns:p="urn:p" n="2"><b xmlns="">z</b></a></e>'],
        ),
        (
            "for $a in //a[Q{}b] return <o:e xmlns:o='urn:o'>{$a/Q{}b}</o:e>",
            ['<o:e xmlns:o="urn:o"><b xmlns:p="urn:p">z</b></o:e>'],
        ),
        (
            "for $a in //a[@n = 1] return <e>{$a/../..}</e>",
            [
                f'<e xmlns="urn:d">{MESSAGE.decode()}</e>'.replace(
                    ' xmlns="urn:d" p:', " p:"
                ).replace("\n", "")
            ],
        ),
        # the enclosing constructor
        (
            "<all of='{/r/@*}'> n: {for $a in //a return $a/@n = 2}{//a[. = 'z']/@n = 2}</all>",
            ['<all xmlns="urn:d" of="1"> n: false truetrue</all>'],
        ),
        ("<all>{for $a in //a return $a/Q{}c}</all>", []),
        ("<all>{for $a in //a where $a/@n = 3 return <n/>}</all>", []),
    ],
)
def test_results(profile: str, results: list[str]) -> None:
    assert _results(profile) == results


def test_the_engines_bindings_decide_about_the_first_clause() -> None:
    profile = parse_profile(
        "for $a in //*:a let $n := string($a/@n) where $n != '' return <n v='{$n}'/>"
    )
    stream = parse_text(MESSAGE)
    assert render(profile, stream, [2, 1, 2]) == [b'<n v="1"/>', b'<n v="2"/>']
    assert render(profile, stream, [2]) == [b'<n v="2"/>']
    assert render(profile, stream, [0]) == []  # the where clause is checked again
    assert render(profile, stream, []) == []


@pytest.mark.parametrize(
    ("profile", "limits", "code"),
    [
        (
            "for $a in //*, $b in //*, $c in //* return $c",
            EvaluationLimits(tuples_max=4 + 16 + 63),
            "too-many-tuples",
        ),
        ("for $a in //* return $a", EvaluationLimits(bytes_max=130), "result-too-large"),
        (
            "for $a in //* return <e>{string($a)}</e>",
            EvaluationLimits(bytes_max=66),
            "result-too-large",
        ),
        (
            "for $a in //* return <e v='{//@*}'/>",
            EvaluationLimits(bytes_max=70),
            "result-too-large",
        ),
        ("for $a in //* return <e>{//*}</e>", EvaluationLimits(visits_max=15), "too-many-visits"),
    ],
)
def test_the_cost_is_bounded(profile: str, limits: EvaluationLimits, code: str) -> None:
    with pytest.raises(MatchLimitExceeded) as caught:
        _results(profile, limits)
    assert caught.value.code == code


def test_tuples_up_to_the_bound() -> None:
    profile = "for $a in //*, $b in //*, $c in //* return $c"
    assert len(_results(profile, EvaluationLimits(tuples_max=4 + 16 + 64))) == 64


def test_attributes_inside_a_default_namespace_do_not_undeclare_it() -> None:
    profile = parse_profile(
        'declare default element namespace "urn:d"; '
        'for $a in /a return <out x="1"><in y="2">{$a/b}</in></out>'
    )
    stream = parse_text(b'<a xmlns="urn:d"><b/></a>')
    (result,) = render(profile, stream, [0])
    assert result == b'<out xmlns="urn:d" x="1"><in y="2"><b/></in></out>'


def test_what_an_enclosing_constructor_holds_is_evaluated_once() -> None:
    text = "<r>{for $a in //a, $b in //a return <b>{$a/@n}{$b/@m}</b>}{count(//a)}</r>"
    (result,) = _results(text, EvaluationLimits(tuples_max=6))
    assert result.count("<b ") == 4
    assert result.endswith("2</r>")


def test_a_constructed_element_beyond_the_limits_is_a_limit() -> None:
    text = "for $b in //Q{}b return <r>{count(<x>{1 to 40000}</x>/x)}</r>"
    with pytest.raises(MatchLimitExceeded) as exceeded:
        _results(text, EvaluationLimits(bytes_max=100_000))
    assert exceeded.value.code == "result-too-large"
