"""The verbs of the network: for each the record of its arguments, the right that it takes, and one
line of help.

A client asks by making the record; the process that is asked reads the arguments into the same
record, and answers by one function (overlay/link/request_server.py).  A field stands
here with its bounds and nowhere else; arguments of a newer release are passed over.  Where a broker
and the registration service have a verb of the same name, each has a record of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from formats.schema import SCHEMA_BYTES_MAX
from overlay import answers
from overlay.access import ANYTHING, Right, Role
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.frame_fields import NAME_BYTES_MAX, Name, Whole
from overlay.link.principal import Principal
from overlay.settings import Degrees, ProfileSettings, SourceSettings, may_be_unset
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS

BATCH_MAX = 10_000  # profiles in one request
PLAN_BYTES_MAX = 12 * 1024 * 1024
TAXONOMY_BYTES_MAX = 8 * 1024 * 1024
TOPOLOGY_LENGTH_MAX = 2 * 1024 * 1024  # the largest network, every value written out, has 1.4
TIMEOUT_SECONDS_MAX = 86_400
TOKEN_SECONDS_MAX = 10 * 366 * 86_400
TOKEN_DIGEST_BYTES = 32
SIGNING_REQUEST_BYTES_MAX = 4_096
ONLY_MAX = 100  # roles that a token is bound to
PLAN_RATE, PLAN_RATE_MAX = 50.0, 10_000.0  # moves that begin in a second
PLAN_AT_ONCE, PLAN_AT_ONCE_MAX = 16, 1_024  # moves under way
FILTER_NAMES_MAX = 64
PATH_LENGTH_MAX = 4_096
QUESTION_BYTES_MAX = 8 * 1024 * 1024
ASK_SECONDS = 30.0
FOREVER = 1e14  # seconds of the epoch
T = TypeVar("T")
A_co = TypeVar("A_co", covariant=True)

SourceRef: TypeAlias = Annotated[Name, Meta(description="its id or its name")]
Names: TypeAlias = Annotated[
    list[Annotated[str, Meta(max_length=NAME_BYTES_MAX)]],
    Meta(min_length=1, max_length=BATCH_MAX),
]
Texts: TypeAlias = Annotated[
    list[Annotated[str, Meta(max_length=DEFAULT_PROFILE_LIMITS.length_max)]],
    Meta(max_length=BATCH_MAX),
]
Number: TypeAlias = Annotated[float, Meta(ge=0, lt=1e15)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=TIMEOUT_SECONDS_MAX)]
Schema: TypeAlias = Annotated[bytes, Meta(max_length=SCHEMA_BYTES_MAX)]
PlanText: TypeAlias = Annotated[bytes, Meta(max_length=PLAN_BYTES_MAX)]
Filter: TypeAlias = Annotated[list[str], Meta(max_length=FILTER_NAMES_MAX)]


class Effect(Enum):
    """The things that a verb changes."""

    NONE = "nothing"
    OWN = "things of the user or the source that asks; where an operator does, in the audit log"
    DELIVERED = "what is delivered to the user that asks"
    PLACES = "where profiles are and will be placed, with a line in the audit log"
    REPORTED = "what the network says of its processes"
    SHARED = "things of others, with a line in the audit log"


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments of a request, ``asked_of`` a process of this kind.

    ``adds``: the verb may make the store larger by as much as the asker likes.
    ``waits``: its answer waits for a commit, though it changes nothing.  ``effect``: the
    things that it changes; of Effect.SHARED its function answers by a Changed.
    ``is_idempotent``: to ask it twice changes no more than to ask it once; a verb that is not, and
    makes something, knows a request that is asked again by its id.  ``answer``: the
    record of its answer.  ``route``: its method and path at a gateway, with the arguments that
    stand in it, and ``{node}``, the process that is asked, where that is any.  ``is_command``:
    ``onyx NOUN VERB`` asks it with these arguments, and prints the answer.
    """

    verb: ClassVar[str]
    right: ClassVar[Right] = Right.OPERATE
    asked_of: ClassVar[str] = "the registration service"
    adds: ClassVar[bool] = False
    waits: ClassVar[bool] = False
    effect: ClassVar[Effect] = Effect.NONE
    is_idempotent: ClassVar[bool] = True
    answer: ClassVar[type[Any]] = dict
    route: ClassVar[str] = ""
    is_command: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """``verb`` is the name of the record, unless it says another; "" of fields that several
        verbs share."""
        if "verb" not in vars(cls):
            cls.verb = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower().replace("_", ".", 1)

    @classmethod
    def needs_store(cls) -> bool:
        """Whether the verb cannot be answered while nothing can be stored."""
        return cls.waits or cls.effect is not Effect.NONE

    @property
    def right_taken(self) -> Right:
        """The right that the verb takes with these arguments."""
        return self.right

    def arguments(self) -> dict[str, object]:
        """As they travel, without those that have their default."""
        said: dict[str, object] = msgspec.to_builtins(self, builtin_types=(bytes,))
        return said

    @classmethod
    def summary(cls) -> str:
        """The first sentence about it, without its full stop."""
        return " ".join((cls.__doc__ or "").split(".")[0].split(";")[0].split())


