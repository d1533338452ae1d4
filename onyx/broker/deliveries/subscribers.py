"""Subscribers: the connections of users who take results, as parts of a core see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.moves.releases import moved_detail
from onyx.broker.query_plane import QueryPlane
from overlay.link.arrival import Arrival
from overlay.link.errors import ProtocolError
from overlay.link.frames import Attach, Taken
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.stored_rows import StoredRows


class Subscribers(Part):
    """Hands mailboxes what users say, and has them send what is there."""

    section = "mailboxes"

    def __init__(
        self, identity: str, mailboxes: Mailboxes, query: QueryPlane, moves: ProfileMoves
    ) -> None:
        self._identity = identity
        self._mailboxes = mailboxes
        self._query = query
        self._moves = moves

    def frames(self) -> Iterable[Taker]:
        yield takes(Attach, "subscriber", self._handle_attach)
        yield takes(Taken, "subscriber", self._handle_taken)

    def restore(self, rows: StoredRows) -> None:
        """The mailboxes have theirs already: they are too many to be in memory first."""
        self.flush_soon()

    def gone(self, arrival: Arrival) -> None:
        self._mailboxes.close(arrival.connection)

    def tick(self, now: float) -> None:
        self._mailboxes.tick()

    def flush(self) -> None:
        self._mailboxes.flush()
        for asked in self._mailboxes.reads():
            self.ask_shell(asked)
        if self._mailboxes.has_more:
            self.work_soon()
        self.flush_soon()  # most events leave something for a mailbox

    def statistics(self) -> Mapping[str, object]:
        return self._mailboxes.statistics()

    def _handle_attach(self, frame: Attach, arrival: Arrival) -> None:
        self._mailboxes.attach(arrival.connection, frame, self._not_taken_here)

    def _not_taken_here(self, profile: str) -> tuple[str, str] | None:
        """Why the results of a profile are not to be had from this broker; None if they are."""
        if self._moves.sends_on(profile):
            return "moved", moved_detail(profile)
        if profile not in self._query.profiles:
            return "unknown-profile", f"{self._identity} is not the host broker of {profile!r}"
        return None

    def _handle_taken(self, frame: Taken, arrival: Arrival) -> None:
        try:
            self._mailboxes.take(arrival.connection, frame)
        except ProtocolError as error:
            raise FrameRefused(error.code, error.detail) from error
