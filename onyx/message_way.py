"""The way of a message through a network, asked broker by broker; nothing is published."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import time
from typing import Any

from msgspec.structs import asdict, replace

from formats.errors import MessageRefused
from formats.media_types import as_published
from onyx.errors import RequestFailed
from overlay import verbs
from overlay.answers import TraceStep


async def way_of(
    ask: Callable[[str, verbs.Asked], Awaitable[Any]],
    root: str,
    source: str,
    message: bytes,
    media_type: str,
) -> dict[str, TraceStep]:
    """What the brokers on the way answer, each before those that it sends to; ``ask`` a broker a
    verb; ``root`` is the root broker of the ``source``.  It is accepted now."""
    accepted = time()
    answers: dict[str, TraceStep] = {}
    try:
        data, form = as_published(message, media_type)
    except MessageRefused as refusal:
        raise RequestFailed("message-refused", str(refusal)) from None
    published = verbs.Trace(source=source, message=data, format=form, accepted=accepted)
    pending = [(root, published)]
    while pending:
        broker, asked = pending.pop()
        answers[broker] = answer = await ask(broker, asked)
        for child in (link.link for link in answer.links if link.taken):
            carried = await ask(broker, verbs.TraceCarried(**asdict(asked), link=child))
            pending.append((child, replace(asked, **asdict(carried))))
    return answers
