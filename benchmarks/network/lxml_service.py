"""``python -m benchmarks.network.lxml_service``: what people write who have lxml and a socket.

The job is ``{"feed": FILE}``; the answer ``{"port": PORT}``.  Each message is parsed and asked for
each profile's ``etree.XPath``, one after the other; to whom it matches it is sent.  Nothing is kept
on disk, and whoever is not there misses it.  The protocol is ``protocols.Framed``.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from struct import Struct

import lxml.etree

from benchmarks.network.feed import Feed
from benchmarks.network.helper import say
from benchmarks.network.processor import allow_many_files

_LENGTH = Struct(">I")
_BACKLOG = 1_024


def serve(
    listener: socket.socket,
    paths: Sequence[lxml.etree.XPath],
    subscribers: list[socket.socket | None],
) -> None:
    """Accepts subscribers and then a publisher, whose messages it passes on until that ends."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = _LENGTH.unpack(connection.recv(4, socket.MSG_WAITALL))[0]
        if number == 0:
            _pass_on(connection, paths, subscribers)
            return
        subscribers[number - 1] = connection
        connection.sendall(_LENGTH.pack(0))


def _pass_on(
    publisher: socket.socket,
    paths: Sequence[lxml.etree.XPath],
    subscribers: Sequence[socket.socket | None],
) -> None:
    with publisher, publisher.makefile("rb") as received:
        while length := received.read(4):
            message = received.read(_LENGTH.unpack(length)[0])
            tree = lxml.etree.fromstring(message)
            framed = length + message
            for path, subscriber in zip(paths, subscribers, strict=True):
                if path(tree) and subscriber is not None:
                    subscriber.sendall(framed)
            publisher.sendall(_LENGTH.pack(0))


def main() -> None:
    """Reads the job and serves."""
    allow_many_files()
    feed = Feed.read(json.loads(sys.stdin.readline())["feed"])
    paths = [lxml.etree.XPath(f"boolean({profile})") for profile in feed.profiles]
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        say({"port": listener.getsockname()[1]})
        subscribers: list[socket.socket | None] = [None] * len(paths)
        serve(listener, paths, subscribers)
        sys.stdin.read()  # nobody's connection is closed before that


if __name__ == "__main__":
    main()
