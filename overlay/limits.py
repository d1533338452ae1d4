"""Limits: every bound of a running network that an operator may set (``[limits]``).

Each bound has one named policy for what happens at it:

- *refuse*  what would go beyond is refused with a code, nothing of it is done, all else goes on;
- *close*   the peer broke the protocol: its connection is closed with the reason;
- *wait*    the sender is made to wait (back-pressure) until there is room again;
- *drop*    the oldest goes, and is counted;
- *widen*   less is cut out of messages;
- *generalise*  several interests become one that is wider, so that some messages cross a link for
            nothing, and are counted where they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TypeAlias

from formats.compression_dictionary import COMPRESSION_DICTIONARY_BYTES_MAX, SAMPLES_LEAST
from formats.limits import MessageLimits
from overlay.link.limits import WINDOW_FRAMES_CEILING, LinkLimits
from overlay.toml_table import TomlTable

KIB = 1024
MIB = 1024 * KIB

MESSAGE_ROOM = MessageLimits(**{name: 4 * value for name, value in asdict(MessageLimits()).items()})
"""What every broker reads at least of what a root broker has taken, whatever its own limits."""


@dataclass(frozen=True, slots=True)
class TrainingLimits:
    """What training compression dictionaries may cost a root broker.

    dictionary_bytes_max  of one dictionary; 0: nothing is trained, given ones are used
    samples               messages of a source in one form that a dictionary is trained from; it
                          takes some 10 ms for each 100 KB
    samples_bytes_max     the same in bytes: training starts at whichever comes first
    sample_bytes_max      a longer message is no sample: it gains little
    sources_max           sources of which samples are kept at a time; others wait for their turn
    retrain_messages      messages of a source between the end of one training and the samples for
                          the next
    """

    dictionary_bytes_max: int = 32 * KIB
    samples: int = 128
    samples_bytes_max: int = 256 * KIB
    sample_bytes_max: int = 16 * KIB
    sources_max: int = 64
    retrain_messages: int = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one network; the same on every node of it.

    message                     bounds of one XML message, ``[limits.message]`` (refuse)
    link                        bounds of one connection, ``[limits.link]`` (close, and wait for
                                the windows)
    training                    what compression dictionaries cost, ``[limits.training]`` (wait)
    link_backlog_bytes_max      bytes of messages of one broadcast tree kept for a neighbour that
                                has not acknowledged them (wait)
    link_away_bytes_max         bytes of messages of all broadcast trees kept for a neighbour that
                                is away, or was and has not caught up (wait)
    delivery_backlog_bytes_max  bytes that wait for one profile whose user has not acknowledged
                                them: of its results, or of the messages that they are made of when
                                they are taken (drop)
    delivery_store_bytes_max    bytes of what waits for the users of one broker, on its disk (drop)
    delivery_age_s_max          seconds that it waits; 0: for ever (drop)
    disk_reserve_bytes          that stay free on the disk of a broker's store: with less nothing is
                                published there (refuse); 0: none
    routing_table_max_bytes     of one broker's routing table, all links and trees (generalise)
    max_disjuncts               of one link's routing query on one tree (generalise)
    needs_max_bytes             told about one link and tree, of what is needed of messages (widen)
    evaluation_ms_max           milliseconds of processor time for a profile and a message (tell)
    profile_length_max          characters in the text of one profile, which has 256 KiB in UTF-8
                                at most (refuse)
    link_down_after_s           seconds after which a link without a connection counts as down, and
                                is taken out of use as long as others connect the network; ten times
                                as long where both ends have never met
    connections_max             connections of sources and users that a process takes at once
                                (refuse); 0: 10,000, or fewer where the system lets a process open
                                fewer files
    link_connections_max        the same of other processes of the network, which have a door of
                                their own (refuse); 0: 256, or two for each broker
    unknown_connections_max     of each of the two, those that have not said yet who they are; one
                                more takes the place of the one that has waited longest (close); of
                                links at least half of link_connections_max
    address_connections_max     of sources and users from one address of another machine (of an
                                IPv6 network, /64), 0: any number (refuse)
    receive_bytes_max           bytes that a process has read and not handled: beyond it clients are
                                not read (wait)
    send_bytes_max              bytes that wait to be sent, on all connections of a process: beyond
                                it the client with the most is given up (close)
    slow_reader_s               a peer that takes not even 64 KiB in so many seconds, while more
                                waits for it, is given up (close)
    unclaimed_profile_s_max     seconds after which a profile goes whose results nobody has ever
                                come for; 0: never (drop)
    profiles_max                profiles in the whole network (refuse)
    sources_max                 data sources in the whole network (refuse)
    publish_key_age_s           seconds for which the publish key of a message is remembered at its
                                root broker, at least (drop)
    publish_keys_max            publish keys of one source that are remembered, the latest; each
                                takes about 50 bytes of memory and 25 of the disk (drop)
    principal_profiles_max      profiles of one user who is no operator (refuse)
    principal_sources_max       data sources of one principal who is no operator (refuse)
    principal_messages_s_max    messages that such a one publishes in a second at one broker; 0: any
                                number (refuse)
    principal_bytes_s_max       bytes of these; 0: any number (refuse)
    principal_waiting_bytes_max bytes that wait for a user at one broker, of all their profiles; 0:
                                any number (drop)
    principal_processor_ms_s_max
                                milliseconds of processor time in a second that a broker spends on
                                the profiles of one user, of ten seconds at once (suspend)
    """

    message: MessageLimits = field(default_factory=MessageLimits)
    link: LinkLimits = field(default_factory=LinkLimits)
    training: TrainingLimits = field(default_factory=TrainingLimits)
    link_backlog_bytes_max: int = 256 * MIB
    link_away_bytes_max: int = 16 * 1024 * MIB
    delivery_backlog_bytes_max: int = 64 * MIB
    delivery_store_bytes_max: int = 64 * 1024 * MIB
    delivery_age_s_max: int = 0
    disk_reserve_bytes: int = 256 * MIB
    routing_table_max_bytes: int = 1024 * MIB
    max_disjuncts: int = 1_000_000
    needs_max_bytes: int = 4 * MIB
    evaluation_ms_max: int = 50
    principal_processor_ms_s_max: int = 100
    profile_length_max: int = 64 * KIB
    link_down_after_s: float = 30.0
    connections_max: int = 0
    link_connections_max: int = 0
    unknown_connections_max: int = 256
    address_connections_max: int = 1024
    receive_bytes_max: int = 128 * MIB
    send_bytes_max: int = 512 * MIB
    slow_reader_s: float = 60.0
    unclaimed_profile_s_max: int = 7 * 86_400
    profiles_max: int = 1_000_000
    sources_max: int = 10_000
    principal_profiles_max: int = 10_000
    principal_sources_max: int = 100
    publish_key_age_s: int = 86_400
    publish_keys_max: int = 262_144
    principal_messages_s_max: int = 0
    principal_bytes_s_max: int = 0
    principal_waiting_bytes_max: int = 16 * 1024 * MIB


