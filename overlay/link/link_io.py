"""ConnectionTable: all connections of a process, which one task reads and another writes on.

::

    sockets --> readable --> a turn reads all of them --> take([(connection, bytes), ...])
    sockets <-- Connection.flush_nowait <-- FlowScheduler <-- send_nowait
            <-- writable, a turn goes on with all that had no room

No connection has a task, an event or a timer of its own: its deadlines are looked at in each tick.
``take`` may wait until what it was given is handled; meanwhile nothing is read, and TCP pushes
back.  The table knows nothing of frames beyond that ``send_nowait`` gets whole ones, which are
never interleaved.  A broker runs it on Trio, a client on the loop that there is (client_stream.py).
With TLS what is read and written goes through its channel (tls_channel.py).
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import trio

from overlay.link.events import Flow
from overlay.link.handshake import Secured, tls_reason
from overlay.link.principal import Principal

# -------------------------------------------------------------------------------------------------
# FlowScheduler: whose frame goes next on one connection.
#
# Control first, always: it is small and everything waits for it.  The other flows share what is
# left by deficit round robin: in each round a flow may send ``quantum`` bytes and keeps what it
# could not use for a frame that is longer, so that shares hold in bytes whatever the sizes.
#
# ==========  ==============  =============================================
# flow        quantum, bytes  share when all three have something to send
# ==========  ==============  =============================================
# catalog     16 KiB          1/7
# query       32 KiB          2/7
# message     64 KiB          4/7
# ==========  ==============  =============================================
#
# No flow starves: one with a frame of n bytes sends it after at most n / quantum + 1 rounds.


KIB = 1024


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds and weights of the queues of one connection.

    control_bytes_max    queued on the control flow; it has no window (responses, observed events)
    flow_bytes_max       queued on each other flow; these have windows, so that no more than the
                         channels times ``LinkLimits.window_bytes`` can come together, and the
                         bytes are the journal's own objects, not copies

    At either bound ``push`` answers False and the connection is closed: the peer is too slow.
    Its journal is sent again when it comes back.
    """

    control_bytes_max: int = 64 * KIB * KIB
    flow_bytes_max: int = 1024 * KIB * KIB
    catalog_quantum_bytes: int = 16 * KIB
    query_quantum_bytes: int = 32 * KIB
    message_quantum_bytes: int = 64 * KIB


DEFAULT_SCHEDULER_LIMITS = SchedulerLimits()


class FlowScheduler:
    """Four queues of encoded frames; order within a flow is kept."""

    __slots__ = ("_bytes_max", "_control", "_deficit", "_entered", "_quantum", "_queues", "_turns")

    def __init__(self, limits: SchedulerLimits = DEFAULT_SCHEDULER_LIMITS) -> None:
        self._control = _Queue()
        self._queues = {flow: _Queue() for flow in (Flow.CATALOG, Flow.QUERY, Flow.MESSAGE)}
        self._quantum = {
            Flow.CATALOG: limits.catalog_quantum_bytes,
            Flow.QUERY: limits.query_quantum_bytes,
            Flow.MESSAGE: limits.message_quantum_bytes,
        }
        if min(self._quantum.values()) < 1:
            raise ValueError("a quantum is at least one byte")
        self._bytes_max = dict.fromkeys(self._queues, limits.flow_bytes_max)
        self._bytes_max[Flow.CONTROL] = limits.control_bytes_max
        # Flows with something queued, the one whose turn it is first.
        self._turns: deque[Flow] = deque()
        self._entered = False  # whether that one was given its quantum for this turn
        self._deficit = dict.fromkeys(self._queues, 0)

    def push(self, flow: Flow, data: bytes) -> bool:
        """Queue a frame; False if the flow's queue is full, and then the frame is not queued.

        One frame always fits an empty queue.
        """
        queue = self._control if flow is Flow.CONTROL else self._queues[flow]
        if queue.frames and queue.bytes + len(data) > self._bytes_max[flow]:
            return False
        if flow is not Flow.CONTROL and not queue.frames:
            self._turns.append(flow)
        queue.push(data)
        return True

    def pop(self) -> bytes | None:
        """The next frame to send, None if nothing is queued."""
        if self._control.frames:
            return self._control.pop()
        while self._turns:
            flow = self._turns[0]
            queue = self._queues[flow]
            if not self._entered:
                self._deficit[flow] += self._quantum[flow]
                self._entered = True
            if len(queue.frames[0]) <= self._deficit[flow]:
                data = queue.pop()
                self._deficit[flow] -= len(data)
                if not queue.frames:
                    # An idle flow saves nothing up.
                    self._deficit[flow] = 0
                    self._turns.popleft()
                    self._entered = False
                return data
            self._turns.rotate(-1)
            self._entered = False
        return None

    def __len__(self) -> int:
        """Frames queued."""
        return len(self._control.frames) + sum(len(q.frames) for q in self._queues.values())


