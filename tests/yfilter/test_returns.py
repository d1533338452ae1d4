"""Operators write the results that the interpreter writes, and each shared one once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from formats import parse_text
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.text import to_text
from tests.examples import examples
from tests.oracle.interpreted_result import Asked, interpreted
from tests.yfilter.evaluated import select
from tests.yfilter.profile_strategies import messages, profiles
from tests.yfilter.projection.test_real_messages import profiles as real_profiles
from tests.yfilter.test_real_messages import FOLDERS, SHARED
from yfilter.compiled_deciders import Renderer, render
from yfilter.errors import MatchLimitExceeded, ProfileRefused
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.operators.compiler import returned

SUFFIXES = (".xml", ".cap", ".rss", ".atom")
MESSAGES = [
    b'<f><i id="1" k="&quot;&lt;&#10;">a&amp;<t>x</t>b<t y="2"><u/></t><!--c--><?p d?></i><i/></f>',
    b'<f xmlns:m="urn:m" xmlns:n="urn:m"><i id="1"><m:t>x</m:t><n:t a="1">y</n:t><t>z</t></i></f>',
    b'<f xmlns="urn:d"><i><t>x</t></i></f>',
    b'<f xmlns=""><i id="2"/></f>',
    b'<f><i><t xmlns:q="urn:q"/></i></f>',
    (
        b'<f xmlns:p="urn:p"><i p:id="1" xmlns="urn:d" id="7"><t xmlns=""><t xmlns:r="urn:r"/></t>'
        b"</i></f>"
    ),
    b"<i><i><i>deep</i></i><t/></i>",
    b'<f><i id="1"><t y="z">x</t><t>z</t></i><i id="x"><t y="x">x</t><u a="x">z</u></i></f>',
    b"<?x y?><f><i>]]&gt;\xc3\xa9</i></f><!--after-->",
    b'<f><i id="3"><t>1</t><t>2.5</t><t> 3 </t><u id="0">x y</u><t/></i><i><t>NaN</t></i></f>',
]
PROFILES = [
    "/f/i",
    "for $i in //i return $i",
    'for $i in //*:i return <r a="{$i/@id}" b="x{$i/t}y{$i/t/@y}" c="&lt;&quot;"/>',
    "for $i in //*:i return <r>{$i/t}{$i}</r>",
    "for $i in //*:i return <r> &lt;{string($i/t)}: {string($i/@k)}<e>{$i/*}</e><e/></r>",
    "for $i in //*:i[t] return <r>{string($i)}{$i/t/u}</r>",
    'declare namespace m = "urn:m"; for $i in //i return <r s="{$i/m:t}">{$i/m:t}</r>',
    'declare default element namespace "urn:d"; for $i in //i return $i',
    '<all n="1">&gt;{ for $i in //i where $i/@id return <e>{$i/t}</e> }&amp;</all>',
    "<all>{ for $i in /f/i return $i }</all>",
    "<all><h/>{ for $i in //i return $i }</all>",
    '<all n="{count(//*)}">{//t/text()}{ for $i in //*:i return string($i/t) }{1}</all>',
    '<all>{ for $i in //*:i return ($i/t, "x") }</all>',
    # what is returned
    "for $i in //i return $i/t",
    "for $i in //i return ($i/t, $i, <e/>)",
    "for $i in //i return if ($i/t = 'x') then $i/t else <none/>",
    "for $i in //i, $t in $i/t return <r>{$t}</r>",
    "for $i in //*:i, $t in $i/t where $t/@y or $i/@id = '1' return <r>{$t/text()}</r>",
    "for $i in //i let $t := $i/t let $n := count($t) where $t return <r n='{$n}'>{$t/@*}{$t}</r>",
    "for $i in //*:i return for $t in $i//*:t return $t",
    # content
    "for $i in //i return <r>{$i/@id}{$i/@k}{$i/t}</r>",
    "for $i in //*:i return <r id='0'>{$i/@*}{$i/t/@*}</r>",
    "for $i in //*:i return <r>{attribute z {'1'}}{if ($i/t) then $i/@id else ()}</r>",
    "for $i in //*:i return <r>{attribute z {$i/@*, 1}}{attribute z {'2'}}{text {$i/t, 2}}</r>",
    "for $i in //*:i return <r>{element e {attribute a {1}, $i/t}}{text {()}}{text {''}}</r>",
    (
        "for $i in //*:i return "
        "<r>{$i/t[1]}|{$i/t[last()]}|{$i/*[2]}|{$i/t[@y][1]}|{$i/t[. = 'x']}</r>"
    ),
    "for $i in //*:i return <r>{$i//*:t}{$i//text()}{$i//@*/string()}</r>",
    "for $i in //*:i return <r>{data($i/t)}{data($i/t), 'x', 'y'}{'x'}</r>",
    (
        "for $i in //*:i return "
        "<r>{concat('&lt;', $i/t, count($i/t), '&quot;')}{normalize-space($i)}</r>"
    ),
    "for $i in //*:i return <r>{name($i/*)} {local-name($i/@*)}{upper-case($i/t)}</r>",
    "for $i in //*:i return <r>{for $t in $i/t where $t/@y return <e y='{$t/@y}'/>}</r>",
    (
        "for $i in //*:i return "
        "<r>{for $t in $i/t return string($t)}{for $a in $i/@* return <a>{$a}</a>}</r>"
    ),
    "for $i in //*:i return <r>{processing-instruction p {$i/t}}{comment {$i/t}}</r>",
    "for $i in //*:i return <r a='0'>{attribute a {1}}{attribute b {2}}{attribute b {3}}</r>",
    "for $i in //*:i return <r>{if ($i/t > 2) then 'big' else if ($i/@id) then 1 else ()}</r>",
    "for $i in //*:i return <r>{($i/t, 'a', 'b', $i/u)}<!--c--><?p d?></r>",
    "for $i in //*:i return <r>{sum($i/t[. castable as xs:integer])}|{reverse($i/t)}</r>",
    (
        "for $i in //*:i return "
        "<r a='{sum(1 to 3)} {$i/@id + 1}'>{if ($i/t + 1 = 2) then 1 else 2}</r>"
    ),
    "for $i in //*:i return <r>{for $t in $i/t order by $t return $t}</r>",
    "for $i in //*:i return <r>{$i/@id = '1'}{$i/@id != '1'}{not($i/t)}{count($i/t) >= 2}</r>",
    (
        "for $i in //*:i return "
        "<r>{contains($i, 'x')}{starts-with($i/t, 'x')}{ends-with($i, $i/t)}</r>"
    ),
    "for $i in //*:i return <r>{$i/t != 1}{1 < $i/t}{$i/t <= 2.5}{'x' = $i/t}{$i/t >= 'x'}</r>",
    "for $i in //*:i let $l := 'x' return <r a='{$l}'>{$i/t = $l}{string($l)}{$l}{$l}</r>",
    # groups
    "for $v in distinct-values(//@*) return <g v='{$v}' n='{count(//*[@* = $v])}'>{$v}{$v}</g>",
    (
        "for $v in distinct-values(//*:t) let $s := //*:i[*:t = $v]/@id where contains($v, 'x') "
        "return <g>{upper-case($v), count($s), $v = 'x'}{//*:t[@*][$v = .]}</g>"
    ),
    "<all>{ for $v in distinct-values(//t) return <g>{//i[t = $v]/t}</g> }</all>",
    "for $v in distinct-values(//text()), $w in distinct-values(//@*) return <g v='{$v}{$w}'/>",
    "for $v in distinct-values(//t) return //t[text() = $v]",
    # joins
    "for $i in //*:i, $t in //*:t where $i/*:t = $t and $t/@y return <r i='{$i/@id}'>{$t}</r>",
    "for $i in //i, $t in //t where $t/text() = $i/t and $i/@id = '1' return $t",
    "for $i in //i for $t in //*[. = $i/*] return <r>{$t}{for $u in //u[@* = $t/@y] return 1}</r>",
    (
        "for $i in //*:i return <r>{for $t in //*:t, $u in //@* where $t = $i/*:t and $u = $t/@y "
        "return <e>{$u}</e>}</r>"
    ),
    # namespaces
    'for $i in //*:i return <r xmlns="urn:r">{$i}</r>',
    'for $i in //*:i return <q:r xmlns:q="urn:q"><e xmlns="urn:d" q:a="1">{$i/*}</e>{$i/*}</q:r>',
    'for $i in //*:i return <r xmlns:q="urn:x">{$i}<s xmlns:q="urn:q">{$i}</s></r>',
    'for $i in //*:i return <r xmlns="urn:d"><e xmlns="">{$i/*:t}</e></r>',
    '<all xmlns="urn:d">{ for $i in //*:i return <e>{$i/*}</e> }</all>',
    "for $i in //*:i return <q:r xmlns:q='urn:q' xmlns:p='urn:x'>{$i/@*}{$i/t}</q:r>",
    "for $i in //*:i return <r xml:id=' {$i/@id}  x '>{attribute z {1}, $i/@*}{$i/t}</r>",
    # errors
    "for $i in //*:i return ($i/t, <e>{1 div $i/@id}</e>, <f/>)",
    "for $i in //*:i return <r>{for $t in $i/t return 1 + $t}{for $t in $i/t return $t/@y}</r>",
    "for $i in //*:i return <r>{for $t in $i/t return ($t/@y, $t, <e>{$t}</e>, $t + 1)}</r>",
    "for $i in //*:i return ($i/t, if (1 + $i/t = 2) then $i else ())",
    "<all>{ for $i in //*:i return <e>{1 + $i/t}</e> }</all>",
    "<all>{ for $i in //*:i return ($i/@*, 1 + $i/t) }{ <e/> }</all>",
    # in other ways
    "for $i in //i, $t in //t return <r>{$i}{$t}</r>",
    "for $i in //i, $t in //t where $i/@id < $t return <r>{$i}{$t}</r>",
    "for $i in //*:i, $t in //*:t, $i in //*:u where $t/@y = $i/@a return <r>{$t}</r>",
    "for $v in distinct-values(//t) where $v > 1 return <g>{$v}</g>",
    "for $v in distinct-values(//t) return <g>{//t[. = $v][1]}</g>",
    "for $i in //i order by $i/@id return $i",
    "for $i at $n in //i return $i",
    "<all>{ for $i in //i return $i }{ for $i in //t return $i }</all>",
    "for $i in //i return <r>{$i/t}{$i/@id}</r>",
    "for $i in //i return <r>{$i/@id + 1}{$i/@id, 1}</r>",
]


def by_both(profile: Profile, stream: ElementStream) -> tuple[list[bytes], list[bytes]]:
    """The results by operators, and those by the interpreter."""
    bindings = [node.number for node in select(matching_path(profile), stream)]
    made = render(profile, stream, bindings)
    if not bindings:
        return made, []
    asked, limits = Asked(*returned(profile)), DEFAULT_EVALUATION_LIMITS
    return made, interpreted(asked, stream, bindings, limits, lambda: to_text(stream))


@pytest.mark.parametrize("text", PROFILES)
def test_operators_write_what_the_interpreter_writes(text: str) -> None:
    profile = parse_profile(text)
    for message in MESSAGES:
        made, expected = by_both(profile, parse_text(message))
        assert made == expected


@pytest.mark.parametrize("message", MESSAGES)
def test_profiles_that_have_parts_in_common_write_what_each_writes_alone(message: bytes) -> None:
    stream = parse_text(message)
    together = Renderer(stream)
    for text in [*PROFILES, *(text.replace("<r", "<s k='{$i/@id}'") for text in PROFILES)]:
        try:
            profile = parse_profile(text.replace("</r>", "</s>") if "<s k" in text else text)
        except ProfileRefused:
            continue
        bindings = [node.number for node in select(matching_path(profile), stream)]
        for _ in range(2):
            assert together.results(profile, bindings) == render(profile, stream, bindings), text


@examples(100)
@given(profiles(), messages())
def test_random_profiles_on_random_messages(body: Profile, message: bytes) -> None:
    made, expected = by_both(Profile(body), parse_text(message))
    assert made == expected


@pytest.mark.skipif(not SHARED.is_dir(), reason="no reference data here")
@pytest.mark.parametrize("folder", FOLDERS)
def test_profiles_for_real_messages(folder: str) -> None:
    rng = Random(FOLDERS.index(folder))
    known = real_profiles(folder)
    files = sorted(file for file in (SHARED / folder).rglob("*.*") if file.suffix in SUFFIXES)
    compared = 0
    for file in rng.sample(files, min(20, len(files))):
        try:
            stream = parse_text(file.read_bytes())
        except MessageRefused:
            continue
        for profile in known:
            made, expected = by_both(profile, stream)
            assert made == expected, (file, profile.text)
            compared += bool(expected)
    assert compared > 20


def test_profiles_that_differ_in_what_is_matched_have_one_operator() -> None:
    texts = [
        f"for $i in {path} {where} return <r>{{$i/t}}</r>"
        for path in ("//i", "/f/i[t]")
        for where in ("", "where $i/@id = '1'", "where contains($i/t, 'x')")
    ]
    assert len({returned(parse_profile(text)) for text in texts}) == 1
    left = returned(parse_profile("for $i in //i where $i/@k = /f/@k return <r>{$i/t}</r>"))
    assert left.profile.flwor is not None
    assert left.profile.flwor.where is None


def test_what_is_shared_is_written_once() -> None:
    stream = parse_text(b"<f>" + b"<i id='1'><t>text</t><u/></i>" * 10 + b"</f>")
    bindings = [node.number for node in select(matching_path(parse_profile("//i")), stream)]
    renderer = Renderer(stream)
    writer = renderer.writer
    hits = parse_profile("for $i in //i where $i/@id = '1' return <r>{$i/t}</r>")
    first = renderer.results(hits, bindings)
    assert (writer.made, writer.copied) == (10, 10)
    for _ in range(5):
        assert renderer.results(hits, bindings[3:7]) == first[3:7]
    assert (writer.made, writer.copied) == (10, 10)
    other = parse_profile("for $i in //i return <s>{$i/t}{$i/t}{$i/u}</s>")
    renderer.results(other, bindings)
    assert (writer.made, writer.copied) == (20, 20)
    around = parse_profile("<all>{for $i in //i return <r>{$i/t}</r>}</all>")
    (whole,) = renderer.results(around, bindings)
    assert whole == b"<all>" + b"".join(first) + b"</all>"
    assert renderer.results(around, bindings) == [whole]
    assert (writer.made, writer.copied) == (21, 20)
    assert writer.whole_message() is writer.whole_message()


def test_many_constructors_and_lets_are_made_at_once() -> None:
    text = f"for $i in //i return {'<r>' * 50}{{$i/@id}}{'</r>' * 50}"
    stream = parse_text(MESSAGES[0])
    assert render(parse_profile(text), stream, [1])[0].count(b"<r") == 50
    doubled = "".join(f"let $v{n} := ($v{n - 1}, $v{n - 1}) " for n in range(1, 50))
    text = f"for $i in //i let $v0 := $i {doubled} return <r>{{$v49}}</r>"
    with pytest.raises(MatchLimitExceeded):
        render(parse_profile(text), stream, [1])  # of 2 ** 49 nodes


def test_messages_are_written_in_turns() -> None:
    """Of bindings that are new each time: what was made of one is kept."""
    texts = [b"<f><i><t>1</t></i><i><t>1</t></i></f>", b"<f><u/><i><t>2</t></i><i><t>2</t></i></f>"]
    profile = parse_profile("for $i in //i return <r>{$i/t}</r>")
    renderers = [Renderer(parse_text(text)) for text in texts]
    for bindings in ([1], [2]), ([3], [4]):
        for number, renderer in enumerate(renderers):
            found = renderer.results(profile, bindings[number])
            assert found == [b"<r><t>%d</t></r>" % (number + 1)]


def test_what_is_kept_of_a_message_is_bounded() -> None:
    text = b"x" * 100_000
    stream = parse_text(b"<f>" + b"".join(b"<i>%s</i>" % text for _ in range(40)) + b"</f>")
    bindings = list(range(1, 41))
    renderer = Renderer(stream)
    profile = parse_profile("for $i in //i return <r>{$i}</r>")
    expected = [b"<r><i>%s</i></r>" % text] * 40
    for _ in range(3):
        assert renderer.results(profile, bindings) == expected
    assert renderer.writer.made == 120


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (EvaluationLimits(bytes_max=5_000), "result-too-large"),
        (EvaluationLimits(visits_max=50), "too-many-visits"),
        (EvaluationLimits(tuples_max=3), "too-many-tuples"),
    ],
)
@pytest.mark.parametrize("form", ["for $i in //i return {}", "<a>{{for $i in //i return {}}}</a>"])
def test_results_keep_within_the_limits(form: str, limits: EvaluationLimits, code: str) -> None:
    profile = parse_profile(form.format(f"<r>{'{$i/t}' * 20}</r>"))
    stream = parse_text(b"<f>" + b"<i><t>some text</t></i>" * 40 + b"</f>")
    bindings = [node.number for node in select(matching_path(profile), stream)]
    for _ in range(2):
        with pytest.raises(MatchLimitExceeded) as exceeded:
            render(profile, stream, bindings, limits)
        assert exceeded.value.code == code


def test_what_a_let_says_costs_no_more_than_once() -> None:
    profile = parse_profile(f"for $i in /f let $t := $i//t return <r>{'{$t}' * 20}</r>")
    stream = parse_text(b"<f>" + b"<i><t/></i>" * 40 + b"</f>")
    (document,) = render(profile, stream, [0], EvaluationLimits(visits_max=1_000))
    assert document.count(b"<t/>") == 800


def test_what_was_written_for_another_profile_costs_the_same() -> None:
    text = "for $i in //i return <r>{$i/t}</r>"
    stream = parse_text(b"<f>" + b"<i><t>some text</t></i>" * 10 + b"</f>")
    renderer = Renderer(stream, EvaluationLimits(bytes_max=5 * len("<r><t>some text</t></r>")))
    profile = parse_profile(text)
    bindings = list(range(1, 21, 2))
    for start in (0, 5, 2):
        assert len(renderer.results(profile, bindings[start : start + 5])) == 5
    for _ in range(2):
        with pytest.raises(MatchLimitExceeded):
            renderer.results(profile, bindings[:6])
