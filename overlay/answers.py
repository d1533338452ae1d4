"""The answers of verbs: for each thing that the network tells its clients, the record of it.

The process that is asked makes the record, and the client gets the same one; a record of a newer
release may have more fields, which are passed over.  A field has the name that Python, ``--json``
and HTTP show; where the answer on the wire calls it otherwise, the field says so (``name=``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from formats.media_types import XML
from overlay.access import ANYTHING
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.settings import ProfileSettings, SourceTold

Location: TypeAlias = tuple[float, float]
"""(latitude, longitude) in degrees, north and east positive."""
Moment: TypeAlias = Annotated[int, Meta(description="seconds of the epoch")]


class Shown(msgspec.Struct, frozen=True):
    """A record that JSON shows.  It is taken as it is told, in whatever bounds."""

    bounded: ClassVar[bool] = False

    def shown(self) -> dict[str, Any]:
        """By the names of its fields, without those that are left out."""
        named = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: _shown(value) for name, value in named if value is not UNSET}


class Answer(Shown, frozen=True):
    """``of`` reads the answer on the wire, ``result`` makes it."""

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Self:
        """ValidationError where a field is not what it should be."""
        return msgspec.convert(result, cls, builtin_types=(bytes,))

    def result(self) -> dict[str, Any]:
        said: dict[str, Any] = msgspec.to_builtins(self, builtin_types=(bytes,))
        return said


class Entry(Shown, frozen=True, array_like=True):
    """One of many in an answer, which travels as a list."""


class Listing(Answer, frozen=True):
    """The first field has the entries; where there is a field ``more``, they are a page of them,
    and the request goes on behind the first field of the last (``after``)."""

    @property
    def entries(self) -> list[Any]:
        found: list[Any] = getattr(self, self.__struct_fields__[0])
        return found


def _shown(value: object) -> Any:
    if isinstance(value, Shown):
        return value.shown()
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    return msgspec.to_builtins(value)


@cache
def as_shown(kind: type[Shown]) -> type[msgspec.Struct]:
    """The type of what ``shown`` gives, for schemas and for readers."""
    fields: list[Any] = [
        (each.name, shown_type(each.type), _default(each)) for each in msgspec.structs.fields(kind)
    ]
    shown: type[msgspec.Struct] = msgspec.defstruct(
        kind.__name__, fields, kw_only=True, forbid_unknown_fields=True
    )
    shown.__doc__ = kind.__doc__
    return shown


def line_of(kind: type[Shown]) -> type[Shown]:
    """The record of an entry where an answer is a list, else of the answer."""
    if not issubclass(kind, Listing):
        return kind
    entry: type[Shown] = get_args(msgspec.structs.fields(kind)[0].type)[0]
    return entry


def _default(of: msgspec.structs.FieldInfo) -> Any:
    field_of: Any = msgspec.field
    return field_of(default=of.default, default_factory=of.default_factory)


def shown_type(hint: Any) -> Any:
    """The type of a value as JSON shows it."""
    if isinstance(hint, type) and issubclass(hint, Shown):
        return as_shown(hint)
    origin, inner = get_origin(hint), tuple(map(shown_type, get_args(hint)))
    if origin in (Union, UnionType):
        return Union[inner]  # noqa: UP007
    return origin[inner] if origin in (list, dict) else hint


# --- sources ----------------------------------------------------------------------------------


class SourceInfo(SourceTold, Answer, frozen=True):
    """A registered data source: ``root`` is its root broker, at ``address`` ("host:port").

    ``rate`` messages a second and ``size`` bytes a message as the source expects them; ``ready``
    once every broker knows it; ``validation`` by its root broker of messages against its
    schema ("off", "report" or "reject"); ``compression`` the forms of message for which it
    came with a compression dictionary; ``base`` the IRI that relative ones in its graphs are
    relative to, "" for none; ``schema_unread`` the documents that its schema refers to and has not;
    ``version`` counts its updates from 1; ``owner`` has registered it ("user/ann", "" without TLS);
    ``removed`` while it is on its way out.

    When it was updated: the names of the settings that have ``changed``; with another schema,
    ``warned``: how many profiles can match no message of any source any more, or need for their
    results parts that none has any more, and could before, of so many that were ``looked_at``;
    ``warnings``: the texts about the first of these, by profile.
    """

    id: str = field(name="source")
    name: str
    root: str
    address: str
    HERE: ClassVar[None]
    validation: str
    compression: list[str]
    ready: bool
    base: str = ""
    version: int = 1
    owner: str = ""
    removed: bool = False
    schema_unread: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    looked_at: int = 0
    warned: int = 0
    warnings: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Self:
        return super().of({**result, "warnings": dict(result.get("warnings", ()))})

    def result(self) -> dict[str, Any]:
        """``warnings`` travel as pairs."""
        return {**super().result(), "warnings": list(self.warnings.items())}


class Sources(Listing, frozen=True):
    sources: list[SourceInfo]

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Self:
        return cls([SourceInfo.of(each) for each in result["sources"]])

    def result(self) -> dict[str, Any]:
        return {"sources": [each.result() for each in self.sources]}


class SourceGone(Answer, frozen=True):
    """``id`` is removed."""

    id: str = field(name="source")


class SourceAnswer(Answer, frozen=True):
    body: bytes


class SourceSchema(Answer, frozen=True):
    """The documents of a source's schema, a bundle where they are several."""

    name: str
    kind: str
    schema: bytes


