"""EarlyLeaving: messages that a broker passes on before it has committed them.

Over several links a message would wait for one commit after the other.  Its root broker's is
enough: every broker on the way keeps a message until the next one has acknowledged it, which it
does behind its own commit.  So one that dies in between gets the message again::

    root ── m ──> A ── m, early ──> B        A dies before its commit, so it has no m any more,
                                             nor knows what number it gave to it
    root ── m ──> A ── m, again ──> B        B has it, and passes over it

- Only messages on their way down a tree leave early, never at their root broker.
- Order is kept: nothing overtakes what waits for the same connection behind a commit.
- At most EARLY_MAX of a connection have left that are not committed, so a new run knows how many
  numbers of its channels it may have lost (``SendingChannel.base``).
- Who gets them knows the last number of each source (onyx/broker/messages/last_numbers.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from overlay.link.events import (
    ArchiveMessage,
    AskDesk,
    AskEvaluation,
    CallLater,
    CloseConnection,
    DialPeers,
    Failed,
    PeerKnown,
    ReadArchive,
    SendData,
    SendResults,
    TakeSettings,
)

Leaving: TypeAlias = (
    SendData
    | SendResults
    | CloseConnection
    | PeerKnown
    | ArchiveMessage
    | DialPeers
    | TakeSettings
    | ReadArchive
    | CallLater
    | AskEvaluation
    | AskDesk
    | Failed
)

EARLY_MAX = 16


class EarlyLeaving:
    """What leaves early of one process; is told of its commits, one at a time."""

    def __init__(self) -> None:
        self._committing: Counter[int] = Counter()  # by connection
        self._left: Counter[int] = Counter()  # since the last commit began

    def split(
        self, leaving: Iterable[Leaving], held: set[int]
    ) -> tuple[list[Leaving], list[Leaving]]:
        """What leaves now, and what does behind the commit; ``held``: the connections for which
        something waits for that, to which those are added that have enough."""
        early: list[Leaving] = []
        behind: list[Leaving] = []
        for action in leaving:
            if isinstance(action, SendData) and action.connection not in held:
                connection = action.connection
                if self._left[connection] + self._committing[connection] < EARLY_MAX:
                    self._left[connection] += 1
                    early.append(action)
                    continue
                held.add(connection)
            behind.append(action)
        return early, behind

    def committing(self) -> None:
        """A commit begins, of all that has left."""
        self._committing, self._left = self._left, Counter()

    def committed(self) -> None:
        """It is done."""
        self._committing = Counter()
