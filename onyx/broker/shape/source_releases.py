"""SourceReleases: a root broker that leaves the network takes nothing from its sources any more.

It says through which message it has taken all, and closes the door; its tree ends behind that
(tree_versions.py).  The registration service finds other root brokers (source_roots.py there).
"""

from __future__ import annotations

from onyx.broker.network.control_plane import ControlPlane
from overlay.link.events import Flow
from overlay.link.frames import SourceReleased
from overlay.link.link_layer import LinkLayer
from registration.catalog import REGISTRATION_KEY

MOVED = "moved"


def release_sources(control: ControlPlane, links: LinkLayer) -> None:
    """To be called once, before the tree of this broker ends."""
    for source, entry in control.sources.items():
        if entry.root != control.identity:
            continue
        peer = f"source/{source}"
        connection = links.connection_of(peer)
        if connection is not None:
            links.refuse(connection, MOVED, f"{source} gets another root broker")
        channel = links.journal(peer).receiving.get((Flow.MESSAGE, source))
        taken = 0 if channel is None else channel.last
        released = SourceReleased(source=source, taken=taken)
        links.send(control.registration, REGISTRATION_KEY, released)
