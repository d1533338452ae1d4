"""Suspect: the input at which a core fell over, as it is known again when it comes again.

A core that raises what nobody expected (``CoreFailed``) is of no use any more: some of its memory
may be changed and some not.  The shell makes a new one from the store, as after any crash, and
keeps the input aside under the suspect's id (dead_letters.py), so that it is passed over when it
comes again.  Of a process that died without a word only a mark is left, by which it is known.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgpack

from overlay.link.arrival import Arrival
from overlay.link.frame_codec import encode
from overlay.link.frames import Message, Publish, Request
from overlay.link.work_mark import cut_text

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
    what = what_of(arrival)
    if isinstance(frame, Message | Publish):
        who = f"source/{frame.source}"
    return Suspect(id_of(arrival), what, who, data)


def what_of(arrival: Arrival) -> str:
    """As people are told."""
    frame = arrival.frame
    assert frame is not None
    if arrival.sequence:
        return frame.called(arrival.peer, arrival.key, arrival.sequence)
    if isinstance(frame, Request):
        return f"request {frame.verb!r} of {arrival.peer}"
    return f"{frame.type} from {arrival.peer}"


def mark_of(arrival: Arrival) -> str:
    """What is worked on, to be known when the process has died: the same for the same input."""
    if arrival.sequence:
        return what_of(arrival)
    if isinstance(arrival.frame, Request):
        return f"request {arrival.frame.verb!r} ({id_of(arrival)})"
    return f"{what_of(arrival)} ({id_of(arrival)})"


def id_of(arrival: Arrival) -> str:
    """A request is the same whoever asks it again, a message by whichever channel it comes; any
    other frame, by the same peer at the same place of a channel."""
    frame = arrival.frame
    assert frame is not None
    if isinstance(frame, Request):
        return _id(frame.verb, msgpack.packb(frame.arguments))
    if isinstance(frame, Message):
        return _id("message", frame.root, frame.source, frame.number)
    return _id(arrival.peer, encode(frame, arrival.key, arrival.sequence))


def suspect_message(what: str, source: str, data: bytes) -> Suspect:
    """``what`` is done with which message that is in the store."""
    return marked(what)._replace(who=f"source/{source}", data=data)


def marked(text: str) -> Suspect:
    """Of a process that has died: all that is known before the input comes again."""
    return Suspect(_id("mark", cut_text(text)), text, "", b"")


def _id(*parts: object) -> str:
    digest = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:ID_DIGITS]
