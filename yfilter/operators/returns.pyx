"""Results: the values of operators, written as documents.

Result is the operator of a profile's results, and the constructors are operators beside it;
compiler.py makes them of a profile.  ResultWriter writes results on one message, of a profile with
an Answer, and Deliveries gives those of all profiles that a message matches.
"""

from array import array
from collections.abc import Callable, Sequence

from formats.columns import declaration
from formats.element_stream import ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.names import XML_NAMESPACE, QualifiedName
from formats.xml_writer import XmlWriter, own_declarations
from yfilter.errors import MatchLimitExceeded
from yfilter.language.atoms import atom_text
from yfilter.language.budget import NOT_BEGUN, too_many_tuples, too_many_visits
from yfilter.language.evaluator import free_prefix, written
from yfilter.language.failures import first_told
from yfilter.language.nodes import (
    NODES,
    Construction,
    Detached,
    DynamicError,
    Node,
    NodeType,
    Written,
)
from yfilter.language.query_ast import Constructor, NodeKind
from yfilter.matches import Delivered
from yfilter.operators.operators import ItemVariable, NodesVariable, Variable

cimport cython
from cpython.array cimport array as Array, clone

from formats.columns cimport IN_TEXT, IN_VALUES, SubtreeWriter
from yfilter.index.automaton cimport SubscriberRuns
from yfilter.operators.operators cimport (
    CONTENT,
    KINDS,
    ROOT,
    Operator,
    OperatorTable,
    Output,
    Scratch,
    _position,
    _within,
)


cdef class ResultWriter


class Unwritten(Exception):
    """An error in what a constructor constructs: no document is made of it."""


# -------------------------------------------------------------------------------------------------
# Constructors: operators that write markup around what their parts write.
#
# An expression that looks into a constructed node takes its value from another operator, ``items``.


cdef class Constructing(Operator):
    """``operand`` is that which has the items."""

    cdef object value(self, long long node):
        return self.operand.value(node)

    cdef object items(self, long long node):
        return self.operand.items(node)


cdef class Static(Constructing):
    """Markup as it stands: a comment or a processing instruction, or text of a constructor."""

    cdef bytes markup

    def __init__(self, markup: str, items: Operator) -> None:
        super().__init__(items.scratch, items)
        self.markup = markup.encode()

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if writer.mode != IN_CONTENT:
            return out.put_items(self.operand.value(node))
        return writer.put_markup(self.markup)


cdef class AttributeOf(Constructing):
    """An attribute in no namespace; or one of a start tag, whose name is ``label``.

    ``parts``: text, and operators whose items are written with spaces between them."""

    cdef bytes label
    cdef tuple key
    cdef list parts

    def __init__(
        self, name: QualifiedName, parts: Sequence[str | Operator], items: Operator
    ) -> None:
        asked = (part for part in parts if isinstance(part, Operator))
        super().__init__(items.scratch, items, *asked)
        self.label = f' {name}="'.encode()
        self.key = (name.namespace, name.local)
        escaped = str if self.key == _XML_ID else escaped_value
        self.parts = [escaped(part).encode() if isinstance(part, str) else part for part in parts]

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if not writer.in_tag:
            return out.put_items(self.operand.value(node))
        return writer.put_constructed_attribute(self, node)


cdef class TextOf(Constructing):
    """A text node of the strings of an operand; none where there are none."""

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if writer.mode != IN_CONTENT:
            return out.put_items(self.operand.value(node))
        return writer.put_constructed_text(self.other, node)


cdef class ElementOf(Constructing):
    """An element; ``attributes`` and ``content`` are what its constructor says, in order."""

    cdef bytes start, end
    cdef object own  # what each prefix must mean on the element
    cdef list attributes, content
    cdef object prefixes
    cdef dict _around, _inner  # what prefixes mean around it, where it was written last, and in it
    cdef bytes _declared

    def __init__(
        self, constructor: Constructor, attributes: Sequence[AttributeOf],
        content: Sequence[str | Operator], items: Operator
    ) -> None:
        parts = [
            Static(escaped_text(part), items) if isinstance(part, str) else part
            for part in content
        ]
        super().__init__(items.scratch, items, *attributes, *parts)
        name = constructor.name
        names = tuple(attribute for attribute, _ in constructor.attributes)
        self.start = f"<{name}".encode()
        self.end = f"</{name}>".encode()
        self.own = own_declarations(name, names, constructor.declarations)
        self.prefixes = dict(constructor.declarations)
        self.prefixes[name.prefix] = name.namespace
        self.prefixes.update({one.prefix: one.namespace for one in names if one.prefix})
        self.attributes = list(attributes)
        self.content = parts
        self._around = None

    cdef dict declare(self, dict around, SubtreeWriter xml):
        """Write what has to be declared; what prefixes mean in the element."""
        if around is not self._around:
            missing = [pair for pair in self.own.items() if around.get(pair[0]) != pair[1]]
            self._declared = b"".join([declaration(*pair) for pair in missing])
            self._inner = {**around, **dict(missing)} if missing else around
            self._around = around
        if self._declared:
            xml.put(self._declared)
        return self._inner

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if writer.mode == AS_STRINGS:
            return out.put_items(self.operand.value(node))
        return writer.put_constructed(self, node)


