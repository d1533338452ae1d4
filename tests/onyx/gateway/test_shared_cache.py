"""A cache that its repository shares over HTTP, asked by those who have no broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from onyx import RequestFailed
from onyx.errors import NetworkUnreachable, UsageError
from onyx.gateway import shared_cache
from onyx.gateway.options import GatewayOptions
from onyx.gateway.shared_cache import SharedCache, share
from onyx.identity.known_networks import credentials_for
from onyx.listening import bind
from onyx.metadata import MetadataClient, MetadataRepository
from onyx.metadata.remote_cache import RemoteCache
from onyx.registration_client import addresses_of
from overlay.link.principal import Principal
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Client
from tests.onyx.gateway.test_open_gateway import HERE, certificate
from tests.onyx.gateway.tokens import issue, revoke
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, SCHEMA, URI
from tests.onyx.metadata.test_metadata_network import ASKED, RULE, serving
from tests.onyx.networks import RunningProcess

SECRET = "a-token-of-somebody-in-the-lan"


@asynccontextmanager
async def shared(where: str, path: Path, options: GatewayOptions) -> AsyncIterator[str]:
    """The address of a cache that has a document."""
    name = f"mdv-{path.name}"
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            serving(where, path / "provider", name),
            MetadataClient(where, name) as client,
            MetadataRepository(path / "cache", where, "L1", provider=name) as repository,
            trio.open_nursery() as nursery,
        ):
            await client.put_schema(SCHEMA, "text/turtle")
            await client.register({URI: DOCUMENT}, "text/turtle")
            await repository.add_rule(RULE)
            with bind(options.listen) as listener:
                ready = trio.Event()
                nursery.start_soon(share, repository, where, options, listener, ready.set)
                await ready.wait()
                yield f"{HERE}:{listener.getsockname()[1]}"
                nursery.cancel_scope.cancel()


async def in_thread(cache: RemoteCache, text: str = ASKED) -> list[tuple[str, ...]]:
    return (await trio.to_thread.run_sync(cache.query, text)).rows


async def test_on_this_machine_it_answers_everybody(
    gateway_network: RunningProcess, tmp_path: Path
) -> None:
    options = GatewayOptions(Address(HERE, 0))
    async with shared(gateway_network.registration, tmp_path, options) as where:
        cache = RemoteCache(f"http://{where}/")
        answer = await trio.to_thread.run_sync(cache.query, RULE)
        assert (answer.rows, answer.complete) == ([(HOST,)], True)
        assert answer.time > 0 and answer.revision == 3
        assert (await trio.to_thread.run_sync(cache.explain, RULE)).startswith("SELECT")
        with pytest.raises(RequestFailed, match="line 1, column 8") as refused:
            await in_thread(cache, "search CycleProvidr c register c")
        assert refused.value.code == "unknown-class"
        ask = Client(f"http://{where}").ask
        status = await trio.to_thread.run_sync(ask, "GET", "/status")
        assert (status.said["repository"], status.said["resources"]) == ("L1", 2)
        assert [each["text"] for each in status.said["rules"]] == [RULE]
        path = f"/resource?uri={HOST.replace('#', '%23')}"
        found = await trio.to_thread.run_sync(ask, "GET", path)
        assert "pirates.uni-passau.de" in str(found.said)
        missing = await trio.to_thread.run_sync(ask, "GET", "/resource?uri=urn:x")
        assert (missing.status, missing.said["code"]) == (404, "not-found")


async def test_elsewhere_it_asks_for_a_token_of_the_network(
    gateway_network: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_cache, "AGAIN_SECONDS", 0.0)
    registration = gateway_network.registration
    own = credentials_for(*addresses_of(registration)[0])
    assert own is not None
    file = tmp_path / "ann.token"
    uri = Principal.parse("user/ann").uri(own.network)
    file.write_text(f"{uri}\ntoken {SECRET}\n{own.authorities}", encoding="ascii")
    pem, key = certificate(tmp_path)
    with pytest.raises(UsageError, match="https alone"):
        RemoteCache("http://lan.example", file, pem)
    await issue(registration, "user/ann", SECRET)
    options = GatewayOptions(Address("0.0.0.0", 0), pem, key, (HERE,))
    async with shared(registration, tmp_path, options) as where:
        ann = RemoteCache(f"https://{where}", file, pem)
        assert await in_thread(ann) == [(HOST, "92")]
        with pytest.raises(RequestFailed, match="show a token"):
            await in_thread(RemoteCache(f"https://{where}", certificate=pem))
        with pytest.raises(NetworkUnreachable, match="certificate"):
            await in_thread(RemoteCache(f"https://{where}", file))
        await revoke(registration, SECRET)
        with pytest.raises(RequestFailed, match="not-auth"):
            while True:
                await in_thread(ann)


@pytest.mark.parametrize(("code", "is_known"), [("unreachable", True), ("not-authorised", False)])
async def test_it_goes_on_with_tokens_that_it_knows_while_the_network_is_away(
    code: str, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_cache, "AGAIN_SECONDS", 0.0)
    answers = [SimpleNamespace(source=checkpoint), None, None]

    @asynccontextmanager
    async def session(_: str) -> AsyncIterator[Any]:
        if (client := answers.pop(0)) is None:
            raise RequestFailed(code, "no")
        yield SimpleNamespace(client=client)

    parts: list[Any] = [SimpleNamespace(provider="mdv"), SimpleNamespace(session=session)]
    async with trio.open_nursery() as nursery:
        shared = SharedCache(*parts, GatewayOptions(Address(HERE, 0)), nursery)
        for _ in range(2):  # it is asked about, and again behind the answer
            await shared.check(SECRET)
            await trio.testing.wait_all_tasks_blocked()
        with nullcontext() if is_known else pytest.raises(RequestFailed, match=code):
            await shared.check(SECRET)


async def checkpoint(_: str) -> None:
    await trio.lowlevel.checkpoint()
