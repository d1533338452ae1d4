"""The table of verbs says what each changes: what operators change has a line each in the audit
log, and a verb that says that it changes nothing does so."""

from __future__ import annotations

import pytest

from overlay.access import Right, Token
from overlay.topology import to_toml
from overlay.verbs import TABLE, Asked, Effect
from tests.registration.test_access_control import Guarded, result, verbs
from tests.registration.test_leaving_brokers import CHAIN, RING
from tests.registration.test_registration_core import Setting

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
    assert [entry[2:] for entry in entries] == [["operator/root", v, line] for v, _, line in LINES]


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
