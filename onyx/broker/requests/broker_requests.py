"""What users and operators may ask of a broker: one verb, one function.

Changes to a profile go straight to its host broker (section 3.1 of the paper).  A request is
answered once its effect is durable; with ``wait`` once it is live on every tree, or ``timeout``
seconds later with ``live`` false and the brokers that are ``missing``.  Of many profiles in one
request the last one is waited for: what was changed before it is live before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from formats.errors import Refusal
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.moves.releases import moved_detail
from onyx.broker.network.taxonomies import Taxonomies
from onyx.broker.profiles.live_wait import LiveVersion, LiveWaits
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.users.policy_changes import PolicyChanges
from overlay import answers, verbs
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import Request
from overlay.link.part import Hearer, Part, Taker, hears, takes
from overlay.link.request_server import (
    RequestRefused,
    Verb,
    alone,
    check_length,
)
from yfilter.errors import ProfileRefused
from yfilter.matcher import check_profile

# -------------------------------------------------------------------------------------------------
# LiveRequests: users who wait at a host broker until a version of a profile is live.
#
# A wait may have a deadline.  Who has waited in vain is told which brokers have not got the change
# yet; it goes on its way all the same.


Answer = Callable[[int, str, answers.Waited], None]
W = TypeVar("W", bound=answers.Waited)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """``result`` is what is answered, but for whether it is live."""

    connection: int
    request: str
    result: answers.Waited
    profile: str
    version: int
    deadline: float


class LiveRequests:
    """Requests with ``wait``, and perhaps ``timeout`` in seconds."""

    def __init__(self, waits: LiveWaits, answer: Answer, now: Callable[[], float]) -> None:
        self._now = now
        self._waits = waits
        self._answer = answer
        self._waiting: dict[tuple[str, int], list[_Waiting]] = {}  # by profile and version
        self._next_deadline = inf  # no later than any deadline

    def tick(self, now: float) -> None:
        """Time goes on: answer those who have waited long enough."""
        if now < self._next_deadline:
            return
        every = [waiting for some in self._waiting.values() for waiting in some]
        self._keep(lambda waiting: waiting.deadline > now)
        self._next_deadline = min((w.deadline for w in every if w.deadline > now), default=inf)
        for waiting in every:
            if waiting.deadline <= now:
                missing = sorted(self._waits.missing(waiting.profile, waiting.version))
                result = replace(waiting.result, live=not missing, missing=tuple(missing))
                self._answer(waiting.connection, waiting.request, result)

    def wait(
        self,
        connection: int,
        request: Request,
        asked: verbs.Waits,
        result: W,
        live: LiveVersion,
    ) -> W | None:
        """The answer to a request about a version if it can be given at once; else it comes when
        the version is live, or the time is over."""
        profile, version = live.profile, live.version
        deadline = self._now() + (inf if asked.timeout is UNSET else asked.timeout)
        is_live = not self._waits.missing(profile, version)
        if is_live or not asked.wait:
            return replace(result, live=is_live)
        waiting = _Waiting(connection, request.request, result, profile, version, deadline)
        self._waiting.setdefault((profile, version), []).append(waiting)
        self._next_deadline = min(self._next_deadline, deadline)
        return None

    def answer_live(self, live: LiveVersion) -> None:
        """A version of a profile is live: tell those who wait."""
        for waiting in self._waiting.pop((live.profile, live.version), ()):
            result = replace(waiting.result, live=True)
            self._answer(waiting.connection, waiting.request, result)

    def forget(self, connection: int) -> None:
        """A connection is gone; nobody waits on it any more."""
        self._keep(lambda waiting: waiting.connection != connection)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _keep(self, condition: Callable[[_Waiting], bool]) -> None:
        kept = {key: list(filter(condition, some)) for key, some in self._waiting.items()}
        self._waiting = {key: some for key, some in kept.items() if some}


# -------------------------------------------------------------------------------------------------


ROUTING_SHOWN = 50  # disjuncts of the routing query of a link on a tree
CHANGING = frozenset(
    kind.verb
    for kind in (
        verbs.ProfileUpdate,
        verbs.ProfileRemove,
        verbs.ProfileUpdateMany,
        verbs.ProfileRemoveMany,
    )
)
"""Verbs that deliver what came before them, and change the engine, ahead of the store."""


class BrokerRequests(Part):
    """Answers requests with what the planes say."""

    def __init__(
        self,
        context: CoreContext,
        query: QueryPlane,
        moves: ProfileMoves,
        taxonomies: Taxonomies,
        policies: PolicyChanges,
        data: DataPlane,
    ) -> None:
        self._data = data
        self._query = query
        self._moves = moves
        self._taxonomies = taxonomies
        self._policies = policies
        self._limits = context.limits
        self._server = context.server
        self.verbs = (
            Verb(verbs.Sync, alone(self._sync)),
            Verb(verbs.Dump, alone(self._dump)),
            Verb(verbs.RoutingShow, alone(self._show_routing)),
            Verb(verbs.HostedList, alone(self._list_profiles)),
            Verb(verbs.HostedShow, alone(self._show_profile), query.profiles.named_in),
            Verb(verbs.ProfileUpdate, self._update_profile, query.profiles.named_in),
            Verb(verbs.ProfileRemove, self._remove_profile, query.profiles.named_in),
            Verb(verbs.ProfileUpdateMany, self._update_many, query.profiles.named_in),
            Verb(verbs.ProfileRemoveMany, self._remove_many, query.profiles.named_in),
            Verb(verbs.ProfilePolicy, alone(self._policy), query.profiles.named_in),
            Verb(verbs.ProfileLive, self._await_live, query.profiles.named_in),
        )
        self._live = LiveRequests(query.waits, self._server.answer, self._now)

    def events(self) -> Iterable[Hearer]:
        yield hears(LiveVersion, self._live.answer_live)

    def frames(self) -> Iterable[Taker]:
        yield takes(
            *(Request, "client source subscriber", self._handle_request),
            is_aside=True,
            right=Right.KNOWN,  # each verb says what it takes
        )

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits

    def tick(self, now: float) -> None:
        self._live.tick(now)

    def gone(self, arrival: Arrival) -> None:
        self._live.forget(arrival.connection)

    def _handle_request(self, request: Request, arrival: Arrival) -> None:
        self._server.handle(arrival.connection, request)

    def _now(self) -> float:
        return 0.0 if self.agenda is None else self.agenda.now

    # --- verbs ----------------------------------------------------------------------------

    def _sync(self, asked: verbs.Sync) -> answers.Done:
        """The answer itself says it: all that came before on this connection is on disk."""
        return answers.Done()

    def _dump(self, asked: verbs.Dump) -> answers.BrokerDump:
        return answers.BrokerDump(self._query.matcher.dump(), self._query.table.dump())

    def _show_routing(self, asked: verbs.RoutingShow) -> answers.LinkRouting:
        link = asked.link
        trees = []
        for tree in sorted(self._query.table.roots):
            if self._query.table.behind(tree, link) is not None:
                wanted = self._query.table.wanted(tree, link)
                first = [str(each) for each in islice(wanted, ROUTING_SHOWN)]
                trees.append(answers.TreeRouting(tree, len(wanted), first))
        return answers.LinkRouting(link, trees)

    def _list_profiles(self, asked: verbs.HostedList) -> answers.HostedIds:
        return answers.HostedIds(sorted(self._query.profiles))

    def _show_profile(self, asked: verbs.HostedShow) -> answers.HostedProfile:
        profile = self._here(asked.profile)
        hosted = self._query.profiles[profile]
        return answers.HostedProfile(
            profile=profile,
            user=hosted.user,
            version=hosted.version,
            text=hosted.text,
            suspended=self._query.profiles.suspended.get(profile, ""),
            routing_query=[str(disjunct) for disjunct in hosted.disjuncts],
        )

    def _update_profile(
        self, connection: int, request: Request, asked: verbs.ProfileUpdate
    ) -> answers.ProfileVersion | None:
        profile = self._here(asked.profile)
        check_length(asked.verb, asked.text, self._limits.profile_length_max)
        parsed = check_profile(self._taxonomies.said_in(asked.text))
        self._data.finish()
        changed = self._query.update(profile, parsed)
        result = answers.ProfileVersion(profile=profile, version=changed.version)
        return self._live.wait(connection, request, asked, result, changed)

    def _remove_profile(
        self, connection: int, request: Request, asked: verbs.ProfileRemove
    ) -> answers.ProfileGone | None:
        profile = self._here(asked.profile)
        self._data.finish()
        gone = self._query.remove(profile)
        result = answers.ProfileGone(profile=profile)
        return self._live.wait(connection, request, asked, result, gone)

    def _update_many(
        self, connection: int, request: Request, asked: verbs.ProfileUpdateMany
    ) -> answers.ProfilesChanged | None:
        """``versions`` of each of ``profiles``, 0 for one that is ``refused``; a text that it has
        already changes nothing, so that a repeated request does not either.  While one of
        ``texts`` is refused nothing is changed, unless ``skip_refused`` is said."""
        profiles, texts = asked.profiles, asked.texts
        for text in texts:
            check_length(asked.verb, text, self._limits.profile_length_max)
        if len(texts) != len(profiles):
            raise RequestRefused(
                "bad-argument",
                f"{request.verb}: {len(texts)} 'texts' for {len(profiles)} 'profiles'",
            )
        refused: list[tuple[int, str, str]] = []
        changes = []
        versions = []
        is_bad = False
        for place, (profile, wanted) in enumerate(zip(profiles, texts, strict=True)):
            hosted = self._query.profiles.get(profile)
            versions.append(0 if hosted is None else hosted.version)
            try:
                self._check_here(profile)
                is_suspended = profile in self._query.profiles.suspended
                text = self._taxonomies.said_in(wanted)
                if hosted is not None and (hosted.text != text or is_suspended):
                    changes.append((place, profile, check_profile(text)))
            except Refusal as refusal:
                versions[-1] = 0
                is_bad = is_bad or isinstance(refusal, ProfileRefused)
                refused.append((place, *refusal.said()))
        if is_bad and not asked.skip_refused:
            changes, versions = [], [0] * len(profiles)
        self._data.finish()
        changed = self._query.update_all([(profile, parsed) for _, profile, parsed in changes])
        for (place, _, _), live in zip(changes, changed, strict=True):
            versions[place] = live.version
        result = answers.ProfilesChanged(versions=versions, refused=refused)
        return (
            self._live.wait(connection, request, asked, result, changed[-1]) if changed else result
        )

    def _remove_many(
        self, connection: int, request: Request, asked: verbs.ProfileRemoveMany
    ) -> answers.ProfilesChanged | None:
        """All of ``profiles`` but those that are ``refused``, because they are not here."""
        profiles = asked.profiles
        refused: list[tuple[int, str, str]] = []
        going: dict[str, None] = {}
        for place, profile in enumerate(profiles):
            try:
                self._check_here(profile)
                going[profile] = None
            except RequestRefused as refusal:
                refused.append((place, *refusal.said()))
        self._data.finish()
        gone = self._query.remove_all(list(going))
        result = answers.ProfilesChanged(refused=refused)
        return self._live.wait(connection, request, asked, result, gone[-1]) if gone else result

    def _policy(self, asked: verbs.ProfilePolicy) -> answers.PolicyInfo:
        """How a profile is kept; from now on by ``policy``, if that is said."""
        profile = self._here(asked.profile)
        if asked.policy is not UNSET:
            self._policies.change(profile, asked.policy)
        return answers.PolicyInfo(profile, self._policies.of(profile))

    def _await_live(
        self, connection: int, request: Request, asked: verbs.ProfileLive
    ) -> answers.ProfileVersion | None:
        profile = self._here(asked.profile)
        version = self._query.profiles[profile].version
        result = answers.ProfileVersion(profile=profile, version=version)
        return self._live.wait(connection, request, asked, result, LiveVersion(profile, version))

    def _here(self, profile: str) -> str:
        self._check_here(profile)
        return profile

    def _check_here(self, profile: str) -> None:
        if profile in self._moves:
            raise RequestRefused("moved", moved_detail(profile))
        if profile not in self._query.profiles:
            raise RequestRefused("unknown-profile", f"this broker does not host {profile!r}")
