"""LostCatalog: a registration service that knows less than its brokers does not begin anew.

Each broker says in its hello how much it has of what this service has told it.  If that is more
than this service has ever said, its store was emptied or is an older copy: the profiles and
sources that it has forgotten are there, and the ids that it would give out have been given out.
So the process ends, before anything is told to anybody: who adds a profile is answered by its host
broker.
"""

from __future__ import annotations

from dataclasses import dataclass

from overlay.link.core_context import CoreContext
from overlay.link.errors import StoreLost
from overlay.link.events import Flow
from overlay.link.frames import Hello
from overlay.link.lost_stores import STORE_LOST, lost_detail
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table


@dataclass(frozen=True, slots=True)
class _MetRow:
    """There is one as soon as a broker was met."""


MET = Table("broker-met", _MetRow)


class LostCatalog(Part):
    """Looks at the hellos of brokers; durable is only that one was met."""

    def __init__(self, context: CoreContext) -> None:
        self._data = context.topology.data_directory
        self._links = context.links
        self._rows = context.rows
        self._has_met = False

    def restore(self, rows: StoredRows) -> None:
        # A store of an earlier release has channels only.
        brokers = self._links.peers("broker")
        self._has_met = bool(list(rows.take(MET))) or any(map(self._has_heard, brokers))

    def admits(self, broker: str, hello: Hello, connection: int) -> bool:
        """Whether a broker may be met: not with the store of before it left.  StoreLost when a
        broker of this network knows more than this service."""
        is_known = self._has_heard(broker)
        sending = self._links.journal(f"broker/{broker}").sending
        for flow, key, number in hello.received:
            channel = sending.get((Flow(flow), key))
            last = 0 if channel is None else channel.last
            if number <= last:
                continue
            if is_known or not self._has_met:
                raise StoreLost(
                    "the store of the registration service was emptied, or is an older copy: "
                    f"broker {broker} has {number} frames from it, and it knows of {last}. "
                    "Put back the store that it had, or have the catalog rebuilt from the brokers: "
                    f"onyx store rebuild {self._data}"
                )
            sign = f"{broker} has joined anew, and has {number} frames of before"
            detail = lost_detail(f"broker/{broker}", sign)
            self._links.refuse(connection, STORE_LOST, detail)
            return False
        if not self._has_met:
            self._has_met = True
            MET.put(self._rows, "any", _MetRow())
        return True

    def _has_heard(self, broker: str) -> bool:
        """Whether a broker has said anything since it joined."""
        journal = self._links.journal(f"broker/{broker}")
        return bool(journal.receiving) or any(c.floor for c in journal.sending.values())
