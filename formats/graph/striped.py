"""The names of a striped graph: an RDF graph as an element stream, one element a subject.

::

    <g xmlns="urn:onyx:graph" xmlns:dc="http://purl.org/dc/elements/1.1/" ...>
      <d s="http://planet.example/post/7">           a subject; b="0": a blank node
        <rdf:type r="http://purl.org/rss/1.0/item"/>     r: an IRI, b: a blank node
        <dc:creator v="Ann"/>                            v: an xsd:string
        <dc:title u="Hello" l="en"/>                     u and l: a string with its language
        <ex:price y="9.50" t="...#decimal" n="9.5"/>     y and t: any other literal
        <p i="http://example.org/9" v="x"/>              a property that has no XML name
        <k><c r="http://purl.org/rss/1.0/item" o=""/></k>  what the taxonomies make of the subject
      </d>
      <n g="http://example.org/g1" s="...">...</n>   a subject of a named graph; or gb="1"
    </g>

Subjects stand in order of first appearance, each once a graph, their triples in order, none twice.
A property's IRI is split before its longest ending that is an NCName.  Blank nodes are numbered by
first appearance in the message.  Languages are in lower case.  ``n`` is the number of a valid
numeric literal as an xs:double in its fewest digits, ``w`` the seconds since 1970 of a valid
xsd:dateTime or xsd:date (no zone: as UTC).  Within ``k``: ``c`` is a class of the subject, stated
or listed by a taxonomy (``o``, which is empty), or above one of these; ``q`` (``i``: a property)
one above a property of the subject, with the object as any property has it; ``m`` the members of a
container, rdf:_1 and on, likewise.  An object of which a taxonomy lists classes is a subject with
``k`` alone, at the end, unless something is said of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from formats.graph.vocabulary import RDF, RDFS

GRAPH_NAMESPACE = "urn:onyx:graph"

GRAPH = "g"  # the root element
SUBJECT = "d"
NAMED_SUBJECT = "n"
OTHER_PROPERTY = "p"
CLOSURE = "k"
CLASS = "c"
PROPERTY_ABOVE = "q"
MEMBER = "m"

# Attributes, in no namespace.
IRI_SUBJECT = "s"
BLANK = "b"
GRAPH_IRI = "g"
GRAPH_BLANK = "gb"
IRI_OBJECT = "r"
STRING = "v"
TEXT = "u"
LANGUAGE = "l"
LEXICAL = "y"
DATATYPE = "t"
NUMBER = "n"
SECONDS = "w"
PROPERTY_IRI = "i"
OWN = "o"

# How namespaces are abbreviated where people look at a striped graph; all others are n1, n2, ..
PREFIXES = {
    RDF: "rdf",
    RDFS: "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://purl.org/rss/1.0/": "rss",
    "http://www.w3.org/ns/dcat#": "dcat",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://schema.org/": "schema",
}


class Closure(Protocol):
    """What taxonomies make of a graph's types and properties; all are IRIs."""

    def classes(self, subject: bytes, types: list[bytes]) -> list[bytes]:
        """The types of a subject ("" for a blank node), those that are listed of it, and all
        classes above them, each once."""

    def properties_above(self, name: bytes) -> list[bytes]:
        """All properties above one, without it."""

    def listed(self, iri: bytes) -> Sequence[bytes]:
        """The classes that are listed of an IRI, which has them wherever it stands."""
