"""The scanner: it takes what is ordinary, and what it takes is what pyoxigraph makes of it."""

from __future__ import annotations

from random import Random

import pyoxigraph
import pytest
from hypothesis import given, settings
from pyoxigraph import Quad

from formats import GraphSyntax, MessageRefused
from formats.graph.oxigraph import FORMATS
from formats.graph.striping import GraphBuilder, scan
from tests.formats.graph.support import RDF_DATA, SCANNED, XSD, quads, scanned, w3c_tests
from tests.fuzz.decoders import damage

EX = "@prefix : <http://e.example/> . @prefix e: <http://e.example/#> .\n"

TAKEN = [
    ":a :p :b , e:c ; e:q <urn:x:y#z> ;; a :C ; . ",
    "_:a :p _:b.c , _:b.:c :p 1 .@prefix c: <http://c.example/> . c: c: c:c:c .",
    ":a :p '' , \"\" , '''''' , 'a\\tb\\u00e9\\U0001F600' , '''a'b''c\n\\'''' , \"\"\"\"a\"\"\" .",
    ":a :p 1 , -2 , +.5 , 1.50 , 1e3 , 1.5E-3 , -0.0e0 , true , false , 1.",
    ":a :p 'x'@en , 'x'@EN-gb , 'x'@zh-Hant-TW , '5'^^<http://e.example/t> , '5'^^e:t .",
    ":a :p [] , [ :p 1 ; :q [ :r 2 ] ] , () , ( 1 ( 2 ) [ :p () ] ) .",
    "[ :p 1 ] . [ :p 1 ] :q 2 . [] :q 2 . ( 1 2 ) :p 3 . () :p 4 .",
    "PREFIX x: <http://x.example/>\npReFiX y: <urn:y:>\nx:a y:b x:c\\/d\\~ .",
    "# a comment\n:a#another\n:p#more\n:b#\n.#end",
    "<http://e.example:80/a%20b?c=d&e=#f> :p <file:///a> , <a:> , <urn:é> .",
    ":a.b :p.q :a-b.c. :e :p 1 .",
    "",
]
GIVEN_BACK = [
    "@base <http://b.example/> . <a> :p 1 .",
    "<a> :p 1 .",
    ":a :p 'x'@en-a-b .",
    ":é :p 1 .",
    ":a :p <http://user@host/> .",
    ":a :p <<( :a :p 1 )>> .",
    ":a :p '5'^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .",
    "@prefix h: <http://host> . h:a :p 1 .",
    ":a%41 :p 1 .",
]
MALFORMED = [
    ":a :p 1",
    ":a :p , 1 .",
    ":a :p .",
    ":a 'p' 1 .",
    ":a _:p 1 .",
    "'a' :p 1 .",
    ":a :p ( 1 .",
    ":a :p [ :q ] .",
    "[] .",
    ":a :p 'x\n' .",
    ":a :p 'x\\q' .",
    ":a :p '\\uD800' .",
    ":a :p x:y .",
    ":a :p 1e .",
    ":a :p <http://e.example/a b> .",
    ":a :p <http://e.example/#a#b> .",
    ":a :p <http://e.example/%4> .",
    ":a :p :-b .",
    ":a :p 1 } .",
    "PREFIX x: <http://x.example/> .",
    "@prefix x: <http://x.example/>",
    ':a :p """x"""" .',
    "{ :a :p 1 }",
    ":a :p 'x'^^'y' .",
]


@pytest.mark.parametrize("text", TAKEN)
def test_what_is_ordinary_is_taken(text: str) -> None:
    data = (EX + text).encode()
    assert scanned(data, GraphSyntax.TURTLE) == "taken"
    assert scanned(data, GraphSyntax.TRIG) == "taken"


