"""Taxonomy: which classes are below which, and properties; RDF Schema's, as far as G-ToPSS has it.

Read from a graph in any syntax; of it count the triples of ``rdfs:subClassOf``,
``rdfs:subPropertyOf`` and ``rdf:type`` between IRIs.  A class may have several parents, and an
*instance*, the subject of an ``rdf:type``, several classes.  That a class is below itself says
nothing and is passed over; any other cycle is refused (G-ToPSS, section 3.4).

What it is for: ``closure.py``.  As bytes it is a line for each of its triples, in order, so that
two taxonomies that say the same are the same bytes::

    class <below> <above>
    instance <instance> <class>
    property <below> <above>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import striped
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF, RDFS

_SHOWN_MAX = 20  # members of a cycle

Above = Mapping[bytes, tuple[bytes, ...]]
"""What is next above an IRI."""


@dataclass(frozen=True, slots=True)
class TaxonomyLimits:
    """Bounds for a taxonomy, and for all of a network together.

    graph        those of the graph that it is read from
    terms_max    classes, properties and instances (``too-many-classes``)
    above_max    classes, or properties, above one of them (``too-many-above``)
    closure_max  the same, summed over all of them (``closure-too-large``)
    """

    graph: GraphLimits = DEFAULT_GRAPH_LIMITS
    terms_max: int = 100_000
    above_max: int = 1_000
    closure_max: int = 1_000_000


DEFAULT_TAXONOMY_LIMITS = TaxonomyLimits()


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """``classes`` and ``properties``: what is next above each; ``instances``: their classes."""

    classes: Above = field(default_factory=dict)
    properties: Above = field(default_factory=dict)
    instances: Above = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.classes or self.properties or self.instances)

    def to_bytes(self) -> bytes:
        return b"".join(
            b"%s %s %s\n" % (kind, below, above)
            for kind, table in zip(_KINDS, self._tables(), strict=True)
            for below in sorted(table)
            for above in sorted(table[below])
        )

    def to_n_triples(self) -> bytes:
        """A graph that says the same."""
        words = {index: space + name for (space, name), index in _TABLE_OF_PROPERTY.items()}
        return b"".join(
            b"<%s> <%s> <%s> .\n" % (below, words[index].encode(), above)
            for index, table in enumerate((self.classes, self.properties, self.instances))
            for below in sorted(table)
            for above in sorted(table[below])
        )

    @staticmethod
    def from_bytes(data: bytes) -> Taxonomy:
        """What ``to_bytes`` has made; ValueError."""
        tables: dict[bytes, dict[bytes, list[bytes]]] = {kind: {} for kind in _KINDS}
        for line in data.splitlines():
            kind, below, above = line.split(b" ")
            if kind not in tables:
                raise ValueError(f"{kind!r} is no part of a taxonomy")
            tables[kind].setdefault(below, []).append(above)
        return _of_tables(*tables.values())

    def sizes(self) -> dict[str, int]:
        return {
            "classes": len(_named(self.classes)),
            "properties": len(_named(self.properties)),
            "instances": len(self.instances),
        }

    def _tables(self) -> tuple[Above, Above, Above]:
        return self.classes, self.properties, self.instances


_KINDS = (b"class", b"property", b"instance")
_TABLE_OF_PROPERTY = {
    (RDFS, "subClassOf"): 0,
    (RDFS, "subPropertyOf"): 1,
    (RDF, "type"): 2,
}


def read_taxonomy(
    data: bytes, syntax: GraphSyntax, limits: TaxonomyLimits = DEFAULT_TAXONOMY_LIMITS
) -> Taxonomy:
    """The taxonomy that a graph says; MessageRefused with the codes of a graph, of the limits, and
    ``taxonomy-cycle``."""
    tables: tuple[dict[bytes, list[bytes]], ...] = ({}, {}, {})
    for below, table, above in _triples(read_graph(data, syntax, limits.graph)):
        if below != above:
            tables[table].setdefault(below, []).append(above)
    taxonomy = _of_tables(*tables)
    check_taxonomy(taxonomy, limits)
    return taxonomy


def union(taxonomies: Iterable[Taxonomy]) -> Taxonomy:
    """All that some taxonomies say; it may have a cycle that none of them has."""
    tables: tuple[dict[bytes, list[bytes]], ...] = ({}, {}, {})
    for taxonomy in taxonomies:
        for found, table in zip(tables, taxonomy._tables(), strict=True):
            for below, above in table.items():
                found.setdefault(below, []).extend(above)
    return _of_tables(*tables)


def check_taxonomy(taxonomy: Taxonomy, limits: TaxonomyLimits = DEFAULT_TAXONOMY_LIMITS) -> None:
    """MessageRefused as ``read_taxonomy``."""
    terms = sum(taxonomy.sizes().values())
    if terms > limits.terms_max:
        raise MessageRefused(
            "too-many-classes",
            f"{terms} classes, properties and instances; at most {limits.terms_max}",
        )
    total = 0
    for table, word in ((taxonomy.classes, "classes"), (taxonomy.properties, "properties")):
        closed: dict[bytes, set[bytes]] = {}
        for term in _from_the_top(table):
            above = closed[term] = set[bytes]()
            # PERF: those that have most above them first, since others may be among these.
            for each in sorted(table.get(term, ()), key=lambda each: -len(closed[each])):
                if each not in above:
                    above.add(each)
                    above |= closed[each]
            total += len(above)
            if len(above) > limits.above_max:
                raise MessageRefused(
                    "too-many-above",
                    f"{len(above)} {word} are above {term.decode()}; at most {limits.above_max}",
                )
            if total > limits.closure_max:
                raise MessageRefused(
                    "closure-too-large",
                    f"more than {limits.closure_max} pairs of one below another",
                )


def above(table: Above, term: bytes) -> list[bytes]:
    """All that is above a term, each once, the nearest first."""
    found = dict.fromkeys(table.get(term, ()))
    waiting = list(found)
    for each in waiting:
        for higher in table.get(each, ()):
            if higher not in found:
                found[higher] = None
                waiting.append(higher)
    return waiting


def _triples(stream: ElementStream) -> Iterator[tuple[bytes, int, bytes]]:
    """(below, place of the table, above) of each triple between IRIs that counts."""
    tables = [_TABLE_OF_PROPERTY.get((name.namespace, name.local), -1) for name in stream.names]
    for subject in stream.children_of(0):
        below = _attribute(stream, subject, striped.IRI_SUBJECT)
        if below is None:
            continue
        for each in stream.children_of(subject):
            table = tables[stream.element_name[each]]
            above = _attribute(stream, each, striped.IRI_OBJECT) if table >= 0 else None
            if above is not None:
                yield below, table, above


def _attribute(stream: ElementStream, element: int, local: str) -> bytes | None:
    for attribute in stream.attributes_of(element):
        if stream.names[stream.attribute_name[attribute]].local == local:
            return stream.attribute_value(attribute).encode()
    return None


def _of_tables(*tables: Mapping[bytes, Iterable[bytes]]) -> Taxonomy:
    """Each pair once."""
    return Taxonomy(
        *({below: tuple(dict.fromkeys(above)) for below, above in t.items()} for t in tables)
    )


def _named(table: Above) -> set[bytes]:
    return set(table).union(*table.values())


def _from_the_top(table: Above) -> Iterator[bytes]:
    """Every term, behind all that are above it; MessageRefused (``taxonomy-cycle``)."""
    done: set[bytes] = set()
    for first in table:
        if first in done:
            continue
        path = {first: iter(table[first])}  # from below, each with those above that are left
        while path:
            term, left = next(reversed(path.items()))
            higher = next(left, None)
            if higher is None:
                del path[term]
                done.add(term)
                yield term
            elif higher in path:
                members = list(path)
                _refuse_cycle(members[members.index(higher) :])
            elif higher not in done:
                path[higher] = iter(table.get(higher, ()))


def _refuse_cycle(members: list[bytes]) -> None:
    shown = [member.decode() for member in members[:_SHOWN_MAX]]
    more = [f"… {len(members) - _SHOWN_MAX} more …"] if len(members) > _SHOWN_MAX else []
    cycle = " → ".join([*shown, *more, shown[0]])
    raise MessageRefused("taxonomy-cycle", f"a taxonomy has no cycle, and this one has {cycle}")
