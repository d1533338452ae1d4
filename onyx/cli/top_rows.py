"""Rows of ``onyx top`` as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from onyx.network_view import NetworkView

KINDS = ("brokers", "links", "sources", "profiles")
HEADINGS = {
    "brokers": (
        *("BROKER", "STATE", "PROFILES", "IN/S", "FROM BROKERS/S", "SENT/S", "DELIVERED/S"),
        *("REFUSED/S", "WAITING BYTES", "OLDEST S", "BUSY"),
    ),
    "links": ("FROM", "TO", "MESSAGES/S", "BYTES/S", "BACKLOG BYTES", "OLDEST S", "ONLINE"),
    "sources": ("SOURCE", "ROOT BROKER", "MESSAGES/S", "BYTES/S", "MESSAGES"),
    "profiles": ("DEAREST PROFILE", "USER", "BROKER", "COST MS"),
}


def objects(view: NetworkView) -> Iterator[dict[str, object]]:
    """One for each row."""
    for kind in KINDS:
        yield from map(asdict, getattr(view, kind))


def shown(row: Any) -> dict[str, object]:
    """A row's fields as a person reads them."""
    facts = asdict(row)
    del facts["kind"]
    if "busy" in facts:
        facts["busy"] = f"{facts['busy']:.0%}"
    if "online" in facts:
        facts["online"] = "yes" if facts["online"] else "no"
    return facts
