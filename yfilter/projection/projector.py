# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Projector: a message with only what some need asks for (section 4.2.2 of the paper, generalised).

::

    walk     in document order: states, bound elements, which groups each of them wants   ┐ the way
             (an element that is wanted whole, all others decided: on behind its end)      │ down
    keep     in document order: what is kept below bound elements, of groups they want     ┘
    close    backwards: whatever stands above something that is kept
    settle   in document order: what conditions look at wherever an element of their paths is
             kept, and all of what is kept as a whole
    select   the columns (formats/stream_selection.py)

Nothing is wrong with keeping too much.  So a message is passed on as it is where a decision would
cost too much (VISITS_MAX); where nearly all of it is kept, for then nothing is saved by writing it
again; and mostly without a look after several such messages in a row (RESTS_MAX).
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
from yfilter.projection.needs import Need

if cython.compiled:
    from cython.cimports.formats.stream_selection import StreamSelection
    from cython.cimports.yfilter.projection.check_answers import CheckAnswers
    from cython.cimports.yfilter.projection.need_parts import Atom, Binding, Check, Disjunct
    from cython.cimports.yfilter.projection.need_states import NeedStates
else:
    from formats.stream_selection import StreamSelection
    from yfilter.projection.check_answers import CheckAnswers
    from yfilter.projection.need_parts import Atom, Binding, Check, Disjunct
    from yfilter.projection.need_states import NeedStates

VISITS_MAX = 200_000  # questions answered and elements looked at, a message
WHOLES_BEFORE_REST = 16  # messages passed on whole, one after the other
RESTS_MAX = 15  # messages that are then passed on whole without a look, between looks
WHOLE_SHARE = 0.95  # a message of which so much is kept is passed on as it is

_NODE, _ATTRIBUTE, _VALUE, _SUBTREE, _PART = range(5)  # needs.Kind

_ALL_BELOW = 16  # a mark beside those of StreamSelection: all below is kept, too
_TAG_BYTES = 4  # an element without its values, roughly, in a binary form


_Mask = int  # of groups, any number of bits


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


def _opened(binding: Binding, element: cython.int, end: cython.int) -> OpenBinding:
    # PERF: a message may bind hundreds; a call of the class would cost as much as all the rest.
    opened: OpenBinding = OpenBinding.__new__(OpenBinding)
    opened.binding = binding
    opened.element = element
    opened.end = end
    opened.outer = binding.innermost
    opened.wanted = binding.always
    opened.pending = binding.sometimes
    opened.found = None
    binding.innermost = opened
    return opened


