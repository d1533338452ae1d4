"""A repository's cache: what messages make of it, its garbage, local metadata, and its answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from formats.errors import MessageRefused, Refusal
from onyx.errors import StoreUnusable
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata.change_messages import MessageMissing, read_change
from tests.onyx.metadata.paper import (
    BASE,
    EXAMPLE_1,
    FAST,
    HOST,
    INFO,
    NS,
    PREFIXES,
    SCHEMA,
    TURTLE,
    WEAK,
    figure_1,
    put,
    took,
)
from yfilter.errors import ProfileRefused

ALL = "search CycleProvider c register c"
TAGGED = "search CycleProvider c register c where c.tag? = 'x'"


class Pair:
    """A provider, and the cache of L1, which is given its messages."""

    def __init__(self, path: Path) -> None:
        self.provider = MetadataProvider(path / "provider")
        self.provider.put_schema(SCHEMA.encode(), TURTLE)
        self.cache = MetadataCache(path / "l1.onyx", "L1")

    def messages(self) -> list[bytes]:
        return self.provider.changes("L1", self.cache.number)

    def follow(self) -> set[str]:
        """Gives the local parts of what is cached then."""
        for message in self.messages():
            assert self.cache.apply(message)
        assert self.cache.revision <= self.provider.revision
        return {uri.removeprefix(BASE) for uri in self.cache.resources()}

    def local(self, text: str, name: str = "local") -> None:
        self.cache.register_local({f"{BASE}{name}": (PREFIXES + text).encode()}, TURTLE)

    def ask(self, text: str) -> list[str]:
        return [uri.removeprefix(BASE) for (uri,) in self.cache.query(text).rows]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    of = Pair(tmp_path)
    yield of
    of.cache.close()
    of.provider.close()


# -- what is cached


def test_figure_1_is_cached_with_its_server(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", EXAMPLE_1)
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}
    assert pair.cache.resources()[INFO] == (
        f'<{INFO}> <{NS}cpu> "600"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f'<{INFO}> <{NS}memory> "92"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f"<{INFO}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}ServerInformation> .\n"
    )
    figure_1(pair.provider, 128)
    pair.follow()
    assert '"128"' in pair.cache.resources()[INFO]
    figure_1(pair.provider, 32)
    assert pair.follow() == set()


def test_what_only_a_weak_reference_leads_to_is_not_cached(pair: Pair) -> None:
    pair.provider.put_schema(WEAK.encode(), TURTLE)
    pair.provider.add_rule("L1", EXAMPLE_1)
    figure_1(pair.provider)
    assert pair.follow() == {"doc.rdf#host"}
    assert f"<{INFO}>" in pair.cache.resources()[HOST]


def test_garbage_goes_when_the_last_reference_to_it_does(pair: Pair) -> None:
    rule = pair.provider.add_rule("L1", TAGGED)
    server = ":serverInformation <s#i> ."
    put(
        pair.provider,
        s="<#i> a :ServerInformation ; :memory 1 .",
        a=f"<#h> a :CycleProvider ; :tag 'x' ; {server}",
        b=f"<#h> a :CycleProvider ; :tag 'x' ; {server}",
    )
    assert pair.follow() == {"a#h", "b#h", "s#i"}
    put(pair.provider, a="<#h> a :CycleProvider ; :tag 'x' .")
    assert pair.follow() == {"a#h", "b#h", "s#i"}
    put(pair.provider, b=f"<#h> a :CycleProvider ; :tag 'y' ; {server}")
    assert pair.follow() == {"a#h"}
    put(pair.provider, a=f"<#h> a :CycleProvider ; :tag 'x' ; {server}")
    assert pair.follow() == {"a#h", "s#i"}
    took(pair.provider, "s")
    assert pair.follow() == {"a#h"}
    pair.provider.remove_rule("L1", rule.id)
    assert pair.follow() == set()
    assert pair.cache.rules() == []


def test_circles_of_strong_references_are_garbage(pair: Pair) -> None:
    circle = "<#1> a :CycleProvider ; :partner <#2> . <#2> a :CycleProvider ; :partner <#3> ."
    circle += "<#3> a :CycleProvider ; :partner <#1>"
    pair.provider.add_rule("L1", TAGGED)
    put(pair.provider, a=f"{circle} .", b="<#h> a :CycleProvider ; :tag 'x' ; :partner <a#2> .")
    assert pair.follow() == {"b#h", "a#1", "a#2", "a#3"}
    put(pair.provider, b="<#h> a :CycleProvider ; :tag 'x' .")
    assert pair.follow() == {"b#h"}
    put(pair.provider, a=f"{circle} ; :tag 'x' .")
    assert pair.follow() == {"b#h", "a#1", "a#2", "a#3"}
    put(pair.provider, a=f"{circle} .")
    assert pair.follow() == {"b#h"}


def test_rules_are_told_and_replaced(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rules("L1", ((FAST, "fast"), ("search fast f register f", "")))
    pair.provider.add_rule("L2", ALL)
    pair.follow()
    assert [(each.id, each.name) for each in pair.cache.rules()] == [("r1", "fast"), ("r2", "")]
    slow = "search CycleProvider c register c where c.serverInformation.memory < 64"
    pair.provider.add_rule("L1", slow, "fast")
    assert pair.follow() == set()
    assert [each.text for each in pair.cache.rules()] == [slow, "search fast f register f"]
    assert pair.ask("search fast f register f") == []


# -- local metadata


def test_local_metadata_is_asked_and_never_sent(pair: Pair, tmp_path: Path) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", ALL)
    pair.follow()
    pair.local(
        f"<#h> a :CycleProvider ; :serverHost 'secret' ; :near <{HOST}> . <{HOST}> :tag 'ours' ."
    )
    assert pair.ask(ALL) == ["doc.rdf#host", "local#h"]
    assert pair.ask("search CycleProvider c register c where c.near?.tag? = 'ours'") == ["local#h"]
    assert {*pair.cache.resources()} == {HOST, INFO}
    assert "ours" not in pair.cache.resources()[HOST]
    figure_1(pair.provider, 128)
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}
    assert pair.ask("search CycleProvider c register c where c.tag? = 'ours'") == ["doc.rdf#host"]
    for message in pair.provider.changes("L1"):
        assert b"secret" not in message and b"ours" not in message and b"local" not in message
    for each in (tmp_path / "provider").iterdir():
        assert b"secret" not in each.read_bytes()
    took(pair.provider, "doc.rdf")
    pair.follow()
    assert pair.ask(ALL) == ["local#h"]
    pair.local("<#g> a :CycleProvider .")
    assert pair.ask(ALL) == ["local#g"]
    pair.local("")
    assert pair.ask(ALL) == []


def test_local_references_do_not_keep_what_the_provider_said(pair: Pair) -> None:
    """It would never be told of again."""
    pair.provider.add_rule("L1", TAGGED)
    put(
        pair.provider,
        a="<#1> a :CycleProvider ; :tag 'x' ; :partner <#2> . <#2> a :CycleProvider .",
    )
    pair.follow()
    pair.local(f"<{BASE}a#1> :partner <{BASE}a#2> .")
    put(pair.provider, a="<#1> a :CycleProvider ; :tag 'x' . <#2> a :CycleProvider .")
    assert pair.follow() == {"a#1"}


def test_local_metadata_that_does_not_conform_is_refused(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", ALL)
    pair.follow()
    pair.local("<#h> a :CycleProvider .")
    for text, word in (
        (f"<{HOST}> :serverPort 1 .", "several-values"),
        (f"<{HOST}> :serverPrt 1 .", "unknown-property"),
        (f"<{INFO}> :serverPort 1 .", "wrong-class"),
    ):
        with pytest.raises(MessageRefused) as caught:
            pair.local(text)
        assert caught.value.code == word
        assert pair.ask(ALL) == ["doc.rdf#host", "local#h"]
    with pytest.raises(Refusal, match="is no syntax of RDF"):
        pair.cache.register_local({}, "text/plain")


# -- messages


def test_a_gap_shows_at_once_and_changes_nothing(pair: Pair) -> None:
    pair.provider.add_rule("L1", FAST)
    figure_1(pair.provider)
    figure_1(pair.provider, 128)
    first, *others = pair.messages()
    with pytest.raises(MessageMissing, match="message 1 has not come; the last was 0"):
        pair.cache.apply(others[0])
    assert pair.cache.number == pair.cache.revision == 0
    assert pair.cache.apply(first)
    with pytest.raises(MessageMissing):
        pair.cache.apply(others[-1])
    for message in others:
        assert pair.cache.apply(message)
    resources, number = pair.cache.resources(), pair.cache.number
    for message in (first, *others):
        assert not pair.cache.apply(message)
    assert (pair.cache.resources(), pair.cache.number) == (resources, number)


def test_messages_that_are_not_for_it(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L2", ALL)
    pair.provider.add_rule("L1", ALL)
    for message in pair.provider.changes("L2"):
        with pytest.raises(Refusal, match="is not for 'L1'"):
            pair.cache.apply(message)
    for data in (b"<change/>", b"what", b'<change xmlns="urn:onyx:metadata:1"/>'):
        with pytest.raises(MessageRefused):
            pair.cache.apply(data)
    assert pair.cache.number == 0
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}


def test_a_message_that_cannot_be_carried_out_changes_nothing(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", ALL)
    *before, last = pair.messages()
    for message in before:
        pair.cache.apply(message)
    broken = msgspec.structs.replace(read_change(last), triples="<a> <b> .")
    number = pair.cache.number
    with pytest.raises(MessageRefused):
        pair.cache.apply(broken.to_bytes())
    assert (pair.cache.number, pair.cache.revision) == (number, 0)
    assert pair.cache.apply(last)
    assert {*pair.cache.resources()} == {HOST, INFO}


def test_a_revision_of_several_messages_is_applied_whole(pair: Pair, tmp_path: Path) -> None:
    pair.provider.add_rule("L1", ALL)
    pair.follow()
    text = "x" * 3_000
    many = "".join(f"<#{each}> a :CycleProvider ; :tag '{text}' ." for each in range(200))
    put(pair.provider, many=many)
    messages = pair.messages()
    assert len(messages) > 2
    revision = pair.cache.revision
    for message in messages[:-1]:
        assert pair.cache.apply(message)
        assert pair.cache.resources() == {}
        assert pair.ask(ALL) == []
        assert pair.cache.revision == revision
    pair.cache.close()
    pair.cache = MetadataCache(tmp_path / "l1.onyx", "L1")  # what is pending is kept
    assert pair.cache.apply(messages[-1])
    assert len(pair.cache.resources()) == len(pair.ask(ALL)) == 200
    assert pair.cache.revision == pair.provider.revision


def test_the_same_number_of_another_history_is_a_gap(pair: Pair, tmp_path: Path) -> None:
    """As from a provider whose rows were put back, when it has gone on."""
    other = Pair(tmp_path / "other")
    for of in (pair, other):
        of.provider.add_rule("L1", FAST)
    pair.follow()
    figure_1(other.provider)
    (message,) = other.provider.changes("L1", pair.cache.number)
    with pytest.raises(MessageMissing, match="of others"):
        pair.cache.apply(message)
    pair.cache.replace(other.provider.whole("L1").messages)
    assert pair.cache.digest == other.provider.progress("L1").digest
    figure_1(other.provider, 100)
    (message,) = other.provider.changes("L1", pair.cache.number)
    assert pair.cache.apply(message)
    other.cache.close()
    other.provider.close()


def test_the_whole_replaces_what_there_was(pair: Pair) -> None:
    provider, cache = pair.provider, pair.cache
    figure_1(provider)
    provider.add_rule("L1", TAGGED, "tagged")
    put(provider, a="<#h> a :CycleProvider ; :tag 'x' .", b="<#h> a :CycleProvider ; :tag 'x' .")
    pair.follow()
    pair.local(f"<#h> a :CycleProvider . <{BASE}a#h> :near <#h> .")
    took(provider, "a")
    provider.add_rule("L1", FAST, "fast")
    provider.add_rule("L1", "search fast f register f")
    provider.published(provider.progress("L1").number)
    assert pair.messages() == []
    whole = provider.whole("L1").messages
    before = cache.resources(), cache.rules(), cache.number, cache.revision
    broken = msgspec.structs.replace(read_change(whole[-1]), triples="<a> <b> .").to_bytes()
    with pytest.raises(MessageRefused):
        cache.replace([*whole[:-1], broken])
    assert (cache.resources(), cache.rules(), cache.number, cache.revision) == before
    cache.replace(whole)
    assert {*cache.resources()} == {f"{BASE}b#h", HOST, INFO}
    assert pair.ask("search fast f register f") == ["doc.rdf#host"]
    assert pair.ask("search CycleProvider c, CycleProvider d register c where d.near? = c") == []
    assert cache.revision == provider.revision
    for rule in ("r3", "r2", "r1"):
        provider.remove_rule("L1", rule)
    cache.replace(provider.whole("L1").messages)
    assert (cache.resources(), cache.rules()) == ({}, [])
    assert not cache.query(ALL).complete
    with pytest.raises(ProfileRefused):
        pair.ask("search fast f register f")
    provider.add_rule("L1", FAST)
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}


def test_a_new_schema_at_a_cache(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", "search Thing t register t where t.serverPort = 5874")
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}
    pair.local("<#h> a :CycleProvider .")
    other = WEAK.replace(":Thing a", ":Machine a rdfs:Class . :Thing rdfs:subClassOf :Machine ; a")
    pair.provider.put_schema(other.encode(), TURTLE)
    assert pair.follow() == {"doc.rdf#host"}  # nothing strong leads to the server now
    assert pair.ask("search Machine m register m") == ["doc.rdf#host", "local#h"]
    assert pair.cache.schema.classes == pair.provider.schema.classes
    pair.provider.put_schema(SCHEMA.encode(), TURTLE, is_open=True)
    assert pair.follow() == {"doc.rdf#host", "doc.rdf#info"}
    with pytest.raises(ProfileRefused):
        pair.ask("search Machine m register m")
    assert pair.cache.schema.is_open
    assert pair.ask("search <urn:x> m register m") == []


# -- files


def test_a_file_of_another_repository(pair: Pair, tmp_path: Path) -> None:
    pair.cache.close()
    with pytest.raises(Refusal, match="it is of repository 'L1', not 'L2'"):
        MetadataCache(tmp_path / "l1.onyx", "L2")
    pair.cache = MetadataCache(tmp_path / "l1.onyx", "L1")


def test_a_file_that_is_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "l1.onyx"
    path.write_bytes(b"what" * 2_000)
    with pytest.raises(StoreUnusable):
        MetadataCache(path, "L1")
    with pytest.raises(StoreUnusable):
        MetadataCache(tmp_path / "no" / "l1.onyx", "L1")


def test_a_cache_answers_alone(pair: Pair, tmp_path: Path) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", EXAMPLE_1)
    pair.follow()
    revision, time = pair.provider.revision, pair.cache.time
    pair.cache.close()
    pair.provider.close()
    with MetadataCache(tmp_path / "l1.onyx", "L1") as cache:
        answer = cache.query(EXAMPLE_1)
        assert (answer.rows, answer.revision, answer.time) == ([(HOST,)], revision, time)
        assert answer.complete and time > 1_700_000_000


# -- queries


def test_nothing_is_answered_before_the_first_message(pair: Pair) -> None:
    with pytest.raises(Refusal, match="has not sent its schema yet"):
        pair.cache.query(ALL)
    assert pair.cache.resources() == {}
    assert (pair.cache.number, pair.cache.revision, pair.cache.time) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("query", "is_complete"),
    [
        (FAST, True),
        (EXAMPLE_1, True),
        (FAST.replace("64", "65"), True),
        (FAST.replace("> 64", "= 92"), True),
        (FAST.replace("> 64", ">= 64"), False),
        (FAST.replace("64", "63"), False),
        (ALL, False),
        (f"{FAST} or c.serverPort = 1", False),
        (f"{FAST} and c.near? = c", True),
        (f"search CycleProvider d, CycleProvider c register d where d.near? = c and {FAST[40:]}",
         False),
        ("search ServerInformation s register s where s.memory > 64", False),
        (("search ServerInformation s, CycleProvider c register s"
         " where c.serverInformation = s and s.memory > 100"), True),
    ],
)  # fmt: skip
def test_an_answer_says_whether_it_is_complete(pair: Pair, query: str, is_complete: bool) -> None:
    """If it is not, the rule that it names makes it so."""
    figure_1(pair.provider)
    put(
        pair.provider,
        more="<#h> a :CycleProvider ; :serverPort 1 ; :near <doc.rdf#host>, <#h> ;"
        " :serverInformation <#i> . <#i> a :ServerInformation ; :memory 64 ."
        " <#j> a :ServerInformation ; :memory 65 .",
    )
    pair.provider.add_rule("L1", FAST)
    pair.follow()
    answer = pair.cache.query(query)
    assert (answer.complete, answer.rules == ()) == (is_complete, is_complete)
    info = pair.provider.add_rule("L2", query)
    expected = [(uri,) for uri in pair.provider.matches(info.id)]
    if is_complete:
        assert answer.rows == expected
    else:
        pair.provider.add_rules("L1", ((rule, "") for rule in answer.rules))
        pair.follow()
        assert pair.cache.query(query)[:4:3] == (expected, True)


def test_queries_are_refused_as_rules_are_and_show_their_sql(pair: Pair) -> None:
    figure_1(pair.provider)
    pair.provider.add_rule("L1", FAST, "fast")
    pair.follow()
    assert pair.ask("search fast f register f where f.serverPort = 5874") == ["doc.rdf#host"]
    with pytest.raises(ProfileRefused) as caught:
        pair.cache.query("search CycleProvider c register c where c.memory > 64")
    assert caught.value.hint == "did you mean serverInformation.memory?"
    sql = pair.cache.explain(FAST)
    assert sql.startswith("SELECT DISTINCT") and "statements" in sql


def test_a_query_that_takes_too_long_is_ended(pair: Pair) -> None:
    pair.provider.add_rule("L1", ALL)
    pair.follow()
    pair.local(" ".join(f":p{n} a :CycleProvider ; :serverPort {n} ." for n in range(200)))
    pairs = "search CycleProvider c, CycleProvider d register c where c.serverPort != d.serverPort"
    with pytest.raises(Refusal, match="timeout"):
        pair.cache.query(pairs, seconds=0.0)
    assert len(pair.cache.query(pairs, seconds=60.0).rows) == 200


# -- plain SQL


def test_a_schema_is_views_of_the_file_for_plain_sql(pair: Pair, tmp_path: Path) -> None:
    more = """:State a rdfs:Class . <urn:other#cpu> a owl:FunctionalProperty ;
        rdfs:domain :ServerInformation . :note rdfs:range xsd:string ."""
    pair.provider.put_schema((SCHEMA + more).encode(), TURTLE)
    put(
        pair.provider,
        a=""":h a :CycleProvider ; :serverHost "h" ; :tag "x", "y" ; :serverInformation :i .
        :i a :ServerInformation ; :memory 092 ; <urn:other#cpu> 1.5 ; :note "n" .""",
    )
    pair.provider.add_rule("L1", ALL)
    pair.follow()
    h, i = f"{NS}h", f"{NS}i"
    with closing(sqlite3.connect(tmp_path / "l1.onyx")) as tables:

        def rows(view: str, columns: str = "*") -> list[tuple[object, ...]]:
            return sorted(tables.execute(f'SELECT {columns} FROM "{view}"'))

        assert rows("CycleProvider") == [(h, "h", i, None)]
        assert rows("ServerInformation", f'memory, "{NS}cpu", "urn:other#cpu"') == [(92, None, 1.5)]
        assert rows("Thing") == [(h,), (i,)]
        assert rows("Thing.tag") == [(h, "x"), (h, "y")]
        assert rows("note") == [(i, "n")]
        assert rows(f"{NS}State") == []  # "state" is a table of the file
        pair.provider.put_schema((SCHEMA + more.replace(":State", ":Note")).encode(), TURTLE)
        pair.follow()
        assert rows("Note") == [] and rows(f"{NS}note") == [(i, "n")]
        assert rows("CycleProvider", "serverHost") == [("h",)]
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            rows(f"{NS}State")
