"""What is delivered is kept once, comes once and in order to whoever takes it, and then goes."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heappush
from random import Random

import pytest

from formats.limits import DEFAULT_LIMITS
from onyx.broker.deliveries import delivery_log as delivery_log_module
from onyx.broker.deliveries import lines as lines_module
from onyx.broker.deliveries import mailboxes as mailbox_rows_module
from onyx.broker.deliveries.delivery_log import (
    BODY_SPACE,
    DELIVERIES,
    RECORD_BYTES,
    DeliveryLog,
    Results,
    pack_ascending,
    unpack_ascending,
)
from onyx.broker.deliveries.former_texts import TEXTS
from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.deliveries.lines import HELD_SECONDS_EACH
from onyx.broker.deliveries.mailboxes import (
    CHANGES,
    MAILBOXES,
    READ_SPACES,
    Mailboxes,
)
from onyx.broker.packing.parcel import KeptMessage
from overlay.limits import Limits
from overlay.link.dead_letters import DeadLetters
from overlay.link.durable import fill
from overlay.link.errors import StoreError
from overlay.link.events import Put, ReadRows
from overlay.link.frame import Frame
from overlay.link.frame_codec import LENGTH_BYTES, decode
from overlay.link.frames import (
    SHARED,
    Attach,
    Deliveries,
    Detached,
    Missed,
    Taken,
    columns,
    cut,
    packed_numbers,
    packed_slots,
)
from overlay.link.limits import LinkLimits
from overlay.link.part import Agenda, FrameRefused
from overlay.link.row_log import RowLog
from overlay.link.slices import Slice
from overlay.link.stored_rows import StoredRows
from overlay.link.subscription import Attachment, Subscription
from tests.beside import rows_read

SMALL = LinkLimits(
    window_frames=3, window_bytes=400, connection_window_bytes=700, journal_memory_bytes=300
)


class User:
    """One connection that takes profiles; ``got`` by profile: (source, number, results)."""

    def __init__(self, world: World, connection: int) -> None:
        self.connection = connection
        self.subscription = Subscription()
        self.attached: dict[str, Attachment] = {}
        self.frames: list[Frame] = []
        self.missed: dict[str, int] = defaultdict(int)
        self.came: dict[str, list[int]] = defaultdict(list)  # numbers
        self.on_wire_bytes = 0  # of frames that are not taken in all their slots
        self._on_wire: dict[int, dict[int, list[int]]] = defaultdict(dict)  # by slot and number
        self._world = world

    def attach(self, profile: str, received: int = 0, mode: int = 0) -> None:
        made = self.attached[profile] = self.subscription.attach(profile, received, mode)
        self.say(self.subscription.told([made]))

    def connect_again(self, connection: int) -> None:
        self.connection = connection
        self.on_wire_bytes = 0
        self._on_wire.clear()
        self._world.users[connection] = self
        self.say(self.subscription.attachments())

    def say(self, frames: Iterable[Attach | Taken]) -> None:
        for frame in frames:
            if isinstance(frame, Attach):
                self._world.attach(self.connection, frame)
                continue
            for slot, number in columns(frame):
                is_shared = self._world.is_shared(self.connection, slot)
                self._leave_wire(slot, number, is_shared)
            self._world.mailboxes.take(self.connection, frame)

    def get(self, frame: Frame, size: int = 0) -> None:
        self.frames.append(frame)
        if isinstance(frame, Deliveries):
            places = list(columns(frame))
            if any(self._on_wire[slot] for slot, _ in places):
                assert self.on_wire_bytes < self._world.limits.connection_window_bytes
            self.on_wire_bytes += size
            sent = [size, len(places)]
            for slot, number in places:
                self._on_wire[slot][number] = sent
            for attachment, number in self.subscription.arrived(frame):
                result = frame.source, frame.number, cut(frame.lengths, frame.payload)
                self._world.got[attachment.profile].append(result)
                self.came[attachment.profile].append(number)
        elif isinstance(frame, Missed):
            self.missed[self._profile(frame.slot)] += self.subscription.missed(frame)
        elif isinstance(frame, Detached):
            self.attached.pop(self._profile(frame.slot))
            self.subscription.detached(frame)
            self._leave_wire(frame.slot, sys.maxsize)

    def take(self, profile: str) -> None:
        """All that has come."""
        attachment = self.attached[profile]
        self.subscription.take(attachment, attachment.last)
        self.say(self.subscription.taken())

    def take_one(self, profile: str, number: int) -> None:
        """A single one, or all through it."""
        self.subscription.take(self.attached[profile], number)
        self.say(self.subscription.taken())

    def of(self, kind: type[Frame]) -> list[Frame]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    def _leave_wire(self, slot: int, through: int, is_one: bool = False) -> None:
        """What is taken in a slot through a number, or of this number."""
        on_wire = self._on_wire[slot]
        for number in [n for n in on_wire if n == through or (n < through and not is_one)]:
            sent = on_wire.pop(number)
            sent[1] -= 1
            self.on_wire_bytes -= 0 if sent[1] else sent[0]

    def _profile(self, slot: int) -> str:
        return next(name for name, each in self.attached.items() if each.slot == slot)


class Maker:
    """Results that say what they are made of: the message, the profile, its text; ``texts`` are
    those of now."""

    def __init__(self) -> None:
        self.made = 0
        self.texts: dict[str, str] = defaultdict(str)
        self.late = LateResults(
            *(DEFAULT_LIMITS, lambda: 0.0, lambda *cost: None, lambda profile: 1.0)
        )

    def make(
        self,
        source: str,
        number: int,
        message: KeptMessage,
        profiles: list[tuple[str, str]],
        *,
        at_once: bool,
    ) -> Iterator[tuple[list[str], Results | None]]:
        for profile, text in profiles:
            self.made += 1
            result = made_of(message.payload, profile, text or self.texts[profile])
            yield [profile], Results([len(result)], result) if result else None


def made_of(payload: bytes, profile: str, text: str = "") -> bytes:
    """b"" where the profile gets nothing after all."""
    return b"" if payload.endswith(b"-") else b"|".join((payload, profile.encode(), text.encode()))


def sizes(world: World) -> tuple[int, int, int]:
    counted = world.mailboxes.counted
    return counted.waiting, counted.waiting_bytes, world.mailboxes._log.stored_bytes


class World:
    """Mailboxes with their disk and their users."""

    def __init__(
        self,
        limits: LinkLimits = SMALL,
        backlog: int = 1 << 20,
        store: int = 1 << 30,
        age: int = 0,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.disk: dict[tuple[str, str], bytes] = {}
        self.users: dict[int, User] = {}
        self.got: dict[str, list[tuple[str, int, list[bytes]]]] = defaultdict(list)
        self.refused: dict[int, str] = {}
        self.puts = 0
        self.limits = limits
        self._bounds = Limits(
            link=limits,
            delivery_backlog_bytes_max=backlog,
            delivery_store_bytes_max=store,
            delivery_age_s_max=age,
            principal_waiting_bytes_max=0,
        )
        self._slice = Slice(clock)
        self.second = 0
        self._shared: set[tuple[int, int]] = set()
        self.maker = Maker()
        self.owners: dict[str, str] = {}  # by profile
        self.restart()

    def restart(self) -> None:
        """All connections are gone, what was committed is there."""
        self.users.clear()
        self._rows = RowLog()
        self.dead = DeadLetters(
            self,  # type: ignore[arg-type]
            self._rows,
            lambda: float(self.second),
        )
        self.mailboxes = Mailboxes(
            self,  # type: ignore[arg-type]
            self._rows,
            self._bounds,
            DeliveryLog(self._rows, self.limits.journal_memory_bytes),
            self.maker,  # type: ignore[arg-type]
            self.owners.get,
            self._slice,
            self.dead,
            lambda: float(self.second),
        )
        rows = [(space, key, value) for (space, key), value in self.disk.items()]
        self.agenda = Agenda([self.dead, self.mailboxes])
        stored = StoredRows(rows, streams=self.agenda.streams())
        fill(self._rows, stored)
        self.agenda.restore(stored)

    def check_sums(self) -> None:
        """What is counted as it changes is what there is."""
        boxes = list(self.mailboxes._boxes.values())
        lines = list(self.mailboxes._lines._lines.values())
        counted, at = self.mailboxes.counted, self.mailboxes._lines
        assert [counted.waiting, counted.waiting_bytes, at.attached, at.on_wire_bytes] == [
            sum(box.count for box in boxes),
            sum(box.backlog_bytes for box in boxes),
            sum(len(line.boxes) for line in lines),
            sum(line.on_wire_bytes for line in lines),
        ]

    def user(self, connection: int) -> User:
        self.users[connection] = User(self, connection)
        return self.users[connection]

    def attach(self, connection: int, frame: Attach) -> None:
        self._shared |= {(connection, slot) for slot, _, _, mode in frame.profiles if mode & SHARED}
        self.mailboxes.attach(connection, frame, lambda profile: None)

    def is_shared(self, connection: int, slot: int) -> bool:
        return (connection, slot) in self._shared

    def close(self, connection: int) -> None:
        """A connection is gone."""
        del self.users[connection]
        self.mailboxes.close(connection)

    def put_off(self, number: int, payload: bytes, profiles: list[str]) -> None:
        """A message whose results are made when they are taken."""
        message = KeptMessage("B1", "text", payload, b"")
        boxes = self.mailboxes.boxes(profiles)
        self.mailboxes.deliver_message("s1", number, [(boxes, None)], message)

    def settle(self) -> None:
        """As a node: rows, then reads, again until nothing is left to do."""
        while True:
            self.commit()
            reads = [a for a in self.agenda.take_actions() if isinstance(a, ReadRows)]
            for asked in reads:
                self.mailboxes.handle_read(rows_read(asked, self.disk))
            if not reads and not self.agenda.working:
                self.check_sums()
                return
            self.agenda.work()

    def commit(self, is_busy: bool = False) -> None:
        """What one batch leaves."""
        self.agenda.end_batch(is_busy)
        self.agenda.flush()
        self._slice.until = 0.0
        for action in self._rows.drain():
            if isinstance(action, Put):
                self.disk[action.space, action.key] = action.value
                self.puts += 1
            else:
                self.disk.pop((action.space, action.key), None)

    def tick_and_die(self) -> None:
        """A second later, in the midst of what is done then."""
        self.agenda.tick(0.0)
        self.commit()
        self.agenda.work()
        self.commit()
        self.restart()

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        return rows_read(ReadRows(space, first, last), self.disk).rows

    def tick(self) -> None:
        """A second later."""
        self.agenda.tick(0.0)
        self.settle()

    def rows(self, space: str) -> int:
        return sum(name == space for name, _ in self.disk)

    # What mailboxes ask of a link layer.

    def reply(self, connection: int, frame: Frame, size: int = 0) -> None:
        if connection in self.users:
            self.users[connection].get(frame, size)

    def frame_bytes_max(self, connection: int) -> int:
        return self.limits.frame_bytes_max

    def reply_results(self, connection: int, head: bytes, body: bytes) -> None:
        frame = head + body
        self.reply(connection, decode(frame[LENGTH_BYTES:]).frame, len(frame))

    def refuse(self, connection: int, code: str, detail: str) -> None:
        self.refused[connection] = code


def test_equal_results_are_one_row_and_one_frame() -> None:
    world = World(LinkLimits())
    user = world.user(1)
    profiles = [f"p{number}" for number in range(100)]
    for profile in profiles:
        user.attach(profile)
    world.settle()
    puts = world.puts
    world.mailboxes.deliver("s1", 1, [b"<a/>"], profiles)
    world.settle()
    assert world.puts == puts + 1
    assert len(user.of(Deliveries)) == 1
    assert all(world.got[profile] == [("s1", 1, [b"<a/>"])] for profile in profiles)
    for profile in profiles:
        user.take(profile)
    world.settle()
    assert world.rows(DELIVERIES.space) == 0
    assert world.puts == puts + 2, "all that was taken is one row, too"
    world.tick()
    assert world.rows(MAILBOXES.space) == 100
    assert world.rows(CHANGES.space) == 0


def test_what_waits_for_many_who_are_away_is_on_disk_once() -> None:
    world = World(LinkLimits())
    profiles = [f"p{number}" for number in range(1000)]
    body = b"x" * 4000
    for number in range(1, 11):
        world.mailboxes.deliver("s1", number, [body], profiles)
    world.settle()
    stored = sum(len(value) for (space, _), value in world.disk.items() if space in READ_SPACES)
    assert stored < 10 * (len(body) + 1.2 * len(profiles))
    assert world.mailboxes.counted.waiting_bytes == 1000 * 10 * (len(body) + RECORD_BYTES)
    assert world.rows(DELIVERIES.space) == 10


def test_a_user_who_comes_back_gets_what_was_not_taken_and_nothing_else() -> None:
    world = World(LinkLimits())
    user = world.user(1)
    user.attach("p1")
    for number in (1, 2, 3):
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
    world.settle()
    user.subscription.take(user.attached["p1"], 2)
    (taken,) = user.subscription.taken()
    world.mailboxes.take(1, taken)
    world.settle()
    world.got.clear()
    world.restart()
    world.user(2).attach("p1", 0)  # a process that remembers nothing
    world.settle()
    assert world.got["p1"] == [("s1", 3, [b"3"])]


def test_what_is_read_a_second_time_is_there_already() -> None:
    world = World(LinkLimits())
    world.mailboxes.deliver("s1", 1, [b"1"], ["p1"])
    world.settle()
    world.restart()
    world.user(1).attach("p1")
    world.commit()
    (asked,) = [each for each in world.agenda.take_actions() if isinstance(each, ReadRows)]
    memory = []
    for _ in range(2):
        world.mailboxes.handle_read(rows_read(asked, world.disk))
        memory.append(world.mailboxes._log._memory.bytes)
    assert memory[0] == memory[1]
    world.settle()
    assert world.got["p1"] == [("s1", 1, [b"1"])]


def test_beyond_the_bound_the_oldest_goes_and_is_told() -> None:
    world = World(LinkLimits(), backlog=1000)
    for number in range(1, 21):
        world.mailboxes.deliver("s1", number, [b"x" * 100], ["p1"])
    world.settle()
    user = world.user(1)
    user.attach("p1")
    world.settle()
    numbers = [number for _, number, _ in world.got["p1"]]
    assert numbers == list(range(21 - len(numbers), 21))
    assert user.missed["p1"] == 20 - len(numbers)
    assert user.attached["p1"].last == 20


def test_results_of_who_is_away_are_made_when_they_are_taken() -> None:
    world = World(LinkLimits())
    for number in range(1, 101):
        world.put_off(number, b"m%d" % number, ["p1", "p2"])
    world.settle()
    assert world.maker.made == 0
    assert sum(len(value) for value in world.disk.values()) < 100 * 200
    world.restart()
    world.user(1).attach("p1")
    world.settle()
    assert world.got["p1"] == [
        ("s1", number, [made_of(b"m%d" % number, "p1")]) for number in range(1, 101)
    ]
    assert world.maker.made == 100, "nothing for p2, who is still away"


def test_results_are_made_by_the_text_that_the_profile_had_then() -> None:
    world = World(LinkLimits())
    world.put_off(1, b"a", ["p1", "p2"])
    world.mailboxes.keep_text("p1", "first")
    world.put_off(2, b"b", ["p1", "p2"])
    world.mailboxes.keep_text("p1", "second")
    world.put_off(3, b"c", ["p1"])
    world.settle()
    world.restart()
    assert world.rows(TEXTS.space) == 2
    user = world.user(1)
    user.attach("p1")
    user.attach("p2")
    world.settle()
    assert [result for _, _, (result,) in world.got["p1"]] == [
        b"a|p1|first",
        b"b|p1|second",
        b"c|p1|",
    ]
    assert [result for _, _, (result,) in world.got["p2"]] == [b"a|p2|", b"b|p2|"]
    user.take("p1")
    world.tick()
    assert world.rows(TEXTS.space) == 0


def test_a_former_text_is_of_no_position_to_come() -> None:
    """Although nothing else is left of the last position after a restart."""
    world = World(LinkLimits())
    world.put_off(1, b"a", ["p1"])
    world.put_off(2, b"b", ["p2"])
    world.mailboxes.keep_text("p1", "first")
    world.mailboxes.forget("p2")
    world.settle()
    world.restart()
    world.put_off(3, b"c", ["p1"])
    world.user(1).attach("p1")
    world.settle()
    assert [result for _, _, (result,) in world.got["p1"]] == [b"a|p1|first", b"c|p1|"]
    world.mailboxes.forget("p1")
    world.settle()
    world.tick()
    assert world.disk == {}


def test_a_profile_that_gets_nothing_after_all_hears_of_nothing() -> None:
    world = World(LinkLimits(window_frames=3))
    user = world.user(1)
    user.attach("p1")
    for number in range(1, 11):
        world.put_off(number, b"m-" if number % 5 else b"m", ["p1"])
    while len(world.got["p1"]) < 2:
        world.settle()
        user.take("p1")
    assert [number for _, number, _ in world.got["p1"]] == [5, 10]
    assert user.attached["p1"].lost == 0
    world.settle()
    assert world.rows(DELIVERIES.space) == 0


@pytest.mark.parametrize("restarts", [False, True])
def test_what_another_broker_hands_over_that_came_to_nothing_is_not_heard_of(
    restarts: bool,
) -> None:
    world = World(LinkLimits())
    world.mailboxes.deliver("s1", 1, [], ["p1"])
    world.mailboxes.deliver("s1", 2, [b"b"], ["p1"])
    world.mailboxes.deliver("s1", 3, [], ["p1"])
    world.settle()
    if restarts:
        world.restart()
    user = world.user(1)
    user.attach("p1")
    world.settle()
    assert world.got["p1"] == [("s1", 2, [b"b"])]
    user.take("p1")
    world.settle()
    assert user.attached["p1"].lost == 0
    assert world.rows(DELIVERIES.space) == 0


def test_while_messages_wait_results_are_held_to_leave_together() -> None:
    now = 0.0
    world = World(LinkLimits(), clock=lambda: now)
    users = [world.user(connection) for connection in range(1, 101)]
    for user in users:
        user.attach(f"p{user.connection}")
    world.settle()
    profiles = [f"p{user.connection}" for user in users]

    def deliver(number: int, is_busy: bool) -> list[int]:
        world.mailboxes.deliver("s1", number, [b"<a/>"], profiles)
        world.commit(is_busy)
        return [got for _, got, _ in world.got["p1"]]

    assert deliver(1, is_busy=True) == [1]  # nothing was sent just before
    assert deliver(2, is_busy=True) == [1]
    now += 49 * HELD_SECONDS_EACH
    assert deliver(3, is_busy=True) == [1]
    now += 52 * HELD_SECONDS_EACH
    assert deliver(4, is_busy=True) == [1, 2, 3, 4]
    assert deliver(5, is_busy=True) == [1, 2, 3, 4]
    assert deliver(6, is_busy=False) == [1, 2, 3, 4, 5, 6]
    assert all(len(got) == 6 for got in world.got.values())


def much_work() -> World:
    """A message for 100 profiles whose user is there; each result takes more than a slice."""
    time = iter(range(10_000))
    world = World(LinkLimits(), clock=lambda: float(next(time)))
    user = world.user(1)
    for number in range(100):
        user.attach(f"p{number}")
    world.commit()
    world.put_off(1, b"m", [f"p{number}" for number in range(100)])
    world.commit()
    return world


def test_long_work_on_one_message_is_done_in_slices() -> None:
    world = much_work()
    assert 0 < world.maker.made < 10
    assert world.agenda.working
    world.settle()
    assert world.got == {
        f"p{number}": [("s1", 1, [made_of(b"m", f"p{number}")])] for number in range(100)
    }


def test_equal_results_of_several_queries_come_in_one_frame() -> None:
    world = World(LinkLimits())
    user = world.user(1)
    user.attach("p1")
    user.attach("p2")
    equal = Results([1], b"x"), Results([1], b"x"), Results([1], b"y")
    first, second, third = world.mailboxes.boxes(["p1", "p2", "p3"])
    world.mailboxes.deliver_message(
        "s1", 1, [([first], equal[0]), ([second], equal[1]), ([third], equal[2])], None
    )
    world.settle()
    assert len(user.of(Deliveries)) == 1
    world.restart()
    world.user(2).attach("p3")
    world.settle()
    assert world.got["p3"] == [("s1", 1, [b"y"])]


def test_of_results_and_message_the_shorter_is_kept() -> None:
    world = World(LinkLimits())
    made = Results([2000], Random(1).randbytes(2000))
    messages = [Random(length).randbytes(length) for length in (1000, 3000)]
    for message in messages:
        kept = KeptMessage("B1", "text", message, b"")
        world.mailboxes.deliver_message("s1", 1, [(world.mailboxes.boxes(["p1"]), made)], kept)
    world.settle()
    bodies = [value for (space, _), value in world.disk.items() if space == BODY_SPACE]
    assert [(messages[0] in body, made.payload in body) for body in bodies] == [
        (True, False),
        (False, True),
    ]


def test_a_message_that_waits_is_compressed() -> None:
    world = World(LinkLimits())
    message = b"<quote><symbol>ONYX</symbol></quote>" * 300
    world.put_off(1, message, ["p1"])
    world.settle()
    assert sum(len(value) for value in world.disk.values()) < len(message) / 10
    world.restart()
    world.user(1).attach("p1")
    world.settle()
    assert world.got["p1"] == [("s1", 1, [made_of(message, "p1")])]


def test_a_store_that_is_too_full_loses_the_oldest_of_all() -> None:
    world = World(LinkLimits(), store=10_000)
    for number in range(1, 101):
        world.mailboxes.deliver("s1", number, [b"x" * 400], ["p1" if number % 2 else "p2"])
    world.settle()
    assert sum(len(value) for value in world.disk.values()) < 12_000
    user = world.user(1)
    user.attach("p1")
    user.attach("p2")
    world.settle()
    got = sorted(number for profile in ("p1", "p2") for _, number, _ in world.got[profile])
    assert got == list(range(101 - len(got), 101))
    assert user.missed["p1"] + user.missed["p2"] == 100 - len(got)


def test_what_waits_for_too_long_goes_and_is_told() -> None:
    world = World(LinkLimits(), age=60)
    for number in range(1, 11):
        world.second = 10 * number
        world.mailboxes.deliver("s1", number, [b"x"], ["p1"])
    world.second = 125
    world.tick()
    world.restart()
    user = world.user(1)
    user.attach("p1")
    world.settle()
    assert [number for _, number, _ in world.got["p1"]] == [7, 8, 9, 10]
    assert user.missed["p1"] == 6


def test_a_release_that_makes_other_results_does_not_touch_what_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(LinkLimits())
    world.mailboxes.deliver("s1", 1, [b"made"], ["p1"])
    world.settle()
    monkeypatch.setattr(delivery_log_module, "RULES", 2)
    world.restart()
    monkeypatch.undo()
    world.put_off(2, b"to be made", ["p1"])
    world.settle()
    monkeypatch.setattr(delivery_log_module, "RULES", 2)
    with pytest.raises(StoreError, match="by the rules 1, and this release makes them by 2"):
        world.restart()


def test_what_waits_is_made_ahead_of_a_release_that_makes_other_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(LinkLimits())
    profiles = ["p1", "p2", "p3"]
    user = world.user(1)
    user.attach("p3")
    world.put_off(1, b"a" * 900, profiles)
    world.settle()
    user.take("p3")
    world.mailboxes.keep_text("p1", "first")
    world.put_off(2, b"b", profiles[:2])
    world.put_off(3, b"nothing of it-", ["p1"])
    world.mailboxes.deliver("s1", 4, [b"made at once"], profiles)
    world.settle()
    world.restart()
    stored = world.mailboxes._log.stored_bytes
    told = []
    for done, total in world.mailboxes.make_stored(world.read):
        told.append((done, total))
        world.commit()
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert world.mailboxes._log.stored_bytes != stored
    before = sizes(world)
    monkeypatch.setattr(delivery_log_module, "RULES", 2)
    world.maker.texts["p1"] = "of another release"
    world.got.clear()
    world.restart()
    assert sizes(world) == before
    user = world.user(2)
    for profile in profiles:
        user.attach(profile, 1 if profile == "p3" else 0)
    world.settle()
    made_at_once = ("s1", 4, [b"made at once"])
    assert world.got == {
        "p1": [
            ("s1", 1, [made_of(b"a" * 900, "p1", "first")]),
            ("s1", 2, [made_of(b"b", "p1")]),
            made_at_once,
        ],
        "p2": [
            ("s1", 1, [made_of(b"a" * 900, "p2")]),
            ("s1", 2, [made_of(b"b", "p2")]),
            made_at_once,
        ],
        "p3": [made_at_once],
    }
    assert user.attached["p1"].last == 4, "and what came to nothing is told"
    take_all(world, user)
    assert not any(world.rows(space) for space in READ_SPACES)


@pytest.mark.parametrize("numbers", [[], [7], [1, 2, 3], [5, 5 + 255, 600, 70_000], [0, 2**31]])
def test_ascending_numbers_are_packed_by_their_differences(numbers: list[int]) -> None:
    packed = pack_ascending(numbers)
    assert unpack_ascending(packed) == numbers
    dense = pack_ascending(range(1_000_000, 1_001_000))
    assert len(dense) < 1_020


def test_memory_is_bounded_while_a_user_who_is_there_takes_nothing() -> None:
    world = World(SMALL)
    user = world.user(1)
    user.attach("p1")
    for number in range(1, 101):
        if number % 2:
            world.mailboxes.deliver("s1", number, [b"x" * 100], ["p1"])
        else:
            world.put_off(number, b"m" * 100, ["p1"])
        world.settle()
    assert world.mailboxes._log._memory.bytes < SMALL.journal_memory_bytes + SMALL.window_bytes
    take_all(world, user)
    assert len(world.got["p1"]) == 100


def test_the_last_who_asks_takes_a_profile() -> None:
    world = World()
    first, second = world.user(1), world.user(2)
    first.attach("p1")
    second.attach("p1")
    world.mailboxes.deliver("s1", 1, [b"1"], ["p1"])
    world.settle()
    (detached,) = first.of(Detached)
    assert isinstance(detached, Detached)
    assert detached.code == "replaced"
    assert not first.of(Deliveries)
    assert len(second.of(Deliveries)) == 1


def crowded(profiles: int, messages: int, limits: LinkLimits) -> tuple[World, User]:
    """A user who takes nothing; each message gives each profile results of its own."""
    world = World(limits)
    user = world.user(1)
    for number in range(profiles):
        user.attach(f"p{number}")
    for number in range(1, messages + 1):
        world.put_off(number, b"m%d" % number, [f"p{number}" for number in range(profiles)])
        world.settle()
    return world, user


class TestWindowOfAConnection:
    limits = LinkLimits(connection_window_bytes=10_000)

    def test_one_who_reads_nothing_has_one_of_each_and_a_window_on_the_wire(self) -> None:
        _, user = crowded(1_000, 20, self.limits)
        longest = max(sum(frame.lengths) for frame in user.of(Deliveries)) + 100
        assert len(user.of(Deliveries)) == 1_000
        few = crowded(10, 100, self.limits)[1]
        assert 10_000 <= few.on_wire_bytes < 10_000 + 10 * longest

    def test_one_who_takes_only_one_profile_gets_all_of_it(self) -> None:
        world, user = crowded(100, 100, self.limits)
        while len(world.got["p7"]) < 100:
            before = len(world.got["p7"])
            user.take("p7")
            world.settle()
            assert len(world.got["p7"]) == before + 1
        assert [number for _, number, _ in world.got["p7"]] == list(range(1, 101))
        assert all(len(world.got[profile]) < 10 for profile in user.attached if profile != "p7")

    def test_what_many_get_at_once_counts_once(self) -> None:
        world = World(LinkLimits())
        user = world.user(1)
        profiles = [f"p{number}" for number in range(1_000)]
        for profile in profiles:
            user.attach(profile)
        for number in range(1, 201):
            world.mailboxes.deliver("s1", number, [b"x" * 4_000], profiles)
            world.settle()
        assert len(user.of(Deliveries)) == 200
        assert all(len(world.got[profile]) == 200 for profile in profiles)

    def test_whoever_waits_for_room_is_looked_at_when_there_is_some(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        moved = 0

        def push(heap: list[tuple[int, int]], item: tuple[int, int]) -> None:
            nonlocal moved
            moved += 1
            heappush(heap, item)

        world, user = crowded(300, 10, self.limits)
        monkeypatch.setattr(lines_module, "heappush", push)
        while world.rows(DELIVERIES.space):
            for profile in user.attached:
                user.take(profile)
                world.settle()
        assert all(len(world.got[profile]) == 10 for profile in user.attached)
        assert moved < 5 * 300 * 10

    def test_what_is_thrown_away_on_the_wire_still_counts(self) -> None:
        world = World(LinkLimits(window_bytes=2_000, connection_window_bytes=3_000), backlog=1_000)
        user = world.user(1)
        user.attach("p1")
        user.attach("p2")
        for number in range(1, 101):
            world.mailboxes.deliver("s1", number, [b"x" * 200], ["p1" if number % 2 else "p2"])
            world.settle()
        assert 3_000 <= user.on_wire_bytes < 3_300
        assert world.mailboxes._lines.on_wire_bytes == user.on_wire_bytes
        assert not user.of(Missed), "it is told when there is room again"
        take_all(world, user)
        assert user.missed["p1"] + len(world.got["p1"]) == 50
        assert user.missed["p2"] + len(world.got["p2"]) == 50
        assert world.mailboxes._lines.on_wire_bytes == 0


def test_a_profile_that_is_forgotten_leaves_nothing() -> None:
    world = World()
    user = world.user(1)
    user.attach("p1")
    for number in range(1, 10):
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1", "p2"])
    world.settle()
    world.mailboxes.forget("p1")
    world.mailboxes.forget("p2")
    world.settle()
    world.tick()
    assert world.disk == {}
    (detached,) = user.of(Detached)
    assert isinstance(detached, Detached)
    assert detached.code == "forgotten"


def test_a_name_that_is_used_again_gets_nothing_of_before() -> None:
    """Also after a restart, while another mailbox still holds what both once got."""
    world = World()
    world.mailboxes.deliver("s1", 1, [b"1"], ["p1", "p2"])
    world.mailboxes.forget("p1")
    world.mailboxes.deliver("s1", 2, [b"2"], ["p1"])
    world.settle()
    world.restart()
    world.user(1).attach("p1")
    world.settle()
    assert world.got["p1"] == [("s1", 2, [b"2"])]


def test_what_came_over_an_earlier_connection_may_be_taken_over_the_next() -> None:
    """Before it is sent once more: all of it, or the first part."""
    for taken in (4, 10):
        world = World(LinkLimits())
        for number in range(1, 11):
            world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
        world.user(1).attach("p1")
        world.settle()
        del world.users[1]
        world.mailboxes.close(1)
        world.got.clear()
        user = world.user(2)
        user.attach("p1", 0)
        slot = user.attached["p1"].slot
        world.mailboxes.take(2, Taken(packed_slots([slot]), packed_numbers([taken])))
        user.attached["p1"].last = taken
        world.mailboxes.deliver("s1", 11, [b"11"], ["p1"])
        world.settle()
        assert [number for _, number, _ in world.got["p1"]] == list(range(taken + 1, 12))


def test_what_was_never_sent_cannot_be_taken() -> None:
    world = World()
    user = world.user(1)
    user.attach("p1")
    attachment = user.attached["p1"]
    user.subscription.take(attachment, 7)
    (taken,) = user.subscription.taken()
    with pytest.raises(FrameRefused, match="never given out"):
        world.mailboxes.take(1, taken)
    world.mailboxes.take(9, Taken(b"", b""))  # a connection that attached nothing


def test_the_oldest_message_is_worked_on_for_all_first() -> None:
    world = World(LinkLimits())
    for number in (1, 2, 3):
        world.put_off(number, b"m%d" % number, ["p1", "p2", "p3"])
    opened: list[int] = []
    make = world.maker.make

    def noting(
        source: str,
        number: int,
        message: KeptMessage,
        profiles: list[tuple[str, str]],
        *,
        at_once: bool,
    ) -> Iterator[tuple[list[str], Results | None]]:
        opened.append(number)
        return make(source, number, message, profiles, at_once=at_once)

    world.maker.make = noting  # type: ignore[method-assign]
    for connection, profile in enumerate(("p1", "p2", "p3"), 1):
        world.user(connection).attach(profile)
    world.settle()
    assert opened == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_whatever_else_happens_the_next_slice_waits_until_it_is_called() -> None:
    """So others are answered between two slices, however many have something to say."""
    world = much_work()
    made = world.maker.made
    for _ in range(5):
        world.mailboxes.flush_soon()
        world.agenda.flush()
    assert world.maker.made == made
    world.agenda.work()
    world.agenda.flush()
    assert world.maker.made > made


def test_no_call_sends_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "SENT_AT_ONCE", 10)
    world = World(LinkLimits())
    for number in range(1, 51):
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
    world.user(1).attach("p1")
    world.commit()
    assert len(world.got["p1"]) == 10
    assert world.agenda.working
    world.settle()
    assert len(world.got["p1"]) == 50


def test_a_damaged_row_is_told() -> None:
    world = World()
    world.mailboxes.deliver("s1", 1, [b"1"], ["p1"])
    world.settle()
    key = next(key for key in world.disk if key[0] == DELIVERIES.space)
    for damaged in (b"", b"\x80", b"\xc1"):
        world.disk[key] = damaged
        with pytest.raises(StoreError, match=key[1]):
            world.restart()


def take_all(world: World, user: User) -> None:
    """Until nothing waits: some at a time, as the windows allow."""
    before = -1
    while before != (before := len(world.disk)) or world.rows(DELIVERIES.space):
        assert before != 0
        for profile in list(user.attached):
            user.take(profile)
        world.settle()


class History:
    """What was given to mailboxes, and what has to come of it."""

    def __init__(self, world: World, profiles: list[str], random: Random) -> None:
        self.profiles = profiles
        self.expected: dict[str, list[tuple[str, int, list[bytes]]]] = defaultdict(list)
        self.received = dict.fromkeys(profiles, 0)  # as a user remembers it
        self._world = world
        self._random = random
        self._texts = dict.fromkeys(profiles, 0)
        world.maker.texts.update(dict.fromkeys(profiles, "0"))

    def give(self, number: int) -> None:
        """A message, with results or without."""
        random = self._random
        some = random.sample(self.profiles, random.randint(1, len(self.profiles)))
        payload = random.randbytes(random.choice((3, 120))) + random.choice((b"-", b"+"))
        if random.random() < 0.5:
            self._world.mailboxes.deliver("s1", number, [payload], some)
            for profile in some:
                self.expected[profile].append(("s1", number, [payload]))
            return
        self._world.put_off(number, payload, some)
        for profile in some:
            result = made_of(payload, profile, str(self._texts[profile]))
            if result:
                self.expected[profile].append(("s1", number, [result]))

    def change_text(self) -> None:
        profile = self._random.choice(self.profiles)
        self._world.mailboxes.keep_text(profile, str(self._texts[profile]))
        self._texts[profile] += 1
        self._world.maker.texts[profile] = str(self._texts[profile])

    def note(self) -> None:
        """What users have by now."""
        for user in self._world.users.values():
            for profile, attachment in user.attached.items():
                self.received[profile] = max(self.received[profile], attachment.last)


@pytest.mark.parametrize("seed", range(30))
def test_everything_comes_once_and_in_order_whatever_breaks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that end, processes that restart, profiles taken by one and by another, whose
    texts change."""
    print(f"seed {seed}")
    monkeypatch.setattr(mailbox_rows_module, "WRITTEN_AT_ONCE", 1)
    random = Random(seed)
    world = World()
    history = History(world, [f"p{number}" for number in range(6)], random)
    connections = iter(range(1, 10_000))
    for number in range(1, 201):
        kind = random.random()
        if kind < 0.5:
            history.give(number)
        elif kind < 0.53:
            history.change_text()
        elif kind < 0.66:
            user = world.user(next(connections))
            for profile in random.sample(history.profiles, 3):
                user.attach(profile, history.received[profile])
        elif kind < 0.9 and world.users:
            user = random.choice(list(world.users.values()))
            if user.attached:
                user.take(random.choice(list(user.attached)))
        elif kind < 0.95 and world.users:
            history.note()
            world.close(random.choice(list(world.users)))
        elif 0.95 < kind < 0.97:
            world.tick()
        elif 0.97 < kind < 0.98:
            world.settle()
            history.note()
            world.tick_and_die()
        elif kind > 0.97:
            world.settle()
            history.note()
            world.restart()
        world.settle()
        history.note()
    last = world.user(next(connections))
    for profile in history.profiles:
        last.attach(profile, history.received[profile])
    world.settle()
    take_all(world, last)
    assert world.got == history.expected
    assert world.mailboxes.counted.waiting_bytes == 0
    assert world.mailboxes._lines.on_wire_bytes == 0
