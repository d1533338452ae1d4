"""A provider on disk: documents, rules, schemas and messages; refusals, crashes and damage."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from formats.errors import MessageRefused, Refusal
from onyx.errors import StoreUnusable
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata import metadata_filter
from registration.metadata import provider_reader as rows_of
from registration.metadata.documents import MetadataRefused
from registration.metadata.provider import Outcome, RepositoryEffects
from registration.metadata.provider_reader import BATCH_MAX
from tests.onyx.metadata.paper import (
    BASE,
    DOC,
    EXAMPLE_1,
    FAST,
    FIGURE_1,
    HOST,
    INFO,
    PREFIXES,
    SCHEMA,
    TURTLE,
    WEAK,
    came,
    changed,
    figure_1,
    left,
    put,
    read,
    took,
)
from yfilter.errors import ProfileRefused

TABLES = (
    rows_of.SCHEMA,
    rows_of.DOCUMENTS,
    rows_of.RULES,
    rows_of.NAMES,
    rows_of.REPOSITORIES,
    rows_of.MESSAGES,
    rows_of.TOUCHED,
    rows_of.COUNTS,
)
NOTHING = RepositoryEffects()
SLOW = "search CycleProvider c register c where c.serverInformation.memory <= 64"
ALL = "search CycleProvider c register c"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[MetadataProvider]:
    with MetadataProvider(tmp_path) as opened:
        opened.put_schema(SCHEMA.encode(), TURTLE)
        yield opened


def everything(provider: MetadataProvider) -> tuple[object, ...]:
    """All rows, and all that the filter has stored."""
    rows = list(provider._rows.load([table.space for table in TABLES]))
    query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    names = sorted(name for (name,) in provider._connection.execute(query))
    stored = {
        name: sorted(provider._connection.execute(f"SELECT * FROM {name}"), key=repr)
        for name in names
    }
    return rows, stored, provider.revision, provider.repositories(), provider.schema


def refused(provider: MetadataProvider, do: Callable[[], object]) -> str:
    """What a refusal says, which changes nothing."""
    before = everything(provider)
    with pytest.raises(Refusal) as caught:
        do()
    assert everything(provider)[:4] == before[:4]
    return str(caught.value)


# -- documents and rules


@pytest.mark.parametrize(("memory", "matched"), [(92, [HOST]), (32, [])])
def test_example_1(provider: MetadataProvider, memory: int, matched: list[str]) -> None:
    figure_1(provider, memory)
    info = provider.add_rule("L1", EXAMPLE_1)
    assert provider.matches(info.id) == matched
    assert info.outcome.effects == ({"L1": came(HOST)} if matched else {})
    assert (info.text, info.outcome.revision) == (EXAMPLE_1, provider.revision)
    assert info.sparql.startswith("SELECT DISTINCT ?c WHERE")


def test_a_rule_before_the_document(provider: MetadataProvider) -> None:
    provider.add_rule("L1", EXAMPLE_1)
    assert figure_1(provider) == came(HOST)
    assert figure_1(provider) == NOTHING  # the same again


def test_a_rule_in_sparql(provider: MetadataProvider) -> None:
    figure_1(provider)
    text = f"""PREFIX : <{SCHEMA.split("<")[1].split(">")[0]}>
    SELECT ?c WHERE {{ ?c a :CycleProvider ; :serverInformation/:memory ?m FILTER(?m > 64) }}"""
    info = provider.add_rule("L1", text)
    assert provider.matches(info.id) == [HOST]


@pytest.mark.parametrize(
    ("schema", "about"), [(SCHEMA, {HOST, INFO}), (WEAK, {HOST})], ids=["strong", "weak"]
)
def test_strong_references_travel_along(
    provider: MetadataProvider, schema: str, about: set[str]
) -> None:
    provider.put_schema(schema.encode(), TURTLE)
    figure_1(provider)
    provider.add_rule("L1", EXAMPLE_1)
    messages = read(provider.changes("L1"))
    assert {uri for each in messages for uri in each.about} == about
    assert [uri for each in messages for uri in each.matched] == [HOST]
    told = "".join(each.triples for each in messages)
    assert ("memory> " in told) == (INFO in about)


def test_updates_of_the_server_are_told_of_the_provider(provider: MetadataProvider) -> None:
    """Section 3.5: 32 to 128 and back, and a change that leaves the match."""
    provider.add_rule("L1", FAST)
    assert figure_1(provider, 32) == NOTHING
    assert figure_1(provider, 128) == came(HOST)
    assert figure_1(provider, 129) == changed(HOST)
    assert figure_1(provider, 32) == left(HOST)
    assert took(provider, "doc.rdf") == NOTHING


def test_a_server_of_another_document_that_goes(provider: MetadataProvider) -> None:
    provider.add_rule("L1", FAST)
    assert put(provider, a="<#h> a :CycleProvider ; :serverInformation <b#i> .") == NOTHING
    assert put(provider, b="<#i> a :ServerInformation ; :memory 92 .") == came(f"{BASE}a#h")
    assert took(provider, "b") == left(f"{BASE}a#h")
    assert put(provider, b="<#i> a :ServerInformation ; :memory 92 .") == came(f"{BASE}a#h")
    assert put(provider, b="") == left(f"{BASE}a#h")
    assert took(provider, "a", "b") == NOTHING


def test_several_documents_say_something_of_one_resource(provider: MetadataProvider) -> None:
    """A resource is the union; one document takes along what it alone says."""
    provider.add_rule("L1", "search CycleProvider c register c where c.tag? = 'b'")
    put(provider, a="<#h> a :CycleProvider ; :tag 'a', 'b' .")
    assert put(provider, b="<a#h> a :CycleProvider ; :tag 'b', 'c' .") == changed(f"{BASE}a#h")
    assert took(provider, "a") == changed(f"{BASE}a#h")
    assert took(provider, "b") == left(f"{BASE}a#h")


def test_a_class_said_elsewhere(provider: MetadataProvider) -> None:
    provider.add_rule("L1", "search CycleProvider c register c where c.serverPort = 1")
    assert put(provider, a="<#h> :serverPort 1 .") == NOTHING
    assert put(provider, b="<a#h> a :CycleProvider .") == came(f"{BASE}a#h")
    assert took(provider, "b") == left(f"{BASE}a#h")


def test_matches_of_two_rules_are_told_once(provider: MetadataProvider) -> None:
    provider.add_rules("L1", ((FAST, ""), (EXAMPLE_1, "")))
    assert figure_1(provider) == came(HOST)
    told = read(provider.changes("L1"))
    assert [each.matched for each in told if each.matched] == [(HOST,)]
    assert provider.remove_rule("L1", "r1").effects == {}
    assert provider.remove_rule("L1", "r2").effects == {"L1": left(HOST)}


# -- names of rules


def test_a_rule_of_the_same_name_replaces_one(provider: MetadataProvider) -> None:
    figure_1(provider)
    put(provider, slow="<#h> a :CycleProvider ; :serverInformation [ a :ServerInformation ;"
        " :memory 32 ] .")  # fmt: skip
    first = provider.add_rule("L1", FAST, "some")
    assert first.outcome.effects == {"L1": came(HOST)}
    second = provider.add_rule("L1", SLOW, "some")
    assert second.id == first.id
    assert second.outcome.effects == {"L1": RepositoryEffects((f"{BASE}slow#h",), (HOST,))}
    assert provider.matches(first.id) == [f"{BASE}slow#h"]
    assert [row.text for row in provider.rules("L1")] == [SLOW]
    third = provider.add_rule("L1", ALL, "some")
    assert third.outcome.effects == {"L1": came(HOST)}
    provider.add_rules("L1", ((FAST, "some"), (ALL, "some"), (SLOW, "some")))
    assert provider.add_rule("L1", ALL, "some").outcome.effects == {"L1": came(HOST)}
    assert provider.verify() == []


def test_a_rule_replaced_several_times_in_one_batch(provider: MetadataProvider) -> None:
    figure_1(provider)
    provider.add_rule("L1", FAST, "some")
    *_, last = provider.add_rules("L1", ((SLOW, "some"), (ALL, "some"), (SLOW, "some")))
    assert last.outcome.effects == {"L1": left(HOST)}


def test_rules_over_rules_follow_the_one_that_they_name(provider: MetadataProvider) -> None:
    figure_1(provider)
    provider.add_rule("L1", SLOW, "base")
    over = provider.add_rule("L1", "search base b register b where b.serverPort = 5874", "over")
    top = provider.add_rule("L1", "search over o register o")
    assert provider.matches(top.id) == []
    assert provider.add_rule("L1", FAST, "base").outcome.effects == {"L1": came(HOST)}
    assert provider.matches(over.id) == provider.matches(top.id) == [HOST]
    assert figure_1(provider, 32) == left(HOST)
    assert provider.verify() == []


def test_a_rule_is_known_to_others_as_soon_as_it_is_there(provider: MetadataProvider) -> None:
    figure_1(provider)
    over = "search fast f register f"
    assert provider.add_rules("L1", ((FAST, "fast"), (over, "")))[1].outcome.effects
    assert provider.verify() == []
    assert provider.explain("L1", INFO).held == (("r1", (HOST, INFO)), ("r2", (HOST, INFO)))
    assert [*provider.explain("L1", INFO).not_matched] == ["r1", "r2"]


def test_names_of_rules_that_are_refused(provider: MetadataProvider) -> None:
    provider.add_rule("L1", FAST, "base")
    provider.add_rule("L1", "search base b register b", "over")

    def says(do: Callable[[], object], *words: str) -> None:
        told = refused(provider, do)
        for word in words:
            assert word in told

    add, remove = provider.add_rule, provider.remove_rule
    says(lambda: add("L1", "search over o register o", "base"), "[circle]")
    says(lambda: add("L1", "search base o register o", "base"), "[circle]")
    says(lambda: add("L1", "search me o register o", "me"), "[circle]")
    says(lambda: remove("L1", "r1"), "r2 names rule 'base'", "[rule-in-use]")
    says(lambda: remove("L2", "r1"), "repository 'L2' has no rule 'r1'", "[no-such-rule]")
    says(lambda: remove("L1", "r7"), "[no-such-rule]")
    says(lambda: remove("L1", "base"), "[no-such-rule]")
    says(lambda: add("L2", "search base b register b"), "[unknown-class]")  # another's rule
    for name in ("a|b", "a\n", "a" * 257):
        says(lambda name=name: add(name, FAST), "repository", "[bad-name]")
        says(lambda name=name: add("L1", FAST, name), "rule", "[bad-name]")
    says(lambda: add("", FAST), "[bad-name]")
    provider.add_rule("L1", "search base b register b where b.serverHost contains 'x'")
    server = "search ServerInformation s register s"
    says(lambda: add("L1", server, "base"), "rule r3, which names it", "[unknown-property]")
    provider.remove_rule("L1", "r3")
    provider.remove_rule("L1", "r2")
    provider.remove_rule("L1", "r1")
    assert provider.rules("L1") == []


# -- rules that take too long


def port(number: int) -> str:
    return f"<#h{number}> a :CycleProvider ; :serverPort {number} ."


def test_a_rule_of_too_many_pairs_is_suspended_and_the_rest_goes_on(
    provider: MetadataProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that need the join are; each is told, and is tried again when it is added again."""
    monkeypatch.setattr(metadata_filter, "PAIRS_MAX", 30)
    many = "search CycleProvider c, CycleProvider d register c where c.serverPort > d.serverPort"
    provider.add_rule("L1", many, "many")
    provider.add_rule("L1", "search many m register m where m.serverPort = 3")
    provider.add_rule("L1", "search CycleProvider c register c where c.serverPort = 5")
    put(provider, a="".join(map(port, (1, 2, 3))))
    assert provider.matches("r1") == [f"{BASE}a#h2", f"{BASE}a#h3"]

    def more(dry_run: bool) -> Outcome:
        text = PREFIXES + "".join(map(port, range(5, 15)))
        return provider.register({f"{BASE}b": text.encode()}, TURTLE, dry_run=dry_run)

    would, number = more(True), provider.repositories()["L1"].last
    assert more(False) == would
    effects = RepositoryEffects((f"{BASE}b#h5",), (f"{BASE}a#h2", f"{BASE}a#h3"))
    assert would.effects == {"L1": effects}
    told = [rule for each in read(provider.changes("L1", number)) for rule in each.rules]
    assert [each.id for each in told if each.suspended] == ["r1", "r2"]
    assert provider.explain("L1", f"{BASE}a#h3").not_matched["r2"][0].startswith("it is suspended")
    assert (provider.status().rules, provider.status().suspended) == (1, 2)
    assert provider.verify() == []
    with MetadataCache(":memory:", "L1") as cache:
        for message in provider.changes("L1"):
            cache.apply(message)
        assert not cache.query(many).complete
    again = provider.add_rule("L1", many, "many")
    assert again.suspended
    assert again.outcome.effects == {"L1": came(f"{BASE}a#h3")}  # by r2, alone not too many
    monkeypatch.setattr(metadata_filter, "PAIRS_MAX", 3_000)
    assert len(provider.add_rule("L1", many, "many").outcome.effects["L1"].came) == 10
    assert provider.status().suspended == 0
    monkeypatch.setattr(metadata_filter, "PAIRS_MAX", 3)  # which is of what is asked alone
    assert provider.verify() == []