def taken_limits(limits: Limits) -> MessageLimits:
    """Of messages that a root broker has taken: it alone holds them to ``[limits.message]``, which
    may be others by now, or elsewhere, so there is room."""
    own = asdict(limits.message)
    room = {name: max(own[name], most) for name, most in asdict(MESSAGE_ROOM).items()}
    return MessageLimits(**{**room, "bytes_max": limits.link.frame_bytes_max})


def read_limits(top: TomlTable) -> Limits:
    """``[limits]`` and its sub-tables of a topology file, with defaults for what is absent.

    TopologyError for an unknown key, a wrong type or a value out of range.
    """
    table = top.table("limits", _names(Limits))
    message_table = table.table("message", _names(MessageLimits))
    link_table = table.table("link", _names(LinkLimits))
    training_table = table.table("training", _names(TrainingLimits))
    limits = Limits(
        message=MessageLimits(**_read_counts(message_table, MessageLimits())),
        link=_read_link_limits(link_table),
        training=TrainingLimits(**_read_counts(training_table, TrainingLimits())),
        link_down_after_s=table.number(
            "link_down_after_s", 0.1, 86_400, Limits().link_down_after_s
        ),
        slow_reader_s=table.number("slow_reader_s", 1, 86_400, Limits().slow_reader_s),
        **_read_counts(table, Limits()),
    )
    if limits.link.frame_bytes_max < limits.message.bytes_max:
        reason = f"must be at least limits.message.bytes_max, {limits.message.bytes_max}"
        raise link_table.refusal("frame_bytes_max", reason)
    if limits.training.dictionary_bytes_max > limits.link.frame_bytes_max - KIB:
        reason = f"must leave {KIB} bytes of limits.link.frame_bytes_max"
        raise training_table.refusal("dictionary_bytes_max", reason)
    return limits


