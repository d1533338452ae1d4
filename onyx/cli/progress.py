"""Progress: how far something is that takes its time, on standard error."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Self

SECONDS = 2.0  # what takes longer says how far it is, so often
SECONDS_ON_A_TERMINAL = 0.1  # where one line is written over and over


class Progress:
    """A context manager: of ``total`` things, how many were ``done`` ("published"); in the end how
    many in which time, if it took long enough to be shown."""

    def __init__(self, done: str, total: int) -> None:
        self._what = done
        self._total = total
        self._count = self._bytes = 0
        self._is_terminal = sys.stderr.isatty()
        self._pause = SECONDS_ON_A_TERMINAL if self._is_terminal else SECONDS
        self._begun = monotonic()
        self._next = self._begun + SECONDS
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_shown:
            seconds = monotonic() - self._begun
            self._write(f"{self._said()}, {self._bytes:,} bytes in {seconds:.1f} s", end="\n")

    def note(self, bytes_: int) -> None:
        """One more is done; so many bytes were read up to now."""
        self._count += 1
        self._bytes = bytes_
        if monotonic() >= self._next:
            self._is_shown = True
            self._next = monotonic() + self._pause
            self._write(self._said(), end="" if self._is_terminal else "\n")

    def _said(self) -> str:
        rate = self._count / max(1e-3, monotonic() - self._begun)
        return f"{self._count:,} of {self._total:,} {self._what}, {rate:,.0f} a second"

    def _write(self, text: str, end: str) -> None:
        begin = "\r\033[K" if self._is_terminal else ""
        print(f"{begin}onyx: {text}", end=end, file=sys.stderr, flush=True)
