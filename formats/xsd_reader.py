"""Reads the SchemaModel of a W3C XML Schema.

Each xs:element is a declaration of its own; one that refers to a global element may follow all
members of its substitution group.  What ``xsi:type`` could put in the place of a type, the global
types derived from it, stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from lxml import etree

from formats.names import XML_NAMESPACE
from formats.schema_document import XSD
from formats.schema_model import (
    ANY_CONTENT,
    ANY_ELEMENTS,
    DEPTH_MAX,
    NOTHING,
    Attribute,
    Content,
    Declaration,
    Elements,
    Name,
    Particle,
    SchemaModel,
    TextContent,
    Values,
    collapsed,
    group,
    repeated,
)

_XSD_NAMESPACE = XSD[1:-1]
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_INSTANCE_CONTENT = Content(
    attributes=tuple(
        Attribute(Name(_INSTANCE, name), None)
        for name in ("type", "nil", "schemaLocation", "noNamespaceSchemaLocation")
    )
)
_NOT_READ = tuple(XSD + name for name in ("openContent", "defaultOpenContent", "alternative"))
_GLOBALS = ("element", "attribute", "complexType", "simpleType", "group", "attributeGroup")
_CONTENTS = (XSD + "simpleContent", XSD + "complexContent")
_DERIVATIONS = (XSD + "extension", XSD + "restriction")
_GROUPS = frozenset(XSD + name for name in ("sequence", "choice", "all", "group"))
_TRUE = ("true", "1")
# Types whose values are told apart by their characters alone.
_STRINGS = frozenset(
    ("string", "normalizedString", "token", "language", "NMTOKEN", "Name", "NCName")
)
_INSTEAD_MAX = 256  # types that may be put in the place of one; of more it is not said which
_EMPTY = Content(text=TextContent.WHITE_SPACE)


def read_xsd(roots: Sequence[Any], *, is_whole: bool) -> SchemaModel:
    """The model of a schema's documents (``xsd_documents.py``); ``is_whole``: none is missing."""
    return _XsdReader(roots).read(is_whole)


