"""SPARQL Query Results XML Format."""

from __future__ import annotations

import re

from formats.escapes import escaped_text, escaped_value
from yfilter.graph.query_ast import XSD, Iri
from yfilter.graph.solutions import Solutions
from yfilter.graph.terms import BlankNode, GroundTerm
from yfilter.language.budget import Budget

_SYNTAX = "xml"
_HEAD = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>'
# A profile may have a literal with characters that no XML text can hold; a message has none.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"


def xml_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    written = solutions.writer(_SYNTAX, _xml_term)
    names = [escaped_value(column.name) for column in solutions.columns]
    opens = [f'<binding name="{name}">'.encode() for name in names]
    head = "".join(f'<variable name="{name}"/>' for name in names)
    rows = []
    for row in solutions.rows:
        fields = [
            opened + written(number) + b"</binding>"
            for opened, number in zip(opens, row, strict=True)
            if number
        ]
        rows.append(b"<result>" + b"".join(fields) + b"</result>")
        budget.charge_bytes(len(rows[-1]))
    return b"".join([f"{_HEAD}{head}</head><results>".encode(), *rows, b"</results></sparql>\n"])


def _xml_term(term: GroundTerm) -> bytes:
    if isinstance(term, Iri):
        text = f"<uri>{_text(term.value)}</uri>"
    elif isinstance(term, BlankNode):
        text = f"<bnode>{term.label}</bnode>"
    elif term.language:
        text = f'<literal xml:lang="{escaped_value(term.language)}">{_text(term.lexical)}</literal>'
    elif term.datatype == XSD + "string":
        text = f"<literal>{_text(term.lexical)}</literal>"
    else:
        datatype = escaped_value(term.datatype)
        text = f'<literal datatype="{datatype}">{_text(term.lexical)}</literal>'
    return text.encode()


def _text(value: str) -> str:
    return escaped_text(_NOT_XML.sub(_REPLACEMENT, value))
