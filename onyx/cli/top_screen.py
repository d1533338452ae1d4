"""TopScreen: ``onyx top`` on a terminal.

Textual runs on asyncio, the clients of a network on Trio: so they look in a thread of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, ClassVar

import trio
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Static

from onyx.cli.top_rows import HEADINGS, KINDS, shown
from onyx.errors import leaves
from onyx.network_looks import watch_network
from onyx.network_view import NetworkView

JOIN_SECONDS = 5.0


class TopScreen(App[None]):
    """``show`` a view; ``run_to_end`` looks until somebody presses q."""

    CSS = """
    DataTable { height: auto; max-height: 40%; margin-bottom: 1; }
    #said { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "End")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, where: str, interval: float) -> None:
        super().__init__()
        self._where = where
        self._interval = interval
        self._error: BaseException | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        yield Static(f"{self._where}, every {self._interval:g} s", id="said")
        for kind in KINDS:
            yield DataTable(id=kind, cursor_type="none", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        for kind in KINDS:
            self.query_one(f"#{kind}", DataTable).add_columns(*HEADINGS[kind])

    def show(self, view: NetworkView) -> None:
        """All tables anew."""
        for kind in KINDS:
            found: DataTable[Any] = self.query_one(f"#{kind}", DataTable)
            found.clear()
            rows: Iterable[Any] = getattr(view, kind)
            for row in rows:
                found.add_row(*map(_cell, shown(row).values()))

    def run_to_end(self) -> None:
        """UserError when the network cannot be looked at."""
        scope = trio.CancelScope()
        token: list[trio.lowlevel.TrioToken] = []
        began = threading.Event()

        async def look() -> None:
            token.append(trio.lowlevel.current_trio_token())
            began.set()
            with scope:
                await watch_network(self._where, self._interval, self._hand_over)

        def run() -> None:
            try:
                trio.run(look)
            except BaseException as error:  # told where the program ends
                if not self._is_over:
                    self._error = leaves(error)[0]
                    self._end()

        thread = threading.Thread(target=run, name="looks", daemon=True)
        thread.start()
        self.run()
        self._is_over = True
        began.wait()
        with suppress(trio.RunFinishedError):
            token[0].run_sync_soon(scope.cancel)
        thread.join(JOIN_SECONDS)
        if self._error is not None:
            raise self._error

    def _hand_over(self, view: NetworkView) -> None:
        """Of the thread that looks; after the end nobody is there."""
        with suppress(RuntimeError, CancelledError, NoMatches):
            self.call_from_thread(self.show, view)

    def _end(self) -> None:
        with suppress(RuntimeError, CancelledError):
            self.call_from_thread(self.exit)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
