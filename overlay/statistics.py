"""Statistics: what the processes of a network count and tell of themselves, a record a section.

A field says once what it is, in which unit, and as which metric Prometheus reads it (``counter``,
``gauge``).  Parts of a core write their figures into the record of its process (``Part.report``),
or count in a section of it.  The answer to ``statistics`` leaves out the fields of ``Counted``
sections that are zero or empty.  A reader makes a record of that answer again
(``onyx.network_view.decoded``): it passes over a field that only another release knows, and a field
that is not there has its default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from overlay.link.frame_memory import UNBOUNDED, FrameMemory
from overlay.link.histogram import Histogram
from yfilter.engine.work import EngineStatistics

Counts: TypeAlias = dict[str, int]
Amounts: TypeAlias = dict[str, float]
Measure: TypeAlias = Callable[[Any], object]


class Metric(NamedTuple):
    """``name`` without ``onyx_``, a counter's without ``_total``, "" for the name of the field;
    ``label`` of each entry of a mapping, without one its entries are counted; ``value``: what is
    measured of a field that is no number, or is in another unit."""

    name: str
    is_counter: bool
    label: str = ""
    value: Measure | None = None


def told(text: str) -> Meta:
    return Meta(description=text)


def counter(text: str, name: str = "", label: str = "") -> Meta:
    return Meta(description=text, extra={"metric": Metric(name, True, label)})


def gauge(text: str, name: str = "", label: str = "", value: Measure | None = None) -> Meta:
    return Meta(description=text, extra={"metric": Metric(name, False, label, value)})


class Counted(Struct, omit_defaults=True):
    """Counters, which parts add to."""


# --- of every process -----------------------------------------------------------------------------


class StoreCounts(Struct):
    commits: Annotated[int, counter("Commits of the store.", "store_commits")] = 0
    puts: Annotated[int, counter("Rows that were written.", "store_puts")] = 0
    epoch: Annotated[int | None, gauge("Of the process, where a node has a standby.")] = None


MINUTE = "The longest time of the last minute that everybody waited for one thing."


class Credentials(Struct):
    """By which the process shows who it is."""

    network: str = ""
    principal: str = ""
    revoked: Annotated[int, told("Certificates that nobody may show any more.")] = 0
    ends: Annotated[
        Amounts,
        gauge(
            "When the process' own certificate ends, and that of the network's authority, in "
            "seconds since 1970.",
            "certificate_end_seconds",
            label="of",
        ),
    ] = {}
    ending: Annotated[
        Amounts,
        gauge(
            "Of whom is connected: certificates that end within 30 days, and when.",
            "certificates_ending",
        ),
    ] = {}
    is_open: Annotated[bool, told("Every account of its machine can read its key.")] = False


class Node(Struct):
    """Times by the clock there, in seconds since 1970."""

    version: Annotated[str | None, told("Its release.")] = None
    build: Annotated[str, told("Of the engine: compiled, or the slow reference.")] = ""
    pid: int = 0
    started: float | None = None
    time: float | None = None
    longest_turn_ms: Annotated[float, told("Processor time for one thing, since the start.")] = 0.0
    longest_turn_of: Annotated[str, told("What took most of it.")] = ""
    longest_turn_minute_ms: Annotated[
        float, gauge(MINUTE, "longest_turn_seconds", value=lambda ms: ms / 1e3)
    ] = 0.0
    turns_s: Annotated[float, told("Processor time for all that was done.")] = 0.0
    admin: Annotated[str | None, told("Where Prometheus reads its metrics.")] = None
    tls: Annotated[
        Credentials | UnsetType | None,
        gauge("1 where there is no TLS.", "insecure", value=lambda tls: float(tls is None)),
    ] = UNSET
    store: StoreCounts = field(default_factory=StoreCounts)
    restarts: Annotated[
        int, gauge("Times that its launcher has started the process again, since it started.")
    ] = 0


class Dead(Struct):
    kept: Annotated[
        int, gauge("Inputs at which the process has failed; see onyx dead list.", "dead_letters")
    ] = 0
    set_aside: Annotated[
        Counts,
        gauge(
            "What is kept because it could not be dealt with, by kind; see onyx dead list.",
            label="kind",
        ),
    ] = {}


class Connection(Struct):
    peer: str
    principal: str
    state: str
    errors: int


class Sending(Struct):
    """``acknowledged`` and ``last`` are numbers of frames."""

    backlog_bytes: Annotated[int, told("Bytes that the peer has not acknowledged.")] = 0
    acknowledged: int = 0
    last: int = 0


class Journal(Struct):
    """What is kept for a peer."""

    online: bool = False
    meetings: Annotated[int, told("Connections since the start.")] = 0
    bytes_per_second: Annotated[float | None, told("That the link has carried.")] = None
    sending: Annotated[dict[str, Sending], told("By flow:key.")] = {}

    @property
    def backlog_bytes(self) -> int:
        return sum(channel.backlog_bytes for channel in self.sending.values())


def of_role(journals: Mapping[str, Journal], *roles: str) -> Iterator[tuple[str, Journal]]:
    """By the name of the peer."""
    return ((p.partition("/")[2], each) for p, each in journals.items() if p.startswith(roles))


def backlogs(journals: Mapping[str, Journal]) -> Counts:
    return {peer: each.backlog_bytes for peer, each in of_role(journals, "broker/")}


def online(journals: Mapping[str, Journal]) -> Counts:
    return {peer: each.online for peer, each in of_role(journals, "broker/", "registration/")}


ONLINE = "1 while a neighbour, or the registration service, is there."


class Links(Struct):
    open: Annotated[int, gauge("Open connections.", "connections")] = 0
    connections: Annotated[dict[str, Connection], told("By number.")] = {}
    memory: Annotated[
        FrameMemory,
        gauge(
            "What frames take that wait to leave.", "frame_memory_bytes", value=lambda m: m.bytes
        ),
    ] = field(default_factory=lambda: UNBOUNDED)
    peers: Annotated[int, told("Of which journals are kept.")] = 0
    journals: Annotated[
        dict[str, Journal],
        told("By peer (role/name)."),
        gauge("Bytes that wait for a neighbour.", "backlog_bytes", "to", backlogs),
        gauge(ONLINE, "peer_online", "peer", online),
    ] = {}
    backlog_bytes: Annotated[int, told("Of all peers.")] = 0

    def brokers(self) -> Iterator[tuple[str, Journal]]:
        """The neighbours among the peers."""
        return of_role(self.journals, "broker/")


class NodeStatistics(Struct):
    """Of any process."""

    node: Node = field(default_factory=Node)
    dead: Dead = field(default_factory=Dead)
    links: Links = field(default_factory=Links)
    unexpected: Annotated[
        Counts,
        counter("Frames that were refused, by the code of the error.", "frames_refused", "code"),
    ] = {}

    @property
    def disk_is_short(self) -> bool:
        """So that nothing new is taken."""
        return False


# --- of a broker ----------------------------------------------------------------------------------


class Control(Struct):
    sources: Annotated[int, gauge("Sources that are known here.")] = 0
    dictionaries: Annotated[int, told("That were derived from schemas.")] = 0


class Access(Struct):
    tokens: int = 0


class BrokerTaxonomies(Struct):
    version: Annotated[int, told("As the registration service said it last.")] = 0
    profiles_with_too_many: Annotated[int, told("Classes above; these stay as they are.")] = 0


class Compression(Struct):
    """Dictionaries by source and form, with spaces between."""

    given: dict[str, str] = {}
    trained: dict[str, list[str]] = {}
    trainings: int = 0
    bad_dictionaries: int = 0


class Estimate(Struct):
    """What a message costs in a format, on average."""

    format: str
    bytes: float
    encode_us: float
    decode_us: float
    us: Annotated[float, told("In all, on this link.")]


class ChosenFormat(Struct):
    """Of a link that chooses its format."""

    format: str
    why: str
    bytes_per_second: int
    measured: Annotated[int, told("Messages that were encoded in each to see.")]
    changes: int
    estimates: Annotated[list[Estimate], told("The quickest first.")]
    bandwidth: Annotated[str, told("Where it is known from.")]


class Data(Counted):
    """Messages, unless it says otherwise."""

    published: Annotated[int, counter("Messages that sources published here.")] = 0
    published_again: Annotated[int, told("By a key that was known.")] = 0
    refused: Annotated[int, counter("Messages that were published here and refused.")] = 0
    received: Annotated[int, counter("Messages that came from other brokers.")] = 0
    passed_over: int = 0
    unwanted: int = 0
    abandoned: Annotated[int, told("That could not be read any more.")] = 0
    match_over_limit: Annotated[int, told("Whose matching cost too much.")] = 0
    matched_nothing: Annotated[
        int, counter("Messages from other brokers that nobody here or further on wanted.")
    ] = 0
    matched_here: Annotated[int, counter("Messages that matched profiles of this broker.")] = 0
    passed_on_unchanged: Annotated[int, told("In the bytes that came.")] = 0
    deferred: Annotated[int, told("Matched for users here when there was time.")] = 0
    late: Annotated[int, told("Deliveries whose results are made aside.")] = 0
    dropped_deliveries: Annotated[int, told("For which there was no mailbox or no room.")] = 0
    delivered: Annotated[int, counter("Deliveries to mailboxes of users.")] = 0
    valid: int = 0
    invalid: int = 0
    not_validated: int = 0
    decoded: int = 0
    encoded: int = 0
    packed: int = 0
    unpacked: int = 0
    graphs_derived: int = 0
    no_graph: Annotated[int, told("Of which none could be derived.")] = 0
    given_back: Annotated[int, told("For want of a dictionary.")] = 0
    sent_again: Annotated[int, told("That a child gave back.")] = 0
    unlisted_format: Annotated[int, told("In a format that the next broker does not list.")] = 0
    results_made: Annotated[int, counter("Results that were made of messages.")] = 0
    results_over_limit: Annotated[
        int, counter("Results that a limit has prevented; users are told.")
    ] = 0
    publish_keys: Annotated[int, told("That are remembered.")] = 0
    publishers: Annotated[
        Counts, gauge("Publishers of a source that are connected.", label="source")
    ] = field(default_factory=Counter)
    sources: Annotated[
        Counts, counter("Messages that a source published here.", "source_messages", "source")
    ] = field(default_factory=Counter)
    source_bytes: Annotated[
        Counts, counter("Bytes of what a source published here.", label="source")
    ] = field(default_factory=Counter)
    refused_by_code: Annotated[
        Counts, counter("The same, by the code of the refusal.", label="code")
    ] = field(default_factory=Counter)
    invalid_by_source: Annotated[
        Counts, counter("Messages of a source that its schema does not allow.", "invalid", "source")
    ] = field(default_factory=Counter)
    crossings: Annotated[Counts, counter("Messages that were sent to a neighbour.", label="to")] = (
        field(default_factory=Counter)
    )
    crossing_bytes: Annotated[
        Counts, counter("Bytes of messages that were sent to a neighbour.", label="to")
    ] = field(default_factory=Counter)
    behind: Annotated[
        Counts, told("Bytes that wait on disk for a neighbour that is, or was, away.")
    ] = {}
    waiting_s: Annotated[
        dict[str, float],
        gauge(
            "How long the oldest that waits for a neighbour has, at least.", "backlog_seconds", "to"
        ),
    ] = {}
    disk_is_short: Annotated[bool, gauge("1 while the disk has less free than its reserve.")] = (
        False
    )
    formats: Annotated[dict[str, ChosenFormat], told("By neighbour, of links that choose.")] = {}
    end_to_end: Annotated[
        Histogram,
        gauge("From when its root broker took a message up until it was in mailboxes here."),
    ] = field(default_factory=Histogram)


class Archive(Struct):
    directory: Annotated[str | None, told("Null: this broker keeps no archive.")] = None
    written: Annotated[int | None, counter("Messages in the archive.", "archive_written")] = None
    left_out: Annotated[
        int | None, counter("Messages that the archive had to leave out.", "archive_left_out")
    ] = None
    waiting: Annotated[int, told("Messages that are to be written.")] = 0
    segments: Annotated[int, told("Files that are finished.")] = 0
    bytes: int = 0
    problem: Annotated[str, told("What the last writing met with.")] = ""


class Budgets(Struct):
    suspended: Annotated[
        dict[str, str],
        gauge(
            "Profiles that stand still, as their user's processor time is spent.",
            "suspended_profiles",
        ),
    ] = {}
    slowed: Annotated[list[str], told("Users who have spent half of theirs.")] = []
    slowed_sources: Annotated[
        list[str],
        gauge(
            "Whose messages take more than their size explains: half is spent.", "slowed_sources"
        ),
    ] = []
    kept_out_sources: Annotated[
        list[str], gauge("The same where all is spent: they are kept out.", "kept_out_sources")
    ] = []


class RoutingTableFigures(Struct):
    entries: Annotated[int, gauge("Entries of the routing table.", "routing_entries")] = 0
    table_bytes: Annotated[
        int, gauge("What the routing table takes, of its budget.", "routing_bytes")
    ] = 0
    useless: Annotated[
        int,
        counter(
            "Messages that came for the sake of a routing table that says too much.",
            "useless_crossings",
        ),
    ] = 0
    unexplained: Annotated[
        int, told("That no generalisation let pass: profiles say more, or an interest had gone.")
    ] = 0
    branches: int = 0
    interests: int = 0
    told: Annotated[int, told("Disjuncts that parents know.")] = 0
    generalisations: int = 0
    generalised: int = 0
    revised: Annotated[int, told("Generalisations that cost too much and gave way.")] = 0


class Sent(Struct):
    """Over a link that cuts messages to what is needed behind it."""

    messages: int = 0
    cut: Annotated[
        int, counter("Messages that were cut down for a neighbour.", "cut_messages", "to")
    ] = 0
    bytes: Annotated[
        int, counter("Bytes of messages that went to a neighbour that cuts.", "link_bytes", "to")
    ] = 0
    bytes_saved: Annotated[
        int, counter("About as many bytes as cutting has spared on a link.", "spared_bytes", "to")
    ] = 0


class Transformation(Struct):
    is_on: bool = False
    needs_widened: Annotated[int, told("Needs that are told by a wider one.")] = 0
    former_versions: Annotated[int, told("Former texts of profiles that are kept.")] = 0
    former_versions_forgotten: int = 0
    not_reflected: int = 0
    links: Annotated[dict[str, Sent], told("By neighbour.")] = {}


class Query(Struct):
    profiles: Annotated[int, gauge("Profiles that are hosted here.")] = 0
    unclaimed_removed: Annotated[int, told("As nobody came for their results.")] = 0
    routing_table: RoutingTableFigures = field(default_factory=RoutingTableFigures)
    matcher: Annotated[
        EngineStatistics,
        gauge("What the index of profiles takes.", "index_bytes", value=lambda m: m.index_bytes),
        gauge(
            "What lazy tables take that are made while matching.",
            "lazy_dfa_bytes",
            value=lambda matcher: matcher.index_lazy_bytes,
        ),
    ] = field(default_factory=EngineStatistics)
    transformation: Transformation = field(default_factory=Transformation)


class Mailboxes(Counted):
    """Deliveries; those that were dropped for any limit are told apart below it."""

    rejected: int = 0
    dropped_for_limits: Annotated[
        int, counter("Deliveries that went untaken for any limit of the network.")
    ] = 0
    dropped_for_users: int = 0
    dropped_for_room: Annotated[
        int, counter("Deliveries of these that went for want of room in the store.")
    ] = 0
    dropped_for_age: Annotated[
        int, counter("Deliveries of these that went as they were too old.")
    ] = 0
    waiting: Annotated[int, gauge("Deliveries that wait for users.", "mailbox_deliveries")] = 0
    waiting_bytes: Annotated[int, told("Of these, a result once for each user.")] = 0
    bytes_of_users: Annotated[Mapping[str, int], told("Of what waits for each.")] = {}
    subscribers: Annotated[int, told("Connections that take results.")] = 0
    silent: Annotated[int, told("Ephemeral mailboxes that nobody takes from.")] = 0
    stored_bytes: Annotated[int, gauge("Bytes of what waits for users.", "mailbox_bytes")] = 0
    oldest_s: Annotated[
        int, gauge("How long the oldest that waits for a user has.", "mailbox_oldest_seconds")
    ] = 0
    attached: Annotated[int, gauge("Connections that take results.", "subscribers")] = 0


class BrokerStatistics(NodeStatistics):
    broker: str = ""
    control: Control = field(default_factory=Control)
    access: Access = field(default_factory=Access)
    taxonomies: BrokerTaxonomies = field(default_factory=BrokerTaxonomies)
    compression: Compression = field(default_factory=Compression)
    data: Data = field(default_factory=Data)
    archive: Archive = field(default_factory=Archive)
    budgets: Budgets = field(default_factory=Budgets)
    query: Query = field(default_factory=Query)
    mailboxes: Mailboxes = field(default_factory=Mailboxes)

    @property
    def disk_is_short(self) -> bool:
        return self.data.disk_is_short

    @property
    def waiting_bytes(self) -> int:
        """For neighbours, and for users."""
        return self.links.backlog_bytes + self.mailboxes.stored_bytes


class LinkFigures(Struct, array_like=True):
    crossings: Annotated[int, told("Messages that went there.")]
    waiting_bytes: Annotated[int, told("Of messages that wait for the neighbour.")]
    format: str
    is_here: Annotated[bool, told("Whether the neighbour is connected.")]


class Figures(Struct):
    """Where the counters of a broker stand, as observers are told while they change."""

    published: int = 0
    delivered: int = 0
    refused: int = 0
    profiles: int = 0
    waiting_bytes: Annotated[int, told("Of results that wait for users.")] = 0
    links: Annotated[dict[str, LinkFigures], told("By neighbour.")] = {}


# --- of a registration service --------------------------------------------------------------------


class Rebuild(Struct):
    """Of the catalog, from the brokers."""

    awaits: Annotated[list[str] | None, told("Brokers; null: it is not rebuilt.")] = None
    said: Annotated[str, told("What came of it.")] = ""


class Catalog(Struct):
    sources: Annotated[int, gauge("Sources of the network.", "catalog_sources")] = 0
    profiles: Annotated[int, gauge("Profiles of the network.", "catalog_profiles")] = 0


class Requests(Struct):
    disk_is_short: Annotated[bool, gauge("1 while the disk has less free than its reserve.")] = (
        False
    )


class Shape(Struct):
    gone_round: Annotated[list[str], told("Brokers that trees of others go round.")] = []


class Placement(Counted):
    plan: Annotated[str, told("Its id.")] = ""
    by_content: int = 0
    dont_care: int = 0
    overflow: Annotated[int, told("Profiles for which a broker of the plan had no room.")] = 0


class Taxonomies(Struct):
    taxonomies: int = 0
    version: int = 0


class Moves(Struct):
    under_way: Annotated[
        int, gauge("Profiles that are moving to where the plan has them.", "moves_under_way")
    ] = 0


class Application(Struct):
    """Of the plan, to profiles that were there before it."""

    to_look_at: Annotated[
        int,
        gauge(
            "Profiles that are yet to be looked at, whether they have to move.", "moves_to_look_at"
        ),
    ] = 0


class Planning(Struct):
    states: Annotated[
        Counts,
        gauge(
            "1 for the state that automatic planning is in; see onyx plan status.",
            *("planning", "state"),
        ),
    ] = {}
    made: Annotated[int, counter("Plans that were made automatically.", "plans_made")] = 0
    failed: Annotated[
        int, counter("How often making a plan automatically has failed.", "plans_failed")
    ] = 0


class Processes(Struct):
    down: Annotated[dict[str, str], told("Why a node does not run, as its launcher says.")] = {}
    away: Annotated[list[str], told("Brokers that are away for long.")] = []


class RegistrationStatistics(NodeStatistics):
    registration: str = ""
    rebuild: Rebuild = field(default_factory=Rebuild)
    catalog: Catalog = field(default_factory=Catalog)
    requests: Requests = field(default_factory=Requests)
    drains: Annotated[dict[str, str], told("How far a broker is that leaves.")] = {}
    shape: Shape = field(default_factory=Shape)
    placement: Placement = field(default_factory=Placement)
    taxonomies: Taxonomies = field(default_factory=Taxonomies)
    moves: Moves = field(default_factory=Moves)
    application: Application = field(default_factory=Application)
    planning: Planning = field(default_factory=Planning)
    processes: Processes = field(default_factory=Processes)

    @property
    def disk_is_short(self) -> bool:
        return self.requests.disk_is_short