def test_rules_and_matches_are_told_by_pages(
    provider: MetadataProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of, "MESSAGE_LENGTH", 300)
    monkeypatch.setattr(rows_of, "BATCH_MAX", 3)
    for repository in ("L1", "L2", "L1"):
        provider.add_rules(repository, [(ALL, "")] * 4)
    put(provider, **{f"d{each}": "<#h> a :CycleProvider ." for each in range(9)})
    rules: list[tuple[str, int]] = []
    while page := provider.rules_page("L1", rules[-1][0] if rules else ""):
        rules += [(f"r{row.number}", matches) for row, matches in page]
        assert len(page) <= 3
    assert rules == [(f"r{each}", 9) for each in (1, 2, 3, 4, 9, 10, 11, 12)]
    uris: list[str] = []
    while some := provider.matches_page("r1", uris[-1] if uris else ""):
        uris += some
    assert sorted(uris) == provider.matches("r1")


# -- schemas


def test_a_new_schema_is_told_with_what_it_changes(provider: MetadataProvider) -> None:
    figure_1(provider)
    things = provider.add_rule("L1", "search Thing t register t where t.tag? = 'x'")
    provider.add_rule("L1", FAST)
    put(provider, t="<#x> a :Thing ; :tag 'x' . <#y> a :ServerInformation ; :tag 'x' .")
    assert provider.matches(things.id) == [f"{BASE}t#x", f"{BASE}t#y"]
    number = read(provider.changes("L1"))[-1].number
    other = SCHEMA.replace(":ServerInformation rdfs:subClassOf :Thing", ":ServerInformation a :C")
    other = other.replace(":tag rdfs:domain :Thing ;", ":tag").replace(":C .", "rdfs:Class .")
    outcome = provider.put_schema(other.encode(), TURTLE)
    assert outcome.effects == {"L1": left(f"{BASE}t#y")}
    schema, *more = read(provider.changes("L1", number))
    assert schema.schema == (TURTLE, other)
    assert [uri for each in more for uri in each.dropped] == [f"{BASE}t#y"]
    assert [each.to["L1"].is_last for each in (schema, *more)] == [False, True]
    assert provider.put_schema(SCHEMA.encode(), TURTLE).effects == {"L1": came(f"{BASE}t#y")}
    assert provider.put_schema(WEAK.encode(), TURTLE).effects == {"L1": changed(HOST)}
    assert provider.put_schema(WEAK.encode(), TURTLE, is_open=True).effects == {}
    assert read(provider.changes("L1"))[-1].schema[0] == f"{TURTLE}; open=true"
    assert provider.verify() == []