class Asks(Protocol[A_co]):
    """A request with an answer of a certain kind, for the checker of types."""

    verb: ClassVar[str]

    @property
    def answer(self) -> type[A_co]: ...

    def arguments(self) -> dict[str, object]: ...


# --- sources ----------------------------------------------------------------------------------


_SourceSettings: Any = may_be_unset(SourceSettings, Asked, verb="")


class SourceSaid(_SourceSettings, frozen=True, kw_only=True):  # type: ignore[call-arg, misc]
    """A source's settings that can be changed later."""

    verb = ""

    schema_name: Name | UnsetType = UNSET
    schema: Schema = b""
    validate: str | UnsetType = UNSET


class SourceRegister(SourceSaid, frozen=True, kw_only=True):  # type: ignore[call-arg]
    """Register a data source, or find it; by ``key``, or by its name with ``ensure``."""

    right = Right.PUBLISH
    adds = True
    effect = Effect.OWN
    is_idempotent = False
    answer: ClassVar = answers.SourceInfo

    name: Name | UnsetType = UNSET
    compression: dict[str, bytes] = msgspec.field(default_factory=dict)
    base: Name = ""
    key: Name = ""
    ensure: bool = False


class SourceNamed(Asked, frozen=True, kw_only=True):
    verb = ""

    source: SourceRef


class SourceUpdate(SourceSaid, frozen=True, kw_only=True):  # type: ignore[call-arg]
    """Change the settings of a source; ``schema_name`` "": it has no schema from now on."""

    right = Right.PUBLISH
    effect = Effect.SHARED
    answer: ClassVar = answers.SourceInfo

    source: SourceRef


class SourceRemove(SourceNamed, frozen=True, kw_only=True):
    """Remove a source; what it accepted is still delivered."""

    right = Right.PUBLISH
    effect = Effect.SHARED
    answer: ClassVar = answers.SourceGone
    route = "DELETE /v1/sources/{source}"


class SourceShow(SourceNamed, frozen=True, kw_only=True):
    """Show a source."""

    right = Right.KNOWN
    answer: ClassVar = answers.SourceInfo
    route = "GET /v1/sources/{source}"


class SourceSchema(SourceNamed, frozen=True, kw_only=True):
    """The schema of a source."""

    right = Right.KNOWN
    answer: ClassVar = answers.SourceSchema


class SourceAsk(Asked, frozen=True, kw_only=True):
    """Ask the process that publishes as a source.

    Waits ``timeout`` seconds at most.  With ``writes``, which takes the right ``publish``, the
    source may change something.  Refused as "source-away" while no process is connected as the
    source.
    """

    asked_of = "its root broker"
    right = Right.SUBSCRIBE
    effect = Effect.OWN
    is_idempotent = False
    answer: ClassVar = answers.SourceAnswer

    source: SourceRef
    body: Annotated[bytes, Meta(max_length=QUESTION_BYTES_MAX)]
    writes: bool = False
    timeout: Seconds = ASK_SECONDS

    @property
    def right_taken(self) -> Right:
        return Right.PUBLISH if self.writes else self.right


class SourceList(Asked, frozen=True, kw_only=True):
    """The sources that the asker may see or publish as."""

    right = Right.KNOWN
    answer: ClassVar = answers.Sources
    route = "GET /v1/sources"


# --- profiles, at the registration service ----------------------------------------------------


class OfUser(Asked, frozen=True, kw_only=True):
    """``user``: whose profiles; the user who asks, where nobody is named."""

    verb = ""
    right = Right.OWN

    user: Name = ""


