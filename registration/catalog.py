"""The catalog: which data sources and profiles there are (section 3.1 of the paper).

Source entries are disseminated to every broker; profile entries stay with the registration
service and, in full, with their host brokers.  Entries are plain values; what makes them durable
is the record form, one row each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec.structs import asdict, astuple, replace

from overlay import verbs
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.durable import StoredMap
from overlay.link.frames import DeliveryPolicies, SourceAnnounced
from overlay.link.part import Part
from overlay.link.principal import Principal
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.settings import USUAL_SOURCE, ProfileSettings, SourceSettings, settings_of
from overlay.statistics import RegistrationStatistics
from registration.ids import Ids, number_of
from registration.keys import Keys

# -------------------------------------------------------------------------------------------------
# ProfilePolicies: how profiles are kept that are kept otherwise than usual, beside their entries.
#
# Whoever hosts such a profile next is told ahead of it.


POLICIES = Table("profile-policy", DeliveryPolicy)


class ProfilePolicies:
    """Most profiles have none, and no row."""

    def __init__(self, rows: RowLog) -> None:
        self._of = StoredMap(rows, POLICIES)

    def of(self, profile: str) -> DeliveryPolicy:
        return self._of.get(profile, USUAL)

    def put(self, profile: str, policy: DeliveryPolicy) -> None:
        if policy == USUAL:
            self.forget(profile)
        else:
            self._of[profile] = policy

    def forget(self, profile: str) -> None:
        self._of.pop(profile, None)

    def keep(self, there: Collection[str]) -> None:
        """Forget those of profiles that there are not."""
        for profile in [profile for profile in self._of if profile not in there]:
            self.forget(profile)

    def told(self, *profiles: str) -> list[DeliveryPolicies]:
        """What whoever hosts some profiles is told ahead of them: one frame, or none."""
        if not self._of:
            return []
        there = [
            (profile, *astuple(self._of[profile])) for profile in profiles if profile in self._of
        ]
        return [DeliveryPolicies(there)] if there else []


# -------------------------------------------------------------------------------------------------


REGISTRATION_KEY = "registration"  # the channel key between a broker and the registration service


class FormerSchema(NamedTuple):
    """The last record of the broker's delivery log that may be in its words is ``position``."""

    kind: str
    schema: bytes
    position: int


class SourceEntry(SourceSettings, Row, frozen=True):
    """A data source.

    ``schema`` the bytes of its DTD, XSD or RELAX NG, a bundle where it has several documents
    (empty: none), ``schema_unread`` what those refer to and have not, which brokers are not told,
    ``validation`` what its root broker does about messages that are not valid ("off", "report" or
    "reject"); ``compression`` the compression dictionaries
    that it came with, by form.  ``request`` is the client's own id of the
    registration, so that a repeated request finds the entry instead of making another.  ``ready``
    says that every broker knows the source and has sent its interests up the tree: from then on
    messages are accepted.  ``owner``: the principal that registered it, "" without TLS.  ``base``:
    the IRI that relative ones in its graphs are relative to, "" for none.

    ``version`` counts its updates from 1.  At the registration service, ``told`` is the one that
    its root broker was told last, ``in_force`` the one that every broker is known to have, and
    ``is_removed`` says that it is on its way out (source_changes.py).  At a broker, ``former`` are
    the schemas that it had before, in whose words there may still be messages.
    """

    source: str
    name: str
    root: str
    HERE: ClassVar[None]
    schema_name: str = ""
    schema_kind: str = ""
    schema: bytes = b""
    validation: str = "off"
    compression: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    request: str = ""
    ready: bool = False
    owner: str = ""
    base: str = ""
    schema_unread: tuple[str, ...] = ()
    version: int = 1
    told: int = 1
    in_force: int = 1
    is_removed: bool = False
    former: tuple[FormerSchema, ...] = ()
    USUAL: ClassVar = asdict(USUAL_SOURCE)

    @property
    def volume(self) -> float:
        """Expected bytes a second."""
        return self.rate * self.size


SOURCES = Table("source", SourceEntry, is_keyed=True)
"""As well at every broker."""


def announcement(entry: SourceEntry) -> SourceAnnounced:
    """What a broker is told of a source."""
    values = settings_of(entry, SourceAnnounced)
    values.update(compression=list(entry.compression.items()), payload=entry.schema)
    return SourceAnnounced(**values)


def entry_of(frame: SourceAnnounced) -> SourceEntry:
    """The source that was announced."""
    values = settings_of(frame, SourceEntry)
    values.update(compression=dict(frame.compression), schema=frame.payload, told=frame.version)
    return SourceEntry(**values)


class ProfileEntry(ProfileSettings, Row, frozen=True):
    """A user's profile; ``version`` counts its updates from 1, ``placed`` says that the host
    broker has it, ``live`` that every broker on the way from every root broker knew version
    ``live`` of it (0: none yet).  ``is_granted``: no quota counts it, as an operator has added it
    (without TLS, anybody)."""

    profile: str
    user: str
    host: str
    text: str
    version: int = 1
    request: str = ""
    placed: bool = False
    live: int = 0
    is_granted: bool = False


PROFILES = Table("profile", ProfileEntry, is_keyed=True)


