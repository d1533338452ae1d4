"""Reads the SchemaModel of a RELAX NG schema (XML syntax).

A named pattern is read once and shared; patterns of one name are taken together.  What a name
class excepts is left in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import Any, TypeAlias

from lxml import etree

from formats.names import XML_NAMESPACE
from formats.schema_document import RELAXNG
from formats.schema_model import (
    ANY,
    ANY_CONTENT,
    DEPTH_MAX,
    Attribute,
    Content,
    Declaration,
    Elements,
    Name,
    SchemaModel,
    TextContent,
    Values,
    collapsed,
    group,
    repeated,
)

_OCCURRENCES = {
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
    """The model of a schema document (``relaxng_documents.py``)."""
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
        least, most = _OCCURRENCES.get(tag, (1, 1.0))
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
