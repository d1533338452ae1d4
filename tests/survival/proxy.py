"""Proxy: what goes between two processes, and can be cut, held up, or heard one way only."""

from __future__ import annotations

from enum import Enum

import trio

CHUNK_BYTES = 65_536


class Weather(Enum):
    """What becomes of bytes.  HOLE: nothing arrives, either way, and nobody is told; DEAF: nothing
    that the one who dialled says; MUTE: nothing that they are told; REFUSING: who dials is sent
    away."""

    FAIR = "fair"
    HOLE = "hole"
    DEAF = "deaf"
    MUTE = "mute"
    REFUSING = "refusing"


class Proxy:
    """From one port to another, both of 127.0.0.1."""

    def __init__(self, listen: int, target: int) -> None:
        self.listen = listen
        self._target = target
        self._weather = Weather.FAIR
        self._changed = trio.Event()
        self._open: set[trio.SocketStream] = set()

    async def run(self, task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED) -> None:
        await trio.serve_tcp(self._accept, self.listen, host="127.0.0.1", task_status=task_status)

    def become(self, weather: Weather) -> None:
        self._weather = weather
        self._changed.set()
        self._changed = trio.Event()

    async def cut(self) -> int:
        """End every connection; how many there were."""
        ends = list(self._open)
        for end in ends:
            await trio.aclose_forcefully(end)
        return len(ends) // 2

    async def _accept(self, dialler: trio.SocketStream) -> None:
        if self._weather is Weather.REFUSING:
            return
        try:
            target = await trio.open_tcp_stream("127.0.0.1", self._target)
        except OSError:
            return
        self._open |= {dialler, target}
        try:
            async with dialler, target, trio.open_nursery() as nursery:
                nursery.start_soon(self._carry, dialler, target, Weather.DEAF)
                nursery.start_soon(self._carry, target, dialler, Weather.MUTE)
        finally:
            self._open -= {dialler, target}

    async def _carry(
        self, source: trio.SocketStream, target: trio.SocketStream, deaf: Weather
    ) -> None:
        try:
            async for data in source:
                while self._weather in (Weather.HOLE, deaf):
                    await self._changed.wait()
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        await trio.aclose_forcefully(source)
        await trio.aclose_forcefully(target)
