"""SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

from json.encoder import encode_basestring

from yfilter.graph.query_ast import XSD, Iri
from yfilter.graph.solutions import Solutions
from yfilter.graph.terms import BlankNode, GroundTerm
from yfilter.language.budget import Budget

_SYNTAX = "json"


def json_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    written = solutions.writer(_SYNTAX, _json_term)
    names = [encode_basestring(column.name).encode() for column in solutions.columns]
    keys = [name + b":" for name in names]
    rows = []
    for row in solutions.rows:
        fields = [key + written(number) for key, number in zip(keys, row, strict=True) if number]
        rows.append(b"{" + b",".join(fields) + b"}")
        budget.charge_bytes(len(rows[-1]) + 1)
    head = b'{"head":{"vars":[' + b",".join(names) + b']},"results":{"bindings":['
    return head + b",".join(rows) + b"]}}"


def _json_term(term: GroundTerm) -> bytes:
    if isinstance(term, Iri):
        return _field("uri", term.value)
    if isinstance(term, BlankNode):
        return _field("bnode", term.label)
    if term.language:
        return _field("literal", term.lexical, f',"xml:lang":{encode_basestring(term.language)}')
    if term.datatype == XSD + "string":
        return _field("literal", term.lexical)
    return _field("literal", term.lexical, f',"datatype":{encode_basestring(term.datatype)}')


def _field(kind: str, value: str, more: str = "") -> bytes:
    return f'{{"type":"{kind}","value":{encode_basestring(value)}{more}}}'.encode()
