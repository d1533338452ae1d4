"""Where the counters of a broker stand, as its observers are told (observers.py)."""

from __future__ import annotations

from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.messages.observers import Figures
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.link_formats import LinkFormats
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.link.events import Flow
from overlay.link.link_layer import LinkLayer


def figures_of(
    links: LinkLayer,
    control: ControlPlane,
    formats: LinkFormats,
    data: DataPlane,
    query: QueryPlane,
) -> Figures:
    """All of a broker; what that costs grows with its neighbours alone."""
    counted = data.statistics()
    crossings = data.crossings
    of_links = {
        broker: [
            crossings[broker],
            sum(
                channel.backlog_bytes
                for channel in links.channels_to(f"broker/{broker}")
                if channel.flow is Flow.MESSAGE
            ),
            formats.format_of(broker),
            links.connected(f"broker/{broker}"),
        ]
        for broker in sorted(control.shapes.neighbours())
    }
    return {
        **{name: counted.get(name, 0) for name in ("published", "delivered", "refused")},
        "profiles": len(query.profiles),
        "waiting_bytes": query.waiting_bytes,
        "links": of_links,
    }