def limits_to_toml(limits: Limits) -> Iterator[str]:
    """The lines of ``[limits]`` and its sub-tables, every value written out."""
    parts: Mapping[str, _Part] = {
        "limits": limits,
        "limits.message": limits.message,
        "limits.link": limits.link,
        "limits.training": limits.training,
    }
    for name, part in parts.items():
        yield from ("", f"[{name}]")
        for key in _names(type(part)):
            value = getattr(part, key)
            if isinstance(value, (int, float)):
                yield f"{key} = {value!r}"


_Part: TypeAlias = Limits | MessageLimits | LinkLimits | TrainingLimits

# What an operator may set, where it is not simply 1 to 2^31 - 1 (seconds: 0.1 to 3600).
_INTEGER_MAX = 2**31 - 1
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "link_backlog_bytes_max": (KIB, 2**40),
    "link_away_bytes_max": (KIB, 2**50),
    "delivery_backlog_bytes_max": (KIB, 2**40),
    "delivery_store_bytes_max": (KIB, 2**50),
    "delivery_age_s_max": (0, _INTEGER_MAX),
    "unclaimed_profile_s_max": (0, _INTEGER_MAX),
    "publish_keys_max": (64, 2**27),
    "principal_messages_s_max": (0, _INTEGER_MAX),
    "principal_bytes_s_max": (0, _INTEGER_MAX),
    "principal_waiting_bytes_max": (0, 2**50),
    "disk_reserve_bytes": (0, 2**50),
    "routing_table_max_bytes": (1, 2**40),
    "needs_max_bytes": (1, 2**40),
    "evaluation_ms_max": (1, 60_000),
    "principal_processor_ms_s_max": (1, 1_000_000),
    "profile_length_max": (1, 256 * KIB),
    "connections_max": (0, 1_000_000),
    "link_connections_max": (0, 1_000_000),
    "address_connections_max": (0, 1_000_000),
    "receive_bytes_max": (MIB, 2**40),
    "send_bytes_max": (MIB, 2**40),
    "window_frames": (1, WINDOW_FRAMES_CEILING),
    "dictionary_bytes_max": (0, COMPRESSION_DICTIONARY_BYTES_MAX),
    "samples": (SAMPLES_LEAST, 10_000),
    "samples_bytes_max": (KIB, 64 * MIB),
}


def _names(part: type[_Part]) -> list[str]:
    return [entry.name for entry in fields(part)]


def _read_link_limits(table: TomlTable) -> LinkLimits:
    default = LinkLimits()
    return LinkLimits(
        **_read_counts(table, default),
        keepalive_seconds=table.number("keepalive_seconds", 0.1, 3_600, default.keepalive_seconds),
        hello_seconds=table.number("hello_seconds", 0.1, 3_600, default.hello_seconds),
    )


def _read_counts(table: TomlTable, default: _Part) -> dict[str, int]:
    """The whole-numbered fields of ``default`` as the table sets them."""
    counts = {}
    for name in _names(type(default)):
        value = getattr(default, name)
        if isinstance(value, int):
            low, high = _BOUNDS.get(name, (1, _INTEGER_MAX))
            counts[name] = table.integer(name, low, high, value)
    return counts
