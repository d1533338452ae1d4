# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NeedWalk: a message once in document order, for the elements that are bound and what they want.

Conditions are decided for all links that are asked for together; what is only for others is passed
over.  Where all links keep an element whole, and nothing around it is undecided, the walk goes on
behind its end.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from yfilter.index.columns import ints
from yfilter.projection.need_states import StateContent
from yfilter.projection.need_table import NeedTable

if cython.compiled:
    from cython.cimports.yfilter.projection.check_answers import CheckAnswers
    from cython.cimports.yfilter.projection.need_parts import Atom, Binding, Check, Disjunct
    from cython.cimports.yfilter.projection.need_states import NeedStates
else:
    from yfilter.projection.check_answers import CheckAnswers
    from yfilter.projection.need_parts import Atom, Binding, Check, Disjunct
    from yfilter.projection.need_states import NeedStates

VISITS_MAX = 200_000  # questions answered and elements looked at, a message

_Mask = int  # of groups or links, any number of bits


class OpenBinding:
    """A bound element: ``wanted`` are the groups it wants as far as is known, ``pending`` those
    that it may yet want.  ``outer`` is one around it of the same binding path."""

    binding: Binding
    element: int
    end: int
    outer: OpenBinding | None
    wanted: int
    pending: int
    found: dict[Disjunct, int] | None


def _opened(binding: Binding, element: cython.int, end: cython.int, groups: _Mask) -> OpenBinding:
    # PERF: a message may bind hundreds; a call of the class would cost as much as all the rest.
    opened: OpenBinding = OpenBinding.__new__(OpenBinding)
    opened.binding = binding
    opened.element = element
    opened.end = end
    opened.outer = binding.innermost
    opened.wanted = binding.always & groups
    opened.pending = binding.sometimes & groups
    opened.found = None
    binding.innermost = opened
    return opened


class NeedWalk:
    """``walk`` a message; then ``document`` and ``bound`` are the bound elements, in document
    order, and ``state_of`` the state of each element that was not passed over."""

    def __init__(self, table: NeedTable) -> None:
        self._table = table
        self.states = NeedStates(table)
        self._answers = CheckAnswers(self.states)
        self.state_of = ints(256)

    def walk(self, stream: ElementStream, asked: _Mask) -> cython.bint:
        """Which groups bound elements want, for links of a mask; False where that would cost too
        much."""
        elements: cython.int = len(stream)
        self._asked = asked
        self._groups = self._table.asked_of(asked)
        self._begin(stream, elements)
        self.document = _opened(self._table.document, -1, elements, self._groups)
        self._enter(self.document)
        self._walk(elements)
        while self._stack:
            self._leave(self._stack.pop())
        self._leave(self.document)
        return self._visits + self._answers.visits <= VISITS_MAX

    @property
    def visits(self) -> int:
        """What the last walk has cost, as VISITS_MAX counts it."""
        visits: int = self._visits + self._answers.visits
        return visits

    def _begin(self, stream: ElementStream, elements: cython.int) -> None:
        self.states.bind(stream.names)
        self._visits = 0
        self._pending = 0
        self._answers.begin(stream)
        self.bound: list[OpenBinding] = []
        self._stack: list[OpenBinding] = []
        if elements > len(self.state_of):
            self.state_of = ints(elements + elements // 2)
        self._element_name = stream.element_name
        self._element_parent = stream.element_parent
        self._element_end = stream.element_end

    def _walk(self, elements: cython.int) -> cython.int:
        element: cython.int = 0
        parent: cython.int
        state: cython.int
        close: cython.int = elements  # where the innermost bound element ends
        while element < elements and self._visits + self._answers.visits <= VISITS_MAX:
            while element >= close:
                self._leave(self._stack.pop())
                close = self._closing(elements)
            parent = self._element_parent[element]
            state = self.states.follow(
                self.state_of[parent] if parent >= 0 else 1, self._element_name[element]
            )
            self.state_of[element] = state
            self._visits += 1
            if state == 0:
                element = self._element_end[element]
                continue
            if self.states.flags[state] & 1:
                element = self._look(element, self.states.contents[state])
                close = self._closing(elements)
                continue
            element += 1
        return 0

    def _closing(self, elements: cython.int) -> cython.int:
        if not self._stack:
            return elements
        innermost: OpenBinding = self._stack[len(self._stack) - 1]
        return innermost.end

    def _look(self, element: cython.int, content: StateContent) -> cython.int:
        """Binds an element and asks about it; the element to go on with."""
        opened: OpenBinding
        found: OpenBinding | None
        binding: Binding
        check: Check
        for binding in content.bindings:
            if not (binding.always | binding.sometimes) & self._groups:
                continue
            opened = _opened(binding, element, self._element_end[element], self._groups)
            self._stack.append(opened)
            self.bound.append(opened)
            if self._enter(opened):
                return opened.end
        for check in content.checks:
            found = check.binding.innermost
            if found is not None and self._is_pending(found):
                found = self._ask(check, element, found)
                if found is not None:
                    return found.end
        return element + 1

    def _enter(self, opened: OpenBinding) -> cython.bint:
        """Whether all of it is kept, so that nothing inside has to be looked at."""
        if self._is_whole(opened):
            opened.pending = 0
            return self._pending == 0
        if opened.pending:
            self._pending += 1
        return False

    def _leave(self, opened: OpenBinding) -> None:
        if opened.pending:
            self._pending -= 1
        opened.binding.innermost = opened.outer

    def _is_pending(self, opened: OpenBinding) -> cython.bint:
        around: OpenBinding | None = opened
        while around is not None:
            if around.pending:
                return True
            around = around.outer
        return False

    def _ask(self, check: Check, element: cython.int, opened: OpenBinding) -> OpenBinding | None:
        """Answers a check's questions on an element; a binding that is now wanted whole, so that
        the walk can go on behind it."""
        around: OpenBinding | None
        atom: Atom
        for atom in self._answers.answers(check, element):
            around = opened
            while around is not None:
                if around.pending and self._hold(atom, around):
                    return around
                around = around.outer
        return None

    def _hold(self, atom: Atom, opened: OpenBinding) -> cython.bint:
        """An atom holds below a bound element; whether nothing inside has to be looked at now."""
        disjunct: Disjunct
        for disjunct, bit in atom.disjuncts.items():
            self._visits += 1
            group = disjunct.bit
            if not group & opened.pending:
                continue
            if bit != disjunct.whole:
                if opened.found is None:
                    opened.found = {}
                together = opened.found.get(disjunct, 0) | bit
                opened.found[disjunct] = together
                if together != disjunct.whole:
                    continue
            opened.wanted |= group
            opened.pending &= ~group
            is_whole: cython.bint = self._is_whole(opened)
            if is_whole:
                opened.pending = 0
            if not opened.pending:
                self._pending -= 1
                return is_whole and self._pending == 0
        return False

    def _is_whole(self, opened: OpenBinding) -> cython.bint:
        """Whether all links that are asked for keep the whole element."""
        full = opened.wanted & opened.binding.full
        return bool(full) and not self._asked & ~self._table.links_of(full)
