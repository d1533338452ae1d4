"""A message is sent on before any local profile is looked at, and nothing is lost in between."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from onyx.broker.broker_core import BrokerCore
from onyx.broker.messages.local_deliveries import LARGE_BYTES
from overlay.link.core_context import Surroundings
from overlay.link.events import Action, CallAgain, CalledAgain, Flow, SendData, singly
from overlay.link.frame_codec import FrameDecoder, decode
from overlay.link.frames import Ack, Deliveries, Delivery, Message, Publish, Refused, Request
from overlay.link.slices import SLICE_SECONDS
from tests.beside import Beside
from tests.onyx.broker.test_broker_core import FIGURE4, NEWS, SF, Setting, delta, message


class Watched(Beside):
    """Keeps the frames of each call; with ``hold`` the core is not called again, or so many times
    as are left."""

    hold = False
    calls_left = 0

    def __init__(self, core: BrokerCore) -> None:
        super().__init__("broker/B4", core)
        self.calls: list[list[type]] = []

    def _carry_out(self, actions: list[Action]) -> None:
        decoder = FrameDecoder(1 << 24)
        for action in singly(actions):
            if isinstance(action, SendData):
                decoder.feed(action.data)
        kinds = []
        while (raw := decoder.next_frame()) is not None:
            kinds.append(type(decode(raw).frame))
        if kinds:
            self.calls.append(kinds)
        if self.hold and self.calls_left:
            self.calls_left -= any(isinstance(action, CallAgain) for action in actions)
        elif self.hold:
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
    assert setting.core.statistics().data.deferred == 1


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
    user.ask("profile.remove", profile="p1")
    assert [frame.number for frame in setting.subscriber.all(Delivery)] == [1]
    assert setting.deferred_rows() == 0


def test_who_changes_nothing_is_answered_ahead_of_what_is_deferred() -> None:
    setting = Fast()
    setting.watched.hold = True
    user = setting.beside.peer("client", "u")
    setting.brokers["B1"].send("B1", message())
    for verb in ("sync", "statistics", "profile.list"):
        answer = user.ask(verb)
        assert answer is not None and answer.ok
    late = setting.beside.subscriber("p1")
    assert setting.deferred_rows() == 1
    setting.watched.hold = False
    setting.brokers["B1"].send("B1", message(number=2))
    assert [frame.number for frame in late.all(Delivery)] == [1, 2]


class Slow:
    """A processor on which every slice is over as soon as that is asked."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += SLICE_SECONDS
        return self.seconds


class Root(Setting):
    """B4, with a source and profiles that each get something else of a large message."""

    PROFILES = 5

    def __init__(self) -> None:
        super().__init__()
        self.announce(root="B4")
        self.children_ready(root="B4")
        for number in range(self.PROFILES):
            self.place(f"for $x in //x return <r{number}>{{$x}}</r{number}>", f"p{number}")
        self.die()

    def die(self) -> None:
        rows = self.beside.stored()
        self.watched = Watched(BrokerCore(FIGURE4, "B4", "run2", rows, Surroundings(Slow())))
        self.watched.rows = dict(self.beside.rows)
        self.beside = self.watched
        self.registration = self.beside.peer("registration", "R1")
        self.source = self.beside.peer("source", "s1")

    def publish(self, number: int = 1, size: int = LARGE_BYTES) -> None:
        payload = b"<a><x>%d</x><y>%s</y></a>" % (number, b"y" * size)
        self.source.send("s1", Publish(source="s1", format="text", payload=payload))

    def got(self) -> dict[str, list[tuple[int, list[bytes]]]]:
        """What all who come now have of it."""
        subscribers = {name: self.beside.subscriber(name) for name in self.core.query.profiles}
        self.watched.hold = False
        self.source.reply(Request("r1", "sync", {}))
        self.registration.reply(Request("r2", "sync", {}))
        return {
            name: [(one.number, one.results()) for one in subscriber.all(Delivery)]
            for name, subscriber in subscribers.items()
        }

    def all_of(self, *numbers: int) -> dict[str, list[tuple[int, list[bytes]]]]:
        return {
            f"p{profile}": [
                (number, [b"<r%d><x>%d</x></r%d>" % (profile, number, profile)])
                for number in numbers
            ]
            for profile in range(self.PROFILES)
        }

    def deferred_rows(self) -> int:
        return sum(space == "deferred" for space, _ in self.beside.rows)


