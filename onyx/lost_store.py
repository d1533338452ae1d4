"""What a process says whose store has less than it had: everybody who comes is told so.

It has nothing to go on with.  Sources and users that it has acknowledged messages to would wait for
it, and neighbours too, if it just ended.
"""

from __future__ import annotations

from dataclasses import replace

import trio

from onyx.doors import doors_of, node_limits
from onyx.listening import NodeSockets
from overlay.link.connections import Connections, open_stream
from overlay.link.credentials import Credentials
from overlay.link.event_queue import EventQueue
from overlay.link.frames import ErrorFrame
from overlay.link.lost_stores import STORE_LOST
from overlay.topology import Topology

TELL_SECONDS = 5.0  # whoever was connected dials again within 1


async def tell_lost(
    sockets: NodeSockets,
    topology: Topology,
    credentials: Credentials | None,
    node_id: str,
) -> None:
    """``store-lost`` to whoever comes within TELL_SECONDS; what was seen is in the log."""
    sockets.listen()
    detail = f"the store of {node_id} is damaged, an older copy or emptied; its log says more"
    said = ErrorFrame(STORE_LOST, detail, fatal=True)
    doors = [replace(door, closed=said) for door in doors_of(sockets, topology)]
    own = node_limits(topology.limits)
    connections = Connections(EventQueue(own.inbox_events), open_stream, own, credentials)
    with trio.move_on_after(TELL_SECONDS):
        await connections.run(doors, {}, trio.TASK_STATUS_IGNORED)
