"""RequestParts: what users, operators and the registration service ask of this broker."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET, to_builtins
from msgspec.structs import astuple

from formats import ElementStream, WireFormat, trained_version
from onyx.broker.messages.data_plane import DataPlane, urgent_of
from onyx.broker.messages.message_parts import MessageParts
from onyx.broker.messages.observers import Observers
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.access_rules import AccessRules
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.network.taxonomies import Taxonomies
from onyx.broker.packing.codebook import is_media_type, wire_format_of
from onyx.broker.packing.packing_parts import PackingParts
from onyx.broker.packing.parcel import Parcel
from onyx.broker.profiles.hosted_profiles import HostedProfile
from onyx.broker.profiles.live_wait import LiveVersion
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.profile_parts import ProfileParts
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.profiles.transformation import Transformation
from onyx.broker.requests.broker_requests import BrokerRequests
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.shape_parts import ShapeParts
from onyx.broker.shape.shape_stages import ShapeStages
from onyx.broker.users.policy_changes import PolicyChanges
from onyx.broker.users.user_parts import UserParts
from overlay import answers, verbs
from overlay.delivery_policy import USUAL
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.frame import PACKED_SHAPES, Frame
from overlay.link.frames import (
    CatalogTold,
    CatalogWanted,
    DeliveryPolicies,
    Message,
    ProfilesHosted,
    ProfilesMoving,
    SourceReady,
    TaxonomiesAnnounced,
)
from overlay.link.part import Hearer, Part, Taker, hears, takes
from overlay.link.portions import PORTION_BYTES, PORTION_TEXTS
from overlay.link.request_server import (
    RequestRefused,
    Verb,
    alone,
)
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.routing.branches import Branch
from overlay.statistics import BrokerStatistics
from overlay.tree_name import root_of, version_of
from registration.catalog import REGISTRATION_KEY, announcement
from yfilter import LinkTarget, Matcher, MatchLimits, ProfileMatch, RouteMatch
from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.engine.readings import Reading, Readings
from yfilter.errors import ProfileRefused
from yfilter.explanation import Failure
from yfilter.graph.graph_query import may_ask_above
from yfilter.language.query_ast import Profile, absolute
from yfilter.matcher import check_profile
from yfilter.matches import Match
from yfilter.projection.needs import as_xquery
from yfilter.projection.profile_needs import RDF_XML

# -------------------------------------------------------------------------------------------------
# DryRuns: what a broker would do with a message, were it to come; nothing is sent or counted.


@dataclass(frozen=True, slots=True)
class DryRun:
    """``sizes``: for each link that would be taken, ``format`` and ``bytes`` of the message as it
    would be sent, ``bytes_whole`` without its ``transformation``."""

    parcel: Parcel
    decisions: list[Match]
    sizes: Mapping[str, dict[str, Any]]


class DryRuns:
    """It has a codebook of its own, whose counts are of no message's way."""

    def __init__(self, control: ControlPlane, query: QueryPlane, packing: PackingParts) -> None:
        self._control = control
        self._matcher = query.matcher
        self._transformation = query.transformation
        self._formats = packing.formats
        self._codebook = packing.aside
        self.published = self._codebook.of_published(float)

    def run(self, frame: Message) -> DryRun:
        """What would be done with a message, were it to come; nothing is sent or counted.

        Raises MessageRefused, DecodeError and MatchLimitExceeded.
        """
        parcel = self._open(frame)
        found = self._matcher.match(parcel.readings, root=parcel.root)
        decisions = list(self._transformation.taking_part(parcel, found))
        links, left = urgent_of(decisions)
        sizes: dict[str, dict[str, Any]] = {}
        for link, cut in self._transformation.cuts(parcel, links, left).items():
            packing = self._formats.packing_for(cut.parcel, link)
            sizes[link] = {
                "format": packing.wire_format.value,
                "bytes": len(cut.parcel.packed(packing)) + len(cut.parcel.pieces),
                "bytes_whole": len(parcel.packed(packing)),
                "transformation": self._control.shapes.link(
                    self._control.identity, link
                ).transformation.value,
            }
        return DryRun(parcel, decisions, sizes)

    def carried(self, frame: Message, child: str) -> Message:
        """The message as a child would get it, to the byte: but unpacked if that takes a trained
        dictionary, which the child has when it comes down the tree with the message, and may lack
        when it is asked now.  Raises as ``run``."""
        parcel = self._open(frame)
        urgent, _ = self._matcher.match_in_stages(parcel.readings, root=parcel.root)
        cut = self._transformation.cuts(parcel, [child], urgent_of(urgent)[1])[child]
        packing = self._formats.packing_for(cut.parcel, child)
        form, payload = packing.wire_format, cut.parcel.packed(packing)
        if trained_version(payload, form.compression):
            form = form.form
            payload = cut.parcel.in_form(form)
        return msgspec.structs.replace(
            frame,
            format=form.value,
            payload=payload,
            reflects=cut.reflects,
            pieces=cut.parcel.pieces,
        )

    def _open(self, frame: Message) -> Parcel:
        if not frame.hops and is_media_type(frame.format):
            what = frame.root, frame.source, frame.number, frame.format, frame.payload
            return Parcel.of_graph(self.published, *what, frame.accepted)
        form = wire_format_of(frame.format)
        codebook = self._codebook if frame.hops else self.published
        return Parcel(
            *(codebook, frame.root, frame.source, frame.number, frame.hops, form),
            *(frame.payload, frame.reflects, frame.pieces, frame.accepted),
        )


