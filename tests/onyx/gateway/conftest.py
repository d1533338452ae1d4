"""One network with a gateway for all tests of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import trio

from onyx import DataSource
from tests.onyx.gateway.browsing import Client
from tests.onyx.networks import RunningProcess, small_topology_text


@pytest.fixture(scope="session")
def gateway_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    """Three brokers in a chain, started with a gateway; that it stops cleanly is checked."""
    directory = tmp_path_factory.mktemp("gateway")
    file = directory / "small.toml"
    text = small_topology_text(directory / "data") + '[gateway]\nlisten = "127.0.0.1:0"\n'
    text += f"[archive]\ndirectory = {json.dumps(str(directory / 'archive'))}\n"
    file.write_text(text, encoding="utf-8")
    running = RunningProcess.start(file)
    try:
        yield running
    finally:
        code = running.stop()
    assert code == 0


@pytest.fixture
def client(gateway_network: RunningProcess) -> Client:
    return Client(gateway_network.up["gateway"])


@pytest.fixture(scope="session")
def source(gateway_network: RunningProcess) -> str:
    """Of B1, the end of the chain."""

    async def register() -> str:
        where = gateway_network.registration
        return (await DataSource.register(where, name="wire", location=(10, 0))).id

    return trio.run(register)
