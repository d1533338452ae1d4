"""Queries in a gateway: a catalog of providers, a plan of a query over it, queries at work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from formats.errors import Refusal
from onyx.errors import RequestFailed, UserError
from onyx.gateway.api_answers import QueriesAtWork, QueryAtWork
from onyx.gateway.sessions import Session
from onyx.queries.at_work import RunningQuery, end_query, queries_at_work
from onyx.queries.catalog import Catalog
from onyx.queries.identity import Identity
from onyx.queries.listing import listed
from onyx.queries.plan_picture import plan_svg
from onyx.queries.planning import plan_query
from overlay.link.credentials import Credentials
from registration.queries.compatibility import Compatibility
from registration.queries.providers import Market


def page_shown(files: Sequence[Path], session: Session, user: str, sql: str) -> dict[str, Any]:
    """``entries`` of the files as they are now, by kind; queries ``at_work`` and providers that are
    ``away``; of a query its ``picture`` with the ``estimate``, or the reason that there is none
    (``refused``).  Nothing is executed."""
    found: dict[str, Any] = {"files": files, "user": user, "sql": sql, "operates": session.operates}
    found |= {"entries": {}, "at_work": (), "away": (), "picture": "", "refused": ""}
    try:
        market = Catalog.read(*files).market
        found["entries"] = listed(market, Compatibility(market, user))
        found["at_work"], found["away"] = _at_work(market, session)
        if sql.strip():
            plan = plan_query(sql, market, user)
            found |= {"picture": plan_svg(plan.root, styled=False), "estimate": plan.estimate}
    except (Refusal, UserError) as refused:
        found["refused"] = str(refused)
    return found


def queries_shown(files: Sequence[Path], session: Session) -> QueriesAtWork:
    """UserError."""
    running, away = _at_work(Catalog.read(*files).market, session)
    return QueriesAtWork(
        msgspec.convert([each.facts() for each in running], list[QueryAtWork]), away
    )


def query_ended(files: Sequence[Path], session: Session, query: str) -> None:
    """RequestFailed "unknown-query" where the session may not know of it either."""
    market = Catalog.read(*files).market
    if all(each.id != query for each in _at_work(market, session)[0]):
        raise RequestFailed("unknown-query", f"no query {query} is at work")
    end_query(market, _identity(session), query)


def _at_work(market: Market, session: Session) -> tuple[list[RunningQuery], list[str]]:
    """As the gateway is told of them, and the session's principal may be."""
    running, away = queries_at_work(market, _identity(session))
    is_seen = (session.operates or session.principal == each.user != "" for each in running)
    return [each for each, seen in zip(running, is_seen, strict=True) if seen], away


def _identity(session: Session) -> Identity:
    """The gateway's own, by which cycle providers know it."""
    shown = session.credentials
    return Identity.of(shown.path) if isinstance(shown, Credentials) else Identity()
