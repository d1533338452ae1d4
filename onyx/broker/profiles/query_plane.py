"""Query plane: profiles of this broker and the routing queries of its links (section 4.2).

A profile's way: parsed, added to the Matcher as a local query, mapped to disjuncts (Map), and
what is new of them sent to the parent on every open tree (Aggregate, as a delta), followed by a
marker that tells when it is live.  A child's delta changes the routing table (Collect) and goes
on upward as far as it is news there.

Nothing goes up before ``flush``: under load many changes wait together, and what they add up to is
one delta, with one marker behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import astuple

from onyx.broker.deliveries.delivery_log import without_results
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.delta_portions import delta_portions, row_key
from onyx.broker.profiles.hosted_profiles import (
    HOSTED,
    HostedProfile,
    HostedProfiles,
    HostedRows,
    OverBudget,
)
from onyx.broker.profiles.live_wait import LiveVersion, LiveWaits
from onyx.broker.profiles.transformation import Transformation
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import (
    PROFILES_MAX,
    LiveMarker,
    LiveReached,
    Message,
    PlaceProfile,
    PlaceProfiles,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    RoutingDelta,
)
from overlay.link.part import FrameRefused, Hearer, Part, Taker, hears, takes
from overlay.link.portions import portions
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import INTERESTS, PROFILES, StoredRows
from overlay.link.tables import Row, Table
from overlay.routing.branches import Branch
from overlay.routing.delta import Delta, DeltaSum, parse_delta, texts
from overlay.routing.generalisation import Budget
from overlay.routing.routing_table import RoutingTable
from overlay.statistics import BrokerStatistics
from registration.catalog import REGISTRATION_KEY
from yfilter.engine.linear_paths import ANY_GRAPH, Conjunction
from yfilter.engine.readings import Readings
from yfilter.engine.routing_templates import routing_query_of
from yfilter.errors import ProfileRefused
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_accepted, parse_profile
from yfilter.matcher import Matcher

# -------------------------------------------------------------------------------------------------
# How much of its parent's routing table a broker may fill.
#
# A table has a routing query for each branch that hangs on the broker on some open tree.  Its bytes
# are shared out by the number of brokers in each: whoever speaks for more of the network may say
# more.  Every broker computes the same shares from the topology and the catalog, without exchanging
# a word; when a tree opens they may become smaller.


def table_budget(
    own: Branch, siblings: Collection[Branch], table_bytes_max: int, disjuncts_max: int
) -> Budget:
    """What may be told for the branch ``own``, one of ``siblings``: all different branches that
    hang on its parent on open trees."""
    share = own.brokers / sum(branch.brokers for branch in siblings)
    return Budget(disjuncts_max, max(1, int(table_bytes_max * share)))


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# ChildRoutes: the routing queries of child links, as they are said and as they are presumed.
#
# A child that is away when a tree comes into use cannot say what it wants there.  Nobody waits for
# it: it is *presumed* to want everything, so messages wait for it at its parent as they do for any
# broker that is away, until it says what it wants::
#
#     away for long, asked for its TreeReady ──> ``presume``: everything
#     TreeReady of the branch                ──> ``confirm``: what it has said, and no more
#
# Messages may come before the child is ready for their source then; they wait until it is
# (``TreeVersions.must_wait``).


EVERYTHING = ("//*", ANY_GRAPH.text)
"""Any document, and any graph."""


class _RouteRow(Row, frozen=True):
    """A disjunct that a child wants on a branch."""

    branch: str
    link: str
    disjunct: str


class _PresumedRow(Row, frozen=True):
    """Of ``EVERYTHING``, what a child has not said itself."""

    branch: str
    link: str
    disjuncts: tuple[str, ...] = EVERYTHING[:1]


ROUTES = Table("route", _RouteRow)
PRESUMED = Table("route-presumed", _PresumedRow)


class ChildRoutes:
    """``change`` as a child says, ``forget`` what is over."""

    def __init__(
        self,
        control: ControlPlane,
        rows: RowLog,
        table: RoutingTable,
        note: Callable[[Mapping[str, Delta]], None],
    ) -> None:
        """``note`` is told what the parents must know, by own branch."""
        self._control = control
        self._rows = rows
        self._table = table
        self._note = note
        self.presumed: dict[Branch, tuple[str, ...]] = {}

    def restore(self, rows: StoredRows) -> None:
        for _, route in rows.take(ROUTES):
            branch = self._control.branch_of(route.link, route.branch)
            self._table.keep_child(branch)
            disjunct = self._table.pool.parse(route.disjunct)
            self._note(self._table.change_child(branch, (disjunct,), ()))
        for _, row in rows.take(PRESUMED):
            branch = self._control.branch_of(row.link, row.branch)
            self.presumed[branch] = tuple(row.disjuncts)

    def change(self, branch: Branch, delta: Delta) -> None:
        """A child's routing query of a branch changes."""
        if branch in self.presumed:
            said = {one.text for one in delta.added}  # it does want that
            self._mark(branch, [one for one in self.presumed[branch] if one not in said])
        self._change(branch, delta)

    def presume(self, branch: Branch) -> None:
        """A child that has not said what it wants on a branch may want everything."""
        self._table.keep_child(branch)
        wanted = {one.text for one in self._table.wanted_on(branch)}
        lacking = [one for one in EVERYTHING if one not in wanted]
        if lacking:
            self._mark(branch, [*self.presumed.get(branch, ()), *lacking])
            self._change(branch, Delta(self._parsed(lacking)))

    def confirm(self, branch: Branch) -> None:
        """A child has said all that it wants on a branch."""
        if branch in self.presumed:
            presumed = self._parsed(self.presumed[branch])
            self._mark(branch, ())
            self._change(branch, Delta((), presumed))

    def forget(self, wanted: Mapping[Branch, Iterable[Conjunction]]) -> None:
        """What was wanted on branches that no tree has any more, which the table has forgotten."""
        for branch, disjuncts in wanted.items():
            for disjunct in disjuncts:
                ROUTES.delete(self._rows, row_key(branch.name, branch.broker, disjunct.text))
            self._mark(branch, ())

    def _change(self, branch: Branch, delta: Delta) -> None:
        self._note(self._table.change_child(branch, delta.added, delta.removed))
        for disjunct in delta.added:
            row = _RouteRow(branch.name, branch.broker, disjunct.text)
            ROUTES.put(self._rows, row_key(*astuple(row)), row)
        for disjunct in delta.removed:
            ROUTES.delete(self._rows, row_key(branch.name, branch.broker, disjunct.text))

    def _parsed(self, disjuncts: Iterable[str]) -> tuple[Conjunction, ...]:
        return tuple(map(self._table.pool.parse, disjuncts))

    def _mark(self, branch: Branch, disjuncts: Sequence[str]) -> None:
        if disjuncts:
            self.presumed[branch] = tuple(disjuncts)
            row = _PresumedRow(branch.name, branch.broker, tuple(disjuncts))
            PRESUMED.put(self._rows, self._key(branch), row)
        elif self.presumed.pop(branch, None) is not None:
            PRESUMED.delete(self._rows, self._key(branch))

    @staticmethod
    def _key(branch: Branch) -> str:
        return row_key(branch.name, branch.broker, "")


