"""RDF/XML: other readers on real and random documents, and what means no graph.

The W3C's tests are with those of all syntaxes (test_w3c_syntax_tests.py).
"""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lxml import etree
from pyoxigraph import RdfFormat, parse

from formats.errors import MessageRefused
from formats.graph.graph_limits import GraphLimits
from formats.graph.iris import resolve
from formats.graph.striping import graph_of_document, is_rdf
from formats.graph.xml_literal import xml_literal
from formats.limits import MessageLimits
from formats.text import parse_text
from tests.formats.graph.support import canonical, canonical_stream
from tests.formats.support import SHARED_DATA

REAL = [
    *sorted(SHARED_DATA.glob("rdf/dcat/*.rdf")),
    *sorted(SHARED_DATA.glob("rdf/grid/*.xml.gz")),
    *sorted(SHARED_DATA.glob("feeds/rss1*")),
    *sorted(SHARED_DATA.glob("feeds/rdf_item*")),
]
BASE = "http://base.example/folder/file"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def graph(document: str | bytes, base: str = BASE, **limits: Any) -> str:
    """The triples of a document."""
    data = document.encode() if isinstance(document, str) else document
    return canonical_stream(graph_of_document(parse_text(data), GraphLimits(**limits), base))


def turtle(text: str) -> str:
    return canonical(parse(text, RdfFormat.TURTLE, base_iri=BASE))


def rdf(body: str, attributes: str = "") -> str:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e/" {attributes}>{body}</rdf:RDF>'


# --- other readers ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_documents_mean_what_they_mean_to_pyoxigraph(path: Path) -> None:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    # Attributes without a prefix, as RSS has them, are refused by pyoxigraph.
    known = data.replace(b" resource=", b" rdf:resource=")
    expected = parse(known, RdfFormat.RDF_XML, base_iri=BASE)
    assert graph(data) == canonical(expected)


def random_document(random: Random) -> str:
    """A document whose nodes and properties are written in all ways that there are."""

    def reference() -> str:
        return random.choice(["#a", "b/c", "../d?q", "http://x/y", "", "/z", "//h/p", "urn:x:y"])

    def lang() -> str:
        return random.choice(["", "", ' xml:lang="en"', ' xml:lang="de-AT"'])

    def base() -> str:
        return random.choice([""] * 5 + [' xml:base="http://o.example/p/q#f"'])

    def attributes() -> str:
        chosen = random.sample(["e:x", "e:y", "rdf:_7"], random.choice([0, 0, 1, 2]))
        return "".join(f' {name}="{random.choice(["1", "a &lt; b", ""])}"' for name in chosen)

    def node(depth: int) -> str:
        name = random.choice(["rdf:Description", "e:T", "rdf:Seq"])
        about = random.choice(
            ["", f' rdf:about="{reference()}"', f' rdf:nodeID="n{random.randrange(3)}"']
        )
        inside = "".join(property_of(depth + 1) for _ in range(random.randrange(4)))
        return f"<{name}{about}{attributes()}{lang()}{base()}>{inside}\n </{name}>"

    def property_of(depth: int) -> str:
        name = random.choice(["e:p", "e:q", "rdf:li", "rdf:value"])
        ways = ["text", "typed", "resource", "nodeID", "attributes", "empty", "literal"]
        if depth < 4:
            ways += ["node", "Resource", "Collection"] * 2
        way = random.choice(ways)
        if way == "text":
            return f"<{name}{lang()}{base()}> a &amp; \n b{random.randrange(3)}</{name}>"
        if way == "typed":
            return f'<{name} rdf:datatype="{reference()}">{random.randrange(9)}</{name}>'
        if way == "resource":
            return f'<{name} rdf:resource="{reference()}"{attributes()}{lang()}/>'
        if way == "nodeID":
            return f'<{name} rdf:nodeID="n{random.randrange(3)}"/>'
        if way == "attributes":
            return f'<{name}{lang()} e:z="{random.randrange(3)}"{attributes()}></{name}>'
        if way == "literal":
            return f'<{name} rdf:parseType="Literal">x&lt;</{name}>'
        if way == "node":
            return f"<{name}{base()}>\n{node(depth)}\n</{name}>"
        if way == "Resource":
            inside = "".join(property_of(depth + 1) for _ in range(random.randrange(3)))
            return f'<{name} rdf:parseType="Resource">{inside}</{name}>'
        if way == "Collection":
            inside = "".join(node(depth) for _ in range(random.randrange(3)))
            return f'<{name} rdf:parseType="Collection">{inside}</{name}>'
        return f"<{name}/>"

    return rdf("\n".join(node(0) for _ in range(random.randint(1, 4))), base())