class _XsdReader:
    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = roots
        self._model = SchemaModel()
        self._numbers: dict[Any, int] = {}
        self._unknown: dict[Name, int] = {}  # declarations of elements that are not in the document
        self._contents: dict[Any, Content | None] = {}  # by type; None while it is being read
        self._particles: dict[Any, Particle] = {}  # by xs:group
        self._globals: dict[tuple[str, Name], Any] = {}
        self._members: dict[Name, list[Any]] = defaultdict(list)  # by head
        self._derived: dict[Name, list[Any]] = defaultdict(list)  # by base
        self._simple_contents: list[Any] = []
        for part in (part for root in roots for part in root.iterchildren(etree.Element)):
            kind = str(part.tag).removeprefix(XSD)
            if kind in _GLOBALS and part.get("name"):
                self._globals.setdefault((kind, self._name(part)), part)
            for head in part.get("substitutionGroup", "").split():
                self._members[_resolved(part, head)].append(part)
            if kind == "complexType":
                self._note_derivation(part)

    def read(self, is_whole: bool) -> SchemaModel:
        model = self._model
        for element in (part for root in self._roots for part in root.iter(XSD + "element")):
            if element.get("name"):
                name = self._name(element)
                self._numbers[element] = model.add(Declaration((name,), name))
        for element, number in self._numbers.items():
            declaration = model.declarations[number]
            declaration.content, instead = self._of_element(element, 0)
            declaration.instead = (_INSTANCE_CONTENT, *instead)
        elements = [part for (kind, _), part in self._globals.items() if kind == "element"]
        model.roots = model.outermost = tuple(self._numbers[element] for element in elements)
        model.is_whole = is_whole and not any(
            next(root.iter(*_NOT_READ), None) is not None for root in self._roots
        )
        return model

    def _note_derivation(self, part: Any) -> None:
        for content in part.iterchildren(*_CONTENTS):
            if content.tag == XSD + "simpleContent":
                self._simple_contents.append(part)
            for derivation in content.iterchildren(*_DERIVATIONS):
                self._derived[_resolved(derivation, derivation.get("base", ""))].append(part)

    def _name(self, declaration: Any) -> Name:
        """The name of a declaration with a name; local ones are qualified on demand."""
        local = declaration.get("name", "").strip()
        root = declaration.getroottree().getroot()
        target = root.get("targetNamespace", "")
        if declaration.getparent() is root:
            return Name(target, local)
        kind = str(declaration.tag).removeprefix(XSD)
        form = declaration.get("form") or root.get(f"{kind}FormDefault", "unqualified")
        return Name(target if form == "qualified" else "", local)

    # -- elements and their types

    def _of_element(self, element: Any, depth: int) -> tuple[Content, tuple[Content, ...]]:
        """What stands in an element, and what may be put in the place of that."""
        inline = next(element.iterchildren(XSD + "complexType", XSD + "simpleType"), None)
        if inline is not None and inline.tag == XSD + "complexType":
            return self._complex(inline, 0), ()
        if inline is not None:
            return self._simple(self._values(inline, 0))
        if element.get("type"):
            return self._named_type(_resolved(element, element.get("type")))
        heads = element.get("substitutionGroup", "").split()[:1]
        head = self._globals.get(("element", _resolved(element, heads[0]))) if heads else None
        if head is None or depth > DEPTH_MAX:
            return ANY_CONTENT, ()
        return self._of_element(head, depth + 1)

    def _named_type(self, name: Name) -> tuple[Content, tuple[Content, ...]]:
        complex_type = self._globals.get(("complexType", name))
        simple_type = self._globals.get(("simpleType", name))
        if complex_type is not None:
            return self._complex(complex_type, 0), self._any_of(self._all_derived(name))
        if simple_type is not None:
            return self._simple(self._values(simple_type, 0))
        if name.namespace == _XSD_NAMESPACE and name.local != "anyType":
            return self._simple(None)
        return ANY_CONTENT, ()

    def _all_derived(self, name: Name) -> list[Any]:
        """The types derived from one, at any distance."""
        found: dict[Any, None] = {}
        names = [name]
        while names:
            for derived in self._derived.get(names.pop(), ()):
                if derived not in found:
                    found[derived] = None
                    names.append(self._name(derived))
        return list(found)

    def _simple(self, values: Values) -> tuple[Content, tuple[Content, ...]]:
        """Also a type with attributes may be put in its place, and xsi:nil or a default value."""
        listed = None if values is None else values | {""}
        content = Content(text=TextContent.ANY, values=listed)
        return content, self._any_of(self._simple_contents)

    def _any_of(self, types: list[Any]) -> tuple[Content, ...]:
        few = len(types) <= _INSTEAD_MAX
        return tuple(self._complex(type_, 0) for type_ in types) if few else (ANY_CONTENT,)

    def _complex(self, type_: Any, depth: int) -> Content:
        known = self._contents.get(type_, _EMPTY)
        if known is None or depth > DEPTH_MAX:
            return ANY_CONTENT  # derived from itself, or from too many
        if type_ not in self._contents:
            self._contents[type_] = None
            self._contents[type_] = known = self._read_complex(type_, depth)
        return known

    def _read_complex(self, type_: Any, depth: int) -> Content:
        is_mixed = type_.get("mixed") in _TRUE
        content = next(type_.iterchildren(*_CONTENTS), None)
        derivation = None if content is None else next(content.iterchildren(*_DERIVATIONS), None)
        if content is None or derivation is None:
            found = self._own(type_)
        else:
            is_mixed = is_mixed or content.get("mixed") in _TRUE
            is_mixed = is_mixed or content.tag == XSD + "simpleContent"
            found = self._derivation(derivation, depth)
        return replace(found, text=TextContent.ANY) if is_mixed else found

    def _derivation(self, derivation: Any, depth: int) -> Content:
        """An extension adds to its base; a restriction says anew what stands there, and keeps the
        attributes."""
        name = _resolved(derivation, derivation.get("base", ""))
        base_type = self._globals.get(("complexType", name))
        own = self._own(derivation)
        is_extension = derivation.tag == XSD + "extension"
        if base_type is None:
            is_simple = ("simpleType", name) in self._globals or name.namespace == _XSD_NAMESPACE
            known = is_simple and name.local != "anyType"
            return own if known or not is_extension else ANY_CONTENT
        base = self._complex(base_type, depth + 1)
        particle = group((base.particle, own.particle)) if is_extension else own.particle
        return Content(
            particle,
            _merged((*base.attributes, *own.attributes)),
            base.any_attribute or own.any_attribute,
            max(base.text, own.text) if is_extension else own.text,
        )

    # -- particles and attributes

    def _own(self, parent: Any) -> Content:
        """What stands directly in a type or derivation."""
        parts = parent.iterchildren(*_GROUPS)
        particle = group(self._particle(part, 0) for part in parts)
        attributes: list[Attribute] = []
        any_attribute = self._add_attributes(parent, attributes, set())
        return Content(particle, _merged(attributes), any_attribute, TextContent.WHITE_SPACE)

    def _particle(self, part: Any, depth: int) -> Particle:
        if depth > DEPTH_MAX:
            return ANY_ELEMENTS
        most = part.get("maxOccurs", "1").strip()
        occurs = int(part.get("minOccurs", "1")), inf if most == "unbounded" else float(most)
        if part.tag == XSD + "element":
            return repeated(Elements(tuple(self._elements(part))), *occurs)
        if part.tag == XSD + "group" and part.get("ref"):
            return repeated(self._group(part, depth), *occurs)
        if part.tag in _GROUPS:
            inner = (self._particle(child, depth + 1) for child in part.iterchildren(etree.Element))
            return repeated(group(inner, is_choice=part.tag == XSD + "choice"), *occurs)
        return ANY_ELEMENTS if part.tag == XSD + "any" else NOTHING

    def _group(self, reference: Any, depth: int) -> Particle:
        named = self._globals.get(("group", _resolved(reference, reference.get("ref"))))
        if named is None:
            return ANY_ELEMENTS
        if named not in self._particles:
            self._particles[named] = ANY_ELEMENTS  # where it refers to itself
            self._particles[named] = self._particle(named, depth + 1)
        return self._particles[named]

    def _elements(self, part: Any) -> Iterator[int]:
        """The declarations that an xs:element in a content model stands for, the head first."""
        if part.get("ref") is None:
            yield self._numbers.get(part, 0)
            return
        names, met = [_resolved(part, part.get("ref"))], set()
        while names:
            name = names.pop()
            if name not in met:
                met.add(name)
                yield self._global_element(name)
                names += (self._name(member) for member in self._members.get(name, ()))

    def _global_element(self, name: Name) -> int:
        element = self._globals.get(("element", name))
        if element is not None:
            return self._numbers[element]
        if name not in self._unknown:
            self._unknown[name] = self._model.add(Declaration((name,), name))
        return self._unknown[name]

    def _add_attributes(self, parent: Any, attributes: list[Attribute], seen: set[Any]) -> bool:
        """Whether there may be others."""
        is_open = False
        for part in parent.iterchildren(etree.Element):
            if part.tag == XSD + "attribute" and part.get("use") != "prohibited":
                attributes.append(self._attribute(part))
            elif part.tag == XSD + "anyAttribute":
                is_open = True
            elif part.tag == XSD + "attributeGroup" and len(seen) < DEPTH_MAX:
                name = _resolved(part, part.get("ref", ""))
                named = self._globals.get(("attributeGroup", name))
                if named is None:
                    is_open = True
                elif named not in seen:
                    seen.add(named)
                    is_open |= self._add_attributes(named, attributes, seen)
        return is_open

    def _attribute(self, part: Any) -> Attribute:
        required = part.get("use") == "required"
        name = self._name(part)
        if part.get("ref") is not None:
            name = _resolved(part, part.get("ref"))
            part = self._globals.get(("attribute", name))
        return Attribute(name, name, required, None if part is None else self._listed(part))

    def _listed(self, attribute: Any) -> Values:
        """The values of an attribute."""
        inline = next(attribute.iterchildren(XSD + "simpleType"), None)
        type_ = _resolved(attribute, attribute.get("type", ""))
        named = self._globals.get(("simpleType", type_)) if inline is None else inline
        values = self._values(named, 0) if named is not None else None
        is_string = type_.namespace == _XSD_NAMESPACE and type_.local in _STRINGS
        if attribute.get("fixed") is not None and (is_string or values is not None):
            return frozenset((collapsed(attribute.get("fixed")),))
        return values

    # -- lists of values

    def _values(self, simple_type: Any, depth: int) -> Values:
        """What an enumeration of strings lists; None for types of other kinds."""
        restriction = next(simple_type.iterchildren(XSD + "restriction"), None)
        if restriction is None or depth > DEPTH_MAX:
            return None
        inline = next(restriction.iterchildren(XSD + "simpleType"), None)
        base = _resolved(restriction, restriction.get("base", ""))
        named = inline if inline is not None else self._globals.get(("simpleType", base))
        inherited = self._values(named, depth + 1) if named is not None else None
        is_string = base.namespace == _XSD_NAMESPACE and base.local in _STRINGS
        listed = frozenset(
            collapsed(facet.get("value", ""))
            for facet in restriction.iterchildren(XSD + "enumeration")
        )
        if listed and (is_string or inherited is not None):
            return listed
        return inherited


def _merged(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """One of each name; what is said last counts."""
    return tuple({attribute.name: attribute for attribute in attributes}.values())


def _resolved(part: Any, name: str) -> Name:
    prefix, _, local = name.strip().rpartition(":")
    if prefix == "xml":
        return Name(XML_NAMESPACE, local)
    return Name(part.nsmap.get(prefix or None) or "", local)
