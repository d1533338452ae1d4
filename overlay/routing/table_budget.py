"""How much of its parent's routing table a broker may fill.

A table has a routing query for each branch that hangs on the broker on some open tree.  Its bytes
are shared out by the number of brokers in each: whoever speaks for more of the network may say
more.  Every broker computes the same shares from the topology and the catalog, without exchanging
a word; when a tree opens they may become smaller.
"""

from __future__ import annotations

from collections.abc import Collection

from overlay.routing.branches import Branch
from overlay.routing.generalisation import Budget


def table_budget(
    own: Branch, siblings: Collection[Branch], table_bytes_max: int, disjuncts_max: int
) -> Budget:
    """What may be told for the branch ``own``, one of ``siblings``: all different branches that
    hang on its parent on open trees."""
    share = own.brokers / sum(branch.brokers for branch in siblings)
    return Budget(disjuncts_max, max(1, int(table_bytes_max * share)))
