"""Providers, and caches of their repositories, against nested loops over all statements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from formats.graph.rdf_schema import RdfSchema
from formats.graph.syntaxes import GraphSyntax
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata import provider_reader
from registration.metadata.documents import Statement, read_document
from registration.metadata.n_triples import n_triples as shown
from registration.metadata.provider import Outcome, RepositoryEffects
from registration.metadata.rules import Rule, parse_rule
from tests.registration.metadata import brute
from tests.registration.metadata.random_metadata import (
    RandomDocuments,
    RandomRules,
    document_uri,
    n_triples,
    schema_bytes,
)
from yfilter.errors import ProfileRefused

SYNTAX = GraphSyntax.N_TRIPLES


def strongly_reached(
    matched: Iterable[str], statements: Iterable[Statement], schema: RdfSchema
) -> set[str]:
    strong = {each.name for each in schema.properties.values() if each.is_strong}
    strong |= {name for name, above in schema.properties_above.items() if strong & {*above}}
    reached = set(matched)
    todo = list(reached)
    while todo:
        here = todo.pop()
        for each in statements:
            if each.subject == here and each.property in strong and each.value not in reached:
                reached.add(each.value)
                todo.append(each.value)
    return reached


class Run:
    """One provider and its repositories; every step is rehearsed first, now and then."""

    def __init__(self, seed: int, path: Path) -> None:
        self.random = Random(seed)
        self.path = path
        self.provider = MetadataProvider(path / "provider")
        self.provider.put_schema(schema_bytes(), "text/turtle")
        self.schema = self.provider.schema
        names = ("L0", "L1")
        self.caches = {name: MetadataCache(path / name, name) for name in names}
        self.source = RandomDocuments(self.random)
        self.generator = RandomRules(self.random, [*self.source.classes])
        self.documents: dict[int, list[Statement]] = {}
        self.rules: dict[str, tuple[str, Rule]] = {}
        self.held: dict[str, set[str]] = {name: set() for name in names}
        self.complete = 0

    def step(self, *, is_first: bool) -> Outcome | None:
        choice, is_rehearsed = self.random.random(), self.random.random() < 0.3
        if is_first or choice < 0.4:
            return self.add_rule(is_rehearsed)
        if choice < 0.5 and self.rules:
            return self.remove_rule(is_rehearsed)
        if choice < 0.6 and self.documents:
            return self.remove(is_rehearsed)
        if choice < 0.65:
            return self.put_schema(is_rehearsed)
        return self.register(is_rehearsed)

    def add_rule(self, is_rehearsed: bool) -> Outcome | None:
        repository, text = self.random.choice([*self.caches]), self.generator.rule().text
        try:
            rule = parse_rule(text, self.schema, {})
        except ProfileRefused:
            return None
        provider = self.provider
        would = provider.add_rule(repository, text, dry_run=True) if is_rehearsed else None
        info = provider.add_rule(repository, text)
        assert would in (None, info)
        self.rules[info.id] = (repository, rule)
        return info.outcome

    def remove_rule(self, is_rehearsed: bool) -> Outcome:
        rule = self.random.choice([*self.rules])
        repository, _ = self.rules.pop(rule)
        provider = self.provider
        would = provider.remove_rule(repository, rule, dry_run=True) if is_rehearsed else None
        outcome = provider.remove_rule(repository, rule)
        assert would in (None, outcome)
        return outcome

    def register(self, is_rehearsed: bool) -> Outcome:
        data = {
            document_uri(number): n_triples(self.source.document(number), has_blanks=True)
            for number in self.random.sample(range(6), self.random.randint(1, 3))
        }
        media_type = str(SYNTAX)
        provider = self.provider
        would = provider.register(data, media_type, dry_run=True) if is_rehearsed else None
        outcome = provider.register(data, media_type)
        assert would in (None, outcome)
        for number in range(6):
            uri = document_uri(number)
            if uri in data:
                self.documents[number] = read_document(uri, data[uri], SYNTAX, self.schema)
        return outcome

    def remove(self, is_rehearsed: bool) -> Outcome:
        count = self.random.randint(1, len(self.documents))
        numbers = self.random.sample([*self.documents], count)
        uris = [document_uri(number) for number in numbers]
        would = self.provider.remove(uris, dry_run=True) if is_rehearsed else None
        outcome = self.provider.remove(uris)
        assert would in (None, outcome)
        for number in numbers:
            del self.documents[number]
        return outcome

    def put_schema(self, is_rehearsed: bool) -> Outcome:
        """Other references are strong."""
        lines = schema_bytes().decode().splitlines()
        for at, line in enumerate(lines):
            if "StrongReference" in line and self.random.random() < 0.5:
                lines[at] = line.replace("StrongReference", "WeakReference")
        data, media_type = "\n".join(lines).encode(), "text/turtle"
        provider = self.provider
        would = provider.put_schema(data, media_type, dry_run=True) if is_rehearsed else None
        outcome = provider.put_schema(data, media_type)
        assert would in (None, outcome)
        self.schema = provider.schema
        return outcome

    def check(self, outcome: Outcome) -> None:
        statements = sorted({each for said in self.documents.values() for each in said})
        matched: dict[str, set[str]] = {name: set() for name in self.caches}
        for rule, (repository, parsed) in self.rules.items():
            expected = brute.matches(parsed, statements, self.schema)
            assert set(self.provider.matches(rule)) == expected, parsed.text
            matched[repository] |= expected
        for name, cache in self.caches.items():
            effects = outcome.effects.get(name, RepositoryEffects())
            assert set(effects.came) == matched[name] - self.held[name]
            assert set(effects.left) == self.held[name] - matched[name]
            self.held[name] = matched[name]
            for message in self.provider.changes(name, cache.number):
                assert cache.apply(message)
                assert not cache.apply(message)
            reached = strongly_reached(matched[name], statements, self.schema)
            cached = [each for each in statements if each.subject in reached]
            expected_resources = {
                subject: "".join(shown(each for each in cached if each.subject == subject))
                for subject in {each.subject for each in cached}
            }
            assert cache.resources() == expected_resources
            if cache.number:
                self.ask(cache, cached, statements)

    def ask(
        self, cache: MetadataCache, cached: list[Statement], statements: list[Statement]
    ) -> None:
        text = self.generator.rule().text
        try:
            query = parse_rule(text, self.schema, {})
        except ProfileRefused:
            return
        answer = cache.query(text)
        found = {row[0] for row in answer.rows}
        assert found == brute.matches(query, cached, self.schema), text
        if answer.complete:
            self.complete += 1
            assert found == brute.matches(query, statements, self.schema), text
        else:
            assert answer.rules
            for rule in answer.rules:
                parse_rule(rule, self.schema, {})


def check_whole(of: Run, name: str, cache: MetadataCache) -> None:
    """What a cache is sent that has lost its way is what it would hold; it had something else."""
    messages = []
    after: tuple[int, int] | None = (0, 0)
    while after:
        page = of.provider.whole(name, after)
        messages += page.messages
        after = page.after
    with MetadataCache(of.path / f"{name} anew", name) as anew:
        for message in of.provider.changes(name)[: of.random.randint(0, 3)]:
            anew.apply(message)
        anew.replace(messages)
        assert anew.resources() == cache.resources()
        assert (anew.number, anew.revision) == (cache.number, of.provider.revision)
        assert sorted(anew.rules()) == sorted(cache.rules())


def run(seed: int, path: Path) -> int:
    """Gives how many answers were complete."""
    of = Run(seed, path)
    for step in range(12):
        outcome = of.step(is_first=step < 2)
        if outcome is not None:
            of.check(outcome)
    assert of.provider.verify() == []
    for name, cache in of.caches.items():
        if cache.number:
            check_whole(of, name, cache)
    matches = {rule: of.provider.matches(rule) for rule in of.rules}
    of.provider.close()
    if of.random.random() < 0.5:
        (path / "provider" / "filter.sqlite").unlink()
    with MetadataProvider(path / "provider") as again:
        assert {rule: again.matches(rule) for rule in of.rules} == matches
    for cache in of.caches.values():
        cache.close()
    return of.complete


@pytest.mark.parametrize("seed", range(10))
def test_all_is_as_nested_loops_say(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # what is said is divided
        monkeypatch.setattr(provider_reader, "MESSAGE_LENGTH", 300)
        monkeypatch.setattr(provider_reader, "PAGE_LENGTH", 700)
    run(seed, tmp_path)
