"""A provider and its repositories in a network of real processes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from onyx import DataSource, RequestFailed
from onyx.metadata import MetadataClient, MetadataProvider, MetadataRepository
from onyx.metadata.serving import Serving
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, INFO, SCHEMA, URI

RULE = "search CycleProvider c register c where c.serverInformation.memory > 64"
ASKED = "search CycleProvider c select c, c.serverInformation.memory"
SAFETY_SECONDS = 60


@asynccontextmanager
async def serving(registration: str, directory: Path, name: str) -> AsyncIterator[None]:
    source = await DataSource.register(registration, name=name, ensure=True)
    with MetadataProvider(directory, source.id) as provider:
        async with source, trio.open_nursery() as tasks:
            tasks.start_soon(Serving(source, provider).run)
            yield
            tasks.cancel_scope.cancel()


async def test_a_repository_answers_as_the_provider_and_follows_it(
    registration: str, tmp_path: Path
) -> None:
    name = "mdv-follows"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            serving(registration, tmp_path / "provider", name),
            MetadataClient(registration, name) as client,
        ):
            await client.put_schema(SCHEMA, "text/turtle")
            await client.register({URI: DOCUMENT}, "text/turtle")
            file = tmp_path / "cache"
            async with MetadataRepository(file, registration, "L1", provider=name) as repository:
                rule = await repository.add_rule(RULE)
                assert (await repository.query(ASKED)).rows == [(HOST, "92")]
                more = DOCUMENT.replace(b"92", b"128")
                outcome = await client.register({URI: more}, "text/turtle")
                assert outcome.effects["L1"].changed == (HOST,)
                await repository.wait(outcome.revision)
                assert (await repository.query(ASKED)).rows == [(HOST, "128")]
                less = DOCUMENT.replace(b"92", b"32")
                await repository.wait((await client.register({URI: less}, "text/turtle")).revision)
                assert not repository.cache.resources()
                assert repository.age() < SAFETY_SECONDS
                await repository.wait((await client.register({URI: more}, "text/turtle")).revision)
                assert {*repository.cache.resources()} == {HOST, INFO}
                await repository.remove_rule(rule.id)
                assert not repository.cache.resources()


async def test_it_goes_on_after_both_have_been_away(registration: str, tmp_path: Path) -> None:
    name = "mdv-goes-on"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            serving(registration, tmp_path / "provider", name),
            MetadataClient(registration, name) as client,
        ):
            await client.put_schema(SCHEMA, "text/turtle")
            async with MetadataRepository(
                tmp_path / "cache", registration, "L1", provider=name
            ) as repository:
                await repository.add_rule(RULE)
            outcome = await client.register({URI: DOCUMENT}, "text/turtle")
        async with (
            serving(registration, tmp_path / "provider", name),
            MetadataRepository(tmp_path / "cache", registration, "L1", provider=name) as repository,
        ):
            await repository.wait(outcome.revision)
            assert (await repository.query(ASKED)).rows == [(HOST, "92")]


async def test_a_gap_is_closed_by_asking_for_all(registration: str, tmp_path: Path) -> None:
    name = "mdv-gap"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            serving(registration, tmp_path / "provider", name),
            MetadataClient(registration, name) as client,
        ):
            await client.put_schema(SCHEMA, "text/turtle")
            await client.register({URI: DOCUMENT}, "text/turtle")
            file = tmp_path / "cache"
            async with MetadataRepository(file, registration, "L1", provider=name) as repository:
                await repository.add_rule(RULE)
            with sqlite3.connect(file) as tables:  # a state in which a message has not come
                tables.execute("UPDATE state SET value = '1' WHERE word = 'number'")
                tables.execute("DELETE FROM matched")
            tables.close()
            async with MetadataRepository(file, registration, "L1", provider=name) as repository:
                more = DOCUMENT.replace(b"92", b"128")
                outcome = await client.register({URI: more}, "text/turtle")
                await repository.wait(outcome.revision)
                assert (await repository.query(ASKED)).rows == [(HOST, "128")]


async def test_a_refusal_comes_to_the_one_who_asks(registration: str, tmp_path: Path) -> None:
    name = "mdv-refuses"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            serving(registration, tmp_path / "provider", name),
            MetadataClient(registration, name) as client,
        ):
            await client.put_schema(SCHEMA, "text/turtle")
            with pytest.raises(RequestFailed, match="CycleProvidr") as caught:
                await client.add_rule("L1", "search CycleProvidr c register c")
            assert (caught.value.fault.line, caught.value.fault.column) == (1, 8)
            with pytest.raises(RequestFailed, match="no-such-document"):
                await client.document(URI)
