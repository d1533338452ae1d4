"""read_document: a document of metadata as statements that conform to a schema, or a refusal.

A document is checked as far as it shows itself whether it conforms: the classes and the single
values that other documents state are looked at where all documents are known.

PERF: each document passes here.  All that a schema says of a property is prepared once, and found
by the name that the property has in the striped stream (``formats/graph/striped.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, NoReturn, TypeAlias

import msgspec

from formats.element_stream import ElementStream
from formats.errors import Fault, MessageRefused, Refusal
from formats.graph import striped
from formats.graph.graph_limits import GraphLimits
from formats.graph.literal_forms import NO_VALUE, derived_value, is_seconds, value_kind
from formats.graph.rdf_schema import LANG_STRING, LITERAL, Property, RdfSchema
from formats.graph.rdf_xml_places import place_of_statement
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax, by_media_type
from formats.graph.vocabulary import RDF_TYPE, XSD
from formats.names import QualifiedName

DOCUMENT_BYTES_MAX = 4 * 1024 * 1024
BLANK = "#_:"
"""Between the URI of a document and the place of a blank node in it."""

# As much as any message may have, and nobody else waits.
_LIMITS = GraphLimits(json_bytes_max=DOCUMENT_BYTES_MAX, blank_nodes_max=200_000)
_DOCUMENT_URI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\#]*')
_KNOWN_MAX = 8_192
_STRING, _BOOLEAN = XSD + "string", XSD + "boolean"
_BOOLEANS = {"true", "false", "1", "0"}
_BELOW_STRING = frozenset(
    map(XSD.__add__, ("normalizedString", "token", "language", "Name", "NCName", "NMTOKEN", "ID"))
)
_REFERENCES = (striped.IRI_OBJECT, striped.BLANK)
_NO_CLASSES: set[str] = set()
_new = tuple.__new__  # PERF: half the time of a NamedTuple's own


class Statement(NamedTuple):
    """``value`` is an IRI, or a lexical form with its ``datatype`` ("" of a reference).

    A blank node is named ``DOCUMENT#_:N``, by its place among the blank nodes of its document.
    """

    subject: str
    property: str
    value: str
    datatype: str
    language: str


_NOTHING = Statement("", "", "", "", "")


class MetadataRefused(Refusal):
    """A request about metadata that is not taken; nothing is changed."""

    kind = "metadata-refused"


def syntax_of(media_type: str) -> GraphSyntax:
    """MetadataRefused ``unknown-media-type``."""
    syntax = by_media_type(media_type)
    if syntax is None:
        known = ", ".join(GraphSyntax)
        reason = f"{media_type!r} is no syntax of RDF: {known}"
        raise MetadataRefused(Fault("unknown-media-type", reason))
    return syntax


def read_document(uri: str, data: bytes, syntax: GraphSyntax, schema: RdfSchema) -> list[Statement]:
    """The statements of a document, each once; its URI is its base.

    Raises MessageRefused, as ``read_graph`` and as docs/metadata.md says, with the document and
    the place in it.
    """
    if _DOCUMENT_URI.fullmatch(uri) is None:
        raise MessageRefused("document-uri", f"{uri!r} is no absolute IRI without a fragment")
    try:
        return _reader_of(schema).statements(uri, read_graph(data, syntax, _LIMITS, base=uri))
    except _Wrong as wrong:
        place, where = (0, 0), uri
        subject, name, value = ("" if BLANK in each else each for each in wrong.said[:3])
        if syntax is GraphSyntax.RDF_XML:
            place = place_of_statement(data, uri, subject, name, value)
        elif any(wrong.said):
            where = f"{uri}: {wrong.said.subject} {name}".rstrip()
        raise MessageRefused(wrong.code, wrong.reason, *place, where, wrong.hint) from None
    except MessageRefused as refusal:
        refusal.fault = msgspec.structs.replace(refusal.fault, where=uri)
        raise


class _Wrong(Exception):
    """A statement that does not conform."""

    def __init__(self, said: Statement, code: str, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.said, self.code, self.reason, self.hint = said, code, reason, hint


class _Use:
    """All that a document is held to where it uses a property."""

    def __init__(self, name: str, schema: RdfSchema) -> None:
        said = self.said = schema.properties.get(name, Property(name))
        is_type = name == RDF_TYPE
        is_known = schema.is_open or name in schema.properties
        self.name = name
        self.takes_resources = is_type or (is_known and (said.is_reference or not said.range))
        self.takes_literals = is_known and not is_type and not said.is_reference
        self.domains = tuple(map(schema.below, said.domains))
        self.range_below = schema.below(said.range) if said.is_reference and said.range else None
        lineage = (name, *schema.properties_above.get(name, ()))
        known = [schema.properties.get(each, said) for each in lineage]
        self.singles = tuple(each.name for each in known if each.is_single)
        # Of plain literals.
        self.datatype = said.range if said.range not in ("", LITERAL) else _STRING
        self.kind = value_kind(self.datatype.encode())
        shortest = (derived_value(each, self.kind) for each in (b"0", b"9" * 9))
        self.is_short_number = self.kind != NO_VALUE and all(shortest)

    def has_form(self, value: str) -> bool:
        """Whether a plain literal is one of the range."""
        if self.kind == NO_VALUE:
            return self.datatype != LANG_STRING and _has_form(value, self.datatype)
        if self.is_short_number and len(value) < 10 and value.isdecimal() and value.isascii():
            return True
        return derived_value(value.encode(), self.kind) != b""

    def takes(self, value: str, datatype: str) -> bool:
        """Whether a literal with a valid form of its datatype is one of the range."""
        wanted = self.said.range
        if wanted in ("", LITERAL, datatype):
            return True
        if self.kind == NO_VALUE:
            return wanted == _STRING and datatype in _BELOW_STRING
        kind = value_kind(datatype.encode())
        return (
            kind != NO_VALUE
            and is_seconds(kind) == is_seconds(self.kind)
            and derived_value(value.encode(), self.kind) != b""
        )


_Used: TypeAlias = tuple[Statement, _Use]


@lru_cache(8)
def _reader_of(schema: RdfSchema) -> _Reader:
    return _Reader(schema)


class _Reader:
    """Documents of one schema."""

    def __init__(self, schema: RdfSchema) -> None:
        self._schema = schema
        self._names: dict[QualifiedName, _Use | str] = {}
        self._uses: dict[str, _Use] = {}

    def statements(self, uri: str, stream: ElementStream) -> list[Statement]:
        if len(self._names) + len(self._uses) > _KNOWN_MAX:
            self._names.clear()
            self._uses.clear()
        names = [self._names.get(name) or self._learn(name) for name in stream.names]
        values, blank = _values(stream), uri + BLANK
        found: list[_Used] = []
        types: dict[str, set[str]] = {}
        for element in stream.children_of(0):
            at = stream.attribute_start[element]
            subject = values[at]
            if names[stream.attribute_name[at]] == striped.BLANK:
                subject = blank + subject
            elif BLANK in subject:
                reason = f"{subject} is named as blank nodes are, by a fragment that begins with _:"
                raise _Wrong(_NOTHING._replace(subject=subject), "blank-name", reason)
            own, classes = self._read(stream, element, subject, names, values, blank)
            self._check_subject(own, classes)
            if classes:
                types[subject] = classes
            found += own
        for said, use in found:
            if use.range_below is not None:
                classes = types.get(said.value, _NO_CLASSES)
                if classes.isdisjoint(use.range_below) and self._shows(classes):
                    reason = f"{use.name} refers to a {use.said.range}"
                    raise _Wrong(
                        said, "wrong-range", f"{reason}, and {said.value} is {_a(classes)}"
                    )
        statements = [statement for statement, _ in found]
        # A plain literal may have become equal to one that is written with its datatype.
        return list(dict.fromkeys(statements)) if striped.DATATYPE in names else statements

    def _read(
        self,
        stream: ElementStream,
        element: int,
        subject: str,
        names: list[_Use | str],
        values: list[str],
        blank: str,
    ) -> tuple[list[_Used], set[str]]:
        """The statements of one subject, and its classes."""
        elements, attributes = stream.element_name, stream.attribute_name
        starts = stream.attribute_start
        own: list[_Used] = []
        classes: set[str] = set()
        element, end = element + 1, stream.element_end[element]
        while element < end:
            use, at = names[elements[element]], starts[element]
            if isinstance(use, str):
                if use == striped.CLOSURE:
                    element = stream.element_end[element]
                    continue
                use = self._use(values[at])
                at += 1
            value, form = values[at], names[attributes[at]]
            element += 1
            if form == striped.STRING:
                said = _new(Statement, (subject, use.name, value, use.datatype, ""))
                if not use.takes_literals or not use.has_form(value):
                    self._refuse_value(said, use)
            elif form in _REFERENCES:
                value = blank + value if form == striped.BLANK else value
                said = _new(Statement, (subject, use.name, value, "", ""))
                if not use.takes_resources:
                    self._refuse_value(said, use)
                if use.name == RDF_TYPE:
                    self._check_class(said)
                    classes.add(value)
            else:
                datatype, language = values[at + 1], ""
                if form == striped.TEXT:
                    datatype, language = LANG_STRING, datatype
                said = Statement(subject, use.name, value, datatype, language)
                self._check_literal(said, use, has_value=at + 3 == starts[element])
            own.append((said, use))
        return own, classes

    def _check_subject(self, own: list[_Used], classes: set[str]) -> None:
        """Its domains, and what it has one of."""
        single: dict[str, Statement] = {}
        for said, use in own:
            for name in use.singles:
                other = single.setdefault(name, said)
                if other is not said and other[2:] != said[2:]:
                    values = f"{other.value!r} and {said.value!r}"
                    reason = f"{name} has one value, and {said.subject} has {values}"
                    raise _Wrong(said, "second-value", reason)
            for below in use.domains:
                if classes.isdisjoint(below) and self._shows(classes):
                    reason = f"{use.name} belongs to {_a(use.said.domains)}"
                    raise _Wrong(
                        said, "wrong-domain", f"{reason}, and {said.subject} is {_a(classes)}"
                    )

    def _learn(self, name: QualifiedName) -> _Use | str:
        """What an element or an attribute of a stream is."""
        _, namespace, local = name
        if namespace not in ("", striped.GRAPH_NAMESPACE):
            learnt: _Use | str = self._use(namespace + local)
        elif namespace and local == striped.NAMED_SUBJECT:
            reason = "a document is one graph, and this has named ones"
            raise _Wrong(_NOTHING, "named-graph", reason)
        else:
            learnt = local
        self._names[name] = learnt
        return learnt

    def _use(self, name: str) -> _Use:
        if name not in self._uses:
            self._uses[name] = _Use(name, self._schema)
        return self._uses[name]

    def _check_class(self, said: Statement) -> None:
        if said.value not in self._schema.classes and not self._schema.is_open:
            hint = self._schema.near("class", said.value)
            raise _Wrong(said, "unknown-class", f"the schema has no class {said.value}", hint)

    def _check_literal(self, said: Statement, use: _Use, has_value: bool) -> None:
        """``has_value``: a number or seconds were derived from it."""
        kind = value_kind(said.datatype.encode())
        has_form = has_value if kind != NO_VALUE else _has_form(said.value, said.datatype)
        if not use.takes_literals or not has_form:
            self._refuse_value(said, use)
        if not use.takes(said.value, said.datatype):
            reason = f"{said.value!r} is of {said.datatype}, and no {use.said.range} as {use.name}"
            raise _Wrong(said, "wrong-range", f"{reason} has them")

    def _refuse_value(self, said: Statement, use: _Use) -> NoReturn:
        """A literal, or a resource, that its property does not take."""
        if not use.takes_literals and not use.takes_resources:
            hint = self._schema.near("property", use.name)
            raise _Wrong(said, "unknown-property", f"the schema has no property {use.name}", hint)
        if not said.datatype:
            reason = f"{use.name} has literals as its values, and {said.value} is a resource"
            raise _Wrong(said, "reference-for-literal", reason)
        if not use.takes_literals:
            reason = f"{use.name} refers to a resource, and {said.value!r} is a literal"
            raise _Wrong(said, "literal-for-reference", reason)
        raise _Wrong(said, "bad-form", f"{said.value!r} is no {said.datatype}")

    def _shows(self, classes: set[str]) -> bool:
        """Whether there are any, and something is known of all of these."""
        known = self._schema.classes.keys()
        return bool(classes) and (not self._schema.is_open or classes <= known)


def _values(stream: ElementStream) -> list[str]:
    """Of all attributes."""
    data, offsets = stream.attribute_values, stream.attribute_offset
    if data.isascii():
        text = data.decode()
        return [text[first:last] for first, last in pairwise(offsets)]
    return [data[first:last].decode() for first, last in pairwise(offsets)]


def _has_form(value: str, datatype: str) -> bool:
    """Of the datatypes that have no number or seconds."""
    return datatype != _BOOLEAN or value in _BOOLEANS


def _a(names: Iterable[str]) -> str:
    return f"a {' and '.join(sorted(names))}"
