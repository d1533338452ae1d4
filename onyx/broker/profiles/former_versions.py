"""FormerVersions: texts that profiles had, for messages that do not reflect the new ones yet.

A message that was cut before a profile's change was known has what the old text needs of it, and
may lack what the new one needs.  So the old text answers it::

    change told as number      3: p1's first text          8: its second
    a message reflects         3 … 7: the first text       8 …: the second

The youngest are kept, up to FORMER_MAX of FORMER_TEXT_MAX characters, in the order of ``until``; an
older one is counted, and its messages are as those from before a profile is live.  Durable: a text
and the changes that tell of the next one are of one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table

FORMER_MAX = 16_384
FORMER_TEXT_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FormerRow:
    profile: str
    text: str
    since: Mapping[str, int]
    until: Mapping[str, int]


FORMER = Table("former-version", FormerRow)


@dataclass(slots=True, eq=False)
class _Former:
    """``since`` and ``until``: by own branch, the changes that told of this text and of the next
    one; None while that is not told, so that there is no row of this ``number`` yet."""

    number: int
    profile: str
    text: str
    since: Mapping[str, int]
    until: Mapping[str, int] | None = None


class FormerVersions:
    """Texts by what a message reflects."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._kept: dict[int, _Former] = {}
        self._of: dict[str, list[_Former]] = {}  # by profile
        self._untold: dict[str, _Former] = {}
        self._last: dict[str, int] = {}  # by own branch: from here on nobody is asked
        self._number = self._length = self._forgotten = 0

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(FORMER):
            self._add(_Former(int(key), row.profile, row.text, row.since, row.until))
            self._note_last(row.until)

    def keep(self, profile: str, text: str, since: Mapping[str, int]) -> None:
        """A text gives way to another one."""
        former = self._untold[profile] = _Former(self._number + 1, profile, text, since)
        self._add(former)
        while len(self._kept) > FORMER_MAX or self._length > FORMER_TEXT_MAX:
            self._drop(next(iter(self._kept.values())))
            self._forgotten += 1

    def told(self, profile: str, numbers: Mapping[str, int]) -> None:
        """The text that a profile has now was told with these changes; with none, messages are
        not cut by what it needs, and it answers them all."""
        former = self._untold.pop(profile, None)
        if former is None:
            return
        if not numbers:
            self._drop(former)
            return
        former.until = numbers
        self._note_last(numbers)
        row = FormerRow(profile, former.text, former.since, numbers)
        FORMER.put(self._rows, _row_key(former), row)

    def forget(self, profile: str) -> None:
        for former in self._of.get(profile, [])[:]:
            self._drop(former)

    def answering(self, own: str, reflects: int) -> Iterator[tuple[str, str]]:
        """(profile, text) of those that answer a message that was cut on its way to ``own``."""
        if not self._untold and reflects >= self._last.get(own, 0):
            return
        for former in reversed(self._kept.values()):
            until = None if former.until is None else former.until.get(own, 0)
            if until is not None and 0 < until <= reflects:
                return  # and so had all before it
            if until != 0 and former.since.get(own, 0) <= reflects:
                yield former.profile, former.text

    def statistics(self) -> dict[str, int]:
        return {
            "former_versions": len(self._kept),
            "former_versions_forgotten": self._forgotten,
        }

    def _add(self, former: _Former) -> None:
        self._number = former.number
        self._kept[former.number] = former
        self._of.setdefault(former.profile, []).append(former)
        self._length += len(former.text)

    def _note_last(self, numbers: Mapping[str, int]) -> None:
        for own, number in numbers.items():
            self._last[own] = max(number, self._last.get(own, 0))

    def _drop(self, former: _Former) -> None:
        del self._kept[former.number]
        self._length -= len(former.text)
        self._of[former.profile].remove(former)
        if not self._of[former.profile]:
            del self._of[former.profile]
        if self._untold.get(former.profile) is former:
            del self._untold[former.profile]
        if former.until is not None:
            FORMER.delete(self._rows, _row_key(former))


def _row_key(former: _Former) -> str:
    return number_key(former.number)
