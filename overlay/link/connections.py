"""Connections: who is connected to a node, from the handshake to the end.

::

    doors ──> a newcomer, if it may ──┐
    dials ──> a stream, again ────────┴──> handshake ──> ConnectionOpened ──> table, inbox

Only a handshake, and a dial, is a task; after that a connection is in the table (link_io.py).  A
node is told of events only; what leaves is given to a connection by its number.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import trio

from overlay.limits import Limits
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.dialling import patience, pause_at
from overlay.link.door import Door, Doorkeeper, DoorLimits, counted_address
from overlay.link.event_queue import EventQueue
from overlay.link.events import ConnectionLost, ConnectionOpened
from overlay.link.frame_codec import encode
from overlay.link.frames import ErrorFrame
from overlay.link.handshake import HandshakeFailed, Secured, secure
from overlay.link.link_io import Connection, ConnectionTable, Pieces, SendQueues
from overlay.link.node_limits import NodeLimits
from overlay.link.open_files import Connections as OpenConnections
from overlay.link.principal import NOBODY
from overlay.nodes import Addresses

NOTHING_SAID = "others want to come in, and it has not said who it is"

log = logging.getLogger("onyx.node")

Connect: TypeAlias = Callable[[str, int, float], Awaitable[trio.abc.Stream | None]]
"""(host, port, seconds) -> a stream, or None when there is none within so many seconds."""


async def open_stream(host: str, port: int, seconds: float) -> trio.SocketStream | None:
    """A TCP connection, or None if there is none within so many seconds."""
    with trio.move_on_after(seconds):
        try:
            return await trio.open_tcp_stream(host, port)
        except OSError:
            return None
    return None


def taken_over(stream: trio.abc.Stream) -> socket.socket:
    """The socket of a stream, which Trio has no more to do with."""
    assert isinstance(stream, trio.SocketStream)
    there = stream.socket
    return socket.socket(there.family, there.type, there.proto, fileno=there.detach())


@dataclass(slots=True)
class _Dialling:
    """A peer that is dialled again and again until ``scope`` is cancelled."""

    addresses: Addresses
    scope: trio.CancelScope
    connected: bool = False


class Connections:
    """``run`` lets in and dials; ``here`` are the connections, by number."""

    def __init__(
        self,
        inbox: EventQueue,
        connect: Connect,
        limits: NodeLimits,
        credentials: Credentials | None,
    ) -> None:
        """``inbox`` takes what comes; ``credentials`` None: without TLS."""
        self._inbox = inbox
        self._connect = connect
        self._limits = limits
        self._credentials = credentials
        self._look_again_at = 0.0
        self._looked_with = 0
        self._dialling: dict[str, _Dialling] = {}
        self.here: dict[int, Connection] = {}
        self._clients: set[int] = set()  # connections that no process of the network is behind
        self._keepers: list[Doorkeeper] = []
        self._dialled: dict[int, trio.Event] = {}  # of their ends
        self._shaking: dict[int, trio.CancelScope] = {}  # connections whose handshake goes on
        self._queues = SendQueues()
        self._table = ConnectionTable(self._take, inbox.all_taken, limits.turn_bytes)
        self._numbers = 0
        self._failed: dict[str, str] = {}  # by peer that is dialled: why, as was said last
        self._nursery: trio.Nursery

    async def run(
        self,
        doors: Sequence[Door],
        dials: Mapping[str, Addresses],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Until cancelled; started once all doors are open."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._table.run)
            self.dial(dials)
            for door in doors:
                await self._nursery.start(self._serve, door)
            task_status.started()

    def recognise(self, connection: Connection, number: int) -> None:
        """It has said who it is."""
        connection.is_known = True
        for keeper in self._keepers:
            keeper.recognise(number)

    def dial(self, dials: Mapping[str, Addresses]) -> None:
        """From now on dial these and no others; whoever waits for its next attempt tries now."""
        for peer, dialling in list(self._dialling.items()):
            if dials.get(peer) != dialling.addresses or not dialling.connected:
                dialling.scope.cancel()
                del self._dialling[peer]
        for peer, addresses in dials.items():
            if peer not in self._dialling:
                dialling = self._dialling[peer] = _Dialling(addresses, trio.CancelScope())
                self._nursery.start_soon(self._dial, peer, dialling)

    def bound(self, limits: Limits, most: OpenConnections) -> None:
        """Other bounds are in force; whoever is inside stays."""
        self._limits = self._limits.bounded(limits)
        self._table.turn_bytes_max = self._limits.turn_bytes
        for keeper in self._keepers:
            door, links = keeper.door, keeper.door.is_of_links
            bounds = DoorLimits.of(limits, most.links if links else most.clients, is_of_links=links)
            keeper.door = replace(door, limits=bounds)
        for connection in self.here.values():
            connection.limits = self._limits.connection

    def look_after(self) -> None:
        """Once a tick: end those that are too slow, take new credentials, and close the connections
        of those whose are over."""
        self._table.tick()
        credentials = self._credentials
        if credentials is None:
            return
        try:
            credentials.refresh()
        except CredentialsError as error:
            log.error("%s; the ones of before stay in use", error)
        now = trio.current_time()  # the other clock may be set
        if credentials.version == self._looked_with and now < self._look_again_at:
            return
        self._looked_with = credentials.version
        self._look_again_at = now + self._limits.revoked_seconds
        for connection in list(self.here.values()):
            secured = connection.secured
            if secured is None or secured.principal == NOBODY:
                continue
            if (found := credentials.principal_of(secured.certificate)) == NOBODY:
                detail = f"{secured.principal} has shown {found.why}"
                error_frame = ErrorFrame(found.code, detail, fatal=True)
                connection.send_nowait(error_frame.flow, encode(error_frame))
                connection.close_nowait(detail)
                log.warning("a connection is closed: %s", detail)
        shown = (each.secured for each in self.here.values() if each.secured is not None)
        credentials.note_connected((s.principal, s.certificate) for s in shown if s.certificate)
        for said in credentials.warnings():
            log.warning("%s", said)

    def cut_slowest(self) -> None:
        """Where too much waits to be sent give clients up until it has room; what is for other
        processes of the network is in their journals anyway."""
        if self._queues.bytes <= self._limits.send_bytes:
            return
        clients = [self.here[number] for number in self._clients]
        for connection in sorted(clients, key=lambda client: client.queued_bytes, reverse=True):
            if self._queues.bytes <= self._limits.send_bytes:
                return
            connection.cut_nowait("too much waits to be sent: the peer is too slow")

    async def _serve(
        self, door: Door, task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED
    ) -> None:
        keeper = Doorkeeper(door)
        self._keepers.append(keeper)
        accept = partial(self._accept, keeper)
        await trio.serve_listeners(accept, list(door.listeners), task_status=task_status)

    async def _accept(self, keeper: Doorkeeper, stream: trio.abc.Stream) -> None:
        address = counted_address(stream)
        refusal = keeper.refusal(address)
        if refusal is None:
            await self._let_in(stream, "", keeper, address)
        elif keeper.refused < keeper.door.limits.refused_max:
            await self._refuse(keeper, stream, refusal)
        else:
            await trio.aclose_forcefully(stream)

    async def _refuse(self, keeper: Doorkeeper, stream: trio.abc.Stream, error: ErrorFrame) -> None:
        """Say why before it is closed."""
        seconds = self._limits.handshake_seconds
        keeper.refused += 1
        try:
            secured = await secure(stream, self._credentials, server_side=True, seconds=seconds)
        except HandshakeFailed:
            keeper.refused -= 1
            return
        connection = Connection(
            *(0, taken_over(stream), self._limits.connection, secured), on_end=keeper.note_refused
        )
        self._table.add(connection)
        connection.send_nowait(error.flow, encode(error))
        connection.close_nowait(error.detail)

    async def _dial(self, peer: str, dialling: _Dialling) -> None:
        addresses = dialling.addresses
        attempt = 0
        with dialling.scope:
            while True:
                for host, port in addresses:
                    began = trio.current_time()
                    most = patience(addresses, self._limits.dial_seconds)
                    stream = await self._connect(host, port, most)
                    if stream is not None:
                        dialling.connected = True
                        most = patience(addresses, self._limits.handshake_seconds)
                        connection = await self._let_in(stream, peer, handshake_seconds=most)
                        if connection is not None:
                            await self._ended(connection)
                        dialling.connected = False
                    if trio.current_time() - began >= self._limits.redial.longest:
                        attempt = 0
                attempt += 1
                pause = self._limits.redial.spread(attempt, peer)
                await trio.sleep(pause_at(addresses, pause))

    async def _let_in(
        self,
        stream: trio.abc.Stream,
        peer: str,
        keeper: Doorkeeper | None = None,
        address: str = "",
        handshake_seconds: float = 0.0,
    ) -> Connection | None:
        """None: the handshake has failed.  ``keeper`` of the door by which it came in; without one
        we have dialled ``peer``."""
        self._numbers += 1
        number = self._numbers
        secured, is_secured = None, False
        try:
            if keeper is not None:
                self._give_up(keeper.enter(number, address))
            seconds = handshake_seconds or self._limits.handshake_seconds
            secured = await self._shake_hands(number, stream, seconds, server_side=not peer)
            is_secured = True
        except HandshakeFailed as failure:
            # Who comes and fails is counted, and would fill the log.
            if peer and self._failed.get(peer) != str(failure):
                self._failed[peer] = str(failure)
                log.warning("no TLS with %s: %s; tried again", peer, failure)
            return None
        finally:
            if keeper is not None and not is_secured:
                keeper.leave(number)
        self._failed.pop(peer, None)
        roles = frozenset[str]() if keeper is None else keeper.door.roles
        connection = self.here[number] = Connection(
            number,
            taken_over(stream),
            self._limits.connection,
            secured,
            is_known=not roles,
            queues=self._queues,
            on_end=partial(self._note_end, number, keeper),
        )
        if keeper is not None and not keeper.door.is_of_links:
            self._clients.add(number)
            self._inbox.enter(number)
        log.debug("connection %d with %s is open", number, peer or connection.principal)
        self._inbox.put_nowait(ConnectionOpened(number, peer, connection.principal, roles))
        self._table.add(connection)
        return connection

    def _note_end(self, number: int, keeper: Doorkeeper | None) -> None:
        del self.here[number]
        self._clients.discard(number)
        if keeper is not None:
            keeper.leave(number)
        if (ended := self._dialled.pop(number, None)) is not None:
            ended.set()
        self._inbox.put_nowait(ConnectionLost(number))
        log.debug("connection %d is closed", number)

    async def _ended(self, connection: Connection) -> None:
        """Until a connection has ended, which it does when its peer is to be dialled no more."""
        ended = self._dialled[connection.number] = trio.Event()
        try:
            await ended.wait()
        finally:
            connection.cut_nowait("it is not dialled any more")

    def _take(self, pieces: Pieces) -> None:
        self._inbox.put_pieces_nowait((one.number, data) for one, data in pieces)

    def pause(self, number: int) -> None:
        """Read nothing more of a connection, if it is here, until ``resume``."""
        if number in self.here:
            self._table.pause(self.here[number])

    def resume(self, number: int) -> None:
        """Go on to read it."""
        if number in self.here:
            self._table.resume(self.here[number])

    async def _shake_hands(
        self, number: int, stream: trio.abc.Stream, seconds: float, *, server_side: bool
    ) -> Secured | None:
        with trio.CancelScope() as scope:
            self._shaking[number] = scope
            try:
                return await secure(
                    stream, self._credentials, server_side=server_side, seconds=seconds
                )
            finally:
                del self._shaking[number]
        raise HandshakeFailed(NOTHING_SAID, is_final=False)

    def _give_up(self, unknown: int | None) -> None:
        """Of a connection that has to go for another."""
        if unknown in self._shaking:
            self._shaking[unknown].cancel()
        elif unknown in self.here:
            self.here[unknown].cut_nowait(NOTHING_SAID)
