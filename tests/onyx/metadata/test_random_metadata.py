"""Providers, and caches of their repositories, against nested loops over all statements; on disks,
and with a network and processes that fail.

A thousand seeds by hand::

    ONYX_SIMULATION_TIMES=100 pytest --seeds 0 -n auto tests/onyx/metadata/test_random_metadata.py
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar, cast

import pytest

from formats.graph.rdf_schema import RdfSchema
from formats.graph.syntaxes import GraphSyntax
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata import provider_reader
from registration.metadata.change_messages import MessageMissing, read_change
from registration.metadata.documents import MetadataRefused, Statement, read_document
from registration.metadata.n_triples import n_triples as shown
from registration.metadata.provider import Outcome, Provider, RepositoryEffects, RuleInfo
from registration.metadata.repository_cache import RepositoryCache
from registration.metadata.rules import Rule, parse_rule
from tests.registration.metadata import brute
from tests.registration.metadata.random_metadata import (
    RandomDocuments,
    RandomRules,
    document_uri,
    n_triples,
    schema_bytes,
)
from tests.simulation.seeds import batch, note, seeds
from tests.simulation.sim_disk import MemoryDisk
from yfilter.errors import ProfileRefused

T = TypeVar("T")
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


class Step(NamedTuple):
    """What a provider is asked, rehearsed or not; ``note``: it has been carried out."""

    ask: Callable[[Provider, bool], Outcome | RuleInfo]
    note: Callable[[], object]


class Run:
    """One provider and its repositories; every step is rehearsed first, now and then."""

    def __init__(self, seed: int, path: Path) -> None:
        self.random = Random(seed)
        self.path = path
        self.provider = self.open_provider()
        self.provider.put_schema(schema_bytes(), "text/turtle")
        self.schema = self.provider.schema
        self.caches = {name: self.open_cache(name) for name in ("L0", "L1")}
        self.source = RandomDocuments(self.random)
        self.generator = RandomRules(self.random, [*self.source.classes])
        self.documents: dict[int, list[Statement]] = {}
        self.rules: dict[str, tuple[str, Rule]] = {}
        self.held: dict[str, set[str]] = {name: set() for name in self.caches}
        self.complete = 0

    def open_provider(self) -> Provider:
        return MetadataProvider(self.path / "provider")

    def open_cache(self, name: str) -> RepositoryCache:
        return MetadataCache(self.path / name, name)

    def step(self, *, is_first: bool) -> Step | None:
        choice = self.random.random()
        if is_first or choice < 0.4:
            return self.add_rule()
        if choice < 0.5 and self.rules:
            return self.remove_rule()
        if choice < 0.6 and self.documents:
            return self.remove()
        if choice < 0.65:
            return self.put_schema()
        return self.register()

    def matching(self) -> dict[str, dict[str, set[str]]]:
        """By repository and resource the rules that match it."""
        found: dict[str, dict[str, set[str]]] = {}
        for name in self.provider.repositories():
            for row in self.provider.rules(name):
                for uri in self.provider.matches(f"r{row.number}"):
                    found.setdefault(name, {}).setdefault(uri, set()).add(f"r{row.number}")
        return found

    def check_rules(self, would: Outcome, before: dict[str, dict[str, set[str]]]) -> None:
        """A rehearsal says by which rules it is."""
        now = self.matching()
        for name, effects in would.effects.items():
            for part, of in (("came", now), ("changed", now), ("left", before)):
                for uri in getattr(effects, part):
                    assert {*would.rules[name][uri]} == of[name][uri]

    def carry_out(self, step: Step) -> Outcome:
        would = step.ask(self.provider, True) if self.random.random() < 0.3 else None
        before = {} if would is None else self.matching()
        done = step.ask(self.provider, False)
        assert would in (None, done)
        if would is not None:
            self.check_rules(would if isinstance(would, Outcome) else would.outcome, before)
        return done.outcome if isinstance(done, RuleInfo) else done

    def add_rule(self) -> Step | None:
        """One of a name that the repository has already is replaced."""
        repository, text = self.random.choice([*self.caches]), self.generator.rule().text
        name = self.random.choice(["", "", "", "one"])
        try:
            rule = parse_rule(text, self.schema, {})
        except ProfileRefused:
            return None

        def note() -> None:
            rows = [each for each in self.provider.rules(repository) if each.name == name]
            self.rules[f"r{rows[-1].number}"] = (repository, rule)

        return Step(lambda to, dry: to.add_rule(repository, text, name, dry_run=dry), note)

    def remove_rule(self) -> Step:
        rule = self.random.choice([*self.rules])
        repository, _ = self.rules[rule]
        return Step(
            lambda to, dry: to.remove_rule(repository, rule, dry_run=dry),
            lambda: self.rules.pop(rule),
        )

    def register(self) -> Step:
        data = {
            document_uri(number): n_triples(self.source.document(number), has_blanks=True)
            for number in self.random.sample(range(6), self.random.randint(1, 3))
        }

        def note() -> None:
            for number in range(6):
                uri = document_uri(number)
                if uri in data:
                    self.documents[number] = read_document(uri, data[uri], SYNTAX, self.schema)

        return Step(lambda to, dry: to.register(data, str(SYNTAX), dry_run=dry), note)

    def remove(self) -> Step:
        count = self.random.randint(1, len(self.documents))
        numbers = self.random.sample([*self.documents], count)
        uris = [document_uri(number) for number in numbers]
        return Step(
            lambda to, dry: to.remove(uris, dry_run=dry),
            lambda: [self.documents.pop(number) for number in numbers],
        )

    def put_schema(self) -> Step:
        """Other references are strong."""
        lines = schema_bytes().decode().splitlines()
        for at, line in enumerate(lines):
            if "StrongReference" in line and self.random.random() < 0.5:
                lines[at] = line.replace("StrongReference", "WeakReference")
        data = "\n".join(lines).encode()

        def note() -> None:
            self.schema = self.provider.schema

        return Step(lambda to, dry: to.put_schema(data, "text/turtle", dry_run=dry), note)

    def statements(self) -> list[Statement]:
        return sorted({each for said in self.documents.values() for each in said})

    def check(self, outcome: Outcome | None) -> None:
        """The provider is right; ``outcome``: of the last step, if it was told."""
        statements = self.statements()
        matched: dict[str, set[str]] = {name: set() for name in self.caches}
        for rule, (repository, parsed) in self.rules.items():
            expected = brute.matches(parsed, statements, self.schema)
            assert set(self.provider.matches(rule)) == expected, parsed.text
            matched[repository] |= expected
        for name in self.caches if outcome else ():
            assert outcome is not None
            effects = outcome.effects.get(name, RepositoryEffects())
            assert set(effects.came) == matched[name] - self.held[name]
            assert set(effects.left) == self.held[name] - matched[name]
        self.held = matched

    def cached(self, name: str) -> list[Statement]:
        """What a repository is to have now."""
        statements = self.statements()
        reached = strongly_reached(self.held[name], statements, self.schema)
        return [each for each in statements if each.subject in reached]

    def check_caches(self) -> None:
        for name, cache in self.caches.items():
            for message in self.provider.changes(name, cache.number):
                assert cache.apply(message)
                assert not cache.apply(message)
            cached = self.cached(name)
            assert cache.resources() == resources(cached)
            if cache.number:
                self.ask(cache, cached, self.statements())

    def ask(
        self, cache: RepositoryCache, cached: list[Statement], statements: list[Statement]
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


def resources(statements: Iterable[Statement]) -> dict[str, str]:
    by_subject: dict[str, list[Statement]] = {}
    for each in statements:
        by_subject.setdefault(each.subject, []).append(each)
    return {subject: "".join(shown(said)) for subject, said in by_subject.items()}


def whole(provider: Provider, name: str, known: bytes = b"") -> list[bytes]:
    messages = []
    after: tuple[int, int] | None = (0, 0)
    while after:
        page = provider.whole(name, after, known)
        messages += page.messages
        after = page.after
    return messages


def check_whole(of: Run, name: str, cache: RepositoryCache) -> None:
    """What a cache is sent that has lost its way is what it would hold; it had something else."""
    with MetadataCache(of.path / f"{name} anew", name) as anew:
        for message in of.provider.changes(name)[: of.random.randint(0, 30)]:
            anew.apply(message)
        known = anew.digests() if of.random.random() < 0.7 else b""
        messages = whole(of.provider, name, known)
        kept = {uri for each in messages for uri in read_change(each).kept}
        assert all(anew.resources()[uri] == cache.resources()[uri] for uri in kept)
        assert anew.replace(messages, anew.number - 1) == (not kept or anew.number > cache.number)
        assert anew.replace(messages, anew.number)
        assert anew.resources() == cache.resources()
        assert (anew.number, anew.revision) == (cache.number, of.provider.revision)
        assert sorted(anew.rules()) == sorted(cache.rules())


def run(seed: int, path: Path) -> int:
    """Gives how many answers were complete."""
    of = Run(seed, path)
    for number in range(12):
        step = of.step(is_first=number < 2)
        if step is not None:
            outcome = of.carry_out(step)
            step.note()
            of.check(outcome)
            of.check_caches()
    assert isinstance(of.provider, MetadataProvider)
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
        assert isinstance(cache, MetadataCache)
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


# -- a network and processes that fail


class Died(BaseException):
    """A process, in the middle of something."""


class Life:
    """Of a process: ``left`` calls to its files until it dies, at its rows' commit or behind it if
    it comes so far; None: it does not."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.calls = 0

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.calls += 1
        if self.left is None:
            return function(*arguments)
        if function.__name__ == "commit":
            self.left = 1 + self.calls % 4 // 2
        self.left -= 1
        if self.left > 0:
            return function(*arguments)
        if self.left == 0 and self.calls % 2:  # it is done, and nobody hears of it
            function(*arguments)
        raise Died


