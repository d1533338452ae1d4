"""Taxonomies at a broker: B4, the root of its own tree and between B1 and B5, B6 on B1's."""

from __future__ import annotations

import zlib

import pytest

from formats import WireFormat, decode, to_text
from formats.graph.taxonomy import Taxonomy
from overlay.link.frames import (
    Delivery,
    Message,
    Publish,
    TaxonomiesAnnounced,
    TaxonomiesInForce,
)
from tests.onyx.broker.test_broker_core import NEWS, Setting, delta, message

CAT, PET, THING = b"urn:Cat", b"urn:Pet", b"urn:Thing"


def payload(**above: bytes) -> bytes:
    classes = {f"urn:{name}".encode(): (each,) for name, each in above.items()}
    return zlib.compress(Taxonomy(classes=classes).to_bytes())


PETS, MORE = payload(Cat=PET), payload(Cat=PET, Pet=THING)


def announce(setting: Setting, version: int, content: bytes) -> None:
    setting.registration.send("registration", TaxonomiesAnnounced(version, content))


def classes(setting: Setting, tree: str) -> list[bytes]:
    closure = setting.core.taxonomies.closure(tree)
    return [] if closure is None else closure.classes(b"", [CAT])


def test_what_the_registration_service_says_counts_for_the_own_tree_alone() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.announce("s2", root="B1")
    announce(setting, 1, PETS)
    assert classes(setting, "B4") == [CAT, PET]
    assert classes(setting, "B1") == []
    for neighbour in setting.brokers.values():
        assert neighbour.take(TaxonomiesInForce) == [TaxonomiesInForce("B4", 1, PETS)]


def test_what_comes_down_a_tree_counts_for_it_and_is_passed_on() -> None:
    setting = Setting()
    setting.announce(root="B1")
    setting.brokers["B1"].send("B1", TaxonomiesInForce("B1", 1, PETS))
    assert classes(setting, "B1") == [CAT, PET]
    assert setting.core.taxonomies.version("B1") == 1
    for child in ("B5", "B6"):
        assert setting.brokers[child].take(TaxonomiesInForce) == [TaxonomiesInForce("B1", 1, PETS)]
    setting.brokers["B1"].send("B1", TaxonomiesInForce("B1", 3, b""))
    assert classes(setting, "B1") == []


def test_a_tree_that_comes_into_use_is_told_before_its_first_message() -> None:
    setting = Setting()
    announce(setting, 1, PETS)
    assert all(not peer.all(TaxonomiesInForce) for peer in setting.brokers.values())
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    setting.brokers["B5"].send("B4", delta("//*", root="B4"))
    setting.beside.peer("source", "s1").send("s1", Publish("s1", "text", NEWS))
    down = (TaxonomiesInForce, Message)
    assert [type(f) for f in setting.brokers["B5"].got if isinstance(f, down)] == list(down)
    setting.announce("s2", root="B4")
    assert len(setting.brokers["B5"].all(TaxonomiesInForce)) == 1, "the tree knows"


def test_a_change_stands_between_the_messages_before_and_behind_it() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    setting.brokers["B5"].send("B4", delta("//*", root="B4"))
    source = setting.beside.peer("source", "s1")
    seen = []
    for version, content in ((1, PETS), (2, MORE)):
        source.send("s1", Publish("s1", "text", NEWS))
        announce(setting, version, content)
    source.send("s1", Publish("s1", "text", NEWS))
    for frame in setting.brokers["B5"].got:
        if isinstance(frame, TaxonomiesInForce):
            seen.append(f"version {frame.version}")
        elif isinstance(frame, Message):
            seen.append(f"message {frame.number}")
    assert seen == ["message 1", "version 1", "message 2", "version 2", "message 3"]


def held_bytes(setting: Setting) -> int:
    return sum(len(row.payload) for row in setting.core.taxonomies._contents.values())


