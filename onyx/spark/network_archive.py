"""Archives of brokers over the network: which parts there are, and the messages of a part.

A part is a span of time of one source; executors ask the source's root broker for its pages by the
verb ``archive.read``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from socket import gethostname
from typing import Any

from msgspec.structs import replace

from onyx.blocking import PORTALS
from onyx.errors import UserError
from onyx.identity.known_networks import use_credentials
from onyx.registration_client import NetworkClient
from onyx.spark.filtering import SparkMisused
from overlay.answers import SourceInfo
from overlay.archive_file import ArchivedMessage, old_rows_of
from overlay.verbs import ArchiveRead, SourceList, SourceShow

PARTS = 8  # of the archive of a source
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Network:
    """``registration``: an address; ``credentials``: the path of a file at the driver and at every
    worker, "": what their account knows.  SparkMisused says why something was not answered."""

    registration: str
    credentials: str = ""

    def sources(self, named: list[str]) -> list[SourceInfo]:
        """The sources with these ids or names; all, if none is named."""
        with self.asking(self.registration) as ask:
            if not named:
                return list(ask(SourceList()).sources)
            return [ask(SourceShow(source=one)) for one in named]

    @contextmanager
    def asking(self, address: str) -> Iterator[Callable[[Any], Any]]:
        """A connection to a process of the network, as a function of verbs."""
        shown = Path(self.credentials) if self.credentials else None
        try:
            with (
                use_credentials(shown),
                PORTALS as portal,
                portal.wrap_async_context_manager(NetworkClient(address)) as client,
            ):
                yield lambda asked: portal.call(client.ask, asked)
        except UserError as error:
            said = str(error).splitlines()[0]
            raise SparkMisused(
                f"network {self.registration}, asked from {gethostname()}: {said}"
            ) from None


@dataclass(frozen=True, slots=True)
class NetworkPart:
    """Messages of ``source`` from ``since`` to before ``until``, microseconds of the epoch; its
    root broker is at ``address``."""

    network: Network
    source: str
    address: str
    since: int
    until: int

    def rows(self) -> Generator[ArchivedMessage, None, None]:
        """The messages, page by page."""
        since, until = self.since / _SECOND, self.until / _SECOND
        wanted = ArchiveRead(source=self.source, since=since, until=until)
        with self.network.asking(self.address) as ask:
            while True:
                page = ask(wanted)
                yield from old_rows_of(page.lines)
                if not page.next:
                    return
                wanted = replace(wanted, after=page.next)

    def cut(self) -> Iterator[NetworkPart]:
        """PARTS of equal length, from the first message to now."""
        with closing(self.rows()) as rows:
            first = next(rows, None)
        if first is None:
            return
        until = min(self.until, round(time.time() * _SECOND))
        length = max(0, until - first.time)
        marks = [first.time + length * place // PARTS for place in range(PARTS + 1)]
        for since, end in pairwise(marks):
            if since < end:
                yield NetworkPart(self.network, self.source, self.address, since, end)
