"""ResultPlan: how the results of a profile are written of its bindings, as numbers.

Most ``return`` clauses are made of few things: elements constructed and copied, strings,
attributes, conditions and loops, all found by paths from the bound element::

    for $i in //item return <hit id="{$i/@id}">{$i/title}, {string($i/body/p)}</hit>

    row  kind        what it refers to
    0    ELEMENT     the tag hit; its parts are the rows up to its next
    1    ATTRIBUTE   id
    2    NODES       path 0
    3    NODES       path 1
    4    STATIC      ", "
    5    STRING      path 2

A tree is made once, in the columns of the plan (``result_planner``), and run once a distinct
binding and message, whoever asks (``result_writer``).  Row, path, step and predicate are each so
many numbers; a row's parts are the rows behind it up to its ``next``.

=================  ================================================================================
row                fields a, b, c; parts
=================  ================================================================================
STATIC             text; markup as it stands
ATOM               text; a string
NODES              path; copies, or strings in a value; all
STRING, DATA       path; the string of the first node, strings of all
COUNT, NAME        path; how many, the name of the first; b: with prefix
CONCAT, CALL       parts: strings; CALL: a constant, the function
TRUTH              part: condition; "true" or "false"
ITEMS              parts, one after the other
IF                 parts: condition, then, else
FOR                path, slot; part: what is written for each node
ELEMENT            texts: start tag, end tag; how many parts go into the start tag; parts
ATTRIBUTE          text, test of its name; parts: its value
TEXT               part; a text node of its strings
PART               constant: digest; slot; part: otherwise (projection/parts.py)
FOREIGN            what the interpreter is asked
EACH               part: what is written for each binding; a: nothing but elements
CONSTANT           whether it holds
EXISTS             path
NOT, AND, OR       parts
STRINGS, NUMBERS   path, comparison, constant: some node of the path compares so
COUNTED            path, comparison, constant: how many
COMPARED           comparison, constant; part: a string
CONTAINS, ...      parts: two strings
FOREIGN_TRUTH      what the interpreter is asked; b: an error counts as false
=================  ================================================================================
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.language.query_ast import Expression, NameTest, Profile

if not cython.compiled:
    ROW_KIND, ROW_A, ROW_B, ROW_C, ROW_NEXT, ROW_WIDTH = range(6)
    PATH_SLOT, PATH_FIRST, PATH_LAST, PATH_KIND, PATH_WIDTH = range(5)
    STEP_AXIS, STEP_TEST, STEP_FIRST, STEP_LAST, STEP_WIDTH = range(5)
    PREDICATE_KIND, PREDICATE_A, PREDICATE_SLOT, PREDICATE_WIDTH = range(4)

    NODE_ELEMENT, NODE_ATTRIBUTE, NODE_TEXT = range(3)

    AXIS_CHILD, AXIS_BELOW, AXIS_ATTRIBUTE, AXIS_ATTRIBUTE_BELOW = range(4)
    AXIS_TEXT, AXIS_TEXT_BELOW = 4, 5

    PREDICATE_POSITION, PREDICATE_LAST, PREDICATE_CONDITION = range(3)

    ROW_STATIC, ROW_ATOM, ROW_NODES, ROW_STRING, ROW_DATA, ROW_COUNT, ROW_NAME = range(7)
    ROW_CONCAT, ROW_CALL, ROW_TRUTH, ROW_ITEMS, ROW_IF, ROW_FOR = range(7, 13)
    ROW_ELEMENT, ROW_ATTRIBUTE, ROW_TEXT, ROW_PART, ROW_FOREIGN, ROW_EACH = range(13, 19)

    ROW_CONSTANT, ROW_EXISTS, ROW_NOT, ROW_AND, ROW_OR, ROW_STRINGS = range(20, 26)
    ROW_NUMBERS, ROW_COUNTED, ROW_COMPARED = range(26, 29)
    ROW_CONTAINS, ROW_STARTS, ROW_ENDS, ROW_FOREIGN_TRUTH = range(29, 33)

    IS_EQ, IS_NE, IS_LT, IS_LE, IS_GT, IS_GE = range(6)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What the interpreter is asked: an expression, the variables in it that are slots (name,
    slot, kind of node), and those that are values, in order."""

    expression: Expression
    slots: tuple[tuple[str, int, int], ...]
    values: tuple[tuple[str, Expression], ...]


class ResultPlan:
    """``profile`` is one whose results, given bindings, these are: the interpreter's, where
    ``each`` is -1 or the rows are not enough.

    ``binds``: its bindings are the elements of the first ``for`` clause.  ``is_message``: a result
    is the message.  ``around``: the row of a constructor around all results, or -1.  ``stamp``:
    the writer whose message ``numbers`` are of.  ``repeats``: what a ``let`` says is evaluated
    wherever its variable stands, which may be more work than once.
    """

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

    def set_rows(
        self,
        columns: tuple[list[int], list[int], list[int], list[int]],
        tests: tuple[NameTest, ...],
        texts: tuple[bytes, ...],
        constants: tuple[object, ...],
        foreign: tuple[Foreign, ...],
        contexts: tuple[dict[str, str], ...],
        slots: int,
    ) -> None:
        """Rows, paths, steps and predicates, and what they refer to."""
        self._row_column = array("i", columns[0])
        self._path_column = array("i", columns[1])
        self._step_column = array("i", columns[2])
        self._predicate_column = array("i", columns[3])
        self._number_column = array("i", bytes(4 * len(tests)))
        self.rows = self._row_column
        self.paths = self._path_column
        self.steps = self._step_column
        self.predicates = self._predicate_column
        self.numbers = self._number_column
        self.tests = tests
        self.texts = texts
        self.constants = constants
        self.foreign = foreign
        self.contexts = contexts
        self.slots = slots
