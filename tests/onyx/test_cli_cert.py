"""``onyx cert`` on a data directory, and on one whose network runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from onyx import NotAuthenticated, User, launch, use_credentials
from onyx.cli.main import main
from onyx.clients import user_name
from onyx.identity import known_networks
from onyx.identity.authority import Authority, account
from onyx.registration_client import NetworkClient
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology

B1 = Principal("broker", "B1")


class Certs:
    """``onyx cert`` on a data directory."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capsys = capsys
        self.said = ""

    def run(self, *words: str) -> int:
        code = main(["cert", *words, "--data", str(self.data)])
        captured = self._capsys.readouterr()
        self.said = captured.out + captured.err
        return code

    def list(self, *words: str) -> list[dict[str, Any]]:
        assert self.run("list", "--json", *words) == 0
        return [json.loads(line) for line in self.said.splitlines()]


@pytest.fixture
def certs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Certs:
    Authority.make(tmp_path / "data" / "identity", "net")
    return Certs(tmp_path / "data", capsys)


def test_a_file_is_issued_for_its_owner_alone(certs: Certs, tmp_path: Path) -> None:
    file = tmp_path / "ann.pem"
    assert certs.run("issue", "user/ann", "--out", str(file)) == 0
    assert "onyx://net/user/ann, for 90 days" in certs.said
    assert Credentials(file).principal == Principal("user", "ann")
    assert file.stat().st_mode & 0o777 == 0o600
    (one,) = certs.list()
    assert (one["principal"], one["state"]) == ("user/ann", "good")


def test_a_profile_is_by_default_of_whoever_the_credentials_are(
    certs: Certs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "login")
    files = {name: tmp_path / f"{name[0]}.pem" for name in ("user/ann", "operator/root")}
    for name, file in files.items():
        certs.run("issue", name, "--out", str(file))
    for file, name in ((files["user/ann"], "ann"), (files["operator/root"], "login")):
        with use_credentials(file):
            assert user_name("127.0.0.1:7200,127.0.0.1:7201") == name


def test_a_network_is_found_where_its_account_has_started_it(
    certs: Certs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ONYX_REGISTRATION", "127.0.0.1:7200")
    issue = ["cert", "issue", "user/bob", "--out", str(tmp_path / "bob.pem")]
    assert main(issue) == 2
    assert "you have started no network at 127.0.0.1:7200" in capsys.readouterr().err
    operator = certs.data / "identity" / "operator.pem"
    known_networks.note([Address("127.0.0.1", 7200)], operator)
    assert main(issue) == 0
    assert Credentials(tmp_path / "bob.pem").principal == Principal("user", "bob")


def test_what_is_revoked_is_named_by_its_number_or_its_principal(
    certs: Certs, tmp_path: Path
) -> None:
    for name in ("ann", "ann", "bob"):
        certs.run("issue", f"user/{name}", "--out", str(tmp_path / "file.pem"))
    ann, _, bob = certs.list()
    assert certs.run("revoke", ann["serial"][:12]) == 0
    assert [one["state"] for one in certs.list("--all")] == ["revoked", "good", "good"]
    assert certs.run("revoke", "user/ann") == 0
    assert certs.list() == [bob]
    assert certs.run("revoke", "user/eve") == 2
    assert certs.run("revoke", "xyz") == 2


def test_who_is_kept_and_revoked_goes_on_with_another(certs: Certs) -> None:
    authority = Authority(certs.data / "identity")
    before = authority.keep(B1).read_bytes()
    assert certs.run("revoke", "broker/B1") == 0
    assert authority.file_of(B1).read_bytes() != before
    assert [one["principal"] for one in certs.list()] == ["broker/B1"]


def test_rotating_issues_anew_what_is_kept(certs: Certs) -> None:
    authority = Authority(certs.data / "identity")
    files = [authority.keep(B1), authority.keep(account())]
    before = [file.read_bytes() for file in files]
    assert certs.run("rotate", "broker/B1") == 0
    assert files[0].read_bytes() != before[0] and files[1].read_bytes() == before[1]
    assert certs.run("rotate") == 0
    assert files[1].read_bytes() != before[1]
    assert certs.run("rotate", "broker/B9") == 2


@pytest.mark.parametrize(
    "words",
    [["issue", "king/ann", "--out", "x"], ["issue", "ann", "--out", "x"], ["revoke", "user/a|b"]],
)
def test_a_principal_that_is_none_is_refused(certs: Certs, words: list[str]) -> None:
    assert certs.run(*words) == 2


def test_without_an_authority_there_is_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cert", "list", "--data", str(tmp_path)]) == 77
    assert "holds no authority of a network" in capsys.readouterr().err
    assert main(["cert", "list"]) == 2


async def test_a_running_network_takes_and_refuses_while_it_works(tmp_path: Path) -> None:
    """Everything is rotated, and the old ones of the processes revoked: links are made anew, no
    process ends, and what users have goes on."""
    data = tmp_path / "data"
    authority_of = data / "identity"
    async with launch(small_topology(data, brokers=2), write_line=lambda line: None) as network:
        pids = dict(network.pids)
        authority = Authority(authority_of)
        file = tmp_path / "ann.pem"
        file.write_bytes(authority.issue(Principal("user", "ann")))
        first = {one.serial for one in authority.issued()}
        async with User(network.registration, "operator") as user:
            profile = await user.add_profile("//x")
            with use_credentials(file):
                assert await reached(network.registration)
                for principal in authority.kept():
                    authority.keep(principal, anew=True)
                authority.revoke(first)
                with trio.fail_after(SAFETY_SECONDS):
                    while await reached(network.registration):
                        await trio.lowlevel.checkpoint()
            assert await user.profile(profile.id)
            again = await user.add_profile("//y")
            assert again.live
        assert network.pids == pids


async def reached(address: str) -> bool:
    try:
        async with NetworkClient(address):
            pass
    except NotAuthenticated:
        return False
    return True
