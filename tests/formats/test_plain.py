"""Plain Python in place of the compiled modules says the same: markup, wire forms, graphs."""

from __future__ import annotations

from random import Random

import pyoxigraph
import pytest

from formats.binary import (
    decode_binary,
    decode_dictionary,
    encode_binary,
    encode_dictionary,
)
from formats.columns import declaration, subtree_writer
from formats.dictionary import EMPTY_DICTIONARY, Dictionary, make_dictionary, only
from formats.element_stream import ElementStream
from formats.errors import DecodeError, MessageRefused
from formats.grammar import Grammar
from formats.graph import literal_forms, striping
from formats.graph.closure import TaxonomyClosure
from formats.graph.graph_limits import GraphLimits
from formats.graph.plain_striping import plain_stripes
from formats.graph.reader import read_graph
from formats.graph.striping import graph_of_document
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import Taxonomy
from formats.graph.writer import FORMATS
from formats.limits import MessageLimits
from formats.plain_writer import plain_declaration, plain_writer
from formats.text import parse_text
from tests.formats.support import PLAIN_FORMS
from tests.yfilter.graph.random_graphs import RandomCase
from tests.yfilter.random_cases import random_message
from yfilter.index.automaton import KeyTable
from yfilter.keys import PlainKeyTable

TEXTS = (
    b"<a/>",
    b'<a x="1">hi</a>',
    b'<p:a xmlns:p="urn:p" p:x="1"><b xmlns="urn:d"/><b xmlns="urn:d"/></p:a>',
    b"<!--c--><?q r?><a> t <b/>u<!--d--><?p d?></a><!--e-->",
    b'<a x="&#9;&#10;&quot;&lt;" xmlns:p="urn:p">&#13;&lt;&gt;&amp;<p:b xmlns:p="urn:q"/></a>',
    '<é k="v">ü<b k="v">x</b><b k="v">x</b></é>'.encode(),
    b'<a xmlns="urn:a"><b xmlns=""><c xmlns="urn:a" xml:lang="en"/></b></a>',
)
KNOWN = Dictionary(
    ("p", "urn:p", "zz"),
    (b"1", b"v"),
    Grammar((("", "a"), ("", "b"), ("", "k")), ((), (2,), ()), (7, 1, 1), (0, 7, 1), 6),
)


def columns(stream: ElementStream) -> dict[str, object]:
    return {name: getattr(stream, name) for name in ElementStream.__slots__ if name != "pieces"}


def messages() -> list[ElementStream]:
    rng = Random(3)
    return [*map(parse_text, TEXTS), *(random_message(rng).stream for _ in range(60))]


def test_the_plain_writer_writes_the_same_octets() -> None:
    for stream in messages():
        plain, compiled = plain_writer(stream), subtree_writer(stream)
        assert plain.document() == compiled.document()
        for element in range(len(stream)):
            assert plain.attributes(element) == compiled.attributes(element)
            within = stream.content_within(element)
            inside = plain.inside(element, within.start, within.stop)
            assert inside == compiled.inside(element, within.start, within.stop)
    assert plain_declaration("p", "a&b") == declaration("p", "a&b")


@pytest.mark.parametrize("dictionary", [EMPTY_DICTIONARY, KNOWN, make_dictionary("abxy", "xyz")])
def test_wire_forms_are_the_same_in_both_ways(dictionary: Dictionary) -> None:
    for stream in messages():
        form = encode_dictionary(stream, dictionary)
        assert PLAIN_FORMS.encode_dictionary(stream, dictionary) == form
        read = PLAIN_FORMS.decode_dictionary(form, dictionaries=only(dictionary))
        assert columns(read) == columns(decode_dictionary(form, dictionaries=only(dictionary)))
        assert PLAIN_FORMS.encode_binary(stream) == encode_binary(stream)
        assert columns(PLAIN_FORMS.decode_binary(encode_binary(stream))) == columns(stream)


def test_a_damaged_form_is_an_error_and_nothing_else() -> None:
    rng = Random(5)
    forms = [encode_binary(stream) for stream in messages()]
    refused = 0
    for _ in range(3_000):
        form = bytearray(rng.choice(forms))
        for _ in range(rng.randint(1, 3)):
            form[rng.randrange(len(form))] = rng.randrange(256)
        data = bytes(form[: rng.choice((len(form), rng.randrange(len(form))))])
        try:
            stream = PLAIN_FORMS.decode_binary(data, MessageLimits(expansion_max=4096))
        except DecodeError:
            refused += 1
            continue
        assert columns(stream) == columns(parse_text(plain_writer(stream).document()))
    assert refused > 1_000
    with pytest.raises(DecodeError) as error:
        PLAIN_FORMS.decode_dictionary(encode_dictionary(parse_text(b"<a/>"), KNOWN))
    assert error.value.code == "unknown-dictionary"


def test_a_form_that_says_its_values_again_and_again_is_bounded() -> None:
    text = b"<a>" + b"".join(b"<b k='%s'/>" % (b"x" * 60) for _ in range(5_000)) + b"</a>"
    form = encode_binary(parse_text(text))
    with pytest.raises(DecodeError) as error:
        PLAIN_FORMS.decode_binary(form, MessageLimits(expansion_max=10_000))
    assert error.value.code == "entity-expansion"
    with pytest.raises(DecodeError):
        decode_binary(form, MessageLimits(expansion_max=10_000))


