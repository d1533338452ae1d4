"""Parts of a core are asked when they have something to do, and have their own rows and frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgpack
import pytest

from overlay.access import Right
from overlay.link.arrival import Arrival
from overlay.link.errors import StoreError
from overlay.link.events import CallAgain
from overlay.link.frames import Ping
from overlay.link.part import Agenda, Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table


@dataclass(frozen=True, slots=True)
class Row:
    number: int


ROWS = Table("numbers", Row)


class Noting(Part):
    """Notes its turns in a list that it shares with others."""

    def __init__(self, name: str, turns: list[str]) -> None:
        self.name = name
        self.turns = turns
        self.again = False

    def flush(self) -> None:
        self.turns.append(f"{self.name} flush")
        if self.again:
            self.flush_soon()

    def work(self) -> None:
        self.turns.append(f"{self.name} work")


class Waiting(Noting):
    """Has rows and a frame, and waits for time and for connections that go."""

    numbers: list[int]

    def frames(self) -> Iterable[Taker]:
        yield takes(Ping, "client source", self._take, right=Right.KNOWN)

    def restore(self, rows: StoredRows) -> None:
        self.numbers = [row.number for _, row in rows.take(ROWS)]

    def tick(self, now: float) -> None:
        self.turns.append(f"{self.name} tick {now:g}")

    def gone(self, arrival: Arrival) -> None:
        self.turns.append(f"{self.name} lost {arrival.peer}")

    def _take(self, frame: Ping, arrival: Arrival) -> None:
        self.turns.append(f"{self.name} took {frame.nonce}")


def two() -> tuple[list[str], Noting, Waiting, Agenda]:
    turns: list[str] = []
    first, second = Noting("first", turns), Waiting("second", turns)
    return turns, first, second, Agenda((first, second))


def test_nobody_is_asked_who_has_not_said_so() -> None:
    turns, _, _, agenda = two()
    agenda.flush()
    agenda.work()
    agenda.end_batch()
    agenda.flush()
    assert turns == []


def test_parts_have_their_turns_in_their_order_and_once() -> None:
    turns, first, second, agenda = two()
    second.flush_soon()
    first.flush_soon()
    second.work_soon()
    agenda.flush()
    agenda.flush()
    agenda.work()
    agenda.work()
    assert turns == ["first flush", "second flush", "second work"]


def test_who_asks_while_it_is_flushed_is_flushed_after_the_next_event() -> None:
    turns, first, _, agenda = two()
    first.again = True
    first.flush_soon()
    agenda.flush()
    assert turns == ["first flush"]
    agenda.flush()
    assert turns == ["first flush", "first flush"]


def test_what_waits_for_the_end_of_a_batch_comes_then() -> None:
    turns, first, _, agenda = two()
    first.flush_at_end()
    agenda.flush()
    assert turns == []
    agenda.end_batch()
    agenda.flush()
    assert turns == ["first flush"]


def test_time_and_lost_connections_are_for_those_who_wait_for_them() -> None:
    turns, _, _, agenda = two()
    agenda.tick(7.0)
    agenda.gone(Arrival(1, "source/s1", None))
    assert turns == ["second tick 7", "second lost source/s1"]


def test_what_the_shell_is_asked_for_is_taken_once() -> None:
    _, first, _, agenda = two()
    first.ask_shell(CallAgain())
    assert agenda.take_actions() == [CallAgain()]
    assert agenda.take_actions() == []


def test_a_frame_has_one_taker_who_says_from_whom() -> None:
    turns, _, _, agenda = two()
    taker = agenda.takers()[Ping]
    assert taker.senders == {"client", "source"}
    taker.take(Ping(3), Arrival(1, "client/c", Ping(3)))
    assert turns == ["second took 3"]
    with pytest.raises(ValueError, match="two parts take Ping"):
        Agenda((Waiting("a", []), Waiting("b", []))).takers()


def test_rows_go_to_their_part_by_key_and_rows_of_nobody_are_an_error() -> None:
    _, _, second, agenda = two()
    stored = [("numbers", key, msgpack.packb({"number": int(key)})) for key in "312"]
    agenda.restore(StoredRows(stored))
    assert second.numbers == [1, 2, 3]
    with pytest.raises(StoreError, match=r"1 rows in space 'strange' .* 'k'"):
        agenda.restore(StoredRows([*stored, ("strange", "k", b"")]))
    with pytest.raises(ValueError, match="two parts have the space 'numbers'"):
        Agenda((Waiting("a", []), Waiting("b", []))).restore(StoredRows(stored))


def test_a_part_by_itself_may_say_that_it_has_something_to_do() -> None:
    alone = Noting("alone", [])
    alone.flush_soon()
    alone.flush_at_end()
    alone.work_soon()
    alone.ask_shell(CallAgain())
    assert alone.turns == []
