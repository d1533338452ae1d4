"""A broker tells the registration service what operators change and whom it refuses, and keeps the
digests that it is told, also those that contradict each other."""

from __future__ import annotations

import pytest

from overlay.access import Right
from overlay.link.audit import KINDS_MAX, PERIOD_SECONDS
from overlay.link.events import TimePassed
from overlay.link.frame import AUDIT, FEATURES
from overlay.link.frames import Audited, AuditMarks
from overlay.link.link_layer import LinkLayer
from overlay.verbs import TABLE, Asked, Effect
from tests.onyx.broker.test_access_rules import Guarded

ALL = ["p1", "p2"]
CHANGES = {
    "profile.update": ({"profile": "p1", "text": "/m"}, 'profile "p1", text "/m"'),
    "profile.policy": (
        {"profile": "p1", "policy": {"attempts_max": 3}},
        'profile "p1", policy',
    ),
    "profile.update_many": (
        {"profiles": ALL, "texts": ["/k", "/k"]},
        'profiles "p1" "p2", texts "/k" "/k"',
    ),
    "profile.remove": ({"profile": "p1"}, 'profile "p1"'),
    "profile.remove_many": ({"profiles": ALL}, 'profiles "p1" "p2"'),
}
OTHERS = {"source.ask", "dead.replay", "dead.drop"}


def test_each_verb_that_changes_things_of_users_is_one_of_these() -> None:
    own = {
        kind.verb for kind in TABLE if kind.effect is Effect.OWN and kind.asked_of != Asked.asked_of
    }
    assert own == {*CHANGES, *OTHERS}


def test_what_an_operator_changes_of_a_users_is_told_and_what_users_change_is_not() -> None:
    setting = Guarded()
    root, ann = setting.client("operator/root"), setting.client("user/ann")
    for verb, (arguments, _) in CHANGES.items():
        answer = root.ask(verb, **arguments)
        assert answer is not None and answer.ok, answer
    told = setting.registration.take(Audited)
    assert [frame.what for frame in told] == [*CHANGES]
    for frame, (_, line) in zip(told, CHANGES.values(), strict=True):
        assert frame.detail.startswith(line) and frame.detail.endswith('; of "user/ann"')
    assert {(frame.who, frame.refused) for frame in told} == {("operator/root", False)}
    setting.place("/m", "p3")
    assert ann.ask("profile.remove", profile="p3")
    assert not setting.registration.take(Audited)


def test_whom_it_refuses_is_told_within_bounds() -> None:
    setting = Guarded()
    eve = setting.client("user/eve")
    for _ in range(3):
        eve.ask("dump")
        eve.ask("profile.remove", profile="p1")
    told = setting.registration.take(Audited)
    assert [(frame.what, frame.detail) for frame in told] == [
        ("dump", "refused: not-authorised"),
        ("profile.remove", "refused: not-authorised"),
    ]
    for number in range(KINDS_MAX + 20):
        setting.client(f"user/u{number}").ask("dump")
    assert len(setting.registration.take(Audited)) == KINDS_MAX - 2 + 1, "others as one"
    setting.beside.tell(TimePassed())
    setting.beside.now += PERIOD_SECONDS
    setting.beside.tell(TimePassed())
    setting.registration.connect()  # it was silent for that long
    details = [frame.detail for frame in setting.registration.take(Audited)]
    assert details == [
        *("refused 2 times more: not-authorised", "refused 2 times more: not-authorised"),
        "refused 21 times more: several codes",
    ]


def test_a_registration_service_of_before_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinkLayer, "features", lambda self, peer: FEATURES - {AUDIT})
    setting = Guarded()
    setting.client("user/eve").ask("dump")
    assert not setting.registration.take(Audited)


def test_digests_that_were_told_stay_whatever_is_told_later() -> None:
    setting = Guarded()
    for marks in ([(7, "a", False), (9, "b", True)], [(7, "a", False)], [(7, "c", False)]):
        setting.registration.reply(AuditMarks(marks))
    kept = [[7, "a", False], [9, "b", True], [7, "c", False]]
    root = setting.client("operator/root")
    answer = root.ask("audit.marks")
    assert answer is not None and answer.result == {"marks": kept}
    for number in range(1_000):
        setting.registration.reply(AuditMarks([(number + 10, "d", False)]))
    answer = root.ask("audit.marks")
    assert answer is not None and len(answer.result["marks"]) == 256
    assert answer.result["marks"][-1] == [1_009, "d", False]
    rows = setting.beside.stored()
    assert len([space for space, *_ in rows if space == "audit-mark"]) == 256
    eve = setting.client("user/eve").ask("audit.marks")
    assert eve is not None and eve.result["code"] == "not-authorised"
    assert {kind.right for kind in TABLE if kind.verb.startswith("audit.")} == {Right.ADMIN}
