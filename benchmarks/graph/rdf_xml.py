"""What the graph of an RDF/XML document takes over parsing its XML, from which it is read.

Two kinds of messages: those of the catalogue, all names and short values, and feeds of RSS 1.0 with
texts of some kilobytes.  Processor time, of each message the quickest of some rounds.
"""

from __future__ import annotations

import argparse
from random import Random
from time import thread_time_ns
from typing import Final

import pyoxigraph

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import Catalogue, written
from benchmarks.report import Report
from benchmarks.samples import mean
from formats import parse_text
from formats.graph.striping import graph_of_document
from formats.graph.writer import triples_of

_ITEMS: Final = 50
_FEEDS: Final = 10
_WARMUP: Final = 5
_WORDS: Final = ("fog", "harbour", "&lt;p&gt;", "Grace Kim &amp; sons", "evening,", "é", "2004\n")
_ITEM = """<item rdf:about="http://planet.example/{number}"><title>Item {number}</title>
<link>http://planet.example/{number}</link><dc:creator>Ann</dc:creator>
<dc:date>2004-01-0{day}</dc:date><description>{text}</description></item>"""
_FEED = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">{}</rdf:RDF>'
)


def measure_rdf_xml(report: Report, options: argparse.Namespace) -> None:
    """Adds ``rdf_xml_over_parse`` and ``rdf_xml_feed_over_parse``."""
    catalogue = Catalogue(options.seed)
    messages = [
        written(catalogue.message(number), pyoxigraph.RdfFormat.RDF_XML)
        for number in range(options.messages + _WARMUP)
    ]
    random = Random(options.seed)
    feeds = [_feed(random) for _ in range(_FEEDS + _WARMUP)]
    kinds = (("rdf_xml", "RDF/XML", messages), ("rdf_xml_feed", "RSS 1.0 of 340 KB", feeds))
    for name, label, inputs in kinds:
        parsing, reading = _times(inputs, options.rounds)
        report.figure(f"{name}_parse_us", f"{label}: its XML parsed", parsing, "us")
        report.figure(f"{name}_graph_us", f"{label}: its graph, from that", reading, "us")
        report.figure(f"{name}_over_parse", f"{label}: graph / XML", reading / parsing)


def _times(inputs: list[bytes], rounds: int) -> tuple[float, float]:
    """Microseconds of a message: to parse it, and to read its graph."""
    parsing, reading = [], []
    for number, data in enumerate(inputs):
        times: list[tuple[int, int]] = []
        for _ in range(rounds):
            start = thread_time_ns()
            document = parse_text(data)
            parsed = thread_time_ns()
            graph = graph_of_document(document)
            times.append((parsed - start, thread_time_ns() - parsed))
        if number >= _WARMUP:
            parsing.append(min(each for each, _ in times) / 1000)
            reading.append(min(each for _, each in times) / 1000)
        elif len(list(triples_of(graph))) != len(_triples(data)):
            raise WrongAnswers(f"document {number} was not read as pyoxigraph reads it")
    return mean(parsing), mean(reading)


def _triples(data: bytes) -> set[object]:
    return set(pyoxigraph.parse(data, pyoxigraph.RdfFormat.RDF_XML))


def _feed(random: Random) -> bytes:
    items = (
        _ITEM.format(
            number=number, day=random.randint(1, 9), text=" ".join(random.choices(_WORDS, k=700))
        )
        for number in range(_ITEMS)
    )
    return _FEED.format("".join(items)).encode()
