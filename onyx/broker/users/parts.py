"""UserParts: who takes results, and what their profiles may cost and leave behind."""

from __future__ import annotations

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.deliveries.subscribers import Subscribers
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.parts import NetworkParts
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.users.policy_changes import PolicyChanges
from onyx.broker.users.unclaimed_profiles import UnclaimedProfiles
from onyx.broker.users.user_budgets import UserBudgets
from overlay.link.core_context import CoreContext


class UserParts:
    def __init__(
        self,
        context: CoreContext,
        network: NetworkParts,
        mailboxes: Mailboxes,
        query: QueryPlane,
        moves: ProfileMoves,
        data: DataPlane,
    ) -> None:
        self.budgets = UserBudgets(context, query, mailboxes, lambda: data.local.last)
        self.policies = PolicyChanges(context, network.control, mailboxes)
        self.parts = (
            Subscribers(context, mailboxes, query, moves, network.access),
            self.budgets,
            self.policies,
            UnclaimedProfiles(context, query, mailboxes, moves),
        )
