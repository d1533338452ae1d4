"""TLS between processes: who is at the other end, before anything is said, and nothing is lost."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
import trio

from onyx.identity.authority import Authority
from overlay.link.client_connection import ClientLimits, RemoteError, open_client
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.errors import WRONG_TIME
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import NOBODY, Principal
from overlay.link.validity import Certificate
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.counter_core import CounterCore, until
from tests.overlay.link.test_node import Network

LIMITS = ClientLimits(open_seconds=20.0)
ANN = Principal("user", "ann")


class Secure(Network):
    """Nodes whose credentials one authority has issued."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.authority = Authority.make(directory / "identity", "net")
        self.credentials = {name: self.of(Principal("broker", name)) for name in "AB"}

    def of(self, principal: Principal, authority: Authority | None = None) -> Credentials:
        authority = authority or self.authority
        return Credentials(authority.keep(principal), authority.revoked_file)

    def issued(self, principal: Principal, days: float = 90) -> Path:
        path = self.directory / f"{principal.role}-{days}.pem"
        path.write_bytes(self.authority.issue(principal, days))
        return path

    async def ask(self, credentials: Credentials | None, role: str = "client") -> str:
        """What a client with these is told by B: "" or the code of the refusal."""
        try:
            async with open_client(
                "127.0.0.1",
                self.ports["B"],
                role=role,
                identity="c1",
                limits=LIMITS,
                credentials=credentials,
            ) as client:
                await client.call("echo", {"text": "x"})
        except RemoteError as error:
            return error.code
        return ""


@pytest.fixture
def network(tmp_path: Path) -> Secure:
    return Secure(tmp_path)


async def test_messages_cross_in_order_whatever_their_length(network: Secure) -> None:
    payloads = [bytes([number % 256]) * (number * 997 % 50_000) for number in range(100)]
    payloads[50] = b"x" * 5_000_000
    async with (
        network.run("B") as receiver,
        network.run("A", ["B"], lambda core: core.send_messages("broker/B", payloads)) as sender,
    ):
        await until(lambda: sender.backlog("broker/B") == 0)
        assert receiver.taken == payloads
        (connection,) = receiver.links.statistics().connections.values()
        assert connection.principal == "broker/A"


async def test_restarts_lose_and_double_nothing(network: Secure) -> None:
    payloads = [b"%d" % number for number in range(100)]
    async with network.run("B"):
        pass  # only to have a port
    first: Callable[[CounterCore], None] | None = lambda core: core.send_messages(  # noqa: E731
        "broker/B", payloads
    )
    taken = 0
    while taken < len(payloads):
        before = taken
        async with (
            network.run("A", ["B"], first, window_frames=5),
            network.run("B", window_frames=5) as receiver,
        ):
            first = None
            await until(lambda c=receiver, b=before: len(c.taken) > b)  # type: ignore[misc]
            taken = len(receiver.taken)
            assert receiver.taken == payloads[:taken]


async def test_who_shows_a_certificate_is_let_in_as_that(network: Secure) -> None:
    async with network.run("B"):
        assert await network.ask(network.of(ANN)) == ""
        assert await network.ask(network.of(ANN), role="registration") == "not-authorised"
        assert await network.ask(network.of(ANN), role="broker") == "not-authorised"


async def test_who_shows_none_or_a_wrong_one_is_told_before_anything_is_done(
    network: Secure, tmp_path: Path
) -> None:
    other = Authority.make(tmp_path / "other", "net")
    stranger = network.of(ANN, other)
    async with network.run("B") as core:
        # it is not of this network, and neither is B for it
        assert await network.ask(stranger) == "not-authenticated"
        unchecked = network.of(ANN, other)
        unchecked._client.verify_mode = ssl.CERT_NONE
        assert await network.ask(unchecked) == "not-authenticated"
        over = Credentials(network.issued(ANN, days=-0.001))
        assert await network.ask(over) == "not-authenticated"
        bare = network.of(ANN)
        bare._client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        bare._client.check_hostname = False
        bare._client.verify_mode = ssl.CERT_NONE
        # it may know nothing of B but what it needs to hear the refusal
        assert await network.ask(bare) in ("not-authenticated", "wrong-peer")
        assert not core.links.statistics().journals


async def test_there_is_no_older_tls(network: Secure) -> None:
    old = network.of(ANN)
    old._client.minimum_version = ssl.TLSVersion.TLSv1_2
    old._client.maximum_version = ssl.TLSVersion.TLSv1_2
    async with network.run("B"):
        assert await network.ask(old) == "not-authenticated"


async def test_another_broker_does_not_answer_for_the_one_that_is_dialled(
    network: Secure,
) -> None:
    """Nor does a user, whose certificate is for no server at all."""
    for impostor in (Principal("broker", "A"), ANN):
        network.credentials["B"] = network.of(impostor)
        async with network.run("B"):
            assert await network.ask(network.of(ANN)) in ("wrong-peer", "not-authenticated")


