"""Limits: every bound of a running network that an operator may set (``[limits]``).

Each bound has one named policy for what happens at it:

- *refuse*  what would go beyond is refused with a code, nothing of it is done, all else goes on;
- *close*   the peer broke the protocol: its connection is closed with the reason;
- *wait*    the sender is made to wait (back-pressure) until there is room again;
- *drop*    the oldest goes, and is counted;
- *tell*    the user;
- *suspend* a profile, of a user whose profiles take too much;
- *widen*   less is cut out of messages;
- *generalise*  several interests become one that is wider, so that some messages cross a link for
            nothing, and are counted where they arrive.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from formats.compression_dictionary import COMPRESSION_DICTIONARY_BYTES_MAX, SAMPLES_LEAST
from formats.limits import INTEGER_MAX, Count, MessageLimits
from overlay.errors import TopologyError
from overlay.link.limits import LinkLimits

KIB = 1024
MIB = 1024 * KIB
ALL_BROKERS, ALL_PROCESSES = "every broker", "every process"

MESSAGE_ROOM = MessageLimits(**{name: 4 * value for name, value in asdict(MessageLimits()).items()})
"""What every broker reads at least of what a root broker has taken, whatever its own limits."""


def at(policy: str, low: float = 1, high: float = INTEGER_MAX, **says: object) -> Meta:
    """What happens at a limit, and how much it may be.  A running network takes another, unless
    ``start`` says whose new start that takes; ``or_start``: of some values.  ``shown``: its default
    for people."""
    return Meta(ge=low, le=high, extra={"policy": policy, **says})


class TrainingLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """What training compression dictionaries may cost a root broker."""

    dictionary_bytes_max: Annotated[int, at("", 0, COMPRESSION_DICTIONARY_BYTES_MAX)] = 32 * KIB
    """of one dictionary; 0: nothing is trained, given ones are used"""
    samples: Annotated[int, at("", SAMPLES_LEAST, 10_000)] = 128
    """messages of a source in one form that a dictionary is trained from; it takes some 10 ms for
    each 100 KB"""
    samples_bytes_max: Annotated[int, at("", KIB, 64 * MIB)] = 256 * KIB
    """the same in bytes: training starts at whichever comes first"""
    sample_bytes_max: Count = 16 * KIB
    """a longer message is no sample: it gains little"""
    sources_max: Annotated[int, at("wait")] = 64
    """sources of which samples are kept at a time; others wait for their turn"""
    retrain_messages: Annotated[int, at("wait")] = 10_000
    """messages of a source between the end of one training and the samples for the next"""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """The bounds of one network; the same on every node of it."""

    message: Annotated[MessageLimits, Meta(extra={"or_start": ALL_BROKERS})] = MessageLimits()
    link: Annotated[LinkLimits, Meta(extra={"start": ALL_PROCESSES})] = LinkLimits()
    training: Annotated[TrainingLimits, Meta(extra={"or_start": ALL_BROKERS})] = TrainingLimits()
    link_backlog_bytes_max: Annotated[int, at("wait", KIB, 2**40)] = 256 * MIB
    """bytes of messages of one broadcast tree kept for a neighbour that has not acknowledged
    them"""
    link_away_bytes_max: Annotated[int, at("wait", KIB, 2**50)] = 16 * 1024 * MIB
    """bytes of messages kept, on disk, for a neighbour that is away, or was and has not caught up,
    on all broadcast trees; see below"""
    delivery_backlog_bytes_max: Annotated[int, at("drop", KIB, 2**40)] = 64 * MIB
    """bytes that wait for one profile whose user has not acknowledged them: of its results, or of
    the messages that these are made of when they are taken"""
    delivery_store_bytes_max: Annotated[int, at("drop", KIB, 2**50)] = 64 * 1024 * MIB
    """bytes of what waits for the users of one broker, on its disk; beyond, the oldest of all
    profiles goes, a sixteenth at a time"""
    delivery_age_s_max: Annotated[int, at("drop", 0)] = 0
    """seconds that a message waits for a user; 0: for ever"""
    disk_reserve_bytes: Annotated[int, at("refuse", 0, 2**50)] = 256 * MIB
    """bytes that stay free on the disk of a process's store; looked at once a second. With less,
    what is published at this broker, or registered, is refused with `disk-full`, and everything
    else goes on ([stores.md](stores.md#when-the-disk-fails)); 0: none"""
    routing_table_max_bytes: Annotated[int, at("generalise", 1, 2**40)] = 1024 * MIB
    """bytes of one broker's routing table, all links and trees; shared out among its links by the
    brokers behind each"""
    max_disjuncts: Annotated[int, at("generalise")] = 1_000_000
    """disjuncts in the routing query of one link, on all trees that share what is behind it"""
    needs_max_bytes: Annotated[int, at("widen", 1, 2**40, start=ALL_BROKERS)] = 4 * MIB
    """bytes told about what is needed of messages behind one link, on all trees that share it"""
    evaluation_ms_max: Annotated[int, at("tell", 1, 60_000, or_start=ALL_BROKERS)] = 50
    """milliseconds of processor time that a host broker takes for one profile and one message;
    beyond, the user gets a delivery that says so instead of results. What takes more than 5 ms of
    it is done later, in a process of its own, when somebody takes the delivery"""
    principal_processor_ms_s_max: Annotated[int, at("suspend", 1, 1_000_000)] = 100
    """milliseconds of processor time in a second that a broker spends on the profiles of one user,
    operator or not; of ten seconds they may be spent at once. Who has spent half of that is slowed,
    who has spent all of it loses the profile that took most; see below"""
    source_processor_ms_s_max: Annotated[int, at("wait", 1, 1_000_000)] = 200
    """milliseconds of processor time in a second that a broker spends on reading the messages of
    one principal's sources beyond 1 ms and 0.2 us a byte for each; of ten seconds they may be spent
    at once. A source that has spent half of that is slowed, one that has spent all is kept out
    (`too-costly`) until half is there again"""
    profile_length_max: Annotated[int, at("refuse", 1, 256 * KIB)] = 64 * KIB
    """characters in the text of a profile, at most 262 144, which are 262 144 bytes at most; above
    the default only when all processes are of this release"""
    link_down_after_s: Annotated[float, at("go round it", 0.1, 86_400)] = 30.0
    """seconds after which a link without a connection counts as down, ten times as long where both
    ends have never met"""
    connections_max: Annotated[
        int, at("refuse", 0, 1_000_000, shown="10 000, or fewer where the system allows fewer")
    ] = 0
    """connections of sources and users that a process takes at once; one more is told
    `too-many-connections`. Each is an open file: a process raises its own limit of these, and says
    at its start if the system does not let it (`ulimit -Hn`)"""
    link_connections_max: Annotated[
        int, at("refuse", 0, 1_000_000, shown="256, or two for each broker")
    ] = 0
    """the same of the network's other processes, at their own door"""
    unknown_connections_max: Annotated[int, at("close")] = 256
    """of each of the two, those that have not said yet who they are; one more takes the place of
    the one that has waited longest; of links at least half of `link_connections_max`"""
    address_connections_max: Annotated[int, at("refuse", 0, 1_000_000)] = 1024
    """of sources and users from one address of another machine (of an IPv6 network, /64); 0: any
    number"""
    receive_bytes_max: Annotated[int, at("wait", MIB, 2**40)] = MIB
    """bytes that a process reads from all connections before it handles them, but 4 KiB of each
    anyway; with more, one that brings much is handled sooner and the others later"""
    send_bytes_max: Annotated[int, at("close", MIB, 2**40)] = 512 * MIB
    """bytes that wait to be sent, on all connections of a process; beyond, the client with the most
    is given up"""
    slow_reader_s: Annotated[float, at("close", 1, 86_400)] = 60.0
    """seconds in which a peer for whom something waits has to take 64 KiB, or the rest"""
    unclaimed_profile_s_max: Annotated[int, at("drop", 0)] = 7 * 86_400
    """seconds after which a profile goes whose results nobody has ever come for, and that nobody
    has changed; 0: never. The log says so, and `unclaimed_removed` in `onyx status --json` counts
    them"""
    profiles_max: Annotated[int, at("refuse")] = 1_000_000
    """profiles in the network"""
    sources_max: Annotated[int, at("refuse")] = 10_000
    """data sources in the network"""
    principal_profiles_max: Annotated[int, at("refuse")] = 10_000
    """profiles of one user who is no operator (`over-quota`), without those that an operator has
    added for that user"""
    principal_sources_max: Annotated[int, at("refuse")] = 100
    """data sources that one principal who is no operator has registered"""
    publish_key_age_s: Annotated[int, at("drop")] = 86_400
    """seconds for which the root broker of its source remembers the publish key of a message, at
    least ([exactly-once.md](exactly-once.md))"""
    publish_keys_max: Annotated[int, at("drop", 64, 2**27)] = 262_144
    """publish keys of one source that are remembered, the latest; each takes about 50 bytes of
    memory and 25 of the disk. `publish_keys` in `onyx status --json` counts those of a broker"""
    source_publishers_max: Annotated[int, at("refuse", 1, 4096)] = 256
    """publishers of one source: those that are connected, and those with a name of their own that
    have been (`too-many-publishers`). `publishers` in `onyx status --json` counts the connected"""
    principal_messages_s_max: Annotated[int, at("refuse", 0)] = 0
    """messages that one principal, who is no operator, publishes in a second at one broker; 0: any
    number"""
    principal_bytes_s_max: Annotated[int, at("refuse", 0)] = 0
    """bytes of these; 0: any number"""
    principal_waiting_bytes_max: Annotated[int, at("drop", 0, 2**50)] = 16 * 1024 * MIB
    """bytes that wait for one user at one broker, of all their profiles, each with its own; 0: any
    number. Beyond, the oldest goes of the profiles that have most, as with
    `delivery_backlog_bytes_max`: whoever takes them is told how much is missing, and
    `dropped_for_users` in `onyx status --json` counts it"""

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        if self.link.frame_bytes_max < self.message.bytes_max:
            reason = f"must be at least limits.message.bytes_max, {self.message.bytes_max}"
            raise TopologyError("", "link.frame_bytes_max", reason)
        if self.training.dictionary_bytes_max > self.link.frame_bytes_max - KIB:
            reason = f"must leave {KIB} bytes of limits.link.frame_bytes_max"
            raise TopologyError("", "training.dictionary_bytes_max", reason)


def taken_limits(limits: Limits) -> MessageLimits:
    """Of messages that a root broker has taken: it alone holds them to ``[limits.message]``, which
    may be others by now, or elsewhere, so there is room."""
    own = asdict(limits.message)
    room = {name: max(own[name], most) for name, most in asdict(MESSAGE_ROOM).items()}
    return MessageLimits(**{**room, "bytes_max": limits.link.frame_bytes_max})
