"""A network as documents of metadata: its sources, schemas, brokers, links, plan and archives.

The facts are what a registration service and brokers have answered; a document is about one source
with its schema and archive, one broker, one link, the plan in force, or the data provider of all
archives: each of these is a relation of queries as well (``registration/queries/providers.ttl``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

from formats.errors import Fault
from formats.graph.vocabulary import RDF_TYPE, XSD
from formats.schema_model import ANY, SchemaModel
from overlay.answers import SourceInfo
from overlay.nodes import BrokerNode, Link
from overlay.topology import Topology
from registration.metadata.documents import Statement
from registration.metadata.n_triples import n_triples
from registration.queries.providers import CLIENT
from registration.queries.providers import NAMESPACE as QUERIES

NAMESPACE = "urn:onyx:network#"
SCHEMA = f"""
@prefix : <{NAMESPACE}> .
@prefix q: <{QUERIES}> .
@prefix m: <urn:onyx:metadata:> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <{XSD}> .
:Named a rdfs:Class .                   :Located rdfs:subClassOf :Named .
:Source rdfs:subClassOf :Located .      :Broker rdfs:subClassOf :Located .
:Schema rdfs:subClassOf :Named .        :Plan rdfs:subClassOf :Named .
:Link a rdfs:Class .                    :Archive rdfs:subClassOf q:Relation .
q:Relation rdfs:subClassOf :Named .     q:DataProvider rdfs:subClassOf :Named .
q:CycleProvider a rdfs:Class .
q:name a owl:FunctionalProperty ; rdfs:domain :Named ; rdfs:range xsd:string .
:latitude a owl:FunctionalProperty ; rdfs:domain :Located ; rdfs:range xsd:double .
:longitude a owl:FunctionalProperty ; rdfs:domain :Located ; rdfs:range xsd:double .
:id a owl:FunctionalProperty ; rdfs:domain :Located ; rdfs:range xsd:string .
:rate a owl:FunctionalProperty ; rdfs:domain :Source ; rdfs:range xsd:double .
:size a owl:FunctionalProperty ; rdfs:domain :Source ; rdfs:range xsd:integer .
:root a owl:FunctionalProperty ; rdfs:domain :Source ; rdfs:range :Broker .
:schema a owl:FunctionalProperty, m:StrongReference ; rdfs:domain :Source ; rdfs:range :Schema .
:kind a owl:FunctionalProperty ; rdfs:domain :Schema ; rdfs:range xsd:string .
:namespace rdfs:domain :Schema ; rdfs:range xsd:string .
:rootElement rdfs:domain :Schema ; rdfs:range xsd:string .
:capacity a owl:FunctionalProperty ; rdfs:domain :Broker ; rdfs:range xsd:integer .
:load a owl:FunctionalProperty ; rdfs:domain :Broker ; rdfs:range xsd:integer .
:isAway a owl:FunctionalProperty ; rdfs:domain :Broker ; rdfs:range xsd:boolean .
:end rdfs:domain :Link ; rdfs:range :Broker .
:latency a owl:FunctionalProperty ; rdfs:domain :Link ; rdfs:range xsd:double .
:bandwidth a owl:FunctionalProperty ; rdfs:domain :Link ; rdfs:range xsd:double .
:isDown a owl:FunctionalProperty ; rdfs:domain :Link ; rdfs:range xsd:boolean .
:source a owl:FunctionalProperty ; rdfs:domain :Archive ; rdfs:range :Source .
:first a owl:FunctionalProperty ; rdfs:domain :Archive ; rdfs:range xsd:dateTime .
:last a owl:FunctionalProperty ; rdfs:domain :Archive ; rdfs:range xsd:dateTime .
q:provider a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range q:DataProvider .
q:readAt rdfs:domain q:Relation ; rdfs:range q:CycleProvider .
q:format a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range xsd:string .
q:location a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range xsd:string .
q:option rdfs:domain q:Relation ; rdfs:range xsd:string .
q:rows a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range xsd:double .
q:bytes a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range xsd:double .
q:refreshed a owl:FunctionalProperty ; rdfs:domain q:Relation ; rdfs:range xsd:dateTime .
"""
ARCHIVES = "archive"
"""The name of the data provider of all archives: of ``archive.SOURCE`` in queries."""
READ_ONLY = Fault("read-only", "this provider says what its network is, and takes nothing else")


class SchemaFacts(NamedTuple):
    namespaces: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()

    @staticmethod
    def of(model: SchemaModel) -> SchemaFacts:
        names = {name for each in model.declarations for name in each.names}
        outermost = {name for at in model.outermost for name in model.declarations[at].names}
        return SchemaFacts(
            tuple(sorted({each.namespace for each in names} - {ANY, ""})),
            tuple(sorted({each.local for each in outermost} - {ANY})),
        )


class ArchiveFacts(NamedTuple):
    """Of one source: when the first and the last message came, in seconds since 1970; how many
    messages there are, and their bytes."""

    first: float | None = None
    last: float | None = None
    messages: int = 0
    bytes: int = 0


class NetworkFacts(NamedTuple):
    """``loads``: the profiles that brokers host; ``schemas`` and ``archives`` by source; ``down``:
    the ends of links that are."""

    topology: Topology
    sources: Sequence[SourceInfo]
    schemas: Mapping[str, SchemaFacts]
    archives: Mapping[str, ArchiveFacts]
    loads: Mapping[str, int]
    plan: str
    away: Collection[str]
    down: Collection[tuple[str, ...]]

    @property
    def prefix(self) -> str:
        """With which the URIs of all documents begin."""
        return self._uri("")

    def documents(self) -> dict[str, bytes]:
        """In N-Triples, by their URIs."""
        said = {self._uri("source", each.id): self._of_source(each) for each in self.sources}
        for broker in self.topology.brokers:
            said[self._uri("broker", broker.id)] = self._of_broker(broker)
        for link in self.topology.links:
            said[self._uri("link", *link.ends)] = self._of_link(link)
        if self.archives:
            uri = self._uri("archives")
            said[uri] = list(_said(uri, QUERIES + "DataProvider", name=ARCHIVES))
        if self.plan:
            uri = self._uri("plan")
            said[uri] = list(_said(uri, "Plan", name=self.plan))
        return {uri: "".join(n_triples(each)).encode() for uri, each in said.items()}

    def _of_source(self, of: SourceInfo) -> list[Statement]:
        uri = self._uri("source", of.id)
        schema, archive = _Reference(f"{uri}#schema"), _Reference(f"{uri}#archive")
        found = [
            *_said(uri, "Source", id=of.id, name=of.name, rate=float(of.rate), size=of.size),
            *_said(uri, "", root=_Reference(self._uri("broker", of.root)), **_place(of.location)),
        ]
        if of.schema_kind:
            of_schema = self.schemas.get(of.id, SchemaFacts())
            found += _said(uri, "", schema=schema)
            found += _said(schema, "Schema", name=of.schema_name, kind=of.schema_kind)
            found += _said(schema, "", namespace=of_schema.namespaces, rootElement=of_schema.roots)
        if facts := self.archives.get(of.id):
            first, last = _moment(facts.first), _moment(facts.last)
            found += _said(archive, "Archive", source=_Reference(uri), first=first, last=last)
            found += self._as_relation(of, archive, facts)
        return found

    def _as_relation(
        self, of: SourceInfo, archive: _Reference, facts: ArchiveFacts
    ) -> Iterator[Statement]:
        """Read where the directory is, or by the brokers of the network."""
        alike = [each for each in self.sources if each.name == of.name]
        has_name = len(alike) == 1 and of.name and not {*of.name} & {*".`"}
        registration = self.topology.where(self.topology.registration[0].id)
        directory = self.topology.archive.directory
        return _said(
            archive,
            QUERIES + "Relation",
            name=of.name if has_name else of.id,
            provider=_Reference(self._uri("archives")),
            readAt=_Reference(CLIENT),
            format="archive",
            location="" if directory is None else str(directory.absolute()),
            option=(f"source={of.id}", f"registration={registration}"),
            rows=float(facts.messages),
            bytes=float(facts.bytes),
            refreshed=_moment(facts.last),
        )

    def _of_broker(self, of: BrokerNode) -> list[Statement]:
        uri, load, is_away = self._uri("broker", of.id), self.loads.get(of.id), of.id in self.away
        name = of.label or of.id
        found = _said(uri, "Broker", id=of.id, name=name, capacity=of.capacity, load=load)
        return [*found, *_said(uri, "", isAway=is_away, **_place(of.place))]

    def _of_link(self, of: Link) -> list[Statement]:
        ends = tuple(_Reference(self._uri("broker", each)) for each in of.ends)
        is_down = any(set(of.ends) == set(each) for each in self.down)
        figures = {"latency": float(of.latency_ms), "bandwidth": float(of.bandwidth_kbps)}
        uri = self._uri("link", *of.ends)
        return list(_said(uri, "Link", end=ends, isDown=is_down, **figures))

    def _uri(self, *names: str) -> str:
        said = (quote(each, safe="") for each in (self.topology.name, *names))
        return ":".join(("urn:onyx:network", *said))


class _Reference(str):
    """The URI of a resource."""


class _Moment(str):
    """In the form of an xsd:dateTime."""


def _moment(seconds: float | None) -> _Moment | None:
    if seconds is None:
        return None
    return _Moment(datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds"))


def _place(of: tuple[float, float] | None) -> dict[str, float]:
    return {} if of is None else {"latitude": float(of[0]), "longitude": float(of[1])}


def _said(uri: str, of_class: str, **values: object) -> Iterator[Statement]:
    """The class of a resource, if one is given, and its values; of None and "" nothing."""
    if of_class:
        name = of_class if of_class.startswith(QUERIES) else NAMESPACE + of_class
        yield Statement(uri, RDF_TYPE, name, "", "")
    for name, given in values.items():
        for value in given if isinstance(given, tuple) else (given,):
            if value is None or value == "":
                continue
            datatype = _DATATYPES[type(value)]
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield Statement(uri, _OF_QUERIES.get(name, NAMESPACE + name), text, datatype, "")


_WORDS = "name provider readAt format location option rows bytes refreshed"
_OF_QUERIES = {name: QUERIES + name for name in _WORDS.split()}
_DATATYPES: dict[type, str] = {
    bool: XSD + "boolean",
    int: XSD + "integer",
    float: XSD + "double",
    str: XSD + "string",
    _Reference: "",
    _Moment: XSD + "dateTime",
}
