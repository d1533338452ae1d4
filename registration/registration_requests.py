"""What sources and users may ask of the registration service: one verb, one function.

==================  ==========================================================================
``source.register``  answered when every broker knows the source and its interests are up
``profile.add``      answered when the host broker has the profile; with ``wait`` when it is live
                     on every tree
``profile.await``    answered when a change that was made at the host broker is known here too:
                     ``version`` or a later one, with what the schemas of the sources say about
                     it, or that the profile is gone (always then)
==================  ==========================================================================

What else is asked about sources is in source_requests.py, about many profiles at once in
batch_requests.py, about plans in plan_requests.py.

A request carries the client's own request id: repeated after a broken connection it finds what
the first one made, and makes nothing twice.  ``source.register`` and ``profile.add`` may have a
``key`` for the same across programs and restarts, as long as the thing is there (keys.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from overlay import answers, verbs
from overlay.access import Right
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import Request
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import Changed, RequestRefused, Verb, check_length
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.settings import ProfileSettings, settings_of
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology
from registration.batch_requests import BatchRequests
from registration.catalog import Catalog, ProfileEntry, SourceEntry
from registration.keys import Key
from registration.new_profiles import Asked, NewProfiles
from registration.placement import choose_root_broker
from registration.schema_warnings import schema_warnings, schemas_seen
from registration.shape_changes import ShapeChanges
from registration.source_requests import Settings, SourceRequests
from registration.whose import as_oneself, users_named
from yfilter.graph.graph_query import unbound_variables
from yfilter.matcher import check_profile

LIST_MAX = 10_000
LIST_TEXTS_MAX = 200  # a text may have 64 KB, a frame 16 MB


class _Waiting(NamedTuple):
    """``wait`` until a profile is live, no longer than ``until``; then it is answered as it is."""

    connection: int
    request: str
    wait: bool = False
    until: float = inf


class RegistrationRequests(Part):
    """Answers requests from the catalog, and changes it."""

    def __init__(
        self,
        context: CoreContext,
        shapes: ShapeChanges,
        catalog: Catalog,
        news: NewProfiles,
        batches: BatchRequests,
        sources: SourceRequests,
        away: Collection[str],
        draining: Collection[str],
    ) -> None:
        """``use_topology`` must be called before anything is asked; ``away``: brokers that are not
        chosen where there are others; ``draining``: brokers that are to leave."""
        self._sources = sources
        self._away, self._draining = away, draining
        self._shapes = shapes
        self._news = news
        self._batches = batches
        self._catalog = catalog
        self._server = context.server
        self._waiting: dict[str, list[_Waiting]] = {}  # by source or profile
        self._next_deadline = inf  # no later than any of them
        # profile id -> (connection, request, version; 0: until it is gone)
        self._awaiting: dict[str, list[tuple[int, str, int]]] = {}
        self.verbs = (
            Verb(verbs.SourceRegister, self._register_source, as_oneself),
            Verb(verbs.ProfileAdd, self._add_profile, users_named),
            Verb(verbs.ProfileAwait, self._await_profile, self._catalog.profiles_of),
            Verb(verbs.ProfileList, self._list_profiles, users_named),
            Verb(verbs.ProfileShow, self._show_profile, self._catalog.profiles_of),
            Verb(verbs.ProfileSet, self._set_profile, self._catalog.profiles_of),
        )

    def frames(self) -> Iterable[Taker]:
        yield takes(Request, "client", self._handle, right=Right.KNOWN)  # each verb says what

    def use_topology(self, topology: Topology) -> None:
        """Place by the network as it is now."""
        self._topology = topology
        self._trees = broadcast_trees(topology)

    def _handle(self, request: Request, arrival: Arrival) -> None:
        self._server.handle(arrival.connection, request)

    def answer_source(self, entry: SourceEntry) -> None:
        """A source is ready: tell those who wait."""
        for waiting in self._waiting.pop(entry.source, ()):
            self._server.answer(waiting.connection, waiting.request, self._sources.result(entry))

    def answer_profiles(self, entries: Sequence[ProfileEntry]) -> None:
        """Profiles are placed, changed or live: tell those whose wait is over."""
        for entry in entries:
            if entry.profile in self._awaiting:
                self._answer_awaiting(entry)
            if entry.profile in self._waiting:
                self._answer_waiting(entry)
        self._batches.changed(entries)
        self._answer_batches()

    def answer_removed(self, profiles: Sequence[str]) -> None:
        """Profiles are gone: tell who waits for that, and who waited for them to come."""
        for profile in profiles:
            for connection, request, _ in self._awaiting.pop(profile, ()):
                self._server.answer(connection, request, answers.ProfileAwaited(gone=True))
            for waiting in self._waiting.pop(profile, ()):
                removed = RequestRefused("removed", f"{profile} was removed before it was in force")
                self._server.refuse(waiting.connection, waiting.request, removed)
        self._batches.removed(set(profiles))
        self._answer_batches()

    def tick(self, now: float) -> None:
        """Time goes on: answer those who have waited long enough for a profile that is placed."""
        if now < self._next_deadline:
            return
        for profile in [p for p, some in self._waiting.items() if any(w.wait for w in some)]:
            self._answer_waiting(self._catalog.profiles[profile])
        ends = (w.until for some in self._waiting.values() for w in some if w.wait)
        self._next_deadline = min((until for until in ends if until > now), default=inf)

    def _now(self) -> float:
        return 0.0 if self.agenda is None else self.agenda.now

    def gone(self, arrival: Arrival) -> None:
        """Nobody waits on a connection that is gone."""
        connection = arrival.connection
        self._waiting = {
            key: left
            for key, waiting in self._waiting.items()
            if (left := [entry for entry in waiting if entry.connection != connection])
        }
        self._awaiting = {
            key: still
            for key, awaiting in self._awaiting.items()
            if (still := [entry for entry in awaiting if entry[0] != connection])
        }

    def report(self, said: RegistrationStatistics) -> None:
        said.requests.disk_is_short = self._server.disk.is_short

    # --- sources --------------------------------------------------------------------------

    def _register_source(
        self, connection: int, request: Request, asked: verbs.SourceRegister
    ) -> answers.SourceInfo | Changed | None:
        principal = self._server.principal(connection)
        owner = "" if principal is None else str(principal)
        content = ["name", "schema_name", "schema", "validate", "compression"]
        if "base" in request.arguments:  # so that keys of before stay as they are
            content.append("base")
        key = _key(asked.key, request, "source", owner, *content)
        entry = self._catalog.sources.get(self._find(request, key))
        is_known = entry is not None and entry.owner == owner
        is_ensured = self._sources.named_alike(asked, owner)
        if entry is None or not is_known or is_ensured is not None:
            settings = self._sources.settings(connection, request, asked)
            if settings is None:
                return None  # its schema is read, and the request handled again
            if is_ensured is not None:
                entry = is_ensured
                result = self._sources.ensure(entry, settings, connection, request)
                if not isinstance(result, answers.SourceInfo) or entry.ready:
                    return result
            else:
                if self._server.is_bounded(connection):
                    self._check_quota(owner)
                entry = self._new_source(request, asked, settings, owner)
            if key is not None:
                self._catalog.keys.put(entry.source, key)
        if entry.ready:
            return self._sources.result(entry)
        self._waiting.setdefault(entry.source, []).append(_Waiting(connection, request.request))
        return None

    def _new_source(
        self, request: Request, asked: verbs.SourceRegister, settings: Settings, owner: str
    ) -> SourceEntry:
        limit = self._topology.limits.sources_max
        if len(self._catalog.sources) >= limit:
            raise RequestRefused("too-many-sources", f"there are {limit} sources already")
        where = settings["location"], settings["rate"], settings["size"]
        root = choose_root_broker(
            *(self._topology, self._trees, *where, self._catalog.volume_by_root),
            *(self._draining, self._away),
        )
        source = self._catalog.ids.new("s")
        entry = SourceEntry(
            source=source,
            name=source if asked.name is UNSET else asked.name,
            root=root,
            request=request.request,
            owner=owner,
            **settings,
        )
        self._catalog.put_source(entry)
        self._shapes.announce_source(source)
        return entry

    def _check_quota(self, owner: str) -> None:
        limit = self._topology.limits.principal_sources_max
        if sum(entry.owner == owner for entry in self._catalog.sources.values()) >= limit:
            raise RequestRefused(
                "over-quota",
                f"{owner} has {limit} sources already, as many as one may (principal_sources_max)",
            )

    # --- profiles -------------------------------------------------------------------------

    def _add_profile(
        self, connection: int, request: Request, asked: verbs.ProfileAdd
    ) -> answers.ProfileInfo | None:
        user = verbs.user_meant(asked.user, self._server.principal(connection))
        key = _key(asked.key, request, "profile", user, "text")
        entry = self._catalog.profiles.get(self._find(request, key))
        if entry is None or entry.user != user:
            entry = self._new_profile(request, asked, user, self._server.is_bounded(connection))
            if key is not None:
                self._catalog.keys.put(entry.profile, key)
        wait = asked.wait
        if _settled(entry, wait):
            return self._added_result(entry)
        deadline = inf
        if asked.timeout is not UNSET:
            deadline = self._now() + asked.timeout
        waiting = _Waiting(connection, request.request, wait, deadline)
        self._waiting.setdefault(entry.profile, []).append(waiting)
        self._next_deadline = min(self._next_deadline, deadline)
        return None

    def _new_profile(
        self, request: Request, asked: verbs.ProfileAdd, user: str, is_bounded: bool
    ) -> ProfileEntry:
        text = asked.text
        check_length(asked.verb, text, self._topology.limits.profile_length_max)
        new = Asked(text, user, request.request, asked.policy)
        check_profile(text)
        return self._news.add([new], asked.location, asked, is_bounded)[0]

    def _answer_awaiting(self, entry: ProfileEntry) -> None:
        for connection, request, version in self._awaiting.pop(entry.profile):
            if 0 < version <= entry.version:
                self._server.answer(connection, request, self._changed_result(entry))
            else:
                waiting = self._awaiting.setdefault(entry.profile, [])
                waiting.append((connection, request, version))

    def _answer_waiting(self, entry: ProfileEntry) -> None:
        left = []
        for waiting in self._waiting.pop(entry.profile):
            if _settled(entry, waiting.wait) or (entry.placed and waiting.until <= self._now()):
                result = self._added_result(entry)
                self._server.answer(waiting.connection, waiting.request, result)
            else:
                left.append(waiting)
        if left:
            self._waiting[entry.profile] = left

    def _answer_batches(self) -> None:
        for connection, request, result in self._batches.take_settled():
            self._server.answer(connection, request, result)

    def _await_profile(
        self, connection: int, request: Request, asked: verbs.ProfileAwait
    ) -> answers.ProfileAwaited | None:
        profile = asked.profile
        version = int(asked.version)
        entry = self._catalog.profiles.get(profile)
        if entry is None:
            return answers.ProfileAwaited(gone=True)
        if 0 < version <= entry.version:
            return self._changed_result(entry)
        self._awaiting.setdefault(profile, []).append((connection, request.request, version))
        return None

    def _profile_result(self, entry: ProfileEntry, **more: Any) -> answers.ProfileInfo:
        return answers.ProfileInfo(
            id=entry.profile,
            user=entry.user,
            host=entry.host,
            address=self._topology.where(entry.host),
            version=entry.version,
            live=entry.live >= entry.version,
            policy=self._catalog.policies.of(entry.profile),
            **settings_of(entry, ProfileSettings),
            **more,
        )

    def _added_result(self, entry: ProfileEntry) -> answers.ProfileInfo:
        """Also with the warnings that the schemas of the sources give for the profile."""
        return self._profile_result(entry, warnings=tuple(self._warnings(entry)))

    def _changed_result(self, entry: ProfileEntry) -> answers.ProfileAwaited:
        return answers.ProfileAwaited(gone=False, warnings=tuple(self._warnings(entry)))

    def _warnings(self, entry: ProfileEntry) -> list[str]:
        access = self._server.access.now
        seen = schemas_seen(self._catalog, access, entry.user)
        return [*map(str, unbound_variables(entry.text)), *schema_warnings(entry.text, seen)]

    def _list_profiles(
        self, connection: int, request: Request, asked: verbs.ProfileList
    ) -> answers.Profiles:
        user = verbs.user_meant(asked.user, self._server.principal(connection))
        after, wanted = asked.after, asked.search.casefold()
        entries = [
            entry
            for entry in self._catalog.profiles.values()
            if user in ("", entry.user) and (not wanted or _has(entry, wanted))
        ]
        if asked.sort:
            entries.sort(key=attrgetter(asked.sort), reverse=asked.descending)
        elif asked.descending:
            entries.reverse()
        entries = entries[asked.skip :]
        if after:
            ids = [entry.profile for entry in entries]
            entries = entries[ids.index(after) + 1 :] if after in ids else []
        if asked.texts:
            page = entries[:LIST_TEXTS_MAX]
            found = [self._profile_result(entry, text=entry.text) for entry in page]
        else:
            page = entries[:LIST_MAX]
            found = [self._profile_result(entry) for entry in page]
        return answers.Profiles(found, more=len(entries) > len(page))

    def _show_profile(
        self, connection: int, request: Request, asked: verbs.ProfileShow
    ) -> answers.ProfileInfo:
        entry = self._named(connection, asked)
        return self._profile_result(entry, text=entry.text)

    def _set_profile(
        self, connection: int, request: Request, asked: verbs.ProfileSet
    ) -> answers.ProfileInfo:
        former = self._named(connection, asked)
        entry = replace(former, **settings_of(asked, ProfileSettings))
        if entry != former:
            self._catalog.put_profile(entry)
            self._catalog.flush()  # so that the request is seen to have changed something
        return self._profile_result(entry)

    def _named(self, connection: int, asked: verbs.ProfileNamed) -> ProfileEntry:
        asker = self._server.principal(connection)
        entry = self._catalog.profile_named(asked.profile, asker)
        if entry is None:
            raise RequestRefused("unknown-profile", f"there is no profile {asked.profile!r}")
        return entry

    def _find(self, request: Request, key: Key | None) -> str:
        """What the request, or an earlier one with its key, has made already; "" if nothing."""
        known = self._catalog.find_request(request.request)
        return known or (self._catalog.keys.find(key) if key is not None else None) or ""


def _settled(entry: ProfileEntry, wait: bool) -> bool:
    return entry.placed and (not wait or entry.live >= entry.version)


def _key(key: str, request: Request, kind: str, owner: str, *content: str) -> Key | None:
    """The key of what is asked for, if it has one; ``content``: the arguments that say what."""
    if not key:
        return None
    return Key.of(kind, owner, key, *(request.arguments.get(name) for name in content))


def _has(entry: ProfileEntry, wanted: str) -> bool:
    """Whether a profile is one to find by a text in lower case."""
    said = (entry.profile, entry.user, entry.host, entry.text)
    return any(wanted in each.casefold() for each in said)
