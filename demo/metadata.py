"""Metadata: the last scene. A provider of metadata, a rule that looks across two documents, and a
cache that is told when only the document that is referred to changes.

After each change the cache is held against pyoxigraph, which asks all documents for what the rule
says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyoxigraph
import trio

from onyx import DataSource
from onyx.metadata import MetadataClient, MetadataProvider, MetadataRepository
from onyx.metadata.serving import Serving

NAME, REPOSITORY = "metadata", "L1"
_TURTLE = "text/turtle"
_PREFIXES = """
@prefix : <http://objectglobe.example/#> .    @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix m: <urn:onyx:metadata:> .             @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
_SCHEMA = f"""{_PREFIXES}
:CycleProvider a rdfs:Class .                 :ServerInformation a rdfs:Class .
:serverHost a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverInformation a owl:FunctionalProperty, m:StrongReference ;
    rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
:memory a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
"""
_PROVIDERS, _SERVER = "http://objectglobe.example/providers", "http://objectglobe.example/server"
_HOSTS = f"""{_PREFIXES}
<#pirates> a :CycleProvider ; :serverHost "pirates.uni-passau.de" ;
    :serverInformation <{_SERVER}#info> .
<#elsewhere> a :CycleProvider ; :serverHost "db.example" ; :serverInformation <{_SERVER}#info> .
"""
_RULE = """search CycleProvider c register c
where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64"""
_QUERY = """PREFIX : <http://objectglobe.example/#> SELECT ?c WHERE {
?c a :CycleProvider ; :serverHost ?host ; :serverInformation/:memory ?memory
FILTER(CONTAINS(?host, "uni-passau.de") && ?memory > 64) }"""
_MEMORIES = (92, 32, 128)  # of the server, megabytes


async def play_metadata(
    registration: str, directory: Path, say: Callable[[str], None]
) -> list[str]:
    """What is wrong, in words."""
    say(f"metadata: cycle providers of {REPOSITORY} whose server has more than 64 MB")
    source = await DataSource.register(registration, name=NAME, ensure=True)
    wrong = []
    with MetadataProvider(directory / NAME, source.id) as provider:
        async with (
            source,
            trio.open_nursery() as nursery,
            MetadataClient(registration, NAME) as client,
            MetadataRepository(
                directory / "l1.onyx", registration, REPOSITORY, provider=NAME
            ) as repository,
        ):
            nursery.start_soon(Serving(source, provider).run)
            await client.put_schema(_SCHEMA.encode(), _TURTLE)
            await client.register({_PROVIDERS: _HOSTS.encode()}, _TURTLE)
            await repository.add_rule(_RULE)
            for memory in _MEMORIES:
                server = f"{_PREFIXES}<#info> a :ServerInformation ; :memory {memory} ."
                outcome = await client.register({_SERVER: server.encode()}, _TURTLE)
                await repository.wait(outcome.revision)
                found = [uri for (uri,) in (await repository.query(_RULE)).rows]
                say(f"metadata: the server has {memory} MB, the cache {found or 'nothing'}")
                if found != (expected := _expected({_PROVIDERS: _HOSTS, _SERVER: server})):
                    wrong.append(f"at {memory} MB the cache has {found}, not {expected}")
            nursery.cancel_scope.cancel()
        return wrong + provider.verify()


def _expected(documents: dict[str, str]) -> list[str]:
    """As pyoxigraph has it."""
    store = pyoxigraph.Store()
    for uri, text in documents.items():
        store.load(text.encode(), pyoxigraph.RdfFormat.TURTLE, base_iri=uri)
    solutions = store.query(_QUERY)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    return sorted(each["c"].value for each in solutions)
