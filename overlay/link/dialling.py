"""Dialling a node that is at one of several addresses: they are tried in turn, and soon again."""

from __future__ import annotations

from overlay.backoff import Backoff
from overlay.nodes import Addresses

REDIAL = Backoff(0.1, 1.0)  # until a peer that was lost or not there is dialled again
TAKEOVER_SECONDS, TAKEOVER_PAUSE_SECONDS = 2.0, 0.2


def patience(addresses: Addresses, seconds: float) -> float:
    """How long to wait for an answer at one of them: less where it may be at another."""
    return seconds if len(addresses) == 1 else min(seconds, TAKEOVER_SECONDS)


def pause_at(addresses: Addresses, seconds: float) -> float:
    """How long to wait before they are all tried again: not long where a standby takes over."""
    return seconds if len(addresses) == 1 else min(seconds, TAKEOVER_PAUSE_SECONDS)


def said(addresses: Addresses) -> str:
    """For a person."""
    return " or ".join(map(str, addresses))
