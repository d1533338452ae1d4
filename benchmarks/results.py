"""``results``: constructing the results of matched profiles, against building the same with lxml.

Both sides get a parsed message and the elements that a profile's path has bound, and give the
documents to deliver as bytes.  With lxml that is what a careful programmer would write by hand for
each profile: compiled XPath objects for what is selected, ``deepcopy`` of what is copied, then
``tostring``.  All results are compared in canonical form.

Then what a distinct result costs, of each form that gives one for each element bound: by ours, in
which every message is new and every element bound, by the same with lxml, and by Saxon, in a
process of its own, as one query that constructs and serializes all of them.  And what it costs a
profile that others have asked the same results for.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import perf_counter_ns, thread_time_ns
from typing import TypeAlias

import lxml.etree

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, count, positive
from benchmarks.report import Report
from benchmarks.samples import mean, median
from formats import ElementStream, parse_text
from formats.kernel import build_info
from formats.text import to_text
from yfilter.compiled_deciders import Renderer, render
from yfilter.language.matching_path import matching_path
from yfilter.language.nodes import Node
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.operators.evaluation import Evaluation

_Elements: TypeAlias = "list[lxml.etree._Element]"

_SAXON = Path(__file__).with_name("results_saxon.py")
_EACH = "/feed/item"
_BINDS = '/feed/item[@kind = "k{kind}"]'
_KINDS = 8
_MANY = 1_000


@dataclass(frozen=True, slots=True)
class _Case:
    """One form of profile; ``build`` makes its results of the tree and the bound elements."""

    name: str
    profile: str
    build: Callable[[_Elements], list[bytes]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--messages", metavar="N", type=positive, default=100, help="of 10 KB (default: 100)"
    )
    parser.add_argument(
        "--profiles",
        metavar="N",
        type=positive,
        default=8,
        help="of each form that match a message (default: 8)",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=5, help="the median counts (default: 5)"
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="time passed, or time computed"
    )


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where the results differ."""
    clock = thread_time_ns if options.clock == "cpu" else perf_counter_ns
    random = Random(f"results {options.seed}")
    messages = [make_feed(random) for _ in range(options.messages)]
    report = Report(f"results: {len(_CASES)} forms of profiles on {options.messages} messages")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    report.condition("clock", "clock", options.clock)
    report.condition("message_bytes", "bytes a message", round(mean(list(map(len, messages)))))
    report.condition("profiles", "profiles of a form a message", options.profiles)
    own_times, lxml_times = [], []
    for case in _CASES:
        own, theirs = _measure(case, messages, options.profiles, options.rounds, clock)
        report.figure(f"{case.name}_lxml_us", f"{case.name}: lxml", theirs, "us")
        report.figure(f"{case.name}_us", f"{case.name}: ours", own, "us", f"{case.name}_lxml_us")
        own_times.append(own)
        lxml_times.append(theirs)
    report.figure("lxml_us", "all forms: lxml", mean(lxml_times), "us")
    report.figure("own_us", "all forms: ours", mean(own_times), "us", "lxml_us")
    report.figure("speedup", "times as fast, all forms", mean(lxml_times) / mean(own_times))
    report.remark("times are for all results of one profile on one message, parsed before")
    gc.collect()
    gc.disable()
    try:
        _report_distinct(report, messages, options.rounds, clock)
    finally:
        gc.enable()
    return report


def make_feed(random: Random) -> bytes:
    """A message of 32 items, about 10 KB, with mixed content and a namespace."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "caf\u00e9", "R&amp;D", "omega"]

    def text(length: int) -> str:
        return " ".join(random.choices(words, k=length))

    items = [
        f'<item id="i{number}" kind="k{random.randrange(_KINDS)}"><title>{text(4)}</title>'
        f'<m:price unit="EUR">{random.randrange(10_000) / 100}</m:price>'
        f"<body><p>{text(6)} <b>{text(2)}</b> {text(5)}</p><p>{text(8)}<br/>{text(3)}</p></body>"
        "</item>"
        for number in range(32)
    ]
    return f'<feed xmlns:m="urn:money">{"".join(items)}</feed>'.encode()


def _measure(
    case: _Case,
    messages: Sequence[bytes],
    profiles: int,
    rounds: int,
    clock: Callable[[], int],
) -> tuple[float, float]:
    """Microseconds for the results of one profile on one message, ours and lxml's, in turns."""
    own: list[float] = []
    theirs: list[float] = []
    prepared = [item for message in messages for item in _prepared(case, message, profiles)]
    for item in prepared:
        item.check()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            start = clock()
            for item in prepared:
                item.render()
            between = clock()
            for item in prepared:
                item.build()
            own.append((between - start) / 1000 / len(prepared))
            theirs.append((clock() - between) / 1000 / len(prepared))
    finally:
        gc.enable()
    return median(own), median(theirs)


