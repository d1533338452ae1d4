"""Real messages and profiles of the reference data, each profile alone by lxml as well."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from lxml import etree

from formats.errors import MessageRefused
from tests.yfilter.random_cases import Message
from yfilter import LinkTarget, Matcher, ProfileMatch, RouteMatch, TransformationMatch
from yfilter.engine.linear_paths import routing_query
from yfilter.language.query_ast import PathExpression, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.projection.profile_needs import needs_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FOLDERS = ("cap", "feeds", "fpml", "newsml-g2", "siri")
LINKS = 5

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no reference data here")


def bindings(matcher: Matcher, message: Message) -> dict[str, tuple[int, ...]]:
    found = [match for match in matcher.match(message.stream) if isinstance(match, ProfileMatch)]
    assert len({match.profile_id for match in found}) == len(found)
    return {match.profile_id: match.bindings for match in found}


# -- the three files of profiles of the YFilter release, on all its messages


@pytest.mark.parametrize("kind", ["path", "predicate", "nested"])
def test_the_profiles_of_the_yfilter_release_match_as_in_lxml(kind: str) -> None:
    with gzip.open(SHARED / "yfilter" / f"profiles-{kind}.txt.gz", "rt") as lines:
        population = [line.strip() for line in lines]
    print("seed 1")
    sample = Random(1).sample(population, 250)
    matcher = Matcher()
    xpaths = {matcher.add(profile): etree.XPath(profile) for profile in sample}
    files = sorted((SHARED / "yfilter" / "messages").glob("*.xml"))
    matched = 0
    for number, file in enumerate(files):
        message = Message(_without_doctype(file))
        document = message.tree.getroottree()
        selected = {name: xpath(document) for name, xpath in xpaths.items()}
        wanted = {name for name, elements in selected.items() if elements}
        assert set(matcher.matched_ids(message.stream)) == wanted
        matched += len(wanted)
        if number % 12 == 0:
            assert bindings(matcher, message) == {
                name: tuple(sorted({message.number[element] for element in selected[name]}))
                for name in wanted
            }
    assert matched > len(files)


# -- profiles derived from the messages of every folder, as profiles, routes and transformations


@pytest.mark.parametrize("folder", FOLDERS)
def test_profiles_derived_from_real_messages_match_as_in_lxml(folder: str) -> None:
    seed = FOLDERS.index(folder)
    print(f"seed {seed}")
    rng = Random(seed)
    messages = _messages(folder, rng)
    matcher = Matcher()
    oracles: list[Callable[[etree._ElementTree], list[etree._Element]]] = []
    own: list[list[int]] = []  # profiles by the message that they come from
    for message in messages:
        own.append([])
        for _ in range(4):
            path, text, namespaces = _derive(rng, message)
            number = len(oracles)
            matcher.add(Profile(path), str(number))
            target = LinkTarget("r", f"link {number % LINKS}")
            for conjunction in routing_query(Profile(path)):
                _unless_known(lambda c=conjunction, t=target: matcher.add_route(c, t))
            for need in needs_of(Profile(path)):
                matcher.add_need(need, target)
            oracles.append(etree.XPath(text, namespaces=namespaces))
            own[-1].append(number)
    for place, message in enumerate(messages):
        document = message.tree.getroottree()
        asked = {*own[place], *rng.sample(range(len(oracles)), min(60, len(oracles)))}
        selected = {number: oracles[number](document) for number in asked}
        wanted = {number for number, elements in selected.items() if elements}
        assert set(own[place]) <= wanted
        links, transformed, matched = set(), set(), {}
        for match in matcher.match(message.stream, "r"):
            if isinstance(match, RouteMatch):
                links.add(match.link)
            elif isinstance(match, TransformationMatch):
                transformed.add(match.link)
            else:
                matched[int(match.profile_id)] = match.bindings
        assert {number for number in matched if number in asked} == wanted
        for number in wanted:
            elements = {message.number[element] for element in selected[number]}
            assert matched[number] == tuple(sorted(elements))
        # The routing query of a linear path is exact: a link is taken if one of its profiles is.
        assert links == {f"link {number % LINKS}" for number in matched}
        assert transformed == links


def _unless_known(add: Callable[[], None]) -> None:
    """Two messages may give the same profile for the same link."""
    try:
        add()
    except ValueError as error:
        assert "already" in str(error)


def _messages(folder: str, rng: Random) -> list[Message]:
    files = sorted(file for file in (SHARED / folder).rglob("*") if file.is_file())
    found = []
    for file in rng.sample(files, min(60, len(files))):
        try:
            found.append(Message(_without_doctype(file)))
        except (MessageRefused, etree.XMLSyntaxError):
            continue
    assert len(found) >= min(10, len(files) // 2)
    return found


def _without_doctype(file: Path) -> bytes:
    """The message as lxml writes it again: no DTD, so that neither side sees its defaults."""
    parser = etree.XMLParser(load_dtd=False, no_network=True, resolve_entities=False)
    return bytes(etree.tostring(etree.fromstring(file.read_bytes(), parser)))


def _derive(rng: Random, message: Message) -> tuple[PathExpression, str, dict[str, str]]:
    """A path to some element of a message, loosened by chance, with a condition on an attribute;
    as a profile, and as XPath with its prefixes."""
    element = rng.choice(list(message.number))
    lineage = [*reversed(list(element.iterancestors())), element]
    namespaces: dict[str, str] = {}
    ours, theirs = "", ""
    skipped = False
    for node in lineage:
        if node is not element and rng.random() < 0.3:
            skipped = True
            continue
        slash = "//" if skipped else "/"
        skipped = False
        if rng.random() < 0.1:
            ours, theirs = f"{ours}{slash}*", f"{theirs}{slash}*"
            continue
        name = etree.QName(node)
        prefix = ""
        if name.namespace:
            prefix = f"n{len(namespaces)}:"
            namespaces[prefix[:-1]] = name.namespace
        uri = (name.namespace or "").replace("&", "&amp;")
        ours += f"{slash}Q{{{uri}}}{name.localname}"
        theirs += f"{slash}{prefix}{name.localname}"
    plain = [
        (key, value)
        for key, value in element.attrib.items()
        if not key.startswith("{") and not set(value) & set("\"'&\n\t\r")
    ]
    if plain and rng.random() < 0.6:
        key, value = rng.choice(plain)
        ours, theirs = f'{ours}[@{key} = "{value}"]', f'{theirs}[@{key} = "{value}"]'
    body = parse_profile(ours).body
    assert isinstance(body, PathExpression)
    return body, theirs, namespaces
