"""What of a topology file a network takes while it runs, and what takes a new start."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from overlay.topology import Topology

LIVE = {
    "limits": frozenset(
        (
            "link_backlog_bytes_max",
            "link_away_bytes_max",
            "delivery_backlog_bytes_max",
            "delivery_store_bytes_max",
            "delivery_age_s_max",
            "profile_length_max",
            "unclaimed_profile_s_max",
            "profiles_max",
            "sources_max",
            "publish_key_age_s",
            "publish_keys_max",
            "principal_profiles_max",
            "principal_sources_max",
            "principal_messages_s_max",
            "principal_bytes_s_max",
            "principal_waiting_bytes_max",
            "principal_processor_ms_s_max",
        )
    ),
    "archive": frozenset(
        (
            "at_bytes_max",
            "bytes_max",
            "days_max",
            "free_bytes_min",
            "segment_bytes_max",
            "segment_seconds_max",
            "waiting_bytes_max",
        )
    ),
}
"""By table of the file.  Each is read where it is used, and changes nothing that is stored."""
_SHAPE = ("access", "oidc", "stores", "admin")


def with_live_settings(now: Topology, wanted: Topology) -> tuple[Topology, list[str], list[str]]:
    """The running network with what it can take of a file as it is now; what that is, and what
    takes a new start, by its key: "limits.profiles_max"."""
    taken: list[str] = []
    left = [name for name in _SHAPE if getattr(now, name) != getattr(wanted, name)]
    changed: dict[str, Any] = {}
    for table, live in LIVE.items():
        part, new = getattr(now, table), getattr(wanted, table)
        values = {}
        for each in fields(part):
            if getattr(part, each.name) == getattr(new, each.name):
                continue
            key = f"{table}.{each.name}"
            if each.name in live:
                values[each.name] = getattr(new, each.name)
                taken.append(key)
            else:
                left.append(key)
        changed[table] = replace(part, **values)
    return replace(now, **changed), taken, left
