"""CarriedMessage: what a frame says of the message that it carries, whichever way it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from overlay.link.frame import Frame
from overlay.link.frame_fields import Accepted, Name, Pieces, SequenceNumber, Whole
from overlay.link.message_headers import Headers

_Carrier = TypeVar("_Carrier", bound="CarriedMessage")


class CarriedMessage(Frame, frozen=True):
    """Message ``number`` of ``source``, on the broadcast tree of ``root``, ``hops`` from there.

    ``reflects`` 0: it is whole.  Else it may be cut, by what the receiver needs as of its
    NeedsDelta of that number; 1: as of none.  ``accepted``: when the root broker accepted it.
    ``pieces``: what was computed of it on the way.
    ``unknown``: fields of a later release (name -> value), which go on as they came; ``headers``:
    see message_headers.py.
    """

    root: Name
    source: Name
    number: SequenceNumber
    format: Name
    hops: Whole
    payload: bytes
    reflects: SequenceNumber = 0
    accepted: Accepted = 0
    pieces: Pieces = b""
    unknown: Mapping[str, object] | None = None
    headers: Headers | None = None

    def called(self, peer: str, key: str, sequence: int) -> str:
        return f"{self.type} {self.number} of {self.source} on tree {self.root}"

    def carried_by(self, kind: type[_Carrier]) -> _Carrier:
        """The same in a frame of another kind."""
        return kind(*(getattr(self, name) for name in CarriedMessage.__struct_fields__))
