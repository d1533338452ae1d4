"""Away from the authority a certificate is renewed over the link that it authenticates."""

from __future__ import annotations

import fcntl
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
import trio
import trio.testing
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from onyx import DataSource, User, use_credentials
from onyx.cli.main import main
from onyx.errors import NotAuthenticated
from onyx.identity import authority as authority_module
from onyx.identity.authority import LEAF_DAYS, Authority, account, credentials_of, request_for
from onyx.identity.signing_process import sign
from onyx.renewal import keep_renewed, renew
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal
from overlay.link.validity import DAY, RENEW_DAYS, Certificate
from registration.queries.providers import NAMESPACE
from registration.renewal_questions import RenewalWanted
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text

A = Principal("provider", "A")
MARKET = f"""\
@prefix q: <{NAMESPACE}> . @prefix : <urn:m#> .
:A a q:CycleProvider ; q:name "A" ; q:serverHost "127.0.91.3" ; q:serverPort {{port}} .
"""
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


NOWHERE = "127.0.0.1:1"  # nobody is to be asked


def test_a_file_that_cannot_be_replaced_is_told_once(
    old: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".ann.pem.new").mkdir()

    async def a_week() -> None:
        with trio.move_on_after(7 * DAY):
            await keep_renewed(Credentials(tmp_path / "ann.pem"), NOWHERE)

    trio.run(a_week, clock=trio.testing.MockClock(autojump_threshold=0))
    (told,) = caplog.messages
    assert told.startswith("the certificate is not renewed:") and "cannot be written" in told
    assert shown(tmp_path / "ann.pem") == old


async def test_a_process_takes_what_another_one_that_shares_its_file_has_got(
    authority: Authority, old: Certificate, tmp_path: Path
) -> None:
    """The other one is at it: it has the lock of the new file."""
    file, new = tmp_path / "ann.pem", tmp_path / ".ann.pem.new"
    found: list[Certificate] = []

    async def take() -> None:
        found.append(await renew(Credentials(file), NOWHERE))

    with trio.fail_after(SAFETY_SECONDS), new.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            assert not found
            other.write(authority.issue(ANN))
            other.flush()
            new.replace(file)
            fcntl.flock(other, fcntl.LOCK_UN)
    assert found == [shown(file)] and found[0].until > old.until
    assert not new.exists()


async def test_a_broker_elsewhere_goes_on_with_a_new_certificate_under_traffic(
    authority: Authority, issue: Issue, old: Certificate, tmp_path: Path
) -> None:
    """The former one is revoked then, and the broker still comes back to the network.  Clients that
    stay connected and share a file get one new certificate between them, and a cycle provider of
    queries shows its new one at its port."""
    with (
        socket.create_server(("127.0.91.3", 0)) as one,
        socket.create_server(("127.0.91.3", 0)) as two,
        socket.create_server(("127.0.91.3", 0)) as three,
    ):
        *ports, cycle_port = [server.getsockname()[1] for server in (one, two, three)]
    text = small_topology_text(tmp_path / "here", brokers=1)
    for port in ports:
        text = text.replace("127.0.0.1:0", f"127.0.91.3:{port}", 1)
    topology = tmp_path / "fixed.toml"
    topology.write_text(text, encoding="utf-8")
    file, operator = tmp_path / "B1.pem", authority.keep(account())
    shared = tmp_path / "bob.pem"
    shared.write_bytes(issue(BOB, timedelta(days=70)))
    cycle = tmp_path / "A.pem"
    cycle.write_bytes(issue(A, timedelta(days=70)))
    file.write_bytes(issue(B1, timedelta(days=LEAF_DAYS - RENEW_DAYS) - SOON))
    former, where = shown(file), f"127.0.91.3:{ports[0]}"
    before = {file: former, shared: shown(shared), cycle: shown(cycle), tmp_path / "ann.pem": old}
    for each in before:
        each.chmod(0o644)
    texts = {each: each.read_bytes() for each in (file, shared, cycle)}
    away = ["--broker", "B1", "--data", str(tmp_path / "away"), "--credentials", str(file)]
    registration = RunningProcess.start(topology, "--registration")
    try:
        broker = RunningProcess.start(topology, *away)
        try:
            with trio.fail_after(SAFETY_SECONDS), use_credentials(operator):
                source = await DataSource.register(where)
                async with source, User(where, "ann") as user, AsyncExitStack() as clients:
                    for _ in range(3):
                        with use_credentials(Credentials(shared)):
                            await clients.enter_async_context(User(where, "bob"))
                    with cycle_provider(cycle, cycle_port, where) as served:
                        got = await publish_until(lambda: changed(texts) and served(), source, user)
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
        assert renewed.stat().st_mode & 0o777 == 0o640, "all accounts lose what rights they had"
    issued = [one.principal for one in authority.issued()]
    assert [issued.count(who) for who in (B1, BOB, A, ANN)] == [2, 2, 2, 2]


def changed(texts: Mapping[Path, bytes]) -> bool:
    return all(each.read_bytes() != text for each, text in texts.items())


@contextmanager
def cycle_provider(file: Path, port: int, where: str) -> Iterator[Callable[[], bool]]:
    """A with these credentials; gives whether it shows those that are in the file by now."""
    catalog = file.with_suffix(".ttl")
    catalog.write_text(MARKET.format(port=port), encoding="utf-8")
    serve = ["provider", "serve", str(catalog), "A", "--credentials", str(file)]
    command = [sys.executable, "-m", "onyx", *serve, "--registration", where]

    def shows_its_file() -> bool:
        with suppress(OSError):  # refused between two servers at the port
            at_port = ssl.get_server_certificate(("127.0.91.3", port)).encode()
            return x509.load_pem_x509_certificate(at_port).serial_number == shown(file).serial
        return False

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as provider:
        try:
            yield shows_its_file
        finally:
            provider.terminate()


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
