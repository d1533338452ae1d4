"""Connection: bytes between one stream and the events and actions of a core.

::

    stream --> reader --> deliver(DataReceived)      waits while the inbox is full: TCP pushes back
    stream <-- writer <-- FlowScheduler <-- send_nowait

Knows nothing of frames beyond that ``send_nowait`` gets whole ones, which are never interleaved.
A broker runs it on Trio, a client on the loop that there is (client_stream.py).
With TLS what is read and written goes through its channel (tls_channel.py).
"""

from __future__ import annotations

import os
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import trio

from overlay.link.events import ConnectionLost, DataReceived, Event, Flow
from overlay.link.handshake import Secured, tls_reason
from overlay.link.loop import TRIO, Loop, Stream

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


WRITTEN_FRAMES_MAX = 512  # in one system call, which takes 1,024 on Linux

Deliver: TypeAlias = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """read_bytes_max   bytes of one DataReceived
    read_bytes_few   the same where there is no room for more, or nobody knows who sends them
    write_bytes_max  small frames are written together up to so many bytes, and a long one in pieces
    slow_seconds     how long a peer may take to take such a piece
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


class Connection:
    """One transport connection; ``run`` lives as long as it does.

    ``is_known``: whether it is known who is at the other end; ``has_room`` says whether there is
    memory to read much.  ``queued_bytes`` wait to be sent, which ``queues`` counts with others.
    """

    def __init__(
        self,
        number: int,
        stream: Stream,
        limits: ConnectionLimits = DEFAULT_CONNECTION_LIMITS,
        secured: Secured | None = None,
        *,
        is_known: bool = True,
        has_room: Callable[[], bool] = lambda: True,
        queues: SendQueues | None = None,
        loop: Loop = TRIO,
    ) -> None:
        """``secured``: with TLS, whose handshake is done."""
        self.number = number
        self.secured = secured
        self.principal = None if secured is None else secured.principal
        self.is_known = is_known
        self.queued_bytes = 0
        self._leaving_bytes = 0  # of these, out of the queue and not written
        self._has_room = has_room
        self._queues = queues or SendQueues()
        self.close_reason = ""
        self.tls_failure = ""  # what TLS has ended it for
        self._tls = None if secured is None else secured.channel
        self._stream = stream
        self._loop = loop
        self.limits = limits
        self._scheduler = FlowScheduler(limits.scheduler)
        self._wake_writer = loop.event()
        self._closing = False
        self._scope = loop.scope()
        socket = getattr(stream, "socket", None)
        self._fileno: int | None = None if socket is None else socket.fileno()
        self._may_read = False  # the last read took as much as it could
        self._is_writing = False  # the writer has bytes that are to leave first
        self._rest = b""  # of what ``flush_nowait`` has begun to write

    async def run(self, deliver: Deliver) -> None:
        """Read and write until either side closes; the last event delivered is
        ConnectionLost, and then the stream is closed."""
        try:
            with self._scope:
                async with self._loop.tasks() as tasks:
                    tasks.start_soon(self._read, deliver)
                    tasks.start_soon(self._write)
        finally:
            self._closing = True
            self._drop_queues()
            await self._loop.close(self._stream)
        await deliver(ConnectionLost(self.number))

    def send_nowait(self, flow: Flow, data: bytes) -> None:
        """Queue one encoded frame; closes the connection at once if its queue is full.  It leaves
        with the next ``flush_nowait``, or when the writer has its turn."""
        if self._closing:
            return
        if not self._scheduler.push(flow, data):
            self.cut_nowait(f"the {flow.name.lower()} queue is full: the peer is too slow")
            return
        self._note_queued(len(data))
        if self._fileno is None:
            self._wake_writer.set()

    def flush_nowait(self) -> None:
        """Write what is queued, as far as the socket takes it at once; the writer does the rest."""
        # PERF: to wake the writer costs more than to write.
        if self._fileno is None or self._is_writing or self._rest or self._closing:
            return
        frames = self._next_write()
        if not frames:
            return
        if self._tls is not None:
            frames = [self._tls.encrypt(frames)]
        try:
            written = os.writev(self._fileno, frames)
        except BlockingIOError:
            written = 0
        except OSError:
            written = 0  # the writer meets it again, and ends the connection
        if written < sum(map(len, frames)):
            self._rest = b"".join(frames)[written:]
            self._wake_writer.set()
            return
        self._note_taken()
        if len(self._scheduler):
            self._wake_writer.set()

    def close_nowait(self, reason: str) -> None:
        """Send what is queued and an end of file, then wait for the peer's; ``close_seconds`` at
        the most.  What still comes is read and thrown away: closing a socket with unread bytes
        would reset it, and the peer might never see the error frame that says why."""
        if not self._closing:
            self.close_reason = reason
            self._closing = True
            self._scope.deadline = self._loop.current_time() + self.limits.close_seconds
            self._wake_writer.set()

    def cut_nowait(self, reason: str) -> None:
        """Close at once; what is queued is not sent."""
        self.close_reason = reason
        self._closing = True
        self._drop_queues()
        self._scope.cancel()

    async def _read(self, deliver: Deliver) -> None:
        tls = self._tls
        try:
            if tls is not None and (early := tls.decrypt(b"")):  # came with the handshake
                await deliver(DataReceived(self.number, early))
            while data := await self._receive():
                plain = data if tls is None else tls.decrypt(data)
                if plain and not self._closing:
                    await deliver(DataReceived(self.number, plain))
        except ssl.SSLZeroReturnError:
            pass
        except ssl.SSLError as error:
            self.tls_failure = tls_reason(error)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._scope.cancel()

    async def _receive(self) -> bytes:
        """What has come; b"" at the end."""
        if self._fileno is None:
            return bytes(await self._stream.receive_some(self._read_size()))
        # PERF: Trio's streams read before they wait, which most often is one read too much.
        while True:
            if self._may_read:
                await self._loop.checkpoint()
            else:
                await self._loop.wait_readable(self._fileno)
            size = self._read_size()
            try:
                data = os.read(self._fileno, size)
            except BlockingIOError:
                self._may_read = False
                continue
            self._may_read = len(data) == size
            return data

    async def _write(self) -> None:
        try:
            while True:
                data = self._rest or self._next_data()
                self._rest = b""
                if data:
                    self._is_writing = True
                    if not await self._send(data):
                        return
                    self._is_writing = False
                elif self._closing:
                    if (send_eof := getattr(self._stream, "send_eof", None)) is not None:
                        await send_eof()
                        return
                    break
                else:
                    await self._wake_writer.wait()
                    self._wake_writer = self._loop.event()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._scope.cancel()

    def _next_data(self) -> bytes:
        """The same as bytes for the stream."""
        frames = self._next_write()
        return self._tls.encrypt(frames) if frames and self._tls is not None else b"".join(frames)

    async def _send(self, data: bytes) -> bool:
        """Whether the peer took it all, and no piece of it too slowly."""
        pieces: Iterable[bytes | memoryview] = (data,)
        most = self.limits.write_bytes_max
        if len(data) > 2 * most:
            view = memoryview(data)
            pieces = (view[start : start + most] for start in range(0, len(data), most))
        for piece in pieces:
            with self._loop.move_on_after(self.limits.slow_seconds) as taken:
                await self._stream.send_all(piece)
            if taken.cancelled_caught:
                self.cut_nowait(f"the peer took nothing in {self.limits.slow_seconds:g} seconds")
                return False
        self._note_taken()
        return True

    def _read_size(self) -> int:
        if self.is_known and self._has_room():
            return self.limits.read_bytes_max
        return min(self.limits.read_bytes_few, self.limits.read_bytes_max)

    def _drop_queues(self) -> None:
        self._note_queued(-self.queued_bytes)
        self._leaving_bytes = 0
        self._scheduler = FlowScheduler(self.limits.scheduler)
        self._rest = b""

    def _note_queued(self, size: int) -> None:
        self.queued_bytes += size
        self._queues.bytes += size

    def _note_taken(self) -> None:
        """All that has left the queue was written."""
        self._note_queued(-self._leaving_bytes)
        self._leaving_bytes = 0

    def _next_write(self) -> list[bytes]:
        """Whole frames, as many as fit ``write_bytes_max`` but at least one if there is any."""
        frames: list[bytes] = []
        size = 0
        while size < self.limits.write_bytes_max and len(frames) < WRITTEN_FRAMES_MAX:
            frame = self._scheduler.pop()
            if frame is None:
                break
            frames.append(frame)
            size += len(frame)
        self._leaving_bytes += size
        return frames
