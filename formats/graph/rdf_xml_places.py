"""Line and column of what is refused in RDF/XML, by a second reading.

The reader of RDF/XML works on the columns of a document, in which places are no more.  Here the
element is found again, by its path or by the statement that it makes, and expat goes up to it.
"""

from __future__ import annotations

import pyexpat
import re
from typing import TypeAlias

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph.iris import resolve, without_fragment
from formats.graph.vocabulary import RDF, RDF_TYPE
from formats.names import XML_NAMESPACE
from formats.text import declared_codec, parse_text, takes_several_bytes

Place: TypeAlias = tuple[int, int]
"""Line and column from 1, or both 0 where the place is not found."""

_PATH = re.compile(r"/(\S+): ")
_STEP = re.compile(r"([^\[]+)(?:\[([0-9]+)\])?")
_WITHOUT_PREFIX = {"ID", "about", "parseType", "resource", "type"}
_ABOUT = {RDF + "about": "", RDF + "resource": "", RDF + "ID": "#"}
_BASE = XML_NAMESPACE + "base"


def with_place(refusal: MessageRefused, data: bytes) -> MessageRefused:
    """The same refusal with line and column, if its reason begins with the path of an element,
    as in ``/rdf:RDF/item[2]: ...``."""
    found = _PATH.match(refusal.reason)
    if found is None:
        return refusal
    stream, element = parse_text(data), 0
    for step in found[1].split("/")[1:]:
        named = _STEP.fullmatch(step)
        assert named is not None
        alike = [e for e in stream.children_of(element) if str(stream.name_of(e)) == named[1]]
        element = alike[int(named[2] or 1) - 1]
    return MessageRefused(refusal.code, refusal.reason, *_place_of_element(data, element))


def place_of_statement(data: bytes, base: str, subject: str, name: str, value: str) -> Place:
    """Of the element that makes a statement with the property ``name`` ("": with any), or the one
    most like it; of a blank node "" is said.

    An element is looked at as a property of the one around it and as a node, whichever it is.
    """
    stream, found, most = parse_text(data), -1, -1
    said = [_attributes(stream, element) for element in range(len(stream))]
    bases, nodes = [base], []  # of the document, and of each element; what each is about
    for attributes, parent in zip(said, stream.element_parent, strict=True):
        base = _resolved(bases[parent + 1], attributes.get(_BASE, ""))
        bases.append(without_fragment(base.encode()).decode())
        about = [sign + attributes[key] for key, sign in _ABOUT.items() if key in attributes]
        nodes.append(_resolved(bases[-1], about[0]) if about else "")
    for element, attributes in enumerate(said):
        parent, node = stream.element_parent[element], nodes[element]
        _, namespace, local = stream.name_of(element)
        if RDF + "resource" in attributes:
            thing = node
        elif element + 1 < stream.element_end[element]:
            thing = nodes[element + 1]
        else:
            thing = "".join(map(stream.content_value, stream.text_nodes_of(element)))
        made = [
            (nodes[parent] if parent >= 0 else "", namespace + local, thing),
            (node, RDF_TYPE, namespace + local),
            *((node, key, text) for key, text in attributes.items()),
            (node, RDF_TYPE, _resolved(bases[element + 1], attributes.get(RDF_TYPE, ""))),
        ]
        for its_subject, its_name, its_value in made:
            like = 2 * (its_subject == subject) + (its_value == value)
            is_member = its_name == RDF + "li" and name.startswith(f"{RDF}_")
            if like > most and (name in (its_name, "") or is_member):
                found, most = element, like
    return _place_of_element(data, found) if found >= 0 else (0, 0)


def _place_of_element(data: bytes, element: int) -> Place:
    """``element``: its number in document order."""
    codec = declared_codec(data)
    if codec is not None and takes_several_bytes(codec):
        data, codec = data.decode(codec).encode(), "UTF-8"
    parser = pyexpat.ParserCreate(codec)
    left, place = element, (0, 0)

    def start(_name: str, _attributes: object) -> None:
        nonlocal left, place
        if left == 0:
            place = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        left -= 1

    parser.StartElementHandler = start
    parser.Parse(data, True)
    return place


def _attributes(stream: ElementStream, element: int) -> dict[str, str]:
    """By the IRIs that their names mean."""
    found = {}
    for attribute in stream.attributes_of(element):
        _, namespace, local = stream.names[stream.attribute_name[attribute]]
        if not namespace and local in _WITHOUT_PREFIX:
            namespace = RDF
        found[namespace + local] = stream.attribute_value(attribute)
    return found


def _resolved(base: str, reference: str) -> str:
    return resolve(base.encode(), reference.encode()).decode()
