"""The abstract syntax of a graph profile: a subset of SPARQL 1.1, one tree for SPARQL and RDQL.

All nodes are immutable and hashable.  ``query_text.py`` gives the text of a query, the parsers
(``sparql_parser.py``) read one.  IRIs are absolute and prefixes are gone.  A
blank node of a pattern is a Variable whose name begins with ``_:``; no user can write or get it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from formats.graph.vocabulary import XSD
from yfilter.language.query_ast import Expression, FunctionCall

INSTANCE_PROPERTY = "urn:onyx:graph:instance"
"""Stands for ``a/rdfs:subClassOf*`` in ``GraphQuery.whole``: who answers that has such a triple
for each class of a subject, stated or above a stated one."""


@dataclass(frozen=True, slots=True)
class Iri(Expression):
    value: str


@dataclass(frozen=True, slots=True)
class LiteralTerm(Expression):
    """``language`` in lower case, "" without one, and then ``datatype`` is an IRI."""

    lexical: str
    datatype: str = XSD + "string"
    language: str = ""


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """``name`` without its question mark."""

    name: str

    def refers(self) -> str:
        return self.name

    @property
    def is_blank(self) -> bool:
        return self.name.startswith("_:")


Term: TypeAlias = Iri | LiteralTerm | Variable


class Closure(StrEnum):
    """How a triple pattern looks at the taxonomies."""

    NONE = ""
    INSTANCE = "a/rdfs:subClassOf*"  # the object is a class of the subject, or above one
    PROPERTY = "rdfs:subPropertyOf*"  # the property is the one named, or below it
    INSTANCE_ABOVE = "a/^rdfs:subClassOf*"  # the subject is of the object, or of one above it


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """``property`` is an Iri or a Variable.

    With PROPERTY, ``above`` is the property that ``property`` (a Variable) is below or equal to.
    With INSTANCE_ABOVE, ``object`` is an Iri and ``classes`` are those above it
    (query_text.py).
    """

    subject: Term
    property: Iri | Variable
    object: Term
    closure: Closure = Closure.NONE
    above: str = ""
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership(Expression):
    """``operand IN (choices)``, or NOT IN."""

    operand: Expression
    choices: tuple[Expression, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    group: Group
    is_negated: bool = False


def negation(operand: Expression) -> FunctionCall:
    """``!operand``."""
    return FunctionCall("not", (operand,))


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind:
    value: Expression
    variable: Variable


@dataclass(frozen=True, slots=True)
class Alternatives:
    """UNION of two or more groups."""

    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Optionally:
    group: Group


@dataclass(frozen=True, slots=True)
class Minus:
    group: Group


@dataclass(frozen=True, slots=True)
class InGraph:
    """GRAPH; ``graph`` is an Iri or a Variable."""

    graph: Iri | Variable
    group: Group


@dataclass(frozen=True, slots=True)
class Values:
    """Each row has a term for each variable, None for UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | LiteralTerm | None, ...], ...]


@dataclass(frozen=True, slots=True)
class BlankNode:
    """``label`` means nothing outside one message, or one constructed graph."""

    label: str


GroundTerm: TypeAlias = Iri | BlankNode | LiteralTerm


GroupElement: TypeAlias = (
    "TriplePattern | Filter | Bind | Alternatives | Optionally | Minus | InGraph | Values | Group"
)


@dataclass(frozen=True, slots=True)
class Group:
    """``{ … }``; the elements as written.  A FILTER is of the whole group, wherever it stands."""

    elements: tuple[GroupElement, ...]


class QueryForm(StrEnum):
    SELECT = "SELECT"
    CONSTRUCT = "CONSTRUCT"
    ASK = "ASK"


class ResultSyntax(StrEnum):
    """How results are written, by media type."""

    JSON = "application/sparql-results+json"
    XML = "application/sparql-results+xml"
    N_TRIPLES = "application/n-triples"
    TURTLE = "text/turtle"
    RDF_XML = "application/rdf+xml"
    AS_PUBLISHED = ""  # ASK: the message as it came


@dataclass(frozen=True, slots=True)
class GraphQuery(Expression):
    """A graph profile.

    ``variables`` of a SELECT in their order (``*`` is written out), ``template`` of a CONSTRUCT;
    both are empty otherwise.  ``results`` is said by a comment in the first lines of the text,
    ``# results: text/turtle``; by default JSON for SELECT, N-Triples for CONSTRUCT, and the
    message for ASK.  ``whole`` is "" where the tree says all; else it is the whole query as
    standard SPARQL (aggregates, subqueries, ORDER BY, general paths, …), ``where`` is a necessary
    part of it, and an independent SPARQL processor answers on the one message.
    """

    form: QueryForm
    where: Group
    variables: tuple[Variable, ...] = ()
    is_distinct: bool = False
    template: tuple[TriplePattern, ...] = ()
    results: ResultSyntax = ResultSyntax.JSON
    whole: str = ""
    known_part: object = field(default=None, compare=False, repr=False)  # see graph_query.py

    def same_focus(self) -> list[Expression]:
        return []

    @property
    def always_constructs(self) -> bool:
        """Whether every solution gives something to deliver, as far as the text tells: so of all
        but some CONSTRUCT.

        A triple of the template is left out where a variable has no value, and where it would have
        a literal for a subject, or anything but an IRI for a property.
        """
        if self.form is not QueryForm.CONSTRUCT:
            return True
        patterns = [part for part in self.where.elements if isinstance(part, TriplePattern)]
        nodes: set[Term] = {part.subject for part in patterns}
        properties: set[Term] = {part.property for part in patterns}
        things = nodes | properties | {part.object for part in patterns}
        return any(
            (isinstance(triple.subject, Iri) or _is_new(triple.subject) or triple.subject in nodes)
            and (isinstance(triple.property, Iri) or triple.property in properties)
            and (
                not isinstance(triple.object, Variable)
                or _is_new(triple.object)
                or triple.object in things
            )
            for triple in self.template
        )


def _is_new(term: Term) -> bool:
    """Whether it is a blank node of the template, made for each solution."""
    return isinstance(term, Variable) and term.is_blank
