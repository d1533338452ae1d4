"""ShapeParts: links and brokers that come, go, or are away."""

from __future__ import annotations

from collections.abc import Callable

from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.parts import NetworkParts
from onyx.broker.packing.parts import PackingParts
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.bypasses import Bypasses
from onyx.broker.shape.kept_messages import KeptMessages
from onyx.broker.shape.link_backlogs import LinkBacklogs
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.shape_stages import ShapeStages
from onyx.broker.shape.source_releases import SourceReleases
from onyx.broker.shape.tree_versions import TreeVersions
from onyx.broker.shape.tunnels import Tunnels
from overlay.link.core_context import CoreContext
from overlay.topology import Topology


class ShapeParts:
    def __init__(
        self,
        context: CoreContext,
        network: NetworkParts,
        packing: PackingParts,
        query: QueryPlane,
        moves: ProfileMoves,
        change_settings: Callable[[Topology, Topology], None],
    ) -> None:
        """``change_settings``: see ShapeStages."""
        control, give_backs = network.control, packing.give_backs
        self.backlogs = LinkBacklogs(context, control)
        bypasses = Bypasses(context, control)
        self.trees = trees = TreeVersions(
            context, control, query, packing.trained, give_backs, bypasses
        )
        trees.tell_ended += [moves.end_tree, network.taxonomies.end_tree]
        kept = KeptMessages(context, control, query, trees, give_backs)
        self.watch = kept.watch = LinkWatch(
            context, control, kept.is_whole, self.backlogs.is_behind
        )
        tunnels = Tunnels(context, control, self.watch)
        releases = SourceReleases(control, context.links)
        self.stages = ShapeStages(context, control, query, trees, releases, change_settings)
        self.parts = (
            *(self.backlogs, self.watch, kept, tunnels),
            *(bypasses, trees, self.stages),
        )