class Catalog(Part):
    """All entries of the registration service, in memory and as rows.

    Memory: an entry and its text, about 0.5 KB a profile.
    """

    def __init__(self, rows: RowLog, new_secret: Callable[[], bytes] = bytes) -> None:
        """``new_secret``: see Ids."""
        self._rows = rows
        self.ids = Ids(rows, new_secret)
        self.sources: dict[str, SourceEntry] = {}
        self.profiles: dict[str, ProfileEntry] = {}
        self.keys = Keys(rows)
        self.policies = ProfilePolicies(rows)
        self._by_request: dict[str, str] = {}  # request id -> source or profile id
        self.profiles_by_broker: Counter[str] = Counter()
        self.quota_used: Counter[str] = Counter()  # profiles that count, by user
        self.volume_by_root: Counter[str] = Counter()  # expected bytes/s, rounded
        self._changed: dict[str, ProfileEntry] = {}  # since the last flush
        self.texts_changed = 0  # profiles that were added, removed or got another text
        self.sources_changed = 0  # likewise, for whatever reason

    def restore(self, rows: StoredRows) -> None:
        for _, source in rows.take(SOURCES):
            self._index_source(source)
        for _, profile in rows.take(PROFILES):
            self._index_profile(profile)
        self.keys.restore()
        self._sort()

    def reinstate(self, highest: int) -> None:
        """All that there is was put, after the store was lost; ``highest``: number of a profile
        that was ever given out."""
        sources = max(map(number_of, self.sources), default=0)
        profiles = max(map(number_of, self.profiles), default=0)
        self.ids.go_on_behind({"s": sources, "p": max(highest, profiles)})
        self.sources = dict(sorted(self.sources.items(), key=lambda each: number_of(each[0])))
        self._sort()
        self.keys.keep({*self.sources, *self.profiles})
        self.policies.keep(self.profiles)

    def _sort(self) -> None:
        self.profiles = dict(sorted(self.profiles.items(), key=lambda each: number_of(each[0])))

    def find_request(self, request: str) -> str | None:
        """The id that an earlier request with the same request id was given."""
        return self._by_request.get(request) if request else None

    def profiles_of(self, asked: verbs.Asked, asker: Principal) -> Iterator[tuple[str, str]]:
        """Those that a request names and that there are, with their owners."""
        for named in verbs.profiles_named(asked):
            entry = self.profile_named(named, asker)
            if entry is not None:
                yield entry.profile, f"user/{entry.user}"

    def profile_named(self, named: str, asker: Principal | None) -> ProfileEntry | None:
        """By its id; by its key, where that is the asker's; or by USER/KEY, where the asker is that
        user or an operator: keys can be guessed."""
        if named in self.profiles:
            return self.profiles[named]
        user, _, key = named.partition("/")
        own = "" if asker is None else asker.name
        found = self.keys.named("profile", own, named)
        if not found and (asker is None or asker.role == "operator" or user == own):
            found = self.keys.named("profile", user, key)
        return self.profiles.get(found)

    def hosted_by(self, broker: str) -> list[ProfileEntry]:
        """The profiles whose host a broker is; looks at all."""
        return [entry for entry in self.profiles.values() if entry.host == broker]

    def rooted_at(self, broker: str) -> list[SourceEntry]:
        """The sources whose root broker it is."""
        return [entry for entry in self.sources.values() if entry.root == broker]

    def put_source(self, entry: SourceEntry) -> None:
        self._index_source(entry)
        SOURCES.put(self._rows, entry.source, entry)

    def put_profile(self, entry: ProfileEntry) -> None:
        self._index_profile(entry)
        self._changed[entry.profile] = entry
        self.flush_soon()

    def flush(self) -> None:
        """Store the profiles that have changed, each as it is now."""
        for entry in self._changed.values():
            PROFILES.put(self._rows, entry.profile, entry)
        self._changed.clear()

    def remove_profile(self, profile: str) -> None:
        entry = self.profiles.pop(profile, None)
        if entry is None:
            return
        self.texts_changed += 1
        self._by_request.pop(entry.request, None)
        if not entry.is_granted:
            self.quota_used[entry.user] -= 1
            if not self.quota_used[entry.user]:
                del self.quota_used[entry.user]
        self.keys.forget(profile)
        self.policies.forget(profile)
        self.profiles_by_broker[entry.host] -= 1
        self._changed.pop(profile, None)
        PROFILES.delete(self._rows, profile)

    def remove_source(self, source: str) -> None:
        entry = self.sources.pop(source)
        self.sources_changed += 1
        self._by_request.pop(entry.request, None)
        self.keys.forget(source)
        self.volume_by_root[entry.root] -= round(entry.volume)
        SOURCES.delete(self._rows, source)

    def change_profile(self, profile: str, **changes: Any) -> ProfileEntry | None:
        """The entry with some fields replaced; None if there is no such profile."""
        entry = self.profiles.get(profile)
        if entry is None:
            return None
        entry = replace(entry, **changes)
        self.put_profile(entry)
        return entry

    def report(self, said: RegistrationStatistics) -> None:
        said.catalog.sources, said.catalog.profiles = len(self.sources), len(self.profiles)

    def _index_source(self, entry: SourceEntry) -> None:
        self.sources_changed += 1
        known = self.sources.get(entry.source)
        if known is not None:
            self.volume_by_root[known.root] -= round(known.volume)
        self.volume_by_root[entry.root] += round(entry.volume)
        self.sources[entry.source] = entry
        if entry.request:
            self._by_request[entry.request] = entry.source

    def _index_profile(self, entry: ProfileEntry) -> None:
        known = self.profiles.get(entry.profile)
        self.profiles[entry.profile] = entry
        if known is None or known.text is not entry.text:
            self.texts_changed += 1
        if known is not None and known.host == entry.host:
            return
        if known is None:
            self.quota_used[entry.user] += not entry.is_granted
        else:
            self.profiles_by_broker[known.host] -= 1
        self.profiles_by_broker[entry.host] += 1
        if entry.request:
            self._by_request[entry.request] = entry.profile
