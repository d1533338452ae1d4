"""Results of a profile by its plan: rows that are carried out for each bound element.

ResultPlan is the program that result_planner.py makes of a ``return``.  PlanPaths and PlanValues
evaluate its paths and values, and ResultWriter writes the documents of one message.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from formats.columns import declaration
from formats.element_stream import ElementStream
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.atoms import atom_text
from yfilter.language.budget import NOT_BEGUN, paced, since
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.interpreted_result import interpreted
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus, Node, NodeType, element_node
from yfilter.language.numbers import parse_double
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import (
    ANY,
    Expression,
    NameTest,
    Profile,
    Sequence as SequenceExpression,
)

cimport cython

from formats.columns cimport IN_TEXT, IN_VALUES, SubtreeWriter


# -------------------------------------------------------------------------------------------------
# ResultPlan: how the results of a profile are written of its bindings, as numbers.
#
# Most ``return`` clauses are made of few things: elements constructed and copied, strings,
# attributes, conditions and loops, all found by paths from the bound element::
#
#     for $i in //item return <hit id="{$i/@id}">{$i/title}, {string($i/body/p)}</hit>
#
#     row  kind        what it refers to
#     0    ELEMENT     the tag hit; its parts are the rows up to its next
#     1    ATTRIBUTE   id
#     2    NODES       path 0
#     3    NODES       path 1
#     4    STATIC      ", "
#     5    STRING      path 2
#
# A tree is made once, in the columns of the plan (``result_planner``), and run once a distinct
# binding and message, whoever asks (``result_writer``).  Row, path, step and predicate are each so
# many numbers; a row's parts are the rows behind it up to its ``next``.
#
# row                fields a, b, c; parts
# STATIC             text; markup as it stands
# ATOM               text; a string
# NODES              path; copies, or strings in a value; all
# STRING, DATA       path; the string of the first node, strings of all
# COUNT, NAME        path; how many, the name of the first; b: with prefix
# CONCAT, CALL       parts: strings; CALL: a constant, the function
# TRUTH              part: condition; "true" or "false"
# ITEMS              parts, one after the other
# IF                 parts: condition, then, else
# FOR                path, slot, whether each string counts once; part: the row of each node
# ELEMENT            texts: start tag, end tag; how many parts go into the start tag; parts
# ATTRIBUTE          text, test of its name; parts: its value
# TEXT               part; a text node of its strings
# PART               constant: digest; slot; part: otherwise (projection/parts.py)
# FOREIGN            the question to the interpreter
# EACH               part: the row written for each binding; a: nothing but elements
# CONSTANT           whether it holds
# EXISTS             path
# NOT, AND, OR       parts
# STRINGS, NUMBERS   path, comparison, constant: some node of the path compares so
# COUNTED            path, comparison, constant: how many
# COMPARED           comparison, constant; part: a string
# CONTAINS, ...      parts: two strings
# FOREIGN_TRUTH      what the interpreter is asked; b: an error counts as false

cpdef enum:
    # Fields of a row, a path, a step and a predicate.
    ROW_KIND = 0
    ROW_A = 1
    ROW_B = 2
    ROW_C = 3
    ROW_NEXT = 4
    ROW_WIDTH = 5

    PATH_SLOT = 0
    PATH_FIRST = 1
    PATH_LAST = 2
    PATH_KIND = 3
    PATH_WIDTH = 4

    STEP_AXIS = 0
    STEP_TEST = 1
    STEP_FIRST = 2
    STEP_LAST = 3
    STEP_WIDTH = 4

    PREDICATE_KIND = 0
    PREDICATE_A = 1
    PREDICATE_SLOT = 2
    PREDICATE_WIDTH = 3

    # Kinds of nodes.
    NODE_ELEMENT = 0
    NODE_ATTRIBUTE = 1
    NODE_TEXT = 2

    # Axes of steps.
    AXIS_CHILD = 0
    AXIS_BELOW = 1
    AXIS_ATTRIBUTE = 2
    AXIS_ATTRIBUTE_BELOW = 3
    AXIS_TEXT = 4
    AXIS_TEXT_BELOW = 5

    # Kinds of predicates.
    PREDICATE_POSITION = 0
    PREDICATE_LAST = 1
    PREDICATE_CONDITION = 2

    # Kinds of rows, by their output.
    ROW_STATIC = 0
    ROW_ATOM = 1
    ROW_NODES = 2
    ROW_STRING = 3
    ROW_DATA = 4
    ROW_COUNT = 5
    ROW_NAME = 6
    ROW_CONCAT = 7
    ROW_CALL = 8
    ROW_TRUTH = 9
    ROW_ITEMS = 10
    ROW_IF = 11
    ROW_FOR = 12
    ROW_ELEMENT = 13
    ROW_ATTRIBUTE = 14
    ROW_TEXT = 15
    ROW_PART = 16
    ROW_FOREIGN = 17
    ROW_EACH = 18

    # Kinds of rows: conditions.
    ROW_CONSTANT = 20
    ROW_EXISTS = 21
    ROW_NOT = 22
    ROW_AND = 23
    ROW_OR = 24
    ROW_STRINGS = 25
    ROW_NUMBERS = 26
    ROW_COUNTED = 27
    ROW_COMPARED = 28
    ROW_CONTAINS = 29
    ROW_STARTS = 30
    ROW_ENDS = 31
    ROW_FOREIGN_TRUTH = 32

    # Comparisons.
    IS_EQ = 0
    IS_NE = 1
    IS_LT = 2
    IS_LE = 3
    IS_GT = 4
    IS_GE = 5


@dataclass(frozen=True, slots=True)
class Foreign:
    """A question to the interpreter: an expression, the variables in it that are slots (name,
    slot, kind of node), and those that are values, in order."""

    expression: Expression
    slots: tuple[tuple[str, int, int], ...]
    values: tuple[tuple[str, Expression], ...]


@cython.final
cdef class ResultPlan:
    """``profile`` is one whose results, given bindings, these are: the interpreter's, where
    ``each`` is -1 or the rows are not enough.

    ``binds``: its bindings are the elements of the first ``for`` clause; other rows are written
    once.  ``is_message``: a result is the message.  ``around``: the row of a constructor around all
    results, or -1.  ``stamp``: the writer whose message ``numbers`` are of.  ``repeats``: the value
    of a ``let`` is evaluated wherever its variable stands, which may be more work than once.
    ``joins``: (path, path of a key, path of a value); a path whose slot is -2 - n begins at the
    nodes of join n that have a key equal to a value.
    """

    cdef public object profile
    cdef public bint binds, is_message, repeats
    cdef public int each, around
    cdef public tuple tests, texts, constants, foreign, contexts, joins
    cdef public int slots
    cdef const int[::1] rows, paths, steps, predicates
    cdef int[::1] numbers
    cdef public long long stamp

    def __init__(self, profile: Profile, binds: bool, is_message: bool = False) -> None:
        self.profile = profile
        self.binds = binds
        self.is_message = is_message
        self.repeats = False
        self.each = self.around = -1
        self.stamp = -1
        self.slots = 0
        self.tests: tuple[NameTest, ...] = ()
        self.texts: tuple[bytes, ...] = ()
        self.constants: tuple[object, ...] = ()
        self.foreign: tuple[Foreign, ...] = ()
        self.contexts: tuple[dict[str, str], ...] = ()
        self.joins: tuple[tuple[int, int, int], ...] = ()

    def set_columns(
        self, rows: list[int], paths: list[int], steps: list[int], predicates: list[int]
    ) -> None:
        """What the plan consists of, behind what these numbers refer to."""
        self.rows = array("i", rows)
        self.paths = array("i", paths)
        self.steps = array("i", steps)
        self.predicates = array("i", predicates)
        self.numbers = array("i", bytes(4 * len(self.tests)))


# -------------------------------------------------------------------------------------------------
# PlanPaths: the nodes that the paths of a ResultPlan select, on one message.
#
# Nodes are numbers: of elements, attributes, pieces of content.  A path puts what it selects on a
# stack, in document order and each once; a slot is a variable that is one node.  Every node looked
# at is counted against what is left to the profile, as in ``budget``, and so is what is written.

cdef enum:
    _NO_NAME = -1  # numbers of names; those below are masks
    _SEVERAL = -2
    _ANY_NAME = -3
cdef enum:
    _RAW = 0  # neither IN_VALUES nor IN_TEXT
cdef enum:
    _FIRST_LOOK = 2048  # visits, compiled, about 10 ns each
    _FIRST_STEP = 256


cdef double _NOT_BEGUN = NOT_BEGUN

_stamps = count()
NO_PLAN = ResultPlan(Profile(SequenceExpression(())), False)


cdef class PlanPaths:
    """Of one plan after the other (``_begin``), for one profile after the other (``_allow``)."""

    cdef readonly object stream
    cdef readonly object limits
    cdef SubtreeWriter _xml
    cdef ResultPlan _plan
    cdef long long _stamp
    cdef object _evaluator
    cdef dict _names
    cdef long long _visits, _tuples, _bytes, _look_at, _step
    cdef double _began, _looked
    cdef Py_ssize_t _settled
    cdef int[::1] _nodes, _slots
    cdef int _top, _elements
    cdef bytearray _masks
    cdef list _joined

    def __init__(self, stream: ElementStream, limits: EvaluationLimits) -> None:
        self.stream = stream
        self.limits = limits
        self._xml = SubtreeWriter(stream)
        self._stamp = next(_stamps)
        self._plan = NO_PLAN
        self._evaluator: MessageEvaluator | None = None
        self._names: dict[tuple[str, str], int] = {}
        self._elements = len(stream)
        self._nodes = array("i", bytes(4 * 64))
        self._slots = array("i", bytes(4 * 8))
        self._masks = bytearray()
        self._joined: list[dict[bytes, list[int]]] = []
        self._top = 0

    cdef int _begin(self, ResultPlan plan) except -1:
        cdef int test
        self._plan = plan
        if plan.stamp != self._stamp:
            plan.stamp = self._stamp
            for test in range(len(plan.tests)):
                plan.numbers[test] = self._number(plan.tests[test])
        if plan.slots > len(self._slots):
            self._slots = array("i", bytes(4 * plan.slots))
        return 0

    cdef int _allow(self) except -1:
        """Begin to count the cost of a profile from here on."""
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

    cdef int _number(self, test) except? -1:
        """The test of a name in this message: its number, or the mask of several."""
        if not self._names:
            self._names[ANY, ANY] = _ANY_NAME
            for number, name in enumerate(self.stream.names):
                key = name[1], name[2]
                self._names[key] = number if key not in self._names else _SEVERAL
        cdef int found = self._names.get(test, _NO_NAME)
        if found == _SEVERAL or (found == _NO_NAME and ANY in test):
            found = self._names[test] = self._mask(test)
        return found

    cdef object _mask(self, test):
        """The mask of the names that a test accepts."""
        mask = bytearray(len(self.stream.names))
        for number, name in enumerate(self.stream.names):
            mask[number] = test.accepts(name.namespace, name.local)
        self._masks += mask
        return _ANY_NAME - 1 - (len(self._masks) - len(mask))

    # -- cost

    cdef int _settle(self) except -1:
        """Counts what was written since it was counted last."""
        self._bytes -= self._xml.used - self._settled
        self._settled = self._xml.used
        return self._spend()

    cdef int _spend(self) except -1:
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

    cdef int _look(self) except -1:
        """At the clock; see ``budget``."""
        cdef double now = since(self._began, self.limits)
        if self._began == _NOT_BEGUN:
            self._began = now
        elif self._looked != _NOT_BEGUN:
            self._step = paced(self._step, now - self._looked)
        self._looked = now
        self._look_at = max(self._visits - self._step, 0)
        return 0

    # -- paths

    cdef int _path(self, int path) except -1:
        """Puts the nodes of a path on the stack; gives the place of the first."""
        cdef ResultPlan plan = self._plan
        cdef int base = self._top
        cdef int slot = plan.paths[PATH_WIDTH * path + PATH_SLOT]
        cdef int step, axis, number, end, at, before
        if slot < -1:
            self._join(-2 - slot)
        else:
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

    cdef int _select(self, int axis, int number, int start) except -1:
        """Select the nodes of a step from one element, or from the document for -1."""
        cdef SubtreeWriter xml = self._xml
        cdef int element = start + 1
        cdef int last = xml.element_end[start] if start >= 0 else self._elements
        cdef int node
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

    cdef bint _accepts(self, int number, int name) noexcept:
        if number >= 0:
            return name == number
        return number == _ANY_NAME or self._masks[_ANY_NAME - 1 - number + name] != 0

    cdef int _push(self, int node) except -1:
        if self._top >= len(self._nodes):
            self._nodes = array("i", bytes(self._nodes) * 2)
        self._nodes[self._top] = node
        self._top += 1
        return 0

    cdef int _filter(self, int step, int first) except -1:
        """Keeps those from a place on for which the predicates of a step hold."""
        cdef ResultPlan plan = self._plan
        cdef int predicate, kind, a, at, last, kept, slot
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

    cdef int _sort(self, int first) except -1:
        """In document order, each once; of one kind, that is the order of their numbers."""
        cdef int at
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

    cdef int _join(self, int number) except -1:
        """Puts the nodes of a join on the stack."""
        cdef int first = self._top
        cdef int path, kind, at
        path = self._plan.joins[number][2]
        kind = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        keyed = self._joined[number]
        self._path(path)
        found = []
        for at in range(first, self._top):
            found += keyed.get(self._string_of(kind, self._nodes[at]), ())
        at = self._top - first
        self._top = first
        self._visits -= len(found) + 1
        self._spend()
        for node in found:
            self._push(node)
        return self._sort(first) if at > 1 else 0

    cdef dict _by_key(self, int number):
        """The nodes of a join by each of their keys."""
        cdef int path, key, kind, slot, at, each
        cdef int first = self._top
        path, key, _ = self._plan.joins[number]
        kind = self._plan.paths[PATH_WIDTH * key + PATH_KIND]
        slot = self._plan.paths[PATH_WIDTH * key + PATH_SLOT]
        keyed: dict[bytes, list[int]] = {}
        self._path(path)
        cdef int last = self._top
        for at in range(first, last):
            self._slots[slot] = self._nodes[at]
            self._path(key)
            for each in range(last, self._top):
                nodes = keyed.setdefault(self._string_of(kind, self._nodes[each]), [])
                if not nodes or nodes[len(nodes) - 1] != self._nodes[at]:
                    nodes.append(self._nodes[at])
            self._top = last
        self._top = first
        return keyed

    cdef int _put_string_of(self, int kind, int node, int where) except -1:
        if kind == NODE_ELEMENT:
            return self._xml.put_string(node, where)
        if kind == NODE_ATTRIBUTE:
            return self._xml.put_value(node, where)
        return self._xml.put_text(node, where)

    cdef bytes _string_of(self, int kind, int node):
        cdef Py_ssize_t start = self._xml.used
        self._put_string_of(kind, node, _RAW)
        return self._xml.taken(start)

    cdef bint _holds(self, int _row) except -1:
        """Whether a condition holds; defined by the subclass."""
        raise NotImplementedError


# -------------------------------------------------------------------------------------------------
# PlanValues: the strings and conditions of a ResultPlan on one message, and what it asks the
# interpreter.


cdef class PlanValues(PlanPaths):
    """Of one plan after the other, for one profile after the other."""

    # -- questions to the interpreter

    cdef object _asked(self, foreign):
        """The interpreter, with what is left to this profile."""
        evaluator = self._evaluator
        if evaluator is None:
            evaluator = self._evaluator = MessageEvaluator(self.stream, self.limits)
        evaluator.visits_left = self._visits
        evaluator.tuples_left = self._tuples
        evaluator.began = self._began
        evaluator.bytes_left = self._bytes - (self._xml.used - self._settled)
        variables: dict[str, Any] = {
            name: [self._node(slot, kind)] for name, slot, kind in foreign.slots
        }
        for name, value in foreign.values:
            focus = Focus(DOCUMENT, 1, 1, dict(variables))
            variables[name] = list(evaluator.value(value, focus))
        return evaluator, Focus(DOCUMENT, 1, 1, variables)

    cdef object _node(self, int slot, int kind):
        cdef int number = self._slots[slot]
        if kind == NODE_ELEMENT:
            return element_node(number)
        if kind == NODE_ATTRIBUTE:
            owner = bisect_right(self.stream.attribute_start, number) - 1
            return Node(owner, NodeType.ATTRIBUTE, number)
        return Node(self.stream.content_next[number], NodeType.CONTENT, number)

    cdef bint _foreign_truth(self, int row) except -1:
        foreign: Foreign = self._plan.foreign[self._plan.rows[ROW_WIDTH * row + ROW_A]]
        evaluator, focus = self._asked(foreign)
        if self._plan.rows[ROW_WIDTH * row + ROW_B]:
            holds = evaluator.condition(foreign.expression, focus)
        else:
            holds = evaluator.truth(foreign.expression, focus)
        self._began = evaluator.began
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._spend()
        return holds

    # -- strings

    cdef int _put_atom(self, int row, int where) except -1:
        cdef int kind = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        cdef int a = self._plan.rows[ROW_WIDTH * row + ROW_A]
        cdef int part, first
        if kind == ROW_ATOM:
            return self._xml.put_escaped(self._plan.texts[a], where)
        if kind == ROW_TRUTH:
            return self._xml.put(b"true" if self._holds(row + 1) else b"false")
        if kind == ROW_CONCAT:
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                self._put_atom(part, where)
                self._visits -= 1
                self._spend()
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return 0
        if kind == ROW_CALL:
            arguments = []
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                arguments.append(self._string(part).decode())
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            for argument in arguments:
                self._visits -= 1 + (len(argument) >> 6)
            self._spend()
            made: str = atom_text(self._plan.constants[a](*arguments))
            return self._xml.put_escaped(made.encode(), where)
        first = self._path(a)
        if kind == ROW_COUNT:
            self._xml.put(str(self._top - first).encode())
        elif self._top > first:
            self._put_first(row, a, first, where)
        self._top = first
        return 0

    cdef _put_first(self, int row, int path, int first, int where):
        cdef int node = self._nodes[first]
        cdef int kind = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        if self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_STRING:
            self._put_string_of(kind, node, where)
        elif kind != NODE_TEXT:
            if kind == NODE_ELEMENT:
                name = self._xml.element_name[node]
            else:
                name = self._xml.attribute_name[node]
            self._xml.put_name(name, self._plan.rows[ROW_WIDTH * row + ROW_B])

    cdef bytes _string(self, int row):
        cdef Py_ssize_t start = self._xml.used
        self._put_atom(row, _RAW)
        return self._xml.taken(start)

    # -- conditions

    cdef bint _holds(self, int row) except -1:
        cdef int kind = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        cdef int a = self._plan.rows[ROW_WIDTH * row + ROW_A]
        cdef int part = row + 1
        cdef int found
        if kind == ROW_CONSTANT:
            return a != 0
        if kind == ROW_EXISTS:
            found = self._path(a)
            a = self._top - found
            self._top = found
            self._spend()
            return a > 0
        if kind == ROW_NOT:
            return not self._holds(part)
        if kind in (ROW_AND, ROW_OR):
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                if self._holds(part) == (kind == ROW_OR):
                    return kind == ROW_OR
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return kind == ROW_AND
        if kind in (ROW_STRINGS, ROW_NUMBERS):
            return self._some_node(row)
        if kind == ROW_COUNTED:
            found = self._path(a)
            number = self._top - found
            self._top = found
            return _compares(
                number,
                self._plan.rows[ROW_WIDTH * row + ROW_B],
                self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]],
            )
        if kind == ROW_COMPARED:
            constant = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]]
            operator = self._plan.rows[ROW_WIDTH * row + ROW_B]
            return _compares(self._string(part), operator, constant)
        if kind == ROW_FOREIGN_TRUTH:
            return self._foreign_truth(row)
        text = self._string(part)
        other = self._string(self._plan.rows[ROW_WIDTH * part + ROW_NEXT])
        if kind == ROW_CONTAINS:
            return other in text
        return text.startswith(other) if kind == ROW_STARTS else text.endswith(other)

    cdef bint _some_node(self, int row) except -1:
        """Whether some node of a path compares so with a constant."""
        cdef int path = self._plan.rows[ROW_WIDTH * row + ROW_A]
        cdef int kind = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        cdef bint is_number = self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_NUMBERS
        cdef int relation = self._plan.rows[ROW_WIDTH * row + ROW_B]
        constant: Any = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]]
        cdef int first = self._path(path)
        cdef int at
        cdef bint holds = False
        for at in range(first, self._top):
            value: Any = self._string_of(kind, self._nodes[at])
            if is_number:
                value = parse_double(value.decode())
            if value is not None and _compares(value, relation, constant):
                holds = True
                break
        self._top = first
        self._spend()
        return holds


cdef bint _compares(value, int operator, constant) except -1:
    if operator == IS_EQ:
        return value == constant
    if operator == IS_NE:
        return value != constant
    if operator == IS_LT:
        return value < constant
    if operator == IS_LE:
        return value <= constant
    return value > constant if operator == IS_GT else value >= constant


# -------------------------------------------------------------------------------------------------
# ResultWriter: the results of all profiles for one message.
#
# It runs plans (``result_plan``) over the columns of the message.  What profiles share is done
# once: a copied element is written once and copied from there, and so is the result of a plan for a
# binding, whoever asks for it.  What a plan asks the interpreter for, and where it cannot go on (an
# attribute of some namespace among those copied, an error), ``interpreted_result`` does.
#
# Each call of ``results`` is one profile and has ``EvaluationLimits`` of its own; text written for
# another profile costs it the same.  Kept text of more than _WRITTEN_KEPT_MAX bytes is forgotten.

cdef enum:
    _CONTENT = 0  # the modes in which a row is written
    _VALUES = 1
    _STRINGS = 2
    _DOCUMENTS = 3
    _ATTRIBUTES = 4
cdef enum:
    _WRITTEN_KEPT_MAX = 4 << 20
    _KEY_BYTES = 200  # that a key of a join takes, about


cdef double _PLAN_SECONDS = 2e-6  # where nobody has looked at the clock
cdef double _VISIT_SECONDS = 1e-8


_ONCE = [0]


class _NotInPlan(Exception):
    """A plan cannot say what is to be written of this message."""


@cython.final
cdef class ResultWriter(PlanValues):
    """Results of one message; ``stream`` is that message.

    ``copied`` and ``made`` count elements copied and results made from scratch; ``seconds``: what
    all results have taken, about.
    """

    cdef readonly long long copied, made
    cdef readonly double seconds
    cdef bytes _message, _declared_always
    cdef dict _remembered, _results, _interpreted, _keyed, _declared_by_scope
    cdef list _documents, _seen
    cdef object _bindings, _copy_columns
    cdef long long _items
    cdef Py_ssize_t _kept
    cdef bint _after_atom, _is_empty
    cdef int[::1] _copied_at, _copied_size

    def __init__(
        self, stream: ElementStream, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS
    ) -> None:
        super().__init__(stream, limits)
        self.copied = self.made = 0
        self._message = b""
        self._remembered: dict[ResultPlan, dict[int, tuple[int, int, list[bytes]]]] = {}
        self._results: dict[int, tuple[int, int, list[bytes]]] = {}
        self._interpreted: dict[tuple[ResultPlan, tuple[int, ...]], list[bytes]] = {}
        self._keyed: dict[ResultPlan, tuple[list[dict[bytes, list[int]]], int]] = {}
        self._declared_by_scope: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._documents: list[bytes] = []
        self._bindings: Sequence[int] = ()
        self._seen: list[int] = []
        self._copy_columns: list[array[int]] = []
        self._kept = 0
        self._items = 0
        self.seconds = 0.0
        declared = stream.declaration_element
        self._declared_always: bytes | None = None
        if not declared or declared[len(declared) - 1] == 0:
            scope = stream.namespaces_in_scope(0) if declared else {}
            self._declared_always = b"".join(declaration(*pair) for pair in scope.items())

    cpdef list results(self, ResultPlan plan, bindings):
        """The documents of one profile; ``bindings`` ascend.  Raises MatchLimitExceeded."""
        cdef Py_ssize_t used
        cdef long long visits
        if not bindings:
            return []
        if plan.is_message:
            return [self.whole_message()]
        if self._xml.used + self._kept > _WRITTEN_KEPT_MAX:
            self._forget()
        if plan.each >= 0:
            used = self._xml.used
            try:
                return self._planned(plan, bindings)
            except (_NotInPlan, DynamicError, MatchLimitExceeded) as error:
                if isinstance(error, MatchLimitExceeded) and (
                    not plan.repeats or error.code == "too-much-time"
                ):
                    raise
                self._plan = NO_PLAN
            finally:
                if self._began == NOT_BEGUN:
                    visits = self.limits.visits_max - self._visits
                    self.seconds += _PLAN_SECONDS + _VISIT_SECONDS * (
                        visits + max(self._xml.used - used, 0)
                    )
                else:
                    self.seconds += self.limits.clock() - self._began
        key = plan, tuple(bindings)
        documents = self._interpreted.get(key)
        if documents is None:
            began = self._began if plan.each >= 0 else NOT_BEGUN
            before = self.limits.clock()
            try:
                documents = interpreted(
                    plan, self.stream, bindings, self.limits, self.whole_message, began
                )
            finally:
                self.seconds += self.limits.clock() - before
            self._interpreted[key] = documents
            self._kept += sum(map(len, documents))
        return list(documents)

    cpdef bytes whole_message(self):
        """The message as it came, for the very many profiles that want it."""
        if not self._message:
            self._message = self._xml.document()
        return self._message

    cdef list _planned(self, ResultPlan plan, bindings):
        cdef int binding
        if plan is not self._plan or plan.stamp != self._stamp:
            self._begin(plan)
            self._results = self._remembered.setdefault(plan, {})
        self._allow()
        if plan.joins:
            self._enter_joins()
        if plan.around >= 0:
            return self._enclosed(plan, bindings)
        documents: list[bytes] = []
        try:
            for binding in bindings if plan.binds else _ONCE:
                documents += self._each(plan.each, binding, False)
        except MatchLimitExceeded as error:
            error.made, error.of = documents, len(bindings)
            raise
        return documents

    cdef int _enter_joins(self) except -1:
        """The joins of the plan are made once a message, and cost each profile the same."""
        cdef long long visits = self._visits
        cdef int number
        known = self._keyed.get(self._plan)
        if known is None:
            made = [self._by_key(number) for number in range(len(self._plan.joins))]
            known = self._keyed[self._plan] = (made, visits - self._visits)
            self._kept += _KEY_BYTES * sum(map(len, made))
        self._joined = known[0]
        self._visits = visits - known[1]
        return self._spend()

    cdef list _enclosed(self, ResultPlan plan, bindings):
        cdef Py_ssize_t start = self._xml.used
        self._bindings = bindings if plan.binds else _ONCE
        self._is_empty = True
        self._emit(plan.around, _CONTENT)
        if self._is_empty:
            return []
        self._settle()
        return [self._xml.part(start, self._xml.used)]

    cdef list _each(self, int row, int binding, bint again):
        """The output of one binding; ``again``: as content, where it is not yet written."""
        cdef long long visits, tuples
        made: list[bytes]
        document: bytes
        self._tuples -= 1
        found = self._results.get(binding)
        if found is not None:
            made = found[2]
            self._visits -= found[0]
            self._tuples -= found[1]
            for document in made:
                if again:
                    self._items += 1
                    self._xml.put(document)
                else:
                    self._bytes -= len(document)
            self._spend()
        else:
            visits = self._visits
            tuples = self._tuples
            made = self._documents = []
            self._slots[0] = binding
            self._emit(row, _DOCUMENTS)
            self._settle()
            self.made += 1
            for document in made:
                self._kept += len(document)
            self._results[binding] = (visits - self._visits, tuples - self._tuples, made)
            self._items += len(made)
        return made

    cdef _forget(self):
        """All that is kept of the message but the message."""
        self._xml.used = 0
        self._kept = 0
        self._plan = NO_PLAN
        self._remembered = {}
        self._interpreted = {}
        self._keyed = {}
        self._copy_columns = []

    # -- output

    cdef int _emit(self, int row, int mode) except -1:
        """Write a row as documents, content, values or strings of a text, or attributes."""
        cdef int part, chosen
        cdef int kind = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        if kind == ROW_STATIC:
            return self._xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_A]])
        if kind in (ROW_NODES, ROW_DATA):
            return self._emit_nodes(row, mode)
        if kind == ROW_ELEMENT:
            return self._emit_element(row, mode)
        if kind == ROW_ITEMS:
            return self._emit_parts(row, mode)
        if kind == ROW_IF:
            part = row + 1
            chosen = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            if not self._holds(part):
                chosen = self._plan.rows[ROW_WIDTH * chosen + ROW_NEXT]
            return self._emit(chosen, mode)
        if kind == ROW_FOR:
            return self._emit_for(row, mode)
        if kind == ROW_TEXT:
            return self._emit_text(row, mode)
        if kind == ROW_PART:
            return self._emit_part(row, mode)
        if kind == ROW_FOREIGN:
            return self._emit_foreign(row, mode)
        if kind == ROW_EACH:
            return self._emit_bindings(row, mode)
        self._separate(mode)
        self._put_atom(row, IN_VALUES if mode == _VALUES else IN_TEXT)
        return self._spend()

    cdef int _emit_parts(self, int row, int mode) except -1:
        cdef int part = row + 1
        while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
            self._emit(part, mode)
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        return 0

    cdef int _emit_element(self, int row, int mode) except -1:
        cdef SubtreeWriter xml = self._xml
        cdef Py_ssize_t start = xml.used
        cdef Py_ssize_t inside
        cdef int within
        cdef int part = row + 1
        cdef int last = self._plan.rows[ROW_WIDTH * row + ROW_NEXT]
        cdef int in_tag = self._plan.rows[ROW_WIDTH * row + ROW_C]
        cdef bint is_first = True
        xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_A]])
        while part < last and in_tag > 0:
            if self._plan.rows[ROW_WIDTH * part + ROW_KIND] == ROW_ATTRIBUTE:
                xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * part + ROW_A]])
                within = part + 1
                while within < self._plan.rows[ROW_WIDTH * part + ROW_NEXT]:
                    self._after_atom = False
                    self._emit(within, _VALUES)
                    within = self._plan.rows[ROW_WIDTH * within + ROW_NEXT]
                xml.put(b'"')
            else:
                if is_first:
                    is_first = False
                    self._seen = self._names_of_attributes(row + 1, part)
                self._emit(part, _ATTRIBUTES)
            in_tag -= 1
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        xml.put(b">")
        inside = xml.used
        while part < last:
            self._after_atom = False
            self._emit(part, _CONTENT)
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        if xml.used == inside:
            xml.used -= 1
            xml.put(b"/>")
        else:
            xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_B]])
        self._items += 1
        self._after_atom = False
        if mode == _DOCUMENTS:
            self._documents.append(xml.part(start, xml.used))
        return self._spend()

    cdef list _names_of_attributes(self, int part, int last):
        """The names in this message that a start tag has attributes of already."""
        names = []
        while part < last:
            if self._plan.rows[ROW_WIDTH * part + ROW_KIND] == ROW_ATTRIBUTE:
                names.append(self._plan.numbers[self._plan.rows[ROW_WIDTH * part + ROW_B]])
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        return names

    cdef int _emit_nodes(self, int row, int mode) except -1:
        """The nodes of a path: as they are, or their strings."""
        cdef int path = self._plan.rows[ROW_WIDTH * row + ROW_A]
        cdef int kind = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        cdef int context = self._plan.rows[ROW_WIDTH * row + ROW_B]
        cdef int first = self._path(path)
        cdef int at
        cdef Py_ssize_t start
        if mode == _ATTRIBUTES:
            self._emit_attribute_nodes(first)
        elif mode in (_VALUES, _STRINGS) or self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_DATA:
            for at in range(first, self._top):
                self._separate(mode)
                where = IN_VALUES if mode == _VALUES else IN_TEXT
                self._put_string_of(kind, self._nodes[at], where)
        elif kind == NODE_TEXT:
            for at in range(first, self._top):
                self._xml.put_text(self._nodes[at], IN_TEXT)
            self._items += self._top - first
            self._after_atom = False
        else:
            for at in range(first, self._top):
                start = self._xml.used
                self._copy(self._nodes[at], context)
                self._spend()
                if mode == _DOCUMENTS:
                    self._documents.append(self._xml.part(start, self._xml.used))
                self._items += 1
                self._after_atom = False
        self._top = first
        return self._spend()

    cdef int _emit_attribute_nodes(self, int first) except -1:
        """Attributes of the message as those of a start tag; the first of a name counts."""
        cdef int at, name
        for at in range(first, self._top):
            name = self._xml.attribute_name[self._nodes[at]]
            if name in self._seen:
                continue
            if self.stream.names[name].namespace:
                raise _NotInPlan
            self._seen.append(name)
            self._xml.put_attribute(self._nodes[at])
        return 0

    cdef int _emit_for(self, int row, int mode) except -1:
        cdef int path = self._plan.rows[ROW_WIDTH * row + ROW_A]
        cdef int slot = self._plan.rows[ROW_WIDTH * row + ROW_B]
        cdef int kind = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        cdef int first = self._path(path)
        cdef int last = self._top
        cdef int at
        seen: set[bytes] | None = set() if self._plan.rows[ROW_WIDTH * row + ROW_C] else None
        for at in range(first, last):
            if seen is not None:
                string = self._string_of(kind, self._nodes[at])
                if string in seen:
                    continue
                seen.add(string)
            self._tuples -= 1
            self._spend()
            self._slots[slot] = self._nodes[at]
            self._emit(row + 1, mode)
        self._top = first
        return 0

    cdef int _emit_text(self, int row, int mode) except -1:
        """A text node, or the value of one; there is none of nothing, but one of "" is empty."""
        cdef long long items = self._items
        if mode in (_VALUES, _STRINGS):
            raise _NotInPlan
        self._after_atom = False
        self._emit(row + 1, _STRINGS)
        self._after_atom = False
        self._items = min(self._items, items + 1)
        return 0

    cdef int _emit_part(self, int row, int mode) except -1:
        cdef int slot
        if self.stream.pieces:
            slot = self._plan.rows[ROW_WIDTH * row + ROW_B]
            digest = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_A]]
            markup = self.stream.pieces.get((self._slots[slot], digest))
            if markup is not None:
                if markup:
                    self._items += 1
                    self._xml.put(markup)
                    if mode == _DOCUMENTS:
                        self._documents.append(markup)
                self._after_atom = False
                return self._spend()
        return self._emit(row + 1, mode)

    cdef int _emit_bindings(self, int row, int mode) except -1:
        """Write the output of each binding, within a constructor."""
        cdef int binding
        cdef long long items = self._items
        for binding in self._bindings:
            if self._plan.rows[ROW_WIDTH * row + ROW_A]:
                self._each(row + 1, binding, True)
            else:
                self._tuples -= 1
                self._slots[0] = binding
                self._emit(row + 1, mode)
        self._is_empty = self._items == items
        self._after_atom = False
        return self._spend()

    cdef int _emit_foreign(self, int row, int mode) except -1:
        """Write the value that the interpreter gives to an expression."""
        foreign: Foreign = self._plan.foreign[self._plan.rows[ROW_WIDTH * row + ROW_A]]
        evaluator, focus = self._asked(foreign)
        value = evaluator.value(foreign.expression, focus)
        self._items += len(value)
        if mode == _CONTENT:
            markup: bytes = written(evaluator, value)
            self._xml.put(markup)
        else:
            texts = [evaluator.string(item) for item in value]
            size = sum(map(len, texts)) + len(texts)
            evaluator.charge_memory(size)
            evaluator.charge_text(size)
            text = " ".join(texts)
            where = IN_VALUES if mode == _VALUES else IN_TEXT
            self._xml.put_escaped(text.encode(), where)
        self._began = evaluator.began
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._after_atom = False
        return self._spend()

    cdef int _separate(self, int mode) except -1:
        """Before a string: a space between two next to each other."""
        if self._after_atom:
            self._xml.put(b" ")
        self._after_atom = True
        self._items += 1
        return 0

    # -- copies

    cdef int _copy(self, int element, int context) except -1:
        cdef SubtreeWriter xml = self._xml
        cdef Py_ssize_t start = xml.used
        if not self._copy_columns:
            self._copy_columns = [array("i", bytes(4 * self._elements)) for _ in range(2)]
            self._copied_at = self._copy_columns[0]
            self._copied_size = self._copy_columns[1]
        if context == 0 and self._copied_size[element] > 0:
            return xml.put_again(self._copied_at[element], self._copied_size[element])
        self.copied += 1
        if context == 0 and self._declared_always is not None:
            xml.put_element(element, self._declared_always)
        else:
            self._copy_into(element, context)
        if context == 0 and xml.used < 1 << 30:
            self._copied_at[element] = start
            self._copied_size[element] = xml.used - start
        return 0

    cdef _copy_into(self, int element, int context):
        """A copy that needs declarations of its own, or those below may mean something else."""
        around: dict[str, str] = self._plan.contexts[context]
        scope, name = self.stream.namespaces_in_scope(element), self.stream.name_of(element)
        own = {**scope}
        own.setdefault(name.prefix, name.namespace)
        is_plain = self._xml.is_plain(element) or not around.keys() - own.keys() - {"", "xml"}
        if is_plain and ("" in own or not around[""]):
            key = tuple(pair for pair in own.items() if around.get(pair[0]) != pair[1])
            declared = self._declared_by_scope.get(key)
            if declared is None:
                declared = b"".join(declaration(*pair) for pair in key)
                self._declared_by_scope[key] = declared
            self._xml.put_element(element, declared)
            return
        writer = XmlWriter(around)
        writer.copy_element(self.stream, element)
        self._xml.put(writer.getvalue())


def result_writer(stream: ElementStream, limits: EvaluationLimits) -> ResultWriter:
    """That of the message written from last is kept: many results are made of one."""
    if not _LAST or _LAST[0].stream is not stream or _LAST[0].limits is not limits:
        _LAST[:] = [ResultWriter(stream, limits)]
    return _LAST[0]


_LAST: list[ResultWriter] = []
