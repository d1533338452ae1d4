"""Witness: why did a message cross a link to a broker where nobody wants it?

Looked into the moment it arrives, with the routing query that its parent had::

    generalisation   a disjunct holds that nobody at or below the broker asked for
    relaxation       one holds that a profile here asked for: routing queries say less than profiles
    withdrawn        only what was told once holds: it had gone while the message was on its way
    presumption      its parent had to take it for a broker that wants everything (ChildRoutes)
    sample           it goes to every broker, so that what disjuncts cost is known
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from formats import ElementStream
from onyx.broker.broker_core import BrokerCore
from onyx.broker.packing.parcel import Parcel
from overlay.routing import message_sample
from overlay.routing.branches import Branch
from overlay.transformation.reflection import WHOLE
from yfilter import LinkTarget, Matcher, RouteMatch
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.readings import Readings


class Witness:
    """``explained``: how many messages crossed for nothing, by reason; ``unexplained``: which.

    ``whole``: the message with a number of a source, where only a part has arrived; one that nobody
    has cut is looked at as it came, closed by taxonomies that the witness does not know.
    """

    def __init__(self, whole: Callable[[str, int], ElementStream]) -> None:
        self._whole = whole
        self.explained: Counter[str] = Counter()
        self.unexplained: list[str] = []
        self._told: dict[tuple[str, str], dict[Conjunction, None]] = defaultdict(dict)
        self._presumed: set[str] = set()

    def watched(self, core: BrokerCore) -> BrokerCore:
        """The core of a broker, now or after a restart."""
        note_useless, flush = core.data._note_useless, core.query.flush
        presume = core.query.routes.presume

        def presumed(branch: Branch) -> None:
            self._presumed.add(branch.broker)
            presume(branch)

        def noted(parcel: Parcel) -> None:
            is_whole = parcel.reflects == WHOLE
            whole = None if is_whole else self._whole(parcel.source, parcel.number)
            self._explain(core, parcel, parcel.readings if whole is None else whole)
            note_useless(parcel)

        def flushed() -> None:
            flush()
            for root in core.query.table.roots:
                told = core.query.table.told(root)
                self._told[core.identity, root].update(dict.fromkeys(told))

        core.data._note_useless = noted  # type: ignore[method-assign]
        core.query.flush = flushed  # type: ignore[method-assign]
        core.query.routes.presume = presumed  # type: ignore[method-assign]
        return core

    def _explain(self, core: BrokerCore, parcel: Parcel, message: ElementStream | Readings) -> None:
        table = core.query.table
        told, asked = table.told(parcel.root), table.aggregate(parcel.root)
        if _holds(told - asked, message):
            self.explained["generalisation"] += 1
        elif _holds(told & asked, message):
            self.explained["relaxation"] += 1
        elif _holds(self._told[core.identity, parcel.root], message):
            self.explained["withdrawn"] += 1
        elif core.identity in self._presumed:
            self.explained["presumption"] += 1
        elif parcel.number % message_sample.SAMPLE_EVERY == 0:
            self.explained["sample"] += 1
        else:
            self.unexplained.append(f"{parcel.source} {parcel.number} came to {core.identity}")


def _holds(disjuncts: Iterable[Conjunction], message: ElementStream | Readings) -> bool:
    matcher = Matcher()
    for disjunct in disjuncts:
        matcher.add_route(disjunct, LinkTarget("", "parent"))
    return any(isinstance(match, RouteMatch) for match in matcher.match(message))
