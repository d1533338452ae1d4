"""Reads a AllowedContent from a schema: DTD and RELAX NG here, XSD in xsd_content.py.

What a schema takes from other documents is never read (``formats.schema``); one that does allows
every message, as far as we know.
"""

from __future__ import annotations

import pyexpat
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lxml import etree

from formats.allowed_content import (
    ANY,
    AllowedContent,
    AllowedContentBuilder,
    Draft,
    Name,
    TextContent,
    Values,
    all_allowed,
    collapsed,
)
from formats.names import XML_NAMESPACE
from formats.schema import RELAXNG, Schema, parse_schema_document, stands_alone
from formats.xsd_content import read_xsd


@lru_cache(maxsize=64)
def read_allowed_content(schema: Schema) -> AllowedContent:
    """What a schema that ``read_schema`` has accepted allows, or more."""
    if schema.kind == "xsd":
        return read_xsd(parse_schema_document(schema.data))
    if not stands_alone(schema):
        return all_allowed()
    if schema.kind == "dtd":
        return _DtdReader().read(schema.data)
    return _RelaxNgReader(parse_schema_document(schema.data)).read()


class _DtdReader:
    """A DTD names no namespaces: where it lets a message declare one, names may be in any."""

    def __init__(self) -> None:
        self._models: dict[str, Any] = {}
        self._attributes: list[tuple[str, str, Values]] = []
        self._has_namespaces = False

    def read(self, data: bytes) -> AllowedContent:
        parser = pyexpat.ParserCreate()
        parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)

        def subset(context: str | None, *_: object) -> int:
            parser.ExternalEntityParserCreate(context).Parse(data, True)
            return 1

        parser.ElementDeclHandler = self._models.__setitem__
        parser.AttlistDeclHandler = self._attribute
        parser.ExternalEntityRefHandler = subset
        parser.Parse(b'<!DOCTYPE x SYSTEM "schema.dtd"><x/>', True)
        return self._model()

    def _attribute(
        self, element: str, name: str, kind: str, default: str | None, required: int
    ) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            self._has_namespaces = True
            return
        values: Values = None
        if kind.startswith("("):
            values = frozenset(kind[1:-1].split("|"))
        elif kind.startswith("NOTATION("):
            values = frozenset(kind[len("NOTATION(") : -1].split("|"))
        elif required and default is not None:
            values = frozenset((collapsed(default),))
        self._attributes.append((element, name, values))

    def _model(self) -> AllowedContent:
        builder = AllowedContentBuilder()
        declared = {name: builder.new((self._name(name),)) for name in self._models}
        every = {number for number, _ in declared.values()}
        for name, (kind, _, _, children) in self._models.items():
            draft = declared[name][1]
            if kind == pyexpat.model.XML_CTYPE_EMPTY:
                continue
            if kind == pyexpat.model.XML_CTYPE_ANY:
                draft.children |= every
                draft.text = TextContent.ANY
                continue
            is_mixed = kind == pyexpat.model.XML_CTYPE_MIXED
            draft.text = TextContent.ANY if is_mixed else TextContent.WHITE_SPACE
            names = _names_in(self._models[name], children)
            draft.children |= {declared[child][0] for child in names if child in declared}
        seen = set()
        for element, name, values in self._attributes:
            if element in declared and (element, name) not in seen:  # the first one is binding
                seen.add((element, name))
                declared[element][1].add_attribute(self._attribute_name(name), values)
        return builder.finish(every)

    def _name(self, name: str) -> Name:
        prefix, _, local = name.rpartition(":")
        return Name(ANY if prefix or self._has_namespaces else "", local)

    def _attribute_name(self, name: str) -> Name:
        prefix, _, local = name.rpartition(":")
        return Name((XML_NAMESPACE if prefix == "xml" else ANY) if prefix else "", local)


def _names_in(model: Any, children: Any) -> Iterator[str]:
    """The names in a content model of expat: (type, quantifier, name, children)."""
    if model[2]:
        yield model[2]
    for child in children:
        yield from _names_in(child, child[3])


_STRING_TYPES = frozenset((None, "token", "string", "normalizedString", "NMTOKEN", "NCName"))
_GROUPING = frozenset(
    RELAXNG + name
    for name in ("group", "interleave", "choice", "optional", "zeroOrMore", "oneOrMore", "div")
)


