"""SourceChanges: sources that are updated or removed, from the catalog to every broker.

The catalog has at once what a source is to be; its root broker is told when nothing else happens to
it, one thing after the other::

    client          registration                 root                       tree
      │─ update ────────>│  version 2              │                          │
      │                  │── SourceAnnounced(2) ──>│── SourceChanged(2) ──> ... behind its messages
      │                  │<──── SourceReady(2) ────│<─────── TreeReady ── ... │
      │<─ in force ──────│                         │                          │
      │─ remove ────────>│                         │                          │
      │                  │───── SourceRemoved ────>│──── SourceGone ────> ... behind its messages
      │<─ gone ──────────│<──── SourceReleased ────│                          │

So what a source has published before is delivered as ever.  While the shape of the network changes,
or the source gets another root broker, it waits: nobody is told twice, and nobody in between.  A
broker that joins is not told of a source that is removed.  Durable are the entry (``version``,
``told``, ``in_force``, ``is_removed``) and which requests have removed a source.

Profiles and their needs are held against another schema while others are answered.  Whoever has
changed it is told of the profiles that can match no message of any source any more, and of those
whose results need what no message has any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from formats import Schema
from overlay import verbs
from overlay.answers import SourceGone, SourceInfo
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frame import SOURCE_CHANGES
from overlay.link.frames import SourceRemoved
from overlay.link.part import Part
from overlay.link.request_server import Changed, RequestRefused
from overlay.link.tables import Row, Table
from overlay.settings import SourceSettings, settings_of
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, Catalog, SourceEntry, announcement
from registration.schema_warnings import lost_paths, schema_warnings, schemas_of
from registration.shape_changes import ShapeChanges
from registration.source_roots import RootState, SourceRoots

PROFILES_MAX = 10_000  # that are held against another schema
WARNED_MAX = 100  # of which the first so many are named
REMEMBERED_MAX = 256  # removals by their requests, and updates


class _RemovalRow(Row, frozen=True):
    """Under the request that has asked; ``order`` grows."""

    order: int
    source: str


REMOVALS = Table("source-removal", _RemovalRow)


@dataclass(slots=True)
class _Census:
    """Profiles are held against the schemas of ``before`` and ``now``, as each user sees them."""

    left: Iterator[str]
    before: list[SourceEntry]
    now: list[SourceEntry]
    looked_at: int = 0
    is_over: bool = False
    warned: int = 0
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of the first
    schemas: dict[str, tuple[list[Schema], list[Schema]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Update:
    """``waits``: (connection, request) each, to be answered when ``version`` is in force and the
    census is over."""

    source: str
    version: int
    changed: list[str]
    census: _Census | None
    waits: list[tuple[int, str]]


class SourceChanges(Part):
    """Tells root brokers, and answers who waits."""

    def __init__(
        self,
        context: CoreContext,
        shapes: ShapeChanges,
        catalog: Catalog,
        roots: SourceRoots,
    ) -> None:
        self._shapes = shapes
        self._catalog = catalog
        self._roots = roots
        self._links = context.links
        self._access = context.access
        self._server = context.server
        self._is_over = context.slice.is_over
        self._updates: dict[str, _Update] = {}  # by request, the oldest first
        # By request, the oldest first.
        self._removals = StoredMap(context.rows, REMOVALS, lambda row: row.order)
        self._waiting: dict[str, list[tuple[int, str]]] = {}  # until a source is gone
        self._counting: deque[_Update] = deque()

    def use_topology(self, topology: Topology) -> None:
        """At a start, and when the shape of the network may be settled."""
        self.flush_soon()

    def result(self, entry: SourceEntry, **of_update: Any) -> SourceInfo:
        """``of_update``: the fields about an update."""
        shown = {
            **settings_of(entry, SourceInfo),
            "id": entry.source,
            "address": self._shapes.address(entry.root),
            "compression": [*entry.compression],
            "ready": entry.ready and not entry.is_removed,
            "removed": entry.is_removed,
        }
        return SourceInfo(**shown, **of_update)

    # --- what is asked for ----------------------------------------------------------------

    def update(
        self, entry: SourceEntry, wanted: SourceEntry, connection: int, request: str
    ) -> SourceInfo | Changed | None:
        """``wanted``: the entry as it is to be.  Answered when it is in force, if it is not."""
        line = ""
        known = self._updates.get(request)
        if known is None:
            changed = [name for name in CHANGEABLE if _differs(entry, wanted, name)]
            if not changed:
                return self.result(entry)
            self._check_brokers()
            wanted = replace(wanted, version=entry.version + 1)
            census = self._census(entry, wanted) if "schema" in changed else None
            self._catalog.put_source(wanted)
            line = f"{entry.source}: {', '.join(changed)}: version {wanted.version}"
            known = _Update(entry.source, wanted.version, changed, census, [])
            self._remember(request, known)
            if census is not None:
                self._counting.append(known)
                self.work_soon()
        elif self._is_done(known):
            return self._updated(known)
        known.waits.append((connection, request))
        self.flush_soon()
        return Changed(line, verb=verbs.SourceUpdate) if line else None

    def remove(self, entry: SourceEntry, connection: int, request: str) -> Changed | None:
        """Answered when it is gone."""
        self._check_brokers()
        if not entry.is_removed:
            self._catalog.put_source(replace(entry, is_removed=True))
        order = 1 + max((row.order for row in self._removals.values()), default=0)
        if request not in self._removals:
            self._removals[request] = _RemovalRow(order, entry.source)
            if len(self._removals) > REMEMBERED_MAX:
                del self._removals[next(iter(self._removals))]
        self._waiting.setdefault(entry.source, []).append((connection, request))
        self.flush_soon()
        if entry.is_removed:
            return None
        return Changed(f"{entry.source} ({entry.name})" if entry.name else entry.source)

    def removed_by(self, request: str) -> str | None:
        """The source that an earlier request with the same id has removed."""
        row = self._removals.get(request)
        return None if row is None else row.source

    # --- what happens ---------------------------------------------------------------------

    def flush(self) -> None:
        """Tell root brokers what is to be told now, and answer."""
        for entry in list(self._catalog.sources.values()):
            if entry.is_removed or entry.version != entry.told:
                self._tell(entry)
        for source in [each for each in self._waiting if each not in self._catalog.sources]:
            for connection, request in self._waiting.pop(source):
                self._server.answer(connection, request, SourceGone(source))
        for update in list(self._updates.values()):
            if update.waits and self._is_done(update):
                self._answer_update(update)

    def ready(self, entry: SourceEntry) -> None:
        """A root broker has said which version is in force."""
        if self._updates or entry.is_removed or entry.version != entry.told:
            self.flush_soon()

    def work(self) -> None:
        """Hold some profiles against another schema."""
        while self._counting:
            update = self._counting[0]
            assert update.census is not None
            if not self._count_next(update.census):
                self._counting.popleft()
                self.flush_soon()
            if self._is_over():
                break
        if self._counting:
            self.work_soon()

    def gone(self, arrival: Arrival) -> None:
        """Nobody waits on a connection that is gone."""
        connection = arrival.connection
        for update in self._updates.values():
            update.waits = [each for each in update.waits if each[0] != connection]
        for source, waiting in self._waiting.items():
            self._waiting[source] = [each for each in waiting if each[0] != connection]

    # --- helpers --------------------------------------------------------------------------

    def _tell(self, entry: SourceEntry) -> None:
        """At once only when nothing is under way."""
        is_quiet = (
            self._shapes.is_settled
            and entry.ready
            and entry.in_force >= entry.told
            and self._roots.state(entry.source) is RootState.ROOTED
        )
        if not is_quiet or entry.source in self._roots.told:
            return
        root = f"broker/{entry.root}"
        if entry.is_removed:
            self._roots.told.add(entry.source)
            self._links.send(root, REGISTRATION_KEY, SourceRemoved(entry.source))
            return
        entry = replace(entry, told=entry.version)
        self._catalog.put_source(entry)
        self._links.send(root, REGISTRATION_KEY, announcement(entry))

    def _check_brokers(self) -> None:
        """RequestRefused where a broker would not know what to do."""
        for broker in self._shapes.newest.declared.broker_ids:
            peer = f"broker/{broker}"
            if self._links.connected(peer) and SOURCE_CHANGES not in self._links.features(peer):
                raise RequestRefused(
                    "not-supported",
                    f"broker {broker} is of an older release, which can neither change nor remove "
                    "a source; upgrade it first",
                )

    def _is_done(self, update: _Update) -> bool:
        entry = self._catalog.sources.get(update.source)
        is_counted = update.census is None or update.census.is_over
        return entry is None or (entry.in_force >= update.version and is_counted)

    def _answer_update(self, update: _Update) -> None:
        waits, update.waits = update.waits, []
        for connection, request in waits:
            try:
                self._server.answer(connection, request, self._updated(update))
            except RequestRefused as refusal:
                self._server.refuse(connection, request, refusal)

    def _updated(self, update: _Update) -> SourceInfo:
        """RequestRefused "removed" where the source is gone."""
        entry = self._catalog.sources.get(update.source)
        if entry is None:
            raise RequestRefused("removed", f"{update.source} was removed meanwhile")
        said: dict[str, Any] = {"changed": tuple(update.changed)}
        if (census := update.census) is not None:
            said |= {"looked_at": census.looked_at, "warned": census.warned}
            said["warnings"] = census.warnings
        return self.result(entry, **said)

    def _remember(self, request: str, update: _Update) -> None:
        self._updates[request] = update
        over = [name for name, each in self._updates.items() if not each.waits]
        for name in over[: max(0, len(self._updates) - REMEMBERED_MAX)]:
            if name != request:
                del self._updates[name]

    # --- profiles against another schema --------------------------------------------------

    def _census(self, entry: SourceEntry, wanted: SourceEntry) -> _Census:
        others = [e for e in self._catalog.sources.values() if e.source != entry.source]
        left = iter(list(self._catalog.profiles)[-PROFILES_MAX:])
        return _Census(left, [*others, entry], [*others, wanted])

    def _count_next(self, census: _Census) -> bool:
        """The next profile; False: there is none."""
        profile = next(census.left, None)
        if profile is None:
            census.is_over = True
            return False
        census.looked_at += 1
        entry = self._catalog.profiles.get(profile)
        if entry is None:
            return True
        if entry.user not in census.schemas:
            before, now = census.before, census.now
            census.schemas[entry.user] = self._seen(before, entry.user), self._seen(now, entry.user)
        before_, now_ = census.schemas[entry.user]
        warnings = schema_warnings(entry.text, now_)
        if warnings and schema_warnings(entry.text, before_):
            return True
        warnings = warnings or lost_paths(entry.text, before_, now_)
        if warnings:
            census.warned += 1
            if len(census.warnings) < WARNED_MAX:
                census.warnings[profile] = tuple(warnings)
        return True

    def _seen(self, sources: list[SourceEntry], user: str) -> list[Schema]:
        access = self._access.now
        return schemas_of([e for e in sources if access.sees(user, e.source)])


CHANGEABLE = (*SourceSettings.__struct_fields__, "schema", "validation")


def _differs(entry: SourceEntry, wanted: SourceEntry, name: str) -> bool:
    names = ("schema", "schema_name", "schema_kind") if name == "schema" else (name,)
    return any(getattr(entry, each) != getattr(wanted, each) for each in names)
