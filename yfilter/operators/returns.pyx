"""Results: the values of operators, written as documents.

Result is the operator of a profile's results, and the constructors are operators beside it.
ResultWriter writes what they come to on one message; compiler.py makes them of a profile.
"""

from array import array
from collections.abc import Iterable, Sequence

from formats.columns import declaration
from formats.element_stream import ElementStream
from formats.escapes import escaped_text, escaped_value
from formats.names import XML_NAMESPACE, QualifiedName
from formats.xml_writer import XmlWriter, own_declarations
from yfilter.errors import MatchLimitExceeded
from yfilter.language.atoms import atom_text
from yfilter.language.budget import NOT_BEGUN, too_many_tuples, too_many_visits
from yfilter.language.evaluator import OWN_PREFIX, written
from yfilter.language.nodes import (
    DOCUMENT,
    NODES,
    Construction,
    Detached,
    DynamicError,
    Node,
    NodeType,
    Written,
)
from yfilter.language.query_ast import Constructor, NodeKind
from yfilter.operators.operators import ItemVariable, NodesVariable, Variable

cimport cython

from formats.columns cimport IN_TEXT, IN_VALUES, SubtreeWriter
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
# Their value as items, for whoever looks into what they construct, is that of another operator:
# ``items``.


cdef class Constructing(Operator):
    cdef readonly Operator items_of

    def __init__(self, items: Operator, parts: Iterable[Operator] = ()) -> None:
        super().__init__((items, *parts))
        self.items_of = items

    cdef object value(self, long long node):
        return self.items_of.value(node)

    cdef object items(self, long long node):
        return self.items_of.items(node)


cdef class Static(Constructing):
    """Markup as it stands: a comment or a processing instruction, or text of a constructor."""

    cdef bytes markup

    def __init__(self, markup: str, items: Operator) -> None:
        super().__init__(items)
        self.markup = markup.encode()

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if writer.mode != IN_CONTENT:
            return out.put_items(self.items_of.value(node))
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
        super().__init__(items, (part for part in parts if isinstance(part, Operator)))
        self.label = f' {name}="'.encode()
        self.key = (name.namespace, name.local)
        escaped = str if self.key == _XML_ID else escaped_value
        self.parts = [escaped(part).encode() if isinstance(part, str) else part for part in parts]

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if not writer.in_tag:
            return out.put_items(self.items_of.value(node))
        return writer.put_constructed_attribute(self, node)


cdef class TextOf(Constructing):
    """A text node of the strings of an operand; none where there are none."""

    cdef Operator operand

    def __init__(self, operand: Operator, items: Operator) -> None:
        super().__init__(items, (operand,))
        self.operand = operand

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        if writer.mode != IN_CONTENT:
            return out.put_items(self.items_of.value(node))
        return writer.put_constructed_text(self.operand, node)


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
        super().__init__(items, (*attributes, *parts))
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
            return out.put_items(self.items_of.value(node))
        return writer.put_constructed(self, node)


cdef class Decisive(Operator):
    """A part of an enclosing constructor of which one has to yield something."""

    cdef Operator _operand

    def __init__(self, operand: Operator) -> None:
        super().__init__((operand,))
        self._operand = operand

    cdef object value(self, long long node):
        return self._operand.value(node)

    cdef int write(self, long long node, Output out) except -1:
        cdef ResultWriter writer = <ResultWriter>out
        cdef long long items = writer.count
        self._operand.write(node, out)
        writer.is_empty &= writer.count == items
        return 0


cdef class PartOf(Operator):
    """A part of a return clause (projection/parts.py) at the element of a variable: its piece,
    where that came with the message, or else what the operator writes."""

    cdef Scratch _scratch
    cdef object _variable
    cdef str _digest
    cdef Operator _otherwise

    def __init__(
        self, scratch: Scratch, variable: Variable | ItemVariable, digest: str,
        otherwise: Operator
    ) -> None:
        super().__init__((otherwise,))
        self._scratch = scratch
        self._variable = variable
        self._digest = digest
        self._otherwise = otherwise

    cdef object value(self, long long node):
        markup = self._piece()
        if markup is None:
            return self._otherwise.value(node)
        return [Written(NodeKind.NODE, None, "", markup=markup)] if markup else []

    cdef bytes _piece(self):
        pieces = self._scratch.columns._stream.pieces
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
            return self._otherwise.write(node, out)
        return writer.put_markup(markup) if markup else 0


# -------------------------------------------------------------------------------------------------
# Result: the results of a profile as an operator.
#
# ========================  =====================================================================
# a profile                 ``body``
# ========================  =====================================================================
# a path                    whether it selects anything: then the message is the result
# ``for $i in …`` with      the other clauses and ``return``, written for each node that is bound
#   bindings                to ``variable``, whoever asks, once
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
        super().__init__()
        self.body = body
        self.variable = variable
        self.is_message = is_message
        self.is_each = isinstance(variable, Variable)
        self.encloses = encloses
        self.base = base
        self.condition = condition


