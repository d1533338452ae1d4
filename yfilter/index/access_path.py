# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Access paths: how the index gets at a query's candidates, and what is left to verify.

A query has one spine and nested paths; each nested path may be the spine as well, with what stood
below its step as a nested path.  Of all their conditions one becomes the *access predicate*: an
equality where there is one, the one with the most different constants among the profiles; else a
range, which is another comparison with a number; else none, on a spine that leaves no doubt which
elements the rest is asked of, if there is one::

    /nitf[@version = "1"][head/pubdata/@edition.area = "SF"]//p

        spine       /nitf/head/pubdata
        access      @edition.area = "SF" at step 2
        residual    at step 0: @version = "1", //p

A routing query's conjunction has its paths as spines to choose from; those not chosen are found
anywhere in the message.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.draft import Draft
else:
    from yfilter.index.atoms import AtomTable
    from yfilter.index.draft import (
        CONDITION_A,
        CONDITION_KIND,
        CONDITION_NEXT,
        CONDITION_WIDTH,
        STEP_CONDITION,
        STEP_DESCENDANT,
        STEP_NEXT,
        STEP_WIDTH,
        Draft,
    )
    from yfilter.index.residual_rows import (
        CHECK_ANYWHERE,
        CHECK_ATOM,
        CHECK_NESTED,
        POSITION_ABSOLUTE,
        POSITION_SHIFT,
        POSITION_UNKNOWN,
    )
from yfilter.index.residuals import STEPS_MAX

# Ranks of access predicates.
_NONE, _RANGE, _EQUALITY = 0, 1, 2