class Projector:
    """Add and remove needs; ``project`` messages.

    ``parts``: of the message looked at last, the parts that are wanted, each with its element.
    """

    def __init__(self, whole_share: float = WHOLE_SHARE) -> None:
        """``whole_share``: of a message, from which on it is passed on as it is."""
        self._whole_share = whole_share
        self.table = NeedTable()
        self._states = NeedStates(self.table)
        self._answers = CheckAnswers(self._states)
        self._selection = StreamSelection()
        self._state_of = ints(256)
        self._messages = 0
        self._whole = 0
        self._elements = 0
        self._elements_kept = 0
        self._over_limit = 0
        self._wholes = 0  # in a row
        self._rest = 0
        self._rested = 0
        self.parts: list[tuple[int, str]] = []

    def add(self, need: Need) -> None:
        """Keep what a need asks for, too."""
        self.table.add(need)
        self._rest = 0

    def remove(self, need: Need) -> None:
        """Undo one ``add``; KeyError if it is not there."""
        self.table.remove(need)
        self._rest = self._wholes = 0

    def project(self, stream: ElementStream) -> ElementStream:
        """The message with what is needed; the very same if that is nearly all of it."""
        self._messages += 1
        if self._rest > 0:
            self.parts = []
            self._rest -= 1
            self._rested += 1
            return stream
        projected = self._project(stream)
        if projected is stream:
            self._whole += 1
            self._wholes += 1
            if self._wholes >= WHOLES_BEFORE_REST:
                self._rest = min(self._wholes - WHOLES_BEFORE_REST + 1, RESTS_MAX)
        else:
            self._wholes = 0
        self._elements += len(stream)
        self._elements_kept += len(projected)
        return projected

    def place_of(self, element: int) -> int:
        """Where an element is in what the last call of ``project`` gave, if that was not all."""
        place: int = self._selection.place_of(element)
        return place

    def statistics(self) -> dict[str, int]:
        """``projected_whole``: messages passed on as they were, ``projection_over_limit`` of them
        because it would have cost too much; ``projection_rested``: those without a look."""
        return {
            **self.table.statistics(),
            "projection_states": len(self._states.contents),
            "projected_messages": self._messages,
            "projected_whole": self._whole + self._rested,
            "projection_rested": self._rested,
            "projection_elements": self._elements,
            "projection_elements_kept": self._elements_kept,
            "projection_over_limit": self._over_limit,
        }

    def decide(self, stream: ElementStream) -> StreamSelection | None:
        """What is kept, good until the next call; None for everything."""
        elements: cython.int = len(stream)
        self.parts = []
        root = self.table.document
        if root.always & root.full:
            return None
        self._begin(stream, elements)
        self._document = _opened(root, -1, elements)
        self._enter(self._document)
        self._walk(elements)
        while self._stack:
            self._leave(self._stack.pop())
        self._leave(self._document)
        if self._visits + self._answers.visits > VISITS_MAX:
            self._over_limit += 1
            return None
        if self._document.wanted & root.full:
            return None
        self._selection.begin(stream)
        self._keep(elements)
        self._close(elements)
        self._kept = self._settle(elements)
        return None if self._selection.elements[0] & 16 else self._selection

    def _project(self, stream: ElementStream) -> ElementStream:
        whole: cython.Py_ssize_t
        kept: cython.Py_ssize_t
        if self.decide(stream) is None:
            return stream
        whole = len(stream.attribute_values) + len(stream.content_values)
        whole += _TAG_BYTES * len(stream)
        kept = self._selection.kept_bytes() + _TAG_BYTES * self._kept
        if kept >= self._whole_share * whole:
            return stream
        selected: ElementStream = self._selection.selected()
        return selected

    def _begin(self, stream: ElementStream, elements: cython.int) -> None:
        self._states.bind(stream.names)
        self._visits = 0
        self._pending = 0
        self._answers.begin(stream)
        self._bound: list[OpenBinding] = []
        self._stack: list[OpenBinding] = []
        if elements > len(self._state_of):
            self._state_of = ints(elements + elements // 2)
        self._element_name = stream.element_name
        self._element_parent = stream.element_parent
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name

    # -- walk

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
            state = self._states.follow(
                self._state_of[parent] if parent >= 0 else 1, self._element_name[element]
            )
            self._state_of[element] = state
            self._visits += 1
            if state == 0:
                element = self._element_end[element]
                continue
            if self._states.flags[state] & 1:
                element = self._look(element, self._states.contents[state])
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
            opened = _opened(binding, element, self._element_end[element])
            self._stack.append(opened)
            self._bound.append(opened)
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
        if opened.wanted & opened.binding.full:
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
            if opened.wanted & opened.binding.full:
                opened.pending = 0
            if not opened.pending:
                self._pending -= 1
                return self._pending == 0 and bool(opened.wanted & opened.binding.full)
        return False

    # -- keep

    def _keep(self, elements: cython.int) -> cython.int:
        """Marks what bound elements want, as far as it is not found below what is marked."""
        element: cython.int = 0
        state: cython.int
        at: cython.Py_ssize_t = 0
        until: cython.int = elements
        wanting = [opened for opened in self._bound if opened.wanted]
        next_wanting: cython.int = _element_at(wanting, 0, elements)
        active: _Mask = self._document.wanted
        around: list[tuple[int, _Mask]] = []
        if active:
            self._keep_of_document()
        while element < elements:
            while element >= until:
                active = around.pop()[1]
                until = around[len(around) - 1][0] if around else elements
            state = self._state_of[element]
            if state == 0 or self._selection.elements[element] & 16:
                element = self._element_end[element]
                while next_wanting < element:
                    at += 1
                    next_wanting = _element_at(wanting, at, elements)
                continue
            while next_wanting == element:
                opened: OpenBinding = wanting[at]
                around.append((opened.end, active))
                until = opened.end
                active = active | opened.wanted
                at += 1
                next_wanting = _element_at(wanting, at, elements)
            if active:
                if self._states.flags[state] & 2:
                    content: StateContent = self._states.contents[state]
                    for mask, kind, test in content.kept:
                        if mask & active:
                            self._mark(element, kind, test)
                    if self._selection.elements[element] & 16:
                        continue
            elif next_wanting >= self._element_end[element]:
                element = self._element_end[element]
                continue
            element += 1
        return 0

    def _keep_of_document(self) -> None:
        """What is kept of the document node is kept of the root element."""
        for (kind, _), mask in self.table.root.kept.items():
            if mask & self._document.wanted:
                self._mark(0, int(kind), None)

    def _mark(self, element: cython.int, kind: cython.int, test: object) -> None:
        i: cython.int
        if kind == _SUBTREE:
            self._selection.elements[element] |= 1 | 2 | 4 | 16
        elif kind == _VALUE:
            self._selection.elements[element] |= 1 | 2 | 8
        else:
            self._selection.elements[element] |= 1
            if kind == _PART:
                self.parts.append((element, str(test)))
            elif kind == _ATTRIBUTE and test is not None:
                accepted: bytes = self._states.accepted(test)
                for i in range(self._attribute_start[element], self._attribute_start[element + 1]):
                    if accepted[self._attribute_name[i]]:
                        self._selection.attributes[i] = 1

    def _close(self, elements: cython.int) -> cython.int:
        element: cython.int
        self._selection.elements[0] |= 1
        for element in range(elements - 1, 0, -1):
            if self._selection.elements[element]:
                self._selection.elements[self._element_parent[element]] |= 1
        return 0

    def _settle(self, elements: cython.int) -> cython.int:
        """Marks what follows from marks; how many elements are kept."""
        element: cython.int = 0
        below: cython.int
        end: cython.int
        mark: cython.int
        kept: cython.int = 0
        while element < elements:
            end = self._element_end[element]
            mark = self._selection.elements[element]
            if element > 0 and self._selection.elements[self._element_parent[element]] & 8:
                mark |= 1 | 2 | 8
                self._selection.elements[element] = mark
            if not mark:
                element = end
                continue
            if mark & 16:
                for below in range(element, end):
                    self._selection.elements[below] = 1 | 2 | 4 | 16
                kept += end - element
                element = end
                continue
            kept += 1
            if self._state_of[element] == 0:
                # The states below are none, and so are the marks.
                if mark & 8:
                    for below in range(element + 1, end):
                        self._selection.elements[below] = 1 | 2 | 8
                    kept += end - element - 1
                element = end
                continue
            if self._states.flags[self._state_of[element]] & 4:
                content: StateContent = self._states.contents[self._state_of[element]]
                for kind, test in content.touched:
                    self._mark(element, kind, test)
                if self._selection.elements[element] & 16:
                    kept -= 1
                    continue
            element += 1
        return kept


def _element_at(
    wanting: list[OpenBinding], at: cython.Py_ssize_t, elements: cython.int
) -> cython.int:
    if at >= len(wanting):
        return elements
    opened: OpenBinding = wanting[at]
    return opened.element
