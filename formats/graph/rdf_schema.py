"""RdfSchema: the classes and properties of metadata, said in RDF Schema in any syntax of RDF.

Of the graph count the triples between IRIs of ``rdfs:subClassOf``, ``rdfs:subPropertyOf``,
``rdfs:domain``, ``rdfs:range``, and ``rdf:type`` with the types below.  OWL's kinds of properties
say whether values are resources; ``owl:FunctionalProperty``, that a resource has one value at
most; ``urn:onyx:metadata:StrongReference``, that a resource travels with the ones that refer to it
(``WeakReference``, or nothing: it does not).

A property takes from the nearest above it the range and the domains that it does not say itself.
It has one value where a property above it has one, and is strong where that is strong, because
each of its statements is a statement of the property above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from pyoxigraph import NamedNode

from formats.errors import Fault, Refusal, SchemaRefused
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import (
    DEFAULT_TAXONOMY_LIMITS,
    Above,
    Taxonomy,
    TaxonomyLimits,
    above,
    check_taxonomy,
)
from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS, XSD
from formats.graph.writer import has_named_graphs, triples_of

METADATA = "urn:onyx:metadata:"
LITERAL = RDFS + "Literal"
LANG_STRING = RDF + "langString"
_OWL = "http://www.w3.org/2002/07/owl#"
_STRONG, _WEAK = METADATA + "StrongReference", METADATA + "WeakReference"
_SINGLE, _OF_LITERALS = _OWL + "FunctionalProperty", _OWL + "DatatypeProperty"
_REFERENCES = {_OWL + "ObjectProperty", _STRONG, _WEAK}
_PROPERTY_TYPES = {RDF + "Property", _SINGLE, _OF_LITERALS} | _REFERENCES
_CLASS_TYPES = {RDFS + "Class", _OWL + "Class"}
_ANYTHING = {RDFS + "Resource", _OWL + "Thing"}  # as a class these say nothing
_DATATYPES = {LITERAL, LANG_STRING, RDF + "HTML", RDF + "XMLLiteral"}
_BELOW_CLASS, _BELOW_PROPERTY = RDFS + "subClassOf", RDFS + "subPropertyOf"
_DOMAIN, _RANGE = RDFS + "domain", RDFS + "range"


class UnknownName(Refusal):
    """A name that no class, or no property, of the schema has, or several have."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(Fault("unknown-name", reason, hint=hint))


class Property(NamedTuple):
    """A property of a schema; ``range`` is a class, or the IRI of a datatype, "" if none is said.

    A property that is no reference takes literals, or anything where it has no range.
    """

    name: str
    domains: tuple[str, ...] = ()
    range: str = ""
    is_reference: bool = False
    is_single: bool = False
    is_strong: bool = False


class RdfSchema:
    """Classes, properties, and all above each, without itself, the nearest first; all are IRIs.

    ``is_open``: names that the schema does not have are taken, and nothing is known of them.
    """

    def __init__(
        self,
        classes: Mapping[str, tuple[str, ...]],
        properties: Mapping[str, Property],
        properties_above: Mapping[str, tuple[str, ...]],
        is_open: bool = False,
    ) -> None:
        self.classes = classes
        self.properties = properties
        self.properties_above = properties_above
        self.is_open = is_open
        below: dict[str, set[str]] = {}
        for table in (classes, properties_above):
            for name, higher in table.items():
                for each in (name, *higher):
                    below.setdefault(each, set()).add(name)
        self._below = {name: frozenset(each) for name, each in below.items()}
        self._known: dict[str, Mapping[str, object]] = {"class": classes, "property": properties}
        self._locals = {kind: _by_local_name(known) for kind, known in self._known.items()}

    def below(self, name: str) -> frozenset[str]:
        """A class, or a property, with all below it."""
        return self._below.get(name) or frozenset((name,))

    def near(self, kind: str, name: str) -> str:
        """A question that names the ``class`` or ``property`` nearly of this name, or nothing."""
        return _question(local_name(name), self._locals[kind])

    def find(self, kind: str, name: str, prefixes: Mapping[str, str]) -> str:
        """The IRI of the ``class`` or ``property`` that an IRI, ``prefix:local`` or a local name
        means; UnknownName."""
        known = self._known[kind]
        if name in known:
            return name
        prefix, colon, local = name.partition(":")
        if not colon:
            found = self._locals[kind].get(name, [])
            if len(found) > 1:
                hint = f"write {' or '.join(f'<{each}>' for each in found)}"
                raise UnknownName(f"more than one {kind} is named {name}", hint)
            if found:
                return found[0]
        elif prefix in prefixes:
            name = prefixes[prefix] + local
            if self.is_open or name in known:
                return name
        elif "/" not in local and ":" not in local:  # no IRI, as far as people write them
            hint = _question(prefix, {each: [each] for each in prefixes})
            raise UnknownName(f"the prefix {prefix} is not declared", hint)
        elif self.is_open:
            return name
        raise UnknownName(f"the schema has no {kind} {name}", self.near(kind, name))


def read_schema(
    data: bytes,
    syntax: GraphSyntax,
    is_open: bool = False,
    limits: TaxonomyLimits = DEFAULT_TAXONOMY_LIMITS,
) -> RdfSchema:
    """The schema that a graph says.

    Raises MessageRefused as ``read_taxonomy``, and SchemaRefused: ``named-graph``,
    ``unknown-class``, ``several-ranges``, ``range-conflict``, ``strong-and-weak``.
    """
    stream = read_graph(data, syntax, limits.graph)
    if has_named_graphs(stream):
        raise SchemaRefused("named-graph", "a schema is one graph, and this has named ones")
    said = _Said()
    for subject, predicate, thing, _ in triples_of(stream):
        if isinstance(subject, NamedNode) and isinstance(thing, NamedNode):
            said.add(subject.value, predicate.value, thing.value)
    return said.schema(is_open, limits)


