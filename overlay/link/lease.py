"""Lease: which process has the rows of a node in PostgreSQL, and until when.

::

    free ── take: epoch + 1 ──> held ── not renewed for ``seconds``, by the server's clock ──> free
                                 └───── close ──────────────────────────────────────────────────^

Renewed by a thread with a connection of its own, four times in ``seconds``.  The holder counts
from when it asked, the server from when it was asked, so the holder stops first.  Whoever wakes up
behind that is *fenced*: ``check`` says so, and no commit of an epoch that is over takes effect, as
each changes the row of the lease in the same statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Event, Thread

import psycopg

from overlay.link.errors import Fenced, StoreError
from overlay.link.postgres import PostgresConnection

RENEWALS = 4

_TAKE = """
INSERT INTO nodes AS old VALUES (%(node)s, 1, clock_timestamp() + %(seconds)s * interval '1 s', 0)
ON CONFLICT (name) DO UPDATE SET epoch = old.epoch + 1, until = excluded.until, number = 0
    WHERE old.until < clock_timestamp()
RETURNING epoch
"""
_IS_HELD = "SELECT 1 FROM nodes WHERE name = %s AND until >= clock_timestamp()"
_RENEW = """
UPDATE nodes SET until = clock_timestamp() + %s * interval '1 s' WHERE name = %s AND epoch = %s
"""
_FREE = "UPDATE nodes SET until = '-infinity' WHERE name = %s AND epoch = %s"


def seconds_since_boot() -> float:
    """Goes on while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """Of one node; ``epoch`` is 0 until it is taken."""

    def __init__(
        self,
        node: str,
        seconds: float,
        connect: Callable[[], PostgresConnection],
        clock: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """``connect`` opens a connection, or raises StoreError."""
        self.node = node
        self.seconds = seconds
        self.epoch = 0
        self._connect = connect
        self._clock = clock
        self._until = -inf
        self._why = "it has not been renewed in time"
        self._ended = Event()
        self._thread = Thread(target=self._keep, name=f"lease of {node}", daemon=True)

    def take(self, connection: PostgresConnection) -> bool:
        """Whether it was free; if so it is held from now on.  psycopg.Error."""
        if connection.execute(_IS_HELD, (self.node,)).fetchone():
            return False  # looked at first: to take it would make the holder's commits wait
        began = self._clock()
        asked = {"node": self.node, "seconds": self.seconds}
        taken = connection.execute(_TAKE, asked).fetchone()
        if taken is None:
            return False
        (epoch,) = taken
        assert isinstance(epoch, int)
        self.epoch = epoch
        self._until = began + self.seconds
        self._thread.start()
        return True

    def check(self) -> None:
        """Fenced when it may be another's."""
        if self._clock() >= self._until:
            raise self.fenced()

    def end(self) -> None:
        """It is known to be another's."""
        self._why = "another process has taken them over"
        self._until = -inf
        self._ended.set()

    def fenced(self) -> Fenced:
        return Fenced(
            f"the rows of {self.node} are not this process's any more (epoch {self.epoch}): "
            f"{self._why}"
        )

    def close(self, connection: PostgresConnection) -> None:
        """Free it; idempotent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._until > -inf:
            self._until = -inf
            with suppress(psycopg.Error):  # it ends by itself
                connection.execute(_FREE, (self.node, self.epoch))

    def _keep(self) -> None:
        """The thread."""
        connection: PostgresConnection | None = None
        while not self._ended.wait(self.seconds / RENEWALS):
            began = self._clock()
            try:
                connection = connection or self._connect()
                asked = self.seconds, self.node, self.epoch
                if connection.execute(_RENEW, asked).rowcount != 1:
                    self.end()
                elif self._until > -inf:
                    self._until = began + self.seconds
            except (psycopg.Error, StoreError):
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()
