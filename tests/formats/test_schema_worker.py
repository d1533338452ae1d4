"""What a schema can cost whoever reads it, and what it does cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgpack
import pytest

from formats import MessageLimits, MessageRefused, Schema, SchemaRefused, Violation
from formats.graph.closure import TaxonomyClosure
from formats.graph.taxonomy import Taxonomy
from formats.schema_questions import (
    CheckMessages,
    MessageRead,
    MessagesChecked,
    ReadMessage,
    ReadSchema,
    SchemaAnswer,
    SchemaFound,
    answer,
    pack_answer,
    unpack_answer,
)
from formats.schema_worker import SCHEMAS_MAX, SchemaWorker

XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{}</xs:schema>'
GOOD = XSD.format('<xs:element name="a" type="xs:int"/>').encode()
PATTERN = XSD.format(
    '<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string">'
    '<xs:pattern value="(a|aa)*b"/></xs:restriction></xs:simpleType></xs:element>'
).encode()
TRIED = b"<a>" + b"a" * 300 + b"</a>"


def doubling(times: int) -> bytes:
    """Groups that refer twice to the one before."""
    groups = "".join(
        f'<xs:group name="g{n}"><xs:sequence><xs:group ref="g{n - 1}"/><xs:group ref="g{n - 1}"/>'
        "</xs:sequence></xs:group>"
        for n in range(1, times + 1)
    )
    return XSD.format(
        f'<xs:group name="g0"><xs:sequence><xs:element name="e"/></xs:sequence></xs:group>{groups}'
        f'<xs:element name="r"><xs:complexType><xs:group ref="g{times}"/></xs:complexType>'
        "</xs:element>"
    ).encode()


@pytest.fixture
def worker() -> Iterator[SchemaWorker]:
    worker = SchemaWorker()
    yield worker
    worker.close()


def test_it_answers_as_one_does_oneself(worker: SchemaWorker) -> None:
    schema = Schema("a.xsd", "xsd", GOOD)
    questions = [
        ReadSchema("a.xsd", GOOD),
        ReadSchema("a.xsd", XSD.format('<xs:include schemaLocation="b"/>').encode()),
        ReadSchema("a.dtd", b"<!ELEMENT"),
        CheckMessages(schema, (b"<a>1</a>",)),
        CheckMessages(schema, (b"<a>1</a>", b"<a>one</a>", b"<a", b"<a>2</a>")),
    ]
    for question in questions:
        assert _timeless(worker.ask(question)) == _timeless(answer(question))
    assert isinstance(worker.ask(questions[0]), SchemaFound)


def _timeless(found: SchemaAnswer) -> bytes:
    if isinstance(found, MessagesChecked | MessageRead):
        found = replace(found, seconds=0.0)
    return pack_answer(found)


def test_messages_are_read_as_one_does_it_oneself(worker: SchemaWorker) -> None:
    limits = MessageLimits()
    closure = TaxonomyClosure(Taxonomy(classes={b"u:b": (b"u:c",)}))
    rdf = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="u:">%s</r:RDF>'
    questions = [
        ReadMessage(b"<a>1</a>", "text", limits),
        ReadMessage(b"<u:a> a <u:b> .", "text/turtle", limits),
        ReadMessage(b"<u:a> a <u:b> .", "text/turtle", limits, closure),
        ReadMessage(b'{"@id":"a","u:b":1}', "application/ld+json", limits, None, "http://e/"),
        ReadMessage(rdf % b'<u:a r:about="u:b"/>', "text", limits, closure),
        ReadMessage(rdf % b'<r:li r:ID="1"/>', "text", limits),
        ReadMessage(b"<a>", "text", limits),
        ReadMessage(b"<u:a> <b> 1 .", "text/turtle", limits),
    ]
    for question in questions:
        assert _timeless(worker.ask(question)) == _timeless(answer(question))
        assert unpack_answer(_timeless(answer(question))) is not None


def test_a_process_that_dies_of_a_message_refuses_it_and_reads_the_next(
    worker: SchemaWorker,
) -> None:
    good = ReadMessage(b"<a/>", "text", MessageLimits())
    assert isinstance(worker.ask(good), MessageRead)
    process = worker._process._process
    assert process is not None
    process.kill()
    process.wait()
    refusal = worker.ask(good)
    assert isinstance(refusal, MessageRefused) and refusal.code == "too-costly"
    assert isinstance(worker.ask(good), MessageRead)


def test_groups_that_double_are_refused(worker: SchemaWorker) -> None:
    refusal = worker.ask(ReadSchema("d.xsd", doubling(31)))
    assert isinstance(refusal, SchemaRefused)
    assert refusal.code == "schema-too-costly"
    assert "reading the schema takes more than" in refusal.reason
    assert isinstance(worker.ask(ReadSchema("d.xsd", doubling(3))), SchemaFound)


def test_a_message_that_a_pattern_is_tried_on_for_ever_is_told_so(worker: SchemaWorker) -> None:
    schema = Schema("p.xsd", "xsd", PATTERN)
    good = b"<a>aab</a>"
    for _ in range(2):
        found = worker.ask(CheckMessages(schema, (good, TRIED, good)))
        assert isinstance(found, MessagesChecked)
        valid, refusal, *others = found.findings
        assert valid is None and others in ([], [None])  # the others are to be asked again
        assert isinstance(refusal, SchemaRefused)
        assert refusal.code == "schema-too-costly"
        assert worker.ask(CheckMessages(schema, (good,))) == MessagesChecked((None,))


def test_what_died_is_started_again(worker: SchemaWorker) -> None:
    assert isinstance(worker.ask(ReadSchema("a.xsd", GOOD)), SchemaFound)
    process = worker._process._process
    assert process is not None
    process.kill()
    process.wait()
    assert isinstance(worker.ask(ReadSchema("a.xsd", GOOD)), SchemaRefused)
    assert isinstance(worker.ask(ReadSchema("a.xsd", GOOD)), SchemaFound)


def test_it_remembers_so_many_schemas(worker: SchemaWorker) -> None:
    for number in range(SCHEMAS_MAX + 2):
        schema = Schema(f"{number}.xsd", "xsd", GOOD)
        assert worker.ask(CheckMessages(schema, (b"<a>1</a>",))) == MessagesChecked((None,))


def test_it_asks_nothing_more_when_it_is_closed(worker: SchemaWorker) -> None:
    worker.ask(ReadSchema("a.xsd", GOOD))
    worker.close()
    for _ in range(2):
        assert isinstance(worker.ask(ReadSchema("a.xsd", GOOD)), SchemaRefused)


@pytest.mark.parametrize(
    "found",
    [
        SchemaFound("relaxng", ("a.rng, line 1: includes b.rng, which is not there",)),
        SchemaRefused("malformed", "it is", 3, 4),
        MessagesChecked((None, Violation("no", 1, 2), SchemaRefused("schema-too-costly", "it is"))),
    ],
)
def test_answers_go_over_a_pipe(found: SchemaFound | SchemaRefused | MessagesChecked) -> None:
    again = unpack_answer(pack_answer(found))
    assert type(again) is type(found)
    assert pack_answer(again) == pack_answer(found)
    for odd in (
        ["you"],
        ["checked", 0.0, []],
        ["checked", 0.0, [1]],
        ["refused", "", "it is", 3, 4],
    ):
        with pytest.raises(ValueError, match=r"no (answer|finding)"):
            unpack_answer(msgpack.packb(odd))
