"""Handshake: who is at the other end of a stream, before anything else is said on it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trio

from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.errors import WRONG_TIME
from overlay.link.loop import TRIO, Loop, Stream
from overlay.link.principal import Principal
from overlay.link.tls_channel import TlsChannel
from overlay.link.validity import Certificate

READ_BYTES = 4 * 1024
HANDSHAKE_BYTES_MAX = 64 * 1024
CLIENT_BYTES_MAX = 8 * 1024
"""The same of what a client says: a hello, and a certificate."""
_HANDSHAKE, _CLIENT_HELLO = 22, 1


class HandshakeFailed(Exception):
    """``is_final``: the other end is not of this network, or has refused us; it would again."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final


class PeerUntimely(HandshakeFailed):
    """The certificate of the other end is over, or not good yet, by the clock of here.  The other
    end gets another one, or one of the clocks is set."""

    def __init__(self, why: str) -> None:
        super().__init__(f"it has shown {why}", is_final=False)


@dataclass(frozen=True, slots=True)
class Secured:
    """A stream's TLS, and whose it is."""

    channel: TlsChannel
    certificate: Certificate | None
    principal: Principal


async def secure(
    stream: Stream,
    credentials: Credentials | None,
    *,
    server_side: bool,
    seconds: float,
    loop: Loop = TRIO,
) -> Secured | None:
    """Shake hands; None without credentials.  HandshakeFailed, and the stream is closed, if that is
    not done in so many seconds, or HANDSHAKE_BYTES_MAX."""
    if credentials is None:
        return None
    try:
        if not server_side:
            credentials.refresh()
        return await _shake_hands(stream, credentials, server_side, seconds, loop)
    except CredentialsError as error:
        await loop.close(stream)
        raise HandshakeFailed(str(error), is_final=True) from None
    except BaseException:
        await loop.close(stream)
        raise


def tls_reason(error: ssl.SSLError) -> str:
    """What was wrong, in few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not of this network: {error.verify_message}"
    return (error.reason or str(error)).lower().replace("_", " ")


async def _shake_hands(
    stream: Stream, credentials: Credentials, server_side: bool, seconds: float, loop: Loop
) -> Secured:
    channel = credentials.channel(server_side=server_side)
    try:
        with loop.move_on_after(seconds) as scope:
            await _shake(stream, channel, CLIENT_BYTES_MAX if server_side else HANDSHAKE_BYTES_MAX)
        if scope.cancelled_caught:
            raise HandshakeFailed(f"no TLS handshake in {seconds:g} s", is_final=False)
        certificate = channel.certificate()
        principal = credentials.principal_of(certificate)
        if principal.code == WRONG_TIME and not server_side:  # who comes is told behind its hello
            raise PeerUntimely(principal.why)
        return Secured(channel, certificate, principal)
    except ssl.SSLError as error:
        await _say(stream, channel, loop)
        failure = HandshakeFailed(tls_reason(error), is_final=True)
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
        failure = HandshakeFailed(f"the connection was lost: {error}", is_final=False)
    raise failure


async def _shake(stream: Stream, channel: TlsChannel, bytes_max: int) -> None:
    done, come = channel.shake(), 0
    first = b""
    while True:
        to_send = channel.to_send()
        if to_send:
            await stream.send_all(to_send)
        if done:
            return
        data = await stream.receive_some(READ_BYTES)
        come += len(data)
        if not data:
            raise ConnectionError("in the middle of the handshake")
        if come > bytes_max or announced_bytes(first := first or bytes(data)) > bytes_max:
            raise ConnectionError("no handshake is so long")
        done = channel.shake(bytes(data))


def announced_bytes(data: bytes) -> int:
    """Of a client's hello that begins with this; 0 if it is none.  OpenSSL takes memory for all of
    it at once."""
    is_hello = len(data) >= 9 and (data[0], data[5]) == (_HANDSHAKE, _CLIENT_HELLO)
    return int.from_bytes(data[6:9], "big") if is_hello else 0


async def _say(stream: Stream, channel: TlsChannel, loop: Loop) -> None:
    """What TLS has to say about it, if somebody hears it."""
    try:
        with loop.move_on_after(1.0):
            await stream.send_all(channel.to_send())
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
        pass
