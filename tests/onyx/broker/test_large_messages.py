"""Large messages that a process of its own reads, at the root broker, B4."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formats import MessageRefused, WireFormat, decode, encode
from formats.graph.closure import TaxonomyClosure
from formats.graph.taxonomy import Taxonomy
from formats.publication import read_publication
from formats.schema_questions import MessageRead, ReadMessage, answer
from onyx.broker.messages.local_deliveries import LARGE_BYTES
from onyx.broker.messages.message_validation import HUGE_BYTES
from onyx.broker.messages.source_costs import FREE_SECONDS, FREE_SECONDS_BYTE
from overlay.link.events import AskSchemaWorker, SchemaAnswered
from overlay.link.frames import Message, Publish, Refused
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import Setting, delta
from tests.security.large_messages import DEAR, ORDINARY

PATTERNS = "?s ?p ?o", "GRAPH ?g { ?s ?p ?o }"
SMALL = b"<a/>"


class Large(Setting):
    """Questions about the messages of s1, which B5 wants all of, are answered by hand."""

    def __init__(self, validation: str = "off", schema: bytes = b"") -> None:
        super().__init__()
        self.announce(root="B4", validation=validation, schema=schema)
        everything = "//*", *(f"SELECT ?s WHERE {{ {each} }}" for each in PATTERNS)
        self.brokers["B5"].send("B4", delta(*everything, root="B4"))
        self.children_ready(root="B4")
        self.source: Peer = self.beside.peer("source", "s1")
        self.questions: list[AskSchemaWorker] = []
        self.beside.schemas_asked = self.questions

    def publish(self, payload: bytes, form: str = "text") -> None:
        self.source.send("s1", Publish(source="s1", format=form, payload=payload))

    def answer(self) -> ReadMessage:
        """The first question."""
        asked = self.questions.pop(0)
        assert isinstance(asked.question, ReadMessage)
        self.beside.tell(SchemaAnswered(asked.key, answer(asked.question)))
        return asked.question

    def told(self) -> list[Message]:
        return self.brokers["B5"].all(Message)

    def refused(self) -> list[tuple[int, str]]:
        return [(frame.number, frame.code) for frame in self.source.all(Refused)]


@pytest.mark.parametrize("name", DEAR)
def test_it_is_read_elsewhere_and_goes_on_as_if_it_had_been_read_here(name: str) -> None:
    form, make = DEAR[name]
    setting = Large()
    payload = make(LARGE_BYTES)
    setting.publish(payload, form)
    assert setting.told() == []
    setting.answer()
    (message,) = setting.told()
    here = read_publication(payload, form, base=setting.core.control.base_of("s1"))
    there = decode(message.payload, WireFormat(message.format))
    assert encode(there, WireFormat.BINARY) == encode(here, WireFormat.BINARY)


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_xml_is_read_here(name: str) -> None:
    form, make = ORDINARY[name]
    setting = Large()
    setting.publish(make(4 * LARGE_BYTES), form)
    assert setting.questions == []
    assert len(setting.told()) + len(setting.refused()) == 1


@pytest.mark.parametrize("name", ORDINARY)
def test_but_not_where_it_is_huge(name: str) -> None:
    form, make = ORDINARY[name]
    setting = Large()
    setting.publish(make(HUGE_BYTES), form)
    setting.answer()
    assert [message.number for message in setting.told()] == [1]


def test_a_form_that_is_larger_than_brokers_take_is_refused() -> None:
    setting = Large()
    setting.publish(
        b"<l>%s</l>" % (b"<b>>>>></b>" * (3 * HUGE_BYTES // 11))
    )  # &gt; in canonical XML
    setting.answer()
    assert setting.refused() == [(1, "too-large")]


@pytest.mark.parametrize("name", DEAR)
def test_a_small_one_is_read_here_too(name: str) -> None:
    form, make = DEAR[name]
    setting = Large()
    setting.publish(make(LARGE_BYTES // 2), form)
    assert (setting.questions, len(setting.told())) == ([], 1)


def test_messages_behind_it_keep_their_order() -> None:
    form, make = DEAR["Turtle"]
    setting = Large()
    setting.publish(SMALL)
    for payload, kind in ((make(LARGE_BYTES), form), (SMALL, "text"), (b"<a", "text")):
        setting.publish(payload, kind)
    setting.publish(make(LARGE_BYTES), form)
    assert [message.number for message in setting.told()] == [1]
    setting.answer()
    assert [message.number for message in setting.told()] == [1, 2, 3]
    assert setting.refused() == [(4, "malformed")]
    setting.answer()
    assert [message.number for message in setting.told()] == [1, 2, 3, 5]
    setting.publish(SMALL)
    assert [message.number for message in setting.told()][-1] == 6


@pytest.mark.parametrize(
    ("payload", "form"),
    [
        (ORDINARY["records"][1](LARGE_BYTES)[:-1], "text"),
        (DEAR["Turtle"][1](LARGE_BYTES) + b"<u:a> <u:b> ", "text/turtle"),
        (DEAR["Turtle"][1](LARGE_BYTES) + b"<u:a> <u:b> <c d> .", "text/turtle"),
        (b"{" + b" " * LARGE_BYTES, "application/ld+json"),
        (b'<!DOCTYPE a [<!ENTITY e "x">]><a>' + b"&e;" * LARGE_BYTES, "text"),
    ],
)
def test_what_is_no_message_is_refused_as_if_it_had_been_read_here(
    payload: bytes, form: str
) -> None:
    setting = Large()
    setting.publish(payload, form)
    setting.answer()
    with pytest.raises(MessageRefused) as refused:
        read_publication(payload, form)
    assert setting.refused() == [(1, refused.value.code)]
    assert setting.told() == []


def test_a_process_that_died_of_it_refuses_it() -> None:
    setting = Large()
    setting.publish(DEAR["Turtle"][1](LARGE_BYTES), "text/turtle")
    setting.questions.clear()
    setting.beside.tell(SchemaAnswered("source/s1", MessageRefused("too-costly", "it died")))
    assert setting.refused() == [(1, "too-costly")]


def test_it_comes_again_when_its_connection_ends() -> None:
    setting = Large()
    form, make = DEAR["JSON-LD"]
    setting.publish(make(LARGE_BYTES), form)
    setting.source.disconnect()
    setting.source.connect()
    setting.answer()
    assert setting.told() == []
    setting.answer()
    assert [message.number for message in setting.told()] == [1]


def test_the_time_that_it_takes_elsewhere_is_its_sources() -> None:
    form, make = DEAR["Turtle"]
    setting = Large()
    payload = make(LARGE_BYTES)
    setting.publish(payload, form)
    asked = setting.questions.pop()
    found = answer(asked.question)
    assert isinstance(found, MessageRead)
    free = FREE_SECONDS + FREE_SECONDS_BYTE * len(payload)
    dear = replace(found, seconds=free + 1.5)
    setting.beside.tell(SchemaAnswered(asked.key, dear))
    assert len(setting.told()) == 1
    assert setting.core.data.costs.is_slowed("source/s1", "s1")


def test_it_is_validated_as_well() -> None:
    schema = b"<!ELEMENT l (e*)><!ATTLIST l a CDATA #IMPLIED><!ELEMENT e (#PCDATA)>"
    setting = Large("reject", schema)
    form, make = DEAR["a DOCTYPE with attribute types"]
    good = make(LARGE_BYTES)
    for payload in (good, good.replace(b"</l>", b"<f/></l>")):
        setting.publish(payload, form)
    setting.publish(DEAR["Turtle"][1](LARGE_BYTES), "text/turtle")
    while setting.questions:
        asked = setting.questions.pop(0)
        setting.beside.tell(SchemaAnswered(asked.key, answer(asked.question)))
    assert [message.number for message in setting.told()] == [1]
    assert setting.refused() == [(2, "invalid"), (3, "no-document")]


def test_the_graph_of_rdf_xml_comes_with_it() -> None:
    form, make = DEAR["RDF/XML"]
    payload = make(LARGE_BYTES)
    found = answer(ReadMessage(payload, form, Large().core.data.limits.message))
    assert isinstance(found, MessageRead) and isinstance(found.graph, bytes)
    setting = Large()
    setting.place("SELECT ?s WHERE { ?s <u:b> 'text 1' }", profile="p0")
    setting.publish(payload, form)
    setting.answer()
    counted = setting.core.statistics().data
    assert (counted.graphs_derived, counted.no_graph) == (1, 0)


def test_taxonomies_close_it() -> None:
    closure = TaxonomyClosure(Taxonomy(classes={b"u:b": (b"u:above",)}))
    form, make = DEAR["Turtle"]
    payload, limits = make(LARGE_BYTES), Large().core.data.limits.message
    found = answer(ReadMessage(payload, form, limits, closure))
    here = read_publication(payload, form, limits, closure)
    assert isinstance(found, MessageRead)
    assert found.payload == encode(here, WireFormat.BINARY) and b"u:above" in found.payload
