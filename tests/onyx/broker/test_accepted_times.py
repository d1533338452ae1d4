"""When messages are accepted: stamped once, at their root broker, and kept with them."""

from __future__ import annotations

import msgpack
import msgspec
from msgspec.structs import replace

from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.delivery_log import _pack_message, _read_body
from onyx.broker.messages.local_deliveries import DEFERRED, DeferredRow
from onyx.broker.messages.message_latency import MessageLatency
from onyx.broker.packing.parcel import KeptMessage
from overlay.link.core import Rows
from overlay.link.core_context import Surroundings
from overlay.link.frames import Delivery, Message, Publish, Undecoded, cut
from overlay.link.histogram import Histogram
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, Setting, delta, message

NOW = "for $n in /nitf return <t>{current-dateTime()}</t>"
LATER = '/nitf[current-date() > xs:date("2020-01-01")]'
AT = 1_795_903_200_123_456  # 2026-11-28T22:00:00.123456Z


class Timed(Setting):
    """B4, whose calendar says ``wall``; B5 wants what is accepted later than a day, as p2 does."""

    def __init__(self, root: str, wall: float = 0.0) -> None:
        self.wall = wall
        super().__init__(FIGURE4)
        self.announce(root=root)
        self.children_ready(root=root)
        self.brokers["B5"].send(root, delta(LATER, root=root))
        self.place(NOW)
        self.place(LATER, "p2")

    def new_core(self, instance: str, rows: Rows = ()) -> BrokerCore:
        around = Surroundings(self._clock, wall=lambda: self.wall)
        return BrokerCore(self.topology, self.identity, instance, rows, around)

    def results(self, profile: str) -> list[bytes]:
        """Made when they are taken."""
        found = self.beside.subscriber(profile).take(Delivery)
        return [result for each in found for result in cut(each.lengths, each.payload)]


def test_its_root_broker_stamps_a_message_by_its_own_calendar() -> None:
    setting = Timed("B4", AT / 1_000_000)
    source = setting.beside.peer("source", "s1")
    source.send("s1", Publish("s1", "text", NEWS))
    setting.wall -= 0.5
    source.send("s1", Publish("s1", "text", NEWS))
    setting.wall += 86_400
    sent = setting.brokers["B5"].take(Message)
    assert [frame.accepted for frame in sent] == [AT, AT]
    assert setting.results("p1") == 2 * [b"<t>2026-11-28T22:00:00.123456Z</t>"]


def test_others_take_the_time_that_came_and_hand_it_on() -> None:
    setting = Timed("B1", 1.0)
    setting.brokers["B1"].send("B1", replace(message(), accepted=AT))
    assert [frame.accepted for frame in setting.brokers["B5"].take(Message)] == [AT]
    setting.restart()
    assert setting.results("p1") == [b"<t>2026-11-28T22:00:00.123456Z</t>"]
    assert len(setting.results("p2")) == 1


def test_nobody_gets_a_message_by_its_time_that_has_none() -> None:
    setting = Timed("B1", AT / 1_000_000)
    setting.place("/nitf", "p3")
    setting.brokers["B1"].send("B1", message())
    setting.brokers["B1"].send("B1", message(number=2))
    assert setting.results("p1") == setting.results("p2") == []
    assert len(setting.results("p3")) == 2


def test_a_message_that_was_given_back_comes_again_with_its_time() -> None:
    setting = Timed("B1")
    came = replace(message(), format="holographic", accepted=AT)
    setting.brokers["B1"].send("B1", came)
    (given_back,) = setting.brokers["B1"].take(Undecoded)
    assert given_back.accepted == AT


def test_a_calendar_that_is_set_back_is_waited_for_where_it_is_little() -> None:
    said = iter((10.0, 9.5, 10.1, 8.0, 8.1))
    latency = MessageLatency(lambda: next(said), Histogram())
    found = [latency.accepted() for _ in range(5)]
    assert found == [10_000_000, 10_000_000, 10_100_000, 8_000_000, 8_100_000]


def test_rows_of_the_former_release_have_no_time() -> None:
    kept = KeptMessage("B1", "text", NEWS, b"", True, AT)
    assert _read_body("delivery", "1", _pack_message(kept)) == kept
    former = msgpack.packb([0, *kept[:-1]])
    assert _read_body("delivery", "1", former) == kept._replace(accepted=0)
    row = DeferredRow("B1", "s1", 1, 1, "text", NEWS, 0, b"", True, AT)
    assert DEFERRED.read("1", DEFERRED.pack(row)) == row
    fields = {
        name: value for name, value in msgspec.structs.asdict(row).items() if name != "accepted"
    }
    assert DEFERRED.read("1", msgpack.packb(fields)) == msgspec.structs.replace(row, accepted=0)