def test_a_schema_that_something_does_not_conform_to_is_refused(
    provider: MetadataProvider,
) -> None:
    figure_1(provider)
    provider.add_rule("L1", EXAMPLE_1)

    def told(former: str, new: str) -> str:
        text = SCHEMA.replace(former, new)
        assert text != SCHEMA
        return refused(provider, lambda: provider.put_schema(text.encode(), TURTLE))

    cpu = told(":cpu a", ":speed a")
    assert f"document {DOC}" in cpu
    assert "[unknown-property]" in cpu
    assert "rule r1 of repository 'L1'" in told(":memory a", ":storage a")
    assert f"document {DOC}" in told("xsd:integer .\n:cpu", "xsd:integer .\n:tags a :X . :cpu2")
    put(provider, t="<#x> a :CycleProvider ; :tag 'x', 'y' .")
    assert "[second-value]" in told(":tag rdfs", ":tag a owl:FunctionalProperty ; rdfs")
    put(provider, t="<#x> a :CycleProvider ; :tag 'x' .", u="<t#x> :tag 'y' .")
    several = told(":tag rdfs", ":tag a owl:FunctionalProperty ; rdfs")
    assert f"{BASE}t#x has several values of" in several and "[several-values]" in several
    broken = refused(provider, lambda: provider.put_schema(b":a", TURTLE))
    assert "line 1" in broken