def _report_distinct(
    report: Report, messages: Sequence[bytes], rounds: int, clock: Callable[[], int]
) -> None:
    """What one distinct result costs, by each side."""
    forms = [case for case in _CASES if _FOR in case.profile and case.name != "digest"]
    by_saxon = _by_saxon(forms, messages, rounds, clock) if find_spec("saxonche") else None
    for number, case in enumerate(forms):
        profile = _registered(case.profile.replace(_BINDS, _EACH).format())
        streams = [parse_text(message) for message in messages]
        bound = [[node.number for node in _selected(profile, s)] for s in streams]
        total = sum(map(len, bound))
        own: list[float] = []
        theirs: list[float] = []
        again: list[float] = []
        renderer = Renderer(streams[0])
        for _ in range(rounds):
            passed = [0, 0, 0]
            for message, bindings in zip(messages, bound, strict=True):
                stream = parse_text(message)
                start = clock()
                renderer.show(stream)
                renderer.results(profile, bindings)
                made = clock()
                for binding in bindings:
                    renderer.results(profile, (binding,))
                passed[0] += made - start
                passed[1] += clock() - made
            for message in messages:
                elements: _Elements = lxml.etree.fromstring(message).xpath(_EACH)
                start = clock()
                case.build(elements)
                passed[2] += clock() - start
            for times, time in zip((own, again, theirs), passed, strict=True):
                times.append(time / total)
        key, label = f"{case.name}_each", f"{case.name}, a distinct result"
        if by_saxon is not None:
            saxon_us, saxon_results = by_saxon[number]
            results = "".join(
                _canonical(result)
                for stream, bindings in zip(streams, bound, strict=True)
                for result in Renderer(stream).results(profile, bindings)
            )
            if results != _canonical(f"<all>{saxon_results}</all>".encode())[5:-6]:
                raise WrongAnswers(f"{case.name}: Saxon's results differ")
            report.figure(f"{key}_saxon_ns", f"{label}: Saxon", 1000 * saxon_us / total, "ns")
        report.figure(f"{key}_lxml_ns", f"{label}: lxml", median(theirs), "ns")
        report.figure(f"{key}_ns", f"{label}: ours", median(own), "ns", f"{key}_lxml_ns")
        report.figure(f"{case.name}_again_ns", f"{case.name}, made before", median(again), "ns")
    written, again = [], []
    for _ in range(rounds):
        passed_ns = 0
        for message in messages:
            stream = parse_text(message)
            start = clock()
            to_text(stream)
            passed_ns += clock() - start
        written.append(passed_ns / 1000 / len(messages))
        writer = Renderer(stream).writer
        writer.whole_message()
        start = clock()
        for _ in range(_MANY):
            writer.whole_message()
        again.append((clock() - start) / _MANY)
    report.figure("to_text_us", "a message written", median(written), "us")
    report.figure("message_again_ns", "message, written before", median(again), "ns")


