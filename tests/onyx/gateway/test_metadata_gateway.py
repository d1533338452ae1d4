"""Providers of metadata over HTTP: their questions as routes, and their pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import trio

from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, INFO, SCHEMA, URI
from tests.onyx.metadata.test_metadata_network import RULE, serving
from tests.onyx.networks import RunningProcess

Ask: TypeAlias = Callable[..., Awaitable[Answer]]


async def test_a_provider_is_asked_and_looked_at(
    gateway_network: RunningProcess, client: Client, tmp_path: Path
) -> None:
    async def ask(method: str, path: str, body: object = None) -> Answer:
        return await trio.to_thread.run_sync(client.ask, method, path, body)

    with trio.fail_after(SAFETY_SECONDS):
        async with serving(gateway_network.registration, tmp_path, "mdv-http"):
            v1 = "/v1/metadata/mdv-http"
            schema = {"data": SCHEMA.decode(), "media_type": "text/turtle"}
            assert (await ask("POST", f"{v1}/schema/put", schema)).said["revision"] == 1
            documents = {"documents": {URI: DOCUMENT.decode()}, "media_type": "text/turtle"}
            assert (await ask("POST", f"{v1}/register", documents)).status == 200
            rule = {"repository": "L1", "rules": [[RULE, ""]]}
            (tried,) = (await ask("POST", f"{v1}/rule/add", {**rule, "dry_run": True})).said
            (added,) = (await ask("POST", f"{v1}/rule/add", rule)).said
            by_rule = [each["outcome"].pop("rules") for each in (tried, added)]
            assert by_rule == [{"L1": {HOST: ["r1"]}}, {}]
            assert tried == added
            assert added["outcome"]["effects"] == {
                "L1": {"came": [HOST], "left": [], "changed": []}
            }
            seen = (await ask("GET", f"{v1}/browse?name=CycleProvider&limit=1")).said
            assert seen["resources"] == [HOST]
            await _check_refusals(ask, v1)
            await _check_pages(ask)
        away = await ask("GET", f"{v1}/status")
        assert (away.status, away.said["code"]) == (503, "source-away")
        assert "no process is connected" in (await ask("GET", "/metadata")).said


async def _check_refusals(ask: Ask, v1: str) -> None:
    for path, status, code in (
        ("browse?limit=0", 400, "bad-argument"),
        ("browse?limits=1", 400, "bad-argument"),
        ("browse?name=CycleProvidr", 422, "unknown-class"),
        (f"explain?repository=L9&resource={quote(HOST)}", 404, "no-such-repository"),
    ):
        refused = await ask("GET", f"{v1}/{path}")
        assert (refused.status, refused.said["code"]) == (status, code)
    wrong = {"repository": "L1", "rules": [["search CycleProvidr c register c", ""]]}
    refused = (await ask("POST", f"{v1}/rule/add", wrong)).said
    assert (refused["code"], refused["line"], refused["column"]) == ("unknown-class", 1, 8)


async def _check_pages(ask: Ask) -> None:
    """From the list of providers to a class, a resource, those that refer to it and hold it."""
    path = "/metadata"
    for linked in (r"mdv-http", r"[^<]*/CycleProvider", re.escape(HOST),
                   re.escape(INFO), re.escape(HOST), "L1"):  # fmt: skip
        page = await ask("GET", path)
        assert page.status == 200
        (path, *_) = re.findall(rf'href="(/metadata[^"]*)">(?:{linked})</a>', page.said)
    assert RULE.replace(">", "&gt;") in (await ask("GET", path)).said
