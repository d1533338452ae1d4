"""PublishQuota: how much a principal may publish at a root broker, in messages and in bytes."""

from __future__ import annotations

from formats import MessageRefused
from overlay.access import AccessTable, Right
from overlay.limits import Limits
from overlay.link.link_layer import LinkLayer


class PublishQuota:
    """``check`` each message where it ``is_on``.

    A principal has what it may publish in a second, and gets that back evenly.  Whoever may
    operate the network, or runs without TLS, has no bound.
    """

    def __init__(self, limits: Limits, links: LinkLayer, access: AccessTable) -> None:
        self._rates = {
            "messages": limits.principal_messages_s_max,
            "bytes": limits.principal_bytes_s_max,
        }
        self.is_on = any(self._rates.values())
        self._links = links
        self._access = access
        self._left: dict[tuple[str, str], tuple[float, float]] = {}  # how much, and when

    def check(self, connection: int, size: int, now: float) -> None:
        """MessageRefused "over-quota" for a message of so many bytes that is too much."""
        principal = self._links.principal(connection)
        if principal is None or self._access.now.may(principal, Right.OPERATE):
            return
        takes = {"messages": 1, "bytes": size}
        left = {}
        for what, rate in self._rates.items():
            if rate:
                had, at = self._left.get((str(principal), what), (float(rate), now))
                left[what] = min(float(rate), had + (now - at) * rate)
                if left[what] < min(takes[what], rate):
                    raise MessageRefused(
                        "over-quota",
                        f"{principal} may publish {rate} {what} a second at this broker",
                    )
        for what, had in left.items():
            self._left[str(principal), what] = had - takes[what], now
