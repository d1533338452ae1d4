"""The process of a metadata provider: its rows, and its life as the source of its name.

::

    registered ──take──> rows ──catch up──> filter ──> serving
        └─ standby, until the lease of another process has ended

A process whose lease has ended commits nothing, answers nothing, and ends.  The messages that it
may still publish are in the rows, and the other process publishes them with the same keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from onyx.data_directory import directory_locked
from onyx.data_source import DataSource
from onyx.errors import NetworkUnreachable, UserError, leaves
from onyx.garbage import leave_survivors_alone
from onyx.metadata.provider import MetadataProvider
from onyx.metadata.serving import PROVIDER_BASE, Serving
from onyx.node_store import Opens, taken_store
from onyx.store_errors import store_errors
from overlay.link.row_store import NodeStore

AGAIN_SECONDS = 1.0

log = logging.getLogger("onyx.process")


async def run_provider(
    registration: str,
    directory: Path,
    name: str,
    open_rows: Opens,
    serving: Callable[[DataSource, MetadataProvider], Serving] = Serving,
    *,
    waiting: Callable[[], None],
    ready: Callable[[Serving], None],
) -> None:
    """Until it is cancelled.  ``waiting`` is called as long as another process has the rows, and
    ``ready`` once it serves.

    DataDirectoryInUse, StoreUnusable, LeaseLost, and what the network says."""
    with directory_locked(directory), store_errors():
        source = await DataSource.register(
            registration, name=name, base=PROVIDER_BASE, ensure=True, publisher=""
        )
        async with taken_store(open_rows, waiting) as rows:
            opened = partial(MetadataProvider, directory, name, rows)
            with await trio.to_thread.run_sync(opened) as provider:
                served, is_told = serving(source, provider), False
                leave_survivors_alone()
                while True:
                    try:
                        async with source:
                            if not is_told:
                                ready(served)
                            is_told = True
                            await served.run()
                    except Exception as error:
                        rows.check()  # the end of the lease explains the error
                        if not all(_passes(each, rows) for each in leaves(error)):
                            raise
                        log.warning("%s; it is tried again", error)
                        await trio.sleep(AGAIN_SECONDS)


def _passes(error: BaseException, rows: NodeStore) -> bool:
    """Whether it is of others: the registration service is away, or a process that has lost the
    lease, and does not know it yet, has come as the source."""
    is_replaced = isinstance(error, UserError) and error.code == "replaced"
    return isinstance(error, NetworkUnreachable) or (is_replaced and rows.epoch > 0)
