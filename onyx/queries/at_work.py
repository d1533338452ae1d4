"""Queries at work: which run at the cycle providers of a market, how far, and their end.

A cycle provider tells a user of their own queries, and an operator of the network of all.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from onyx.queries.identity import Identity
from onyx.queries.provider_process import AtWork, Peers
from onyx.queries.running import asked, everywhere
from onyx.queries.signatures import question
from registration.queries.providers import Market
from registration.queries.stopped import QueryStopped
from registration.spark.job import Measured
from registration.spark.receive_source import Peer

_AT_WORK = msgspec.json.Decoder(list[AtWork])  # made once: signatures.py says why


@dataclass(slots=True)
class Work:
    """A query at one cycle provider, named ``provider``: ``rows`` and ``bytes_sent`` that it gave,
    ``bytes_read``, all of its fragments together; ``share`` of their tasks, from 0 to 1."""

    provider: str
    rows: int = 0
    bytes_read: int = 0
    bytes_sent: int = 0
    share: float = 0.0

    @classmethod
    def of(cls, provider: str, fragments: Collection[Measured]) -> Work:
        rows, read, sent = (
            sum(getattr(each, name) for each in fragments)
            for name in ("rows", "bytes_read", "bytes_sent")
        )
        share = sum(each.share for each in fragments) / max(len(fragments), 1)
        return cls(provider, rows, read, sent, share)


@dataclass(slots=True)
class RunningQuery:
    """``user``: a principal, "" for somebody anonymous; ``seconds`` since it began."""

    id: str
    user: str
    seconds: float = 0.0
    at: list[Work] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def queries_at_work(market: Market, identity: Identity) -> tuple[list[RunningQuery], list[str]]:
    """The queries that providers tell this identity of, the latest first, and the names of the
    providers that do not answer, or refuse."""
    found: dict[str, RunningQuery] = {}
    away: list[str] = []

    def ask(peer: Peer) -> None:
        name = market.cycle_providers[peer.uri].name
        try:
            answer = asked(peer, "queries", question(peer.uri, identity.signer))
        except QueryStopped:
            away.append(name)
            return
        for one in _AT_WORK.decode(answer):
            query = found.setdefault(one.id, RunningQuery(one.id, one.user))
            query.seconds = max(query.seconds, one.seconds)
            query.at.append(Work.of(name, one.fragments))

    everywhere(ask, _peers(market, identity))
    return sorted(found.values(), key=lambda each: (each.seconds, each.id)), sorted(away)


def end_query(market: Market, identity: Identity, query: str) -> None:
    """Cancel it at all cycle providers; its asking process is told so by their streams."""

    def end(peer: Peer) -> None:
        with suppress(QueryStopped):
            asked(peer, "end", query.encode())

    everywhere(end, _peers(market, identity))


def _peers(market: Market, identity: Identity) -> list[Peer]:
    peers = Peers(market, identity)
    return [peers.peer(site.uri) for site in market.cycle_providers.values() if site.port]
