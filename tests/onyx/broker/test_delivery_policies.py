"""What waits for a profile is kept as its policy says, and what is rejected comes again."""

from __future__ import annotations

from random import Random

import pytest

from onyx.broker.deliveries.delivery_log import DELIVERIES, RECORD_BYTES
from onyx.broker.deliveries.mailbox import Mailbox
from onyx.broker.deliveries.mailboxes import BREAKS_MAX, DELAYED
from onyx.broker.deliveries.policies import POLICIES, TOLD_AT_ONCE, Policies
from overlay.delivery_policy import (
    ATTEMPTS_MAX,
    DISCONNECT,
    DROP_NEWEST,
    DROP_OLDEST,
    USUAL,
    DeliveryPolicy,
)
from overlay.link.dead_letters import OVER_LIMIT, UNDELIVERABLE, DeadLetter
from overlay.link.frames import SHARED, Detached, Rejected
from overlay.link.limits import LinkLimits
from overlay.link.part import FrameRefused
from tests.onyx.broker.test_mailboxes import User, World


def kept_by(policy: DeliveryPolicy, limits: LinkLimits | None = None) -> World:
    """A profile p1 of ann."""
    world = World(limits or LinkLimits())
    world.owners["p1"] = "ann"
    world.mailboxes.use_policy("p1", policy)
    return world


def deliver(world: World, *numbers: int) -> None:
    for number in numbers:
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
        world.settle()


def letters(world: World, kind: str) -> list[DeadLetter]:
    return [letter for letter in world.dead._letters.values() if letter.kind == kind]


def came(world: World, received: int = 0) -> list[int]:
    """The messages that somebody gets who comes now."""
    user = world.user(99)
    user.attach("p1", received)
    world.settle()
    return [number for _, number, _ in world.got["p1"]]


def reject(world: World, user: User, number: int, reason: str = "no") -> None:
    said = user.subscription.reject(user.attached["p1"], number, reason)
    assert said is not None
    user.came["p1"].remove(number)
    world.mailboxes.reject(user.connection, said)
    world.settle()


def test_of_too_many_the_oldest_go_and_a_dead_letter_counts_them() -> None:
    world = kept_by(DeliveryPolicy(DROP_OLDEST, deliveries_max=3))
    deliver(world, *range(1, 11))
    world.tick()
    (letter,) = letters(world, OVER_LIMIT)
    assert (letter.profile, letter.who, letter.count, letter.error) == (
        *("p1", "user/ann", 7),
        DROP_OLDEST,
    )
    deliver(world, 11)
    world.tick()
    assert [letter.count for letter in letters(world, OVER_LIMIT)] == [8], "one letter a profile"
    assert came(world) == [9, 10, 11]
    assert world.users[99].missed["p1"] == 8


def test_of_too_many_bytes_as_well() -> None:
    world = kept_by(DeliveryPolicy(bytes_max=4 * (RECORD_BYTES + 1)))
    deliver(world, *range(1, 10))
    assert came(world) == [6, 7, 8, 9]


def test_the_newest_is_not_kept_while_it_is_full() -> None:
    world = kept_by(DeliveryPolicy(DROP_NEWEST, deliveries_max=3))
    deliver(world, *range(1, 11))
    user = world.user(1)
    user.attach("p1")
    world.settle()
    assert [number for _, number, _ in world.got["p1"]] == [1, 2, 3]
    user.take("p1")
    deliver(world, 11)
    assert [number for _, number, _ in world.got["p1"]] == [1, 2, 3, 10, 11]
    assert world.got["p1"][3] == ("s1", 10, told_of(7))
    assert user.missed["p1"] == 0, "no number was given to what was not kept"
    world.tick()
    assert [letter.count for letter in letters(world, OVER_LIMIT)] == [7]


def told_of(count: int, few: str = "") -> list[bytes]:
    results = few + ("1 result was" if count == 1 else f"{count} results were")
    why = "not kept, as more would have waited than the policy of the profile allows"
    return [b"", f"{results} {why} [dropped]".encode()]


def test_who_has_taken_all_learns_of_what_was_not_kept_without_another_message() -> None:
    world = kept_by(DeliveryPolicy(DROP_NEWEST, deliveries_max=1))
    deliver(world, 1, 2)
    world.tick()
    world.restart()
    deliver(world, 3)
    world.tick()
    world.restart()
    user = world.user(1)
    user.attach("p1")
    world.settle()
    user.take("p1")
    world.tick()
    world.settle()
    told = told_of(2, "at least ")  # it may have left out more than it had stored
    assert world.got["p1"] == [("s1", 1, [b"1"]), ("s1", 3, told)]
    user.take("p1")
    world.tick()
    deliver(world, 4)
    assert world.got["p1"][2:] == [("s1", 4, [b"4"])], "it is told once"


