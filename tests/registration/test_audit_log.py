"""The table of verbs says what each changes: what operators change has a line each in the audit
log, and a verb that says that it changes nothing does so.  What was refused is there, within
bounds.  A log in which anything was altered or taken out is found not to be whole."""

from __future__ import annotations

import pytest
from msgspec import convert
from msgspec.structs import replace

from overlay.access import Right, Token
from overlay.answers import AuditEntry, AuditMark, AuditPage
from overlay.link.audit import ENTRIES_MAX, KINDS_MAX, PERIOD_SECONDS, digest_of, faults
from overlay.link.events import TimePassed
from overlay.link.frames import Audited, AuditMarks
from overlay.topology import to_toml
from overlay.verbs import TABLE, Asked, Effect
from registration.registration_core import RegistrationCore
from tests.beside import Beside
from tests.registration.test_access_control import Guarded, result, verbs
from tests.registration.test_leaving_brokers import CHAIN, RING
from tests.registration.test_registration_core import FIGURE4, Setting, refused

RULE = {"principal": "user/ann", "role": "publish", "scope": "s1"}
GRAPH = b"<urn:Cat> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Pet> ."
TOKEN = Token(
    "user/ann", Token.digest_of("a secret of thirty-two random bytes"), 60, [("own", "*")]
)
ISSUE = {"principal": "user/ann", "digest": TOKEN.digest, "seconds": 60, "only": [["own", "*"]]}
LINES: tuple[tuple[str, dict[str, object], str], ...] = (
    ("access.grant", RULE, "user/ann publish s1"),
    ("access.revoke", RULE, "user/ann publish s1"),
    ("token.issue", ISSUE, f"{TOKEN.id} of user/ann until 60, only own *"),
    ("token.revoke", {"token": TOKEN.id}, f"{TOKEN.id} of user/ann"),
    ("taxonomy.put", {"name": "pets", "text": GRAPH, "syntax": "text/turtle"}, "pets, 71 bytes"),
    ("taxonomy.remove", {"name": "pets"}, "pets"),
    ("topology.apply", {"text": to_toml(CHAIN)}, "version 1: - link A - D"),
    ("broker.drain", {"broker": "D"}, "D"),
    ("broker.drain", {"broker": "D", "stop": True}, "D stays"),
    ("broker.lost", {"broker": "D"}, "version 2: without D"),
)
OF_OPERATORS = (Right.OPERATE, Right.ADMIN)


def test_what_operators_change_has_a_line_each() -> None:
    setting = Setting(RING)
    root = setting.beside.peer("client", "operator-root", principal="operator/root")
    for verb, said, _ in LINES:
        if verb == "broker.lost":
            setting.brokers.pop("D").disconnect()
        if "dry_run" in verbs()[verb].asked.__struct_fields__:
            result(root.ask(verb, **said, dry_run=True))
        result(root.ask(verb, **said))
        if (verb, "stop" in said) != ("broker.drain", True):
            before = dict(setting.beside.rows)
            root.ask(verb, **said)
            assert setting.beside.rows == before, "idempotent"
    entries = result(setting.client.ask("audit.list"))["entries"]
    assert [entry[2:5] for entry in entries] == [["operator/root", v, line] for v, _, line in LINES]


def test_no_verb_of_operators_changes_something_in_silence() -> None:
    shared = {kind for kind in TABLE if kind.effect is Effect.SHARED}
    of_operators = {kind.verb for kind in shared if kind.right in OF_OPERATORS}
    assert of_operators == {verb for verb, _, _ in LINES}
    assert {kind.verb for kind in shared} - of_operators == {"source.update", "source.remove"}
    assert {kind.asked_of for kind in shared} == {Asked.asked_of}, "where the audit log is"
    for kind in TABLE:
        assert kind.effect is not Effect.OWN or kind.right not in OF_OPERATORS, kind.verb
        changes = kind.adds or kind.route.startswith(("PUT ", "DELETE "))
        assert not changes or kind.effect is not Effect.NONE, kind.verb


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_a_verb_that_changes_nothing_leaves_the_store_as_it_is(verb: str) -> None:
    asked = verbs()[verb].asked
    setting = Guarded()
    setting.register(setting.wire)
    profile = result(setting.add(setting.ann))["profile"]
    setting.root.ask("taxonomy.put", name="pets", text=GRAPH, syntax="text/turtle")
    named = {"source": "news", "profile": profile, "profiles": [profile], "name": "pets"}
    named |= {"broker": "B1", "id": "letter"}
    before = dict(setting.beside.rows)
    if asked.effect is Effect.NONE:
        said = {name: named[name] for name in named if name in asked.__struct_fields__}
        setting.root.ask(verb, **said)
        assert setting.beside.rows == before


