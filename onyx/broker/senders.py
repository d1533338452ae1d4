"""Who may send a broker what: a role, or a place on the tree that a frame is about."""

from __future__ import annotations

from collections.abc import Mapping

from onyx.broker.control_plane import ControlPlane
from onyx.broker.moves.profile_moves import SENDERS as MOVE_SENDERS
from onyx.broker.shape.tree_versions import SENDERS as TREE_SENDERS
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.link.frame import Frame
from overlay.link.frames import (
    Attach,
    DictionaryHeld,
    DictionaryTrained,
    LiveMarker,
    LiveReached,
    Message,
    NeedsDelta,
    PlaceProfile,
    PlaceProfiles,
    PlanInForce,
    Publish,
    Relayed,
    Request,
    RoutingDelta,
    SourceAnnounced,
    Taken,
    TreeBegun,
    TreeEnded,
    TreeReady,
    Undecoded,
)
from overlay.link.link_layer import Arrival
from overlay.link.move_frames import WatershedReached
from overlay.network_shape import root_of

OVER = "over"
# What must keep its order over a change of trees.
ORDERED = (Message, DictionaryTrained, WatershedReached, TreeEnded)
# What a tree that has ended needs no longer.
_DOWNWARD = (SourceAnnounced, DictionaryTrained, TreeBegun, TreeEnded, Message)
# Who may send what: a role, or a place on the tree of the root broker that the frame names.
SENDERS: Mapping[type[Frame], frozenset[str]] = {
    SourceAnnounced: frozenset({"registration", "parent"}),
    Relayed: frozenset({"registration"}),
    TreeReady: frozenset({"child"}),
    DictionaryTrained: frozenset({"parent"}),
    DictionaryHeld: frozenset({"child"}),
    PlaceProfile: frozenset({"registration"}),
    PlaceProfiles: frozenset({"registration"}),
    PlanInForce: frozenset({"registration"}),
    RoutingDelta: frozenset({"child"}),
    NeedsDelta: frozenset({"child"}),
    LiveMarker: frozenset({"child"}),
    LiveReached: frozenset({"parent"}),
    Publish: frozenset({"source"}),
    Message: frozenset({"parent"}),
    Undecoded: frozenset({"child"}),
    Attach: frozenset({"subscriber"}),
    Taken: frozenset({"subscriber"}),
    Request: frozenset({"client", "source", "subscriber"}),
    **MOVE_SENDERS,
    **TREE_SENDERS,
}


def place_of_sender(arrival: Arrival, control: ControlPlane, trees: TreeVersions) -> str:
    """The sender's role; for a broker its place on the tree that the frame is about.

    "" when the frame names a tree, a key or a host that do not go together, and OVER when its
    tree has ended.
    """
    role, _, name = arrival.peer.partition("/")
    if role != "broker":
        return role
    tree = arrival.key
    root = getattr(arrival.frame, "root", None)
    if isinstance(arrival.frame, SourceAnnounced):
        root = tree if root_of(tree) == root else ""
    if root is None or root != tree:
        return ""
    if isinstance(arrival.frame, _DOWNWARD) and trees.is_over(tree):
        return OVER
    if trees.is_forgotten(tree):
        return OVER
    host = getattr(arrival.frame, "host", None)
    known = control.shapes
    if not known.knows(tree) or (
        host is not None and (not known.has_broker(host) or host == root_of(tree))
    ):
        return ""
    if name == control.parent(tree):
        return "parent"
    return "child" if name in control.children(tree) else ""
