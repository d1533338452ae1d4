"""Queries that will be late: how far a run will go beyond its limits, and which machines are slow.

A run is judged by the share of its work that is done, so it is known to be late before it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from registration.queries.providers import Market
from registration.queries.query_plan import Figures, Fragment
from registration.spark.job import Measured

SLOW = 1.5
"""So many times its estimate a fragment takes before its machine is taken for a slower one."""
JUDGED_FROM = 0.25
"""Of a limit: what is used up before a run is judged, as the first tasks say little."""
_LEAST_SECONDS = 0.05


def expected(estimate: Figures, now: Figures, share: float) -> Figures:
    """Figures of the whole run, of which ``share`` is done, from 0 to 1: the rest takes as long,
    and costs as much, as the share has, or as estimated where nothing is done yet."""

    def whole(so_far: float, estimated: float) -> float:
        return so_far / share if share else so_far + estimated

    seconds = whole(now.seconds, estimate.seconds)
    first = now.first_row_s
    if not now.rows and estimate.seconds:
        first = max(now.seconds, seconds * estimate.first_row_s / estimate.seconds)
    return replace(now, seconds=seconds, first_row_s=first, cost=whole(now.cost, estimate.cost))


def without(market: Market, away: str) -> Market:
    """The market without the cycle provider of a URI."""
    sites = {uri: site for uri, site in market.cycle_providers.items() if uri != away}
    return replace(market, cycle_providers=sites)


def slowed(
    market: Market, fragments: Iterable[Fragment], measured: Mapping[int, Measured]
) -> Market:
    """The market with machines as slow as they have shown themselves to be.  ``fragments``: each
    behind those that it receives; a fragment that waits for a late one says nothing of its own
    machine."""
    factors: dict[str, float] = {}
    late: set[int] = set()
    for each in fragments:
        found = measured.get(each.number, Measured(each.number))
        if late & {received.fragment for received in each.receives}:
            late.add(each.number)
            continue
        share = found.share or 1.0
        factor = found.seconds / max(each.estimate.seconds * share, _LEAST_SECONDS)
        if factor > SLOW:
            late.add(each.number)
            factors[each.site.uri] = max(factor, factors.get(each.site.uri, 1.0))
    slow = {
        uri: replace(site, slowness=site.slowness * factors[uri])
        for site in market.sites
        if (uri := site.uri) in factors
    }
    return replace(market, cycle_providers={**market.cycle_providers, **slow})
