"""DeliveryParts: what waits for users, and how it is made."""

from __future__ import annotations

from collections.abc import Callable

from onyx.broker.deliveries.delivery_log import DeliveryLog
from onyx.broker.deliveries.late_results import LateResults
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.deliveries.result_maker import ResultMaker, results_bytes_max
from onyx.broker.packing.packing_parts import PackingParts
from overlay.link.core_context import CoreContext
from overlay.link.slices import SLICE_SECONDS
from yfilter.language.profile_limits import EvaluationLimits, MatchLimits
from yfilter.matcher import Matcher

LATE_MESSAGES = 256
"""For which a profile that took more than a slice of a message is evaluated late at once."""


def matcher_of(context: CoreContext) -> Matcher:
    """The one of the broker."""
    evaluation = EvaluationLimits(
        seconds_max=min(context.limits.evaluation_ms_max / 1000, SLICE_SECONDS),
        late_messages=LATE_MESSAGES,
        clock=context.clock,
    )
    return Matcher(MatchLimits(evaluation=evaluation), context.limits.message)


class DeliveryParts:
    def __init__(
        self,
        context: CoreContext,
        packing: PackingParts,
        log: DeliveryLog,
        matcher: Matcher,
        late: LateResults,
        text_of: Callable[[str], str],
        user_of: Callable[[str], str | None],
    ) -> None:
        limits, dead = context.limits, context.dead
        self.matcher = matcher
        maker = ResultMaker(
            *(packing.aside, matcher, results_bytes_max(limits.link), dead, late, text_of),
            packing.codebook.counted,
        )
        self.mailboxes = Mailboxes(
            *(context.links, context.rows, limits, log, maker),
            *(user_of, context.slice, dead, context.wall),
        )
        self.parts = (self.mailboxes,)
