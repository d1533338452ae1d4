"""What the registration service makes of sources that are updated, removed, and called by name."""

from __future__ import annotations

from typing import Any

from overlay.link.frames import (
    Response,
    SourceAnnounced,
    SourceReady,
    SourceReleased,
    SourceRemoved,
)
from tests.beside import Peer
from tests.registration.test_access_control import Guarded
from tests.registration.test_registration_core import Setting, refused

NEWS, OLD_NEWS = b"<!ELEMENT news (#PCDATA)>", b"<!ELEMENT nitf (#PCDATA)>"


def answered(answer: Response | None) -> dict[str, Any]:
    assert answer is not None and answer.ok, answer
    return dict(answer.result)


def registered(setting: Setting, name: str, client: Peer | None = None, **said: object) -> str:
    """The id of a source that is ready."""
    client = client or setting.client
    known = client.ask("source.register", name=name, **said)
    if known is None:
        told = {peer: peer.take(SourceAnnounced) for peer in setting.brokers.values()}
        ((root, (announced,)),) = [(peer, frames) for peer, frames in told.items() if frames]
        root.send("registration", SourceReady(announced.source))
        return str(announced.source)
    return str(answered(known)["source"])


def root_of(setting: Setting, source: str) -> Peer:
    return setting.brokers[str(answered(setting.client.ask("source.show", source=source))["root"])]


def test_an_update_is_answered_when_it_is_in_force_and_the_next_one_waits() -> None:
    setting = Setting()
    source = registered(setting, "wire", schema_name="a.dtd", schema=OLD_NEWS)
    root = root_of(setting, source)
    assert setting.request("q1", "source.update", source="wire", rate=7.0, size=99) is None
    (first,) = root.take(SourceAnnounced)
    assert (first.source, first.version, first.rate, first.payload) == (source, 2, 7.0, OLD_NEWS)
    new = {"schema_name": "b.dtd", "schema": NEWS, "validate": "reject"}
    assert setting.request("q2", "source.update", source=source, **new) is None
    assert not root.take(SourceAnnounced), "the first is not in force yet"
    setting.restart()
    root.send("registration", SourceReady(source, 2))
    assert setting.core.catalog.sources[source].size == 99
    again = answered(setting.request("q1", "source.update", source="wire", rate=7.0, size=99))
    assert again["version"] == 3 and again["changed"] == []
    (second,) = root.take(SourceAnnounced)
    assert (second.version, second.payload, second.validation) == (3, NEWS, "reject")
    root.send("registration", SourceReady(source, 3))
    assert answered(setting.client.ask("source.show", source=source))["schema_name"] == "b.dtd"


def test_profiles_that_match_nothing_any_more_are_named() -> None:
    setting = Setting()
    source = registered(setting, "wire", schema_name="a.dtd", schema=OLD_NEWS)
    for request, text in (("p1", "/nitf"), ("p2", "//news"), ("p3", "/other")):
        setting.request(request, "profile.add", text=text, user="ann")
    asked = {"source": source, "schema_name": "b.dtd", "schema": NEWS}
    assert setting.request("q", "source.update", **asked) is None
    root_of(setting, source).send("registration", SourceReady(source, 2))
    said = answered(setting.client.answer("q"))
    assert (said["changed"], said["looked_at"]) == (["schema"], 3)
    ((profile, texts),) = said["warnings"]
    assert said["warned"] == 1 and profile == "p1" and "b.dtd" in texts[0]


def test_profiles_whose_results_need_what_is_gone_are_named() -> None:
    """Only what was there before, and only where the profile still matches."""
    setting = Setting()
    common = b"<!ELEMENT h EMPTY><!ELEMENT p EMPTY><!ATTLIST n id CDATA ''>"
    before = common + b"<!ELEMENT n (h, p?)><!ATTLIST n x CDATA ''>"
    now = common + b"<!ELEMENT n (h)>"
    source = registered(setting, "wire", schema_name="a.dtd", schema=before)
    for request, text in (
        ("p1", "for $n in /n return <r>{$n/h}{$n/@id}</r>"),
        ("p2", "for $n in /n where $n/h or $n/@x = '1' return <r>{$n/h}{$n//p}</r>"),
        ("p3", "for $n in /n return <r>{$n/q}</r>"),
        ("p4", "/n/p"),
        ("p5", "<r>{/n/h}{/n/p}</r>"),
        ("p6", "/n"),
    ):
        setting.request(request, "profile.add", text=text, user="ann")
    asked = {"source": source, "schema_name": "b.dtd", "schema": now}
    assert setting.request("q", "source.update", **asked) is None
    root_of(setting, source).send("registration", SourceReady(source, 2))
    said = answered(setting.client.answer("q"))
    warned = {
        profile: [each.split(":")[0] for each in texts] for profile, texts in said["warnings"]
    }
    gone = "it can match no message that follows b.dtd"
    assert warned == {
        "p2": ["its results need /n//p", "its results need /n/@x"],
        "p4": [gone],
        "p5": ["its results need /n/p"],
    }
    assert said["warned"] == 3


