"""Every frame of the protocol: one dataclass each, from which its wire form follows.

A frame travels on one of the four flows (section 5 of the paper), and there is a file for each;
those by which a profile moves stand in ``move_frames``.

A *sequenced* frame belongs to a channel - (peer, flow, key) - on which it has a number, is
journaled by the sender, resent after a lost connection, acknowledged, and so arrives exactly once
and in order.  An *unsequenced* one speaks about the connection itself and is gone with it.

Adding a frame is adding a dataclass to the file of its flow, and its name here; ``frame_codec``
does the rest from the annotations (``frame_fields``).  Bytes on the wire: docs/protocol.md.

``payload``, where a frame has it, is carried as it is: bytes that this layer never looks into.
"""

from __future__ import annotations

from overlay.link.catalog_frames import (
    VALIDATIONS,
    AccessAnnounced,
    KeysReleased,
    LinkReported,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
    SourceAnnounced,
    SourceReady,
    SourceReleased,
    SourceRemoved,
    TaxonomiesAnnounced,
)
from overlay.link.control_frames import (
    Ack,
    ErrorFrame,
    Hello,
    Observed,
    PassedOn,
    Ping,
    Pong,
    Relayed,
    Request,
    Response,
    Skipped,
)
from overlay.link.delivery_frames import (
    Attach,
    Deliveries,
    Delivery,
    Detached,
    Missed,
    Rejected,
    Taken,
)
from overlay.link.message_frames import (
    AcceptedBefore,
    DictionaryTrained,
    Message,
    MessageAgain,
    Publish,
    PublishOnce,
    Refused,
    SourceChanged,
    SourceGone,
    TaxonomiesInForce,
    TreeBegun,
    TreeEnded,
)
from overlay.link.query_frames import (
    BranchReady,
    DeliveryPolicies,
    DictionaryHeld,
    LiveMarker,
    LiveReached,
    NeedsDelta,
    PartitionsMatched,
    PlaceProfile,
    PlaceProfiles,
    PlanInForce,
    ProfilesChanged,
    ProfilesLive,
    ProfilesPlaced,
    RoutingDelta,
    TreeReady,
    Undecoded,
)
from overlay.link.rebuild_frames import (
    CatalogTold,
    CatalogWanted,
    ProfilesHosted,
    ProfilesMoving,
)

__all__ = [
    "VALIDATIONS",
    "AcceptedBefore",
    "AccessAnnounced",
    "Ack",
    "Attach",
    "BranchReady",
    "CatalogTold",
    "CatalogWanted",
    "Deliveries",
    "Delivery",
    "DeliveryPolicies",
    "Detached",
    "DictionaryHeld",
    "DictionaryTrained",
    "ErrorFrame",
    "Hello",
    "KeysReleased",
    "LinkReported",
    "LiveMarker",
    "LiveReached",
    "Message",
    "MessageAgain",
    "Missed",
    "NeedsDelta",
    "Observed",
    "PartitionsMatched",
    "PassedOn",
    "Ping",
    "PlaceProfile",
    "PlaceProfiles",
    "PlanInForce",
    "Pong",
    "ProfilesChanged",
    "ProfilesHosted",
    "ProfilesLive",
    "ProfilesMoving",
    "ProfilesPlaced",
    "Publish",
    "PublishOnce",
    "Refused",
    "Rejected",
    "Relayed",
    "Request",
    "Response",
    "RoutingDelta",
    "ShapeAgreed",
    "ShapeAnnounced",
    "ShapeReached",
    "ShapeSettled",
    "Skipped",
    "SourceAnnounced",
    "SourceChanged",
    "SourceGone",
    "SourceReady",
    "SourceReleased",
    "SourceRemoved",
    "Taken",
    "TaxonomiesAnnounced",
    "TaxonomiesInForce",
    "TreeBegun",
    "TreeEnded",
    "TreeReady",
    "Undecoded",
]
