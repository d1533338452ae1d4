"""NetworkFeed: Onyx as the first user of its metadata, ``onyx metadata serve --network``.

::

    registration service ── sources, topology, plan ──┐
    brokers ── profiles, messages of sources ─────────┴──> documents ── if they differ ──> provider

Every ten seconds it asks, as any client does; the network knows nothing of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from time import time as wall_clock
from typing import TypeVar

import anyio
import anyio.to_thread
import trio

from formats.errors import Refusal
from formats.schema import read_schema
from formats.schema_reader import read_schema_model
from onyx.background import background_tasks
from onyx.data_source import DataSource
from onyx.errors import UserError
from onyx.metadata.provider import MetadataProvider
from onyx.metadata.requests import (
    PutSchema,
    Question,
    Register,
    Remove,
    all_documents,
    asked,
    read_answer,
    read_question,
)
from onyx.metadata.serving import Serving
from onyx.network_looks import watch_network
from onyx.network_view import NetworkView
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay import verbs
from overlay.answers import SourceInfo
from overlay.archive_file import Span, files_of
from overlay.topology import parse_topology
from registration.metadata.documents import MetadataRefused
from registration.metadata.network_facts import (
    READ_ONLY,
    SCHEMA,
    ArchiveFacts,
    NetworkFacts,
    SchemaFacts,
)
from registration.metadata.provider_reader import BATCH_MAX
from registration.spark.archive_files import ArchiveFiles

A = TypeVar("A")
LOOK_SECONDS = 10.0
N_TRIPLES = "application/n-triples"
log = logging.getLogger("onyx.metadata")


class NetworkFeed(Serving):
    """Serves what the network of a registration service is, and takes nothing of others."""

    def __init__(
        self,
        registration: str,
        source: DataSource,
        provider: MetadataProvider,
        wall: Callable[[], float] = wall_clock,
    ) -> None:
        super().__init__(source, provider)
        self._registration = registration
        self._own = source.id
        self._wall = wall
        self._view = NetworkView()
        self._news = anyio.Event()
        self._there: dict[str, str] | None = None  # the digests of documents, by URI
        self._schemas: dict[str, tuple[int, SchemaFacts]] = {}  # with the version of the source
        self._counts: dict[str, int] = {}  # of messages, as brokers said last
        self._archives: dict[str, ArchiveFacts] = {}

    async def run(self) -> None:
        """Refusal where the provider has what the schema does not allow."""
        async with background_tasks(trio.open_nursery()) as nursery:
            nursery.start_soon(self._feed)
            await super().run()

    async def answer(self, asker: str, writes: bool, body: bytes) -> bytes:
        if read_question(body).writes:
            raise MetadataRefused(READ_ONLY)
        return await super().answer(asker, writes, body)

    async def _say(self, question: Question[A]) -> A:
        return read_answer(question, await super().answer("", True, asked(question)))

    async def _feed(self) -> None:
        await self._say(PutSchema(data=SCHEMA.encode(), media_type="text/turtle"))
        while True:
            try:
                async with background_tasks(trio.open_nursery()) as nursery:
                    nursery.start_soon(watch_network, self._registration, LOOK_SECONDS, self._take)
                    async with RegistrationClient(self._registration) as client:
                        while True:
                            await self._news.wait()
                            self._news = anyio.Event()
                            await self._look(client)
            except* UserError as away:
                log.warning("the network cannot be asked: %s", away.exceptions[0])
            await anyio.sleep(LOOK_SECONDS)

    def _take(self, view: NetworkView) -> None:
        self._view = view
        self._news.set()

    async def _look(self, client: RegistrationClient) -> None:
        facts = await self._facts(client)
        documents = facts.documents()
        if self._there is None:
            self._there = await all_documents(self._say, facts.prefix)
        there = {uri: sha256(data).hexdigest() for uri, data in documents.items()}
        changed = [uri for uri, digest in there.items() if self._there.get(uri) != digest]
        gone = [uri for uri in self._there if uri not in there]
        for at in range(0, len(changed), BATCH_MAX):
            batch = {uri: documents[uri] for uri in changed[at : at + BATCH_MAX]}
            await self._say(Register(documents=batch, media_type=N_TRIPLES))
        for at in range(0, len(gone), BATCH_MAX):
            await self._say(Remove(uris=gone[at : at + BATCH_MAX]))
        self._there = there

    async def _facts(self, client: RegistrationClient) -> NetworkFacts:
        shape = await client.ask(verbs.TopologyShow())
        topology = parse_topology(shape.text, "the network")
        sources = [each for each in await client.sources() if not each.removed]
        plan = await client.ask(verbs.PlanShow())
        counts = {each.source: each.messages for each in self._view.sources}
        directory = topology.archive.directory
        kept: Mapping[str, Span] = {}
        if directory is not None:
            with suppress(OSError):
                files = await anyio.to_thread.run_sync(files_of, directory)
                kept = (await anyio.to_thread.run_sync(ArchiveFiles.of, files)).spans
        for each in sources:
            await self._read_schema(client, each)
            if directory is not None and each.id != self._own:
                await self._read_archive(each, counts.get(each.id, 0), kept.get(each.id))
        return NetworkFacts(
            topology,
            sources,
            {source: facts for source, (_, facts) in self._schemas.items()},
            self._archives,
            {each.broker: each.profiles for each in self._view.brokers if each.state == "up"},
            plan.plan,
            shape.away,
            shape.down,
        )

    async def _read_schema(self, client: RegistrationClient, source: SourceInfo) -> None:
        known = self._schemas.get(source.id)
        if not source.schema_kind or (known is not None and known[0] == source.version):
            return
        said = await client.ask(verbs.SourceSchema(source=source.id))
        try:
            schema = read_schema(said.name, said.schema)
            model = await anyio.to_thread.run_sync(read_schema_model, schema)
            self._schemas[source.id] = source.version, SchemaFacts.of(model)
        except Refusal:
            self._schemas[source.id] = source.version, SchemaFacts()

    async def _read_archive(self, source: SourceInfo, count: int, kept: Span | None) -> None:
        """The time of its last message is that of the look that finds it.  Messages and bytes are
        those of the summaries that are on this machine, else those that have been published."""
        if not count:
            return
        known = self._archives.get(source.id, ArchiveFacts())
        first, last = known.first, known.last
        if first is None:
            first = await _first_in_archive(source)
        if count != self._counts.get(source.id, count):
            last = self._wall()
        self._counts[source.id] = count
        figures = (count, count * source.size) if kept is None else (kept.messages, kept.bytes)
        self._archives[source.id] = ArchiveFacts(first, last, *figures)


async def _first_in_archive(source: SourceInfo) -> float | None:
    """None where nothing can be read."""
    try:
        async with NetworkClient(source.address, patience_seconds=0.0) as root:
            page = await root.ask(verbs.ArchiveRead(source=source.id))
    except UserError:
        return None
    line, _, _ = page.lines.partition(b"\n")
    said: Mapping[str, str] = json.loads(line) if line else {}
    return datetime.fromisoformat(said["time"]).timestamp() if said else None
