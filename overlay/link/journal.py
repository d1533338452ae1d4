"""Journal: the durable relation to one peer, across connections and across crashes.

What was sent stays here until the peer has said that it holds it durably; what was received is
remembered by its number.  Together with the rule of ``events`` (rows are committed before
anything leaves) every frame of a channel arrives exactly once and in order:

- a sender numbers without gaps, resends everything after the peer's last number, and never
  forgets a frame that was not acknowledged;
- a receiver drops what it already has, refuses a gap, and stores its new number together with
  whatever the core made of the frame.

A receiver without a store, as a source, has lost its memory when it starts anew: it is told with
Skipped what it has acknowledged.

What waits need not all be in memory (frame_memory.py): ``reads`` says what is to be read back.  How
it is stored: journal_rows.py.  Where the peer passes on what it takes, it can be kept here until it
has (``keep``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

import msgpack

from overlay import statistics
from overlay.link.channels import ReceivingChannel, SendingChannel
from overlay.link.early_leaving import EARLY_MAX
from overlay.link.errors import ProtocolError, StoreError
from overlay.link.events import Delete, Flow, Put, ReadRows, RowsRead
from overlay.link.frame import Frame
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frame_memory import UNBOUNDED, FrameMemory
from overlay.link.frames import Ack, PassedOn, Skipped
from overlay.link.journal_rows import (
    INBOX,
    KEPT,
    OUTBOX,
    OUTBOX_FLOOR,
    StoredFrames,
    channel_key,
    parse_frame_key,
    read_numbers,
)
from overlay.link.limits import LinkLimits
from overlay.link.row_log import number_key

# -------------------------------------------------------------------------------------------------
# DeliveryRate: how many bytes a second a link has been seen to carry, from its own sends.
#
# A *busy time* begins when something is on the wire and ends when all of it is acknowledged, or
# after a second; what was acknowledged in it, by its length, is a measurement.  Short ones say more
# of latency than of bandwidth and do not count; of the last few the best does, since a link that
# was idle now and then is no slower for it.  So the rate is never more than the link can carry, and
# less where windows or a slow receiver hold it back.


BYTES_LEAST = 64 * 1024
SECONDS_MAX = 1.0
KEPT_RATES = 8


class DeliveryRate:
    """For one peer; ``now`` in seconds of a clock that never goes back."""

    __slots__ = ("_began", "_delivered", "_in_flight", "_rates")

    def __init__(self) -> None:
        self._in_flight = 0
        self._began = 0.0
        self._delivered = 0
        self._rates: deque[float] = deque(maxlen=KEPT_RATES)

    @property
    def bytes_per_second(self) -> float | None:
        """None as long as nothing was measured."""
        return max(self._rates, default=None)

    def sent(self, size: int, now: float) -> None:
        """Bytes are on the wire from now on."""
        if not self._in_flight:
            self._begin(now)
        self._in_flight += size

    def acknowledged(self, size: int, now: float) -> None:
        """So many of them have arrived."""
        self._in_flight = max(0, self._in_flight - size)
        self._delivered += size
        seconds = now - self._began
        if self._in_flight and seconds < SECONDS_MAX:
            return
        if self._delivered >= BYTES_LEAST and seconds > 0:
            self._rates.append(self._delivered / seconds)
        self._begin(now)

    def lost(self) -> None:
        """The connection is gone, and what was on the wire with it; what was measured stays."""
        self._in_flight = self._delivered = 0

    def _begin(self, now: float) -> None:
        self._began = now
        self._delivered = 0


# -------------------------------------------------------------------------------------------------


SUCCESSOR = "*"
"""In place of the run that was met last: another peer was, which has acknowledged what was."""
ChannelName: TypeAlias = tuple[Flow, str]


class Journal:
    """All channels from and to one peer.

    Methods change the state in memory; ``rows()`` gives what must be stored for it, and the
    caller stores that before anything from ``transmissions()`` or ``acknowledgements()`` leaves.
    """

    __slots__ = (
        "_changed_floors",
        "_changed_inboxes",
        "_frame_bytes_max",
        "_is_met",
        "_limits",
        "_memory",
        "_pending_rows",
        "_ready",
        "_to_read",
        "_unacknowledged",
        "delivery_rate",
        "duplicates",
        "instance",
        "meetings",
        "online",
        "peer",
        "receiving",
        "sending",
    )

    def __init__(self, peer: str, limits: LinkLimits, *, memory: FrameMemory = UNBOUNDED) -> None:
        self.peer = peer
        self.online = False
        self.instance = ""  # the run of the peer's process that was met last
        self.delivery_rate = DeliveryRate()
        self.sending: dict[ChannelName, SendingChannel] = {}
        self.receiving: dict[ChannelName, ReceivingChannel] = {}
        self.duplicates = self.meetings = 0
        self._limits = limits
        self._memory = memory
        self._frame_bytes_max = limits.frame_bytes_max
        # Whether the peer can have nothing that left early in a former run.
        self._is_met = not peer.startswith("broker/")
        # Channels with something to send and an open window, in turn.
        self._ready: dict[ChannelName, SendingChannel] = {}
        # Channels that cannot go on before rows are read.
        self._to_read: dict[ChannelName, SendingChannel] = {}
        # Channels whose peer is to be sent an Ack.
        self._unacknowledged: dict[ChannelName, ReceivingChannel] = {}
        self._pending_rows: list[Put | Delete] = []
        self._changed_floors: dict[ChannelName, SendingChannel] = {}
        self._changed_inboxes: dict[ChannelName, ReceivingChannel] = {}

    # --- sending --------------------------------------------------------------------------

    def send(self, key: str, frame: Frame) -> int:
        """Number, encode and keep a sequenced frame; returns its number."""
        channel = self._sending_channel(frame.flow, key)
        sequence = channel.last + 1
        data = encode(frame, key, sequence)
        if len(data) - LENGTH_BYTES > self._limits.frame_bytes_max:
            raise ProtocolError(
                "too-long",
                f"{frame.type} frame of {len(data)} bytes; at most {self._limits.frame_bytes_max}",
            )
        channel.append(data)
        self._pending_rows.append(Put(OUTBOX, self._frame_key(channel, sequence), data))
        if not self._is_met and frame.flow is Flow.MESSAGE:
            channel.base = channel.base or sequence
            self._changed_floors[frame.flow, key] = channel
        self._refresh(channel)
        return sequence

    def release(self, flow: Flow, key: str, sequence: int) -> None:
        """A frame that was sent, or waits for its turn, may leave the memory."""
        self.sending[flow, key].release(sequence)

    def reads(self) -> Iterator[ReadRows]:
        """What is to be read when the rows up to now are stored; ``put_back`` takes it."""
        for channel in self._to_read.values():
            missing = channel.missing(self._limits)
            if missing:
                channel.is_reading = True
                first, last = (self._frame_key(channel, n) for n in (missing[0], missing[-1]))
                yield ReadRows(OUTBOX, first, last)
        self._to_read.clear()

    def put_back(self, flow: Flow, key: str, rows: RowsRead) -> None:
        """What was asked for; StoreError when it is not there."""
        channel = self.sending.get((flow, key))
        if channel is None:
            return
        first = parse_frame_key(rows.first)[-1] + channel.shift
        if not rows.rows and channel.floor < first <= channel.last:
            raise StoreError(f"row {rows.first!r} of {rows.space} is gone")
        channel.is_reading = False
        for row, data in rows.rows:
            sequence = parse_frame_key(row)[-1] + channel.shift
            frame = _renumbered(data, key, sequence) if channel.shift else data
            channel.put_back(sequence, frame)
        self._refresh(channel)

    def acknowledge(self, frame: Ack, now: float) -> None:
        """The peer has taken frames; an Ack beyond what was ever sent is a ProtocolError."""
        channel = self.sending.get((Flow(frame.about), frame.key))
        if channel is None or frame.sequence > channel.last:
            raise ProtocolError(
                "not-expected", f"{frame.sequence} of channel {frame.key!r} was never sent"
            )
        channel.confirmed = max(channel.confirmed, frame.sequence)
        before = channel.in_flight_bytes
        self._trim(channel, frame.sequence)
        self.delivery_rate.acknowledged(before - channel.in_flight_bytes, now)
        self._refresh(channel)

    def keep(self, flow: Flow, key: str, *, keeps: bool) -> None:
        """Whether what the peer acknowledges on a channel is kept until it has passed it on."""
        channel = self.sending.get((flow, key))
        if channel is not None and channel.keeps is not keeps:
            self._changed_floors[flow, key] = channel
            self._delete_frames(channel, channel.keep(keeps=keeps))

    def pass_on(self, frame: PassedOn, *, keeps_all: bool) -> None:
        """The peer has passed on what it took; that may be kept all the same."""
        name = Flow(frame.about), frame.key
        channel = None if keeps_all else self.sending.get(name)
        if channel is not None:  # of a tree that is over there may be nothing here any more
            self._changed_floors[name] = channel
            self._delete_frames(channel, channel.pass_on(frame.sequence, partly=frame.partly))

    def leave_gap(self, flow: Flow, key: str) -> None:
        """What is kept does not suffice in the peer's place, until it has passed on all that was
        sent up to now."""
        channel = self.sending[flow, key]
        channel.gap = channel.last
        self._changed_floors[flow, key] = channel

    def read_again(self, channel: SendingChannel, first: int) -> ReadRows:
        """What is to be read for a window of frames, whether they are in memory or not; ``frames``
        are what comes."""
        last = channel.window_end(first, self._limits)
        return ReadRows(OUTBOX, self._frame_key(channel, first), self._frame_key(channel, last))

    def frames(self, rows: RowsRead) -> Iterator[tuple[int, Frame]]:
        """(number, frame) of what was read of a channel."""
        _, flow, key, _ = parse_frame_key(rows.first)
        channel = self.sending[flow, key]
        for row, data in rows.rows:
            yield parse_frame_key(row)[-1] + channel.shift, decode(data[LENGTH_BYTES:]).frame

    def transmissions(self, now: float) -> Iterator[tuple[Flow, bytes]]:
        """What may go on the wire now: (flow to queue in, encoded frame), channel by channel in
        turn.  Raises a fatal ProtocolError for a frame that this peer does not accept."""
        while self._ready:
            name, channel = next(iter(self._ready.items()))
            del self._ready[name]
            data = channel.take_next()
            if len(data) - LENGTH_BYTES > self._frame_bytes_max:
                raise ProtocolError(
                    "peer-limit",
                    f"a frame of {len(data)} bytes waits, {self.peer} accepts "
                    f"{self._frame_bytes_max}",
                    fatal=True,
                )
            self.delivery_rate.sent(len(data), now)
            yield channel.flow, data
            self._refresh(channel)

    # --- receiving ------------------------------------------------------------------------

    def accept(self, flow: Flow, key: str, sequence: int) -> bool:
        """Whether a frame is new and must be handed on; a gap is a fatal ProtocolError."""
        channel = self._receiving_channel(flow, key)
        if not channel.accept(sequence):
            self.duplicates += 1
            # Sent again, so our acknowledgement was not heard.
            self._unacknowledged[flow, key] = channel
            return False
        if not channel.held:
            self._note_received(channel)
        return True

    def hold(self, flow: Flow, key: str, sequence: int) -> None:
        """A frame that was accepted is not taken before ``settle``: until then nobody is told, and
        nothing stored of it, so that the peer sends it on the next connection once more."""
        channel = self.receiving[flow, key]
        channel.hold(sequence)
        if channel.last == channel.stored:
            self._changed_inboxes.pop((flow, key), None)
        if channel.last == channel.told:
            self._unacknowledged.pop((flow, key), None)

    def settle(self, flow: Flow, key: str) -> None:
        """The first frame of a channel that is held is taken."""
        channel = self.receiving[flow, key]
        channel.settle()
        self._note_received(channel)

    def skip(self, frame: Skipped) -> None:
        """So much was acknowledged here, in a run of which nothing is known any more."""
        channel = self._receiving_channel(Flow(frame.about), frame.key)
        if frame.through > channel.last:
            channel.last = channel.told = frame.through
            self._note_received(channel)

    def received(self) -> list[tuple[int, str, int]]:
        """For a hello: (flow, key, last number received) of every channel."""
        for channel in self.receiving.values():
            channel.told = channel.last
        return [(int(c.flow), c.key, c.last) for c in self.receiving.values()]

    @property
    def owes_acknowledgements(self) -> bool:
        return bool(self._unacknowledged)

    def acknowledgements(self) -> Iterator[ReceivingChannel]:
        """Channels that want an Ack; answer each with ``told()`` or leave it for later."""
        if self.online:
            yield from list(self._unacknowledged.values())

    def told(self, channel: ReceivingChannel) -> Ack:
        """The Ack for a channel, which is owed no longer."""
        del self._unacknowledged[channel.flow, channel.key]
        channel.told = channel.last
        return Ack(channel.flow, channel.key, channel.last)

    def has_waiting(self, flow: Flow) -> bool:
        """Whether any frame on this flow is not on the wire yet."""
        return any(c.has_waiting for c in self.sending.values() if c.flow is flow)

    # --- channels that end ----------------------------------------------------------------

    def is_drained(self, flow: Flow, keys: Iterable[str]) -> bool:
        """Whether the peer has acknowledged everything on the channels of a flow."""
        channels = (self.sending.get((flow, key)) for key in keys)
        return not any(channel is not None and channel.backlog_bytes for channel in channels)

    def forget_channels(self, keys: Collection[str]) -> None:
        """Delete the channels with these keys, in both directions."""
        for name, sender in [entry for entry in self.sending.items() if entry[0][1] in keys]:
            sender.keeps = False
            self._delete_frames(sender, sender.trim(sender.last))
            self._pending_rows.append(Delete(OUTBOX_FLOOR, sender.row))
            for known in (self.sending, self._ready, self._changed_floors, self._to_read):
                known.pop(name, None)
        for name, receiver in [entry for entry in self.receiving.items() if entry[0][1] in keys]:
            self._pending_rows.append(Delete(INBOX, receiver.row))
            for kept in (self.receiving, self._unacknowledged, self._changed_inboxes):
                kept.pop(name, None)

    # --- connections ----------------------------------------------------------------------

    def resume(
        self, received: Iterable[tuple[int, str, int]], frame_bytes_max: int
    ) -> list[Skipped]:
        """Both hellos are exchanged: trim what the peer has, send the rest, acknowledge all.

        Returns what goes ahead of that, each in the flow that it is about: what the peer has
        acknowledged, on channels of which it says less.
        """
        self.online = True
        self.meetings += 1
        self._frame_bytes_max = frame_bytes_max
        has = {(Flow(flow), key): sequence for flow, key, sequence in received}
        skipped = []
        for flow, key in has:
            self._sending_channel(flow, key, bounded=True)
        for name, channel in self.sending.items():
            sequence = has.get(name, 0)
            if not self._is_met and channel.flow is Flow.MESSAGE:
                self._end_absence(channel, sequence)
            if sequence > channel.last:
                self._adopt(channel, sequence)
            channel.begin(sequence)
            self._trim(channel, sequence)
            if sequence < channel.floor:
                skipped.append(Skipped(channel.flow, channel.key, channel.floor))
            self._refresh(channel)
        self._is_met = True
        self._unacknowledged = dict(self.receiving)
        return skipped

    def go_on_behind(self, received: Iterable[tuple[int, str, int]]) -> None:
        """What was sent is not known any more: numbers begin behind those that the peer has."""
        for flow, key, sequence in received:
            channel = self._sending_channel(Flow(flow), key, bounded=True)
            if sequence > channel.last:
                self._adopt(channel, sequence)

    def may_have(self, channel: SendingChannel) -> int:
        """The highest number that the peer can have."""
        if self._is_met or channel.flow is not Flow.MESSAGE:
            return channel.last
        return channel.committed + EARLY_MAX

    def succeed(self, peer: str) -> None:
        """The peer, which is away, has a successor that knows nothing of it."""
        self.peer = peer
        self.instance = SUCCESSOR
        self.receiving.clear()
        self._changed_inboxes.clear()

    def suspend(self) -> None:
        """The connection is gone."""
        self.online = False
        self.delivery_rate.lost()
        self._ready.clear()
        self._unacknowledged.clear()
        for channel in self.receiving.values():
            channel.held = 0

    # --- rows -----------------------------------------------------------------------------

    def rows(self) -> list[Put | Delete]:
        """Everything to store since the last call, in order."""
        rows = self._pending_rows
        self._pending_rows = []
        for sender in self._changed_floors.values():
            numbers = [sender.floor, sender.deleted]
            if sender.keeps and not (sender.is_whole and sender.floor > sender.deleted):
                numbers[0] = KEPT + max(sender.gap, sender.is_partly * (sender.passed + 1))
            if sender.shift or sender.base:
                numbers += [sender.shift, sender.base]
            rows.append(Put(OUTBOX_FLOOR, sender.row, msgpack.packb(numbers)))
        for receiver in self._changed_inboxes.values():
            receiver.stored = receiver.last
            value = msgpack.packb([receiver.last])
            rows.append(Put(INBOX, receiver.row, value))
        self._changed_floors.clear()
        self._changed_inboxes.clear()
        return rows

    def forgotten(self) -> list[Delete]:
        """The rows whose removal makes the peer unknown; the journal is of no use after that."""
        rows: list[Delete] = []
        for sender in self.sending.values():
            sender.keeps = False
            for sequence in sender.trim(sender.last):
                rows.append(Delete(OUTBOX, self._frame_key(sender, sequence)))
            rows.append(Delete(OUTBOX_FLOOR, sender.row))
        for receiver in self.receiving.values():
            rows.append(Delete(INBOX, receiver.row))
        return rows

    def restore_floor(self, flow: Flow, key: str, value: bytes) -> None:
        channel = self._sending_channel(flow, key)
        acknowledged, channel.deleted, *others = read_numbers(value, 2, 4)
        channel.floor = channel.deleted if acknowledged >= KEPT else acknowledged
        channel.keeps = acknowledged > channel.deleted
        channel.passed = channel.deleted if channel.keeps else 0
        channel.gap = max(0, acknowledged - KEPT)
        channel.shift, channel.base, *_ = (*others, 0, 0)

    def restore_frames(self, flow: Flow, key: str, frames: StoredFrames) -> None:
        """After the floors; StoreError where one is missing."""
        channel = self._sending_channel(flow, key)
        for number, size, stored in frames.in_order():
            sequence = number + channel.shift
            data = _renumbered(stored, key, sequence) if stored and channel.shift else stored
            try:
                channel.restore(sequence, size, data)
            except ValueError as error:
                raise StoreError(f"{self.peer}, channel {key!r}: {error}") from None

    def restore_inbox(self, flow: Flow, key: str, value: bytes) -> None:
        (last,) = read_numbers(value, 1, 1)
        row = channel_key(self.peer, flow, key)
        self.receiving[flow, key] = ReceivingChannel(flow, key, row, last)

    def statistics(self) -> statistics.Journal:
        sending = {
            f"{c.flow.name.lower()}:{c.key}": statistics.Sending(c.backlog_bytes, c.floor, c.last)
            for c in self.sending.values()
        }
        rate = self.delivery_rate.bytes_per_second
        return statistics.Journal(self.online, self.meetings, rate, sending)

    # --- helpers --------------------------------------------------------------------------

    def _sending_channel(self, flow: Flow, key: str, *, bounded: bool = False) -> SendingChannel:
        channel = self.sending.get((flow, key))
        if channel is None:
            if bounded:
                self._check_count(len(self.sending))
            row = channel_key(self.peer, flow, key)
            channel = self.sending[flow, key] = SendingChannel(flow, key, row, self._memory)
        return channel

    def _receiving_channel(self, flow: Flow, key: str) -> ReceivingChannel:
        channel = self.receiving.get((flow, key))
        if channel is None:
            self._check_count(len(self.receiving))
            row = channel_key(self.peer, flow, key)
            channel = self.receiving[flow, key] = ReceivingChannel(flow, key, row)
        return channel

    def _check_count(self, count: int) -> None:
        if count >= self._limits.channels_max:
            raise ProtocolError(
                "too-many-channels",
                f"{self.peer} opens more than {self._limits.channels_max} channels",
                fatal=True,
            )

    def _refresh(self, channel: SendingChannel) -> None:
        """Keep ``_ready`` true to its meaning; a channel that was ready goes to the end."""
        name = (channel.flow, channel.key)
        self._ready.pop(name, None)
        if self.online and channel.has_waiting and channel.window_open(self._limits):
            if not channel.must_read:
                self._ready[name] = channel
            elif not channel.is_reading:
                self._to_read[name] = channel

    def _trim(self, channel: SendingChannel, through: int) -> None:
        if through > channel.floor:
            self._changed_floors[channel.flow, channel.key] = channel
        self._delete_frames(channel, channel.trim(through))

    def _adopt(self, channel: SendingChannel, received: int) -> None:
        """The peer has more than we ever sent: our store was lost, go on from there."""
        keeps = channel.keeps
        self._delete_frames(channel, channel.keep(keeps=False))
        channel.keeps = keeps
        channel.adopt(received, lambda data, sequence: _renumbered(data, channel.key, sequence))
        self._changed_floors[channel.flow, channel.key] = channel

    def _end_absence(self, channel: SendingChannel, received: int) -> None:
        """The peer is met, with frames that left early in a former run if it has more than was
        committed then (early_leaving.py): what this one has numbered since comes behind those."""
        before = channel.committed
        if channel.base:
            channel.base = 0
            self._changed_floors[channel.flow, channel.key] = channel
        if received > before:
            self._trim(channel, before)
            self._adopt(channel, received)

    def _note_received(self, channel: ReceivingChannel) -> None:
        self._changed_inboxes[channel.flow, channel.key] = channel
        self._unacknowledged[channel.flow, channel.key] = channel

    def _delete_frames(self, channel: SendingChannel, sequences: range) -> None:
        self._pending_rows.extend(
            Delete(OUTBOX, self._frame_key(channel, sequence)) for sequence in sequences
        )

    def _frame_key(self, channel: SendingChannel, sequence: int) -> str:
        return f"{channel.row}|{number_key(sequence - channel.shift)}"


def _renumbered(data: bytes, key: str, sequence: int) -> bytes:
    return encode(decode(data[LENGTH_BYTES:]).frame, key, sequence)