cdef class Decisive(Operator):
    """A part of an enclosing constructor of which one has to yield something."""

    cdef object value(self, long long node):
        return self.operand.value(node)

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        cdef long long items = writer.count
        self.operand.write(node, out)
        writer.is_empty &= writer.count == items
        return 0


cdef class PartOf(Operator):
    """A part of a return clause (projection/parts.py) at the element of a variable: its piece,
    where that came with the message, or else what the operator writes."""

    cdef object _variable
    cdef str _digest

    def __init__(
        self, variable: Variable | ItemVariable, digest: str, otherwise: Operator
    ) -> None:
        super().__init__(otherwise.scratch, otherwise)
        self._variable = variable
        self._digest = digest

    cdef object value(self, long long node):
        markup = self._piece()
        if markup is None:
            return self.operand.value(node)
        return [Written(NodeKind.NODE, None, "", markup=markup)] if markup else []

    cdef bytes _piece(self):
        pieces = self.scratch.columns._stream.pieces
        if not pieces:
            return None
        if isinstance(self._variable, Variable):
            return pieces.get((_position(self._variable.node), self._digest))
        (element,) = self._variable._items
        return pieces.get((element.number, self._digest))

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        cdef bytes markup = self._piece()
        if markup is None or writer.mode == AS_STRINGS:
            return self.operand.write(node, out)
        return writer.put_markup(markup) if markup else 0


@cython.final
cdef class BindingPart(Operator):
    """A part of constructors that depends on the element of the binding alone: one operator for
    all profiles that have it, whose text a ResultWriter keeps for each element."""

    cdef object value(self, long long node):
        return self.operand.value(node)

    cdef object items(self, long long node):
        return self.operand.items(node)

    cdef int write(self, long long node, Output out) except -1:
        return (<ResultWriter>out).put_part(self, node)


@cython.final
cdef class PartText:
    """The text of a part, and its price: ``visits`` and ``tuples``; ``count`` of its items."""

    cdef bytes octets
    cdef long long visits, tuples, count
    cdef bint after_atom


# -------------------------------------------------------------------------------------------------
# Result: the results of a profile as an operator.
#
# ========================  =====================================================================
# a profile                 ``body``
# ========================  =====================================================================
# a path                    whether it selects anything: then the message is the result
# ``for $i in …`` with      the other clauses and ``return``, written for each node that is bound
#   bindings                to ``variable``, once for all profiles with the operator
# a constructor             the constructor: one document, if a decisive part yields anything
# anything else             the expression: a document for each item
# ========================  =====================================================================
#
# The bindings of the last two are bound to ``variable`` together, where there is one.  ``base`` and
# ``condition`` find them where results tell of failures: one node looked at behind the other, as
# far as a bound lets it.


@cython.final
cdef class Result(Operator):
    cdef Operator body, base, condition
    cdef readonly bint is_message, is_each, encloses
    cdef object variable

    def __init__(
        self, body: Operator, variable: Variable | NodesVariable | None = None, *,
        is_message: bool = False, encloses: bool = False,
        base: Operator | None = None, condition: Operator | None = None
    ) -> None:
        super().__init__(body.scratch)
        self.body = body
        self.variable = variable
        self.is_message = is_message
        self.is_each = isinstance(variable, Variable)
        self.encloses = encloses
        self.base = base
        self.condition = condition


# -------------------------------------------------------------------------------------------------
# Answer: how the results of a profile are made, found out when it first matches.
#
# Its results are written by one operator, given the elements that its first ``for`` clause binds
# and ``where`` lets through.  Operators find these: the elements that a path leads to, once a
# message for all profiles with that path, and of these the ones on which a condition holds::
#
#     for $e in /feed/item where $e/@id = "x" return …      /feed/item     [@id = "x"]


_ANY_BINDING = [0]  # of results that are made of none


