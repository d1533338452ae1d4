"""Subscribers: what the connections of users who take results say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.moves.releases import moved_detail
from onyx.broker.network.access_rules import AccessRules
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.access import Right
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.errors import ProtocolError
from overlay.link.frames import Attach, Rejected, Taken
from overlay.link.part import FrameRefused, Part, Taker, takes


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
        self._mailboxes = mailboxes
        self._query = query
        self._moves = moves

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

    def _handle_taken(self, frame: Taken, arrival: Arrival) -> None:
        try:
            self._mailboxes.take(arrival.connection, frame)
        except ProtocolError as error:
            raise FrameRefused(error.code, error.detail) from error

    def _handle_rejected(self, frame: Rejected, arrival: Arrival) -> None:
        try:
            self._mailboxes.reject(arrival.connection, frame)
        except ProtocolError as error:
            raise FrameRefused(error.code, error.detail) from error
