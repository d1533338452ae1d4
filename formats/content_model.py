"""ContentModel: which elements a schema lets stand in which, and how often at the most.

Read off the schema document, so that "at most once in any message" can be said of a path (sections
3.1 and 4.4 of the paper).  What is said is an upper bound: local names alone count, declarations
of the same name are taken together, a choice counts as its largest alternative.  What a schema
refers to elsewhere stays unread; an element whose content is not known is ``open``.

::

    <!ELEMENT nitf (head?, body)>         nitf  ->  head 1, body 1
    <!ELEMENT body (p | table)*>          body  ->  p inf, table inf
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from pyexpat import model as expat_model
from typing import Any, TypeAlias

from lxml import etree

from formats.dtd import read_declarations
from formats.schema import RELAXNG, XSD, Schema, parse_schema_document

# Local name of an element -> how often it can occur.
Counts: TypeAlias = dict[str, float]

_DEPTH_MAX = 200  # of groups within groups


@dataclass(frozen=True, slots=True)
class ContentModel:
    """``roots`` may be the root element of a message.  ``children`` of an element by local name;
    ``open`` elements may contain anything."""

    roots: frozenset[str]
    children: Mapping[str, Counts]
    open: frozenset[str] = frozenset()

    def may_contain_anything(self, element: str) -> bool:
        return element in self.open or element not in self.children


def read_content_model(schema: Schema) -> ContentModel:
    """The content model of a schema that ``read_schema`` has accepted."""
    if schema.kind == "dtd":
        return _of_dtd(schema.data)
    root = parse_schema_document(schema.data)
    return _XsdReader(root).read() if schema.kind == "xsd" else _RelaxNgReader(root).read()


@dataclass(slots=True)
class _Declared:
    """What has been read so far."""

    children: dict[str, Counts] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def add(self, element: str, content: Counts | None) -> None:
        """Several declarations of one name are taken together; None is any content."""
        known = self.children.setdefault(element, {})
        if content is None:
            self.open.add(element)
            return
        for child, count in content.items():
            known[child] = max(known.get(child, 0.0), count)

    def model(self, roots: Iterable[str]) -> ContentModel:
        return ContentModel(frozenset(roots), self.children, frozenset(self.open))


def _all_of(parts: Iterable[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for part in parts:
        for name, count in part.items():
            total[name] += count  # type: ignore[assignment]  # counts may be endless
    return dict(total)


def _one_of(parts: Iterable[Counts]) -> Counts:
    largest: Counts = {}
    for part in parts:
        for name, count in part.items():
            largest[name] = max(largest.get(name, 0.0), count)
    return largest


def _times(content: Counts, factor: float) -> Counts:
    return {name: count * factor for name, count in content.items()} if factor else {}


# --- DTD ------------------------------------------------------------------------------------


def _of_dtd(data: bytes) -> ContentModel:
    declared = _Declared()

    def element(name: str, content: Any) -> None:
        is_any = content[0] == expat_model.XML_CTYPE_ANY
        declared.add(_local(name), None if is_any else _dtd_particle(content, 0))

    read_declarations(data, element=element)
    inner = {child for counts in declared.children.values() for child in counts}
    return declared.model(set(declared.children) - inner or declared.children)


def _dtd_particle(content: Any, depth: int) -> Counts:
    kind, quantifier, name, parts = content
    repeated = quantifier in (expat_model.XML_CQUANT_REP, expat_model.XML_CQUANT_PLUS)
    if name is not None:
        found = {_local(name): 1.0}
    else:
        inner = [_dtd_particle(part, depth + 1) for part in parts] if depth < _DEPTH_MAX else []
        found = _all_of(inner) if kind == expat_model.XML_CTYPE_SEQ else _one_of(inner)
    return _times(found, inf) if repeated else found


def _local(name: str) -> str:
    return name.rpartition(":")[2]


# --- XML Schema -----------------------------------------------------------------------------

_XSD_GROUPS = {XSD + name for name in ("sequence", "choice", "all", "group")}


class _XsdReader:
    """Particles are read where they are referred to; a reference is followed at most once deep."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._declared = _Declared()
        self._global: dict[tuple[str, str], Any] = {
            (child.tag, child.get("name", "")): child for child in root.iterchildren(etree.Element)
        }

    def read(self) -> ContentModel:
        for element in self._root.iter(XSD + "element"):
            if element.get("name"):
                self._declared.add(element.get("name"), self._content(element))
        substitutes = self._substitutes()
        for counts in self._declared.children.values():
            for head, members in substitutes.items():
                for member in members if head in counts else ():
                    counts[member] = max(counts.get(member, 0.0), counts[head])
        return self._declared.model(
            name for tag, name in self._global if tag == XSD + "element" and name
        )

    def _substitutes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for (tag, name), element in self._global.items():
            head = element.get("substitutionGroup")
            if tag == XSD + "element" and head:
                found.setdefault(_local(head), []).append(name)
        return found

    def _content(self, element: Any) -> Counts | None:
        """What an element declaration lets stand in it; None: not known."""
        name = element.get("type")
        inline = element.find(XSD + "complexType")
        if inline is not None:
            return self._of_type(inline, ())
        if element.find(XSD + "simpleType") is not None:
            return {}
        if name is None:
            return {} if element.get("substitutionGroup") is None else None
        return self._of_named_type(element, name, ())

    def _of_named_type(self, near: Any, name: str, seen: tuple[str, ...]) -> Counts | None:
        local = _local(name)
        prefix = name.rpartition(":")[0] or None
        named = self._global.get((XSD + "complexType", local))
        if named is not None and local not in seen:
            return self._of_type(named, (*seen, local))
        is_simple = (XSD + "simpleType", local) in self._global
        if is_simple or (near.nsmap.get(prefix) == XSD[1:-1] and local != "anyType"):
            return {}
        return None

    def _of_type(self, kind: Any, seen: tuple[str, ...]) -> Counts | None:
        derived = kind.find(f"{XSD}complexContent/{XSD}extension")
        if derived is None:
            restricted = kind.find(f"{XSD}complexContent/{XSD}restriction")
            return self._of_particles(restricted if restricted is not None else kind)
        base = self._of_named_type(derived, derived.get("base", ""), seen)
        own = self._of_particles(derived)
        return None if base is None or own is None else _all_of((base, own))

    def _of_particles(self, parent: Any) -> Counts | None:
        try:
            return _all_of(
                self._particle(child, 0)
                for child in parent.iterchildren(etree.Element)
                if child.tag in _XSD_GROUPS
            )
        except _Unknown:
            return None

    def _particle(self, node: Any, depth: int) -> Counts:
        if depth > _DEPTH_MAX or node.tag == XSD + "any":
            raise _Unknown
        most = node.get("maxOccurs", "1")
        times = inf if most == "unbounded" else float(most)
        if node.tag == XSD + "element":
            return _times({_local(node.get("name") or node.get("ref", "")): 1.0}, times)
        if node.tag == XSD + "group" and node.get("ref"):
            group = self._global.get((XSD + "group", _local(node.get("ref"))))
            if group is None:
                raise _Unknown
            return _times(self._particle(group, depth + 1), times)
        wanted = (*_XSD_GROUPS, XSD + "element", XSD + "any")
        parts = [self._particle(child, depth + 1) for child in node.iterchildren(*wanted)]
        combine = _one_of if node.tag == XSD + "choice" else _all_of
        return _times(combine(parts), times)


