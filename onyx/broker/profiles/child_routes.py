"""ChildRoutes: the routing queries of child links, as they are said and as they are presumed.

A child that is away when a tree comes into use cannot say what it wants there.  Nobody waits for
it: it is *presumed* to want everything, so messages wait for it at its parent as they do for any
broker that is away, until it says what it wants::

    away for long, asked for its TreeReady ──> ``presume``: everything
    TreeReady of the branch                ──> ``confirm``: what it has said, and no more

Messages may come before the child is ready for their source then; they wait until it is
(``TreeVersions.must_wait``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.delta_portions import row_key
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.routing.branches import Branch
from overlay.routing.delta import Delta
from overlay.routing.routing_table import RoutingTable
from yfilter.engine.linear_paths import ANY_GRAPH, Conjunction

EVERYTHING = ("//*", ANY_GRAPH.text)
"""Any document, and any graph."""


class _RouteRow(NamedTuple):
    """A disjunct that a child wants on a branch."""

    branch: str
    link: str
    disjunct: str


class _PresumedRow(NamedTuple):
    """Of ``EVERYTHING``, what a child has not said itself."""

    branch: str
    link: str
    disjuncts: tuple[str, ...] = EVERYTHING[:1]


ROUTES = Table("route", _RouteRow)
PRESUMED = Table("route-presumed", _PresumedRow)


class ChildRoutes:
    """``change`` as a child says, ``forget`` what is over."""

    def __init__(
        self,
        control: ControlPlane,
        rows: RowLog,
        table: RoutingTable,
        note: Callable[[Mapping[str, Delta]], None],
    ) -> None:
        """``note`` is told what the parents must know, by own branch."""
        self._control = control
        self._rows = rows
        self._table = table
        self._note = note
        self.presumed: dict[Branch, tuple[str, ...]] = {}

    def restore(self, rows: StoredRows) -> None:
        for _, route in rows.take(ROUTES):
            branch = self._control.branch_of(route.link, route.branch)
            self._table.keep_child(branch)
            disjunct = self._table.pool.parse(route.disjunct)
            self._note(self._table.change_child(branch, (disjunct,), ()))
        for _, row in rows.take(PRESUMED):
            branch = self._control.branch_of(row.link, row.branch)
            self.presumed[branch] = tuple(row.disjuncts)

    def change(self, branch: Branch, delta: Delta) -> None:
        """A child's routing query of a branch changes."""
        if branch in self.presumed:
            said = {one.text for one in delta.added}  # it does want that
            self._mark(branch, [one for one in self.presumed[branch] if one not in said])
        self._change(branch, delta)

    def presume(self, branch: Branch) -> None:
        """A child that has not said what it wants on a branch may want everything."""
        self._table.keep_child(branch)
        wanted = {one.text for one in self._table.wanted_on(branch)}
        lacking = [one for one in EVERYTHING if one not in wanted]
        if lacking:
            self._mark(branch, [*self.presumed.get(branch, ()), *lacking])
            self._change(branch, Delta(self._parsed(lacking)))

    def confirm(self, branch: Branch) -> None:
        """A child has said all that it wants on a branch."""
        if branch in self.presumed:
            presumed = self._parsed(self.presumed[branch])
            self._mark(branch, ())
            self._change(branch, Delta((), presumed))

    def forget(self, wanted: Mapping[Branch, Iterable[Conjunction]]) -> None:
        """What was wanted on branches that no tree has any more, which the table has forgotten."""
        for branch, disjuncts in wanted.items():
            for disjunct in disjuncts:
                ROUTES.delete(self._rows, row_key(branch.name, branch.broker, disjunct.text))
            self._mark(branch, ())

    def _change(self, branch: Branch, delta: Delta) -> None:
        self._note(self._table.change_child(branch, delta.added, delta.removed))
        for disjunct in delta.added:
            row = _RouteRow(branch.name, branch.broker, disjunct.text)
            ROUTES.put(self._rows, row_key(*row), row)
        for disjunct in delta.removed:
            ROUTES.delete(self._rows, row_key(branch.name, branch.broker, disjunct.text))

    def _parsed(self, disjuncts: Iterable[str]) -> tuple[Conjunction, ...]:
        return tuple(map(self._table.pool.parse, disjuncts))

    def _mark(self, branch: Branch, disjuncts: Sequence[str]) -> None:
        if disjuncts:
            self.presumed[branch] = tuple(disjuncts)
            row = _PresumedRow(branch.name, branch.broker, tuple(disjuncts))
            PRESUMED.put(self._rows, self._key(branch), row)
        elif self.presumed.pop(branch, None) is not None:
            PRESUMED.delete(self._rows, self._key(branch))

    @staticmethod
    def _key(branch: Branch) -> str:
        return row_key(branch.name, branch.broker, "")
