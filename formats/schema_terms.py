"""The words that a schema gives away: names, prefixes, namespaces, and values from fixed lists.

A reader of the schema document, not of what it means: a word too many costs a dictionary a few
bytes, one that is missing travels in the message.  What a schema refers to and has
not stays unread.  The result depends on nothing but the bytes of the schema.

=========  ==============================================  ====================================
kind       names                                           values
=========  ==============================================  ====================================
DTD        element and attribute names, split at ``:``;    enumerations; defaults and fixed
           namespaces from ``xmlns`` attributes            values
XSD        ``name`` of elements and attributes; target     ``xs:enumeration``; ``fixed`` and
           and imported namespaces; prefixes for these     ``default`` of elements, attributes
RELAX NG   ``name`` of and in elements and attributes;     ``value``
           ``ns``; prefixes for these
=========  ==============================================  ====================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from formats.dtd import read_declarations
from formats.names import XML_NAMESPACE
from formats.schema import Schema, read_roots
from formats.schema_document import RELAXNG, XSD
from formats.schema_files import SchemaFiles


@dataclass(slots=True)
class SchemaTerms:
    """``names``: local names, prefixes and namespaces alike; ``values``: attribute values and
    text."""

    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)

    def add_qualified(self, name: str) -> None:
        """A name as written: the local part, and its prefix when it has one."""
        self.names.update(part for part in name.partition(":")[::2] if part)


def read_terms(schema: Schema) -> SchemaTerms:
    """The words of a schema that ``read_schema`` has accepted."""
    terms = SchemaTerms()
    if schema.kind == "dtd":
        _read_dtd(schema.files(), terms)
    else:
        _read_document(schema, terms)
    terms.names.discard("")
    terms.values.discard("")
    return terms


def _read_document(schema: Schema, terms: SchemaTerms) -> None:
    read: Callable[[Any, SchemaTerms], None] = _read_xsd if schema.kind == "xsd" else _read_relaxng
    roots = read_roots(schema, schema.files())
    for element in (part for root in roots for part in root.iter(etree.Element)):
        read(element, terms)
        for prefix, namespace in element.nsmap.items():
            if prefix and namespace in terms.names:
                terms.names.add(prefix)


def _read_dtd(files: SchemaFiles, terms: SchemaTerms) -> None:
    def attribute(_element: str, name: str, kind: str, default: str | None, _required: int) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            terms.names.update((name.partition(":")[2], default or ""))
            return
        terms.add_qualified(name)
        terms.values.add(default or "")
        if kind.startswith("("):
            terms.values.update(kind[1:-1].split("|"))

    read_declarations(files, lambda name, _model: terms.add_qualified(name), attribute)


def _read_xsd(element: Any, terms: SchemaTerms) -> None:
    if element.tag in {XSD + "element", XSD + "attribute"}:
        terms.names.add(element.get("name", ""))
        terms.values.update(element.get(kind, "") for kind in ("fixed", "default"))
    elif element.tag == XSD + "enumeration":
        terms.values.add(element.get("value", ""))
    elif element.tag == XSD + "schema":
        terms.names.add(element.get("targetNamespace", ""))
    elif element.tag == XSD + "import":
        terms.names.add(element.get("namespace", ""))


def _read_relaxng(element: Any, terms: SchemaTerms) -> None:
    terms.names.add(element.get("ns", ""))
    if element.tag in {RELAXNG + "element", RELAXNG + "attribute"}:
        _add_resolved(element, element.get("name", ""), terms)
    elif element.tag == RELAXNG + "name":
        _add_resolved(element, element.text or "", terms)
    elif element.tag == RELAXNG + "value":
        terms.values.add(element.text or "")


def _add_resolved(element: Any, name: str, terms: SchemaTerms) -> None:
    terms.add_qualified(name.strip())
    prefix, colon, _ = name.strip().partition(":")
    if colon:
        namespace = element.nsmap.get(prefix, "")
        terms.names.add(XML_NAMESPACE if prefix == "xml" else namespace)
