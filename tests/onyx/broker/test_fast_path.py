"""A message is sent on before any local profile is looked at, and nothing is lost in between."""

from __future__ import annotations

import msgpack

from onyx.broker.broker_core import BrokerCore
from overlay.link.events import Action, CallAgain, SendData
from overlay.link.frame_codec import LENGTH_BYTES, decode
from overlay.link.frames import Ack, Deliveries, Delivery, Message
from overlay.link.row_log import read_record
from tests.beside import Beside
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, SF, Setting, delta, message


class Watched(Beside):
    """Keeps the frames of each call; with ``hold`` the core is not called again."""

    hold = False

    def __init__(self, core: BrokerCore) -> None:
        super().__init__("broker/B4", core)
        self.calls: list[list[type]] = []

    def _carry_out(self, actions: list[Action]) -> None:
        frames = [decode(a.data[LENGTH_BYTES:]).frame for a in actions if isinstance(a, SendData)]
        if frames:
            self.calls.append([type(frame) for frame in frames])
        if self.hold:
            actions = [action for action in actions if not isinstance(action, CallAgain)]
        super()._carry_out(actions)


class Fast(Setting):
    """B4 with a profile of its own and a child that wants the same."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = Watched(BrokerCore(FIGURE4, "B4", "run1"))
        self.beside = self.watched
        self.registration = self.beside.peer("registration", "R1")
        self.brokers = {name: self.beside.peer("broker", name) for name in ("B1", "B5", "B6")}
        self.announce()
        self.brokers["B5"].send("B1", delta(SF))
        self.place(SF)
        self.subscriber = self.beside.subscriber("p1")
        self.watched.calls.clear()

    def die(self) -> None:
        """At once: what was deferred is in the rows only; everybody connects again."""
        self.beside.core = BrokerCore(self.topology, "B4", "run2", self.beside.stored())
        for peer in [self.registration, *self.brokers.values(), self.subscriber]:
            peer.disconnect()
            peer.connect()

    def deferred_rows(self) -> int:
        return sum(space == "deferred" for space, _ in self.beside.rows)


def test_the_message_leaves_in_a_call_of_its_own_and_the_delivery_in_the_next() -> None:
    setting = Fast()
    setting.brokers["B1"].send("B1", message())
    assert setting.watched.calls[:2] == [[Message, Ack], [Deliveries]]
    assert setting.deferred_rows() == 0
    assert setting.core.data.statistics()["deferred"] == 1


def test_there_is_one_call_where_no_link_waits_for_it() -> None:
    setting = Fast()
    setting.brokers["B5"].send("B1", delta(removed=(SF,)))
    setting.watched.calls.clear()
    setting.brokers["B1"].send("B1", message())
    assert setting.watched.calls[0] == [Deliveries, Ack]


def test_deliveries_keep_the_order_of_their_messages() -> None:
    """The second is not wanted by any link, but comes behind one that is."""
    setting = Fast()
    setting.place("/nitf/other", profile="p2")
    setting.place("/nitf", profile="p3")
    subscriber = setting.beside.subscriber("p3")
    setting.watched.hold = True
    setting.brokers["B1"].send("B1", message())
    setting.brokers["B1"].send("B1", message(b"<nitf><other/></nitf>", number=2))
    assert subscriber.all(Delivery) == []
    setting.watched.hold = False
    setting.brokers["B1"].send("B1", message(number=3))
    assert [frame.number for frame in subscriber.all(Delivery)] == [1, 2, 3]


def test_a_process_that_dies_in_between_delivers_when_it_is_back_and_sends_nothing_twice() -> None:
    setting = Fast()
    setting.watched.hold = True
    for number in (1, 2):
        setting.brokers["B1"].send("B1", message(number=number))
    assert setting.subscriber.all(Delivery) == []
    assert setting.deferred_rows() == 2
    setting.watched.hold = False
    setting.die()
    deliveries = setting.subscriber.all(Delivery)
    assert [frame.number for frame in deliveries] == [1, 2]
    assert deliveries[0].results() == [NEWS]
    assert [frame.number for frame in setting.brokers["B5"].all(Message)] == [1, 2]
    assert setting.deferred_rows() == 0
    setting.brokers["B1"].send("B1", message(number=3))
    assert [frame.number for frame in setting.subscriber.all(Delivery)] == [1, 2, 3]


def test_a_message_meets_the_profiles_that_there_were_when_it_came() -> None:
    setting = Fast()
    setting.watched.hold = True
    user = setting.beside.peer("client", "u")
    setting.brokers["B1"].send("B1", message())
    answer = user.ask("profile.update", profile="p1", text="/other")
    assert answer is not None and answer.ok
    assert [frame.number for frame in setting.subscriber.all(Delivery)] == [1]
    setting.brokers["B1"].send("B1", message(number=2))
    user.ask("sync")
    assert [frame.number for frame in setting.subscriber.all(Delivery)] == [1]
    assert setting.deferred_rows() == 0


def test_what_was_deferred_and_cannot_be_read_any_more_stops_nobody() -> None:
    setting = Fast()
    setting.watched.hold = True
    setting.brokers["B1"].send("B1", message())
    (key,) = (key for key in setting.beside.rows if key[0] == "deferred")
    record = read_record(setting.beside.rows[key])
    setting.beside.rows[key] = msgpack.packb({**record, "payload": b"damaged"})
    setting.watched.hold = False
    setting.die()
    assert setting.core.data.statistics()["abandoned"] == 1
    assert setting.deferred_rows() == 0
