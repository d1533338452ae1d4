"""Graphs through a real network: what is delivered is what pyoxigraph says of each message."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
import trio
from lxml import etree

from demo.graph_oracle import (
    canonical_graph_result,
    expected_graph_results,
    is_graph_profile,
    is_graph_type,
)
from demo.planet import planet_message
from onyx import DataSource, RegistrationClient, RequestFailed, User
from onyx.blocking import DataSource as BlockingDataSource
from onyx.cli.main import main

TURTLE = "text/turtle"
NORTH, SOUTH = (10.0, 0.0), (30.0, 0.0)  # where B1 and B3 are
PREFIXES = """\
PREFIX rss: <http://purl.org/rss/1.0/>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX blog: <http://planet.example/terms#>
"""
PROFILES = [
    PREFIXES + 'SELECT ?post ?title WHERE { ?post dc:creator "Grace Kim" ; rss:title ?title }',
    PREFIXES + 'SELECT * WHERE { ?c rss:items ?s . ?s ?li ?i . ?i dc:creator "Ana Ruiz" }',
    PREFIXES + "SELECT ?post WHERE { ?post blog:words ?words . FILTER(?words > 1200) }",
    PREFIXES
    + 'CONSTRUCT { ?post blog:by ?who } WHERE { ?post dc:creator ?who ; dc:subject "fog" }',
    PREFIXES + 'ASK { ?post dc:subject "theatre" ; blog:words ?words . FILTER(?words < 700) }',
    PREFIXES + "SELECT ?t WHERE { ?post rss:title ?t . FILTER(lang(?t) = 'es') }",
    "/*[.//*[local-name() = 'creator'] = 'Elif Yıldız']",
    "//*[starts-with(., 'Planet S')]",
]
NUMBER = 24


def expected(profile: str, data: bytes, media_type: str) -> list[bytes]:
    """Canonical results, by another implementation."""
    if is_graph_profile(profile):
        return [canonical(one) for one in expected_graph_results(profile, data, media_type)]
    if is_graph_type(media_type):
        return []
    return [canonical(data)] if etree.fromstring(data).getroottree().xpath(profile) else []


def canonical(result: bytes) -> bytes:
    graph = canonical_graph_result(result)
    if graph is not None:
        return graph
    return bytes(etree.tostring(etree.fromstring(result), method="c14n"))


async def test_graph_and_document_profiles_get_what_each_is_to_get(registration: str) -> None:
    random = Random(1812)
    messages = [planet_message(random, number) for number in range(NUMBER)]
    north = await DataSource.register(registration, name="planet", location=NORTH)
    south = await DataSource.register(registration, name="planet", location=SOUTH)
    async with north, south, User(registration, "olga") as user:
        hosted = {}
        for place in (NORTH, SOUTH):
            for text in PROFILES:
                info = await user.add_profile(text, location=place, near=True)
                hosted[info.id] = text
        wanted = {
            (profile, source.id, number): results
            for source in (north, south)
            for number, (data, media_type) in enumerate(messages, start=1)
            for profile, text in hosted.items()
            if (results := expected(text, data, media_type))
        }
        assert {hosted[profile] for profile, _, _ in wanted} == set(PROFILES)
        for source in (north, south):
            outcomes = [outcome async for outcome in source.publish_all(messages)]
            assert all(outcome.accepted for outcome in outcomes)
        got: dict[tuple[str, str, int], list[bytes]] = {}
        numbers = defaultdict(list)
        results = user.results(*hosted)
        while len(got) < len(wanted):
            one = await anext(results)
            assert (one.profile, one.source, one.number) not in got
            got[one.profile, one.source, one.number] = list(map(canonical, one.results))
            numbers[one.profile, one.source].append(one.number)
        results.acknowledge_nowait()
        assert got == wanted
        assert all(found == sorted(found) for found in numbers.values())
        async with RegistrationClient(registration) as client:
            assert (await client.profile(next(iter(hosted)))).text == PROFILES[0]
        async for _ in user.remove_profiles(hosted):
            pass


ABOVE = {
    "sparql": "SELECT ?x { ?x a/^<http://www.w3.org/2000/01/rdf-schema#subClassOf>* <urn:t:Fog> }",
    "rdql": "SELECT ?x WHERE (?x, t:is, ?y) SUCHTHAT ?x >= t:Fog USING t FOR <urn:t:>",
}
TOPICS = b"""@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:t:> .
:Fog rdfs:subClassOf :Weather . :Weather rdfs:subClassOf :Topic . :bay a :%s ."""


async def test_profiles_follow_the_taxonomies(registration: str) -> None:
    """What is of a class or of one above it, as these are when it is published."""
    async with RegistrationClient(registration) as client, User(registration, "olga") as user:
        await client.put_taxonomy("topics", TOPICS % b"Weather", "text/turtle")
        hosted = [
            (await user.add_profile(text, location=place, near=True)).id
            for text in ABOVE.values()
            for place in (NORTH, SOUTH)
        ]
        source = await DataSource.register(registration, location=NORTH)
        results = user.results(*hosted)

        async def found(*classes: str) -> list[set[str]]:
            """Which profiles get a message, for each class that it states of its subject."""
            numbers = {}
            for name in classes:
                says = "" if name == "bay" else f"; a <urn:t:{name}> "
                subject = "urn:t:bay" if name == "bay" else "urn:s"
                said = f"<{subject}> <urn:t:is> <urn:y> {says}."
                outcome = await source.publish(said.encode(), "text/turtle")
                numbers[outcome.number] = set[str]()
            last = await source.publish(b"<urn:s> a <urn:t:Fog> ; <urn:t:is> <urn:y> .", TURTLE)
            while len(numbers.setdefault(last.number, set())) < len(hosted):
                one = await anext(results)
                numbers[one.number].add(one.profile)
            return [numbers[number] for number in sorted(numbers)][:-1]

        async with source:
            everybody, nobody = set(hosted), set[str]()
            wanted = [everybody, everybody, everybody, nobody, everybody]
            assert await found("Fog", "Weather", "Topic", "Pet", "bay") == wanted
            before = [(await client.profile(profile)).version for profile in hosted]
            await client.put_taxonomy("topics", TOPICS.replace(b"Topic", b"Pet") % b"Fish", TURTLE)
            for profile, version in zip(hosted, before, strict=True):
                while not ((info := await client.profile(profile)).version > version and info.live):
                    await trio.lowlevel.checkpoint()
                assert "# above <urn:t:Fog>: <urn:t:Weather> <urn:t:Pet>" in (info.text or "")
            wanted = [everybody, everybody, nobody, everybody, nobody]
            assert await found("Fog", "Weather", "Topic", "Pet", "bay") == wanted
        results.acknowledge_nowait()
        async for _ in user.remove_profiles(hosted):
            pass
        await client.remove_taxonomy("topics")


async def test_relative_iris_are_relative_to_what_the_source_says(registration: str) -> None:
    text = "SELECT ?x ?y { ?x <http://b.example/p> ?y }"
    rdf_xml = (
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<r:Description r:about="a"><p xmlns="http://b.example/" r:resource="#c"/>'
        b"</r:Description></r:RDF>"
    )
    messages = [
        (b"<a> <p> <#c> .", "text/turtle"),
        (b'{"@id": "a", "http://b.example/p": {"@id": "#c"}}', "application/ld+json"),
        (rdf_xml, "application/rdf+xml"),
        (b"@base <http://other.example/> . <a> <http://b.example/p> <#c> .", "text/turtle"),
    ]
    plain = await DataSource.register(registration, location=NORTH)
    source = await DataSource.register(registration, base="http://b.example/", location=NORTH)
    with pytest.raises(RequestFailed, match="absolute"):
        await DataSource.register(registration, base="b.example/")
    async with RegistrationClient(registration) as client:
        bases = {info.id: info.base for info in await client.sources()}
    assert (bases[source.id], bases[plain.id]) == ("http://b.example/", "")
    async with plain, source, User(registration, "olga") as user:
        profile = (await user.add_profile(text, location=SOUTH, near=True)).id
        assert (await plain.publish(*messages[0])).code == "relative-iri"
        async for outcome in source.publish_all(messages):
            assert outcome.accepted, outcome
        results = user.results(profile)
        for base in (*["http://b.example/"] * 3, "http://other.example/"):
            (found,) = (await anext(results)).results
            assert f'"{base}a"'.encode() in found
            assert f'"{base}#c"'.encode() in found
        results.acknowledge_nowait()
        await user.remove_profile(profile)


async def test_a_graph_that_is_none_is_refused_with_the_place(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source:
        bad = await source.publish(b'<urn:a> <urn:b> "c" .\n<urn:a> <urn:b> .\n', "text/turtle")
        unknown = await source.publish(b"a,b", "text/csv")
        reserved = await source.publish(b'<g xmlns="urn:onyx:graph"/>')
        good = await source.publish(b"<urn:a> <urn:b> <urn:c> .", "Text/Turtle; charset=utf-8")
    assert (bad.code, bad.line) == ("malformed", 2)
    assert bad.column
    assert (unknown.code, reserved.code) == ("unknown-format", "reserved-namespace")
    assert good.accepted
    assert good.number == 4


def test_a_file_is_published_as_what_its_name_says(
    registration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    triple = "<urn:a> <urn:b> <urn:c> ."
    files = {
        "1.ttl": "@prefix x: <urn:> . x:a x:b x:c .",
        "2.nt": triple,
        "3.nq": triple,
        "4.TRIG": f"<urn:g> {{ {triple} }}",
        "5.jsonld": '{"@id": "urn:a", "urn:b": {"@id": "urn:c"}}',
        "6.rdf": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "7.rss": "<rss/>",
        "8.xml": "<x/>",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    where = ["--registration", registration]
    source = BlockingDataSource.register(registration).id
    assert main(["source", "publish", source, str(tmp_path), *where]) == 0
    assert "8 accepted" in capsys.readouterr().out
    (tmp_path / "3.nq").write_text(triple + "\n<urn:a> .")
    named = [str(tmp_path / name) for name in ("3.nq", "1.ttl")]
    assert main(["source", "publish", source, *named, *where]) == 65
    assert "3.nq:2:" in capsys.readouterr().err
    kind = ["--media-type", "text/turtle"]
    assert main(["source", "publish", source, str(tmp_path / "2.nt"), *kind, *where]) == 0
    asked = ["trace", named[1], "--source", source, *where]
    assert main(asked) == 0
    assert "33 bytes as text/turtle" in capsys.readouterr().out


def test_a_blocking_source_says_the_media_type_too(registration: str) -> None:
    source = BlockingDataSource.register(registration)
    triple = b"<urn:a> <urn:b> <urn:c> ."
    with source:
        assert source.publish(triple, "text/turtle").accepted
        messages = [b"<x/>", (triple, "application/n-triples"), triple]
        assert [one.accepted for one in source.publish_all(messages)] == [True, True, False]


def test_tools_speak_of_triple_patterns(
    registration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the way of a message, of a profile that does not match, and of a link that cuts."""
    (tmp_path / "fog.rq").write_text(
        'SELECT ?x { ?x <http://f.example/on> "fog" ; <http://f.example/size> ?n FILTER(?n > 3) }'
    )
    (tmp_path / "large.ttl").write_text("<a> <on> 'fog' ; <size> 7 .")
    (tmp_path / "small.ttl").write_text("<a> <on> 'fog' ; <size> 2 .")

    def said(*arguments: str | Path) -> str:
        assert main([*map(str, arguments), "--registration", registration]) == 0
        return capsys.readouterr().out

    base = ("--base", "http://f.example/")
    source = said("source", "register", "--location", "10,0", *base).split()[0]
    profile = said("profile", "add", tmp_path / "fog.rq", "--location", "30,0", "--wait").split()[0]
    asked = '?s1 <http://f.example/on> "fog"'
    large, small = tmp_path / "large.ttl", tmp_path / "small.ttl"
    taken = said("trace", large, "--source", source, "--dry-run")
    assert f"because of {{ {asked} . ?s2 <http://f.example/size> ?o2 FILTER(?o2 > 3) }}" in taken
    left = said("trace", small, "--source", source, "--dry-run")
    assert "fails at { ?s1 <http://f.example/size> ?o1 FILTER(?o1 > 3) }" in left
    assert "urn:onyx:graph" not in taken + left
    assert f"{profile} matches it" in said("profile", "why-not", profile, large, *base)
    assert "FILTER(?n >" in said("profile", "why-not", profile, small, *base)
    assert "graph profiles: graphs and RDF/XML documents whole" in said(
        *("transform", "show", "B1:B2", "--root", "B1")
    )
    said("profile", "remove", profile)
