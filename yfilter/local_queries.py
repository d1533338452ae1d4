"""LocalQueries: the local profiles of a matcher, and who has registered them.

Equal profiles are one query of the index.  Nothing else is kept of it but its text as
``unparse`` writes it, some 60 bytes, of which its tree is made again where somebody needs it; the
last TREES_MAX of these are remembered.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache

from yfilter.engine.readings import Reading
from yfilter.index.automaton import KeyTable, SubscriberRuns
from yfilter.index.index import Index
from yfilter.index.indexed_part import indexed_part
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import reread
from yfilter.language.query_text import unparse
from yfilter.registrations import Registrations

TREES_MAX = 4_096


class LocalQueries:
    """Add and remove registrations by their profile ids.

    ``remainders`` are the queries that can have no result although the index found them, ``made``
    those whose results are made of the message, and not the message itself, ``graphs`` those of the
    graph reading.  ``runs`` are the registrations of the queries, ``changes`` counts what was added
    and removed.
    """

    def __init__(self, index: Index) -> None:
        self.remainders: set[int] = set()
        self.made: set[int] = set()
        self.graphs: set[int] = set()
        self.runs = SubscriberRuns()
        self.changes = 0
        self.registrations = Registrations()
        self._index = index
        self._texts = KeyTable()  # of the queries, by their number in the index

    def add(self, profile: Profile, name: str) -> None:
        """Register a profile under an id that is not in use."""
        text = text_of(profile)
        number = self._texts.find(text) or self._install(profile, text)
        self.changes += 1
        self.runs.add(number, self.registrations.open(name, self.changes, number))

    def remove(self, name: str) -> int:
        """Undo ``add``; the number of a query that is gone by that, or 0.  KeyError if the id is
        not known."""
        registration = self.number_of(name)
        number = self.registrations.query[registration]
        self.registrations.close(registration)
        self.changes += 1
        if not self.runs.remove(number, registration):
            self._texts.remove(number)
            self._index.remove(number)
            self.remainders.discard(number)
            self.made.discard(number)
            self.graphs.discard(number)
            return number
        return 0

    def number_of(self, name: str) -> int:
        """The number of a registration; KeyError if the id is not known."""
        number = self.registrations.find(name)
        if not number:
            raise KeyError(name)
        return number

    def by_query(self, names: Iterable[str]) -> dict[int, array[int]]:
        """The numbers of registrations, by their query; KeyError for an id that is not known."""
        found: dict[int, array[int]] = {}
        for number in map(self.number_of, names):
            found.setdefault(self.registrations.query[number], array("i")).append(number)
        return found

    def profile_of(self, name: str) -> Profile | None:
        """What is registered under an id, None for one that is not known."""
        registration = self.registrations.find(name)
        if not registration:
            return None
        return tree_of(self.text(self.registrations.query[registration]))

    def index_number(self, profile: Profile) -> int:
        """The number of a profile's query, 0 if it has none."""
        number: int = self._texts.find(text_of(profile))
        return number

    def reading(self, number: int) -> Reading:
        """Of what a query is."""
        return Reading.GRAPH if number in self.graphs else Reading.DOCUMENT

    def text(self, number: int) -> bytes:
        """What is kept of a query; ``tree_of`` makes its profile of it."""
        return self._texts.key(number)

    def open_since(self, number: int, stamp: int) -> list[int]:
        """The registrations of a query that were there at a count of changes."""
        since = self.registrations.since
        found = self.runs.of(number)
        # PERF: a query that one profile has asked for is most of them.
        if len(found) == 1:
            return found if since[found[0]] <= stamp else []
        return [one for one in found if since[one] <= stamp]

    def names_of(self, number: int) -> list[str]:
        """The ids of the profiles that are a query."""
        return list(map(self.registrations.name, self.runs.of(number)))

    def statistics(self) -> dict[str, int]:
        return {
            "profiles": len(self.registrations),
            "queries": len(self._texts),
            "profiles_bytes": (
                self.registrations.size_bytes() + self.runs.size_bytes() + self._texts.size_bytes()
            ),
        }

    def _install(self, profile: Profile, text: bytes) -> int:
        """The number of a new query."""
        part = indexed_part(profile)
        number = self._index.add(part.ways, part.reading)
        self._texts.insert(text, number)
        if part.has_remainder:
            self.remainders.add(number)
        if not part.is_message:
            self.made.add(number)
        if part.reading is Reading.GRAPH:
            self.graphs.add(number)
        return number


def text_of(profile: Profile) -> bytes:
    """Equal for equal trees, and only for those."""
    text = unparse(profile) if profile.parts is None else profile.parts.text()
    return text.encode()


@lru_cache(maxsize=TREES_MAX)
def tree_of(text: bytes) -> Profile:
    """The profile of a text that is kept."""
    return reread(text.decode())
