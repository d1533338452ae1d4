"""What an operator is shown of connections and journals."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Any, TypeAlias

from overlay.link.journal import Journal
from overlay.link.session import Session

Kept: TypeAlias = dict[str, Mapping[Any, Session | Journal]]
"""All that the statistics show the first of."""

SHOWN_MAX = 100  # connections, and peers with journals


def shown(sessions: Mapping[int, Session], journals: Mapping[str, Journal]) -> dict[str, object]:
    """``connections`` and ``journals`` of SHOWN_MAX each, ``backlog_bytes`` of all."""
    others = (peer for peer in journals if not peer.startswith("source/"))
    sources = (peer for peer in journals if peer.startswith("source/"))
    return {
        "open": len(sessions),
        "connections": {
            str(number): session.statistics()
            for number, session in islice(sessions.items(), SHOWN_MAX)
        },
        "peers": len(journals),
        "journals": {
            peer: journals[peer].statistics() for peer in islice(chain(others, sources), SHOWN_MAX)
        },
        "backlog_bytes": sum(
            channel.backlog_bytes
            for journal in journals.values()
            for channel in journal.sending.values()
        ),
    }
