"""TripleTable: triples of a message as rows of term numbers, found by what is given of them.

::

    rows       [ graph subject property object below | ... ]
    heads      of each kind of chain:  bucket -> row + 1, 0 for none
    following  of each kind of chain:  row -> row + 1

A chain is by any of subject, property and object, and always by the graph (0: the default graph).
Chains of a kind are made when the first is asked for.  Those of one bucket share a chain, so who
goes along one compares what it meets; that is counted as a visit each, whatever strangers send.
Rows of a chain come in their order in the message.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import ints

if not cython.compiled:
    TRIPLE_GRAPH, TRIPLE_SUBJECT, TRIPLE_PROPERTY, TRIPLE_OBJECT, TRIPLE_BELOW = range(5)
    TRIPLE_WIDTH = 5
    BY_SUBJECT, BY_PROPERTY, BY_OBJECT, CHAIN_KINDS = 1, 2, 4, 8


class TripleTable:
    """``add`` the rows, at most ``capacity``; then go along chains with ``first`` and
    ``following``."""

    def __init__(self, capacity: int) -> None:
        buckets = 8
        while buckets < 2 * capacity:
            buckets *= 2
        self.rows = ints(TRIPLE_WIDTH * max(capacity, 1))
        self.count: int = 0
        self._capacity = capacity
        self._built = 0
        self._mask = buckets - 1
        self._heads = self.following = self.rows  # until a chain is asked for

    def add(
        self,
        graph: cython.int,
        subject: cython.int,
        property: cython.int,  # noqa: A002 - RDF's word
        object: cython.int,  # noqa: A002
        below: cython.int,
    ) -> cython.int:
        """One more row, before chains are asked for; IndexError beyond the capacity."""
        if self.count == self._capacity:
            raise IndexError("a table of triples is full")
        at: cython.Py_ssize_t = TRIPLE_WIDTH * self.count
        self.rows[at + TRIPLE_GRAPH] = graph
        self.rows[at + TRIPLE_SUBJECT] = subject
        self.rows[at + TRIPLE_PROPERTY] = property
        self.rows[at + TRIPLE_OBJECT] = object
        self.rows[at + TRIPLE_BELOW] = below
        self.count += 1
        return 0

    def statements(self) -> list[tuple[int, int, int, int]]:
        """All rows as (graph, subject, property, object)."""
        return [
            (
                self.rows[at + TRIPLE_GRAPH],
                self.rows[at + TRIPLE_SUBJECT],
                self.rows[at + TRIPLE_PROPERTY],
                self.rows[at + TRIPLE_OBJECT],
            )
            for at in range(0, TRIPLE_WIDTH * self.count, TRIPLE_WIDTH)
        ]

    def first(
        self,
        kind: cython.int,
        graph: cython.int,
        subject: cython.int,
        property: cython.int,  # noqa: A002
        object: cython.int,  # noqa: A002
    ) -> cython.int:
        """The first row of the chain, or -1; what ``kind`` is not by has to be 0."""
        if not self._built & (1 << kind):
            self._build(kind)
        place: cython.Py_ssize_t = kind * (cython.cast(cython.Py_ssize_t, self._mask) + 1)
        place += _mixed(graph, subject, property, object) & self._mask
        return self._heads[place] - 1

    def after(self, kind: cython.int, row: cython.int) -> cython.int:
        """The next row of the chain, or -1."""
        place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, kind) * self._capacity + row
        return self.following[place] - 1

    def _build(self, kind: cython.int) -> cython.int:
        """Make the chains of a kind; backwards, as each row is put before the others."""
        row: cython.int
        at: cython.Py_ssize_t
        place: cython.Py_ssize_t
        heads: cython.Py_ssize_t
        base: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, kind) * self._capacity
        if self._built == 0:
            self._heads = ints(CHAIN_KINDS * (self._mask + 1))
            self.following = ints(CHAIN_KINDS * max(self._capacity, 1))
        heads = kind * (cython.cast(cython.Py_ssize_t, self._mask) + 1)
        for row in range(self.count - 1, -1, -1):
            at = TRIPLE_WIDTH * cython.cast(cython.Py_ssize_t, row)
            place = heads + (
                _mixed(
                    self.rows[at + TRIPLE_GRAPH],
                    self.rows[at + TRIPLE_SUBJECT] if kind & BY_SUBJECT else 0,
                    self.rows[at + TRIPLE_PROPERTY] if kind & BY_PROPERTY else 0,
                    self.rows[at + TRIPLE_OBJECT] if kind & BY_OBJECT else 0,
                )
                & self._mask
            )
            self.following[base + row] = self._heads[place]
            self._heads[place] = row + 1
        self._built |= 1 << kind
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mixed(
    graph: cython.int,
    subject: cython.int,
    property: cython.int,  # noqa: A002
    object: cython.int,  # noqa: A002
) -> cython.uint:
    # Typed, for the compiler takes a literal of more than 31 bits for an object.
    prime: cython.ulonglong = 0x9E3779B97F4A7C15
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    mixed: cython.ulonglong = cython.cast(cython.ulonglong, graph & 0x7FFFFFFF) * 0x45EBCA6B
    mixed += cython.cast(cython.ulonglong, subject & 0x7FFFFFFF) * 0x42B2AE35
    mixed += cython.cast(cython.ulonglong, property & 0x7FFFFFFF) * 0x27D4EB2F
    mixed += cython.cast(cython.ulonglong, object & 0x7FFFFFFF) * 0x165667B1
    mixed = (mixed * prime) & mask
    return (mixed >> 32) & 0xFFFFFFFF
