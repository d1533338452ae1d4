"""The current time is when the message was accepted, as elementpath has it with that time: in each
engine, for each message anew, and an error while nobody knows it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random

import elementpath
import pytest
from lxml import etree

from formats import ElementStream, MessageLimits, parse_text
from formats.publication import read_publication
from tests.oracle.reference import ReferenceMatcher
from yfilter import LinkTarget, Matcher, ProfileRefused
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import readings_of
from yfilter.language.query_parser import parse_profile
from yfilter.late_evaluation import evaluate_profile, question_about
from yfilter.projection.profile_needs import needs_of
from yfilter.schematron import compile_schematron

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = (
    datetime(2026, 11, 29, 1, 2, 3, 456789, UTC),
    datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2028, 2, 29, tzinfo=UTC),
    datetime(1970, 1, 1, 0, 0, 0, 100_001, UTC),  # .000001 is .1 to elementpath
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
)
ENGINES = (Matcher, ReferenceMatcher)


def accepted(at: datetime, message: bytes = b"<a/>") -> ElementStream:
    stream = parse_text(message)
    stream.accepted = (at - EPOCH) // timedelta(microseconds=1)
    return stream


def results(matcher: Matcher | ReferenceMatcher, message: ElementStream) -> list[bytes]:
    return [result for each in matcher.deliver(message) for result in each.results]


def values() -> Iterator[str]:
    """Of the current time alone."""
    yield from ("current-dateTime()", "current-date()", "current-time()", "fn:current-dateTime()")
    for name, parts in (
        ("date", "year month day timezone"),
        ("dateTime", "year month day hours minutes seconds timezone"),
        ("time", "hours minutes seconds timezone"),
    ):
        yield from (f"{part}-from-{name}(current-{name}())" for part in parts.split())
        yield f"adjust-{name}-to-timezone(current-{name}(), xs:dayTimeDuration('-PT5H'))"
        yield f"adjust-{name}-to-timezone(current-{name}(), ())"
        yield f"xs:{name}(current-dateTime()) = current-{name}()"
        yield f"current-{name}() - current-{name}()"
        yield f"current-{name}() instance of xs:{name}"
    yield from (
        "dateTime(current-date(), current-time()) eq current-dateTime()",
        "current-dateTime() castable as xs:date",
        "xs:string(current-date()) = string(current-date())",
        "distinct-values((current-date(), current-date()))",
        "count((current-date(), current-time()))",
        "max((current-dateTime(), xs:dateTime('2026-12-31T00:00:00Z')))",
        "if (current-date() > xs:date('2027-01-01')) then 'late' else 'early'",
        "for $n in (1, 2) return current-date() + $n * xs:dayTimeDuration('-P1D')",
    )


def compared(random: Random) -> Iterator[str]:
    """Conditions of one message's own times."""
    kinds = {"date": "@day", "dateTime": "@at", "time": "@time"}
    moved = ("", " - xs:dayTimeDuration('PT12H')", " - xs:dayTimeDuration('P1DT0.456789S')")
    for (name, own), relation, change in product(
        kinds.items(), ("=", "!=", "<", ">=", "eq", "gt"), moved
    ):
        sides = [f"xs:{name}({own})", f"current-{name}(){change}"]
        random.shuffle(sides)
        yield f" {relation} ".join(sides)


def theirs(expression: str, at: datetime, message: bytes = b"<a/>") -> list[str]:
    zone = elementpath.datatypes.Timezone.fromstring("Z")
    context = elementpath.XPathContext(
        etree.fromstring(message), current_dt=at.replace(tzinfo=zone), timezone=zone
    )
    found = elementpath.XPath2Parser().parse(expression).get_results(context)
    found = found if isinstance(found, list) else [found]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in found]


