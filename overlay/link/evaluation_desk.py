"""EvaluationDesk: profiles that take long, evaluated one after the other by a process of its own.

Nobody waits for it: a core is told with an event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from overlay.link.events import AskEvaluation, Evaluated, Event


class EvaluationDesk:
    """``ask_nowait``; ``run`` answers through ``tell``."""

    def __init__(self, tell: Callable[[list[Event]], None]) -> None:
        self._tell = tell
        self._asked: deque[AskEvaluation] = deque()
        self._arrived = trio.Event()

    def ask_nowait(self, action: AskEvaluation) -> None:
        self._asked.append(action)
        self._arrived.set()

    async def run(self) -> None:
        """Until cancelled; the process is started when there is something to ask."""
        # PERF: here, as whoever evaluates nothing loads no engine.
        from yfilter.late_worker import LateWorker  # noqa: PLC0415

        worker = LateWorker()
        try:
            while True:
                await self._arrived.wait()
                while self._asked:
                    asked = self._asked.popleft()
                    found = await trio.to_thread.run_sync(
                        worker.ask, asked.question, abandon_on_cancel=True
                    )
                    self._tell([Evaluated(asked.key, found)])
                self._arrived = trio.Event()
        finally:
            worker.close()
