"""ResultStream: the results of profiles as events, each known by how far the reader is.

::

    id: p1-k3v9q2mx:7,p2-8ch2r0ws:2        of each profile the last delivery that was given
    event: delivery
    data: {"profile": "p2-8ch2r0ws", "results": ["<a/>"], ...}

A delivery is acknowledged when a reader comes back and says by Last-Event-ID that they have it, so
what was on its way when a connection broke comes again, and what they had does not.  Until then it
waits in its mailbox: a stream ends after so many deliveries, or a while after the last one, and a
browser's EventSource then comes back by itself.
"""

from __future__ import annotations

import re
from math import inf

import trio

from onyx.client_values import Delivery
from onyx.errors import RequestFailed, UserError
from onyx.gateway.event_stream import HEARTBEAT_SECONDS, Write, event_text
from onyx.gateway.refusals import Refused, refusal_of
from onyx.gateway.sessions import Session
from onyx.results import Results

PROFILES_MAX = 50  # of one stream
AGAIN_MS = 200  # until a reader comes back
SETTLE_SECONDS = 10.0  # a stream ends so long after the last delivery that is not acknowledged

_EVENT_ID = re.compile(r"([^:,]{1,256}):(\d{1,18})")


def positions_in(event_id: str) -> dict[str, int]:
    """By profile; Refused for another text."""
    found = {}
    for part in event_id.split(",") if event_id else ():
        match = _EVENT_ID.fullmatch(part)
        if match is None:
            what = "expected PROFILE:NUMBER, with commas between several"
            raise Refused(400, "bad-event-id", f"Last-Event-ID {event_id[:100]!r}: {what}")
        found[match[1]] = int(match[2])
    return found


class ResultStream:
    """``run`` it as an EventStream."""

    def __init__(
        self,
        session: Session,
        profiles: list[str],
        positions: dict[str, int],
        unacknowledged_max: int,
        *,
        acknowledges: bool,
    ) -> None:
        """``positions``: through which the reader has them; ``acknowledges``: each delivery when it
        is written, whether it is read or not."""
        self._session, self._profiles = session, profiles
        self._positions = {name: at for name, at in positions.items() if name in profiles}
        self._left = inf if acknowledges else unacknowledged_max
        self._acknowledges = acknowledges

    async def run(self, write: Write) -> None:
        """Until the reader has to say how far they are, is gone, or a profile has ended."""
        await write(f"retry: {AGAIN_MS}\n\n")
        before = dict(self._positions)
        async with self._session.own_user() as user:
            results = user.results(
                *self._profiles,
                positions=None if self._acknowledges else lambda name: before.get(name, 0),
                acknowledge=self._acknowledges,
            )
            try:
                await results.connect()
                await write(event_text("open", {"profiles": self._profiles}))
                ended = await self._give(results, write)
            except UserError as error:
                ended = error
            if ended is not None:
                refused = refusal_of(ended)
                said = {"code": refused.code, "reason": refused.reason}
                await write(event_text("ended", said))

    async def _give(self, results: Results, write: Write) -> UserError | None:
        """Why nothing comes any more; None: the reader has to say how far they are."""
        ended: UserError | None = None
        put, take = trio.open_memory_channel[Delivery | UserError](0)

        async def read() -> None:
            try:
                async for delivery in results:
                    await put.send(delivery)
            except RequestFailed as failed:
                await put.send(failed)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            given = 0
            while given < self._left:
                with trio.move_on_after(self._patience(given)) as patience:
                    found = await take.receive()
                if patience.cancelled_caught:
                    if given and not self._acknowledges:
                        break
                    await write(": \n\n")
                    continue
                if isinstance(found, UserError):
                    ended = found
                    break
                given += 1
                await write(self._event(found))
            nursery.cancel_scope.cancel()
        if self._acknowledges and ended is None:
            await results.flush()
        return ended

    def _patience(self, given: int) -> float:
        return SETTLE_SECONDS if given and not self._acknowledges else HEARTBEAT_SECONDS

    def _event(self, delivery: Delivery) -> str:
        self._positions[delivery.profile] = delivery.position
        said = {
            "profile": delivery.profile,
            "source": delivery.source,
            "number": delivery.number,
            "position": delivery.position,
            "media_type": delivery.media_type,
            "results": [result.decode("utf-8", "replace") for result in delivery.results],
            **({"limit": delivery.limit} if delivery.limit else {}),
        }
        at = ",".join(f"{name}:{number}" for name, number in self._positions.items())
        return event_text("delivery", said, at)
