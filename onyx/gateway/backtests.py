"""Backtests: what a profile would have got of the messages that a root broker has archived.

::

    archive.read of a page ──> a trial of it ──> sums ──> the next page
         as whoever asks        in a process of its own, with its limits

One page of a backtest is under way at a time, so others have their turns at the processes.  What
becomes of them is the session's, and gone with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

import msgspec
import trio

from onyx.errors import RequestFailed, UserError
from onyx.gateway.api_answers import BacktestShown, Ended, Sample
from overlay.answers import ArchivePage

KEPT_MAX = 8  # of a session that have ended; the oldest goes
RUNNING_MAX = 2  # of a session
SAMPLES_MAX = 20  # shown of one
COUNTED = ("messages", "unread", "given_up", "matches", "results", "bytes")


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class ReadPage(Protocol):
    """Of an archive, behind where the last one ended."""

    async def __call__(self, after: str) -> ArchivePage: ...


class TryPage(Protocol):
    async def __call__(self, question: Mapping[str, object]) -> dict[str, Any]: ...


@dataclass(slots=True)
class Backtest:
    """``since`` and ``until``: seconds of the epoch; ``figures``: sums by COUNTED; ``damaged``:
    parts of the archive that cannot be read."""

    id: str
    profile: str
    source: str
    since: float
    until: float
    state: State = State.RUNNING
    figures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    samples: list[Sample] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    failure: Ended | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    _first: float = 0.0
    _last: float = 0.0

    def shown(self) -> BacktestShown:
        return BacktestShown(
            id=self.id,
            profile=self.profile,
            source=self.source,
            since=_text(self.since),
            until=_text(self.until),
            state=self.state.value,
            share=self._share(),
            last=_text(self._last) if self._last else None,
            **self.figures,
            samples=self.samples,
            damaged=self.damaged,
            failure=self.failure,
        )

    async def run(self, page: ArchivePage, read: ReadPage, try_page: TryPage) -> None:
        """From its first page on."""
        with self.scope:
            try:
                while True:
                    question = {"profile": self.profile, "lines": page.lines}
                    self._take(await try_page(question))
                    self.damaged += page.damaged
                    if not page.next:
                        break
                    page = await read(page.next)
                self.state = State.DONE
            except UserError as error:
                self.state = State.FAILED
                self.failure = Ended(error.code, error.reason)

    def _take(self, found: Mapping[str, Any]) -> None:
        for name in COUNTED:
            self.figures[name] += found[name]
        samples = found["samples"][: SAMPLES_MAX - len(self.samples)]
        self.samples += msgspec.convert(samples, list[Sample])
        if found["messages"]:
            self._first = self._first or _second(found["first"])
            self._last = _second(found["last"])

    def _share(self) -> float:
        if self.state is State.DONE:
            return 1.0
        length = self.until - self._first
        return round(min(1.0, max(0.0, (self._last - self._first) / length)), 4) if length else 0.0


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
        ended = [each.id for each in self._kept.values() if each.state is not State.RUNNING]
        if len(self._kept) - len(ended) >= RUNNING_MAX:
            raise RequestFailed("busy", f"{RUNNING_MAX} backtests are running; end one of them")
        for old in ended[: 1 - KEPT_MAX]:
            del self._kept[old]
        name = f"b{next(self._numbers)}"
        found = self._kept[name] = Backtest(name, profile, source, since, until)
        return found

    def end(self, backtest: str) -> None:
        """It is cancelled, if it runs, and forgotten."""
        self.one(backtest).scope.cancel()
        del self._kept[backtest]


def _second(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _text(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds")
