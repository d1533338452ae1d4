"""FormerTexts: the texts that profiles had, for results that are made when they are taken.

Each is of all that waits for its user through a position of the delivery log, and goes when that
was taken.

=============  =======================  ============================================================
space          key                      value
=============  =======================  ============================================================
former-text    the profile, ``|``, a    the text that the profile had through this position
               position
=============  =======================  ============================================================
"""

from __future__ import annotations

from overlay.link.row_log import RowLog, numbered_key
from overlay.link.tables import Row, Table


class TextRow(Row, frozen=True):
    text: str


TEXTS = Table("former-text", TextRow)


class FormerTexts:
    """Of each profile (position, text), the oldest first."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._texts: dict[str, list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._texts.values()))

    @property
    def last(self) -> int:
        """The highest position through which there is one."""
        return max((texts[-1][0] for texts in self._texts.values()), default=0)

    def restore(self, key: str, row: TextRow) -> None:
        """A row of TEXTS, in the order of keys."""
        profile, _, through = key.rpartition("|")
        self._texts.setdefault(profile, []).append((int(through), row.text))

    def keep(self, profile: str, through: int, text: str) -> None:
        """A profile had this text through a position, if no other one is kept for that."""
        texts = self._texts.setdefault(profile, [])
        if not texts or texts[-1][0] < through:
            texts.append((through, text))
            TEXTS.put(self._rows, numbered_key(profile, through), TextRow(text))

    def at(self, profile: str, position: int) -> str:
        """The text that a profile had at a position; "" for that of now."""
        for through, text in self._texts.get(profile, ()):
            if position <= through:
                return text
        return ""

    def profiles(self) -> list[str]:
        return list(self._texts)

    def forget(self, profile: str, cursor: int) -> None:
        """All that waits through a position was taken."""
        kept = []
        for through, text in self._texts.pop(profile, ()):
            if through > cursor:
                kept.append((through, text))
            else:
                TEXTS.delete(self._rows, numbered_key(profile, through))
        if kept:
            self._texts[profile] = kept
