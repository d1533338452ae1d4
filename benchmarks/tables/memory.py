"""What a disjunct costs a broker in memory, by the number of trees that it is on."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

from overlay.routing.branches import Branch
from overlay.routing.routing_table import RoutingTable
from yfilter import Matcher


def bytes_a_disjunct(texts: Sequence[str], roots: int) -> float:
    """A table and its engine with one child, which wants ``texts`` on the trees of all roots."""
    gc.collect()
    tracemalloc.start()
    table = RoutingTable(Matcher())
    for number in range(roots):
        root = f"R{number}"
        own, below = (
            Branch(root, *ends, frozenset({root}), 1) for ends in (("P", "B"), ("B", "L"))
        )
        table.open_tree(root, own, [below])
        table.change_child(below, map(table.pool.parse, texts), ())
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(texts)
