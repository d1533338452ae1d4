"""EventStream: an answer that goes on, as Server-Sent Events."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from overlay.answers import Shown

HEARTBEAT_SECONDS = 15.0
"""After so long without an event a comment is sent, so that a reader who is gone is noticed."""

Write: TypeAlias = Callable[[str], Awaitable[None]]


GZIP, WINDOW_BITS, MEMORY_LEVEL = 16, 13, 6  # see zlib.compressobj: 65 KB a stream


class EventStream(Response):
    """``run`` writes events, by the function that it is given, until it returns or the reader is
    gone.  A reader who does not read holds it up there.

    ``packs``: compressed for readers who take that; not where secrets and what others write come
    in one stream, whose length would tell of both."""

    media_type = "text/event-stream"

    def __init__(self, run: Callable[[Write], Awaitable[None]], packs: bool = False) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._run = run
        self._packs = packs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        packer = None
        if self._packs and "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            self.headers["content-encoding"] = "gzip"
            packer = zlib.compressobj(wbits=GZIP + WINDOW_BITS, memLevel=MEMORY_LEVEL)

        async def write(text: str) -> None:
            body = text.encode()
            if packer is not None:
                body = packer.compress(body) + packer.flush(zlib.Z_SYNC_FLUSH)
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async def watch(nursery: trio.Nursery) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        is_over = False
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, nursery)
            await write(": here\n\n")
            await self._run(write)
            is_over = True
            nursery.cancel_scope.cancel()
        if is_over:
            await send({"type": "http.response.body", "body": packer.flush() if packer else b""})


def event_text(kind: str, data: Shown, id_: str = "") -> str:
    """One event; its data on one line, as JSON."""
    said = json.dumps(data.shown(), ensure_ascii=False, separators=(",", ":"))
    return f"{f'id: {id_}' + chr(10) if id_ else ''}event: {kind}\ndata: {said}\n\n"