class ProfileSaid(ProfileSettings, OfUser, frozen=True, kw_only=True):
    verb = ""
    adds = True
    effect = Effect.OWN
    is_idempotent = False

    location: Degrees | None = None
    wait: bool = False


class ProfileAdd(ProfileSaid, frozen=True, kw_only=True):
    """Register a profile, or find it; by ``key``."""

    answer: ClassVar = answers.ProfileInfo

    text: str
    timeout: Number | UnsetType = UNSET
    key: Name = ""
    policy: DeliveryPolicy = USUAL


class ProfileAddMany(ProfileSaid, frozen=True, kw_only=True):
    """Register many profiles; ``users``, where they are given: of each text one.

    Where one is refused none is added, unless ``skip_refused``.  The last 65,536 such requests are
    remembered by their ids: repeated, one adds nothing and has the same answer.
    """

    answer: ClassVar = answers.ProfilesAdded

    texts: Annotated[Texts, Meta(min_length=1)]
    users: Names | UnsetType = UNSET
    skip_refused: bool = False


class ProfileNamed(Asked, frozen=True, kw_only=True):
    """``profile``: an id."""

    verb = ""
    right = Right.OWN

    profile: Name


class ProfilesNamed(Asked, frozen=True, kw_only=True):
    """``profiles``: ids."""

    verb = ""
    right = Right.OWN

    profiles: Names


class ProfileAwait(ProfileNamed, frozen=True, kw_only=True):
    """Answered when the service has ``version`` of a profile; 0: when it is gone."""

    answer: ClassVar = answers.ProfileAwaited

    version: Number = 0


class ProfileShow(ProfileNamed, frozen=True, kw_only=True):
    """Show a profile with its text; ``profile``: its id, or its key, or USER/KEY."""

    answer: ClassVar = answers.ProfileInfo
    route = "GET /v1/profiles/{profile}"


_ProfileSettings: Any = may_be_unset(ProfileSettings, ProfileNamed, verb="")


class ProfileSet(_ProfileSettings, frozen=True, kw_only=True):  # type: ignore[call-arg, misc]
    """Change settings of a profile; those that are not given stay."""

    effect = Effect.OWN
    answer: ClassVar = answers.ProfileInfo
    route = "PATCH /v1/profiles/{profile}"
    is_command = True


class ProfileList(OfUser, frozen=True, kw_only=True):
    """List profiles in order of registration, or of ``sort``; a page, behind the id ``after``.

    ``skip``: how many of these to leave out first; ``texts``: with their texts, fewer to a page.
    """

    answer: ClassVar = answers.Profiles

    after: Name = ""
    texts: bool = False
    search: Annotated[
        Name, Meta(description="only those with this in the id, user, host broker or text")
    ] = ""
    sort: Annotated[
        Literal["", "profile", "user", "host", "version"], Meta(description="the order")
    ] = ""
    descending: Annotated[bool, Meta(description="the last by this order first")] = False
    skip: Whole = 0


class ProfileFindMany(ProfilesNamed, frozen=True, kw_only=True):
    """The host broker of each profile."""

    answer: ClassVar = answers.Hosts


class ProfileWarnings(ProfilesNamed, frozen=True, kw_only=True):
    """The warnings that schemas give for the profiles, at most 100 where sources have schemas."""

    answer: ClassVar = answers.Warnings


# --- profiles, at their host broker -----------------------------------------------------------


class Waits(Asked, frozen=True, kw_only=True):
    """``wait``: until all brokers have it, ``timeout`` seconds at most."""

    verb = ""
    asked_of = "its host broker"
    right = Right.OWN

    wait: bool = False
    timeout: Seconds | UnsetType = UNSET


class ProfileUpdate(Waits, frozen=True, kw_only=True):
    """Replace the text of a profile."""

    effect = Effect.OWN
    is_idempotent = False
    answer: ClassVar = answers.ProfileVersion

    profile: Name
    text: str


class ProfileRemove(Waits, frozen=True, kw_only=True):
    """Remove a profile with all that was not delivered."""

    effect = Effect.OWN
    answer: ClassVar = answers.ProfileGone

    profile: Name


class ProfileLive(Waits, frozen=True, kw_only=True):
    """Whether all brokers have a profile as it is now."""

    answer: ClassVar = answers.ProfileVersion

    profile: Name


