"""``onyx subscribe --exec``: a command for each delivery, which accepts it by its exit code."""

from __future__ import annotations

import os
import subprocess
from functools import partial

import trio

from onyx.client_values import Delivery
from onyx.results import Results

STDERR_SHOWN = 500  # of what a command that failed has said, its last

EXEC_DETAILS = """\
With --exec COMMAND a shell runs COMMAND for each delivery, with the results on its standard
input and ONYX_PROFILE, ONYX_SOURCE, ONYX_NUMBER and ONYX_MEDIA_TYPE in its environment. Exit
code 0 accepts it. With --share any other rejects it: it comes again later, to any of those
who share the profile, and is a dead letter in the end (onyx profile policy); without, it
ends onyx subscribe, and the delivery comes again with the next run."""


async def deal_with(results: Results, delivery: Delivery, command: str, is_shared: bool) -> str:
    """Why a command did not accept a delivery, "" if it did."""
    run = partial(
        trio.run_process,
        command,
        shell=True,
        stdin=b"\n".join(delivery.results),
        capture_stderr=True,
        check=False,
        env={
            **os.environ,
            "ONYX_PROFILE": delivery.profile,
            "ONYX_SOURCE": delivery.source,
            "ONYX_NUMBER": str(delivery.number),
            "ONYX_MEDIA_TYPE": delivery.media_type,
        },
    )
    ended: subprocess.CompletedProcess[bytes] = await run()
    if not ended.returncode:
        results.acknowledge_nowait()
        return ""
    said = ended.stderr.decode("utf-8", "replace").strip()[-STDERR_SHOWN:]
    why = f"exit code {ended.returncode}" + (f": {said}" if said else "")
    if is_shared:
        results.reject_nowait(why)
    return why