@pytest.mark.parametrize("comment", ["\xe9".encode("latin-1"), b"\x01"])
def test_a_schema_that_no_message_can_carry(provider: MetadataProvider, comment: bytes) -> None:
    data = b"#" + comment + SCHEMA.encode()
    told = refused(provider, lambda: provider.put_schema(data, TURTLE))
    assert told == "the schema is no text of XML in UTF-8 at 1 [schema-text]"


def test_an_open_schema_takes_what_it_does_not_name(provider: MetadataProvider) -> None:
    text = ("<#x> a <urn:Unknown> ; :serverPort 1 ; <urn:unknown> 7 ; :near <#y> ."
            " <#y> a <urn:Unknown> .")  # fmt: skip
    assert "[unknown-class]" in refused(provider, lambda: put(provider, a=text))
    provider.put_schema(SCHEMA.encode(), TURTLE, is_open=True)
    provider.add_rule("L1", "search <urn:Unknown> u register u where u.<urn:unknown>? > 6")
    assert put(provider, a=text) == came(f"{BASE}a#x")
    assert "[wrong-domain]" in refused(
        provider, lambda: put(provider, b="<#x> a :ServerInformation ; :serverPort 1 .")
    )
    put(provider, b="<#x> a :ServerInformation .")
    assert "[wrong-class]" in refused(provider, lambda: put(provider, c="<b#x> :serverPort 1 ."))
    assert provider.verify() == []


