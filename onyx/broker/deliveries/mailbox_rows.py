"""Rows of mailboxes: what is stored of them, beside what they hold.

==============  ======================  ============================================================
space           key                     value
==============  ======================  ============================================================
delivery        a position              see delivery_log.py
mailbox         the profile             acknowledged, floor, cursor, index (see mailbox.py), and,
                                        where any are open or it is ephemeral, the numbers and the
                                        positions of these, whether it is, and how often which of
                                        them were rejected
mailbox-change  a number                the same of all mailboxes that have changed in a call, which
                                        counts instead; None for one that is gone
former-text     a profile, a position   see former_texts.py
delivery-       a profile, a number     see rejections.py
delayed
==============  ======================  ============================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from onyx.broker.deliveries.mailbox import Mailbox, MailboxState
from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table

WRITTEN_AT_ONCE = 256  # rows of mailboxes; then others have their turn


class MailboxRow(NamedTuple):
    """Its key is the profile."""

    state: MailboxState


class ChangeRow(NamedTuple):
    """The mailboxes that have changed in a call, which counts instead of their rows; None: gone."""

    states: list[tuple[str, MailboxState | None]]


MAILBOXES = Table("mailbox", MailboxRow)
CHANGES = Table("mailbox-change", ChangeRow)


class MailboxRows:
    """``note`` what has changed, ``put_changed`` at the end of a call; ``write`` it now and then as
    a row for each mailbox."""

    def __init__(self, rows: RowLog, boxes: Mapping[str, Mailbox]) -> None:
        self.changed: dict[str, Mailbox | None] = {}
        """In this call; None: it is gone."""
        self._rows = rows
        self._boxes = boxes
        self._unwritten: dict[str, None] = {}  # whose row is of before some changes
        self._changes: list[str] = []  # the keys of rows of changes, in order
        self._change = 0  # the last of them
        self._to_write: list[str] = []  # profiles whose rows are being written, and
        self._replaced: list[str] = []  # the changes that these replace
        self._states: dict[str, MailboxState | None] = {}  # while rows are restored

    def restore_row(self, profile: str, row: MailboxRow) -> None:
        self._states[profile] = row.state

    def restore(self, rows: StoredRows) -> dict[str, MailboxState]:
        """What mailboxes are, behind all their rows."""
        states, self._states = self._states, {}
        for key, change in rows.take(CHANGES):
            states.update(change.states)
            self._unwritten.update((profile, None) for profile, _ in change.states)
            self._changes.append(key)
            self._change = int(key)
        return {profile: state for profile, state in states.items() if state is not None}

    def put_changed(self) -> None:
        """One row for all mailboxes that have changed in this call."""
        self._change += 1
        key = number_key(self._change)
        states = [
            (profile, None if box is None else box.state()) for profile, box in self.changed.items()
        ]
        CHANGES.put(self._rows, key, ChangeRow(states))
        self._changes.append(key)
        self._unwritten.update(dict.fromkeys(self.changed))
        self.changed.clear()

    def forget(self, profile: str) -> None:
        MAILBOXES.delete(self._rows, profile)
        self.changed[profile] = None

    def begin_writing(self) -> bool:
        """What has changed up to now becomes rows of mailboxes, unless some are being written;
        whether there is more of that to ``write``."""
        if not self._replaced:
            self._to_write, self._unwritten = list(self._unwritten), {}
            self._replaced, self._changes = self._changes, []
            return self.write()
        return False

    def write(self) -> bool:
        """Some of the rows; when all are there, the changes that they replace go.  Whether there
        is more."""
        for profile in self._to_write[-WRITTEN_AT_ONCE:]:
            box = self._boxes.get(profile)
            if box is not None:
                MAILBOXES.put(self._rows, profile, MailboxRow(box.state()))
        del self._to_write[-WRITTEN_AT_ONCE:]
        if self._to_write:
            return True
        for key in self._replaced:
            CHANGES.delete(self._rows, key)
        self._replaced.clear()
        return False
