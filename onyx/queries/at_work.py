"""Queries at work: which run at the cycle providers of a market, how far, and their end.

A cycle provider tells a user of their own queries, and an operator of the network of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from onyx.queries.identity import Identity
from onyx.queries.provider_process import AtWork, Peers
from onyx.queries.running import asked, ended, everywhere
from onyx.queries.signatures import question
from registration.queries.providers import Market
from registration.queries.stopped import QueryStopped
from registration.spark.receive_source import Peer

_AT_WORK = msgspec.json.Decoder(list[AtWork])  # made once: signatures.py says why


class RunningQuery(NamedTuple):
    """``user``: a principal, "" for somebody anonymous; ``at``: how far it is, by the names of
    cycle providers."""

    id: str
    user: str
    at: dict[str, AtWork]

    @property
    def seconds(self) -> float:
        """Since it began."""
        return max(each.seconds for each in self.at.values())

    def facts(self) -> dict[str, Any]:
        names = ("seconds", "share", "rows", "bytes_read", "bytes_sent")
        at = {
            name: {each: getattr(found, each) for each in names} for name, found in self.at.items()
        }
        return {"id": self.id, "user": self.user, "at": at}


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
            found.setdefault(one.id, RunningQuery(one.id, one.user, {})).at[name] = one

    everywhere(ask, _peers(market, identity))
    return sorted(found.values(), key=lambda each: (each.seconds, each.id)), sorted(away)


def end_query(market: Market, identity: Identity, query: str) -> None:
    """Cancel it at all cycle providers; its asking process is told so by their streams."""
    ended(query, _peers(market, identity))


def _peers(market: Market, identity: Identity) -> list[Peer]:
    peers = Peers(market, identity)
    return [peers.peer(site.uri) for site in market.cycle_providers.values() if site.port]
