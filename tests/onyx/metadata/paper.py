"""The paper's cycle providers and servers, as a schema and documents, and messages read again."""

from __future__ import annotations

from collections.abc import Iterable

from onyx.metadata import MetadataProvider
from registration.metadata.change_messages import Change, read_change
from registration.metadata.provider import RepositoryEffects

NS = "http://objectglobe.example/#"
BASE = "http://e/"
TURTLE = "text/turtle"
PREFIXES = f"""
@prefix : <{NS}> .
@prefix m: <urn:onyx:metadata:> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SCHEMA = f"""{PREFIXES}
:Thing a rdfs:Class .
:CycleProvider rdfs:subClassOf :Thing .
:ServerInformation rdfs:subClassOf :Thing .
:serverHost a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverPort a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:serverInformation a owl:FunctionalProperty, m:StrongReference ;
    rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
:memory a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:cpu a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:tag rdfs:domain :Thing ; rdfs:range xsd:string .
:partner a m:StrongReference ; rdfs:domain :CycleProvider ; rdfs:range :CycleProvider .
:near rdfs:domain :CycleProvider ; rdfs:range :CycleProvider .
"""
WEAK = SCHEMA.replace(":FunctionalProperty, m:StrongReference", ":FunctionalProperty")
FIGURE_1 = f"""<rdf:RDF xmlns="{NS}" xmlns:r="{NS}"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<CycleProvider rdf:ID="host">
  <serverHost>pirates.uni-passau.de</serverHost>
  <serverPort>5874</serverPort>
  <serverInformation>
    <ServerInformation rdf:ID="info" r:memory="92" r:cpu="600" />
  </serverInformation>
</CycleProvider>
</rdf:RDF>"""
DOC = f"{BASE}doc.rdf"
HOST, INFO = f"{DOC}#host", f"{DOC}#info"
EXAMPLE_1 = """search CycleProvider c register c
where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64"""
FAST = "search CycleProvider c register c where c.serverInformation.memory > 64"


def figure_1(provider: MetadataProvider, memory: int = 92) -> RepositoryEffects:
    """Registers it; gives the effects for L1."""
    data = FIGURE_1.replace('"92"', f'"{memory}"').encode()
    outcome = provider.register({DOC: data}, "application/rdf+xml")
    return outcome.effects.get("L1", RepositoryEffects())


def put(provider: MetadataProvider, **documents: str) -> RepositoryEffects:
    """Registers documents in Turtle by their local names; gives the effects for L1."""
    data = {f"{BASE}{name}": (PREFIXES + text).encode() for name, text in documents.items()}
    return provider.register(data, TURTLE).effects.get("L1", RepositoryEffects())


def took(provider: MetadataProvider, *names: str) -> RepositoryEffects:
    """Removes documents by their local names; gives the effects for L1."""
    outcome = provider.remove([f"{BASE}{name}" for name in names])
    return outcome.effects.get("L1", RepositoryEffects())


def came(*uris: str) -> RepositoryEffects:
    return RepositoryEffects(came=uris)


def left(*uris: str) -> RepositoryEffects:
    return RepositoryEffects(left=uris)


def changed(*uris: str) -> RepositoryEffects:
    return RepositoryEffects(changed=uris)


def read(messages: Iterable[bytes]) -> list[Change]:
    return [read_change(each) for each in messages]
