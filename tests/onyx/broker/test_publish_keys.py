"""A message that is published again with its publish key is accepted once, whoever crashes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from onyx.broker.messages.publish_keys import BLOCKS_AN_AGE, PUBLISH_KEYS, PublishKeys
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.errors import StoreError
from overlay.link.events import Put
from overlay.link.frames import KEYS_MAX, AcceptedBefore, Message, Publish, PublishOnce, Refused
from overlay.link.message_headers import DIGEST_BYTES, digest
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from tests.onyx.broker.test_broker_core import Setting, delta
from yfilter.errors import MatchLimitExceeded

NEWS = b"<nitf/>"
DAY = 86_400


class Remembering:
    """The part alone, with its disk and the calendar in hand."""

    def __init__(self, **limits: int) -> None:
        self.limits = replace(Limits(), **limits)
        self.now = 1_000_000.0
        self.ticks = count(1)
        self.disk: dict[str, bytes] = {}
        self.puts = 0
        self.keys = self.begin()

    def begin(self) -> PublishKeys:
        self.rows = RowLog()
        keys = PublishKeys(self.limits, self.rows, lambda: self.now)
        keys.restore(StoredRows((PUBLISH_KEYS.space, *row) for row in self.disk.items()))
        return keys

    def commit(self) -> None:
        self.keys.flush()
        for change in self.rows.drain():
            if isinstance(change, Put):
                self.puts += 1
                self.disk[change.key] = change.value
            else:
                self.disk.pop(change.key, None)

    def restart(self) -> None:
        """What is not committed is gone."""
        self.keys = self.begin()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.keys.tick(1_000.0 * next(self.ticks))

    def note(self, *numbers: int, source: str = "s1") -> None:
        for number in numbers:
            self.keys.note(source, digest(f"{source} {number}"), number)

    def known(self, numbers: range, source: str = "s1") -> list[int]:
        return [n for n in numbers if self.keys.number(source, digest(f"{source} {n}")) == n]


@pytest.mark.parametrize("seed", range(6))
def test_as_a_dictionary_that_forgets_by_age_and_count(seed: int) -> None:
    """Whatever is remembered is right; all that is young, and among the latest, is remembered."""
    random = Random(seed)
    most, age = random.choice((64, 200, 1_000)), 2_400
    beside = Remembering(publish_keys_max=most, publish_key_age_s=age)
    noted: dict[str, dict[int, float]] = {"s1": {}, "s2": {}}  # number -> when
    numbers = count(1)
    for _ in range(2_000):
        source, action = random.choice(("s1", "s1", "s2")), random.random()
        if action < 0.9:
            number = next(numbers)
            beside.note(number, source=source)
            noted[source][number] = beside.now
        elif action < 0.93 and noted[source]:
            number = max(noted[source]) - random.randrange(3)
            beside.keys.forget(source, number)
            noted[source].pop(number, None)
        elif action < 0.96:
            beside.wait(random.choice((1, 60, age / 10)))
        else:
            beside.commit()
            if random.random() < 0.5:
                beside.restart()
    beside.wait(60)
    for source, when in noted.items():
        known = set(beside.known(range(1, next(numbers)), source))
        assert known <= when.keys(), f"seed {seed}"
        latest = sorted(when)[-(most - KEYS_MAX) :] if most > KEYS_MAX else []
        assert known >= {n for n in latest if when[n] > beside.now - age}, f"seed {seed}"
        oldest = beside.now - age * (1 + 2 / BLOCKS_AN_AGE) - 60
        assert all(when[number] >= oldest for number in known), f"seed {seed}"
        assert len(known) <= most


def test_what_comes_together_is_one_row_and_rows_are_few() -> None:
    beside = Remembering()
    beside.note(*range(1, 11))
    beside.commit()
    assert (beside.puts, len(beside.disk)) == (1, 1)
    for number in range(11, 1_001):
        beside.note(number)
        beside.commit()
    assert len(beside.disk) == -(-1_000 // KEYS_MAX)
    beside.restart()
    assert beside.known(range(1, 1_001)) == list(range(1, 1_001))


def test_old_keys_leave_the_disk_too() -> None:
    beside = Remembering()
    beside.note(1)
    beside.commit()
    beside.wait(DAY)
    assert beside.known(range(1, 2)) == [1]
    beside.wait(DAY / BLOCKS_AN_AGE + 1)
    beside.commit()
    assert (beside.known(range(1, 2)), beside.disk) == ([], {})


def test_a_key_takes_few_bytes() -> None:
    beside = Remembering()
    keys = 100_000
    for number in range(1, keys + 1):
        beside.note(number)
    known = beside.keys._sources["s1"]
    blocks = sum(4 * len(b.entries) + 250 for b in known.blocks)
    size = known.table.size_bytes() + 8 * len(known.numbers) + blocks
    assert size / keys < 55
    beside.commit()
    assert sum(map(len, beside.disk.values())) / keys < 25


def test_a_row_that_does_not_fit_is_said() -> None:
    beside = Remembering()
    beside.note(1)
    beside.commit()
    (key,) = beside.disk
    row = PUBLISH_KEYS.read(key, beside.disk[key])
    beside.disk[key] = PUBLISH_KEYS.pack(msgspec.structs.replace(row, digests=row.digests[1:]))
    with pytest.raises(StoreError, match=f"1 numbers with 15 bytes; expected {DIGEST_BYTES} each"):
        beside.restart()


def test_another_root_broker_knows_what_was_released_here() -> None:
    """Twice over, and with what it knew before; in as many rows."""
    former, later = Remembering(), Remembering(publish_keys_max=250)
    former.note(*range(1, 201))
    later.note(*range(1, 65))
    for _ in range(2):
        for frame in former.keys.released("s1"):
            later.keys._handle_released(frame, Arrival(1, "registration", frame))
        assert later.known(range(1, 201)) == list(range(1, 201))
        later.commit()
        later.restart()
    former.commit()
    assert sorted(later.disk) == sorted(former.disk)
    later.note(*range(201, 260))
    assert later.known(range(1, 260)) == list(range(65, 260)), "the oldest go"
    assert list(later.keys.released("s2")) == []


class Root(Setting):
    """B4 is the root broker of s1; B5 wants its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4")
        self.brokers["B5"].send("B4", delta("/nitf", root="B4"))
        self.children_ready(root="B4")
        self.source = self.beside.peer("source", "s1")

    def publish(self, key: str, data: bytes = NEWS) -> None:
        self.source.send("s1", PublishOnce("s1", "text", data, digest(key)))

    def told(self) -> list[tuple[int, int]]:
        return [(frame.number, frame.first) for frame in self.source.take(AcceptedBefore)]

    def sent(self) -> list[int]:
        return [frame.number for frame in self.brokers["B5"].take(Message)]


