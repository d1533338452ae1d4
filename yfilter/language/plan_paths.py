# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""PlanPaths: what the paths of a ResultPlan select, on one message.

Nodes are numbers: of elements, attributes, pieces of content.  A path puts what it selects on a
stack, in document order and each once; a slot is a variable that is one node.  Every node looked
at is counted against what is left to the profile, as in ``budget``, and so is what is written.
"""

from __future__ import annotations

from array import array
from itertools import count

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.subtree_writer import SubtreeWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import NOT_BEGUN, paced, since
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import ANY, NameTest, Profile, Sequence
from yfilter.language.result_plan import ResultPlan

if not cython.compiled:
    from yfilter.language.result_plan import (
        AXIS_ATTRIBUTE,
        AXIS_ATTRIBUTE_BELOW,
        AXIS_BELOW,
        AXIS_CHILD,
        AXIS_TEXT,
        AXIS_TEXT_BELOW,
        PATH_FIRST,
        PATH_LAST,
        PATH_SLOT,
        PATH_WIDTH,
        PREDICATE_A,
        PREDICATE_KIND,
        PREDICATE_LAST,
        PREDICATE_POSITION,
        PREDICATE_SLOT,
        PREDICATE_WIDTH,
        STEP_AXIS,
        STEP_FIRST,
        STEP_LAST,
        STEP_TEST,
        STEP_WIDTH,
    )

_NO_NAME, _SEVERAL, _ANY_NAME = -1, -2, -3  # numbers of names; those below are masks

_FIRST_LOOK = 2048  # visits, compiled, about 10 ns each
_FIRST_STEP = _FIRST_LOOK // 8
_NOT_BEGUN = NOT_BEGUN

_stamps = count()
NO_PLAN = ResultPlan(Profile(Sequence(())), False)


class PlanPaths:
    """Of one plan after the other (``_begin``), for one profile after the other (``_allow``)."""

    def __init__(self, stream: ElementStream, limits: EvaluationLimits) -> None:
        self.stream = stream
        self.limits = limits
        self._xml = SubtreeWriter(stream)
        self._stamp = next(_stamps)
        self._plan = NO_PLAN
        self._evaluator: MessageEvaluator | None = None
        self._names: dict[tuple[str, str], int] = {}
        self._elements = len(stream)
        self._node_column = array("i", bytes(4 * 64))
        self._nodes = self._node_column
        self._slot_column = array("i", bytes(4 * 8))
        self._slots = self._slot_column
        self._masks = bytearray()
        self._top = 0

    def _begin(self, plan: ResultPlan) -> cython.int:
        test: cython.int
        self._plan = plan
        if plan.stamp != self._stamp:
            plan.stamp = self._stamp
            for test in range(len(plan.tests)):
                plan.numbers[test] = self._number(plan.tests[test])
        if plan.slots > len(self._slots):
            self._slot_column = array("i", bytes(4 * plan.slots))
            self._slots = self._slot_column
        return 0

    def _allow(self) -> cython.int:
        """What a profile may cost, from here on."""
        self._visits = self.limits.visits_max
        self._look_at = max(self._visits - _FIRST_LOOK, 0)
        self._began = _NOT_BEGUN
        self._looked = _NOT_BEGUN
        self._step = _FIRST_STEP
        self._tuples = self.limits.tuples_max
        self._bytes = self.limits.bytes_max
        self._settled = self._xml.used
        self._evaluator = None
        self._top = 0
        return 0

    def _number(self, test: NameTest) -> cython.int:
        """What a name in this message has to be: its number, or what one of several is told by."""
        if not self._names:
            self._names[ANY, ANY] = _ANY_NAME
            for number, name in enumerate(self.stream.names):
                key = name[1], name[2]
                self._names[key] = number if key not in self._names else _SEVERAL
        found: cython.int = self._names.get(test, _NO_NAME)
        if found == _SEVERAL or (found == _NO_NAME and ANY in test):
            found = self._names[test] = self._mask(test)
        return found

    def _mask(self, test: NameTest) -> int:
        """What the names that a test accepts are told by."""
        mask = bytearray(len(self.stream.names))
        for number, name in enumerate(self.stream.names):
            mask[number] = test.accepts(name.namespace, name.local)
        self._masks += mask
        return _ANY_NAME - 1 - (len(self._masks) - len(mask))

    # -- what it costs

    def _settle(self) -> cython.int:
        """Counts what was written since it was counted last."""
        self._bytes -= self._xml.used - self._settled
        self._settled = self._xml.used
        return self._spend()

    def _spend(self) -> cython.int:
        if self._tuples >= 0 and self._xml.used - self._settled <= self._bytes:
            if self._visits >= self._look_at:
                return 0
            if self._visits >= 0:
                return self._look()
        self._plan = NO_PLAN
        if self._visits < 0:
            raise MatchLimitExceeded(
                "too-many-visits", "a profile looks at too many nodes of this message"
            )
        if self._tuples < 0:
            raise MatchLimitExceeded(
                "too-many-tuples", f"a profile binds more than {self.limits.tuples_max} tuples"
            )
        raise MatchLimitExceeded(
            "result-too-large",
            f"the results of a profile are larger than {self.limits.bytes_max} bytes",
        )

    def _look(self) -> cython.int:
        """At the clock; see ``budget``."""
        now: cython.double = since(self._began, self.limits)
        if self._began == _NOT_BEGUN:
            self._began = now
        elif self._looked != _NOT_BEGUN:
            self._step = paced(self._step, now - self._looked)
        self._looked = now
        self._look_at = max(self._visits - self._step, 0)
        return 0

    # -- paths

    def _path(self, path: cython.int) -> cython.int:
        """Puts the nodes of a path on the stack; gives the place of the first."""
        plan: ResultPlan = self._plan
        base: cython.int = self._top
        slot: cython.int = plan.paths[PATH_WIDTH * path + PATH_SLOT]
        step: cython.int
        axis: cython.int
        number: cython.int
        end: cython.int
        at: cython.int
        before: cython.int
        self._push(self._slots[slot] if slot >= 0 else -1)
        for step in range(
            plan.paths[PATH_WIDTH * path + PATH_FIRST], plan.paths[PATH_WIDTH * path + PATH_LAST]
        ):
            axis = plan.steps[STEP_WIDTH * step + STEP_AXIS]
            number = plan.numbers[plan.steps[STEP_WIDTH * step + STEP_TEST]]
            end = self._top
            for at in range(base, end):
                before = self._top
                self._select(axis, number, self._nodes[at])
                self._spend()
                if (
                    plan.steps[STEP_WIDTH * step + STEP_FIRST]
                    < plan.steps[STEP_WIDTH * step + STEP_LAST]
                ):
                    self._filter(step, before)
            for at in range(end, self._top):
                self._nodes[base + at - end] = self._nodes[at]
            self._top -= end - base
            if end - base > 1:
                self._sort(base)
        return base

    def _select(self, axis: cython.int, number: cython.int, start: cython.int) -> cython.int:
        """What a step gives from one element, or from the document for -1."""
        xml: SubtreeWriter = self._xml
        element: cython.int = start + 1
        last: cython.int = xml.element_end[start] if start >= 0 else self._elements
        node: cython.int
        if number == _NO_NAME:
            self._visits -= 1
            return 0
        if axis == AXIS_CHILD:
            while element < last:
                self._visits -= 1
                if self._accepts(number, xml.element_name[element]):
                    self._push(element)
                element = xml.element_end[element]
            return 0
        if axis == AXIS_BELOW:
            self._visits -= last - element
            for node in range(element, last):
                if self._accepts(number, xml.element_name[node]):
                    self._push(node)
            return 0
        if axis in (AXIS_ATTRIBUTE, AXIS_TEXT):
            last = element  # the element itself, nothing for the document
        if start >= 0:
            element = start
        if axis in (AXIS_ATTRIBUTE, AXIS_ATTRIBUTE_BELOW):
            if element < last:
                for node in range(xml.attribute_start[element], xml.attribute_start[last]):
                    self._visits -= 1
                    if self._accepts(number, xml.attribute_name[node]):
                        self._push(node)
            return 0
        if element < last:
            for node in range(
                xml.first_content(element), xml.end_of_content(element, xml.first_content(element))
            ):
                self._visits -= 1
                if xml.content_kind[node] == 0 and (
                    axis == AXIS_TEXT_BELOW or xml.content_parent[node] == element
                ):
                    self._push(node)
        return 0

    def _accepts(self, number: cython.int, name: cython.int) -> cython.bint:
        if number >= 0:
            return name == number
        return number == _ANY_NAME or self._masks[_ANY_NAME - 1 - number + name] != 0

    def _push(self, node: cython.int) -> cython.int:
        if self._top >= len(self._nodes):
            self._node_column = array("i", self._node_column.tobytes() * 2)
            self._nodes = self._node_column
        self._nodes[self._top] = node
        self._top += 1
        return 0

    def _filter(self, step: cython.int, first: cython.int) -> cython.int:
        """Keeps those from a place on for which the predicates of a step hold."""
        plan: ResultPlan = self._plan
        predicate: cython.int
        kind: cython.int
        a: cython.int
        at: cython.int
        last: cython.int
        kept: cython.int
        slot: cython.int
        for predicate in range(
            plan.steps[STEP_WIDTH * step + STEP_FIRST], plan.steps[STEP_WIDTH * step + STEP_LAST]
        ):
            kind = plan.predicates[PREDICATE_WIDTH * predicate + PREDICATE_KIND]
            a = plan.predicates[PREDICATE_WIDTH * predicate + PREDICATE_A]
            slot = plan.predicates[PREDICATE_WIDTH * predicate + PREDICATE_SLOT]
            last = self._top
            kept = first
            for at in range(first, last):
                if kind == PREDICATE_POSITION:
                    if at - first != a - 1:
                        continue
                elif kind == PREDICATE_LAST:
                    if at != last - 1:
                        continue
                else:
                    self._slots[slot] = self._nodes[at]
                    if not self._holds(a):
                        continue
                self._nodes[kept] = self._nodes[at]
                kept += 1
            self._top = kept
        return 0

    def _sort(self, first: cython.int) -> cython.int:
        """In document order, each once; of one kind, that is the order of their numbers."""
        at: cython.int
        for at in range(first + 1, self._top):
            if self._nodes[at] <= self._nodes[at - 1]:
                break
        else:
            return 0
        ordered = sorted({self._nodes[at] for at in range(first, self._top)})
        for at in range(len(ordered)):
            self._nodes[first + at] = ordered[at]
        self._top = first + len(ordered)
        return 0

    def _holds(self, _row: cython.int) -> cython.bint:
        """Whether a condition holds; whoever stands on top says that."""
        raise NotImplementedError
