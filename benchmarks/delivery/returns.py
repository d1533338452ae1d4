"""``returns``: FLWOR profiles that return two copied elements and an attribute.

Beside them the same by lxml, in two ways: for each profile that matches a compiled XPath object
selects the elements, or they are given; then, in both, compiled XPath objects for what is copied,
and ``tostring``.  And by Saxon, warmed up, the message parsed: one compiled stylesheet made of all
profiles that match.
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

_RETURN = "return <hit id='{$e/@id}'>{$e/title}{$e/price}</hit>"
_BINDS = re.compile(r"for \$e in (.*) return")
_SAXON_MESSAGES, _SAXON_ROUNDS = 10, 10


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
    saxon = _saxon(measured[:_SAXON_MESSAGES], matched, job)
    teller.figure("return_matches", "returns: matches a message", mean(times.matches))
    teller.figure("return_distinct", "returns: distinct results a message", mean(distinct))
    ours = times.results_us / mean(distinct)
    teller.figure("return_us_each", "a returned result, ours", ours, "us")
    base = "return_us_each"
    teller.figure("lxml_return_us_each", "lxml", selecting / theirs, "us", base)
    teller.figure("lxml_built_us_each", "lxml, elements given", building / theirs, "us", base)
    teller.figure("saxon_return_us_each", "Saxon", saxon, "us", base)
    teller.figure("return_all_in_us", "returns: all-in", mean(times.all_in), "us")


def _profiles(job: DeliverJob) -> list[str]:
    """As many as the job has, of which about a tenth match a message."""
    random = Random(f"returns {job.seed}")
    bounds = random.sample(range(9_000_000, 10_000_000), job.number)
    return [
        f"for $e in /feed/e{number % KINDS}[@number > {bound}] {_RETURN}"
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
        paths = [_compiled(_path(profile)) for profile, _ in profiles]
        start = clock()
        made = [[_built(element) for element in path(tree)] for path in paths]
        between = clock()
        elements = [path(tree) for path in paths]
        given = clock()
        for bound in elements:
            for element in bound:
                _built(element)
        end = clock()
        selecting += between - start
        building += end - given
        results += sum(map(len, made))
        for (profile, ours), theirs in zip(profiles, made, strict=True):
            if list(map(canonical, ours)) != list(map(canonical, theirs)):
                raise WrongAnswers(f"other results than lxml's: {profile}")

    within(list(zip(messages, matched, strict=False)), one, job.seconds)
    return selecting / 1000, building / 1000, max(1, results)


def _saxon(messages: Sequence[bytes], matched: _Matched, job: DeliverJob) -> float:
    """Microseconds a result."""
    spent = results = 0.0
    with TimedSaxon(job.cpu_clock) as saxon:
        for message, profiles in zip(messages, matched, strict=False):
            if not profiles:
                continue
            loops = (_LOOP.format(path=escape(_path(profile))) for profile, _ in profiles)
            saxon.load(_STYLESHEET.format(loops="".join(loops)))
            saxon.transform(message, job.warmup)
            transformed = saxon.transform(message, _SAXON_ROUNDS)
            number = sum(len(made) for _, made in profiles)
            if transformed is None or transformed.text.count("<hit ") != number:
                raise WrongAnswers("other results than Saxon's")
            spent += transformed.us
            results += number
    return spent / max(1, results)


_STYLESHEET = (
    '<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    '<xsl:template match="/"><hits>{loops}</hits></xsl:template></xsl:stylesheet>'
)
_LOOP = (
    '<xsl:for-each select="{path}"><hit id="{{@id}}"><xsl:copy-of select="title, price"/></hit>'
    "</xsl:for-each>"
)


@cache
def _compiled(path: str) -> lxml.etree.XPath:
    return lxml.etree.XPath(path)


def _path(profile: str) -> str:
    found = _BINDS.match(profile)
    assert found is not None
    return found[1]


_TITLE, _PRICE, _ID = map(lxml.etree.XPath, ("title", "price", "@id"))


def _built(element: lxml.etree._Element) -> bytes:
    hit = lxml.etree.Element("hit")
    for value in _ID(element):
        hit.set("id", value)
    for part in (*_TITLE(element), *_PRICE(element)):
        copy = deepcopy(part)
        copy.tail = None
        hit.append(copy)
    return bytes(lxml.etree.tostring(hit, encoding="utf-8"))