def local_name(name: str) -> str:
    """The part of an IRI behind its last ``#``, ``/`` or ``:``."""
    return name[max(name.rfind("#"), name.rfind("/"), name.rfind(":")) + 1 :]


class _Said:
    """The triples that count, by predicate, and the schema that they make."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, list[str]]] = {
            each: {} for each in (_BELOW_CLASS, _BELOW_PROPERTY, _DOMAIN, _RANGE, RDF_TYPE)
        }

    def add(self, subject: str, predicate: str, thing: str) -> None:
        if predicate in self._tables and subject != thing and thing not in _ANYTHING:
            self._tables[predicate].setdefault(subject, []).append(thing)

    def schema(self, is_open: bool, limits: TaxonomyLimits) -> RdfSchema:
        classes, properties, domains, ranges, types = self._tables.values()
        self._datatypes = _DATATYPES | {
            each for each, own in types.items() if RDFS + "Datatype" in own
        }
        for name in [each for each in classes if self._is_datatype(each)]:
            del classes[name]
        self._classes = _all_above(classes, _named(classes, types, _CLASS_TYPES), limits)
        for word, table in (("domain", domains), ("range", ranges)):
            for name, found in table.items():
                self._check_classes(word, name, found, is_open)
        names = {**_named(properties, types, _PROPERTY_TYPES), **domains, **ranges}
        self._above = _all_above(properties, names, limits)
        self._ranges = {name: self._own_range(name) for name in self._above}
        known = {name: self._property(name) for name in self._above}
        return RdfSchema(self._classes, known, self._above, is_open)

    def _is_datatype(self, name: str) -> bool:
        return name in self._datatypes or name.startswith(XSD)

    def _check_classes(self, word: str, name: str, found: list[str], is_open: bool) -> None:
        for each in found:
            if each in self._classes or (word == "range" and self._is_datatype(each)):
                continue
            if not is_open:
                reason = f"the {word} of {name} is {each}, which is no class of the schema"
                hint = _question(local_name(each), _by_local_name(self._classes))
                raise SchemaRefused("unknown-class", reason, hint=hint)
            self._classes[each] = ()

    def _own_range(self, name: str) -> tuple[str, bool | None]:
        """The range that a property says itself, or "", and whether it is a reference, or None."""
        types = set(self._tables[RDF_TYPE].get(name, ()))
        if {_STRONG, _WEAK} <= types:
            raise SchemaRefused("strong-and-weak", f"{name} is a strong and a weak reference")
        found = set(self._tables[_RANGE].get(name, ()))
        wide = (self._classes.get(each, (LITERAL,)) for each in found - {LITERAL})
        narrow = found.difference(*wide)
        if len(narrow) > 1:
            reason = f"{name} has the ranges {' and '.join(sorted(narrow))}"
            raise SchemaRefused("several-ranges", reason)
        kinds = {True for _ in _REFERENCES & types} | {False for _ in types & {_OF_LITERALS}}
        kinds |= {not self._is_datatype(each) for each in found}
        if len(kinds) > 1:
            reason = f"{name} is said to have resources and literals as its values"
            raise SchemaRefused("range-conflict", reason)
        return next(iter(narrow), ""), next(iter(kinds), None)

    def _property(self, name: str) -> Property:
        lineage = (name, *self._above[name])
        kinds = {kind: each for each in lineage if (kind := self._ranges[each][1]) is not None}
        if len(kinds) > 1:
            reason = f"{kinds[True]} has resources as its values, and {kinds[False]} literals"
            raise SchemaRefused("range-conflict", f"{reason}; one is below the other")
        types = {each for own in lineage for each in self._tables[RDF_TYPE].get(own, ())}
        said = self._tables[_DOMAIN]
        domains = next((said[each] for each in lineage if each in said), ())
        ranges = (own for each in lineage if (own := self._ranges[each][0]))
        nearest = next(ranges, LITERAL if False in kinds else "")
        single, strong = _SINGLE in types, _STRONG in types
        return Property(name, tuple(domains), nearest, True in kinds, single, strong)


def _named(
    below: Mapping[str, list[str]], types: Mapping[str, list[str]], wanted: set[str]
) -> dict[str, None]:
    """All that a hierarchy names, and all that is of a wanted type."""
    typed = (each for each, own in types.items() if not wanted.isdisjoint(own))
    return dict.fromkeys([*typed, *below, *(each for higher in below.values() for each in higher)])


def _all_above(
    table: Mapping[str, list[str]], names: Iterable[str], limits: TaxonomyLimits
) -> dict[str, tuple[str, ...]]:
    """All above each name; MessageRefused where that is a circle, or too much."""
    encoded: Above = {
        name.encode(): tuple(each.encode() for each in higher) for name, higher in table.items()
    }
    check_taxonomy(Taxonomy(encoded), limits)
    return {name: tuple(each.decode() for each in above(encoded, name.encode())) for name in names}


def _by_local_name(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(local_name(name), []).append(name)
    return found


def _question(word: str, known: Mapping[str, list[str]]) -> str:
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(word.casefold(), folded, n=1)
    return f"did you mean {' or '.join(known[folded[close[0]]])}?" if close else ""
