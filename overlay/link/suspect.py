"""Suspect: the input at which a core fell over, as it is known again when it comes again.

A core that raises what nobody expected (``CoreFailed``) is of no use any more: some of its memory
may be changed and some not.  The shell makes a new one from the store, as after any crash, and
keeps the input aside under the suspect's id (dead_letters.py), so that it is passed over when it
comes again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgpack

from overlay.link.arrival import Arrival
from overlay.link.frame_codec import encode
from overlay.link.frames import Message, MessageAgain, Request

ID_DIGITS = 16


class Suspect(NamedTuple):
    """``id`` is the same for the same input; ``what`` says it to people, ``who`` has to answer for
    it; ``data`` is the input."""

    id: str
    what: str
    who: str
    data: bytes


class CoreFailed(Exception):
    """``__cause__`` is what was raised; ``suspect`` None: it is not known at which input."""

    def __init__(self, suspect: Suspect | None) -> None:
        super().__init__("at an input that is not known" if suspect is None else suspect.what)
        self.suspect = suspect


def suspect_of(arrival: Arrival, who: str) -> Suspect:
    frame = arrival.frame
    assert frame is not None
    data = encode(frame, arrival.key, arrival.sequence)
    if isinstance(frame, Request):
        what = f"request {frame.verb!r} of {arrival.peer}"
    elif isinstance(frame, Message | MessageAgain):
        what = f"message {frame.number} of {frame.source} on tree {frame.root}"
        who = f"source/{frame.source}"
    elif arrival.sequence:
        place = f"number {arrival.sequence} of channel {arrival.key!r}"
        what = f"{frame.type} from {arrival.peer}, {place}"
    else:
        what = f"{frame.type} from {arrival.peer}"
    return Suspect(id_of(arrival), what, who, data)


def id_of(arrival: Arrival) -> str:
    """A request is the same whoever asks it again, a message by whichever channel it comes; any
    other frame, by the same peer at the same place of a channel."""
    frame = arrival.frame
    assert frame is not None
    if isinstance(frame, Request):
        return _id(frame.verb, msgpack.packb(frame.arguments))
    if isinstance(frame, Message | MessageAgain):
        return _id("message", frame.root, frame.source, frame.number)
    return _id(arrival.peer, encode(frame, arrival.key, arrival.sequence))


def suspect_message(doing: str, source: str, number: int, data: bytes) -> Suspect:
    """``doing`` something with a message that is in the store."""
    told = f"{doing} of message {number} of {source}"
    return Suspect(_id(doing, source, number), told, f"source/{source}", data)


def _id(*parts: object) -> str:
    digest = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:ID_DIGITS]