class _Queue:
    """Frames in order, and their bytes together."""

    __slots__ = ("bytes", "frames")

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.bytes = 0

    def push(self, data: bytes) -> None:
        self.frames.append(data)
        self.bytes += len(data)

    def pop(self) -> bytes:
        data = self.frames.popleft()
        self.bytes -= len(data)
        return data


# -------------------------------------------------------------------------------------------------


WRITTEN_PARTS_MAX = 512  # in one system call, which takes 1,024 on Linux
TURN_BYTES_MAX = 1024 * 1024
READ_BYTES_LEAST = 4 * 1024  # of a connection in a turn, however many others are readable
APART_SECONDS = 0.001
APART_FROM = 8
"""Between two turns of a table of so many connections or more: under load more comes together."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """read_bytes_max   read of one connection in a turn
    read_bytes_few   the same where nobody knows who sends them
    write_bytes_max  small frames are written together up to so many bytes
    slow_seconds     how long a peer may take to take so many
    close_seconds    how long a closing connection may take to send what is queued
    """

    read_bytes_max: int = 64 * 1024
    read_bytes_few: int = 1024
    write_bytes_max: int = 64 * 1024
    slow_seconds: float = 60.0
    close_seconds: float = 5.0
    scheduler: SchedulerLimits = DEFAULT_SCHEDULER_LIMITS


DEFAULT_CONNECTION_LIMITS = ConnectionLimits()


@dataclass(slots=True)
class SendQueues:
    """What waits to be sent on all connections of a process."""

    bytes: int = 0


def nothing() -> None:
    """Of a connection whose end nobody waits for."""


class Connection:
    """One transport connection, from when it is in a table to its end, of which ``on_end`` is told.

    ``is_known``: whether it is known who is at the other end.  ``queued_bytes`` wait to be sent,
    which ``queues`` counts with others.
    """

    __slots__ = (
        "_fileno",
        "_flow",
        "_is_idle",
        "_leaving_bytes",
        "_next",
        "_next_bytes",
        "_queues",
        "_rest",
        "_scheduler",
        "_socket",
        "_table",
        "_tls",
        "close_reason",
        "ends_at",
        "is_closing",
        "is_known",
        "limits",
        "number",
        "on_end",
        "queued_bytes",
        "secured",
        "tls_failure",
        "written_at",
    )

    def __init__(
        self,
        number: int,
        connected: socket.socket,
        limits: ConnectionLimits = DEFAULT_CONNECTION_LIMITS,
        secured: Secured | None = None,
        *,
        is_known: bool = True,
        queues: SendQueues | None = None,
        on_end: Callable[[], None] = nothing,
    ) -> None:
        """``connected`` does not block; ``secured``: with TLS, whose handshake is done."""
        self.number = number
        self.secured = secured
        self.is_known = is_known
        self.limits = limits
        self.on_end = on_end
        self.queued_bytes = 0
        self.close_reason = ""
        self.tls_failure = ""  # what TLS has ended it for
        self.is_closing = False
        self.ends_at = 0.0  # of one that is closing
        self.written_at = 0.0  # when its socket took something last, of one that has no room
        self._leaving_bytes = 0  # of those queued, out of the queue and not written
        self._queues = queues or SendQueues()
        self._tls = None if secured is None else secured.channel
        self._socket = connected
        self._fileno = connected.fileno()
        self._scheduler = FlowScheduler(limits.scheduler)
        self._is_idle = True  # nothing is in the scheduler, nor begun to write
        self._next: list[bytes] = []  # frames of one flow, in parts, for which nothing waits
        self._flow, self._next_bytes = Flow.MESSAGE, 0
        self._rest: bytes | memoryview = b""  # of what was begun to write
        self._table: ConnectionTable | None = None

    @property
    def principal(self) -> Principal | None:
        """Whose certificate was shown; None without TLS."""
        return None if self.secured is None else self.secured.principal

    def fileno(self) -> int:
        """-1 once it has ended."""
        return self._fileno

    def begin(self, table: ConnectionTable) -> bytes:
        """It is in a table now; what has come with the handshake."""
        self._table = table
        early = b"" if self._tls is None else self._decrypted(b"") or b""
        self.flush_nowait()
        return early

    def send_nowait(self, flow: Flow, *parts: bytes) -> None:
        """Queue one encoded frame, in parts, which leaves with the next ``flush_nowait``; ends the
        connection at once if its queue is full."""
        if self.is_closing:
            return
        size = sum(map(len, parts))
        self.queued_bytes += size
        self._queues.bytes += size
        # PERF: most often nothing waits, and then there is nothing to schedule.
        if self._is_idle and (flow is self._flow or not self._next):
            self._flow = flow
            self._next += parts
            self._next_bytes += size
            full = self._next_bytes >= self.limits.write_bytes_max
            self._is_idle = not (full or len(self._next) > WRITTEN_PARTS_MAX)
            return
        if self._next:
            before, self._next, self._next_bytes = b"".join(self._next), [], 0
            self._scheduler.push(self._flow, before)
        self._is_idle = False
        if not self._scheduler.push(flow, b"".join(parts)):
            self.cut_nowait(f"the {flow.name.lower()} queue is full: the peer is too slow")

    def flush_nowait(self) -> None:
        """Write what is queued, as far as the socket takes it at once; the table does the rest."""
        if not self._rest:
            self.write_nowait()

    def write_nowait(self) -> None:
        """The rest of what was begun, or the next frames, as much of it as the socket takes."""
        table = self._table
        if table is None or self._fileno < 0:
            return
        frames: Sequence[bytes | memoryview] = [self._rest] if self._rest else self._next_write()
        if frames:
            try:
                written = os.writev(self._fileno, frames)
            except BlockingIOError:
                written = 0
            except OSError:  # the next read meets its end, however long it is paused until then
                self._rest = b""
                table.want_no_room(self)
                return
            if written < sum(map(len, frames)):
                if written or not self._rest:
                    self.written_at = table.clock()
                rest = frames[0] if len(frames) == 1 else b"".join(frames)
                self._rest = memoryview(rest)[written:]
                self._is_idle = False
                table.want_room(self)
                return
            self._rest = b""
            self.queued_bytes -= self._leaving_bytes
            self._queues.bytes -= self._leaving_bytes
            self._leaving_bytes = 0
        if len(self._scheduler):
            self.written_at = table.clock()
            table.want_room(self)
            return
        self._is_idle = True
        table.want_no_room(self)
        if self.is_closing:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def read_nowait(self, most: int) -> bytes | None:
        """What has come, ``most`` bytes of it or less; b"" if that is nothing yet, or nothing that
        is wanted; None at the end."""
        limits = self.limits
        most = min(most, limits.read_bytes_max if self.is_known else limits.read_bytes_few)
        try:
            data = os.read(self._fileno, most)
        except BlockingIOError:
            return b""
        except OSError:
            return None
        plain = self._decrypted(data) if data and self._tls is not None else data or None
        return b"" if plain and self.is_closing else plain

    def close_nowait(self, reason: str) -> None:
        """Send what is queued and an end of file, then wait for the peer's; ``close_seconds`` at
        the most.  What still comes is read and thrown away: closing a socket with unread bytes
        would reset it, and the peer might never see the error frame that says why."""
        if not self.is_closing:
            self.close_reason = reason
            self.is_closing = True
            assert self._table is not None
            self.ends_at = self._table.clock() + self.limits.close_seconds
            self._table.closing.add(self)
            self.flush_nowait()

    def cut_nowait(self, reason: str) -> None:
        """Close at once; what is queued is not sent."""
        if self._fileno >= 0:
            self.close_reason = reason
            self.end()

    def end(self) -> None:
        """Of a connection that there is, once: its socket is closed."""
        if self._fileno < 0:
            return
        self.is_closing = True
        if self._table is not None:
            self._table.remove(self)
        self._fileno = -1
        self._queues.bytes -= self.queued_bytes
        self.queued_bytes = self._leaving_bytes = 0
        self._scheduler = FlowScheduler(self.limits.scheduler)
        self._next, self._rest = [], b""
        self._socket.close()
        self.on_end()

    def _decrypted(self, data: bytes) -> bytes | None:
        """None: TLS has ended."""
        assert self._tls is not None
        try:
            return self._tls.decrypt(data)
        except ssl.SSLZeroReturnError:
            pass
        except ssl.SSLError as error:
            self.tls_failure = tls_reason(error)
        return None

    def _next_write(self) -> list[bytes]:
        """Whole frames, as many as fit ``write_bytes_max`` but at least one if there is any."""
        frames, size = self._next, self._next_bytes
        self._next, self._next_bytes = [], 0
        if not frames:
            while size < self.limits.write_bytes_max and len(frames) < WRITTEN_PARTS_MAX:
                frame = self._scheduler.pop()
                if frame is None:
                    break
                frames.append(frame)
                size += len(frame)
        self._leaving_bytes = size
        return [self._tls.encrypt(frames)] if frames and self._tls is not None else frames


Pieces: TypeAlias = list[tuple[Connection, bytes]]


class ConnectionTable:
    """``add`` connections; then ``run`` it on Trio.  Elsewhere ``read_turn`` is called when the
    selector ``readable`` has something, ``write_turn`` when ``writable`` has, and ``tick`` about
    once a second."""

    def __init__(
        self,
        take: Callable[[Pieces], None],
        all_taken: Callable[[], Awaitable[None]] = trio.lowlevel.cancel_shielded_checkpoint,
        turn_bytes_max: int = TURN_BYTES_MAX,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        """``take`` gets what has come in one turn; the next is when all of it is taken.
        ``turn_bytes_max``: read of all in a turn, but READ_BYTES_LEAST of each anyway."""
        self.clock = clock
        self.turn_bytes_max = turn_bytes_max
        self.readable, self.writable = selectors.DefaultSelector(), selectors.DefaultSelector()
        self.closing: set[Connection] = set()
        self._take, self._all_taken = take, all_taken
        self._read: set[Connection] = set()
        self._paused: set[Connection] = set()
        self._without_room: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._read) + len(self._paused)

    def add(self, connection: Connection) -> None:
        """It is read and written from now on; what has come with the handshake is taken."""
        self._paused.add(connection)
        self.resume(connection)
        if early := connection.begin(self):
            self._take([(connection, early)])

    def remove(self, connection: Connection) -> None:
        """A connection that is about to end."""
        self.pause(connection)
        self._paused.remove(connection)
        self.want_no_room(connection)
        self.closing.discard(connection)

    def pause(self, connection: Connection) -> None:
        """Read nothing more of it until ``resume``."""
        if connection in self._read:
            self._read.remove(connection)
            self._paused.add(connection)
            self.readable.unregister(connection)

    def resume(self, connection: Connection) -> None:
        if connection in self._paused:
            self._paused.remove(connection)
            self._read.add(connection)
            self.readable.register(connection, selectors.EVENT_READ, connection)

    def want_room(self, connection: Connection) -> None:
        """Go on writing as soon as its socket has room."""
        if connection not in self._without_room:
            self._without_room.add(connection)
            self.writable.register(connection, selectors.EVENT_WRITE, connection)

    def want_no_room(self, connection: Connection) -> None:
        """There is nothing more to write."""
        if connection in self._without_room:
            self._without_room.remove(connection)
            self.writable.unregister(connection)

    def read_turn(self) -> None:
        """Read all that are readable."""
        ready = self.readable.select(0)
        most = max(READ_BYTES_LEAST, self.turn_bytes_max // max(1, len(ready)))
        pieces: Pieces = []
        ended: list[Connection] = []
        for key, _ in ready:
            connection: Connection = key.data
            data = connection.read_nowait(most)
            if data:
                pieces.append((connection, data))
            elif data is None:
                ended.append(connection)
        if pieces:
            self._take(pieces)
        for connection in ended:
            connection.end()

    def write_turn(self) -> None:
        """Go on with all whose sockets have room."""
        for key, _ in self.writable.select(0):
            key.data.write_nowait()

    def tick(self) -> None:
        """End those that were too slow, or close for too long."""
        now = self.clock()
        for connection in list(self._without_room):
            slow = connection.limits.slow_seconds
            if now - connection.written_at >= slow:
                connection.cut_nowait(f"the peer took nothing in {slow:g} seconds")
        for connection in [each for each in self.closing if each.ends_at <= now]:
            connection.end()

    def close(self) -> None:
        """End all connections, and the table."""
        for connection in [*self._read, *self._paused]:
            connection.end()
        self.readable.close()
        self.writable.close()

    async def run(self) -> None:
        """Until cancelled; all connections end with it."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_on)
                next_at = 0.0
                while True:
                    await trio.lowlevel.wait_readable(self.readable.fileno())
                    if trio.current_time() < next_at:
                        await trio.sleep_until(next_at)
                    began = trio.current_time()
                    self.read_turn()
                    next_at = began + APART_SECONDS if len(self) >= APART_FROM else 0.0
                    await self._all_taken()
        finally:
            self.close()

    async def _write_on(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self.writable.fileno())
            self.write_turn()
