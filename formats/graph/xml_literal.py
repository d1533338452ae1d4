"""The lexical form of an XML literal: what an element contains, in exclusive canonical XML.

RDF/XML's ``rdf:parseType="Literal"`` makes a literal of markup.  Two documents that say the same
shall have the same literal, so it is written as Exclusive XML Canonicalization 1.0 (W3C, 2002)
says, with comments and without inclusive prefixes: a namespace is declared where a name first
uses it, and nowhere else; attributes stand in order of namespace and name; no tag is empty.

::

    <p rdf:parseType="Literal">a<b z="1" y="2"/></p>      a<b y="2" z="1"></b>
"""

from __future__ import annotations

from formats.element_stream import ContentKind, ElementStream
from formats.element_stream_builder import ElementStreamBuilder
from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits, refuse_markup
from formats.graph.vocabulary import RDF
from formats.names import QualifiedName

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})
_BESIDE = {(RDF, "parseType"), (RDF, "ID")}  # with any other attribute it is an error
_IN_VALUES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"}
)


def xml_literal(stream: ElementStream, element: int, bytes_max: int) -> bytes:
    """What an element contains, as canonical XML in UTF-8; MessageRefused if it is longer."""
    writer = _Writer(bytes_max)
    content = stream.content_within(element)
    piece = content.start
    lineage = [element]  # the elements that are open
    for current in range(element + 1, stream.element_end[element] + 1):
        while piece < content.stop and stream.content_next[piece] <= current:
            writer.close_down_to(lineage, stream.content_parent[piece])
            writer.put_content(stream.content_kind[piece], stream.content_value(piece))
            piece += 1
        if current == stream.element_end[element]:
            break
        writer.close_down_to(lineage, stream.element_parent[current])
        lineage.append(current)
        attributes = [
            (stream.names[stream.attribute_name[attribute]], stream.attribute_value(attribute))
            for attribute in stream.attributes_of(current)
        ]
        writer.open(stream.name_of(current), attributes)
    writer.close_down_to(lineage, element)
    return b"".join(writer.parts)


def with_texts(stream: ElementStream, limits: GraphLimits) -> ElementStream:
    """An RDF/XML document whose XML literals are texts of that datatype, for a processor that does
    not write them in canonical form.  Comments and instructions, which mean nothing, go."""
    out = ElementStreamBuilder()
    lineage = [-1]
    markup = 0

    def close_down_to(parent: int) -> None:
        while lineage[-1] != parent:
            lineage.pop()
            out.end_element()

    element = piece = 0
    while True:
        while piece < len(stream.content_kind) and stream.content_next[piece] <= element:
            if stream.content_kind[piece] == ContentKind.TEXT:
                close_down_to(stream.content_parent[piece])
                out.text(stream.content_value(piece))
            piece += 1
        if element == len(stream):
            break
        close_down_to(stream.element_parent[element])
        attributes = {
            stream.names[stream.attribute_name[attribute]]: stream.attribute_value(attribute)
            for attribute in stream.attributes_of(element)
        }
        found = [each for each in attributes if each[1:] == (RDF, "parseType")]
        others = {each[1:] for each in attributes if each.prefix != "xml"} - _BESIDE
        is_literal = (
            bool(found) and not others and attributes[found[0]] not in ("Resource", "Collection")
        )
        if is_literal:
            del attributes[found[0]]
            attributes[found[0]._replace(local="datatype")] = f"{RDF}XMLLiteral"
        out.start_element(
            stream.name_of(element), [*attributes.items()], stream.declarations_of(element)
        )
        lineage.append(element)
        if is_literal:
            markup += stream.element_end[element] - element - 1
            if markup > limits.markup_max:
                refuse_markup(limits.markup_max)
            out.text(xml_literal(stream, element, limits.literal_bytes_max).decode())
            piece = stream.content_within(element).stop
            element = stream.element_end[element]
        else:
            element += 1
    close_down_to(-1)
    return out.finish()


class _Writer:
    def __init__(self, bytes_max: int) -> None:
        self.parts: list[bytes] = []
        self._left = bytes_max
        self._bytes_max = bytes_max
        self._end_tags: list[str] = []
        # What prefixes mean in what is written, and what each open element has changed.
        self._scope: dict[str, str | None] = {"": ""}
        self._meant_before: list[dict[str, str | None]] = []

    def open(self, name: QualifiedName, attributes: list[tuple[QualifiedName, str]]) -> None:
        scope = self._scope
        used = {name.prefix: name.namespace}
        used.update((each.prefix, each.namespace) for each, _ in attributes if each.prefix)
        used.pop("xml", None)
        declared = {
            prefix: namespace
            for prefix, namespace in used.items()
            if scope.get(prefix) != namespace
        }
        tag = [f"<{name}"]
        for prefix, namespace in sorted(declared.items()):
            tag.append(f' xmlns:{prefix}="' if prefix else ' xmlns="')
            tag.append(namespace.translate(_IN_VALUES) + '"')
        for each, value in sorted(attributes, key=lambda pair: pair[0][1:]):
            tag.append(f' {each}="{value.translate(_IN_VALUES)}"')
        self._put("".join(tag) + ">")
        self._end_tags.append(f"</{name}>")
        self._meant_before.append({prefix: scope.get(prefix) for prefix in declared})
        scope.update(declared)

    def close_down_to(self, lineage: list[int], parent: int) -> None:
        """End tags, up to the innermost element that is to stay open."""
        while lineage[-1] != parent:
            lineage.pop()
            self._scope.update(self._meant_before.pop())
            self._put(self._end_tags.pop())

    def put_content(self, kind: int, value: str) -> None:
        if kind == ContentKind.TEXT:
            self._put(value.translate(_IN_TEXT))
        else:
            self._put(f"<!--{value}-->" if kind == ContentKind.COMMENT else f"<?{value}?>")

    def _put(self, piece: str) -> None:
        written = piece.encode()
        self._left -= len(written)
        if self._left < 0:
            reason = f"an XML literal of more than {self._bytes_max} bytes"
            raise MessageRefused("literal-too-long", reason)
        self.parts.append(written)
