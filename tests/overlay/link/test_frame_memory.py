"""What waits for peers beyond the memory given to it is read back from the store when its turn
comes: nothing is missing, doubled or out of order, and the memory is kept to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.link.errors import StoreError
from overlay.link.events import Action, DataReceived, Delete, Flow, Put, ReadRows, RowsRead
from overlay.link.frame_memory import FrameMemory
from overlay.link.frames import Ack, Message
from overlay.link.journal_rows import OUTBOX, Unread
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from tests.beside import rows_read
from tests.overlay.link.pair import Hand, hello, sent

PEER, KEY = "source/s1", "B1"
MEMORY = 5_000
LIMITS = LinkLimits(window_frames=4, window_bytes=10_000, journal_memory_bytes=MEMORY)


class Disk:
    """A link layer's rows, and what it reads of them."""

    def __init__(self, limits: LinkLimits = LIMITS) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}
        self.reads = 0
        self.hand = self.started(limits)

    def started(self, limits: LinkLimits = LIMITS, *, unread: bool = False) -> Hand:
        links = LinkLayer(
            role="broker", identity="B1", instance="1", formats=[], limits=limits, stored=True
        )
        rows = [(s, key, value) for (s, key), value in self.rows.items()]
        if unread:
            rows = [(s, k, Unread(len(v)) if s == OUTBOX else v) for s, k, v in rows]
        assert links.restore(rows) == []
        self.hand = Hand(links)
        return self.hand

    def memory(self) -> FrameMemory:
        return self.hand.links.statistics().memory

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.hand.links.send(PEER, KEY, message(number))
        self.carry_out(self.hand.drain())

    def carry_out(self, actions: list[Action]) -> list[Action]:
        """All that follows, reading included."""
        done = []
        while actions:
            done += actions
            for action in actions:
                if isinstance(action, Put):
                    self.rows[action.space, action.key] = action.value
                elif isinstance(action, Delete):
                    self.rows.pop((action.space, action.key), None)
            asked = [action for action in actions if isinstance(action, ReadRows)]
            actions = []
            for action in asked:
                self.reads += 1
                actions += self.hand.event(rows_read(action, self.rows))
        return done

    def connect(self, connection: int = 1, received: int = 0) -> list[int]:
        """The numbers that come, up to the window."""
        self.hand.open(connection)
        channels = [(3, KEY, received)] if received else []
        self.hand.receive(hello("source", "s1", received=channels), connection=connection)
        return numbers(self.carry_out(self.hand.actions))

    def acknowledge(self, sequence: int) -> list[int]:
        self.hand.receive(Ack(3, KEY, sequence))
        return numbers(self.carry_out(self.hand.actions))


def message(number: int) -> Message:
    return Message("B1", "s1", number, "xml", 0, b"x" * 1000)


def numbers(actions: list[Action]) -> list[int]:
    return [frame.number for frame in sent(actions) if isinstance(frame, Message)]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_long_outage_costs_no_more_memory_than_is_given(restarted: bool) -> None:
    disk = Disk()
    disk.send(*range(1, 101))
    if restarted:
        disk.started()
    assert disk.memory().bytes <= MEMORY + 1100
    assert disk.hand.links.backlog_bytes(PEER, Flow.MESSAGE, KEY) > 100_000
    got = disk.connect()
    assert got == [1, 2, 3, 4]
    while got[-1] < 100:
        got += disk.acknowledge(got[-1])
        assert disk.memory().bytes <= MEMORY + 5 * 1100
    assert got == list(range(1, 101))
    assert disk.reads > 20
    assert disk.acknowledge(100) == []
    assert disk.memory().bytes == 0
    assert {space for space, _ in disk.rows} == {"outbox-floor"}


