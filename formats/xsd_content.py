"""Reads a AllowedContent from a W3C XML Schema.

Each xs:element is a declaration of its own; one that refers to a global element allows all members
of its substitution group.  What ``xsi:type`` could put in the place of a type is taken together
with it: all global types derived from it.  A restriction allows what its base allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from lxml import etree

from formats.allowed_content import (
    ANYTHING,
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
from formats.schema import XSD

_XSD_NAMESPACE = XSD[1:-1]
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_INSTANCE_ATTRIBUTES = ("type", "nil", "schemaLocation", "noNamespaceSchemaLocation")
_UNREAD = frozenset(
    XSD + name for name in ("include", "redefine", "override", "openContent", "defaultOpenContent")
) | {XSD + "alternative"}
_GLOBALS = ("element", "attribute", "complexType", "simpleType", "group", "attributeGroup")
# Types whose values are told apart by their characters alone.
_STRINGS = frozenset(
    ("string", "normalizedString", "token", "language", "NMTOKEN", "Name", "NCName")
)


def read_xsd(root: Any) -> AllowedContent:
    """What a schema document allows; one that needs others, but for xml:lang and the like,
    allows every message."""
    for part in root.iter(etree.Element):
        is_foreign = part.tag == XSD + "import" and part.get("namespace") != XML_NAMESPACE
        if part.tag in _UNREAD or is_foreign:
            return all_allowed()
    return _XsdReader(root).read()


class _XsdReader:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._target = root.get("targetNamespace", "")
        self._builder = AllowedContentBuilder()
        self._numbers: dict[Any, int] = {}
        self._unread: list[tuple[Any, Draft]] = []
        self._globals: dict[tuple[str, Name], Any] = {}
        self._members: dict[Name, list[Any]] = defaultdict(list)  # by head
        self._derived: dict[Name, list[Any]] = defaultdict(list)  # by base
        self._simple_contents: list[Any] = []
        for part in root.iterchildren(etree.Element):
            kind = str(part.tag).removeprefix(XSD)
            if kind in _GLOBALS and part.get("name"):
                self._globals[kind, Name(self._target, part.get("name").strip())] = part
            if part.get("substitutionGroup"):
                for head in part.get("substitutionGroup").split():
                    self._members[_resolved(part, head)].append(part)
            if kind == "complexType":
                self._note_derivation(part)

    def read(self) -> AllowedContent:
        elements = [part for (kind, _), part in self._globals.items() if kind == "element"]
        roots = [self._number(element) for element in elements]
        while self._unread:
            element, draft = self._unread.pop()
            for name in _INSTANCE_ATTRIBUTES:
                draft.add_attribute(Name(_INSTANCE, name), None)
            draft.text = TextContent.WHITE_SPACE
            self._add_type_of(element, draft, set())
        return self._builder.finish(roots)

    def _note_derivation(self, part: Any) -> None:
        for content in part.iterchildren(XSD + "simpleContent", XSD + "complexContent"):
            if content.tag == XSD + "simpleContent":
                self._simple_contents.append(part)
            for derivation in content.iterchildren(XSD + "extension", XSD + "restriction"):
                self._derived[_resolved(derivation, derivation.get("base", ""))].append(part)

    def _number(self, element: Any) -> int:
        if element not in self._numbers:
            number, draft = self._builder.new((self._name(element),))
            self._numbers[element] = number
            self._unread.append((element, draft))
        return self._numbers[element]

    def _name(self, declaration: Any) -> Name:
        """The name of a declaration with a name; local ones are qualified on demand."""
        local = declaration.get("name", "").strip()
        if declaration.getparent() is self._root:
            return Name(self._target, local)
        kind = str(declaration.tag).removeprefix(XSD)
        form = declaration.get("form") or self._root.get(f"{kind}FormDefault", "unqualified")
        return Name(self._target if form == "qualified" else "", local)

    # -- elements and their types

    def _add_type_of(self, element: Any, draft: Draft, seen: set[Any]) -> None:
        inline = next(element.iterchildren(XSD + "complexType", XSD + "simpleType"), None)
        if inline is not None and inline.tag == XSD + "complexType":
            self._add_complex(inline, draft, seen)
        elif inline is not None:
            self._add_simple(draft, self._values(inline, 0))
        elif element.get("type"):
            self._add_named_type(_resolved(element, element.get("type")), draft, seen)
        else:
            heads = element.get("substitutionGroup", "").split()[:1]
            head = self._globals.get(("element", _resolved(element, heads[0]))) if heads else None
            if head is None or head in seen:
                draft.allow_everything()
            else:
                seen.add(head)
                self._add_type_of(head, draft, seen)

    def _add_named_type(self, name: Name, draft: Draft, seen: set[Any]) -> None:
        complex_type = self._globals.get(("complexType", name))
        simple_type = self._globals.get(("simpleType", name))
        if complex_type is not None:
            for type_ in self._with_derived(name, complex_type):
                self._add_complex(type_, draft, seen)
        elif simple_type is not None:
            self._add_simple(draft, self._values(simple_type, 0))
        elif name.namespace == _XSD_NAMESPACE and name.local != "anyType":
            self._add_simple(draft, None)
        else:
            draft.allow_everything()

    def _with_derived(self, name: Name, type_: Any) -> list[Any]:
        found, names = [type_], [name]
        while names:
            for derived in self._derived.get(names.pop(), ()):
                if derived not in found:
                    found.append(derived)
                    names.append(self._name(derived))
        return found

    def _add_simple(self, draft: Draft, values: Values) -> None:
        """Also with what a type with attributes, put in its place, could add."""
        draft.text = TextContent.ANY
        draft.values = None if values is None else values | {""}  # xsi:nil, or the default value
        for type_ in self._simple_contents:
            self._add_attributes(type_, draft, set())

    def _add_complex(self, type_: Any, draft: Draft, seen: set[Any]) -> None:
        if type_ in seen:
            return
        seen.add(type_)
        if type_.get("mixed") in ("true", "1"):
            draft.text = TextContent.ANY
        for part in type_.iterchildren(etree.Element):
            if part.tag == XSD + "simpleContent":
                draft.text = TextContent.ANY
                self._add_derivation(part, draft, seen)
            elif part.tag == XSD + "complexContent":
                if part.get("mixed") in ("true", "1"):
                    draft.text = TextContent.ANY
                self._add_derivation(part, draft, seen)
            else:
                self._add_part(part, draft, seen)

    def _add_derivation(self, content: Any, draft: Draft, seen: set[Any]) -> None:
        for derivation in content.iterchildren(XSD + "extension", XSD + "restriction"):
            base = _resolved(derivation, derivation.get("base", ""))
            is_any = base == Name(_XSD_NAMESPACE, "anyType")
            base_type = self._globals.get(("complexType", base))
            if is_any and derivation.tag == XSD + "extension":
                draft.allow_everything()
            elif base_type is not None:
                self._add_complex(base_type, draft, seen)
            for part in derivation.iterchildren(etree.Element):
                self._add_part(part, draft, seen)

    # -- particles and attributes

    def _add_part(self, part: Any, draft: Draft, seen: set[Any]) -> None:
        kind = str(part.tag).removeprefix(XSD)
        if kind == "element":
            draft.children.update(self._elements_of(part))
        elif kind == "any":
            draft.children.add(ANYTHING)
        elif kind in ("sequence", "choice", "all"):
            for inner in part.iterchildren(etree.Element):
                self._add_part(inner, draft, seen)
        elif kind in ("group", "attributeGroup"):
            group = self._globals.get((kind, _resolved(part, part.get("ref", ""))))
            if group is not None and group not in seen:
                seen.add(group)
                for inner in group.iterchildren(etree.Element):
                    self._add_part(inner, draft, seen)
        elif kind == "attribute":
            self._add_attribute(part, draft)
        elif kind == "anyAttribute":
            draft.any_attribute = True

    def _elements_of(self, part: Any) -> Iterator[int]:
        """The declarations that an xs:element in a content model stands for."""
        if part.get("ref") is None:
            yield self._number(part)
            return
        names, met = [_resolved(part, part.get("ref"))], set()
        while names:
            name = names.pop()
            if name in met:
                continue
            met.add(name)
            element = self._globals.get(("element", name))
            yield ANYTHING if element is None else self._number(element)
            names += (self._name(member) for member in self._members.get(name, ()))

    def _add_attributes(self, type_: Any, draft: Draft, seen: set[Any]) -> None:
        """The attributes of a type with simple content, and of those that it is derived from."""
        attributes = Draft(())
        self._add_complex(type_, attributes, seen)
        for name, values in attributes.attributes.items():
            draft.add_attribute(name, values)
        draft.any_attribute |= attributes.any_attribute

    def _add_attribute(self, part: Any, draft: Draft) -> None:
        name = self._name(part)
        if part.get("ref") is not None:
            name = _resolved(part, part.get("ref"))
            declared = self._globals.get(("attribute", name))
            if declared is None:
                draft.add_attribute(name, None)
                return
            part = declared
        inline = next(part.iterchildren(XSD + "simpleType"), None)
        if inline is not None:
            draft.add_attribute(name, self._values(inline, 0))
            return
        type_ = _resolved(part, part.get("type", ""))
        named = self._globals.get(("simpleType", type_))
        values = self._values(named, 0) if named is not None else None
        is_string = type_.namespace == _XSD_NAMESPACE and type_.local in _STRINGS
        if part.get("fixed") is not None and (is_string or values is not None):
            values = frozenset((collapsed(part.get("fixed")),))
        draft.add_attribute(name, values)

    # -- lists of values

    def _values(self, simple_type: Any, depth: int) -> Values:
        """What an enumeration of strings lists; None for types of other kinds."""
        restriction = next(simple_type.iterchildren(XSD + "restriction"), None)
        if restriction is None or depth > 64:
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


def _resolved(part: Any, name: str) -> Name:
    prefix, _, local = name.strip().rpartition(":")
    if prefix == "xml":
        return Name(XML_NAMESPACE, local)
    return Name(part.nsmap.get(prefix or None) or "", local)
