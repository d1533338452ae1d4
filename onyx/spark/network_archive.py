"""Archives of brokers over the network: which parts there are, and the messages of a part.

A part is a span of time of one source; executors ask the source's root broker for its pages by the
verb ``archive.read``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import islice, pairwise

from msgspec.structs import replace

from onyx.spark.network import Network
from overlay.archive_file import ArchivedMessage, old_rows_of
from overlay.verbs import ArchiveRead, SourceList, SourceShow

PARTS = 8  # of the archive of a source
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class NetworkPart:
    """Messages of ``source`` from ``since`` to before ``until``, microseconds of the epoch, at
    ``most`` the first so many; its root broker is at ``address``."""

    network: Network
    source: str
    address: str
    since: int
    until: int
    most: int | None = None

    def rows(self, tell: Callable[[str], None]) -> Iterator[ArchivedMessage]:
        """The messages, page by page; ``tell`` is called for each gap."""
        with closing(self._rows(tell)) as rows:
            yield from islice(rows, self.most)

    def _rows(self, tell: Callable[[str], None]) -> Generator[ArchivedMessage, None, None]:
        since, until = self.since / _SECOND, self.until / _SECOND
        wanted = ArchiveRead(source=self.source, since=since, until=until)
        with self.network.asking(self.address) as ask:
            while True:
                page = ask(wanted)
                yield from old_rows_of(page.lines)
                for gap in page.damaged:
                    tell(gap)
                if not page.next:
                    return
                wanted = replace(wanted, after=page.next)

    def cut(self) -> Iterator[NetworkPart]:
        """PARTS of equal length, from the first message to now."""
        with closing(self._rows(lambda gap: None)) as rows:
            first = next(rows, None)
        if first is None:
            return
        until = min(self.until, round(time.time() * _SECOND))
        length = max(0, until - first.time)
        marks = [first.time + length * place // PARTS for place in range(PARTS + 1)]
        for since, end in pairwise(marks):
            if since < end:
                yield changed(self, since=since, until=end)


def parts_of(
    network: Network, named: Sequence[str], since: int, until: int, sample: int | None = None
) -> tuple[NetworkPart, ...]:
    """One a source, of those with these ids or names, or of all; ``sample``: about so many messages
    of all of them, the first of each part that ``cut`` gives."""
    with network.asking(network.registration) as ask:
        found = [ask(SourceShow(source=one)) for one in named] or ask(SourceList()).sources
    most = None if sample is None else -(-sample // (PARTS * max(1, len(found))))
    return tuple(NetworkPart(network, one.id, one.address, since, until, most) for one in found)
