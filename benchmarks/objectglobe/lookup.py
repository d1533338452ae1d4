"""How long the lookup of a query takes at a metadata cache, with all else stopped.

The market has 1,000 relations of 100 data providers, each with five columns, a permission and a
flow, 100 functions and six machines with their links.  Processor time; a query names three
relations and a function, and is another one each time.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import process_time

from benchmarks.benchmark import WrongAnswers
from benchmarks.report import Report
from benchmarks.samples import median
from onyx.metadata import MetadataCache, MetadataProvider
from onyx.queries.catalog import VOCABULARY, Catalog
from registration.queries.providers import NAMESPACE

_SITES, _PROVIDERS, _OF_ONE, _ROUNDS = 6, 100, 10, 30
_HEAD = f"@prefix q: <{NAMESPACE}> . @prefix : <urn:market:> .\n"
_TURTLE = "text/turtle"


def measure_lookup(report: Report, _options: argparse.Namespace) -> None:
    """``lookup_ms``, ``lookup_first_ms`` (of a catalog that was just opened); WrongAnswers if a
    relation is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with MetadataProvider(folder / "provider") as provider:
            provider.put_schema(VOCABULARY.read_bytes(), _TURTLE)
            provider.add_rule("L1", "search Entry e register e")
            provider.register({"urn:market": (_HEAD + _market()).encode()}, _TURTLE)
            messages = provider.changes("L1")
        with MetadataCache(folder / "l1.onyx", "L1") as cache:
            for message in messages:
                cache.apply(message)
            first = [_looked_up(Catalog.of(cache), number) for number in range(_ROUNDS)]
            catalog = Catalog.of(cache)
            times = [_looked_up(catalog, number) for number in range(_ROUNDS)]
    report.figure("lookup_ms", "lookup of a query", median(times[1:]), "ms")
    report.figure("lookup_first_ms", "the first of a catalog", median(first), "ms")
    report.condition("relations", "relations", _PROVIDERS * _OF_ONE)


def _looked_up(catalog: Catalog, number: int) -> float:
    names = [f"P{(number + at) % _PROVIDERS}.R{at}" for at in range(3)]
    sql = f"SELECT f{number}(a.id) FROM {names[0]} a JOIN {names[1]} b ON a.id = b.id, {names[2]}"
    start = process_time()
    market = catalog.market_for(sql)
    spent = (process_time() - start) * 1e3
    if len(market.sites) != _SITES + 1 or not all(map(market.relation, names)):
        raise WrongAnswers(f"a lookup missed one of {', '.join(names)}")
    return spent


def _market() -> str:
    lines = []
    for at in range(_SITES):
        lines.append(f':c{at} a q:CycleProvider ; q:name "C{at}" ; q:serverHost "h" ;')
        lines.append(f" q:serverPort {7000 + at} .")
        lines += (
            f"[] a q:Link ; q:from :c{at} ; q:to :c{to} ." for to in range(_SITES) if to != at
        )
    for of in range(_PROVIDERS):
        lines.append(f':P{of} a q:DataProvider, q:FunctionProvider ; q:name "P{of}" .')
        lines.append(f':f{of} a q:Function ; q:name "f{of}" ; q:provider :P{of} ;')
        lines.append(' q:kind "scalar" ; q:signature "(a INT) -> INT" .')
        lines += (_relation(of, number) for number in range(_OF_ONE))
    return "\n".join(lines)


def _relation(of: int, number: int) -> str:
    site = (of + number) % _SITES
    columns = ", ".join(f'[ q:name "{name}" ; q:distinct {of + 1} ]' for name in "abcde")
    rules = f':p{of}-{number} a q:Permission ; q:subject "user/ann" ; q:right "read" ;'
    return (
        f':r{of}-{number} a q:Relation ; q:name "R{number}" ; q:provider :P{of} ;'
        f' q:readAt :c{site} ; q:format "parquet" ; q:location "/r" ;'
        f' q:schema "a INT, b INT, c INT, d INT, e INT" ; q:column {columns} .\n'
        f"{rules} q:resource :r{of}-{number} .\n"
        f":w{of}-{number} a q:Flow ; q:what :r{of}-{number} ; q:to :c{site} ."
    )
