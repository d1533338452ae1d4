"""Transformation: messages are cut down to what somebody behind a link needs (section 4.2.2).

On the query plane it says up each tree what this broker's part of it needs, ahead of the routing
delta and the markers of the same change (overlay/transformation)::

    parent <── NeedsDelta 7, RoutingDelta, LiveMarker ── host

On the data plane it cuts what goes to a child whose link says so, and says what the cut reflects
(overlay/transformation/reflection.py)::

    Message(reflects=7) ──> host        profiles announced by 7 take part; later ones do not

A broker that says nothing needs everything, in its parent's eyes.  With no such link in the
topology nobody says anything, and nothing is cut; where only some do, it is right as well.  When
links begin to transform, what the profiles need is found portion by portion (``work``), and until
all of them are through it is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import Protocol

from formats import ElementStream
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.parcel import Parcel
from onyx.broker.profiles.delta_portions import delta_portions, row_key
from onyx.broker.profiles.hosted_profiles import HostedProfiles
from overlay import statistics
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frames import NeedsDelta
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.nodes import Transformation as Mode
from overlay.routing.branch_table import BranchTable, Changes, Forgotten
from overlay.routing.branches import Branch
from overlay.statistics import Sent
from overlay.transformation.need_set import NeedDelta, NeedSet
from overlay.transformation.reflection import NOTHING, WHOLE, Reflection
from yfilter.engine.targets import LinkTarget
from yfilter.errors import ProfileRefused
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_accepted
from yfilter.matcher import Matcher, Transforming
from yfilter.matches import Delivered, Match, ProfileMatch
from yfilter.projection.needs import EVERYTHING, Need
from yfilter.projection.parts import part_needs_of
from yfilter.projection.profile_needs import needs_of

# -------------------------------------------------------------------------------------------------
# NeedsTable: what every link is sent of a message (section 4.2.2).
#
# ::
#
#     profiles here ──needs──┐
#                            ├──NeedSet──> what this broker's branch needs ──> parent
#     child links ───needs───┘                        as deltas
#           └──> the matcher, which cuts the messages of all links (yfilter/projection)
#
# How needs are told is that of every BranchTable (overlay/routing/branch_table.py).
#
# Invariant: what the parent has been told keeps all that the needs of local profiles and of every
# child keep, per branch.


class LinkTransformer(Protocol):
    """A Matcher, which leaves of a link's messages what its needs keep."""

    def close_needs(self, target: LinkTarget) -> None: ...
    def add_need(self, need: Need, target: LinkTarget) -> None: ...
    def remove_need(self, need: Need, target: LinkTarget) -> None: ...


class LinkNeeds:
    """What is needed in a child's branch, everything until it has said anything; the transformer
    is told of it."""

    __slots__ = ("_entries", "_target", "_transformer")

    def __init__(self, transformer: LinkTransformer, branch: Branch) -> None:
        self._transformer = transformer
        self._target = LinkTarget(branch.name, branch.broker, branch.roots)
        self._entries: dict[Need, None] = {EVERYTHING: None}
        transformer.add_need(EVERYTHING, self._target)

    @property
    def entries(self) -> Collection[Need]:
        return self._entries

    def change(self, added: Iterable[Need], removed: Iterable[Need]) -> Changes[Need]:
        fresh = [need for need in dict.fromkeys(added) if need not in self._entries]
        self._entries.update(dict.fromkeys(fresh))
        for need in fresh:
            self._transformer.add_need(need, self._target)
        gone = [need for need in dict.fromkeys(removed) if need in self._entries]
        for need in gone:
            del self._entries[need]
            self._transformer.remove_need(need, self._target)
        return Changes(fresh, gone)

    def close(self) -> None:
        self._transformer.close_needs(self._target)


