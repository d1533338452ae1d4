"""LocalQueries: the local profiles of a matcher, and who has registered them.

Equal profiles are one query.  A query goes into the index if that can say all of its matching path,
the others go into the operator network.  Of one in the index nothing is kept but its text as
``unparse`` writes it, some 60 bytes, of which its tree is made again where somebody needs it; the
last TREES_MAX of these are remembered.
"""

from __future__ import annotations

from functools import lru_cache

from yfilter.engine.matching_plan import decompose
from yfilter.engine.operator_network import OperatorNetwork
from yfilter.engine.operators.operator import Operator
from yfilter.engine.targets import Query
from yfilter.index.index import Index
from yfilter.index.indexed_part import indexed_part
from yfilter.index.key_table import KeyTable
from yfilter.index.subscriber_runs import SubscriberRuns
from yfilter.language.matching_path import has_remainder, matching_path
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import reread
from yfilter.language.query_text import unparse
from yfilter.registrations import Registrations

TREES_MAX = 4_096


class LocalQueries:
    """Add and remove registrations by their profile ids.

    ``remainders`` are the queries of the index that have one: the index's answer is necessary but
    not sufficient.  ``runs`` are the registrations of the queries in the index.
    """

    def __init__(self, index: Index | None, network: OperatorNetwork) -> None:
        self.remainders: set[int] = set()
        self.runs = SubscriberRuns()
        self.registrations = Registrations()
        self._index = index
        self._network = network
        self._texts = KeyTable()  # of the queries in the index, by their number there
        self._others: dict[bytes, tuple[Query, Operator]] = {}
        self._other_of: dict[int, Query] = {}  # by registration

    def add(self, profile: Profile, name: str, stamp: int) -> None:
        """Register a profile under an id that is not in use."""
        text = _text_of(profile)
        number = self._texts.find(text)
        query = None
        if not number:
            number, query = self._install(profile, text)
        registration = self.registrations.open(name, stamp, number)
        if query is None:
            self.runs.add(number, registration)
        else:
            query.subscribers[name] = registration
            self._other_of[registration] = query

    def remove(self, name: str) -> None:
        """Undo ``add``; KeyError if the id is not known."""
        registration = self.number_of(name)
        number = self.registrations.query[registration]
        self.registrations.close(registration)
        if number == 0:
            self._remove_other(self._other_of.pop(registration), name)
        elif not self.runs.remove(number, registration) and self._index is not None:
            self._texts.remove(number)
            self._index.remove(number)
            self.remainders.discard(number)

    def number_of(self, name: str) -> int:
        """The number of a registration; KeyError if the id is not known."""
        number = self.registrations.find(name)
        if not number:
            raise KeyError(name)
        return number

    def profile_of(self, name: str) -> Profile | None:
        """What is registered under an id, None for one that is not known."""
        registration = self.registrations.find(name)
        if not registration:
            return None
        number = self.registrations.query[registration]
        return tree_of(self.text(number)) if number else self._other_of[registration].profile

    def index_number(self, profile: Profile) -> int | None:
        """Where a profile's query is: its number in the index, 0 for the network, None: nowhere."""
        text = _text_of(profile)
        return self._texts.find(text) or (0 if text in self._others else None)

    def text(self, number: int) -> bytes:
        """What is kept of a query in the index; ``tree_of`` makes its profile of it."""
        return self._texts.key(number)

    def open_since(self, number: int, stamp: int) -> list[int]:
        """The registrations of a query in the index that were there at a count of changes."""
        since = self.registrations.since
        return [found for found in self.runs.of(number) if since[found] <= stamp]

    def names_of(self, number: int) -> list[str]:
        """The ids of the profiles that are a query in the index."""
        return list(map(self.registrations.name, self.runs.of(number)))

    def statistics(self) -> dict[str, int]:
        return {
            "profiles": len(self.registrations),
            "queries": len(self._texts) + len(self._others),
            "profiles_bytes": (
                self.registrations.size_bytes() + self.runs.size_bytes() + self._texts.size_bytes()
            ),
        }

    def _install(self, profile: Profile, text: bytes) -> tuple[int, Query | None]:
        """The number of a query in the index, or one in the network."""
        found = self._others.get(text)
        if found is not None:
            return 0, found[0]
        part = None if self._index is None else indexed_part(profile)
        if part is None or self._index is None:
            query = Query(profile, has_remainder(profile))
            operator = self._network.build_plan(decompose(matching_path(profile)))
            self._network.attach(operator, query)
            self._others[text] = query, operator
            return 0, query
        number = self._index.add_way(part.way)
        self._texts.insert(text, number)
        if part.has_remainder:
            self.remainders.add(number)
        return number, None

    def _remove_other(self, query: Query, name: str) -> None:
        del query.subscribers[name]
        if not query.subscribers:
            _, operator = self._others.pop(_text_of(query.profile))
            self._network.detach(operator, query)


def _text_of(profile: Profile) -> bytes:
    """Equal for equal trees, and only for those."""
    text = unparse(profile) if profile.parts is None else profile.parts.text()
    return text.encode()


@lru_cache(maxsize=TREES_MAX)
def tree_of(text: bytes) -> Profile:
    """The profile of a text that is kept."""
    return reread(text.decode())