def test_the_same_key_again_is_told_the_number_and_goes_nowhere() -> None:
    beside = Root()
    for key in ("a", "b", "a", "c", "b", "a"):
        beside.publish(key)
    assert beside.told() == [(3, 1), (5, 2), (6, 1)]
    assert beside.sent() == [1, 2, 4]
    assert beside.core.statistics().data.published_again == 3


def test_also_by_another_run_of_the_source_and_of_its_broker() -> None:
    beside = Root()
    beside.publish("a")
    assert beside.sent() == [1]
    beside.restart()
    beside.source = beside.beside.peer("source", "s1")
    beside.publish("a")
    assert (beside.told(), beside.sent()) == ([(2, 1)], [])


def test_what_was_refused_is_tried_again() -> None:
    beside = Root()
    beside.publish("a", b"<nitf>")
    assert [frame.number for frame in beside.source.take(Refused)] == [1]
    beside.publish("a")
    assert (beside.told(), beside.sent()) == ([], [2])


def test_what_is_refused_in_the_end_is_tried_again_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not known yet whether local profiles cost too much, when the same comes again."""
    beside = Root()
    beside.place("/other/none")

    def fails(parcel: object, delivered: object) -> Iterator[object]:
        yield from ()
        raise MatchLimitExceeded("match-limit", "too much")

    monkeypatch.setattr("onyx.broker.messages.data_plane.LARGE_BYTES", 1)
    monkeypatch.setattr(beside.core.data.local, "given", fails)
    beside.publish("a", b"<other/>")
    beside.publish("a", b"<other/>")
    assert [frame.number for frame in beside.source.take(Refused)] == [1, 2]
    assert beside.told() == []
    monkeypatch.undo()
    beside.restart()
    beside.source = beside.beside.peer("source", "s1")
    beside.publish("a")
    assert (beside.told(), beside.sent()) == ([], [3])


def test_without_a_key_nothing_is_kept() -> None:
    beside = Root()
    beside.source.send("s1", Publish("s1", "text", NEWS))
    assert not any(space == PUBLISH_KEYS.space for space, _ in beside.beside.rows)
