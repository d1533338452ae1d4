"""RequestParts: what users, operators and the registration service ask of this broker."""

from __future__ import annotations

from onyx.broker.messages.observers import Observers
from onyx.broker.messages.parts import MessageParts
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.parts import NetworkParts
from onyx.broker.packing.parts import PackingParts
from onyx.broker.profiles.parts import ProfileParts
from onyx.broker.requests.broker_requests import BrokerRequests
from onyx.broker.requests.catalog_report import CatalogReport
from onyx.broker.requests.classes_above import ClassesAbove
from onyx.broker.requests.dry_runs import DryRuns
from onyx.broker.requests.figures import figures_of
from onyx.broker.requests.message_trace import MessageTrace
from onyx.broker.requests.transformation_requests import TransformationRequests
from onyx.broker.shape.parts import ShapeParts
from onyx.broker.users.parts import UserParts
from overlay.link.core_context import CoreContext


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
        observers.figures = lambda: figures_of(
            context.links, control, packing.formats, messages.data, query
        )
        self.parts = (
            BrokerRequests(context, query, moves, taxonomies, users.policies),
            MessageTrace(control, query, DryRuns(control, query, packing)),
            TransformationRequests(control, profiles.transformation),
            ClassesAbove(context, query, moves, taxonomies),
            observers,
            CatalogReport(
                *(context, control, query, moves, users.policies, profiles.shares),
                *(network.access, taxonomies, shape.watch, shape.stages),
            ),
        )