@pytest.mark.parametrize("seed", range(60))
def test_random_documents_mean_what_they_mean_to_pyoxigraph(seed: int) -> None:
    document = random_document(Random(seed))
    expected = parse(document, RdfFormat.RDF_XML, base_iri=BASE)
    assert graph(document) == canonical(expected), document


@pytest.mark.parametrize("form", ["xml", "pretty-xml"])
@pytest.mark.parametrize("seed", range(10))
def test_what_rdflib_writes_is_read_back(seed: int, form: str) -> None:
    rdflib = pytest.importorskip("rdflib")
    random = Random(seed)
    nodes = [rdflib.URIRef(f"http://e/{n}") for n in range(4)]
    nodes += [rdflib.BNode(f"b{n}") for n in "abc"]
    literals = [
        *(rdflib.Literal("a<b"), rdflib.Literal("x", lang="en"), rdflib.Literal(7)),
        rdflib.Literal(""),
    ]
    written = rdflib.Graph()
    for _ in range(25):
        name = rdflib.URIRef(f"http://e/p{random.randrange(4)}")
        written.add((random.choice(nodes), name, random.choice(nodes + literals)))
    document = written.serialize(format=form)
    if form == "pretty-xml":  # not always what it was: rdflib's reader says what it is
        written = rdflib.Graph().parse(data=document, format="xml")
    assert graph(document) == turtle(written.serialize(format="nt"))


@pytest.mark.parametrize("seed", range(40))
def test_the_content_of_literals_is_canonical_as_lxml_writes_it(seed: int) -> None:
    random = Random(seed)

    def element(depth: int) -> str:
        name = random.choice(["a", "p:a", "q:b"])
        declared = random.choice(["", "", ' xmlns="urn:d"', ' xmlns:p="urn:other"', ' xmlns=""'])
        names = random.sample(["z", "y", "p:y", "q:z", "xml:lang"], random.randrange(3))
        attributes = "".join(f' {n}="&quot;&#9;&lt;&#13;é>"' for n in names)
        inside = "".join(
            element(depth + 1)
            if depth < 4 and random.random() < 0.5
            else random.choice(["t &lt;&gt;&#13;", "<!-- c -->", "<?p i?>", "<?p?>", "\n"])
            for _ in range(random.randrange(4))
        )
        return f"<{name}{declared}{attributes}>{inside}</{name}>"

    document = f'<r xmlns:p="urn:p" xmlns:q="urn:q">{element(0)}</r>'.encode()
    (child,) = etree.fromstring(document)
    expected = etree.tostring(child, method="c14n", exclusive=True, with_comments=True)
    assert xml_literal(parse_text(document), 0, 10_000) == expected


# --- what the recommendation says, and what it leaves open -------------------------------------


@pytest.mark.parametrize(
    ("reference", "iri"),
    [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"), ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y#s", "http://a/b/c/g?y#s"), ("", "http://a/b/c/d;p?q"),
        ("#s", "http://a/b/c/d;p?q#s"), (".", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../..", "http://a/"), ("../../../g", "http://a/g"), ("/../g", "http://a/g"),
        ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http://x/./y", "http://x/./y"),
    ],
)  # fmt: skip
def test_references_are_resolved_as_rfc_3986_says(reference: str, iri: str) -> None:
    assert resolve(b"http://a/b/c/d;p?q", reference.encode()) == iri.encode()


def test_rss_1_0_names_what_it_lists_without_a_prefix() -> None:
    feed = rdf('<e:items><rdf:Seq><rdf:li resource="http://e/1"/></rdf:Seq></e:items>')
    feed = feed.replace("<e:items>", '<e:channel about="http://e/"><e:items>').replace(
        "</e:items>", "</e:items></e:channel>"
    )
    assert graph(feed) == turtle("""
        @prefix e: <http://e/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        <http://e/> a e:channel ; e:items [ a rdf:Seq ; rdf:_1 <http://e/1> ] .""")


def test_a_property_with_an_id_is_spoken_of() -> None:
    document = rdf('<e:T rdf:about="http://s/"><e:p rdf:ID="r" xml:lang="en">x</e:p></e:T>')
    assert graph(document, "http://b/") == turtle("""
        @prefix e: <http://e/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        <http://s/> a e:T ; e:p "x"@en .
        <http://b/#r> a rdf:Statement ; rdf:subject <http://s/> ; rdf:predicate e:p ;
            rdf:object "x"@en .""")


def test_a_base_may_be_relative_to_the_one_around_it() -> None:
    document = rdf('<e:T xml:base="sub/" rdf:about="a"><e:p rdf:resource=""/></e:T>')
    assert graph(document) == turtle("<sub/a> a <http://e/T> ; <http://e/p> <sub/> .")