# --- profiles ---------------------------------------------------------------------------------


class ProfileInfo(ProfileSettings, Answer, frozen=True):
    """A profile: ``host`` is its host broker, at ``address`` ("host:port").

    ``version`` counts the updates from 1; ``live`` says that every broker on the way from every
    source knows this version, so that no message published from now on is missed.  ``near``: it
    insists on a host near its user.  ``text`` is None where it was not asked for.  ``warnings``,
    when it is added or changed: for each schema of the sources why no message that follows it can
    match, where all of them say so.  ``missing``, when it was waited for in vain: the brokers that
    do not have this version yet.  ``policy``: how its waiting deliveries are kept.
    """

    id: str = field(name="profile")
    user: str
    host: str
    address: str
    version: int
    live: bool
    HERE: ClassVar[None]
    text: str | None = None
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    policy: DeliveryPolicy = USUAL

    def result(self) -> dict[str, Any]:
        """Without a policy that is usual, and a text that was not asked for."""
        said = super().result()
        if self.policy is USUAL:  # as it is kept
            del said["policy"]
        if self.text is None:
            del said["text"]
        return said


class Profiles(Listing, frozen=True):
    """A page of profiles in order of registration, and whether there are more."""

    profiles: list[ProfileInfo]
    more: bool = False

    def result(self) -> dict[str, Any]:
        return {"profiles": [each.result() for each in self.profiles], "more": self.more}


class Waited(Answer, frozen=True, kw_only=True):
    """The answer to a change of profiles: whether it is ``live``; where that was waited for in
    vain, the brokers that do not have it yet."""

    live: bool = False
    missing: tuple[str, ...] = ()


class ProfileVersion(Waited, frozen=True, kw_only=True):
    profile: str
    version: int


class ProfileGone(Waited, frozen=True, kw_only=True):
    profile: str
    removed: bool = True


class ProfilesChanged(Waited, frozen=True, kw_only=True):
    """``refused``: (place from 0, code, reason); ``versions`` of all, 0 of these; of a removal
    there are none."""

    refused: list[tuple[int, str, str]]
    versions: list[int] = []


class ProfilesAdded(Answer, frozen=True):
    """The ids of ``profiles``, in order, without the ``refused``: (place from 0, code, reason)."""

    profiles: list[str]
    refused: list[tuple[int, str, str]]