# -- refusals


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("<a#h> :serverPort 2 .", f"{BASE}a#h has several values of"),
        ("<a#h> a :ServerInformation ; :memory 1 .", ""),
        ("<a#i> :serverPort 1 .", f"{BASE}a#i is not of the class"),
        ("<a#h> :near <a#i> .", f"(said of {BASE}a#h)"),
        ("<a#new> a :ServerInformation .", f"{BASE}a#new is not of the class"),
    ],
)
def test_documents_that_do_not_conform_together(
    provider: MetadataProvider, more: str, words: str
) -> None:
    provider.add_rule("L1", ALL)
    put(
        provider,
        a="<#h> a :CycleProvider ; :serverPort 1 ; :serverInformation <#i> ; :near <#new> ."
        " <#i> a :ServerInformation .",
    )
    if not words:  # a resource may be of several classes
        put(provider, b=more)
        return
    told = refused(provider, lambda: put(provider, c="<#h> a :CycleProvider .", b=more))
    assert words in told
    assert "[several-values]" in told or "[wrong-class]" in told
    put(provider, c="<#h> a :CycleProvider .")
    assert provider.verify() == []


def test_a_batch_is_taken_whole_or_not_at_all(provider: MetadataProvider) -> None:
    provider.add_rule("L1", ALL)
    figure_1(provider)
    wrong = "<#x> a :CycleProvider ; :serverPrt 1 ."
    told = refused(provider, lambda: put(provider, a="<#x> a :CycleProvider .", b=wrong))
    assert f"{BASE}b" in told and "[unknown-property]" in told
    assert provider.document(f"{BASE}a") is None
    told = refused(provider, lambda: provider.remove([DOC, f"{BASE}a"]))
    assert told == f"there is no document {BASE}a [no-such-document]"
    rules = ((FAST, ""), ("search Nothing n register n", ""))
    refused(provider, lambda: provider.add_rules("L1", rules))
    refused(provider, lambda: provider.add_rules("L2", rules))
    assert [*provider.repositories()] == ["L1"]
    assert put(provider, a="<#x> a :CycleProvider .") == came(f"{BASE}a#x")