@pytest.mark.parametrize("seed", range(6))
def test_graphs_are_striped_the_same(seed: int) -> None:
    rng = Random(seed)
    closure = TaxonomyClosure(
        Taxonomy(
            {b"http://e/C": (b"http://e/D",)},
            {b"http://e/p": (b"http://e/q",)},
            {b"http://e/a": (b"http://e/C",)},
        )
    )
    for number in range(60):
        data = RandomCase(Random(f"{seed}/{number}")).graph().encode()
        data += b"\n<http://e/x> rdf:_2 _:n ; rdf:_0 1 ; rdf:type _:z ; <urn:1> 'x\\u00e9'@EN ."
        known = closure if rng.random() < 0.5 else None
        syntax = GraphSyntax.TRIG
        plain = plain_stripes(data, FORMATS[syntax], GraphLimits(), None, known)
        compiled = read_graph(data, syntax, closure=known)
        assert plain_writer(plain).document() == plain_writer(compiled).document(), (
            f"{seed}/{number}"
        )


def test_a_document_means_the_same_graph() -> None:
    document = parse_text(
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        b'<e:C rdf:about="http://e/a" e:p="x"><e:q rdf:resource="http://e/b"/>'
        b'<e:r xml:lang="DE">Text</e:r><e:s><rdf:Description e:n="1"/></e:s></e:C></rdf:RDF>'
    )
    plain = plain_stripes(
        plain_writer(document).document(), pyoxigraph.RdfFormat.RDF_XML, GraphLimits(), None, None
    )
    compiled = graph_of_document(document)
    assert sorted(plain_writer(plain).document()) == sorted(plain_writer(compiled).document())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<http://e/a> <http://e/p> <b> .", "relative-iri"),
        ("<http://e/a> :p 1 .", "undeclared-prefix"),
        ('<http://e/a> <http://e/p> "\\u0001" .', "bad-character"),
        ("<http://e/a> <http://e/p> ", "malformed"),
        (" ".join(f"<http://e/{n}> <http://e/p> 1 ." for n in range(9)), "too-many-triples"),
        (f"<http://e/{'x' * 99}> <http://e/p> 1 .", "iri-too-long"),
        (f"<http://e/x> <http://e/p> '{'x' * 99}' .", "literal-too-long"),
        ("<http://e/a> <http://e/p> 1 ; <http://f/p> 1 .", "too-many-namespaces"),
    ],
)
def test_a_graph_beyond_a_bound_is_refused_with_the_same_code(text: str, code: str) -> None:
    limits = GraphLimits(triples_max=8, iri_bytes_max=64, literal_bytes_max=64, namespaces_max=1)
    with pytest.raises(MessageRefused) as refused:
        plain_stripes(text.encode(), FORMATS[GraphSyntax.TURTLE], limits, None, None)
    assert refused.value.code == code
    with pytest.raises(MessageRefused) as refused:
        read_graph(text.encode(), GraphSyntax.TURTLE, limits)
    assert refused.value.code == code


def test_literals_have_the_same_numbers() -> None:
    numbers = (
        "5",
        "-5",
        "+5",
        "05",
        "-0",
        "0",
        "1.50",
        ".5",
        "1e3",
        "INF",
        "x",
        "",
        "1" * 20,
        "256",
    )
    times = ("2024-02-29T12:30:15Z", "2023-02-29T12:30:15Z", "2024-02-29T24:00:00Z")
    others = ("2024-02-29", "2024-02-29T12:30:15.250+01:00", "1969-12-31T23:59:59.5Z")
    for datatype in literal_forms._KINDS:
        kind = literal_forms.value_kind(datatype)
        for text in (*numbers, *times, *others):
            compiled = striping.derived_value(text.encode(), kind)
            assert literal_forms.derived_value(text.encode(), kind) == compiled, (text, datatype)


def test_keys_have_the_same_numbers() -> None:
    rng = Random(1)
    tables = KeyTable(), PlainKeyTable()
    there: dict[int, bytes] = {}
    for number in [*range(1, 40), *rng.sample(range(1, 40), 20)]:
        key = there.pop(number, None)
        for table in tables:
            if key is None:
                table.insert(b"%d" % number, number)
            else:
                table.remove(number)
        if key is None:
            there[number] = b"%d" % number
    for number in range(1, 40):
        found = [table.find(b"%d" % number) for table in tables]
        assert found == [number if number in there else 0] * 2
    for table in tables:
        assert len(table) == len(there)
        assert all(table.key(number) == key for number, key in there.items())


def test_a_name_or_a_value_in_one_tag_again_and_again_is_bounded() -> None:
    attributes = b" ".join(b'a%d="%s"' % (number, b"y" * 60) for number in range(900))
    for text in (
        b"<a %s/>" % attributes,
        b"<a %s/>" % b" ".join(b'%s%d=""' % (b"n" * 900, number) for number in range(900)),
        b"<a %s/>" % b" ".join(b'xmlns:p%d="%s"' % (n, b"u" * 900) for n in range(900)),
    ):
        form = encode_binary(parse_text(text))
        with pytest.raises(DecodeError) as error:
            PLAIN_FORMS.decode_binary(form, MessageLimits(expansion_max=5_000))
        assert error.value.code == "entity-expansion"
