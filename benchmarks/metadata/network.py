"""A provider and its repositories in a network of three brokers, each a process of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

from benchmarks.benchmark import WrongAnswers
from benchmarks.metadata.workload import RDF_XML, SCHEMA, batches, rule, uri
from benchmarks.network.helper import Helper, running
from benchmarks.network.onyx_network import onyx_network
from onyx.metadata import MetadataClient

BROKERS = REPOSITORIES = 3
NAME = "metadata"
_RULE = "search CycleProvider c register c where c.serverPort > 5000"


async def measure(
    directory: Path, documents: int, rounds: int, size: int
) -> tuple[list[float], list[float]]:
    """How many milliseconds caches wait for ``documents`` that are registered one by one, from the
    request until the process of a cache tells the revision; and a client for each answer, while
    another one registers ``rounds`` batches of ``size``."""
    async with onyx_network(directory / "network", BROKERS) as network:
        where = ("--registration", network.registration, "--json")
        provider = _started("serve", str(directory / "provider"), "--name", NAME, *where)
        client = MetadataClient(network.registration, NAME)
        async with provider as serving, client:
            await serving.answer()
            await client.put_schema(SCHEMA, "text/turtle")
            async with AsyncExitStack() as stack:
                caches = []
                for number in range(REPOSITORIES):
                    words = str(directory / f"l{number}"), f"L{number}", *where
                    caches.append(await stack.enter_async_context(_started("cache", *words)))
                    added = await client.add_rule(f"L{number}", _RULE)
                    await _until(caches[-1], added.outcome.revision)
                cached = [await _cached(client, caches, each) for each in range(documents)]
            few = await client.add_rule("L0", rule("path", 0))
            reader: list[float] = []
            made = [*batches(documents, rounds, size)]  # which keeps this process from answering
            async with trio.open_nursery() as reading:
                reading.start_soon(_read, client, few.id, reader)
                for batch in made:
                    await client.register(batch, RDF_XML)
                reading.cancel_scope.cancel()
    return [each for times in cached for each in times], reader


@asynccontextmanager
async def _started(verb: str, *words: str) -> AsyncIterator[Helper]:
    command = [sys.executable, "-m", "onyx", "metadata", verb, *words]
    async with running(f"onyx metadata {verb}", command) as process:
        yield process


async def _cached(client: MetadataClient, caches: list[Helper], number: int) -> list[float]:
    """Each cache waits for a document."""
    (document,) = batches(number, 1, 1)
    times = []
    revision = (await client.status()).revision + 1
    began = perf_counter()

    async def wait(cache: Helper) -> None:
        said = await _until(cache, revision)
        times.append((perf_counter() - began) * 1e3)
        if said["resources"] != 2 * (number + 1):
            raise WrongAnswers(f"{said['resources']} resources of {number + 1} documents")

    async with trio.open_nursery() as waiting:
        for cache in caches:
            waiting.start_soon(wait, cache)
        await client.register(document, RDF_XML)
    return times


async def _until(cache: Helper, revision: int) -> Any:
    while (said := await cache.answer())["revision"] < revision:
        pass
    return said


async def _read(client: MetadataClient, few: str, waits: list[float]) -> None:
    """Questions of three kinds in turn, without a pause."""
    host = f"{uri(0)}#host"
    while True:
        for ask in (client.status, lambda: client.matches(few), lambda: client.explain("L0", host)):
            began = perf_counter()
            await ask()
            waits.append((perf_counter() - began) * 1e3)
