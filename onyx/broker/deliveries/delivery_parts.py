"""DeliveryParts: what waits for users, and how it is made."""

from __future__ import annotations

from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.deliveries.overflow import MailboxLimits
from onyx.broker.deliveries.result_maker import ResultMaker, results_bytes_max
from onyx.broker.packing.packing_parts import PackingParts
from overlay.limits import taken_limits
from overlay.link.core_context import CoreContext
from overlay.link.slices import SLICE_SECONDS
from yfilter.engine.match_limits import MatchLimits
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.matcher import Matcher

LATE_MESSAGES = 256
"""For which a profile that took more than a slice of a message is evaluated late at once."""


class DeliveryParts:
    """``matcher``: the one of the broker."""

    def __init__(self, context: CoreContext, packing: PackingParts) -> None:
        limits, link, dead = context.limits, context.limits.link, context.dead
        seconds = limits.evaluation_ms_max / 1000
        evaluation = EvaluationLimits(
            seconds_max=min(seconds, SLICE_SECONDS),
            late_messages=LATE_MESSAGES,
            clock=context.clock,
        )
        self.matcher = Matcher(MatchLimits(evaluation=evaluation), limits.message)
        late = LateResults(taken_limits(limits), seconds, context.clock)
        maker = ResultMaker(packing.aside, self.matcher, results_bytes_max(link), dead, late)
        self.mailboxes = Mailboxes(
            *(context.links, context.rows, link, MailboxLimits.of(limits), maker),
            *(context.slice, dead, context.wall),
        )
        self.parts = (self.mailboxes,)