@cython.final
cdef class Answer:
    """``returned``: a compiler's Returned, and ``pieced`` makes that whose parts come as pieces;
    None where the result is the message or of a ``graph``.  ``paths`` lead to the elements that are
    bound, where that is known.  ``fails``: the results are failed assertions.

    ``bound``: numbers of paths and conditions in the operator table, while the answer holds them;
    ``is_held``: beyond one message."""

    cdef readonly object returned, graph
    cdef readonly tuple paths
    cdef readonly bint is_message, fails
    cdef public bint is_held
    cdef object _pieced
    cdef list _bound
    cdef int _path, _condition, _result, _with_pieces  # the first two are the only ones bound

    def __init__(
        self, returned: Returned | None, pieced: Callable[[], Returned],
        paths: Sequence[Expression], *, graph: GraphQuery | None, is_message: bool, fails: bool
    ) -> None:
        self.returned = returned
        self._pieced = pieced
        self.paths = tuple(paths)
        self.graph = graph
        self.is_message = is_message
        self.fails = fails
        self._bound = []

    cpdef int acquire(self, OperatorTable operators) except -1:
        """Hold the operators that find elements."""
        for path in self.paths:
            base, condition = path.divided()
            number = operators.acquire(base)
            asked = 0 if condition is None else operators.acquire(condition)
            self._bound.append((number, asked))
        if len(self._bound) == 1:
            self._path, self._condition = self._bound[0]
        return 0

    cpdef int release(self, OperatorTable operators) except -1:
        """Hold no operators any more."""
        numbers = [number for pair in self._bound for number in pair]
        for number in (*numbers, self._result, self._with_pieces):
            if number:
                operators.release(number)
        self._bound = []
        self._path = self._condition = self._result = self._with_pieces = 0
        return 0

    cpdef list bindings(self, OperatorTable operators):
        """The elements, on the message that the operators look at.  Raises MatchLimitExceeded."""
        cdef int path, condition
        if self._path:
            return operators.elements(self._path, self._condition)
        if not self._bound:
            return _ANY_BINDING
        found: set[int] = set()
        cut = None
        for path, condition in self._bound:
            try:
                found.update(operators.elements(path, condition))
            except MatchLimitExceeded as exceeded:
                found.update(exceeded.found)
                exceeded.unseen += [] if cut is None else cut.unseen
                cut = exceeded
        if cut is not None:
            cut.found, cut.unseen = sorted(found), list({*cut.unseen} - found)
            raise cut
        return sorted(found)

    cdef int number(self, ResultWriter writer) except -1:
        """The number of the operator of the results on a writer's message."""
        if writer.has_pieces and self.returned.binds:
            if not self._with_pieces:
                self._with_pieces = writer._operators.acquire(self._pieced())
            return self._with_pieces
        if not self._result:
            self._result = writer._operators.acquire(self.returned)
        return self._result


# -------------------------------------------------------------------------------------------------
# ResultWriter: the results of all profiles for one message.
#
# Work that profiles share is done once: a copied element is written once and copied from there, and
# so are a BindingPart and the results of an operator for each binding.
#
# Each call of ``results`` is one profile and has ``EvaluationLimits`` of its own; text written for
# another profile costs it the same.  Kept text of more than _WRITTEN_KEPT_MAX bytes is forgotten.

cdef enum:
    # The modes in which items are written.
    AS_DOCUMENTS = 0
    IN_CONTENT = 1
    AS_STRINGS = 2

    _WRITTEN_KEPT_MAX = 4 << 20
    _RAW = 0  # neither IN_VALUES nor IN_TEXT


cdef double _NOT_BEGUN = NOT_BEGUN
cdef double _RESULT_SECONDS = 2e-6  # where nobody has looked at the clock
cdef double _VISIT_SECONDS = 1e-8
cdef double _OBJECT_SECONDS = 1e-6
cdef dict _NOWHERE = {"": "", "xml": XML_NAMESPACE}  # what prefixes mean around a document
_XML_ID = (XML_NAMESPACE, "id")
_ALL = (-1,)  # the bindings of what is written once


