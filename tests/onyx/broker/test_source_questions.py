"""Questions to a source pass through its root broker, to those that may be asked by those who may
ask; whatever ends a question, nothing of it is left."""

from __future__ import annotations

import pytest

from formats.errors import Fault
from onyx.broker.messages.source_questions import OF_ASKER_MAX, SourceQuestions
from overlay import verbs
from overlay.access import Rule
from overlay.link.events import TimePassed
from overlay.link.frames import (
    QUESTIONS_BYTES_MAX,
    QUESTIONS_MAX,
    Response,
    SourceAnswered,
    SourceAsked,
)
from overlay.link.limits import LinkLimits
from tests.beside import Peer
from tests.onyx.broker.test_access_rules import NOT_ALL, Guarded, refused


class Asked(Guarded):
    """The process of s1 is there, and is asked by clients."""

    def __init__(self) -> None:
        super().__init__()
        self.wire = self.source("source/wire")
        self.ann = self.client("user/ann")

    @property
    def open(self) -> int:
        (questions,) = (
            part for part in self.core._agenda.parts if isinstance(part, SourceQuestions)
        )
        return questions.open

    def answer(self, body: bytes = b"", fault: Fault | None = None) -> SourceAsked:
        """The process answers its first question."""
        asked, *later = self.wire.take(SourceAsked)
        self.wire.got += later
        facts = {} if fault is None else fault.facts()
        self.wire.reply(SourceAnswered(asked.number, facts, body))
        return asked

    def pass_seconds(self, seconds: float) -> None:
        self.beside.now += seconds
        self.beside.tell(TimePassed())


def ask(peer: Peer, source: str = "s1", **more: object) -> Response | None:
    return peer.ask("source.ask", **{"source": source, "body": b"?", **more})


def last(peer: Peer) -> Response:
    return peer.all(Response)[-1]


def test_an_answer_and_a_fault_come_to_those_who_have_asked() -> None:
    setting = Asked()
    bob = setting.client("user/bob")
    assert ask(setting.ann, body=b"one") is ask(bob, body=b"two") is None
    asked = setting.answer(b"1"), setting.answer(fault=Fault("empty", "no", "a text", 3, 7))
    said = [(each.asker, each.writes, each.payload) for each in asked]
    assert said == [("user/ann", False, b"one"), ("user/bob", False, b"two")]
    assert last(setting.ann).ok and last(setting.ann).result == {"body": b"1"}
    assert refused(last(bob)) == "empty"
    assert last(bob).result["refusal"]["column"] == 7  # type: ignore[index]
    assert setting.open == 0 and not setting.wire.error


def test_to_ask_takes_subscribe_and_to_write_publish() -> None:
    setting = Asked()
    wire = setting.client("source/wire")
    assert refused(ask(setting.ann, writes=True)) == refused(ask(wire)) == "not-authorised"
    assert ask(wire, writes=True) is ask(setting.client("operator/root"), writes=True) is None
    setting.rules(Rule("user/bob", "publish", "s1"), base=NOT_ALL)
    assert refused(ask(setting.ann)) == "not-authorised"
    bob = setting.client("user/bob")
    assert ask(bob, writes=True) is None and refused(ask(bob)) == "not-authorised"
    assert [each.writes for each in setting.wire.all(SourceAsked)] == [True, True, True]


def test_who_cannot_be_asked_is_not() -> None:
    setting = Asked()
    assert refused(ask(setting.ann, "s9")) == "unknown-source"
    assert refused(ask(setting.ann, "s2")) == "source-away"
    large = bytes(verbs.QUESTION_BYTES_MAX + 1)
    assert refused(ask(setting.ann, body=large)) == "too-long"
    assert setting.open == 0 and not setting.wire.all(SourceAsked)


def test_a_source_of_a_former_release_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Asked()
    setting.wire.disconnect()
    with monkeypatch.context() as patched:
        patched.setattr("overlay.link.link_layer.FEATURES", frozenset())
        setting.wire.connect()
        assert refused(ask(setting.ann)) == "no-answers"


