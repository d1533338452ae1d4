"""What character data and values of attributes cannot hold as it is, and how it is written."""

from __future__ import annotations

import re

_TEXT_SPECIAL = re.compile("[&<>\r]")
_VALUE_SPECIAL = re.compile('[&<"\t\n\r]')
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}


def escaped_text(value: str) -> str:
    """Character data as it stands between tags."""
    return _TEXT_SPECIAL.sub(_escape, value) if _TEXT_SPECIAL.search(value) else value


def escaped_value(value: str) -> str:
    """The value of an attribute as it stands between quotation marks."""
    return _VALUE_SPECIAL.sub(_escape, value) if _VALUE_SPECIAL.search(value) else value


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES[match[0]]
