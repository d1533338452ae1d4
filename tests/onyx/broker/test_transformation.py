"""What the broker core tells and keeps of needs, and what it does with cut messages: B4 of the
paper's Figure 4, between B1 and B5, B6, on links that cut."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from formats import WireFormat, decode, encode, parse_text, to_text
from onyx.broker.profiles import transformation
from onyx.broker.profiles import transformation as former_versions
from onyx.broker.profiles.transformation import FORMER
from overlay.link.frames import (
    Delivery,
    LiveMarker,
    Message,
    NeedsDelta,
    Publish,
    RoutingDelta,
    ShapeAnnounced,
    Undecoded,
)
from overlay.topology import Topology, Transformation, to_toml
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import FIGURE4, Setting, delta
from yfilter.language.query_parser import parse_profile
from yfilter.projection.needs import EVERYTHING
from yfilter.projection.parts import part_needs_of
from yfilter.projection.profile_needs import needs_of

LINKS = tuple(replace(link, transformation=Transformation.PROJECTION) for link in FIGURE4.links)
CUTTING = replace(FIGURE4, links=LINKS)
FEED = b'<f><i k="a"><t>A</t><u>1</u></i><i k="b"><t>B</t><u>2</u></i></f>'
TITLES = "for $i in /f/i where $i/@k = 'a' return <x>{$i/t}</x>"
OTHERS = "for $i in /f/i where $i/@k = 'b' return <x>{$i/u}</x>"
TITLE_OF_A, OTHER_OF_B = b"<x><t>A</t></x>", b"<x><u>2</u></x>"


def open_setting() -> Setting:
    """The children have said that they need nothing, with their change 2."""
    setting = Setting(CUTTING)
    setting.announce()
    for child in ("B5", "B6"):
        setting.brokers[child].send("B1", NOTHING_NEEDED)
    assert setting.brokers["B1"].take(NeedsDelta) == [NOTHING_NEEDED]
    return setting


def needs(*profiles: str, number: int, removed: tuple[str, ...] = ()) -> NeedsDelta:
    def texts(them: tuple[str, ...]) -> list[str]:
        return [need.text for one in them for need in needs_of(parse_profile(one))]

    return NeedsDelta("B1", number, texts(profiles), texts(removed))


NOTHING_NEEDED = NeedsDelta("B1", 2, [], [EVERYTHING.text])


def message(number: int, reflects: int, xml: bytes = FEED) -> Message:
    payload = encode(parse_text(xml), WireFormat.BINARY)
    return Message("B1", "s1", number, "binary", 1, payload, reflects)


def text_of(frame: Message) -> bytes:
    return to_text(decode(frame.payload, WireFormat(frame.format)))


def subscriber(setting: Setting, profile: str = "p1") -> Peer:
    return setting.beside.subscriber(profile)


def results(peer: Peer) -> list[list[bytes]]:
    return [frame.results() for frame in peer.take(Delivery)]


def test_needs_go_up_ahead_of_the_routing_query_and_the_marker() -> None:
    setting = open_setting()
    setting.place(TITLES)
    kinds = [
        type(frame)
        for frame in setting.brokers["B1"].got
        if isinstance(frame, NeedsDelta | RoutingDelta | LiveMarker)
    ]
    assert kinds == [NeedsDelta, RoutingDelta, LiveMarker]
    assert setting.brokers["B1"].all(NeedsDelta) == [needs(TITLES, number=3)]


def test_nothing_is_told_where_no_link_cuts() -> None:
    setting = Setting()
    setting.announce()
    setting.place(TITLES)
    assert setting.brokers["B1"].all(NeedsDelta) == []


def test_a_child_that_says_nothing_needs_everything() -> None:
    setting = Setting(CUTTING)
    setting.announce()
    setting.place(TITLES)
    b1, b5, b6 = (setting.brokers[name] for name in ("B1", "B5", "B6"))
    for child in (b5, b6):
        child.send("B1", delta("/f"))
    b5.send("B1", NOTHING_NEEDED)
    assert b1.all(NeedsDelta) == []
    b1.send("B1", message(1, reflects=0))
    assert [frame.reflects for frame in b5.take(Message)] == [2]
    assert [(text_of(frame), frame.reflects) for frame in b6.take(Message)] == [(FEED, 0)]
    setting.restart()
    assert b1.all(NeedsDelta) == []
    b6.send("B1", NeedsDelta("B1", 2, needs(OTHERS, number=2).added, []))  # not all of it yet
    assert b1.all(NeedsDelta) == []
    setting.restart()
    b6.send("B1", NeedsDelta("B1", 3, [], [EVERYTHING.text]))
    first, last = b1.take(NeedsDelta)
    assert (first.number, last.number) == (2, 3)
    assert set(first.added) == {*needs(TITLES, number=2).added, *needs(OTHERS, number=2).added}
    assert (first.removed, last.added, last.removed) == ([], [], [EVERYTHING.text])


def test_a_broker_that_cuts_nothing_any_more_needs_everything_again() -> None:
    setting = open_setting()
    setting.place(TITLES)
    setting.brokers["B1"].take(NeedsDelta)
    setting.topology = FIGURE4
    setting.restart()
    told = setting.brokers["B1"].take(NeedsDelta)
    assert [(frame.added, frame.removed) for frame in told] == [
        ([EVERYTHING.text], []),
        ([], needs(TITLES, number=3).added),
    ]
    setting.topology = CUTTING
    setting.restart()
    told = setting.brokers["B1"].take(NeedsDelta)
    assert [(frame.added, frame.removed) for frame in told] == [
        (needs(TITLES, number=3).added, []),
        ([], [EVERYTHING.text]),
    ]
    peer = subscriber(setting)
    for number, reflects in enumerate((told[0].number, told[1].number), 1):
        setting.brokers["B1"].send("B1", message(number, reflects=reflects))
    assert 2 in [frame.number for frame in peer.take(Delivery)]


def announce_shape(setting: Setting, topology: Topology) -> None:
    version = setting.core.control.shapes.newest.version + 1
    trees = [[broker, 0] for broker in topology.broker_ids]
    frame = ShapeAnnounced(version, trees, [], [], to_toml(topology).encode())
    setting.registration.send("registration", frame)


@pytest.mark.parametrize("restarted", [False, True])
def test_links_may_begin_to_cut_while_the_network_runs(
    restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformation, "PORTION", 1)
    setting = Setting()
    setting.announce()
    setting.place(TITLES)
    setting.place(OTHERS, profile="p2")
    b1 = setting.brokers["B1"]
    for child in ("B5", "B6"):
        setting.brokers[child].send("B1", NOTHING_NEEDED)
    assert b1.take(NeedsDelta) == []
    announce_shape(setting, CUTTING)
    told = b1.take(NeedsDelta)
    if restarted:
        setting.topology = CUTTING  # as the launcher starts it again
        setting.restart()
        assert b1.take(NeedsDelta) == []
    asker = setting.beside.peer("client", "asker")
    for root, code in (("B1", ""), ("B9", "unknown-root")):
        answer = asker.ask("transform.show", link="B5", root=root)
        assert answer is not None and answer.result.get("code", "") == code
    assert {need for frame in told for need in frame.added} == {
        *needs(TITLES, number=0).added,
        *needs(OTHERS, number=0).added,
    }
    assert told[-1].removed == [EVERYTHING.text]
    # Until then everything was needed, so both take part in whatever is cut.
    b1.send("B1", message(1, reflects=told[-1].number))
    assert results(subscriber(setting)) == [[TITLE_OF_A]]
    assert results(subscriber(setting, "p2")) == [[OTHER_OF_B]]


def test_profiles_of_before_share_parts_when_links_begin_to_make_them() -> None:
    setting = open_setting()
    setting.place(TITLES)
    (bare,) = needs(TITLES, number=0).added
    setting.brokers["B1"].take(NeedsDelta)
    links = tuple(replace(link, transformation=Transformation.FULL) for link in CUTTING.links)
    announce_shape(setting, replace(CUTTING, links=links))
    changes = setting.brokers["B1"].take(NeedsDelta)
    (with_part,) = (need.text for need in part_needs_of(parse_profile(TITLES)))
    assert [need for change in changes for need in change.added] == [with_part]
    assert [need for change in changes for need in change.removed] == [bare]
    announce_shape(setting, CUTTING)  # messages with parts may be on their way
    setting.restart()
    assert setting.brokers["B1"].take(NeedsDelta) == []


def test_a_child_gets_what_is_needed_behind_it() -> None:
    setting = open_setting()
    setting.brokers["B5"].send("B1", needs(TITLES, number=3))
    setting.brokers["B5"].send("B1", delta("/f/i"))
    setting.brokers["B6"].send("B1", needs("/f", number=3))
    setting.brokers["B6"].send("B1", delta("/f"))
    setting.brokers["B1"].send("B1", message(1, reflects=0))
    (cut,) = setting.brokers["B5"].take(Message)
    assert text_of(cut) == b'<f><i k="a"><t>A</t></i></f>'
    assert cut.reflects == 3
    (whole,) = setting.brokers["B6"].take(Message)
    assert (text_of(whole), whole.reflects) == (FEED, 0)


def test_what_is_left_for_two_children_may_differ_in_names_alone() -> None:
    setting = open_setting()
    for child, name in (("B5", "t"), ("B6", "p")):
        profile = f"for $i in /f/i return <x>{{$i/{name}}}</x>"
        setting.brokers[child].send("B1", needs(profile, number=3))
        setting.brokers[child].send("B1", delta(f"/f/i/{name}"))
    setting.brokers["B1"].send("B1", message(1, 0, b"<f><i><t>7</t><p>7</p></i></f>"))
    texts = [
        text_of(frame) for child in ("B5", "B6") for frame in setting.brokers[child].all(Message)
    ]
    assert texts == [b"<f><i><t>7</t></i></f>", b"<f><i><p>7</p></i></f>"]


def test_a_message_reflects_what_its_needs_became_upward() -> None:
    setting = open_setting()
    b1, b5 = setting.brokers["B1"], setting.brokers["B5"]
    b5.send("B1", delta("/f"))
    b5.send("B1", needs(TITLES, number=3))
    b5.send("B1", needs(OTHERS, number=4))
    assert [frame.number for frame in b1.take(NeedsDelta)] == [3, 4]
    for reflects in (2, 3, 4):
        b1.send("B1", message(reflects, reflects=reflects))
    assert [frame.reflects for frame in b5.take(Message)] == [2, 3, 4]
    setting.restart()
    b1.send("B1", message(5, reflects=3))
    b1.send("B1", message(6, reflects=0))
    assert [frame.reflects for frame in b5.take(Message)] == [3, 4]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_lacks_the_new_needs_keeps_what_the_former_ones_were(restarted: bool) -> None:
    setting = open_setting()
    b1, b5 = setting.brokers["B1"], setting.brokers["B5"]
    b5.send("B1", delta("/f/i"))
    b5.send("B1", needs(TITLES, number=3))
    b5.send("B1", needs(OTHERS, number=4))
    b5.send("B1", needs(number=5, removed=(TITLES,)))
    assert [frame.number for frame in b1.take(NeedsDelta)] == [3, 4, 5]
    if restarted:
        setting.restart()
    cut_above = b'<f><i k="a"><t>A</t></i></f>'  # by change 3: without what OTHERS needs
    b1.send("B1", message(1, reflects=3, xml=cut_above))
    b1.send("B1", message(2, reflects=5))
    former, new = b5.take(Message)
    assert (text_of(former), former.reflects) == (cut_above, 3)
    assert (text_of(new), new.reflects) == (b'<f><i k="b"><u>2</u></i></f>', 5)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_profile_takes_part_when_a_message_reflects_it(restarted: bool) -> None:
    """Whatever is told of others meanwhile."""
    setting = open_setting()
    setting.place(TITLES)
    setting.place(OTHERS, "p2")
    if restarted:
        setting.restart()
    peer = subscriber(setting)
    for number, reflects in enumerate((2, 3, 0), 1):
        setting.brokers["B1"].send("B1", message(number, reflects=reflects))
    assert [frame.number for frame in peer.take(Delivery)] == [2, 3]


@pytest.mark.parametrize("restarted", [False, True])
def test_messages_of_before_a_change_are_answered_by_the_former_text(restarted: bool) -> None:
    setting = open_setting()
    setting.place(TITLES)
    asker = setting.beside.peer("client", "asker")
    asker.ask("profile.update", profile="p1", text=OTHERS)
    assert [frame.number for frame in setting.brokers["B1"].take(NeedsDelta)] == [3, 4, 5]
    if restarted:
        setting.restart()
    peer = subscriber(setting)
    for number, reflects in enumerate((2, 3, 4, 5, 0), 1):
        setting.brokers["B1"].send("B1", message(number, reflects=reflects))
    assert results(peer) == [[TITLE_OF_A], [TITLE_OF_A], [OTHER_OF_B], [OTHER_OF_B]]


def test_the_first_that_a_profile_gets_may_be_by_its_former_text() -> None:
    """Also when its user has never been there."""
    setting = open_setting()
    setting.place(TITLES)
    setting.beside.peer("client", "asker").ask("profile.update", profile="p1", text="/f/none")
    setting.brokers["B1"].send("B1", message(1, reflects=3))
    setting.restart()
    assert results(subscriber(setting)) == [[TITLE_OF_A]]


def test_former_texts_are_kept_up_to_a_bound_and_go_with_their_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(former_versions, "FORMER_MAX", 5)
    setting = open_setting()
    setting.place(TITLES)
    asker = setting.beside.peer("client", "asker")

    def stored() -> int:
        return sum(space == FORMER.space for space, _ in setting.beside.rows)

    for number in range(8):
        asker.ask("profile.update", profile="p1", text=(OTHERS, TITLES)[number % 2])
    assert stored() == 5
    statistics = setting.core.query.transformation.statistics()
    assert (statistics.former_versions, statistics.former_versions_forgotten) == (5, 3)
    setting.restart()
    setting.beside.peer("client", "asker").ask("profile.remove", profile="p1")
    assert stored() == 0


def test_what_a_child_cannot_read_reflects_the_same_when_it_is_sent_again() -> None:
    setting = open_setting()
    b5 = setting.brokers["B5"]
    b5.send("B1", delta("/f"))
    b5.send("B1", needs(TITLES, number=3))
    setting.brokers["B1"].send("B1", message(1, reflects=0))
    (cut,) = b5.take(Message)
    back = Undecoded("B1", "s1", 1, cut.format, cut.hops, cut.payload, cut.reflects)
    b5.send("B1", back)
    assert [again.reflects for again in b5.take(Message)] == [3]


def test_the_root_cuts_what_is_published() -> None:
    setting = Setting(CUTTING)
    setting.announce(root="B4")
    setting.brokers["B5"].send("B1", needs(TITLES, number=2))
    setting.brokers["B5"].send("B1", NeedsDelta("B1", 3, [], [EVERYTHING.text]))
    setting.brokers["B5"].send("B1", delta("/f"))
    setting.children_ready(root="B4")
    source = setting.beside.peer("source", "s1")
    source.send("s1", Publish("s1", "text", FEED))
    (cut,) = setting.brokers["B5"].take(Message)
    assert cut.reflects == 3
    assert b"<u>" not in text_of(cut)


def test_what_is_no_need_is_refused() -> None:
    setting = open_setting()
    setting.brokers["B5"].send("B1", NeedsDelta("B1", 2, ["nonsense"], []))
    assert setting.core.statistics().unexpected == {"needs-refused": 1}