class Hosts(Answer, frozen=True):
    """For each profile the id of its host broker, "" for none; the addresses of these brokers."""

    hosts: list[str]
    addresses: dict[str, str]


class Warnings(Answer, frozen=True):
    """``warnings``: (place, texts) of those that have any among the first ``looked_at``."""

    looked_at: int
    warnings: list[tuple[int, list[str]]]


class HostedIds(Answer, frozen=True):
    profiles: list[str]


class HostedProfile(Answer, frozen=True):
    """A profile as its host broker has it; ``suspended``: why it is, "" where it is not."""

    profile: str
    user: str
    version: int
    text: str
    suspended: str
    routing_query: list[str]


class Dearest(Answer, frozen=True):
    """``profiles``: (id, user, seconds of processor time) since the account of the user was
    full."""

    profiles: list[tuple[str, str, float]]


class ProfileAwaited(Answer, frozen=True):
    """Whether a profile is ``gone``, or else the ``warnings`` for its present text."""

    gone: bool
    warnings: tuple[str, ...] = ()


class PolicyInfo(Answer, frozen=True):
    profile: str
    policy: DeliveryPolicy


class Positions(Answer, frozen=True):
    """``refused``: (place from 0, code, reason); ``positions`` of the others, in order."""

    positions: list[Position]
    refused: list[tuple[int, str, str]]


class Position(Entry, frozen=True):
    """Of a profile all deliveries through ``gone`` were released or thrown away, the highest number
    is ``last``; ``lost`` of those that are gone were thrown away since it was released last."""

    profile: str
    gone: int
    last: int
    lost: int


class Waiting(Entry, frozen=True):
    """A delivery that waits at ``position``: the results end to end in ``payload``, with the bytes
    of each in ``lengths``, as in the frame `deliveries`; no ``lengths``: nothing after all."""

    position: int
    source: str
    number: int
    lengths: list[int]
    payload: bytes


class WaitingPage(Answer, frozen=True):
    """``deliveries``: the next ones; the answer comes when the first is read or evaluated.  All
    through ``gone`` were released or thrown away, the highest number is ``last``."""

    deliveries: list[Waiting]
    gone: int
    last: int


# --- access -----------------------------------------------------------------------------------


class Rule(Entry, frozen=True):
    principal: str
    role: str
    scope: str = ANYTHING
    from_topology: bool = False


class Rules(Listing, frozen=True):
    rules: list[Rule]


class Asker(Answer, frozen=True):
    """The principal that asks, "" without TLS, whether it operates and whether it administers the
    network; the ``rules`` that are about it; ``only``: the (role, scope) to which the token that it
    has shown is bound."""

    principal: str
    operates: bool
    administers: bool = False
    rules: list[Rule] = []
    only: list[tuple[str, str]] = []


class RuleChanged(Answer, frozen=True):
    """``changed``: False where all was so already."""

    principal: str = ""
    role: str = ""
    scope: str = ""
    changed: bool = False


class CertRenewed(Answer, frozen=True):
    """``certificates``: the new one, and those of the authority, in PEM."""

    certificates: str


class TokenIssued(Answer, frozen=True):
    token: str
    expires: Moment


class TokenInfo(Entry, frozen=True):
    """``only``: the (role, scope) to which a token is bound; none: to nothing."""

    token: str
    principal: str
    expires: Moment
    only: list[tuple[str, str]]


class Tokens(Listing, frozen=True):
    tokens: list[TokenInfo]


class TokenRevoked(Answer, frozen=True):
    token: str


class AuditEntry(Entry, frozen=True):
    """``before``: the digest of the entry before it in its chain, of changes or of those
    ``refused`` (overlay/link/audit.py)."""

    number: int
    at: Moment
    who: str
    what: str
    detail: str
    refused: bool = False
    before: str = ""