def entries_of(setting: Setting) -> list[AuditEntry]:
    answer = setting.client.ask("audit.list")
    assert answer is not None and answer.ok
    return convert(answer.result, AuditPage).entries


def test_what_an_operator_changes_of_a_user_is_noted_by_the_row_of_the_verb() -> None:
    setting = Guarded()
    added = result(setting.add(setting.root, user="ann"))["profile"]
    setting.root.ask("profile.add_many", texts=["/a", "/b"], user="ann")
    setting.root.ask("profile.set", profile=added, near=True)
    setting.root.ask("profile.set", profile=added, near=True)  # it changes nothing
    setting.root.ask("plan.auto", on=False)
    assert refused(setting.root.ask("profile.set", profile="p9")) == "unknown-profile"
    setting.add(setting.root)
    setting.add(setting.ann)
    assert [(entry.what, entry.detail) for entry in entries_of(setting)] == [
        ("profile.add", 'user "ann", text "/a"; of "user/ann"'),
        ("profile.add_many", 'user "ann", texts "/a" "/b"; of "user/ann"'),
        ("profile.set", f'profile "{added}", near True; of "user/ann"'),
        ("plan.auto", "on False"),
    ], "and nothing of what is one's own"


def test_brokers_tell_what_was_changed_and_refused_there() -> None:
    setting = Guarded()
    broker = setting.brokers["B1"]
    broker.send("registration", Audited("operator/root", "profile.remove", "profile p1", False))
    broker.send("registration", Audited("user/eve", "dump", "refused: not-authorised", True))
    assert [(e.who, e.what, e.detail, e.refused) for e in entries_of(setting)] == [
        ("operator/root", "profile.remove", "profile p1 (at B1)", False),
        ("user/eve", "dump", "refused: not-authorised (at B1)", True),
    ]


def test_brokers_are_told_the_last_digests_again_and_again_and_once_each() -> None:
    setting = Guarded()
    setting.root.ask("access.grant", **RULE)
    setting.ann.ask("access.revoke", **RULE)
    for _ in range(2):
        setting.beside.tell(TimePassed())
    told = [(entry.number, digest_of(entry), entry.refused) for entry in entries_of(setting)]
    for broker in setting.brokers.values():
        assert [frame.marks for frame in broker.take(AuditMarks)] == [told]
    broker.disconnect()
    broker.connect()
    setting.beside.tell(TimePassed())
    assert [frame.marks for frame in broker.take(AuditMarks)] == [told]


def test_a_flood_of_refusals_leaves_few_entries_and_all_changes() -> None:
    setting = Guarded()
    setting.root.ask("access.grant", **RULE)
    verbs_asked = sorted(verb for verb, each in verbs().items() if each.asked.right in OF_OPERATORS)
    peers = [setting.known(f"user/u{number}") for number in range(8)]
    for _ in range(3):
        for peer in peers:
            for verb in verbs_asked:
                assert refused(peer.ask(verb)) == "not-authorised"
    asked = 3 * len(peers) * len(verbs_asked)
    for seconds in (0.0, PERIOD_SECONDS, 0.0):
        setting.beside.now += seconds
        setting.beside.tell(TimePassed())
    setting.client = setting.known("operator/later")
    change, *rest = entries_of(setting)
    assert change.what == "access.grant" and len(rest) == 2 * (KINDS_MAX + 1)
    said = [entry.detail.split()[1] for entry in rest if "more" in entry.detail]
    assert sum(int(count.replace(",", "")) for count in said) + KINDS_MAX + 1 == asked


