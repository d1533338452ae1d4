"""Several publish as one source at once: one sequence of numbers, an order for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from onyx.broker.messages.local_deliveries import LocalDeliveries
from onyx.broker.network import publishers
from overlay.link.events import TimePassed
from overlay.link.frames import (
    AcceptedBefore,
    Message,
    Numbered,
    PublishOnce,
    Refused,
    SourceRemoved,
)
from overlay.link.message_headers import digest
from overlay.link.suspect import CoreFailed
from overlay.topology import Topology
from tests.beside import Peer
from tests.onyx.broker.hosting import publish
from tests.onyx.broker.test_broker_core import FIGURE4, Setting, delta
from yfilter.errors import MatchLimitExceeded

NEWS = b"<nitf/>"
DAY = 86_400.0
run = LocalDeliveries.run


def died(deliveries: object, is_over: object) -> None:
    raise RuntimeError


def rooted(topology: Topology = FIGURE4) -> Setting:
    """B4 is the root broker of s1, and its neighbour B1 wants all messages."""
    setting = Setting(topology)
    setting.announce(root="B4")
    setting.brokers["B1"].send("B4", delta("/nitf", root="B4"))
    setting.children_ready(root="B4")
    return setting


def publisher(setting: Setting, name: str) -> Peer:
    return setting.beside.peer("source", "s1", publisher=name)


def passed_on(setting: Setting) -> list[int]:
    return [message.number for message in setting.brokers["B1"].all(Message)]


def told(peer: Peer) -> list[tuple[int, int]]:
    return [(frame.number, frame.first) for frame in peer.all(Numbered)]


def test_numbers_follow_each_other_and_who_was_passed_is_told() -> None:
    setting = rooted()
    first, second = publisher(setting, ""), publisher(setting, "p")
    publish(first, NEWS, NEWS, NEWS)
    publish(second, NEWS, NEWS)
    publish(first, NEWS, NEWS)
    assert passed_on(setting) == [1, 2, 3, 4, 5, 6, 7]
    assert (told(first), told(second)) == ([(4, 6)], [(1, 4)])
    assert not first.closed and not second.closed
    assert setting.core.statistics().data.publishers == {"s1": 2}


def test_numbers_go_on_after_a_restart() -> None:
    setting = rooted()
    publish(publisher(setting, "p"), NEWS, NEWS)
    second = publisher(setting, "q")
    publish(second, NEWS)
    second.disconnect()
    setting.restart()
    assert second.connect().links.connected("broker/B4")
    publish(second, NEWS)
    assert passed_on(setting) == [1, 2, 3, 4]
    anew = publisher(setting, "q")  # of another run, which is told what it cannot know
    assert told(anew) == [(3, 5)]
    assert second.error == "replaced"


def test_a_publisher_of_a_former_release_is_told_nothing() -> None:
    """It takes its own numbers for those of the source, as long as it is the only one."""
    setting = rooted()
    publish(publisher(setting, "p"), NEWS)
    former = publisher(setting, "")
    hello = setting.core._links._sessions[former.number].hello
    assert hello is not None
    hello.features.remove("publishers")
    publish(former, NEWS)
    assert (passed_on(setting), told(former)) == ([1, 2], [])


def test_a_key_is_known_to_all_and_each_hears_of_its_own() -> None:
    setting = rooted()
    first, second = publisher(setting, "p"), publisher(setting, "q")
    once = PublishOnce("s1", "text", NEWS, digest("a"))
    first.send("s1", once)
    second.send("s1", once)
    publish(second, b"<nitf>")
    second.send("s1", replace(once, key=digest("b")))
    assert passed_on(setting) == [1, 4]
    assert [(f.number, f.first) for f in second.all(AcceptedBefore)] == [(1, 1)]
    assert [refused.number for refused in second.all(Refused)] == [2]
    assert not first.all(AcceptedBefore) and not first.all(Refused)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_message_that_is_refused_later_is_refused_to_its_publisher(
    restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when profiles of this broker were looked at, maybe by the next process."""
    setting = rooted()
    setting.place("/other/none")
    first, second = publisher(setting, "p"), publisher(setting, "q")
    publish(first, NEWS)

    def fails(parcel: object, delivered: object) -> Iterator[object]:
        yield from ()
        raise MatchLimitExceeded("match-limit", "too much")

    monkeypatch.setattr("onyx.broker.messages.data_plane.LARGE_BYTES", 1)
    monkeypatch.setattr(LocalDeliveries, "given", lambda self, parcel, delivered: fails(parcel, 0))
    monkeypatch.setattr(LocalDeliveries, "_of_profiles", lambda self, parcel: fails(parcel, 0))
    if restarts:  # the process dies before it has looked
        monkeypatch.setattr(LocalDeliveries, "run", died)
        with pytest.raises(CoreFailed):
            publish(second, b"<other/>")
        monkeypatch.setattr(LocalDeliveries, "run", run)
        setting.beside._busy = False
        second.disconnect()
        setting.restart()
        second.connect()
    else:
        publish(second, b"<other/>")
    assert not first.all(Refused)
    assert [refused.number for refused in second.all(Refused)] == [1]


def test_no_more_are_let_in_than_may_be() -> None:
    limits = replace(FIGURE4.limits, source_publishers_max=2)
    setting = rooted(replace(FIGURE4, limits=limits))
    passing = publisher(setting, "~1")
    assert (publisher(setting, "p").error, publisher(setting, "q").error) == (
        *("", "too-many-publishers"),
    )
    assert publisher(setting, "p").error == ""  # who is here already may come again
    passing.disconnect()
    assert publisher(setting, "q").error == ""
    assert passing.connect().error == "too-many-publishers"


def test_one_of_a_single_run_is_forgotten_when_it_was_away_for_a_day() -> None:
    """Others are not, nor is the last that has published: the next number is known by it."""
    setting = rooted()
    names = ["~1", "named", "~2", "~3"]
    peers = [publisher(setting, name) for name in names]
    for peer in peers:
        publish(peer, NEWS)
        peer.disconnect()
    for setting.beside.now in (1.0, DAY, DAY + 61.0):
        setting.beside.tell(TimePassed())
    kept = {key for space, key in setting.beside.rows if space == "inbox" and "/s1" in key}
    assert kept == {"source/s1/named|3|s1", "source/s1/~3|3|s1"}
    setting.restart()
    publish(publisher(setting, "~4"), NEWS)
    assert passed_on(setting)[-1] == 5


def test_those_that_are_away_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "AWAY_MAX", 2)
    setting = rooted()
    for name in ("~1", "~2", "~3", "~4"):
        peer = publisher(setting, name)
        publish(peer, NEWS)
        peer.disconnect()
    for setting.beside.now in (1.0, 100.0):
        setting.beside.tell(TimePassed())
    assert list(setting.core.data.publishers.sources["s1"].shifts) == [
        "source/s1/~3",
        "source/s1/~4",
    ]


def test_all_are_sent_away_when_their_source_goes() -> None:
    setting = rooted()
    peers = [publisher(setting, name) for name in ("", "p")]
    for peer in peers:
        publish(peer, NEWS)
    setting.registration.send("registration", SourceRemoved("s1"))
    assert [peer.error for peer in peers] == ["source-removed"] * 2
    assert not [key for _, key in setting.beside.rows if key.startswith("source/s1")]
