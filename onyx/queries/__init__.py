"""ObjectGlobe (seed 001): queries over data that many providers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.lazy_names import lazy_names

if TYPE_CHECKING:
    from onyx.queries.catalog import Catalog
    from registration.queries.quality import Quality

__all__ = ["Catalog", "Quality"]

_MODULES = {"onyx.queries.catalog": "Catalog", "registration.queries.quality": "Quality"}
# PERF: a cycle provider looks nothing up, and a command that lists providers runs nothing.
__getattr__ = lazy_names(__name__, _MODULES)
