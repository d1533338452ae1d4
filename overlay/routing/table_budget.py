"""How much of its parent's routing table a broker may fill.

A table has an entry for each link and open tree.  Its bytes are shared out by the number of
brokers behind each: whoever speaks for more of the network may say more.  Every broker computes
the same shares from the topology and the catalog, without exchanging a word; when a tree opens
they become smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from overlay.routing.broadcast_tree import BroadcastTree
from overlay.routing.generalisation import Budget


def table_budget(
    broker: str,
    tree: BroadcastTree,
    open_trees: Iterable[BroadcastTree],
    table_bytes_max: int,
    disjuncts_max: int,
) -> Budget:
    """What ``broker`` may tell its parent on ``tree``, one of ``open_trees``; KeyError for the
    root, which has none."""
    parent = tree.parent[broker]
    if parent is None:
        raise KeyError(broker)
    entries = sum(brokers_at_or_below(each)[parent] - 1 for each in open_trees)
    share = brokers_at_or_below(tree)[broker] / entries
    return Budget(disjuncts_max, max(1, int(table_bytes_max * share)))


def brokers_at_or_below(tree: BroadcastTree) -> Counter[str]:
    """For each broker the size of its subtree, itself counted."""
    sizes = Counter(tree.parent.keys())
    for broker in reversed(tree.breadth_first()):
        parent = tree.parent[broker]
        if parent is not None:
            sizes[parent] += sizes[broker]
    return sizes
