"""An ephemeral mailbox keeps nothing while nobody takes it."""

from __future__ import annotations

from random import Random

import pytest

from onyx.broker.deliveries.delivery_log import DELIVERIES
from onyx.broker.deliveries.former_texts import TEXTS
from onyx.broker.deliveries.silence import AWAITED_TICKS
from overlay.link.frames import EPHEMERAL, SHARED, Ephemeral
from overlay.link.limits import LinkLimits
from tests.onyx.broker.test_mailboxes import User, World


def ephemeral(world: World, connection: int, mode: int = EPHEMERAL, received: int = 0) -> User:
    user = world.user(connection)
    user.attach("p1", received, mode)
    world.settle()
    return user


def deliver(world: World, *numbers: int) -> None:
    for number in numbers:
        world.mailboxes.deliver("s1", number, [b"%d" % number], ["p1"])
        world.settle()


def close(world: World, user: User) -> None:
    world.close(user.connection)
    world.settle()


def got(world: World) -> list[int]:
    return [number for _, number, _ in world.got["p1"]]


def test_what_waits_comes_first_and_then_nothing_is_kept() -> None:
    world = World(LinkLimits())
    deliver(world, 1, 2)
    user = ephemeral(world, 1)
    deliver(world, 3)
    assert got(world) == [1, 2, 3]
    user.take_one("p1", 1)
    world.mailboxes.keep_text("p1", "former")
    close(world, user)
    world.tick()
    assert (world.rows(DELIVERIES.space), world.rows(TEXTS.space)) == (0, 0)
    puts = world.puts
    deliver(world, 4, 5)
    assert world.puts == puts, "not a row"
    again = ephemeral(world, 2, received=1)
    deliver(world, 6)
    assert got(world) == [1, 2, 3, 6]
    assert again.came["p1"] == [4], "what nobody attended to has no number"
    assert again.missed["p1"] == 0


def test_others_keep_what_it_does_not() -> None:
    world = World(LinkLimits())
    close(world, ephemeral(world, 1))
    world.mailboxes.deliver("s1", 1, [b"1"], ["p1", "p2"])
    world.settle()
    assert world.mailboxes.counted.waiting == 1
    assert len(world.mailboxes.silence.boxes) == 1
    world.user(2).attach("p2")
    world.settle()
    assert world.got == {"p2": [("s1", 1, [b"1"])]}


@pytest.mark.parametrize("is_ticked", [False, True])
def test_it_stays_silent_after_a_restart(is_ticked: bool) -> None:
    world = World(LinkLimits())
    ephemeral(world, 1)
    deliver(world, 1, 2)
    if is_ticked:
        world.tick()
    world.restart()
    world.settle()
    deliver(world, 3)
    assert world.rows(DELIVERIES.space) == 0
    world.tick()
    world.restart()
    world.got.clear()
    user = ephemeral(world, 2, received=2)
    deliver(world, 4)
    assert (got(world), user.missed["p1"]) == ([4], 0)


def test_who_takes_it_otherwise_has_it_kept_again() -> None:
    world = World(LinkLimits())
    close(world, ephemeral(world, 1))
    close(world, ephemeral(world, 2, mode=0))
    deliver(world, 1)
    world.restart()
    ephemeral(world, 3, mode=0)
    assert got(world) == [1]


def test_of_those_who_share_it_the_last_leaves_nothing() -> None:
    world = World(LinkLimits())
    first, second = (ephemeral(world, number, SHARED | EPHEMERAL) for number in (1, 2))
    deliver(world, 1, 2, 3)
    first.take_one("p1", 1)
    close(world, first)
    assert sorted(second.came["p1"]) == [2, 3]
    close(world, second)
    world.tick()
    assert world.rows(DELIVERIES.space) == 0
    deliver(world, 4)
    third = ephemeral(world, 3, SHARED | EPHEMERAL)
    deliver(world, 5)
    assert (third.came["p1"], third.missed["p1"]) == ([4], 0)


def test_another_profile_in_its_slot_leaves_it_to_nobody() -> None:
    world = World(LinkLimits())
    user = ephemeral(world, 1)
    deliver(world, 1)
    slot = user.attached["p1"].slot
    user.subscription = type(user.subscription)()
    user.attach("p2")
    assert user.attached["p2"].slot == slot
    world.settle()
    assert world.rows(DELIVERIES.space) == 0


@pytest.mark.parametrize("comes", [False, True])
def test_one_who_was_sent_elsewhere_is_awaited_for_a_while(comes: bool) -> None:
    old, new = World(LinkLimits()), World(LinkLimits())
    ephemeral(old, 1)
    deliver(old, 1, 2)
    state = old.mailboxes.ephemeral("p1")
    assert state is Ephemeral.TAKEN
    old.mailboxes.send_away("p1", "moved", "it is elsewhere")
    assert [one.position for one in old.mailboxes.portion("p1", 0, 1000)] == [1, 2]
    new.mailboxes.take_over("p1", 0, 0, state)
    deliver(new, 1, 2, 3)
    new.tick()
    if comes:
        ephemeral(new, 1, received=1)
        assert got(new) == [2, 3]
    for world in (old, new):
        for _ in range(AWAITED_TICKS):
            world.tick()
        assert world.rows(DELIVERIES.space) == (2 if comes and world is new else 0)
    assert old.mailboxes.ephemeral("p1") is Ephemeral.SILENT


def test_a_silent_one_is_silent_elsewhere() -> None:
    world = World(LinkLimits())
    world.mailboxes.take_over("p1", 3, 5, Ephemeral.SILENT)
    deliver(world, 1)
    assert world.rows(DELIVERIES.space) == 0
    user = ephemeral(world, 1, received=5)
    deliver(world, 2)
    assert (user.came["p1"], user.missed["p1"]) == ([6], 0)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_breaks_all_comes_that_comes_while_somebody_is_there(seed: int) -> None:
    print(f"seed {seed}")
    random, world = Random(seed), World()
    users = [ephemeral(world, 1, SHARED | EPHEMERAL)]
    number, connection = 0, 1
    given: dict[int, int] = {}  # message -> the run of attendance in which it came
    run = 0
    for _ in range(200):
        kind = random.random()
        if kind < 0.5:
            number += 1
            if users:
                given[number] = run
            deliver(world, number)
        elif kind < 0.65:
            connection += 1
            users.append(ephemeral(world, connection, SHARED | EPHEMERAL))
        elif kind < 0.85 and users:
            user = random.choice(users)
            shared = user.attached["p1"].shared
            assert shared is not None
            for one in sorted(shared.here)[: random.randint(1, 3)]:
                user.take_one("p1", one)
        elif kind < 0.95 and users:
            close(world, users.pop(random.randrange(len(users))))
            run += not users
        elif users and kind > 0.98:
            world.restart()
            world.settle()
            users.clear()
            run += 1
        world.settle()
        if not users:
            world.tick()
            assert world.rows(DELIVERIES.space) == 0
    assert set(got(world)) <= set(given)
    before = run if users else run - 1
    if not users:
        return
    while world.rows(DELIVERIES.space):
        for user in users:
            shared = user.attached["p1"].shared
            assert shared is not None
            for one in sorted(shared.here):
                user.take_one("p1", one)
        world.settle()
    assert {n for n, of in given.items() if of == before} <= set(got(world))
