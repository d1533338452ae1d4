"""RegistrationCore: the registration service without I/O (section 3.1 of the paper).

Sources and users come here once; after that a source talks to its root broker and a user to his
host broker.  Ids, placement and the catalog are decided here; a request is answered when its
effect has arrived where it counts:

==================  ==========================================================================
``source.register``  when every broker knows the source and its interests are up (SourceReady)
``profile.add``      when the host broker has the profile (ProfileChanged); with ``wait`` when it
                     is live on every tree (ProfileLive)
==================  ==========================================================================

A request carries the client's own request id: repeated after a broken connection it finds what
the first one made, and makes nothing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from formats import FormatError
from formats.schema import read_schema
from overlay.link.events import Action, Event
from overlay.link.frames import (
    Frame,
    Hello,
    PlaceProfile,
    ProfileChanged,
    ProfileLive,
    Request,
    SourceAnnounced,
    SourceReady,
)
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.request_server import (
    RequestRefused,
    RequestServer,
    Result,
    number_argument,
    text_argument,
)
from overlay.link.row_log import RowLog
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import Topology
from registration.catalog import Catalog, ProfileEntry, SourceEntry
from registration.placement import PlacementError, choose_host_broker, choose_root_broker
from yfilter.errors import ProfileRefused
from yfilter.matcher import Matcher

CHANNEL_KEY = "registration"
SCHEMA_BYTES_MAX = 4 * 1024 * 1024
LIST_MAX = 10_000


class RegistrationCore:
    """The registration service of a topology."""

    def __init__(
        self,
        topology: Topology,
        identity: str,
        instance: str,
        rows: Iterable[tuple[str, str, bytes]] = (),
    ) -> None:
        """``instance`` is new for every start; ``rows`` is what the store held."""
        self.identity = identity
        self._topology = topology
        self._trees = broadcast_trees(topology)
        self._rows = RowLog()
        self.catalog = Catalog(self._rows)
        self._links = LinkLayer(
            role="registration",
            identity=identity,
            instance=instance,
            formats=[],
            limits=topology.limits.link,
        )
        self._server = RequestServer(
            self._links,
            "the registration service",
            {
                "network": self._network,
                "statistics": lambda connection, request: self.statistics(),
                "source.register": self._register_source,
                "source.list": self._list_sources,
                "source.show": self._show_source,
                "profile.add": self._add_profile,
                "profile.list": self._list_profiles,
                "profile.show": self._show_profile,
            },
        )
        self._handlers: Mapping[type[Frame], Callable[[Arrival], None]] = {
            SourceReady: self._handle_source_ready,
            ProfileChanged: self._handle_profile_changed,
            ProfileLive: self._handle_profile_live,
        }
        # source or profile id -> (connection, request, wait until live)
        self._waiting: dict[str, list[tuple[int, str, bool]]] = {}
        self._counters: Counter[str] = Counter()
        stored = list(rows)
        self._links.restore(stored)
        self.catalog.restore(stored)

    def handle(self, event: Event, now: float) -> list[Action]:
        for arrival in self._links.handle(event, now):
            self._handle_arrival(arrival)
        return [*self._rows.drain(), *self._links.drain()]

    def statistics(self) -> Result:
        return {
            "registration": self.identity,
            "catalog": self.catalog.statistics(),
            "profiles_by_broker": dict(self.catalog.profiles_by_broker),
            "waiting": sum(len(waiting) for waiting in self._waiting.values()),
            "links": self._links.statistics(),
            "unexpected": dict(self._counters),
        }

    # --- arrivals -------------------------------------------------------------------------

    def _handle_arrival(self, arrival: Arrival) -> None:
        role, _, name = arrival.peer.partition("/")
        frame = arrival.frame
        if frame is None:
            self._forget_waiting(arrival.connection)
        elif isinstance(frame, Hello):
            if role == "broker" and name not in self._topology.broker_ids:
                detail = f"{name!r} is no broker of {self._topology.name}"
                self._links.refuse(arrival.connection, "unknown-broker", detail)
            elif role not in ("broker", "client"):
                detail = f"a {role} connects to its broker, not to the registration service"
                self._links.refuse(arrival.connection, "not-expected", detail)
        elif isinstance(frame, Request):
            self._server.handle(arrival.connection, frame)
        elif role == "broker" and type(frame) in self._handlers:
            self._handlers[type(frame)](arrival)
        else:
            self._counters["not-expected"] += 1
            detail = f"{type(frame).__name__} from {arrival.peer} is not expected here"
            self._links.refuse(arrival.connection, "not-expected", detail)

    def _handle_source_ready(self, arrival: Arrival) -> None:
        assert isinstance(arrival.frame, SourceReady)
        entry = self.catalog.sources.get(arrival.frame.source)
        if entry is None:
            return
        entry = replace(entry, ready=True)
        self.catalog.put_source(entry)
        for connection, request, _ in self._waiting.pop(entry.source, ()):
            self._server.answer(connection, request, self._source_result(entry))

    def _handle_profile_changed(self, arrival: Arrival) -> None:
        """The host broker has placed, updated or removed a profile."""
        frame = arrival.frame
        assert isinstance(frame, ProfileChanged)
        if frame.text is None:
            self.catalog.remove_profile(frame.profile)
            for connection, request, _ in self._waiting.pop(frame.profile, ()):
                self._server.answer(
                    connection, request, {"profile": frame.profile, "removed": True}
                )
            return
        entry = self.catalog.change_profile(
            frame.profile, text=frame.text, version=frame.version, placed=True
        )
        if entry is not None:
            self._answer_profile(entry)

    def _handle_profile_live(self, arrival: Arrival) -> None:
        frame = arrival.frame
        assert isinstance(frame, ProfileLive)
        entry = self.catalog.profiles.get(frame.profile)
        if entry is None or frame.version <= entry.live:
            return
        entry = replace(entry, live=frame.version)
        self.catalog.put_profile(entry)
        self._answer_profile(entry)

    # --- sources --------------------------------------------------------------------------

    def _register_source(self, connection: int, request: Request) -> Result | None:
        known = self.catalog.find_request(request.request)
        if known is not None and known in self.catalog.sources:
            entry = self.catalog.sources[known]
        else:
            entry = self._new_source(request)
        if entry.ready:
            return self._source_result(entry)
        self._waiting.setdefault(entry.source, []).append((connection, request.request, False))
        return None

    def _new_source(self, request: Request) -> SourceEntry:
        limit = self._topology.limits.sources_max
        if len(self.catalog.sources) >= limit:
            raise RequestRefused("too-many-sources", f"there are {limit} sources already")
        location = _location_argument(request)
        rate = number_argument(request, "rate", 1.0)
        size = int(number_argument(request, "size", 1024))
        schema_name, schema_kind, schema = self._schema_argument(request)
        root = choose_root_broker(
            self._topology, self._trees, location, rate, size, self.catalog.volume_by_root
        )
        source = self.catalog.new_id("s")
        entry = SourceEntry(
            source=source,
            name=text_argument(request, "name", 256, default=source),
            root=root,
            location=location,
            rate=rate,
            size=size,
            schema_name=schema_name,
            schema_kind=schema_kind,
            schema=schema,
            request=request.request,
        )
        self.catalog.put_source(entry)
        announced = SourceAnnounced(
            source=entry.source,
            name=entry.name,
            root=root,
            location=list(location) if location else None,
            rate=rate,
            size=size,
            schema_name=schema_name,
            schema_kind=schema_kind,
            payload=schema,
        )
        self._links.send(f"broker/{root}", CHANNEL_KEY, announced)
        return entry

    def _schema_argument(self, request: Request) -> tuple[str, str, bytes]:
        name = text_argument(request, "schema_name", 256, default="")
        data = request.arguments.get("schema", b"")
        if not name:
            return "", "", b""
        if not isinstance(data, bytes) or len(data) > SCHEMA_BYTES_MAX:
            raise RequestRefused(
                "bad-argument", f"'schema' must be at most {SCHEMA_BYTES_MAX} bytes"
            )
        try:
            schema = read_schema(name, data)
        except FormatError as refusal:
            raise RequestRefused("schema-refused", f"{name}: {refusal}") from refusal
        return schema.name, schema.kind, schema.data

    def _source_result(self, entry: SourceEntry) -> Result:
        return {
            "source": entry.source,
            "name": entry.name,
            "root": entry.root,
            "address": str(self._topology.address(entry.root)),
            "location": list(entry.location) if entry.location else None,
            "rate": entry.rate,
            "size": entry.size,
            "schema_name": entry.schema_name,
            "schema_kind": entry.schema_kind,
            "ready": entry.ready,
        }

    def _list_sources(self, connection: int, request: Request) -> Result:
        return {"sources": [self._source_result(entry) for entry in self.catalog.sources.values()]}

    def _show_source(self, connection: int, request: Request) -> Result:
        source = text_argument(request, "source")
        if source not in self.catalog.sources:
            raise RequestRefused("unknown-source", f"there is no source {source!r}")
        return self._source_result(self.catalog.sources[source])

    # --- profiles -------------------------------------------------------------------------

    def _add_profile(self, connection: int, request: Request) -> Result | None:
        known = self.catalog.find_request(request.request)
        if known is not None and known in self.catalog.profiles:
            entry = self.catalog.profiles[known]
        else:
            entry = self._new_profile(request)
        wait = bool(request.arguments.get("wait"))
        if _settled(entry, wait):
            return self._profile_result(entry)
        self._waiting.setdefault(entry.profile, []).append((connection, request.request, wait))
        return None

    def _new_profile(self, request: Request) -> ProfileEntry:
        limits = self._topology.limits
        if len(self.catalog.profiles) >= limits.profiles_max:
            raise RequestRefused(
                "too-many-profiles", f"there are {limits.profiles_max} profiles already"
            )
        text = text_argument(request, "text", limits.profile_length_max)
        user = text_argument(request, "user", 256, default="")
        location = _location_argument(request)
        try:
            Matcher().add(text)
            host = choose_host_broker(self._topology, location, self.catalog.profiles_by_broker)
        except ProfileRefused as refusal:
            raise RequestRefused("profile-refused", str(refusal)) from refusal
        except PlacementError as refusal:
            raise RequestRefused("no-capacity", str(refusal)) from refusal
        profile = self.catalog.new_id("p")
        entry = ProfileEntry(profile, user, host, text, request=request.request)
        self.catalog.put_profile(entry)
        place = PlaceProfile(
            profile=profile, user=user, text=text, version=1, request=request.request
        )
        self._links.send(f"broker/{host}", CHANNEL_KEY, place)
        return entry

    def _answer_profile(self, entry: ProfileEntry) -> None:
        """Answer those who wait for what has now come about."""
        left = []
        for connection, request, wait in self._waiting.pop(entry.profile, ()):
            if _settled(entry, wait):
                self._server.answer(connection, request, self._profile_result(entry))
            else:
                left.append((connection, request, wait))
        if left:
            self._waiting[entry.profile] = left

    def _profile_result(self, entry: ProfileEntry) -> Result:
        return {
            "profile": entry.profile,
            "user": entry.user,
            "host": entry.host,
            "address": str(self._topology.address(entry.host)),
            "version": entry.version,
            "placed": entry.placed,
            "live": entry.live >= entry.version,
        }

    def _list_profiles(self, connection: int, request: Request) -> Result:
        """One page in order of registration: those after the id ``after``."""
        user = text_argument(request, "user", 256, default="")
        after = text_argument(request, "after", default="")
        entries = [entry for entry in self.catalog.profiles.values() if user in ("", entry.user)]
        if after:
            ids = [entry.profile for entry in entries]
            entries = entries[ids.index(after) + 1 :] if after in ids else []
        page = entries[:LIST_MAX]
        return {
            "profiles": [self._profile_result(entry) for entry in page],
            "more": len(entries) > LIST_MAX,
        }

    def _show_profile(self, connection: int, request: Request) -> Result:
        profile = text_argument(request, "profile")
        entry = self.catalog.profiles.get(profile)
        if entry is None:
            raise RequestRefused("unknown-profile", f"there is no profile {profile!r}")
        return {**self._profile_result(entry), "text": entry.text}

    # --- the rest -------------------------------------------------------------------------

    def _network(self, connection: int, request: Request) -> Result:
        """Where every broker is: what a client needs to look at the network."""
        return {
            "name": self._topology.name,
            "brokers": {broker.id: str(broker.listen) for broker in self._topology.brokers},
        }

    def _forget_waiting(self, connection: int) -> None:
        self._waiting = {
            key: left
            for key, waiting in self._waiting.items()
            if (left := [entry for entry in waiting if entry[0] != connection])
        }


def _settled(entry: ProfileEntry, wait: bool) -> bool:
    return entry.placed and (not wait or entry.live >= entry.version)


def _location_argument(request: Request) -> tuple[float, float] | None:
    """``location``: [latitude, longitude] in degrees, or absent."""
    value = request.arguments.get("location")
    if value is None:
        return None
    bounds = (90, 180)
    good = (
        isinstance(value, list)
        and len(value) == len(bounds)
        and all(
            isinstance(part, int | float) and not isinstance(part, bool) and abs(part) <= bound
            for part, bound in zip(value, bounds, strict=True)
        )
    )
    if not good:
        raise RequestRefused(
            "bad-argument",
            f"{request.verb}: 'location' must be [latitude, longitude] in degrees, not {value!r}",
        )
    return float(value[0]), float(value[1])
