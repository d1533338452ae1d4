"""What the network tells its clients: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from formats.media_types import XML
from overlay.delivery_policy import USUAL, DeliveryPolicy, policy_of

Location = tuple[float, float]
"""(latitude, longitude) in degrees, north and east positive."""

Publication = (
    bytes
    | tuple[bytes, str]
    | tuple[bytes, str, str]
    | tuple[bytes, str, str, Mapping[str, str] | None]
)
"""A message: the text of an XML document, or what it is with its media type, its publish key, and
its headers."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A registered data source: ``root`` is its root broker, at ``address`` ("host:port").

    ``rate`` messages a second and ``size`` bytes a message as the source expects them; ``ready``
    once every broker knows it; ``validation`` what its root broker does about messages against its
    schema ("off", "report" or "reject"); ``compression`` the forms of message for which it
    came with a compression dictionary; ``base`` the IRI that relative ones in its graphs are
    relative to, "" for none; ``schema_unread`` what its schema refers to and has not; ``version``
    counts its updates from 1; ``owner`` is who registered it ("user/ann", "" without TLS);
    ``removed`` while it is on its way out.

    When it was updated: the names of what has ``changed``; with another schema, ``warned``: how
    many profiles can match no message of any source any more, or need for their results what none
    has any more, and could before, of so many that were ``looked_at``; ``warnings`` what is said of
    the first of these, by profile.
    """

    id: str
    name: str
    root: str
    address: str
    location: Location | None
    rate: float
    size: int
    schema_name: str
    schema_kind: str
    validation: str
    compression: list[str]
    ready: bool
    base: str = ""
    version: int = 1
    owner: str = ""
    removed: bool = False
    changed: tuple[str, ...] = ()
    looked_at: int = 0
    warned: int = 0
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema_unread: tuple[str, ...] = ()

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> SourceInfo:
        location = result["location"]
        return cls(
            id=result["source"],
            name=result["name"],
            root=result["root"],
            address=result["address"],
            location=(location[0], location[1]) if location else None,
            rate=result["rate"],
            size=result["size"],
            schema_name=result["schema_name"],
            schema_kind=result["schema_kind"],
            validation=result["validation"],
            compression=result["compression"],
            ready=result["ready"],
            base=result.get("base", ""),
            version=result.get("version", 1),
            owner=result.get("owner", ""),
            removed=result.get("removed", False),
            changed=tuple(result.get("changed", ())),
            looked_at=result.get("looked_at", 0),
            warned=result.get("warned", 0),
            warnings={profile: tuple(texts) for profile, texts in result.get("warnings", ())},
            schema_unread=tuple(result.get("schema_unread", ())),
        )


@dataclass(frozen=True, slots=True)
class TaxonomyInfo:
    """A registered taxonomy: how many classes, properties and instances it names; ``version`` is
    the number of the change that put it."""

    name: str
    version: int
    classes: int
    properties: int
    instances: int

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> TaxonomyInfo:
        return cls(**{each.name: result[each.name] for each in fields(cls)})


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """A profile: ``host`` is its host broker, at ``address`` ("host:port").

    ``version`` counts the updates from 1; ``live`` says that every broker on the way from every
    source knows this version, so that no message published from now on is missed.  ``near``: it
    insists on a host near its user.  ``text`` is None where it was not asked for.  ``warnings``,
    when it is added or changed: for each schema of the sources why no message that follows it can
    match, where all of them say so.  ``missing``, when it was waited for in vain: the brokers that
    do not have this version yet.  ``policy``: how what waits for it is kept.
    """

    id: str
    user: str
    host: str
    address: str
    version: int
    live: bool
    near: bool = False
    text: str | None = None
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    policy: DeliveryPolicy = USUAL

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> ProfileInfo:
        return cls(
            id=result["profile"],
            user=result["user"],
            host=result["host"],
            address=result["address"],
            version=result["version"],
            live=result["live"],
            near=result.get("near", False),
            text=result.get("text"),
            warnings=tuple(result.get("warnings", ())),
            policy=policy_of(result.get("policy", {})),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a published message: ``number`` counts the messages of its source from 1.

    When it was refused nobody gets any of it, and ``code`` (for machines), ``reason`` (for
    people), ``line`` and ``column`` (from 1; 0: not known) say why and where.  ``is_known``: it was
    accepted before with the same publish key, as message ``number``.
    """

    number: int
    accepted: bool
    code: str = ""
    reason: str = ""
    line: int = 0
    column: int = 0
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one message gave for one profile: one text each in ``results``, in the order of the
    message; ``source`` and ``number`` name the message.  ``media_type`` of the results: XML, or
    what a graph profile asks for, as application/sparql-results+json.  ``position`` counts the
    deliveries of the profile, for ``User.results(…, positions=…)``.

    ``is_over_limit``: the message was not evaluated to the end, or its results are larger than a
    message may be, so that only the first are here, or none; ``limit`` says which limit of the host
    broker that was, in a sentence with its code, and how many results more there are.
    """

    profile: str
    source: str
    number: int
    results: list[bytes]
    limit: str = ""
    media_type: str = XML
    position: int = 0

    @property
    def is_over_limit(self) -> bool:
        return not self.results or bool(self.limit)


@dataclass(frozen=True, slots=True)
class AutoPlan:
    """Whether the registration service plans by itself, and why it does or does not.

    ``state``: "waiting", "counting" (it compares the plan in force with the profiles) or
    "planning"; ``why``: for what it waits.  What was decided last: ``plan``, ``at`` (seconds of the
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


@dataclass(frozen=True, slots=True)
class PlanProgress:
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
    put_off: Mapping[str, int] = field(default_factory=dict)
    came: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing moves any more, and nothing will unless it is asked for."""
        return self.state in ("never", "done", "aborted") and not self.under_way
