"""Real documents, an electric grid and catalogues of data: each update of them is as registering
anew.

More of them by hand::

    ONYX_SIMULATION_TIMES=10 pytest tests/onyx/metadata/test_real_metadata.py
"""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pyoxigraph
import pytest

from onyx.metadata import MetadataProvider
from tests.formats.graph.support import RDF_DATA
from tests.simulation.seeds import seeds

N_TRIPLES = "application/n-triples"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RULES = 60


def documents(folder: str) -> dict[str, list[pyoxigraph.Quad]]:
    """By URI; those of the grid say more of the same resources, under one base."""
    found = {}
    for file in sorted((RDF_DATA / folder).glob("*.rdf")) + sorted(
        (RDF_DATA / folder).glob("*.gz")
    ):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        if folder == "grid" and len(data) > 500_000 and len(seeds(4)) < 10:
            continue  # it takes long
        base = "http://e/grid" if folder == "grid" else f"http://e/{file.name}"
        parsed = pyoxigraph.parse(data, pyoxigraph.RdfFormat.RDF_XML, base_iri=base)
        found[f"http://e/{file.name}"] = [*parsed]
    return found


def as_text(triples: list[pyoxigraph.Quad]) -> bytes:
    said = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
    assert said is not None
    return said


def variant(triples: list[pyoxigraph.Quad], random: Random) -> list[pyoxigraph.Quad]:
    """Some resources are gone, and some values are those of others."""
    subjects = sorted({str(each.subject) for each in triples})
    gone = set(random.sample(subjects, len(subjects) // 10))
    kept = [each for each in triples if str(each.subject) not in gone]
    values: dict[str, list[pyoxigraph.Quad]] = {}
    for each in kept:
        values.setdefault(str(each.predicate), []).append(each)
    changed = []
    for each in kept:
        thing = each.object
        if random.random() < 0.1:
            thing = random.choice(values[str(each.predicate)]).object
        changed.append(pyoxigraph.Quad(each.subject, each.predicate, thing))
    return changed


def rules(triples: list[pyoxigraph.Quad], random: Random) -> list[str]:
    """A value of a resource, or of one that it refers to."""
    classes = {str(t.subject): str(t.object) for t in triples if t.predicate.value == RDF_TYPE}
    literals = [t for t in triples if isinstance(t.object, pyoxigraph.Literal)]
    of: dict[str, list[pyoxigraph.Quad]] = {}
    for each in literals:
        of.setdefault(str(each.subject), []).append(each)
    found: dict[str, None] = {}
    links = [t for t in triples if str(t.object) in of and str(t.subject) in classes]
    while len(found) < RULES:
        if links and random.random() < 0.5:
            link = random.choice(links)
            end = random.choice(of[str(link.object)])
            start, path = classes[str(link.subject)], f"v.{link.predicate}?.{end.predicate}?"
        else:
            end = random.choice(literals)
            start, path = classes.get(str(end.subject), ""), f"v.{end.predicate}?"
        text = end.object.value.replace("'", "''").replace("\n", " ")[:200]
        operator = random.choice(("contains", "contains", "="))
        if start and (operator == "contains" or len(text) < 200):
            found[f"search {start} v register v where {path} {operator} '{text}'"] = None
    return [*found]


@pytest.mark.parametrize("folder", ["grid", "dcat"])
def test_an_update_of_real_documents_is_as_registering_anew(folder: str, tmp_path: Path) -> None:
    said = documents(folder)
    if not said:
        pytest.skip("the shared data is not here")
    with MetadataProvider(tmp_path / "updated") as provider:
        provider.put_schema(b"", N_TRIPLES, is_open=True)
        provider.register({uri: as_text(each) for uri, each in said.items()}, N_TRIPLES)
        wanted = rules([triple for each in said.values() for triple in each], Random(0))
        provider.add_rules("L1", [(text, "") for text in wanted])
        assert all(provider.matches(f"r{number + 1}") for number in range(len(wanted)))
        for seed in seeds(4):
            random = Random(seed)
            uri = random.choice(sorted(said))
            said[uri] = variant(said[uri], random)
            provider.register({uri: as_text(said[uri])}, N_TRIPLES)
            with MetadataProvider(tmp_path / f"anew {seed}") as anew:
                anew.put_schema(b"", N_TRIPLES, is_open=True)
                anew.add_rules("L1", [(text, "") for text in wanted])
                anew.register({uri: as_text(each) for uri, each in said.items()}, N_TRIPLES)
                for number in range(1, len(wanted) + 1):
                    rule = f"r{number}"
                    assert provider.matches(rule) == anew.matches(rule), wanted[number - 1]
        assert provider.verify() == []