def test_others_get_what_is_too_much_for_one() -> None:
    world = kept_by(DeliveryPolicy(DROP_NEWEST, deliveries_max=1))
    for number in (1, 2, 3):
        world.mailboxes.deliver("s1", number, [b"x"], ["p1", "p2"])
    assert world.mailboxes.box("p1").count == 1
    assert world.mailboxes.box("p2").count == 3


def test_who_is_too_slow_is_sent_away_and_may_come_again() -> None:
    world = kept_by(DeliveryPolicy(DISCONNECT, deliveries_max=5), LinkLimits(window_frames=2))
    user = world.user(1)
    user.attach("p1")
    deliver(world, *range(1, 6))
    assert not user.of(Detached)
    deliver(world, 6)
    (ended,) = user.of(Detached)
    assert ended.code == "too-slow"
    deliver(world, 7)
    assert came(world, received=2) == [1, 2, 3, 4]
    assert world.users[99].missed["p1"] == 0, "those that went were on the wire, and are there"


def test_what_has_waited_for_too_long_goes() -> None:
    world = kept_by(DeliveryPolicy(ttl_s=10))
    deliver(world, 1)
    world.mailboxes.deliver("s1", 1, [b"1"], ["p2"])
    world.second = 6
    deliver(world, 2)
    world.second = 10
    world.tick()
    assert world.mailboxes.box("p1").count == 1
    assert world.mailboxes.box("p2").count == 1, "that one has no policy"
    world.second = 16  # nobody has looked yet
    assert came(world) == []
    assert world.users[99].missed["p1"] == 2


def test_a_profile_that_nobody_said_anything_of_costs_nothing() -> None:
    world = kept_by(USUAL)
    deliver(world, 1)
    assert not world.mailboxes.policies.bounded
    assert world.rows(POLICIES.space) == 0


def test_a_policy_outlives_a_restart_and_goes_with_its_profile() -> None:
    world = kept_by(DeliveryPolicy(DROP_NEWEST, deliveries_max=2))
    deliver(world, 1, 2)
    world.restart()
    deliver(world, 3)
    assert world.mailboxes.box("p1").count == 2, "it is known to be full"
    world.mailboxes.forget("p1")
    world.settle()
    assert world.rows(POLICIES.space) == 0
    deliver(world, 4, 5, 6)
    assert world.mailboxes.box("p1").count == 3


def test_a_policy_that_is_taken_back_lets_come_what_does() -> None:
    world = kept_by(DeliveryPolicy(DROP_NEWEST, deliveries_max=1))
    deliver(world, 1, 2)
    world.mailboxes.use_policy("p1", USUAL)
    deliver(world, 3)
    assert came(world) == [1, 2, 3]
    assert world.got["p1"][1] == ("s1", 2, told_of(1))


def test_a_stricter_policy_is_in_force_at_once() -> None:
    world = kept_by(USUAL)
    deliver(world, *range(1, 6))
    world.mailboxes.use_policy("p1", DeliveryPolicy(deliveries_max=2))
    world.settle()
    assert came(world) == [4, 5]


def test_what_is_rejected_comes_again_when_it_is_due_and_is_a_dead_letter_in_the_end() -> None:
    world = kept_by(DeliveryPolicy(attempts_max=3, retry_s=30))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 1, 2)
    for again in range(3):
        assert user.came["p1"] == [1, 2] if not again else [2, 1]
        reject(world, user, 1, f"attempt {again}")
        world.second += 29
        world.tick()
        assert user.came["p1"] == [2], "it is not due yet"
        world.second += 1
        world.tick()
    assert user.came["p1"] == [2]
    (letter,) = letters(world, UNDELIVERABLE)
    assert (letter.who, letter.profile, letter.source, letter.number) == ("user/ann", "p1", "s1", 1)
    assert (letter.data, letter.lengths, letter.error) == (b"1", [1], "attempt 2")
    user.take_one("p1", 2)
    world.settle()
    assert world.rows(DELIVERIES.space) == 0, "what is a dead letter waits no more"


def test_what_is_the_oldest_on_connections_that_break_is_a_dead_letter_in_the_end() -> None:
    """Whatever else was taken there."""
    world = kept_by(USUAL)
    deliver(world, 1, 2, 3)
    for connection in range(1, BREAKS_MAX + 1):
        assert letters(world, UNDELIVERABLE) == []
        user = world.user(connection)
        user.attach("p1", mode=SHARED)
        world.settle()
        assert user.came["p1"] == ([1, 2, 3] if connection <= 7 else [1, 3])
        if connection == 7:
            user.take_one("p1", 2)
        world.close(connection)
    (letter,) = letters(world, UNDELIVERABLE)
    assert (letter.number, letter.data) == (1, b"1")
    assert letter.error == "20 connections broke while it was worked on"
    user = world.user(99)
    user.attach("p1", mode=SHARED)
    world.settle()
    assert user.came["p1"] == [3], "it was never the oldest"