class NeedsTable(BranchTable[Need, None, LinkNeeds, NeedSet]):
    """The needs of all links of one broker, on every open tree, and of its profiles.

    What the parents must be told is not given with each change, but by ``take``.
    """

    def __init__(self, transformer: LinkTransformer, bytes_max: int) -> None:
        """``bytes_max``: of what is told about one own branch."""
        super().__init__()
        self._transformer = transformer
        self._bytes_max = bytes_max

    def _new_below(self, branch: Branch) -> LinkNeeds:
        return LinkNeeds(self._transformer, branch)

    def _new_upward(self) -> NeedSet:
        return NeedSet(self._bytes_max)

    @property
    def is_changed(self) -> bool:
        """Since ``take``."""
        return any(needs.is_changed for needs in self._upward.values())

    def forget_dead(self, is_alive: Callable[[str], bool]) -> Forgotten[Need]:
        """Forget the trees that are not alive, and the branches of which no tree is."""
        return self._forget([root for root in self.trees if not is_alive(root)], is_alive)

    def take(self) -> dict[str, NeedDelta]:
        """By own branch, what the parents must be told since the last time."""
        news = {own: needs.take() for own, needs in self._upward.items()}
        return {own: delta for own, delta in news.items() if delta}


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# FormerVersions: texts that profiles had, for messages that do not reflect the new ones yet.
#
# A message that was cut before a profile's change was known has what the old text needs of it, and
# may lack what the new one needs.  So the old text answers it::
#
#     change told as number      3: p1's first text          8: its second
#     a message reflects         3 … 7: the first text       8 …: the second
#
# The youngest are kept, up to FORMER_MAX of FORMER_TEXT_MAX characters, in the order of ``until``;
# an older one is counted, and its messages are as those from before a profile is live.  Durable: a
# text and the changes that tell of the next one are of one commit.


FORMER_MAX = 16_384
FORMER_TEXT_MAX = 16 * 1024 * 1024


class FormerRow(Row, frozen=True):
    profile: str
    text: str
    since: Mapping[str, int]
    until: Mapping[str, int]


FORMER = Table("former-version", FormerRow)


@dataclass(slots=True, eq=False)
class _Former:
    """``since`` and ``until``: by own branch, the changes that told of this text and of the next
    one; None while that is not told, so that there is no row of this ``number`` yet."""

    number: int
    profile: str
    text: str
    since: Mapping[str, int]
    until: Mapping[str, int] | None = None


