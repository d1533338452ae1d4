"""An input at which a broker falls over is passed over in its next life, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from formats import ElementStream
from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.deliveries.result_maker import ResultMaker
from onyx.broker.messages.data_plane import NOT_EVALUATED, DataPlane
from onyx.broker.messages.local_deliveries import Given, LocalDeliveries
from onyx.broker.packing.parcel import Parcel
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.node_process import ProcessDied
from overlay.link.arrival import Arrival
from overlay.link.core_context import Surroundings
from overlay.link.dead_letters import FAILURES_MAX, FELLED_MAX, KEPT_MAX, PASSED_MAX, keep_aside
from overlay.link.events import Action, BatchHandled, CallAtEnd, ConnectionLost, Delete, Put
from overlay.link.frame import PROTOCOL_VERSION
from overlay.link.frame_codec import encode
from overlay.link.frames import (
    Delivery,
    Hello,
    Message,
    Publish,
    Refused,
    Request,
)
from overlay.link.principal import Principal
from overlay.link.suspect import CoreFailed, Suspect, mark_of, marked
from overlay.link.work_mark import AT, BEHIND, IDLE, read_mark
from tests.beside import Beside, Peer
from tests.onyx.broker.test_broker_core import NEWS, SF, Setting, delta, message

CAUTION = 100


class Turns(Beside):
    """The end of a batch belongs to it, as in production: nothing leaves ahead of that."""

    def _carry_out(self, actions: list[Action]) -> None:
        if CallAtEnd() in actions:
            actions = [action for action in actions if action != CallAtEnd()]
            actions += self.core.handle(BatchHandled(), self.now)
        super()._carry_out(actions)


class Falling(Setting):
    """B4 with a profile and its user; whatever falls over at something with ``poison`` in it."""

    def __init__(self, root: str = "B1", child: str | bool = False) -> None:
        super().__init__()
        self.beside = Turns("broker/B4", BrokerCore(self.topology, "B4", "run1"))
        self.registration = self.beside.peer("registration", "R1")
        self.brokers = {name: self.beside.peer("broker", name) for name in ("B1", "B5", "B6")}
        self.announce(root=root)
        self.children_ready(root=root)
        if child:
            self.brokers["B5"].send(root, delta(SF, root=root))
        self.place(SF)
        self.user = self.beside.subscriber("p1")
        self.peers: list[Peer] = [self.registration, *self.brokers.values(), self.user]
        if root == "B4":
            self.source = self.beside.peer("source", "s1")
            self.peers.append(self.source)

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        for change in changes:
            assert isinstance(change, Put)
            self.beside.rows[change.space, change.key] = change.value

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        raise NotImplementedError

    def live_on(self, failure: CoreFailed, caution: int = 0) -> Suspect | None:
        """As node_process.py does: a new core, which everybody reaches again; who is to blame."""
        if failure.suspect is not None:
            assert failure.__cause__ is not None
            keep_aside(self, failure.suspect, failure.__cause__, at=1.5)
        self.beside._busy = False
        self.beside._waiting.clear()
        self.beside.core = BrokerCore(
            *(self.topology, "B4", "run2", self.beside.stored()), Surroundings(caution=caution)
        )
        self.beside.peers.clear()
        for peer in self.peers:
            peer._take(ConnectionLost(1))
        for peer in self.peers:
            peer.connect()
        return failure.suspect

    def falls(self) -> pytest.RaisesExc[CoreFailed]:
        return pytest.raises(CoreFailed)

    def delivered(self) -> list[int]:
        return [delivery.number for delivery in self.user.all(Delivery)]

    def publish(self, *numbers: int) -> None:
        for _ in numbers:
            self.source.send("s1", Publish(source="s1", format="text", payload=NEWS))

    def operator(self) -> Peer:
        return self.beside.peer("client", "operator")

    def letters(self) -> list[dict[str, object]]:
        answer = self.operator().ask("dead.list")
        assert answer is not None
        return list(answer.result["letters"])


@pytest.fixture
def falling_match(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Matching message 2 fails."""
    match = DataPlane._match

    def fall(self: DataPlane, parcel: Parcel) -> object:
        if parcel.number == 2:
            raise ZeroDivisionError("poison")
        return match(self, parcel)

    monkeypatch.setattr(DataPlane, "_match", fall)
    return


