"""What is of a class or of one above it: profiles that say themselves which these are."""

from __future__ import annotations

from random import Random

import pytest

from formats.graph.closure import TaxonomyClosure
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import Taxonomy, read_taxonomy
from yfilter import Matcher, ProfileRefused
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import routing_query
from yfilter.graph.graph_query import ABOVE_BYTES_MAX, parse_graph_query, with_classes_above
from yfilter.graph.query_text import unparse
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS
from yfilter.language.query_parser import parse_profile

E = "urn:t:"
PROLOGUE = f"PREFIX : <{E}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
PREFIXES = f"@prefix : <{E}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
FOG = f"{PROLOGUE}ASK {{ ?x a/^rdfs:subClassOf* :Fog }}"
WEATHER = TaxonomyClosure(
    Taxonomy(classes={b"urn:t:Fog": (b"urn:t:Weather",), b"urn:t:Weather": (b"urn:t:Topic",)})
)
NOTHING = TaxonomyClosure(Taxonomy())


def said(text: str, closure: TaxonomyClosure = WEATHER) -> str:
    return with_classes_above(text, closure.classes_above)


def sparql(name: str) -> str:
    return f"{PROLOGUE}SELECT ?x {{ ?x a/^rdfs:subClassOf* :{name} }}"


def rdql(name: str) -> str:
    return f"SELECT ?x WHERE (?x, e:is, ?y) SUCHTHAT ?x >= e:{name} USING e FOR <{E}>"


@pytest.mark.parametrize("seed", range(12))
def test_they_are_found_as_owlrl_says(seed: int) -> None:
    """By the index, and bound once by the join, whatever classes a subject has."""
    rdflib, owlrl = pytest.importorskip("rdflib"), pytest.importorskip("owlrl")
    random = Random(seed)
    names = [f"C{n}" for n in range(9)]
    taxonomy = "".join(
        f":{below} rdfs:subClassOf :{above} ."
        for place, below in enumerate(names)
        for above in names[place + 1 :]
        if random.random() < 0.25
    ) + "".join(f":i{n} a :{random.choice(names)} ." for n in range(3))
    data = PREFIXES + "".join(
        f":i{n} :is :i{n} ; a :{random.choice(names)} , :{random.choice(names)} ."
        if random.random() < 0.5
        else f":i{n} :is :i{n} ."
        for n in range(5)
    )
    closure = TaxonomyClosure(read_taxonomy((PREFIXES + taxonomy).encode(), GraphSyntax.TURTLE))
    message = read_graph(data.encode(), GraphSyntax.TURTLE, closure=closure)

    known = rdflib.Graph().parse(data=PREFIXES + taxonomy, format="turtle")
    graph = rdflib.Graph().parse(data=data, format="turtle")
    own = graph + rdflib.Graph().parse(data=PREFIXES + taxonomy, format="turtle")
    owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(known)

    matcher = Matcher()
    expected: dict[str, set[str]] = {}
    for name in names:
        node = rdflib.URIRef(E + name)
        above = {node, *known.objects(node, rdflib.RDFS.subClassOf)}
        expected[name] = {
            str(subject)
            for subject in set(graph.subjects())
            if above & set(own.objects(subject, rdflib.RDF.type))
        }
        for kind in (sparql, rdql):
            matcher.add(said(kind(name), closure), f"{kind.__name__} {name}")
    found = {
        matcher.id_of(number): sorted(rows(delivered.results))
        for delivered in matcher.deliver(message)
        for number in delivered.numbers
    }
    assert found == {
        f"{kind} {name}": sorted(subjects)
        for name, subjects in expected.items()
        for kind in ("sparql", "rdql")
        if subjects
    }
    assert set(matcher.matched_ids(message)) == set(found)


def rows(results: list[bytes]) -> list[str]:
    """What is bound, by the words of JSON."""
    (text,) = results
    return [part.partition(b'"')[0].decode() for part in text.split(b'"value":"')[1:]]


