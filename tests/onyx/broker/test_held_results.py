"""A delivery taken held stays in its mailbox, is read again as it was, and goes by a release."""

from __future__ import annotations

from random import Random

import pytest

from onyx.broker.deliveries.delivery_log import DELIVERIES
from overlay.answers import WaitingPage
from overlay.link.events import ReadRows
from overlay.link.frames import EPHEMERAL, HELD, SHARED, Detached
from overlay.link.limits import LinkLimits
from tests.beside import rows_read
from tests.onyx.broker.test_ephemeral_mailboxes import close, deliver, got
from tests.onyx.broker.test_mailboxes import SMALL, User, World


def held(world: World, connection: int, received: int = 0, mode: int = HELD) -> User:
    user = world.user(connection)
    user.attach("p1", received, mode)
    world.settle()
    return user


def release(world: World, through: int) -> tuple[str, str] | None:
    refused = world.mailboxes.release("p1", through)
    world.settle()
    return refused


def test_what_is_taken_opens_the_window_and_is_kept() -> None:
    world = World(SMALL)
    deliver(world, *range(1, 11))
    user = held(world, 1)
    assert got(world) == [1, 2, 3], "the window"
    for through in range(3, 10):
        user.take_one("p1", through)
        world.settle()
    assert got(world) == list(range(1, 11))
    assert world.rows(DELIVERIES.space) == 10
    assert world.mailboxes.counted.waiting == 10


def test_the_same_is_read_again_over_connections_and_restarts_until_it_is_released() -> None:
    world = World(LinkLimits())
    deliver(world, 1, 2, 3, 4)
    held(world, 1).take("p1")
    close(world, world.users[1])
    world.restart()
    again = held(world, 2, received=1)
    assert (again.came["p1"], got(world)) == ([2, 3, 4], [1, 2, 3, 4, 2, 3, 4])
    assert release(world, 3) is None
    assert world.rows(DELIVERIES.space) == 1
    world.restart()
    assert held(world, 3).came["p1"] == [4]


def test_a_release_is_of_all_through_a_number_whoever_takes_the_profile() -> None:
    for attached in (None, HELD, 0, SHARED, EPHEMERAL):
        world = World(LinkLimits())
        user = None if attached is None else held(world, 1, mode=attached)
        deliver(world, 1, 2, 3)
        assert release(world, 2) is None
        assert release(world, 1) is None, "it is less than before"
        box = world.mailboxes.box("p1")
        assert (box.bottom, box.last, box.lost, box.count) == (2, 3, 0, 1), attached
        deliver(world, 4)
        if user is not None:
            assert user.came["p1"] == [1, 2, 3, 4]
            user.take("p1")
            world.settle()
        world.restart()
        assert world.mailboxes.box("p1").last == 4


def test_a_number_that_was_never_given_out_is_a_lost_store() -> None:
    world = World(LinkLimits())
    deliver(world, 1)
    code, detail = release(world, 2) or ("", "")
    assert code == "store-lost"
    assert detail.endswith("(2 deliveries of 'p1' have come, and it knows of 1)")


def test_from_the_first_release_on_an_ephemeral_profile_is_kept() -> None:
    world = World(LinkLimits())
    close(world, held(world, 1, mode=EPHEMERAL))
    deliver(world, 1)
    release(world, 0)
    deliver(world, 2)
    assert held(world, 2).came["p1"] == [1]
    assert got(world) == [2]


def test_who_attaches_otherwise_ends_it_and_deletes_what_it_says() -> None:
    world = World(LinkLimits())
    deliver(world, 1, 2, 3)
    first = held(world, 1)
    first.take("p1")
    held(world, 2, received=2, mode=0)
    assert [each.code for each in first.frames if isinstance(each, Detached)] == ["replaced"]
    assert world.rows(DELIVERIES.space) == 1


def test_what_sharers_have_left_is_theirs() -> None:
    world = World(LinkLimits())
    deliver(world, 1, 2, 3)
    sharer = held(world, 1, mode=SHARED)
    user = held(world, 2)
    (refused,) = user.of(Detached)
    assert isinstance(refused, Detached)
    assert refused.code == "shared"
    assert refused.detail == "3 deliveries of 'p1' are left by those who shared it"
    for number in (1, 2, 3):
        sharer.take_one("p1", number)
    world.settle()
    deliver(world, 4)
    sharer.take_one("p1", 4)
    deliver(world)
    world.settle()
    assert held(world, 3, received=4).of(Detached) == []


def test_what_is_too_much_goes_and_is_told_with_its_number() -> None:
    world = World(LinkLimits(), backlog=1_000)
    user = held(world, 1)
    deliver(world, *range(1, 21))
    assert user.came["p1"] == list(range(1, 21)), "it was on the wire before"
    user.take("p1")
    world.settle()
    box = world.mailboxes.box("p1")
    assert 0 < box.lost == box.bottom < 20
    again = held(world, 2, received=2)
    assert again.missed["p1"] == box.bottom - 2
    assert again.came["p1"] == list(range(box.bottom + 1, 21))


def test_a_page_is_read_at_once_and_answered_when_it_is_there() -> None:
    world = World(LinkLimits())
    deliver(world, *range(1, 41))
    release(world, 10)
    world.restart()
    answered: list[WaitingPage] = []

    def ask() -> None:
        page = world.mailboxes.page("p1", 5, 30, 1, ask)
        if page is not None:
            answered.append(page)

    ask()
    assert answered == []
    world.commit()
    (asked,) = (each for each in world.agenda.take_actions() if isinstance(each, ReadRows))
    assert (int(asked.first), int(asked.last)) == (11, 40), "rows in a row are read together"
    world.mailboxes.handle_read(rows_read(asked, world.disk))
    world.settle()
    (page,) = answered
    assert [one.number for one in page.deliveries] == list(range(11, 31))
    assert (page.gone, page.last) == (10, 40)


@pytest.mark.parametrize("seed", range(30))
def test_at_random_what_is_held_is_read_as_it_was_delivered(seed: int) -> None:
    """Windows of three; connections and broker end; sums are checked at each step (settle)."""
    random = Random(seed)
    world = World(SMALL)
    texts: list[bytes] = []
    released = connection = 0
    user: User | None = None

    def read_again() -> User:
        nonlocal connection
        connection += 1
        world.got.clear()
        return held(world, connection, received=released)

    for _ in range(120):
        action = random.random()
        if action < 0.4:
            texts.append(b"%d" % len(texts) * random.randint(1, 60))
            world.mailboxes.deliver("s1", len(texts), [texts[-1]], ["p1"])
            world.settle()
        elif user is None or action > 0.95:
            user = read_again()
        elif action > 0.92:
            world.restart()
            user = None
        elif action > 0.8:
            released = random.randint(released, user.attached["p1"].last)
            user._leave_wire(user.attached["p1"].slot, released)
            assert release(world, released) is None
        else:
            user.take_one("p1", random.randint(0, user.attached["p1"].last))
            world.settle()
        box = world.mailboxes.box("p1")
        assert (box.floor, box.last) == (released, len(texts)), f"seed {seed}"
    user = read_again()
    while user.attached["p1"].last < len(texts):
        user.take("p1")
        world.settle()
    assert [results for _, _, results in world.got["p1"]] == [[t] for t in texts[released:]]
    assert user.missed["p1"] == 0