# -------------------------------------------------------------------------------------------------
# ResultWriter: the results of all profiles for one message.
#
# What profiles share is done once: a copied element is written once and copied from there, and so
# are the results of an operator for a binding, whoever asks for them.
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
    cdef long long _bytes
    cdef Py_ssize_t _settled
    # What is kept of the message.
    cdef bytes _message, _declared_always
    cdef dict _remembered, _declared_by_scope
    cdef object _copy_columns
    cdef int[::1] _copied_at, _copied_size
    cdef list _copies
    cdef Py_ssize_t _kept

    def __init__(self, stream: ElementStream, operators: OperatorTable) -> None:
        self.stream = stream
        self._operators = operators
        self._scratch = operators.scratch
        self._limits = operators._limits
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

    cpdef list results(self, Result result, bindings):
        """The documents of one profile; ``bindings`` ascend.  Raises MatchLimitExceeded."""
        cdef Scratch scratch = self._scratch
        cdef Py_ssize_t used
        if not bindings:
            return []
        if self._xml.used + self._kept > _WRITTEN_KEPT_MAX:
            self._forget()
        used = self._xml.used
        self._begin()
        try:
            if result.is_each:
                return self._of_each(result, bindings)
            return self._of_all(result, bindings)
        finally:
            began = scratch.began
            cost = _VISIT_SECONDS * (scratch.visits + max(self._xml.used - used, 0))
            if not scratch._is_spent and scratch._evaluator is not None:
                began = scratch._evaluator.began if began == NOT_BEGUN else began
                cost += _OBJECT_SECONDS * scratch._evaluator.visits
            self.seconds += (
                _RESULT_SECONDS + cost if began == NOT_BEGUN else self._limits.clock() - began
            )

    cdef list _of_each(self, Result result, bindings):
        cdef int binding
        known = self._remembered.get(result)
        if known is None:
            known = self._remembered[result] = {}
        documents: list[bytes] = []
        try:
            for binding in bindings:
                self._scratch.bind_tuple()
                made = known.get(binding)
                if made is not None:
                    documents += self._again(made)
                else:
                    result.variable.node = KINDS * binding
                    documents += self._anew(result, known, binding)
        except MatchLimitExceeded as error:
            error.made, error.of = documents, len(bindings)
            raise
        return documents

    cdef list _of_all(self, Result result, bindings):
        cdef int binding
        known = self._remembered.get(result)
        if known is None:
            known = self._remembered[result] = {}
        key = _ALL if result.variable is None else tuple(bindings)
        made = known.get(key)
        if made is not None:
            return list(self._again(made))
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
            documents = self._anew(result, known, key)
            if cut is not None:
                del known[key]
                raise cut
        except MatchLimitExceeded as error:
            if not result.encloses:
                error.made, error.of = list(self._documents), of
                error.unseen = [] if cut is None else cut.unseen
            raise
        return list(documents)

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

    cdef list _anew(self, Result result, dict known, key):
        """Write results, which are remembered under a key."""
        cdef long long visits = self._visits()
        cdef long long tuples = self._scratch._tuples_left
        cdef Py_ssize_t start = self._xml.used
        cdef list made
        cdef bytes document
        self._documents = made = []
        self.mode = IN_CONTENT if result.encloses else AS_DOCUMENTS
        try:
            if result.is_message:
                if result.body.holds(ROOT):
                    made.append(self.whole_message())
            else:
                result.body.write(ROOT, self)
            if result.encloses and not self.is_empty:
                made.append(self._xml.part(start, self._xml.used))
        except (DynamicError, Unwritten):
            made.clear()
            self._begin_writing()
        self._settle()
        visits = self._visits() - visits
        if self._visits() > self._scratch.visits_max:
            raise too_many_visits()
        self.made += 1
        for document in made:
            self._kept += len(document)
        known[key] = (visits, tuples - self._scratch._tuples_left, made)
        return made

    cdef list _again(self, made):
        """Results that were written before, which cost the same again."""
        cdef bytes document
        self._scratch.visit(made[0])
        self._scratch._tuples_left -= made[1]
        for document in made[2]:
            self._bytes -= len(document)
        self._spend()
        return made[2]

    # -- cost

    cdef int _begin(self) except -1:
        """A profile, which has all of the limits."""
        self._operators._look()
        self._scratch.restart()
        self._bytes = self._limits.bytes_max
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
        self._documents = []
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
                f"the results of a profile are larger than {self._limits.bytes_max} bytes",
            )
        return 0

    cdef _forget(self):
        """All that is kept of the message but the message."""
        self._xml.used = 0
        self._kept = 0
        self._remembered: dict[Result, dict[object, tuple[int, int, list[bytes]]]] = {}
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
            elif isinstance(item, Node) and item.tree == DOCUMENT.tree:
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
        cdef Py_ssize_t start, inside
        if mode == IN_CONTENT:
            self._begin_content()
        inside = self._inside
        start = self._xml.used
        try:
            self._put_element(element, node)
        except (DynamicError, Unwritten) as error:
            if mode == IN_CONTENT:
                if isinstance(error, Unwritten):
                    raise
                raise Unwritten from error
            self._undo(start)
            self.in_tag = False
            start = -1
        self.mode = mode
        self._around = around
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
            name = name._replace(prefix=self._prefix(name))
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

    cdef str _prefix(self, name: QualifiedName):
        if self._prefixes is None:
            self._prefixes = dict(self._tag.prefixes)
        own = name.prefix or ("xml" if name.namespace == XML_NAMESPACE else OWN_PREFIX)
        prefix, number = own, 0
        while self._prefixes.setdefault(prefix, name.namespace) != name.namespace:
            number += 1
            prefix = f"{own}{number}"
        return prefix

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
