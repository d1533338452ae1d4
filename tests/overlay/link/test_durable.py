"""Durable state is as a dict, a set and a value; a store that takes its changes fills it again."""

from __future__ import annotations

from random import Random

import pytest

from overlay.link.durable import Member, StoredMap, StoredSet, StoredValue, fill
from overlay.link.events import Put
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import MutableRow, Row, Table


class Stop(Row, frozen=True):
    name: str
    order: int = 0


class Visit(MutableRow):
    count: int


STOPS, MET, LAST, VISITS = (
    Table("stop", Stop),
    Table("met", Member),
    Table("last", Stop),
    Table("visit", Visit),
)


class Disk:
    """The rows that the commits of some turns have left."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}

    def commit(self, log: RowLog) -> None:
        for action in log.drain():
            if isinstance(action, Put):
                self.rows[action.space, action.key] = action.value
            else:
                del self.rows[action.space, action.key]  # no row is deleted that there is not

    def fill(self, log: RowLog) -> None:
        stored = StoredRows((*name, value) for name, value in self.rows.items())
        fill(log, stored)
        stored.check_taken()
        assert not log.drain(), "what is filled is stored already"


@pytest.mark.parametrize("seed", range(6))
def test_a_restart_finds_all_that_was_changed(seed: int) -> None:
    print("seed", seed)
    rng, disk, log = Random(seed), Disk(), RowLog()
    stops, met = StoredMap(log, STOPS), StoredSet(log, MET)
    last = StoredValue[Stop | None](log, LAST, None)
    plain: dict[str, Stop] = {}
    seen: set[str] = set()
    for _ in range(400):
        key, stop = rng.choice("abcdef"), Stop(rng.choice("xyz"), rng.randrange(9))
        match rng.randrange(12):
            case 0 | 1:
                stops[key] = plain[key] = stop
            case 2:
                assert stops.pop(key) == plain.pop(key, None)
            case 3:
                assert stops.setdefault(key, stop) == plain.setdefault(key, stop)
            case 4:
                stops.update({key: stop})
                plain[key] = stop
            case 5 if plain:
                stops.popitem()
                plain = dict(stops)
            case 6 if rng.random() < 0.1:
                stops.clear()
                met.clear()
                plain, seen = {}, set()
            case 7 | 8:
                met.add(key)
                seen.add(key)
            case 9:
                met.discard(key)
                seen.discard(key)
            case 10:
                met |= {key, "g"}
                met -= {"a"}
                seen = (seen | {key, "g"}) - {"a"}
            case 11:
                last.put(rng.choice((stop, None)))
            case _:
                disk.commit(log)
        assert (dict(stops), set(met)) == (plain, seen)
    disk.commit(log)
    again = RowLog()
    filled = StoredMap(again, STOPS), StoredSet(again, MET), StoredValue(again, LAST, None)
    disk.fill(again)
    assert (dict(filled[0]), set(filled[1]), filled[2].now) == (plain, seen, last.now)


def test_records_are_filled_in_the_order_that_is_asked_for() -> None:
    disk, log = Disk(), RowLog()
    stops = StoredMap(log, STOPS)
    for key, order in (("a", 3), ("b", 1), ("c", 2)):
        stops[key] = Stop(key, order)
    disk.commit(log)
    for order, keys in ((None, "abc"), (lambda stop: stop.order, "bca")):
        again = RowLog()
        filled = StoredMap(again, STOPS, order)
        disk.fill(again)
        assert "".join(filled) == keys


def test_a_record_that_is_changed_in_place_is_put_again() -> None:
    disk, log = Disk(), RowLog()
    visits = StoredMap(log, VISITS)
    visits["a"] = Visit(1)
    disk.commit(log)
    visits["a"].count += 1
    visits.put("a")
    disk.commit(log)
    again = RowLog()
    filled = StoredMap(again, VISITS)
    disk.fill(again)
    assert filled == {"a": Visit(2)}


def test_nothing_is_logged_that_changes_nothing() -> None:
    log = RowLog()
    met, last = StoredSet(log, MET), StoredValue[Stop | None](log, LAST, None)
    met.add("a")
    log.drain()
    met.add("a")
    met.discard("b")
    last.put(None)
    with pytest.raises(KeyError):
        met.remove("b")
    assert not log.drain()


def test_a_value_is_the_initial_one_until_it_is_set() -> None:
    disk, log = Disk(), RowLog()
    last = StoredValue(log, LAST, Stop("none"), "own")
    assert last.now == Stop("none")
    last.put(Stop("a"))
    disk.commit(log)
    assert list(disk.rows) == [("last", "own")]