def test_a_message_of_a_broker_is_passed_over_and_all_others_come_once_in_order(
    falling_match: None,
) -> None:
    setting = Falling()
    setting.brokers["B1"].send("B1", message(number=1))
    with setting.falls() as caught:
        setting.brokers["B1"].send("B1", message(number=2))
    suspect = setting.live_on(caught.value)
    for number in (3, 4):
        setting.brokers["B1"].send("B1", message(number=number))
    assert setting.delivered() == [1, 2, 3, 4]
    (letter,) = setting.letters()
    assert suspect is not None and letter["id"] == suspect.id
    assert letter["what"] == "message 2 of s1 on tree B1"
    assert (letter["who"], letter["error"]) == ("source/s1", "ZeroDivisionError: poison")
    assert (letter["at"], letter["has_ended"]) == (1.5, True)
    shown = setting.operator().ask("dead.show", id=suspect.id)
    assert shown is not None and "in fall" in shown.result["trace"]
    assert message().payload in shown.result["data"]


def test_users_below_a_broker_that_a_message_fells_are_told_that_it_was_not_evaluated(
    falling_match: None,
) -> None:
    """Here it is B4, below which B5 wants messages of B1 and B6 does not."""
    setting = Falling(child="B5")
    setting.brokers["B1"].send("B1", message(number=1))
    with setting.falls() as caught:
        setting.brokers["B1"].send("B1", message(number=2))
    suspect = setting.live_on(caught.value)
    setting.brokers["B1"].send("B1", message(number=3))
    assert suspect is not None
    below = setting.brokers["B5"].all(Message)
    assert [(frame.number, frame.hops) for frame in below] == [(1, 2), (2, 2), (3, 2)]
    assert setting.brokers["B6"].all(Message) == []
    (told,) = [frame for frame in below if frame.format == NOT_EVALUATED]
    (empty,) = [delivery for delivery in setting.user.all(Delivery) if 0 in delivery.lengths]
    assert suspect.id.encode() in told.payload and suspect.id.encode() in empty.payload
    assert empty.payload.startswith(b"at B4: an error in this process")

    other = Falling(child="B5")
    other.brokers["B1"].send("B1", replace(told, hops=1))
    assert [frame.format for frame in other.brokers["B5"].all(Message)] == [NOT_EVALUATED]
    (delivery,) = other.user.all(Delivery)
    assert delivery.payload == empty.payload
    for _ in range(2):  # what left early comes again
        other.brokers["B1"].send("B1", replace(told, number=3))
    assert other.delivered() == [2, 3]


def test_a_core_says_what_it_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Falling(child="B5")
    seen: list[tuple[int, str]] = []

    def look(function: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*given: Any, **named: Any) -> Any:
            seen.append(read_mark(bytes(setting.core._dead.mark)))
            return function(*given, **named)

        return looked

    monkeypatch.setattr(DataPlane, "_match", look(DataPlane._match))
    monkeypatch.setattr(LocalDeliveries, "deliver", look(LocalDeliveries.deliver))
    monkeypatch.setattr(QueryPlane, "flush", look(QueryPlane.flush))
    setting.brokers["B1"].send("B1", message(number=7))
    at = "message 7 of s1 on tree B1"
    assert seen == [(AT, at), (AT, "local delivery of message 7 of s1")]
    seen.clear()
    setting.brokers["B5"].send("B1", delta("//new"))
    assert seen[0] == (BEHIND, "routing-delta from broker/B5, number 4 of channel 'B1'")
    assert setting.core._dead.mark[0] == IDLE


def test_what_the_process_died_of_is_known_by_its_mark_when_it_comes_again() -> None:
    setting = Falling()
    request = Arrival(1, "client/c", Request("q", "profile.update", {"profile": "p1"}))
    for mark in (
        "message 3 of s1 on tree B1",
        "local delivery of message 4 of s1",
        mark_of(request),
    ):
        keep_aside(setting, marked(mark), ProcessDied("without a word"), 1.0)
    setting.live_on(CoreFailed(None))
    for number in (3, 4, 5):
        setting.brokers["B1"].send("B1", message(number=number))
    told = [(delivery.number, 0 in delivery.lengths) for delivery in setting.user.all(Delivery)]
    assert told == [(3, True), (4, False), (5, False)]  # the fourth was not deferred
    answer = setting.beside.peer("client", "c").ask("profile.update", profile="p1")
    assert answer is not None and answer.result["code"] == "internal"
    letters = {letter["what"]: (letter["who"], letter["size"]) for letter in setting.letters()}
    size = len(encode(message(number=3), "B1", 1))
    assert letters["message 3 of s1 on tree B1"] == ("source/s1", size)
    assert letters["local delivery of message 4 of s1"] == ("", 0)