@pytest.mark.parametrize("received", [0, 100])
def test_frames_that_a_start_leaves_in_the_store_come_all_the_same(received: int) -> None:
    """``received``: where the peer is; 100 is beyond all that was sent before a store was lost."""
    limits = replace(LIMITS, journal_memory_bytes=1_000_000)
    disk = Disk(limits)
    disk.send(*range(1, 11))
    disk.started(limits, unread=True)
    assert disk.memory().bytes == 0
    assert disk.hand.links.backlog_bytes(PEER, Flow.MESSAGE, KEY) > 10_000
    got = disk.connect(received=received)
    while got[-1] < 10:
        got += disk.acknowledge(received + got[-1])
    assert got == list(range(1, 11))
    assert disk.reads > 0


def test_as_long_as_there_is_room_nothing_is_read() -> None:
    disk = Disk(replace(LIMITS, journal_memory_bytes=1_000_000))
    disk.send(*range(1, 11))
    got = disk.connect()
    while got[-1] < 10:
        got += disk.acknowledge(got[-1])
    assert got == list(range(1, 11))
    assert disk.reads == 0


def test_a_peer_that_is_there_and_keeps_up_costs_no_reading_when_there_is_no_room() -> None:
    disk = Disk(replace(LIMITS, journal_memory_bytes=1))
    disk.connect()
    for number in range(1, 11):
        disk.hand.links.send(PEER, KEY, message(number))
        assert numbers(disk.carry_out(disk.hand.drain())) == [number]
        disk.acknowledge(number)
    assert (disk.reads, disk.memory().frames_read_back) == (0, 0)


def test_what_was_on_the_wire_is_read_again_after_a_lost_connection() -> None:
    disk = Disk(replace(LIMITS, journal_memory_bytes=1))
    disk.connect()
    disk.send(*range(1, 11))
    disk.hand.lose()
    assert disk.connect(2, received=2) == [3, 4, 5, 6]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("memory", [1, 3_000, 1_000_000])
def test_numbers_adopted_from_a_peer_are_those_of_frames_in_the_store_too(
    memory: int, restarted: bool
) -> None:
    limits = replace(LIMITS, journal_memory_bytes=memory)
    disk = Disk(limits)
    disk.send(*range(1, 7))
    disk.hand.open()
    disk.hand.receive(hello("source", "s1", received=[(3, KEY, 100)]))
    got = numbers(disk.carry_out(disk.hand.actions))
    disk.send(7)
    if restarted:
        disk.started(limits)
        got = disk.connect(received=100)
    assert got == [1, 2, 3, 4]
    assert disk.acknowledge(104) == [5, 6, 7]
    disk.acknowledge(107)
    assert {space for space, _ in disk.rows} == {"outbox-floor"}
    disk.started(limits)
    assert disk.hand.links.send(PEER, KEY, message(8)) == 108


def test_a_row_that_is_gone_is_said() -> None:
    disk = Disk(replace(LIMITS, journal_memory_bytes=1))
    disk.send(1)
    disk.rows.clear()
    disk.hand.open()
    with pytest.raises(StoreError, match="is gone"):
        disk.connect()


def test_rows_of_a_forgotten_peer_come_to_nothing() -> None:
    disk = Disk()
    key = f"{PEER}|3|{KEY}|{1:016d}"
    disk.hand.event(RowsRead("outbox", key, (), key))
    assert not disk.hand.links.peers("source")
    disk.hand.event(DataReceived(9, b"from nobody"))


def test_what_is_acknowledged_before_it_is_read_is_not_missed() -> None:
    disk = Disk(replace(LIMITS, journal_memory_bytes=1))
    disk.send(*range(1, 6))
    disk.hand.open()
    disk.hand.receive(hello("source", "s1"))
    asked = disk.hand.actions
    disk.hand.receive(Ack(3, KEY, 5))
    assert numbers(disk.carry_out([*disk.hand.actions, *asked])) == []
    disk.send(6)
    assert disk.acknowledge(6) == []
    assert disk.memory().bytes == 0


def test_a_peer_that_is_forgotten_leaves_its_room() -> None:
    disk = Disk()
    disk.send(1, 2, 3)
    assert disk.memory().bytes > 3000
    disk.hand.links.forget(PEER)
    disk.carry_out(disk.hand.drain())
    assert disk.memory().bytes == 0
    assert disk.rows == {}
