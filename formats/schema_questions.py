"""What is asked about schemas, and what is answered, where both are held against limits.

Reading a schema and holding a message against one may cost anything: a group that refers twice to
another, which does the same, is twice as large at each step, and a pattern may be tried in more
ways than there is time for.  So a process of its own does both (schema_worker.py).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import msgpack

from formats.allowed_content import read_allowed_content
from formats.dictionary import derive_dictionary
from formats.errors import SchemaRefused
from formats.schema import Schema, SchemaKind, read_schema, stands_alone
from formats.validation import Validator, Violation


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """Can this be a source's schema?"""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """Is this message valid against a schema that was read?"""

    schema: Schema
    text: bytes


@dataclass(frozen=True, slots=True)
class SchemaFound:
    """It can; ``is_whole``: it refers to no other document, so that messages can be validated."""

    kind: SchemaKind
    is_whole: bool


@dataclass(frozen=True, slots=True)
class MessageChecked:
    """``violation``: the first one, None for a message that is valid."""

    violation: Violation | None


SchemaQuestion: TypeAlias = ReadSchema | CheckMessage
SchemaAnswer: TypeAlias = SchemaFound | MessageChecked | SchemaRefused


def answer(
    question: SchemaQuestion, compiled: MutableMapping[Schema, Validator] | None = None
) -> SchemaAnswer:
    """The answer, at whatever cost; ``compiled`` are remembered.

    SchemaRefused is an answer, with the codes of ``read_schema`` or ``schema-too-costly``.
    """
    try:
        if isinstance(question, ReadSchema):
            return _found(read_schema(question.name, question.data))
        known = {} if compiled is None else compiled
        if question.schema not in known:
            known[question.schema] = Validator(question.schema)
        return MessageChecked(known[question.schema].check_text(question.text))
    except SchemaRefused as refusal:
        return refusal


def _found(schema: Schema) -> SchemaFound:
    """All is made of it that is ever made of a schema elsewhere, so that its cost is known."""
    derive_dictionary(schema)
    read_allowed_content(schema)
    return SchemaFound(schema.kind, stands_alone(schema))


def pack_answer(found: SchemaAnswer) -> bytes:
    """For a pipe: plain values only, as whoever reads schemas is not trusted."""
    if isinstance(found, SchemaFound):
        fields: tuple[object, ...] = "found", found.kind, found.is_whole
    elif isinstance(found, SchemaRefused):
        fields = "refused", found.code, found.reason, found.line, found.column
    elif found.violation is None:
        fields = ("checked",)
    else:
        fields = "checked", found.violation.reason, found.violation.line, found.violation.column
    packed: bytes = msgpack.packb(fields)
    return packed


def unpack_answer(data: bytes) -> SchemaAnswer:
    """ValueError for what is no answer."""
    match msgpack.unpackb(data):
        case ["found", ("dtd" | "xsd" | "relaxng") as kind, bool(is_whole)]:
            return SchemaFound(cast("SchemaKind", kind), is_whole)
        case ["refused", str(code), str(reason), int(line), int(column)]:
            return SchemaRefused(code, reason, line, column)
        case ["checked"]:
            return MessageChecked(None)
        case ["checked", str(reason), int(line), int(column)]:
            return MessageChecked(Violation(reason, line, column))
    raise ValueError("no answer about a schema")
