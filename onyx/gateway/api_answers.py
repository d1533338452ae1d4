"""Answers and events of a gateway that are no verb's: for each the record of it, as JSON has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import UNSET, UnsetType

from overlay.answers import Answer, Letter, TokenIssued, TraceStep
from yfilter.explanation import Explanation, Failure, Part

# --- messages and their results ---------------------------------------------------------------


class Published(Answer, frozen=True):
    """The ``number`` of a message of a source; ``is_known``: before, by its key."""

    source: str
    number: int
    is_known: bool


class Opened(Answer, frozen=True):
    """A stream of results begins."""

    profiles: list[str]


class Delivered(Answer, frozen=True, kw_only=True):
    """The ``results`` of a message at a ``position``; ``limit``: which one has left some out."""

    profile: str
    source: str
    number: int
    position: int
    media_type: str
    results: list[str]
    limit: str | UnsetType = UNSET


class Gone(Answer, frozen=True):
    """So many ``deliveries`` were taken or thrown away before they were looked at."""

    profile: str
    deliveries: int


class Ended(Answer, frozen=True):
    """Why nothing comes any more."""

    code: str
    reason: str


class NetworkMap(Answer, frozen=True):
    """``brokers``: [id, label, x, y]; ``links``: [place, place] of their brokers."""

    name: str
    brokers: list[tuple[str, str, float, float]]
    links: list[tuple[int, int]]


class Tick(Answer, frozen=True):
    """``brokers``: [place, state, profiles, published, delivered, refused, waiting bytes];
    ``links``: [place, crossings there, back, backlog there, back, format, whether it is up]."""

    brokers: list[tuple[int, str, int, int, int, int, int]]
    links: list[tuple[int, int, int, int, int, str, bool]]


# --- profiles, tried --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartsShown:
    """Parts and failure of an explanation, by the profile's own prefixes."""

    parts: tuple[Part, ...]
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Explanation):
    """An explanation, its ``text``, and with a message the first results."""

    text: str
    shown: PartsShown
    results_shown: tuple[str, ...] = ()


class WhyNot(Answer, frozen=True):
    """Whether a profile ``matched`` a message, with so many ``results``, or the ``failure``."""

    profile: str
    matched: bool
    failure: Failure | None
    results: int | None


class Sample(Answer, frozen=True):
    """A message of an archive that matched, and what came of it."""

    source: str
    number: int
    time: str
    results: str


class BacktestShown(Answer, frozen=True, kw_only=True):
    """``share``, from 0 to 1, of the time that it is about is read; times are of ISO 8601.

    Of so many ``messages`` some are ``unread`` or ``given_up``; ``samples``: the first of those
    with results; ``damaged``: parts of the archive that cannot be read."""

    id: str
    profile: str
    source: str
    since: str
    until: str
    state: Literal["running", "done", "failed"]
    share: float
    last: str | None
    messages: int
    unread: int
    given_up: int
    matches: int
    results: int
    bytes: int
    samples: list[Sample]
    damaged: list[str]
    failure: Ended | None


class BacktestsShown(Answer, frozen=True):
    """The latest first."""

    backtests: list[BacktestShown]


# --- the network ------------------------------------------------------------------------------


class NodeStatus(Answer, frozen=True, kw_only=True):
    """A process in a few figures; ``why`` they cannot be read."""

    state: Literal["up", "away", "unreadable"]
    why: str | UnsetType = UNSET
    waiting_bytes: int | UnsetType = UNSET
    longest_turn_ms: float | UnsetType = UNSET
    dead_letters: int | UnsetType = UNSET
    profiles: int | UnsetType = UNSET
    published: int | UnsetType = UNSET
    received: int | UnsetType = UNSET
    delivered: int | UnsetType = UNSET
    refused: int | UnsetType = UNSET
    crossings: dict[str, int] | UnsetType = UNSET


class NetworkStatus(Answer, frozen=True):
    """By the ids of processes."""

    nodes: dict[str, NodeStatus]


class QueryShare(Answer, frozen=True):
    """How far a query is at a provider, and what it gave."""

    seconds: float
    share: float
    rows: int
    bytes_read: int
    bytes_sent: int


class QueryAtWork(Answer, frozen=True):
    """``at``: by the names of cycle providers."""

    id: str
    user: str
    at: dict[str, QueryShare]


class QueriesAtWork(Answer, frozen=True):
    """``away``: the providers that do not answer."""

    queries: list[QueryAtWork]
    away: list[str]


class SignedIn(Answer, frozen=True):
    principal: str


# --- ways, dead letters and tokens ------------------------------------------------------------


class MessageWay(Answer, frozen=True):
    """The ``steps`` of a message of a source: the brokers on its way, each before those that it
    sends to."""

    source: str
    steps: list[TraceStep]


class LetterAt(Letter, frozen=True, kw_only=True):
    """A dead letter, and the ``node`` that keeps it."""

    node: str


class LettersFound(Answer, frozen=True):
    """The latest first; ``silent``: the processes that do not answer."""

    letters: list[LetterAt]
    silent: list[str]


class Replayed(Answer, frozen=True):
    """Of a message that was refused, its ``source`` and the ``number`` that it has now."""

    id: str
    kind: str
    source: str | UnsetType = UNSET
    number: int | UnsetType = UNSET


class TokenMade(TokenIssued, frozen=True, kw_only=True):
    """The id of a token, and its ``secret``, which nobody can show again."""

    principal: str
    secret: str
