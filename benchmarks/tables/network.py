"""TableNetwork: the routing tables and matchers of all brokers, without what is between them.

Deltas go from table to table at once.  Everything else is as in a broker: the same tables, the same
budgets, the same engine that decides where a message goes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.benchmark import WrongAnswers
from formats import ElementStream
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_trees
from overlay.routing.delta import Delta, DeltaSum
from overlay.routing.generalisation import disjunct_bytes
from overlay.routing.routing_table import RoutingTable
from overlay.routing.table_budget import table_budget
from overlay.topology import Topology
from yfilter import LinkTarget, Matcher, RouteMatch
from yfilter.engine.linear_paths import Conjunction

DISJUNCTS_MAX = 10**9


@dataclass(slots=True)
class Level:
    """Brokers at one depth of the trees: bytes of routing tables, and microseconds of look-ups."""

    table_bytes: list[int] = field(default_factory=list)
    lookup_us: list[float] = field(default_factory=list)


class TableNetwork:
    """``interests``: broker -> disjuncts of its own profiles; ``roots``: whose trees are open."""

    def __init__(
        self,
        topology: Topology,
        roots: Sequence[str],
        interests: Mapping[str, Iterable[Conjunction]],
        table_bytes_max: int,
    ) -> None:
        trees = broadcast_trees(topology)
        self.trees = {root: trees[root] for root in roots}
        self.matchers = {broker: Matcher() for broker in topology.broker_ids}
        self.tables = {broker: RoutingTable(matcher) for broker, matcher in self.matchers.items()}
        for broker, disjuncts in interests.items():
            self.tables[broker].change_local(disjuncts, ())
        for tree in self.trees.values():
            self._open(tree, table_bytes_max)

    def change(self, broker: str, added: Conjunction, removed: Conjunction) -> int:
        """One profile is replaced by another; how many deltas crossed links for it."""
        deltas = self.tables[broker].change_local([added], [removed])
        return sum(self._tell(self.trees[root], broker, delta) for root, delta in deltas.items())

    def reached(self, root: str, stream: ElementStream, levels: Mapping[int, Level]) -> set[str]:
        """The brokers that receive a message; the look-ups are timed by depth."""
        pending = [(root, 0)]
        found = {root}
        while pending:
            broker, depth = pending.pop()
            matches = self.matchers[broker].match(stream, root)
            begun = time.thread_time_ns()
            links = [match.link for match in matches if isinstance(match, RouteMatch)]
            levels[depth].lookup_us.append((time.thread_time_ns() - begun) / 1000)
            found.update(links)
            pending += [(link, depth + 1) for link in links]
        return found

    def table_bytes(self, broker: str) -> int:
        return sum(disjunct_bytes(entry) for _, _, entry in self.tables[broker].entries())

    def generalisations(self) -> int:
        return sum(table.statistics().get("generalisations", 0) for table in self.tables.values())

    def _open(self, tree: BroadcastTree, table_bytes_max: int) -> None:
        """From the leaves up, so that every broker tells its parent once."""
        open_trees = list(self.trees.values())
        news: dict[str, DeltaSum] = defaultdict(DeltaSum)
        for broker, table in self.tables.items():
            has_parent = tree.parent[broker] is not None
            news[broker].update(table.open_tree(tree.root, has_parent=has_parent))
        for broker in reversed(tree.breadth_first()):
            parent = tree.parent[broker]
            if parent is None:
                continue
            budget = table_budget(broker, tree, open_trees, table_bytes_max, DISJUNCTS_MAX)
            news[broker].update(self.tables[broker].set_budget(tree.root, budget))
            delta = news[broker].take()
            news[parent].update(self.tables[parent].change_child(tree.root, broker, delta))

    def _tell(self, tree: BroadcastTree, broker: str, delta: Delta) -> int:
        told = 0
        parent = tree.parent[broker]
        while delta and parent is not None:
            told += 1
            delta = self.tables[parent].change_child(tree.root, broker, delta)
            broker, parent = parent, tree.parent[parent]
        return told


class Optimum:
    """Which brokers want a message, by the routing queries of their own profiles."""

    def __init__(self, interests: Mapping[str, Iterable[Conjunction]]) -> None:
        self._matcher = Matcher()
        for broker, disjuncts in interests.items():
            for disjunct in dict.fromkeys(disjuncts):
                self._matcher.add_route(disjunct, LinkTarget("", broker))

    def brokers(self, stream: ElementStream) -> set[str]:
        matches = self._matcher.match(stream)
        return {match.link for match in matches if isinstance(match, RouteMatch)}


def check_reached(wanted: set[str], reached: set[str]) -> None:
    """WrongAnswers when a broker that wants a message does not receive it."""
    if not wanted <= reached:
        raise WrongAnswers(f"a message did not reach {sorted(wanted - reached)}")
