"""Browsing a provider against loops over all statements; repositories that are listed and go."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from random import Random

import pytest

from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF_TYPE
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata.browsing import Referrer
from registration.metadata.documents import MetadataRefused, Statement, read_document
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, INFO, SCHEMA, URI
from tests.onyx.metadata.test_random_metadata import strongly_reached
from tests.registration.metadata.brute import RESOURCE, Graph
from tests.registration.metadata.random_metadata import (
    BASE,
    RandomDocuments,
    document_uri,
    n_triples,
    schema_bytes,
)

ALL = "search CycleProvider c register c"


@pytest.mark.parametrize("seed", range(4))
def test_all_is_seen_as_loops_over_all_statements_find_it(tmp_path: Path, seed: int) -> None:
    source = RandomDocuments(Random(seed))
    with MetadataProvider(tmp_path) as provider:
        provider.put_schema(schema_bytes(), "text/turtle")
        said: dict[str, list[Statement]] = {}
        for number in range(6):
            uri, data = document_uri(number), n_triples(source.document(number), has_blanks=True)
            provider.register({uri: data}, "application/n-triples")
            said[uri] = read_document(uri, data, GraphSyntax.N_TRIPLES, provider.schema)
        provider.add_rule("L1", "search A a register a")
        statements = sorted({each for some in said.values() for each in some})
        graph = Graph(statements, provider.schema)
        for name, count in provider.browse().classes.items():
            expected, found, after = sorted(graph.of_class(name)), list[str](), ""
            while not found or after:
                page = provider.browse(name, after, 2)
                found, after = [*found, *page.resources], page.after
                if not page.resources:
                    break
            assert found == expected and count == len(expected)
        held = strongly_reached(graph.of_class(BASE + "A"), statements, provider.schema)
        objects = {each.value for each in statements if not each.datatype}
        for uri in {each.subject for each in statements} | objects - graph.classes.keys():
            if uri in provider.browse().classes:
                continue
            seen = provider.browse(uri, limit=1000).resource
            assert seen is not None
            assert [*seen.statements] == [each for each in statements if each.subject == uri]
            refer = sorted(
                (each.subject, each.property)
                for each in statements
                if each.value == uri and not each.datatype and each.property != RDF_TYPE
            )
            assert [*seen.referrers] == [
                Referrer(subject, tuple(prop for _, prop in of))
                for subject, of in groupby(refer, lambda pair: pair[0])
            ]
            assert {*seen.classes} == graph.classes.get(uri, set())
            about = (doc for doc, some in said.items() if any(each.subject == uri for each in some))
            assert [*seen.documents] == sorted(about)
            assert seen.repositories == (("L1",) if uri in held else ())


@pytest.fixture
def provider(tmp_path: Path) -> MetadataProvider:
    made = MetadataProvider(tmp_path / "provider")
    made.put_schema(SCHEMA, "text/turtle")
    made.register({URI: DOCUMENT}, "text/turtle")
    return made


def test_a_name_is_a_class_or_a_resource(provider: MetadataProvider) -> None:
    assert provider.browse("CycleProvider").resources == (HOST,)
    seen = provider.browse(INFO).resource
    assert seen is not None and seen.classes[0].endswith("ServerInformation")
    assert seen.classes[-1] == RESOURCE
    with pytest.raises(MetadataRefused, match="CycleProvidr") as caught:
        provider.browse("CycleProvidr")
    assert caught.value.fault.hint.startswith("did you mean")
    with pytest.raises(MetadataRefused, match="no-such-resource"):
        provider.browse(URI)


def test_a_repository_goes_with_all_its_rules_in_one_revision(
    provider: MetadataProvider, tmp_path: Path
) -> None:
    provider.add_rule("L1", ALL, "all")
    provider.add_rule("L1", "search all c register c where c.serverHost contains 'uni'")
    provider.add_rule("L2", ALL)
    info = provider.repositories()["L1"]
    assert (info.owner, info.rules, info.matches, info.heard) == ("", 2, 1, 0.0)
    now = provider.progress("L1").time
    assert provider.repositories()["L1"].heard >= now - 1
    would = provider.remove_repository("L1", dry_run=True)
    assert provider.repositories()["L1"].rules == 2
    outcome = provider.remove_repository("L1")
    assert outcome == would
    assert outcome.revision == provider.revision and outcome.effects["L1"].left == (HOST,)
    assert [*provider.repositories()] == ["L2"] and not provider.verify()
    with MetadataCache(tmp_path / "cache", "L1") as cache:
        for message in provider.changes("L1"):
            cache.apply(message)
        assert not cache.resources() and not cache.rules()
    with pytest.raises(MetadataRefused, match="no-such-repository"):
        provider.remove_repository("L1")
    provider.add_rule("L1", ALL, "all", owner="user/ann")
    with pytest.raises(MetadataRefused, match="other-owner"):
        provider.remove_repository("L1", owner="user/bob")
