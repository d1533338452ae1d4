"""The errors of pyoxigraph's parsers as MessageRefused, with the place where one says it."""

from __future__ import annotations

import re

from formats.errors import MessageRefused

_PREAMBLE = re.compile(r"Parser error (?:at|between) line .*?[0-9]: ")
# Words of its errors, the code for them, and a better sentence.
_FAULTS = (
    (
        "No scheme found in an absolute IRI",
        "relative-iri",
        "a relative IRI, and nothing that it is relative to: say @base",
    ),
    (
        "No LoadDocumentCallback",
        "remote-context",
        "a context is named by its address, and none is ever fetched: put it into the message",
    ),
    ("has not been declared", "undeclared-prefix", ""),
    ("Invalid UTF-8", "unknown-encoding", ""),
    ("Max stack size", "too-deep", ""),
)


def refusal_of(error: SyntaxError) -> MessageRefused:
    said = str(error.msg)
    line, column = error.lineno or 0, error.offset or 0
    for words, code, reason in _FAULTS:
        if words in said:
            return MessageRefused(code, reason or _PREAMBLE.sub("", said), line, column)
    return MessageRefused("malformed", _PREAMBLE.sub("", said), line, column)
