"""Attacker: one connection to a process of a real network, on which anything may be said."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe

import trio

from onyx import DataSource
from onyx.identity.authority import Authority
from onyx.registration_client import RegistrationClient
from overlay.access import Token
from overlay.link.credentials import Credentials
from overlay.link.frame import PROTOCOL_VERSION, Frame
from overlay.link.frame_codec import LENGTH_BYTES, FrameDecoder, decode, encode
from overlay.link.frames import Ack, ErrorFrame, Hello, Refused, Response
from overlay.link.handshake import HandshakeFailed, Secured, secure
from overlay.link.principal import Principal
from overlay.topology import Topology, load_topology
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess

CLOSED = "closed"
"""Nothing is said."""
NOTHING_WRONG = "accepted"
NOBODY, FORGER, USER, SOURCE = "nobody", "forger", "user", "source"


class Victim:
    """A network with a source of its own, ``ours``, and another, ``theirs``, both at one broker."""

    def __init__(self, network: RunningProcess, directory: Path) -> None:
        self.network = network
        self.topology: Topology = load_topology(Path(network.up["topology"]))
        self.authority = Authority(Path(network.up["topology"]).parent / "identity")
        self.ours = self.theirs = self.root = ""
        self.tokens: dict[str, str] = {}  # secrets, by what their holders may
        self.next_number = 1  # of a message of ours
        self._directory = directory

    async def prepare(self) -> None:
        registered = []
        for name in ("ours", "theirs"):
            source = await DataSource.register(
                self.network.registration, name=name, location=(10.0, 0.0)
            )
            registered.append(source)
        self.ours, self.theirs = (source.id for source in registered)
        self.root = "B1"
        await self._issue("mallory's")
        await self._issue("to subscribe", only=[["subscribe", "*"]])
        revoked = await self._issue("revoked")
        async with RegistrationClient(self.network.registration) as operator:
            await operator.call("token.revoke", {"token": revoked})

    async def _issue(self, name: str, **bounds: object) -> str:
        secret = self.tokens[name] = token_urlsafe(32)
        asked = {"principal": "user/mallory", "digest": Token.digest_of(secret), "seconds": 600}
        async with RegistrationClient(self.network.registration) as operator:
            return str((await operator.call("token.issue", asked | bounds))["token"])

    def credentials(self, who: str) -> Credentials | None:
        """Of somebody, as they have them."""
        if who == FORGER:
            other = Authority.make(self._directory / "other", self.authority.network)
            found = self._issued(other, Principal("operator", "root"))
        else:
            name = self.ours if who == SOURCE else "mallory"
            role = "source" if who == SOURCE else "user"
            found = self._issued(self.authority, Principal(role, name))
        if who in (NOBODY, FORGER):
            context = found._client
            if who == NOBODY:
                context = found._client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return found

    def _issued(self, authority: Authority, principal: Principal) -> Credentials:
        path = self._directory / "issued.pem"
        path.unlink(missing_ok=True)
        path.write_bytes(authority.issue(principal))
        return Credentials(path)


class Attacker:
    """A connection; ``secured`` None: without TLS."""

    def __init__(self, stream: trio.SocketStream, secured: Secured | None) -> None:
        self._stream = stream
        self._tls = None if secured is None else secured.channel
        self._decoder = FrameDecoder(1 << 25)

    async def say(self, data: bytes) -> None:
        with suppress(trio.BrokenResourceError):  # closed meanwhile; why is still to be read
            await self._stream.send_all(data if self._tls is None else self._tls.encrypt([data]))

    async def hear(self) -> Frame | None:
        """The next frame; None at the end."""
        while True:
            raw = self._decoder.next_frame()
            if raw is not None:
                return decode(raw).frame
            try:
                data = await self._stream.receive_some(65_536)
                plain = data if self._tls is None else self._tls.decrypt(bytes(data))
            except (trio.BrokenResourceError, ssl.SSLError):
                return None
            if not data or (self._tls is None and data[:1] == b"\x15"):  # an alert of TLS
                return None
            self._decoder.feed(plain)

    async def outcome(self, number: int) -> str:
        """The first code that comes; CLOSED, or NOTHING_WRONG where a request is answered or a
        message taken.  Of refusals that of the message with this number counts."""
        while True:
            frame = await self.hear()
            if frame is None:
                return CLOSED
            if isinstance(frame, Refused) and frame.number != number:
                continue
            if isinstance(frame, ErrorFrame | Refused):
                return frame.code
            if isinstance(frame, Response):
                return NOTHING_WRONG if frame.ok else str(frame.result["code"])
            if isinstance(frame, Ack) and frame.sequence >= number:
                return NOTHING_WRONG


@asynccontextmanager
async def attacker(victim: Victim, who: str, node: str, door: str) -> AsyncIterator[Attacker]:
    """Whoever shakes hands; with "" nobody does."""
    of_node = victim.topology.node(victim.root if node == "root" else node)
    host, port = of_node.links if door == "links" else of_node.listen
    with trio.fail_after(SAFETY_SECONDS):
        async with await trio.open_tcp_stream(host, port) as stream:
            secured = None
            if who:
                try:
                    secured = await secure(
                        stream,
                        victim.credentials(who),
                        server_side=False,
                        seconds=SAFETY_SECONDS,
                    )
                except HandshakeFailed:
                    yield Attacker(stream, None)
                    return
            yield Attacker(stream, secured)


async def learn_next_number(victim: Victim) -> None:
    """The root broker says in its hello which it has."""
    async with attacker(victim, SOURCE, "root", "clients") as connection:
        await connection.say(hello("source", victim.ours))
        answer = await connection.hear()
    assert isinstance(answer, Hello)
    victim.next_number = 1 + max((number for *_, number in answer.received), default=0)


def hello(
    role: str, peer: str, version: int = PROTOCOL_VERSION, channels: int = 0, token: str = ""
) -> bytes:
    received = [(3, f"a channel of some name {number}", 1) for number in range(channels)]
    return encode(Hello(version, role, peer, "x", ["text"], 1 << 24, received, token))


def framed(data: bytes) -> bytes:
    """With a length that is right."""
    return len(data).to_bytes(LENGTH_BYTES, "big") + data