class _Unknown(Exception):
    """The content cannot be known from this document."""


# --- RELAX NG -------------------------------------------------------------------------------

_IGNORED = {RELAXNG + name for name in ("attribute", "data", "value", "text", "empty", "list")}
_REPEATED = {RELAXNG + "zeroOrMore", RELAXNG + "oneOrMore"}


class _RelaxNgReader:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._declared = _Declared()
        self._defines: dict[str, list[Any]] = {}
        for define in root.iter(RELAXNG + "define"):
            self._defines.setdefault(define.get("name", ""), []).append(define)

    def read(self) -> ContentModel:
        for element in self._root.iter(RELAXNG + "element"):
            for name in _relaxng_names(element):
                self._declared.add(name, self._content(element))
        starts = list(self._root.iter(RELAXNG + "start")) or [self._root]
        try:
            roots: Counts = _one_of(self._pattern(start, ()) for start in starts)
        except _Unknown:
            roots = {}
        return self._declared.model(roots or self._declared.children)

    def _content(self, element: Any) -> Counts | None:
        try:
            return _all_of(
                self._pattern(child, ()) for child in element.iterchildren(etree.Element)
            )
        except _Unknown:
            return None

    def _pattern(self, node: Any, seen: tuple[str, ...]) -> Counts:
        if not node.tag.startswith(RELAXNG) or node.tag in _IGNORED:
            return {}
        if node.tag == RELAXNG + "element":
            names = _relaxng_names(node)
            if not names:
                raise _Unknown
            return dict.fromkeys(names, 1.0)
        if node.tag in {RELAXNG + "externalRef", RELAXNG + "parentRef"}:
            raise _Unknown
        if node.tag == RELAXNG + "ref":
            return self._reference(node.get("name", ""), seen)
        parts = [self._pattern(child, seen) for child in node.iterchildren(etree.Element)]
        found = _one_of(parts) if node.tag == RELAXNG + "choice" else _all_of(parts)
        return _times(found, inf) if node.tag in _REPEATED else found

    def _reference(self, name: str, seen: tuple[str, ...]) -> Counts:
        if name not in self._defines or name in seen or len(seen) > _DEPTH_MAX:
            raise _Unknown
        defines = self._defines[name]
        combine: Callable[[Iterable[Counts]], Counts] = (
            _all_of if any(d.get("combine") == "interleave" for d in defines) else _one_of
        )
        return combine(self._pattern(define, (*seen, name)) for define in defines)


def _relaxng_names(element: Any) -> list[str]:
    """The names of an element pattern; none if it may have any."""
    if element.get("name"):
        return [_local(element.get("name").strip())]
    name_class = element.find(RELAXNG + "name")
    if name_class is not None:
        return [_local((name_class.text or "").strip())]
    choice = element.find(RELAXNG + "choice")
    if choice is None or element[0] is not choice or choice.find(RELAXNG + "name") is None:
        return []
    return [_local((name.text or "").strip()) for name in choice.iterchildren(RELAXNG + "name")]