class ProfileUpdateMany(Waits, frozen=True, kw_only=True):
    """Replace the texts of many profiles; a text that a profile has already changes nothing."""

    effect = Effect.OWN
    answer: ClassVar = answers.ProfilesChanged

    profiles: Names
    texts: Texts = []
    skip_refused: bool = False


class ProfileRemoveMany(Waits, frozen=True, kw_only=True):
    """Remove many profiles."""

    effect = Effect.OWN
    answer: ClassVar = answers.ProfilesChanged

    profiles: Names


class ProfilePolicy(ProfileNamed, frozen=True, kw_only=True):
    """The delivery policy of a profile; from now on ``policy``, where it is given.

    Refused as "no-policies" where the registration service is away.
    """

    asked_of = "its host broker"
    effect = Effect.OWN
    answer: ClassVar = answers.PolicyInfo

    policy: DeliveryPolicy | UnsetType = UNSET


class ProfilePositions(ProfilesNamed, frozen=True, kw_only=True):
    """The positions of profiles; the broker deletes deliveries through ``released``, one for each.

    A consumer that takes a profile held (the mode of ``attach``) releases its deliveries so.
    """

    asked_of = "its host broker"
    effect = Effect.DELIVERED
    answer: ClassVar = answers.Positions

    released: Annotated[list[Whole], Meta(max_length=BATCH_MAX)] = []


class ProfileWaiting(ProfileNamed, frozen=True, kw_only=True):
    """Deliveries that wait behind position ``after``, through ``through``: a page of them, which
    stay until they are released."""

    asked_of = "its host broker"
    waits = True
    answer: ClassVar = answers.WaitingPage

    after: Whole = 0
    through: Whole


class HostedList(Asked, frozen=True, kw_only=True):
    """The ids of all profiles that a broker hosts."""

    asked_of = "a broker"
    verb = "profile.list"
    answer: ClassVar = answers.HostedIds


class HostedShow(ProfileNamed, frozen=True, kw_only=True):
    """A profile as its host broker has it."""

    asked_of = "its host broker"
    verb = "profile.show"
    answer: ClassVar = answers.HostedProfile


class ProfileDearest(Asked, frozen=True, kw_only=True):
    """The ``count`` profiles that have taken most processor time."""

    asked_of = "a broker"
    answer: ClassVar = answers.Dearest

    count: Number = 10


# --- a broker, looked at ----------------------------------------------------------------------


class Sync(Asked, frozen=True, kw_only=True):
    """Answered when all that came before on this connection is on disk."""

    asked_of = "a broker"
    right = Right.KNOWN
    waits = True
    answer: ClassVar = answers.Done


class Dump(Asked, frozen=True, kw_only=True):
    """The matcher and the routing table."""

    asked_of = "a broker"
    answer: ClassVar = answers.BrokerDump


class RoutingShow(Asked, frozen=True, kw_only=True):
    """The routing queries of ``link``, a neighbour."""

    asked_of = "a broker"
    answer: ClassVar = answers.LinkRouting

    link: Name


class MessageTried(Asked, frozen=True, kw_only=True):
    """``reflects``: 0 is a whole message; ``accepted``: seconds of the epoch."""

    verb = ""
    asked_of = "a broker"

    source: Name
    message: bytes
    format: Name = "text"
    reflects: Number = 0
    accepted: Number | UnsetType = UNSET
    pieces: bytes = b""


class Trace(MessageTried, frozen=True, kw_only=True):
    """The children that would get a message and why, and the profiles that match it.

    ``reflects``: 0 is a whole message; ``accepted``: seconds of the epoch.
    """

    answer: ClassVar = answers.TraceStep


class TraceCarried(MessageTried, frozen=True, kw_only=True):
    """The message as ``link``, a child, would get it."""

    answer: ClassVar = answers.CarriedMessage

    link: Name


class TransformShow(Asked, frozen=True, kw_only=True):
    """Print the transformation query of a link, for whom it is and what it saves; ``link``: a
    neighbour."""

    asked_of = "a broker"
    answer: ClassVar = answers.LinkTransformation

    link: Name
    root: Annotated[Name, Meta(description="only the tree of this root broker")] | UnsetType = UNSET


class Observe(Asked, frozen=True, kw_only=True):
    """Tell of messages that fit all filters (none is all), ``events_max`` a second; or
    ``figures``."""

    asked_of = "a broker"
    answer: ClassVar = answers.Observing

    kinds: Filter = []
    sources: Filter = []
    links: Filter = []
    profiles: Filter = []
    path: Annotated[str, Meta(max_length=PATH_LENGTH_MAX)] = ""
    events_max: Annotated[int, Meta(ge=0)] = 0
    figures: bool = False