class _Mortal:
    def __init__(self, of: object, life: Life) -> None:
        self._of, self._life = of, life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return partial(self._life.call, found) if callable(found) else found


def mortal(of: T, life: Life) -> T:
    """Files of a process, which are there when it has died."""
    return cast(T, _Mortal(of, life))


class MemoryRows(MemoryDisk):
    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        wanted = set(spaces)
        return (row for row in self.open() if row[0] in wanted)


def in_memory(kept: bytes = b"") -> sqlite3.Connection:
    tables = sqlite3.connect(":memory:", isolation_level=None)
    if kept:
        tables.deserialize(kept)
    else:
        tables.execute("PRAGMA user_version = 1")  # what has no page cannot be serialized
    return tables


class FaultyRun(Run):
    """Processes die at any call to their files, and start again; the network loses, repeats, delays
    and overtakes; the provider's rows are put back to what they were."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"choices {seed}")
        self.rows, self.filter = MemoryRows(), in_memory()
        self.files = {name: in_memory() for name in ("L0", "L1")}
        self.lives: dict[str, Life] = {}
        self.kept: list[bytes] = []  # what the filter's file was behind some steps
        self.seen: Counter[str] = Counter()  # faults
        self.applied: Counter[tuple[str, bytes]] = Counter()
        self.under_way: dict[str, list[bytes]] = {name: [] for name in self.files}
        self.time = 0.0
        self.right: list[tuple[float, int, dict[str, dict[str, str]]]] = []  # caches by name
        self.backups: list[tuple[dict[tuple[str, str], bytes], list[Any]]] = []
        super().__init__(seed, Path())

    def open_provider(self) -> Provider:
        while True:
            life = self.lives["provider"] = Life()
            self.endanger(life, 40)
            try:
                rows, tables = mortal(self.rows, life), mortal(self.filter, life)
                provider = Provider("p", rows, tables, lambda: self.time)
            except Died:
                self.seen["start"] += 1
                self.filter = self.roll_back(self.filter)
                continue
            life.left = None
            return provider

    def open_cache(self, name: str) -> RepositoryCache:
        life = self.lives[name] = Life()
        return RepositoryCache(name, mortal(self.files[name], life))

    def endanger(self, life: Life, calls: int) -> None:
        """Something that takes about so many calls may be its end."""
        life.left = self.random.randint(1, calls) if self.random.random() < 0.4 else None

    def roll_back(self, tables: sqlite3.Connection) -> sqlite3.Connection:
        """What there is when a process opens it anew."""
        if tables.in_transaction:
            tables.execute("ROLLBACK")
        return in_memory(tables.serialize())

    def restart(self) -> None:
        """The provider's process; its filter may be older, or gone."""
        self.filter = self.roll_back(self.filter)
        if self.random.random() < 0.4:
            self.filter = in_memory(self.random.choice([b"", *self.kept[-3:]]))
            self.seen["filter behind"] += 1
        self.provider = self.open_provider()

    def survive(self, step: Step) -> None:
        """The step, which was carried out or never was."""
        self.time += 1
        before, life = self.provider.revision, self.lives["provider"]
        self.endanger(life, max(life.calls, 20))
        life.calls = 0
        outcome = None
        try:
            outcome = self.carry_out(step)
            life.left = None
        except Died:
            self.restart()
            is_done = self.provider.revision > before
            self.seen["done" if is_done else "never was"] += 1
        assert self.provider.revision in (before, before + 1)
        if self.provider.revision > before:
            step.note()
        self.check(outcome)
        self.kept.append(self.filter.serialize())
        model = [dict(self.documents), dict(self.rules), self.held, self.schema]
        self.backups.append((dict(self.rows), model))
        self.note_right()

    def note_right(self) -> None:
        caches = {name: resources(self.cached(name)) for name in self.caches}
        self.right.append((self.time, self.provider.revision, caches))

    def put_back(self) -> None:
        """The rows are those of a backup."""
        self.time += 1
        rows, (documents, rules, self.held, self.schema) = self.random.choice(self.backups)
        self.documents, self.rules = dict(documents), dict(rules)
        self.rows.clear()
        self.rows.update(rows)
        self.seen["put back"] += 1
        self.restart()
        self.check(None)
        self.note_right()

    def publish(self, *, is_faulty: bool = True) -> int:
        """Some of the outbox, which is published again where the provider dies before it has noted
        that it was; gives how much it was."""
        messages = self.provider.outbox(self.random.randint(1, 6))
        for _, body in messages:
            for name in read_change(body).to:
                times = self.random.choice([0, 1, 1, 1, 1, 1, 2]) if is_faulty else 1
                self.under_way[name] += [body] * times
                self.seen["lost"] += not times
        if messages:
            if is_faulty:
                self.endanger(self.lives["provider"], 8)
            try:
                self.provider.published(messages[-1][0])
                self.lives["provider"].left = None
            except Died:
                self.seen["published again"] += 1
                self.restart()
        return len(messages)

    def deliver(self, name: str, count: int, *, is_faulty: bool = True) -> None:
        """Some of what is under way, in order but now and then."""
        coming, life = self.under_way[name], self.lives[name]
        for _ in range(min(count, len(coming))):
            message = coming.pop(is_faulty and len(coming) > 1 and self.random.random() < 0.1)
            if is_faulty:
                self.endanger(life, max(life.calls, 8))
            life.calls = 0
            try:
                is_new = self.take(name, message)
                life.left = None
                self.applied[name, message] += is_new
            except Died:
                self.seen["cache"] += 1
                self.files[name] = self.roll_back(self.files[name])
                self.caches[name] = self.open_cache(name)
                life = self.lives[name]
                coming.insert(0, message)  # nobody has said that it has come
            self.check_cache(name)

    def take(self, name: str, message: bytes) -> bool:
        """As ``MetadataRepository`` does."""
        cache = self.caches[name]
        try:
            return cache.apply(message)
        except MessageMissing:
            self.replace(name)
        try:
            return cache.apply(message)
        except MessageMissing:
            self.seen["of other rows"] += 1
            return False

    def replace(self, name: str) -> None:
        cache = self.caches[name]
        try:
            messages = whole(self.provider, name, cache.digests())
        except MetadataRefused:  # the rows are older than the repository
            messages = []
        cache.replace(messages, cache.number)
        self.seen["replaced"] += 1

    def confirm(self, name: str, *, is_quiet: bool) -> None:
        """A repository asks whether it is as far as the provider."""
        cache, progress = self.caches[name], self.provider.progress(name)
        is_other = progress.number == cache.number and progress.digest != cache.digest
        is_behind = progress.number > cache.number  # the last one was lost, or is on its way
        if is_other or progress.number < cache.number or (is_behind and is_quiet):
            self.replace(name)
        elif progress.number == cache.number:
            cache.confirm(progress.revision, progress.time)
        self.check_cache(name)

    def check_cache(self, name: str) -> None:
        """It shows one revision of the provider, all of it."""
        cache = self.caches[name]
        was = (each for each in reversed(self.right) if each[0] <= cache.time)
        _, revision, caches = (
            next(was, (0.0, 0, {name: {}})) if cache.revision else (0, 0, {name: {}})
        )
        assert (cache.revision, cache.resources()) == (revision, caches[name])

    def settle(self) -> None:
        """Nothing fails any more."""
        while self.publish(is_faulty=False):
            pass
        for name, cache in self.caches.items():
            self.deliver(name, len(self.under_way[name]), is_faulty=False)
            for _ in range(2):
                self.confirm(name, is_quiet=True)
            progress = self.provider.progress(name)
            assert (cache.number, cache.digest) == (progress.number, progress.digest)
            assert cache.revision == progress.revision or not cache.number
        self.check_caches()


