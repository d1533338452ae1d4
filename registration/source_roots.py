"""SourceRoots: sources that get another root broker, as theirs leaves the network or is lost.

A source's messages must stay in order, so the new root broker may not begin before everything that
went down the old one's tree has arrived.  That is so when the shape without the old one is settled
(registration/shape_changes.py), so nothing else has to be waited for::

    source     old root                registration                new root
      │  ✗ moved ──│  shape agreed          │                          │
      │            │── KeysReleased ───────>│                          │
      │            │── SourceReleased(41) ─>│                          │
      │            │── TreeEnded ─> ...     │  shape settled           │
      │                                     │── KeysReleased ─────────>│
      │                                     │── SourceAnnounced(41) ──>│── ... every broker
      │                                     │<──────── SourceReady ────│
      │── Publish 42 ─────────────────────────────────────────────────>│

Numbers go on: the new root broker begins behind what the old one has taken, and what the source
has not heard of it publishes again.  A lost broker says nothing; then the source's own journal
begins behind what it has been told.  ``SourceRoots.steps`` is the protocol.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

from overlay.link.durable import StoredMap
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.tables import Row, Table
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.state_table import StateMachine, StateTable
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog, SourceEntry, announcement
from registration.placement import choose_root_broker
from registration.released_keys import ReleasedKeys


class RootState(StrEnum):
    ROOTED = "rooted"
    LEAVING = "its root leaves"
    ANNOUNCED = "announced anew"


class RootEvent(StrEnum):
    LEAVES = "its root leaves or is lost"
    RELEASED = "SourceReleased"
    SETTLED = "the shape is settled"
    READY = "SourceReady"


class _RootRow(Row, frozen=True):
    """Under the source; ``taken``: as the last root broker of it has said."""

    state: RootState
    taken: int


ROOTS = Table("source-root", _RootRow)


class SourceRoots(StateMachine[str, RootState, RootEvent], Part):
    """The sources that are on their way to another root broker; durable."""

    def __init__(
        self,
        catalog: Catalog,
        links: LinkLayer,
        rows: RowLog,
        away: Collection[str],
        keys: ReleasedKeys,
    ) -> None:
        """``away``: brokers that are not there; ``use_topology`` must be called before anything
        happens."""
        self._keys = keys
        self._away = away
        self._catalog = catalog
        self._links = links
        self._under_way = StoredMap(rows, ROOTS)
        self.draining: set[str] = set()
        """Brokers that are to leave, at which nothing is placed any more."""
        self.told: set[str] = set()
        """Sources; their root brokers know that they are removed (source_changes.py)."""

    def use_topology(self, topology: Topology) -> None:
        """Where sources may publish."""
        self._topology = topology

    def leave(self, broker: str) -> None:
        """A broker leaves with the shape to come, or is lost."""
        for entry in self._catalog.rooted_at(broker):
            if not (entry.is_removed and entry.source in self.told):
                self.happen(entry.source, RootEvent.LEAVES)

    def lose(self, broker: str) -> None:
        """A broker is lost for good, and with it the sources that it was to let go of."""
        for entry in self._catalog.rooted_at(broker):
            if entry.is_removed and entry.source in self.told:
                self._remove(entry.source)

    def leave_one(self, source: str) -> None:
        """Its root broker is none any more."""
        self.happen(source, RootEvent.LEAVES)

    def settle(self) -> None:
        """Nothing is left of the shape before."""
        for source in list(self._under_way):
            self.happen(source, RootEvent.SETTLED)

    def ready(self, source: str) -> None:
        self.happen(source, RootEvent.READY)

    def released(self, entry: SourceEntry, taken: int) -> None:
        """Its root broker has let go of it."""
        if entry.is_removed and self.state(entry.source) is RootState.ROOTED:
            self._remove(entry.source)
        else:
            self.happen(entry.source, RootEvent.RELEASED, taken)

    def _remove(self, source: str) -> None:
        self.told.discard(source)
        self._catalog.remove_source(source)

    # --- the protocol ---------------------------------------------------------------------

    def state(self, source: str) -> RootState:
        row = self._under_way.get(source)
        return RootState.ROOTED if row is None else row.state

    def enter(self, source: str, state: RootState) -> None:
        if state is RootState.ROOTED:
            del self._under_way[source]
        else:
            taken = self._under_way[source].taken if source in self._under_way else 0
            self._under_way[source] = _RootRow(state, taken)

    def _close(self, source: str) -> None:
        """Nobody may publish as it."""
        entry = self._catalog.sources[source]
        self._catalog.put_source(msgspec.structs.replace(entry, ready=False))

    def _note_taken(self, source: str, taken: int) -> None:
        self._under_way[source] = _RootRow(RootState.LEAVING, taken)

    def _announce(self, source: str) -> None:
        entry = self._catalog.sources[source]
        topology = self._topology
        root = choose_root_broker(
            *(topology, broadcast_trees(topology), entry.location, entry.rate, entry.size),
            *(self._catalog.volume_by_root, self.draining, self._away),
        )
        entry = msgspec.structs.replace(entry, root=root, told=entry.version)
        self._catalog.put_source(entry)
        self._keys.pass_on(source, root)
        announced = msgspec.structs.replace(
            announcement(entry), taken=self._under_way[source].taken
        )
        self._links.send(f"broker/{root}", REGISTRATION_KEY, announced)

    def _be_rooted(self, source: str) -> None:
        """It publishes there."""

    steps = StateTable(
        RootState.ROOTED,
        {
            (RootState.ROOTED, RootEvent.LEAVES): (_close, RootState.LEAVING),
            (RootState.LEAVING, RootEvent.RELEASED): (_note_taken, RootState.LEAVING),
            (RootState.LEAVING, RootEvent.SETTLED): (_announce, RootState.ANNOUNCED),
            (RootState.ANNOUNCED, RootEvent.LEAVES): (_close, RootState.LEAVING),
            (RootState.ANNOUNCED, RootEvent.READY): (_be_rooted, RootState.ROOTED),
        },
    )