def test_a_large_message_is_worked_on_in_slices_and_delivered_in_one_commit() -> None:
    setting = Root()
    setting.watched.hold = True
    setting.publish()
    slices = 0
    while setting.deferred_rows():
        assert not any(space == "delivery" for space, _ in setting.beside.rows)
        assert setting.source.all(Ack) == [], "it might still be refused"
        setting.beside.tell(CalledAgain())
        slices += 1
    assert slices > 2
    assert setting.source.links.acknowledged("broker/B4", Flow.MESSAGE, "s1") == 1
    assert setting.got() == setting.all_of(1)


def test_a_process_that_dies_between_two_slices_begins_with_the_message_anew() -> None:
    for slices in range(Root.PROFILES + 2):
        setting = Root()
        setting.watched.hold = True
        setting.watched.calls_left = slices
        setting.publish()
        setting.die()
        setting.publish(2, 10)
        assert setting.got() == setting.all_of(1, 2), slices


def test_what_comes_between_two_slices_is_delivered_in_order() -> None:
    setting = Root()
    setting.watched.hold = True
    setting.watched.calls_left = 2
    setting.publish()
    setting.publish(2, 10)
    assert setting.deferred_rows() == 2
    assert setting.got() == setting.all_of(1, 2)


def test_a_large_message_that_costs_too_much_is_refused_before_its_source_hears_anything() -> None:
    setting = Root()
    matcher = setting.core.query.matcher
    matcher.limits = replace(matcher.limits, visits_max=1)
    setting.watched.hold = True
    setting.publish()
    assert setting.source.all(Ack) == setting.source.all(Refused) == []
    setting.watched.hold = False
    setting.beside.tell(CalledAgain())
    assert [(one.number, one.code) for one in setting.source.all(Refused)] == [
        (1, "too-many-visits")
    ]
    assert setting.source.links.acknowledged("broker/B4", Flow.MESSAGE, "s1") == 1
    matcher.limits = replace(matcher.limits, visits_max=1_000_000)
    setting.publish(2)
    assert setting.got() == setting.all_of(2)


def test_no_message_is_acknowledged_while_too_much_is_deferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onyx.broker.broker_core.DEFERRED_BYTES_MAX", LARGE_BYTES)
    setting = Fast()
    setting.watched.hold = True
    parent = setting.brokers["B1"].links
    text = b'<nitf><head><pubdata edition.area="SF"/></head>%s</nitf>' % (b"y" * LARGE_BYTES)
    setting.brokers["B1"].send("B1", message(text))
    assert parent.backlog_bytes("broker/B4", Flow.MESSAGE, "B1") > 0
    setting.watched.hold = False
    setting.beside.tell(CalledAgain())
    assert parent.backlog_bytes("broker/B4", Flow.MESSAGE, "B1") == 0


def test_what_was_deferred_and_cannot_be_read_any_more_stops_nobody() -> None:
    setting = Fast()
    setting.watched.hold = True
    setting.brokers["B1"].send("B1", message())
    (key,) = (key for key in setting.beside.rows if key[0] == "deferred")
    record = msgpack.unpackb(setting.beside.rows[key])
    setting.beside.rows[key] = msgpack.packb({**record, "payload": b"damaged"})
    setting.watched.hold = False
    setting.die()
    assert setting.core.statistics().data.abandoned == 1
    assert setting.deferred_rows() == 0
