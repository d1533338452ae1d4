"""ProfileParts: profiles of this broker, and what all its links want."""

from __future__ import annotations

from onyx.broker.deliveries.delivery_parts import DeliveryParts
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.hosted_profiles import HostedProfiles
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.profiles.transformation import Transformation
from overlay.link.core_context import CoreContext


class ProfileParts:
    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        deliveries: DeliveryParts,
        hosted: HostedProfiles,
    ) -> None:
        matcher, mailboxes = deliveries.matcher, deliveries.mailboxes
        self.transformation = Transformation(context, control, matcher, hosted)
        self.query = QueryPlane(context, control, mailboxes, matcher, self.transformation, hosted)
        self.shares = MatchShares(context, control, self.query.profiles)
        # needs are numbered by event, ahead of the rest
        self.parts = self.shares, self.transformation, self.query
