# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run: one message through the automaton.

Each open element has *heads*, the states that its children start from::

    one          of the structure: all paths whose access predicate is not met yet
    one for each access predicate that holds on the element or an ancestor, as long as something
                 can follow; for a range it carries the number that the message has there

So what a profile asks for besides its access predicate is looked at only where that holds.  An
element takes about one look-up of a transition a head, two an own atom, and for each candidate
one a mark.  Heads in the same state do the same, so that each is kept once.

A run is about one priority class, whose root of the trie it starts from.  Where queries lead to
links (``groups``), a candidate is verified only while one of its links is wanted, and the run ends
when none is (see target_groups.py).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Callable

from yfilter.index.columns import doubles, grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.accept_lists import AcceptLists
    from cython.cimports.yfilter.index.lazy_states import LazyStates
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.residuals import Residuals
    from cython.cimports.yfilter.index.trie import Trie, edge_bit
else:
    from yfilter.index.accept_lists import AcceptLists
    from yfilter.index.lazy_states import LazyStates
    from yfilter.index.message_view import MessageView
    from yfilter.index.residuals import Residuals
    from yfilter.index.trie import Trie, edge_bit
from yfilter.index.target_groups import TargetGroups

# What ``match`` gives for a message that would cost too much.
TOO_COSTLY = -1

_STRUCTURE = -1  # operator of the head that carries the structure


