"""One network for all tests that do not harm it: started by ``onyx up``, stopped by SIGTERM."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from onyx import RunningNetwork, launch
from overlay.link.client_connection import ClientLimits
from tests.hanging import SAFETY_SECONDS
from tests.issuer import Issuer
from tests.onyx.networks import (
    RunningProcess,
    is_running,
    small_topology,
    small_topology_text,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on a machine that has much to do may answer later than people like to wait."""
    limits = ClientLimits(open_seconds=SAFETY_SECONDS)
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", limits)


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    """Whose tokens ``network`` takes."""
    with Issuer() as issuer:
        yield issuer


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[RunningProcess]:
    """A running network of three brokers; that it stops cleanly is checked at the end."""
    directory = tmp_path_factory.mktemp("network")
    file = directory / "small.toml"
    text = small_topology_text(directory / "data") + issuer.section()
    file.write_text(text, encoding="utf-8")
    running = RunningProcess.start(file)
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0
    assert not [pid for pid in running.pids if is_running(pid)]


@pytest.fixture
def registration(network: RunningProcess) -> str:
    """ "host:port" of the registration service of ``network``."""
    return network.registration


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port of 127.0.0.1 at which nobody listens, and nobody else can while it is used."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
async def two_brokers(tmp_path: Path) -> AsyncIterator[RunningNetwork]:
    """A network of a test's own."""
    topology = small_topology(tmp_path / "data", 2)
    with trio.fail_after(SAFETY_SECONDS):
        async with launch(topology, write_line=lambda line: None) as running:
            yield running
