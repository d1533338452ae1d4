"""``returns``: FLWOR profiles that return two copied elements and an attribute, each in its form.

Beside them the same by lxml, in two ways: for each profile that matches a compiled XPath object
selects the elements, or they are given; then, in both, compiled XPath objects for what is copied,
and ``tostring``.  And by Saxon, warmed up, the message parsed: a compiled stylesheet for each
profile that matches, since each result is a document of its own; or all profiles that match in one
stylesheet and all results in one document, which is less than what is delivered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from random import Random
from xml.sax.saxutils import escape

import lxml.etree

from benchmarks.benchmark import WrongAnswers
from benchmarks.delivery.job import DeliverJob, Teller
from benchmarks.delivery.saxon import TimedSaxon
from benchmarks.delivery.timing import make_matcher, measure, results_of, within
from benchmarks.samples import mean
from benchmarks.workload.operators import KINDS, make_feeds
from demo.oracle import canonical

_FORM = "for $e in {path} return <{hit} id='{{$e/@id}}'>{{$e/title}}{{$e/price}}</{hit}>"
_PARTS = re.compile(r"for \$e in (.*) return <(\w+) ")
_SAXON_MESSAGES, _SAXON_WARMUP, _SAXON_ROUNDS = 5, 50, 10


def measure_returns(job: DeliverJob, teller: Teller) -> None:
    """Microseconds a distinct result, beyond matching."""
    profiles = _profiles(job)
    messages = make_feeds(job.seed, job.warmup + job.measured)
    matcher = make_matcher(profiles)
    warm, measured = messages[: job.warmup], messages[job.warmup :]
    times = measure(matcher, warm, measured, job)
    distinct, matched = [], []
    for message in measured[: len(times.all_in)]:
        results = results_of(matcher, message)
        distinct.append(len({one for made in results.values() for one in made}))
        matched.append([(profiles[number], made) for number, made in sorted(results.items())])
    selecting, building, theirs = _lxml(measured, matched, job)
    saxon, together = _saxon(measured[:_SAXON_MESSAGES], matched, job)
    teller.figure("return_matches", "returns: matches a message", mean(times.matches))
    teller.figure("return_distinct", "returns: distinct results a message", mean(distinct))
    ours = times.results_us / mean(distinct) if any(distinct) else None
    teller.figure("return_us_each", "a returned result, ours", ours, "us")
    base = "return_us_each"
    teller.figure("lxml_return_us_each", "lxml", selecting / theirs, "us", base)
    teller.figure("lxml_built_us_each", "lxml, elements given", building / theirs, "us", base)
    teller.figure("saxon_return_us_each", "Saxon", saxon, "us", base)
    teller.figure("saxon_together_us_each", "Saxon, all in one", together, "us", base)
    teller.figure("return_all_in_us", "returns: all-in", mean(times.all_in), "us")


def _profiles(job: DeliverJob) -> list[str]:
    """As many as the job has, of which about a sixth match a message."""
    random = Random(f"returns {job.seed}")
    bounds = random.sample(range(9_000_000, 10_000_000), job.number)
    return [
        _FORM.format(path=f"/feed/e{number % KINDS}[@number > {bound}]", hit=f"hit{number}")
        for number, bound in enumerate(bounds)
    ]


_Matched = Sequence[Sequence[tuple[str, list[bytes]]]]


def _lxml(
    messages: Sequence[bytes], matched: _Matched, job: DeliverJob
) -> tuple[float, float, int]:
    """Microseconds with the elements to be selected, and with the elements given; results."""
    clock = job.clock()
    selecting = building = results = 0

    def one(pair: tuple[bytes, Sequence[tuple[str, list[bytes]]]]) -> None:
        nonlocal selecting, building, results
        message, profiles = pair
        tree = lxml.etree.fromstring(message)
        forms = [_path_and_hit(profile) for profile, _ in profiles]
        paths = [(_compiled(path), hit) for path, hit in forms]
        start = clock()
        made = [[_built(element, hit) for element in path(tree)] for path, hit in paths]
        between = clock()
        bound = [(element, hit) for path, hit in paths for element in path(tree)]
        given = clock()
        for element, hit in bound:
            _built(element, hit)
        end = clock()
        selecting += between - start
        building += end - given
        results += sum(map(len, made))
        for (profile, ours), theirs in zip(profiles, made, strict=True):
            if list(map(canonical, ours)) != list(map(canonical, theirs)):
                raise WrongAnswers(f"other results than lxml's: {profile}")

    within(list(zip(messages, matched, strict=False)), one, job.seconds)
    return selecting / 1000, building / 1000, max(1, results)


def _saxon(messages: Sequence[bytes], matched: _Matched, job: DeliverJob) -> tuple[float, float]:
    """Microseconds a result, by a stylesheet for each profile, and by one for all."""
    alone_us = together_us = results = 0.0
    with TimedSaxon(job.cpu_clock) as saxon:
        for message, profiles in zip(messages, matched, strict=False):
            if not profiles:
                continue
            forms = [_path_and_hit(profile) for profile, _ in profiles]
            loops = [_LOOP.format(path=escape(path), hit=hit) for path, hit in forms]
            number = sum(len(made) for _, made in profiles)
            alone = [_STYLESHEET.format(loops=loop) for loop in loops]
            alone_us += _transform_us(saxon, alone, message, number)
            together = [_STYLESHEET.format(loops="".join(loops))]
            together_us += _transform_us(saxon, together, message, number)
            results += number
    return alone_us / max(1, results), together_us / max(1, results)


def _transform_us(
    saxon: TimedSaxon, stylesheets: Sequence[str], message: bytes, results: int
) -> float:
    saxon.load(stylesheets)
    saxon.transform(message, _SAXON_WARMUP)
    transformed = saxon.transform(message, _SAXON_ROUNDS)
    if transformed is None or transformed.text.count("<title>") != results:
        raise WrongAnswers("other results than Saxon's")
    return transformed.us


_STYLESHEET = (
    '<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    '<xsl:template match="/"><hits>{loops}</hits></xsl:template></xsl:stylesheet>'
)
_LOOP = (
    '<xsl:for-each select="{path}"><{hit} id="{{@id}}"><xsl:copy-of select="title, price"/></{hit}>'
    "</xsl:for-each>"
)


@cache
def _compiled(path: str) -> lxml.etree.XPath:
    return lxml.etree.XPath(path)


def _path_and_hit(profile: str) -> tuple[str, str]:
    """What is bound, and the name of what is constructed."""
    found = _PARTS.match(profile)
    assert found is not None
    return found[1], found[2]


_TITLE, _PRICE, _ID = map(lxml.etree.XPath, ("title", "price", "@id"))


def _built(element: lxml.etree._Element, name: str) -> bytes:
    hit = lxml.etree.Element(name)
    for value in _ID(element):
        hit.set("id", value)
    for part in (*_TITLE(element), *_PRICE(element)):
        copy = deepcopy(part)
        copy.tail = None
        hit.append(copy)
    return bytes(lxml.etree.tostring(hit, encoding="utf-8"))
