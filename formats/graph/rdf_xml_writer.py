"""A striped graph as RDF/XML: a ``rdf:Description`` for each subject, an element for each triple.

::

    <rdf:Description rdf:about="http://e/1"><dc:title xml:lang="en">Hello</dc:title>...
"""

from __future__ import annotations

from formats.element_stream import ElementStream
from formats.errors import FormatError
from formats.graph import striped
from formats.graph.vocabulary import RDF
from formats.names import XML_NAMESPACE, QualifiedName
from formats.xml_writer import XmlWriter


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
            out.start_element(_rdf("Description"), [_node(said, striped.IRI_SUBJECT, "about")])
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
        attributes = [_node(values, striped.IRI_OBJECT, "resource")]
    out.start_element(name, attributes)
    out.text(text)
    out.end_element()


def _node(values: dict[str, str], iri: str, attribute: str) -> tuple[QualifiedName, str]:
    if iri in values:
        return _rdf(attribute), values[iri]
    return _rdf("nodeID"), f"b{values[striped.BLANK]}"


def _values(stream: ElementStream, element: int) -> dict[str, str]:
    return {
        stream.names[stream.attribute_name[each]].local: stream.attribute_value(each)
        for each in stream.attributes_of(element)
    }
