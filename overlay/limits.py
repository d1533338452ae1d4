"""Limits: every bound of a running network that an operator may set (``[limits]``).

Each bound has one named policy for what happens at it:

- *refuse*  what would go beyond is refused with a code, nothing of it is done, all else goes on;
- *close*   the peer broke the protocol: its connection is closed with the reason;
- *wait*    the sender is made to wait (back-pressure) until there is room again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from formats.limits import MessageLimits
from overlay.toml_table import TomlTable

KIB = 1024
MIB = 1024 * KIB
INTEGER_MAX = 2**31 - 1
BYTES_MAX = 2**40


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and the greatest value an operator may give a limit."""

    low: float
    high: float


def _count(default: int, low: int, high: int) -> int:
    """A whole-numbered field that knows its own range (see ``_bound_of``)."""
    value: int = field(default=default, metadata={"bound": Bound(low, high)})
    return value


def _number(default: float, low: float, high: float) -> float:
    value: float = field(default=default, metadata={"bound": Bound(low, high)})
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one network; the same on every node of it.

    message                     bounds of one XML message, ``[limits.message]`` (refuse)
    frame_bytes_max             bytes of one frame on a connection; at least
                                ``message.bytes_max`` (close)
    link_backlog_bytes_max      bytes kept for a neighbour that has not acknowledged them (wait)
    delivery_backlog_bytes_max  bytes of results kept for one user who has not acknowledged
                                them (wait)
    window_frames               frames a peer may be sent before it acknowledges (wait)
    keepalive_seconds           silence after which a peer is asked for a sign of life; after
                                three times that its connection is given up (close)
    profile_length_max          characters in the text of one profile (refuse)
    profiles_max                profiles in the whole network (refuse)
    sources_max                 data sources in the whole network (refuse)
    """

    message: MessageLimits = field(default_factory=MessageLimits)
    frame_bytes_max: int = _count(32 * MIB, KIB, INTEGER_MAX)
    link_backlog_bytes_max: int = _count(256 * MIB, KIB, BYTES_MAX)
    delivery_backlog_bytes_max: int = _count(64 * MIB, KIB, BYTES_MAX)
    window_frames: int = _count(256, 1, 65_536)
    keepalive_seconds: float = _number(10.0, 0.1, 3_600.0)
    profile_length_max: int = _count(64 * KIB, 1, 16 * MIB)
    profiles_max: int = _count(1_000_000, 1, 100_000_000)
    sources_max: int = _count(10_000, 1, 1_000_000)


def read_limits(top: TomlTable) -> Limits:
    """``[limits]`` and ``[limits.message]`` of a topology file, with defaults for what is absent.

    TopologyError for an unknown key, a wrong type or a value out of range.
    """
    table = top.table("limits", [entry.name for entry in fields(Limits)])
    limits = Limits(
        message=_read_message_limits(table),
        frame_bytes_max=_read_count(table, "frame_bytes_max"),
        link_backlog_bytes_max=_read_count(table, "link_backlog_bytes_max"),
        delivery_backlog_bytes_max=_read_count(table, "delivery_backlog_bytes_max"),
        window_frames=_read_count(table, "window_frames"),
        keepalive_seconds=_read_number(table, "keepalive_seconds"),
        profile_length_max=_read_count(table, "profile_length_max"),
        profiles_max=_read_count(table, "profiles_max"),
        sources_max=_read_count(table, "sources_max"),
    )
    if limits.frame_bytes_max < limits.message.bytes_max:
        reason = f"must be at least limits.message.bytes_max, {limits.message.bytes_max}"
        raise table.refusal("frame_bytes_max", reason)
    return limits


def limits_to_toml(limits: Limits) -> Iterator[str]:
    """The lines of ``[limits]`` and ``[limits.message]``, every value written out."""
    yield from ("", "[limits]")
    for entry in fields(limits):
        if entry.name != "message":
            yield f"{entry.name} = {getattr(limits, entry.name)!r}"
    yield from ("", "[limits.message]")
    for entry in fields(limits.message):
        yield f"{entry.name} = {getattr(limits.message, entry.name)!r}"


def _read_message_limits(table: TomlTable) -> MessageLimits:
    defaults = {
        entry.name: int(getattr(MessageLimits(), entry.name)) for entry in fields(MessageLimits)
    }
    message = table.table("message", defaults)
    return MessageLimits(
        **{
            name: message.integer(name, 1, INTEGER_MAX, default)
            for name, default in defaults.items()
        }
    )


def _read_count(table: TomlTable, name: str) -> int:
    bound = _bound_of(name)
    return table.integer(name, int(bound.low), int(bound.high), getattr(Limits(), name))


def _read_number(table: TomlTable, name: str) -> float:
    bound = _bound_of(name)
    return table.number(name, bound.low, bound.high, getattr(Limits(), name))


def _bound_of(name: str) -> Bound:
    bound = next(entry.metadata["bound"] for entry in fields(Limits) if entry.name == name)
    assert isinstance(bound, Bound)
    return bound
