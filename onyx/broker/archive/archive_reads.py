"""ArchiveReads: what root brokers have archived, asked for over the network, page by page.

The core decides whether that may be asked; the shell reads (message_archive.py), and a page is
answered after that.
"""

from __future__ import annotations

from collections.abc import Iterable

from onyx.broker.network.control_plane import ControlPlane
from overlay import verbs
from overlay.answers import ArchivePage
from overlay.link.core_context import CoreContext
from overlay.link.events import ArchiveRead, ReadArchive
from overlay.link.frames import Request, Response
from overlay.link.part import Hearer, Part, hears
from overlay.link.request_server import (
    RequestRefused,
    Result,
    Verb,
)

WAITING_MAX = 16  # pages that are asked for


class ArchiveReads(Part):
    """``archive.read`` with ``source``, ``since`` and ``until`` (seconds of the epoch), ``after``
    (``next`` of the page before): ``lines`` as an archive has them, and ``next``, "" at the end."""

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._control = control
        self._has_archive = context.topology.archive.directory is not None
        self._links = context.links
        self._waiting: dict[str, tuple[int, str]] = {}  # connection and request, by key
        self._last = 0
        self.verbs = (Verb(verbs.ArchiveRead, self._read, control.source_named),)

    def events(self) -> Iterable[Hearer]:
        yield hears(ArchiveRead, self._answered)

    def _answered(self, event: ArchiveRead) -> bool:
        connection, request = self._waiting.pop(event.key)
        result = ArchivePage(event.lines, event.next, event.damaged).result()
        self._links.reply(connection, Response(request, ok=True, result=result))
        return True

    def _read(self, connection: int, request: Request, asked: verbs.ArchiveRead) -> Result | None:
        self._control.check_root(asked.source)
        if not self._has_archive:
            raise RequestRefused("no-archive", f"{self._control.identity} has no archive")
        if len(self._waiting) >= WAITING_MAX:
            raise RequestRefused("busy", f"{WAITING_MAX} pages are being read; try again later")
        page = ReadArchive(
            str(self._last + 1),
            asked.source,
            asked.since,
            asked.until,
            asked.after,
        )
        self._last += 1
        self._waiting[page.key] = connection, request.request
        self.ask_shell(page)
        return None
