"""MessageSpans: what one broker did with a message that is traced, and when.

::

    publisher's span ── accept (root broker) ─┬─ match
                                              ├─ deliver          to profiles of this broker
                                              └─ hop (next one) ─┬─ match
                                                                 ├─ deliver
                                                                 └─ hop ...

Only messages whose header ``traceparent`` says that they are sampled have spans, and only at a
broker that tells somebody; of all others nothing is looked at but that they have none.  A broker
sends a message on with its own span as the parent (W3C Trace Context).  Ids of spans follow from
what they are of: so a core has no randomness, and what is done twice has the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from onyx.broker.packing.parcel import Parcel
from overlay.link.message_headers import TRACEPARENT

SAMPLED = 1
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


class Traceparent(NamedTuple):
    """Of a message: ids in hexadecimal, 32 and 16 digits; ``flags``: SAMPLED or not."""

    trace: str
    span: str
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace}-{self.span}-{self.flags:02x}"


class SpanRecord(NamedTuple):
    """One span that is over; ``began`` and ``ended`` in seconds of the calendar."""

    trace: str
    span: str
    parent: str
    name: str
    began: float
    ended: float
    attributes: Mapping[str, str | int]


TellSpan: TypeAlias = Callable[[SpanRecord], None]


def parsed_traceparent(text: str) -> Traceparent | None:
    """None for what is none."""
    found = _FORM.fullmatch(text)
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return None
    return Traceparent(found[1], found[2], int(found[3], 16))


class MessageSpan:
    """One that has begun; ``end`` it once."""

    __slots__ = ("_attributes", "_began", "_name", "_parent", "_spans", "id")

    def __init__(
        self,
        spans: MessageSpans,
        name: str,
        parent: Traceparent,
        attributes: Mapping[str, str | int],
    ) -> None:
        self._spans = spans
        self._name = name
        self._parent = parent
        self._attributes = attributes
        of = f"{parent} {name} {sorted(attributes.items())}"
        self.id = blake2b(of.encode(), digest_size=8).hexdigest()
        self._began = spans.wall()

    @property
    def traceparent(self) -> Traceparent:
        """That what comes of it has."""
        return self._parent._replace(span=self.id)

    def child(self, name: str) -> MessageSpan:
        """One that begins within it."""
        return MessageSpan(self._spans, name, self.traceparent, self._attributes)

    def end(self, **attributes: str | int) -> None:
        """``attributes``: what came of it."""
        about = {**self._attributes, **{f"onyx.{name}": v for name, v in attributes.items()}}
        ids = self._parent.trace, self.id, self._parent.span
        self._spans.tell(SpanRecord(*ids, self._name, self._began, self._spans.wall(), about))


class MessageSpans:
    """``begin`` one for each message that is traced."""

    def __init__(self, identity: str, wall: Callable[[], float], tell: TellSpan | None) -> None:
        """``tell`` is given spans, and does not wait; None: none are wanted."""
        self._identity = identity
        self._is_on = tell is not None
        self.wall = wall
        self.tell: TellSpan = tell or (lambda span: None)

    def begin(self, parcel: Parcel, name: str) -> None:
        """If a message that has headers is traced, it has a span from here on, and goes on with
        that as the parent."""
        headers = parcel.headers
        said = (headers or {}).get(TRACEPARENT, "")
        parent = parsed_traceparent(said) if self._is_on else None
        if headers is None or parent is None or not parent.flags & SAMPLED:
            return
        about: dict[str, str | int] = {"onyx.broker": self._identity}
        about |= {"onyx.source": parcel.source, "onyx.number": parcel.number}
        parcel.span = span = MessageSpan(self, name, parent, about)
        parcel.headers = {**headers, TRACEPARENT: str(span.traceparent)}