class FormerVersions:
    """Texts by what a message reflects."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._kept: dict[int, _Former] = {}
        self._of: dict[str, list[_Former]] = {}  # by profile
        self._untold: dict[str, _Former] = {}
        self._last: dict[str, int] = {}  # by own branch: from here on nobody is asked
        self._number = self._length = self._forgotten = 0

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(FORMER):
            self._add(_Former(int(key), row.profile, row.text, row.since, row.until))
            self._note_last(row.until)

    def keep(self, profile: str, text: str, since: Mapping[str, int]) -> None:
        """A text gives way to another one."""
        former = self._untold[profile] = _Former(self._number + 1, profile, text, since)
        self._add(former)
        while len(self._kept) > FORMER_MAX or self._length > FORMER_TEXT_MAX:
            self._drop(next(iter(self._kept.values())))
            self._forgotten += 1

    def told(self, profile: str, numbers: Mapping[str, int]) -> None:
        """The text that a profile has now was told with these changes; with none, messages are
        not cut by what it needs, and it answers them all."""
        former = self._untold.pop(profile, None)
        if former is None:
            return
        if not numbers:
            self._drop(former)
            return
        former.until = numbers
        self._note_last(numbers)
        row = FormerRow(profile, former.text, former.since, numbers)
        FORMER.put(self._rows, _row_key(former), row)

    def forget(self, profile: str) -> None:
        for former in self._of.get(profile, [])[:]:
            self._drop(former)

    def answering(self, own: str, reflects: int) -> Iterator[tuple[str, str]]:
        """(profile, text) of those that answer a message that was cut on its way to ``own``."""
        if not self._untold and reflects >= self._last.get(own, 0):
            return
        for former in reversed(self._kept.values()):
            until = None if former.until is None else former.until.get(own, 0)
            if until is not None and 0 < until <= reflects:
                return  # and so had all before it
            if until != 0 and former.since.get(own, 0) <= reflects:
                yield former.profile, former.text

    def report(self, said: statistics.Transformation) -> None:
        said.former_versions, said.former_versions_forgotten = len(self._kept), self._forgotten

    def _add(self, former: _Former) -> None:
        self._number = former.number
        self._kept[former.number] = former
        self._of.setdefault(former.profile, []).append(former)
        self._length += len(former.text)

    def _note_last(self, numbers: Mapping[str, int]) -> None:
        for own, number in numbers.items():
            self._last[own] = max(number, self._last.get(own, 0))

    def _drop(self, former: _Former) -> None:
        del self._kept[former.number]
        self._length -= len(former.text)
        self._of[former.profile].remove(former)
        if not self._of[former.profile]:
            del self._of[former.profile]
        if self._untold.get(former.profile) is former:
            del self._untold[former.profile]
        if former.until is not None:
            FORMER.delete(self._rows, _row_key(former))


def _row_key(former: _Former) -> str:
    return number_key(former.number)


# -------------------------------------------------------------------------------------------------


PORTION = 100  # profiles looked at in one call


@dataclass(frozen=True, slots=True)
class Cut:
    """A message as it goes to a child: whole or less, and what that reflects."""

    parcel: Parcel
    reflects: int


class _NeedRow(Row, frozen=True):
    branch: str
    link: str
    need: str


class _ToldRow(Row, frozen=True):
    branch: str
    need: str


class _PartsRow(Row, frozen=True):
    """Its being there says that links make parts."""


NEEDS = Table("need", _NeedRow)
NEEDS_TOLD = Table("need-told", _ToldRow)
PARTS = Table("needs-parts", _PartsRow)
SINCE = Table("need-since", dict[str, int])


class _Weighed(Sent):
    """``weight`` of what was sent, and what would have been sent whole beyond that."""

    weight: int = 0
    weight_saved: int = 0


class Transformation(Part):
    """The needs of one broker, and what is done about them."""

    def __init__(
        self, context: CoreContext, control: ControlPlane, matcher: Matcher, hosted: HostedProfiles
    ) -> None:
        """``matcher``: it is told of the needs of links, and leaves the rest out."""
        self._hosted = hosted
        self._control = control
        self._matcher = matcher
        seconds = context.limits.evaluation_ms_max / 1000  # for a former text
        self._evaluation = replace(matcher.limits.evaluation, seconds_max=seconds)
        self._links = context.links
        self._rows = rows = context.rows
        self.is_on = self._has_parts = False
        self.table = NeedsTable(matcher, control.topology.limits.needs_max_bytes)
        self._reflection = Reflection(rows)
        self._needs: dict[str, tuple[Need, ...]] = {}  # by profile here
        # By profile: its changes' numbers, by own branch.
        self._since = StoredMap(rows, SINCE)
        self._former = FormerVersions(rows)
        self._placed: dict[str, None] = {}  # profiles whose needs are not told yet
        self._to_look_at: dict[str, None] = {}  # profiles that came when links did less
        self._needs_everything = False
        self._arrived: list[tuple[Branch, int]] = []  # children's changes not told yet
        self._removals: dict[tuple[str, str], int] = {}  # by child and branch: the last change
        # that took a need back; after a restart the last of all
        self._not_reflected = 0
        self._by_link: dict[str, _Weighed] = {}

    def take_limits(self, limits: Limits) -> None:
        seconds = limits.evaluation_ms_max / 1000
        self._evaluation = replace(self._evaluation, seconds_max=seconds)

    # --- query plane ----------------------------------------------------------------------

    def frames(self) -> Iterable[Taker]:
        yield takes(NeedsDelta, "child", self._handle_delta)

    def restore_needs(self, rows: StoredRows) -> None:
        """What was told and what children have said; the trees must be open, local profiles come
        after that, and then ``settle``.  To be called at every start."""
        self._set_modes()
        self.is_on = self._control.shapes.newest.declared.transforms
        self._has_parts = any(rows.take(PARTS))
        self._find_parts()
        if not self.is_on:
            self._need_everything()
        self._reflection.restore(rows)
        self._former.restore(rows)
        for _, told in rows.take(NEEDS_TOLD):
            own = self._control.branch(told.branch)
            assert own is not None
            self.table.keep_own(own)
            self.table.restore_told(told.branch, Need.parse(told.need))
        for child, name in self._reflection.heard():
            branch = self._control.branch_of(child, name)
            self.table.keep_child(branch)
            self.table.change_child(branch, (), (EVERYTHING,))
            self._removals[child, name] = self._reflection.come(child, name) or NOTHING
        for _, row in rows.take(NEEDS):
            branch = self._control.branch_of(row.link, row.branch)
            self.table.change_child(branch, (Need.parse(row.need),), ())
        self.flush_soon()

    def use_shape(self) -> None:
        """A shape has come, with links that may do more to messages than before."""
        self._set_modes()
        begins = self._control.shapes.newest.declared.transforms and not self.is_on
        if self._find_parts() or begins:
            self.is_on = True
            self._to_look_at = dict.fromkeys(self._hosted)
            self.work_soon()

    def work(self) -> None:
        """Go on with profiles of which it is not known yet what they need.  Until the last one is
        through, everything was needed: so messages need not reflect it."""
        for profile in list(islice(self._to_look_at, PORTION)):
            del self._to_look_at[profile]
            if profile in self._hosted:
                self._change(profile, parse_accepted(self._hosted[profile].text))
        if not self._to_look_at and self._needs_everything:
            self.table.change_local((), (EVERYTHING,))
            self._needs_everything = False
        self.flush_soon()
        if self._to_look_at:
            self.work_soon()

    def settle(self) -> None:
        """All local profiles are there.  They were told before the restart: one that messages had
        to reflect nothing for goes on so, whatever is told of it otherwise from now on."""
        self._placed.clear()

    def open_tree(self, root: str) -> None:
        below = self._control.branches_below(root)
        self.table.open_tree(root, self._control.branch(root), below)
        for branch in below:  # whose changes may now have another way up
            number = self._reflection.come(branch.broker, branch.name)
            if number is not None:
                self._arrived.append((branch, number))
        self.flush_soon()

    def forget_closed(self) -> None:
        """No broker needs what was told on trees that have ended."""
        self.flush_soon()
        _, told, needed = self.table.forget_dead(self._control.shapes.is_alive)
        below = {(branch.broker, branch.name) for branch in needed}
        self._reflection.forget(told, below)
        for each in below:
            self._removals.pop(each, None)
        for own, needs in told.items():
            for need in needs:
                NEEDS_TOLD.delete(self._rows, row_key(own, "", need.text))
        for branch, needs in needed.items():
            for need in needs:
                NEEDS.delete(self._rows, row_key(branch.name, branch.broker, need.text))
        for profile, numbers in list(self._since.items()):
            if not told.keys().isdisjoint(numbers):
                left = {own: number for own, number in numbers.items() if own not in told}
                self._since[profile] = left

    def place(self, profile: str, parsed: Profile, former: str | None = None) -> None:
        """A profile of this broker comes, or has a new text, and had another one."""
        if former is not None and profile not in self._placed:
            self._former.keep(profile, former, self._since.get(profile, {}))
        if self.is_on:
            self._change(profile, parsed)
        self._placed[profile] = None
        self.flush_soon()

    def remove(self, profile: str) -> None:
        self.table.change_local((), self._needs.pop(profile, ()))
        self._placed.pop(profile, None)
        self._former.forget(profile)
        self.flush_soon()
        self._since.pop(profile)

    def _handle_delta(self, frame: NeedsDelta, arrival: Arrival) -> None:
        """A child's needs change."""
        self.flush_soon()
        try:
            self._take_delta(frame, arrival.sender)
        except KeyError:
            raise FrameRefused("unknown-root") from None
        except ProfileRefused as refusal:
            raise FrameRefused("needs-refused", str(refusal)) from refusal

    def _take_delta(self, frame: NeedsDelta, child: str) -> None:
        """ProfileRefused when they are none, KeyError when no open tree has the branch."""
        branch = self._control.branch_of(child, frame.root)
        delta = NeedDelta(
            tuple(map(Need.parse, frame.added)), tuple(map(Need.parse, frame.removed))
        )
        is_first = self._reflection.come(child, branch.name) is None
        if is_first and all(branch != other for other, _ in self._arrived):
            # Until it says that it does not need everything.
            delta = replace(delta, added=(EVERYTHING, *delta.added))
        self.table.change_child(branch, delta.added, delta.removed)
        self._arrived.append((branch, frame.number))
        if delta.removed:
            self._removals[child, branch.name] = frame.number
        for need in delta.added:
            row = _NeedRow(branch.name, child, need.text)
            NEEDS.put(self._rows, row_key(branch.name, child, need.text), row)
        for need in delta.removed:
            NEEDS.delete(self._rows, row_key(branch.name, child, need.text))

    def flush(self) -> None:
        """Tell the parents what has changed since the last time."""
        if self.table.is_changed:
            news = self.table.take()
            for own in self.table.own_branches:
                if self._reflection.last(own) == NOTHING:
                    self._send_first(own)
                elif own in news:
                    self._send_up(own, news[own])
        for branch, number in self._arrived:
            carriers = self.table.carriers(branch)
            self._reflection.carry(branch.broker, branch.name, number, carriers)
        self._arrived.clear()
        if self._placed:
            last = {own: self._reflection.last(own) for own in self.table.own_branches}
            numbers = {own: number for own, number in last.items() if number != NOTHING}
            for profile in self._placed:
                self._former.told(profile, numbers)
                if numbers or profile in self._since:
                    self._since[profile] = numbers
            self._placed.clear()

    def taking_part(self, parcel: Parcel, matches: Iterable[Match]) -> Iterator[Match]:
        """The matches of profiles here without those of which a message may lack something; where
        it has what the profile's former text needs, that answers in its place."""
        own = self._lacking(parcel)
        if own is None:
            yield from matches
            return
        for match in matches:
            if not isinstance(match, ProfileMatch) or self._is_reflected(
                match.profile_id, own.name, parcel
            ):
                yield match
        for _, _, matcher in self._by_former(parcel):
            for match in matcher.match(parcel.readings):
                if isinstance(match, ProfileMatch):
                    yield match

    def takes_part(self, parcel: Parcel) -> Callable[[str], bool] | None:
        """Whether a message lacks nothing that a profile needs; None where none lacks anything."""
        own = self._lacking(parcel)
        if own is None:
            return None
        name = own.name

        def is_reflected(profile: str) -> bool:
            reflected = self._is_reflected(profile, name, parcel)
            self._not_reflected += not reflected
            return reflected

        return is_reflected

    def answered_by_former(self, parcel: Parcel) -> Iterator[tuple[str, str, Delivered]]:
        """(profile, its former text, what it gets) where a message lacks something that a profile
        needs, and has what its former text needs."""
        for profile, text, matcher in self._by_former(parcel):
            for delivered in matcher.deliver(parcel.readings):
                yield profile, text, delivered

    # --- data plane -----------------------------------------------------------------------

    def cuts(
        self, parcel: Parcel, links: Iterable[str], left: Mapping[str, ElementStream]
    ) -> Mapping[str, Cut]:
        """The message as each of these children gets it, with what the matcher has ``left`` of it;
        those that need the same of it share that, and its bytes.

        One that was cut already, before a child's last removal was known there, is not cut further
        for that child: it may lack what was added with that, so former texts answer it, which need
        what was removed."""
        made: dict[object, Parcel] = {parcel.stream: parcel}
        cuts = {}
        for link in links:
            stream = left.get(link, parcel.stream)
            if parcel.reflects != WHOLE and stream is not parcel.stream:
                removal = self._removals.get((link, self._branch_below(parcel, link)), NOTHING)
                if self._reflected(parcel, link) < removal:
                    stream = parcel.stream
            cut = made.get(stream)
            if cut is None:
                cut = made[stream] = self._cut(parcel, stream, made)
            is_whole = cut is parcel and parcel.reflects == WHOLE
            cuts[link] = Cut(cut, WHOLE if is_whole else self._reflected(parcel, link))
        return cuts

    def note_sent(self, parcel: Parcel, link: str, cut: Cut, sent_bytes: int) -> None:
        """Count what was sent and what a cut has saved, which is weighed, not written."""
        if not self.is_on:
            return
        weighed = self._by_link.setdefault(link, _Weighed())
        weighed.messages += 1
        weighed.bytes += sent_bytes
        weighed.weight += _weight(cut.parcel.stream)
        if cut.parcel is not parcel:
            weighed.cut += 1
            weighed.weight_saved += _weight(parcel.stream) - _weight(cut.parcel.stream)

    def sent(self, link: str) -> Sent:
        """What was sent over a link."""
        weighed = self._by_link.get(link, _Weighed())
        saved = int(min(1.0, weighed.bytes / max(1, weighed.weight)) * weighed.weight_saved)
        return Sent(weighed.messages, weighed.cut, weighed.bytes, saved)

    def statistics(self) -> statistics.Transformation:
        said = statistics.Transformation(self.is_on)
        if self.is_on:
            self.table.report(said)
            self._former.report(said)
            said.not_reflected = self._not_reflected
            said.links = {link: self.sent(link) for link in self._by_link}
        return said

    def _find_parts(self) -> bool:
        """Whether links make parts from now on; once for good, as messages with parts may be on
        their way when no link makes them any more."""
        links = self._control.shapes.newest.declared.links
        begins = not self._has_parts and any(link.transformation is Mode.FULL for link in links)
        if begins:
            self._has_parts = True
            PARTS.put(self._rows, "asked-for", _PartsRow())
        return begins

    def _need_everything(self) -> None:
        self._needs_everything = True
        self.table.change_local((EVERYTHING,), ())

    def _change(self, profile: str, parsed: Profile) -> None:
        needs = part_needs_of(parsed) if self._has_parts else needs_of(parsed)
        self.table.change_local(needs, self._needs.get(profile, ()))
        self._needs[profile] = needs

    def _is_reflected(self, profile: str, own: str, parcel: Parcel) -> bool:
        since = self._since.get(profile, {}).get(own, NOTHING)
        return profile not in self._placed and since <= parcel.reflects

    def _lacking(self, parcel: Parcel) -> Branch | None:
        """The own branch on whose tree a message was cut; None where profiles here lack nothing."""
        return None if parcel.reflects == WHOLE else self._control.branch(parcel.root)

    def _by_former(self, parcel: Parcel) -> Iterator[tuple[str, str, Matcher]]:
        """Profiles, each with its former text and a matcher that holds it alone."""
        own = self._lacking(parcel)
        if own is None:
            return
        for profile, text in self._former.answering(own.name, parcel.reflects):
            matcher = Matcher(MatchLimits(lazy_bytes_max=4096, evaluation=self._evaluation))
            matcher.add(text, profile)
            yield profile, text, matcher

    def _cut(self, parcel: Parcel, stream: ElementStream, made: dict[object, Parcel]) -> Parcel:
        """With what is left of it, if that is not the same as for somebody else who keeps other
        elements; ``made`` is what others get, by stream and by values."""
        values = len(stream), stream.attribute_values, stream.content_values
        other = made.get(values)
        if other is not None and _is_same(stream, other.stream):
            return other
        cut = made[values] = parcel.cut(stream)
        return cut

    def _set_modes(self) -> None:
        """What is done to the messages of each link, as the newest shape says."""
        here = self._control.identity
        for link in self._control.shapes.neighbours():
            mode = self._control.shapes.link(here, link).transformation
            self._matcher.set_transforming(link, _TRANSFORMING[mode])

    def _reflected(self, parcel: Parcel, link: str) -> int:
        own = self._control.branch(parcel.root)
        name = None if own is None else own.name
        below = self._branch_below(parcel, link)
        return self._reflection.reflected(name, link, below, parcel.reflects)

    def _branch_below(self, parcel: Parcel, link: str) -> str:
        return self._control.branch_of(link, parcel.root).name

    def _send_first(self, own: str) -> None:
        """As long as this broker says nothing, its parent takes it to need everything."""
        told = self.table.told_about(own)
        if EVERYTHING not in told:
            added = sorted(told, key=attrgetter("text"))
            self._send_up(own, NeedDelta(tuple(added), (EVERYTHING,)))

    def _send_up(self, own: str, delta: NeedDelta) -> None:
        parent = self._control.parent(own)
        for added, removed in delta_portions(_texts(delta.added), _texts(delta.removed)):
            frame = NeedsDelta(
                root=own, number=self._reflection.next(own), added=added, removed=removed
            )
            self._links.send(f"broker/{parent}", own, frame)
        for need in delta.added:
            row = _ToldRow(own, need.text)
            NEEDS_TOLD.put(self._rows, row_key(own, "", need.text), row)
        for need in delta.removed:
            NEEDS_TOLD.delete(self._rows, row_key(own, "", need.text))


_TRANSFORMING = {
    Mode.OFF: Transforming.NOT,
    Mode.PROJECTION: Transforming.CUTTING,
    Mode.FULL: Transforming.RESTRUCTURING,
}


def _texts(needs: Iterable[Need]) -> Iterator[str]:
    return (need.text for need in needs)


def _is_same(one: ElementStream, other: ElementStream) -> bool:
    """Of what is left of one message."""
    return (
        one.names == other.names
        and one.element_name == other.element_name
        and one.element_parent == other.element_parent
        and one.attribute_start == other.attribute_start
        and one.content_parent == other.content_parent
        and one.attribute_values == other.attribute_values
        and one.content_values == other.content_values
        and one.attribute_name == other.attribute_name
        and one.content_next == other.content_next
        and one.pieces == other.pieces
    )


def _weight(stream: ElementStream) -> int:
    """About what a message has in bytes as binary, less its names."""
    values = len(stream.attribute_values) + len(stream.content_values)
    values += sum(map(len, stream.pieces.values()))
    return values + 3 * len(stream) + 2 * len(stream.attribute_name)