class ArchiveRead(Asked, frozen=True, kw_only=True):
    """Print messages of a source; a page of its archive, ``since`` to ``until`` in seconds of the
    epoch, behind ``after``, which is ``next`` of the page before."""

    asked_of = "its root broker"
    right = Right.READ_ARCHIVE
    answer: ClassVar = answers.ArchivePage

    source: SourceRef
    since: Number = 0
    until: Number = FOREVER
    after: Name = ""


class Statistics(Asked, frozen=True, kw_only=True):
    """All figures in short; or a page of the collection ``of``: entries with ``match`` in them,
    from the number ``first``.

    The answer is a map, as parts tell more than overlay/statistics.py names, of which its records
    read what they know.
    """

    asked_of = "any process"

    of: Name = ""
    first: Number = 0
    match: Name = ""


# --- dead letters -----------------------------------------------------------------------------


class DeadList(Asked, frozen=True, kw_only=True):
    """List dead letters; of a user, or of all."""

    asked_of = "any process"
    right = Right.OWN
    answer: ClassVar = answers.Letters

    user: Annotated[Name, Meta(description="only those of this user's profiles")] = ""


class DeadLetterNamed(Asked, frozen=True, kw_only=True):
    verb = ""
    asked_of = "any process"
    right = Right.OWN

    id: Annotated[Name, Meta(description="as onyx dead list prints it")]


class DeadShow(DeadLetterNamed, frozen=True, kw_only=True):
    """Show a dead letter with its data."""

    answer: ClassVar = answers.LetterShown
    route = "GET /v1/dead/{node}/{id}"


class DeadReplay(DeadLetterNamed, frozen=True, kw_only=True):
    """Handle a dead letter once more.

    Results are delivered again, a poison is handled when it comes again, a refused message comes
    back to be published.  Refused as "not-kept" where not all of it was kept.
    """

    effect = Effect.OWN
    answer: ClassVar = answers.LetterReplayed


class DeadDrop(DeadLetterNamed, frozen=True, kw_only=True):
    """Keep a dead letter no longer; a poison is handled again when it comes again."""

    effect = Effect.OWN
    answer: ClassVar = answers.LetterDropped
    route = "DELETE /v1/dead/{node}/{id}"


# --- the network ------------------------------------------------------------------------------


class Network(Asked, frozen=True, kw_only=True):
    """The address of every broker, and the processes that do not run."""

    right = Right.KNOWN
    answer: ClassVar = answers.Processes
    route = "GET /v1/network"


class ProcessesReport(Asked, frozen=True, kw_only=True):
    """``down``: why a node does not run, of all that do not."""

    effect = Effect.REPORTED
    answer: ClassVar = answers.Done

    down: dict[str, Annotated[str, Meta(max_length=256)]]


class BrokerNamed(Asked, frozen=True, kw_only=True):
    verb = ""

    broker: Annotated[Name, Meta(description="the broker, as the topology has it")]


class BrokerDrain(BrokerNamed, frozen=True, kw_only=True):
    """Move all away from a broker, which is to leave.

    Refused as "network-cut", "network-full" or "too-late".
    """

    effect = Effect.SHARED
    answer: ClassVar = answers.BrokerLeaving
    route = "POST /v1/brokers/{broker}/drain"

    stop: Annotated[bool, Meta(description="let it stay, if it is not too late")] = False
    dry_run: bool = False


class BrokerProgress(BrokerNamed, frozen=True, kw_only=True):
    """How far a broker's leaving is."""

    answer: ClassVar = answers.BrokerLeaving
    route = "GET /v1/brokers/{broker}/progress"


class BrokerLost(BrokerNamed, frozen=True, kw_only=True):
    """Go on without a broker that died with its disk.

    Refused as "network-cut", or "broker-here" while it is connected.
    """

    effect = Effect.SHARED
    answer: ClassVar = answers.BrokerLoss
    route = "POST /v1/brokers/{broker}/lost"

    dry_run: Annotated[bool, Meta(description="only say what would be")] = False


