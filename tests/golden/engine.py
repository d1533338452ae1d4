"""engine.json: the matches and results of a fixed corpus, and the texts that brokers make of it.

The profiles and messages of ``engine_corpus.py`` are there with their results word for word, those
of the demo with a digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from demo.scenario import built_in_scenario
from formats import MessageRefused, to_text
from formats.element_stream import ElementStream
from formats.publication import read_publication
from tests.golden.engine_corpus import MESSAGES, PROFILES, REFUSED, RULES
from tests.golden.golden_file import as_json
from yfilter import Matcher, ProfileRefused, RouteMatch
from yfilter.engine.routing_templates import routing_query_of
from yfilter.engine.targets import LinkTarget
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import check_profile
from yfilter.projection.profile_needs import needs_of
from yfilter.schematron import compile_schematron

DEMO_SEED, DEMO_MESSAGES = 7, 6  # of each source
CUT_FOR = ("flwor", "string", "other-feed-result")
"""Profiles behind a link that cuts messages."""
EXPLAINED = ("twig", "wrong-twig", "flwor", "other-recursive-twig", "graph-select-filter")

_TAKING_ALL = Matcher()
"""A profile each for documents and for graphs: a message of RDF/XML is both."""
_TAKING_ALL.add("/*", "document")
_TAKING_ALL.add("ASK { ?s ?p ?o }", "graph")


def engine() -> str:
    rules = compile_schematron(RULES.encode(), file="rules.sch")
    made: dict[str, object] = {
        "profiles": {name: _told(text) for name, text in PROFILES.items()},
        "messages": _outcomes(PROFILES),
        "explained": {name: _explained(name) for name in EXPLAINED},
        "refused": {text: _refusal(text) for text in REFUSED},
        "rules": {
            "profiles": {rule.key: rule.text for rule in rules.profiles},
            "refused": [rule.reason for rule in rules.refused],
            "messages": _outcomes({rule.key: rule.text for rule in rules.profiles}),
        },
        "demo": dict(_demo()),
    }
    return as_json(made)


def _told(text: str) -> dict[str, object]:
    """What a broker tells its parent of a profile."""
    profile = parse_profile(text)
    return {
        "routing": [disjunct.text for disjunct in routing_query_of(profile)],
        "needs": [need.text for need in needs_of(profile)],
    }


def _outcomes(profiles: dict[str, str]) -> dict[str, object]:
    matcher = Matcher()
    for name, text in profiles.items():
        matcher.add(text, name)
    for name in profiles.keys() & {*CUT_FOR}:
        for disjunct in routing_query_of(parse_profile(profiles[name])):
            matcher.add_route(disjunct, LinkTarget("root", "link"))
        for need in needs_of(parse_profile(profiles[name])):
            matcher.add_need(need, LinkTarget("root", "link"))
    found: dict[str, object] = {}
    for name, (media_type, text) in MESSAGES.items():
        stream = read_publication(text.encode(), media_type)
        whole = _delivered(_TAKING_ALL, stream)
        links = [one.link for one in matcher.match(stream, "root") if isinstance(one, RouteMatch)]
        found[name] = {
            "message": {kind: result.decode() for kind, (result,) in sorted(whole.items())},
            "matched": " ".join(sorted(matcher.matched_ids(stream))),
            "results": {
                name: "the message"
                if results in whole.values()
                else list(map(bytes.decode, results))
                for name, results in sorted(_delivered(matcher, stream).items())
            },
            "cut": {
                link: to_text(left).decode()
                for link, left in matcher.transformed(stream, "root", links).items()
            },
        }
    return found


def _delivered(matcher: Matcher, stream: ElementStream) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for one in matcher.deliver(stream):
        assert one.exceeded is None and one.is_made
        found |= dict.fromkeys(map(matcher.id_of, one.numbers), one.results)
    return found


def _explained(name: str) -> list[str]:
    about = next((each for each in ("graph", "recursive") if each in name), "order")
    media_type, text = MESSAGES[about]
    message = read_publication(text.encode(), media_type)
    return str(Matcher().explain(PROFILES[name], message)).splitlines()


def _refusal(text: str) -> object:
    try:
        check_profile(text)
    except ProfileRefused as refused:
        return refused.fault.facts()
    return "taken"


def _demo() -> Iterable[tuple[str, object]]:
    scenario = built_in_scenario(DEMO_SEED, DEMO_MESSAGES)
    matcher = Matcher()
    for profile in scenario.profiles:
        matcher.add(profile.text, profile.name)
    for message in scenario.messages:
        name = f"{message.source}/{message.name}"
        try:
            stream = read_publication(message.data, message.media_type)
        except MessageRefused as refused:
            yield name, str(refused)
            continue
        digest = sha256()
        for profile_id, results in sorted(_delivered(matcher, stream).items()):
            digest.update(repr((profile_id, results)).encode())
        matched = " ".join(sorted(matcher.matched_ids(stream)))
        yield name, {"matched": matched, "results": digest.hexdigest()[:16]}
