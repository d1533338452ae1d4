"""Reads the SchemaModel of a schema in any of the three languages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from pyexpat import model as expat_model
from typing import Any, TypeAlias

from lxml import etree

from formats.dtd import read_declarations
from formats.names import XML_NAMESPACE
from formats.schema import Schema, read_roots
from formats.schema_document import RELAXNG, XSD
from formats.schema_files import SchemaFiles
from formats.schema_model import (
    ANY,
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

# -------------------------------------------------------------------------------------------------
# Reads the SchemaModel of a DTD.
#
# A DTD knows prefixes, not namespaces.  A message may declare what it likes where the DTD lets it,
# so the namespace of a name is open then; expected is what ``xmlns`` attributes say, if that is one
# thing only.


_OCCURRENCES = {
    expat_model.XML_CQUANT_NONE: (1, 1.0),
    expat_model.XML_CQUANT_OPT: (0, 1.0),
    expat_model.XML_CQUANT_REP: (0, inf),
    expat_model.XML_CQUANT_PLUS: (1, inf),
}


def read_dtd(files: SchemaFiles) -> SchemaModel:
    """The model of a DTD that ``read_schema`` has accepted."""
    return _DtdReader(files).read(files.is_whole)


class _DtdReader:
    def __init__(self, files: SchemaFiles) -> None:
        self._model = SchemaModel()
        self._contents: dict[str, Any] = {}
        # By element and name as written: what is declared first is binding.
        self._attributes: dict[str, dict[str, tuple[str, str | None, bool]]] = {}
        self._namespaces: dict[str, set[str]] = {}  # by prefix, as xmlns attributes say
        self._numbers: dict[str, int] = {}
        read_declarations(files, self._contents.setdefault, self._add_attribute)

    def read(self, is_whole: bool) -> SchemaModel:
        model = self._model
        for name in self._contents:
            declaration = Declaration((self._name(name),), self._expected(name, ""))
            self._numbers[name] = model.add(declaration)
        model.roots = tuple(self._numbers.values())
        met: set[str] = set()
        for name, content in self._contents.items():
            model.declarations[self._numbers[name]].content = self._content(name, content)
            met.update(child for child in _names_in(content) if child != name)
        outermost = (self._numbers[name] for name in self._contents if name not in met)
        model.outermost = tuple(outermost) or model.roots
        model.is_whole = is_whole
        return model

    def _add_attribute(
        self, element: str, name: str, kind: str, default: str | None, required: int
    ) -> None:
        if name == "xmlns" or name.startswith("xmlns:"):
            self._namespaces.setdefault(name.partition(":")[2], set()).add(default or "")
        else:
            declared = (kind, default, bool(required))
            self._attributes.setdefault(element, {}).setdefault(name, declared)

    def _content(self, element: str, content: Any) -> Content:
        attributes = tuple(
            Attribute(
                self._attribute_name(name),
                self._expected(name, None),
                required,  # or fixed
                _values(kind, default, required),
            )
            for name, (kind, default, required) in self._attributes.get(element, {}).items()
        )
        if content[0] == expat_model.XML_CTYPE_ANY:
            declared = Elements(self._model.roots, 0, inf)
            return Content(declared, attributes, text=TextContent.ANY)
        text = TextContent.WHITE_SPACE
        if content[0] == expat_model.XML_CTYPE_EMPTY:
            text = TextContent.NONE
        elif content[0] == expat_model.XML_CTYPE_MIXED:
            text = TextContent.ANY
        return Content(self._particle(content, 0), attributes, text=text)

    def _particle(self, content: Any, depth: int) -> Particle:
        kind, quantifier, name, parts = content
        if depth > DEPTH_MAX:
            return ANY_ELEMENTS
        if name is None:
            is_choice = kind in (expat_model.XML_CTYPE_CHOICE, expat_model.XML_CTYPE_MIXED)
            inner = (self._particle(part, depth + 1) for part in parts)
            found = group(inner, is_choice=is_choice)
        else:
            found = Elements((self._number(name),))
        return repeated(found, *_OCCURRENCES[quantifier])

    def _number(self, name: str) -> int:
        """Of a declaration; what is not declared cannot be in a valid message."""
        if name not in self._numbers:
            never = Declaration((self._name(name),), self._expected(name, ""), Content())
            self._numbers[name] = self._model.add(never)
        return self._numbers[name]

    # -- names

    def _name(self, written: str) -> Name:
        prefix, _, local = written.rpartition(":")
        return Name(ANY if prefix or self._namespaces else "", local)

    def _attribute_name(self, written: str) -> Name:
        prefix, _, local = written.rpartition(":")
        return Name((XML_NAMESPACE if prefix == "xml" else ANY) if prefix else "", local)

    def _expected(self, written: str, default_prefix: str | None) -> Name | None:
        """``default_prefix``: the one whose namespace a name without one is in; None for none."""
        prefix, colon, local = written.rpartition(":")
        if not colon and default_prefix is None:
            return Name("", local)
        if prefix == "xml":
            return Name(XML_NAMESPACE, local)
        said = self._namespaces.get(prefix, set() if prefix else {""})
        namespace = next(iter(said)) if len(said) == 1 else None
        return None if namespace is None or (colon and not namespace) else Name(namespace, local)


def _values(kind: str, default: str | None, required: bool) -> Values:
    listed = kind.removeprefix("NOTATION")
    if listed.startswith("("):
        return frozenset(listed[1:-1].split("|"))
    return frozenset((collapsed(default),)) if required and default is not None else None


def _names_in(content: Any) -> list[str]:
    """The names in a content model of expat: (type, quantifier, name, parts)."""
    names, models = [], [content]
    while models:
        _, _, name, parts = models.pop()
        names += [name] if name else []
        models += parts
    return names


# -------------------------------------------------------------------------------------------------
# Reads the SchemaModel of a RELAX NG schema (XML syntax).
#
# A named pattern is read once and shared; patterns of one name are taken together.  What a name
# class excepts is left in.


_RELAXNG_OCCURRENCES = {
    RELAXNG + "optional": (0, 1.0),
    RELAXNG + "zeroOrMore": (0, inf),
    RELAXNG + "oneOrMore": (1, inf),
}
_TEXTS = frozenset(RELAXNG + name for name in ("text", "data", "value", "list"))
_ELSEWHERE = (RELAXNG + "externalRef", RELAXNG + "include")
_GRAMMAR, _START, _PARENT = RELAXNG + "grammar", RELAXNG + "start", RELAXNG + "parentRef"
_REFERENCES = (RELAXNG + "ref", _PARENT)
_Pattern: TypeAlias = tuple[Any, str]  # the grammar that it is of, and its name
_STRING_TYPES = frozenset((None, "token", "string", "normalizedString", "NMTOKEN", "NCName"))
_EMPTY = Content()


def read_relaxng(root: Any) -> SchemaModel:
    """The model of a schema document (``schema.py``)."""
    return _RelaxNgReader(root).read()


class _RelaxNgReader:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._model = SchemaModel()
        self._defined: dict[_Pattern, list[Any]] = {}
        for define in root.iter(RELAXNG + "define"):
            self._defined.setdefault(_meant(define), []).append(define)
        self._contents: dict[_Pattern, Content] = {}
        self._numbers: dict[Any, int] = {}

    def read(self) -> SchemaModel:
        model = self._model
        for element in self._root.iter(RELAXNG + "element"):
            names = _name_class(element)
            self._numbers[element] = model.add(Declaration(names, _only(names)))
        for element, number in self._numbers.items():
            content = self._all_in(element, 0)
            text = max(content.text, TextContent.WHITE_SPACE)
            model.declarations[number].content = replace(content, text=text)
        found = set(_numbers_in(self._pattern(self._root, 0)))
        model.roots = model.outermost = tuple(sorted(found))
        model.is_whole = next(self._root.iter(*_ELSEWHERE), None) is None
        return model

    def _pattern(self, pattern: Any, depth: int) -> Content:
        """What a pattern adds to what stands in an element."""
        tag = pattern.tag
        if depth > DEPTH_MAX or tag in _ELSEWHERE:
            return ANY_CONTENT
        if tag == RELAXNG + "element":
            return Content(Elements((self._numbers[pattern],)))
        if tag == RELAXNG + "attribute":
            return self._attribute(pattern)
        if tag in _TEXTS:
            return Content(text=TextContent.ANY)
        if tag in _REFERENCES:
            return self._named(_meant(pattern), depth)
        if tag == _GRAMMAR:
            starts = [part for part in pattern.iter(_START) if _grammar_of(part) is pattern]
            return _combined(starts, [self._all_in(start, depth) for start in starts])
        if tag == RELAXNG + "choice":
            parts = (self._pattern(part, depth + 1) for part in _patterns_in(pattern))
            return _together(parts, is_choice=True)
        found = self._all_in(pattern, depth)
        if tag == RELAXNG + "mixed":
            return replace(found, text=TextContent.ANY)
        least, most = _RELAXNG_OCCURRENCES.get(tag, (1, 1.0))
        attributes = found.attributes if least else _optional(found.attributes)
        particle = repeated(found.particle, least, most)
        return replace(found, particle=particle, attributes=attributes)

    def _all_in(self, pattern: Any, depth: int) -> Content:
        return _together(self._pattern(part, depth + 1) for part in _patterns_in(pattern))

    def _named(self, meant: _Pattern, depth: int) -> Content:
        if meant not in self._contents:
            self._contents[meant] = _EMPTY  # where it refers to itself, which it may not
            defines = self._defined.get(meant, [])
            parts = [self._all_in(define, depth + 1) for define in defines]
            self._contents[meant] = _combined(defines, parts) if parts else ANY_CONTENT
        return self._contents[meant]

    def _attribute(self, attribute: Any) -> Content:
        patterns = list(_patterns_in(attribute))
        values = self._values(patterns, frozenset()) if patterns else None
        names = _name_class(attribute)
        if any(ANY in name for name in names):
            return Content(any_attribute=True)
        expected = _only(names)
        return Content(
            attributes=tuple(
                Attribute(name, expected, expected is not None, values) for name in names
            )
        )

    def _values(self, patterns: list[Any], seen: frozenset[_Pattern]) -> Values:
        """The values listed by a choice of strings; None for any other patterns."""
        found: set[str] = set()
        for pattern in patterns:
            if pattern.tag == RELAXNG + "value" and pattern.get("type") in _STRING_TYPES:
                found.add(collapsed(pattern.text or ""))
                continue
            parts: Values = None
            if pattern.tag == RELAXNG + "choice":
                parts = self._values(list(_patterns_in(pattern)), seen)
            elif pattern.tag in _REFERENCES and len(seen) < DEPTH_MAX:
                meant = _meant(pattern)
                defines = self._defined.get(meant, ()) if meant not in seen else ()
                inside = [part for define in defines for part in _patterns_in(define)]
                parts = self._values(inside, seen | {meant}) if inside else None
            if parts is None:
                return None
            found |= parts
        return frozenset(found)


def _grammar_of(part: Any) -> Any:
    """The one that a part of it stands in directly."""
    return next(part.iterancestors(_GRAMMAR), None)


def _meant(part: Any) -> _Pattern:
    """The pattern that a ``define`` defines, or that a reference is to."""
    grammar = _grammar_of(part)
    if part.tag == _PARENT and grammar is not None:
        grammar = _grammar_of(grammar)
    return grammar, _trimmed(part.get("name"))


def _combined(parts: list[Any], contents: list[Content]) -> Content:
    """Several definitions of one name."""
    is_choice = not any(part.get("combine") == "interleave" for part in parts)
    return _together(contents, is_choice=is_choice)


def _together(parts: Iterable[Content], *, is_choice: bool = False) -> Content:
    """Several patterns in a row, in any order, or one of them."""
    parts = list(parts)
    attributes: dict[Name, Attribute] = {}
    for part in parts:
        is_sure = not is_choice or len(parts) == 1
        for attribute in part.attributes if is_sure else _optional(part.attributes):
            attributes[attribute.name] = _either(attributes.get(attribute.name), attribute)
    return Content(
        group((part.particle for part in parts), is_choice=is_choice),
        tuple(attributes.values()),
        any(part.any_attribute for part in parts),
        max((part.text for part in parts), default=TextContent.NONE),
    )


def _either(known: Attribute | None, other: Attribute) -> Attribute:
    if known is None:
        return other
    listed = known.values is not None and other.values is not None
    values = (known.values or frozenset()) | (other.values or frozenset()) if listed else None
    return replace(known, values=values, required=known.required or other.required)


def _optional(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    return tuple(replace(attribute, required=False) for attribute in attributes)


def _numbers_in(content: Content) -> Iterator[int]:
    """The declarations in what a schema starts with."""
    particles, met = [content.particle], set()
    while particles:
        particle = particles.pop()
        if isinstance(particle, Elements):
            yield from particle.declarations
        elif id(particle) not in met:
            met.add(id(particle))
            particles += particle.parts


def _patterns_in(pattern: Any) -> Iterator[Any]:
    """The patterns directly in one, without the class of names that begins it."""
    is_named = pattern.tag in (RELAXNG + "element", RELAXNG + "attribute")
    children = [part for part in pattern.iterchildren(etree.Element) if _is_relaxng(part)]
    skipped = 1 if is_named and pattern.get("name") is None else 0
    yield from children[skipped:]


def _is_relaxng(element: Any) -> bool:
    return str(element.tag).startswith(RELAXNG)


def _only(names: tuple[Name, ...]) -> Name | None:
    """The name of a class that has just one."""
    return names[0] if len(names) == 1 and ANY not in names[0] else None


def _name_class(pattern: Any) -> tuple[Name, ...]:
    """The names of an element or attribute pattern."""
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


# -------------------------------------------------------------------------------------------------
# Reads the SchemaModel of a W3C XML Schema.
#
# Each xs:element is a declaration of its own; one that refers to a global element may follow all
# members of its substitution group.  What ``xsi:type`` could put in the place of a type, the global
# types derived from it, stands beside it.


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
_XSD_EMPTY = Content(text=TextContent.WHITE_SPACE)


def read_xsd(roots: Sequence[Any], *, is_whole: bool) -> SchemaModel:
    """The model of a schema's documents (``schema.py``); ``is_whole``: none is missing."""
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
                self._members[_xsd_resolved(part, head)].append(part)
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
                self._derived[_xsd_resolved(derivation, derivation.get("base", ""))].append(part)

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
            return self._named_type(_xsd_resolved(element, element.get("type")))
        heads = element.get("substitutionGroup", "").split()[:1]
        head = self._globals.get(("element", _xsd_resolved(element, heads[0]))) if heads else None
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
        known = self._contents.get(type_, _XSD_EMPTY)
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
        name = _xsd_resolved(derivation, derivation.get("base", ""))
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
        named = self._globals.get(("group", _xsd_resolved(reference, reference.get("ref"))))
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
        names, met = [_xsd_resolved(part, part.get("ref"))], set()
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
                name = _xsd_resolved(part, part.get("ref", ""))
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
            name = _xsd_resolved(part, part.get("ref"))
            part = self._globals.get(("attribute", name))
        return Attribute(name, name, required, None if part is None else self._listed(part))

    def _listed(self, attribute: Any) -> Values:
        """The values of an attribute."""
        inline = next(attribute.iterchildren(XSD + "simpleType"), None)
        type_ = _xsd_resolved(attribute, attribute.get("type", ""))
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
        base = _xsd_resolved(restriction, restriction.get("base", ""))
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


def _xsd_resolved(part: Any, name: str) -> Name:
    prefix, _, local = name.strip().rpartition(":")
    if prefix == "xml":
        return Name(XML_NAMESPACE, local)
    return Name(part.nsmap.get(prefix or None) or "", local)


# -------------------------------------------------------------------------------------------------


def read_schema_model(schema: Schema) -> SchemaModel:
    """The model of a schema that ``read_schema`` has accepted; depends on its bytes alone."""
    files = schema.files()
    if schema.kind == "dtd":
        return read_dtd(files)
    roots = read_roots(schema, files)
    if schema.kind == "xsd":
        return read_xsd(roots, is_whole=files.is_whole)
    return read_relaxng(roots[0])
