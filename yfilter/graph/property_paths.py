"""Property paths of SPARQL as triples: ``?x a/b ?y`` is ``?x a _:0 . _:0 b ?y``.

``a/rdfs:subClassOf*`` and ``a/^rdfs:subClassOf*`` ask the taxonomies.  What has no fixed number
of triples (``*``, ``+``, ``?``) or is what a triple is not (``!p``) is Weakened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from formats.graph.vocabulary import RDF_TYPE, RDFS
from yfilter.graph.necessary_part import weakened
from yfilter.graph.query_ast import (
    Alternatives,
    Closure,
    Group,
    GroupElement,
    Iri,
    Term,
    TriplePattern,
    Variable,
)

SUB_CLASS = Iri(RDFS + "subClassOf")
SUB_PROPERTY = Iri(RDFS + "subPropertyOf")
TYPE = Iri(RDF_TYPE)


@dataclass(frozen=True, slots=True)
class Inverse:
    path: Path


@dataclass(frozen=True, slots=True)
class Chain:
    """``a/b/c``, two or more."""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """``a|b|c``, two or more."""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """``count`` is ``*``, ``+`` or ``?``."""

    path: Path
    count: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """``!(p|^q)``: any property but p, or any but q the other way."""

    forward: tuple[Iri, ...]
    backward: tuple[Iri, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """``a/rdfs:subClassOf*``, or with ``^`` before the second."""

    closure: Closure


Path: TypeAlias = Iri | Variable | Inverse | Chain | Choice | Repeated | Excluded | Typed
_TYPED = {
    (TYPE, Repeated(SUB_CLASS, "*")): Typed(Closure.INSTANCE),
    (TYPE, Inverse(Repeated(SUB_CLASS, "*"))): Typed(Closure.INSTANCE_ABOVE),
    (TYPE, Repeated(Inverse(SUB_CLASS), "*")): Typed(Closure.INSTANCE_ABOVE),
}


def typed(first: Path, second: Path) -> Typed | None:
    """What ``first/second`` asks of the taxonomies, if it does."""
    return _TYPED.get((first, second)) if first == TYPE else None


def elements_of(
    subject: Term, path: Path, value: Term, blank: Callable[[], Variable]
) -> list[GroupElement]:
    """The triples of ``subject path value``; ``blank`` makes the nodes in between."""
    match path:
        case Iri() | Variable():
            return [TriplePattern(subject, path, value)]
        case Typed(closure):
            return [TriplePattern(subject, TYPE, value, closure)]
        case Inverse(inner):
            return elements_of(value, inner, subject, blank)
        case Chain(parts):
            elements: list[GroupElement] = []
            for part in parts[:-1]:
                between = blank()
                elements += elements_of(subject, part, between, blank)
                subject = between
            return elements + elements_of(subject, parts[-1], value, blank)
        case Choice(parts):
            ways = (Group(tuple(elements_of(subject, part, value, blank))) for part in parts)
            return [Alternatives(tuple(ways))]
        case Repeated(inner, "+"):
            first = elements_of(subject, inner, blank(), blank)
            last = elements_of(blank(), inner, value, blank)
            return [weakened(Group((*first, *last)))]
        case Repeated():
            lost = (term for term in (subject, value) if isinstance(term, Variable))
            return [weakened(Group(()), lost)]
        case Excluded(forward, backward):
            ways_of = [
                Group((TriplePattern(start, blank(), end),))
                for start, properties, end in (
                    (subject, forward, value),
                    (value, backward, subject),
                )
                if properties
            ]
            whole = ways_of[0] if len(ways_of) == 1 else Group((Alternatives(tuple(ways_of)),))
            return [weakened(whole)]