def test_a_profile_says_them_itself_in_comments_in_front() -> None:
    text = said("# results: text/turtle\n" + FOG)
    assert text == (
        "# above <urn:t:Fog>: <urn:t:Weather> <urn:t:Topic>\n# results: text/turtle\n" + FOG
    )
    assert said(text) == text
    query = parse_graph_query(text)
    assert parse_graph_query(unparse(query)) == query
    assert query != parse_graph_query(FOG)
    assert said(text, NOTHING) == "# results: text/turtle\n" + FOG


def test_what_the_taxonomies_do_not_say_any_more_is_left_out() -> None:
    pets = TaxonomyClosure(Taxonomy(classes={b"urn:t:Fog": (b"urn:t:Pet",)}))
    assert said(said(FOG), pets) == "# above <urn:t:Fog>: <urn:t:Pet>\n" + FOG
    assert said("# above all\n" + FOG, NOTHING) == "# above all\n" + FOG


@pytest.mark.parametrize(
    "text",
    [
        "//item[@n >= 5]",
        f"{PROLOGUE}ASK {{ ?x a :Fog }}",
        f"{PROLOGUE}ASK {{ ?x a/rdfs:subClassOf* :Fog ; :n ?n FILTER(?n >= 5) }}",
        sparql("Topic"),
    ],
)
def test_others_stay_as_they_are(text: str) -> None:
    assert said(text) == text


def test_profiles_of_one_shape_have_their_own() -> None:
    matcher = Matcher()
    for number in range(4):
        matcher.add(said(sparql(("Fog", "Weather", "Topic", "Pet")[number])), str(number))
    for name, ids in (("Topic", {"0", "1", "2"}), ("Weather", {"0", "1"}), ("Fog", {"0"})):
        message = read_graph(f"<urn:1> a <{E}{name}> .".encode(), GraphSyntax.TURTLE)
        assert set(matcher.matched_ids(message)) == ids


def test_who_asks_for_one_above_covers_who_asks_for_more() -> None:
    def disjuncts(text: str) -> list[Pattern]:
        return [Pattern(disjunct) for disjunct in routing_query(parse_profile(said(text)))]

    def are_covered(special: str, general: str) -> bool:
        return all(
            any(covers(one, other) for one in disjuncts(general)) for other in disjuncts(special)
        )

    assert are_covered(sparql("Weather"), FOG)
    assert are_covered(f"{PROLOGUE}ASK {{ ?x a/^rdfs:subClassOf* :Weather ; :p 1 }}", FOG)
    assert not are_covered(FOG, sparql("Weather"))
    assert not are_covered(f"{PROLOGUE}ASK {{ ?x a/rdfs:subClassOf* :Fog }}", FOG)


def test_how_many_they_may_be() -> None:
    long = b"urn:" + b"x" * 200
    few = TaxonomyClosure(
        Taxonomy(classes={b"urn:t:Fog": tuple(b"urn:%d" % n for n in range(300))})
    )
    room = DEFAULT_PROFILE_LIMITS.length_max - len(said(FOG, few))
    text = said(FOG + " " * room, few)
    matcher = Matcher()
    matcher.add(text, "fog")
    for number, matched in ((299, ["fog"]), (300, [])):
        message = read_graph(b"<urn:1> a <urn:%d> ." % number, GraphSyntax.TURTLE)
        assert matcher.matched_ids(message) == matched
    many = Taxonomy(classes={b"urn:t:Fog": tuple(b"%s%d" % (long, n) for n in range(400))})
    with pytest.raises(ProfileRefused) as refusal:
        said(FOG, TaxonomyClosure(many))
    assert refusal.value.code == "too-many-above"
    assert str(ABOVE_BYTES_MAX) in refusal.value.reason


def test_above_what_is_not_named_is_refused() -> None:
    for value in ("?c", "'Fog'", "[]"):
        with pytest.raises(ProfileRefused) as refusal:
            parse_graph_query(f"{PROLOGUE}ASK {{ ?x a/^rdfs:subClassOf* {value} }}")
        assert refusal.value.code == "unsupported"
