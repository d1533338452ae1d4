"""Results written by a plan are those that the interpreter writes."""

from __future__ import annotations

import pytest

from formats import parse_text
from yfilter.errors import MatchLimitExceeded
from yfilter.language import result
from yfilter.language.evaluation import select
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile
from yfilter.language.result import render
from yfilter.language.result_planner import result_plan

MESSAGES = [
    b'<f><i id="1" k="&quot;&lt;&#10;">a&amp;<t>x</t>b<t y="2"><u/></t><!--c--><?p d?></i><i/></f>',
    b'<f xmlns:m="urn:m" xmlns:n="urn:m"><i id="1"><m:t>x</m:t><n:t a="1">y</n:t><t>z</t></i></f>',
    b'<f xmlns="urn:d"><i><t>x</t></i></f>',
    b'<f xmlns=""><i id="2"/></f>',
    b'<f><i><t xmlns:q="urn:q"/></i></f>',
    b"<i><i><i>deep</i></i><t/></i>",
    b"<?x y?><f><i>]]&gt;\xc3\xa9</i></f><!--after-->",
]
PLANNED = [
    "for $i in //i return $i",
    'for $i in //*:i return <r a="{$i/@id}" b="x{$i/t}y{$i/t/@y}" c="&lt;&quot;"/>',
    "for $i in //*:i return <r>{$i/t}{$i}</r>",
    "for $i in //*:i return <r> &lt;{string($i/t)}: {string($i/@k)}<e>{$i/*}</e><e/></r>",
    "for $i in //*:i[t] return <r>{string($i)}{$i/t/u}</r>",
    'declare namespace m = "urn:m"; for $i in //i return <r s="{$i/m:t}">{$i/m:t}</r>',
    'declare default element namespace "urn:d"; for $i in //i return $i',
    '<all n="1">&gt;{ for $i in //i where $i/@id return <e>{$i/t}</e> }&amp;</all>',
    "<all>{ for $i in /f/i return $i }</all>",
]
OTHERS = [
    "for $i in //i return $i/t",
    "for $i in //i return <r>{$i/@id}</r>",
    "for $i in //i return <r>{$i/t[1]}</r>",
    "for $i in //i return <r>{$i//t}</r>",
    'for $i in //i return <r xmlns="urn:r">{$i}</r>',
    "for $i in //i order by $i/@id return $i",
    "for $i at $n in //i return $i",
    "for $i in //i, $t in $i/t return <r>{$t}</r>",
    "<all>{ for $i in //i return $i }{ for $i in //t return $i }</all>",
    "<all><h/>{ for $i in //i return $i }</all>",
    "/f/i",
]


@pytest.mark.parametrize("text", PLANNED + OTHERS)
def test_a_plan_writes_what_the_interpreter_writes(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = parse_profile(text)
    assert (result_plan(profile) is not None) == (text in PLANNED)
    for message in MESSAGES:
        stream = parse_text(message)
        bindings = [node.number for node in select(matching_path(profile), stream)]
        planned = render(profile, stream, bindings)
        with monkeypatch.context() as patched:
            patched.setattr(result, "is_plain_message", lambda _: False)
            assert render(profile, stream, bindings) == planned


def test_a_message_is_plain_when_only_its_root_declares_namespaces() -> None:
    assert [is_plain_message(parse_text(message)) for message in MESSAGES] == [
        True, True, True, True, False, True, True
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (EvaluationLimits(bytes_max=5_000), "result-too-large"),
        (EvaluationLimits(visits_max=50), "too-many-visits"),
        (EvaluationLimits(tuples_max=3), "too-many-tuples"),
    ],
)
def test_a_plan_keeps_within_the_limits(limits: EvaluationLimits, code: str) -> None:
    copies = "{$i/t}" * 20
    profile = parse_profile(f"for $i in //i return <r>{copies}</r>")
    stream = parse_text(b"<f>" + b"<i><t>some text</t></i>" * 40 + b"</f>")
    bindings = [node.number for node in select(matching_path(profile), stream)]
    with pytest.raises(MatchLimitExceeded) as exceeded:
        render(profile, stream, bindings, limits)
    assert exceeded.value.code == code
