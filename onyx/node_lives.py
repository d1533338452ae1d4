"""The lives of a core: one that falls over is made anew from the store, in the same process.

::

    life ──CoreFailed, input known──> input kept aside ──pause──> next life, which passes it over
      │ └──CoreFailed, not known────> a cautious life, one frame at a time ──CoreFailed──> ...
      └──anything else──────────────> the end of the process

Nothing of the call that failed is in the store, and its sender still has it: a source and a broker
in their journals, a client asks again.  So what is passed over is passed over once, when it comes
again, and all else goes on behind it.  A cautious life that fails at no known input is the end of
the process, which whoever runs it starts again.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Awaitable, Callable

import trio

from onyx.child_process import RestartPolicy
from onyx.node_deaths import Death, ProcessDied
from overlay.link.dead_letters import keep_aside
from overlay.link.lone_error import lone_error
from overlay.link.row_store import RowStore
from overlay.link.suspect import CoreFailed, marked

CAUTIOUS_TURNS = 10_000

log = logging.getLogger("onyx.process")


async def run_lives(
    life: Callable[[int], Awaitable[None]],
    store: RowStore,
    policy: RestartPolicy,
    wall: Callable[[], float] = time.time,
    death: Death | None = None,
) -> None:
    """Run ``life(caution)`` again whenever its core falls over; the pause between two grows while
    they are short.  ``death``: that of the process before."""
    failures = 0
    caution = 0 if death is None else _take_back(death, store, wall())
    while True:
        began = trio.current_time()
        try:
            await life(caution)
            return
        except BaseException as error:
            failure = lone_error(error)
            if not isinstance(failure, CoreFailed) or (failure.suspect is None and caution):
                raise
            caution = _take_down(failure, store, wall())
            failures = 1 if trio.current_time() - began >= policy.stable_seconds else failures + 1
        del failure  # and with it the core
        gc.unfreeze()
        gc.collect()
        await trio.sleep(policy.delay.after(failures))


def _take_back(death: Death, store: RowStore, at: float) -> int:
    """Keep aside what the process before died of, if that is known; how cautious the first life
    has to be."""
    if not death.blame:
        log.warning("died at %s the last time; if it does again, that is passed over", death.at)
        return CAUTIOUS_TURNS if death.is_vague else 0
    suspect = marked(death.at)
    keep_aside(store, suspect, ProcessDied(death.blame), at)
    log.error(
        "%s: died at %s, which is passed over from now on (onyx dead show %s)\n%s",
        *(suspect.id, death.at, suspect.id, death.blame),
    )
    return 0


def _take_down(failure: CoreFailed, store: RowStore, at: float) -> int:
    """Keep the input aside; how cautious the next life has to be."""
    suspect, cause = failure.suspect, failure.__cause__ or failure
    if suspect is None:
        log.error("failed at an input that is not known; one at a time now", exc_info=cause)
        return CAUTIOUS_TURNS
    keep_aside(store, suspect, cause, at)
    log.error(
        "%s: failed at %s, which is kept aside and passed over from now on (onyx dead show %s)",
        *(suspect.id, suspect.what, suspect.id),
        exc_info=cause,
    )
    return 0
