"""TokenHolders: who shows which token to a process, and when that is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overlay.access import Access, AccessTable, Rule
from overlay.link.link_layer import LinkLayer
from overlay.link.principal import Principal, nobody


class TokenHolders:
    """``table`` has the network's own tokens; those of others are the issuer's business."""

    def __init__(
        self,
        rules: Iterable[Rule],
        wall: Callable[[], float],
        issuer: Callable[[str], Principal] = nobody,
    ) -> None:
        """``rules``: until there are others.  ``wall``: seconds of the calendar.  ``issuer`` says
        whose a JSON Web Token is, and raises ProtocolError where it is nobody's."""
        self.table = AccessTable(Access(rules))
        self._wall = wall
        self._issuer = issuer

    def holder(self, secret: str) -> Principal:
        """Whoever shows a token; ProtocolError, or NOBODY."""
        if "." in secret:  # no secret of ours has one
            return self._issuer(secret)
        return self.table.now.holder(secret, self._wall())

    def send_away(self, links: LinkLayer) -> None:
        """Close the connections of those whose tokens are revoked, or over."""
        now = self._wall()
        for connection, _, principal in links.principals():
            if self.table.now.is_over(principal, now):
                detail = f"the token of {principal} is revoked, or over"
                links.refuse(connection, "not-authenticated", detail)
