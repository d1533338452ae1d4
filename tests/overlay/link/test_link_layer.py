"""LinkLayer: hello and resume, acknowledgements, windows, replacement, forgetting, errors."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.link.errors import ProtocolError, StoreError
from overlay.link.events import (
    Action,
    DataReceived,
    Delete,
    Flow,
    Put,
    ReadOn,
    SendData,
    TimePassed,
)
from overlay.link.frame import FEATURES, PROTOCOL_VERSION, Frame
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import (
    Ack,
    ErrorFrame,
    Hello,
    Message,
    Ping,
    Pong,
    Publish,
    Refused,
    Request,
    Response,
    Skipped,
    SourceReady,
    TreeReady,
)
from overlay.link.limits import WINDOW_FRAMES_CEILING, LinkLimits
from overlay.link.link_layer import ANYONE, SHOWN_MAX, TICKED_AT_ONCE
from overlay.link.slices import SLICE_SECONDS, Slice
from tests.overlay.link.pair import LIMITS, Hand, closed, hello, make_links, sent


def ready(number: int) -> SourceReady:
    return SourceReady(f"s{number}")


def message(number: int, size: int = 10) -> Message:
    return Message("B1", "s1", number, "xml", 0, b"x" * size)


def refused(number: int) -> Refused:
    return Refused("s1", number, "malformed", "r", 1, 1)


def errors(frames: list[Frame]) -> list[tuple[str, bool]]:
    return [(frame.code, frame.fatal) for frame in frames if isinstance(frame, ErrorFrame)]


class TestHello:
    def test_an_accepted_connection_is_answered_after_the_core_has_seen_the_hello(self) -> None:
        hand = Hand(make_links())
        assert hand.open() == []
        frames = hand.receive(hello())
        (arrival,) = hand.arrivals
        assert (arrival.peer, arrival.frame) == ("broker/B2", hello())
        assert frames == [
            Hello(
                PROTOCOL_VERSION,
                role="broker",
                peer="B1",
                instance="test",
                formats=["xml"],
                frame_bytes_max=LIMITS.frame_bytes_max,
                received=[],
                features=sorted(FEATURES),
            )
        ]
        assert hand.links.connected("broker/B2")
        assert hand.links.connection_of("broker/B2") == 1
        assert hand.links.peer_formats("broker/B2") == ["binary", "xml"]

    def test_a_dialler_speaks_first(self) -> None:
        hand = Hand(make_links())
        (first,) = hand.open(dialled="broker/B2")
        assert isinstance(first, Hello)
        assert not hand.links.connected("broker/B2")
        assert hand.receive(hello()) == []
        assert hand.links.connected("broker/B2")

    def test_a_refused_hello_gets_the_error_and_nothing_else(self) -> None:
        links = make_links()
        hand = Hand(links)
        links.send("source/s1", "s1", Refused("s1", 1, "c", "r", 0, 0))
        hand.open()
        hand.drain()
        seen = []
        for arrival in links.handle(DataReceived(1, encode(hello("source", "s1"))), 0.0):
            seen.append(arrival.frame)
            if arrival.frame is not None:
                links.refuse(1, "unknown-source", "nobody knows s1")
        actions = links.drain()
        assert sent(actions) == [ErrorFrame("unknown-source", "nobody knows s1", True)]
        assert closed(actions) == [1]
        assert [frame is None for frame in seen] == [False, True]
        assert not links.connected("source/s1")

    def test_the_wrong_peer(self) -> None:
        hand = Hand(make_links())
        hand.open(dialled="broker/B3")
        assert errors(hand.receive(hello())) == [("wrong-peer", True)]
        assert closed(hand.actions) == [1]
        assert hand.arrivals == []

    def test_anyone_may_answer(self) -> None:
        hand = Hand(make_links("client", "c1"))
        hand.open(dialled=ANYONE)
        assert hand.receive(hello()) == []
        assert hand.links.connected("broker/B2")

    def test_itself_is_no_peer(self) -> None:
        hand = Hand(make_links())
        hand.open()
        assert errors(hand.receive(hello(peer="B1"))) == [("not-expected", True)]

    def test_another_version(self) -> None:
        hand = Hand(make_links())
        hand.open()
        newer = replace(hello(), version=PROTOCOL_VERSION + 2, oldest=PROTOCOL_VERSION + 1)
        assert errors(hand.bytes(encode(newer))) == [("unsupported-version", True)]

    def test_hello_first(self) -> None:
        hand = Hand(make_links())
        hand.open()
        assert errors(hand.receive(Ping(1))) == [("not-expected", True)]

    def test_hello_once(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert errors(hand.receive(hello())) == [("not-expected", True)]

    def test_no_hello_in_time(self) -> None:
        hand = Hand(make_links())
        hand.open()
        hand.now = LIMITS.hello_seconds - 0.1
        assert hand.event(TimePassed()) == []
        hand.now = LIMITS.hello_seconds
        assert errors(sent(hand.event(TimePassed()))) == [("hello-timeout", True)]
        assert closed(hand.actions) == [1]

    def test_a_newer_connection_replaces_the_old_one(self) -> None:
        hand = Hand(make_links())
        hand.meet(connection=1)
        hand.open(2)
        hand.receive(hello(), connection=2)
        assert [(a.connection, a.frame) for a in hand.arrivals] == [(1, None), (2, hello())]
        first = [a for a in hand.actions if isinstance(a, SendData) and a.connection == 1]
        assert errors(sent(list(first))) == [("replaced", True)]
        assert closed(hand.actions) == [1]
        assert hand.links.connection_of("broker/B2") == 2
        assert hand.lose(1) == []
        assert hand.arrivals == []
        assert hand.links.connected("broker/B2")

    def test_one_departure_for_each_hello(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        hand.lose()
        assert [a.frame for a in hand.arrivals] == [None]
        assert not hand.links.connected("broker/B2")
        hand.open(2)
        hand.lose(2)
        assert hand.arrivals == []  # it never said who it was

    def test_replies_before_the_hello_follow_it(self) -> None:
        hand = Hand(make_links())
        hand.open()
        hand.links.reply(1, Ping(5))
        assert hand.drain() == []
        frames = hand.receive(hello())
        assert isinstance(frames[0], Hello)
        assert frames[1] == Ping(5)


class TestChannels:
    def test_each_frame_is_journaled_and_sent(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert hand.links.send("broker/B2", "k", ready(1)) == 1
        actions = hand.drain()
        data = encode(ready(1), "k", 1)
        assert actions == [
            Put("outbox", "broker/B2|1|k|0000000000000001", data),
            SendData(1, Flow.CATALOG, data),
        ]
        assert hand.links.backlog_bytes("broker/B2", Flow.CATALOG, "k") == len(data)
        hand.receive(Ack(1, "k", 1))
        assert hand.actions[0] == Delete("outbox", "broker/B2|1|k|0000000000000001")
        assert hand.links.backlog_bytes("broker/B2", Flow.CATALOG, "k") == 0
        assert hand.links.acknowledged("broker/B2", Flow.CATALOG, "k") == 1

    def test_what_was_sent_while_away_is_sent_at_the_hello_after_what_the_peer_has(self) -> None:
        hand = Hand(make_links())
        for number in (1, 2, 3):
            hand.links.send("broker/B2", "k", ready(number))
        assert sent(hand.drain()) == []
        assert hand.meet(received=[(1, "k", 2)]) == [ready(3)]

    def test_a_frame_is_taken_once_and_acknowledged_with_its_row(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert hand.receive(ready(1), "k", 1) == [Ack(1, "k", 1)]
        assert [a.frame for a in hand.arrivals] == [ready(1)]
        assert (hand.arrivals[0].key, hand.arrivals[0].sequence) == ("k", 1)
        assert isinstance(hand.actions[0], Put)
        assert hand.actions[0].space == "inbox"
        # Again: not handed on, but acknowledged, as the sender does not seem to know.
        assert hand.receive(ready(1), "k", 1) == [Ack(1, "k", 1)]
        assert hand.arrivals == []

    def test_one_acknowledgement_for_many_frames(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        data = b"".join(encode(ready(n), "k", n) for n in range(1, 6))
        assert hand.bytes(data) == [Ack(1, "k", 5)]
        assert len(hand.arrivals) == 5

    def test_a_gap_is_fatal(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        hand.receive(ready(1), "k", 1)
        assert errors(hand.receive(ready(3), "k", 3)) == [("not-expected", True)]
        assert closed(hand.actions) == [1]
        assert [a.frame for a in hand.arrivals] == [None]

    def test_a_malformed_frame_of_a_channel_is_fatal_another_is_not(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        good = encode(Ping(1))
        bad = good.replace(b"nonce", b"nonse")
        assert errors(hand.bytes(bad)) == [("missing-field", False)]
        assert hand.bytes(good) == [Pong(1)]
        bad = encode(TreeReady("B1", "s"), "k", 1).replace(b"source", b"sourse")
        assert errors(hand.bytes(bad)) == [("missing-field", True)]
        assert hand.bytes(good) == []

    def test_after_the_hello_every_channel_is_acknowledged(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        hand.receive(ready(1), "k", 1)
        hand.receive(ready(1), "l", 1)
        hand.lose()
        assert hand.meet(connection=2) == [Ack(1, "k", 1), Ack(1, "l", 1)]
        assert hand.links.connected("broker/B2")

    def test_the_hello_says_what_was_received(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        hand.receive(ready(1), "k", 1)
        hand.lose()
        (said,) = hand.open(2, "broker/B2")
        assert isinstance(said, Hello)
        assert said.received == [(1, "k", 1)]

    def test_withheld_acknowledgements_come_later(self) -> None:
        held = {"broker/B2"}
        hand = Hand(make_links(may_acknowledge=lambda peer, flow, key: peer not in held))
        hand.meet()
        assert hand.receive(ready(1), "k", 1) == []
        assert hand.receive(ready(2), "k", 2) == []
        assert hand.event(TimePassed()) == []
        held.clear()
        assert sent(hand.event(TimePassed())) == [Ack(1, "k", 2)]

    def test_the_window_in_frames(self) -> None:
        hand = Hand(make_links(limits=LinkLimits(window_frames=2)))
        hand.meet()
        for number in range(1, 6):
            hand.links.send("broker/B2", "k", ready(number))
        assert sent(hand.drain()) == [ready(1), ready(2)]
        assert hand.receive(Ack(1, "k", 1)) == [ready(3)]
        assert hand.receive(Ack(1, "k", 3)) == [ready(4), ready(5)]

    def test_the_window_in_bytes_always_lets_one_frame_go(self) -> None:
        hand = Hand(make_links(limits=LinkLimits(window_bytes=50)))
        hand.meet()
        for number in (1, 2, 3):
            hand.links.send("broker/B2", "B1", message(number, 500))
        assert sent(hand.drain()) == [message(1, 500)]
        assert hand.receive(Ack(3, "B1", 1)) == [message(2, 500)]

    def test_channels_take_turns(self) -> None:
        links = make_links()
        hand = Hand(links)
        for number in (1, 2):
            for key in ("k", "l"):
                links.send("broker/B2", key, SourceReady(f"{key}{number}"))
        frames = hand.meet()
        assert [getattr(frame, "source", "") for frame in frames] == ["k1", "l1", "k2", "l2"]

    def test_a_receiver_ends_a_sender_without_a_window(self) -> None:
        hand = Hand(make_links(may_acknowledge=lambda peer, flow, key: False))
        hand.meet()
        for number in range(1, WINDOW_FRAMES_CEILING + 1):
            assert hand.receive(ready(1), "k", number) == []
        frames = hand.receive(ready(1), "k", WINDOW_FRAMES_CEILING + 1)
        assert errors(frames) == [("window-exceeded", True)]

    def test_an_acknowledgement_of_nothing(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert errors(hand.receive(Ack(1, "k", 1))) == [("not-expected", False)]
        hand.links.send("broker/B2", "k", ready(1))
        hand.drain()
        assert errors(hand.receive(Ack(1, "k", 2))) == [("not-expected", False)]
        assert hand.links.backlog_bytes("broker/B2", Flow.CATALOG, "k") > 0

    @pytest.mark.parametrize("role", ["client", "subscriber"])
    def test_who_only_asks_or_takes_has_no_channels(self, role: str) -> None:
        hand = Hand(make_links())
        hand.meet(role, "c1")
        with pytest.raises(ValueError, match="no channels"):
            hand.links.send(f"{role}/c1", "k", ready(1))
        assert errors(hand.receive(ready(1), "k", 1)) == [("not-expected", True)]

    def test_send_is_for_sequenced_frames_reply_for_the_others(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        with pytest.raises(ValueError, match="use reply"):
            hand.links.send("broker/B2", "k", Ping(1))
        with pytest.raises(ValueError, match="use send"):
            hand.links.reply(1, ready(1))

    def test_too_many_channels(self) -> None:
        hand = Hand(make_links("source", "s1", limits=LinkLimits(channels_max=2)))
        hand.meet()
        hand.receive(ready(1), "a", 1)
        hand.receive(ready(1), "b", 1)
        assert errors(hand.receive(ready(1), "c", 1)) == [("too-many-channels", True)]
        hand.open(2)
        claims = [(1, key, 1) for key in "abc"]
        frames = hand.receive(hello(received=claims), connection=2)
        assert errors(frames) == [("too-many-channels", True)]
        assert not hand.links.connected("broker/B2")

    def test_a_frame_that_the_peer_does_not_accept(self) -> None:
        hand = Hand(make_links())
        hand.open()
        hand.receive(hello(frame_bytes_max=65_536))
        hand.links.send("broker/B2", "B1", message(1, 100_000))
        actions = hand.drain()
        assert errors(sent(actions)) == [("peer-limit", True)]
        assert closed(actions) == [1]

    def test_a_frame_beyond_the_bound_is_not_taken(self) -> None:
        hand = Hand(make_links(limits=LinkLimits(frame_bytes_max=65_536)))
        with pytest.raises(ProtocolError, match="at most 65536"):
            hand.links.send("broker/B2", "B1", message(1, 65_536))
        assert hand.links.backlog_bytes("broker/B2", Flow.MESSAGE, "B1") == 0
        assert hand.links.send("broker/B2", "B1", message(1)) == 1


class TestSlices:
    def test_one_frame_is_taken_in_a_slice_that_is_over_and_the_next_one_in_the_next(self) -> None:
        hand = Hand(make_links(is_over=lambda: True))
        hand.meet()
        data = b"".join(encode(ready(n), "c", n) for n in (1, 2, 3))
        hand.bytes(data + encode(ready(4), "c", 4)[:5])
        assert [arrival.frame for arrival in hand.arrivals] == [ready(1)]
        for number in (2, 3):
            assert ReadOn(1) in hand.actions
            hand.bytes(b"")
            assert [arrival.frame for arrival in hand.arrivals] == [ready(number)]
        assert ReadOn(1) not in hand.actions, "half a frame is nothing to go on with"
        hand.bytes(encode(ready(4), "c", 4)[5:])
        assert [arrival.frame for arrival in hand.arrivals] == [ready(4)]

    def test_what_was_not_taken_is_not_acknowledged(self) -> None:
        hand = Hand(make_links(is_over=lambda: True))
        hand.meet()
        frames = hand.bytes(encode(ready(1), "c", 1) + encode(ready(2), "c", 2))
        assert frames == [Ack(1, "c", 1)]

    def test_the_rest_of_a_lost_connection_is_lost(self) -> None:
        hand = Hand(make_links(is_over=lambda: True))
        hand.meet()
        hand.bytes(encode(ready(1), "c", 1) + encode(ready(2), "c", 2))
        hand.lose()
        hand.bytes(b"")
        assert hand.arrivals == []

    def test_a_slice_begins_when_it_is_first_asked_for(self) -> None:
        times = iter((7.0, 7.0 + SLICE_SECONDS / 2, 7.0 + SLICE_SECONDS, 9.0))
        piece = Slice(lambda: next(times))
        assert [piece.is_over() for _ in range(3)] == [False, False, True]
        piece.until = 0.0
        assert not piece.is_over()


class TestSource:
    def test_refusals_queue_before_the_acknowledgement_that_covers_them(self) -> None:
        links = make_links()
        hand = Hand(links)
        hand.meet("source", "s1")
        hand.receive(Publish("s1", "xml", b"<a>"), "s1", 1)
        hand.lose()
        hand.open(2)
        links.send("source/s1", "s1", refused(1))
        hand.receive(hello("source", "s1"), connection=2)
        flows = [a.flow for a in hand.actions if isinstance(a, SendData)]
        assert sent(hand.actions)[1:] == [refused(1), Ack(3, "s1", 1)]
        assert flows[1:] == [Flow.MESSAGE, Flow.MESSAGE]

    def test_the_acknowledgement_waits_for_refusals_beyond_the_window(self) -> None:
        links = make_links(limits=LinkLimits(window_frames=1))
        hand = Hand(links)
        hand.meet("source", "s1")
        for number in (1, 2):
            links.send("source/s1", "s1", refused(number))
        hand.drain()
        assert hand.receive(Publish("s1", "xml", b"<a>"), "s1", 1) == []
        frames = hand.receive(Ack(3, "s1", 1))
        assert isinstance(frames[0], Refused)
        assert frames[1] == Ack(3, "s1", 1)

    def test_acknowledgements_to_others_go_first(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        hand.receive(Message("B1", "s1", 1, "xml", 0, b""), "B1", 1)
        assert [a.flow for a in hand.actions if isinstance(a, SendData)] == [Flow.CONTROL]


class TestLostState:
    def test_a_peer_that_has_more_than_was_ever_sent_is_believed(self) -> None:
        hand = Hand(make_links("source", "s1"))
        for number in (1, 2):
            hand.links.send("broker/B2", "k", ready(number))
        hand.drain()
        hand.open()
        hand.receive(hello(received=[(1, "k", 100), (1, "l", 7)]))
        envelopes = [
            decode(a.data[LENGTH_BYTES:]) for a in hand.actions if isinstance(a, SendData)
        ][1:]
        assert [(e.frame, e.sequence) for e in envelopes] == [(ready(1), 101), (ready(2), 102)]
        assert hand.links.send("broker/B2", "l", ready(3)) == 8

    def test_adopted_numbers_survive_a_restart(self) -> None:
        hand = Hand(make_links("source", "s1"))
        rows: dict[tuple[str, str], bytes] = {}
        hand.links.send("broker/B2", "k", ready(1))
        keep(rows, hand.drain())
        hand.meet(received=[(1, "k", 100)])
        keep(rows, hand.actions)
        again = make_links("source", "s1")
        again.restore((space, key, value) for (space, key), value in rows.items())
        assert again.send("broker/B2", "k", ready(2)) == 102

    def test_a_peer_that_has_lost_its_memory_is_told_where_to_go_on(self) -> None:
        hand = Hand(make_links())
        hand.meet("source", "s1")
        for number in (1, 2, 3):
            hand.links.send("source/s1", "s1", refused(number))
        hand.drain()
        hand.receive(Ack(3, "s1", 2))
        hand.lose()
        frames = hand.meet("source", "s1", connection=2)
        assert frames == [Skipped(3, "s1", 2), refused(3)]
        flows = [a.flow for a in hand.actions if isinstance(a, SendData)]
        assert flows[1:] == [Flow.MESSAGE, Flow.MESSAGE]
        hand.receive(Ack(3, "s1", 3), connection=2)
        hand.lose(2)
        assert hand.meet("source", "s1", connection=3) == [Skipped(3, "s1", 3)], "nothing waits"

    def test_skipped_moves_the_receiver_on(self) -> None:
        hand = Hand(make_links("source", "s1"))
        hand.open(dialled="broker/B2")
        hand.receive(hello())
        assert hand.receive(Skipped(3, "s1", 2)) == [Ack(3, "s1", 2)]
        assert hand.arrivals == []
        hand.receive(refused(3), "s1", 3)
        assert [a.frame for a in hand.arrivals] == [refused(3)]
        assert hand.receive(Skipped(3, "s1", 2)) == [], "that is less than has come"
        hand.lose()
        (said,) = hand.open(2, "broker/B2")
        assert isinstance(said, Hello)
        assert said.received == [(3, "s1", 3)]

    def test_restart_goes_on_with_the_next_number(self) -> None:
        hand = Hand(make_links())
        rows: dict[tuple[str, str], bytes] = {}
        hand.meet()
        for number in (1, 2, 3):
            hand.links.send("broker/B2", "a|b", ready(number))
        keep(rows, hand.drain())
        hand.receive(Ack(1, "a|b", 3))
        keep(rows, hand.actions)
        assert {space for space, _ in rows} == {"outbox-floor"}
        again = make_links()
        again.restore((space, key, value) for (space, key), value in rows.items())
        assert again.send("broker/B2", "a|b", ready(4)) == 4

    @pytest.mark.parametrize(
        "row",
        [
            ("outbox", "nonsense", b""),
            ("outbox", "broker/B2|1|k|x", b""),
            ("outbox", "broker/B2|1|k|0000000000000002", b""),
            ("outbox-floor", "broker/B2|9|k", b""),
            ("outbox-floor", "broker/B2|1|k", b"\x91\x01"),
            ("inbox", "broker/B2|1|k", b"\xc1"),
        ],
    )
    def test_rows_that_no_link_layer_has_written(self, row: tuple[str, str, bytes]) -> None:
        with pytest.raises(StoreError):
            make_links().restore([row])


class TestForget:
    def test_all_rows_go_and_the_connection_too(self) -> None:
        hand = Hand(make_links())
        rows: dict[tuple[str, str], bytes] = {}
        hand.meet()
        hand.receive(message(1), "B2", 1)
        keep(rows, hand.actions)
        hand.links.send("broker/B2", "B1", message(1))
        keep(rows, hand.drain())
        hand.links.send("broker/B2", "B1", message(2))
        hand.links.forget("broker/B2")
        actions = hand.drain()
        keep(rows, actions)
        assert rows == {}
        assert ("forgotten", True) in errors(sent(actions))
        assert closed(actions) == [1]
        assert not hand.links.connected("broker/B2")

    def test_all_rows_of_channels_that_end_go(self) -> None:
        hand = Hand(make_links())
        rows: dict[tuple[str, str], bytes] = {}
        hand.meet()
        for key in ("B1", "B1@2"):
            hand.receive(message(1), key, 1)
            keep(rows, hand.actions)
            for number in (1, 2):
                hand.links.send("broker/B2", key, message(number))
            keep(rows, hand.drain())
            hand.receive(Ack(3, key, 1))
            keep(rows, hand.actions)
        hand.links.journal("broker/B2").forget_channels({"B1"})
        keep(rows, hand.drain())
        assert {key.split("|")[2] for _, key in rows} == {"B1@2"}
        assert hand.links.backlog_bytes("broker/B2", Flow.MESSAGE, "B1") == 0
        assert hand.links.connected("broker/B2")

    def test_after_forgetting_a_channel_begins_where_the_peer_is(self) -> None:
        hand = Hand(make_links("source", "s1"))
        hand.links.send("broker/B2", "k", ready(1))
        hand.links.forget("broker/B2")
        hand.drain()
        hand.meet(received=[(1, "k", 1)])
        assert hand.links.send("broker/B2", "k", ready(2)) == 2


class TestKeepAlive:
    def test_a_quiet_peer_is_asked_and_a_dead_one_given_up(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        seen: list[tuple[float, list[Frame]]] = []
        for second in range(31):
            hand.now = float(second)
            frames = sent(hand.event(TimePassed()))
            if frames:
                seen.append((hand.now, frames))
        assert [(when, type(frames[0])) for when, frames in seen] == [
            (10.0, Ping),
            (20.0, Ping),
            (30.0, ErrorFrame),
        ]
        assert errors(seen[-1][1]) == [("silent", True)]
        assert [a.frame for a in hand.arrivals] == [None]

    def test_very_many_are_asked_little_by_little(self) -> None:
        hand = Hand(make_links())
        count = TICKED_AT_ONCE * 16
        for connection in range(1, count + 1):
            hand.meet("client", f"c{connection}", connection=connection)
        hand.now = 10.0
        pings: list[int] = []
        while sum(pings) < count:
            actions = hand.event(TimePassed())
            assert all(isinstance(frame, Ping) for frame in sent(actions))
            pings.append(len(actions))
            hand.now += 1
        assert max(pings) <= count // 16 + 1
        assert len(pings) == 16

    def test_any_bytes_keep_it_alive(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        for second in range(0, 100, 9):
            hand.now = float(second)
            hand.receive(Pong(1))
            assert hand.event(TimePassed()) == []

    def test_pings_are_answered(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert hand.receive(Ping(77)) == [Pong(77)]
        assert hand.arrivals == []


class TestErrors:
    def test_unknown_frames_are_answered_until_there_are_too_many(self) -> None:
        hand = Hand(make_links(limits=LinkLimits(errors_max=3)))
        hand.meet()
        bad = encode(Ping(1)).replace(b"ping", b"pang")
        for _ in range(3):
            assert errors(hand.bytes(bad)) == [("unknown-frame", False)]
            assert hand.receive(Ping(1)) == [Pong(1)]
        assert errors(hand.bytes(bad)) == [("unknown-frame", False), ("too-many-errors", True)]
        assert closed(hand.actions) == [1]

    def test_broken_framing_is_fatal(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert errors(hand.bytes(b"\xff\xff\xff\xff")) == [("too-long", True)]

    def test_before_the_hello_frames_are_shorter(self) -> None:
        hand = Hand(make_links(limits=LinkLimits(hello_bytes_max=65_536)))
        hand.open()
        assert errors(hand.bytes((65_537).to_bytes(4, "big"))) == [("too-long", True)]

    def test_errors_are_not_answered(self) -> None:
        hand = Hand(make_links())
        hand.meet()
        assert hand.receive(ErrorFrame("bad-field", "d", False)) == []
        assert hand.actions == []
        hand.receive(ErrorFrame("silent", "d", True))
        assert closed(hand.actions) == [1]
        assert [a.frame for a in hand.arrivals] == [None]

    def test_a_result_that_cannot_be_sent_becomes_an_error(self) -> None:
        hand = Hand(make_links())
        hand.open()
        hand.receive(hello("client", "c1", frame_bytes_max=65_536))
        hand.links.reply(1, Response("5", True, {"big": "x" * 70_000}))
        (answer,) = sent(hand.drain())
        assert isinstance(answer, Response)
        assert (answer.request, answer.ok, answer.result["code"]) == ("5", False, "too-long")

    def test_requests_go_to_the_core(self) -> None:
        hand = Hand(make_links())
        hand.meet("client", "c1")
        hand.receive(Request("1", "verb", {}))
        assert [(a.peer, a.frame) for a in hand.arrivals] == [
            ("client/c1", Request("1", "verb", {}))
        ]

    def test_nothing_happens_to_a_connection_that_is_not_there(self) -> None:
        links = make_links()
        links.reply(9, Ping(1))
        links.refuse(9, "c", "d")
        assert links.drain() == []
        assert list(links.handle(TimePassed(), 1.0)) == []


def test_statistics_name_connections_and_channels() -> None:
    hand = Hand(make_links())
    hand.meet()
    hand.links.send("broker/B2", "k", ready(1))
    statistics = hand.links.statistics()
    assert statistics.open == 1
    sending = statistics.journals["broker/B2"].sending["catalog:k"]
    assert (sending.acknowledged, sending.last) == (0, 1)


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="window_frames"):
        LinkLimits(window_frames=WINDOW_FRAMES_CEILING + 1)
    with pytest.raises(ValueError, match="frame_bytes_max"):
        LinkLimits(frame_bytes_max=1000)


def keep(rows: dict[tuple[str, str], bytes], actions: list[Action]) -> None:
    """Carry row actions out."""
    for action in actions:
        if isinstance(action, Put):
            rows[action.space, action.key] = action.value
        elif isinstance(action, Delete):
            rows.pop((action.space, action.key), None)


def test_statistics_show_some_of_very_many() -> None:
    hand = Hand(make_links())
    for connection in range(1, SHOWN_MAX + 50):
        hand.meet("source", f"s{connection}", connection=connection)
        hand.links.send(f"source/s{connection}", "k", Refused("s", 1, "c", "r", 0, 0))
    hand.links.send("broker/B2", "k", TreeReady("t", "s1"))
    statistics = hand.links.statistics()
    connections, journals = statistics.connections, statistics.journals
    assert (statistics.open, len(connections)) == (SHOWN_MAX + 49, SHOWN_MAX)
    assert (statistics.peers, len(journals)) == (SHOWN_MAX + 50, SHOWN_MAX)
    assert next(iter(journals)) == "broker/B2"
    of_one = journals["source/s1"].sending["message:k"].backlog_bytes
    assert statistics.backlog_bytes > of_one * (SHOWN_MAX + 49) > 0
