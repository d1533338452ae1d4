"""Trials: profiles on messages, tried in processes of their own, so that none costs more than its
limits and the gateway goes on meanwhile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import trio

from formats.helper_process import HelperProcess
from onyx.errors import RequestFailed
from onyx.registration_client import request_failed
from overlay.link.client_limits import RemoteError

PROCESSES = 2
WAITING_MAX = 16  # trials; one more is answered 503


class Trials:
    """``close`` ends the processes, which begin with the first trial."""

    def __init__(self) -> None:
        self._idle = [HelperProcess("onyx.gateway.trial_process") for _ in range(PROCESSES)]
        self._all = tuple(self._idle)
        self._room = trio.Semaphore(PROCESSES)

    async def ask(self, question: Mapping[str, object]) -> dict[str, Any]:
        """The answer; RequestFailed where the trial is, or takes more than its limits."""
        if self._room.statistics().tasks_waiting >= WAITING_MAX:
            raise RequestFailed("busy", f"{WAITING_MAX} trials wait already; try again later")
        async with self._room:
            process = self._idle.pop()
            try:
                answer = await trio.to_thread.run_sync(_ask, process, question)
            finally:
                self._idle.append(process)
        if answer is None:
            raise RequestFailed("too-costly", "that takes more than 2 s of processor time or 1 GB")
        if "refused" in answer:
            code, message, fault = answer["refused"]
            where = code.removesuffix("-refused")  # the profile, the message or the schema
            raise request_failed(RemoteError(code, message, {**fault, "where": where}))
        return answer

    def close(self) -> None:
        for process in self._all:
            process.close()


def _ask(process: HelperProcess, question: Mapping[str, object]) -> dict[str, Any] | None:
    """None where the process has died of it."""
    try:
        pipe = process.start()
        pipe.send(question)
        answer: dict[str, Any] = json.loads(pipe.recv_bytes())
        return answer
    except (EOFError, OSError, ValueError):
        process.end()
        return None