def test_a_source_that_takes_small_frames_gets_no_large_question() -> None:
    setting = Asked()
    setting.wire.disconnect()
    setting.wire.links._limits = LinkLimits(frame_bytes_max=64 * 1024)
    setting.wire.connect()
    assert refused(ask(setting.ann, body=bytes(64 * 1024))) == "too-long"
    assert ask(setting.ann) is None and setting.open == 1


def test_so_many_are_open_and_no_more() -> None:
    setting = Asked()
    for _ in range(OF_ASKER_MAX):
        assert ask(setting.ann) is None
    again = setting.beside.peer("client", "ann-2", principal="user/ann")
    assert refused(ask(setting.ann)) == refused(ask(again)) == "busy"
    others = [setting.client(f"user/u{n}") for n in range(QUESTIONS_MAX // OF_ASKER_MAX - 1)]
    for peer in others * OF_ASKER_MAX:
        assert ask(peer) is None
    assert refused(ask(setting.client("user/bob"))) == "busy"
    setting.answer()
    assert ask(setting.client("user/bob")) is None
    assert setting.open == QUESTIONS_MAX


def test_so_many_bytes_are_open_and_no_more() -> None:
    setting = Asked()
    most = verbs.QUESTION_BYTES_MAX
    for _ in range(QUESTIONS_BYTES_MAX // most):
        assert ask(setting.ann, body=bytes(most)) is None
    assert refused(ask(setting.ann)) == "busy"


def test_without_tls_each_connection_has_its_share() -> None:
    setting = Asked()
    for peer in (setting.beside.peer("client", name) for name in "ab"):
        for _ in range(OF_ASKER_MAX):
            assert ask(peer) is None
        assert refused(ask(peer)) == "busy"
    assert {each.asker for each in setting.wire.all(SourceAsked)} == {""}


def test_a_question_ends_with_the_connection_of_either_end() -> None:
    setting = Asked()
    bob = setting.client("user/bob")
    assert ask(setting.ann) is ask(bob) is None
    setting.ann.disconnect()
    assert setting.open == 1
    setting.answer(b"too late")
    setting.wire.disconnect()
    assert refused(last(bob)) == "source-lost" and setting.open == 0
    setting.wire.connect()
    setting.wire.reply(SourceAnswered(2, {}, b"of the connection before"))
    assert refused(last(bob)) == "source-lost" and not setting.wire.error


def test_a_question_ends_with_its_time() -> None:
    setting = Asked()
    assert ask(setting.ann, timeout=5.0) is None
    setting.pass_seconds(4.0)
    assert setting.open == 1
    setting.pass_seconds(1.0)
    assert refused(last(setting.ann)) == "timeout" and setting.open == 0
    setting.answer(b"too late")
    assert len(setting.ann.all(Response)) == 1


def test_a_process_answers_questions_of_its_own_source_alone() -> None:
    setting = Asked()
    other = setting.source("source/wire", "s2")
    assert ask(setting.ann) is None
    (asked,) = setting.wire.all(SourceAsked)
    other.reply(SourceAnswered(asked.number, {}, b"forged"))
    assert not setting.ann.all(Response)
    setting.ann.reply(SourceAnswered(asked.number, {}, b"forged"))
    assert setting.ann.error == "not-expected"


def test_a_fault_that_says_little_or_nonsense_is_one() -> None:
    setting = Asked()
    facts: tuple[dict[str, object], ...] = ({"code": 7}, {"x": 1}, {"reason": "why", "line": "1"})
    for fault in facts:
        assert ask(setting.ann) is None
        asked = setting.wire.take(SourceAsked)[-1]
        setting.wire.reply(SourceAnswered(asked.number, fault, b""))
        assert refused(last(setting.ann)) == "source-failed"


def test_an_answer_that_the_asker_cannot_take_is_refused() -> None:
    setting = Asked()
    setting.ann.disconnect()
    setting.ann.links._limits = LinkLimits(frame_bytes_max=64 * 1024)
    setting.ann.connect()
    assert ask(setting.ann) is None
    setting.answer(bytes(64 * 1024))
    assert refused(last(setting.ann)) == "too-long" and not setting.wire.error
