"""Subscription: what is new, what came twice, what was missed, and what is said to be taken."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from overlay.link.client_limits import RemoteError
from overlay.link.errors import ProtocolError
from overlay.link.frames import (
    SHARED,
    SLOTS_MAX,
    Attach,
    Deliveries,
    Detached,
    Missed,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from overlay.link.inbox import Arrived, Inbox, InboxQueue
from overlay.link.limits import WINDOW_FRAMES_CEILING
from overlay.link.subscription import Attachment, Subscription
from tests.examples import examples


def deliveries(*places: tuple[int, int]) -> Deliveries:
    """One result of a message, with (slot, number) of whoever gets it."""
    slots, numbers = [slot for slot, _ in places], [number for _, number in places]
    return Deliveries("s1", 1, [1], packed_slots(slots), packed_numbers(numbers), b"x")


def arrived(subscription: Subscription, *places: tuple[int, int]) -> list[tuple[str, int]]:
    """(profile, number) of what is new."""
    found = subscription.arrived(deliveries(*places))
    return [(attachment.profile, number) for attachment, number in found]


def taken(subscription: Subscription) -> list[tuple[int, int]]:
    """(slot, number) of all that is said now."""
    return entries(subscription.taken())


def entries(frames: Iterable[Taken]) -> list[tuple[int, int]]:
    return [place for frame in frames for place in columns(frame)]


def test_one_frame_is_for_all_profiles_that_it_names() -> None:
    subscription = Subscription()
    first, second = subscription.attach("p1"), subscription.attach("p2", 6)
    assert arrived(subscription, (first.slot, 1), (second.slot, 7)) == [("p1", 1), ("p2", 7)]
    assert (first.last, second.last) == (1, 7)
    assert (first.processed, second.processed) == (0, 6)


@pytest.mark.parametrize("number", [2, 3, 100])
def test_a_gap_is_fatal(number: int) -> None:
    subscription = Subscription()
    attachment = subscription.attach("p1")
    with pytest.raises(ProtocolError, match=f"delivery {number} of 'p1' after 0") as caught:
        arrived(subscription, (attachment.slot, number))
    assert (caught.value.code, caught.value.fatal) == ("not-expected", True)
    assert attachment.last == 0
    assert arrived(subscription, (attachment.slot, 1)) == [("p1", 1)]


def test_what_comes_twice_is_counted_and_not_handed_on() -> None:
    subscription = Subscription()
    attachment = subscription.attach("p1", 2)
    assert arrived(subscription, (attachment.slot, 3), (attachment.slot, 4)) == [
        ("p1", 3),
        ("p1", 4),
    ]
    assert arrived(subscription, (attachment.slot, 1), (attachment.slot, 4)) == []
    assert subscription.duplicates == 2
    assert attachment.last == 4


def test_what_is_in_no_slot_is_passed_over() -> None:
    subscription = Subscription()
    attachment = subscription.attach("p1")
    subscription.detach(attachment)
    assert arrived(subscription, (attachment.slot, 1), (77, 5)) == []
    assert subscription.missed(Missed(77, 5, 5)) == 0
    assert subscription.detached(Detached(77, "moved", "")) is None
    assert subscription.duplicates == 0


class TestTaking:
    def test_it_is_cumulative_and_said_once(self) -> None:
        subscription = Subscription()
        first, second = subscription.attach("p1"), subscription.attach("p2")
        arrived(subscription, *((first.slot, number) for number in (1, 2, 3)), (second.slot, 1))
        for number in (1, 3, 2):
            subscription.take(first, number)
        subscription.take(second, 1)
        assert first.processed == 3
        assert taken(subscription) == [(first.slot, 3), (second.slot, 1)]
        assert taken(subscription) == []
        subscription.take(first, 2)
        assert taken(subscription) == []

    def test_a_new_connection_is_told_with_the_attachments(self) -> None:
        subscription = Subscription()
        first, second = subscription.attach("p1", 4), subscription.attach("p2")
        arrived(subscription, (first.slot, 5), (second.slot, 1))
        subscription.take(first, 5)
        (attach,) = subscription.attachments()
        assert attach == Attach([(first.slot, "p1", 5, 0), (second.slot, "p2", 0, 0)])
        assert taken(subscription) == []

    def test_nothing_is_said_of_a_profile_that_was_detached(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        arrived(subscription, (attachment.slot, 1), (attachment.slot, 2))
        subscription.take(attachment, 1)
        subscription.detach(attachment)
        subscription.take(attachment, 2)
        assert attachment.processed == 2, "to be said where the profile is now"
        assert taken(subscription) == []
        assert list(subscription.attachments()) == []

    def test_no_frame_holds_more_than_it_may(self) -> None:
        subscription = Subscription()
        made = [subscription.attach(f"p{number}") for number in range(SLOTS_MAX + 1)]
        attaches = list(subscription.attachments())
        assert [len(frame.profiles) for frame in attaches] == [SLOTS_MAX, 1]
        for attachment in made:
            subscription.take(attachment, 1)
        frames = list(subscription.taken())
        assert [len(frame.slots) // 4 for frame in frames] == [SLOTS_MAX, 1]
        assert entries(frames) == [(attachment.slot, 1) for attachment in made]


class TestMissed:
    def test_the_next_is_the_one_behind(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        assert subscription.missed(Missed(attachment.slot, 6, 4)) == 4
        assert (attachment.last, attachment.lost) == (6, 4)
        assert arrived(subscription, (attachment.slot, 7)) == [("p1", 7)]

    def test_it_counts_as_taken_when_nothing_before_it_waits(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        subscription.missed(Missed(attachment.slot, 6, 4))
        assert taken(subscription) == [(attachment.slot, 6)]

    def test_it_is_not_taken_before_what_came_before_it(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        arrived(subscription, (attachment.slot, 1))
        subscription.missed(Missed(attachment.slot, 6, 5))
        assert (attachment.processed, taken(subscription)) == (0, [])

    def test_what_has_come_is_not_missed(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        arrived(subscription, *((attachment.slot, number) for number in (1, 2, 3)))
        assert subscription.missed(Missed(attachment.slot, 3, 3)) == 0
        assert subscription.missed(Missed(attachment.slot, 5, 5)) == 2
        assert (attachment.last, attachment.lost) == (5, 2)


class TestSharing:
    def test_numbers_may_leave_gaps_and_each_is_taken_by_itself(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        assert arrived(subscription, (attachment.slot, 3), (attachment.slot, 7)) == [
            ("p1", 3),
            ("p1", 7),
        ]
        assert arrived(subscription, (attachment.slot, 5)) == [("p1", 5)], "it was another's"
        subscription.take(attachment, 7)
        subscription.take(attachment, 3)
        assert taken(subscription) == [(attachment.slot, 7), (attachment.slot, 3)]
        assert taken(subscription) == []
        assert (attachment.last, attachment.processed) == (7, 2)

    def test_what_was_taken_is_said_again_over_a_new_connection(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        arrived(subscription, *((attachment.slot, number) for number in (2, 4)))
        subscription.take(attachment, 4)
        assert taken(subscription) == [(attachment.slot, 4)]
        attach, *said = subscription.attachments()
        assert attach == Attach([(attachment.slot, "p1", 4, SHARED)])
        assert entries(said) == [(attachment.slot, 4)]  # type: ignore[arg-type]

    def test_what_is_given_again_and_was_taken_is_taken_again(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        arrived(subscription, (attachment.slot, 2))
        subscription.take(attachment, 2)
        taken(subscription)
        assert arrived(subscription, (attachment.slot, 2)) == []
        assert taken(subscription) == [(attachment.slot, 2)]
        assert subscription.duplicates == 1

    def test_what_was_begun_with_does_not_come_twice_and_what_was_not_may(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        arrived(subscription, (attachment.slot, 1), (attachment.slot, 2))
        subscription.give_back(attachment, [2])
        list(subscription.attachments())
        assert arrived(subscription, (attachment.slot, 1), (attachment.slot, 2)) == [("p1", 2)]

    def test_at_another_broker_it_goes_on(self) -> None:
        subscription, elsewhere = Subscription(), Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        arrived(subscription, (attachment.slot, 1), (attachment.slot, 2))
        subscription.detached(Detached(attachment.slot, "moved", ""))
        subscription.take(attachment, 2)
        assert taken(subscription) == []
        again = elsewhere.attach("p1", attachment.last, SHARED, attachment.shared)
        attach, *said = elsewhere.told([again])
        assert attach == Attach([(again.slot, "p1", 2, SHARED)])
        assert entries(said) == [(again.slot, 2)]  # type: ignore[arg-type]
        assert arrived(elsewhere, (again.slot, 1), (again.slot, 3)) == [("p1", 3)]

    def test_what_is_lost_is_counted_and_nothing_is_taken_by_it(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        arrived(subscription, (attachment.slot, 9))
        assert subscription.missed(Missed(attachment.slot, 5, 3)) == 3
        assert (attachment.lost, attachment.last, taken(subscription)) == (3, 9, [])

    def test_what_came_to_nothing_is_taken(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        assert subscription.missed(Missed(attachment.slot, 5, 0)) == 0
        assert taken(subscription) == [(attachment.slot, 5)]

    def test_no_more_is_remembered_than_may_be_on_the_wire(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1", mode=SHARED)
        for number in range(1, 3 * WINDOW_FRAMES_CEILING):
            arrived(subscription, (attachment.slot, number))
            subscription.take(attachment, number)
            taken(subscription)
        _, said = subscription.attachments()
        assert len(entries([said])) == WINDOW_FRAMES_CEILING  # type: ignore[list-item]


class TestSlots:
    def test_no_slot_is_used_again(self) -> None:
        subscription = Subscription()
        former = subscription.attach("p1")
        arrived(subscription, (former.slot, 1))
        assert subscription.detached(Detached(former.slot, "moved", "")) is former
        again = subscription.attach("p1", former.processed)
        assert again.slot != former.slot
        assert arrived(subscription, (former.slot, 2), (again.slot, 1)) == [("p1", 1)]
        assert subscription.detached(Detached(former.slot, "moved", "")) is None

    def test_one_who_attaches_again_goes_on_behind_what_was_taken(self) -> None:
        subscription = Subscription()
        attachment = subscription.attach("p1")
        arrived(subscription, *((attachment.slot, number) for number in (1, 2, 3)))
        subscription.take(attachment, 2)
        subscription.detach(attachment)
        again = subscription.attach("p1", attachment.processed)
        assert list(subscription.attachments()) == [Attach([(again.slot, "p1", 2, 0)])]
        assert arrived(subscription, (again.slot, 3)) == [("p1", 3)]


def test_what_has_arrived_comes_before_the_end_of_an_inbox() -> None:
    queue = InboxQueue()
    ended, other = (Inbox(Attachment(slot, f"p{slot}"), queue) for slot in (1, 2))
    frame = deliveries((1, 1), (2, 1))
    queue.put(Arrived(ended, 1, frame))
    ended.end(RemoteError("moved", "it is elsewhere"))
    ended.end(RemoteError("forgotten", "that was not the reason"))
    queue.put(Arrived(other, 1, frame))
    assert [queue.next_nowait() for _ in range(4)] == [
        Arrived(ended, 1, frame),
        Arrived(other, 1, frame),
        ended,
        None,
    ]
    assert ended.ended is not None
    assert ended.ended.code == "moved"


class _Broker:
    """A mailbox, as the other end of a subscription has it."""

    def __init__(self) -> None:
        self.last = self.gone = self.taken = self.sent = 0
        self.slot = 0


class Machine(RuleBasedStateMachine):
    """A user of some profiles against brokers that throw away, connections that break, and profiles
    that move: whatever happens, each delivery comes once and in order, or is known to be lost."""

    def __init__(self) -> None:
        super().__init__()
        self.subscription = Subscription()
        self.boxes = {profile: _Broker() for profile in ("p1", "p2")}
        self.attachments = {profile: self.subscription.attach(profile) for profile in self.boxes}
        self.slots = {attachment.slot for attachment in self.attachments.values()}
        self.came: dict[str, list[int]] = {profile: [] for profile in self.boxes}
        self.began = dict.fromkeys(self.boxes, 0)
        self.connected = False
        self.flying: list[Deliveries | Missed] = []

    @rule()
    def connect(self) -> None:
        """What was on the way is gone."""
        self.flying.clear()
        self.connected = True
        for frame in self.subscription.attachments():
            self.attach(frame)

    def attach(self, frame: Attach) -> None:
        for slot, profile, received, _ in frame.profiles:
            box = self.boxes[profile]
            assert received >= box.taken
            box.slot, box.sent = slot, received
            box.taken = received
            self.skip(box)

    @precondition(lambda self: self.connected)
    @rule(together=st.booleans())
    def send(self, together: bool) -> None:
        """The next delivery of each, in one frame or in several."""
        places = []
        for box in self.boxes.values():
            box.last = max(box.last, box.sent + 1)
            box.sent += 1
            places.append((box.slot, box.sent))
        if together:
            self.flying.append(deliveries(*places))
        else:
            self.flying += [deliveries(place) for place in places]

    @rule(profile=st.sampled_from(["p1", "p2"]), count=st.integers(1, 4))
    def make(self, profile: str, count: int) -> None:
        self.boxes[profile].last += count

    @rule(profile=st.sampled_from(["p1", "p2"]), left=st.integers(0, 3))
    def throw_away(self, profile: str, left: int) -> None:
        box = self.boxes[profile]
        gone = max(box.gone, box.last - left)
        if gone > box.taken:
            box.gone = gone
        if self.connected:
            self.skip(box)

    def skip(self, box: _Broker) -> None:
        floor = max(box.gone, box.taken)
        if box.sent < floor:
            lost = floor - max(box.sent, box.taken)
            self.flying.append(Missed(box.slot, floor, lost))
            box.sent = floor

    @precondition(lambda self: self.flying)
    @rule(count=st.integers(1, 5))
    def arrive(self, count: int) -> None:
        for frame in self.flying[:count]:
            if isinstance(frame, Missed):
                self.subscription.missed(frame)
                continue
            for attachment, number in self.subscription.arrived(frame):
                self.came[attachment.profile].append(number)
        del self.flying[:count]

    @rule(profile=st.sampled_from(["p1", "p2"]), back=st.integers(0, 2))
    def take(self, profile: str, back: int) -> None:
        attachment = self.attachments[profile]
        numbers = self.came[profile]
        if len(numbers) > back:
            self.subscription.take(attachment, numbers[-1 - back])

    @precondition(lambda self: self.connected)
    @rule()
    def say(self) -> None:
        for slot, number in taken(self.subscription):
            for box in self.boxes.values():
                if box.slot == slot:
                    # It may have come over the connection before, and not be sent on this one yet.
                    assert box.taken <= number <= box.last
                    box.taken, box.sent = number, max(box.sent, number)

    @rule(profile=st.sampled_from(["p1", "p2"]))
    def move(self, profile: str) -> None:
        """Detached, and attached again behind what was taken; what was not comes again."""
        former = self.attachments[profile]
        assert self.subscription.detached(Detached(former.slot, "moved", "")) is former
        made = self.subscription.attach(profile, former.processed)
        assert made.slot not in self.slots
        self.slots.add(made.slot)
        self.attachments[profile] = made
        self.came[profile], self.began[profile] = [], former.processed
        if self.connected:
            self.attach(Attach([(made.slot, profile, former.processed, 0)]))

    @invariant()
    def nothing_comes_twice_and_what_is_missing_is_known(self) -> None:
        for profile, numbers in self.came.items():
            attachment = self.attachments[profile]
            assert numbers == sorted(set(numbers))
            missing = set(range(self.began[profile] + 1, attachment.last + 1)) - set(numbers)
            assert attachment.lost == len(missing)
            assert max(missing, default=0) <= self.boxes[profile].gone


TestMachine = Machine.TestCase
TestMachine.settings = settings(examples(150), stateful_step_count=40)