def test_a_removed_source_is_gone_when_its_root_broker_has_let_go_of_it() -> None:
    setting = Setting()
    source = registered(setting, "wire", key="k")
    root = root_of(setting, source)
    assert setting.request("q1", "source.remove", source="wire") is None
    assert root.take(SourceRemoved) == [SourceRemoved(source)]
    assert refused(setting.client.ask("source.show", source="wire")) == "unknown-source"
    (listed,) = answered(setting.client.ask("source.list"))["sources"]
    assert listed["removed"] and not listed["ready"]
    setting.restart()
    assert root.take(SourceRemoved) == [SourceRemoved(source)], "it may not have heard of it"
    root.send("registration", SourceReleased(source, 41))
    assert answered(setting.request("q1", "source.remove", source="wire")) == {"source": source}
    assert answered(setting.client.ask("source.list"))["sources"] == []
    assert refused(setting.request("q2", "source.remove", source="wire")) == "unknown-source"
    assert registered(setting, "wire", key="k") != source


def test_who_has_changed_a_source_is_in_the_audit_log_once() -> None:
    setting = Setting()
    source = registered(setting, "wire")
    for _ in range(2):  # the same again is no other change
        setting.request("q1", "source.update", source="wire", rate=7.0)
    for _ in range(2):
        setting.request("q2", "source.remove", source=source)
    entries = answered(setting.client.ask("audit.list"))["entries"]
    assert [entry[2:5] for entry in entries] == [
        ["-", "source.update", f"{source}: rate: version 2"],
        ["-", "source.remove", f"{source} (wire)"],
    ]


def test_a_name_of_several_is_refused_with_their_ids() -> None:
    setting = Setting()
    first, second = registered(setting, "wire"), registered(setting, "wire")
    answer = setting.client.ask("source.show", source="wire")
    assert refused(answer) == "ambiguous-name"
    assert answer is not None and f"{first}, {second}" in answer.result["message"]
    third = registered(setting, first)
    assert answered(setting.client.ask("source.show", source=first))["source"] == first != third


def test_to_ensure_a_source_finds_it_and_changes_what_is_otherwise() -> None:
    setting = Setting()
    said = {"rate": 2.0, "location": [1, 2], "schema_name": "a.dtd", "schema": NEWS}
    source = registered(setting, "wire", ensure=True, **said)
    assert registered(setting, "wire", ensure=True, **said) == source
    asked = {"name": "wire", "ensure": True, **said}
    assert setting.request("q1", "source.register", **{**asked, "rate": 3.0}) is None
    (told,) = root_of(setting, source).take(SourceAnnounced)
    assert (told.version, told.rate) == (2, 3.0)
    root_of(setting, source).send("registration", SourceReady(source, 2))
    assert answered(setting.client.answer("q1"))["changed"] == ["rate"]
    (entry,) = answered(setting.client.ask("audit.list"))["entries"]
    assert entry[3:5] == ["source.update", f"{source}: rate: version 2"]
    other = setting.request("q2", "source.register", **asked, base="http://a.example/")
    assert refused(other) == "other-content"
    assert other is not None and "another base" in other.result["message"]
    unnamed = setting.request("q3", "source.register", ensure=True)
    assert refused(unnamed) == "bad-argument"


def test_only_the_owner_or_an_operator_changes_a_source() -> None:
    setting = Guarded()
    operator, owner, other = setting.root, setting.wire, setting.known("source/other")
    source = registered(setting, "wire", owner)
    grant = {"principal": "source/other", "role": "publish", "scope": source}
    assert answered(operator.ask("access.grant", **grant))["changed"]
    for verb in ("source.update", "source.remove"):
        assert refused(other.ask(verb, source="wire", rate=3)) == "not-authorised"
    assert owner.ask("source.update", source="wire", rate=3) is None
    for root in setting.brokers.values():
        for frame in root.take(SourceAnnounced):
            root.send("registration", SourceReady(frame.source, frame.version))
    assert operator.ask("source.remove", source="wire") is None
