"""State that a part declares once: it is changed like any mapping, set or value, each change goes
into the commit of its turn, and it is filled at a restart.

::

    self._roots = StoredMap(context.rows, ROOTS)                # a dict of records, by key
    self._met = StoredSet(context.rows, MET)                    # keys without a record
    self._plan = StoredValue(context.rows, PLAN, _PlanRow(""))  # one record

    self._roots["s1"] = _RootRow(...)                           # put
    del self._roots["s1"]                                       # deleted

A core fills them before it restores its parts, and a part derives from them all that is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSet
from typing import Any, Generic, TypeVar

from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table

R = TypeVar("R")


def fill(rows: RowLog, stored: StoredRows) -> None:
    """Fill all state that was made with a log from its rows."""
    for state in rows.stored:
        state.restore(stored)


class StoredMap(dict[str, R]):
    """A dict whose records are rows of a table.  A record that is changed in place is put again by
    ``put``."""

    # Reading is a dict's; every change goes through __setitem__ and __delitem__.
    clear: Any = MutableMapping.clear
    popitem: Any = MutableMapping.popitem
    setdefault: Any = MutableMapping.setdefault
    update: Any = MutableMapping.update
    __ior__: Any = None

    def __init__(
        self, rows: RowLog, table: Table[R], order: Callable[[R], Any] | None = None
    ) -> None:
        """``order``: by which the records are filled in; without it, their keys."""
        super().__init__()
        self._rows = rows
        self._table = table
        self._order = order
        rows.stored.append(self)

    def restore(self, rows: StoredRows) -> None:
        found = list(rows.take(self._table))
        order = self._order
        if order is not None:
            found.sort(key=lambda row: order(row[1]))
        dict.update(self, found)

    def __setitem__(self, key: str, record: R) -> None:
        super().__setitem__(key, record)
        self._table.put(self._rows, key, record)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._table.delete(self._rows, key)

    def pop(self, key: str, default: Any = None) -> Any:
        """The record that was removed; ``default`` where there was none, and no KeyError."""
        if key not in self:
            return default
        record = self[key]
        del self[key]
        return record

    def put(self, key: str) -> None:
        """The record of this key has been changed."""
        self._table.put(self._rows, key, self[key])


class Member(Row, frozen=True):
    """A row whose key says all."""


class StoredSet(set[str]):
    """A set of keys, each a row without fields."""

    pop: Any = MutableSet.pop
    clear: Any = MutableSet.clear
    remove: Any = MutableSet.remove
    __ior__: Any = MutableSet.__ior__
    __iand__: Any = MutableSet.__iand__
    __isub__: Any = MutableSet.__isub__
    __ixor__: Any = None
    difference_update: Any = None
    intersection_update: Any = None
    symmetric_difference_update: Any = None
    update: Any = None

    def __init__(self, rows: RowLog, table: Table[Member]) -> None:
        super().__init__()
        self._rows = rows
        self._table = table
        rows.stored.append(self)

    def restore(self, rows: StoredRows) -> None:
        set.update(self, (key for key, _ in rows.take(self._table)))

    def add(self, key: str) -> None:
        if key not in self:
            super().add(key)
            self._table.put(self._rows, key, _MEMBER)

    def discard(self, key: object) -> None:
        if key in self:
            super().discard(key)
            self._table.delete(self._rows, str(key))


_MEMBER = Member()


class StoredValue(Generic[R]):
    """The one record of a table: ``now`` is the initial one until another is ``put``; None is no
    row."""

    __slots__ = ("_key", "_rows", "_table", "now")

    def __init__(self, rows: RowLog, table: Table[Any], initial: R, key: str = "current") -> None:
        self._rows = rows
        self._table = table
        self._key = key
        self.now = initial  # PERF: an attribute, which is read for each message
        rows.stored.append(self)

    def restore(self, rows: StoredRows) -> None:
        for _, record in rows.take(self._table):
            self.now = record

    def put(self, record: R) -> None:
        if record is not None:
            self._table.put(self._rows, self._key, record)
        elif self.now is not None:
            self._table.delete(self._rows, self._key)
        self.now = record
