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
from formats import ElementStream, parse_text
from onyx.broker.profiles.query_plane import table_budget
from overlay.routing.branches import Branch, Branches
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.routing.delta import Delta, DeltaSum
from overlay.routing.routing_table import RoutingTable
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
        self._branches = Branches(trees.__getitem__, trees)
        self.matchers = {broker: Matcher() for broker in topology.broker_ids}
        self.tables = {broker: RoutingTable(matcher) for broker, matcher in self.matchers.items()}
        for broker, disjuncts in interests.items():
            self.tables[broker].change_local(disjuncts, ())
        self._open(table_bytes_max)

    def change(self, broker: str, added: Conjunction, removed: Conjunction) -> int:
        """One profile is replaced by another; how many deltas crossed links for it."""
        told = self._tell(broker, self.tables[broker].change_local([added], [removed]))
        return told + self._settle()

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
        return self.tables[broker].statistics().table_bytes

    def sum_of(self, name: str) -> int:
        """One of the statistics, of all tables."""
        return sum(getattr(table.statistics(), name) for table in self.tables.values())

    def learn(
        self, lesson: int, roots: Sequence[str], messages: Sequence[bytes], optimum: Optimum
    ) -> None:
        """Publish messages once more; brokers where they come for nothing take note, and choose
        other generalisations if they must."""
        for number, text in enumerate(messages, lesson * len(messages)):
            root = roots[number % len(roots)]
            stream = parse_text(text)
            wanted = optimum.brokers(stream)
            pending = [root]
            while pending:
                broker = pending.pop()
                matches = self.matchers[broker].match(stream, root)
                links = [match.link for match in matches if isinstance(match, RouteMatch)]
                pending += links
                self.tables[broker].arrived(root, root, number)
                if not links and broker not in wanted:
                    self._tell(broker, self.tables[broker].blame(root, stream))
                    self._settle()

    def _settle(self) -> int:
        """Until no routing query is being generalised any more; how many deltas."""
        told = 0
        while working := [name for name, table in self.tables.items() if table.is_working]:
            told += sum(self._tell(broker, self.tables[broker].work()) for broker in working)
        return told

    def _open(self, table_bytes_max: int) -> None:
        """Each tree from the leaves up, so that every branch is told once."""
        news: dict[Branch, DeltaSum] = defaultdict(DeltaSum)
        for root, tree in self.trees.items():
            for broker in tree.breadth_first():
                own = self._branches.of(root, broker)
                below = [self._branches.of(root, child) for child in tree.children[broker]]
                known = [branch for branch in below if branch is not None]
                opened = self.tables[broker].open_tree(root, own, known)
                for name, delta in opened.items():
                    news[self._branch(name, broker)].update(delta)
        for root, tree in self.trees.items():
            for broker in reversed(tree.breadth_first()):
                own = self._branches.of(root, broker)
                if own is None or own not in news:
                    continue
                budget = table_budget(own, self._beside(own), table_bytes_max, DISJUNCTS_MAX)
                news[own].update(self.tables[broker].set_budget(own.name, budget))
                delta = news.pop(own).take()
                above = self.tables[own.parent].change_child(own, delta.added, delta.removed)
                for name, further in above.items():
                    news[self._branch(name, own.parent)].update(further)

    def _beside(self, own: Branch) -> list[Branch]:
        """All different branches that hang on the parent of ``own``."""
        beside = (
            self._branches.of(root, child)
            for root, tree in self.trees.items()
            for child in tree.children[own.parent]
        )
        return list(dict.fromkeys(branch for branch in beside if branch is not None))

    def _branch(self, root: str, broker: str) -> Branch:
        branch = self._branches.of(root, broker)
        assert branch is not None
        return branch

    def _tell(self, broker: str, deltas: Mapping[str, Delta]) -> int:
        """Hand over what a broker's parents must be told, and what follows; how many deltas."""
        pending = [(broker, name, delta) for name, delta in deltas.items() if delta]
        told = 0
        while pending:
            told += 1
            broker, name, delta = pending.pop()
            own = self._branch(name, broker)
            further = self.tables[own.parent].change_child(own, delta.added, delta.removed)
            pending += [(own.parent, above, news) for above, news in further.items()]
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
