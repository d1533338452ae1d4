"""ObjectGlobe (seed 001): queries over data that many providers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.lazy_names import lazy_names

if TYPE_CHECKING:
    from onyx.queries.catalog import Catalog
    from onyx.queries.planning import QueryPlan
    from onyx.queries.running import Run
    from onyx.queries.session import Session
    from registration.queries.quality import Quality
    from registration.queries.refusals import QueryRefused
    from registration.queries.stopped import QueryStopped

__all__ = ["Catalog", "Quality", "QueryPlan", "QueryRefused", "QueryStopped", "Run", "Session"]

_MODULES = {
    "onyx.queries.catalog": "Catalog",
    "onyx.queries.planning": "QueryPlan",
    "onyx.queries.running": "Run",
    "onyx.queries.session": "Session",
    "registration.queries.quality": "Quality",
    "registration.queries.refusals": "QueryRefused",
    "registration.queries.stopped": "QueryStopped",
}
# PERF: a cycle provider looks nothing up, and a command that lists providers runs nothing.
__getattr__ = lazy_names(__name__, _MODULES)
