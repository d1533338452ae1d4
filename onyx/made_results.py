"""Results that wait for users, made ahead for another release, which would make others of the same
messages (``onyx make-results``).

Offline: on the stores of brokers that are stopped.  Some messages are a commit; after a kill the
next call goes on with the others.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries.late_spaces import BODY_SPACE
from onyx.data_directory import DataDirectory
from onyx.errors import UnreadableInput
from onyx.node_store import opened_store
from overlay.link.events import CalledAgain, Delete, Put
from overlay.link.journal_rows import OUTBOX
from overlay.stores import SQLITE
from overlay.topology import Topology

COMMIT_ROWS = 256
COMMIT_BYTES = 4 * 1024 * 1024


def make_results(topology: Topology, broker_id: str, progress: Callable[[int, int], None]) -> int:
    """Make the results of all messages that wait at a broker; how many messages these were.

    ``progress`` is told after each commit: done, of how many.  DataDirectoryInUse when the broker
    is running, UnreadableInput where it has no store, StoreUnusable when that cannot be used.
    """
    directory = DataDirectory(topology.data_directory)
    is_file = topology.broker(broker_id).store == SQLITE
    if is_file and not directory.store_file(broker_id).exists():
        raise UnreadableInput(f"there is no store {directory.store_file(broker_id)}")
    with (
        directory.node_locked(broker_id),
        opened_store(topology, broker_id) as store,
    ):
        rows = store.rows(without=(BODY_SPACE,), unread=(OUTBOX,))
        core = BrokerCore(topology, broker_id, uuid.uuid4().hex, rows)
        while core.data.deferred:
            actions = core.handle(CalledAgain(), 0.0)
            store.commit(action for action in actions if isinstance(action, Put | Delete))
        changes: list[Put | Delete] = []
        made = size = 0
        for made, total, some in core.make_results(store.read):
            changes += some
            size += sum(len(change.value) for change in some if isinstance(change, Put))
            if len(changes) >= COMMIT_ROWS or size >= COMMIT_BYTES or made == total:
                store.commit(changes)
                changes, size = [], 0
                progress(made, total)
        return made
