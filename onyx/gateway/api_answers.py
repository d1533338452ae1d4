"""Answers of a gateway that are no verb's: for each the record of it, as JSON shows it."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from overlay.answers import Answer, Letter, TokenIssued, TraceStep


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