@pytest.mark.parametrize("engine", ENGINES)
def test_values_are_those_of_elementpath_at_that_time(
    engine: type[Matcher] | type[ReferenceMatcher],
) -> None:
    wrong = []
    for expression in values():
        matcher = engine()
        matcher.add(f"for $a in /a return <v>{{for $v in ({expression}) return <i>{{$v}}</i>}}</v>")
        for at in TIMES:
            (result,) = results(matcher, accepted(at))
            ours = [one.text or "" for one in etree.fromstring(result)]
            if ours != (wanted := theirs(expression, at)):
                wrong.append((expression, at, ours, wanted))
    assert not wrong


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_hold_as_by_elementpath(
    engine: type[Matcher] | type[ReferenceMatcher],
) -> None:
    """All of them in one engine, which sees one message after another."""
    random = Random(35)
    conditions = list(compared(random))
    matcher = engine()
    for condition in conditions:
        matcher.add(f"/a[{condition}]", condition)
        matcher.add(f"for $a in //a where $a/({condition}) return <r/>", f"for {condition}")
    held = 0
    for at in TIMES[:3]:
        for seconds in (-86_400, -43_200, -0.000001, 0, 0.000001, 1, 43_200, 86_400.456789):
            own = at - timedelta(seconds=seconds)
            message = (
                f'<a day="{own:%Y-%m-%d}" at="{own.isoformat()}" time="{own.timetz()}"/>'
            ).encode()
            wanted = {one for one in conditions if theirs(one, at, message) == ["true"]}
            wanted |= {f"for {one}" for one in wanted}
            assert set(matcher.matched_ids(accepted(at, message))) == wanted, (at, message)
            held += len(wanted)
    assert 100 < held < 2 * 24 * len(conditions) - 100


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_without_a_time_is_matched_by_nothing_that_asks_for_it(
    engine: type[Matcher] | type[ReferenceMatcher],
) -> None:
    matcher = engine()
    for condition in (
        *("@d < current-date()", "not(@d < current-date())", "current-time()"),
        *("empty(current-date())", "@d != string(current-dateTime())", "current-date() and @d"),
    ):
        matcher.add(f"/a[{condition}]")
        matcher.add(f"for $a in /a where $a/({condition}) return <r/>")
    matcher.add("for $a in /a return <r>{current-date()}</r>")
    known = matcher.add("/a[@d < current-date() or @d]")
    told = matcher.add("for $a in /a return <r>{try { current-date() } catch * { $err:code }}</r>")
    message = parse_text(b"<a d='2020-01-01'/>")
    message.accepted = 0
    assert sorted(matcher.matched_ids(message)) == sorted((known, told))
    assert b"<r>err:XPDY0002</r>" in results(matcher, message)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_broker_a_clock_is_read_once_a_message(
    engine: type[Matcher] | type[ReferenceMatcher],
) -> None:
    ticks = iter((0.0000015, 1.0, 2.5))
    matcher = engine(clock=lambda: next(ticks))
    text = "for $a in /a return <r>{current-dateTime(), current-time() = current-time()}</r>"
    matcher.add(text)
    message = parse_text(b"<a/>")
    wanted = b"<r>1970-01-01T00:00:00.000002Z true</r>"
    assert results(matcher, message) == results(matcher, message) == [wanted]
    assert results(matcher, parse_text(b"<a/>")) == [b"<r>1970-01-01T00:00:01Z true</r>"]
    match = next(iter(matcher.match(b"<a/>")))
    assert match.results() == [b"<r>1970-01-01T00:00:02.5Z true</r>"]  # type: ignore[union-attr]
    before = datetime.now(UTC)
    matcher = engine()
    matcher.add(text)
    (result,) = results(matcher, parse_text(b"<a/>"))
    said = datetime.fromisoformat(result[3:].split()[0].decode())
    assert before <= said <= datetime.now(UTC)


def test_a_process_of_its_own_is_told_the_time() -> None:
    for at in TIMES:
        text = "for $a in /a return <r>{current-dateTime()}</r>"
        question = question_about(text, accepted(at), MessageLimits(), 1.0)
        answer = evaluate_profile(question, lambda: 0.0)
        assert answer.results == (f"<r>{theirs('current-dateTime()', at)[0]}</r>".encode(),)