def test_a_comment_does_not_divide_a_literal_and_white_space_is_no_object() -> None:
    document = rdf('<e:T><e:p>a<!-- c -->b</e:p><e:q rdf:resource="http://o/"> \n</e:q></e:T>')
    assert graph(document) == turtle(
        '[] a <http://e/T> ; <http://e/p> "ab" ; <http://e/q> <http://o/> .'
    )


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("<e:T>x</e:T>", "rdf-syntax", "/rdf:RDF/e:T: text that is not white space"),
        ("<e:T/><e:T><e:p>x<e:T/></e:p></e:T>", "rdf-syntax", "/rdf:RDF/e:T[2]/e:p: text"),
        ("<e:T><e:p><e:T/><e:T/></e:p></e:T>", "rdf-syntax", "/e:p/e:T[2]: a second node"),
        ("<e:T><e:p rdf:resource='http://o/'>x</e:p></e:T>", "rdf-syntax", "text"),
        ("<e:T><e:p rdf:resource='http://o/'><e:T/></e:p></e:T>", "rdf-syntax", "rdf:resource"),
        ("<e:T><e:p rdf:resource='a:' rdf:nodeID='a'/></e:T>", "rdf-syntax", "both"),
        ("<e:T><e:p rdf:datatype='a:' e:q='x'/></e:T>", "rdf-syntax", "rdf:datatype"),
        ("<e:T><e:p rdf:parseType='Resource' e:q='x'/></e:T>", "rdf-syntax", "e:q cannot stand"),
        ("<e:T rdf:about='a:' rdf:ID='a'/>", "rdf-syntax", "two of"),
        ("<e:T rdf:about='a:' about='b:'/>", "rdf-syntax", "with a prefix and without"),
        ("<e:T rdf:resource='a:'/>", "rdf-syntax", "of a property on a node"),
        ("<rdf:li/>", "rdf-syntax", "is named rdf:li, a name of RDF/XML itself"),
        ("<e:T><rdf:Description/></e:T>", "rdf-syntax", "is named rdf:Description"),
        ("<T/>", "rdf-syntax", "is named T, in no namespace"),
        ("<e:T x='y'/>", "rdf-syntax", "an attribute is named x"),
        ("<e:T rdf:bagID='y'/>", "rdf-syntax", "an attribute is named rdf:bagID"),
        ("<e:T rdf:nodeID='a b'/>", "rdf-syntax", "'a b' is not a name"),
        ("<e:T rdf:ID='a'/><e:T rdf:ID='a'/>", "duplicate-id", "/e:T[2]: a second rdf:ID a"),
        ("<e:T rdf:about='x'/>", "relative-iri", "'x', and nothing it is relative to"),
        ("<e:T rdf:ID='a'/>", "relative-iri", "'#a'"),
        ("<e:T rdf:about='http://a/ b'/>", "bad-iri", "'http://a/ b' is not an IRI"),
        ("<e:T xml:base='x y'/>", "bad-iri", "y' is not a base"),
        ("<f:T xmlns:f='rel'/>", "bad-iri", "'relT', of the name f:T"),
        ("<e:T xml:lang='en_US'/>", "bad-language", "'en_US' is not a language tag"),
    ],
)
def test_what_means_no_graph_is_refused_with_its_place(body: str, code: str, said: str) -> None:
    with pytest.raises(MessageRefused) as refused:
        graph(rdf(body), base="" if code == "relative-iri" else BASE)
    assert refused.value.code == code
    assert said in refused.value.reason


def test_only_an_element_of_the_namespace_says_that_it_is_rdf() -> None:
    assert is_rdf(parse_text(rdf("").encode()))
    assert not is_rdf(parse_text(b"<RDF/>"))
    assert not is_rdf(parse_text(b'<r:RDF xmlns:r="urn:r"/>'))


# --- bounds -----------------------------------------------------------------------------------


def test_what_a_small_document_makes_much_of_is_bounded() -> None:
    """A long base for many references, and a literal that repeats its namespaces."""
    base = "http://e/" + "x" * 4_000
    many = "".join(f"<e:p rdf:resource='#{n}'/>" for n in range(1_000))
    message = MessageLimits(expansion_max=1_000_000)
    with pytest.raises(MessageRefused) as refused:
        graph(rdf(f"<e:T>{many}</e:T>"), base, message=message)
    assert refused.value.code == "entity-expansion"
    literal = f"<e:p rdf:parseType='Literal' xmlns:n='urn:{'x' * 900}'>{'<n:x/>' * 200}</e:p>"
    with pytest.raises(MessageRefused) as refused:
        graph(rdf(f"<e:T>{literal}</e:T>"), literal_bytes_max=100_000)
    assert refused.value.code == "literal-too-long"


def test_deep_documents_are_walked_without_recursion() -> None:
    depth = 120
    document = rdf("<e:T><e:p>" * depth + "</e:p></e:T>" * depth)
    assert len(graph(document).splitlines()) == 2 * depth
