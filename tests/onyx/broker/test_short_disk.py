"""A broker whose disk is short takes no messages of its own sources; all else goes on."""

from __future__ import annotations

from overlay.link.events import DiskRoom
from overlay.link.frames import Delivery, Refused
from tests.onyx.broker.test_broker_core import SF, Setting, message
from tests.onyx.broker.test_publish_keys import Root


def test_what_is_published_is_refused_as_long_as_the_disk_is_short() -> None:
    beside = Root()
    beside.publish("a")
    beside.beside.tell(DiskRoom(is_short=True))
    beside.publish("b")
    beside.publish("a")
    (refused,) = beside.source.take(Refused)
    assert (refused.number, refused.code) == (2, "disk-full")
    assert beside.told() == [(3, 1)], "what was accepted is known"
    assert beside.core.statistics().data.disk_is_short is True
    beside.beside.tell(DiskRoom(is_short=False))
    beside.publish("b")
    assert beside.sent() == [1, 4]
    assert beside.core.statistics().data.disk_is_short is False


def test_messages_of_other_brokers_are_delivered() -> None:
    setting = Setting()
    setting.announce()
    setting.beside.tell(DiskRoom(is_short=True))
    setting.place(f"for $n in {SF} return <hit>{{$n/@edition.area}}</hit>")
    setting.brokers["B1"].send("B1", message())
    subscriber = setting.beside.subscriber("p1")
    (delivery,) = subscriber.all(Delivery)
    assert delivery.results() == [b'<hit edition.area="SF"/>']