class TopologyApply(Asked, frozen=True, kw_only=True):
    """Change the network to the topology file ``text``; ``lost``: brokers that died with their
    disks."""

    effect = Effect.SHARED
    answer: ClassVar = answers.ShapeChange
    route = "POST /v1/topology"

    text: Annotated[str, Meta(max_length=TOPOLOGY_LENGTH_MAX)]
    lost: list[str] = []
    dry_run: bool = False


class TopologyProgress(Asked, frozen=True, kw_only=True):
    """Which brokers have the newest version of the network."""

    answer: ClassVar = answers.ShapeProgress
    route = "GET /v1/topology/progress"


class TopologyShow(Asked, frozen=True, kw_only=True):
    """The network as it runs."""

    answer: ClassVar = answers.Shape
    route = "GET /v1/topology"


class TopologyProcesses(Asked, frozen=True, kw_only=True):
    """The topology file that the processes of the network follow."""

    answer: ClassVar = answers.TopologyText


class AuditList(Asked, frozen=True, kw_only=True):
    """List the audit log, the oldest entry first.

    One page of it, behind the number ``after``.
    """

    right = Right.ADMIN
    answer: ClassVar = answers.AuditPage
    route = "GET /v1/audit"
    is_command = True

    after: Annotated[Number, Meta(description="only entries behind this number")] = 0


class AuditMarks(Asked, frozen=True, kw_only=True):
    """The digests of entries of the audit log that a broker was told last."""

    asked_of = "a broker"
    right = Right.ADMIN
    answer: ClassVar = answers.AuditMarked


# --- access -----------------------------------------------------------------------------------


class Whoami(Asked, frozen=True, kw_only=True):
    """The principal that asks, and its rights."""

    verb = "access.whoami"
    right = Right.KNOWN
    answer: ClassVar = answers.Asker
    route = "GET /v1/whoami"


class CertRenew(Asked, frozen=True, kw_only=True):
    """Sign another certificate for the principal that asks by one, as long as that; ``request``: a
    certificate signing request in DER, by a new key, with the URI of the principal alone.

    Refused as "too-soon" before half of the life of the certificate is over, and as "no-authority"
    where the service cannot sign.
    """

    right = Right.KNOWN
    effect = Effect.OWN
    is_idempotent = False
    answer: ClassVar = answers.CertRenewed

    request: Annotated[bytes, Meta(min_length=1, max_length=SIGNING_REQUEST_BYTES_MAX)]


class AccessList(Asked, frozen=True, kw_only=True):
    """List the rules of access."""

    right = Right.ADMIN
    answer: ClassVar = answers.Rules
    route = "GET /v1/access"
    is_command = True


class AccessRule(Asked, frozen=True, kw_only=True):
    verb = ""
    right = Right.ADMIN
    effect = Effect.SHARED

    principal: Annotated[Name, Meta(description="as user/ann, user/* or *")]
    role: Role
    scope: Annotated[
        Name, Meta(description="an id, own, or * for anything", extra={"positional": True})
    ] = ANYTHING


class AccessGrant(AccessRule, frozen=True, kw_only=True):
    """Give a principal a role."""

    answer: ClassVar = answers.RuleChanged
    route = "POST /v1/access/grant"
    is_command = True


class AccessRevoke(AccessRule, frozen=True, kw_only=True):
    """Take a role from a principal."""

    answer: ClassVar = answers.RuleChanged
    route = "POST /v1/access/revoke"
    is_command = True


class TokenList(Asked, frozen=True, kw_only=True):
    """List the tokens, without their secrets."""

    right = Right.ADMIN
    answer: ClassVar = answers.Tokens
    route = "GET /v1/tokens"
    is_command = True


class TokenIssue(Asked, frozen=True, kw_only=True):
    """Register a token by its digest; ``only``: (role, scope) to which it is bound."""

    right = Right.ADMIN
    effect = Effect.SHARED
    answer: ClassVar = answers.TokenIssued

    principal: Name
    digest: Annotated[bytes, Meta(min_length=TOKEN_DIGEST_BYTES, max_length=TOKEN_DIGEST_BYTES)]
    seconds: Annotated[float, Meta(ge=1, le=TOKEN_SECONDS_MAX)]
    only: Annotated[list[tuple[str, str]], Meta(max_length=ONLY_MAX)] = []


class TokenRevoke(Asked, frozen=True, kw_only=True):
    """Revoke a token by its id."""

    right = Right.ADMIN
    effect = Effect.SHARED
    answer: ClassVar = answers.TokenRevoked
    route = "DELETE /v1/tokens/{token}"
    is_command = True

    token: Annotated[Name, Meta(description="its id, as onyx token list prints it")]


