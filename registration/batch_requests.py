"""BatchRequests: thousands of profiles in one request.

====================  ========================================================================
``profile.add_many``   ``texts``, of ``user`` or, each, of one of ``users``; answered when the host
                       brokers have all of them, with ``wait`` when all are live.  Those that are
                       refused are told by their place; then none is added, unless
                       ``skip_refused`` is said
``profile.find_many``  where ``profiles`` are hosted, for changes, which go to the host brokers
``profile.warnings``   what the schemas of the sources say about ``profiles``, of as many of them as
                       do not take long
====================  ========================================================================

A batch is remembered by its request id, also when its profiles are long gone: repeated, after a
broken connection or by another process, it adds nothing, and is answered as it was.  Profiles of a
batch have consecutive numbers, so that a row of the store is all it takes.

Texts are checked in slices, while others are answered; then all are added in one turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from msgspec import UNSET

from formats import Schema
from formats.errors import Refusal
from overlay import answers, verbs
from overlay.access import AccessTable
from overlay.link.arrival import Arrival
from overlay.link.durable import StoredMap
from overlay.link.frame_fields import NAME_BYTES_MAX
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.principal import Principal
from overlay.link.request_server import (
    Failing,
    RequestRefused,
    Verb,
)
from overlay.link.row_log import RowLog
from overlay.link.slices import never
from overlay.link.tables import Row, Table
from overlay.settings import ProfileSettings, settings_of
from overlay.topology import Topology
from registration.catalog import Catalog, ProfileEntry
from registration.ids import number_of
from registration.new_profiles import Asked, NewProfiles
from registration.schema_warnings import schema_warnings, schemas_seen
from registration.whose import users_named
from yfilter.matcher import check_profile

BATCHES_MAX = 65_536  # that are remembered; beyond, the oldest is not
CHECKED_MAX = 64  # requests whose texts are being checked
WARNED_AT_ONCE = 100  # profiles that are held against schemas in one turn


class _Batch(Row, frozen=True):
    """Profiles of the numbers ``first`` to ``first + count - 1``; ``digest`` of what was asked."""

    first: int
    count: int
    digest: bytes


BATCHES = Table("batch", _Batch)


@dataclass(slots=True)
class _Wait:
    """A request that is answered when ``left`` is empty; ``live``: when all are live, not only
    placed."""

    connection: int
    request: str
    live: bool
    left: set[str]
    result: answers.ProfilesAdded


@dataclass(slots=True)
class _Check:
    """The texts of a request that are not checked yet, with their places; what was wrong."""

    connection: int
    request: Request
    left: Iterator[tuple[int, str]]
    refused: list[tuple[int, str, str]] = field(default_factory=list)


class BatchRequests(Part):
    """Answers these requests."""

    def __init__(
        self,
        catalog: Catalog,
        news: NewProfiles,
        rows: RowLog,
        ask_again: Callable[[int, Request], None],
        failed: Failing,
        access: AccessTable,
        principal: Callable[[int], Principal | None],
        is_bounded: Callable[[int], bool],
        is_over: Callable[[], bool] = never,
    ) -> None:
        """``use_topology`` must be called before anything is asked; ``ask_again(connection,
        request)`` when its texts are checked, ``failed`` when that went wrong;
        ``principal(connection)`` asks, and
        has quotas if it ``is_bounded``; ``is_over``: the slice of this event."""
        self._access = access
        self._principal = principal
        self._is_bounded = is_bounded
        self._catalog = catalog
        self._news = news
        self._ask_again = ask_again
        self._failed = failed
        self._is_over = is_over
        self._checks: deque[_Check] = deque()
        # Of the request that is asked again.
        self._checked: list[tuple[int, str, str]] | None = None
        # By request id, the oldest first.
        self._batches = StoredMap(rows, BATCHES, lambda batch: batch.first)
        self._waits: list[_Wait] = []
        self.verbs = (
            Verb(verbs.ProfileAddMany, self._add_many, users_named),
            Verb(verbs.ProfileFindMany, self._find_many, catalog.profiles_of),
            Verb(verbs.ProfileWarnings, self._warnings, catalog.profiles_of),
        )

    def use_topology(self, topology: Topology) -> None:
        self._topology = topology

    def changed(self, entries: Iterable[ProfileEntry]) -> None:
        """Profiles are placed or live: ``take_settled`` gives those whose wait is over."""
        if self._waits:
            entries = list(entries)
            self._strike(
                {entry.profile for entry in entries if entry.placed},
                {entry.profile for entry in entries if entry.live >= entry.version},
            )

    def removed(self, profiles: set[str]) -> None:
        """Profiles are gone: nobody waits for them to come."""
        self._strike(profiles, profiles)

    def gone(self, arrival: Arrival) -> None:
        """Nobody waits on a connection that is gone."""
        self._waits = [wait for wait in self._waits if wait.connection != arrival.connection]
        left = (check for check in self._checks if check.connection != arrival.connection)
        self._checks = deque(left)

    def work(self) -> None:
        """Check as many texts as there is time for; a request whose last it was is carried out."""
        while self._checks:
            first = self._checks[0]
            for place, text in first.left:
                try:
                    self._check_length(text)
                    check_profile(text)
                except Refusal as refusal:
                    first.refused.append((place, *refusal.said()))
                except Exception as error:  # nothing was changed
                    self._checks.popleft()
                    self._failed(first.connection, first.request, error)
                    break
                if self._is_over():
                    self.work_soon()
                    return
            else:
                self._checks.popleft()
                self._checked = first.refused
                self._ask_again(first.connection, first.request)
                self._checked = None

    def _check_length(self, text: str) -> None:
        most = self._topology.limits.profile_length_max
        if len(text) > most:
            raise RequestRefused(
                "too-long",
                f"the profile has {len(text):,} characters; this network takes {most:,} "
                "(profile_length_max)",
            )

    def take_settled(self) -> list[tuple[int, str, answers.ProfilesAdded]]:
        """Those who need not wait any more: connection, request, answer."""
        over = [wait for wait in self._waits if not wait.left]
        if over:
            self._waits = [wait for wait in self._waits if wait.left]
        return [(wait.connection, wait.request, wait.result) for wait in over]

    # --- verbs ----------------------------------------------------------------------------

    def _add_many(
        self, connection: int, request: Request, asked: verbs.ProfileAddMany
    ) -> answers.ProfilesAdded | None:
        texts, settings = asked.texts, settings_of(asked, ProfileSettings)
        users = _users(asked, self._principal(connection))
        content = [*texts, *users, *map(str, (asked.location, *settings.values()))]
        digest = sha256("\0".join(content).encode()).digest()
        batch = self._batches.get(request.request)
        if batch is not None and batch.digest != digest:
            raise RequestRefused(
                "other-content",
                f"the request {request.request!r} was made before, with other profiles",
            )
        refused = self._checked
        if refused is None and batch is not None and batch.count == len(texts):
            refused = []  # none was
        if refused is None:
            self._check(connection, request, texts)
            return None
        if batch is None:
            if refused and not asked.skip_refused:
                return answers.ProfilesAdded([], refused)
            gone = {place for place, *_ in refused}
            new = [
                Asked(text, user)
                for place, (text, user) in enumerate(zip(texts, users, strict=True))
                if place not in gone
            ]
            is_bounded = self._is_bounded(connection)
            entries = self._news.add(new, asked.location, asked, is_bounded) if new else []
            first = number_of(entries[0].profile) if entries else 0
            batch = _Batch(first, len(entries), digest)
            self._remember(request.request, batch)
        numbers = range(batch.first, batch.first + batch.count)
        profiles = [self._catalog.ids.name("p", number) for number in numbers]
        result = answers.ProfilesAdded(profiles, refused)
        wait = asked.wait
        found = map(self._catalog.profiles.get, profiles)
        left = {
            entry.profile
            for entry in found
            if entry is not None and not (entry.live >= entry.version if wait else entry.placed)
        }
        if not left:
            return result
        self._waits.append(_Wait(connection, request.request, wait, left, result))
        return None

    def _find_many(
        self, connection: int, request: Request, asked: verbs.ProfileFindMany
    ) -> answers.Hosts:
        profiles = asked.profiles
        found = map(self._catalog.profiles.get, profiles)
        hosts = ["" if entry is None else entry.host for entry in found]
        addresses = {host: str(self._topology.address(host)) for host in set(hosts) - {""}}
        return answers.Hosts(hosts, addresses)

    def _warnings(
        self, connection: int, request: Request, asked: verbs.ProfileWarnings
    ) -> answers.Warnings:
        profiles = asked.profiles
        seen: dict[str, list[Schema]] = {}  # schemas, by user
        found: list[tuple[int, list[str]]] = []
        looked = 0
        for place, profile in enumerate(profiles):
            entry = self._catalog.profiles.get(profile)
            if entry is None:
                continue
            if entry.user not in seen:
                seen[entry.user] = schemas_seen(self._catalog, self._access.now, entry.user)
            if seen[entry.user]:
                if looked == WARNED_AT_ONCE:
                    return answers.Warnings(place, found)
                looked += 1
                warnings = schema_warnings(entry.text, seen[entry.user])
                if warnings:
                    found.append((place, warnings))
        return answers.Warnings(len(profiles), found)

    # --- helpers --------------------------------------------------------------------------

    def _check(self, connection: int, request: Request, texts: list[str]) -> None:
        if len(self._checks) >= CHECKED_MAX:
            raise RequestRefused("busy", f"{CHECKED_MAX} other requests are being checked")
        self._checks.append(_Check(connection, request, enumerate(texts)))
        self.work_soon()

    def _remember(self, request: str, batch: _Batch) -> None:
        if len(self._batches) >= BATCHES_MAX:
            del self._batches[next(iter(self._batches))]
        self._batches[request] = batch

    def _strike(self, placed: set[str], live: set[str]) -> None:
        for wait in self._waits:
            wait.left -= live if wait.live else placed


def _users(asked: verbs.ProfileAddMany, asker: Principal | None) -> list[str]:
    count = len(asked.texts)
    if asked.users is UNSET:
        return [verbs.user_meant(asked.user, asker)] * count
    if any(len(user.encode()) > NAME_BYTES_MAX for user in set(asked.users)):
        raise RequestRefused(
            "too-long", f"{asked.verb}: a name in 'users' has more than {NAME_BYTES_MAX} bytes"
        )
    if len(asked.users) != count:
        raise RequestRefused(
            "bad-argument", f"{asked.verb}: {len(asked.users)} 'users' for {count} 'texts'"
        )
    return asked.users
