# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""ResultWriter: the results of all profiles for one message.

It runs plans (``result_plan``) over the columns of the message.  What profiles share is done once:
a copied element is written once and copied from there, and so is the result of a plan for a
binding, whoever asks for it.  What a plan asks the interpreter for, and where it cannot go on (an
attribute of some namespace among those copied, an error), ``interpreted_result`` does.

Each call of ``results`` is one profile and has ``EvaluationLimits`` of its own; what was written
before for another one costs it the same.  What is kept for the message is bounded: beyond
_WRITTEN_KEPT_MAX bytes it is forgotten, and written again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import count
from typing import Any

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.escapes import escaped_value
from formats.names import QualifiedName
from formats.subtree_writer import SubtreeWriter, declaration
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.atoms import atom_text
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.interpreted_result import interpreted
from yfilter.language.nodes import DOCUMENT, DynamicError, Focus, Node, NodeType, element_node
from yfilter.language.numbers import parse_double
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import ANY, NameTest
from yfilter.language.result_plan import Foreign, ResultPlan

if not cython.compiled:
    from yfilter.language.result_plan import *  # noqa: F403

_CONTENT, _VALUES, _STRINGS, _DOCUMENTS, _ATTRIBUTES = 0, 1, 2, 3, 4  # what a row is written as
_RAW, _IN_VALUES, _IN_TEXT = 0, 1, 2  # as in subtree_writer
_NO_NAME, _ANY_NAME = -1, -2  # numbers of names; those below are masks
_WRITTEN_KEPT_MAX = 4 << 20

_stamps = count()


class _NotInPlan(Exception):
    """A plan cannot say what is to be written of this message."""