def test_a_restart_forgets_nothing_and_stores_what_is_equal_once() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.announce("s2", root="B1")
    announce(setting, 1, PETS)
    setting.brokers["B1"].send("B1", TaxonomiesInForce("B1", 1, PETS))
    assert held_bytes(setting) == len(PETS)
    setting.restart()
    assert classes(setting, "B1") == classes(setting, "B4") == [CAT, PET]
    announce(setting, 2, MORE)
    assert classes(setting, "B1") == [CAT, PET]
    assert classes(setting, "B4") == [CAT, PET, THING]
    assert held_bytes(setting) == len(PETS) + len(MORE)
    setting.core.taxonomies.end_tree("B1")
    assert held_bytes(setting) == len(MORE)


def test_an_older_word_comes_too_late_and_what_is_no_taxonomy_is_refused() -> None:
    setting = Setting()
    setting.announce(root="B4")
    announce(setting, 2, MORE)
    announce(setting, 1, PETS)
    assert classes(setting, "B4") == [CAT, PET, THING]
    announce(setting, 3, b"no taxonomy")
    assert setting.registration.error == "bad-field"
    assert classes(setting, "B4") == [CAT, PET, THING]


def test_a_graph_is_closed_at_its_root_broker_as_it_knows_then() -> None:
    setting = Setting()
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    graph = "/Q{urn:onyx:graph}g"
    setting.brokers["B5"].send("B4", delta(graph, root="B4"))
    source = setting.beside.peer("source", "s1")
    turtle = b"<urn:tom> a <urn:Cat> ."
    for version, content in ((1, PETS), (2, b"")):
        source.send("s1", Publish("s1", "text/turtle", turtle))
        announce(setting, version, content)
    source.send("s1", Publish("s1", "text/turtle", turtle))
    sent = setting.brokers["B5"].all(Message)
    texts = [to_text(decode(frame.payload, WireFormat(frame.format))) for frame in sent]
    closed = b'<k><c r="urn:Cat" o=""/>%s</k>'
    above = [b"", b'<c r="urn:Pet"/>', b""]
    assert [closed % each in text for each, text in zip(above, texts, strict=True)] == [True] * 3


def test_rdf_xml_is_closed_by_what_is_in_force_on_its_tree() -> None:
    setting = Setting()
    setting.announce(root="B1")
    step = "Q{urn:onyx:graph}"
    setting.place(f"/{step}g[{step}d/{step}k/{step}c/@r = 'urn:Pet']")
    subscriber = setting.beside.subscriber("p1")
    announce(setting, 2, b"")  # of the own tree
    document = (
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<r:Description r:about="urn:tom"><r:type r:resource="urn:Cat"/></r:Description></r:RDF>'
    )
    setting.brokers["B1"].send("B1", message(document, 1))
    for version, content in ((1, PETS), (2, b"")):
        setting.brokers["B1"].send("B1", TaxonomiesInForce("B1", version, content))
        setting.brokers["B1"].send("B1", message(document, version + 1))
    assert [frame.number for frame in subscriber.all(Delivery)] == [2]


PREFIX = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("ASK { ?x a/rdfs:subClassOf* <urn:Pet> }", [1, 2, 4]),
        ("SELECT * { ?x <urn:about> ?y . ?y a/rdfs:subClassOf* <urn:Pet> }", [2]),
        ("SELECT * { ?x ?p ?y . ?p rdfs:subPropertyOf* <urn:agent> }", [4]),
        ("ASK { ?x a <urn:Pet> }", []),
    ],
)
def test_profiles_ask_for_what_is_above(query: str, numbers: list[int]) -> None:
    taxonomy = Taxonomy(
        classes={CAT: (PET,)},
        properties={b"urn:author": (b"urn:agent",)},
        instances={b"urn:tom": (CAT,)},
    )
    setting = Setting()
    setting.announce(root="B4")
    setting.children_ready(root="B4")
    setting.place(PREFIX + query)
    subscriber = setting.beside.subscriber("p1")
    announce(setting, 1, zlib.compress(taxonomy.to_bytes()))
    source = setting.beside.peer("source", "s1")
    for turtle in (
        b"<urn:kim> a <urn:Cat> .",
        b"<urn:post> <urn:about> <urn:tom> .",
        b"<urn:post> <urn:about> <urn:kim> .",
        b"<urn:tom> <urn:author> 'Ann' .",
    ):
        source.send("s1", Publish("s1", "text/turtle", turtle))
    assert [frame.number for frame in subscriber.all(Delivery)] == numbers
