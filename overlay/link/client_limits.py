"""What a client may keep, and how it is told that something failed."""

from __future__ import annotations

from dataclasses import dataclass

from formats.errors import Fault, read_fault
from overlay.link.limits import DEFAULT_LINK_LIMITS, LinkLimits
from overlay.link.lost_stores import STORE_LOST


class RemoteError(Exception):
    """The other side said no; ``code`` is a stable word, ``message`` a sentence, ``fault`` the
    fault in what was sent, or the same once more."""

    def __init__(self, code: str, message: str, fault: object = None) -> None:
        """``fault``: as a peer says it."""
        super().__init__(f"{message} [{code}]")
        self.code = code
        self.message = message
        self.fault = read_fault(fault, Fault(code, message))


class ConnectionFailed(Exception):
    """Nobody answered in time, or the connection was lost while a call waited for its answer
    (whether the call was carried out is then not known).  ``why``: what is wrong with who is there,
    as far as that is known."""

    def __init__(self, said: str, why: str = "") -> None:
        super().__init__(f"{said}: {why}" if why else said)
        self.why = why


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """open_seconds      to connect and exchange hellos at the start (ConnectionFailed)
    publishes_max     publishes whose outcome is not known; ``publish`` waits beyond
    outcomes_max      settled outcomes kept for who asks later; the oldest is forgotten
    observed_max      observed events not taken yet; the oldest is dropped and counted
    link              bounds of the connection
    """

    open_seconds: float = 10.0
    publishes_max: int = 256
    outcomes_max: int = 65_536
    observed_max: int = 10_000
    link: LinkLimits = DEFAULT_LINK_LIMITS


DEFAULT_CLIENT_LIMITS = ClientLimits()

FINAL_CODES = frozenset(
    {"replaced", "forgotten", "unsupported-version", "wrong-peer", "internal", STORE_LOST}
)
"""Fatal errors after which dialling again would not help.  So is any before the hello but
``hello-timeout``, ``keys-awaited``, ``moved`` and ``wrong-time`` (unless the client's own
certificate is over by its own clock, too), and ``too-many-connections``,
``too-many-publishers`` and ``disk-full`` where there has been a hello before."""
