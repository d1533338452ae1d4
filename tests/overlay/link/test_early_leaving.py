"""What may leave ahead of its commit, and how numbers go on when that commit never was."""

from __future__ import annotations

from overlay.link.early_leaving import EARLY_MAX, EarlyLeaving
from overlay.link.errors import ProtocolError
from overlay.link.events import CloseConnection, Delete, Flow, Put, SendData
from overlay.link.frame import PROTOCOL_VERSION
from overlay.link.frames import Ack, Hello, Message
from overlay.link.journal import Journal
from overlay.link.journal_rows import parse_channel_key, sort_rows
from overlay.link.limits import LinkLimits
from overlay.link.lost_stores import check_store

LIMITS = LinkLimits()
FRAME_BYTES = 1 << 20


def early(connection: int, data: bytes = b"m") -> SendData:
    return SendData(connection, Flow.MESSAGE, data, is_early=True)


def other(connection: int) -> SendData:
    return SendData(connection, Flow.QUERY, b"q")


class TestWhatLeaves:
    def test_a_message_for_a_connection_for_which_nothing_waits(self) -> None:
        leaving = [early(1), other(2), early(2), early(3)]
        assert EarlyLeaving().split(leaving, {2}) == ([early(1), early(3)], leaving[1:3])

    def test_nothing_overtakes_what_is_held_back(self) -> None:
        closing = CloseConnection(1, "over")
        assert EarlyLeaving().split([early(1), closing], {1}) == ([], [early(1), closing])

    def test_a_bounded_number_ahead_of_commits(self) -> None:
        leaving = EarlyLeaving()
        many = [early(1, bytes([n])) for n in range(EARLY_MAX + 2)]
        held: set[int] = set()
        assert leaving.split(many, held) == (many[:EARLY_MAX], many[EARLY_MAX:])
        assert held == {1}
        leaving.committing()
        assert leaving.split([early(1)], set()) == ([], [early(1)])
        leaving.committed()
        assert leaving.split([early(1)], set()) == ([early(1)], [])


class Run:
    """B2's journal to B3, on the tree of B1, made of what an earlier run has stored."""

    def __init__(self, disk: dict[tuple[str, str], bytes]) -> None:
        self.disk = disk
        self.journal = Journal("broker/B3", LIMITS)
        for (space, key), value in sorted(disk.items(), reverse=True):
            if space == "outbox-floor":
                self.journal.restore_floor(*parse_channel_key(key)[1:], value)
        rows = [(space, key, value) for (space, key), value in disk.items()]
        for (_, flow, name), frames in sort_rows(rows, 1_000_000).frames.items():
            self.journal.restore_frames(flow, name, frames)

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.journal.send("B1", Message("B1", "s1", number, "text", 2, b"<m/>"))

    def commit(self) -> None:
        for row in self.journal.rows():
            if isinstance(row, Put):
                self.disk[row.space, row.key] = row.value
            else:
                assert isinstance(row, Delete)
                self.disk.pop((row.space, row.key), None)

    def meet(self, received: int) -> None:
        self.journal.resume([(int(Flow.MESSAGE), "B1", received)], FRAME_BYTES)

    @property
    def last(self) -> int:
        return self.journal.sending[Flow.MESSAGE, "B1"].last

    @property
    def floor(self) -> int:
        return self.journal.sending[Flow.MESSAGE, "B1"].floor


def met_run(committed: int) -> Run:
    """One that has committed so many frames, which B3 has acknowledged but for two."""
    run = Run({})
    run.meet(0)
    run.send(*range(1, committed + 1))
    run.journal.acknowledge(Ack(Flow.MESSAGE, "B1", committed - 2), 0.0)
    run.commit()
    return run


class TestNumbers:
    def test_a_new_run_goes_on_behind_what_left_early(self) -> None:
        run = Run(met_run(5).disk)
        run.meet(received=7)
        run.send(8)
        assert (run.floor, run.last) == (7, 8)

    def test_so_do_frames_that_it_has_numbered_already(self) -> None:
        run = Run(met_run(5).disk)
        run.send(6, 7, 8)  # as 6, 7 and 8, where B3 has two others as 6 and 7
        run.commit()
        run.meet(received=7)
        assert (run.floor, run.last) == (7, 10)

    def test_also_those_of_a_run_between_that_has_never_met_the_peer(self) -> None:
        between = Run(met_run(5).disk)
        between.send(6, 7, 8)
        between.commit()
        run = Run(between.disk)
        run.send(9)
        run.meet(received=7)
        run.commit()
        assert (run.floor, run.last) == (7, 11)
        again = Run(run.disk)
        again.meet(received=9)  # two of these frames
        assert (again.floor, again.last) == (9, 11)

    def test_nothing_changes_where_the_peer_has_what_was_committed(self) -> None:
        run = Run(met_run(5).disk)
        run.send(6)
        run.meet(received=4)
        assert (run.floor, run.last) == (4, 6)

    def test_within_a_run_numbers_are_its_own(self) -> None:
        run = met_run(5)
        run.send(6, 7)
        run.meet(received=7)
        assert (run.floor, run.last) == (7, 7)


class TestLostStores:
    def refusal(self, run: Run, received: int, identity: str = "B2") -> str:
        told = [(int(Flow.MESSAGE), "B1", received)]
        hello = Hello(PROTOCOL_VERSION, "broker", "B3", "other", [], FRAME_BYTES, told)
        try:
            check_store("broker", identity, run.journal, hello)
        except ProtocolError as error:
            return error.code
        return ""

    def test_a_few_messages_more_are_what_left_early(self) -> None:
        assert self.refusal(Run(met_run(5).disk), 5 + EARLY_MAX) == ""

    def test_more_than_that_were_lost(self) -> None:
        assert self.refusal(Run(met_run(5).disk), 6 + EARLY_MAX) == "store-lost"

    def test_nothing_leaves_the_root_early(self) -> None:
        assert self.refusal(Run(met_run(5).disk), 6, identity="B1") == "store-lost"
