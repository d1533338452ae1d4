"""ClientStream: how a client connects, on either loop."""

from __future__ import annotations

import socket
from typing import Any

import anyio
import pytest

from overlay.link import client_stream
from overlay.link.client_stream import open_stream
from tests.hanging import SAFETY_SECONDS

both_loops = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@both_loops
def test_bytes_go_both_ways_until_the_end(backend: str) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            stream = await open_stream("localhost", listener.getsockname()[1], 20)
            assert stream is not None
            accepted, _ = listener.accept()
            data = bytes(range(256)) * 20_000  # more than buffers hold
            with accepted, anyio.fail_after(SAFETY_SECONDS):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(anyio.to_thread.run_sync, accepted.sendall, b"hello")
                    assert await stream.receive_some() == b"hello"
                    tasks.start_soon(stream.send_all, data)
                    assert await anyio.to_thread.run_sync(_received, accepted, len(data)) == data
                await stream.aclose()
                assert accepted.recv(1) == b""

    anyio.run(main, backend=backend)


def _received(accepted: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += accepted.recv(size)
    return data


@both_loops
def test_an_address_that_says_nothing_delays_the_next_one_little(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    async def main() -> None:
        with (
            socket.create_server(("127.0.0.1", 0), backlog=0) as deaf,
            socket.create_server(("127.0.0.1", 0)) as listener,
        ):
            full = [socket.socket() for _ in range(3)]  # of which the last waits for good
            for each in full:
                each.setblocking(False)
                each.connect_ex(deaf.getsockname())

            async def addresses(host: str, port: int) -> list[tuple[Any, ...]]:
                places = deaf.getsockname(), listener.getsockname(), ("127.0.0.1", 1)
                return [(socket.AF_INET, 0, 0, "", place) for place in places]

            monkeypatch.setattr(client_stream, "_addresses", addresses)
            began = anyio.current_time()
            stream = await open_stream("two.places", 0, 20)
            assert stream is not None and anyio.current_time() - began < 10
            assert stream.socket.getpeername() == listener.getsockname()
            await stream.aclose()
            for each in full:
                each.close()

    anyio.run(main, backend=backend)


@both_loops
def test_there_may_be_nobody(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    async def main() -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))  # and does not listen
            assert await open_stream(*holder.getsockname(), 20) is None
        assert await open_stream("no.such.name.invalid", 1, 5) is None

    anyio.run(main, backend=backend)
