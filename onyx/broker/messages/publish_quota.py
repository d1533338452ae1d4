"""PublishQuota: how much a principal may publish at a root broker, in messages and in bytes.  Where
its disk is short, nothing."""

from __future__ import annotations

from formats import MessageRefused
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.events import DiskRoom


class PublishQuota:
    """``check`` each message where it ``is_on``.

    A principal has what it may publish in a second, and gets that back evenly.  Whoever may
    operate the network, or runs without TLS, has no bound.
    """

    def __init__(self, context: CoreContext) -> None:
        self.disk_is_short = False
        self.take_limits(context.limits)
        self._links = context.links
        self._access = context.access
        self._left: dict[tuple[str, str], tuple[float, float]] = {}  # how much, and when

    def take_limits(self, limits: Limits) -> None:
        self._rates = {
            "messages": limits.principal_messages_s_max,
            "bytes": limits.principal_bytes_s_max,
        }
        self._has_rates = any(self._rates.values())
        self.is_on = self._has_rates or self.disk_is_short

    def note_disk(self, event: DiskRoom) -> bool:
        self.disk_is_short = event.is_short
        self.is_on = self._has_rates or event.is_short
        return True

    def check(self, connection: int, size: int, now: float) -> None:
        """MessageRefused for a message of so many bytes: "disk-full" where no more is taken,
        "over-quota" if it is too much."""
        if self.disk_is_short:
            raise MessageRefused(
                "disk-full",
                "the disk of this broker has less free than its reserve; publish it again later",
            )
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
