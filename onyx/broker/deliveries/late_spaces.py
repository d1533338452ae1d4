"""Spaces of a store whose rows are read when they are needed, and not at a start."""

from __future__ import annotations

from overlay.link.journal_rows import OUTBOX

BODY_SPACE = "delivery-body"
LATE_SPACES = (BODY_SPACE, OUTBOX)
