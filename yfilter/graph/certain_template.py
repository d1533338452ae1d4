"""Whether a CONSTRUCT makes a triple of every solution, as far as its text tells.

A triple of the template is left out where a variable has no value, and where it would have a
literal for a subject, or anything but an IRI for a property.
"""

from __future__ import annotations

from yfilter.graph.query_ast import GraphQuery, Iri, QueryForm, Term, TriplePattern, Variable


def always_constructs(query: GraphQuery) -> bool:
    """Whether every solution gives something to deliver: so of all but some CONSTRUCT."""
    if query.form is not QueryForm.CONSTRUCT:
        return True
    patterns = [part for part in query.where.elements if isinstance(part, TriplePattern)]
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
        for triple in query.template
    )


def _is_new(term: Term) -> bool:
    """Whether it is a blank node of the template, made for each solution."""
    return isinstance(term, Variable) and term.is_blank
