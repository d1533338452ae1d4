"""Thousands of profiles in one request: none lost, none twice."""

from __future__ import annotations

from itertools import count
from typing import cast

import pytest

from overlay.access import Access, AccessTable
from overlay.link.arrival import Arrival
from overlay.link.events import Action, Event
from overlay.link.frames import (
    PlaceProfiles,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    Request,
    Response,
)
from overlay.link.link_layer import LinkLayer
from overlay.link.node import Core
from overlay.link.part import Agenda
from overlay.link.request_server import Result
from overlay.link.row_log import RowLog
from overlay.topology import parse_topology
from overlay.verbs import ProfileAddMany
from registration import batch_requests
from registration.batch_requests import WARNED_AT_ONCE, BatchRequests
from registration.catalog import Catalog
from registration.new_profiles import NewProfiles
from registration.placement_by_plan import PlanPlacement
from tests.beside import Peer
from tests.registration.test_registration_core import Setting, refused
from yfilter.matcher import check_profile

SMALL = parse_topology(
    """
name = "small"
[registration]
id = "R1"
listen = "r1:1"
[[broker]]
id = "B1"
listen = "b1:1"
capacity = 2500
[limits]
profiles_max = 2400
""",
    "small",
)
TEXTS = [f"/a/b{number}" for number in range(2_000)]


@pytest.fixture
def setting() -> Setting:
    return Setting(SMALL)


def given(broker: Peer) -> list[tuple[str, str, str]]:
    """(id, user, text) of all that a broker was given."""
    return [profile for frame in broker.all(PlaceProfiles) for profile in frame.profiles]


def placed(setting: Setting, *, live: bool = False) -> None:
    """The broker takes what it was given."""
    broker = setting.brokers["B1"]
    for frame in broker.take(PlaceProfiles):
        ids = [profile for profile, _, _ in frame.profiles]
        broker.send("registration", ProfilesPlaced(ids))
        if live:
            broker.send("registration", ProfilesLive([(profile, 1) for profile in ids]))


def answer(setting: Setting, request: str) -> Result | None:
    found = setting.client.answer(request)
    assert found is None or found.ok, found
    return None if found is None else dict(found.result)


def test_many_go_to_their_host_in_few_frames_and_are_answered_together(setting: Setting) -> None:
    assert setting.request("q1", "profile.add_many", texts=TEXTS, user="ann") is None
    broker = setting.brokers["B1"]
    assert [len(frame.profiles) for frame in broker.all(PlaceProfiles)] == [128] * 15 + [80]
    assert given(broker) == [(f"p{n}", "ann", text) for n, text in enumerate(TEXTS, 1)]
    placed(setting)
    ids = [f"p{number}" for number in range(1, 2_001)]
    assert answer(setting, "q1") == {"profiles": ids, "refused": []}
    assert setting.request("q2", "profile.add_many", texts=["/a"], wait=True) is None
    placed(setting)
    assert answer(setting, "q2") is None
    setting.brokers["B1"].send("registration", ProfilesLive([("p2001", 1)]))
    assert answer(setting, "q2") == {"profiles": ["p2001"], "refused": []}


class Watched:
    """A core; how many texts it has checked in one call at most."""

    def __init__(self, core: Core, checked: list[str]) -> None:
        self.most = 0
        self._core = core
        self._checked = checked

    def handle(self, event: Event, now: float) -> list[Action]:
        before = len(self._checked)
        actions = self._core.handle(event, now)
        self.most = max(self.most, len(self._checked) - before)
        return actions


def test_texts_are_checked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def noted(text: str) -> None:
        checked.append(text)
        check_profile(text)

    monkeypatch.setattr(batch_requests, "check_profile", noted)
    thousandths = count()
    setting = Setting(SMALL, clock=lambda: next(thousandths) / 1_000)
    watched = setting.beside.core = Watched(setting.beside.core, checked)
    found = setting.request("q1", "profile.add_many", texts=[*TEXTS[:99], "/["])
    assert found is not None
    assert found.result["profiles"] == []
    assert [place for place, *_ in found.result["refused"]] == [99]
    assert len(checked) == 100
    assert 1 < watched.most < 10


def test_who_goes_while_texts_are_checked_adds_nothing() -> None:
    asked: list[Request] = []
    rows = RowLog()
    batches = BatchRequests(
        Catalog(rows),
        NewProfiles(Catalog(rows), cast("PlanPlacement", None), cast("LinkLayer", None), str),
        rows,
        lambda connection, request: asked.append(request),
        lambda connection, request, error: None,
        AccessTable(Access([])),
        lambda connection: None,
        lambda connection: False,
        lambda: True,
    )
    batches.use_topology(SMALL)
    agenda = Agenda([batches])
    first, second = (
        Request(request, "profile.add_many", {"texts": ["/a", "/b"]}) for request in ("q1", "q2")
    )
    for connection, request in ((1, first), (2, second)):
        texts = ProfileAddMany(texts=["/a", "/b"])
        assert batches.verbs[0].answer(connection, request, texts) is None
    agenda.work()
    assert agenda.working
    batches.gone(Arrival(1, "client/c", None))
    while agenda.working:
        agenda.work()
    assert asked == [second]


