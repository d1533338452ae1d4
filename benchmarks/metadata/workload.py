"""The workload of the paper on MDV (section 4): its schema, documents and rules (Figures 1, 10).

The document of a number is matched by the rule of the same number and by no other; of COMP rules
it is matched by a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator

BASE = "http://objectglobe.example/schema#"
RDF_XML = "application/rdf+xml"
KINDS = ("oid", "path", "comp", "join")
SCHEMA = f"""
@prefix : <{BASE}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:CycleProvider a rdfs:Class . :ServerInformation a rdfs:Class .
:serverHost a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverPort a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:synthValue a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:serverInformation a owl:FunctionalProperty , <urn:onyx:metadata:StrongReference> ;
    rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
:memory a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:cpu a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
""".encode()

_HEAD = (
    f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{BASE}"'
    f' xmlns:s="{BASE}">'
)
_WHERE = {
    "oid": "c = <{uri}#host>",
    "path": "c.serverInformation.memory = {number}",
    "comp": "c.synthValue > {number}",
    "join": (
        "c.serverHost contains 'uni-passau.de' and c.serverInformation.cpu = 600"
        " and c.serverInformation.memory = {number}"
    ),
}


def uri(number: int) -> str:
    return f"http://objectglobe.example/{number}.rdf"


def document(number: int, synth_value: int = 0, cpu: int = 600) -> bytes:
    """Two resources, six statements, and their types."""
    return (
        f'{_HEAD}<CycleProvider rdf:ID="host">'
        f"<serverHost>pirates{number}.uni-passau.de</serverHost>"
        f"<serverPort>5874</serverPort><synthValue>{synth_value}</synthValue>"
        f'<serverInformation><ServerInformation rdf:ID="info" s:memory="{number}" s:cpu="{cpu}"/>'
        "</serverInformation></CycleProvider></rdf:RDF>"
    ).encode()


def referring(number: int, to: str) -> bytes:
    """A document whose resource refers to one of another document."""
    return (
        f'{_HEAD}<CycleProvider rdf:ID="host"><serverHost>h{number}</serverHost>'
        f'<serverInformation rdf:resource="{to}"/></CycleProvider></rdf:RDF>'
    ).encode()


def referred_to(memory: int) -> bytes:
    """A document with nothing but server information."""
    return (
        f'{_HEAD}<ServerInformation rdf:ID="info" s:memory="{memory}" s:cpu="600"/></rdf:RDF>'
    ).encode()


def rule(kind: str, number: int) -> str:
    where = _WHERE[kind].format(uri=uri(number), number=number)
    return f"search CycleProvider c register c where {where}"


def batches(first: int, count: int, size: int, synth_value: int = 0) -> Iterator[dict[str, bytes]]:
    """The documents from a number on."""
    for start in range(first, first + count * size, size):
        yield {uri(each): document(each, synth_value) for each in range(start, start + size)}
