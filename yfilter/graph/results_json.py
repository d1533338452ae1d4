"""SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

import re
from json.encoder import encode_basestring

from yfilter.graph.join import KIND_BLANK, KIND_IRI, KIND_TAGGED, KIND_TYPED, TermKey
from yfilter.graph.solutions import RowLayout, Solutions
from yfilter.language.budget import Budget

_SYNTAX = "json"
_IS_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*+').fullmatch


def json_results(solutions: Solutions, budget: Budget) -> bytes:
    """All solutions as one document; MatchLimitExceeded if it is too large."""
    names = [encode_basestring(column.name).encode() for column in solutions.columns]
    layout = RowLayout(b"{", [name + b":" for name in names], b"", b",", b"}")
    rows = layout.rows(solutions.rows, solutions.written(_SYNTAX, _json_term), budget)
    head = b'{"head":{"vars":[' + b",".join(names) + b']},"results":{"bindings":['
    return head + b",".join(rows) + b"]}}"


def _json_term(key: TermKey) -> bytes:
    kind, _, tag, lexical = key
    value = _string(lexical)
    if kind == KIND_IRI:
        return b'{"type":"uri","value":%b}' % value
    if kind == KIND_BLANK:
        return b'{"type":"bnode","value":%b}' % value
    if kind == KIND_TAGGED:
        return b'{"type":"literal","value":%b,"xml:lang":%b}' % (value, _string(tag))
    if kind == KIND_TYPED:
        return b'{"type":"literal","value":%b,"datatype":%b}' % (value, _string(tag))
    return b'{"type":"literal","value":%b}' % value


def _string(text: bytes) -> bytes:
    if _IS_PLAIN(text) is not None:
        return b'"' + text + b'"'
    return encode_basestring(text.decode()).encode()
