"""Open files: how many connections a process of a network takes, and that it may have so many.

A connection is an open file, of which the system allows a process a number that it may raise
itself (the soft limit) up to another (the hard limit, ``ulimit -Hn``).
"""

from __future__ import annotations

import logging
import resource
from typing import NamedTuple

from overlay.limits import Limits
from overlay.topology import TopologyError

CONNECTIONS_DEFAULT = 10_000
LINK_CONNECTIONS_DEFAULT = 256
OTHER_FILES = 128
"""Kept for what is no connection that was accepted: the store, an archive, links that are dialled,
those to whom is said why they are not taken."""

ALL_FILES = 65_536

log = logging.getLogger("onyx.process")


class Connections(NamedTuple):
    """How many a process takes at once, of sources and users, and of the network's processes."""

    clients: int
    links: int


def allow_all_files() -> None:
    """As many as the system allows this process to allow itself: for a gateway, which has its own
    connection to each broker, and does not know how many there will be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ALL_FILES if hard == resource.RLIM_INFINITY else min(ALL_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def allow_connections(
    limits: Limits, brokers: int, file: str = "", *, gives_way: bool = False
) -> Connections:
    """How many connections this process takes at once, in a network of so many brokers; it may open
    so many files from now on, and so may the processes that it starts.

    TopologyError, naming ``file``, where the system allows fewer than were asked for; a process of
    a network that runs ``gives_way``, and warns.
    """
    links = limits.link_connections_max or max(LINK_CONNECTIONS_DEFAULT, 2 * brokers)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if gives_way and hard != resource.RLIM_INFINITY:
        links = max(min(links, hard // 2 - OTHER_FILES), 1)
    others = OTHER_FILES + links
    connections = limits.connections_max or CONNECTIONS_DEFAULT
    if hard != resource.RLIM_INFINITY and connections + others > hard:
        room = hard - others
        needed = f"{connections:,} connections take {connections + others:,} open files"
        allowed = f"the system allows a process {hard:,} (ulimit -Hn)"
        if (limits.connections_max or room < 1) and not gives_way:
            raise TopologyError(
                file,
                "limits.connections_max",
                f"{needed}; {allowed}: expected at most {max(room, 0):,}, or a higher limit",
            )
        connections = max(room, 1)
        taken = f"{connections:,}"
        log.warning("%s, %s: at most %s connections are taken", needed, allowed, taken)
    if soft != resource.RLIM_INFINITY and soft < connections + others:
        wanted = connections + others
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return Connections(connections, links)
