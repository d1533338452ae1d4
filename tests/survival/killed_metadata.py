"""A metadata provider and the cache of a repository, in a real network, that are killed at every
step: each life of a process ends before or behind another of its first writes and syncs of files.
Brokers are killed as well.

::

    python -m tests.survival.killed_metadata --kills 200 --seed 7 --postgres

At the end the cache holds what nested loops say, each message has come once, and the provider finds
nothing wrong.  Exit code 0: so it is; 1: it is not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import trio

from formats.graph.syntaxes import GraphSyntax
from onyx import User, UserError
from onyx.metadata import MetadataCache, MetadataClient
from onyx.metadata.repository import profile_text
from onyx.registration_client import NOT_ASKED, PERHAPS_ASKED
from overlay.stores import SQLITE
from registration.metadata.change_messages import read_change
from registration.metadata.documents import Statement, read_document
from registration.metadata.provider_reader import Progress
from registration.metadata.rules import Rule, parse_rule
from tests.onyx.metadata.test_random_metadata import resources, strongly_reached
from tests.overlay.link import faulty_disk
from tests.postgres import running_postgres
from tests.registration.metadata import brute
from tests.registration.metadata.random_metadata import (
    RandomDocuments,
    RandomRules,
    document_uri,
    n_triples,
    random_schema,
    schema_bytes,
)
from tests.survival.separate_nodes import HERE, SeparateNodes
from yfilter.errors import ProfileRefused

NAME, REPOSITORY = "mdv", "L1"
STEPS, STRIDE = (101, 401), 37  # of the longest lives, in turn; from one life to the next
BROKERS, EACH = 3, 25  # of so many requests one finds a broker killed
SYNTAX = GraphSyntax.N_TRIPLES
PATIENCE_SECONDS = 600.0


class Step(NamedTuple):
    """``ask`` may be repeated; ``note``: it has been done."""

    ask: Callable[[], Awaitable[object]]
    note: Callable[[], object]


@dataclass
class KilledMetadata:
    """``kills`` of each of both processes; ``store`` of the provider's rows."""

    kills: int
    seed: int
    directory: Path
    store: str = SQLITE
    say: Callable[[str], None] = lambda line: None
    killed: Counter[str] = field(default_factory=Counter)
    numbers: Counter[int] = field(default_factory=Counter)  # of messages that came
    documents: dict[int, list[Statement]] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)  # by name

    async def run(self) -> list[str]:
        """What is wrong, in words."""
        self.random, self.schema = Random(self.seed), random_schema()
        self.source = RandomDocuments(self.random)
        provider, cache = str(self.directory / "provider"), str(self.directory / "cache")
        with SeparateNodes(self.directory, BROKERS) as nodes:
            nodes.start(nodes.node_ids, HERE)
            await nodes.wait_ready()
            where = nodes.registration
            async with (
                MetadataClient(where, NAME) as client,
                User(where, "observer") as user,
                trio.open_nursery() as nursery,
            ):
                words = [provider, "--name", NAME, "--store", self.store, "--registration", where]
                nursery.start_soon(self._live, "provider", ["serve", *words])
                await self._do(Step(lambda: client.put_schema(schema_bytes(), "text/turtle"), int))
                observed = await user.add_profile(profile_text(NAME, REPOSITORY))
                nursery.start_soon(self._observe, user, observed.id)
                cached = ["cache", cache, REPOSITORY, "--provider", NAME, "--registration", where]
                nursery.start_soon(self._live, "cache", cached)
                asked = 0
                while min(self.killed[each] for each in ("provider", "cache")) < self.kills:
                    await self._do(self._step(client))
                    asked += 1
                    if asked % EACH == 0:
                        await self._kill_broker(nodes)
                last = await client.progress(REPOSITORY)
                with trio.move_on_after(PATIENCE_SECONDS):
                    while _revision(cache) < last.revision:
                        await trio.sleep(0.1)
                nursery.cancel_scope.cancel()
            command = [sys.executable, "-m", "onyx", "metadata", "verify", *words]
            verified = await trio.run_process(
                command, cwd=HERE, capture_stdout=True, capture_stderr=True, check=False
            )
            wrong = [f"verify: {verified.stdout.decode()}"] * (verified.returncode != 0)
        return wrong + self._faults(cache, last)

    def _faults(self, cache: str, last: Progress) -> list[str]:
        statements = sorted({each for said in self.documents.values() for each in said})
        matched: set[str] = set()
        for rule in self.rules.values():
            matched |= brute.matches(rule, statements, self.schema)
        reached = strongly_reached(matched, statements, self.schema)
        right = resources(each for each in statements if each.subject in reached)
        wrong = []
        with MetadataCache(cache) as held:
            if held.revision < last.revision:
                wrong.append(f"the cache is at revision {held.revision}, not {last.revision}")
            found = held.resources()
        differ = {uri for uri in found.keys() | right if found.get(uri) != right.get(uri)}
        wrong += [f"the cache is wrong about {uri}" for uri in sorted(differ)]
        twice = [number for number, times in self.numbers.items() if times > 1]
        wrong += [f"message {number} came more than once" for number in twice]
        if last.number not in self.numbers:
            wrong.append(f"message {last.number} has not come")
        return wrong

    async def _live(self, name: str, words: Sequence[str]) -> None:
        """Life after life; the last one goes on."""
        fault = self.directory / f"{name}.fault"
        compiler = shutil.which("cc")
        assert compiler is not None
        source = Path(faulty_disk.__file__).with_suffix(".c")
        library = faulty_disk.preloaded(self.directory, source, compiler)
        environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT": str(fault)}
        command = [sys.executable, "-m", "onyx", "metadata", *words]
        log = self.directory / f"{name}.log"
        while True:
            number = self.killed[name]
            fault.write_text(
                f"killed * {1 + STRIDE * number % STEPS[number % 2]}" if number < self.kills else ""
            )
            with log.open("ab") as errors:
                process = await trio.lowlevel.open_process(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    cwd=HERE,
                    env=environment,
                )
                try:
                    code = await process.wait()
                finally:
                    with trio.CancelScope(shield=True):
                        process.kill()
                        await process.wait()
            assert code == -signal.SIGKILL, f"{name} ended with {code}: {log.read_text()}"
            self.killed[name] += 1
            self.say(f"{name} is killed for the {number + 1}. time")

    async def _kill_broker(self, nodes: SeparateNodes) -> None:
        broker = f"B{self.random.randint(1, BROKERS)}"
        await trio.to_thread.run_sync(nodes.stop, broker, signal.SIGKILL)
        nodes.start([broker], HERE)
        await nodes.wait_ready_again(broker)
        self.killed[broker] += 1

    async def _observe(self, user: User, profile: str) -> None:
        async for delivery in user.results(profile):
            for message in delivery.results:
                self.numbers[read_change(message).number] += 1

    async def _do(self, step: Step) -> None:
        """Until it is known to be done."""
        with trio.fail_after(PATIENCE_SECONDS):
            while True:
                try:
                    await step.ask()
                    break
                except UserError as error:
                    if error.code == "no-such-document":
                        break  # it was done, and the answer was lost
                    if error.code not in NOT_ASKED | PERHAPS_ASKED | {"timeout"}:
                        raise
                    await trio.sleep(0.05)
        step.note()

    def _step(self, client: MetadataClient) -> Step:
        random = self.random
        choice = random.random()
        if choice < 0.2 and self.documents:
            uris = {each: document_uri(each) for each in random.sample([*self.documents], 1)}
            return Step(
                lambda: client.remove([*uris.values()]),
                lambda: [self.documents.pop(each) for each in uris],
            )
        if choice < 0.4:
            return self._rule_step(client)
        data = {
            number: n_triples(self.source.document(number), has_blanks=True)
            for number in random.sample(range(6), random.randint(1, 3))
        }

        def note() -> None:
            for number, text in data.items():
                uri = document_uri(number)
                self.documents[number] = read_document(uri, text, SYNTAX, self.schema)

        by_uri = {document_uri(number): text for number, text in data.items()}
        return Step(lambda: client.register(by_uri, str(SYNTAX)), note)

    def _rule_step(self, client: MetadataClient) -> Step:
        generator = RandomRules(self.random, [*self.source.classes])
        text, name = generator.rule().text, self.random.choice("abc")
        try:
            rule = parse_rule(text, self.schema, {})
        except ProfileRefused:
            return self._rule_step(client)
        return Step(
            lambda: client.add_rule(REPOSITORY, text, name),
            lambda: self.rules.__setitem__(name, rule),
        )


def _revision(cache: str) -> int:
    """That the file of a cache shows, which another process has."""
    tables = closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True))
    with suppress(sqlite3.OperationalError), tables as opened:  # killed as it made the tables
        row = opened.execute("SELECT value FROM state WHERE word = 'revision'").fetchone()
        return int(row[0]) if row else 0
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.killed_metadata")
    parser.add_argument("--kills", type=int, default=100, help="of the provider and of the cache")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="the provider's rows are in one")
    options = parser.parse_args()
    server = running_postgres() if options.postgres else nullcontext()
    with server as postgres, tempfile.TemporaryDirectory(prefix="onyx-killed-") as directory:
        store = postgres.url if postgres else SQLITE
        run = KilledMetadata(options.kills, options.seed, Path(directory), store, print)
        wrong = trio.run(run.run)
    print(f"killed: {dict(run.killed)}; {len(run.numbers)} messages; {wrong or 'all is right'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
