"""Connections of somebody who has not said who they are, and wants to cost as much as they can."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from overlay.link.frame_codec import LENGTH_BYTES
from overlay.link.limits import LinkLimits

RECORD = b"\x16\x03\x01\x40\x00"  # of TLS, a handshake in 16 KiB
CLIENT_HELLO = b"\x01\x01\xff\xff"  # announced with 128 KiB
_CLOSED_SECONDS = 60.0

Stranger = Callable[[tuple[str, int]], socket.socket]


def silent(address: tuple[str, int]) -> socket.socket:
    """Says nothing."""
    return socket.create_connection(address)


def in_a_record(address: tuple[str, int]) -> socket.socket:
    """A first record of TLS, all but its last byte, of a message that is announced as longer."""
    return _sent(silent(address), RECORD + CLIENT_HELLO + bytes(16 * 1024 - len(CLIENT_HELLO) - 1))


def in_many_records(address: tuple[str, int]) -> socket.socket:
    """As much of such a message as is taken."""
    body = CLIENT_HELLO + bytes(62 * 1024)
    parts = [body[start : start + 16 * 1024] for start in range(0, len(body), 16 * 1024)]
    records = [b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts]
    return _sent(silent(address), b"".join(records))


def before_hello(address: tuple[str, int]) -> socket.socket:
    """TLS without a certificate, and a hello as long as it may be, all but its last byte."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    secured = context.wrap_socket(silent(address))
    length = LinkLimits().unknown_bytes_max
    return _sent(secured, length.to_bytes(LENGTH_BYTES, "big") + bytes(length - 1))


STRANGERS: Mapping[str, Stranger] = {
    "silent": silent,
    "in_a_record": in_a_record,
    "in_many_records": in_many_records,
    "before_hello": before_hello,
}


def seconds_until_closed(connection: socket.socket) -> float:
    """Until the other end has ended it."""
    began = time.perf_counter()
    connection.settimeout(_CLOSED_SECONDS)
    with suppress(ConnectionError):
        while connection.recv(65_536):
            pass
    return time.perf_counter() - began


def resident_bytes(pid: int) -> int:
    """What a process holds for itself."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    private = [line.split()[1] for line in text.splitlines() if line.startswith("Private_")]
    return 1024 * sum(map(int, private))


def _sent(connection: socket.socket, data: bytes) -> socket.socket:
    connection.settimeout(_CLOSED_SECONDS)
    with suppress(ConnectionError):  # it has been closed already, and takes nothing
        connection.sendall(data)
    return connection