def _by_saxon(
    forms: Sequence[_Case], messages: Sequence[bytes], rounds: int, clock: Callable[[], int]
) -> list[tuple[float, str]]:
    """Microseconds for the results of all messages, and these, of each form."""
    queries = []
    for case in forms:
        prolog, _, body = case.profile.format(kind="").rpartition("; ")
        returned = body.partition(" return ")[2]
        queries.append(
            f"{prolog}{';' if prolog else ''} declare variable $messages external; "
            f"for $i in $messages{_EACH} return {returned}"
        )
    request = {
        "messages": [message.decode() for message in messages],
        "queries": queries,
        "rounds": rounds,
        "cpu": clock is thread_time_ns,
    }
    answer = subprocess.run(
        [sys.executable, str(_SAXON)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
    )
    return [(time, result.partition("?>")[2]) for time, result in json.loads(answer.stdout)]


class _Prepared:
    """A profile on one message, matched by both sides."""

    def __init__(
        self, case: _Case, stream: ElementStream, tree: lxml.etree._Element, kind: int
    ) -> None:
        self._case = case
        self._profile = _registered(case.profile.format(kind=kind))
        self._stream = stream
        nodes = _selected(self._profile, self._stream)
        self._bindings = [node.number for node in nodes]
        self._elements: _Elements = tree.xpath(_BINDS.format(kind=kind))

    def render(self) -> list[bytes]:
        return render(self._profile, self._stream, self._bindings)

    def build(self) -> list[bytes]:
        return self._case.build(self._elements) if self._elements else []

    def check(self) -> None:
        ours, theirs = self.render(), self.build()
        if list(map(_canonical, ours)) != list(map(_canonical, theirs)):
            raise WrongAnswers(f"{self._case.name}: {ours!r} is not {theirs!r}")


def _prepared(case: _Case, message: bytes, profiles: int) -> list[_Prepared]:
    """Profiles that differ in what they look for, on one message."""
    stream, tree = parse_text(message), lxml.etree.fromstring(message)
    return [_Prepared(case, stream, tree, kind % _KINDS) for kind in range(profiles)]


@cache
def _selected(profile: Profile, stream: ElementStream) -> list[Node]:
    return Evaluation(stream).select(matching_path(profile))


def _registered(text: str) -> Profile:
    """One object for a profile, however many messages it matches."""
    return parse_profile(text)


def _canonical(document: bytes) -> str:
    return str(lxml.etree.canonicalize(document.decode()))


# -- by hand, with lxml

_TITLE = lxml.etree.XPath("title")
_PARAGRAPHS = lxml.etree.XPath("body/p")
_PRICE = lxml.etree.XPath("string(m:price)", namespaces={"m": "urn:money"})
_TITLE_TEXT = lxml.etree.XPath("string(title)")


def _copies(elements: _Elements) -> list[bytes]:
    return [lxml.etree.tostring(item, encoding="utf-8", with_tail=False) for item in elements]


def _hits(elements: _Elements) -> list[bytes]:
    return [lxml.etree.tostring(_hit(item), encoding="utf-8") for item in elements]


def _hit(item: lxml.etree._Element) -> lxml.etree._Element:
    hit = lxml.etree.Element("hit", id=item.get("id"))
    for found in (*_TITLE(item), *_PARAGRAPHS(item)):
        copy = deepcopy(found)
        copy.tail = None
        hit.append(copy)
    return hit


def _lines(elements: _Elements) -> list[bytes]:
    made = []
    for item in elements:
        line = lxml.etree.Element("line", id=item.get("id"))
        line.text = f"{_TITLE_TEXT(item)}: {_PRICE(item)}"
        made.append(lxml.etree.tostring(line, encoding="utf-8"))
    return made


def _digest(elements: _Elements) -> list[bytes]:
    digest = lxml.etree.Element("digest")
    for item in elements:
        entry = lxml.etree.SubElement(digest, "entry", n=item.get("id"))
        entry.extend([deepcopy(title) for title in _TITLE(item)])
    return [lxml.etree.tostring(digest, encoding="utf-8")]


def _message(elements: _Elements) -> list[bytes]:
    return [lxml.etree.tostring(elements[0].getroottree(), encoding="utf-8")]


_FOR = f"for $i in {_BINDS} return "
_CASES = (
    _Case("copy", _FOR + "$i", _copies),
    _Case("hit", _FOR + '<hit id="{{$i/@id}}">{{$i/title}}{{$i/body/p}}</hit>', _hits),
    _Case(
        "line",
        'declare namespace m = "urn:money"; '
        + _FOR
        + '<line id="{{$i/@id}}">{{string($i/title)}}: {{string($i/m:price)}}</line>',
        _lines,
    ),
    _Case(
        "digest",
        "<digest>{{" + _FOR + '<entry n="{{$i/@id}}">{{$i/title}}</entry>}}</digest>',
        _digest,
    ),
    _Case("message", _BINDS, _message),
)

RESULTS = Benchmark(
    name="results",
    summary="results of matched profiles constructed, against lxml",
    add_options=add_options,
    quick=("--messages", "10", "--rounds", "2"),
    run=run,
)
