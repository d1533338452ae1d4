"""Rows of mailboxes: what is stored of them, beside what they hold.

==============  ======================  ============================================================
space           key                     value
==============  ======================  ============================================================
delivery        a position              see delivery_log.py
mailbox         the profile             acknowledged, floor, cursor, index (see mailbox.py), and,
                                        where any are open or it is ephemeral, the numbers and the
                                        positions of these, and whether it is
mailbox-change  a number                the same of all mailboxes that have changed in a call, which
                                        counts instead; None for one that is gone
former-text     a profile, a position   see former_texts.py
==============  ======================  ============================================================
"""

from __future__ import annotations

from typing import NamedTuple

from onyx.broker.deliveries.mailbox import MailboxState
from overlay.link.tables import Table


class MailboxRow(NamedTuple):
    """Its key is the profile."""

    state: MailboxState


class ChangeRow(NamedTuple):
    """The mailboxes that have changed in a call, which counts instead of their rows; None: gone."""

    states: list[tuple[str, MailboxState | None]]


MAILBOXES = Table("mailbox", MailboxRow)
CHANGES = Table("mailbox-change", ChangeRow)