def test_each_has_a_user_of_its_own(setting: Setting) -> None:
    setting.client.ask("profile.add_many", texts=["/a", "/b"], users=["ann", "bob"])
    assert [user for _, user, _ in given(setting.brokers["B1"])] == ["ann", "bob"]


def test_a_repeated_batch_adds_nothing_even_when_its_profiles_are_gone(setting: Setting) -> None:
    setting.request("q1", "profile.add_many", texts=["/a", "/b"])
    setting.restart()
    assert setting.request("q1", "profile.add_many", texts=["/a", "/b"]) is None
    assert len(given(setting.brokers["B1"])) == 2
    placed(setting)
    first = answer(setting, "q1")
    assert first == {"profiles": ["p1", "p2"], "refused": []}
    setting.brokers["B1"].send("registration", ProfilesChanged([("p1", 2, None)]))
    setting.restart()
    again = setting.request("q1", "profile.add_many", texts=["/a", "/b"])
    assert again is not None and again.result == first
    setting.client.take(Response)
    other = setting.request("q1", "profile.add_many", texts=["/a", "/c"])
    assert refused(other) == "other-content"


def test_a_batch_with_a_bad_text_is_refused_whole_or_without_it(setting: Setting) -> None:
    texts = ["/a", "/a[", "/b"]
    result = setting.request("q1", "profile.add_many", texts=texts)
    assert result is not None and result.ok
    assert result.result["profiles"] == []
    ((place, code, message),) = result.result["refused"]
    assert (place, code) == (1, "profile-refused")
    assert "line 1, column 4" in message and "expected" in message
    assert given(setting.brokers["B1"]) == []
    for _ in range(2):
        setting.client.take(Response)
        setting.request("q2", "profile.add_many", texts=texts, skip_refused=True)
        placed(setting)
        found = answer(setting, "q2")
        assert found is not None and found["profiles"] == ["p1", "p2"]
        assert [place for place, *_ in found["refused"]] == [1]
    assert len(setting.client.ask("profile.list").result["profiles"]) == 2  # type: ignore[union-attr]


def test_of_a_batch_a_text_that_is_too_long_is_refused_alone(setting: Setting) -> None:
    texts = ["/a", f"/a[b = '{'x' * 70_000}']", "/c"]
    setting.request("q1", "profile.add_many", texts=texts, skip_refused=True)
    placed(setting)
    found = answer(setting, "q1")
    assert found is not None and found["profiles"] == ["p1", "p2"]
    ((place, code, reason),) = found["refused"]
    assert (place, code) == (1, "too-long")
    assert "70,010 characters; this network takes 65,536 (profile_length_max)" in reason


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"texts": []}, "bad-argument"),
        ({"texts": "/a"}, "bad-argument"),
        ({"texts": ["/a", 1]}, "bad-argument"),
        ({"texts": ["/a"] * 10_001}, "too-long"),
        ({"texts": ["/a" * 140_000]}, "too-long"),
        ({"texts": ["/a"], "users": ["ann", "bob"]}, "bad-argument"),
        ({"texts": ["/a"], "users": ["ä" * 200]}, "too-long"),
        ({"texts": ["/a"], "near": True}, "bad-argument"),
        ({"texts": ["/a"] * 2_401}, "too-many-profiles"),
    ],
)
def test_what_is_no_batch_is_refused(
    setting: Setting, arguments: dict[str, object], code: str
) -> None:
    assert refused(setting.request("q1", "profile.add_many", **arguments)) == code
    assert given(setting.brokers["B1"]) == []


def test_where_profiles_are_hosted(setting: Setting) -> None:
    setting.client.ask("profile.add_many", texts=["/a"])
    found = setting.client.ask("profile.find_many", profiles=["p1", "p7"])
    assert found is not None
    assert found.result == {"hosts": ["B1", ""], "addresses": {"B1": "b1:1"}}


def test_nobody_waits_for_profiles_that_are_gone(setting: Setting) -> None:
    setting.request("q1", "profile.add_many", texts=["/a", "/b"], wait=True)
    placed(setting)
    broker = setting.brokers["B1"]
    broker.send("registration", ProfilesLive([("p1", 1)]))
    broker.send("registration", ProfilesChanged([("p2", 2, None)]))
    assert answer(setting, "q1") == {"profiles": ["p1", "p2"], "refused": []}


def test_many_are_held_against_the_schemas_of_the_sources_some_at_a_time(setting: Setting) -> None:
    texts = ["/news", "/news/body", *["/news"] * WARNED_AT_ONCE]
    setting.request("q1", "profile.add_many", texts=texts)
    profiles = [f"p{number}" for number in range(1, len(texts) + 1)]

    def warnings(request: str) -> Result:
        found = setting.request(request, "profile.warnings", profiles=profiles)
        assert found is not None and found.ok
        return dict(found.result)

    schema = {"schema_name": "news.dtd", "schema": b"<!ELEMENT news EMPTY>"}
    setting.request("q2", "source.register", **schema)
    found = warnings("q3")
    assert found["looked_at"] == WARNED_AT_ONCE
    ((place, (warning,)),) = found["warnings"]
    assert (place, warning.partition(":")[0]) == (
        1,
        "it can match no message that follows news.dtd",
    )
    setting.request("q4", "source.register", name="anything")
    assert warnings("q5") == {"looked_at": len(texts), "warnings": []}
