"""ClientTable: the connections of all clients of one run of a loop, read by one task of it.

On Trio that is a system task, elsewhere the loop calls it; it is there as long as a client is
connected.  What goes wrong in one client ends that client alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio.lowlevel
import trio

from overlay.link.link_io import Connection, ConnectionTable, Pieces
from overlay.link.loop import TRIO, Loop

TICK_SECONDS = 1.0
TURN_BYTES_MAX = 64 * 1024 * 1024  # what may come is bounded by windows


class Client(Protocol):
    """Whose connection it is."""

    def take_data(self, connection: int, data: bytes) -> None:
        """What has come."""

    def tick(self) -> None:
        """About once in TICK_SECONDS."""


class ClientTable:
    """``_HERE`` of a run, made when its first client is connected."""

    def __init__(self, loop: Loop) -> None:
        self._table = ConnectionTable(
            self._take, turn_bytes_max=TURN_BYTES_MAX, clock=loop.current_time
        )
        self._clients: dict[Connection, Client] = {}
        self._failed: dict[Connection, Exception] = {}
        self._scope = trio.CancelScope()
        self._timer: asyncio.TimerHandle | None = None
        self._is_on_trio = loop is TRIO
        if self._is_on_trio:
            trio.lowlevel.spawn_system_task(self._run)
        else:
            of = asyncio.get_running_loop()
            of.add_reader(self._table.readable, self._table.read_turn)
            of.add_reader(self._table.writable, self._table.write_turn)
            self._timer = of.call_later(TICK_SECONDS, self._tick_again)

    def enter(self, connection: Connection, client: Client) -> None:
        self._clients[connection] = client
        self._table.add(connection)

    def leave(self, connection: Connection) -> None:
        """It has ended; raises what has gone wrong in its client."""
        connection.end()
        del self._clients[connection]
        if not self._clients:
            self._end()
        if (error := self._failed.pop(connection, None)) is not None:
            raise error

    def _take(self, pieces: Pieces) -> None:
        for connection, data in pieces:
            if (client := self._clients.get(connection)) is not None:
                try:
                    client.take_data(connection.number, data)
                except Exception as error:
                    self._failed[connection] = error
                    connection.end()

    def _tick(self) -> None:
        self._table.tick()
        for connection, client in list(self._clients.items()):
            try:
                client.tick()
            except Exception as error:
                self._failed[connection] = error
                connection.end()

    async def _run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._table.run)
                while True:
                    await trio.sleep(TICK_SECONDS)
                    self._tick()

    def _tick_again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick_again)
        self._tick()

    def _end(self) -> None:
        _HERE.set(None)
        self._scope.cancel()
        if self._timer is not None:
            self._timer.cancel()
            of = asyncio.get_running_loop()
            of.remove_reader(self._table.readable)
            of.remove_reader(self._table.writable)
            self._table.close()


_HERE: anyio.lowlevel.RunVar[ClientTable | None] = anyio.lowlevel.RunVar("onyx clients", None)


@contextmanager
def in_table(connection: Connection, client: Client, loop: Loop) -> Iterator[None]:
    """Until the end of the block, at which the connection ends, it is read."""
    table = _HERE.get()
    if table is None:
        table = ClientTable(loop)
        _HERE.set(table)
    table.enter(connection, client)
    try:
        yield
    finally:
        table.leave(connection)
