"""The demo's planet source: what weblogs of a city have written, as RDF graphs.

RSS 1.0 is RDF/XML, so a message of the first kind is a document and a graph at once; the others
are the same graph in Turtle, JSON-LD and N-Triples.  A channel has its items in an ``rdf:Seq``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from demo.markup import Attributes, block, document, element, text
from demo.words import CITY_OF_AREA, PEOPLE, headline, sentences, time_stamp
from formats.graph.vocabulary import RDF, XSD

RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
BLOG = "http://planet.example/terms#"
PREFIXES = {"rdf": RDF, "rss": RSS, "dc": DC, "blog": BLOG, "xsd": XSD}

RDF_XML = "application/rdf+xml"
TURTLE = "text/turtle"
JSON_LD = "application/ld+json"
N_TRIPLES = "application/n-triples"

TOPICS = ("harbour", "theatre", "food", "fog", "football", "trains", "gardens")
_SPANISH_TITLES = ("Niebla y más niebla", "¿Qué hay de nuevo?", "Otro día en el puerto")


@dataclass(frozen=True, slots=True)
class _Literal:
    value: str
    language: str = ""
    datatype: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    """``facts``: (property, literal), as ``dc:creator``."""

    about: str
    facts: list[tuple[str, _Literal]]


@dataclass(frozen=True, slots=True)
class _Feed:
    about: str
    title: str
    items: list[_Item]


def planet_message(random: Random, index: int) -> tuple[bytes, str]:
    """(One message of the planet source, its media type)."""
    area = random.choice(tuple(CITY_OF_AREA))
    feed = _Feed(
        f"http://planet.example/{area.lower()}/",
        f"Planet {CITY_OF_AREA[area]}",
        [_item(random, area, 10 * index + place) for place in range(random.randint(1, 6))],
    )
    media_type = (RDF_XML, TURTLE, RDF_XML, JSON_LD, RDF_XML, N_TRIPLES)[index % 6]
    return _WRITERS[media_type](feed), media_type


def _item(random: Random, area: str, number: int) -> _Item:
    title = _Literal(headline(random), "en")
    if random.random() < 0.2:
        title = _Literal(random.choice(_SPANISH_TITLES), "es")
    facts = [
        ("rss:title", title),
        ("rss:link", _Literal(f"http://{area.lower()}.planet.example/{number}.html")),
        ("dc:creator", _Literal(random.choice(PEOPLE))),
        ("dc:date", _Literal(time_stamp(random), datatype=XSD + "dateTime")),
        ("blog:words", _Literal(str(random.randint(20, 1500)), datatype=XSD + "integer")),
    ]
    if random.random() < 0.7:
        topics = random.sample(TOPICS, random.choice((1, 1, 2)))
        facts += [("dc:subject", _Literal(topic)) for topic in topics]
    if random.random() < 0.3:
        facts.append(("rss:description", _Literal(sentences(random, 2))))
    return _Item(f"http://{area.lower()}.planet.example/{number}", facts)


def _rdf_xml(feed: _Feed) -> bytes:
    declared = {
        "xmlns" if prefix == "rss" else f"xmlns:{prefix}": namespace
        for prefix, namespace in PREFIXES.items()
        if prefix != "xsd"
    }
    members = [element("rdf:li", {"rdf:resource": item.about}) for item in feed.items]
    channel = block(
        "channel",
        {"rdf:about": feed.about},
        element("title", None, text(feed.title)),
        element("link", None, text(feed.about)),
        block("items", None, block("rdf:Seq", None, *members)),
    )
    return document(block("rdf:RDF", declared, channel, *map(_item_element, feed.items)))


def _item_element(item: _Item) -> str:
    facts = []
    for name, literal in item.facts:
        attributes: Attributes = {}
        if literal.language:
            attributes["xml:lang"] = literal.language
        if literal.datatype:
            attributes["rdf:datatype"] = literal.datatype
        facts.append(element(name.removeprefix("rss:"), attributes, text(literal.value)))
    return block("item", {"rdf:about": item.about}, *facts)


def _turtle(feed: _Feed) -> bytes:
    lines = [f"@prefix {prefix}: <{namespace}> ." for prefix, namespace in PREFIXES.items()]
    members = "".join(
        f" ;\n        rdf:_{place} <{item.about}>" for place, item in enumerate(feed.items, start=1)
    )
    lines.append(
        f"\n<{feed.about}> a rss:channel ;\n    rss:title {json.dumps(feed.title)} ;\n"
        f"    rss:link {json.dumps(feed.about)} ;\n    rss:items [ a rdf:Seq{members} ] ."
    )
    for item in feed.items:
        facts = "".join(f" ;\n    {name} {_quoted(literal)}" for name, literal in item.facts)
        lines.append(f"\n<{item.about}> a rss:item{facts} .")
    return ("\n".join(lines) + "\n").encode()


def _quoted(literal: _Literal) -> str:
    """In Turtle and N-Triples."""
    quoted = json.dumps(literal.value, ensure_ascii=False)
    if literal.language:
        return f"{quoted}@{literal.language}"
    return f"{quoted}^^<{literal.datatype}>" if literal.datatype else quoted


def _n_triples(feed: _Feed) -> bytes:
    return "".join(f"{s} <{p}> {o} .\n" for s, p, o in _triples(feed)).encode()


def _triples(feed: _Feed) -> Iterator[tuple[str, str, str]]:
    channel, items = f"<{feed.about}>", "_:items"
    yield channel, RDF + "type", f"<{RSS}channel>"
    yield channel, RSS + "title", json.dumps(feed.title)
    yield channel, RSS + "link", json.dumps(feed.about)
    yield channel, RSS + "items", items
    yield items, RDF + "type", f"<{RDF}Seq>"
    for place, item in enumerate(feed.items, start=1):
        yield items, f"{RDF}_{place}", f"<{item.about}>"
    for item in feed.items:
        yield f"<{item.about}>", RDF + "type", f"<{RSS}item>"
        for name, literal in item.facts:
            prefix, _, local = name.partition(":")
            yield f"<{item.about}>", PREFIXES[prefix] + local, _quoted(literal)


def _json_ld(feed: _Feed) -> bytes:
    members = {
        f"rdf:_{place}": {"@id": item.about} for place, item in enumerate(feed.items, start=1)
    }
    channel = {
        "@id": feed.about,
        "@type": "rss:channel",
        "rss:title": feed.title,
        "rss:link": feed.about,
        "rss:items": {"@type": "rdf:Seq", **members},
    }
    graph = [channel, *map(_item_object, feed.items)]
    return json.dumps({"@context": PREFIXES, "@graph": graph}, ensure_ascii=False).encode()


def _item_object(item: _Item) -> dict[str, object]:
    found: dict[str, object] = {"@id": item.about, "@type": "rss:item"}
    values: dict[str, list[dict[str, str]]] = {}
    for name, literal in item.facts:
        value = {"@value": literal.value}
        if literal.language:
            value["@language"] = literal.language
        if literal.datatype:
            value["@type"] = literal.datatype
        values.setdefault(name, []).append(value)
    return found | values


_WRITERS = {RDF_XML: _rdf_xml, TURTLE: _turtle, JSON_LD: _json_ld, N_TRIPLES: _n_triples}
