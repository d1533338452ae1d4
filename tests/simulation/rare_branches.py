"""Rare branches, taken on purpose: bounds that only large networks meet are met by tiny ones.

Each seed has another choice of them.  A bound is a number of a module of the project, which is
changed in all modules that have it, or a limit of the topology.  The code has no hook for this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from msgspec.structs import replace

from overlay.topology import Topology

PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")

TINY: dict[str, tuple[float, ...]] = {
    "onyx.broker.deliveries.delivery_parts.LATE_MESSAGES": (1,),
    "onyx.broker.profiles.transformation.FORMER_MAX": (0, 1),
    "onyx.broker.messages.local_deliveries.DEFERRED_BYTES_MAX": (0,),
    "onyx.broker.messages.local_deliveries.LARGE_BYTES": (1,),
    "onyx.broker.messages.local_deliveries.MANY": (1,),
    "onyx.broker.deliveries.delivery_log.INLINE_BYTES": (0, 8),
    "onyx.broker.deliveries.lines.SENT_AT_ONCE": (1, 2),
    "onyx.broker.deliveries.lines.SENT_BYTES_AT_ONCE": (1,),
    "onyx.broker.deliveries.lines.READ_AHEAD": (1,),
    "onyx.broker.deliveries.mailbox._COMPACT_AT": (0,),
    "onyx.broker.deliveries.mailboxes.WRITTEN_AT_ONCE": (1,),
    "onyx.broker.deliveries.result_maker.OPENED_BYTES": (0,),
    "onyx.broker.messages.message_validation.QUESTION_BYTES": (1,),
    "onyx.broker.messages.message_validation.QUESTION_MESSAGES": (1,),
    "onyx.broker.moves.releases.PORTION_BYTES": (1,),
    "onyx.broker.packing.format_choice.GAP_MAX": (1,),
    "onyx.broker.profiles.transformation.PORTION": (1,),
    "overlay.link.early_leaving.EARLY_MAX": (1, 2),
    "overlay.link.link_layer.TICKED_AT_ONCE": (1,),
    "overlay.routing.message_sample.SAMPLE_EVERY": (3,),
    "overlay.routing.message_sample.SAMPLED_MAX": (1,),
    "yfilter.index.index.PIECE_VISITS": (1, 16),
}
LIMITS: dict[str, tuple[int, ...]] = {
    "link_backlog_bytes_max": (1024,),
    "link_away_bytes_max": (1024,),
    "routing_table_max_bytes": (1, 2000),
}
LINK_LIMITS: dict[str, tuple[int, ...]] = {
    "window_bytes": (1, 300),
    "connection_window_bytes": (1, 300),
    "journal_memory_bytes": (1,),
}


@contextmanager
def tiny_bounds(seed: int) -> Iterator[dict[str, float]]:
    """Those of a seed; what they are by name."""
    random = Random(seed)
    bounds = {name: random.choice(few) for name, few in TINY.items() if random.random() < 0.4}
    undo = []
    for name, bound in bounds.items():
        module, _, constant = name.rpartition(".")
        usual = getattr(__import__(module, fromlist=[constant]), constant)
        for known in list(sys.modules.values()):
            is_ours = known.__name__.partition(".")[0] in PACKAGES
            if is_ours and known.__dict__.get(constant) == usual:
                undo.append(patch.object(known, constant, bound))
    for each in undo:
        each.start()
    try:
        yield bounds
    finally:
        for each in undo:
            each.stop()


def with_tiny_limits(topology: Topology, seed: int) -> tuple[Topology, list[str]]:
    """The same network with such limits of a seed, and their names."""
    random = Random(f"limits of {seed}")
    own = {name: random.choice(few) for name, few in LIMITS.items() if random.random() < 0.3}
    link = {name: random.choice(few) for name, few in LINK_LIMITS.items() if random.random() < 0.3}
    limits = topology.limits
    limits = replace(limits, **own, link=replace(limits.link, **link))  # type: ignore[arg-type]
    return replace(topology, limits=limits), [*own, *link]
