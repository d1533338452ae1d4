"""Door: where connections come in to a node, who may come there, and how many.

A node has two: one for sources and users, one for other processes of the network, so that however
many clients there are a broker keeps its links.  At each, whoever has not said yet who they are is
unknown; there is room for few of them, and a newcomer takes the place of the one that has waited
longest.  So a crowd that only connects keeps nobody out who goes on to say hello.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network, ip_address

import trio

from overlay.limits import Limits
from overlay.link.frame import ROLES
from overlay.link.frames import ErrorFrame
from overlay.link.principal import PROCESS_ROLES

CLIENT_ROLES = ROLES - PROCESS_ROLES
IPV6_PREFIX = 64  # of a network whose addresses are all somebody's


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """inside_max   inside at once; one more is told so and closed
    unknown_max  of these, who have not said who they are; one more, and the first of
                 them goes
    address_max  from one address of another machine; 0: any number
    refused_max  that are being told that they may not come in; one more is closed right
                 away
    """

    inside_max: int = 10_000
    unknown_max: int = 256
    address_max: int = 0
    refused_max: int = 32

    @classmethod
    def of(cls, limits: Limits, inside_max: int, *, is_of_links: bool) -> DoorLimits:
        """Of the door of links, or that of clients."""
        unknown_max = limits.unknown_connections_max
        if is_of_links:  # all brokers may come in the same moment
            return cls(inside_max, max(unknown_max, inside_max // 2))
        return cls(inside_max, unknown_max, limits.address_connections_max)


@dataclass(frozen=True, slots=True)
class Door:
    """``roles``: of hellos that may be said there; none: any, and nobody is unknown.  ``closed``:
    what whoever comes is told instead of being let in."""

    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]]
    roles: frozenset[str] = frozenset()
    limits: DoorLimits = field(default_factory=DoorLimits)
    closed: ErrorFrame | None = None

    @property
    def is_of_links(self) -> bool:
        """Whether only other processes of the network may come."""
        return bool(self.roles) and self.roles <= PROCESS_ROLES


class Doorkeeper:
    """Who is inside of a door, by the numbers of their connections."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.refused = 0  # that are being told so
        self._inside: dict[int, str] = {}  # their addresses
        self._of_address: Counter[str] = Counter()
        self._unknown: dict[int, None] = {}  # the one that has waited longest first

    def refusal(self, address: str) -> ErrorFrame | None:
        """Why one more from an address may not come in; None if it may."""
        limits = self.door.limits
        if self.door.closed is not None:
            return self.door.closed
        if len(self._inside) >= limits.inside_max:
            whose = f"{limits.inside_max} connections"
        elif 0 < limits.address_max <= self._of_address[address]:
            whose = f"{limits.address_max} connections from {address}"
        else:
            return None
        detail = f"{whose} are here already; try again later"
        return ErrorFrame("too-many-connections", detail, fatal=True)

    def enter(self, number: int, address: str) -> int | None:
        """One more is inside, unknown; the connection that has to go for it, if any."""
        self._inside[number] = address
        if address:
            self._of_address[address] += 1
        return self.forget(number) if self.door.roles else None

    def forget(self, number: int) -> int | None:
        """It is unknown again, as a newcomer is; the connection that has to go for it, if any."""
        self._unknown[number] = None
        if len(self._unknown) <= self.door.limits.unknown_max:
            return None
        longest = next(iter(self._unknown))
        del self._unknown[longest]
        return longest

    def recognise(self, number: int) -> None:
        """It has said who it is."""
        self._unknown.pop(number, None)

    def note_refused(self) -> None:
        """One has been told that it may not come in."""
        self.refused -= 1

    def leave(self, number: int) -> None:
        self._unknown.pop(number, None)
        address = self._inside.pop(number)
        self._of_address[address] -= 1
        if self._of_address[address] <= 0:
            del self._of_address[address]


def counted_address(stream: trio.abc.Stream) -> str:
    """``address_counted`` of whoever is at the other end; "" where there is no address."""
    if not isinstance(stream, trio.SocketStream):
        return ""
    try:
        return address_counted(stream.socket.getpeername()[0])
    except (OSError, ValueError, IndexError):
        return ""


def address_counted(host: str) -> str:
    """By which connections from one machine are counted: an IPv4 address, an IPv6 network of 64
    bits; "" for this machine.  ValueError for what is no address."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            if address.is_loopback:
                return ""
            return str(IPv6Network((address, IPV6_PREFIX), strict=False))
        address = address.ipv4_mapped
    return "" if address.is_loopback else str(address)
