"""What waits for one user is bounded, over all their profiles; others lose nothing by it."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from onyx.broker.deliveries.mailbox import Mailbox, append_to_all
from onyx.broker.deliveries.overflow import UserBacklogs
from overlay.link.frames import Delivery, Missed, PlaceProfile, Publish
from tests.onyx.broker.test_broker_core import FIGURE4, Setting

BOUND = 40_000
SIZE = 1_000
PROFILES = {f"{user}-{shape}": user for user in ("ann", "bob") for shape in ("a", "b", "all")}


class Crowded(Setting):
    """B4, the root broker of s1, where ann and bob have three profiles each and are away."""

    def __init__(self, bound: int = BOUND) -> None:
        limits = replace(FIGURE4.limits, principal_waiting_bytes_max=bound)
        super().__init__(replace(FIGURE4, limits=limits))
        self.announce(root="B4")
        self.children_ready(root="B4")
        for profile, user in PROFILES.items():
            self.host(profile, user)
        self.published: Counter[str] = Counter()
        self.come()

    def host(self, profile: str, user: str) -> None:
        path = "//*[@all]" if profile.endswith("all") else f"//{profile[-1]}"
        frame = PlaceProfile(profile, user, path, 1, f"r-{profile}")
        self.registration.send("registration", frame)

    def come(self) -> None:
        self.source = self.beside.peer("source", "s1")

    def publish(self, name: str, count: int = 1, size: int = SIZE) -> None:
        """A message for a profile of each, and for the one that gets all."""
        payload = f'<{name} all="">'.encode() + b"x" * size + f"</{name}>".encode()
        for _ in range(count):
            self.source.send("s1", Publish("s1", "text", payload))
        self.published.update({name: count, "all": count})

    def waiting(self, *users: str) -> int:
        boxes = map(self.core.mailboxes.box, PROFILES)
        return sum(box.backlog_bytes for box in boxes if PROFILES[box.profile] in users)

    def taken(self, profile: str) -> tuple[int, int]:
        """How many deliveries come, and how many are told of as lost, in order."""
        peer = self.beside.subscriber(profile, name=f"x-{profile}")
        numbers = [frame.number for frame in peer.all(Delivery)]
        assert numbers == sorted(numbers)
        return len(numbers), sum(frame.lost for frame in peer.all(Missed))


@pytest.mark.parametrize("bound", [BOUND, 10 * SIZE])
def test_the_oldest_go_of_what_a_user_has_most_and_they_are_told(bound: int) -> None:
    setting = Crowded(bound)
    bob = setting.beside.subscriber("bob-all", name="x-bob")  # who is there
    for name in "aab" * 15:
        setting.publish(name)
        assert setting.waiting("ann") <= bound and setting.waiting("bob") <= bound
    dropped = setting.core.statistics().mailboxes.dropped_for_users
    lost = 0
    for profile in PROFILES:
        if profile != "bob-all":
            come, missed = setting.taken(profile)
            assert come + missed == setting.published[profile.partition("-")[2]]
            lost += missed
    assert len(bob.all(Delivery)) == 45, "what is taken takes no room"
    assert 0 < lost == dropped


def test_whoever_has_little_loses_nothing_by_others() -> None:
    setting = Crowded()
    setting.host("cid-a", "cid")
    setting.publish("b", 5)
    setting.publish("a", 30)
    assert setting.taken("cid-a") == (30, 0)
    assert setting.taken("ann-b") == (5, 0), "of ann's the fullest lose"
    come, missed = setting.taken("ann-all")
    assert missed and come + missed == 35


def test_it_holds_after_a_restart_and_what_is_removed_makes_room() -> None:
    setting = Crowded()
    setting.publish("a", 18)
    before = setting.waiting("ann", "bob")
    setting.restart()
    setting.come()
    assert setting.waiting("ann", "bob") == before
    assert not setting.core.statistics().mailboxes.dropped_for_users
    setting.publish("a", 4)
    assert setting.waiting("ann") <= BOUND and setting.waiting("bob") <= BOUND
    assert setting.core.statistics().mailboxes.dropped_for_users
    setting.core.query.remove("ann-all")
    dropped = setting.core.statistics().mailboxes.dropped_for_users
    setting.core.query.remove("bob-all")
    setting.publish("a", 15)
    assert setting.core.statistics().mailboxes.dropped_for_users == dropped


def test_without_a_bound_all_of_it_waits() -> None:
    setting = Crowded(0)
    setting.publish("a", 100)
    assert setting.waiting("ann") > 200 * SIZE
    assert setting.taken("ann-all") == (100, 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_of_a_user_is_that_of_their_mailboxes_whatever_happens(seed: int) -> None:
    random, setting = Random(seed), Crowded()
    hosted = dict(PROFILES)
    for step in range(150):
        chance = random.random()
        if chance < 0.7:
            setting.publish(random.choice("ab"), size=random.randrange(3 * SIZE))
        elif chance < 0.85 and hosted:
            setting.taken(random.choice(list(hosted)))
        elif chance < 0.9 and hosted:
            del hosted[gone := random.choice(list(hosted))]
            setting.core.query.remove(gone)
        elif chance < 0.95:
            user = random.choice(["ann", "bob"])
            hosted[new := f"{user}-{step}-a"] = user
            setting.host(new, user)
        else:
            setting.restart()
            setting.come()
        sums: Counter[str] = Counter()
        for profile, user in hosted.items():
            box = setting.core.mailboxes.box(profile)
            sums[user] += box.backlog_bytes
            if box.index:
                assert (box.user.name, box in box.user.boxes) == (user, True)
                kept = box.user
                assert kept.bytes == sum(other.backlog_bytes for other in kept.boxes) <= BOUND
        assert all(total <= BOUND for total in sums.values())


def test_a_mailbox_whose_user_is_not_known_is_no_business_of_those_without_a_name() -> None:
    backlogs = UserBacklogs(BOUND)
    first, second, unknown = (Mailbox(name, index) for index, name in enumerate("abc", 1))
    backlogs.give(first, "")
    append_to_all([unknown], 1, 2 * BOUND)
    assert not backlogs.shrink([unknown], lambda box, size: 1)
    backlogs.leave(unknown)
    backlogs.give(second, "")
    assert second.user is first.user


def test_an_operator_sees_whose_it_is() -> None:
    crowded = Crowded()
    crowded.publish("a", 2)
    said = crowded.core.statistics().mailboxes.bytes_of_users
    assert isinstance(said, UserBacklogs)
    assert dict(said) == {user: crowded.waiting(user) for user in ("ann", "bob")}
    assert all(said.values())
