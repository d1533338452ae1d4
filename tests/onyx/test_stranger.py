"""A stranger who reaches the ports of a running network: what a hello alone used to give.

Each line of the table was there for the asking before connections had TLS.  Now whoever shows no
certificate, or one of another network, is told ``not-authenticated``, and a user of the network who
says to be somebody else ``not-authorised``; nothing else happens.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from onyx import User, blocking
from onyx.cli.main import main
from onyx.errors import NotAuthenticated
from onyx.identity.authority import Authority
from onyx.identity.known_networks import use_credentials
from onyx.registration_client import host_and_port
from overlay.link.client_connection import ClientLimits, RemoteError, open_client
from overlay.link.credentials import Credentials
from overlay.link.frame import PROTOCOL_VERSION
from overlay.link.frame_codec import encode
from overlay.link.frames import Hello
from overlay.link.principal import PROCESS_ROLES, Principal
from overlay.topology import load_topology
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, check_it_serves

LIMITS = ClientLimits(open_seconds=SAFETY_SECONDS)
MALLORY = Principal("user", "mallory")


class Attack(NamedTuple):
    """What was to be had for a hello, and the hello, at a node."""

    what: str
    role: str
    identity: str
    at: str


ATTACKS = [
    Attack("took and acknowledged another's results", "subscriber", "1@ann", "B1"),
    Attack("published as another's source", "source", "s1", "B1"),
    Attack("placed //* at a broker, and read everything", "registration", "evil", "B1"),
    Attack("placed //* as the very service", "registration", "registration", "B1"),
    Attack("pushed a broker off its link", "broker", "B2", "B1"),
    Attack("spoke for a broker", "broker", "B1", "registration"),
    Attack("removed a profile, applied a topology", "client", "1", "registration"),
    Attack("removed a profile at its host", "client", "1", "B1"),
]


class Who(NamedTuple):
    """Somebody who attacks; ``code`` is what they get."""

    credentials: Credentials
    code: str


def authority_of(network: RunningProcess) -> Authority:
    return Authority(Path(network.up["topology"]).parent / "identity")


def issued(authority: Authority, principal: Principal, directory: Path) -> Path:
    path = directory / "issued.pem"
    path.write_bytes(authority.issue(principal))
    return path


def without_certificate(network: RunningProcess, directory: Path) -> Who:
    """TLS by somebody who shows nothing, and takes anybody's word."""
    credentials = Credentials(issued(authority_of(network), MALLORY, directory))
    bare = credentials._client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname = False
    bare.verify_mode = ssl.CERT_NONE
    return Who(credentials, "not-authenticated")


def of_another_network(network: RunningProcess, directory: Path) -> Who:
    """Who calls themselves what they like, by an authority of their own."""
    other = Authority.make(directory / "other", authority_of(network).network)
    credentials = Credentials(issued(other, Principal("operator", "root"), directory))
    credentials._client.verify_mode = ssl.CERT_NONE
    return Who(credentials, "not-authenticated")


def a_user(network: RunningProcess, directory: Path) -> Who:
    return Who(Credentials(issued(authority_of(network), MALLORY, directory)), "not-authorised")


@pytest.mark.parametrize("attacker", [without_certificate, of_another_network, a_user])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what.replace(" ", "-"))
async def test_a_hello_gives_nothing(
    network: RunningProcess,
    tmp_path: Path,
    attack: Attack,
    attacker: Callable[[RunningProcess, Path], Who],
) -> None:
    who = attacker(network, tmp_path)
    node = load_topology(Path(network.up["topology"])).node(attack.at)
    host, port = node.links if attack.role in PROCESS_ROLES else node.listen
    if attack.role == "client" and attacker is a_user:
        return  # a user may ask; what is looked at with each question
    with pytest.raises(RemoteError) as caught:
        async with open_client(
            *(host, port),
            role=attack.role,
            identity=attack.identity,
            limits=LIMITS,
            credentials=who.credentials,
        ):
            pass
    assert caught.value.code == who.code


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what.replace(" ", "-"))
async def test_without_tls_nobody_answers(network: RunningProcess, attack: Attack) -> None:
    hello = Hello(PROTOCOL_VERSION, attack.role, attack.identity, "x", [], 1 << 24, [])
    where = {**network.up["brokers"], "registration": network.registration}[attack.at]
    answer = b""
    with trio.fail_after(SAFETY_SECONDS):
        async with await trio.open_tcp_stream(*host_and_port(where)) as stream:
            await stream.send_all(encode(hello))
            while data := await stream.receive_some(65_536):
                answer += data
    assert b"hello" not in answer
    assert answer[:1] in (b"", b"\x15"), "nothing, or an alert of TLS"


async def test_who_started_the_network_needs_no_option(network: RunningProcess) -> None:
    await check_it_serves(network.registration)


async def test_a_user_elsewhere_has_a_file(network: RunningProcess, tmp_path: Path) -> None:
    file = issued(authority_of(network), Principal("user", "ann"), tmp_path)
    with use_credentials(file):
        async with User(network.registration, "ann") as user:
            profile = await user.add_profile("//for-ann")
            await user.results(profile.id).connect()
            await user.remove_profile(profile.id)


def test_programs_without_trio_show_the_file_as_well(
    network: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = issued(authority_of(network), Principal("user", "ann"), tmp_path)
    with use_credentials(file), blocking.User(network.registration, "ann") as user:
        user.remove_profile(user.add_profile("//for-ann").id)


async def test_an_account_that_does_not_know_the_network_is_told_what_to_do(
    network: RunningProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(NotAuthenticated, match="onyx cert issue"):
        async with User(network.registration, "ann"):
            pass


def test_the_command_line_ends_with_77(
    network: RunningProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = ["status", "--registration", network.registration]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(status) == 77
    assert "not authenticated: no credentials are known for" in capsys.readouterr().err
    file = issued(authority_of(network), Principal("operator", "root"), tmp_path)
    assert main([*status, "--credentials", str(file)]) == 0
    monkeypatch.setenv("ONYX_CREDENTIALS", str(file))
    assert main(status) == 0
    monkeypatch.setenv("ONYX_CREDENTIALS", str(tmp_path / "none.pem"))
    assert main(status) == 77