class AuditPage(Listing, frozen=True):
    entries: list[AuditEntry]
    more: bool


class AuditMark(Entry, frozen=True):
    """The digest of an entry, as the registration service has told it."""

    number: int
    digest: str
    refused: bool


class AuditMarked(Listing, frozen=True):
    marks: list[AuditMark]


# --- taxonomies -------------------------------------------------------------------------------


class TaxonomyInfo(Answer, frozen=True):
    """A registered taxonomy of so many ``bytes`` in a ``syntax`` (a media type): how many classes,
    properties and instances it names; ``version`` is the number of the change that put it."""

    name: str
    version: int
    syntax: str = ""
    bytes: int = 0
    classes: int = 0
    properties: int = 0
    instances: int = 0


class TaxonomyPut(TaxonomyInfo, frozen=True):
    """``changed``: False where it was so already."""

    changed: bool = False


class Taxonomies(Listing, frozen=True):
    taxonomies: list[TaxonomyInfo]
    version: int

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Self:
        listed = [TaxonomyInfo(*each, **counts) for *each, counts in result["taxonomies"]]
        return cls(listed, result["version"])

    def result(self) -> dict[str, Any]:
        """Each travels as a list, with its counts behind."""
        names = ("classes", "properties", "instances")
        listed = [
            [each.name, each.version, each.syntax, each.bytes, {n: getattr(each, n) for n in names}]
            for each in self.taxonomies
        ]
        return {"version": self.version, "taxonomies": listed}


class TaxonomyText(Answer, frozen=True):
    name: str
    version: int
    syntax: str
    text: bytes


class TaxonomyGone(Answer, frozen=True):
    name: str
    version: int


# --- a broker, looked at ----------------------------------------------------------------------


class BrokerDump(Answer, frozen=True):
    matcher: str
    routing_table: str


class TreeRouting(Answer, frozen=True):
    """How many ``disjuncts`` a routing query has on a tree, and the ``first`` of them."""

    tree: str
    disjuncts: int
    first: list[str]


class LinkRouting(Answer, frozen=True):
    """Of each tree on which ``link`` is a child."""

    link: str
    trees: list[TreeRouting]


class NearMiss(Answer, frozen=True):
    """A ``disjunct`` and the first ``part`` of it that does not hold, with a ``statement`` about
    that; so many ``more`` fail at the same part."""

    disjunct: str
    part: str
    statement: str
    more: int


class TraceLink(Answer, frozen=True, kw_only=True):
    """Whether a message is ``taken`` for a ``link``.

    If so, the ``bytes`` that cross in a ``format``, ``bytes_whole`` without the
    ``transformation``, and disjuncts that ``held``; if not, those that ``failed``.
    """

    link: str
    taken: bool
    format: str | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    bytes_whole: int | UnsetType = UNSET
    transformation: str | UnsetType = UNSET
    disjuncts: int
    held: list[str] | UnsetType = UNSET
    failed: list[NearMiss] | UnsetType = UNSET


class TraceStep(Answer, frozen=True, kw_only=True):
    """What a broker would do with the message, on a ``tree`` of the broker ``root``: the first
    ``profiles`` of all ``profiles_matched``, and the links to its children; ``no_graph``: why
    RDF/XML has no graph, where profiles ask for one."""

    broker: str
    root: str
    tree: str
    profiles: list[str]
    profiles_matched: int
    no_graph: str | UnsetType = UNSET
    links: list[TraceLink]


class CarriedMessage(Answer, frozen=True):
    """The arguments to ask the child with, less the source."""

    message: bytes
    format: str
    reflects: int
    pieces: bytes


class TransformedBranch(Answer, frozen=True):
    """The trees of ``roots``, on which the same ``brokers`` are behind the link: how many ``needs``
    those have, of so many bytes, and the ``query`` of the document reading, () if there is none."""

    roots: list[str]
    brokers: list[str]
    needs: int
    needs_bytes: int
    has_graph_profiles: bool
    query: str