# -------------------------------------------------------------------------------------------------


class _ToldRow(Row, frozen=True):
    """A disjunct that the parent on a branch was told of."""

    branch: str
    disjunct: str


class _TreeRow(Row, frozen=True):
    open: bool


TOLD = Table("told", _ToldRow)
TREES = Table("tree", _TreeRow)


class QueryPlane(Part):
    """Local profiles, routing table, and the one Matcher that holds both."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        mailboxes: Mailboxes,
        matcher: Matcher,
        transformation: Transformation,
        profiles: HostedProfiles,
    ) -> None:
        self.matcher = matcher
        self.transformation = transformation
        self.table = RoutingTable(matcher)
        self.profiles = profiles
        self._control = control
        self._links = context.links
        self._rows = rows = context.rows
        self._hosted = HostedRows(rows)
        self._mailboxes = mailboxes
        self._wall = context.wall
        self._bounds = _table_bounds(context.limits)
        self.waits = LiveWaits(rows, lambda root: control.tree(root).path(control.identity)[:-1])
        # Whether the table has the profiles' routing queries; there may be nobody to tell.
        self._is_mapping = False
        self.routes = ChildRoutes(control, rows, self.table, self._note)
        self._news: dict[str, DeltaSum] = {}  # by own branch: what the parent does not know yet
        self._behind: list[LiveMarker] = []  # what must come after it

    def take_limits(self, limits: Limits) -> None:
        before, self._bounds = self._bounds, _table_bounds(limits)
        if self._bounds != before:
            self._share_out()

    def frames(self) -> Iterable[Taker]:
        yield takes(PlaceProfiles, "registration", self._handle_new)
        yield takes(RoutingDelta, "child", self._handle_delta)
        yield takes(LiveMarker, "child", self._handle_marker)
        yield takes(LiveReached, "parent", self._handle_reached)

    def events(self) -> Iterable[Hearer]:
        yield hears(OverBudget, self._hold_back)

    def restore(self, rows: StoredRows) -> None:
        """Rebuild from rows; the control plane must have been restored before."""
        self._map_if_asked()
        for tree, row in rows.take(TREES):
            self._open(tree)
            if not row.open:
                self.table.close_tree(tree)
        self._share_out()
        self.transformation.restore_needs(rows)
        self.waits.restore(rows)
        told = [row for _, row in rows.take(TOLD)]
        for name in {row.branch for row in told}:
            own = self._control.branch(name)
            assert own is not None
            self._map()
            self.table.keep_own(own)
        wanted = []
        of_all = rows.number(HOSTED)
        for hosted, parsed in rows.counted(PROFILES, self._hosted.restore(rows), of_all):
            self._place(hosted, parsed)
            if self._is_mapping:
                wanted.append([*map(self.table.pool.share, routing_query_of(parsed))])
        for profile in self.profiles.suspended:
            self.matcher.remove(profile)
        # Most of what was told is in the pool by now, and is not read again.
        for one in rows.counted(INTERESTS, told, len(told)):
            self.table.restore_told(one.branch, self.table.pool.parse(one.disjunct))
        for disjuncts in rows.counted(INTERESTS, wanted, len(wanted)):
            self._note(self.table.change_local(disjuncts, ()))
        self.routes.restore(rows)
        self._note(self.table.settle())
        self.transformation.settle()
        self.matcher.prepare()

    def flush(self) -> None:
        """Tell the parents what has changed since the last time; to be called whenever the events
        that waited together have been handled, and before this broker says that a tree is ready."""
        self.transformation.flush()
        for branch, news in self._news.items():
            self._send_up(branch, news.take())
        self._news.clear()
        for number, roots in self.waits.take_unsent():
            self._pass_up(self._control.identity, number, roots)
        for marker in self._behind:
            self._links.send(f"broker/{self._control.parent(marker.root)}", marker.root, marker)
        self._behind.clear()

    @property
    def waiting_bytes(self) -> int:
        """Of the results that wait for users, each once."""
        return self._mailboxes.stored_bytes

    # --- local profiles -------------------------------------------------------------------

    def place(self, frame: PlaceProfile) -> None:
        """The registration service gives this broker a profile."""
        known = self.profiles.get(frame.profile)
        if known is not None and known.version >= frame.version:
            return
        if known is not None:
            detail = f"{frame.profile} is here with version {known.version}, which changes here"
            raise FrameRefused("not-expected", detail)
        parsed = parse_accepted(frame.text)
        self._add(HostedProfile(frame.profile, frame.user, frame.text, frame.version), parsed)
        version = LiveVersion(frame.profile, frame.version)
        self._send_changed([version])
        self._send_markers([version])

    def _handle_new(self, frame: PlaceProfiles, arrival: Arrival) -> None:
        """The registration service gives this broker new profiles; nothing is changed if it takes
        what this broker does not."""
        try:
            parsed_texts = [parse_accepted(text) for _, _, text in frame.profiles]
        except ProfileRefused as refusal:
            raise FrameRefused("profile-refused", str(refusal)) from refusal
        versions = []
        since = int(self._wall())
        for (profile, user, text), parsed in zip(frame.profiles, parsed_texts, strict=True):
            if profile not in self.profiles:
                self._add(HostedProfile(profile, user, text, 1, since), parsed)
                versions.append(LiveVersion(profile, 1))
        if versions:
            placed = ProfilesPlaced(profiles=[version.profile for version in versions])
            self._links.send(self._control.registration, REGISTRATION_KEY, placed)
            self._send_markers(versions)

    def stand_by(self, profile: str, user: str, text: str, version: int, wait: str) -> bool:
        """Announce a profile that another broker hosts, or a new version of it, so that its
        messages come here as well; whether it is live at once, else ``waits`` says it of ``wait``.

        Raises ProfileRefused and leaves everything as it was when the text is refused.
        """
        parsed = parse_profile(text)
        known = self.profiles.get(profile)
        if known is not None:
            self._mailboxes.keep_text(profile, known.text)
            self._take_out(profile)
        self._add(HostedProfile(profile, user, text, version), parsed, known)
        return not self._wait_for([LiveVersion(wait, version)])

    def keep_unclaimed(self, profile: str, since: int) -> None:
        """A profile that came from another host has not been claimed there either."""
        hosted = self.profiles[profile]._replace(unclaimed_since=since)
        self.profiles[profile] = hosted
        self._hosted.put(hosted, parse_accepted(hosted.text))

    def suspend(self, profile: str, why: str) -> None:
        """Evaluate a profile no more, until its text is given again; all else of it stays."""
        self._mailboxes.keep_text(profile, self.profiles[profile].text)
        self.matcher.remove(profile)
        self.profiles.suspended[profile] = why

    def _hold_back(self, told: OverBudget) -> None:
        """The user is told by a delivery as any other."""
        if told.code == "suspended":
            self.suspend(told.profile, told.why)
        given = self._mailboxes.boxes([told.profile]), without_results(told.code, told.why)
        self._mailboxes.deliver_message(told.source, told.number, [given], None)

    def let_go(self, profile: str) -> HostedProfile:
        """Stop matching and announcing a profile; KeyError when it is not here."""
        hosted = self.profiles.pop(profile)
        self._mailboxes.keep_text(profile, hosted.text)
        self._take_out(profile)
        self.transformation.remove(profile)
        if self._is_mapping:
            self._note(self.table.change_local((), hosted.disjuncts))
        self._hosted.delete(profile)
        return hosted

    def update(self, profile: str, parsed: Profile) -> LiveVersion:
        """Replace a profile's text by a checked one; KeyError when it is not here."""
        return self.update_all([(profile, parsed)])[0]

    def update_all(self, changes: Sequence[tuple[str, Profile]]) -> list[LiveVersion]:
        """Replace the texts of profiles that are here by checked ones; the new versions."""
        versions = []
        for profile, parsed in changes:
            old = self.profiles[profile]
            self._mailboxes.keep_text(profile, old.text)
            self._take_out(profile)
            now = HostedProfile(profile, old.user, parsed.text, old.version + 1)
            self._add(now, parsed, old)
            versions.append(LiveVersion(profile, old.version + 1))
        self._send_changed(versions)
        self._send_markers(versions)
        return versions

    def remove(self, profile: str) -> LiveVersion:
        """Forget a profile, its undelivered results too; the version that its absence counts as.
        KeyError when it is not here.
        """
        return self.remove_all([profile])[0]

    def remove_all(self, profiles: Sequence[str]) -> list[LiveVersion]:
        """Forget profiles that are here; the versions that their absence counts as."""
        versions = []
        for profile in profiles:
            old = self.let_go(profile)
            self._mailboxes.forget(profile)
            versions.append(LiveVersion(profile, old.version + 1))
        self._send_changed(versions)
        self._wait_for(versions)
        return versions

    # --- trees ----------------------------------------------------------------------------

    def open_tree(self, tree: str) -> None:
        """A tree comes into use: tell the parent on it what this broker wants."""
        if not self.table.is_open(tree):
            TREES.put(self._rows, tree, _TreeRow(True))
            self._open(tree)
            self._share_out()

    def close_tree(self, tree: str) -> None:
        """No message comes on a tree any more, and nobody on it is waited for."""
        if self.table.is_open(tree):
            TREES.put(self._rows, tree, _TreeRow(False))
            self.table.close_tree(tree)
            self._share_out()
        self._report_live(self.waits.end_tree(tree))

    def forget_closed(self) -> None:
        """No broker needs what was wanted on trees that have ended."""
        self.transformation.forget_closed()
        trees, told, wanted = self.table.forget_closed(self._control.shapes.is_alive)
        for tree in trees:
            TREES.delete(self._rows, tree)
        for name, disjuncts in told.items():
            self._news.pop(name, None)
            for disjunct in disjuncts:
                TOLD.delete(self._rows, row_key(name, "", disjunct.text))
        self.routes.forget(wanted)

    def _handle_delta(self, frame: RoutingDelta, arrival: Arrival) -> None:
        """A child's routing query changes."""
        try:
            self._take_delta(frame, arrival.sender)
        except KeyError:
            raise FrameRefused("unknown-root") from None
        except ProfileRefused as refusal:
            raise FrameRefused("routing-refused", str(refusal)) from refusal

    def _take_delta(self, frame: RoutingDelta, child: str) -> None:
        """ProfileRefused when it is none, KeyError when no open tree has the branch."""
        branch = self._control.branch_of(child, frame.root)
        delta = parse_delta(frame.added, frame.removed, self.table.pool.parse)
        self.routes.change(branch, delta)

    def _handle_marker(self, frame: LiveMarker, arrival: Arrival) -> None:
        """Say that it has come as far as this, and pass it on towards the roots; nobody waits for
        it on trees that have ended."""
        branch = self._control.branch_of(arrival.sender, frame.root)
        if not branch.roots.issuperset(frame.roots):
            raise FrameRefused("unknown-root")
        if not any(map(self.table.is_open, frame.roots)):
            return
        hop = self._control.hop_towards(frame.root, frame.host)
        here = self._control.identity
        reached = LiveReached(frame.root, frame.host, frame.marker, here, frame.roots)
        self._links.send(f"broker/{hop}", frame.root, reached)
        self._pass_up(frame.host, frame.marker, frame.roots)

    def _handle_reached(self, frame: LiveReached, arrival: Arrival) -> None:
        """Pass an answer on towards its host; at the host, tell what is live if that was the
        last."""
        if frame.host == self._control.identity:
            self._report_live(self.waits.reached(frame.marker, frame.roots, frame.broker))
        elif any(map(self.table.is_open, frame.roots)):
            hop = self._control.hop_towards(frame.root, frame.host)
            self._links.send(f"broker/{hop}", frame.root, frame)

    # --- generalisation -------------------------------------------------------------------

    def note_arrival(self, frame: Message) -> None:
        """A message came from the parent."""
        self.table.arrived(frame.root, frame.source, frame.number)

    def note_useless(self, root: str, message: Readings) -> None:
        """Nobody here or below wanted the message."""
        self._note(self.table.blame(root, message))

    def work(self) -> None:
        """Go on generalising routing queries."""
        self._note(self.table.work())

    def use_shape(self) -> None:
        """There is a newer shape of the network."""
        self._map_if_asked()
        self.transformation.use_shape()

    def report(self, said: BrokerStatistics) -> None:
        said.query.profiles = len(self.profiles)
        said.query.routing_table = self.table.statistics()
        said.query.matcher = self.matcher.statistics()
        said.query.transformation = self.transformation.statistics()

    # --- helpers --------------------------------------------------------------------------

    def _add(
        self, hosted: HostedProfile, parsed: Profile, former: HostedProfile | None = None
    ) -> None:
        """Install and keep a profile."""
        self._place(hosted, parsed, former)
        if self._is_mapping:
            gone = () if former is None else former.disjuncts
            self._note(self.table.change_local(routing_query_of(parsed), gone))
        self._hosted.put(hosted, parsed)
        self.announce(hosted)

    def _place(
        self, hosted: HostedProfile, parsed: Profile, former: HostedProfile | None = None
    ) -> None:
        profile = hosted.profile
        self.matcher.add(parsed, profile)
        self.transformation.place(profile, parsed, None if former is None else former.text)
        self.profiles[profile] = hosted
        self._mailboxes.belongs(profile, hosted.user)

    def _take_out(self, profile: str) -> None:
        """Take a profile out of the Matcher, where it may not be any more."""
        if self.profiles.suspended.pop(profile) is None:
            self.matcher.remove(profile)

    def _map_if_asked(self) -> None:
        """Where there are neighbours somebody will ask what is wanted here."""
        if self._control.shapes.neighbours():
            self._map()

    def _map(self) -> None:
        """The table has the routing queries of all profiles from now on."""
        if not self._is_mapping:
            self._is_mapping = True
            for hosted in self.profiles.values():
                self._note(self.table.change_local(hosted.disjuncts, ()))

    def _send_changed(self, versions: Sequence[LiveVersion]) -> None:
        """Tell the registration service what profiles say now; of those that are gone, that."""
        texts = [
            None if hosted is None else hosted.text
            for hosted in (self.profiles.get(version.profile) for version in versions)
        ]
        for place in portions(texts):
            changed = ProfilesChanged(
                [
                    (v.profile, v.version, t)
                    for v, t in zip(versions[place], texts[place], strict=True)
                ]
            )
            self._links.send(self._control.registration, REGISTRATION_KEY, changed)

    def _send_markers(self, versions: list[LiveVersion]) -> None:
        """One marker for all of them, or they are live at once."""
        if not self._wait_for(versions):
            self._report_live(versions)

    def _wait_for(self, versions: Iterable[LiveVersion]) -> bool:
        """False when there is nobody to wait for."""
        above = [root for root in self.table.roots if self._control.parent(root) is not None]
        if above:
            for version in versions:
                self.waits.start(version, above)
            self.flush_at_end()
        return bool(above)

    def _pass_up(self, host: str, marker: int, roots: Iterable[str]) -> None:
        """One frame for each branch of this broker, with the roots whose trees have it."""
        by_branch: dict[str, list[str]] = {}
        for root in filter(self.table.is_open, roots):
            branch = self._control.branch(root)
            if branch is not None:
                by_branch.setdefault(branch.name, []).append(root)
        for name, above in by_branch.items():
            self._behind.append(LiveMarker(root=name, host=host, marker=marker, roots=above))
            self.flush_at_end()

    def _open(self, tree: str) -> None:
        own = self._control.branch(tree)
        if own is not None:
            self._map()
        self._note(self.table.open_tree(tree, own, self._control.branches_below(tree)))
        self.transformation.open_tree(tree)

    def _share_out(self) -> None:
        """The budgets of all own branches, when there is one open tree more or less, or there are
        other bounds."""
        for own in self._control.branches(self.table.roots):
            beside = self._control.branches_beside(own, self.table.roots)
            budget = table_budget(own, beside, *self._bounds)
            self._note({own.name: self.table.set_budget(own.name, budget)})

    def _note(self, deltas: Mapping[str, Delta]) -> None:
        for branch, delta in deltas.items():
            if delta:
                self._news.setdefault(branch, DeltaSum()).update(delta)
                self.flush_at_end()
        if self.table.is_working:
            self.work_soon()

    def _send_up(self, branch: str, delta: Delta) -> None:
        parent = self._control.parent(branch)
        for added, removed in delta_portions(texts(delta.added), texts(delta.removed)):
            frame = RoutingDelta(root=branch, added=added, removed=removed)
            self._links.send(f"broker/{parent}", branch, frame)
        for disjunct in delta.added:
            told = _ToldRow(branch, disjunct.text)
            TOLD.put(self._rows, row_key(branch, "", disjunct.text), told)
        for disjunct in delta.removed:
            TOLD.delete(self._rows, row_key(branch, "", disjunct.text))

    def _report_live(self, live: Sequence[LiveVersion]) -> None:
        """But not of profiles that are removed: the registration service knows already."""
        here = [version for version in live if version.profile in self.profiles]
        for start in range(0, len(here), PROFILES_MAX):
            some = here[start : start + PROFILES_MAX]
            frame = ProfilesLive([(version.profile, version.version) for version in some])
            self._links.send(self._control.registration, REGISTRATION_KEY, frame)
        for version in live:
            self.announce(version)


def _table_bounds(limits: Limits) -> tuple[int, int]:
    return limits.routing_table_max_bytes, limits.max_disjuncts