def test_limits_and_refusals_of_texts(provider: MetadataProvider) -> None:
    many = [f"{BASE}{each}" for each in range(BATCH_MAX + 1)]
    told = refused(provider, lambda: provider.remove(many))
    assert told == "10001 documents at once; at most 10000 [too-many]"
    some = dict.fromkeys(many, b"")
    assert "[too-many]" in refused(provider, lambda: provider.register(some, TURTLE))
    large = {DOC: b"#" * (4 * 1024 * 1024 + 1)}
    assert "[too-large]" in refused(provider, lambda: provider.register(large, TURTLE))
    told = refused(provider, lambda: provider.register({DOC: b""}, "text/plain"))
    assert "'text/plain' is no syntax of RDF: text/turtle" in told
    data = {DOC: FIGURE_1.replace("serverPort", "serverPrt").encode()}
    with pytest.raises(MessageRefused) as caught:
        provider.register(data, "application/rdf+xml")
    assert (caught.value.line, caught.value.column, caught.value.code) == (5, 3, "unknown-property")
    with pytest.raises(ProfileRefused):
        provider.add_rule("L1", "search CycleProvider c register d")
    with pytest.raises(MetadataRefused):
        provider.remove_rule("L1", "r1")
    assert provider.matches("r1") == provider.matches("what") == []


# -- rehearsals


def test_a_rehearsal_tells_what_the_deed_does_and_changes_nothing(
    provider: MetadataProvider,
) -> None:
    figure_1(provider, 32)
    provider.add_rule("L1", SLOW, "some")

    def both(do: Callable[[bool], Any]) -> None:
        before = everything(provider)
        would = do(True)
        assert everything(provider)[:4] == before[:4]
        assert do(False) == would
        assert everything(provider)[:4] != before[:4]
        assert provider.verify() == []

    data = {DOC: FIGURE_1.encode()}
    both(lambda dry: provider.register(data, "application/rdf+xml", dry_run=dry))
    both(lambda dry: provider.add_rule("L2", FAST, dry_run=dry))
    both(lambda dry: provider.add_rule("L1", FAST, "some", dry_run=dry))
    both(lambda dry: provider.put_schema(WEAK.encode(), TURTLE, dry_run=dry))
    both(lambda dry: provider.remove_rule("L2", "r2", dry_run=dry))
    both(lambda dry: provider.remove([DOC], dry_run=dry))
    told = refused(provider, lambda: provider.remove([DOC], dry_run=True))
    assert "[no-such-document]" in told


