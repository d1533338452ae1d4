"""Backtests: what a profile would have got of the messages that a root broker has archived.

::

    archive.read of a page ──> a trial of it ──> sums ──> the next page
         as whoever asks        in a process of its own, with its limits

One page of a backtest is under way at a time, so others have their turns at the processes.  What
becomes of them is the session's, and gone with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
import trio
from msgspec.structs import replace

from onyx.errors import RequestFailed, UserError
from onyx.gateway.api_answers import BacktestShown, Ended, Sample
from overlay.answers import ArchivePage

KEPT_MAX = 8  # of a session that have ended; the oldest goes
RUNNING_MAX = 2  # of a session
SAMPLES_MAX = 20  # shown of one
COUNTED = ("messages", "unread", "given_up", "matches", "results", "bytes")


class ReadPage(Protocol):
    """Of an archive, behind where the last one ended."""

    async def __call__(self, after: str) -> ArchivePage: ...


class TryPage(Protocol):
    async def __call__(self, question: Mapping[str, object]) -> dict[str, Any]: ...


@dataclass(slots=True)
class Backtest:
    """``shown``: how far it is, of all ``until`` that second of the epoch."""

    shown: BacktestShown
    until: float
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    _first: float = 0.0

    @property
    def id(self) -> str:
        return self.shown.id

    def change(self, **said: Any) -> None:
        self.shown = replace(self.shown, **said)

    async def run(self, page: ArchivePage, read: ReadPage, try_page: TryPage) -> None:
        """From its first page on."""
        with self.scope:
            try:
                while True:
                    question = {"profile": self.shown.profile, "lines": page.lines}
                    self._take(await try_page(question), page.damaged)
                    if not page.next:
                        break
                    page = await read(page.next)
                self.change(state="done", share=1.0)
            except UserError as error:
                self.change(state="failed", failure=Ended(error.code, error.reason))

    def _take(self, found: Mapping[str, Any], damaged: Iterable[str]) -> None:
        shown = self.shown
        samples = found["samples"][: SAMPLES_MAX - len(shown.samples)]
        self.change(
            **{name: getattr(shown, name) + found[name] for name in COUNTED},
            samples=[*shown.samples, *msgspec.convert(samples, list[Sample])],
            damaged=[*shown.damaged, *damaged],
        )
        if found["messages"]:
            self._first = self._first or _second(found["first"])
            last = _second(found["last"])
            length = self.until - self._first
            share = min(1.0, max(0.0, (last - self._first) / length)) if length else 0.0
            self.change(last=_text(last), share=round(share, 4))


class Backtests:
    """Of a session, by id."""

    def __init__(self) -> None:
        self._kept: dict[str, Backtest] = {}
        self._numbers = itertools.count(1)

    def all(self) -> list[Backtest]:
        """The latest first."""
        return list(self._kept.values())[::-1]

    def one(self, backtest: str) -> Backtest:
        if backtest not in self._kept:
            raise RequestFailed("unknown-backtest", f"there is no backtest {backtest!r}")
        return self._kept[backtest]

    def add(self, profile: str, source: str, since: float, until: float) -> Backtest:
        """RequestFailed where too many are running."""
        ended = [each.id for each in self._kept.values() if each.shown.state != "running"]
        if len(self._kept) - len(ended) >= RUNNING_MAX:
            raise RequestFailed("busy", f"{RUNNING_MAX} backtests are running; end one of them")
        for old in ended[: 1 - KEPT_MAX]:
            del self._kept[old]
        name = f"b{next(self._numbers)}"
        shown = BacktestShown(
            id=name,
            profile=profile,
            source=source,
            since=_text(since),
            until=_text(until),
            state="running",
            share=0.0,
            last=None,
            **dict.fromkeys(COUNTED, 0),
            samples=[],
            damaged=[],
            failure=None,
        )
        found = self._kept[name] = Backtest(shown, until)
        return found

    def end(self, backtest: str) -> None:
        """It is cancelled, if it runs, and forgotten."""
        self.one(backtest).scope.cancel()
        del self._kept[backtest]


def _second(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _text(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds")
