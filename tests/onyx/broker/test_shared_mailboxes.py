"""Those who share a mailbox divide what is in it: nothing is lost, what is taken comes no more."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from onyx.broker.deliveries import mailboxes as mailbox_rows_module
from onyx.broker.deliveries.delivery_log import DELIVERIES
from onyx.broker.deliveries.mailbox import OPEN_MAX, SHARERS_MAX
from overlay.link.frames import (
    SHARED,
    Detached,
    Missed,
    Taken,
    packed_numbers,
    packed_slots,
)
from overlay.link.limits import LinkLimits
from overlay.link.part import FrameRefused
from tests.onyx.broker.test_mailboxes import SMALL, User, World


def sharing(world: World, *connections: int) -> list[User]:
    users = [world.user(connection) for connection in connections]
    for user in users:
        user.attach("p1", mode=SHARED)
    return users


def deliver(world: World, *numbers: int) -> None:
    for number in numbers:
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
        world.settle()


def close(world: World, user: User) -> None:
    world.close(user.connection)
    world.settle()


def test_each_delivery_goes_to_the_one_with_fewest() -> None:
    world = World(LinkLimits())
    first, second = sharing(world, 1, 2)
    deliver(world, 1, 2, 3, 4)
    assert (first.came["p1"], second.came["p1"]) == ([1, 3], [2, 4])
    for number in second.came["p1"]:
        second.take_one("p1", number)
    deliver(world, 5, 6, 7)
    assert (first.came["p1"], second.came["p1"]) == ([1, 3, 7], [2, 4, 5, 6])


def test_one_who_takes_nothing_does_not_hold_up_the_others() -> None:
    world = World(LinkLimits(window_frames=3))
    slow, quick = sharing(world, 1, 2)
    for number in range(1, 1001):
        deliver(world, number)
        for came in quick.came.pop("p1", []):
            quick.take_one("p1", came)
    world.settle()
    assert len(slow.came["p1"]) == 1
    assert world.rows(DELIVERIES.space) == 1
    assert sum(len(value) for value in world.disk.values()) < 60_000, "changes until the next tick"
    world.tick()
    assert sum(len(value) for value in world.disk.values()) < 300


def test_what_one_had_who_has_gone_goes_to_the_others_first() -> None:
    world = World(LinkLimits(window_frames=3))
    first, second = sharing(world, 1, 2)
    deliver(world, *range(1, 11))
    assert (first.came["p1"], second.came["p1"]) == ([1, 3, 5], [2, 4, 6])
    first.take_one("p1", 3)
    world.settle()
    assert first.came["p1"] == [1, 3, 5, 7]
    close(world, first)
    for number in (2, 4, 6):
        second.take_one("p1", number)
        world.settle()
    assert second.came["p1"] == [2, 4, 6, 1, 5, 7]


def test_what_the_last_had_waits() -> None:
    world = World(LinkLimits())
    (only,) = sharing(world, 1)
    deliver(world, 1, 2, 3, 4)
    only.take_one("p1", 3)
    world.settle()
    close(world, only)
    deliver(world, 5)
    (next_one,) = sharing(world, 2)
    world.settle()
    assert next_one.came["p1"] == [1, 2, 4, 5]


@pytest.mark.parametrize("is_told", [False, True])
def test_what_was_taken_comes_to_nobody_after_a_restart(is_told: bool) -> None:
    """Nor where it was said of what nobody knows any more to have been given out."""
    world = World(LinkLimits())
    first, second = sharing(world, 1, 2)
    deliver(world, *range(1, 9))
    first.take_one("p1", 5)
    second.take_one("p1", 2)
    world.settle()
    if is_told:
        world.tick()
    world.restart()
    again, other = sharing(world, 3, 4)
    for number in (4, 8):
        slot = other.attached["p1"].slot
        world.mailboxes.take(4, Taken(packed_slots([slot]), packed_numbers([number])))
    world.settle()
    assert sorted(again.came["p1"] + other.came["p1"]) == [1, 3, 6, 7]
    for user in (again, other):
        for number in user.came["p1"]:
            user.take_one("p1", number)
    world.settle()
    assert world.rows(DELIVERIES.space) == 0


def test_one_who_takes_a_profile_alone_ends_those_who_share_it() -> None:
    """And gets in order what they have not taken, told of nothing but that it is not theirs."""
    world = World(LinkLimits())
    users = sharing(world, 1, 2)
    deliver(world, *range(1, 7))
    users[0].take_one("p1", 3)
    users[1].take_one("p1", 4)
    alone = world.user(3)
    alone.attach("p1")
    world.settle()
    for user in users:
        (detached,) = user.of(Detached)
        assert isinstance(detached, Detached)
        assert detached.code == "replaced"
    assert alone.came["p1"] == [1, 2, 5, 6]
    assert (alone.missed["p1"], len(alone.of(Missed))) == (0, 1)
    alone.take_one("p1", 2)
    deliver(world, 7)
    assert alone.came["p1"] == [1, 2, 5, 6, 7]
    alone.take("p1")
    deliver(world, 8)
    alone.take("p1")
    world.settle()
    assert alone.came["p1"][-2:] == [7, 8]
    assert world.rows(DELIVERIES.space) == 0


def test_one_who_shares_a_profile_ends_who_takes_it_alone() -> None:
    world = World(LinkLimits())
    alone = world.user(1)
    alone.attach("p1")
    deliver(world, 1, 2)
    alone.take_one("p1", 1)
    first, second = sharing(world, 2, 3)
    deliver(world, 3)
    assert alone.of(Detached)
    assert (first.came["p1"], second.came["p1"]) == ([2], [3])
    assert not first.of(Detached)


def test_what_is_too_much_to_keep_is_lost_and_told_to_one() -> None:
    world = World(LinkLimits(window_frames=2), backlog=1000)
    first, second = sharing(world, 1, 2)
    deliver(world, *range(1, 101))
    assert world.mailboxes.counted.waiting_bytes <= 1000
    for _ in range(50):
        for user in (first, second):
            for number in list(user.attached["p1"].shared.here):  # type: ignore[union-attr]
                user.take_one("p1", number)
        world.settle()
    came = first.came["p1"] + second.came["p1"]
    assert len(came) + first.missed["p1"] + second.missed["p1"] == 100
    assert len(set(came)) == len(came) < 30
    assert world.rows(DELIVERIES.space) == 0


def test_what_those_who_share_have_is_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is open, which is a row, is no longer however many they are."""
    assert OPEN_MAX % SHARERS_MAX == 0
    sharers_max, open_max = SHARERS_MAX // 16, OPEN_MAX // 16
    monkeypatch.setattr("onyx.broker.deliveries.mailboxes.SHARERS_MAX", sharers_max)
    monkeypatch.setattr("onyx.broker.deliveries.mailbox.OPEN_MAX", open_max)
    world = World(LinkLimits())
    users = sharing(world, *range(1, sharers_max + 1))
    deliver(world, *range(1, 2 * open_max))
    assert {len(user.came["p1"]) for user in users} == {open_max // sharers_max}
    users[7].take_one("p1", users[7].came["p1"][0])
    world.settle()
    assert len(users[7].came["p1"]) == open_max // sharers_max + 1
    (one_more,) = sharing(world, sharers_max + 1)
    (detached,) = one_more.of(Detached)
    assert isinstance(detached, Detached)
    assert detached.code == "too-many"


def test_what_comes_to_nothing_is_at_nobody() -> None:
    world = World(LinkLimits(window_frames=2))
    users = sharing(world, 1, 2)
    for number in range(1, 21):
        world.put_off(number, b"m" if number % 10 == 0 else b"m-", ["p1"])
    for _ in range(20):
        world.settle()
        for user in users:
            user.say(user.subscription.taken())
    came = users[0].came["p1"] + users[1].came["p1"]
    assert sorted(came) == [10, 20]
    assert world.rows(DELIVERIES.space) == 2
    assert [user.missed["p1"] for user in users] == [0, 0]


def test_what_was_never_given_out_cannot_be_taken() -> None:
    world = World()
    (user,) = sharing(world, 1)
    deliver(world, 1)
    with pytest.raises(FrameRefused, match="never given out"):
        user.take_one("p1", 2)


def test_a_profile_that_is_forgotten_leaves_nothing() -> None:
    world = World()
    users = sharing(world, 1, 2)
    deliver(world, *range(1, 9))
    users[0].take_one("p1", 3)
    world.settle()
    world.mailboxes.forget("p1")
    world.settle()
    world.tick()
    assert world.disk == {}
    assert all(user.of(Detached) for user in users)


def test_what_is_open_is_made_for_another_release() -> None:
    world = World(LinkLimits())
    (user,) = sharing(world, 1)
    for number in (1, 2, 3):
        world.put_off(number, b"m%d" % number, ["p1"])
        world.settle()
    user.take_one("p1", 2)
    world.settle()
    world.restart()
    assert list(world.mailboxes.make_stored(world.read)) == [(1, 2), (2, 2)]
    world.settle()
    world.restart()
    (user,) = sharing(world, 2)
    world.settle()
    assert user.came["p1"] == [1, 3]


class Sharers:
    """What may happen to those who share, against a model: who has what."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(SMALL)
        self.profiles = ["p1", "p2"]
        self.given: dict[str, int] = dict.fromkeys(self.profiles, 0)
        self.wanted: dict[str, set[int]] = defaultdict(set)  # that do not come to nothing
        self.taken: dict[str, set[int]] = defaultdict(set)
        self.at: dict[tuple[str, int], User] = {}
        self.noted: dict[User, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.lost: list[User] = []  # who may connect again
        self.connections = 0
        self.messages = 0

    def deliver(self) -> None:
        self.messages += 1
        some = self.random.sample(self.profiles, self.random.randint(1, 2))
        payload = self.random.randbytes(self.random.choice((3, 120))) + b"."
        if self.random.random() < 0.5:
            self.world.mailboxes.deliver("s1", self.messages, [payload], some)
            result = payload
        else:
            result = payload + self.random.choice((b"-", b"+"))
            self.world.put_off(self.messages, result, some)
        for profile in some:
            self.given[profile] += 1
            if not result.endswith(b"-"):
                self.wanted[profile].add(self.given[profile])

    def connect(self, mode: int) -> None:
        self.connections += 1
        user = self.world.user(self.connections)
        for profile in self.random.sample(self.profiles, self.random.randint(1, 2)):
            self.end_others(profile, mode)
            user.attach(profile, mode=mode)

    def end_others(self, profile: str, mode: int) -> None:
        """Those who take it otherwise; the model forgets what they had."""
        for user in self.world.users.values():
            attachment = user.attached.get(profile)
            if attachment is not None and not (mode & attachment.mode):
                self.forget(user, profile)

    def connect_again(self) -> None:
        """One whose connection was lost; what they had begun with they still have."""
        user = self.lost.pop(self.random.randrange(len(self.lost)))
        for profile, attachment in user.attached.items():
            if attachment.shared is not None:
                numbers = [n for n in attachment.shared.here if self.random.random() < 0.5]
                user.subscription.give_back(attachment, numbers)
            self.end_others(profile, attachment.mode)
        self.connections += 1
        said = [each.profile for each in user.attached.values() if each.shared is not None]
        user.connect_again(self.connections)
        for profile in said:
            shared = user.attached[profile].shared
            assert shared is not None
            self.taken[profile].update(shared.taken)

    def lose(self, user: User) -> None:
        for profile in user.attached:
            self.forget(user, profile)
        self.world.close(user.connection)
        self.lost.append(user)

    def forget(self, user: User, profile: str) -> None:
        for key in [key for key, who in self.at.items() if who is user and key[0] == profile]:
            del self.at[key]

    def take(self, user: User) -> None:
        profile = self.random.choice(list(user.attached))
        attachment = user.attached[profile]
        user.say(user.subscription.taken())
        if attachment.shared is None:
            user.take(profile)
            self.taken[profile].update(range(1, attachment.last + 1))
            self.forget(user, profile)
        elif attachment.shared.here:
            number = self.random.choice(sorted(attachment.shared.here))
            user.take_one(profile, number)
            self.taken[profile].add(number)
            self.at.pop((profile, number), None)

    def restart(self) -> None:
        for user in list(self.world.users.values()):
            self.lost.append(user)
        self.at.clear()
        self.world.restart()

    def check(self) -> None:
        """What has come since: nobody else has it, and nobody has taken it."""
        self.world.settle()
        for user in self.world.users.values():
            for profile, numbers in user.came.items():
                for number in numbers[self.noted[user][profile] :]:
                    assert number not in self.taken[profile], (profile, number)
                    assert (profile, number) not in self.at, (profile, number)
                    self.at[profile, number] = user
                self.noted[user][profile] = len(numbers)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_and_nothing_is_at_two(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who share come and go and lose their connections, somebody takes it alone, the broker
    restarts."""
    print(f"seed {seed}")
    monkeypatch.setattr(mailbox_rows_module, "WRITTEN_AT_ONCE", 1)
    sharers = Sharers(seed)
    random, world = sharers.random, sharers.world
    for _ in range(300):
        kind = random.random()
        users = [user for user in world.users.values() if user.attached]
        if kind < 0.4:
            sharers.deliver()
        elif kind < 0.46:
            sharers.connect(SHARED)
        elif kind < 0.48:
            sharers.connect(0)
        elif kind < 0.54 and sharers.lost:
            sharers.connect_again()
        elif kind < 0.9 and users:
            sharers.take(random.choice(users))
        elif kind < 0.96 and users:
            sharers.lose(random.choice(users))
        elif kind < 0.97:
            world.tick()
        elif kind < 0.98:
            sharers.restart()
        sharers.check()
    for user in list(world.users.values()):
        sharers.lose(user)
    world.settle()
    last = world.user(10_000)
    for profile in sharers.profiles:
        last.attach(profile, mode=SHARED if seed % 2 else 0)
    while True:
        sharers.check()
        before = {profile: len(numbers) for profile, numbers in sharers.taken.items()}
        for _ in range(20):
            sharers.take(last)
            sharers.check()
        after = {profile: len(numbers) for profile, numbers in sharers.taken.items()}
        if before == after and not world.rows(DELIVERIES.space):
            break
    for profile in sharers.profiles:
        assert sharers.wanted[profile] <= sharers.taken[profile]
    world.settle()
    assert world.rows(DELIVERIES.space) == 0
    assert (world.mailboxes.counted.waiting, world.mailboxes._lines.on_wire_bytes) == (0, 0)
