# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Moves: steps of many states along edges of the automaton, made together.

Nearly every transition and every state that a message needs is a cache miss.  ``resolve`` takes
each step of the way for all moves before the next step: the misses of one step do not depend on
each other, and the processor waits for many at a time.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import ints, longs

if cython.compiled:
    from cython.cimports.yfilter.index.lazy_states import LazyStates
else:
    from yfilter.index.lazy_states import LazyStates
    from yfilter.index.state_table import STATE_COUNT, STATE_FIRST, STATE_TIME, STATE_WIDTH


class Moves:
    """``count`` moves of an ``element``'s states; ``target`` is where each leads, 0 for nowhere.

    ``item`` is the caller's.  A key of ``edge`` 0 is for a name that the state has no edge for.
    """

    def __init__(self) -> None:
        self.count = 0
        self._touched = 0
        self._room = 0
        self.cover(256)

    def cover(self, room: cython.int) -> cython.int:
        """Make room for so many; what is there is lost."""
        if room > self._room:
            self._room = 2 * room
            self.key = longs(2 * room)
            self.target = ints(2 * room)
            self.state = ints(2 * room)
            self.element = ints(2 * room)
            self.item = ints(2 * room)
        return 0

    def resolve(self, states: LazyStates, clock: cython.int) -> cython.int:
        """Find all targets, none of them out of date."""
        rows: cython.int[::1] = states.states
        i: cython.int
        first: cython.int
        stale: cython.int = 0
        touched: cython.int = 0
        states.transitions.get_all(self.key, self.target, self.count)
        # PERF: loads that nothing waits for, so that what new steps begin with is in the cache.
        for i in range(self.count):
            if self.target[i] < 0 and rows[STATE_WIDTH * self.state[i] + STATE_COUNT]:
                first = rows[STATE_WIDTH * self.state[i] + STATE_FIRST]
                touched ^= states.members[first] ^ states.member_edges[first]
        self._touched = touched
        for i in range(self.count):
            if self.target[i] < 0:
                if self.key[i]:
                    self.target[i] = states.follow(self.state[i], self._edge(i))
                else:
                    self.target[i] = states.elsewhere(self.state[i])
        rows = states.states
        for i in range(self.count):
            stale |= (self.target[i] != 0) & (
                rows[STATE_WIDTH * self.target[i] + STATE_TIME] != clock
            )
        if stale:
            states.touch(self.target, self.count)
            for i in range(self.count):
                if (
                    self.target[i]
                    and states.states[STATE_WIDTH * self.target[i] + STATE_TIME] != clock
                ):
                    self.target[i] = states.fresh(self.target[i], self.state[i], self._edge(i))
        return 0

    def _edge(self, i: cython.int) -> cython.int:
        # Typed, for the compiler takes a literal of more than 31 bits for an object.
        mask: cython.longlong = 0xFFFFFFFF
        return self.key[i] & mask
