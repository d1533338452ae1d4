"""EventStream: an answer that goes on, as Server-Sent Events."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

HEARTBEAT_SECONDS = 15.0
"""After so long without an event a comment is sent, so that a reader who is gone is noticed."""

Write: TypeAlias = Callable[[str], Awaitable[None]]


class EventStream(Response):
    """``run`` writes events, by the function that it is given, until it returns or the reader is
    gone.  A reader who does not read holds it up there."""

    media_type = "text/event-stream"

    def __init__(self, run: Callable[[Write], Awaitable[None]]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(text: str) -> None:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        async def watch(nursery: trio.Nursery) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, nursery)
            await write(": here\n\n")
            await self._run(write)
            nursery.cancel_scope.cancel()
        if not nursery.cancel_scope.cancelled_caught:
            await send({"type": "http.response.body", "body": b""})


def event_text(kind: str, data: object, id_: str = "") -> str:
    """One event; its data on one line, as JSON."""
    said = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"{f'id: {id_}' + chr(10) if id_ else ''}event: {kind}\ndata: {said}\n\n"