SEEDS = seeds(10)


def lived(seed: int) -> FaultyRun:
    note(seed)
    of = FaultyRun(seed)
    for number in range(12):
        step = of.step(is_first=number < 2)
        if step is not None:
            of.survive(step)
        of.publish()
        if of.random.random() < 0.05 and of.backups:
            of.put_back()
        for name in of.caches:
            of.deliver(name, of.random.randint(0, 3))
            if of.random.random() < 0.2:
                of.confirm(name, is_quiet=False)
    of.settle()
    assert of.provider.verify(in_memory()) == [], f"seed {seed}"
    assert of.seen["put back"] or set(of.applied.values()) <= {0, 1}, f"seed {seed}"
    return of


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is large, there is much here too: messages of a revision, pages, revisions that a
    filter is behind."""
    for where, limit in (
        ("provider_reader.MESSAGE_LENGTH", 1_000),
        ("provider_reader.PAGE_LENGTH", 2_000),
        ("provider_reader._AT_ONCE", 2),
        ("provider.CATCH_UP_MAX", 3),
    ):
        monkeypatch.setattr(f"registration.metadata.{where}", limit)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", SEEDS[::20])
def test_caches_are_right_whatever_fails(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in batch(SEEDS, first, 20):
        seen += lived(seed).seen
    assert seen["start"] and seen["done"] and seen["never was"] and seen["cache"], seen


def test_a_filter_that_does_not_catch_up_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Provider, "_repeat", lambda self, row: None)
    with pytest.raises(AssertionError):
        for seed in range(1, 11):
            lived(seed)
