"""FlowScheduler: whose frame goes next on one connection.

Control first, always: it is small and everything waits for it.  The other flows share what is
left by deficit round robin: in each round a flow may send ``quantum`` bytes and keeps what it
could not use for a frame that is longer, so that shares hold in bytes whatever the sizes.

==========  ==============  =============================================
flow        quantum, bytes  share when all three have something to send
==========  ==============  =============================================
catalog     16 KiB          1/7
query       32 KiB          2/7
message     64 KiB          4/7
==========  ==============  =============================================

No flow starves: one with a frame of n bytes sends it after at most n / quantum + 1 rounds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from overlay.link.events import Flow

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

    def statistics(self) -> dict[str, object]:
        queues = {Flow.CONTROL: self._control, **self._queues}
        return {
            flow.name.lower(): {"frames": len(queue.frames), "bytes": queue.bytes}
            for flow, queue in queues.items()
        }


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
