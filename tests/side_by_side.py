"""Which tests stay together when several processes share them (``pytest -n``, ``make test``).

A file's tests run in one process, in order, as they do without ``-n``.  Files that need Spark are
one process's work, whose session all of them share; files that share the session of a provider, or
have Spark in processes that they start, are another's.  Files that need a network of processes are
a third's, so that no two of these networks are up side by side.  Tests of faults, which wait more
than they work, are a fourth's.  These groups are begun first, as they take longest, then other
files with slow tests.  Simulations, each test from its own seeds, come last and go wherever there
is time, so that all processes are done at the same time.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

SESSIONS = (
    *(f"tests/registration/spark/test_{each}.py" for each in ("fragment_job", "query_sql")),
    "tests/onyx/queries/test_session.py",
)
"""Their session has settings of its own: a process that has one shares no other."""
TOGETHER = {  # each file belongs to the first that names it
    "sessions": (*SESSIONS, "tests/onyx/queries/test_figure1.py"),
    "spark": (
        *("tests/onyx/spark/", "tests/registration/spark/"),
        *(f"tests/onyx/test_{each}.py" for each in ("archives", "cli_planning")),
    ),
    "processes": ("tests/onyx/test_", "tests/benchmarks/test_network.py"),
    "faults": ("tests/survival/",),
}
APART = ("tests/simulation/",)


def longest_first(items: list[pytest.Item]) -> None:
    """Put tests into the order in which their groups are begun."""
    groups = list(TOGETHER)

    def rank(item: pytest.Item) -> tuple[int, bool]:
        group = _group(item.nodeid)
        if group in groups:
            return groups.index(group) - len(groups), not item.nodeid.startswith(SESSIONS)
        return 2 if group == item.nodeid else not item.get_closest_marker("slow"), True

    items.sort(key=rank)


def _group(nodeid: str) -> str:
    if nodeid.startswith(APART):
        return nodeid
    file = nodeid.partition("::")[0]
    groups = (group for group, begins in TOGETHER.items() if file.startswith(begins))
    return next(groups, file)


class SideBySide(LoadScopeScheduling):
    """Hands out groups of tests, as their first ones come, to whichever process is free."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """A test that ended its process is not run again, as it would most likely end the next."""
        workload = self.assigned_work[node]
        others = {each: work for each, work in self.assigned_work.items() if each is not node}
        self.assigned_work = {node: workload}
        crashed: str | None = super().remove_node(node)
        self.assigned_work = others
        for scope, unit in workload.items():
            if crashed in unit:
                unit[crashed] = True
            if all(unit.values()):
                self.workqueue.pop(scope, None)
        for each in others:
            self._reschedule(each)
        return crashed
