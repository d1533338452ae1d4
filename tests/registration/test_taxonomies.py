"""Taxonomies at the registration service: what is put is checked, kept, and told to brokers."""

from __future__ import annotations

import zlib

from formats.graph.taxonomy import Taxonomy
from overlay.link.frames import Response, TaxonomiesAnnounced
from tests.registration.test_registration_core import Setting, refused

TURTLE = "text/turtle"
PETS = b"<urn:Cat> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Pet> ."
WORKS = b"<urn:Pet> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Thing> ."
BACK = b"<urn:Thing> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Cat> ."


def put(setting: Setting, name: str, text: bytes, syntax: str = TURTLE) -> Response:
    answer = setting.client.ask("taxonomy.put", name=name, text=text, syntax=syntax)
    assert answer is not None
    return answer


def told(setting: Setting, broker: str = "B1") -> list[tuple[int, bytes]]:
    """Versions and lines that a broker was told since it was last asked."""
    frames = setting.brokers[broker].take(TaxonomiesAnnounced)
    return [(f.version, zlib.decompress(f.payload) if f.payload else b"") for f in frames]


def test_all_brokers_are_told_what_all_taxonomies_say_together() -> None:
    setting = Setting()
    answer = put(setting, "pets", PETS)
    assert answer.ok, answer
    assert dict(answer.result) == {
        "name": "pets",
        "version": 1,
        "changed": True,
        "bytes": len(PETS),
        "syntax": "text/turtle",
        "classes": 2,
        "properties": 0,
        "instances": 0,
    }
    put(setting, "works", WORKS)
    both = b"class urn:Cat urn:Pet\nclass urn:Pet urn:Thing\n"
    for broker in setting.brokers:
        assert told(setting, broker) == [(1, b"class urn:Cat urn:Pet\n"), (2, both)]
    setting.client.ask("taxonomy.remove", name="pets")
    assert told(setting) == [(3, b"class urn:Pet urn:Thing\n")]
    setting.client.ask("taxonomy.remove", name="works")
    assert told(setting) == [(4, b"")]


def test_what_is_there_already_changes_nothing() -> None:
    setting = Setting()
    put(setting, "pets", PETS)
    told(setting)
    before = dict(setting.beside.rows)
    assert not put(setting, "pets", PETS).result["changed"]
    assert (told(setting), setting.beside.rows) == ([], before)


def test_what_cannot_be_a_taxonomy_is_refused_and_nothing_changes() -> None:
    setting = Setting()
    put(setting, "pets", PETS)
    put(setting, "works", WORKS)
    told(setting)
    before = dict(setting.beside.rows)
    cycle = put(setting, "back", BACK)
    assert refused(cycle) == "taxonomy-cycle"
    assert "urn:Cat → urn:Pet → urn:Thing → urn:Cat" in cycle.result["message"]
    assert refused(put(setting, "pets", b"<urn:Cat")) == "malformed"
    assert refused(put(setting, "pets", PETS, "text/plain")) == "bad-argument"
    assert refused(put(setting, "", PETS)) == "bad-argument"
    assert refused(setting.client.ask("taxonomy.put", name="x", syntax=TURTLE)) == "bad-argument"
    for verb in ("taxonomy.show", "taxonomy.remove"):
        assert refused(setting.client.ask(verb, name="none")) == "unknown-taxonomy"
    assert (told(setting), setting.beside.rows) == ([], before)


def test_they_are_listed_and_shown_as_they_were_put_and_survive_a_restart() -> None:
    setting = Setting()
    put(setting, "works", WORKS)
    put(setting, "pets", PETS)
    setting.restart()
    listed = setting.client.ask("taxonomy.list")
    assert listed is not None
    counts = {"classes": 2, "properties": 0, "instances": 0}
    assert dict(listed.result) == {
        "version": 2,
        "taxonomies": [
            ["pets", 2, TURTLE, len(PETS), counts],
            ["works", 1, TURTLE, len(WORKS), counts],
        ],
    }
    shown = setting.client.ask("taxonomy.show", name="pets")
    assert shown is not None and shown.result["text"] == PETS
    (version, lines) = told(setting)[-1]
    assert version == 2, "a broker that comes is told, whatever it knows"
    assert Taxonomy.from_bytes(lines).classes.keys() == {b"urn:Cat", b"urn:Pet"}
    assert put(setting, "pets", WORKS).result["version"] == 3
