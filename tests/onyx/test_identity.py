"""What a network needs to know who is who: made at its start, found by its address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography import x509
from msgspec.structs import replace

from onyx import User, launch
from onyx.cli.main import main
from onyx.errors import NetworkUnreachable, NotAuthenticated
from onyx.identity import known_networks
from onyx.identity.authority import Authority, account
from onyx.identity.known_networks import credentials_for, folder, forget, note
from onyx.identity.network_identity import NetworkIdentity
from overlay.link.principal import Principal
from overlay.nodes import Address
from overlay.topology import Topology, TopologyError, parse_topology
from tests.onyx.networks import RunningProcess, small_topology, small_topology_text

B1 = Principal("broker", "B1")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of an account that knows no network."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "identity", "net")


def elsewhere(tmp_path: Path) -> Topology:
    text = small_topology_text(tmp_path, brokers=1).replace("127.0.0.1:0", "192.0.2.1:0")
    return parse_topology(text, "elsewhere.toml")


def test_keys_are_for_their_owner_only(authority: Authority) -> None:
    authority.keep(B1)
    authority.keep(account())
    assert authority.directory.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in authority.directory.iterdir()}
    assert set(files) == {
        *("authority.key", "authority.pem", "issued", "operator.pem", "broker.B1.pem"),
    }
    assert set(files.values()) == {0o600}


def test_an_authority_is_made_once(authority: Authority) -> None:
    again = Authority.make(authority.directory, "another name")
    assert again.network == "net"
    file = again.keep(B1)
    before = file.read_bytes()
    assert authority.keep(B1) == file
    assert file.read_bytes() == before


@pytest.mark.parametrize(("name", "label"), [("a-1", "a-1"), ("A", "x559aead0"), ("ä", "x")])
def test_a_cycle_provider_is_a_host_too_and_others_have_one_name(
    authority: Authority, name: str, label: str
) -> None:
    provider, user = (
        x509.load_pem_x509_certificate(authority.issue(Principal(role, name)))
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
        for role in ("provider", "user")
    )
    assert len(list(user)) == 1, "releases before this one take a certificate of one name alone"
    uri = Principal("provider", name).uri("net")
    assert provider.get_values_for_type(x509.UniformResourceIdentifier) == [uri]
    (host,) = provider.get_values_for_type(x509.DNSName)
    assert host.startswith(label) and host.endswith(".provider.net.onyx") and host == host.lower()


def test_what_ends_soon_or_is_revoked_or_spoilt_is_issued_anew(authority: Authority) -> None:
    file = authority.file_of(B1)
    file.write_bytes(authority.issue(B1, days=29))
    soon = file.read_bytes()
    assert authority.keep(B1).read_bytes() != soon
    good = file.read_bytes()
    authority.revoke({authority.issued()[-1].serial})
    assert authority.keep(B1).read_bytes() != good
    file.write_text("spoilt")
    assert authority.keep(B1).read_bytes() != b"spoilt"
    assert [one.revoked for one in authority.issued()] == [False, True, False, False]
    assert {one.principal for one in authority.issued()} == {B1}


def test_what_is_kept_is_renewed_ahead_of_its_end(authority: Authority, tmp_path: Path) -> None:
    identity = NetworkIdentity(
        authority.directory, small_topology(tmp_path, brokers=1), is_secure=True
    )
    files = [authority.keep(B1), authority.file_of(account())]
    files[0].write_bytes(authority.issue(B1, days=29))
    before = [file.read_bytes() for file in files]
    identity.renew()
    after = [file.read_bytes() for file in files]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


def test_credentials_are_found_by_address(authority: Authority, state: Path) -> None:
    operator = authority.keep(account())
    note([Address("127.0.0.1", 7200), Address("0.0.0.0", 7201)], operator)
    for host, port in [("127.0.0.1", 7200), ("localhost", 7200), ("127.0.0.1", 7201)]:
        found = credentials_for(host, port)
        assert found is not None and found.principal == account()
    with pytest.raises(NotAuthenticated, match=r"no credentials are known for 127\.0\.0\.1:7202"):
        credentials_for("127.0.0.1", 7202)


def test_an_address_is_found_by_any_name_of_it(authority: Authority, state: Path) -> None:
    note([Address("localhost", 7200)], authority.keep(account()))
    assert credentials_for("127.0.0.1", 7200) is not None
    forget([Address("localhost", 7200)], authority.keep(account()))
    assert not list(folder().iterdir())


def test_a_port_that_another_network_has_now_is_the_others(
    authority: Authority, state: Path, tmp_path: Path
) -> None:
    address = Address("127.0.0.1", 7200)
    first = authority.keep(account())
    second = Authority.make(tmp_path / "second", "second").keep(account())
    note([address], first)
    note([address], second)
    forget([address], first)
    found = credentials_for(*address)
    assert found is not None and found.network == "second"
    forget([address], second)
    assert not list(folder().iterdir())


def test_without_tls_it_is_this_machine_or_nothing(state: Path) -> None:
    note([Address("127.0.0.1", 7200), Address("192.0.2.1", 7200)], None)
    assert credentials_for("127.0.0.1", 7200) is None
    with pytest.raises(NotAuthenticated, match="is not on this machine"):
        credentials_for("192.0.2.1", 7200)


def test_what_runs_insecure_is_on_loopback(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r'"192\.0\.2\.1:0" is not of this machine alone'):
        NetworkIdentity(tmp_path, elsewhere(tmp_path), is_secure=False, file="elsewhere.toml")


def test_neither_door_of_what_runs_insecure_is_open_to_others(tmp_path: Path) -> None:
    topology = small_topology(tmp_path, brokers=1)
    identity = NetworkIdentity(tmp_path, topology, is_secure=False)
    (broker,) = topology.brokers
    identity.check(broker, "file")
    for away in ({"listen": Address("0.0.0.0", 0)}, {"links": Address("192.0.2.1", 0)}):
        joined = replace(broker, **away)
        with pytest.raises(TopologyError, match="is not of this machine alone"):
            identity.check(joined, "file")
        with pytest.raises(TopologyError, match="is not of this machine alone"):
            changed = replace(topology, brokers=(joined,))
            NetworkIdentity(tmp_path, changed, is_secure=False)
        NetworkIdentity(tmp_path / "secure", topology, is_secure=True).check(joined, "file")


def test_a_broker_without_an_authority_asks_for_credentials(tmp_path: Path) -> None:
    topology = small_topology(tmp_path, brokers=1)
    alone = NetworkIdentity(tmp_path / "identity", topology, is_secure=True, may_make=False)
    with pytest.raises(NotAuthenticated, match="onyx cert issue broker/B1 --out FILE"):
        alone.credentials_of(topology, "B1")
    other = Authority.make(tmp_path / "other", "small")
    (tmp_path / "identity").mkdir()
    given = tmp_path / "identity" / "broker.B1.pem"
    given.write_bytes(other.issue(B1))
    assert alone.credentials_of(topology, "B1") == given


def test_an_account_without_a_place_for_notes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    topology = small_topology(tmp_path / "data", brokers=1)
    identity = NetworkIdentity(tmp_path / "identity", topology, is_secure=True)
    identity.note(topology)
    assert f"ONYX_CREDENTIALS={identity.operator}" in caplog.messages[0]


async def test_a_network_leaves_no_note(tmp_path: Path, state: Path) -> None:
    topology = small_topology(tmp_path / "data", brokers=1)
    async with launch(topology, write_line=lambda line: None) as network:
        assert len(list(folder().iterdir())) == 2
        async with User(network.registration, "ann") as user:
            assert await user.profiles() == []
    assert not list(folder().iterdir())
    with pytest.raises(NetworkUnreachable):
        async with User(network.registration, "ann"):
            pass


def test_an_insecure_network_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data", brokers=1), encoding="utf-8")
    running = RunningProcess.start(file, "--insecure")
    try:
        where = ["--registration", running.registration]
        assert main(["status", *where]) == 0
        assert "INSECURE: this network runs without TLS" in capsys.readouterr().out
        assert main(["status", "--json", "--broker", "B1", *where]) == 0
        assert json.loads(capsys.readouterr().out)["statistics"]["node"]["tls"] is None
        assert not (tmp_path / "data" / "identity").exists()
    finally:
        running.stop()


def test_a_file_is_said_before_all_that_is_known(
    authority: Authority, state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = Address("127.0.0.1", 7200)
    note([address], authority.keep(account()))
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.pem").write_bytes(authority.issue(Principal("user", name)))
    monkeypatch.setenv("ONYX_CREDENTIALS", str(tmp_path / "ann.pem"))
    found = credentials_for(*address)
    assert found is not None and found.principal == Principal("user", "ann")
    with known_networks.use_credentials(tmp_path / "bob.pem"):
        found = credentials_for(*address)
        assert found is not None and found.principal == Principal("user", "bob")