async def test_a_node_without_tls_is_not_talked_to(network: Secure, tmp_path: Path) -> None:
    plain = Network(tmp_path)
    async with plain.run("B"):
        network.ports = plain.ports
        assert await network.ask(network.of(ANN)) == "not-authenticated"


async def test_bytes_that_are_no_tls_end_the_connection(network: Secure) -> None:
    async with network.run("B"):
        async with await trio.open_tcp_stream("127.0.0.1", network.ports["B"]) as stream:
            await stream.send_all(b"\x00\x00\x00\x10GET / HTTP/1.1\r\n\r\n")
            with trio.fail_after(SAFETY_SECONDS):
                while await stream.receive_some(65536):
                    pass
        assert await network.ask(network.of(ANN)) == ""


async def test_the_connections_of_a_revoked_certificate_are_closed_at_once(
    network: Secure,
) -> None:
    """What is not revoked goes on, and who is revoked does not come again."""
    path = network.issued(ANN)
    ann, bob = Credentials(path), network.of(Principal("user", "bob"))
    async with (
        network.run("B"),
        open_client(
            "127.0.0.1", network.ports["B"], role="client", identity="c1", credentials=ann
        ) as client,
        open_client(
            "127.0.0.1", network.ports["B"], role="client", identity="A", credentials=bob
        ) as other,
    ):
        serial = next(one.serial for one in network.authority.issued() if one.principal == ANN)
        network.authority.revoke({serial})
        with trio.fail_after(SAFETY_SECONDS), pytest.raises(RemoteError) as caught:
            await client.wait_lost()
            await client.wait_connected()
        assert caught.value.code == "not-authenticated"
        assert await other.call("echo", {"text": "x"}) == {"text": "x"}
        assert other.connection_number == 1


async def test_credentials_are_renewed_while_connections_last(network: Secure) -> None:
    async with network.run("B"), network.run("A", ["B"]) as sender:
        await until(lambda: sender.links.connected("broker/B"))
        before = connections(sender.links)
        first = network.credentials["A"].version
        network.authority.keep(Principal("broker", "A"), anew=True)
        with trio.fail_after(SAFETY_SECONDS):
            while network.credentials["A"].version == first:
                await trio.lowlevel.checkpoint()
        assert connections(sender.links) == before
        assert await network.ask(network.of(ANN)) == ""


def connections(links: LinkLayer) -> list[str]:
    return list(links.statistics().connections)


def test_whoever_ends_or_is_revoked_or_is_of_another_network_is_nobody(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path, "net")
    credentials = Credentials(authority.keep(ANN), authority.revoked_file)
    shaking = credentials.channel(server_side=False)
    node = Credentials(authority.keep(Principal("broker", "B1")), authority.revoked_file)
    answering = node.channel(server_side=True)
    done = False
    data = b""
    while not done:
        shaking.shake(data)
        done = answering.shake(shaking.to_send())
        data = answering.to_send()
    certificate = answering.certificate()
    assert certificate is not None
    assert certificate == credentials.own, "as its owner reads it"
    assert node.principal_of(certificate) == ANN
    assert why_nobody(node, None) == "no certificate"
    for late, why in ((certificate.until, "is over since"), (certificate.since - 1, "is not good")):
        node.wall = lambda at=late: at  # type: ignore[misc]
        assert why_nobody(node, certificate).startswith(f"a certificate that {why}")
        assert node.principal_of(certificate).code == WRONG_TIME
    node.wall = lambda: node.authority_until
    unending = certificate._replace(until=inf)
    assert why_nobody(node, unending) == "a certificate of an authority that is over"
    node.wall = time.time
    other = certificate._replace(uri=ANN.uri("other"))
    assert why_nobody(node, other).endswith("is of another network; expected 'net'")
    authority.revoke({certificate.serial})
    node.refresh()
    assert why_nobody(node, certificate) == "a certificate that is revoked"
    elsewhere = Credentials(authority.keep(Principal("broker", "B1")))
    before = elsewhere.version
    assert elsewhere.principal_of(certificate) == ANN
    elsewhere.revoke(frozenset({certificate.serial}))
    assert why_nobody(elsewhere, certificate) == "a certificate that is revoked"
    assert elsewhere.version > before, "who is connected is looked at again"


def why_nobody(node: Credentials, shown: Certificate | None) -> str:
    found = node.principal_of(shown)
    assert found == NOBODY
    return found.why


@pytest.mark.parametrize("text", ["", "onyx://net/user/ann\n", "x", "onyx://net/king/ann\n", "é"])
def test_another_file_holds_no_credentials(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.pem"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CredentialsError, match=r"file\.pem"):
        Credentials(path)


def test_what_is_wrong_later_leaves_the_credentials_of_before(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path, "net")
    credentials = Credentials(authority.keep(ANN), authority.revoked_file)
    authority.revoked_file.write_text("no number\n", encoding="ascii")
    with pytest.raises(CredentialsError):
        credentials.refresh()
    assert credentials.principal == ANN and credentials.version == 1
