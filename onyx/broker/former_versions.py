"""FormerVersions: texts that profiles had, for messages that do not reflect the new ones yet.

A message that was cut before a profile's change was known has what the old text needs of it, and
may lack what the new one needs.  So the old text answers it::

    change told as number      3: p1's first text          8: its second
    a message reflects         3 … 7: the first text       8 …: the second

At most FORMER_MAX are kept, the youngest; an older one's messages are as those from before a
profile is live.  Durable: a text and the changes that tell of the next one are of one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from overlay.link.row_log import RowLog, read_record

FORMER_MAX = 256
FORMER_SPACE = "former-version"


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
        self._kept: list[_Former] = []
        self._last: dict[str, int] = {}  # by own branch: from here on nobody is asked
        self._number = 0

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, key, value in sorted(rows):
            if space == FORMER_SPACE:
                former = _Former(int(key), **read_record(value))
                self._kept.append(former)
                self._number = former.number
                self._note_last(former.until or {})

    def keep(self, profile: str, text: str, since: Mapping[str, int]) -> None:
        """A text gives way to another one."""
        self._number += 1
        self._kept.append(_Former(self._number, profile, text, since))
        self._drop(self._kept[:-FORMER_MAX])

    def told(self, profile: str, numbers: Mapping[str, int]) -> None:
        """The text that a profile has now was told with these changes; with none, messages are
        not cut by what it needs, and it answers them all."""
        told = [f for f in self._kept if f.profile == profile and f.until is None]
        if not numbers:
            self._drop(told)
            return
        for former in told:
            former.until = numbers
            self._note_last(numbers)
            record = {
                "profile": former.profile,
                "text": former.text,
                "since": dict(former.since),
                "until": dict(numbers),
            }
            self._rows.put(FORMER_SPACE, _row_key(former), record)

    def forget(self, profile: str) -> None:
        self._drop([former for former in self._kept if former.profile == profile])

    def answering(self, own: str, reflects: int) -> Iterator[tuple[str, str]]:
        """(profile, text) of those that answer a message that was cut on its way to ``own``."""
        untold = bool(self._kept) and self._kept[-1].until is None
        if not untold and reflects >= self._last.get(own, 0):
            return
        for former in self._kept:
            ended = former.until is not None and former.until.get(own, 0) <= reflects
            if former.since.get(own, 0) <= reflects and not ended:
                yield former.profile, former.text

    def __len__(self) -> int:
        return len(self._kept)

    def _note_last(self, numbers: Mapping[str, int]) -> None:
        for own, number in numbers.items():
            self._last[own] = max(number, self._last.get(own, 0))

    def _drop(self, formers: Iterable[_Former]) -> None:
        for former in formers:
            self._kept.remove(former)
            if former.until is not None:
                self._rows.delete(FORMER_SPACE, _row_key(former))


def _row_key(former: _Former) -> str:
    return f"{former.number:016d}"
