"""MessageParts: the way of messages through this broker, and of their sources."""

from __future__ import annotations

from onyx.broker.archive.archive_feed import ArchiveFeed
from onyx.broker.archive.archive_reads import ArchiveReads
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.messages.message_spans import MessageSpans
from onyx.broker.messages.observers import Observers
from onyx.broker.messages.publish_keys import PublishKeys
from onyx.broker.messages.source_announcements import SourceAnnouncements
from onyx.broker.messages.source_questions import SourceQuestions
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from onyx.broker.packing.packing_parts import PackingParts
from onyx.broker.profiles.profile_parts import ProfileParts
from onyx.broker.shape.shape_parts import ShapeParts
from overlay.link.core_context import CoreContext


class MessageParts:
    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        packing: PackingParts,
        mailboxes: Mailboxes,
        profiles: ProfileParts,
        moves: ProfileMoves,
        shape: ShapeParts,
        observers: Observers,
        spans: MessageSpans,
        keys: PublishKeys,
        publishers: Publishers,
    ) -> None:
        query = profiles.query
        archive = ArchiveFeed(context.topology, packing.codebook)
        self.data = data = DataPlane(
            *(context, control, packing, query, moves, mailboxes, profiles.shares),
            *(observers, keys, publishers, archive, spans),
        )
        announcements = SourceAnnouncements(
            *(context, control, query, packing.trained, moves, data.validation, keys),
            *(publishers, data.last_numbers, shape.watch.is_long_gone),
        )
        self.parts = (
            data.validation,  # what it takes is flushed with the rest
            keys,  # before what is restored is decided
            publishers,
            *(data, data.costs, announcements, archive, ArchiveReads(context, control)),
            SourceQuestions(context, control, publishers),
        )
