"""Questions about schemas and large messages, and the answers, where both are held against limits.

Reading a schema and holding a message against one may cost anything: a group that refers twice to
another, which does the same, is twice as large at each step, and a pattern may be tried in more
ways than there is time for.  Reading a message is bounded, but a large one that is not ordinary
takes longer than others should wait.  So a process of its own does all three (schema_worker.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, cast

import msgpack

from formats.allowed_content import read_allowed_content
from formats.codec import WireFormat, dictionary_bytes_max, encode
from formats.dictionary import derive_dictionary
from formats.errors import MessageRefused, SchemaRefused
from formats.graph.closure import TaxonomyClosure
from formats.graph.graph_limits import GraphLimits
from formats.graph.reader import graph_of_document
from formats.graph.vocabulary import RDF
from formats.limits import MessageLimits
from formats.publication import read_publication
from formats.schema import Schema, SchemaKind, read_schema, what_is_unread
from formats.validation import Validator, Violation

TOO_COSTLY_TO_READ = "too-costly"  # of a message


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """Can this be a source's schema?"""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckMessages:
    """Are these messages valid against a schema that was read?"""

    schema: Schema
    texts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """What are these bytes of a media type, as a message?"""

    payload: bytes
    media_type: str
    limits: MessageLimits
    closure: TaxonomyClosure | None = None
    base: str = ""


@dataclass(frozen=True, slots=True)
class SchemaFound:
    """It can; ``unread``: what it refers to and has not.  Only without that can messages be
    validated."""

    kind: SchemaKind
    unread: tuple[str, ...] = ()


Finding: TypeAlias = Violation | SchemaRefused | None
"""About a message: its first violation, ``schema-too-costly``, or None where it is valid."""


@dataclass(frozen=True, slots=True)
class MessagesChecked:
    """Of the first messages that were asked about, at least one: the others are to be asked again,
    as those have taken long, ``seconds`` of processor time."""

    findings: tuple[Finding, ...]
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class MessageRead:
    """The message in binary, and of RDF/XML its graph, or why it has none; ``largest``: bytes of
    its largest form; ``seconds`` of processor time that it took."""

    payload: bytes
    largest: int
    graph: bytes | MessageRefused | None = None
    seconds: float = field(default=0.0, compare=False)


SchemaQuestion: TypeAlias = ReadSchema | CheckMessages | ReadMessage
SchemaAnswer: TypeAlias = (
    SchemaFound | MessagesChecked | MessageRead | SchemaRefused | MessageRefused
)


def answer(question: SchemaQuestion) -> SchemaAnswer:
    """The answer, at whatever cost.

    SchemaRefused is an answer, with the codes of ``read_schema`` or ``schema-too-costly``, and
    MessageRefused with those of ``read_publication``.
    """
    try:
        if isinstance(question, ReadSchema):
            return _found(read_schema(question.name, question.data))
        if isinstance(question, ReadMessage):
            return _read(question)
        validator = Validator(question.schema)
        return MessagesChecked(tuple(check(validator, text) for text in question.texts))
    except (SchemaRefused, MessageRefused) as refusal:
        return refusal


def _read(question: ReadMessage) -> MessageRead:
    closure, base, limits = question.closure, question.base, question.limits
    stream = read_publication(question.payload, question.media_type, limits, closure, base)
    root = stream.names[stream.element_name[0]]
    graph: bytes | MessageRefused | None = None
    if (root.namespace, root.local) == (RDF, "RDF"):
        try:
            derived = graph_of_document(stream, GraphLimits(limits), base, closure)
            graph = encode(derived, WireFormat.BINARY)
        except MessageRefused as refusal:
            graph = refusal
    binary = encode(stream, WireFormat.BINARY)
    largest = max(len(encode(stream, WireFormat.TEXT)), dictionary_bytes_max(stream, len(binary)))
    return MessageRead(binary, largest, graph)


def check(validator: Validator, text: bytes) -> Finding:
    """What is found about a message as it was written."""
    try:
        return validator.check(text)
    except SchemaRefused as refusal:
        return refusal


def _found(schema: Schema) -> SchemaFound:
    """All is made of it that is ever made of a schema elsewhere, so that its cost is known."""
    derive_dictionary(schema)
    read_allowed_content(schema)
    return SchemaFound(schema.kind, what_is_unread(schema))


def pack_answer(found: SchemaAnswer) -> bytes:
    """For a pipe: plain values only, as whoever reads schemas is not trusted."""
    fields: tuple[object, ...]
    if isinstance(found, SchemaFound):
        fields = "found", found.kind, found.unread
    elif isinstance(found, SchemaRefused):
        fields = "refused", *_plain(found)
    elif isinstance(found, MessageRefused):
        fields = "not-read", *_plain(found)
    elif isinstance(found, MessageRead):
        graph = found.graph if isinstance(found.graph, bytes | None) else _plain(found.graph)
        fields = "read", found.seconds, found.payload, found.largest, graph
    else:
        fields = "checked", found.seconds, list(map(plain_finding, found.findings))
    packed: bytes = msgpack.packb(fields)
    return packed


def plain_finding(found: Finding) -> object:
    """As an answer has it."""
    return None if found is None else _plain(found)


def _plain(found: Violation | SchemaRefused | MessageRefused) -> tuple[object, ...]:
    code = "" if isinstance(found, Violation) else found.code
    return code, found.reason, found.line, found.column


def unpack_answer(data: bytes) -> SchemaAnswer:
    """ValueError for what is no answer."""
    match msgpack.unpackb(data):
        case ["found", ("dtd" | "xsd" | "relaxng") as kind, [*unread]]:
            if all(isinstance(each, str) for each in unread):
                return SchemaFound(cast("SchemaKind", kind), tuple(unread))
        case ["refused", *fields]:
            if isinstance(refusal := _finding(fields), SchemaRefused):
                return refusal
        case ["not-read", str(code), str(reason), int(line), int(column)]:
            return MessageRefused(code, reason, line, column)
        case ["read", float(seconds), bytes(payload), int(largest), (bytes() | None) as graph]:
            return MessageRead(payload, largest, graph, seconds)
        case ["read", float(seconds), bytes(payload), int(largest), [str(code), str(reason), 0, 0]]:
            return MessageRead(payload, largest, MessageRefused(code, reason), seconds)
        case ["checked", float(seconds), [_, *_] as findings]:
            return MessagesChecked(tuple(map(_finding, findings)), seconds)
    raise ValueError("no answer about a schema")


def _finding(plain: object) -> Finding:
    match plain:
        case None:
            return None
        case ["", str(reason), int(line), int(column)]:
            return Violation(reason, line, column)
        case [str(code), str(reason), int(line), int(column)]:
            return SchemaRefused(code, reason, line, column)
    raise ValueError("no finding about a message")