class AccessPath:
    """``choose`` the spine of a draft, ``length`` steps, and the access predicate.

    ``access`` is a condition of the spine's step ``at``, or 0.  The draft is changed to it: nested
    paths that the spine does not take, and other ways, are conditions of its steps.
    """

    def __init__(self, draft: Draft, atoms: AtomTable) -> None:
        self.spine = ints(16)
        self.length = 0
        self.at = -1
        self.access = 0
        self._draft = draft
        self._atoms = atoms
        self._first_descendant = 0  # steps of the spine that was laid out last
        self._last_descendant = -1
        # Of the best so far: its way, the step where it leaves it, by which nested path, its worth.
        self._way = 0
        self._fork = 0
        self._nested = 0
        self._rank = -1
        self._first_worth = 0.0
        self._second_worth = 0

    def choose(self) -> cython.int:
        """The best access path of the draft."""
        draft: Draft = self._draft
        way: cython.int
        self._rank = -1
        for way in range(draft.way_count):
            self._consider(draft.ways[way], 0, 0)
        if draft.way_count == 1:
            self._consider_nested(draft.ways[0])
        self._change_draft()
        self._lay_out(self._way, self._fork, self._nested)
        return 0

    def position_of(self, at: cython.int) -> cython.int:
        """Where a step's element is, its position: up from the last one's, or a depth."""
        if self._last_descendant <= at:
            return (self.length - 1 - at) << POSITION_SHIFT
        if self._first_descendant > at:
            return at << POSITION_SHIFT | POSITION_ABSOLUTE
        return POSITION_UNKNOWN

    def _consider_nested(self, way: cython.int) -> cython.int:
        """Each nested path of a way in the place of what is below its step."""
        draft: Draft = self._draft
        step: cython.int = way
        condition: cython.int
        above: cython.int = 0
        while step:
            above += 1
            condition = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
            while condition:
                if (
                    draft.conditions[CONDITION_WIDTH * condition + CONDITION_KIND] == CHECK_NESTED
                    and above
                    + self._length_of(draft.conditions[CONDITION_WIDTH * condition + CONDITION_A])
                    <= STEPS_MAX
                ):
                    self._consider(way, step, condition)
                condition = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
            step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        return 0

    def _consider(self, way: cython.int, fork: cython.int, nested: cython.int) -> cython.int:
        """Whether a spine with one of its conditions, or with none, is the best so far."""
        draft: Draft = self._draft
        at: cython.int
        condition: cython.int
        attribute: cython.int
        kind: cython.int
        constants: cython.double
        is_certain: cython.bint = True
        self._lay_out(way, fork, nested)
        for at in range(self.length):
            condition = draft.steps[STEP_WIDTH * self.spine[at] + STEP_CONDITION]
            if self.position_of(at) < 0 and self._is_asked(self.spine[at], fork, nested):
                is_certain = False
            while condition:
                kind = draft.conditions[CONDITION_WIDTH * condition + CONDITION_KIND]
                if kind <= CHECK_ATOM:  # a comparison
                    attribute = draft.conditions[CONDITION_WIDTH * condition + CONDITION_A]
                    constants = 0
                    if kind == CHECK_ATOM:
                        constants = self._atoms.constants(attribute)
                        if self.position_of(at) < 0:
                            # It has to be verified again on each way.
                            constants *= 0.3
                    if self._is_better(
                        _EQUALITY if kind == CHECK_ATOM else _RANGE, constants, at - self.length
                    ):
                        self._way, self._fork, self._nested = way, fork, nested
                        self.at, self.access = at, condition
                condition = draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT]
        constants = is_certain if draft.way_count == 1 else self.length
        if self._is_better(_NONE, constants, 0):
            self._way, self._fork, self._nested = way, fork, nested
            self.at, self.access = -1, 0
        return 0

    def _is_better(self, rank: cython.int, first: cython.double, second: cython.int) -> cython.bint:
        """Whether that is worth more than the best so far; if so, it is the best's worth now."""
        if rank != self._rank:
            if rank < self._rank:
                return False
        elif first != self._first_worth:
            if first < self._first_worth:
                return False
        elif second <= self._second_worth:
            return False
        self._rank = rank
        self._first_worth = first
        self._second_worth = second
        return True

    def _is_asked(self, step: cython.int, fork: cython.int, nested: cython.int) -> cython.bint:
        """Whether anything is asked of the element of a step."""
        draft: Draft = self._draft
        condition: cython.int = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
        if step != fork:
            return condition != 0
        return (
            condition != nested
            or draft.conditions[CONDITION_WIDTH * condition + CONDITION_NEXT] != 0
            or draft.steps[STEP_WIDTH * step + STEP_NEXT] != 0
        )

    def _lay_out(self, way: cython.int, fork: cython.int, nested: cython.int) -> cython.int:
        """Set ``spine`` to a way, or to one that goes on by a nested path where it leaves it."""
        draft: Draft = self._draft
        step: cython.int = way
        self.length = 0
        self._first_descendant = -1
        self._last_descendant = -1
        while step:
            if self.length == len(self.spine):
                self.spine = grown(self.spine, 2 * self.length)
            self.spine[self.length] = step
            if draft.steps[STEP_WIDTH * step + STEP_DESCENDANT]:
                if self._last_descendant < 0:
                    self._first_descendant = self.length
                self._last_descendant = self.length
            self.length += 1
            if step == fork and nested:
                step = draft.conditions[CONDITION_WIDTH * nested + CONDITION_A]
            else:
                step = draft.steps[STEP_WIDTH * step + STEP_NEXT]
        if self._last_descendant < 0:
            self._first_descendant = self.length
        return 0

    def _change_draft(self) -> cython.int:
        """What the best spine does not take becomes a condition of its steps."""
        draft: Draft = self._draft
        step: cython.int = self._fork
        nested: cython.int = self._nested
        before: cython.int
        way: cython.int
        if nested:
            before = draft.steps[STEP_WIDTH * step + STEP_CONDITION]
            if before == nested:
                draft.steps[STEP_WIDTH * step + STEP_CONDITION] = draft.conditions[
                    CONDITION_WIDTH * nested + CONDITION_NEXT
                ]
            else:
                while draft.conditions[CONDITION_WIDTH * before + CONDITION_NEXT] != nested:
                    before = draft.conditions[CONDITION_WIDTH * before + CONDITION_NEXT]
                draft.conditions[CONDITION_WIDTH * before + CONDITION_NEXT] = draft.conditions[
                    CONDITION_WIDTH * nested + CONDITION_NEXT
                ]
            if draft.steps[STEP_WIDTH * step + STEP_NEXT]:
                self._ask(step, CHECK_NESTED, draft.steps[STEP_WIDTH * step + STEP_NEXT])
            draft.steps[STEP_WIDTH * step + STEP_NEXT] = draft.conditions[
                CONDITION_WIDTH * nested + CONDITION_A
            ]
            self._fork = self._nested = 0
        for way in range(draft.way_count):
            if draft.ways[way] != self._way:
                self._ask(self._way, CHECK_ANYWHERE, draft.ways[way])
        return 0

    def _ask(self, step: cython.int, kind: cython.int, way: cython.int) -> cython.int:
        """One more condition of a step."""
        draft: Draft = self._draft
        condition: cython.int = draft.new_condition(
            kind, way, 0, draft.steps[STEP_WIDTH * step + STEP_CONDITION]
        )
        draft.steps[STEP_WIDTH * step + STEP_CONDITION] = condition
        return 0

    def _length_of(self, way: cython.int) -> cython.int:
        length: cython.int = 0
        while way:
            length += 1
            way = self._draft.steps[STEP_WIDTH * way + STEP_NEXT]
        return length
