"""Requests to a gateway while a process of the network hangs: each is answered."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from onyx import DataSource
from onyx.gateway import sessions
from onyx.launcher import launch
from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.gateway.test_gateway_admin import gateway
from tests.onyx.networks import small_topology


@contextmanager
def hung(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_hung_process_keeps_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request too, whose connection is there and says nothing any more."""
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(sessions, "OPEN_SECONDS", 1.0)

    async def ask(*about: str) -> Answer:
        return await trio.to_thread.run_sync(Client(pages).ask, *about)

    async def until_ok(*about: str) -> None:
        while (await ask(*about)).status not in (200, 201):
            await trio.lowlevel.checkpoint()

    with trio.fail_after(SAFETY_SECONDS):
        async with launch(small_topology(tmp_path / "data", brokers=1)) as network:
            source = (await DataSource.register(network.registration, name="wire")).id
            message = "POST", f"/v1/sources/{source}/messages", "<m/>"
            async with gateway(network.registration, caplog) as (pages, _):
                await until_ok("GET", "/v1/profiles")
                with hung(network.pids["registration"]):
                    first, second = [await ask("GET", "/v1/profiles") for _ in range(2)]
                assert (first.status, first.said["code"]) == (503, "unreachable")
                assert first.said["reason"].startswith("no answer in 3 s"), first
                assert second.status == 503, second
                await until_ok("GET", "/v1/profiles")
                await until_ok(*message)
                with hung(network.pids["B1"]):
                    refused = await ask(*message)
                assert (refused.status, refused.said["code"]) == (503, "unreachable")
                assert "has not answered in 1 s" in refused.said["reason"]
                await until_ok(*message)
