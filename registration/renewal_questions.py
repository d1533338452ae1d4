"""What the core (renewals.py) asks for a certificate, and what is answered by a process that the
desk (service.py) starts (onyx/identity/signing_process.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from overlay.link.validity import Certificate


@dataclass(frozen=True, slots=True)
class RenewalWanted:
    """For whoever has ``shown`` a certificate; ``request``: in DER."""

    shown: Certificate
    request: bytes


@dataclass(frozen=True, slots=True)
class Renewed:
    """``certificates``: its own and the authority's, in PEM; "" where it ``failed``, and why."""

    certificates: str = ""
    failed: str = ""


Sign: TypeAlias = Callable[[RenewalWanted], Awaitable[Renewed]]