# -- crashes and damage


def filled(directory: Path) -> None:
    with MetadataProvider(directory) as provider:
        provider.put_schema(SCHEMA.encode(), TURTLE)
        provider.add_rule("L1", EXAMPLE_1, "example")
        figure_1(provider)
        for each in range(20):
            put(provider, **{f"d{each}": f"<#h> a :CycleProvider ; :serverPort {each} ."})


def copied(directory: Path, to: Path, pattern: str) -> None:
    """Files as they are now, instead of those that are there."""
    for each in to.glob(pattern):
        each.unlink()
    to.mkdir(exist_ok=True)
    for each in directory.glob(pattern):
        shutil.copy(each, to / each.name)


def change(provider: MetadataProvider) -> None:
    figure_1(provider, 100)
    provider.add_rule("L2", FAST)


def change_much(provider: MetadataProvider) -> None:
    change(provider)
    provider.remove_rule("L1", "r1")
    provider.add_rule("L1", ALL, "example")
    provider.add_rule("L1", SLOW, "example")
    provider.remove([f"{BASE}d1", f"{BASE}d2"])


def state(provider: MetadataProvider) -> tuple[object, ...]:
    rules = [row for name in ("L1", "L2") for row in provider.rules(name)]
    return provider.revision, {row.number: provider.matches(f"r{row.number}") for row in rules}


def goes_on(directory: Path, expected: tuple[object, ...]) -> None:
    """It is as before, and takes changes, which are as they were without a crash."""
    with MetadataProvider(directory) as provider:
        assert state(provider) == expected
        assert provider.verify() == []
        provider.add_rule("L3", ALL)
        put(provider, new="<#h> a :CycleProvider .")
        assert provider.verify() == []
        assert read(provider.changes("L3"))[-1].matched == (f"{BASE}new#h",)
    inode = (directory / "filter.sqlite").stat().st_ino
    with MetadataProvider(directory) as provider:
        assert provider.verify() == []
    assert (directory / "filter.sqlite").stat().st_ino == inode  # one that is sound is kept


@pytest.mark.parametrize("do", [change, change_much])
def test_a_filter_that_is_behind_catches_up(
    tmp_path: Path, do: Callable[[MetadataProvider], None]
) -> None:
    directory, aside = tmp_path / "provider", tmp_path / "aside"
    filled(directory)
    copied(directory, aside, "filter.sqlite*")
    with MetadataProvider(directory) as provider:
        do(provider)
        expected = state(provider)
    copied(aside, directory, "filter.sqlite*")
    goes_on(directory, expected)


def test_rows_that_were_put_back_leave_the_filter_ahead(tmp_path: Path) -> None:
    directory, aside = tmp_path / "provider", tmp_path / "aside"
    filled(directory)
    copied(directory, aside, "rows.onyx*")
    with MetadataProvider(directory) as provider:
        expected = state(provider)
        change_much(provider)
    copied(aside, directory, "rows.onyx*")
    goes_on(directory, expected)


def test_rows_that_went_on_otherwise_have_another_history(tmp_path: Path) -> None:
    """The filter of one machine with rows that were put back, and that another went on with."""
    directory, aside, other = (tmp_path / each for each in ("provider", "aside", "other"))
    filled(directory)
    copied(directory, aside, "*.*")
    with MetadataProvider(directory) as provider:
        put(provider, mine="<#h> a :CycleProvider ; :serverInformation <doc.rdf#info> .")
    copied(directory, other, "filter.sqlite*")
    copied(aside, directory, "*.*")
    with MetadataProvider(directory) as provider:
        change(provider)
        expected = state(provider)
    copied(other, directory, "filter.sqlite*")
    goes_on(directory, expected)


