"""What a peer may do wrong, and the word that tells it so.

A ``ProtocolError`` becomes one error frame on the connection that caused it.  ``fatal`` says
whether the connection ends with it; the rule is in docs/protocol.md ("Errors").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from formats.errors import Fault, Refusal

WRONG_TIME = "wrong-time"

ERROR_CODES: Mapping[str, str] = MappingProxyType(
    {
        "malformed": "the bytes are not a frame: header not a map, lengths that do not add up, "
        "bytes left over",
        "too-long": "a frame, field or list is longer than its bound",
        "unknown-frame": "no frame has this type",
        "missing-field": "a field of the frame's type is not there",
        "bad-field": "a field has a value of the wrong type or out of range",
        "not-expected": "a well-formed frame at a moment or from a role that may not send it, "
        "or a sequence number that leaves a gap",
        "unsupported-version": "the peer speaks another version of the protocol",
        "wrong-peer": "the process that answered is not the one that was dialled, or not who its "
        "certificate says",
        "not-authenticated": "the other end has not shown who it is",
        WRONG_TIME: "the certificate that was shown is over, or not yet good, by the clock of the "
        "process that says so",
        "keys-awaited": "the keys by which a token is checked are being read; come again",
        "not-authorised": "who the other end is may not be called that, or do that",
        "hello-timeout": "no hello came in time",
        "too-many-connections": "as many connections are here as are taken",
        "wrong-door": "the hello of a role that may not come where it was said",
        "disk-full": "the disk is full; a client that asks may come in all the same",
        "no-room": "frames that are not all there take too much memory; the longest is given up",
        "silent": "nothing was heard from the peer for three keep-alive intervals",
        "replaced": "the same peer has opened a newer connection",
        "stale-epoch": "another process is this node by now: a higher epoch of it was seen",
        "forgotten": "the state kept for this peer was deleted on purpose",
        "window-exceeded": "more unacknowledged frames on a channel than any window allows",
        "too-many-channels": "more channels than are kept for one peer",
        "too-many-publishers": "as many publishers of the source are known as may be",
        "too-many-errors": "too many wrong frames on one connection",
        "peer-limit": "a frame that waits is longer than this peer accepts",
    }
)
"""Every code that the link layer itself sends; cores add their own to Refused and Response."""


class ProtocolError(Refusal):
    """Something that the protocol does not allow; ``code`` is one of ``ERROR_CODES``, ``fatal``
    says whether the connection ends."""

    def __init__(self, code: str, reason: str, *, fatal: bool = False) -> None:
        super().__init__(Fault(code, reason))
        self.fatal = fatal


class StoreError(Exception):
    """A store that cannot be used: another format version, or rows that cannot be read."""


class StoreLost(StoreError):
    """A store that has less than it has had, or something else."""


class StoreDamaged(StoreError):
    """A store in which something is not what was stored."""


class DiskFull(StoreError):
    """A store has no room; it is as it was before the commit, and may be asked again."""


class StoreUnreachable(StoreError):
    """A store that may be there later."""


class Fenced(StoreError):
    """The rows belong to another process by now, or may: nothing may leave this one any more."""
