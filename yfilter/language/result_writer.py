# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""ResultWriter: the results of all profiles for one message.

It runs plans (``result_plan``) over the columns of the message.  What profiles share is done once:
a copied element is written once and copied from there, and so is the result of a plan for a
binding, whoever asks for it.  What a plan asks the interpreter for, and where it cannot go on (an
attribute of some namespace among those copied, an error), ``interpreted_result`` does.

Each call of ``results`` is one profile and has ``EvaluationLimits`` of its own; what was written
for another one costs it the same.  Beyond _WRITTEN_KEPT_MAX bytes, what is kept is forgotten.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from formats.subtree_writer import SubtreeWriter, declaration
from formats.xml_writer import XmlWriter
from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import NOT_BEGUN
from yfilter.language.construction import written
from yfilter.language.interpreted_result import interpreted
from yfilter.language.nodes import DynamicError
from yfilter.language.plan_paths import NO_PLAN
from yfilter.language.plan_values import PlanValues
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.result_plan import Foreign, ResultPlan

if not cython.compiled:
    from yfilter.language.result_plan import (
        NODE_TEXT,
        PATH_KIND,
        PATH_WIDTH,
        ROW_A,
        ROW_ATTRIBUTE,
        ROW_B,
        ROW_C,
        ROW_DATA,
        ROW_EACH,
        ROW_ELEMENT,
        ROW_FOR,
        ROW_FOREIGN,
        ROW_IF,
        ROW_ITEMS,
        ROW_KIND,
        ROW_NEXT,
        ROW_NODES,
        ROW_PART,
        ROW_STATIC,
        ROW_TEXT,
        ROW_WIDTH,
    )

_CONTENT, _VALUES, _STRINGS, _DOCUMENTS, _ATTRIBUTES = 0, 1, 2, 3, 4  # what a row is written as
_IN_VALUES, _IN_TEXT = 1, 2  # as in subtree_writer
_WRITTEN_KEPT_MAX = 4 << 20
_PLAN_SECONDS, _VISIT_SECONDS = 2e-6, 1e-8  # where nobody has looked at the clock


class _NotInPlan(Exception):
    """A plan cannot say what is to be written of this message."""


class ResultWriter(PlanValues):
    """Results of one message; ``stream`` is that message.

    ``copied`` and ``made`` count elements copied and results made from scratch; ``seconds``: what
    all results have taken, about.
    """

    def __init__(
        self, stream: ElementStream, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS
    ) -> None:
        super().__init__(stream, limits)
        self.copied = self.made = 0
        self._message = b""
        self._remembered: dict[ResultPlan, dict[int, tuple[int, int, list[bytes]]]] = {}
        self._results: dict[int, tuple[int, int, list[bytes]]] = {}
        self._interpreted: dict[tuple[ResultPlan, tuple[int, ...]], list[bytes]] = {}
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

    def results(self, plan: ResultPlan, bindings: Sequence[int]) -> list[bytes]:
        """The documents of one profile; ``bindings`` ascend.  Raises MatchLimitExceeded."""
        if not bindings:
            return []
        if plan.is_message:
            return [self.whole_message()]
        if self._xml.used + self._kept > _WRITTEN_KEPT_MAX:
            self._forget()
        if plan.each >= 0:
            used: cython.Py_ssize_t = self._xml.used
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
                    visits: cython.longlong = self.limits.visits_max - self._visits
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

    def whole_message(self) -> bytes:
        """The message as it came, for the very many profiles that want it."""
        if not self._message:
            self._message = self._xml.document()
        return self._message

    def _planned(self, plan: ResultPlan, bindings: Sequence[int]) -> list[bytes]:
        binding: cython.int
        if plan is not self._plan or plan.stamp != self._stamp:
            self._begin(plan)
            self._results = self._remembered.setdefault(plan, {})
        self._allow()
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

    def _forget(self) -> None:
        """All that is kept of the message but the message."""
        self._xml.used = 0
        self._kept = 0
        self._plan = NO_PLAN
        self._remembered = {}
        self._interpreted = {}
        self._copy_columns = []

    # -- what is written

    def _emit(self, row: cython.int, mode: cython.int) -> cython.int:
        """What a row says, as documents, content, values or strings of a text, or attributes."""
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        if kind == ROW_STATIC:
            return self._xml.put(self._plan.texts[self._plan.rows[ROW_WIDTH * row + ROW_A]])
        if kind in (ROW_NODES, ROW_DATA):
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
        is_first: cython.bint = True
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

    def _names_of_attributes(self, part: cython.int, last: cython.int) -> list[int]:
        """The names in this message that a start tag has attributes of already."""
        names = []
        while part < last:
            if self._plan.rows[ROW_WIDTH * part + ROW_KIND] == ROW_ATTRIBUTE:
                names.append(self._plan.numbers[self._plan.rows[ROW_WIDTH * part + ROW_B]])
            part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
        return names

    def _emit_nodes(self, row: cython.int, mode: cython.int) -> cython.int:
        """The nodes of a path: as they are, or their strings."""
        path: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        context: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
        first: cython.int = self._path(path)
        at: cython.int
        start: cython.Py_ssize_t
        if mode == _ATTRIBUTES:
            self._emit_attribute_nodes(first)
        elif mode in (_VALUES, _STRINGS) or self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_DATA:
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
        if mode in (_VALUES, _STRINGS):
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
            texts = [evaluator.string(item) for item in value]
            size = sum(map(len, texts)) + len(texts)
            evaluator.charge_memory(size)
            evaluator.charge_text(size)
            text = " ".join(texts)
            where = _IN_VALUES if mode == _VALUES else _IN_TEXT
            self._xml.put_escaped(text.encode(), where)
        self._began = evaluator.began
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._after_atom = False
        return self._spend()

    def _separate(self, mode: cython.int) -> cython.int:
        """Before a string: a space between two next to each other."""
        if self._after_atom:
            self._xml.put(b" ")
        self._after_atom = True
        self._items += 1
        return 0

    # -- copies

    def _copy(self, element: cython.int, context: cython.int) -> cython.int:
        xml: SubtreeWriter = self._xml
        start: cython.Py_ssize_t = xml.used
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


def result_writer(stream: ElementStream, limits: EvaluationLimits) -> ResultWriter:
    """That of the message written from last is kept: many results are made of one."""
    if not _LAST or _LAST[0].stream is not stream or _LAST[0].limits is not limits:
        _LAST[:] = [ResultWriter(stream, limits)]
    return _LAST[0]


_LAST: list[ResultWriter] = []
