"""StatisticsRequests: how a process is, asked from outside; short, however much there is of it.

::

    statistics                       a summary of at most 64 KB; "cut": how many there are of what
                                     it has not all
    statistics of=links.connections  a page of one collection: entries whose name has ``match`` in
                                     it, from the ``first`` on

What is asked of a process that has 100,000 users is answered in between, by the one thread that
everybody waits for: the summary looks at no collection from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgpack

from overlay.link.frames import Request
from overlay.link.link_layer import LinkLayer
from overlay.link.request_server import (
    RequestRefused,
    Result,
    name_argument,
    number_argument,
)

SUMMARY_BYTES_MAX = 64 * 1024
PAGE_BYTES_MAX = 64 * 1024
PAGE_MAX = 100
ENTRIES_MAX = 100  # of a collection in a summary; of what is no number fewer, if they are too long
_FEWER = (100, 20, 5, 1, 0)


class StatisticsRequests:
    """``handle`` a request."""

    def __init__(self, statistics: Callable[[], Mapping[str, Any]], links: LinkLayer) -> None:
        self._statistics = statistics
        self._links = links

    def handle(self, connection: int, request: Request) -> Result:
        of = name_argument(request, "of", default="")
        if not of:
            return summary(self._statistics())
        first = int(number_argument(request, "first", 0))
        match = name_argument(request, "match", default="")
        return page(of, self._collection(of), first, match)

    def _collection(self, of: str) -> Iterator[tuple[str, Callable[[], object]]]:
        """Of each entry its name, and what it says if it is asked."""
        kept = self._links.kept.get(of.removeprefix("links."))
        if of.startswith("links.") and kept is not None:
            return ((str(name), entry.statistics) for name, entry in kept.items())
        found: Any = self._statistics()
        for part in of.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return ((str(name), _saying(entry)) for name, entry in found.items())
        if isinstance(found, Sequence) and not isinstance(found, str | bytes):
            return ((str(number), _saying(entry)) for number, entry in enumerate(found))
        raise RequestRefused("unknown-statistics", f"there is no collection {of!r} here")


def _saying(entry: object) -> Callable[[], object]:
    return lambda: entry


def page(
    of: str, entries: Iterator[tuple[str, Callable[[], object]]], first: int, match: str
) -> Result:
    """``entries``: [name, what it says] each; ``next``: the ``first`` of the next page, if any.
    Of a list the names are numbers, and what is matched is what it says."""
    found = (
        (name, say)
        for name, say in entries
        if not match or match in name or (name.isdecimal() and match in str(say()))
    )
    shown: list[list[object]] = []
    left = PAGE_BYTES_MAX
    for name, say in islice(found, first, None):
        entry = say()
        left -= len(msgpack.packb((name, entry), default=str))
        if shown and (left < 0 or len(shown) >= PAGE_MAX):
            return {"of": of, "entries": shown, "next": first + len(shown)}
        shown.append([name, entry])
    return {"of": of, "entries": shown, "next": None}


def summary(statistics: Mapping[str, Any]) -> Result:
    """What fits: of each collection the first entries."""
    found: Result = {}
    for most in _FEWER:
        cut: dict[str, int] = {}
        found = {name: _cut(value, most, name, cut) for name, value in statistics.items()}
        if cut:
            found["cut"] = cut
        if len(msgpack.packb(found, default=str)) <= SUMMARY_BYTES_MAX:
            break
    return found


def _cut(value: Any, most: int, path: str, cut: dict[str, int]) -> Any:
    """``most``: of entries that are no numbers; of numbers ENTRIES_MAX."""
    if isinstance(value, Mapping):
        some = list(islice(value.items(), ENTRIES_MAX))
        are_named = path.count(".") < 1 or any(isinstance(e, bool | int | float) for _, e in some)
        kept = some if are_named else some[:most]
        if len(kept) < len(value):
            cut[path] = len(value)
        return {name: _cut(entry, most, f"{path}.{name}", cut) for name, entry in kept}
    if isinstance(value, list | tuple | set | frozenset):
        if len(value) > most:
            cut[path] = len(value)
        return [_cut(entry, most, path, cut) for entry in islice(value, most)]
    return value
