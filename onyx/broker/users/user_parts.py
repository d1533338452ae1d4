"""UserParts: who takes results, and what their profiles may cost and leave behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import partial
from heapq import nlargest
from math import inf
from operator import itemgetter

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.moves.releases import moved_detail
from onyx.broker.network.access_rules import AccessRules
from onyx.broker.network.network_parts import NetworkParts
from onyx.broker.processor_accounts import Account, Accounts
from onyx.broker.profiles.hosted_profiles import HostedProfiles, OverBudget
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.users.policy_changes import PolicyChanges
from overlay import answers, verbs
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import Attach, Rejected, Request, Taken
from overlay.link.part import Part, Taker, takes
from overlay.link.request_server import RequestRefused, Verb, alone
from overlay.state_table import StateMachine, StateTable
from overlay.statistics import BrokerStatistics
from yfilter.matcher import Matcher

# -------------------------------------------------------------------------------------------------
# Subscribers: what the connections of users who take results say.


class Subscribers(Part):
    """Hands it to the mailboxes."""

    def __init__(
        self,
        context: CoreContext,
        mailboxes: Mailboxes,
        query: QueryPlane,
        moves: ProfileMoves,
        access: AccessRules,
    ) -> None:
        self._access = access
        self._identity = context.identity
        self._server = context.server
        self._mailboxes = mailboxes
        self._query = query
        self._moves = moves
        named_in = query.profiles.named_in
        self.verbs = (
            Verb(verbs.ProfilePositions, self._positions, named_in),
            Verb(verbs.ProfileWaiting, self._waiting, named_in),
        )

    def frames(self) -> Iterable[Taker]:
        yield takes(*(Attach, "subscriber", self._handle_attach), is_aside=True, right=Right.OWN)
        yield takes(*(Taken, "subscriber", self._handle_taken), is_aside=True, right=Right.OWN)
        reject = self._handle_rejected
        yield takes(*(Rejected, "subscriber", reject), is_aside=True, right=Right.OWN)

    def gone(self, arrival: Arrival) -> None:
        self._mailboxes.close(arrival.connection)

    def _handle_attach(self, frame: Attach, arrival: Arrival) -> None:
        refusal = partial(self._not_taken_here, arrival.connection)
        self._mailboxes.attach(arrival.connection, frame, refusal)

    def _not_taken_here(self, connection: int, profile: str) -> tuple[str, str] | None:
        """Why the results of a profile are not to be had from this broker; None if they are."""
        hosted = self._query.profiles.get(profile)
        if hosted is not None and not self._access.takes(connection, profile, hosted.user):
            return "not-authorised", f"profile {profile!r} is another user's"
        if self._moves.sends_on(profile):
            return "moved", moved_detail(profile)
        if hosted is None:
            return "unknown-profile", f"{self._identity} is not the host broker of {profile!r}"
        return None

    def _positions(
        self, connection: int, request: Request, asked: verbs.ProfilePositions
    ) -> answers.Positions:
        """Of those that are to be had here, when what was released is gone."""
        if len(asked.released) not in (0, len(asked.profiles)):
            detail = f"{len(asked.released)} 'released' for {len(asked.profiles)} 'profiles'"
            raise RequestRefused("bad-argument", f"{request.verb}: {detail}")
        said, refused = [], []
        for place, profile in enumerate(asked.profiles):
            refusal = self._not_taken_here(connection, profile)
            if refusal is None and asked.released:
                refusal = self._mailboxes.release(profile, asked.released[place])
            if refusal is not None:
                refused.append((place, *refusal))
                continue
            box = self._mailboxes.claim(profile)
            said.append(answers.Position(profile, box.bottom, box.last, box.lost))
        return answers.Positions(said, refused)

    def _waiting(
        self, connection: int, request: Request, asked: verbs.ProfileWaiting
    ) -> answers.WaitingPage | None:
        if (refusal := self._not_taken_here(connection, asked.profile)) is not None:
            raise RequestRefused(*refusal)
        again = partial(self._server.handle, connection, request)
        return self._mailboxes.page(asked.profile, asked.after, asked.through, connection, again)

    def _handle_taken(self, frame: Taken, arrival: Arrival) -> None:
        self._mailboxes.take(arrival.connection, frame)

    def _handle_rejected(self, frame: Rejected, arrival: Arrival) -> None:
        self._mailboxes.reject(arrival.connection, frame)


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# UnclaimedProfiles: profiles whose results nobody has ever come for go, after a long time.
#
# Somebody who adds a profile and never learns its id, since the answer was lost and they did not
# ask again, cannot take its results or remove it.  It would cost the network for ever.
#
# A profile is *claimed* for good when a connection attaches to it, when its user asks for its
# position, and when it is changed.


LOOKED_AT_ONCE = 2_000  # profiles; then others have their turn
ROUNDS = 64  # in the time that a profile may be unclaimed


class UnclaimedProfiles(Part):
    """Removes them from their host broker, as their users would."""

    def __init__(
        self, context: CoreContext, query: QueryPlane, mailboxes: Mailboxes, moves: ProfileMoves
    ) -> None:
        self._query = query
        self._mailboxes = mailboxes
        self._moves = moves
        self._age_s_max = context.limits.unclaimed_profile_s_max  # 0: for ever
        self._wall = context.wall
        self._say = context.say
        self._left: list[str] = []  # to be looked at in this round
        self._next_round = 0.0
        self._removed = 0

    def take_limits(self, limits: Limits) -> None:
        self._age_s_max = limits.unclaimed_profile_s_max

    def tick(self, now: float) -> None:
        wall = self._wall()
        if self._age_s_max and not self._left and wall >= self._next_round:
            self._next_round = wall + self._age_s_max / ROUNDS
            self._left = list(self._query.profiles)
            self.work_soon()

    def work(self) -> None:
        """Look at some; those that move are looked at when they have come."""
        some = self._left[-LOOKED_AT_ONCE:]
        del self._left[-LOOKED_AT_ONCE:]
        before = self._wall() - self._age_s_max
        gone = [
            profile
            for profile in some
            if (hosted := self._query.profiles.get(profile)) is not None
            and 0 < hosted.unclaimed_since <= before
            and profile not in self._moves
            and not self._mailboxes.box(profile).is_claimed
        ]
        if gone:
            self._query.remove_all(gone)
            self._removed += len(gone)
            self._say(
                f"removed {len(gone)} profiles whose results nobody has come for in "
                f"{self._age_s_max} s: {', '.join(gone[:10])}{' ...' * (len(gone) > 10)}"
            )
        if self._left:
            self.work_soon()

    def report(self, said: BrokerStatistics) -> None:
        said.query.unclaimed_removed = self._removed


# -------------------------------------------------------------------------------------------------
# UserBudgets: what the evaluation of a user's profiles may cost, over all their messages.
#
# What a profile takes of a message is bounded, but there are many messages.  Each user has an
# account of processor time, which fills up steadily, to what they may spend at once, and is charged
# with all that their profiles take here.  Whoever has spent half of it is *slowed*: their profiles
# may take less of each message, the less there is.  Whoever has spent all of it loses the profile
# that has taken most: it is suspended.  Both are told by a delivery that waits for them as any
# other.


DEAREST_MAX = 100
COUNTED_SECONDS = 0.001  # what profiles have taken that is not late is charged in so much at least
SHARES = ((0.5, 1.0), (0.75, 0.5), (inf, 0.2))
"""(of whose account less is spent, how much of what is allowed a profile may take of a message)."""


class AccountState(StrEnum):
    LIVE = "live"
    SLOWED = "slowed"


class AccountEvent(StrEnum):
    HALF = "half is spent"
    SPENT = "all is spent"
    FILLED = "it has filled up"


class _Account(Account):
    """``by``: which profiles have spent since it was full."""

    __slots__ = ("by", "is_slowed", "last")

    def __init__(self, at: float) -> None:
        super().__init__(at)
        self.by: defaultdict[str, float] = defaultdict(float)
        self.last = "", 0  # the message that was charged last
        self.is_slowed = False


class UserBudgets(Part, StateMachine[str, AccountState, AccountEvent]):
    """Is told what profiles have ``spent``; ``seconds_for`` says what one may take."""

    def __init__(self, context: CoreContext, profiles: HostedProfiles, matcher: Matcher) -> None:
        self._profiles = profiles
        self._matcher = matcher
        self._for_message = context.limits.evaluation_ms_max / 1000  # seconds of a profile
        by_user = context.limits.principal_processor_ms_s_max / 1000
        self._accounts = Accounts(_Account, by_user)
        self._told: dict[str, OverBudget] = {}  # by profile
        self.verbs = (Verb(verbs.ProfileDearest, alone(self._show_dearest)),)

    def take_limits(self, limits: Limits) -> None:
        self._accounts.per_second = limits.principal_processor_ms_s_max / 1000
        self._for_message = limits.evaluation_ms_max / 1000

    # --- the table ------------------------------------------------------------------------

    def _slow(self, user: str) -> None:
        why = (
            f"the profiles of {_named(user)} have spent half of the {self._most:g} s of processor "
            f"time that may be saved, where {self._per_second_ms:g} ms a second are allowed: "
            "they may take less of each message until they have taken less for a while"
        )
        self._tell(self._worst(user), "slowed", why)

    def _suspend(self, user: str) -> None:
        account, profile = self._accounts.by_name[user], self._worst(user)
        why = (
            f"the profile is suspended until it is updated: of what {_named(user)} has spent it "
            f"has taken most, {account.by[profile]:.2g} of {self._most:g} s of processor time, "
            f"where {self._per_second_ms:g} ms a second are allowed"
        )
        account.spent = max(0.0, account.spent - account.by.pop(profile))
        self._tell(profile, "suspended", why)

    def _let_go(self, user: str) -> None:
        """They are charged as everybody else."""

    steps = StateTable(
        AccountState.LIVE,
        {
            (AccountState.LIVE, AccountEvent.SPENT): (_suspend, AccountState.SLOWED),
            (AccountState.LIVE, AccountEvent.HALF): (_slow, AccountState.SLOWED),
            (AccountState.SLOWED, AccountEvent.SPENT): (_suspend, AccountState.SLOWED),
            (AccountState.SLOWED, AccountEvent.FILLED): (_let_go, AccountState.LIVE),
        },
    )

    def state(self, thing: str) -> AccountState:
        account = self._accounts.by_name.get(thing)
        is_slowed = account is not None and account.is_slowed
        return AccountState.SLOWED if is_slowed else AccountState.LIVE

    def enter(self, thing: str, state: AccountState) -> None:
        account = self._accounts.by_name[thing]
        account.is_slowed = state is AccountState.SLOWED
        if not account.is_slowed:
            account.by.clear()

    # --- what is spent --------------------------------------------------------------------

    def spent(self, source: str, number: int, profiles: Collection[str], seconds: float) -> None:
        """Of a message, or of several up to it; equal profiles are evaluated once: each is charged
        its share."""
        for profile in profiles:
            hosted = self._profiles.get(profile)
            if hosted is None or profile in self._profiles.suspended:
                continue
            account = self._account(hosted.user)
            account.spent += seconds / len(profiles)
            account.by[profile] += seconds / len(profiles)
            account.last = source, number
            if account.spent >= self._most:
                self.happen(hosted.user, AccountEvent.SPENT)
            elif account.spent >= self._most / 2:
                self.happen(hosted.user, AccountEvent.HALF)

    def seconds_for(self, profile: str) -> float:
        """What a profile may take of a message: nothing, if it is suspended."""
        hosted = self._profiles.get(profile)
        account = None if hosted is None else self._accounts.by_name.get(hosted.user)
        if profile in self._profiles.suspended:
            return 0.0
        if account is None or hosted is None:
            return self._for_message
        part = self._account(hosted.user).spent / self._most
        return self._for_message * next(share for most, share in SHARES if part < most)

    def tick(self, now: float) -> None:
        """What was spent on the way, and who has taken less for a while."""
        for profiles, seconds in self._matcher.take_costs(COUNTED_SECONDS):
            self.spent(*self._profiles.asked, profiles, seconds)
        for user in self._slowed():
            if self._accounts.spent(user, now) < self._most / 4:
                self.happen(user, AccountEvent.FILLED)

    def flush(self) -> None:
        """Nothing is asked any more in this event, so that profiles can be taken out."""
        told, self._told = self._told, {}
        for profile, said in told.items():
            if profile in self._profiles:
                self.announce(said)

    def _show_dearest(self, asked: verbs.ProfileDearest) -> answers.Dearest:
        spent = (
            (profile, user, seconds)
            for user, a in self._accounts.by_name.items()
            for profile, seconds in a.by.items()
            if profile in self._profiles
        )
        return answers.Dearest(
            nlargest(min(int(asked.count), DEAREST_MAX), spent, key=itemgetter(2))
        )

    def report(self, said: BrokerStatistics) -> None:
        said.budgets.suspended = self._profiles.suspended
        said.budgets.slowed = self._slowed()

    # --- helpers --------------------------------------------------------------------------

    @property
    def _most(self) -> float:
        return self._accounts.most

    @property
    def _per_second_ms(self) -> float:
        return 1000 * self._accounts.per_second

    def _slowed(self) -> list[str]:
        return [user for user, account in self._accounts.by_name.items() if account.is_slowed]

    def _account(self, user: str) -> _Account:
        """As of now."""
        account = self._accounts.of(user, 0.0 if self.agenda is None else self.agenda.now)
        if not account.spent and not account.is_slowed:
            account.by.clear()
        return account

    def _worst(self, user: str) -> str:
        """Of a user's profiles the one that has taken most."""
        by = self._accounts.by_name[user].by
        return max(by, key=by.__getitem__)

    def _tell(self, profile: str, code: str, why: str) -> None:
        account = self._accounts.by_name[self._profiles[profile].user]
        self._told[profile] = OverBudget(profile, *account.last, code, why)
        self.flush_soon()


def _named(user: str) -> str:
    return f"user {user}" if user else "a user"


# -------------------------------------------------------------------------------------------------


class UserParts:
    def __init__(
        self,
        context: CoreContext,
        network: NetworkParts,
        budgets: UserBudgets,
        mailboxes: Mailboxes,
        query: QueryPlane,
        moves: ProfileMoves,
    ) -> None:
        self.policies = PolicyChanges(context, network.control, mailboxes)
        self.parts = (
            Subscribers(context, mailboxes, query, moves, network.access),
            budgets,
            self.policies,
            UnclaimedProfiles(context, query, mailboxes, moves),
        )
