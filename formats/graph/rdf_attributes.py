"""RdfAttributes: the attributes of one element of an RDF/XML document after the other, and what
they mean there.

Base and language hold for an element and all within it; there is a row of both for each depth, and
one below them all for the document.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.characters import is_colonless_name
from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph.iris import find_bad_character, has_scheme, resolve, without_fragment
from formats.graph.rdf_names import attribute_kind, iri_of_name

if cython.compiled:
    from cython.cimports.formats.graph.rdf_names import (
        BASE,
        ID,
        IGNORED,
        LANGUAGE_OF,
        PARSE_TYPE,
        PROPERTY_ATTRIBUTE,
        TYPE,
    )
else:
    from formats.graph.rdf_names import (
        BASE,
        ID,
        IGNORED,
        LANGUAGE_OF,
        PARSE_TYPE,
        PROPERTY_ATTRIBUTE,
        TYPE,
    )

_NONE = -1
_LANGUAGE = re.compile(rb"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
# What an octet can be in an IRI.
_BAD, _OTHER, _OF_SCHEME, _LETTER = range(4)
_KINDS = bytes(
    _BAD
    if octet <= 0x20 or octet in b'<>"{}|^`\\'
    else _LETTER
    if octet < 0x80 and chr(octet).isalpha()
    else _OF_SCHEME
    if octet in b"0123456789+-."
    else _OTHER
    for octet in range(256)
)
_OCTETS = _KINDS
_PLUS, _COLON, _LOW_LINE, _NUMBER_SIGN = b"+:_#"


class RdfAttributes:
    """Those of the element that was read last; an attribute is its number in the document, or -1.

    ``given``: the attribute of each kind from ID to PARSE_TYPE; ``properties``: all that are
    properties.
    """

    def __init__(self, stream: ElementStream, base: bytes) -> None:
        i: cython.int
        depth: cython.int = 0
        self._stream = stream
        self._element_depth = stream.element_depth
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_values = stream.attribute_values
        self._kind_of_name = array("i", bytes(4 * len(stream.names)))
        for i in range(len(stream)):
            depth = max(depth, self._element_depth[i])
        self.depth = depth
        self._bases = [without_fragment(base)] * (depth + 2)
        self._languages = [b""] * (depth + 2)
        self._element = 0
        self._row = 0
        self.given = array("i", [_NONE]) * (PARSE_TYPE + 1)
        self.properties: list[int] = []

    def read(self, element: cython.int) -> None:
        """Go to an element; MessageRefused where it has an attribute that RDF/XML has not."""
        attribute: cython.int
        kind: cython.int
        base: cython.int = _NONE
        row: cython.int = self._element_depth[element] + 1
        for kind in range(ID, PARSE_TYPE + 1):
            self.given[kind] = _NONE
        if self.properties:
            self.properties = []
        self._element = element
        self._row = row
        self._bases[row] = self._bases[row - 1]
        self._languages[row] = self._languages[row - 1]
        for attribute in range(self._attribute_start[element], self._attribute_start[element + 1]):
            kind = self.kind_of(attribute)
            if ID <= kind <= PARSE_TYPE:
                if self.given[kind] >= 0:
                    self.refuse(
                        "rdf-syntax", f"{self._name_of(attribute)} with a prefix and without"
                    )
                self.given[kind] = attribute
            elif PROPERTY_ATTRIBUTE <= kind <= TYPE:
                self.properties.append(attribute)
            elif kind == LANGUAGE_OF:
                self._languages[row] = self._language_of(attribute)
            elif kind == BASE:
                base = attribute
            elif kind != IGNORED:
                self.refuse("rdf-syntax", f"an attribute is named {self._name_of(attribute)}")
        if base >= 0:
            self._bases[row] = self._base_of(base)

    def kind_of(self, attribute: cython.int) -> cython.int:
        """What an attribute is there for (``rdf_names.py``)."""
        name: cython.int = self._attribute_name[attribute]
        if self._kind_of_name[name] == 0:
            self._kind_of_name[name] = attribute_kind(self._stream.names[name])
        return self._kind_of_name[name]

    def check_only(self, allowed: cython.int, also_allowed: cython.int) -> None:
        """Refuse all that are given, and properties, but for these kinds."""
        kind: cython.int
        attribute: cython.int = self.properties[0] if self.properties else _NONE
        for kind in range(ID, PARSE_TYPE + 1):
            if kind not in (allowed, also_allowed) and self.given[kind] >= 0:
                attribute = self.given[kind]
        if attribute >= 0:
            self.refuse("rdf-syntax", f"the attribute {self._name_of(attribute)} cannot stand here")

    def value(self, attribute: cython.int) -> bytes:
        start: cython.Py_ssize_t = self._attribute_offset[attribute]
        end: cython.Py_ssize_t = self._attribute_offset[attribute + 1]
        return self._attribute_values[start:end]

    def name(self, attribute: cython.int) -> bytes:
        """The value of an attribute that has to be a name without a colon."""
        value = self.value(attribute)
        if not _is_plain_name(value, len(value)) and not is_colonless_name(value.decode()):
            self.refuse("rdf-syntax", f"{_shown(value)} is not a name without a colon")
        return value

    def iri(self, attribute: cython.int) -> bytes:
        """The IRI that an attribute refers to."""
        return self.resolved(self.value(attribute))

    def language(self) -> bytes:
        """That of the element's texts, or none."""
        return self._languages[self._row]

    def resolved(self, reference: bytes) -> bytes:
        """The IRI that a reference is, at the base of the element."""
        base: bytes
        iri: bytes = reference
        if _is_absolute(reference, len(reference)):
            return reference
        base = self._bases[self._row]
        # PERF: of very many in some documents (python -m benchmarks graph: rdf_xml_over_parse).
        if base and _is_fragment(reference, len(reference)):
            return base + reference
        if not has_scheme(reference):
            if not base:
                self.refuse("relative-iri", f"{_shown(reference)}, and nothing it is relative to")
            iri = resolve(base, reference)
        if find_bad_character(iri) >= 0:
            self.refuse("bad-iri", f"{_shown(iri)} is not an IRI")
        return iri

    def iri_of_name(self, name: cython.int) -> bytes:
        """The IRI that a name of the document means."""
        qualified = self._stream.names[name]
        iri: bytes = iri_of_name(qualified)
        if not iri:
            said = f"{qualified.namespace}{qualified.local}"[:100]
            self.refuse("bad-iri", f"{said!r}, of the name {qualified}, is not an IRI")
        return iri

    def refuse(self, code: str, reason: str, element: cython.int = _NONE) -> None:
        """MessageRefused, for the element read last or another."""
        place = _place_of(self._stream, element if element >= 0 else self._element)
        raise MessageRefused(code, f"{place}: {reason}")

    def _name_of(self, attribute: cython.int) -> str:
        return str(self._stream.names[self._attribute_name[attribute]])

    def _language_of(self, attribute: cython.int) -> bytes:
        value = self.value(attribute)
        if value and not _is_language(value):
            self.refuse("bad-language", f"{_shown(value)} is not a language tag")
        return value

    def _base_of(self, attribute: cython.int) -> bytes:
        """The base that an xml:base says, itself relative to the one around it."""
        iri: bytes = resolve(self._bases[self._row - 1], without_fragment(self.value(attribute)))
        if find_bad_character(iri) >= 0 or not has_scheme(iri):
            self.refuse("bad-iri", f"{_shown(iri)} is not a base")
        return iri


