"""Reflection: which changes of needs a message takes into account.

A broker numbers what it tells its parent about a branch of its own.  Whoever cuts a message says,
for the child that it goes to, by which of the child's changes it has been cut on its whole way::

    B1 (root)      has B2's changes up to 7: cuts by them           Message(reflects=7) ─> B2
    B2             its change 7 carried B4's changes up to 3,
                   change 8 those up to 5                           Message(reflects=3) ─> B4
    B4 (host)      p1 was announced with change 3: it takes part;
                   p2 with change 4: it is not live yet, and does not

So no profile ever sees a message that was cut without its needs.  ``WHOLE`` is a message that
nobody has cut; it takes everything into account.

What a child's change became upward is kept for the last CHANGES_MAX changes; beyond that the oldest
are forgotten, and counted: a message that reflects only those is no profile's behind that child.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable

from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table

WHOLE = 0
NOTHING = 1  # a cut message that takes no change into account; so the first change is number 2
CHANGES_MAX = 16_384


class _SentRow(Row, frozen=True):
    last: int


class _ComeRow(Row, frozen=True):
    child: str
    branch: str
    last: int


class _CarriedRow(Row, frozen=True):
    """The change ``number`` of a child's branch is carried by ``own`` of the own branch ``to``."""

    to: str
    child: str
    branch: str
    number: int
    own: int


SENT = Table("needs-sent", _SentRow)
COME = Table("needs-come", _ComeRow)
CARRIED = Table("needs-carried", _CarriedRow)


class _Carried:
    """Changes of a child's branch, and by which change of an own branch each is carried; both
    rise."""

    __slots__ = ("numbers", "own")

    def __init__(self) -> None:
        self.numbers = array("q")
        self.own = array("q")


class Reflection:
    """The numbers of one broker; durable."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._sent: dict[str, int] = {}  # by own branch
        self._come: dict[tuple[str, str], int] = {}  # by child and its branch: the last number
        self._carried: dict[tuple[str, str, str], _Carried] = {}  # own branch, child, its branch

    def restore(self, rows: StoredRows) -> None:
        self._sent.update((own, row.last) for own, row in rows.take(SENT))
        self._come.update(((row.child, row.branch), row.last) for _, row in rows.take(COME))
        for row in sorted((row for _, row in rows.take(CARRIED)), key=lambda row: row.number):
            carried = self._carried.setdefault((row.to, row.child, row.branch), _Carried())
            carried.numbers.append(row.number)
            carried.own.append(row.own)

    def next(self, own: str) -> int:
        """The number of a new change of an own branch."""
        self._sent[own] = number = self.last(own) + 1
        SENT.put(self._rows, own, _SentRow(number))
        return number

    def last(self, own: str) -> int:
        """The number of the last change of an own branch."""
        return self._sent.get(own, NOTHING)

    def come(self, child: str, branch: str) -> int | None:
        """The last change of a child's branch that has come."""
        return self._come.get((child, branch))

    def heard(self) -> Iterable[tuple[str, str]]:
        """The branches, (child, branch), of which changes have come."""
        return tuple(self._come)

    def carry(self, child: str, branch: str, number: int, carriers: Iterable[str]) -> None:
        """A child's change has come, and what follows from it has been told about the own branches
        ``carriers``."""
        self._come[child, branch] = number
        COME.put(self._rows, f"{child}|{branch}", _ComeRow(child, branch, number))
        for to in carriers:
            carried = self._carried.setdefault((to, child, branch), _Carried())
            own = self.last(to)
            if carried.own and carried.own[-1] == own:
                self._forget(to, child, branch, -1)
            carried.numbers.append(number)
            carried.own.append(own)
            row = _CarriedRow(to, child, branch, number, own)
            CARRIED.put(self._rows, _key(to, child, branch, number), row)
            if len(carried.own) > CHANGES_MAX:
                self._forget(to, child, branch, 0)

    def reflected(self, own: str | None, child: str, branch: str, reflects: int) -> int:
        """What a message on a tree of ``own`` that reflects so much here does of a child's changes;
        WHOLE: it is cut here, so all that have come."""
        if reflects == WHOLE or own is None:
            return self._come.get((child, branch), NOTHING)
        carried = self._carried.get((own, child, branch))
        found = 0 if carried is None else bisect_right(carried.own, reflects)
        return carried.numbers[found - 1] if carried is not None and found else NOTHING

    def forget(self, own: Collection[str], below: Collection[tuple[str, str]]) -> None:
        """Own branches, and branches of children (child, branch), that are never used again."""
        for name in own:
            if self._sent.pop(name, None) is not None:
                SENT.delete(self._rows, name)
        for child, branch in below:
            if self._come.pop((child, branch), None) is not None:
                COME.delete(self._rows, f"{child}|{branch}")
        for to, child, branch in list(self._carried):
            if to in own or (child, branch) in below:
                for number in self._carried.pop((to, child, branch)).numbers:
                    CARRIED.delete(self._rows, _key(to, child, branch, number))

    def _forget(self, to: str, child: str, branch: str, index: int) -> None:
        carried = self._carried[to, child, branch]
        CARRIED.delete(self._rows, _key(to, child, branch, carried.numbers.pop(index)))
        carried.own.pop(index)


def _key(to: str, child: str, branch: str, number: int) -> str:
    return f"{to}|{child}|{branch}|{number}"
