"""What the page of queries shows: a catalog of providers, and the plan of a query over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from formats.errors import Refusal
from onyx.errors import UserError
from onyx.queries.catalog import Catalog
from onyx.queries.listing import listed
from onyx.queries.plan_picture import plan_svg
from onyx.queries.planning import plan_query
from registration.queries.compatibility import Compatibility


def plan_shown(files: Sequence[Path], user: str, sql: str) -> dict[str, Any]:
    """``entries`` of the files as they are now, by kind; of a query its ``picture`` with the
    ``estimate``, or the reason that there is none (``refused``).  Nothing is executed."""
    found: dict[str, Any] = {"files": files, "user": user, "sql": sql}
    found |= {"entries": {}, "picture": "", "refused": ""}
    try:
        market = Catalog.read(*files).market
        found["entries"] = listed(market, Compatibility(market, user))
        if sql.strip():
            plan = plan_query(sql, market, user)
            found |= {"picture": plan_svg(plan.root, styled=False), "estimate": plan.estimate}
    except (Refusal, UserError) as refused:
        found["refused"] = str(refused)
    return found
