"""The way of a message through a network, asked broker by broker; nothing is published."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from time import time
from typing import Any

from formats.errors import MessageRefused
from formats.media_types import as_published
from onyx.errors import RequestFailed

Answer = Mapping[str, Any]


async def way_of(
    ask: Callable[[str, str, Mapping[str, object]], Awaitable[Answer]],
    root: str,
    source: str,
    message: bytes,
    media_type: str,
) -> dict[str, Answer]:
    """What the brokers on the way answer, each before those that it sends to; ``ask`` a broker a
    verb with arguments; ``root`` is the root broker of the ``source``.  It is accepted now."""
    accepted = time()
    answers: dict[str, Answer] = {}
    try:
        data, form = as_published(message, media_type)
    except MessageRefused as refusal:
        raise RequestFailed("message-refused", str(refusal)) from None
    published = {"message": data, "format": form}
    pending: list[tuple[str, Mapping[str, object]]] = [(root, published)]
    while pending:
        broker, carried = pending.pop()
        question = {**carried, "source": source, "accepted": accepted}
        answers[broker] = answer = await ask(broker, "trace", question)
        for child in (link["link"] for link in answer["links"] if link["taken"]):
            asked_with = await ask(broker, "trace.carried", {**question, "link": child})
            pending.append((child, asked_with))
    return answers
