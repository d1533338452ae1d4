"""FormerVersions: texts that profiles had, for messages that do not reflect the new ones yet.

A message that was cut before a profile's change was known has what the old text needs of it, and
may lack what the new one needs.  So the old text answers it::

    change told as number      3: p1's first text          8: its second
    a message reflects         3 … 7: the first text       8 …: the second

At most FORMER_MAX are kept, the youngest, while the broker runs; an older one's messages are as
those from before a profile is live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FORMER_MAX = 256


@dataclass(slots=True, eq=False)
class _Former:
    """``since`` and ``until``: by own branch, the changes that told of this text and of the next
    one; None while that is not told."""

    profile: str
    text: str
    since: Mapping[str, int]
    until: Mapping[str, int] | None = None


class FormerVersions:
    """Texts by what a message reflects."""

    def __init__(self) -> None:
        self._kept: list[_Former] = []
        self._last: dict[str, int] = {}  # by own branch: from here on nobody is asked

    def keep(self, profile: str, text: str, since: Mapping[str, int]) -> None:
        """A text gives way to another one."""
        self._kept.append(_Former(profile, text, since))
        del self._kept[:-FORMER_MAX]

    def told(self, profile: str, numbers: Mapping[str, int]) -> None:
        """The text that a profile has now was told with these changes."""
        for former in self._kept:
            if former.profile == profile and former.until is None:
                former.until = numbers
                for own, number in numbers.items():
                    self._last[own] = max(number, self._last.get(own, 0))

    def forget(self, profile: str) -> None:
        self._kept = [former for former in self._kept if former.profile != profile]

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
