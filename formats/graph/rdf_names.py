"""What a name of an RDF/XML document is there for (RDF 1.1 XML Syntax, sections 5.1 and 6.1).

Of an element::

    PLAIN_ELEMENT       a class, or a property
    DESCRIPTION         rdf:Description: a node, and no property
    LIST_ITEM           rdf:li: a property, and no node
    NO_ELEMENT          a name of the syntax, or one that has gone out of it
    BARE_ELEMENT        a name in no namespace

Of an attribute::

    IGNORED             XML's own, but for xml:lang and xml:base
    PROPERTY_ATTRIBUTE  a property whose object is a string
    TYPE .. PARSE_TYPE  the syntax's; rdf:type is a property whose object is an IRI
    LANGUAGE_OF, BASE   xml:lang, xml:base
    NO_ATTRIBUTE        a name of the syntax that no attribute has, or one that has gone out of it
    BARE_ATTRIBUTE      any other name in no namespace
"""

from __future__ import annotations

from functools import lru_cache

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.graph.iris import find_bad_character, has_scheme
from formats.graph.vocabulary import RDF
from formats.names import XML_NAMESPACE, QualifiedName

if not cython.compiled:
    PLAIN_ELEMENT, DESCRIPTION, LIST_ITEM, NO_ELEMENT, BARE_ELEMENT = range(1, 6)
    IGNORED, PROPERTY_ATTRIBUTE, TYPE, ID, ABOUT, NODE_ID, RESOURCE = range(1, 8)
    DATATYPE_OF, PARSE_TYPE, LANGUAGE_OF, BASE, NO_ATTRIBUTE, BARE_ATTRIBUTE = range(8, 14)

_OF_THE_SYNTAX = {
    "ID": ID,
    "about": ABOUT,
    "nodeID": NODE_ID,
    "resource": RESOURCE,
    "datatype": DATATYPE_OF,
    "parseType": PARSE_TYPE,
}
_GONE = {"aboutEach", "aboutEachPrefix", "bagID"}
# Written without a prefix before 2004, and in feeds to this day.
_WITHOUT_PREFIX = {"ID", "about", "parseType", "resource", "type"}


@lru_cache(4096)
def element_kind(name: QualifiedName) -> int:
    """What an element of this name is there for."""
    if not name.namespace:
        return BARE_ELEMENT
    if name.namespace != RDF:
        return PLAIN_ELEMENT
    if name.local == "Description":
        return DESCRIPTION
    if name.local == "li":
        return LIST_ITEM
    taken = name.local in _OF_THE_SYNTAX or name.local in _GONE or name.local == "RDF"
    return NO_ELEMENT if taken else PLAIN_ELEMENT


@lru_cache(4096)
def iri_of_name(name: QualifiedName) -> bytes:
    """The IRI that a name means, or nothing if that is none."""
    iri = (name.namespace + name.local).encode()
    return b"" if find_bad_character(iri) >= 0 or not has_scheme(iri) else iri


@lru_cache(4096)
def attribute_kind(name: QualifiedName) -> int:
    """What an attribute of this name is there for."""
    if name.namespace == XML_NAMESPACE:
        return {"lang": LANGUAGE_OF, "base": BASE}.get(name.local, IGNORED)
    if (name.prefix or name.local).lower().startswith("xml"):
        return IGNORED
    if name.namespace not in {"", RDF}:
        return PROPERTY_ATTRIBUTE
    if not name.namespace and name.local not in _WITHOUT_PREFIX:
        return BARE_ATTRIBUTE
    if name.local == "type":
        return TYPE
    if name.local in _OF_THE_SYNTAX:
        return _OF_THE_SYNTAX[name.local]
    taken = name.local in _GONE or name.local in {"RDF", "Description", "li"}
    return NO_ATTRIBUTE if taken else PROPERTY_ATTRIBUTE