class _RelaxNgReader:
    """Follows references to named patterns; patterns of one name are taken together."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._builder = AllowedContentBuilder()
        self._defined: dict[str, list[Any]] = {}
        for define in root.iter(RELAXNG + "define"):
            self._defined.setdefault(_trimmed(define.get("name")), []).append(define)
        self._numbers: dict[Any, int] = {}
        self._unread: list[tuple[Any, Draft]] = []

    def read(self) -> AllowedContent:
        grammars = list(self._root.iter(RELAXNG + "grammar"))
        if len(grammars) > 1 or next(self._root.iter(RELAXNG + "parentRef"), None) is not None:
            return all_allowed()
        whole = self._builder.new(())[1]
        for start in self._root.iter(RELAXNG + "start") if grammars else (self._root,):
            self._add_pattern(start, whole, set())
        while self._unread:
            element, draft = self._unread.pop()
            draft.text = TextContent.WHITE_SPACE
            for part in _patterns_in(element):
                self._add_pattern(part, draft, set())
        return self._builder.finish(whole.children)

    def _add_pattern(self, pattern: Any, draft: Draft, seen: set[str]) -> None:
        tag = pattern.tag
        if tag == RELAXNG + "element":
            draft.children.add(self._number(pattern))
        elif tag == RELAXNG + "attribute":
            self._add_attribute(pattern, draft)
        elif tag == RELAXNG + "ref":
            name = _trimmed(pattern.get("name"))
            if name not in seen:
                seen.add(name)
                for define in self._defined.get(name, ()):
                    for part in _patterns_in(define):
                        self._add_pattern(part, draft, seen)
        elif tag in _GROUPING or tag in (RELAXNG + "start", RELAXNG + "mixed"):
            if tag == RELAXNG + "mixed":
                draft.text = TextContent.ANY
            for part in _patterns_in(pattern):
                self._add_pattern(part, draft, seen)
        elif tag not in (RELAXNG + "empty", RELAXNG + "notAllowed"):
            draft.text = TextContent.ANY  # text, data, value, list

    def _number(self, element: Any) -> int:
        if element not in self._numbers:
            number, draft = self._builder.new(_name_class(element))
            self._numbers[element] = number
            self._unread.append((element, draft))
        return self._numbers[element]

    def _add_attribute(self, attribute: Any, draft: Draft) -> None:
        patterns = list(_patterns_in(attribute))
        values = self._values(patterns, frozenset()) if patterns else None
        for name in _name_class(attribute):
            if ANY in name:
                draft.any_attribute = True
            else:
                draft.add_attribute(name, values)

    def _values(self, patterns: list[Any], seen: frozenset[str]) -> Values:
        """The values listed by a choice of strings; None for any other patterns."""
        found: set[str] = set()
        for pattern in patterns:
            if pattern.tag == RELAXNG + "value" and pattern.get("type") in _STRING_TYPES:
                found.add(collapsed(pattern.text or ""))
                continue
            parts: Values = None
            if pattern.tag == RELAXNG + "choice":
                parts = self._values(list(_patterns_in(pattern)), seen)
            elif pattern.tag == RELAXNG + "ref":
                name = _trimmed(pattern.get("name"))
                defines = self._defined.get(name, ()) if name not in seen else ()
                inside = [part for define in defines for part in _patterns_in(define)]
                parts = self._values(inside, seen | {name}) if inside else None
            if parts is None:
                return None
            found |= parts
        return frozenset(found)


_NAME_CLASSES = frozenset(RELAXNG + name for name in ("name", "anyName", "nsName"))


def _patterns_in(pattern: Any) -> Iterator[Any]:
    """The patterns directly in one, without the class of names that begins it."""
    is_named = pattern.tag in (RELAXNG + "element", RELAXNG + "attribute")
    children = [part for part in pattern.iterchildren(etree.Element) if _is_relaxng(part)]
    skipped = 1 if is_named and pattern.get("name") is None else 0
    yield from children[skipped:]


def _is_relaxng(element: Any) -> bool:
    return str(element.tag).startswith(RELAXNG)


def _name_class(pattern: Any) -> tuple[Name, ...]:
    """The names of an element or attribute pattern; what is excepted is left in."""
    name = pattern.get("name")
    if name is not None:
        is_attribute = pattern.tag == RELAXNG + "attribute"
        namespace = pattern.get("ns", "") if is_attribute else _inherited_namespace(pattern)
        return (_resolved(pattern, name, namespace),)
    classes = [part for part in pattern.iterchildren(etree.Element) if _is_relaxng(part)][:1]
    return tuple(_names_of_class(classes[0])) if classes else (Name(ANY, ANY),)


def _names_of_class(part: Any) -> Iterator[Name]:
    if part.tag == RELAXNG + "name":
        yield _resolved(part, part.text or "", _inherited_namespace(part))
    elif part.tag == RELAXNG + "nsName":
        yield Name(_inherited_namespace(part), ANY)
    elif part.tag == RELAXNG + "choice":
        for inner in part.iterchildren(etree.Element):
            yield from _names_of_class(inner)
    else:
        yield Name(ANY, ANY)


def _inherited_namespace(part: Any) -> str:
    while part is not None:
        if part.get("ns") is not None:
            return str(part.get("ns"))
        part = part.getparent()
    return ""


def _resolved(part: Any, name: str, namespace: str) -> Name:
    prefix, colon, local = _trimmed(name).rpartition(":")
    if colon:
        namespace = XML_NAMESPACE if prefix == "xml" else part.nsmap.get(prefix, ANY)
    return Name(namespace, local)


def _trimmed(text: str | None) -> str:
    return (text or "").strip()
