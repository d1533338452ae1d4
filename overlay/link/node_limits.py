"""NodeLimits: the bounds of one process's events, connections and commits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from overlay.backoff import Backoff
from overlay.limits import Limits
from overlay.link.dialling import REDIAL
from overlay.link.group_commit import DEFAULT_COMMIT_LIMITS, CommitLimits
from overlay.link.link_io import DEFAULT_CONNECTION_LIMITS, TURN_BYTES_MAX, ConnectionLimits


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """batch_events          events handled in one turn
    batch_seconds         or as many as take so long, in processor time; what the core has asked for
                          itself does not count, so that others have their turn besides
    turn_bytes            read from all connections, and handled before more is read
    send_bytes            that wait to be sent on all connections; beyond it the client with the
                          most is given up
    cautious_turns        in the first so many one event is handled each, so that it is known at
                          which a core falls over
    tick_seconds          between two TimePassed
    dial_seconds          for one attempt to connect
    handshake_seconds     of TLS, on a connection that there is
    revoked_seconds       between two looks whether the certificate of a connection is over
    redial                until a peer is dialled again; a connection that lasted as long as the
                          longest of these pauses starts anew
    """

    batch_events: int = 64
    batch_seconds: float = 0.005
    cautious_turns: int = 0
    turn_bytes: int = TURN_BYTES_MAX
    send_bytes: int = 512 * 1024 * 1024
    tick_seconds: float = 1.0
    dial_seconds: float = 10.0
    handshake_seconds: float = 10.0
    revoked_seconds: float = 60.0
    redial: Backoff = REDIAL
    commit: CommitLimits = DEFAULT_COMMIT_LIMITS
    connection: ConnectionLimits = DEFAULT_CONNECTION_LIMITS

    def bounded(self, limits: Limits) -> NodeLimits:
        """The same with what an operator may set."""
        return replace(
            self,
            turn_bytes=limits.receive_bytes_max,
            send_bytes=limits.send_bytes_max,
            connection=replace(self.connection, slow_seconds=limits.slow_reader_s),
        )


DEFAULT_NODE_LIMITS = NodeLimits()