def test_what_was_thrown_away_meanwhile_is_no_dead_letter() -> None:
    world = kept_by(DeliveryPolicy(deliveries_max=1))
    deliver(world, 1)
    for connection in range(1, BREAKS_MAX + 1):
        user = world.user(connection)
        user.attach("p1", mode=SHARED)
        world.settle()
        assert user.came["p1"] == [1]
        if connection == BREAKS_MAX:
            deliver(world, 2)
        world.close(connection)
    assert letters(world, UNDELIVERABLE) == []
    user = world.user(99)
    user.attach("p1", mode=SHARED)
    world.settle()
    assert user.came["p1"] == [2]


def test_another_who_shares_gets_what_one_has_rejected() -> None:
    world = kept_by(DeliveryPolicy(retry_s=0))
    first, second = world.user(1), world.user(2)
    for user in (first, second):
        user.attach("p1", mode=SHARED)
    deliver(world, 1, 2)
    reject(world, first, 1)
    world.close(1)
    world.tick()
    assert second.came["p1"] == [2, 1]


def test_how_often_it_was_rejected_outlives_a_restart() -> None:
    world = kept_by(DeliveryPolicy(attempts_max=2, retry_s=1_000))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 1)
    reject(world, user, 1)
    world.restart()
    world.owners["p1"] = "ann"
    user = world.user(2)
    user.attach("p1", mode=SHARED)
    world.settle()
    assert user.came["p1"] == [], "nor is it due any sooner"
    world.second += 999
    world.tick()
    assert user.came["p1"] == []
    world.second += 1
    world.tick()
    assert user.came["p1"] == [1]
    assert world.rows(DELAYED.space) == 0
    reject(world, user, 1)
    assert len(letters(world, UNDELIVERABLE)) == 1
    assert world.rows(DELAYED.space) == 0


def test_nothing_is_left_of_a_delay_of_what_is_gone() -> None:
    world = kept_by(DeliveryPolicy(retry_s=1_000))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 1, 2)
    reject(world, user, 1)
    assert world.rows(DELAYED.space) == 1
    world.mailboxes.forget("p1")
    world.settle()
    assert world.rows(DELAYED.space) == 0


def test_results_that_are_on_the_disk_are_in_the_letter() -> None:
    world = kept_by(DeliveryPolicy(attempts_max=1), LinkLimits(journal_memory_bytes=1))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 1, 2)
    world.mailboxes._log._forget(world.mailboxes._log.records[1])  # as where there is no room
    reject(world, user, 1)
    (letter,) = letters(world, UNDELIVERABLE)
    assert letter.data == b"1"


def test_results_that_were_put_off_are_in_the_letter() -> None:
    world = kept_by(DeliveryPolicy(attempts_max=1))
    world.put_off(1, b"<m/>", ["p1"])
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    world.settle()
    reject(world, user, 1)
    (letter,) = letters(world, UNDELIVERABLE)
    assert letter.data == b"<m/>|p1|"


def test_a_letter_that_is_replayed_is_a_new_delivery() -> None:
    world = kept_by(DeliveryPolicy(attempts_max=1))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 7)
    reject(world, user, 1)
    (letter,) = letters(world, UNDELIVERABLE)
    world.dead.announce(letter)
    world.settle()
    assert user.came["p1"] == [2]
    assert world.got["p1"] == [("s1", 7, [b"7"])] * 2


def test_who_takes_it_alone_gets_what_is_delayed_at_once_and_in_order() -> None:
    world = kept_by(DeliveryPolicy(retry_s=1_000))
    user = world.user(1)
    user.attach("p1", mode=SHARED)
    deliver(world, 1, 2, 3)
    reject(world, user, 2)
    world.close(1)
    alone = world.user(2)
    alone.attach("p1")
    world.settle()
    assert alone.came["p1"] == [1, 2, 3]
    with pytest.raises(FrameRefused, match="only who shares"):
        world.mailboxes.reject(2, Rejected(alone.attached["p1"].slot, 1, ""))


