"""Where a broker that sends a frame is on the tree that the frame is about."""

from __future__ import annotations

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.link.frames import (
    DictionaryTrained,
    Message,
    MessageAgain,
    SourceAnnounced,
    SourceChanged,
    SourceGone,
    TaxonomiesInForce,
    TreeBegun,
    TreeEnded,
    Undecoded,
    WatershedReached,
)
from overlay.link.link_layer import Arrival
from overlay.tree_name import root_of

OVER = "over"
# What must keep its order over a change of trees.
ORDERED = (
    Message,
    DictionaryTrained,
    TaxonomiesInForce,
    SourceChanged,
    SourceGone,
    WatershedReached,
    TreeBegun,
    TreeEnded,
)
# What a tree that has ended needs no longer.
_DOWNWARD = (
    SourceAnnounced,
    DictionaryTrained,
    TaxonomiesInForce,
    SourceChanged,
    SourceGone,
    TreeBegun,
    TreeEnded,
    Message,
)


def place_of_sender(arrival: Arrival, control: ControlPlane, trees: TreeVersions) -> str:
    """A broker's place on the tree that its frame is about.

    "" when the frame names a tree, a key or a host that do not go together, and OVER when its
    tree has ended.
    """
    name, tree = arrival.sender, arrival.key
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
    if name == control.giver(tree):
        return "parent"
    if tree in known.above_lost and name == control.parent(tree):  # which is gone round
        return "parent" if isinstance(arrival.frame, MessageAgain) else OVER
    if name in known.past_lost(tree):
        return "child" if isinstance(arrival.frame, Undecoded) else ""
    return "child" if name in control.children(tree) else ""
