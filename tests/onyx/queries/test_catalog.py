"""Catalogs: of files in any syntax of RDF, of a cache with all else stopped, and their faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyoxigraph
import pytest

from demo.queries import figure1
from formats.errors import MessageRefused
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import FORMATS
from onyx.errors import UnreadableInput
from onyx.metadata import MetadataCache, MetadataProvider
from onyx.queries import Catalog
from onyx.queries.catalog import VOCABULARY
from registration.queries.compatibility import Compatibility
from registration.queries.providers import CLIENT, NAMESPACE, Market

TURTLE = "text/turtle"
E = "http://objectglobe.example/figure1#"
HEAD = f"@prefix q: <{NAMESPACE}> . @prefix : <{E}> .\n"
SMALL = """
:A a q:CycleProvider, q:DataProvider ; q:name "A" ; q:serverHost "h" ; q:serverPort 7 .
:R a q:Relation ; q:name "R" ; q:provider :A ; q:readAt :A ; q:format "csv" ;
    q:location "/r" ; q:schema "id INT, name STRING" .
:F a q:FunctionProvider ; q:name "F" .
:f a q:Function ; q:name "f" ; q:provider :F ; q:kind "scalar" ; q:signature "(a INT) -> INT" .
"""


@pytest.fixture(scope="module")
def catalog_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return figure1.make(tmp_path_factory.mktemp("figure1"), rows=20)


def said(folder: Path, turtle: str, name: str = "market.ttl") -> Path:
    file = folder / name
    file.write_text(HEAD + turtle)
    return file


def market_of(folder: Path, turtle: str) -> Market:
    return Catalog.read(said(folder, turtle)).market


def refusal(folder: Path, turtle: str) -> MessageRefused:
    with pytest.raises(MessageRefused) as refused:
        market_of(folder, turtle)
    return refused.value


@contextmanager
def cache_of(folder: Path, *turtles: str) -> Iterator[MetadataCache]:
    """A cache of all that documents say, whose provider is gone."""
    with MetadataProvider(folder / "provider") as provider:
        provider.put_schema(VOCABULARY.read_bytes(), TURTLE)
        for number, turtle in enumerate(turtles):
            provider.register({f"http://e/{number}": (HEAD + turtle).encode()}, TURTLE)
        provider.add_rule("L1", "search Entry e register e")
        messages = provider.changes("L1")
    with MetadataCache(folder / "l1.onyx", "L1") as cache:
        for message in messages:
            cache.apply(message)
        yield cache


# --- files ------------------------------------------------------------------------------------


def test_figure_1_is_read(catalog_file: Path) -> None:
    market = Catalog.read(catalog_file).market
    assert [each.name for each in market.sites] == ["A", "B", "client"]
    assert market.client.uri == E + "client"
    wrapped, nested = market.relation("A.S"), market.relation("B.T")
    assert wrapped is not None
    assert nested is not None
    assert wrapped.wrapper == E + "wrap_s"
    assert [(each.name, each.type) for each in wrapped.columns] == [
        ("id", "int"),
        ("name", "string"),
    ]
    assert nested.columns[3].type == "array<struct<kind:string,weight:double>>"
    assert (nested.columns[1].distinct, nested.rows) == (20, 40)
    assert len(market.links) == 4
    assert market.functions_named("THUMBNAIL")[0].price_per_row == 1e-7
    bits = Compatibility(market, "ann")
    assert bits.read_mask(nested.uri) == 0b010
    assert bits.denials() == ()


@pytest.mark.parametrize("syntax", list(GraphSyntax))
def test_each_syntax_gives_the_same_market(
    catalog_file: Path, tmp_path: Path, syntax: GraphSyntax
) -> None:
    quads = pyoxigraph.parse(catalog_file.read_bytes(), pyoxigraph.RdfFormat.TURTLE)
    written = pyoxigraph.serialize(quads, format=FORMATS[syntax], prefixes={"q": NAMESPACE})
    assert written is not None
    endings = {GraphSyntax.JSON_LD: "jsonld", GraphSyntax.RDF_XML: "rdf"}
    ending = endings.get(syntax) or syntax.name.lower().replace("n_triples", "nt")
    file = tmp_path / f"figure1.{ending.replace('turtle', 'ttl').replace('n_quads', 'nq')}"
    file.write_bytes(written)
    assert Catalog.read(file).market == Catalog.read(catalog_file).market


def test_a_later_file_says_other_statistics(tmp_path: Path) -> None:
    one = said(tmp_path, SMALL + ":R q:rows 10 ; q:column [ q:name 'id' ; q:distinct 3 ] .")
    mine = said(tmp_path, ":R q:rows 5000 ; q:column [ q:name 'ID' ; q:nulls 0.5 ] .", "mine.ttl")
    relation = Catalog.read(one, mine).market.relation("A.R")
    assert relation is not None
    assert relation.rows == 5000
    assert (relation.columns[0].distinct, relation.columns[0].nulls) == (3, 0.5)
    other = Catalog.read(mine, one).market.relation("A.R")
    assert other is not None
    assert other.rows == 10
    last = said(tmp_path, ":R q:column [ q:name 'id' ; q:distinct 4 ] .", "a.ttl")
    relation = Catalog.read(one, mine, last).market.relation("A.R")
    assert relation is not None
    assert relation.columns[0].distinct == 4


def test_relative_names_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    text = SMALL.replace(":A ", "<#A> ").replace("q:readAt :A", "q:readAt <#A>")
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    markets = [market_of(folder, text) for folder in folders]
    assert markets[0] == markets[1]
    assert list(markets[0].data_providers) == ["file:///market.ttl#A"]


def test_blank_nodes_of_files_of_one_name_are_others(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = said(tmp_path, SMALL + "[] a q:Link ; q:from :A ; q:to <urn:onyx:query:client> .")
    two = said(tmp_path / "other", "[] a q:Link ; q:from <urn:onyx:query:client> ; q:to :A .")
    assert {(each.source, each.target) for each in Catalog.read(one, two).market.links} == {
        (E + "A", CLIENT),
        (CLIENT, E + "A"),
    }


def test_formats_have_their_usual_columns(tmp_path: Path) -> None:
    more = SMALL.replace('"csv"', '"archive"').replace('; q:schema "id INT, name STRING"', "")
    relation = market_of(tmp_path, more).relation("A.R")
    assert relation is not None
    assert [each.name for each in relation.columns] == [
        *("source", "number", "time", "media_type", "message")
    ]
    more = more.replace('"archive"', '"files"')
    relation = market_of(tmp_path, more).relation("A.R")
    assert relation is not None
    assert [each.type for each in relation.columns] == ["string", "binary"]


@pytest.mark.parametrize(
    ("was", "now", "code", "reason", "hint"),
    [
        ("q:format", "q:fromat", "unknown-property", "no property", "format"),
        ("a q:Relation", "a q:Relatoin", "unknown-class", "no class", "Relation"),
        ('"csv"', '"cvs"', "unknown-word", "format 'cvs' is none of parquet, csv", "csv"),
        ("id INT", "id INTT", "bad-schema", "schema, character 4", "int"),
        ("q:provider :A", "q:provider :B", "no-such-resource", "not in the catalog", "#A"),
        ("q:readAt :A", "q:readAt :F", "wrong-range", "readAt refers to", ""),
        ("q:readAt :A ;", "", "missing", "it has no readAt", ""),
        ("(a INT) -> INT", "a INT -> INT", "bad-signature", "expected", ""),
        ('"scalar"', '"table"', "bad-signature", "a table function does not give INT", ""),
        ("q:serverPort 7", "q:serverPort 70000", "bad-number", "from 0 to 65535", ""),
        ('q:serverHost "h" ;', "", "missing", "no serverHost", ""),
        ('q:name "R"', 'q:name "A.R"', "bad-name", "is no name without", ""),
        (":f a", ":f q:digest 'md5:1' ; a", "bad-digest", "sha256", ""),
        (":R a", ":R q:option 'header' ; a", "bad-option", "KEY=VALUE", ""),
        (":R a", ":R q:rows -1 ; a", "bad-number", "rows -1 is no number", ""),
        (":R a", ":R q:wrapper :f ; a", "bad-wrapper", "a wrapper is a table function", ""),
        (":R a", ":R q:column [ q:name 'nam' ] ; a", "unknown-column", "no column nam", "name"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_is_near(
    tmp_path: Path, was: str, now: str, code: str, reason: str, hint: str
) -> None:
    text = SMALL.replace(was, now, 1)
    assert text != SMALL
    refused = refusal(tmp_path, text)
    assert refused.code == code
    assert reason in refused.reason
    assert hint in refused.hint
    assert "market.ttl" in refused.fault.where


def test_two_relations_of_one_name_are_refused(tmp_path: Path) -> None:
    again = SMALL.partition("\n:F a")[0].replace(":R a", ":R2 a")
    assert refusal(tmp_path, SMALL + again).code == "ambiguous-name"


RULES = """
:staff a q:Group ; q:name "staff" ; q:member "ann" .
:p a q:Permission ; q:subject "user/ann" ; q:right "read" ; q:resource :R .
:w a q:Flow ; q:what :R ; q:to :A .
"""


@pytest.mark.parametrize(
    ("was", "now", "code", "hint"),
    [
        ('"user/ann"', '"ann"', "bad-subject", ""),
        ('"user/ann"', '"group/staf"', "bad-subject", "group/staff"),
        ('"read"', '"reed"', "unknown-word", "read"),
        ('"read"', '"use"', "wrong-right", ""),
        ("q:resource :R", "q:resource :RR", "no-such-resource", "#R"),
        ("q:what :R", "q:what :p", "wrong-flow", ""),
        ("q:to :A", 'q:toGroup "staff"', "unknown-word", ""),
        ("q:to :A", 'q:to :A ; q:only "agregates"', "unknown-word", "aggregates"),
    ],
)
def test_a_rule_that_is_not_clear_is_refused_and_forbids(
    tmp_path: Path, was: str, now: str, code: str, hint: str
) -> None:
    text = SMALL + RULES.replace(was, now, 1)
    refused = refusal(tmp_path, text)
    assert refused.code == code
    assert hint in refused.hint
    with cache_of(tmp_path, text) as cache:
        catalog = Catalog.of(cache)
        assert [each.code for each in catalog.faults()] == [code]
        assert len(catalog.market.permissions) == len(catalog.market.flows) == 1
        bits = Compatibility(catalog.market, "bob")
        clear = Compatibility(Catalog.read(said(tmp_path, SMALL)).market, "bob")
        assert bits.read_mask(E + "R") <= clear.read_mask(E + "R")
        if code == "unknown-word" and "reed" in now:
            assert bits.read_mask(E + "R") == 0


def test_a_fault_in_rdf_xml_has_its_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "market.rdf"
    file.write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"\n'
        f'  xmlns:q="{NAMESPACE}">\n'
        '<q:CycleProvider rdf:ID="host" q:name="A">\n'
        "  <q:serverHost>pirates.uni-passau.de</q:serverHost>\n"
        "  <q:serverPort>58740000</q:serverPort>\n"
        "  <q:serverInformation>\n"
        '    <q:ServerInformation rdf:ID="info" q:memory="92" q:cpu="600"/>\n'
        "  </q:serverInformation>\n"
        "</q:CycleProvider></rdf:RDF>"
    )
    with pytest.raises(MessageRefused) as refused:
        Catalog.read(file)
    assert (refused.value.code, refused.value.line, refused.value.column) == ("bad-number", 5, 3)
    file.write_text(file.read_text().replace("58740000", "5874"))
    (site, _client) = Catalog.read(file).market.sites
    assert (site.memory_megabytes, site.cpu_megahertz, site.port) == (92, 600, 5874)


def test_files_that_are_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="cannot be read"):
        Catalog.read(tmp_path / "nothing.ttl")
    with pytest.raises(UnreadableInput, match="no catalog by its name"):
        Catalog.read(tmp_path / "market.txt")


# --- a cache ----------------------------------------------------------------------------------


def test_a_cache_answers_alone(tmp_path: Path, catalog_file: Path) -> None:
    turtle = catalog_file.read_text()
    with cache_of(tmp_path, turtle) as cache:
        found = Catalog.of(cache).market
        of_file = Catalog.read(catalog_file).market
        assert found.relation("B.T") == of_file.relation("B.T")
        assert found.sites == of_file.sites
        assert set(found.links) == set(of_file.links)


def test_nobodys_fault_stops_others(tmp_path: Path) -> None:
    bad = SMALL.replace(":R a", ":R2 a").replace('"R"', '"R2"').replace("id INT", "id INTT")
    with cache_of(tmp_path, SMALL, bad) as cache:
        catalog = Catalog.of(cache)
        assert list(catalog.market.relations) == [E + "R"]
        (fault,) = catalog.faults()
        assert fault.code == "bad-schema"
        assert fault.where == f"{E}R2 schema"
        with pytest.raises(MessageRefused):
            catalog.checked()


def test_a_catalog_shows_the_cache_as_it_is_now(tmp_path: Path) -> None:
    with cache_of(tmp_path, SMALL) as cache:
        catalog = Catalog.of(cache)
        before = catalog.market
        assert catalog.market is before
        mine = HEAD + SMALL.replace(":R a", ":mine a").replace('"R"', '"mine"')
        cache.register_local({"http://e/mine": mine.encode()}, TURTLE)
        assert catalog.market.relation("A.mine") is not None
        assert catalog.market_for("SELECT * FROM A.mine").relation("A.mine") is not None


def large_market(random: Random, relations: int) -> str:
    """Providers P0, P1 … with ten relations each, R0 to R9, functions, rules and a saved query."""
    lines = []
    for number in range(relations):
        of = number // 10
        if number % 10 == 0:
            lines.append(
                f':P{of} a q:CycleProvider, q:DataProvider ; q:name "P{of}" ;'
                f' q:serverHost "h" ; q:serverPort 7 .\n'
                f':F{of} a q:FunctionProvider ; q:name "F{of}" .\n'
                f':f{of} a q:Function ; q:name "fun{of % 7}" ; q:provider :F{of} ;'
                ' q:kind "scalar" ; q:signature "(a INT) -> INT" .\n'
            )
        lines.append(
            f':r{number} a q:Relation ; q:name "R{number % 10}" ; q:provider :P{of} ;'
            f' q:readAt :P{of}, :P{random.randint(0, of)} ; q:format "csv" ; q:location "/r" ;'
            f' q:schema "id INT, name STRING" ; q:rows {number} ;'
            f' q:column [ q:name "id" ; q:distinct {number} ] .\n'
        )
        if random.random() < 0.2:
            lines.append(
                f':p{number} a q:Permission ; q:subject "user/ann" ; q:right "read" ;'
                f" q:resource :{random.choice((f'r{number}', f'P{of}'))} .\n"
                f":w{number} a q:Flow ; q:what :r{number} ; q:to :P{of} .\n"
            )
    lines.append(
        ':Q a q:Relation ; q:name "saved" ; q:provider :P0 ; q:readAt :P0 ; q:format "query" ;'
        ' q:location "SELECT FUN1(id) FROM P1.R3" .\n'
    )
    return "".join(lines)


@pytest.mark.parametrize("seed", range(3))
def test_a_lookup_finds_what_a_query_names_and_the_rules_about_it(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    print(f"seed {seed}")
    mine = said(tmp_path, ":r12 q:rows 77 .")
    with cache_of(tmp_path, large_market(random, 100)) as cache:
        catalog = Catalog.of(cache, mine)
        assert catalog.faults() == []
        whole = catalog.market
        for _ in range(10):
            names = [f"P{random.randint(0, 9)}.R{random.randint(0, 9)}" for _ in range(3)]
            sql = f"SELECT fun2(x), `Fun3`(y) FROM {names[0]}, `P1`.`R2`, {', '.join(names[1:])}"
            found = catalog.market_for(sql)
            assert len(found.relations) < len(whole.relations)
            for name in (*names, "P1.R2"):
                assert found.relation(name) == whole.relation(name) is not None
            for called in ("fun2", "fun3"):
                assert found.functions_named(called) == whole.functions_named(called) != ()
            for user in ("", "ann", "bob"):
                some, all_of_it = Compatibility(found, user), Compatibility(whole, user)
                assert some.sites == all_of_it.sites
                for uri in found.relations:
                    assert some.read_mask(uri) == all_of_it.read_mask(uri)
                    assert some.flow_mask(uri) == all_of_it.flow_mask(uri)
                    assert some.why(uri) == all_of_it.why(uri)
        saved = catalog.market_for("SELECT * FROM P0.saved")
        assert saved.relation("P1.R3") is not None
        assert saved.functions_named("fun1")
        own = catalog.market_for("select * from P1.R2").relation("P1.R2")
        assert own is not None
        assert own.rows == 77


def test_the_report_of_a_function_comes_along(tmp_path: Path) -> None:
    text = SMALL + ':f q:certificate :v . :v a q:ValidationReport ; q:report "{}" .'
    assert market_of(tmp_path, text).reports == {E + "v": "{}"}
    with cache_of(tmp_path, text) as cache:
        market = Catalog.of(cache).market_for("SELECT f(1)")
        (function,) = market.functions_named("f")
        assert market.reports[function.certificate or ""] == "{}"
