"""What of a topology file a network takes while it runs, and what takes a new start of whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from formats.limits import MessageLimits
from overlay.limits import KIB, MESSAGE_ROOM, TrainingLimits
from overlay.link.slices import SLICE_SECONDS
from overlay.planning import PlanningOptions
from overlay.topology import Topology

LIVE = {
    "limits": frozenset(
        (
            "evaluation_ms_max",
            "routing_table_max_bytes",
            "max_disjuncts",
            "link_backlog_bytes_max",
            "link_away_bytes_max",
            "delivery_backlog_bytes_max",
            "delivery_store_bytes_max",
            "delivery_age_s_max",
            "disk_reserve_bytes",
            "profile_length_max",
            "link_down_after_s",
            "connections_max",
            "link_connections_max",
            "unknown_connections_max",
            "address_connections_max",
            "receive_bytes_max",
            "send_bytes_max",
            "slow_reader_s",
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
    "limits.message": frozenset(field.name for field in fields(MessageLimits)),
    "limits.training": frozenset(field.name for field in fields(TrainingLimits)),
    "archive": frozenset(
        (
            "share",
            "at_bytes_max",
            "bytes_max",
            "days_max",
            "free_bytes_min",
            "segment_bytes_max",
            "segment_seconds_max",
            "waiting_bytes_max",
        )
    ),
    "log": frozenset(("level", "format")),
    "planning": frozenset(field.name for field in fields(PlanningOptions)),
}
"""By table of the file.  Each is read where it is used, and changes nothing that is stored; of some
not every value can be taken (``_is_taken``)."""

SETTINGS = ("limits", "archive", "log", "planning", "access", "oidc", "stores", "admin")
"""All of a file that is neither a node nor a link, but for its name and places on this machine."""

_OF_BROKERS = (
    *("archive", "limits.message", "limits.training"),
    *("limits.needs_max_bytes", "limits.evaluation_ms_max"),
)


def with_live_settings(now: Topology, wanted: Topology) -> tuple[Topology, list[str], list[str]]:
    """The running network with what it can take of a file as it is now; what that is, and what
    takes a new start, by its key: "limits.profiles_max"."""
    before, after = setting_values(now), setting_values(wanted)
    changed = [key for key in after if before.get(key) != after[key]]
    changed += [key for key in before if key not in after]
    taken = [key for key in changed if _is_live(key) and _is_taken(now, key, after[key])]
    left = [key for key in changed if key not in taken]
    return with_values(now, {key: after[key] for key in taken}), taken, left


def setting_values(topology: Topology) -> dict[str, Any]:
    """All settings by key; access and the like as a whole."""
    found: dict[str, Any] = {}
    for name in SETTINGS:
        part = getattr(topology, name)
        found.update(_flat(name, part) if name in LIVE else [(name, part)])
    return found


def live_values(topology: Topology) -> dict[str, object]:
    """Those that can be taken while it runs."""
    return {key: value for key, value in setting_values(topology).items() if _is_live(key)}


def with_values(topology: Topology, values: Mapping[str, Any]) -> Topology:
    """The same network with some of its live settings; what there is no more is passed over."""
    for table, live in LIVE.items():
        given = {name: values[key] for name in sorted(live) if (key := f"{table}.{name}") in values}
        if given:
            topology = _with(topology, table.split("."), given)
    return topology


def _with(whole: Any, path: Sequence[str], given: Mapping[str, Any]) -> Any:
    """With what is ``given`` in the part of a part that it is at."""
    if not path:
        return replace(whole, **given)
    first, *rest = path
    return replace(whole, **{first: _with(getattr(whole, first), rest, given)})


def starts_needed(key: str) -> str:
    """Whose new start, with the file that has it, a setting takes that is not live."""
    if key == "stores":
        return "the whole network"
    return "every broker" if key.startswith(_OF_BROKERS) else "every process"


def _is_live(key: str) -> bool:
    table, _, name = key.rpartition(".")
    return name in LIVE.get(table, ())


def _is_taken(now: Topology, key: str, value: Any) -> bool:
    """Whether a process can go over to a value, whatever it was started with."""
    limits, (table, _, name) = now.limits, key.rpartition(".")
    if key == "limits.evaluation_ms_max":
        # What is below a slice the matcher holds profiles to itself, as it was made.
        return bool(min(value, limits.evaluation_ms_max) >= 1000 * SLICE_SECONDS)
    if key == "limits.message.bytes_max":
        return bool(value <= limits.link.frame_bytes_max)
    if key == "limits.training.dictionary_bytes_max":
        return bool(value <= limits.link.frame_bytes_max - KIB)
    if table == "limits.message":
        return bool(value <= max(getattr(limits.message, name), getattr(MESSAGE_ROOM, name)))
    return True


def _flat(prefix: str, part: Any) -> Iterator[tuple[str, Any]]:
    for each in fields(part):
        value, key = getattr(part, each.name), f"{prefix}.{each.name}"
        if is_dataclass(value):
            yield from _flat(key, value)
        else:
            yield key, value
