"""Query plane: profiles of this broker and the routing queries of its links (section 4.2).

A profile's way: parsed, added to the Matcher as a local query, mapped to disjuncts (Map), and
what is new of them sent to the parent on every open tree (Aggregate, as a delta), followed by a
marker that tells when it is live.  A child's delta changes the routing table (Collect) and goes
on upward as far as it is news there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from onyx.broker.control_plane import ControlPlane
from onyx.broker.live_wait import LiveWait, LiveWaits
from overlay.link.frames import (
    LiveMarker,
    LiveReached,
    PlaceProfile,
    ProfileChanged,
    ProfileLive,
    RoutingDelta,
)
from overlay.link.link_layer import LinkLayer
from overlay.link.row_log import RowLog, read_record
from overlay.routing.routing_table import Delta, RoutingTable, parse_delta, texts
from registration.catalog import REGISTRATION_KEY
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import Matcher, check_profile

HOSTED_SPACE = "hosted"
ROUTE_SPACE = "route"
# A routing delta is sent in frames of about so much.
PORTION_BYTES = 256 * 1024
PORTION_DISJUNCTS = 1024


@dataclass(frozen=True, slots=True)
class HostedProfile:
    """A profile whose host broker this is; ``disjuncts`` is its routing query."""

    profile: str
    user: str
    text: str
    version: int
    disjuncts: tuple[Conjunction, ...]


class QueryPlane:
    """Local profiles, routing table, and the one Matcher that holds both."""

    def __init__(
        self, control: ControlPlane, links: LinkLayer, rows: RowLog, matcher: Matcher
    ) -> None:
        self.matcher = matcher
        self.table = RoutingTable(matcher)
        self.profiles: dict[str, HostedProfile] = {}
        self._control = control
        self._links = links
        self._rows = rows
        self._waits = LiveWaits(rows)

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Rebuild from rows; the control plane must have been restored before."""
        for root in sorted(self._control.open_roots):
            self.table.open_tree(root)
        rows = list(rows)
        self._waits.restore(rows)
        for space, key, value in rows:
            if space == HOSTED_SPACE:
                record = read_record(value)
                parsed = parse_profile(record["text"])
                self._install(key, record["user"], parsed, record["version"])
            elif space == ROUTE_SPACE:
                record = read_record(value)
                delta = parse_delta([record["disjunct"]], ())
                self.table.change_child(record["root"], record["link"], delta)

    # --- local profiles -------------------------------------------------------------------

    def place(self, frame: PlaceProfile) -> LiveWait | None:
        """The registration service gives this broker a profile."""
        known = self.profiles.get(frame.profile)
        if known is not None and known.version >= frame.version:
            return None
        deltas = self._install(frame.profile, frame.user, parse_profile(frame.text), frame.version)
        return self._announce(frame.profile, frame.version, deltas)

    def update(self, profile: str, text: str) -> tuple[int, LiveWait | None]:
        """Replace a profile's text; returns the new version, and the wait if it is live at once.

        Raises ProfileRefused and leaves everything as it was when the new text is refused;
        KeyError when the profile is not here.
        """
        old = self.profiles[profile]
        parsed = check_profile(text)
        removals = self._uninstall(old)
        additions = self._install(profile, old.user, parsed, old.version + 1)
        deltas = {
            root: _merge(additions.get(root, Delta()), removals.get(root, Delta()))
            for root in self.table.roots
        }
        return old.version + 1, self._announce(profile, old.version + 1, deltas)

    def remove(self, profile: str) -> None:
        """Forget a profile, its undelivered results too; KeyError when it is not here."""
        old = self.profiles[profile]
        deltas = self._uninstall(old)
        self._rows.delete(HOSTED_SPACE, profile)
        self._send_up(deltas)
        self._links.forget(f"subscriber/{profile}")
        changed = ProfileChanged(profile=profile, version=old.version + 1, text=None, user=old.user)
        self._links.send(self._control.registration, REGISTRATION_KEY, changed)

    # --- trees ----------------------------------------------------------------------------

    def open_tree(self, root: str) -> None:
        """A tree comes into use: tell the parent on it what this broker wants."""
        if root not in self.table.roots:
            self._send_up({root: self.table.open_tree(root)})

    def handle_routing_delta(self, frame: RoutingDelta, child: str) -> None:
        """A child's routing query changes; ProfileRefused when it is not one."""
        delta = parse_delta(frame.added, frame.removed)
        self._send_up({frame.root: self.table.change_child(frame.root, child, delta)})
        for disjunct in delta.added:
            record = {"root": frame.root, "link": child, "disjunct": str(disjunct)}
            self._rows.put(ROUTE_SPACE, _route_key(frame.root, child, disjunct), record)
        for disjunct in delta.removed:
            self._rows.delete(ROUTE_SPACE, _route_key(frame.root, child, disjunct))

    def handle_live_marker(self, frame: LiveMarker) -> None:
        """Pass a marker on towards the root; the root answers it."""
        parent = self._control.parent(frame.root)
        if parent is not None:
            self._links.send(f"broker/{parent}", frame.root, frame)
            return
        hop = self._control.hop_towards(frame.root, frame.host)
        reached = LiveReached(root=frame.root, host=frame.host, marker=frame.marker)
        self._links.send(f"broker/{hop}", frame.root, reached)

    def handle_live_reached(self, frame: LiveReached) -> LiveWait | None:
        """Pass an answer on towards its host; at the host, the wait if that was the last."""
        if frame.host != self._control.identity:
            hop = self._control.hop_towards(frame.root, frame.host)
            self._links.send(f"broker/{hop}", frame.root, frame)
            return None
        wait = self._waits.reached(frame.marker, frame.root)
        if wait is not None:
            self._report_live(wait)
        return wait

    def statistics(self) -> dict[str, object]:
        return {
            "profiles": len(self.profiles),
            "not_yet_live": len(self._waits),
            "routing_table": self.table.statistics(),
            "matcher": self.matcher.statistics(),
        }

    # --- helpers --------------------------------------------------------------------------

    def _install(self, profile: str, user: str, parsed: Profile, version: int) -> dict[str, Delta]:
        self.matcher.add(parsed, profile)
        hosted = HostedProfile(profile, user, parsed.text, version, routing_query(parsed))
        self.profiles[profile] = hosted
        return self.table.add_local(hosted.disjuncts)

    def _uninstall(self, hosted: HostedProfile) -> dict[str, Delta]:
        del self.profiles[hosted.profile]
        self.matcher.remove(hosted.profile)
        return self.table.remove_local(hosted.disjuncts)

    def _announce(self, profile: str, version: int, deltas: dict[str, Delta]) -> LiveWait | None:
        """Make a new version durable, tell the parents and the registration service.

        Returns the wait when there is nobody to wait for.
        """
        hosted = self.profiles[profile]
        record = {"user": hosted.user, "text": hosted.text, "version": version}
        self._rows.put(HOSTED_SPACE, profile, record)
        self._send_up(deltas)
        changed = ProfileChanged(
            profile=profile, version=version, text=hosted.text, user=hosted.user
        )
        self._links.send(self._control.registration, REGISTRATION_KEY, changed)
        above = [root for root in self.table.roots if self._control.parent(root) is not None]
        if not above:
            wait = LiveWait(profile, version, frozenset())
            self._report_live(wait)
            return wait
        marker = self._waits.start(profile, version, above)
        for root in above:
            frame = LiveMarker(root=root, host=self._control.identity, marker=marker)
            self._links.send(f"broker/{self._control.parent(root)}", root, frame)
        return None

    def _send_up(self, deltas: dict[str, Delta]) -> None:
        for root, delta in deltas.items():
            parent = self._control.parent(root)
            if parent is None:
                continue
            for added, removed in _portions(texts(delta.added), texts(delta.removed)):
                frame = RoutingDelta(root=root, added=added, removed=removed)
                self._links.send(f"broker/{parent}", root, frame)

    def _report_live(self, wait: LiveWait) -> None:
        frame = ProfileLive(profile=wait.profile, version=wait.version)
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)


def _portions(added: list[str], removed: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """A delta in pieces that fit into a frame, additions first so that nothing is ever missing."""
    for portion in _in_portions(added):
        yield portion, []
    for portion in _in_portions(removed):
        yield [], portion


def _in_portions(disjuncts: list[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    size = 0
    for disjunct in disjuncts:
        portion.append(disjunct)
        size += len(disjunct.encode())
        if size >= PORTION_BYTES or len(portion) >= PORTION_DISJUNCTS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _merge(additions: Delta, removals: Delta) -> Delta:
    """One delta for an update: what goes and comes again is not mentioned."""
    kept = set(additions.added) & set(removals.removed)
    return Delta(
        tuple(disjunct for disjunct in additions.added if disjunct not in kept),
        tuple(disjunct for disjunct in removals.removed if disjunct not in kept),
    )


def _route_key(root: str, link: str, disjunct: Conjunction) -> str:
    digest = sha256(str(disjunct).encode()).hexdigest()[:32]
    return f"{root}|{link}|{digest}"
