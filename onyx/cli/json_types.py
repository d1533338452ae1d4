"""The objects that commands print with ``--json``; json_lines.py says which prints which."""

from __future__ import annotations

from typing import Any

import msgspec

from formats.errors import Fault
from overlay.answers import AutoPlan, Letter, ProfileInfo, ShapeChange, as_shown


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """An object with these fields and no others."""


class OpenLine(msgspec.Struct):
    """An object with these fields, and what else the process says that is asked."""


# --- sources and messages ---------------------------------------------------------------------


class SourceRemoved(Line):
    event: str
    id: str


class MessagePublished(Line):
    event: str
    file: str
    number: int
    accepted: bool
    code: str
    reason: str
    line: int
    column: int
    is_known: bool


class PublicationDone(Line):
    event: str
    accepted: int
    refused: int
    known: int
    gone: int
    bytes: int


class DictionaryTrained(Line):
    messages: int
    left_out: int
    held_out_bytes_before: int
    held_out_bytes_after: int
    version: str | None


class MessageDelivered(Line):
    profile: str
    source: str
    number: int
    results: list[str] = []
    files: list[str] = []
    over_limit: bool = False
    limit: Any = None
    media_type: str = ""


class TraceStep(OpenLine):
    """What a broker would do with the message."""

    broker: str
    links: list[Any]


class TracePublished(Line):
    published: bool
    number: int
    said: str


class LinkTransformation(OpenLine):
    broker: str
    link: str
    transformation: str
    branches: list[Any]
    profiles: dict[str, Any]


# --- profiles ---------------------------------------------------------------------------------


Profile = msgspec.defstruct(
    "Profile", [("file", str, "")], bases=(as_shown(ProfileInfo),), forbid_unknown_fields=True
)


class ProfileRefused(Line):
    """``refusal``: why, as ``code`` of ``onyx profile check``."""

    file: str
    code: str
    refusal: str
    reason: str
    line: int
    column: int
    expected: str


class ProfileOfMany(Line):
    line: int
    id: str | None
    warnings: list[str] = []


class ProfileRemoved(Line):
    id: str
    removed: bool
    missing: list[str]


class ProfileExported(Line):
    profile: str
    user: str
    host: str
    near: bool
    text: str


_FAULT = [(field.name, field.type) for field in msgspec.structs.fields(Fault)]
_PLACED = _FAULT[: Fault.__struct_fields__.index("column") + 1]

Placed = msgspec.defstruct("Placed", _PLACED, bases=(Line,))

TextRefused = msgspec.defstruct("TextRefused", [("file", str), *_PLACED], bases=(Line,))


class SchemaWarned(Placed):  # type: ignore[valid-type, misc]
    hint: str


class TextChecked(Line):
    file: str
    warning: SchemaWarned | None


class Failed(Line):
    text: str
    statement: str
    before: str
    positions: list[str]
    hint: str


class ProfileExplained(Line):
    matching_path: str
    served_by: str
    linear_paths: list[str]
    parts: list[Any]
    remainder: str
    routing_query: list[list[str]]
    matched: bool | None
    results: int | None
    failure: Failed | None
    remainder_by: str
    warning: SchemaWarned | None


class WhyNot(Line):
    profile: str
    matched: bool
    failure: Failed | None


class ProfilesPlan(Line):
    plan: str


class AssertionRead(Line):
    assertion: str
    line: int
    role: str
    context: str
    test: str
    text: str


class AssertionImported(Line):
    assertion: str
    id: str
    was: str
    warnings: list[str] = []


# --- the network ------------------------------------------------------------------------------


class NetworkUp(Line):
    event: str
    name: str
    registration: str
    brokers: dict[str, str]
    pids: dict[str, int]
    topology: str
    gateway: str = ""


class GatewayUp(Line):
    event: str
    url: str


class ProcessEvent(Line):
    """``event``: ready, waiting, started, died, restoring."""

    event: str
    node: str
    pid: int | None
    address: str = ""
    exit_code: int | None = None
    failures: int = 0
    again_seconds: float = 0.0
    restored: int = 0
    rows: int = 0
    read: int = 0
    profiles: list[int] = []
    interests: list[int] = []


class SettingsTaken(Line):
    """``event``: settings; keys of the topology file, as "limits.profiles_max"."""

    event: str
    taken: list[str]
    takes_a_start: list[str]


class Event(Line):
    event: str


class Status(Line):
    node: str
    address: str
    statistics: dict[str, Any] | None


class StatusEntry(Line):
    """With --of."""

    of: str
    name: str
    says: Any


DeadLetter = msgspec.defstruct(
    "DeadLetter", [("node", str)], bases=(as_shown(Letter),), kw_only=True
)


class DeadLetterShown(DeadLetter):  # type: ignore[misc, valid-type]
    trace: str
    data: str
    lengths: list[int]


class DeadReplayed(Line):
    node: str
    id: str
    kind: str
    said: str


class DeadDropped(Line):
    node: str
    dropped: str


class VersionSettled(Line):
    event: str
    version: int


ShapeBegun = msgspec.defstruct(
    "ShapeBegun", [("event", str)], bases=(as_shown(ShapeChange),), kw_only=True
)
"""``event``: plan (of a dry run) or begun."""


class TopologyChecked(OpenLine):
    ok: bool
    file: str


class TopologyShown(OpenLine):
    """Of a file."""


class TokenIssued(Line):
    principal: str
    file: str
    token: str = ""
    expires: int = 0


class Audited(Line):
    number: int
    at: str
    who: str
    what: str
    detail: str


class CertificateIssued(Line):
    file: str
    principal: str
    days: int


class Certificate(Line):
    serial: str
    principal: str
    until: str
    state: str


class CertificatesRevoked(Line):
    revoked: list[str]


class CertificateRotated(Line):
    file: str
    principal: str


class ContextChanged(Line):
    name: str
    done: str
    used: bool


class ContextListed(Line):
    name: str
    registration: str
    credentials: str
    used: bool


class Completion(Line):
    shell: str
    script: str


class TaxonomyText(Line):
    name: str
    version: int
    syntax: str
    text: str


class ResultsMade(Line):
    broker: str
    messages: int


# --- planning ---------------------------------------------------------------------------------


class Plan(Line):
    plan: str
    partitions: int
    patterns: int
    load: float
    refused: int
    coverage: float
    largest_over_mean: float
    matched_share: float
    brokers_share: float
    samples: int
    topology: str
    partitions_by_broker: dict[str, int]


class Placement(Line):
    file: str
    partition: int
    broker: str | None
    pattern: str | None


class PlanMoves(Line):
    profiles: int
    would_move: int
    moves: list[dict[str, Any]]


class PlanStatus(OpenLine):
    """Without a plan in force, ``plan`` is "" and the figures are not there."""

    plan: str
    applied: dict[str, Any]
    auto: as_shown(AutoPlan)  # type: ignore[valid-type]
    profiles: int = 0
    misplaced: int = 0
    coverage: float = 1.0
    new_plan_pays: list[str] = []


class PlanDifference(OpenLine):
    new: str
    partitions: list[int]


class Backtest(OpenLine):
    messages: int


class ArchivedMessage(OpenLine):
    """A line of the archive, as docs/planning.md has it."""