def test_a_filter_that_is_gone_is_made_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    with MetadataProvider(tmp_path) as provider:
        expected = state(provider)
    for each in tmp_path.glob("filter.sqlite*"):
        each.unlink()
    goes_on(tmp_path, expected)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_damaged_filter_is_made_anew(tmp_path: Path, share: float) -> None:
    filled(tmp_path)
    with MetadataProvider(tmp_path) as provider:
        expected = state(provider)
    with (tmp_path / "filter.sqlite").open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(int(size * share))
        file.write(b"\xa5" * 8192)
    goes_on(tmp_path, expected)


class Failing:
    """Tables of which the next COMMIT fails, as on a full disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.fails = True

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> Any:
        if sql == "COMMIT" and self.fails:
            self.fails = False
            self._connection.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> Any:
        return self._connection.executemany(sql, rows)


def test_a_filter_that_cannot_be_committed_follows_the_rows(provider: MetadataProvider) -> None:
    provider.add_rule("L1", FAST)
    failing = Failing(provider._connection)
    provider._tables = failing
    assert figure_1(provider) == came(HOST)
    assert not failing.fails
    assert provider.matches("r1") == [HOST]
    assert figure_1(provider, 32) == left(HOST)
    assert provider.verify() == []


def test_another_process_cannot_open_it(provider: MetadataProvider, tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="in use"):
        MetadataProvider(tmp_path)
    assert figure_1(provider) == NOTHING


# -- a reader beside it


def test_what_is_read_beside_it_is_as_of_one_revision(provider: MetadataProvider) -> None:
    provider.add_rule("L1", FAST)
    with provider.beside() as beside:
        with beside.now() as reader:
            figure_1(provider)
            assert (reader.matches("r1"), reader.documents()) == ([], {})
        with beside.now() as reader:
            assert reader.matches("r1") == [HOST]
            assert [*reader.documents()] == [DOC]
            assert reader.explain("L1", INFO) == provider.explain("L1", INFO)
            assert reader.whole("L1").revision == reader.status().revision == provider.revision
            assert reader.outbox(9) == provider.outbox(9)


def test_a_thread_that_reads_beside_one_that_writes(provider: MetadataProvider) -> None:
    """Whatever the moment, the rows' revision is that of the filter."""
    provider.add_rule("L1", FAST)
    figure_1(provider, 65)
    first = provider.revision
    writing = Thread(target=lambda: [figure_1(provider, 66 + each) for each in range(60)])
    seen = set()
    with provider.beside() as beside:
        writing.start()
        while writing.is_alive() or not seen:
            with beside.now() as reader:
                page = reader.whole("L1")
            (said,) = [each for each in read(page.messages) if each.matched]
            assert f'memory> "{65 + page.revision - first}"' in said.triples
            seen.add(page.revision)
    assert len(seen) > 1


# -- messages


def test_messages_of_a_repository_name_the_one_before(provider: MetadataProvider) -> None:
    provider.add_rule("L1", FAST)
    provider.add_rule("L2", "search ServerInformation s register s")
    figure_1(provider)
    figure_1(provider, 100)
    for name in ("L1", "L2"):
        messages = read(provider.changes(name))
        numbers = [each.number for each in messages]
        assert [each.to[name].after for each in messages] == [0, *numbers[:-1]]
        assert [bool(each.schema[0]) for each in messages] == [True, *[False] * (len(numbers) - 1)]
        assert read(provider.changes(name, numbers[-2])) == messages[-1:]
        assert provider.repositories()[name].last == numbers[-1]
        assert messages[0].provider == "metadata"
    assert provider.changes("L3") == []


def test_one_message_goes_to_all_for_which_the_same_has_changed(
    provider: MetadataProvider,
) -> None:
    for name in ("L1", "L2", "L3"):
        provider.add_rule(name, FAST)
    number = max(row.last for row in provider.repositories().values())
    figure_1(provider)
    (message,) = read(provider.changes("L2", number))
    assert [*message.to] == ["L1", "L2", "L3"]
    assert message.about == (HOST, INFO)
    assert PREFIXES not in message.triples
