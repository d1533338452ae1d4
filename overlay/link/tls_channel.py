"""TlsChannel: TLS 1.3 on one connection, without I/O: bytes in, bytes out.

::

    socket ─ what came ──> shake, then decrypt ──> frames
    socket <── to_send, encrypt ───────────────── frames
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from overlay.link.validity import Certificate

RECORD_BYTES = 16 * 1024  # at most, of what one record holds


class TlsChannel:
    """First ``shake`` until it returns True, then the rest.

    Everything that is given something that came raises ``ssl.SSLError`` if that is not TLS, or not
    what the context allows; what is then ``to_send`` says so to the other end.
    """

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)

    def shake(self, data: bytes = b"") -> bool:
        """Go on with the handshake; whether it is done."""
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def to_send(self) -> bytes:
        """What the handshake wants sent."""
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """What whole records hold; b"" if there is none yet."""
        # PERF: a read of the memory is cheaper than one of the socket, of which OpenSSL needs two
        # a record; and that nothing is left is asked, as the exception would cost more.
        incoming, read = self._incoming, self._tls.read
        incoming.write(data)
        found: list[bytes] = []
        try:
            while incoming.pending:
                found.append(read(RECORD_BYTES))
        except ssl.SSLWantReadError:
            pass
        return found[0] if len(found) == 1 else b"".join(found)

    def encrypt(self, frames: Sequence[bytes]) -> bytes:
        """The records of some frames, after all that was encrypted before."""
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        written = self._tls.write(data)
        while written < len(data):
            written += self._tls.write(memoryview(data)[written:])
        return self._outgoing.read()

    def certificate(self) -> Certificate | None:
        """Of the other end; None if it has shown none."""
        shown = self._tls.getpeercert()
        return Certificate.of(shown) if shown else None