def test_a_source_is_told_which_of_its_messages_was_passed_over(falling_match: None) -> None:
    setting = Falling(root="B4")
    setting.publish(1)
    with setting.falls() as caught:
        setting.publish(2)
    suspect = setting.live_on(caught.value)
    setting.publish(3)
    (refused,) = setting.source.all(Refused)
    assert suspect is not None
    assert (refused.number, refused.code) == (2, "internal")
    assert suspect.id in refused.reason
    assert setting.delivered() == [1, 3]


@pytest.mark.parametrize("child", [True, False])
def test_a_message_that_fells_at_its_local_profiles_is_told_to_them_or_to_its_source(
    monkeypatch: pytest.MonkeyPatch, child: bool
) -> None:
    """With a child it has left before; without one it waits as it is large, and is refused."""
    setting = Falling(root="B4", child=child)
    deliver = LocalDeliveries.deliver

    def fall(
        self: LocalDeliveries,
        parcel: Parcel,
        given: Iterable[Given],
        *,
        is_undecided: bool = False,
    ) -> Iterator[None]:
        if parcel.number == 2 and not isinstance(given, list):
            raise RecursionError
        yield from deliver(self, parcel, given, is_undecided=is_undecided)

    monkeypatch.setattr(LocalDeliveries, "deliver", fall)
    text = NEWS if child else NEWS.replace(b"</head>", b"</head>" + b" " * 70_000)
    setting.source.send("s1", Publish(source="s1", format="text", payload=NEWS))
    with setting.falls() as caught:
        setting.source.send("s1", Publish(source="s1", format="text", payload=text))
    suspect = setting.live_on(caught.value)
    assert suspect is not None and suspect.what == "local delivery of message 2 of s1"
    setting.publish(3)
    assert setting.delivered() == ([1, 2, 3] if child else [1, 3])
    empty = [delivery.number for delivery in setting.user.all(Delivery) if 0 in delivery.lengths]
    assert empty == ([2] if child else [])
    refused = [frame.number for frame in setting.source.all(Refused)]
    passed_on = [frame.number for frame in setting.brokers["B5"].all(Message)]
    assert (passed_on, refused) == (([1, 2, 3], []) if child else ([], [2]))
    assert setting.core.statistics().data.abandoned == 1


def test_a_request_that_fells_is_answered_when_it_is_asked_again_by_whomever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Falling()

    def fall(self: QueryPlane, profile: str, text: str) -> object:
        raise KeyError("poison")

    monkeypatch.setattr(QueryPlane, "update", fall)
    arguments = {"profile": "p1", "text": "//poison"}
    client = setting.operator()
    with setting.falls() as caught:
        client.ask("profile.update", **arguments)
    suspect = setting.live_on(caught.value)
    assert suspect is not None
    for name in ("one", "another"):
        answer = setting.beside.peer("client", name).ask("profile.update", **arguments)
        assert answer is not None and not answer.ok
        assert answer.result["code"] == "internal"
        assert suspect.id in answer.result["message"]
    monkeypatch.undo()
    assert setting.operator().ask("dead.drop", id=suspect.id) is not None
    answer = setting.beside.peer("client", "third").ask("profile.update", **arguments)
    assert answer is None or answer.ok


def test_a_frame_of_a_subscriber_that_fells_is_answered_when_it_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Falling()
    setting.user.disconnect()
    setting.peers.remove(setting.user)

    def fall(self: Mailboxes, *arguments: object, **options: object) -> object:
        raise KeyError("poison")

    monkeypatch.setattr(Mailboxes, "attach", fall)
    with setting.falls() as caught:
        setting.user.connect()
    suspect = setting.live_on(caught.value)
    assert suspect is not None and suspect.what == "attach from subscriber/p1"
    setting.user._take(ConnectionLost(1))
    setting.user.connect()
    assert (setting.user.closed, setting.user.error) == (True, "internal")


def test_a_request_that_fails_before_anything_was_changed_is_answered_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Falling()

    def fall(self: MatchShares) -> object:
        raise ZeroDivisionError("poison")

    monkeypatch.setattr(QueryPlane, "report", fall)
    client, other = setting.operator(), setting.beside.peer("client", "other")
    for _ in range(FAILURES_MAX):
        answer = client.ask("statistics")
        assert answer is not None and answer.result["code"] == "internal"
        assert not client.closed
    client.ask("statistics")
    assert (client.closed, client.error) == (True, "too-many-errors")
    answer = other.ask("profile.list")
    assert answer is not None and answer.ok
    (letter,) = setting.letters()
    assert letter["what"] == "request 'statistics' of client/operator"
    assert letter["has_ended"] is False