class ResultWriter:
    """Results of one message; ``stream`` is that message.

    ``copied`` and ``made`` count elements copied and results made from scratch.
    """

    def __init__(
        self, stream: ElementStream, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS
    ) -> None:
        self.stream = stream
        self.limits = limits
        self.copied = self.made = 0
        self._xml = SubtreeWriter(stream)
        self._stamp = next(_stamps)
        self._plan = None
        self._evaluator = None
        self._names = None
        self._message = None
        self._remembered = {}
        self._results = {}
        self._declared_by_scope = {}
        self._documents = []
        self._bindings = ()
        self._seen = []
        self._elements = len(stream)
        self._node_column = array("i", bytes(4 * 64))
        self._nodes = self._node_column
        self._slot_column = array("i", bytes(4 * 8))
        self._slots = self._slot_column
        self._copy_columns = None
        self._masks = bytearray()
        self._top = 0
        self._kept = 0
        self._items = 0
        declared = stream.declaration_element
        self._declared_always = None
        if not declared or declared[len(declared) - 1] == 0:
            scope = stream.namespaces_in_scope(0) if declared else {}
            self._declared_always = b"".join(declaration(*pair) for pair in scope.items())

    def results(self, plan: ResultPlan, bindings: Sequence[int]) -> list[bytes]:
        """The documents of one profile; ``bindings`` ascend.  Raises MatchLimitExceeded."""
        if not bindings:
            return []
        if plan.is_message:
            return [self.whole_message()]
        if plan.each >= 0:
            try:
                return self._planned(plan, bindings)
            except (_NotInPlan, DynamicError):
                self._plan = None
        return interpreted(plan, self.stream, bindings, self.limits, self.whole_message)

    def whole_message(self) -> bytes:
        """The message as it came, for the very many profiles that want it."""
        if self._message is None:
            self._message = self._xml.document()
        return self._message

    def _planned(self, plan: ResultPlan, bindings: Sequence[int]) -> list[bytes]:
        binding: cython.int
        if self._xml.used + self._kept > _WRITTEN_KEPT_MAX:
            self._forget()
        if plan is not self._plan:
            self._begin(plan)
        self._visits = self.limits.visits_max
        self._tuples = self.limits.tuples_max
        self._bytes = self.limits.bytes_max
        self._settled = self._xml.used
        self._evaluator = None
        self._top = 0
        if plan.around >= 0:
            return self._enclosed(plan, bindings)
        documents: list[bytes] = []
        for binding in bindings:
            documents += self._each(plan.each, binding, False)
        return documents

    def _enclosed(self, plan: ResultPlan, bindings: Sequence[int]) -> list[bytes]:
        start: cython.Py_ssize_t = self._xml.used
        self._bindings = bindings
        self._is_empty = True
        self._emit(plan.around, _CONTENT)
        if self._is_empty:
            return []
        self._settle()
        return [self._xml.part(start, self._xml.used)]

    def _each(self, row: cython.int, binding: cython.int, again: cython.bint) -> list[bytes]:
        """What is made of one binding; ``again``: as content, where it is not yet written."""
        found: tuple[int, int, list[bytes]]
        visits: cython.longlong
        tuples: cython.longlong
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

    def _begin(self, plan: ResultPlan) -> cython.int:
        test: cython.int
        self._plan = plan
        self._results = self._remembered.get(plan)
        if self._results is None:
            self._results = self._remembered[plan] = {}
        if plan.stamp != self._stamp:
            plan.stamp = self._stamp
            for test in range(len(plan.tests)):
                plan.numbers[test] = self._number(plan.tests[test])
        if plan.slots > len(self._slots):
            self._slot_column = array("i", bytes(4 * plan.slots))
            self._slots = self._slot_column
        return 0

    def _forget(self) -> None:
        """All that is kept of the message but the message."""
        self._xml.used = 0
        self._kept = 0
        self._plan = None
        self._remembered = {}
        if self._copy_columns is not None:
            self._copy_columns = None

    def _number(self, test: NameTest) -> cython.int:
        """What a name in this message has to be: its number, or what one of several is told by."""
        if self._names is None:
            self._names = {(ANY, ANY): _ANY_NAME}
        found = self._names.get(test)
        if found is None:
            numbers = [
                number
                for number, name in enumerate(self.stream.names)
                if test.accepts(name.namespace, name.local)
            ]
            found = numbers[0] if numbers else _NO_NAME
            if len(numbers) > 1:
                found = _ANY_NAME - 1 - len(self._masks)
                mask = bytearray(len(self.stream.names))
                for number in numbers:
                    mask[number] = 1
                self._masks += mask
            self._names[test] = found
        chosen: cython.int = found
        return chosen

    # -- what is written

    def _emit(self, row: cython.int, mode: cython.int) -> cython.int:
        """What a row says, as documents, content, values or strings of a text, or attributes."""
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        if kind == ROW_STATIC:
            return self._xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_A]])
        if kind == ROW_NODES:
            return self._emit_nodes(row, mode)
        if kind == ROW_ELEMENT:
            return self._emit_element(row, mode)
        if kind == ROW_ITEMS:
            return self._emit_parts(row, mode)
        if kind == ROW_IF:
            part: cython.int = row + 1
            chosen: cython.int = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            if not self._holds(part):
                chosen = self._plan.rows[ROW_WIDTH * chosen + ROW_NEXT]
            return self._emit(chosen, mode)
        if kind == ROW_FOR:
            return self._emit_for(row, mode)
        if kind == ROW_DATA:
            return self._emit_data(row, mode)
        if kind == ROW_TEXT:
            return self._emit_text(row, mode)
        if kind == ROW_PART:
            return self._emit_part(row, mode)
        if kind == ROW_FOREIGN:
            return self._emit_foreign(row, mode)
        if kind == ROW_EACH:
            return self._emit_bindings(row, mode)
        self._separate(mode)
        self._put_atom(row, _IN_VALUES if mode == _VALUES else _IN_TEXT)
        return self._spend()

    def _emit_parts(self, row: cython.int, mode: cython.int) -> cython.int:
        part: cython.int = row + 1
        while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
            self._emit(part, mode)
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        return 0

    def _emit_element(self, row: cython.int, mode: cython.int) -> cython.int:
        xml: SubtreeWriter = self._xml
        start: cython.Py_ssize_t = xml.used
        inside: cython.Py_ssize_t
        within: cython.int
        part: cython.int = row + 1
        last: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_NEXT]
        in_tag: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_C]
        xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_A]])
        self._seen = None
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
                if self._seen is None:
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

    def _names_of_attributes(self, part: cython.int, last: cython.int) -> list[int]:
        """The names in this message that a start tag has attributes of already."""
        names = []
        while part < last:
            if self._plan.rows[ROW_WIDTH * part + ROW_KIND] == ROW_ATTRIBUTE:
                names.append(self._plan.numbers[self._plan.rows[ROW_WIDTH * part + ROW_B]])
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        return names

    def _emit_nodes(self, row: cython.int, mode: cython.int) -> cython.int:
        path: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        context: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
        first: cython.int = self._path(path)
        at: cython.int
        start: cython.Py_ssize_t
        if mode == _ATTRIBUTES:
            self._emit_attribute_nodes(first)
        elif mode == _VALUES or mode == _STRINGS:
            for at in range(first, self._top):
                self._separate(mode)
                where = _IN_VALUES if mode == _VALUES else _IN_TEXT
                self._put_string_of(kind, self._nodes[at], where)
        elif kind == NODE_TEXT:
            for at in range(first, self._top):
                self._xml.put_text(self._nodes[at], _IN_TEXT)
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

    def _emit_attribute_nodes(self, first: cython.int) -> cython.int:
        """Attributes of the message as those of a start tag; the first of a name counts."""
        at: cython.int
        name: cython.int
        for at in range(first, self._top):
            name = self._xml.attribute_name[self._nodes[at]]
            if name in self._seen:
                continue
            if self.stream.names[name].namespace:
                raise _NotInPlan
            self._seen.append(name)
            self._xml.put_attribute(self._nodes[at])
        return 0

    def _emit_data(self, row: cython.int, mode: cython.int) -> cython.int:
        path: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        first: cython.int = self._path(path)
        at: cython.int
        for at in range(first, self._top):
            self._separate(mode)
            where = _IN_VALUES if mode == _VALUES else _IN_TEXT
            self._put_string_of(kind, self._nodes[at], where)
        self._top = first
        return self._spend()

    def _emit_for(self, row: cython.int, mode: cython.int) -> cython.int:
        slot: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
        first: cython.int = self._path(self._plan.rows[ROW_WIDTH * row + ROW_A])
        last: cython.int = self._top
        at: cython.int
        for at in range(first, last):
            self._tuples -= 1
            self._spend()
            self._slots[slot] = self._nodes[at]
            self._emit(row + 1, mode)
        self._top = first
        return 0

    def _emit_text(self, row: cython.int, mode: cython.int) -> cython.int:
        """A text node, or the value of one; there is none of nothing, but one of "" is empty."""
        items: cython.longlong = self._items
        if mode == _VALUES or mode == _STRINGS:
            raise _NotInPlan
        self._after_atom = False
        self._emit(row + 1, _STRINGS)
        self._after_atom = False
        self._items = min(self._items, items + 1)
        return 0

    def _emit_part(self, row: cython.int, mode: cython.int) -> cython.int:
        if self.stream.pieces:
            slot: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
            digest = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_A]]
            markup: bytes = self.stream.pieces.get((self._slots[slot], digest))
            if markup is not None:
                if markup:
                    self._items += 1
                    self._xml.put(markup)
                    if mode == _DOCUMENTS:
                        self._documents.append(markup)
                self._after_atom = False
                return self._spend()
        return self._emit(row + 1, mode)

    def _emit_bindings(self, row: cython.int, mode: cython.int) -> cython.int:
        """What is made of each binding, within a constructor."""
        binding: cython.int
        items: cython.longlong = self._items
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

    def _emit_foreign(self, row: cython.int, mode: cython.int) -> cython.int:
        """What the interpreter makes of an expression."""
        foreign: Foreign = self._plan.foreign[self._plan.rows[ROW_WIDTH * row + ROW_A]]
        evaluator, focus = self._asked(foreign)
        value = evaluator.value(foreign.expression, focus)
        self._items += len(value)
        if mode == _CONTENT:
            markup: bytes = written(evaluator, value)
            self._xml.put(markup)
        else:
            text = " ".join(evaluator.string(item) for item in value)
            where = _IN_VALUES if mode == _VALUES else _IN_TEXT
            self._xml.put_escaped(text.encode(), where)
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._after_atom = False
        return self._spend()

    def _asked(self, foreign: Foreign) -> tuple[MessageEvaluator, Focus]:
        """The interpreter, with what is left to this profile."""
        evaluator = self._evaluator
        if evaluator is None:
            evaluator = self._evaluator = MessageEvaluator(self.stream, self.limits)
        evaluator.visits_left = self._visits
        evaluator.tuples_left = self._tuples
        evaluator.bytes_left = self._bytes - (self._xml.used - self._settled)
        variables: dict[str, Any] = {
            name: [self._node(slot, kind)] for name, slot, kind in foreign.slots
        }
        for name, value in foreign.values:
            focus = Focus(DOCUMENT, 1, 1, dict(variables))
            variables[name] = list(evaluator.value(value, focus))
        return evaluator, Focus(DOCUMENT, 1, 1, variables)

    def _node(self, slot: cython.int, kind: cython.int) -> Node:
        number: cython.int = self._slots[slot]
        if kind == NODE_ELEMENT:
            return element_node(number)
        if kind == NODE_ATTRIBUTE:
            owner = bisect_right(self.stream.attribute_start, number) - 1
            return Node(owner, NodeType.ATTRIBUTE, number)
        return Node(self.stream.content_next[number], NodeType.CONTENT, number)

    def _separate(self, mode: cython.int) -> cython.int:
        """Before a string: a space between two next to each other."""
        if self._after_atom:
            self._xml.put(b" ")
        self._after_atom = True
        self._items += 1
        return 0

    # -- strings

    def _put_atom(self, row: cython.int, where: cython.int) -> cython.int:
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        a: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        part: cython.int
        first: cython.int
        if kind == ROW_ATOM:
            return self._xml.put_escaped(self._plan.texts[a], where)
        if kind == ROW_TRUTH:
            return self._xml.put(b"true" if self._holds(row + 1) else b"false")
        if kind == ROW_CONCAT:
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                self._put_atom(part, where)
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return 0
        if kind == ROW_CALL:
            arguments = []
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                arguments.append(self._string(part).decode())
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            made: str = atom_text(self._plan.constants[a](*arguments))
            return self._xml.put_escaped(made.encode(), where)
        first = self._path(a)
        if kind == ROW_COUNT:
            self._xml.put(str(self._top - first).encode())
        elif self._top > first:
            self._put_first(row, a, first, where)
        self._top = first
        return 0

    def _put_first(
        self, row: cython.int, path: cython.int, first: cython.int, where: cython.int
    ) -> None:
        node: cython.int = self._nodes[first]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        if self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_STRING:
            self._put_string_of(kind, node, where)
        elif kind != NODE_TEXT:
            if kind == NODE_ELEMENT:
                name = self._xml.element_name[node]
            else:
                name = self._xml.attribute_name[node]
            self._xml.put_name(name, self._plan.rows[ROW_WIDTH * row + ROW_B])

    def _put_string_of(
        self, kind: cython.int, node: cython.int, where: cython.int
    ) -> cython.int:
        if kind == NODE_ELEMENT:
            return self._xml.put_string(node, where)
        if kind == NODE_ATTRIBUTE:
            return self._xml.put_value(node, where)
        return self._xml.put_text(node, where)

    def _string_of(self, kind: cython.int, node: cython.int) -> bytes:
        start: cython.Py_ssize_t = self._xml.used
        self._put_string_of(kind, node, _RAW)
        return self._xml.taken(start)

    def _string(self, row: cython.int) -> bytes:
        start: cython.Py_ssize_t = self._xml.used
        self._put_atom(row, _RAW)
        return self._xml.taken(start)

    # -- copies

    def _copy(self, element: cython.int, context: cython.int) -> cython.int:
        xml: SubtreeWriter = self._xml
        start: cython.Py_ssize_t = xml.used
        if self._copy_columns is None:
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

    def _copy_into(self, element: cython.int, context: cython.int) -> None:
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

    # -- what it costs

    def _settle(self) -> cython.int:
        """Counts what was written since it was counted last."""
        self._bytes -= self._xml.used - self._settled
        self._settled = self._xml.used
        return self._spend()

    def _spend(self) -> cython.int:
        if (
            self._visits >= 0
            and self._tuples >= 0
            and self._xml.used - self._settled <= self._bytes
        ):
            return 0
        self._plan = None
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

    # -- conditions

    def _holds(self, row: cython.int) -> cython.bint:
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        a: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        part: cython.int = row + 1
        found: cython.int
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
        if kind == ROW_AND or kind == ROW_OR:
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                if self._holds(part) == (kind == ROW_OR):
                    return kind == ROW_OR
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return kind == ROW_AND
        if kind == ROW_STRINGS or kind == ROW_NUMBERS:
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

    def _some_node(self, row: cython.int) -> cython.bint:
        """Whether some node of a path compares so with a constant."""
        path: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        is_number: cython.bint = self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_NUMBERS
        operator: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
        constant: Any = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]]
        first: cython.int = self._path(path)
        at: cython.int
        holds: cython.bint = False
        for at in range(first, self._top):
            value: Any = self._string_of(kind, self._nodes[at])
            if is_number:
                value = parse_double(value.decode())
            if value is not None and _compares(value, operator, constant):
                holds = True
                break
        self._top = first
        self._spend()
        return holds

    def _foreign_truth(self, row: cython.int) -> bool:
        foreign: Foreign = self._plan.foreign[self._plan.rows[ROW_WIDTH * row + ROW_A]]
        evaluator, focus = self._asked(foreign)
        if self._plan.rows[ROW_WIDTH * row + ROW_B]:
            holds = evaluator.condition(foreign.expression, focus)
        else:
            holds = evaluator.truth(foreign.expression, focus)
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._spend()
        return holds

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

    def _select(
        self, axis: cython.int, number: cython.int, start: cython.int
    ) -> cython.int:
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
        if axis == AXIS_ATTRIBUTE or axis == AXIS_TEXT:
            last = element  # the element itself, nothing for the document
        if start >= 0:
            element = start
        if axis == AXIS_ATTRIBUTE or axis == AXIS_ATTRIBUTE_BELOW:
            if element < last:
                for node in range(xml.attribute_start[element], xml.attribute_start[last]):
                    self._visits -= 1
                    if self._accepts(number, xml.attribute_name[node]):
                        self._push(node)
            return 0
        if element < last:
            for node in range(xml.first_content(element), xml.end_of_content(element, xml.first_content(element))):
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


def _compares(value: Any, operator: cython.int, constant: Any) -> cython.bint:
    if operator == IS_EQ:
        return value == constant
    if operator == IS_NE:
        return value != constant
    if operator == IS_LT:
        return value < constant
    if operator == IS_LE:
        return value <= constant
    return value > constant if operator == IS_GT else value >= constant
