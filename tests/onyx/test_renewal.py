"""Away from the authority a certificate is renewed over the link that it authenticates."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec

from onyx import DataSource, User, use_credentials
from onyx.background import background_tasks
from onyx.cli.main import main
from onyx.errors import NotAuthenticated
from onyx.identity import authority as authority_module
from onyx.identity.authority import LEAF_DAYS, Authority, account, credentials_of, request_for
from onyx.identity.signing_process import sign
from onyx.renewal import keep_shown_renewed
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal
from overlay.link.validity import DAY, RENEW_DAYS, Certificate
from registration.renewals import RenewalWanted
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text

ANN, BOB, B1 = Principal("user", "ann"), Principal("user", "bob"), Principal("broker", "B1")
SOON = timedelta(seconds=5)


def make_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


Issue = Callable[[Principal, timedelta], bytes]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "here" / "identity", "small")


@pytest.fixture
def issue(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Issue:
    """Credentials as they were issued so long ago."""

    def issued(who: Principal, ago: timedelta) -> bytes:
        class Then(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Then:
                return super().now(tz) - ago

        with monkeypatch.context() as patched:
            patched.setattr(authority_module, "datetime", Then)
            return authority.issue(who)

    return issued


def shown(file: Path) -> Certificate:
    own = Credentials(file).own
    assert own is not None
    return own


@pytest.fixture
def old(issue: Issue, tmp_path: Path) -> Certificate:
    """ann's, in ann.pem, near its end."""
    file = tmp_path / "ann.pem"
    file.write_bytes(issue(ANN, timedelta(days=70)))
    return shown(file)


def test_a_new_key_is_signed_for_as_long_as_the_old_one_was_good(
    authority: Authority, old: Certificate, tmp_path: Path
) -> None:
    key, file = make_key(), tmp_path / "new.pem"
    file.write_bytes(credentials_of(old.uri, key, authority.renew(old, request_for(old.uri, key))))
    new = shown(file)
    assert (new.uri, round(new.life / DAY)) == (old.uri, LEAF_DAYS)
    assert new.until > old.until and new.serial != old.serial
    assert [one.serial for one in authority.issued()] == [old.serial, new.serial]


def test_a_request_is_for_whoever_shows_the_certificate(
    authority: Authority, old: Certificate
) -> None:
    other = Principal("operator", "root").uri("small")
    with pytest.raises(NotAuthenticated, match="not for onyx://small/user/ann alone"):
        authority.renew(old, request_for(other, make_key()))


def test_a_request_is_signed_by_its_key(authority: Authority, old: Certificate) -> None:
    request = bytearray(request_for(old.uri, make_key()))
    request[-1] ^= 1
    with pytest.raises(NotAuthenticated, match="request"):
        authority.renew(old, bytes(request))


def test_what_is_revoked_is_not_renewed_on_a_connection_that_is_still_there(
    authority: Authority, old: Certificate
) -> None:
    authority.revoke({old.serial})
    with pytest.raises(NotAuthenticated, match="revoked or over"):
        authority.renew(old, request_for(old.uri, make_key()))


def test_what_is_over_is_not_renewed(authority: Authority, issue: Issue, tmp_path: Path) -> None:
    file = tmp_path / "over.pem"
    file.write_bytes(issue(ANN, timedelta(days=LEAF_DAYS + 1)))
    over = shown(file)
    with pytest.raises(NotAuthenticated, match="revoked or over"):
        authority.renew(over, request_for(over.uri, make_key()))


async def test_the_key_is_read_by_a_process_of_its_own(
    authority: Authority, old: Certificate
) -> None:
    good = await sign(authority.directory, RenewalWanted(old, request_for(old.uri, make_key())))
    assert (good.certificates.count("BEGIN CERTIFICATE"), good.failed) == (2, "")
    bad = await sign(authority.directory, RenewalWanted(old, b"none"))
    assert (bad.certificates, bad.failed[:12]) == ("", "no request f")