# --- taxonomies and plans ---------------------------------------------------------------------


class TaxonomyNamed(Asked, frozen=True, kw_only=True):
    verb = ""

    name: Name


class TaxonomyPut(TaxonomyNamed, frozen=True, kw_only=True):
    """Put a taxonomy, or replace it; a graph of the media type ``syntax``."""

    adds = True
    effect = Effect.SHARED
    answer: ClassVar = answers.TaxonomyPut

    syntax: Name
    text: Annotated[bytes, Meta(max_length=TAXONOMY_BYTES_MAX)]


class TaxonomyList(Asked, frozen=True, kw_only=True):
    """List the taxonomies by name."""

    right = Right.KNOWN
    answer: ClassVar = answers.Taxonomies
    route = "GET /v1/taxonomies"
    is_command = True


class TaxonomyShow(TaxonomyNamed, frozen=True, kw_only=True):
    """Print a taxonomy as it was put."""

    right = Right.KNOWN
    answer: ClassVar = answers.TaxonomyText


class TaxonomyRemove(TaxonomyNamed, frozen=True, kw_only=True):
    """Remove a taxonomy."""

    effect = Effect.SHARED
    answer: ClassVar = answers.TaxonomyGone
    route = "DELETE /v1/taxonomies/{name}"
    is_command = True


class PlanUse(Asked, frozen=True, kw_only=True):
    """Place all profiles to come by the text of a plan; empty: by no plan."""

    effect = Effect.PLACES
    answer: ClassVar = answers.PlanUsed

    plan: PlanText


class PlanShow(Asked, frozen=True, kw_only=True):
    """The plan in force."""

    answer: ClassVar = answers.PlanShown


class PlanCensus(Asked, frozen=True, kw_only=True):
    """How many profiles are where ``plan`` has them; absent: the plan in force."""

    waits = True
    answer: ClassVar = answers.Drift

    plan: PlanText = b""


class PlanApply(Asked, frozen=True, kw_only=True):
    """Move profiles to where the plan in force has them: ``rate`` begin in a second, ``at_once``
    are under way."""

    effect = Effect.PLACES
    answer: ClassVar = answers.PlanProgress

    rate: Annotated[float, Meta(gt=0, le=PLAN_RATE_MAX)] = PLAN_RATE
    at_once: Annotated[float, Meta(ge=1, le=PLAN_AT_ONCE_MAX)] = PLAN_AT_ONCE


class PlanProgress(Asked, frozen=True, kw_only=True):
    """How far the moves to the plan are."""

    answer: ClassVar = answers.PlanProgress
    route = "GET /v1/plan/progress"


class PlanPause(Asked, frozen=True, kw_only=True):
    """Begin no more moves for now."""

    effect = Effect.PLACES
    answer: ClassVar = answers.PlanProgress
    route = "POST /v1/plan/pause"
    is_command = True


class PlanResume(Asked, frozen=True, kw_only=True):
    """Go on with moves that were paused."""

    effect = Effect.PLACES
    answer: ClassVar = answers.PlanProgress
    route = "POST /v1/plan/resume"
    is_command = True


class PlanAbort(Asked, frozen=True, kw_only=True):
    """Begin no more moves, and leave profiles where they are."""

    effect = Effect.PLACES
    answer: ClassVar = answers.PlanProgress
    route = "POST /v1/plan/abort"
    is_command = True


class PlanAuto(Asked, frozen=True, kw_only=True):
    """Whether the network plans by itself; ``on``: whether it shall from now on."""

    effect = Effect.PLACES
    answer: ClassVar = answers.AutoPlan
    route = "POST /v1/plan/auto"

    on: bool | UnsetType = UNSET


def given(value: T | None) -> T | UnsetType:
    """An argument that is left out where it is None."""
    return UNSET if value is None else value


def profiles_named(asked: Any) -> Sequence[str]:
    """The ids in ``profile`` or ``profiles`` of a record."""
    return asked.profiles if hasattr(asked, "profiles") else [asked.profile]


def user_meant(named: str, asker: Principal | None) -> str:
    """The user that is named; a user who names nobody is meant."""
    return asker.name if not named and asker is not None and asker.role == "user" else named


TABLE: tuple[type[Asked], ...] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Asked) and kind is not Asked and kind.verb
)
"""All verbs."""
