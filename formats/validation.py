"""Is a message valid against its source's schema?  Answered by libxml2, which reads nothing else.

The root broker asks once for each message, of a source that wants it (section 4.3.2 of the paper
derives what it sends from the schema; that takes messages that follow it): a process of its own,
as the answer may cost anything (schema_questions.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lxml import etree

from formats.errors import SchemaRefused
from formats.schema import Schema, compile_schema

TOO_COSTLY = "schema-too-costly"


class Validation(StrEnum):
    """What the root broker does about a message that is not valid."""

    OFF = "off"
    REPORT = "report"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Violation:
    """The first thing wrong; ``line`` and ``column`` from 1, 0 where libxml2 does not know."""

    reason: str
    line: int
    column: int


class Validator:
    """One compiled schema; not to be shared between threads."""

    def __init__(self, schema: Schema) -> None:
        """SchemaRefused, or ``ValueError`` for a schema that lacks some (``stands_alone``)."""
        self._schema: Any = compile_schema(schema)
        if self._schema is None:
            raise ValueError(f"{schema.name} refers to other documents, which are not in it")

    def check(self, text: bytes) -> Violation | None:
        """The first violation of a message as it was written, None when it is valid.

        SchemaRefused (``schema-too-costly``) where the schema can be tried in too many ways.
        """
        tree = _read(text)
        if tree is None:
            return Violation("the message is beyond what the validator reads", 0, 0)
        try:
            if self._schema.validate(tree):
                return None
        except etree.LxmlError as error:  # libxml2 has its own bounds, of ways to try a pattern
            raise SchemaRefused(TOO_COSTLY, f"libxml2 gave up on the message: {error}") from None
        for entry in self._schema.error_log.filter_from_errors():
            return Violation(entry.message, max(entry.line, 0), max(entry.column, 0))
        return Violation("not valid against the schema", 0, 0)


def _read(text: bytes) -> Any:
    """The document, or None when libxml2 does not take what our own parser took."""
    parser = etree.XMLParser(
        resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        return etree.fromstring(text, parser).getroottree()
    except (etree.XMLSyntaxError, ValueError):
        return None