@lru_cache(256)
def _is_language(value: bytes) -> bool:
    return _LANGUAGE.fullmatch(value) is not None


def _shown(reference: bytes) -> str:
    return repr(reference.decode()[:100])


def _place_of(stream: ElementStream, element: int) -> str:
    """Where an element is, as a path: ``/rdf:RDF/item[2]/title``."""
    steps = []
    while element >= 0:
        name, parent = stream.element_name[element], stream.element_parent[element]
        alike = [
            sibling
            for sibling in (stream.children_of(parent) if parent >= 0 else [element])
            if stream.element_name[sibling] == name
        ]
        place = f"[{alike.index(element) + 1}]" if len(alike) > 1 else ""
        steps.append(f"/{stream.names[name]}{place}")
        element = parent
    return "".join(reversed(steps))


def _is_absolute(iri: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.bint:
    """Whether this is an IRI with a scheme and without a character that IRIs have not.

    A no may be wrong: ``resolved`` says what is to be said then.
    """
    at: cython.Py_ssize_t = 0
    while at < size and _OCTETS[iri[at]] >= _OF_SCHEME:
        at += 1
    if at in (0, size) or iri[at] != _COLON or _OCTETS[iri[0]] != _LETTER:
        return False
    while at < size and _OCTETS[iri[at]] != _BAD:
        at += 1
    return at == size


def _is_fragment(reference: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.bint:
    """Whether this is a fragment, without a character that IRIs have not."""
    at: cython.Py_ssize_t = 1
    if size == 0 or reference[0] != _NUMBER_SIGN:
        return False
    while at < size and _OCTETS[reference[at]] != _BAD:
        at += 1
    return at == size


def _is_plain_name(name: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.bint:
    """Whether this is a name of ASCII without a colon."""
    at: cython.Py_ssize_t
    if size == 0 or not (_OCTETS[name[0]] == _LETTER or name[0] == _LOW_LINE):
        return False
    for at in range(size):
        if not (_OCTETS[name[at]] >= _OF_SCHEME or name[at] == _LOW_LINE) or name[at] == _PLUS:
            return False
    return True