@cython.final
cdef class ResultWriter(Output):
    """Results of one message; ``stream`` is that message, ``operators`` are about to look at it.

    ``copied`` and ``made`` count elements copied and results made from scratch; ``seconds``: what
    all results have taken, about.
    """

    cdef readonly object stream
    cdef bint has_pieces
    cdef readonly long long copied, made
    cdef readonly double seconds
    cdef OperatorTable _operators
    cdef Scratch _scratch
    cdef object _limits
    cdef SubtreeWriter _xml
    # What is being written, and where.
    cdef int mode, _where
    cdef bint in_tag, after_atom, is_empty
    cdef long long count
    cdef Py_ssize_t _inside, _declared_at
    cdef dict _around, _prefixes
    cdef ElementOf _tag
    cdef list _names
    cdef list _documents
    # What is left of the limits.
    cdef long long _bytes, _bytes_max
    cdef Py_ssize_t _settled
    # What is kept of the message.
    cdef bytes _message, _declared_always
    cdef dict _remembered, _part_texts, _declared_by_scope
    cdef long long _attributes  # that were put in start tags, beside those that constructors have
    cdef object _copy_columns
    cdef int[::1] _copied_at, _copied_size
    cdef list _copies
    cdef Py_ssize_t _kept

    def __init__(self, stream: ElementStream, operators: OperatorTable) -> None:
        self.stream = stream
        self.has_pieces = bool(stream.pieces)
        self._operators = operators
        self._scratch = operators.scratch
        self._limits = operators._limits
        self._bytes_max = self._limits.bytes_max
        self._xml = SubtreeWriter(stream)
        self.copied = self.made = 0
        self.seconds = 0.0
        self._message = b""
        self._declared_by_scope: dict[tuple[tuple[str, str], ...], bytes] = {}
        declared = stream.declaration_element
        self._declared_always: bytes | None = None
        if not declared or declared[len(declared) - 1] == 0:
            scope = stream.namespaces_in_scope(0) if declared else {}
            self._declared_always = b"".join(declaration(*pair) for pair in scope.items())
        self._forget()

    cpdef bytes whole_message(self):
        """The message as it came, for the very many profiles that want it."""
        if not self._message:
            self._message = self._xml.document()
        return self._message

    cpdef list results(self, Result result, bindings, bint is_shared=False):
        """The documents of one profile; ``bindings`` ascend.  ``is_shared``: others are about to
        ask for the same.  Raises MatchLimitExceeded."""
        cdef Scratch scratch = self._scratch
        cdef Py_ssize_t used
        cdef double began, cost
        if not bindings:
            return []
        if self._xml.used + self._kept > _WRITTEN_KEPT_MAX:
            self._forget()
        used = self._xml.used
        self._begin()
        try:
            if result.is_each:
                return self._of_each(result, bindings, is_shared)
            return self._of_all(result, bindings, is_shared)
        finally:
            began = scratch.began
            cost = _VISIT_SECONDS * (scratch.visits + max(self._xml.used - used, 0))
            if not scratch._is_spent and scratch._evaluator is not None:
                began = scratch._evaluator.began if began == _NOT_BEGUN else began
                cost += _OBJECT_SECONDS * scratch._evaluator.visits
            if began == _NOT_BEGUN:
                self.seconds += _RESULT_SECONDS + cost
            else:
                self.seconds += self._limits.clock() - began

    cpdef list answered(self, Answer answer):
        """The same of the elements that the answer of a profile finds."""
        cdef bint is_held = answer.is_held
        cdef int number
        cut = None
        if not is_held:
            answer.acquire(self._operators)
        try:
            try:
                bindings = answer.bindings(self._operators)
            except MatchLimitExceeded as exceeded:
                if not answer.fails or not self._limits.is_final(exceeded.code):
                    raise
                cut, bindings = exceeded, exceeded.found
            try:
                number = answer.number(self)
                made = self.results(
                    self._operators._operators[number], bindings,
                    self._operators._entries[number].users > 1,
                )
                if cut is None:
                    return made
                cut.made, cut.of = made, len(made)
            except MatchLimitExceeded as exceeded:
                if cut is not None:
                    exceeded.unseen = cut.unseen
                cut = exceeded
        finally:
            if not is_held:
                answer.release(self._operators)
        return first_told(answer.returned.profile, cut, self._limits)

    cdef list _of_each(self, Result result, bindings, bint is_shared):
        cdef int binding
        cdef Py_ssize_t first = 0
        cdef list documents = []
        cdef dict known = self._known(result) if is_shared else None
        try:
            for binding in bindings:
                first = len(documents)
                self._scratch.bind_tuple()
                if is_shared and binding in known:
                    self._again(known[binding], documents)
                    continue
                self._scratch.binding.node = KINDS * binding
                self._anew(result, documents, known, binding)
        except MatchLimitExceeded as error:
            del documents[first:]
            error.made, error.of = documents, len(bindings)
            raise
        return documents

    cdef list _of_all(self, Result result, bindings, bint is_shared):
        cdef int binding
        cdef list documents = []
        cdef dict known = self._known(result) if is_shared else None
        key = _ALL if result.variable is None else tuple(bindings)
        if is_shared and key in known:
            self._again(known[key], documents)
            return documents
        cut = None
        of = 0
        try:
            if result.base is not None:
                bindings, cut = self._failing(result)
                result.variable._bound = array("q", bindings)
                of = len(bindings)
            elif result.variable is not None:
                result.variable._bound = array("q", [KINDS * binding for binding in bindings])
                of = len(bindings)
            self._anew(result, documents, known if cut is None else None, key)
            if cut is not None:
                raise cut
        except MatchLimitExceeded as error:
            if not result.encloses:
                error.made, error.of = documents, of
                error.unseen = [] if cut is None else cut.unseen
            raise
        return documents

    cdef dict _known(self, Result result):
        """The results of an operator that were written before, by their bindings."""
        known = self._remembered.get(result)
        if known is None:
            known = self._remembered[result] = {}
        return known

    cdef object _failing(self, Result result):
        """The nodes of which failures are told, one looked at behind the other, and the bound that
        has ended that."""
        cdef Scratch scratch = self._scratch
        nodes = list(map(scratch.number_of, result.base.value(ROOT)))
        if result.condition is None:
            return nodes, None
        found: list[int] = []
        for at in range(len(nodes)):
            try:
                if result.condition.holds(nodes[at]):
                    found.append(nodes[at])
            except DynamicError:
                pass
            except MatchLimitExceeded as cut:
                cut.unseen = [max(_position(node), 0) for node in nodes[at:]]
                scratch.restart()
                return found, cut
        return found, None

    cdef int _anew(self, Result result, list documents, dict known, key) except -1:
        """Write results behind other documents; they are remembered under a key where something is
        ``known``."""
        cdef long long visits = self._visits()
        cdef long long tuples = self._scratch._tuples_left
        cdef Py_ssize_t first = len(documents)
        cdef Py_ssize_t start = self._xml.used
        cdef bytes document
        self._documents = documents
        self.mode = IN_CONTENT if result.encloses else AS_DOCUMENTS
        try:
            if result.is_message:
                if result.body.holds(ROOT):
                    documents.append(self.whole_message())
            else:
                result.body.write(ROOT, self)
            if result.encloses and not self.is_empty:
                documents.append(self._xml.part(start, self._xml.used))
        except (DynamicError, Unwritten):
            del documents[first:]
            self._begin_writing()
        self._settle()
        if self._visits() > self._scratch.visits_max:
            raise too_many_visits()
        self.made += 1
        if known is not None:
            made = documents[first:]
            for document in made:
                self._kept += len(document)
            known[key] = (self._visits() - visits, tuples - self._scratch._tuples_left, made)
        return 0

    cdef int _again(self, tuple made, list documents) except -1:
        """Results that were written before, which cost the same again."""
        cdef bytes document
        self._scratch.visit(made[0])
        self._scratch._tuples_left -= made[1]
        for document in made[2]:
            self._bytes -= len(document)
            documents.append(document)
        return self._spend()

    # -- cost

    cdef int _begin(self) except -1:
        """A profile, which has all of the limits."""
        self._operators._look()
        self._scratch.restart()
        self._bytes = self._bytes_max
        self._settled = self._xml.used
        self._begin_writing()
        return 0

    cdef int _begin_writing(self) except -1:
        self.mode = AS_DOCUMENTS
        self._where = IN_TEXT
        self.in_tag = self.after_atom = False
        self.is_empty = True
        self.count = 0
        self._inside = -1
        self._around = _NOWHERE
        return 0

    cdef long long _visits(self) except? -1:
        """Of the profile so far, with those of its trees."""
        cdef Scratch scratch = self._scratch
        if scratch._is_spent or scratch._evaluator is None:
            return scratch.visits
        return scratch.visits + scratch._evaluator.visits

    cdef int _settle(self) except -1:
        """Counts what was written since it was counted last."""
        self._bytes -= self._xml.used - self._settled
        self._settled = self._xml.used
        return self._spend()

    cdef int _spend(self) except -1:
        if self._scratch._tuples_left < 0:
            raise too_many_tuples(self._limits)
        if self._xml.used - self._settled > self._bytes:
            raise MatchLimitExceeded(
                "result-too-large",
                f"the results of a profile are larger than {self._bytes_max} bytes",
            )
        return 0

    cdef _forget(self):
        """All that is kept of the message but the message."""
        self._xml.used = 0
        self._kept = 0
        self._remembered: dict[Result, dict[object, tuple[int, int, list[bytes]]]] = {}
        self._part_texts: dict[BindingPart, dict[int, PartText]] = {}
        self._copy_columns = None
        self._copies: list[int] = []

    # -- items

    cdef int put_items(self, value) except -1:
        for item in value:
            self._scratch.visit(1)
            if not isinstance(item, NODES):
                if self.mode != AS_DOCUMENTS:  # else it is no document
                    octets = atom_text(item).encode()
                    self.open_string()
                    self.put_octets(octets, 0, len(octets))
            elif isinstance(item, Node) and not item.tree:
                self._put_node(self._scratch.number_of(item))
            else:
                self._put_made(item)
        return 0

    cdef int put_nodes(self, int base) except -1:
        cdef Scratch scratch = self._scratch
        cdef int at
        for at in range(base, scratch.top):
            self._put_node(scratch.nodes[at])
        scratch.top = base
        return 0

    cdef int open_string(self) except -1:
        if self.mode == AS_DOCUMENTS:
            return 0
        if self.mode == IN_CONTENT:
            self._begin_content()
        if self.after_atom:
            self._xml.put(b" ")
        self.after_atom = True
        self.count += 1
        return 0

    cdef int put_octets(self, bytes octets, int first, int last) except -1:
        cdef const unsigned char* values = octets
        if self.mode == AS_DOCUMENTS:
            return 0
        self._xml._put_escaped(
            values, first, last, self._where if self.mode == AS_STRINGS else IN_TEXT
        )
        return self._spend()

    cdef int _put_node(self, long long node) except -1:
        cdef Scratch scratch = self._scratch
        cdef long long within = _within(node)
        cdef Py_ssize_t start
        if self.mode == AS_STRINGS:
            scratch.look_at(node)
            self.open_string()
            return self.put_octets(scratch.octets, scratch.first, scratch.last)
        if _position(node) >= scratch.columns.elements and scratch.root(node) != ROOT:
            return self._put_made(scratch.node_of(node))
        if within > 0:
            return self._put_attribute(within - 1)
        if within < 0 and self.mode == AS_DOCUMENTS:
            return 0
        if node == ROOT and self.mode == AS_DOCUMENTS:
            self._documents.append(self.whole_message())
            self._bytes -= len(self._message)
            self.count += 1
            return self._spend()
        if self.mode == IN_CONTENT:
            self._begin_content()
        start = self._xml.used
        if within < 0:
            self._xml.put_piece(within + CONTENT)
        elif node == ROOT:
            self._copy_document()
        else:
            self._copy(_position(node))
        if self.mode == AS_DOCUMENTS:
            self._documents.append(self._xml.part(start, self._xml.used))
        self.count += 1
        self.after_atom = False
        return self._spend()

    cdef int _put_made(self, item) except -1:
        """Write a constructed item, or a node of a constructed tree."""
        evaluator = self._scratch.evaluator()
        is_node = isinstance(item, Node)
        if self.mode == AS_STRINGS:
            octets = evaluator.string(item).encode()
            self.open_string()
            return self.put_octets(octets, 0, len(octets))
        if is_node and item.type is NodeType.ATTRIBUTE:
            stream = evaluator.streams[item.tree]
            name = stream.names[stream.attribute_name[item.number]]
            return self._put_named(name, stream.attribute_value(item.number))
        if isinstance(item, Detached) and item.kind is NodeKind.ATTRIBUTE:
            return self._put_named(item.name, item.value)
        if self.mode == AS_DOCUMENTS and not (
            isinstance(item, Construction | Written)
            or (is_node and item.type in (NodeType.ELEMENT, NodeType.DOCUMENT))
        ):
            return 0
        try:
            markup = written(evaluator, [item], self._around)
        except DynamicError as error:
            if self.mode == AS_DOCUMENTS:
                return 0
            raise Unwritten from error
        return self.put_markup(markup)

    cdef int put_markup(self, bytes markup) except -1:
        """Markup of no item, or of one that is no attribute."""
        if self.mode == AS_DOCUMENTS:
            self._documents.append(markup)
            self._bytes -= len(markup)
        else:
            self._begin_content()
            self._xml.put(markup)
        self.count += 1
        self.after_atom = False
        return self._spend()

    cdef int attempt(self, Operator operand, long long node) except -1:
        cdef int mode = self.mode
        cdef int where = self._where
        cdef bint in_tag = self.in_tag
        cdef bint after_atom = self.after_atom
        cdef long long count = self.count
        cdef Py_ssize_t inside = self._inside
        cdef Py_ssize_t start = self._xml.used
        cdef Py_ssize_t declared_at = self._declared_at
        cdef Py_ssize_t documents = len(self._documents)
        cdef dict around = self._around
        cdef int base = self._scratch.top
        cdef ElementOf tag = self._tag
        names = None if self._names is None else self._names[:]
        prefixes = None if self._prefixes is None else dict(self._prefixes)
        try:
            return operand.write(node, self)
        except DynamicError:
            if self._scratch.strict:
                raise
            self._scratch.top = base
        if in_tag and self._declared_at > declared_at:  # behind what is declared for an attribute
            start += self._declared_at - declared_at
            attributes = self._xml.part(self._declared_at, start)
            self._undo(declared_at)
            self._xml.put(attributes)
        else:
            self._undo(start)
        self.mode, self._where, self.in_tag = mode, where, in_tag
        self.after_atom, self.count, self._inside = after_atom, count, inside
        self._declared_at, self._around = declared_at, around
        self._tag, self._names, self._prefixes = tag, names, prefixes
        del self._documents[documents:]
        return 0

    cdef int _undo(self, Py_ssize_t start) except -1:
        """Take back what was written from a place on."""
        cdef int last = len(self._copies) - 1
        self._xml.used = start
        while last >= 0 and self._copied_at[self._copies[last]] >= start:
            self._copied_size[self._copies[last]] = 0
            del self._copies[last]
            last -= 1
        return 0

    # -- constructors

    cdef int put_part(self, BindingPart part, long long node) except -1:
        """A part at the element of the binding.  One in another namespace than the message's is
        written anew, and so is one that gives the start tag attributes."""
        cdef Scratch scratch = self._scratch
        cdef bint in_tag = self.in_tag
        cdef long long count = self.count
        cdef long long attributes = self._attributes
        cdef long long visits, tuples
        cdef Py_ssize_t start = self._xml.used
        cdef PartText text
        if self._around is not _NOWHERE or self.mode == AS_DOCUMENTS:
            return part.operand.write(node, self)
        cdef dict texts = self._part_texts.get(part)
        if texts is None:
            texts = self._part_texts[part] = {}
        cdef long long key = <long long>_position(scratch.binding.node) << 2
        if self.mode == AS_STRINGS:
            key += 1 + self._where
        known = texts.get(key)
        if known is not None:
            text = known
            scratch.visit(text.visits)
            scratch._tuples_left -= text.tuples
            if text.count:
                if self.mode == IN_CONTENT:
                    self._begin_content()
                self._xml.put(text.octets)
                self.count += text.count
                self.after_atom = text.after_atom
            return self._spend()
        visits, tuples = self._visits(), scratch._tuples_left
        part.operand.write(node, self)
        if self._attributes != attributes:
            return 0
        text = texts[key] = PartText()
        text.octets = self._xml.part(start + (in_tag and not self.in_tag), self._xml.used)
        text.visits, text.tuples = self._visits() - visits, tuples - scratch._tuples_left
        text.count, text.after_atom = self.count - count, self.after_atom
        self._kept += len(text.octets)
        return 0

    cdef int _begin_content(self) except -1:
        """End the start tag that is open."""
        if self.in_tag:
            self._xml.put(b">")
            self.in_tag = False
            self._inside = self._xml.used
        return 0

    cdef int put_constructed(self, ElementOf element, long long node) except -1:
        cdef int mode = self.mode
        cdef long long count = self.count
        cdef dict around = self._around
        cdef Py_ssize_t declared_at = self._declared_at
        cdef Py_ssize_t start, inside
        if mode == IN_CONTENT:
            self._begin_content()
        inside = self._inside
        start = self._xml.used
        try:
            self._put_element(element, node)
        except (DynamicError, Unwritten) as error:
            self._declared_at = declared_at
            if mode == IN_CONTENT:
                if isinstance(error, Unwritten):
                    raise
                raise Unwritten from error
            self._undo(start)
            self.in_tag = False
            start = -1
        self.mode = mode
        self._around = around
        self._declared_at = declared_at
        self._inside = inside
        self.after_atom = False
        self.count = count + 1
        if mode == AS_DOCUMENTS and start >= 0:
            self._documents.append(self._xml.part(start, self._xml.used))
        return self._spend()

    cdef int _put_element(self, ElementOf element, long long node) except -1:
        cdef SubtreeWriter xml = self._xml
        cdef AttributeOf attribute
        cdef Operator part
        xml.put(element.start)
        self._around = element.declare(self._around, xml)
        self._declared_at = xml.used
        self._names = self._prefixes = None
        self.mode = IN_CONTENT
        for attribute in element.attributes:
            self._put_value(attribute, node)
        self._tag = element
        self.in_tag = True
        for part in element.content:
            self.after_atom = False
            part.write(node, self)
        if self.in_tag:
            self.in_tag = False
            return xml.put(b"/>")
        if xml.used > self._inside:
            return xml.put(element.end)
        xml.used -= 1
        return xml.put(b"/>")

    cdef int _put_value(self, AttributeOf attribute, long long node) except -1:
        """An attribute with its value."""
        cdef Py_ssize_t start
        self._xml.put(attribute.label)
        start = self._xml.used
        self.mode = AS_STRINGS
        self._where = IN_VALUES
        if attribute.key == _XML_ID:
            self._where = _RAW
        for part in attribute.parts:
            if type(part) is bytes:
                self._xml.put(part)
            else:
                self.after_atom = False
                (<Operator>part).write(node, self)
        if self._where == _RAW:
            text = self._xml.taken(start).decode()
            self._xml.put_escaped(" ".join(text.split()).encode(), IN_VALUES)
        self.mode = IN_CONTENT
        return self._xml.put(b'"')

    cdef int put_constructed_attribute(self, AttributeOf attribute, long long node) except -1:
        cdef Py_ssize_t start = self._xml.used
        cdef long long count = self.count
        self._put_value(attribute, node)
        self.after_atom = False
        self.count = count + 1
        if not self._is_new(attribute.key):
            self._undo(start)
        return self._spend()

    cdef int put_constructed_text(self, Operator operand, long long node) except -1:
        cdef bint in_tag = self.in_tag
        cdef bint after_atom = self.after_atom
        cdef long long count = self.count
        cdef Py_ssize_t inside = self._inside
        cdef Py_ssize_t start = self._xml.used
        self._begin_content()
        self.mode = AS_STRINGS
        self._where = IN_TEXT
        self.after_atom = False
        operand.write(node, self)
        self.mode = IN_CONTENT
        if self.count == count:  # nothing, and no text of it
            self._xml.used = start
            self.in_tag = in_tag
            self.after_atom = after_atom
            self._inside = inside
            return 0
        self.count = count + 1
        self.after_atom = False
        return self._spend()

    cdef bint _is_new(self, tuple key) except -1:
        """Whether the start tag has no attribute of a name yet; it does from now on."""
        self._attributes += 1
        if self._names is None:
            self._names = [(<AttributeOf>one).key for one in self._tag.attributes]
        if key in self._names:
            if self._scratch.strict:
                raise DynamicError("XQDY0025", f"the attribute {key[1]} is given twice")
            return False
        self._names.append(key)
        return True

    cdef int _put_attribute(self, int attribute) except -1:
        """An attribute of the message, as one of the start tag that is open."""
        name = self.stream.names[self._xml.attribute_name[attribute]]
        if name.namespace or not self.in_tag:
            return self._put_named(name, self.stream.attribute_value(attribute))
        self.count += 1
        if self._is_new((name.namespace, name.local)):
            self._xml.put_attribute(attribute)
        return self._spend()

    cdef int _put_named(self, name: QualifiedName, value: str) except -1:
        """An attribute of any name; a prefix that means something else already is another one."""
        cdef SubtreeWriter xml = self._xml
        if self.mode == AS_DOCUMENTS:
            return 0
        if not self.in_tag:
            raise Unwritten("an attribute after other content of the element")
        self.count += 1
        if not self._is_new((name.namespace, name.local)):
            return 0
        if name.namespace:
            if self._prefixes is None:
                self._prefixes = dict(self._tag.prefixes)
            name = name._replace(prefix=free_prefix(name, self._prefixes))
            if self._around.get(name.prefix) != name.namespace:
                tag = xml.taken(self._declared_at)
                xml.put(declaration(name.prefix, name.namespace))
                self._declared_at = xml.used
                xml.put(tag)
                self._around = {**self._around, name.prefix: name.namespace}
        if (name.namespace, name.local) == _XML_ID:
            value = " ".join(value.split())
        xml.put(f' {name}="'.encode())
        xml.put_escaped(value.encode(), IN_VALUES)
        xml.put(b'"')
        return self._spend()

    # -- copies

    cdef int _copy_document(self) except -1:
        """The root element with the comments and processing instructions around it."""
        stream = self.stream
        outside = [piece for piece, parent in enumerate(stream.content_parent) if parent < 0]
        for piece in outside:
            if stream.content_next[piece] == 0:
                self._xml.put_piece(piece)
        self._copy(0)
        for piece in outside:
            if stream.content_next[piece] > 0:
                self._xml.put_piece(piece)
        return 0

    cdef int _copy(self, int element) except -1:
        cdef SubtreeWriter xml = self._xml
        cdef Py_ssize_t start = xml.used
        cdef bint is_plain = self._around is _NOWHERE
        if self._copy_columns is None:
            size = len(self.stream)
            self._copy_columns = [array("i", bytes(4 * size)) for _ in range(2)]
            self._copied_at = self._copy_columns[0]
            self._copied_size = self._copy_columns[1]
        if is_plain and self._copied_size[element] > 0:
            return xml.put_again(self._copied_at[element], self._copied_size[element])
        self.copied += 1
        if is_plain and self._declared_always is not None:
            xml.put_element(element, self._declared_always)
        else:
            self._copy_into(element)
        if is_plain and xml.used < 1 << 30:
            self._copied_at[element] = start
            self._copied_size[element] = xml.used - start
            self._copies.append(element)
        return 0

    cdef _copy_into(self, int element):
        """A copy that needs declarations of its own, or those below may mean something else."""
        cdef dict around = self._around
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


