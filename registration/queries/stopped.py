"""The one error of a query that runs, which crosses Spark and Flight as a marker in their texts."""

from __future__ import annotations

import json
import re

from formats.errors import Fault, Refusal

_MARK = re.compile(r'onyx-stopped(\{"code": .*?\})\.')
_LENGTH_MAX = 300


class QueryStopped(Refusal):
    """A query that ended before its last row.

    ``code``: ``cancelled``, ``failed``, ``provider-away``, ``over-limit``, ``function-failed`` or
    ``function-over-cost``.  ``provider``: URI of the cycle provider, or of the function, that it is
    about, "" for the asking process."""

    def __init__(self, code: str, reason: str, provider: str = "") -> None:
        super().__init__(Fault(code, reason[:_LENGTH_MAX], where=provider))
        self.provider = provider

    def marked(self) -> str:
        """A text in which ``stopped_in`` finds it, however a program has wrapped it."""
        said = json.dumps({"code": self.code, "reason": self.reason, "provider": self.provider})
        return f"{self}\nonyx-stopped{said}."


def stopped_in(text: str) -> QueryStopped | None:
    """The error in a text of Spark or Flight: the first one, which caused the others."""
    for found in _MARK.finditer(text):
        try:
            said = json.loads(found[1])
            return QueryStopped(said["code"], said["reason"], said["provider"])
        except (ValueError, KeyError, TypeError):
            continue
    return None