def test_what_is_left_of_a_message_and_the_graph_that_it_means_have_its_time() -> None:
    rdf = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="urn:">
        <rdf:Description rdf:about="urn:a"><b>1</b></rdf:Description></rdf:RDF>"""
    readings = readings_of(accepted(TIMES[0], rdf))
    assert readings.graph is not None and readings.graph.accepted == readings.carried.accepted
    sender, link = Matcher(), LinkTarget("r", "link")
    sender.add_route(Conjunction.parse("/a"), link)
    sender.open_needs(link)
    for need in needs_of(parse_profile("for $b in /a/b return <r>{$b}</r>")):
        sender.add_need(need, link)
    whole = accepted(TIMES[0], b"<a><b/>" + 9 * b"<c>much</c>" + b"</a>")
    (left,) = sender.transformed(whole, "r", ["link"]).values()
    assert len(left) < len(whole) and left.accepted == whole.accepted


def test_it_is_no_constant_of_a_profile_and_constants_beside_it_are() -> None:
    parse_profile("//a[@d < current-date() - xs:dayTimeDuration('P1D')]")
    with pytest.raises(ProfileRefused, match="FORG0001"):
        parse_profile("//a[current-date() = xs:date('2026-02-30')]")


@pytest.mark.parametrize("engine", ENGINES)
def test_now_of_sparql_is_the_same(engine: type[Matcher] | type[ReferenceMatcher]) -> None:
    graph = (
        b'<urn:a> <urn:at> "2026-12-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    )
    told = 'SELECT (now ( ) AS ?n) ("NOW( )" AS ?text) WHERE { <urn:a> ?at ?x }'
    later, strange = "ASK { ?x <urn:at> ?at FILTER(?at < NOW()) }", "ASK { ?x ?NOW ?at }"
    for text, at, found in (
        (told, TIMES[0], [b'"2026-11-29T01:02:03.456789Z"', b'"NOW( )"']),
        (told, EPOCH, [b'"NOW( )"']),
        *((later, at, [graph] if at == TIMES[1] else None) for at in (TIMES[0], TIMES[1], EPOCH)),
        (strange, EPOCH, [graph]),
    ):
        matcher = engine()
        matcher.add(text)
        stream = read_publication(graph, "text/turtle")
        stream.accepted = (at - EPOCH) // timedelta(microseconds=1)  # 0 at the epoch: unknown
        results_ = results(matcher, stream)
        assert len(results_) == (found is not None), (text, at)
        assert all(each in results_[0] for each in found or ()), (text, at, results_)
        assert (b'"n":' in b"".join(results_)) == (text == told and at != EPOCH)


def test_rule_sets_have_it_in_tests_contexts_variables_and_texts() -> None:
    rules = compile_schematron(
        b"""<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
        <let name="today" value="current-date()"/>
        <pattern><let name="soon" value="$today + xs:dayTimeDuration('P7D')"/>
        <rule context="bill[@due lt string(current-date())]">
          <assert id="paid" test="@paid">Due for <value-of select="days-from-duration($today -
          xs:date(@due))"/> days on <value-of select="$today"/>.</assert></rule>
        <rule context="bill"><let name="now" value="current-dateTime()"/>
          <report id="soon" test="xs:date(@due) le $soon"><value-of select="$now"/></report></rule>
        </pattern></schema>"""
    )
    assert not rules.refused
    matcher = Matcher()
    for rule in rules.profiles:
        matcher.add(rule.text)
    message = b'<bills><bill due="2026-11-20"/><bill due="2026-12-01"/></bills>'
    found = {etree.fromstring(one) for one in results(matcher, accepted(TIMES[0], message))}
    assert {
        (one.get("id"), one.get("location"), "".join(one.itertext()).strip()) for one in found
    } == {
        ("paid", "/bills[1]/bill[1]", "Due for 9 days on 2026-11-29Z."),
        ("soon", "/bills[1]/bill[2]", "2026-11-29T01:02:03.456789Z"),
    }