# -------------------------------------------------------------------------------------------------
# Deliveries: the results of all profiles that a message matches.

_COLUMN = array("i")
_new_tuple = tuple.__new__


@cython.final
cdef class Deliveries:
    """One ``Delivered`` for each of the queries ``found`` whose results are made of a document,
    made when it is asked for.

    ``delivery`` is the LocalDelivery that makes all others, ``look`` has the index look at the
    document.  A registration counts if it was there at a count of changes, ``stamp``."""

    cdef object _delivery, _message, _stream, _makes_now, _look, _counted
    cdef list _found
    cdef set _made, _remainders, _graphs
    cdef dict _known, _seconds, _late
    cdef SubscriberRuns _runs
    cdef Array _since
    cdef long long _stamp
    cdef OperatorTable _operators
    cdef ResultWriter _writer
    cdef Py_ssize_t _at

    def __init__(
        self, delivery: LocalDelivery, message: Readings, found: list[int],
        makes_now: MakesNow | None, stamp: int
    ) -> None:
        local = delivery.local
        self._delivery = delivery
        self._message = message
        self._stream = message.document
        self._makes_now = makes_now
        self._look = delivery.look
        self._seconds, self._late = delivery.costs.seconds, delivery.costs.late
        self._counted = delivery.counted
        self._found = found
        self._made, self._remainders, self._graphs = local.made, local.remainders, local.graphs
        self._known = delivery.answers.known
        self._runs = local.runs
        self._since = local.registrations.since
        self._stamp = stamp
        self._operators = delivery.answers.operators
        self._at = 0

    def __iter__(self) -> Deliveries:
        return self

    def __next__(self) -> Delivered:
        cdef Array numbers
        cdef list results
        while self._at < len(self._found):
            number = self._found[self._at]
            self._at += 1
            if number not in self._made:
                continue
            numbers = self._registered(number)
            if not len(numbers):
                continue  # removed meanwhile
            is_uncertain = number in self._remainders
            if self._makes_now is None or self._makes_now(numbers, is_uncertain, False):
                one = self._results(number, numbers)
                results = one[1]
                if not results and one[2] is None:
                    continue
            else:
                one = _new_tuple(Delivered, (numbers, [], None, False, ""))
                results = None
            if results is None or results:
                self._counted.matched_profile += len(numbers)
            return one
        raise StopIteration

    cdef Array _registered(self, int number):
        """The registrations of a query that were there at the stamp."""
        cdef list every = self._runs.of(number)
        cdef Array numbers = clone(_COLUMN, len(every), False)
        cdef int registration
        cdef int count = 0
        for registration in every:
            if self._since.data.as_longlongs[registration] <= self._stamp:
                numbers.data.as_ints[count] = registration
                count += 1
        return numbers if count == len(every) else numbers[:count]

    cdef object _results(self, number, Array numbers):
        """The results of a query; those of graphs, and those that somebody asks for the first time,
        or that came late, by the LocalDelivery."""
        cdef Answer answer = self._known.get(number)
        cdef double before
        if (
            answer is None or answer.graph is not None or number in self._graphs
            or self._stream is None or self._late
        ):
            return self._delivery.made_of(self._message, number, numbers)
        if self._operators._stream is not self._stream:
            self._look(self._stream)  # the caller has matched another meanwhile
        if self._writer is None:
            self._writer = self._delivery.answers.writer(self._stream)
        before = self._writer.seconds
        try:
            results = self._writer.answered(answer)
        except MatchLimitExceeded as exceeded:
            return self._delivery.cut(number, numbers, exceeded)
        finally:
            spent = self._seconds.get(number, 0.0) + (self._writer.seconds - before)
            self._seconds[number] = spent
        return _new_tuple(Delivered, (numbers, results, None, True, ""))