def test_of_very_many_profiles_a_letter_says_how_many_have_lost_something() -> None:
    world = World(LinkLimits(), backlog=1)
    profiles = [f"p{number}" for number in range(TOLD_AT_ONCE + 10)]
    world.mailboxes.deliver("s1", 1, [b"x"], profiles)
    world.tick()
    named = [letter for letter in letters(world, OVER_LIMIT) if letter.profile]
    (rest,) = (letter for letter in letters(world, OVER_LIMIT) if not letter.profile)
    assert (len(named), rest.count) == (TOLD_AT_ONCE, 10)


class Sharing:
    """Users who share p1, come, go, take and reject, at a broker that restarts, by a seed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.policy = DeliveryPolicy(
            random.choice((DROP_OLDEST, DROP_NEWEST, DISCONNECT)),
            deliveries_max=random.choice((0, 4)),
            attempts_max=random.choice((1, 2, 3)),
            retry_s=random.choice((0, 3)),
        )
        memory = random.choice((1, 999))
        self.world = kept_by(self.policy, LinkLimits(window_frames=3, journal_memory_bytes=memory))
        self.published = self.connection = 0
        self.taken: list[int] = []

    def publish(self) -> None:
        self.published += 1
        deliver(self.world, self.published)

    def come(self) -> User:
        self.connection += 1
        user = self.world.user(self.connection)
        user.attach("p1", mode=SHARED)
        return user

    def go(self) -> None:
        if users := [user for user in self.world.users.values() if "p1" in user.attached]:
            self.world.close(self.random.choice(users).connection)

    def restart(self) -> None:
        self.world.tick()  # what has gone in the last second is counted then
        self.world.restart()
        self.world.owners["p1"] = "ann"

    def second(self) -> None:
        self.world.second += 1
        self.world.tick()

    def take(self) -> None:
        for user, number in self.one():
            user.came["p1"].remove(number)
            self.taken.append(number)
            user.take_one("p1", number)

    def reject(self) -> None:
        for user, number in self.one():
            reject(self.world, user, number)

    def one(self) -> list[tuple[User, int]]:
        """A delivery that somebody has, if there is any."""
        users = self.world.users.values()
        having = [user for user in users if "p1" in user.attached and user.came["p1"]]
        if not having:
            return []
        user = self.random.choice(having)
        return [(user, self.random.choice(user.came["p1"]))]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_nothing_is_lost_but_what_the_policy_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the end each delivery was taken, or is a dead letter, or is counted as dropped; one that
    somebody had may be both.  One that says what was dropped is a delivery as any other."""
    told: list[Mailbox] = []
    tell = Policies._tell

    def noted(policies: Policies, box: Mailbox) -> None:
        told.append(box)
        tell(policies, box)

    monkeypatch.setattr(Policies, "_tell", noted)
    one = Sharing(Random(seed))
    steps = (one.publish, one.come, one.go, one.restart, one.second, one.take, one.reject)
    for _ in range(300):
        one.random.choices(steps, (40, 10, 5, 3, 12, 15, 15))[0]()
        one.world.settle()
    one.restart()
    one.world.second += one.policy.retry_s  # until all that was rejected is due
    last = one.come()
    one.world.tick()
    one.world.settle()
    for _ in range(2):  # behind the last comes what says that others were not kept
        while last.came["p1"]:
            one.take()
            one.world.settle()
        one.world.tick()
        one.world.settle()
    dead = len(letters(one.world, UNDELIVERABLE))
    dropped = sum(letter.count for letter in letters(one.world, OVER_LIMIT))
    missing = one.published + len(told) - len(one.taken) - dead
    assert len(one.taken) == len(set(one.taken)), "none was taken twice"
    assert missing <= dropped
    if not one.policy.deliveries_max or one.policy.when_full == DROP_NEWEST:
        assert missing == dropped
    assert one.world.rows(DELIVERIES.space) == 0


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"when_full": "burn"}, "must be one of drop-oldest, drop-newest, disconnect, not 'burn'"),
        (
            {"bytes_max": -1},
            "'bytes_max' must be a whole number from 0 to 9007199254740992, not -1",
        ),
        ({"ttl_s": 1.5}, "'ttl_s' must be a whole number, not 1.5"),
        ({"ttl_s": True}, "'ttl_s' must be a whole number, not True"),
        (
            {"attempts_max": 0},
            f"'attempts_max' must be a whole number from 1 to {ATTEMPTS_MAX}, not 0",
        ),
        (
            {"attempts_max": ATTEMPTS_MAX + 1},
            f"must be a whole number from 1 to {ATTEMPTS_MAX}, not {ATTEMPTS_MAX + 1}",
        ),
        ({"colour": 1}, "there is no 'colour'; there are when_full, bytes_max"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_was_expected(
    said: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValueError) as refusal:
        USUAL.changed(said)
    assert expected in str(refusal.value)