# -------------------------------------------------------------------------------------------------
# CatalogReport: what this broker has from the registration service, told to one that has lost it.
#
# Docs/protocol.md has the picture.  Profiles go a portion at a time, so that messages go on
# meanwhile; what changes behind that the registration service hears as ever, behind it.  A broker
# that dies on the way begins again.
#
# Of each profile the highest number is kept that was ever here, so that it is given to no other
# one.


class _WantedRow(Row, frozen=True):
    """There is one until all is told; as in CatalogWanted."""

    lost: list[str]
    rebuild: str = ""


class _HighestRow(Row, frozen=True):
    """Of the numbers of profiles that were ever here."""

    number: int


WANTED = Table("catalog-wanted", _WantedRow)
HIGHEST = Table("highest-profile", _HighestRow)


class CatalogReport(Part):
    """Idle but for the highest number, until it is asked."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        moves: ProfileMoves,
        policies: PolicyChanges,
        shares: MatchShares,
        access: AccessRules,
        taxonomies: Taxonomies,
        watch: LinkWatch,
        stages: ShapeStages,
    ) -> None:
        self._control = control
        self._query = query
        self._moves = moves
        self._policies = policies
        self._shares = shares
        self._access = access
        self._taxonomies = taxonomies
        self._watch = watch
        self._stages = stages
        self._links = context.links
        self._rows = context.rows
        self._wanted: StoredValue[_WantedRow | None] = StoredValue(context.rows, WANTED, None)
        self._left: deque[str] = deque()  # profiles that are still to be told
        self._highest = 0

    def events(self) -> Iterable[Hearer]:
        yield hears(HostedProfile, self._note_number)

    def frames(self) -> Iterable[Taker]:
        yield takes(CatalogWanted, "registration", self._handle_wanted)

    def restore(self, rows: StoredRows) -> None:
        """All else must have been restored before."""
        for _, row in rows.take(HIGHEST):
            self._highest = row.number
        for profile in self._query.profiles:
            self._highest = max(self._highest, _number_of(profile))
        if self._wanted.now is not None:
            self._begin()

    def flush(self) -> None:
        HIGHEST.put(self._rows, "current", _HighestRow(self._highest))

    def work(self) -> None:
        """The next portion; at the end, all else."""
        wanted = self._wanted.now
        if wanted is None:
            return
        if not self._left:
            self._tell_shape(wanted)
            self._tell_moves(wanted.rebuild)
            self._wanted.put(None)
            return
        told: list[tuple[str, str, str, int, int, bool]] = []
        size = 0
        while self._left and size < PORTION_BYTES and len(told) < PORTION_TEXTS:
            hosted = self._query.profiles.get(self._left.popleft())
            if hosted is not None:
                version = LiveVersion(hosted.profile, hosted.version)
                live = 0 if version in self._query.waits else hosted.version
                stands_by = hosted.profile in self._moves.coming
                told.append((*hosted[:4], live, stands_by))
                size += len(hosted.text)
        self._send(ProfilesHosted(told))
        self._tell_policies(profile for profile, *_, stands_by in told if not stands_by)
        self.work_soon()

    # --- helpers --------------------------------------------------------------------------

    def _handle_wanted(self, frame: CatalogWanted, arrival: Arrival) -> None:
        self._wanted.put(_WantedRow(frame.lost, frame.rebuild))
        self._begin()

    def _begin(self) -> None:
        self._left = deque(self._query.profiles)
        self.work_soon()

    def _note_number(self, hosted: HostedProfile) -> None:
        number = _number_of(hosted.profile)
        if number > self._highest:
            self._highest = number
            self.flush_soon()

    def _tell_policies(self, profiles: Iterable[str]) -> None:
        found = [(profile, self._policies.of(profile)) for profile in profiles]
        unusual = [(profile, *astuple(policy)) for profile, policy in found if policy != USUAL]
        if unusual:
            self._send(DeliveryPolicies(unusual))

    def _tell_shape(self, wanted: _WantedRow) -> None:
        shapes, reached = self._control.shapes, self._stages.reached
        is_packed = PACKED_SHAPES in self._links.features(self._control.registration)
        for shape in shapes.in_use:
            self._send(shape.announced(is_packed=is_packed))
        for entry in self._control.sources.values():
            is_own = entry.root == self._control.identity
            if is_own or entry.root in wanted.lost or not shapes.has_broker(entry.root):
                self._send(announcement(entry))
            if is_own and entry.ready:
                self._send(SourceReady(entry.source, self._control.in_force(entry)))
        for told in (self._access.announced(), self._taxonomies.announced()):
            if told is not None:
                self._send(told)
        self._send(
            CatalogTold(
                *(shapes.agreed.version, shapes.settled, *reached),
                profile=self._highest,
                move=self._moves.highest,
                rebuild=wanted.rebuild,
            )
        )
        self._watch.say_again()
        if not shapes.agreed.has_broker(self._control.identity):
            self._stages.releases.say()

    def _tell_moves(self, rebuild: str) -> None:
        plan = self._shares.announced()
        if plan is not None:
            self._send(plan)
        coming, leaving = self._moves.coming, self._moves.leaving
        self._tell_policies(leaving.let_go)
        self._send(ProfilesMoving(coming.under_way, leaving.under_way, rebuild))
        coming.say_again()
        leaving.say_again()

    def _send(self, frame: Frame) -> None:
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)


def _number_of(profile: str) -> int:
    """That in the id of a profile, 0 where there is none."""
    number = profile[1:].partition("-")[0]
    return int(number) if number.isdecimal() else 0


# -------------------------------------------------------------------------------------------------
# ClassesAbove: profiles here that ask for what is above a class follow the taxonomies.
#
# Such a profile says the classes above itself (yfilter/graph/query_text.py), so that the brokers
# on a message's way match and route by its text alone.  When the registration service says other
# taxonomies its host broker updates it, as its user could: a new version, which is live when every
# broker on the way has its interests.  Until then messages are matched by the former one.
#
# ``yfilter`` says what is to be changed; here is when: after an announcement and a restart all
# profiles are looked at, in slices, and one that comes here when it has come.  Those on the move
# are looked at when that is over, those that are suspended when their text is given again.


UPDATED_AT_ONCE = 32


class ClassesAbove(Part):
    """Updates them; nothing of its own is stored."""

    def __init__(
        self,
        context: CoreContext,
        query: QueryPlane,
        moves: ProfileMoves,
        taxonomies: Taxonomies,
        data: DataPlane,
    ) -> None:
        self._data = data
        self._query = query
        self._moves = moves
        self._taxonomies = taxonomies
        self._is_over = context.slice.is_over
        self._left: list[str] = []  # to be looked at
        self._moving: dict[str, None] = {}  # when they do not move any more
        self._too_many = 0

    def events(self) -> Iterable[Hearer]:
        yield hears(HostedProfile, self._look_at)
        yield hears(TaxonomiesAnnounced, lambda frame: self._look_at_all())

    def restore(self, rows: StoredRows) -> None:
        """Nobody knows how far it was."""
        if self._taxonomies.version():
            self._look_at_all()

    def tick(self, now: float) -> None:
        if self._moving:
            self._left += self._moving
            self._moving.clear()
            self.work_soon()

    def work(self) -> None:
        """Go on until the slice is over."""
        changes: list[tuple[str, Profile]] = []
        while self._left and len(changes) < UPDATED_AT_ONCE:
            profile = self._left.pop()
            changed = self._changed(profile)
            if changed is not None:
                changes.append((profile, changed))
            if self._is_over():
                break
        if changes:
            self._update(changes)
        if self._left:
            self.work_soon()

    def report(self, said: BrokerStatistics) -> None:
        said.taxonomies.profiles_with_too_many = self._too_many

    def _look_at_all(self) -> None:
        self._left = list(self._query.profiles)
        self.work_soon()

    def _look_at(self, hosted: HostedProfile) -> None:
        """One that has come, or has another text."""
        if may_ask_above(hosted.text):
            self._left.append(hosted.profile)
            self.work_soon()

    def _changed(self, profile: str) -> Profile | None:
        """What it is to be by the taxonomies, if it is not that; one of which that is too much
        stays as it is."""
        hosted = self._query.profiles.get(profile)
        if hosted is None or not may_ask_above(hosted.text):
            return None
        if profile in self._moves:
            self._moving[profile] = None
            return None
        if profile in self._query.profiles.suspended:
            return None
        try:
            text = self._taxonomies.said_in(hosted.text)
            return None if text == hosted.text else check_profile(text)
        except ProfileRefused:
            self._too_many += 1
            return None

    def _update(self, changes: list[tuple[str, Profile]]) -> None:
        self._data.finish()
        unclaimed = [(p, self._query.profiles[p].unclaimed_since) for p, _ in changes]
        self._query.update_all(changes)
        for profile, since in unclaimed:
            if since:
                self._query.keep_unclaimed(profile, since)


# -------------------------------------------------------------------------------------------------
# Why a message takes a link or does not, in a few words however large the routing query is.
#
# A disjunct comes the closer to a message the fewer of its literals are missing there; that is
# found out for all of them by a look at the text, and only the closest are walked part by part::
#
#     taken        disjuncts that hold, found among all, the closest first
#     not taken    of the NEAR closest the nearest misses, one for each part that fails


NEAR = 200  # disjuncts that are walked part by part
SHOWN = 3
_TOGETHER = 1_000  # disjuncts that are matched at a time
_LITERAL = re.compile(r'"([^"]*)"')


def why_taken(
    wanted: Collection[Conjunction], message: ElementStream | Readings, text: str
) -> list[str]:
    """Some disjuncts of a link that hold on a message, which is ``text``; empty if none does."""
    ordered = iter(_closest(wanted, text, len(wanted)))
    while some := list(islice(ordered, _TOGETHER)):
        held = list(islice(_holding(some, message), SHOWN))
        if held:
            return held
    return []


def why_not(
    wanted: Collection[Conjunction], message: ElementStream | Readings, text: str
) -> list[answers.NearMiss]:
    """Of those that are looked at; the part of a graph reading is a whole path."""
    matcher = Matcher(MatchLimits(lazy_bytes_max=4096))
    near = _closest(wanted, text, NEAR)
    failures = [(disjunct, _failure(matcher, disjunct, message)) for disjunct in near]
    misses = [(disjunct, failure) for disjunct, failure in failures if failure is not None]
    misses.sort(key=lambda miss: -len(miss[1].before) / len(miss[0].text))
    by_part: dict[str, list[tuple[Conjunction, Failure]]] = {}
    for disjunct, failure in misses:
        by_part.setdefault(failure.text, []).append((disjunct, failure))
    return [
        answers.NearMiss(same[0][0].text, part, same[0][1].statement, len(same) - 1)
        for part, same in islice(by_part.items(), SHOWN)
    ]


def _closest(wanted: Iterable[Conjunction], text: str, number: int) -> list[Conjunction]:
    """Those with the fewest literals that the message has not; of these, with most that it has."""
    is_there: dict[str, bool] = {}

    def distance(disjunct: Conjunction) -> tuple[int, int, str]:
        missing = there = 0
        for literal in _LITERAL.findall(disjunct.text):
            found = is_there.get(literal)
            if found is None:
                found = is_there[literal] = literal in text
            missing += not found
            there += found
        return missing, -there, disjunct.text

    return nsmallest(number, wanted, key=distance)


def _holding(disjuncts: Iterable[Conjunction], message: ElementStream | Readings) -> Iterator[str]:
    matcher = Matcher()
    for disjunct in disjuncts:
        matcher.add_route(disjunct, LinkTarget("", disjunct.text))
    return matcher.matched_links(message)


def _failure(
    matcher: Matcher, disjunct: Conjunction, message: ElementStream | Readings
) -> Failure | None:
    for path in disjunct.paths:
        failure = matcher.explain(_profile_of(path), message).failure
        if failure is not None:
            is_graph = disjunct.reading is Reading.GRAPH
            return replace(failure, text=str(path)) if is_graph else failure
    return None


def _profile_of(path: LinearPath) -> Profile:
    steps = tuple(step.location_step for step in path.steps)
    return Profile(absolute(*steps), str(path))


# -------------------------------------------------------------------------------------------------
# MessageTrace: what one broker would do with a message, and why; nothing is sent or counted.
#
# For a link that would be taken, a disjunct of its routing query that holds; for one that would
# not, the disjuncts that come closest, with the first part of each that does not hold (parts.py).
# What a child is to be asked with is what it would get, cut and with its pieces: ``trace.carried``.


PROFILES_SHOWN = 100


class MessageTrace(Part):
    """The verbs ``trace`` and ``trace.carried`` of a broker.

    Both take ``source``, whose message it would be, and ``message`` in ``format`` (text unless
    said), at a child also what it ``reflects`` and its ``pieces``.  ``accepted``: when it would be
    accepted, in seconds of the epoch (now unless said).
    """

    def __init__(
        self, control: ControlPlane, query: QueryPlane, dry: DryRuns, wall: Callable[[], float]
    ) -> None:
        self._control = control
        self._wall = wall
        self._query = query
        self._dry = dry
        self.verbs = (
            Verb(verbs.Trace, alone(self._trace)),
            Verb(verbs.TraceCarried, alone(self._carried)),
        )

    def take_limits(self, limits: Limits) -> None:
        self._dry.published.hold_to(limits.message)

    def _trace(self, asked: verbs.Trace) -> answers.TraceStep:
        """Who of the children would get the message and why, and the profiles here that match."""
        message = self._message(asked)
        tree = message.root
        run = self._dry.run(message)
        text = run.parcel.in_form(WireFormat.TEXT).decode("utf-8", "replace")
        taken = {match.link for match in run.decisions if isinstance(match, RouteMatch)}
        local = sorted(
            match.profile_id for match in run.decisions if isinstance(match, ProfileMatch)
        )
        refusal = run.parcel.no_graph
        return answers.TraceStep(
            broker=self._control.identity,
            root=root_of(tree),
            tree=tree,
            profiles=local[:PROFILES_SHOWN],
            profiles_matched=len(local),
            no_graph=UNSET if refusal is None else str(refusal),
            links=[
                answers.TraceLink(
                    link=child,
                    taken=child in taken,
                    **run.sizes.get(child, {}),
                    **self._reason(tree, child, child in taken, run.parcel.readings, text),
                )
                for child in self._control.children(tree)
            ],
        )

    def _carried(self, asked: verbs.TraceCarried) -> answers.CarriedMessage:
        message, link = self._message(asked), asked.link
        if link not in self._control.children(message.root):
            raise RequestRefused("unknown-link", f"{link!r} is no child on the tree {message.root}")
        carried = self._dry.carried(message, link)
        return answers.CarriedMessage(
            carried.payload, carried.format, carried.reflects, carried.pieces
        )

    def _message(self, asked: verbs.MessageTried) -> Message:
        source = asked.source
        entry = self._control.sources.get(source)
        if entry is None:
            raise RequestRefused("unknown-source", f"there is no source {source!r}")
        return Message(
            root=self._newest_tree(entry.root),
            source=source,
            number=0,
            format=asked.format,
            hops=0,
            payload=asked.message,
            reflects=int(asked.reflects),
            accepted=round(
                (self._wall() if asked.accepted is UNSET else asked.accepted) * 1_000_000
            ),
            pieces=asked.pieces,
        )

    def _newest_tree(self, root: str) -> str:
        """The one in use; while it is being changed, the one that is in use next."""
        if root == self._control.identity:
            return self._control.current_tree
        trees = [tree for tree in self._query.table.roots if root_of(tree) == root]
        if not trees:
            raise RequestRefused("unknown-source", f"no tree of {root} is in use here")
        return max(trees, key=version_of)

    def _reason(
        self, tree: str, child: str, taken: bool, message: Readings, text: str
    ) -> dict[str, Any]:
        wanted = self._query.table.wanted(tree, child)
        if taken:
            return {"disjuncts": len(wanted), "held": why_taken(wanted, message, text)}
        return {"disjuncts": len(wanted), "failed": why_not(wanted, message, text)}


# -------------------------------------------------------------------------------------------------
# What operators may ask about transformation: what is done to one link's messages, and why.


QUERY_LENGTH_MAX = 256 * 1024  # characters


class TransformationRequests(Part):
    """The verb ``transform.show`` of a broker."""

    def __init__(self, control: ControlPlane, transformation: Transformation) -> None:
        self._control = control
        self._transformation = transformation
        self.verbs = (Verb(verbs.TransformShow, alone(self._show)),)

    def _show(self, asked: verbs.TransformShow) -> answers.LinkTransformation:
        """``link``: the neighbour; ``root``, if it is given: of one tree only."""
        link, here = asked.link, self._control.identity
        if link not in self._control.shapes.neighbours():
            raise RequestRefused("unknown-link", f"{link!r} is no neighbour of {here}")
        roots = self._control.open_trees
        if asked.root is not UNSET:
            root = asked.root
            roots = {tree for tree in roots if root_of(tree) == root}
            if not roots:
                raise RequestRefused("unknown-root", f"{root!r} is the root broker of no source")
        below = {root: link in self._control.children(root) for root in roots}
        branches = {self._control.branch_of(link, root) for root in roots if below[root]}
        return answers.LinkTransformation(
            here,
            link,
            self._control.shapes.link(here, link).transformation.value,
            [
                self._branch(branch, sorted(roots & branch.roots))
                for branch in sorted(branches, key=lambda branch: branch.name)
            ],
            to_builtins(self._transformation.sent(link)),
        )

    def _branch(self, branch: Branch, roots: list[str]) -> answers.TransformedBranch:
        behind = self._transformation.table.behind(roots[0], branch.broker)
        entries = () if behind is None else tuple(behind.entries)
        needs = [need for need in entries if need != RDF_XML]
        tree = self._control.tree(roots[0])
        brokers = [broker for broker in tree.breadth_first() if branch.broker in tree.path(broker)]
        return answers.TransformedBranch(
            roots=roots,
            brokers=brokers,
            needs=len(entries),
            needs_bytes=sum(len(need.text) for need in entries),
            has_graph_profiles=len(needs) < len(entries),
            query=as_xquery(needs)[:QUERY_LENGTH_MAX],
        )


# -------------------------------------------------------------------------------------------------


class RequestParts:
    def __init__(
        self,
        context: CoreContext,
        network: NetworkParts,
        packing: PackingParts,
        profiles: ProfileParts,
        moves: ProfileMoves,
        shape: ShapeParts,
        messages: MessageParts,
        users: UserParts,
        observers: Observers,
    ) -> None:
        control, query, taxonomies = network.control, profiles.query, network.taxonomies
        self.parts = (
            BrokerRequests(context, query, moves, taxonomies, users.policies, messages.data),
            MessageTrace(control, query, DryRuns(control, query, packing), context.wall),
            TransformationRequests(control, profiles.transformation),
            ClassesAbove(context, query, moves, taxonomies, messages.data),
            observers,
            CatalogReport(
                *(context, control, query, moves, users.policies, profiles.shares),
                *(network.access, taxonomies, shape.watch, shape.stages),
            ),
        )