class LinkTransformation(Answer, frozen=True):
    """``sent`` over the link: ``messages``, those ``cut``, ``bytes`` and ``bytes_saved``."""

    broker: str
    link: str
    transformation: str
    branches: list[TransformedBranch]
    sent: dict[str, int]


class Observing(Answer, frozen=True):
    observing: bool = True


# --- plans ------------------------------------------------------------------------------------


class PlanUsed(Answer, frozen=True):
    """The id of the plan that is in force, "" for none."""

    plan: str


class MatchedShares(Answer, frozen=True):
    """Of so many ``messages`` under a plan, how many have ``matched`` something of a partition:
    (partition, messages); and the mean share of the partitions that one matches, None without
    messages."""

    messages: float = 0.0
    matched: list[tuple[int, float]] = []
    matched_share: float | None = None


class PlanShown(Answer, frozen=True, kw_only=True):
    """The ``text`` of the ``plan`` in force; the shares that brokers have ``measured``; how many
    profiles were placed by it or otherwise; whether a stored plan cannot be used."""

    plan: str
    by_content: int | UnsetType = UNSET
    dont_care: int | UnsetType = UNSET
    by_location: int | UnsetType = UNSET
    overflow: int | UnsetType = UNSET
    unusable_plan: int | UnsetType = UNSET
    text: bytes
    measured: MatchedShares


class Drift(Answer, frozen=True):
    """How far a network is from a ``plan``: of its ``profiles`` so many are ``misplaced``, that is
    not at the plan's broker, and ``near`` insist on another; ``coverage`` and ``imbalance`` of the
    partitions as they are now; ``moves``: (from, to, profiles)."""

    plan: str
    profiles: int
    misplaced: int
    near: int
    coverage: float
    imbalance: float
    moves: list[tuple[str, str, int]] = []


class PlanProgress(Answer, frozen=True):
    """How far the profiles of a network are moved to where ``plan`` has them.

    ``state``: "never", "running", "paused", "done" or "aborted".  ``moved`` are at their new host,
    ``under_way`` between two; ``given_up`` counts moves to a host at which the profile did not
    become live in time.  Of all ``profiles`` this pass has ``looked_at`` so many, and ``put_off``
    some, by reason.  ``came`` and ``left`` count the moved by broker; at most ``rate`` begin in a
    second and ``at_once`` are under way.
    """

    state: str
    plan: str
    rate: float
    at_once: int
    moved: int
    given_up: int
    under_way: int
    looked_at: int
    profiles: int
    put_off: Mapping[str, int] = {}
    came: Mapping[str, int] = {}
    left: Mapping[str, int] = {}

    @property
    def is_over(self) -> bool:
        """Whether nothing moves any more, and nothing will unless it is asked for."""
        return self.state in ("never", "done", "aborted") and not self.under_way


class AutoPlan(Answer, frozen=True):
    """Whether the registration service plans by itself, and why it does or does not.

    ``state``: "waiting", "counting" (it compares the plan in force with the profiles) or
    "planning"; ``why``: for what it waits.  The last decision: ``plan``, ``at`` (seconds of the
    epoch; 0: nothing yet), for a ``reason``, which took so many ``seconds`` of planning.  Of all
    ``profiles``, ``changed`` since.  ``failures`` in a row, the last with this ``failure``; the
    next plan can be made in ``next_in`` seconds.  ``says``: all of that, for people.
    """

    is_on: bool
    state: str
    why: str
    plan: str
    at: float
    reason: str
    seconds: float
    profiles: int
    changed: int
    failures: int
    failure: str
    next_in: float
    says: list[str]


# --- the network ------------------------------------------------------------------------------


class Processes(Answer, frozen=True):
    """The id of the registration service, the addresses of the brokers by id, and the ids of the
    processes that do not run, as their launcher reports."""

    registration: str
    brokers: dict[str, str]
    down: frozenset[str] = frozenset()
    name: str = ""


