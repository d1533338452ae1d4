"""SPARQL Query Results XML Format."""

from __future__ import annotations

import re

from formats.escapes import escaped_text, escaped_value
from yfilter.graph.join import KIND_BLANK, KIND_IRI, KIND_TAGGED, KIND_TYPED, TermKey
from yfilter.graph.solutions import RowLayout, Solutions
from yfilter.language.budget import Budget

_SYNTAX = "xml"
_HEAD = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>'
# A profile may have a literal with characters that no XML text can hold; a message has none.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"


def xml_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    names = [escaped_value(column.name) for column in solutions.columns]
    opens = [f'<binding name="{name}">'.encode() for name in names]
    layout = RowLayout(b"<result>", opens, b"</binding>", b"", b"</result>")
    rows = layout.rows(solutions.rows, solutions.written(_SYNTAX, _xml_term), budget)
    head = "".join(f'<variable name="{name}"/>' for name in names)
    return b"".join([f"{_HEAD}{head}</head><results>".encode(), *rows, b"</results></sparql>\n"])


def _xml_term(key: TermKey) -> bytes:
    kind, _, tag, lexical = key
    value = escaped_text(_NOT_XML.sub(_REPLACEMENT, lexical.decode()))
    if kind == KIND_IRI:
        return f"<uri>{value}</uri>".encode()
    if kind == KIND_BLANK:
        return f"<bnode>{value}</bnode>".encode()
    if kind == KIND_TAGGED:
        return f'<literal xml:lang="{escaped_value(tag.decode())}">{value}</literal>'.encode()
    if kind == KIND_TYPED:
        return f'<literal datatype="{escaped_value(tag.decode())}">{value}</literal>'.encode()
    return f"<literal>{value}</literal>".encode()
