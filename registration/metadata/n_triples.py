"""Statements as N-Triples within XML, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import pyoxigraph

from formats.errors import MessageRefused
from formats.graph.oxigraph_faults import refusal_of
from formats.graph.vocabulary import XSD
from registration.metadata.documents import Statement

DIGEST_LENGTH = 8
_STRING = XSD + "string"
# Characters that the syntax escapes, and those that XML cannot carry.
_ESCAPED = {
    **{code: f"\\u{code:04X}" for code in (*range(32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)},
    ord("\\"): "\\\\",
    ord('"'): '\\"',
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
_SPECIAL = re.compile(r'[\x00-\x1f"\\\ud800-\udfff\ufffe\uffff]')


def n_triples(statements: Iterable[Statement]) -> Iterator[str]:
    """Statements as lines of N-Triples."""
    for subject, prop, value, datatype, language in statements:
        shown = f"<{value}>"
        if datatype:
            shown = quoted(value) + suffix(f"@{language}" if language else datatype)
        yield f"<{subject}> <{prop}> {shown} .\n"


def quoted(value: str) -> str:
    """A lexical form."""
    if _SPECIAL.search(value):
        value = value.translate(_ESCAPED)
    return f'"{value}"'


def suffix(kind: str) -> str:
    """What follows it, of a datatype, or a language with @ before it."""
    return kind if kind[0] == "@" else "" if kind == _STRING else f"^^<{kind}>"


def read_n_triples(text: str) -> list[Statement]:
    """MessageRefused where it is none, or has a blank node."""
    found = []
    try:
        for quad in pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_TRIPLES):
            value = quad.object
            if isinstance(value, pyoxigraph.Literal):
                said = (value.value, value.datatype.value, value.language or "")
            elif isinstance(value, pyoxigraph.NamedNode):
                said = (value.value, "", "")
            else:
                raise MessageRefused("blank-node", "a blank node without a name")
            if not isinstance(quad.subject, pyoxigraph.NamedNode):
                raise MessageRefused("blank-node", "a blank node without a name")
            found.append(Statement(quad.subject.value, quad.predicate.value, *said))
    except SyntaxError as error:
        raise refusal_of(error) from None
    return found


def said_digest(lines: Iterable[str]) -> bytes:
    """Of all that is said of a resource, in whatever order: DIGEST_LENGTH bytes."""
    return blake2b("".join(sorted(lines)).encode(), digest_size=DIGEST_LENGTH).digest()
