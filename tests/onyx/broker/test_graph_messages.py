"""Graphs at their root broker, B4: how they are published, what travels, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from msgspec.structs import replace

from formats import DEFAULT_LIMITS, WireFormat, decode, encode, parse_text, to_text
from formats.graph.striped import GRAPH_NAMESPACE
from formats.publication import read_publication
from overlay.archive import ArchiveOptions
from overlay.link.frames import Delivery, Message, Publish, Refused, RoutingDelta
from overlay.statistics import Data
from overlay.topology import Topology
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import FIGURE4, Setting
from tests.onyx.broker.test_validation import DTD, GOOD
from yfilter import Matcher

TURTLE = b'@prefix x: <urn:x:> .\nx:a x:b "c" , "d"@EN ; x:n 7 .\n'
ANY_GRAPH = f"/Q{{{GRAPH_NAMESPACE}}}g"
SYNTAXES = {
    "text/turtle": pyoxigraph.RdfFormat.TURTLE,
    "application/trig": pyoxigraph.RdfFormat.TRIG,
    "application/n-triples": pyoxigraph.RdfFormat.N_TRIPLES,
    "application/n-quads": pyoxigraph.RdfFormat.N_QUADS,
    "application/ld+json": pyoxigraph.RdfFormat.JSON_LD,
}


def root_broker(topology: Topology = FIGURE4, **announced: Any) -> tuple[Setting, Peer]:
    """B4, where s1 publishes, and B5 below, which wants every message."""
    made = Setting(topology)
    made.announce(root="B4", **announced)
    wanted = ["/*", ANY_GRAPH]
    made.brokers["B5"].send("B4", RoutingDelta(root="B4", added=wanted, removed=[]))
    made.children_ready(root="B4")
    return made, made.beside.peer("source", "s1")


def publish(source: Peer, data: bytes, media_type: str = "text/turtle") -> None:
    source.send("s1", Publish(source="s1", format=media_type, payload=data))


def data_of(setting: Setting) -> Data:
    return setting.core.statistics().data


def sent(setting: Setting) -> list[bytes]:
    """The texts of the messages that went on."""
    return [
        to_text(decode(frame.payload, WireFormat(frame.format)))
        for frame in setting.brokers["B5"].take(Message)
    ]


@pytest.mark.parametrize("media_type", SYNTAXES)
def test_a_graph_travels_striped_whatever_it_was_written_in(media_type: str) -> None:
    quads = list(pyoxigraph.parse(TURTLE, format=pyoxigraph.RdfFormat.TURTLE))
    data = pyoxigraph.serialize(quads, format=SYNTAXES[media_type])
    assert data is not None
    setting, source = root_broker()
    publish(source, data, media_type)
    assert source.all(Refused) == []
    assert sent(setting) == [to_text(read_publication(data, media_type))]
    assert data_of(setting).decoded == 1


def test_rdf_xml_travels_as_the_document_that_it_is() -> None:
    document = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><!-- a --></r:RDF>'
    setting, source = root_broker()
    publish(source, document, "text")
    assert sent(setting) == [document]


def test_a_graph_that_is_none_is_refused_with_the_place() -> None:
    setting, source = root_broker()
    publish(source, TURTLE + b"x:a x:b .")
    publish(source, TURTLE, "application/n-triples")
    publish(source, TURTLE, "text/csv")
    publish(source, TURTLE)
    refused = source.take(Refused)
    assert [(one.number, one.code) for one in refused] == [
        (1, "malformed"),
        (2, "malformed"),
        (3, "unknown-format"),
    ]
    assert (refused[0].line, refused[1].line) == (3, 1)
    assert len(sent(setting)) == 1


@pytest.mark.parametrize("form", list(WireFormat))
def test_a_document_cannot_pass_for_a_graph(form: WireFormat) -> None:
    forged = parse_text(f'<g xmlns="{GRAPH_NAMESPACE}"><d s="urn:a"/></g>'.encode())
    setting, source = root_broker()
    publish(source, encode(forged, form), form.value)
    assert [one.code for one in source.take(Refused)] == ["reserved-namespace"]
    assert sent(setting) == []


def test_a_child_takes_no_graph_under_its_media_type() -> None:
    """Only what a source publishes is read so."""
    setting = Setting()
    setting.announce(root="B1")
    setting.brokers["B5"].send("B1", RoutingDelta(root="B1", added=[ANY_GRAPH], removed=[]))
    setting.children_ready(root="B1")
    frame = Message(root="B1", source="s1", number=1, format="text/turtle", hops=1, payload=TURTLE)
    setting.brokers["B1"].send("B1", frame)
    assert sent(setting) == []


def test_beyond_the_limits_of_a_message_it_is_refused() -> None:
    limits = replace(FIGURE4.limits, message=replace(DEFAULT_LIMITS, elements_max=4))
    setting, source = root_broker(replace(FIGURE4, limits=limits))
    publish(source, TURTLE)
    assert [one.code for one in source.take(Refused)] == ["too-many-elements"]
    publish(source, b"<urn:a> <urn:b> <urn:c> .")
    assert len(sent(setting)) == 1


@pytest.mark.parametrize(
    ("mode", "accepted"), [("reject", [2]), ("report", [1, 2]), ("off", [1, 2])]
)
def test_a_graph_cannot_be_valid_against_a_schema(mode: str, accepted: list[int]) -> None:
    setting, source = root_broker(schema=DTD, validation=mode)
    publish(source, TURTLE)
    publish(source, GOOD, "text")
    assert [one.number for one in setting.brokers["B5"].take(Message)] == accepted
    refused = [(one.number, one.code) for one in source.take(Refused)]
    assert refused == ([(1, "no-document")] if mode == "reject" else [])
    assert data_of(setting).not_validated == (mode != "off")


def test_a_bad_graph_is_refused_for_what_it_is_also_where_it_would_be_validated() -> None:
    _, source = root_broker(schema=DTD, validation="report")
    publish(source, b"<urn:a> <urn:b> .")
    assert [one.code for one in source.take(Refused)] == ["malformed"]


def test_an_archive_has_it_striped_as_text() -> None:
    archive = ArchiveOptions(directory=Path("news"))
    setting, source = root_broker(replace(FIGURE4, archive=archive))
    publish(source, TURTLE)
    (archived,) = setting.beside.archived
    assert archived.text == to_text(read_publication(TURTLE, "text/turtle"))


def test_a_trace_asks_the_children_with_what_they_would_get() -> None:
    setting, _ = root_broker()
    asker = setting.beside.peer("client", "ann")
    asked = {"source": "s1", "message": TURTLE, "format": "text/turtle"}
    answer = asker.ask("trace", **asked)
    assert answer is not None and answer.ok
    links = answer.result["links"]
    assert isinstance(links, list)
    assert [link["taken"] for link in links if link["link"] == "B5"] == [True]
    carried = asker.ask("trace.carried", link="B5", **asked)
    assert carried is not None and carried.ok
    payload, form = carried.result["message"], carried.result["format"]
    assert isinstance(payload, bytes)
    expected = to_text(read_publication(TURTLE, "text/turtle"))
    assert to_text(decode(payload, WireFormat(form))) == expected
    refused = asker.ask("trace", **{**asked, "message": b"<urn:a> ."})
    assert refused is not None and not refused.ok


# --- readings ---------------------------------------------------------------------------------

RDF_XML = (
    b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="urn:x:">'
    b'<r:Description r:about="urn:x:a"><x:b>c</x:b></r:Description></r:RDF>'
)
NO_GRAPH = RDF_XML.replace(b' r:about="urn:x:a"', b' r:about="urn:x:a" r:ID="b"')
OF_GRAPHS = (
    f'declare namespace g = "{GRAPH_NAMESPACE}"; declare namespace x = "urn:x:";'
    '/g:g/g:d[x:b/@v = "c"]'
)
OF_DOCUMENTS = 'declare namespace x = "urn:x:"; //x:b'


def hosting_both() -> tuple[Setting, Peer]:
    """A root broker that hosts p1, of graphs, and p2, of documents."""
    setting = Setting()
    setting.announce(root="B4")
    setting.place(OF_GRAPHS, "p1")
    setting.place(OF_DOCUMENTS, "p2")
    setting.children_ready(root="B4")
    return setting, setting.beside.peer("source", "s1")


@pytest.mark.parametrize(
    ("data", "media_type", "matched"),
    [
        (TURTLE, "text/turtle", ["p1"]),
        (RDF_XML, "text", ["p1", "p2"]),
        (NO_GRAPH, "text", ["p2"]),
        (b'<a xmlns:x="urn:x:"><x:b v="c"/></a>', "text", ["p2"]),
    ],
)
def test_a_profile_looks_at_the_reading_that_it_is_of(
    data: bytes, media_type: str, matched: list[str]
) -> None:
    setting, source = hosting_both()
    subscribers = {name: setting.beside.subscriber(name) for name in ("p1", "p2")}
    publish(source, data, media_type)
    assert [name for name, peer in subscribers.items() if peer.take(Delivery)] == matched
    asker = setting.beside.peer("client", "ann")
    answer = asker.ask("trace", source="s1", message=data, format=media_type)
    assert answer is not None and answer.ok
    assert answer.result["profiles"] == matched
    assert ("no_graph" in answer.result) == (data is NO_GRAPH)


def test_a_graph_is_derived_once_and_only_where_a_profile_asks_for_it() -> None:
    setting, source = hosting_both()
    for profile in ("p3", "p4"):
        setting.place(OF_GRAPHS.replace('"c"', f'"{profile}"'), profile)
    publish(source, RDF_XML, "text")
    publish(source, TURTLE)
    publish(source, NO_GRAPH, "text")
    counts = data_of(setting)
    assert (counts.graphs_derived, counts.no_graph, counts.decoded) == (2, 1, 3)
    idle = Setting()
    idle.announce(root="B4")
    idle.place(OF_DOCUMENTS)
    idle.children_ready(root="B4")
    publish(idle.beside.peer("source", "s1"), RDF_XML, "text")
    assert not data_of(idle).graphs_derived


def test_the_matcher_alone_derives_it_too() -> None:
    matcher = Matcher()
    matcher.add(OF_GRAPHS, "p1")
    assert matcher.matched_ids(RDF_XML) == ["p1"]
    assert matcher.matched_ids(NO_GRAPH) == []
    assert matcher.explain(OF_GRAPHS, RDF_XML).failure is None
