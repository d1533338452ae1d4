"""What an updating expression of XQuery Update does."""

from __future__ import annotations

from enum import Enum


class UpdateKind(Enum):
    """What is done to a node of a copy, in the words before the node and between it and the new."""

    DELETE = ("delete node", "")
    REPLACE = ("replace node", "with")
    REPLACE_VALUE = ("replace value of node", "with")
    RENAME = ("rename node", "as")
    INSERT_INTO = ("insert node", "into")
    INSERT_FIRST = ("insert node", "as first into")
    INSERT_LAST = ("insert node", "as last into")
    INSERT_BEFORE = ("insert node", "before")
    INSERT_AFTER = ("insert node", "after")
