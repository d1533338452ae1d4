"""RDF/XML: the graph that a document means, read off its columns (W3C, RDF 1.1 XML Syntax).

The document has been parsed; nothing of it is parsed again.  In RDF/XML elements are nodes and
properties in turn, so one walk in document order is enough, with a row for each open element::

    <rdf:RDF>                                  DOCUMENT    its children are nodes
      <ex:Page rdf:about="/a">                 NODE        its children are properties
        <ex:title>Hello</ex:title>             a leaf: its text is a literal
        <ex:author>                            PROPERTY    its one child is the object, a node
          <ex:Person/>
        </ex:author>
        <ex:parts rdf:parseType="Collection">  COLLECTION  its children are the members, nodes
          <ex:Page/>
        </ex:parts>
        <ex:size rdf:parseType="Resource">     NODE        a blank node, without an element
          <ex:width>7</ex:width>
        </ex:size>
      </ex:Page>
    </rdf:RDF>

Text that is no literal is white space, or the document means no graph.  What the recommendation
leaves open: white space in a property whose object an attribute names is passed over, and a comment
within a literal too.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits
from formats.graph.rdf_attributes import RdfAttributes
from formats.graph.rdf_names import element_kind
from formats.graph.striping import Closure, GraphBuilder
from formats.graph.vocabulary import RDF
from formats.graph.xml_literal import xml_literal

if cython.compiled:
    from cython.cimports.formats.graph.rdf_names import (
        ABOUT,
        DATATYPE_OF,
        DESCRIPTION,
        ID,
        LIST_ITEM,
        NO_ELEMENT,
        NODE_ID,
        PARSE_TYPE,
        RESOURCE,
        TYPE,
    )
else:
    from formats.graph.rdf_names import (
        ABOUT,
        DATATYPE_OF,
        DESCRIPTION,
        ID,
        LIST_ITEM,
        NO_ELEMENT,
        NODE_ID,
        PARSE_TYPE,
        RESOURCE,
        TYPE,
    )

if not cython.compiled:
    DOCUMENT, NODE, PROPERTY, COLLECTION = range(4)

_RDF = RDF.encode()
_NONE = -1


def is_rdf(stream: ElementStream) -> bool:
    """Whether a document says that it is RDF/XML: its root element is rdf:RDF."""
    root = stream.name_of(0)
    return root.local == "RDF" and root.namespace == RDF


def graph_of_document(
    stream: ElementStream,
    limits: GraphLimits = DEFAULT_GRAPH_LIMITS,
    base: str = "",
    closure: Closure | None = None,
) -> ElementStream:
    """The striped graph (``striped.py``) of an RDF/XML document, whose root may be a node, too.

    ``base``: the IRI that relative references are relative to where no xml:base says another one;
    without either they are refused.  ``closure``: what taxonomies make of types and properties.

    Raises MessageRefused where the document means no graph, which says nothing against it as a
    document: ``rdf-syntax``, ``duplicate-id``, ``relative-iri``, ``bad-iri``, ``bad-language``;
    and with the codes of the limits.
    """
    builder = GraphBuilder(limits)
    RdfXmlReader(stream, builder, base.encode(), limits).read()
    return builder.finish(closure)


class RdfXmlReader:
    """The triples of one document, told to a builder in document order; ``read``, once."""

    def __init__(
        self, stream: ElementStream, builder: GraphBuilder, base: bytes, limits: GraphLimits
    ) -> None:
        self._stream = stream
        self._out = builder
        self._terms = builder.terms
        self._terms.trust_characters()
        self._literal_bytes_max = limits.literal_bytes_max
        self._attributes = RdfAttributes(stream, base)
        self._given = self._attributes.given
        self._element_name = stream.element_name
        self._element_end = stream.element_end
        self._attribute_name = stream.attribute_name
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_octets = stream.content_values
        self._content_values = stream.content_values
        self._content = 0  # the first piece that is not read
        # Of each name of the message, as it is met: what it is there for, and its term.
        self._kind_of_name = array("i", bytes(4 * len(stream.names)))
        self._term_of_name = array("i", [_NONE]) * len(stream.names)
        # A row for each open element.
        rows: cython.int = self._attributes.depth + 2
        self._kind = array("i", bytes(4 * rows))
        self._end = array("i", bytes(4 * rows))
        self._subject = array("i", bytes(4 * rows))
        self._property = array("i", bytes(4 * rows))
        self._statement = array("i", bytes(4 * rows))
        self._items = array("i", bytes(4 * rows))
        self._last_cell = array("i", bytes(4 * rows))
        self._top = 0
        self._ids: set[bytes] = set()
        self._type = self._rdf_term(b"type")

    def read(self) -> None:
        """Tell all triples; MessageRefused if the document means no graph."""
        element: cython.int = 0
        last: cython.int = len(self._stream)
        self._kind[0] = DOCUMENT
        self._end[0] = last
        if is_rdf(self._stream):
            self._attributes.read(0)
            self._attributes.check_only(_NONE, _NONE)
            self._push(DOCUMENT, 0, _NONE)
            element = 1
        while element < last:
            self._check_content(element)
            self._close_before(element)
            if self._kind[self._top] == NODE:
                element = self._read_property(element)
            else:
                element = self._read_node(element)
        self._check_content(last)
        self._close_before(last)

    def _read_node(self, element: cython.int) -> cython.int:
        """A node element: section 7.2.11; returns the element after it."""
        i: cython.int
        subject: cython.int
        attributes: RdfAttributes = self._attributes
        given = self._given
        kind: cython.int = self._kind_of_element(element)
        attributes.read(element)
        if kind >= LIST_ITEM:
            self._refuse_name(element)
        if (given[ID] >= 0) + (given[ABOUT] >= 0) + (given[NODE_ID] >= 0) > 1:
            attributes.refuse("rdf-syntax", "two of rdf:ID, rdf:about and rdf:nodeID")
        if given[RESOURCE] >= 0 or given[DATATYPE_OF] >= 0 or given[PARSE_TYPE] >= 0:
            attributes.refuse("rdf-syntax", "an attribute of a property on a node")
        if given[ID] >= 0:
            subject = self._new_id()
        elif given[ABOUT] >= 0:
            subject = self._terms.iri(attributes.iri(given[ABOUT]))
        elif given[NODE_ID] >= 0:
            subject = self._terms.blank(attributes.name(given[NODE_ID]))
        else:
            subject = self._terms.new_blank()
        self._refer_to(subject)
        if kind != DESCRIPTION:
            self._out.add(subject, self._type, self._term_of(self._element_name[element]))
        for i in range(len(attributes.properties)):
            self._add_attribute(subject, attributes.properties[i])
        self._push(NODE, element, subject)
        return element + 1

    def _refer_to(self, node: cython.int) -> None:
        """What the element around a node says of it."""
        top: cython.int = self._top
        if self._kind[top] == PROPERTY:
            if self._items[top]:
                self._attributes.refuse("rdf-syntax", "a second node in one property")
            self._items[top] = 1
            self._add(self._subject[top], self._property[top], node, self._statement[top])
        elif self._kind[top] == COLLECTION:
            cell: cython.int = self._terms.new_blank()
            self._add_cell(top, cell)
            self._out.add(cell, self._rdf_term(b"first"), node)
            self._last_cell[top] = cell

    def _add_cell(self, row: cython.int, cell: cython.int) -> None:
        """The next cell of a collection, or what is in place of one at its end."""
        if self._last_cell[row] >= 0:
            self._out.add(self._last_cell[row], self._rdf_term(b"rest"), cell)
        else:
            self._add(self._subject[row], self._property[row], cell, self._statement[row])

    def _read_property(self, element: cython.int) -> cython.int:
        """A property element: sections 7.2.14 to 7.2.21; returns the element after it."""
        attributes: RdfAttributes = self._attributes
        kind: cython.int = self._kind_of_element(element)
        attributes.read(element)
        if kind == DESCRIPTION or kind >= NO_ELEMENT:
            self._refuse_name(element)
        if self._given[ABOUT] >= 0:
            attributes.refuse("rdf-syntax", "rdf:about on a property")
        property_term: cython.int
        if kind == LIST_ITEM:
            self._items[self._top] += 1
            property_term = self._rdf_term(b"_%d" % self._items[self._top])
        else:
            property_term = self._term_of(self._element_name[element])
        subject: cython.int = self._subject[self._top]
        statement: cython.int = self._new_id() if self._given[ID] >= 0 else _NONE
        if self._given[PARSE_TYPE] >= 0:
            return self._read_parse_type(element, subject, property_term, statement)
        if self._element_end[element] > element + 1:
            attributes.check_only(ID, _NONE)
            self._push(PROPERTY, element, subject)
            self._property[self._top] = property_term
            self._statement[self._top] = statement
        else:
            self._add(subject, property_term, self._object_of_leaf(element), statement)
        return element + 1

    def _read_parse_type(
        self,
        element: cython.int,
        subject: cython.int,
        property_term: cython.int,
        statement: cython.int,
    ) -> cython.int:
        parse_type = self._attributes.value(self._given[PARSE_TYPE])
        self._attributes.check_only(ID, PARSE_TYPE)
        if parse_type == b"Resource":
            node: cython.int = self._terms.new_blank()
            self._add(subject, property_term, node, statement)
            self._push(NODE, element, node)
        elif parse_type == b"Collection":
            self._push(COLLECTION, element, subject)
            self._property[self._top] = property_term
            self._statement[self._top] = statement
            self._last_cell[self._top] = _NONE
        else:
            # Whatever else it says is read as "Literal".
            value = xml_literal(self._stream, element, self._literal_bytes_max)
            literal = self._terms.literal(value, self._rdf_term(b"XMLLiteral"))
            self._add(subject, property_term, literal, statement)
            self._content = max(self._content, self._stream.content_within(element).stop)
            return self._element_end[element]
        return element + 1

    def _object_of_leaf(self, element: cython.int) -> cython.int:
        """The object of a property element that contains no element."""
        i: cython.int
        node: cython.int
        attributes: RdfAttributes = self._attributes
        given = self._given
        if given[RESOURCE] >= 0:
            node = self._terms.iri(attributes.iri(given[RESOURCE]))
        elif given[NODE_ID] >= 0:
            node = self._terms.blank(attributes.name(given[NODE_ID]))
        elif attributes.properties:
            node = self._terms.new_blank()
        elif given[DATATYPE_OF] >= 0:
            datatype: cython.int = self._terms.iri(attributes.iri(given[DATATYPE_OF]))
            return self._terms.literal(self._text_of(element), datatype)
        else:
            return self._literal(self._text_of(element))
        # Text of it that is not white space is found by _check_content.
        if given[DATATYPE_OF] >= 0:
            attributes.refuse("rdf-syntax", "rdf:datatype, though the object is no literal")
        if given[RESOURCE] >= 0 and given[NODE_ID] >= 0:
            attributes.refuse("rdf-syntax", "both rdf:resource and rdf:nodeID")
        for i in range(len(attributes.properties)):
            self._add_attribute(node, attributes.properties[i])
        return node

    def _add_attribute(self, subject: cython.int, attribute: cython.int) -> None:
        """The triple of a property attribute."""
        attributes: RdfAttributes = self._attributes
        if attributes.kind_of(attribute) == TYPE:
            self._out.add(subject, self._type, self._terms.iri(attributes.iri(attribute)))
        else:
            value: cython.int = self._literal(attributes.value(attribute))
            self._out.add(subject, self._term_of(self._attribute_name[attribute]), value)

    def _add(
        self,
        subject: cython.int,
        property_term: cython.int,
        object_term: cython.int,
        statement: cython.int,
    ) -> None:
        """A triple, and what is said of it where its property has an rdf:ID (section 7.3)."""
        out: GraphBuilder = self._out
        out.add(subject, property_term, object_term)
        if statement >= 0:
            out.add(statement, self._type, self._rdf_term(b"Statement"))
            out.add(statement, self._rdf_term(b"subject"), subject)
            out.add(statement, self._rdf_term(b"predicate"), property_term)
            out.add(statement, self._rdf_term(b"object"), object_term)

    # Terms

    def _literal(self, value: bytes) -> cython.int:
        language: bytes = self._attributes.language()
        return self._terms.text(value, language) if language else self._terms.string(value)

    def _new_id(self) -> cython.int:
        """The IRI that an rdf:ID names, which no other in the document does."""
        name: bytes = self._attributes.name(self._given[ID])
        iri: bytes = self._attributes.resolved(b"#" + name)
        if iri in self._ids:
            self._attributes.refuse("duplicate-id", f"a second rdf:ID {name.decode()}")
        self._ids.add(iri)
        return self._terms.iri(iri)

    def _rdf_term(self, local: bytes) -> cython.int:
        return self._terms.iri(_RDF + local)

    def _term_of(self, name: cython.int) -> cython.int:
        """The IRI that a name means."""
        if self._term_of_name[name] < 0:
            self._term_of_name[name] = self._terms.iri(self._attributes.iri_of_name(name))
        return self._term_of_name[name]

    # Elements

    def _kind_of_element(self, element: cython.int) -> cython.int:
        name: cython.int = self._element_name[element]
        if self._kind_of_name[name] == 0:
            self._kind_of_name[name] = element_kind(self._stream.names[name])
        return self._kind_of_name[name]

    def _push(self, kind: cython.int, element: cython.int, subject: cython.int) -> None:
        """A row for an element."""
        self._top += 1
        self._kind[self._top] = kind
        self._end[self._top] = self._element_end[element]
        self._subject[self._top] = subject
        self._items[self._top] = 0

    def _close_before(self, element: cython.int) -> None:
        """The rows of elements that have ended."""
        while self._top > 0 and self._end[self._top] <= element:
            if self._kind[self._top] == COLLECTION:
                self._add_cell(self._top, self._rdf_term(b"nil"))
            self._top -= 1

    # Content

    def _text_of(self, element: cython.int) -> bytes:
        """The text of an element that contains no other; it counts as read."""
        piece: cython.int = self._content
        found: bytes = b""
        parts: list[bytes] = []
        start: cython.Py_ssize_t
        end: cython.Py_ssize_t
        while piece < len(self._content_next) and self._content_parent[piece] == element:
            if self._content_kind[piece] == 0:  # ContentKind.TEXT
                start, end = self._content_offset[piece], self._content_offset[piece + 1]
                found = self._content_octets[start:end]
                parts.append(found)
            piece += 1
        self._content = piece
        return found if len(parts) < 2 else b"".join(parts)

    def _check_content(self, element: cython.int) -> None:
        """What is before the start of an element, and is not read yet, is white space."""
        piece: cython.int = self._content
        at: cython.Py_ssize_t
        while piece < len(self._content_next) and self._content_next[piece] <= element:
            if self._content_kind[piece] == 0:  # ContentKind.TEXT
                for at in range(self._content_offset[piece], self._content_offset[piece + 1]):
                    if self._content_values[at] not in b" \t\r\n":
                        parent = self._content_parent[piece]
                        reason = "text that is not white space"
                        self._attributes.refuse("rdf-syntax", reason, parent)
            piece += 1
        self._content = piece

    def _refuse_name(self, element: cython.int) -> None:
        name = self._stream.name_of(element)
        what = "a name of RDF/XML itself" if name.namespace else "in no namespace"
        self._attributes.refuse("rdf-syntax", f"the element is named {name}, {what}", element)
