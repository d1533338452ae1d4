"""What of a topology file a network takes while it runs, and what takes a new start of whom.

The record of a table says of a field whose new ``start`` it takes, and whose (``or_start``) where
that depends on the value (``_is_taken``).  A field that does not is read where it is used, and
changes nothing that is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import fields, replace

from overlay.limits import ALL_PROCESSES, KIB, MESSAGE_ROOM
from overlay.link.slices import SLICE_SECONDS
from overlay.topology import Topology
from overlay.unfit import taken_apart


def _marks(
    kind: type[Struct], prefix: str, around: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the records say of each setting, by key."""
    for each in fields(kind):
        inner, says = taken_apart(each.type)
        says, key = {**around, **says}, f"{prefix}{each.name}"
        is_whole = not prefix and "start" in says
        if isinstance(inner, type) and issubclass(inner, Struct) and not is_whole:
            yield from _marks(inner, f"{key}.", says)
        elif prefix or is_whole:  # of a file's top are the name, the nodes and the like
            yield key, says


_SAYS = {
    key: says for key, says in _marks(Topology, "", {}) if not key.startswith("gateway.")
}  # the gateway alone takes its table, at its start
SETTINGS = tuple(dict.fromkeys(key.partition(".")[0] for key in _SAYS))
"""All of a file that is neither a node nor a link, but for its name and places on this machine."""
LIVE = tuple(key for key, says in _SAYS.items() if "start" not in says)
"""By key, "limits.profiles_max": those that can be taken while the network runs."""


def with_live_settings(now: Topology, wanted: Topology) -> tuple[Topology, list[str], list[str]]:
    """The running network with what it can take of a file as it is now; what that is, and what
    takes a new start, by its key: "limits.profiles_max"."""
    before, after = setting_values(now), setting_values(wanted)
    changed = [key for key in after if before[key] != after[key]]
    taken = [key for key in changed if key in LIVE and _is_taken(now, key, after[key])]
    left = [key for key in changed if key not in taken]
    return with_values(now, {key: after[key] for key in taken}), taken, left


def setting_values(topology: Topology) -> dict[str, Any]:
    """All settings by key; access and the like as a whole."""
    return {key: attrgetter(key)(topology) for key in _SAYS}


def live_values(topology: Topology) -> dict[str, object]:
    """Those that can be taken while it runs."""
    return {key: attrgetter(key)(topology) for key in LIVE}


def with_values(topology: Topology, values: Mapping[str, Any]) -> Topology:
    """The same network with some of its live settings; what there is no more is passed over."""
    for key in LIVE:
        if key in values:
            topology = _with(topology, key.split("."), values[key])
    return topology


def _with(whole: Any, path: Sequence[str], value: object) -> Any:
    """With the value in the part of a part that it is of."""
    first, *rest = path
    return replace(whole, **{first: _with(getattr(whole, first), rest, value) if rest else value})


def starts_needed(key: str) -> str:
    """Whose new start, with the file that has it, a setting takes that is not live."""
    return str(_SAYS[key].get("start") or _SAYS[key].get("or_start", ALL_PROCESSES))


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
