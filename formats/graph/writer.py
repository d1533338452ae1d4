"""The way back: a striped ElementStream as triples, and as bytes in any syntax.

What taxonomies made of a graph (CLOSURE) is no part of it and left out.  Blank nodes are labelled
by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyoxigraph
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from formats.element_stream import ElementStream
from formats.errors import FormatError
from formats.graph import striped
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS
from formats.names import XML_NAMESPACE, QualifiedName
from formats.xml_writer import XmlWriter

# -------------------------------------------------------------------------------------------------
# A striped graph as RDF/XML: a ``rdf:Description`` for each subject, an element for each triple.
#
# ::
#
#     <rdf:Description rdf:about="http://e/1"><dc:title xml:lang="en">Hello</dc:title>...


def _rdf(local: str) -> QualifiedName:
    return QualifiedName("rdf", RDF, local)


# Names of RDF that are no names of properties in RDF/XML (section 5.1); rdf_names has the same.
_OF_RDF_XML = frozenset(
    ("RDF", "ID", "about", "nodeID", "resource", "datatype", "parseType", "Description", "li")
) | {"aboutEach", "aboutEachPrefix", "bagID"}
_LANGUAGE = QualifiedName("xml", XML_NAMESPACE, "lang")
_STRIPED_CLOSURE = (striped.GRAPH_NAMESPACE, striped.CLOSURE)


def write_rdf_xml(stream: ElementStream) -> bytes:
    """The default graph of a striped stream; FormatError ``not-writable`` where a property cannot
    be the name of an element."""
    out = XmlWriter()
    declared = [pair for pair in stream.declarations_of(0) if pair[0]]
    out.start_element(_rdf("RDF"), declarations=declared)
    for subject in stream.children_of(0):
        properties = [
            child
            for child in stream.children_of(subject)
            if stream.name_of(child)[1:] != _STRIPED_CLOSURE
        ]
        if properties:
            said = _values(stream, subject)
            out.start_element(_rdf("Description"), [_rdf_node(said, striped.IRI_SUBJECT, "about")])
            for each in properties:
                _write_property(out, stream.name_of(each), _values(stream, each))
            out.end_element()
    out.end_element()
    return out.getvalue()


def _write_property(out: XmlWriter, name: QualifiedName, values: dict[str, str]) -> None:
    if name.namespace == striped.GRAPH_NAMESPACE:
        raise FormatError("not-writable", f"{values[striped.PROPERTY_IRI]} has no name in XML")
    if not name.namespace or (name.namespace == RDF and name.local in _OF_RDF_XML):
        raise FormatError("not-writable", f"RDF/XML has {name} for itself")
    text = ""
    if striped.STRING in values:
        attributes = []
        text = values[striped.STRING]
    elif striped.TEXT in values:
        attributes = [(_LANGUAGE, values[striped.LANGUAGE])]
        text = values[striped.TEXT]
    elif striped.LEXICAL in values:
        attributes = [(_rdf("datatype"), values[striped.DATATYPE])]
        text = values[striped.LEXICAL]
    else:
        attributes = [_rdf_node(values, striped.IRI_OBJECT, "resource")]
    out.start_element(name, attributes)
    out.text(text)
    out.end_element()


def _rdf_node(values: dict[str, str], iri: str, attribute: str) -> tuple[QualifiedName, str]:
    if iri in values:
        return _rdf(attribute), values[iri]
    return _rdf("nodeID"), f"b{values[striped.BLANK]}"


def _values(stream: ElementStream, element: int) -> dict[str, str]:
    return {
        stream.names[stream.attribute_name[each]].local: stream.attribute_value(each)
        for each in stream.attributes_of(element)
    }


# -------------------------------------------------------------------------------------------------


FORMATS = {
    GraphSyntax.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    GraphSyntax.TRIG: pyoxigraph.RdfFormat.TRIG,
    GraphSyntax.N_TRIPLES: pyoxigraph.RdfFormat.N_TRIPLES,
    GraphSyntax.N_QUADS: pyoxigraph.RdfFormat.N_QUADS,
    GraphSyntax.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
    GraphSyntax.RDF_XML: pyoxigraph.RdfFormat.RDF_XML,
}
_Attributes: TypeAlias = dict[str, str]
_Graph: TypeAlias = "NamedNode | BlankNode | DefaultGraph"
_ROOT = (striped.GRAPH_NAMESPACE, striped.GRAPH)
_CLOSURE = (striped.GRAPH_NAMESPACE, striped.CLOSURE)
_FIXED = {striped.CLASS: NamedNode(RDF_TYPE), striped.MEMBER: NamedNode(RDFS + "member")}


def is_graph(stream: ElementStream) -> bool:
    """Whether a message is a striped graph."""
    return stream.name_of(0)[1:] == _ROOT


def has_named_graphs(stream: ElementStream) -> bool:
    """Whether some triple of a striped graph is in a named one."""
    return any(
        name.namespace == striped.GRAPH_NAMESPACE and name.local == striped.NAMED_SUBJECT
        for name in stream.names
    )


def triples_of(stream: ElementStream) -> Iterator[Quad]:
    """All triples of a striped graph, those of one subject after the other."""
    for node, graph, children in _subjects(stream):
        for child in children:
            name = stream.name_of(child)
            if name[1:] != _CLOSURE:
                values = _attributes(stream, child)
                yield Quad(node, _property(name, values), _object(values), graph)


def closure_of(stream: ElementStream) -> Iterator[tuple[str, Quad, bool]]:
    """The triples that taxonomies made of a striped graph: (CLASS, PROPERTY_ABOVE or MEMBER, the
    triple, whether it is OWN); the property is rdf:type, the one above, or rdfs:member."""
    for node, graph, children in _subjects(stream):
        for child in children:
            if stream.name_of(child)[1:] == _CLOSURE:
                for each in stream.children_of(child):
                    values = _attributes(stream, each)
                    kind = stream.name_of(each).local
                    prop = _FIXED.get(kind) or NamedNode(values[striped.PROPERTY_IRI])
                    yield kind, Quad(node, prop, _object(values), graph), striped.OWN in values


def write_graph(stream: ElementStream, syntax: GraphSyntax) -> bytes:
    """A striped graph as bytes.

    Raises FormatError: ``named-graphs`` where the syntax has none but the graph has,
    ``not-writable`` where it cannot say the graph (a property without an XML name in RDF/XML),
    ``not-striped`` for a stream that is no striped graph.
    """
    root = stream.name_of(0)
    if root[1:] != _ROOT:
        raise FormatError("not-striped", f"a striped graph begins with g, not with {root}")
    try:
        return _written(stream, syntax)
    except KeyError as missing:
        raise FormatError(
            "not-striped", f"no striped graph: an element of it lacks the attribute {missing}"
        ) from None


def _written(stream: ElementStream, syntax: GraphSyntax) -> bytes:
    if not syntax.has_named_graphs and has_named_graphs(stream):
        raise FormatError("named-graphs", f"{syntax} cannot say in which graph a triple is")
    if syntax is GraphSyntax.RDF_XML:
        return write_rdf_xml(stream)
    prefixes = {prefix: namespace for prefix, namespace in stream.declarations_of(0) if prefix}
    try:
        written = pyoxigraph.serialize(
            triples_of(stream), format=FORMATS[syntax], prefixes=prefixes
        )
    except (ValueError, OSError) as error:
        raise FormatError("not-writable", f"{syntax} cannot say it: {error}") from None
    assert written is not None
    return written


def _subjects(
    stream: ElementStream,
) -> Iterator[tuple[NamedNode | BlankNode, _Graph, Iterator[int]]]:
    """Each subject of a striped graph, in a graph, with its elements."""
    for subject in stream.children_of(0):
        said = _attributes(stream, subject)
        graph: _Graph = DefaultGraph()
        if stream.name_of(subject).local == striped.NAMED_SUBJECT:
            graph = _node(said, striped.GRAPH_IRI, striped.GRAPH_BLANK)
        node = _node(said, striped.IRI_SUBJECT, striped.BLANK)
        yield node, graph, stream.children_of(subject)


def _attributes(stream: ElementStream, element: int) -> _Attributes:
    return {
        stream.names[stream.attribute_name[each]].local: stream.attribute_value(each)
        for each in stream.attributes_of(element)
    }


def _node(values: _Attributes, iri: str, blank: str) -> NamedNode | BlankNode:
    named = values.get(iri)
    return NamedNode(named) if named is not None else BlankNode(f"b{values[blank]}")


def _property(name: QualifiedName, values: _Attributes) -> NamedNode:
    if name.namespace == striped.GRAPH_NAMESPACE:
        return NamedNode(values[striped.PROPERTY_IRI])
    return NamedNode(name.namespace + name.local)


def _object(values: _Attributes) -> NamedNode | BlankNode | Literal:
    text = values.get(striped.STRING)
    if text is not None:
        return Literal(text)
    text = values.get(striped.TEXT)
    if text is not None:
        return Literal(text, language=values[striped.LANGUAGE])
    text = values.get(striped.LEXICAL)
    if text is not None:
        return Literal(text, datatype=NamedNode(values[striped.DATATYPE]))
    return _node(values, striped.IRI_OBJECT, striped.BLANK)