def test_new_lines_of_the_list_of_certificates_are_entries_once() -> None:
    lists: dict[str, list[str]] = {"cert.issue": ["a1 2027 user/ann"], "cert.revoke": []}
    rows: list[tuple[str, str, bytes]] = []
    for said in (("a2 2027 user/bob",), (), ("a3 2027 user/eve",)):
        core = RegistrationCore(
            *(FIGURE4, FIGURE4.registration[0].id, "run", rows), certificates=lambda: lists
        )
        beside = Beside("registration/R1", core)
        beside.tell(TimePassed())
        lists["cert.issue"] += said
        lists["cert.revoke"] = ["a1"]
        beside.tell(TimePassed())
        rows = [*rows, *beside.stored()]
    client = beside.peer("client", "c", principal="operator/root")
    found = convert(result(client.ask("audit.list")), AuditPage).entries
    assert [(entry.what, entry.detail.split()[0]) for entry in found] == [
        ("cert.issue", "a1"),
        ("cert.issue", "a2"),
        ("cert.revoke", "a1"),
        ("cert.issue", "a3"),
    ]
    assert {entry.who for entry in found} == {"authority"}


# --- whole or not ---------------------------------------------------------------------------


def log_of(changes: int, refusals: int) -> list[AuditEntry]:
    """A log as it is made; its last entries are refusals."""
    entries: list[AuditEntry] = []
    before = {False: "", True: ""}
    for number in range(1, changes + refusals + 1):
        refused = number > changes
        entry = AuditEntry(
            *(number, number, "operator/root", "access.grant", f"rule {number}"),
            refused=refused,
            before=before[refused],
        )
        before[refused] = digest_of(entry)
        entries.append(entry)
    return entries


def marks_of(entries: list[AuditEntry], *numbers: int) -> dict[str, list[AuditMark]]:
    found = {entry.number: entry for entry in entries}
    return {"B1": [AuditMark(n, digest_of(found[n]), found[n].refused) for n in numbers]}


def made_anew(entries: list[AuditEntry]) -> list[AuditEntry]:
    """With digests that fit again, as whoever knows the format can make them."""
    made: list[AuditEntry] = []
    before = {False: "", True: ""}
    for entry in entries:
        made.append(replace(entry, before=before[entry.refused]))
        before[entry.refused] = digest_of(made[-1])
    return made


def test_a_log_as_it_was_made_is_whole() -> None:
    entries = log_of(6, 3)
    assert not [*faults(entries, marks_of(entries, *range(1, 10)))]
    assert not [*faults([], {"B1": []})]
    of_before = [replace(entry, before="") for entry in entries[:3]]
    assert not [*faults(of_before, {})], "as former releases wrote it"


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("number", range(1, 4))
def test_an_entry_that_was_altered_or_taken_out_is_found(number: int, refused: bool) -> None:
    whole = log_of(3, 3)
    place = number - 1 + 3 * refused
    marks = marks_of(whole, 3, 6)
    altered = replace(whole[place], detail="another rule")
    for entries in (
        [*whole[:place], *whole[place + 1 :]],
        [*whole[:place], altered, *whole[place + 1 :]],
    ):
        (fault, *_) = faults(entries, marks)
        assert "entry" in fault or "entries" in fault
        assert [*faults(made_anew(entries), marks)], "brokers were told of the last one"
        if number < 3:
            assert [*faults(entries, {})], "by the chain alone"


def test_a_log_that_is_bounded_has_no_beginning() -> None:
    whole = log_of(ENTRIES_MAX + 3, 0)
    assert not [*faults(whole[3:], marks_of(whole, 1, 5, len(whole)))]
    marks = marks_of(whole, 5, len(whole))
    assert [*faults(whole[4:], marks)] == ["entries before 5 are missing"]
    assert len([*faults(whole[3:-1], marks)]) == 2, "its last one, too"