@pytest.mark.parametrize("text", GIVEN_BACK + MALFORMED)
def test_what_is_not_is_given_back(text: str) -> None:
    assert scanned((EX + text).encode(), GraphSyntax.TURTLE) == "given back"


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (
            "{ } { :a :p 1 } :g { :a :p 1 . } GRAPH :g { :b :p 2 . :c :p [ :q 3 ] } _:g { }",
            True,
        ),
        ("graph _:g { _:g :p () } <urn:g:g>{:a :p 1}", True),
        (":g { :a :p 1 . { } }", False),
        (":g { :a :p 1 ", False),
        (":g { :a :p 1 } .", False),
        ("GRAPH :g :p 1 .", False),
        ("{ :a :p 1 } }", False),
    ],
)
def test_blocks_are_graphs(text: str, taken: bool) -> None:
    data = (EX + text).encode()
    assert scanned(data, GraphSyntax.TRIG) == ("taken" if taken else "given back")


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (b'<http://a/a> <http://a/p> "x" .\r\n\t_:a <http://a/p> _:b . # c\n#d\n\n', True),
        (b'<http://a/a> <http://a/p> "x"@en .\n<a:a> <a:b> "\\t\'"^^<a:c> .', True),
        (b"<http://a/a> <http://a/p> 'x' .", False),
        (b"<http://a/a> <http://a/p> 5 .", False),
        (b'<http://a/a> <http://a/p> """x""" .', False),
        (b"<http://a/a> <http://a/p> <http://a/b>, <http://a/c> .", False),
        (b"<http://a/a> _:p <http://a/b> .", False),
        (b"<http://a/a>\n<http://a/p> <http://a/b> .", False),
        (b"<http://a/a> <http://a/p> <http://a/b> . <http://a/a> <http://a/p> _:c .", False),
        (b"<http://a/a> <http://a/p> <http://a/b> <http://a/g> .", False),
        (b"@prefix : <http://a/> .", False),
    ],
)
def test_lines_are_stricter(data: bytes, taken: bool) -> None:
    expected = "taken" if taken else "given back"
    assert scanned(data, GraphSyntax.N_TRIPLES) == expected
    in_graph = data.replace(b" .", b" <http://a/g> .") if taken else data
    assert scanned(in_graph, GraphSyntax.N_QUADS) == (
        "taken" if b"> <http://a/g> ." in in_graph else expected
    )


def test_nothing_is_stepped_over_at_the_end() -> None:
    """Every beginning of a graph is read or given back."""
    whole = (EX + "\n".join(TAKEN[2:7]) + "<a:b#c%41> :p ''' ''' .").encode()
    for end in range(len(whole)):
        scanned(whole[:end], GraphSyntax.TURTLE)


def test_nesting_is_bounded() -> None:
    deep = EX + ":a :p " + "[ :p " * 100_000
    assert not scan(deep.encode(), GraphSyntax.TURTLE, GraphBuilder())
    deep = EX + ":a :p " + "( " * 100_000
    assert not scan(deep.encode(), GraphSyntax.TURTLE, GraphBuilder())


def test_what_the_builder_refuses_has_a_place() -> None:
    with pytest.raises(MessageRefused) as caught:
        scan((EX + ":a :p\n 'é' , '\\u0000' .").encode(), GraphSyntax.TURTLE, GraphBuilder())
    assert (caught.value.code, caught.value.line, caught.value.column) == ("bad-character", 3, 16)


@pytest.mark.parametrize("syntax", SCANNED)
@settings(derandomize=True, deadline=None)
@given(triples=quads(named=False))
def test_graphs_are_taken_as_they_are(syntax: GraphSyntax, triples: list[Quad]) -> None:
    prefixes = {"e": "http://example.org/", "x": XSD}
    data = pyoxigraph.serialize(triples, format=FORMATS[syntax], prefixes=prefixes)
    assert data is not None
    scanned(data, syntax)


def test_the_w3c_s_tests_are_read_alike() -> None:
    tests = [test for test in w3c_tests() if test.syntax in SCANNED]
    if not tests:
        pytest.skip("the shared data is not here")
    outcomes = [scanned(test.data, test.syntax) for test in tests if test.good]
    assert outcomes.count("taken") > len(outcomes) / 2
    assert {scanned(test.data, test.syntax) for test in tests if not test.good} == {"given back"}


def test_real_graphs_are_ordinary() -> None:
    files = sorted((RDF_DATA / "dcat").glob("*.ttl")) if RDF_DATA.exists() else []
    if not files:
        pytest.skip("the shared data is not here")
    outcomes = {path.name: scanned(path.read_bytes(), GraphSyntax.TURTLE) for path in files}
    taken = [name for name, outcome in outcomes.items() if outcome == "taken"]
    assert len(taken) > 0.8 * len(outcomes), outcomes


@pytest.mark.parametrize("seed", range(8))
def test_damaged_graphs_are_read_alike(seed: int) -> None:
    random = Random(f"damaged graphs {seed}")
    for _ in range(150):
        data = damage(random, (EX + random.choice(TAKEN)).encode())
        for syntax in SCANNED:
            scanned(data, syntax)
