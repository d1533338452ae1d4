"""SourceCosts: processor time that the messages of a source take beyond what their size explains.

Reading a message is bounded (formats/limits.py), but a message near a bound costs more than others
of its size, may be refused, and may be sent again at once.  So each source has an account of
processor time here, which fills up steadily, and is charged with what its messages take beyond
FREE_SECONDS and FREE_SECONDS_BYTE for each of their bytes, whether they are refused or not.  While
half of an account is spent its source is *slowed*: nothing that it sends is acknowledged, so that
it stands still at its window.  A source that has spent all is *kept out*: its connection is closed
with TOO_COSTLY, and none is let in until half is there again.

All sources of a principal have one account; without TLS each has its own.
"""

from __future__ import annotations

from onyx.broker.processor_accounts import Account, Accounts
from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.part import Part
from overlay.link.principal import NOBODY
from overlay.statistics import BrokerStatistics

TOO_COSTLY = "too-costly"
FREE_SECONDS = 0.001
FREE_SECONDS_BYTE = 0.2e-6


class SourceCosts(Part):
    """Is told by ``charge`` how long the reading of a message has taken; ``is_slowed`` and ``bar``
    say how its source fares."""

    def __init__(self, context: CoreContext) -> None:
        self._links = context.links
        self._say = context.say
        self._accounts = Accounts(Account, 0.0)  # by principal or source
        self.take_limits(context.limits)
        self.slowed: dict[str, None] = {}
        self._kept_out: dict[str, None] = {}

    def take_limits(self, limits: Limits) -> None:
        self._accounts.per_second = limits.source_processor_ms_s_max / 1000

    def charge(self, connection: int, source: str, size: int, seconds: float) -> None:
        """A message of so many bytes has taken ``seconds`` of processor time to read."""
        over = seconds - FREE_SECONDS - FREE_SECONDS_BYTE * size
        if over <= 0:
            return
        who, most = self._who(connection, source), self._accounts.most
        account = self._accounts.of(who, 0.0 if self.agenda is None else self.agenda.now)
        account.spent += over
        if account.spent >= most:
            self._kept_out[who] = None
            why = self.bar(connection, source)
            self._say(why)
            self._links.refuse(connection, TOO_COSTLY, why)
        elif account.spent >= most / 2 and who not in self.slowed:
            self.slowed[who] = None
            self._say(f"{self._told(who)} half of it: it is slowed")

    def is_slowed(self, peer: str, source: str) -> bool:
        """``peer``: of its publishers."""
        if not self.slowed:
            return False
        connection = self._links.connection_of(peer)
        return connection is not None and self._who(connection, source) in self.slowed

    def bar(self, connection: int, source: str) -> str:
        """Why a source is kept out; "" if it is not."""
        who = self._who(connection, source)
        if who not in self._kept_out:
            return ""
        return f"{self._told(who)} all of it: it is kept out until half is there again"

    def tick(self, now: float) -> None:
        """Let go those whose accounts have filled up."""
        spent, half = self._accounts.spent, self._accounts.most / 2
        for held in (self.slowed, self._kept_out):
            for who in [each for each in held if spent(each, now) < half]:
                del held[who]

    def report(self, said: BrokerStatistics) -> None:
        said.budgets.slowed_sources = [*self.slowed]
        said.budgets.kept_out_sources = [*self._kept_out]

    def _who(self, connection: int, source: str) -> str:
        """Whose account it is."""
        principal = self._links.principal(connection)
        return f"source/{source}" if principal in (None, NOBODY) else str(principal)

    def _told(self, who: str) -> str:
        return (
            f"messages of {who} take more processor time than their size explains, where "
            f"{1000 * self._accounts.per_second:g} ms a second are allowed and "
            f"{self._accounts.most:g} s may be "
            "saved; it has spent"
        )
