"""A process beside the nodes of a network, such as a gateway: ``onyx up`` starts it and keeps it
alive.

Nothing of the process itself is loaded here; it calls ``heed``, and ``tell_ready`` once.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from onyx.background import background_tasks
from onyx.child_process import ChildProcess, RestartPolicy, lifeline, stop_at_end
from onyx.logs import use_logs
from overlay.errors import TopologyError
from overlay.log_options import LogOptions

if TYPE_CHECKING:
    from onyx.launcher import Report, RunningNetwork

START_SECONDS = 60.0

log = logging.getLogger("onyx.process")


class _Beside(ChildProcess):
    def __init__(
        self,
        name: str,
        words: Sequence[str],
        fds: tuple[int, ...],
        lifeline: int,
        report: Report,
        write_line: Callable[[str], None],
    ) -> None:
        policy = RestartPolicy()
        super().__init__(name, Path(), fds, lifeline, None, policy, report, write_line)
        self._words = words

    def _command(self, ready_fd: int) -> list[str]:
        fds = ("--ready-fd", str(ready_fd), "--lifeline-fd", str(self._lifeline_fd))
        return [sys.executable, "-P", "-m", *self._words, *fds]


@asynccontextmanager
async def running_beside(
    network: RunningNetwork,
    name: str,
    words: Sequence[str],
    report: Report,
    listen_fds: tuple[int, ...] = (),
) -> AsyncIterator[None]:
    """A process that ends with the block, which begins when the process is ready, or still at work
    after ``START_SECONDS``.  ``words``: its module and what that takes.

    LaunchError when it does not come up."""
    with lifeline() as end:
        child = _Beside(name, words, listen_fds, end, report, network.write_line)
        async with background_tasks(trio.open_nursery()) as nursery:
            nursery.start_soon(child.run)
            with trio.move_on_after(START_SECONDS):
                await child.wait_ready()
            child.is_kept = True
            network.beside.append(child)
            yield


# --- in the process -----------------------------------------------------------------------------


def heed(
    nursery: trio.Nursery, read_logs: Callable[[], LogOptions | None], lifeline: int | None
) -> None:
    """Until a signal, or the end of the lifeline, cancels the nursery.  At SIGHUP the process logs
    as ``read_logs`` says, which may raise TopologyError, or stops where that says None."""
    stop = nursery.cancel_scope
    if lifeline is not None:
        nursery.start_soon(stop_at_end, lifeline, stop)
    nursery.start_soon(_stop_at_signal, stop)
    nursery.start_soon(_take_logs, read_logs, stop)


def tell_ready(ready_fd: int) -> None:
    """Tell who started the process, once."""
    os.write(ready_fd, b"ready\n")
    os.close(ready_fd)


async def _stop_at_signal(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


async def _take_logs(read: Callable[[], LogOptions | None], stop: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async for _ in signals:
            try:
                options = read()
            except TopologyError as error:
                log.error("nothing is changed: %s", error)
                continue
            if options is None:
                stop.cancel()
                return
            use_logs(options)
            log.info("logs %s from level %s on", options.format, options.level)
