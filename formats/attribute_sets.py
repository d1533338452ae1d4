"""AttributeSets: the sets of attribute names that elements of one binary form have.

Number 0 is no attribute; then come the dictionary's sets, then those that the message says, each
where it is needed first.  The names of a set are checked once, whatever its elements are.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.wire_bytes import WireBytes
from formats.wire_model import WireModel
from formats.wire_names import WireNames

_MEMBERS_KEPT_MAX = 1 << 16


class AttributeSets:
    """One message after the other (``begin``); ``member(i)`` for i from ``start`` to ``end``."""

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._tag = 0
        self._meanings = 0
        self._members = _empty(64)
        self._member = self._members
        self._starts = _empty(32)
        self._start = self._starts

    def begin(self, model: WireModel, names: WireNames, size_max: cython.int) -> None:
        """``size_max``: attributes of one element."""
        self._model = model
        self._names = names
        self._size_max = size_max
        self._known = model.set_count
        self._own = 0
        if len(self._members) > _MEMBERS_KEPT_MAX:
            self._members = _empty(64)
            self._member = self._members
        if len(self._starts) > _MEMBERS_KEPT_MAX:
            self._starts = _empty(32)
            self._start = self._starts
        if names.count > self._meanings:
            self._meanings = names.count
            self._tags = array("q", bytes(8 * names.count))

    def choose(self, number: cython.int) -> cython.int:
        """Makes a set the present one; how many attributes it has."""
        model: WireModel = self._model
        own: cython.int = number - self._known
        self._is_own = own >= 0
        if self._is_own:
            self.start, self.end = self._start[own], self._start[own + 1]
        else:
            self.start, self.end = model.set_start[number], model.set_start[number + 1]
        return self.end - self.start

    def member(self, i: cython.int) -> cython.int:
        return self._member[i] if self._is_own else self._model.set_members[i]

    def read(self) -> cython.int:
        """The number of a set, from the source; a new one is read with it."""
        source: WireBytes = self._source
        i: cython.int
        number: cython.int = source.number()
        own: cython.int = number - self._known
        if own < self._own:
            return number
        if own > self._own:
            source.refuse("bad-structure", f"no set of attributes {number}")
        count: cython.int = source.number()
        if count > source.stop - source.at:
            source.refuse("bad-count", f"{count} attributes do not fit into the message")
        if count > self._size_max:
            source.refuse("too-many-attributes", f"{count} attributes on one element")
        start: cython.int = self._start[own]
        while start + count > len(self._members):
            self._members = self._members * 2
            self._member = self._members
        if own + 2 > len(self._starts):
            self._starts = self._starts * 2
            self._start = self._starts
        self._tag += 1
        for i in range(count):
            self._member[start + i] = self._read_name()
        self._start[own + 1] = start + count
        self._own = own + 1
        return number

    def _read_name(self) -> cython.int:
        """The name of an attribute: may be one, and means something else than those before."""
        source: WireBytes = self._source
        names: WireNames = self._names
        number: cython.int = source.number()
        if number >= names.count:
            source.refuse("bad-structure", f"no name {number}")
        if names.binding[number] < 0 and not names.resolve(number):
            source.refuse("undeclared-prefix", f"no prefix for the dictionary's name {number}")
        if names.is_xmlns[number]:
            source.refuse("bad-attribute", "xmlns is no attribute")
        meaning: cython.int = names.meaning[number]
        if self._tags[meaning] == self._tag:
            name = names.names[number]
            source.refuse("bad-attribute", f"attribute {name} stands twice on one element")
        self._tags[meaning] = self._tag
        return number


def _empty(rows: int) -> array[int]:
    return array("i", bytes(4 * rows))
