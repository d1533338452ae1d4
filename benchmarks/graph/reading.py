"""What it takes to read a graph: at the root broker from its syntax, at any other from binary.

The unit P is ``list(pyoxigraph.parse(message))`` of the Turtle of the same message, in turns with
what is measured; processor time, of each message the quickest of some rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time_ns

import pyoxigraph

from benchmarks.benchmark import WrongAnswers
from benchmarks.graph.catalogue import Catalogue, written
from benchmarks.report import Report
from benchmarks.samples import mean
from formats import GraphSyntax, WireFormat, decode, encode, read_graph
from formats.graph.writer import FORMATS, triples_of

_CHECKED = 20
_WARMUP = 20


def measure_reading(report: Report, options: argparse.Namespace) -> None:
    """Adds ``p_us`` and what reading takes over it: ``root_over_p`` from Turtle, ``hop_over_p`` the
    binary form, and ``.._over_p`` for other syntaxes over P of the Turtle."""
    catalogue = Catalogue(options.seed)
    messages = [catalogue.message(number) for number in range(options.messages + _WARMUP)]
    for number, message in enumerate(messages[:_CHECKED]):
        _check(number, message)
    turtle = [written(message, pyoxigraph.RdfFormat.TURTLE) for message in messages]
    read: dict[str, Callable[[bytes], object]] = {
        "p": lambda data: list(pyoxigraph.parse(data, pyoxigraph.RdfFormat.TURTLE))
    }
    inputs = {"p": turtle}
    for syntax, name in _NAMES.items():
        read[name] = _reader(syntax)
        inputs[name] = [written(message, FORMATS[syntax]) for message in messages]
    read["hop"] = lambda data: decode(data, WireFormat.BINARY)
    inputs["hop"] = [
        encode(read_graph(data, GraphSyntax.TURTLE), WireFormat.BINARY) for data in turtle
    ]
    times = _times(read, inputs, options.rounds)
    report.figure("triples", "triples of a message", mean([len(each) for each in messages]))
    report.figure("turtle_bytes", "bytes of its Turtle", mean([len(each) for each in turtle]))
    report.figure("p_us", "pyoxigraph reads its Turtle (P)", times["p"], "us")
    for name, label in _LABELS.items():
        report.figure(f"{name}_us", label, times[name], "us", "p_us")
    for name in _LABELS:
        report.figure(f"{name}_over_p", f"{name} / P", times[name] / times["p"])


_NAMES = {
    GraphSyntax.TURTLE: "root",
    GraphSyntax.N_TRIPLES: "n_triples",
    GraphSyntax.JSON_LD: "json_ld",
    GraphSyntax.RDF_XML: "rdf_xml",
}
_LABELS = {
    "root": "Turtle to a striped graph",
    "n_triples": "N-Triples to a striped graph",
    "json_ld": "JSON-LD to a striped graph",
    "rdf_xml": "RDF/XML to a striped graph",
    "hop": "its binary form decoded",
}


def _reader(syntax: GraphSyntax) -> Callable[[bytes], object]:
    return lambda data: read_graph(data, syntax)


def _times(
    read: dict[str, Callable[[bytes], object]], inputs: dict[str, list[bytes]], rounds: int
) -> dict[str, float]:
    """Microseconds of a message, by name; what warms up is left out."""
    samples: dict[str, list[float]] = {name: [] for name in read}
    for number in range(len(inputs["p"])):
        for name, reader in read.items():
            data = inputs[name][number]
            quickest = min(_time(reader, data) for _ in range(rounds))
            if number >= _WARMUP:
                samples[name].append(quickest)
    return {name: mean(found) for name, found in samples.items()}


def _time(reader: Callable[[bytes], object], data: bytes) -> float:
    start = thread_time_ns()
    reader(data)
    return (thread_time_ns() - start) / 1000


def _check(number: int, message: list[pyoxigraph.Quad]) -> None:
    expected = _canonical(message)
    for syntax in _NAMES:
        stream = read_graph(written(message, FORMATS[syntax]), syntax)
        if _canonical(list(triples_of(stream))) != expected:
            raise WrongAnswers(f"message {number}: {syntax} was not read as pyoxigraph reads it")


def _canonical(triples: list[pyoxigraph.Quad]) -> pyoxigraph.Dataset:
    dataset = pyoxigraph.Dataset(triples)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset
