"""What comes again from a broker that has passed it on before its commit is passed over."""

from __future__ import annotations

from overlay.link.events import SendData
from overlay.link.frames import Message, MessageAgain
from tests.onyx.broker.test_broker_core import Setting, delta

NEWS = b"<nitf/>"


class Middle(Setting):
    """B4, two links below B1 as the messages say, with B5 below it."""

    def __init__(self) -> None:
        super().__init__()
        self.announce()
        self.brokers["B5"].send("B1", delta("/nitf"))

    def send(self, number: int, hops: int = 2, kind: type[Message] = Message) -> None:
        self.brokers["B1"].send("B1", kind("B1", "s1", number, "text", hops, NEWS))

    def sent(self) -> list[int]:
        return [frame.number for frame in self.brokers["B5"].take(Message)]


def test_a_message_that_came_is_passed_over_also_after_a_restart() -> None:
    beside = Middle()
    beside.send(3)
    beside.send(3)
    assert beside.sent() == [3]
    beside.restart()
    beside.send(3)
    beside.send(2)
    beside.send(4)
    assert beside.sent() == [4]
    assert beside.core.statistics().data.passed_over == 2


def test_the_root_sends_nothing_twice_so_nothing_is_kept() -> None:
    beside = Middle()
    beside.send(3, hops=1)
    assert not any(space == "last-number" for space, _ in beside.beside.rows)


def test_what_could_not_be_read_may_come_late_and_goes_on_as_such() -> None:
    beside = Middle()
    beside.send(3)
    beside.send(2, kind=MessageAgain)
    got = beside.brokers["B5"].all(Message)
    assert [(type(frame), frame.number) for frame in got] == [(Message, 3), (MessageAgain, 2)]


def test_messages_may_leave_early_once_others_were_acknowledged_but_never_again_ones() -> None:
    beside = Middle()
    beside.send(1)
    left: list[bool] = []
    handle = beside.core.handle

    def watched(event, now):  # type: ignore[no-untyped-def]
        actions = handle(event, now)
        to_child = beside.brokers["B5"].number
        left.extend(
            a.is_early for a in actions if isinstance(a, SendData) and a.connection == to_child
        )
        return actions

    beside.core.handle = watched  # type: ignore[method-assign]
    beside.send(2)
    beside.send(1, kind=MessageAgain)
    assert left == [True, False]