@pytest.mark.parametrize(("life", "left"), [(90, RENEW_DAYS), (365, RENEW_DAYS), (10, 4)])
def test_it_is_asked_for_when_the_network_renews_it(life: float, left: float) -> None:
    certificate = Certificate("", 1, 0.0, life * DAY)
    assert certificate.until - certificate.renew_at == pytest.approx(left * DAY)
    assert certificate.may_renew_at < certificate.renew_at


async def test_a_broker_elsewhere_goes_on_with_a_new_certificate_under_traffic(
    authority: Authority, issue: Issue, old: Certificate, tmp_path: Path
) -> None:
    """The former one is revoked then, and the broker still comes back to the network.  A client
    that stays connected, as a gateway does, has another one as well."""
    with (
        socket.create_server(("127.0.91.3", 0)) as one,
        socket.create_server(("127.0.91.3", 0)) as two,
    ):
        ports = [server.getsockname()[1] for server in (one, two)]
    text = small_topology_text(tmp_path / "here", brokers=1)
    for port in ports:
        text = text.replace("127.0.0.1:0", f"127.0.91.3:{port}", 1)
    topology = tmp_path / "fixed.toml"
    topology.write_text(text, encoding="utf-8")
    file, operator = tmp_path / "B1.pem", authority.keep(account())
    gateway = tmp_path / "gateway.pem"
    gateway.write_bytes(issue(BOB, timedelta(days=70)))
    file.write_bytes(issue(B1, timedelta(days=LEAF_DAYS - RENEW_DAYS) - SOON))
    former, where = shown(file), f"127.0.91.3:{ports[0]}"
    before = {file: former, gateway: shown(gateway), tmp_path / "ann.pem": old}
    texts = {each: each.read_bytes() for each in (file, gateway)}
    away = ["--broker", "B1", "--data", str(tmp_path / "away"), "--credentials", str(file)]
    registration = RunningProcess.start(topology, "--registration")
    try:
        broker = RunningProcess.start(topology, *away)
        try:
            with trio.fail_after(SAFETY_SECONDS), use_credentials(operator):
                source = await DataSource.register(where)
                async with source, User(where, "ann") as user:
                    async with background_tasks(trio.open_nursery()) as nursery:
                        with use_credentials(gateway):
                            nursery.start_soon(keep_shown_renewed, where)
                        got = await publish_until(
                            lambda: all(each.read_bytes() != text for each, text in texts.items()),
                            *(source, user),
                        )
                    assert got == list(range(len(got))), "each message once and in order"
                    assert registration.stop() == 0
                    authority.revoke({former.serial})
                    registration = RunningProcess.start(topology, "--registration")
                    assert await publish_until(lambda: True, source, user) == [0]
        finally:
            assert broker.stop() == 0
        renew = ["cert", "renew", str(tmp_path / "ann.pem"), "--registration", where]
        codes = [await trio.to_thread.run_sync(main, renew) for _ in range(2)]
        assert (codes[0], codes[1] != 0) == (0, True), "the second comes too soon"
    finally:
        assert registration.stop() == 0
    for renewed, ended in before.items():
        assert shown(renewed).until > ended.until
        assert renewed.stat().st_mode & 0o777 == 0o600
    issued = [one.principal for one in authority.issued()]
    assert [issued.count(who) for who in (B1, BOB, ANN)] == [2, 2, 2]


async def publish_until(is_over: Callable[[], bool], source: DataSource, user: User) -> list[int]:
    """The numbers of messages that a new profile gets, one behind the other."""
    got: list[int] = []
    profile = await user.add_profile("//m")
    results = user.results(profile.id)
    await results.connect()
    await source.publish(b"<m>0</m>")
    async for delivery in results:
        got += [int(found[3:-4]) for found in delivery.results]  # <m>7</m>
        if is_over():
            return got
        await source.publish(f"<m>{len(got)}</m>".encode())
    return got
