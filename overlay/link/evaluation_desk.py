"""EvaluationDesk: profiles that take long, evaluated one after the other by a process of its own.

Nobody waits for it: a core is told with an event.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import trio

from overlay.link.events import AskEvaluation, Evaluated, Event


class EvaluationDesk:
    """``ask_nowait``; ``run`` answers through ``tell``."""

    def __init__(self, tell: Callable[[list[Event]], None]) -> None:
        self._tell = tell
        self._put, self._asked = trio.open_memory_channel[AskEvaluation](inf)

    def ask_nowait(self, action: AskEvaluation) -> None:
        self._put.send_nowait(action)

    async def run(self) -> None:
        """Until cancelled; the process is started when there is something to ask."""
        # PERF: here, as whoever evaluates nothing loads no engine.
        from yfilter.late_worker import LateWorker  # noqa: PLC0415

        worker = LateWorker()
        try:
            async for asked in self._asked:
                found = await trio.to_thread.run_sync(
                    worker.ask, asked.question, abandon_on_cancel=True
                )
                self._tell([Evaluated(asked.key, found)])
        finally:
            worker.close()
