"""What operators do and what others try is in the audit log of a real network, and a log from which
somebody takes an entry with the product's own store is found not to be whole."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from onyx.blocking import User
from onyx.cli.audit import _marks
from onyx.data_directory import DataDirectory
from onyx.identity.known_networks import use_credentials
from overlay.answers import AuditMark
from overlay.link.events import Delete
from overlay.link.principal import Principal
from overlay.link.store import Store
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.onyx.test_cli_network import Shell
from tests.onyx.test_stranger import authority_of, issued

GRANTS = [("user/ann", "publish", scope) for scope in ("s1", "s2", "s3")]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def without(file: Path, number: int) -> None:
    """A change less, as its own store takes it: the file is whole."""
    with Store(file) as store:
        keys = [key for _, key, _ in store.load(["audit"])]
        assert keys[number].endswith(str(number + 1)) or number < 0
        store.commit([Delete("audit", keys[number])])


def test_what_was_done_and_tried_is_there_and_what_was_taken_out_is_missed(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "audited.toml"
    data = tmp_path / "data"
    file.write_text(small_topology_text(data, brokers=1), encoding="utf-8")

    running = RunningProcess.start(file)
    monkeypatch.setenv("ONYX_REGISTRATION", running.registration)
    for grant in GRANTS:
        shell.lines("access", "grant", *grant)
    authority = authority_of(running)
    eve = issued(authority, Principal.parse("user/eve"), tmp_path)
    with use_credentials(eve), User(running.registration) as user:
        own = user.add_profile("//eve")
        for words in (("access", "list"), ("dead", "list", "--user", "ann"), ("status",)):
            assert shell.run(*words, "--credentials", eve) == 77
    shell.lines("profile", "remove", own.id)
    (serial,) = {each.serial for each in authority.issued() if str(each.principal) == "user/eve"}
    authority.revoke({serial})
    wanted = {
        ("operator", "profile.remove"),
        ("authority", "cert.issue"),
        ("authority", "cert.revoke"),
        ("user", "access.list"),
    }
    until = monotonic() + 300
    seen: set[tuple[str, str]] = set()
    last = told = -1
    while not (wanted <= seen and told == last):  # once a second something is told
        assert monotonic() < until, seen
        entries = shell.objects("audit", "list")
        last = entries[-1]["number"]
        seen = {(each["who"].partition("/")[0], each["what"]) for each in entries}
        (verified,) = shell.objects("audit", "verify")
        told = verified["held_against"]["B1"]
    refused = {entry["what"] for entry in entries if entry["refused"]}
    assert refused >= {"access.list", "dead.list"}
    assert shell.lines("audit", "verify")[0].startswith("whole: ")
    assert running.stop() == 0

    store = DataDirectory(data).store_file("registration")
    for taken in (1, -1):
        without(store, taken)
        running = RunningProcess.start(file)
        monkeypatch.setenv("ONYX_REGISTRATION", running.registration)
        assert shell.run("store", "verify", store.parent) == 0, "by itself the store is whole"
        assert shell.run("audit", "verify") == 74
        assert "does not follow entry" in shell.out
        assert running.stop() == 0
    assert "is missing" in shell.out, "brokers were told of the last one"


def test_a_log_is_read_for_the_digests_of_entries() -> None:
    digest = 64 * "a"
    lines = [
        f"2027 INFO audit: operator/root: access.grant: a b (change 7, {digest})",
        f'{{"said": "audit: user/eve: dump: refused (refusal 9, {digest})"}}',
        f"audit: user/x: dump: (change 1, {digest}) and more",
        "something else",
    ]
    marks = [AuditMark(7, digest, False), AuditMark(9, digest, True)]
    assert [*_marks(lines)] == marks
