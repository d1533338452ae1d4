"""What there would be without the filter: each rule evaluated on a document alone.

Rules are of kind PATH.  A Python function each, over a document that has been read; a query of SQL
each, over its statements in tables with indexes; a query of SPARQL each, by pyoxigraph.  The answer
of each loop is checked.  Times are microseconds of processor time for all rules.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from time import process_time

import pyoxigraph

from benchmarks.benchmark import WrongAnswers
from benchmarks.metadata.workload import BASE, SCHEMA, document, rule, uri
from benchmarks.samples import median
from formats.graph.rdf_schema import read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF_TYPE
from registration.metadata.documents import Statement, read_document
from registration.metadata.n_triples import n_triples
from registration.metadata.rules import parse_rule

_ROUNDS = 5


def python_us(rules: int) -> float:
    said = [_statements(number) for number in range(_ROUNDS)]
    functions = [_function(number) for number in range(rules)]

    def matching(number: int) -> list[int]:
        by_subject: dict[str, dict[str, list[str]]] = {}
        for each in said[number]:
            by_subject.setdefault(each.subject, {}).setdefault(each.property, []).append(each.value)
        return [at for at, function in enumerate(functions) if function(by_subject)]

    return _timed(matching)


def _function(number: int) -> Callable[[dict[str, dict[str, list[str]]]], bool]:
    memory, information, of_class = str(number), BASE + "serverInformation", BASE + "CycleProvider"

    def matches(resources: dict[str, dict[str, list[str]]]) -> bool:
        for properties in resources.values():
            if of_class in properties.get(RDF_TYPE, ()):
                for other in properties.get(information, ()):
                    if memory in resources.get(other, {}).get(BASE + "memory", ()):
                        return True
        return False

    return matches


def sql_us(rules: int) -> float:
    tables = sqlite3.connect(":memory:", isolation_level=None)
    tables.execute("CREATE TABLE statements(subject, property, value)")
    tables.execute("CREATE INDEX by_subject ON statements(subject, property)")
    tables.execute("CREATE INDEX by_value ON statements(property, value)")
    query = (
        "SELECT c.subject FROM statements c JOIN statements i ON i.subject = c.subject"
        f" JOIN statements m ON m.subject = i.value WHERE c.property = '{RDF_TYPE}'"
        f" AND c.value = '{BASE}CycleProvider' AND i.property = '{BASE}serverInformation'"
        f" AND m.property = '{BASE}memory' AND m.value = ?"
    )

    def matching(number: int) -> list[int]:
        tables.execute("DELETE FROM statements")
        rows = [(each.subject, each.property, each.value) for each in _statements(number)]
        tables.executemany("INSERT INTO statements VALUES (?, ?, ?)", rows)
        execute = tables.execute
        return [at for at in range(rules) if execute(query, (str(at),)).fetchone() is not None]

    return _timed(matching)


def sparql_us(rules: int, sample: int) -> float:
    """Extrapolated from the first of the rules."""
    schema = read_schema(SCHEMA, GraphSyntax.TURTLE)
    queries = [parse_rule(rule("path", at), schema, {}).sparql for at in range(sample)]

    def matching(number: int) -> list[int]:
        store = pyoxigraph.Store()
        triples = "".join(n_triples(_statements(number)))  # with the datatypes of the schema
        store.load(triples.encode(), pyoxigraph.RdfFormat.N_TRIPLES)
        found = []
        for at, query in enumerate(queries):
            solutions = store.query(query)
            assert isinstance(solutions, pyoxigraph.QuerySolutions)
            if next(solutions, None) is not None:
                found.append(at)
        return found

    return _timed(matching) * rules / sample


def _statements(number: int) -> Sequence[Statement]:
    schema = read_schema(SCHEMA, GraphSyntax.TURTLE)
    return read_document(uri(number), document(number), GraphSyntax.RDF_XML, schema)


def _timed(matching: Callable[[int], list[int]]) -> float:
    times = []
    for number in range(_ROUNDS):
        began = process_time()
        found = matching(number)
        times.append((process_time() - began) * 1e6)
        if found != [number]:
            raise WrongAnswers(f"a loop finds the rules {found} for document {number}")
    return median(times)