def test_what_fails_behind_a_frame_is_found_by_handling_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is not known yet which of the frames that had come together it was; so nothing is passed
    over before that is."""
    setting = Falling()
    flush = QueryPlane.flush

    def fall(self: QueryPlane) -> None:
        flush(self)
        if any("poison" in str(entry) for entry in self.table.dump().splitlines()):
            raise ZeroDivisionError

    monkeypatch.setattr(QueryPlane, "flush", fall)
    poison = delta("//poison")
    with setting.falls() as caught:
        setting.brokers["B5"].send("B1", poison)
    assert caught.value.suspect is None
    with setting.falls() as found:
        setting.live_on(caught.value, CAUTION)
    suspect = setting.live_on(found.value)
    assert suspect is not None and suspect.who == "broker/B5"
    setting.brokers["B1"].send("B1", message())
    assert setting.delivered() == [1]


def test_results_that_fell_when_they_are_taken_are_told_as_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Falling()
    setting.user.disconnect()
    setting.peers.remove(setting.user)
    setting.brokers["B1"].send("B1", message())

    def fall(self: ResultMaker, *arguments: object) -> ElementStream:
        raise MemoryError

    monkeypatch.setattr(ResultMaker, "_read", fall)
    with setting.falls() as caught:
        setting.user.connect()
    suspect = setting.live_on(caught.value)
    assert suspect is not None and suspect.what == "results of message 1 of s1"
    setting.user = setting.beside.subscriber("p1", name="again")
    (delivery,) = setting.user.all(Delivery)
    assert (delivery.number, delivery.lengths[0]) == (1, 0)
    assert b"passed-over" in delivery.payload


def test_a_source_that_fells_again_and_again_is_let_in_no_more_before_somebody_has_looked() -> None:
    setting = Falling(root="B4")
    for number in range(FELLED_MAX):
        suspect = Suspect(f"id{number}", "it", "source/s1", b"")
        error = ZeroDivisionError()
        setting.live_on(_failed(suspect, error))
        if number < FELLED_MAX - 1:
            assert not setting.source.closed
    assert (setting.source.closed, setting.source.error) == (True, "too-many-errors")
    answer = setting.operator().ask("dead.drop", id="id0")
    assert answer is not None and answer.ok
    setting.source.connect()
    assert not setting.source.closed


def test_a_user_is_known_by_whom_their_connection_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """And an operator is never kept out."""
    setting = Falling()
    principals = [Principal("user", "eve"), Principal("operator", "root")]
    for number in range(2 * FELLED_MAX):
        suspect = Suspect(f"id{number:02}", "it", str(principals[number % 2]), b"")
        setting.live_on(_failed(suspect, ZeroDivisionError()))
    eve, root = (
        Arrival(
            setting.operator().number,
            "client/c",
            Hello(PROTOCOL_VERSION, "client", "c", "i", [], 65_536, []),
        )
        for _ in principals
    )
    dead = setting.core._dead
    named = dict(zip((eve.connection, root.connection), principals, strict=True))
    monkeypatch.setattr(dead._links, "principal", named.get)
    assert "user/eve has ended this process 8 times" in dead.bar(eve)
    assert dead.bar(root) == ""


def _failed(suspect: Suspect, error: Exception) -> CoreFailed:
    failure = CoreFailed(suspect)
    failure.__cause__ = error
    return failure


def test_what_is_kept_is_bounded_and_what_leaves_gaps_in_what_is_known_too() -> None:
    setting = Falling()
    error = ZeroDivisionError()
    for number in range(KEPT_MAX + 10):
        who = "broker/B5" if number >= 20 else "source/s1"
        keep_aside(setting, Suspect(f"id{number:03}", "it", who, b""), error, float(number))
    core = BrokerCore(setting.topology, "B4", "run2", setting.beside.stored())
    dead = core._dead
    assert core.statistics().dead.kept == KEPT_MAX
    assert dead._let_go == 10
    kept = [f"id{number:03}" for number in range(10, 20 + PASSED_MAX)]
    assert sorted(dead.passed_over) == kept