class Run:
    """``match`` the message that ``view`` is bound to; the queries stand in ``found``."""

    def __init__(
        self,
        view: MessageView,
        residuals: Residuals,
        trie: Trie,
        new_states: Callable[[LazyStates | None], LazyStates],
    ) -> None:
        self.view = view
        self.residuals = residuals
        self.trie = trie
        self._new_states = new_states
        self.states = new_states(None)
        self.found = ints(1024)
        self.candidates = 0
        self.heads = 0
        self.visits = 0
        self.turns = 0
        self.passed_over = 0
        self.elements_spared = 0
        self._count = 0
        self._epoch = 0
        self._groups: TargetGroups | None = None
        self._stamp = 0
        self._group_of = self._verdict = self.found
        self._state = ints(1024)
        self._operator = ints(1024)
        self._number = doubles(1024)
        self._start = ints(64)

    def match(
        self,
        epoch: cython.int,
        root: cython.int,
        visits_max: cython.longlong,
        groups: TargetGroups | None,
    ) -> cython.int:
        """How many queries match; TOO_COSTLY beyond so many heads and elements looked at.

        Only those behind a root of the trie; with ``groups``, which a message was begun with, only
        as long as they are wanted.
        """
        view: MessageView = self.view
        element: cython.int
        depth: cython.int
        live: cython.int
        self._epoch = epoch
        self._count = 0
        self._groups = groups
        if groups is not None:
            self._stamp = groups.stamp
            self._group_of = groups.group_of
            self._verdict = groups.verdict
        self.residuals.begin(visits_max)
        if len(self._start) < view.deepest + 4:
            self._start = ints(2 * view.deepest + 8)
        self._state[0] = self.states.start(root)
        self._operator[0] = -1
        self._start[0] = 0
        self._start[1] = 1
        for element in range(view.elements):
            depth = view.depth[element]
            self.residuals.path[depth] = element
            live = self._move(depth, view.label[view.name[element]] << 2, element)
            self._start[depth + 2] = live
            self.residuals.visits += live - self._start[depth + 1]
            self.heads += live - self._start[depth + 1]
            if self.residuals.visits > visits_max:
                return -1
            if groups is not None and self._stamp == 0:
                self.elements_spared += view.elements - element - 1
                break
            if self.states.is_full():
                self._turn(live)
        self.visits += self.residuals.visits
        return self._count

    def forget_states(self) -> None:
        """Begin a generation that takes nothing over."""
        self.states = self._new_states(None)

    def _move(self, depth: cython.int, edge: cython.int, element: cython.int) -> cython.int:
        """The heads of an element from those of its parent; gives the number of all heads."""
        states: LazyStates = self.states
        clock: cython.int = self.trie.clock
        count: cython.int = self._start[depth + 1]
        j: cython.int
        row: cython.longlong
        state: cython.int
        target: cython.int
        taken: cython.int
        operator: cython.int
        place: cython.int
        bits: cython.int = states.label_bits[edge >> 2]
        for j in range(self._start[depth], self._start[depth + 1]):
            # PERF: two of three heads have no edge for the name, which their row tells.
            state = self._state[j]
            if states.states[16 * state + 8] & bits:
                row = states.states[16 * state]
                target = states.transitions.get((row << 32) | edge)
                if target < 0:
                    target = states.follow(state, edge)
                taken = edge
            else:
                target = states.elsewhere(state)
                taken = 0
            if target == 0:
                continue
            if states.states[16 * target + 3] != clock:
                target = states.fresh(target, state, taken)
                if target == 0:
                    continue
            operator = self._operator[j]
            if operator < 0:
                place = states.states[16 * target + 1]
                if place < 0:
                    place = states.accepted(target, False)
                if place > 0:
                    self._accept(place, depth)
                count = self._enter(target, -1, 0.0, depth, count)
                if (
                    states.states[16 * target + 2] & 2
                    and self.view.own_start[element] < self.view.own_start[element + 1]
                ):
                    count = self._branch(target, element, depth, count)
            else:
                count = self._enter(target, operator, self._number[j], depth, count)
        return count

    def _branch(
        self, state: cython.int, element: cython.int, depth: cython.int, count: cython.int
    ) -> cython.int:
        """New heads where access predicates hold on the element."""
        view: MessageView = self.view
        k: cython.int
        atom: cython.int
        target: cython.int
        for k in range(view.own_start[element], view.own_start[element + 1]):
            atom = view.own_atom[k]
            if view.atoms.atoms[8 * atom + 6] == 0:
                continue
            target = self._follow(state, (view.atoms.atoms[8 * atom] << 2) | 2)
            if target:
                target = self._follow(target, (atom << 2) | 3)
            if target:
                count = self._enter(target, view.own_operator[k], view.own_number[k], depth, count)
        return count

    def _follow(self, state: cython.int, edge: cython.int) -> cython.int:
        states: LazyStates = self.states
        row: cython.longlong = states.states[16 * state]
        target: cython.int
        if not states.states[16 * state + 9] & edge_bit(edge):
            return 0
        target = states.transitions.get((row << 32) | edge)
        if target < 0:
            target = states.follow(state, edge)
        if target > 0 and states.states[16 * target + 3] != self.trie.clock:
            target = states.fresh(target, state, edge)
        return target

    def _enter(
        self,
        state: cython.int,
        operator: cython.int,
        number: cython.double,
        depth: cython.int,
        count: cython.int,
    ) -> cython.int:
        """Add a head, unless there is its equal, and take what its state accepts."""
        j: cython.int
        place: cython.int
        if operator >= 0:
            for j in range(self._start[depth + 1], count):
                if (
                    self._state[j] == state
                    and self._operator[j] == operator
                    and self._number[j] == number
                ):
                    return count
            place = self.states.states[16 * state + 1]
            if place < 0:
                place = self.states.accepted(state, operator > 0)
            if place > 0:
                if operator == 0:
                    self._accept(place, depth)
                else:
                    self._accept_range(place, depth, operator - 1, number)
        if not self.states.states[16 * state + 2] & 1:
            return count
        if count + 1 >= len(self._state):
            self._state = grown(self._state, 2 * count)
            self._operator = grown(self._operator, 2 * count)
            self._number = grown(self._number, 2 * count)
        self._state[count] = state
        self._operator[count] = operator
        self._number[count] = number
        return count + 1

    def _accept(self, place: cython.int, depth: cython.int) -> cython.int:
        """Take over the queries of a list, as far as they hold."""
        lists: cython.int[::1] = self.states.accepts.lists
        marks: cython.int[::1] = self.trie.marks
        required: cython.int
        residual: cython.int
        query: cython.int
        i: cython.int
        sure: cython.int = lists[place + 1]
        quick: cython.int = lists[place + 2]
        slow: cython.int = lists[place + 3]
        at: cython.int = place + 4
        self._cover_found(sure + quick + slow)
        if self._groups is not None:
            return self._accept_wanted(place, depth)
        self.candidates += quick + slow
        if lists[place] != self._epoch:  # once a message is enough for these
            lists[place] = self._epoch
            for i in range(at, at + sure):
                query = lists[i]
                if marks[query] != self._epoch:
                    marks[query] = self._epoch
                    self.found[self._count] = query
                    self._count += 1
        at += sure
        for _ in range(quick):
            query = lists[at]
            if self.residuals.ancestor_holds(lists[at + 1], depth) and marks[query] != self._epoch:
                marks[query] = self._epoch
                self.found[self._count] = query
                self._count += 1
            at += 2
        for _ in range(slow):
            query = lists[at]
            residual = lists[at + 1]
            required = lists[at + 2]
            at += 3
            if required & 1:
                if not self.view.has_atom(required >> 1):
                    continue
            elif required and not self.residuals.seen(required >> 1):
                continue
            if marks[query] != self._epoch and self.residuals.hold(-residual, depth):
                marks[query] = self._epoch
                self.found[self._count] = query
                self._count += 1
        return 0

    def _accept_range(
        self,
        place: cython.int,
        depth: cython.int,
        operator: cython.int,
        number: cython.double,
    ) -> cython.int:
        """Take over those queries of a list whose number compares so with the message's."""
        accepts: AcceptLists = self.states.accepts
        marks: cython.int[::1] = self.trie.marks
        count: cython.int = accepts.lists[place + 1]
        bounds: cython.int = accepts.lists[place + 2]
        low: cython.int = _first_not_below(accepts.bounds, bounds, count, number)
        high: cython.int = _first_above(accepts.bounds, bounds, count, number)
        residual: cython.int
        query: cython.int
        i: cython.int
        if operator == 1:  # number < bound
            low, high = high, count
        elif operator == 2:
            high = count
        elif operator == 3:
            low, high = 0, low
        elif operator == 4:
            low = 0
        self._cover_found(count)
        if self._groups is None:
            self.candidates += high - low
        for i in range(low, high):
            query = accepts.lists[place + 4 + 2 * i]
            if marks[query] == self._epoch:
                continue
            residual = accepts.lists[place + 5 + 2 * i]
            if self._groups is not None:
                self._take(query, residual, depth)
                continue
            if residual > 0 and not self.residuals.ancestor_holds(residual, depth):
                continue
            if residual < 0 and not self.residuals.hold(-residual, depth):
                continue
            marks[query] = self._epoch
            self.found[self._count] = query
            self._count += 1
        return 0

    def _accept_wanted(self, place: cython.int, depth: cython.int) -> cython.int:
        """As ``_accept``, for queries that lead to links."""
        lists: cython.int[::1] = self.states.accepts.lists
        sure: cython.int = lists[place + 1]
        quick: cython.int = lists[place + 2]
        slow: cython.int = lists[place + 3]
        at: cython.int = place + 4
        i: cython.int
        if lists[place] != self._epoch:
            lists[place] = self._epoch
            for i in range(at, at + sure):
                self._take(lists[i], 0, depth)
        at += sure
        for i in range(quick):
            self._take(lists[at + 2 * i], lists[at + 2 * i + 1], depth)
        at += 2 * quick
        for i in range(slow):
            self._take(lists[at + 3 * i], lists[at + 3 * i + 1], depth)
        return 0

    def _take(self, query: cython.int, residual: cython.int, depth: cython.int) -> cython.int:
        """Take a query over, if it is wanted still and its residual holds."""
        groups: TargetGroups | None = self._groups
        marks: cython.int[::1] = self.trie.marks
        known: cython.int
        if groups is None or marks[query] == self._epoch:
            return 0
        known = self._verdict[self._group_of[query]]
        if (
            self._stamp == 0
            or known == -self._epoch
            or (known != self._stamp and not groups.is_open(self._group_of[query]))
        ):
            self.passed_over += 1
            return 0
        self.candidates += 1
        if residual > 0 and not self.residuals.ancestor_holds(residual, depth):
            return 0
        if residual < 0 and not self.residuals.hold(-residual, depth):
            return 0
        marks[query] = self._epoch
        self.found[self._count] = query
        self._count += 1
        self._stamp = groups.reach(query)
        return 0

    def _turn(self, live: cython.int) -> cython.int:
        """Begin a new generation in the middle of a message; the heads move to it."""
        older: LazyStates = self.states
        newer: LazyStates = self._new_states(older)
        j: cython.int
        older.forget_older()
        for j in range(live):
            self._state[j] = newer.carry(older, self._state[j])
        self.states = newer
        self.turns += 1
        return 0

    def _cover_found(self, more: cython.int) -> cython.int:
        if self._count + more > len(self.found):
            self.found = grown(self.found, 2 * (self._count + more))
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _first_not_below(
    column: cython.double[::1], start: cython.int, count: cython.int, number: cython.double
) -> cython.int:
    low: cython.int = 0
    high: cython.int = count
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if column[start + middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.exceptval(check=False)
def _first_above(
    column: cython.double[::1], start: cython.int, count: cython.int, number: cython.double
) -> cython.int:
    low: cython.int = 0
    high: cython.int = count
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if column[start + middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low