class Done(Answer, frozen=True):
    """Nothing else."""


class ShapeProgress(Answer, frozen=True, kw_only=True):
    """The newest ``version`` of the network, and its ``stage``: "settled" at the end; ``missing``:
    by stage, the brokers that have not reached it, of so many ``brokers``."""

    version: int
    stage: str
    missing: dict[str, list[str]]
    brokers: int

    def sentence(self) -> str:
        """How far the change is, for people."""
        if self.stage == "settled":
            return f"version {self.version} is in place"
        for stage, rest in (
            ("announced", "to know it"),
            ("switched", "to set up their new trees"),
            ("settled", "to finish the messages on the old trees"),
        ):
            if missing := self.missing[stage]:
                return (
                    f"version {self.version}: {len(missing)} of {self.brokers} brokers "
                    f"still have {rest}: {', '.join(missing)}"
                )
        return f"version {self.version}: nearly in place"


class BrokerLeaving(ShapeProgress, frozen=True, kw_only=True):
    """``profiles`` that are still at the ``broker``, of which so many are ``moving``, and the
    ``sources`` whose root it still is; ``waits``: the condition that it waits for."""

    broker: str
    state: str
    profiles: int
    moving: int
    sources: int
    waits: str
    is_there: bool


class BrokerLoss(Answer, frozen=True):
    """The version of the network without the broker, and the profiles and sources that it had."""

    version: int
    profiles: int = 0
    sources: int = 0


class Lost(Answer, frozen=True):
    profiles: list[str]
    sources: list[str]


class ShapeChange(Answer, frozen=True):
    """The ``version`` that ``changes`` (a line each) lead to; ``trees``: the roots of trees that
    are built again; ``lost``: with brokers; ``settings`` that were taken, and those that take a
    start of some processes, by key."""

    version: int
    changes: list[str]
    trees: list[str]
    lost: Lost
    settings: list[str]
    takes_a_start: dict[str, str]


class Shape(ShapeProgress, frozen=True, kw_only=True):
    """The topology file of the network as it runs; the links that are ``down``, the brokers that
    are ``away``, and the version of the tree of each root."""

    text: str
    down: list[tuple[str, str]]
    away: list[str] = []
    trees: dict[str, int]


class TopologyText(Answer, frozen=True):
    text: str


# --- dead letters -----------------------------------------------------------------------------


class Letter(Answer, frozen=True, kw_only=True):
    """``kind``: poison, refused, undeliverable or over-limit; ``who`` sent or owns it;
    ``has_ended``: it has ended a core, and is passed over; ``count`` of the deliveries that had to
    go."""

    id: str
    at: float
    kind: str
    what: str
    who: str
    error: str
    size: int
    has_ended: bool
    profile: str
    source: str
    number: int
    format: str
    count: int


class LetterShown(Letter, frozen=True, kw_only=True):
    """``data``: the frame, the message or the results, and the ``lengths`` of the latter."""

    trace: str
    data: bytes
    lengths: list[int]


class Letters(Listing, frozen=True):
    """``let_go``: older ones that are kept no longer."""

    letters: list[Letter]
    let_go: int


class LetterReplayed(Answer, frozen=True):
    """Of a message that was refused its ``data``, to be published."""

    id: str
    kind: str
    format: str = ""
    data: bytes = b""

    @property
    def media_type(self) -> str:
        return self.format if "/" in self.format else XML


class LetterDropped(Answer, frozen=True):
    dropped: str


# --- archives ---------------------------------------------------------------------------------


class ArchivePage(Answer, frozen=True):
    """Whole lines of JSON, and the place where the page ends, "" where nothing is behind it;
    ``damaged``: files with messages of the page that cannot be read, and how many, a line each."""

    lines: bytes
    next: str
    damaged: tuple[str, ...] = ()
