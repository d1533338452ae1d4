"""Evaluates expressions of the profile language over an ElementStream.

XPath 2.0 / XQuery 1.0 without schema types; ``atoms.py`` has what is compared as what.  A message
cannot be answered with an error, so two things differ from XPath:

- a pair of values that cannot be compared does not hold (``!=`` included), and of several items
  where a function takes one the first counts;
- any other dynamic error means: the condition that raised it does not hold, the tuple of a FLWOR
  expression that raised it yields nothing.  In an ``or`` (``and``) a side that holds (does not)
  decides, on whichever side the error is, as XPath allows.

``strict`` switches both off: then DynamicError is raised, as the conformance suite wants it.

A value is a sequence of items (nodes.py).  Nodes sort in document order.  Every node that a step
looks at is counted against ``EvaluationLimits.visits_max``, and so is every item made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from formats.characters import is_colonless_name
from formats.element_stream import ContentKind, ElementStream
from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS
from formats.names import QualifiedName
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded
from yfilter.language import function_library
from yfilter.language import query_ast as ast
from yfilter.language.atoms import (
    arithmetic,
    cast,
    compare,
    is_number,
    negate,
    qname,
    type_name,
)
from yfilter.language.budget import (
    CALL_COST,
    ELEMENTPATH_COST,
    ITEM_BYTES,
    POINTER_BYTES,
    deep_recursion,
)
from yfilter.language.constructed_names import lexical_fault, namespace_fault
from yfilter.language.construction import (
    ContentWriter,
    StartTag,
    checked_content,
    detached,
    holder,
    name_of_value,
    written,
)
from yfilter.language.evaluator import Evaluator, effective_boolean
from yfilter.language.flwor_evaluation import flwor_items
from yfilter.language.functions import TYPES
from yfilter.language.general_comparison import some_pair
from yfilter.language.memo import FEW, Memo, is_worth
from yfilter.language.namespaces import ERROR_NAMESPACE, INITIAL_NAMESPACES
from yfilter.language.nodes import (
    DOCUMENT,
    NODES,
    AnyUri,
    Atom,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Functions,
    Item,
    Library,
    Node,
    NodeType,
    Opaque,
    Untyped,
    Value,
    Variables,
    Written,
    document_order,
    element_node,
)
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.temporal import Temporal

# -------------------------------------------------------------------------------------------------
# Evaluates ``instance of``, ``treat as`` and the types that clauses declare.


_LEAST_MOST = {"": (1, 1), "?": (0, 1), "*": (0, None), "+": (1, None)}


def typed(evaluator: Evaluator, expression: ast.Typed, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    matches = is_of_type(evaluator, value, expression.type)
    if not expression.treat:
        return [matches]
    if not matches:
        code = "XPTY0004" if expression.declared else "XPDY0050"
        raise DynamicError(code, "a value of another type than the one declared")
    return value


def as_declared(evaluator: Evaluator, value: Value, wanted: ast.SequenceType | None) -> Value:
    """A value as an argument or a result of a function: atomic where that is declared."""
    if wanted is None:
        return value
    if wanted.name.startswith("xs:"):
        value = [_promoted(atom, wanted.name) for atom in evaluator.atoms(value)]
    if not is_of_type(evaluator, value, wanted):
        raise DynamicError("XPTY0004", "a value of another type than the one declared")
    return value


def _promoted(atom: Atom, wanted: str) -> Atom:
    if isinstance(atom, Untyped) and wanted not in ("xs:untypedAtomic", "xs:anyAtomicType"):
        return cast(atom, wanted)
    if wanted in ("xs:float", "xs:double") and is_number(atom):
        return cast(atom, wanted)
    if wanted == "xs:string" and isinstance(atom, AnyUri):
        return str(atom)
    if wanted == "xs:anyURI" and isinstance(atom, str):  # functions of names give strings
        return AnyUri(atom)
    return atom


def is_of_type(evaluator: Evaluator, value: Value, wanted: ast.SequenceType) -> bool:
    if wanted.name == "empty-sequence":
        return not value
    least, most = _LEAST_MOST[wanted.occurrence]
    if len(value) < least or (most is not None and len(value) > most):
        return False
    return wanted.name == "item" or all(_item_matches(evaluator, item, wanted) for item in value)


def _item_matches(evaluator: Evaluator, item: Item, wanted: ast.SequenceType) -> bool:
    if isinstance(item, Detached):
        name = item.name
        return wanted.kind is ast.NodeKind.NODE or (
            item.kind is wanted.kind
            and (wanted.test is None or name is None or wanted.test.accepts(name[1], name[2]))
        )
    if isinstance(item, Construction):  # still to be written; its name is all that is asked
        test, constructed = wanted.test, item.constructor.name
        return wanted.kind is ast.NodeKind.NODE or (
            wanted.kind is ast.NodeKind.ELEMENT
            and test is not None
            and test.accepts(constructed.namespace, constructed.local)
        )
    if isinstance(item, Node):
        if wanted.kind is None:
            return False
        step = ast.LocationStep(False, wanted.kind, wanted.test, (), ast.Axis.SELF)
        return bool(list(evaluator.axes.step(item, step)))
    name_ = type_name(item)
    return wanted.name in (name_, "xs:anyAtomicType") or (
        (name_, wanted.name) == ("xs:integer", "xs:decimal")
        or (wanted.name == "xs:duration" and name_.endswith("Duration"))
    )


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Evaluates calls of declared functions, declared variables, ``typeswitch`` and ``try``.
#
# A call within a call is one deeper, up to ``EvaluationLimits.calls_max``.  Elements that a
# function constructs are written after it has returned; they know how deep they are by their focus.


def user_call(evaluator: Evaluator, call: ast.UserCall, focus: Focus) -> Value:
    if call.is_variable:
        return _declared_variable(evaluator, call, focus)
    depth = focus.functions.depth + 1 if focus.functions else 1
    if depth > evaluator.limits.calls_max:
        raise MatchLimitExceeded(
            "too-many-calls",
            f"a profile's functions call each other more than {evaluator.limits.calls_max} deep",
        )
    evaluator.charge(CALL_COST)
    if depth == 1:
        with deep_recursion():
            return _called(evaluator, call, focus, depth)
    return _called(evaluator, call, focus, depth)


def _called(evaluator: Evaluator, call: ast.UserCall, focus: Focus, depth: int) -> Value:
    table = _table(evaluator, call, focus)
    function = table[call.name, len(call.arguments)]
    variables = {
        name: as_declared(evaluator, evaluator.value(argument, focus), type_)
        for (name, type_), argument in zip(function.parameters, call.arguments, strict=True)
    }
    inside = Focus(None, 1, 1, variables, Functions(table, depth))
    return as_declared(evaluator, evaluator.value(function.body, inside), function.result)


def _table(evaluator: Evaluator, call: ast.UserCall, focus: Focus) -> Library:
    """The declared functions and variables that a call sees."""
    if call.library:
        return evaluator.declared.table(call.library)
    assert focus.functions is not None  # only what is declared has calls without a library
    return focus.functions.table


def _declared_variable(evaluator: Evaluator, call: ast.UserCall, focus: Focus) -> Value:
    """Its value, which is found when it is first asked for; an error once found is, too."""
    table = _table(evaluator, call, focus)
    declaration = table[call.name, 0]
    known = evaluator.declared.values.get(id(declaration))
    evaluator.charge()
    if known is None:
        depth = focus.functions.depth if focus.functions else 0
        inside = Focus(None, 1, 1, {}, Functions(table, depth))
        try:
            known = evaluator.value(declaration.body, inside)
        except DynamicError as error:
            known = error
        evaluator.declared.values[id(declaration)] = known
    if isinstance(known, DynamicError):
        raise known
    return known


def typeswitch(evaluator: Evaluator, expression: ast.Typeswitch, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    for case in expression.cases:
        if not case.types or any(is_of_type(evaluator, value, type_) for type_ in case.types):
            if case.variable:
                variables = {**focus.variables, case.variable: value}
                focus = focus._replace(variables=variables)
            return evaluator.value(case.result, focus)
    raise AssertionError("a typeswitch without a default")


def try_catch(evaluator: Evaluator, expression: ast.TryCatch, focus: Focus) -> Value:
    """Within ``try`` errors are raised as in XQuery, whatever becomes of them elsewhere."""
    outer, evaluator.strict = evaluator.strict, True
    try:
        value = evaluator.value(expression.body, focus)
        for item in value:
            if isinstance(item, Construction):
                evaluator.materialised(item)  # else its errors would come behind the try
        return value
    except DynamicError as error:
        raised = error
    finally:
        evaluator.strict = outer
    for clause in expression.clauses:
        if any(test.accepts(raised.namespace, raised.local) for test in clause.names):
            prefix = "err:" if raised.namespace == ERROR_NAMESPACE else ""
            name = qname(raised.namespace, prefix + raised.local)
            bound: tuple[Value, ...] = ([name], [raised.reason], raised.value)
            scope = {**focus.variables, **dict(zip(ast.ERROR_VARIABLES, bound, strict=True))}
            return evaluator.value(clause.result, focus._replace(variables=scope))
    raise raised


# -------------------------------------------------------------------------------------------------
# Evaluates operators, casts and quantified expressions.


def operation(evaluator: Evaluator, operation: ast.Operation, focus: Focus) -> Value:
    name = operation.name
    values = [evaluator.value(operand, focus) for operand in operation.operands]
    if name in ("|", "intersect", "except"):
        return _combined(name, *(set(evaluator.nodes(value)) for value in values))
    if name in ("is", "<<", ">>"):
        return _placed(name, *(evaluator.nodes(value) for value in values))
    operands = []
    for value in values:
        atom = evaluator.one_atom(value)
        if atom is None:
            return []
        operands.append(atom)
    if name == "negate":
        return [negate(operands[0])]
    if name in ast.VALUE_COMPARISONS:
        return [compare(operands[0], ast.VALUE_COMPARISONS[name], operands[1])]
    if name == "to":
        return integers(evaluator, *operands)
    if any(isinstance(operand, Temporal | Opaque) for operand in operands):
        evaluator.charge(ELEMENTPATH_COST)
    return [arithmetic(name, *operands)]


def _combined(name: str, one: set[Node], other: set[Node]) -> Value:
    found = {"|": one | other, "intersect": one & other, "except": one - other}[name]
    return sorted(found, key=document_order)


def _placed(name: str, one: list[Node], other: list[Node]) -> Value:
    if len(one) > 1 or len(other) > 1:
        raise DynamicError("XPTY0004", f"'{name}' compares one node with one")
    if not one or not other:
        return []
    left, right = document_order(one[0]), document_order(other[0])
    return [left == right if name == "is" else left < right if name == "<<" else left > right]


def integers(evaluator: Evaluator, first: Atom, last: Atom) -> Value:
    bounds = []
    for bound in (first, last):
        whole = cast(bound, "xs:integer") if isinstance(bound, Untyped) else bound
        if not isinstance(whole, int) or isinstance(whole, bool):
            raise DynamicError("XPTY0004", "'to' takes integers")
        bounds.append(whole)
    size = max(0, bounds[1] - bounds[0] + 1)
    evaluator.charge_memory(ITEM_BYTES * size)
    evaluator.charge(size)
    return list(range(bounds[0], bounds[1] + 1))


def cast_value(evaluator: Evaluator, expression: ast.Cast, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    try:
        atom = evaluator.one_atom(value)
        if atom is None:
            if not expression.optional:
                raise DynamicError("XPTY0004", "a cast of the empty sequence")
            found: Value = []
        else:
            if expression.type not in TYPES:
                evaluator.charge(ELEMENTPATH_COST)
            found = [cast(atom, expression.type)]
    except DynamicError:
        if expression.castable:
            return [False]
        raise
    return [True] if expression.castable else found


def quantified(evaluator: Evaluator, expression: ast.Quantified, focus: Focus) -> Value:
    wanted = not expression.every
    for variables in _assignments(evaluator, expression, 0, focus):
        inner = focus._replace(variables=variables)
        if evaluator.condition(expression.condition, inner) is wanted:
            return [wanted]
    return [not wanted]


def _assignments(
    evaluator: Evaluator, expression: ast.Quantified, index: int, focus: Focus
) -> Iterator[Variables]:
    if index == len(expression.bindings):
        yield focus.variables
        return
    binding = expression.bindings[index]
    name, source = binding
    value = evaluator.shared(source, focus)
    conditions = () if expression.every else (expression.condition,)
    items = evaluator.joined(binding, name, value, conditions, focus)
    for _, item in enumerate(value) if items is None else items:
        evaluator.charge()
        inner = focus._replace(variables={**focus.variables, name: [item]})
        yield from _assignments(evaluator, expression, index + 1, inner)


# -------------------------------------------------------------------------------------------------
# Evaluates ``copy … modify … return …``: copies of nodes with changes (XQuery Update, 1.0).
#
# A copy is the same columns as one more tree, in which nothing is above the copied node.  What
# ``modify`` says is collected, and looked at only when all of it has been: so an update never sees
# another one (snapshot semantics).  Then the copy is written anew: what nothing was said of as it
# stands, with its subtree, in one piece.
#
# As there, one node is renamed, replaced, or given a value at most once; a replaced or deleted node
# takes with it what was said below it; what is inserted beside it stays.


_BESIDE = (ast.UpdateKind.INSERT_BEFORE, ast.UpdateKind.INSERT_AFTER)
_KINDS = {
    ContentKind.TEXT: ast.NodeKind.TEXT,
    ContentKind.COMMENT: ast.NodeKind.COMMENT,
    ContentKind.PROCESSING_INSTRUCTION: ast.NodeKind.PROCESSING_INSTRUCTION,
}


def transform(evaluator: Evaluator, expression: ast.Transform, focus: Focus) -> Value:
    copies: list[tuple[str, Node]] = []
    for clause in expression.copies:
        nodes = evaluator.nodes(evaluator.value(clause.value, focus))
        if len(nodes) != 1:
            raise DynamicError("XUTY0013", "'copy' takes one node")
        evaluator.charge()
        copy = evaluator.tree(evaluator.streams[nodes[0].tree], nodes[0])
        copies.append((clause.variable, copy))
        focus = _bound(focus, clause.variable, copy)
    pending = PendingUpdates(evaluator, {copy.tree for _, copy in copies})
    outer, evaluator.pending = evaluator.pending, pending
    try:
        evaluator.value(expression.changes, focus)
    finally:
        evaluator.pending = outer
    for variable, copy in copies:
        focus = _bound(focus, variable, pending.applied(copy))
    return evaluator.value(expression.result, focus)


def update(evaluator: Evaluator, expression: ast.Update, focus: Focus) -> Value:
    """Nothing: what is said is added to what is pending."""
    pending = evaluator.pending
    assert isinstance(pending, PendingUpdates)  # the parser lets it stand in ``modify`` only
    targets = evaluator.nodes(evaluator.value(expression.target, focus))
    if expression.kind is ast.UpdateKind.DELETE:
        for target in targets:
            pending.delete(target)
        return []
    if len(targets) != 1:
        code = "XUTY0008" if targets else "XUDY0027"
        raise DynamicError(code, f"'{expression.kind.value[0]}' takes one node")
    target, source = targets[0], expression.source
    if expression.kind is ast.UpdateKind.RENAME:
        if not isinstance(source, QualifiedName):
            source = _name(evaluator, source, focus)
        pending.rename(target, source)
        return []
    assert not isinstance(source, QualifiedName)
    value = evaluator.value(source, focus)
    if expression.kind is ast.UpdateKind.REPLACE_VALUE:
        pending.replace_value(target, " ".join(map(evaluator.string, value)))
    elif expression.kind is ast.UpdateKind.REPLACE:
        pending.replace(target, value)
    else:
        pending.insert(target, expression.kind, value)
    return []


class PendingUpdates:
    """What one ``modify`` says of the copies, the trees by these numbers."""

    def __init__(self, evaluator: Evaluator, trees: set[int]) -> None:
        self.deleted: set[Node] = set()
        self.replaced: dict[Node, Value] = {}
        self.values: dict[Node, str] = {}
        self.names: dict[Node, QualifiedName] = {}
        self.attributes: dict[Node, list[Item]] = {}  # inserted, by the element
        self._inserted: dict[tuple[ast.UpdateKind, Node], list[Item]] = {}
        self._targets: set[Node] = set()
        self._evaluator = evaluator
        self._trees = trees

    def delete(self, target: Node) -> None:
        self._add(target)
        if self._parent(target) is not None:  # without one, nothing is to be done
            self.deleted.add(target)

    def replace(self, target: Node, value: Value) -> None:
        self._add(target)
        attributes, content = self._split(value)
        if target.type is NodeType.DOCUMENT:
            raise DynamicError("XUTY0008", "a document cannot be replaced")
        if self._parent(target) is None:
            raise DynamicError("XUDY0009", "a node without a parent cannot be replaced")
        is_attribute = target.type is NodeType.ATTRIBUTE
        if content if is_attribute else attributes:
            code = "XUTY0011" if is_attribute else "XUTY0010"
            raise DynamicError(code, "attributes replace attributes, other nodes other nodes")
        if target in self.replaced:
            raise DynamicError("XUDY0016", "a node is replaced twice")
        self.replaced[target] = value

    def replace_value(self, target: Node, text: str) -> None:
        self._add(target)
        self._evaluator.charge_bytes(len(text))
        if target.type is NodeType.DOCUMENT:
            raise DynamicError("XUTY0008", "a document has no value to replace")
        if target in self.values:
            raise DynamicError("XUDY0017", "the value of a node is replaced twice")
        kind = self._content_kind(target)
        self.values[target] = text if kind is None else checked_content(_KINDS[kind], text)

    def rename(self, target: Node, name: QualifiedName) -> None:
        self._add(target)
        is_content = target.type is NodeType.CONTENT
        is_target = self._content_kind(target) is ContentKind.PROCESSING_INSTRUCTION
        if target.type is NodeType.DOCUMENT or (is_content and not is_target):
            raise DynamicError("XUTY0012", "a node that has no name is renamed")
        if is_target and (name.namespace or name.prefix):
            raise DynamicError("XUDY0025", "a processing instruction has a name without prefix")
        if is_target:
            fault = lexical_fault(name.local, ast.NodeKind.PROCESSING_INSTRUCTION)
        else:
            is_element = target.type is NodeType.ELEMENT
            fault = namespace_fault(
                name, ast.NodeKind.ELEMENT if is_element else ast.NodeKind.ATTRIBUTE
            )
        if fault:
            raise DynamicError(fault, f"{name} is no name of this node")
        if target in self.names:
            raise DynamicError("XUDY0015", "a node is renamed twice")
        self.names[target] = name

    def insert(self, target: Node, kind: ast.UpdateKind, value: Value) -> None:
        self._add(target)
        attributes, content = self._split(value)
        owner: Node | None = target
        if kind in _BESIDE:
            if target.type not in (NodeType.ELEMENT, NodeType.CONTENT):
                raise DynamicError("XUTY0006", "nothing can be beside this node")
            owner = self._parent(target)
            if owner is None:
                raise DynamicError("XUDY0029", "nothing can be beside a node without a parent")
        elif target.type not in (NodeType.ELEMENT, NodeType.DOCUMENT):
            raise DynamicError("XUTY0005", "nothing can be in this node")
        if attributes:
            assert owner is not None
            if owner.type is not NodeType.ELEMENT:
                raise DynamicError("XUTY0022", "a document has no attributes")
            self.attributes.setdefault(owner, []).extend(attributes)
        self._inserted.setdefault((kind, target), []).extend(content)

    def inserted(self, kind: ast.UpdateKind, target: Node) -> Value:
        return self._inserted.get((kind, target), ())

    def applied(self, copy: Node) -> Node | Detached:
        """A copy as it has become; itself if nothing was said of it."""
        if not any(target.tree == copy.tree for target in self._targets):
            return copy
        evaluator = self._evaluator
        if copy.type in (NodeType.ATTRIBUTE, NodeType.CONTENT):
            return self._single(copy)
        writer = _CopyWriter(evaluator, self, copy, self._touched(copy))
        try:
            with deep_recursion():
                writer.write()
            limits = replace(DEFAULT_LIMITS, bytes_max=evaluator.limits.bytes_max)
            stream = parse_text(writer.xml.getvalue(), limits)
        except ValueError as error:  # a character that XML cannot carry, a prefix of two meanings
            raise DynamicError("XUDY0024", str(error)) from None
        except MessageRefused as refusal:
            if copy.type is NodeType.DOCUMENT and refusal.code == "malformed":
                raise DynamicError("FODC0006", "a document without its one element") from None
            raise MatchLimitExceeded("result-too-large", str(refusal)) from None
        top = element_node(0) if copy.type is NodeType.ELEMENT else copy
        return evaluator.tree(stream, top)

    def _add(self, target: Node) -> None:
        if target.tree not in self._trees:
            raise DynamicError("XUDY0014", "what is changed is no part of a copy")
        self._evaluator.charge()
        self._targets.add(target)

    def _parent(self, node: Node) -> Node | None:
        return next(self._evaluator.axes.parent(node), None)

    def _content_kind(self, node: Node) -> ContentKind | None:
        if node.type is not NodeType.CONTENT:
            return None
        return ContentKind(self._evaluator.streams[node.tree].content_kind[node.number])

    def _split(self, value: Value) -> tuple[list[Item], list[Item]]:
        """The attributes that lead a value, and what comes after them."""
        is_attribute = [
            item.type is NodeType.ATTRIBUTE
            if isinstance(item, Node)
            else isinstance(item, Detached) and item.kind is ast.NodeKind.ATTRIBUTE
            for item in value
        ]
        count = is_attribute.index(False) if False in is_attribute else len(value)
        if any(is_attribute[count:]):
            raise DynamicError("XUTY0004", "an attribute after other content")
        return list(value[:count]), list(value[count:])

    def _touched(self, copy: Node) -> set[int]:
        """The elements in which something is different, up to the top."""
        stream = self._evaluator.streams[copy.tree]
        touched: set[int] = set()
        for target in self._targets:
            if target.tree != copy.tree or target.type is NodeType.DOCUMENT:
                continue
            element = target.position
            if target.type is NodeType.CONTENT:
                element = stream.content_parent[target.number]
            while element >= 0 and element not in touched:
                touched.add(element)
                if element == copy.position:
                    break
                element = stream.element_parent[element]
        return touched

    def _single(self, copy: Node) -> Detached:
        """An attribute, text, comment or processing instruction that was copied alone."""
        value = self.values.get(copy, self._evaluator.string_value(copy))
        name = self.names.get(copy, self._evaluator.name_of(copy))
        kind = self._content_kind(copy)
        return Detached(ast.NodeKind.ATTRIBUTE if kind is None else _KINDS[kind], name, value)


class _CopyWriter(ContentWriter):
    """Writes a copy with its changes; ``touched`` are the elements that have any in them."""

    def __init__(
        self, evaluator: Evaluator, pending: PendingUpdates, copy: Node, touched: set[int]
    ) -> None:
        super().__init__(evaluator)
        self._pending = pending
        self._copy = copy
        self._tree = copy.tree
        self._stream = evaluator.streams[copy.tree]
        self._touched = touched

    def write(self) -> None:
        if self._copy.type is NodeType.DOCUMENT:
            self._children(self._copy)
        else:
            self._element(self._copy)

    def _place(self, node: Node) -> None:
        """A node below the top, with what was inserted beside it."""
        pending = self._pending
        self.items(pending.inserted(ast.UpdateKind.INSERT_BEFORE, node))
        if node in pending.replaced:
            self.items(pending.replaced[node])
        elif node not in pending.deleted:
            if node.type is NodeType.ELEMENT:
                self._element(node)
            else:
                self._content(node)
        self.items(pending.inserted(ast.UpdateKind.INSERT_AFTER, node))

    def _element(self, node: Node) -> None:
        if node.number not in self._touched:
            self._copy_element(node)
            return
        self._evaluator.charge()
        stream, pending, element = self._stream, self._pending, node.number
        is_top = node == self._copy
        declared = stream.namespaces_in_scope(element) if is_top else {}
        declared.update(stream.declarations_of(element))
        name = pending.names.get(node, stream.name_of(element))
        if declared.get(name.prefix, name.namespace) != name.namespace:
            if name.namespace:
                raise DynamicError("XUDY0023", f"a prefix would mean two things on <{name}>")
            declared[""] = ""
        tag = StartTag(ast.Constructor(name, (), tuple(declared.items())))
        for number in stream.attributes_of(element):
            self._old_attribute(tag, Node(element, NodeType.ATTRIBUTE, number, self._tree))
        for item in pending.attributes.get(node, ()):
            self._attribute(tag, item)
        self._evaluator.charge_bytes(tag.size)
        self.xml.start_element(name, tag.attributes, declared.items())
        if node in pending.values:
            self._text(pending.values[node])
        else:
            self._children(node)
        self.xml.end_element()

    def _old_attribute(self, tag: StartTag, node: Node) -> None:
        stream, pending = self._stream, self._pending
        if node in pending.replaced:
            for item in pending.replaced[node]:
                self._attribute(tag, item)
        elif node not in pending.deleted:
            name = pending.names.get(node, stream.names[stream.attribute_name[node.number]])
            value = pending.values.get(node)
            self._add(tag, name, stream.attribute_value(node.number) if value is None else value)

    def _add(self, tag: StartTag, name: QualifiedName, value: str) -> None:
        if not tag.add(name, value):
            raise DynamicError("XUDY0021", f"the attribute {name} is given twice")

    def _children(self, node: Node) -> None:
        pending = self._pending
        self.items(pending.inserted(ast.UpdateKind.INSERT_FIRST, node))
        for child in self._old_children(node):
            self._place(child)
        self.items(pending.inserted(ast.UpdateKind.INSERT_INTO, node))
        self.items(pending.inserted(ast.UpdateKind.INSERT_LAST, node))

    def _old_children(self, node: Node) -> Iterator[Node]:
        """In document order; an element's number is its own, the document's is -1."""
        stream = self._stream
        is_document = node.type is NodeType.DOCUMENT
        number = -1 if is_document else node.number
        within = range(len(stream.content_next)) if is_document else stream.content_within(number)
        pieces = [piece for piece in within if stream.content_parent[piece] == number]
        waiting = 0
        for child in (0,) if is_document else stream.children_of(number):
            while waiting < len(pieces) and stream.content_next[pieces[waiting]] <= child:
                yield self._piece(pieces[waiting])
                waiting += 1
            yield element_node(child, self._tree)
        for piece in pieces[waiting:]:
            yield self._piece(piece)

    def _piece(self, piece: int) -> Node:
        return Node(self._stream.content_next[piece], NodeType.CONTENT, piece, self._tree)

    def _content(self, node: Node) -> None:
        stream, pending = self._stream, self._pending
        value, name = pending.values.get(node), self._evaluator.name_of(node)
        name = pending.names.get(node, name)
        if value is None and node not in pending.names:
            self._evaluator.charge_bytes(len(self._evaluator.string_value(node)))
            self.xml.copy_content(stream, node.number)
            return
        value = self._evaluator.string_value(node) if value is None else value
        kind = stream.content_kind[node.number]
        if kind == ContentKind.TEXT:
            self._text(value)
        elif kind == ContentKind.COMMENT:
            self.xml.comment(value)
        elif name is not None:
            self.xml.processing_instruction(name.local, value)


def _bound(focus: Focus, variable: str, item: Item) -> Focus:
    return focus._replace(variables={**focus.variables, variable: [item]})


def _name(evaluator: Evaluator, source: ast.Expression, focus: Focus) -> QualifiedName:
    """A computed name, an xs:QName or a string without a prefix that needs declaring."""
    atom = evaluator.one_atom(evaluator.value(source, focus))
    if isinstance(atom, Opaque) and atom.type == "xs:QName":
        return name_of_value(atom)
    text = str(atom).strip() if isinstance(atom, str) else ""
    prefix, colon, local = text.rpartition(":")
    if not is_colonless_name(local) or (colon and prefix not in INITIAL_NAMESPACES):
        raise DynamicError("XQDY0074", f"{text[:80]!r} is no name")
    return QualifiedName(prefix, INITIAL_NAMESPACES[prefix], local)


# -------------------------------------------------------------------------------------------------


class MessageEvaluator(Evaluator):
    """Evaluates any number of expressions on one message, within one budget."""

    def __init__(
        self,
        stream: ElementStream,
        limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(stream, limits, strict=strict)
        self._positional: dict[int, tuple[ast.LocationStep, bool]] = {}
        self._literals: dict[int, tuple[ast.Sequence, Value]] = {}
        self.memo = None if strict else Memo(self)

    def evaluate(self, expression: ast.Expression, context: Node, variables: Variables) -> Value:
        return self.value(expression, Focus(context, 1, 1, variables))

    def holds(self, condition: ast.Expression, context: Node, variables: Variables) -> bool:
        return self.condition(condition, Focus(context, 1, 1, variables))

    def select(self, path: ast.PathExpression, context: Node, variables: Variables) -> list[Node]:
        """The nodes that ``path`` selects, in document order, each once."""
        return self.nodes(self.evaluate(path, context, variables))

    def value(self, expression: ast.Expression, focus: Focus) -> Value:
        return _HANDLERS[type(expression)](self, expression, focus)

    def materialised(self, item: Construction) -> Node:
        """The constructed element as a tree of its own, so that steps can go into it."""
        if item.node is None:
            limits = replace(DEFAULT_LIMITS, bytes_max=self.limits.bytes_max)
            try:
                stream = parse_text(written(self, [item]), limits)
            except MessageRefused as refusal:  # larger or deeper than a message may be
                raise MatchLimitExceeded("result-too-large", str(refusal)) from None
            self.streams.append(stream)
            item.node = element_node(0, len(self.streams) - 1)
        return item.node

    def attached(self, item: Detached) -> Node:
        """A constructed node without a parent as a tree of its own; nothing sees what holds it."""
        if item.node is None:
            stream, type_ = holder(item)
            item.node = self.tree(stream, Node(0 if type_ is NodeType.ATTRIBUTE else 1, type_, 0))
        return item.node

    def tree(self, stream: ElementStream, top: Node) -> Node:
        """``top`` of these columns as the top of one more tree: nothing is above it."""
        self.streams.append(stream)
        top = top._replace(tree=len(self.streams) - 1)
        self.axes.tops[top.tree] = top
        return top

    # -- paths

    def shared(self, expression: ast.Expression, focus: Focus) -> Value:
        """As ``value``, for those who do not look at every item: what is known costs nothing."""
        if self.memo is None:
            return self.value(expression, focus)
        if isinstance(expression, ast.PathExpression):
            return self.path(expression, focus, is_free=True)
        known = self.memo.constant(expression, focus)
        return self.value(expression, focus) if known is None else known

    def joined(
        self,
        clause: object,
        variable: str,
        value: Value,
        conditions: Iterable[ast.Expression],
        focus: Focus,
    ) -> Iterator[tuple[int, Item]] | None:
        """The items of a value for which equalities among conditions hold, with their positions."""
        if self.memo is None or len(value) <= FEW:
            return None
        return self.memo.joined(clause, variable, value, conditions, focus)

    def path(self, path: ast.PathExpression, focus: Focus, *, is_free: bool = False) -> Value:
        value = self._origin(path, focus)
        if not path.steps:
            return value
        if self.memo is not None and is_worth(path):
            known = self.memo.path(path, value, focus, self._follow, is_free=is_free)
            if known is not None:
                return known
        return self._follow(value, path.steps, focus)

    def _follow(self, value: Value, steps: tuple[ast.LocationStep, ...], focus: Focus) -> Value:
        if steps and steps[0].is_self:
            value = self._filtered(list(value), steps[0].predicates, focus)
            steps = steps[1:]
        if not steps:
            return value
        nodes = self.nodes(value)
        is_ordered = len(nodes) == 1
        for step in steps:
            nodes = self._after_step(nodes, step, focus, is_ordered=is_ordered)
            is_ordered = True
        return nodes

    def _origin(self, path: ast.PathExpression, focus: Focus) -> Value:
        match path.origin:
            case ast.Origin.MESSAGE:
                item = focus.item
                inside = isinstance(item, Construction) or (
                    isinstance(item, Node) and item.tree > 0
                )
                if self.strict and inside:
                    raise DynamicError("XPDY0050", "the context item is in no document")
                if self.strict and item is None and focus.functions is None:
                    raise DynamicError("XPDY0002", "no context item")
                return _DOCUMENTS
            case ast.Origin.VARIABLE:
                return focus.variables[path.variable]
            case ast.Origin.CONTEXT:
                if focus.item is None:
                    raise DynamicError("XPDY0002", "no context item")
                if path.steps and not isinstance(focus.item, NODES):
                    first = path.steps[0]
                    if first.kind is not ast.NodeKind.SELF or first.axis is not None:
                        raise DynamicError("XPTY0020", "a step from what is no node")
                return [focus.item]
            case ast.Origin.EXPRESSION:
                assert path.start is not None
                return self.value(path.start, focus)

    def _after_step(
        self, nodes: list[Node], step: ast.LocationStep, focus: Focus, *, is_ordered: bool
    ) -> list[Node]:
        if is_ordered and step.axis is None and not step.predicates:
            # PERF: what is found is in order, of one node and of the attributes of many.
            is_element = step.kind is ast.NodeKind.ELEMENT
            if len(nodes) == 1 and (is_element or not step.descendant):
                return list(self.axes.step(nodes[0], step))
            if step.kind is ast.NodeKind.ATTRIBUTE and not step.descendant:
                return [found for start in nodes for found in self.axes.own(start, step)]
        if not self._is_positional(step):
            found = {node for start in nodes for node in self.axes.step(start, step)}
            kept: Iterable[Any] = self._filtered(
                sorted(found, key=document_order), step.predicates, focus
            )
            return list(kept)
        starts = nodes
        if step.descendant:
            below = {node for start in nodes for node in self.axes.self_or_descendants(start)}
            starts = sorted(below, key=document_order)
            step = _without_descendant(step)
        selected: set[Any] = set()
        for start in starts:
            selected.update(
                self._filtered(list(self.axes.step(start, step)), step.predicates, focus)
            )
        return sorted(selected, key=document_order)

    def _is_positional(self, step: ast.LocationStep) -> bool:
        known = self._positional.get(id(step))
        if known is None or known[0] is not step:
            known = self._positional[id(step)] = (step, step.is_positional)
        return known[1]

    def _filtered(
        self, items: list[Any], predicates: tuple[ast.Expression, ...], focus: Focus
    ) -> list[Any]:
        for predicate in predicates:
            size = len(items)
            items = [
                item
                for position, item in enumerate(items, 1)
                if self._accepts(
                    predicate, Focus(item, position, size, focus.variables, focus.functions)
                )
            ]
        return items

    def _accepts(self, predicate: ast.Expression, focus: Focus) -> bool:
        """A number in brackets is a position, anything else a condition."""
        try:
            value = self.shared(predicate, focus)
            if len(value) == 1 and is_number(value[0]):  # type: ignore[arg-type]
                return bool(value[0] == focus.position)
            return effective_boolean(value)
        except DynamicError:
            if self.strict:
                raise
            return False

    def mapped(self, mapped: ast.Mapped, focus: Focus) -> Value:
        found = self._each(self.nodes(self.value(mapped.left, focus)), mapped.right, focus)
        is_node = [isinstance(item, NODES) for item in found]
        if not any(is_node):
            return found
        if not all(is_node):
            raise DynamicError("XPTY0018", "a step yields both nodes and values")
        return sorted(set(self.nodes(found)), key=document_order)

    def simple_map(self, mapped: ast.SimpleMap, focus: Focus) -> Value:
        return self._each(self.value(mapped.left, focus), mapped.right, focus)

    def _each(self, items: Value, expression: ast.Expression, focus: Focus) -> list[Item]:
        """The values of an expression with each of some items as its context."""
        found: list[Item] = []
        for position, item in enumerate(items, 1):
            inner = Focus(item, position, len(items), focus.variables, focus.functions)
            value = self.value(expression, inner)
            self.charge_memory(POINTER_BYTES * len(value))
            self.charge(1 + len(value))
            found += value
        return found

    # -- operators

    def decided(self, parts: tuple[ast.Expression, ...], focus: Focus, *, by: bool) -> bool:
        """Whether a part is ``by``, whatever is an error in the others."""
        error: DynamicError | None = None
        for part in parts:
            try:
                if self.truth(part, focus) is by:
                    return True
            except DynamicError as raised:
                if self.memo is None:
                    raise
                error = raised
        if error is not None:
            raise error
        return False

    def comparison(self, expression: ast.Comparison, focus: Focus) -> Value:
        if expression.operator is ast.Operator.EQ and self.memo is not None:
            left = self.shared(expression.left, focus)
            right = self.shared(expression.right, focus)
            if len(left) > FEW or len(right) > FEW:
                found = self.memo.some_equal(expression, left, right)
                if found is not None:
                    return [found]
        else:
            left = self.value(expression.left, focus)
            right = self.value(expression.right, focus)
        return [some_pair(self, left, expression.operator, right)]

    def call(self, call: ast.FunctionCall, focus: Focus) -> Value:
        if self._is_lazy and call.name in _OF_EXISTENCE and call.arguments:
            argument = call.arguments[0]
            if argument.steps:
                return [self.truth(argument, focus) is _OF_EXISTENCE[call.name]]
        return function_library.call(self, call, focus)

    @property
    def _is_lazy(self) -> bool:
        """Whether it is within ``try``: there an error behind what decides is none."""
        return self.strict and self.memo is not None

    def truth(self, condition: ast.Expression, focus: Focus) -> bool:
        if not (self._is_lazy and isinstance(condition, ast.PathExpression) and condition.steps):
            return super().truth(condition, focus)
        value = self._origin(condition, focus)
        return self._leads_on(value, condition.steps, focus, set())

    def _leads_on(
        self, value: Value, steps: tuple[ast.LocationStep, ...], focus: Focus, seen: set[Any]
    ) -> bool:
        """Whether steps select anything, node by node up to the first."""
        if not steps:
            return bool(value)
        step = steps[0]
        if self._is_positional(step) or (step.is_self):
            return self._leads_on(self._follow(value, steps[:1], focus), steps[1:], focus, seen)
        for start in self.nodes(value):
            for node in self.axes.step(start, step):
                if (len(steps), node) in seen:
                    continue
                seen.add((len(steps), node))
                inner = Focus(node, 1, 1, focus.variables, focus.functions)
                if all(self._accepts(one, inner) for one in step.predicates) and self._leads_on(
                    [node], steps[1:], focus, seen
                ):
                    return True
        return False

    def sequence(self, sequence: ast.Sequence, focus: Focus) -> Value:
        known = self._literals.get(id(sequence))
        if known is not None and known[0] is sequence:
            return known[1]
        found: list[Item] = []
        for part in sequence.parts:
            value = self.value(part, focus)
            self.charge_memory(POINTER_BYTES * len(value))
            self.charge(len(value))
            found += value
        if len(found) > FEW and all(isinstance(part, ast.Literal) for part in sequence.parts):
            self._literals[id(sequence)] = sequence, found
        return found

    def conditional(self, expression: ast.Conditional, focus: Focus) -> Value:
        chosen = (
            expression.consequence
            if self.truth(expression.condition, focus)
            else expression.alternative
        )
        return self.value(chosen, focus)

    def part(self, part: ast.Part, focus: Focus) -> Value:
        """As it came with the message, if it did."""
        (bound,) = value = focus.variables[part.variable]
        if isinstance(bound, Node) and bound.tree == 0 and bound.type is NodeType.ELEMENT:
            piece = self.stream.pieces.get((bound.number, part.digest))
            if piece is not None:
                return [Written(ast.NodeKind.NODE, None, "", markup=piece)] if piece else []
        return self.value(part.expression, Focus(DOCUMENT, 1, 1, {ast.PART_VARIABLE: value}))


_DOCUMENTS: Value = [DOCUMENT]
_OF_EXISTENCE = {"not": False, "empty": False, "exists": True, "boolean": True}


def _without_descendant(step: ast.LocationStep) -> ast.LocationStep:
    return ast.LocationStep(False, step.kind, step.test, step.predicates)


_HANDLERS: dict[type, Callable[[MessageEvaluator, Any, Focus], Value]] = {
    ast.PathExpression: MessageEvaluator.path,
    ast.Mapped: MessageEvaluator.mapped,
    ast.SimpleMap: MessageEvaluator.simple_map,
    ast.Literal: lambda _, literal, __: [literal.value],
    ast.Comparison: MessageEvaluator.comparison,
    ast.And: lambda self, node, focus: [not self.decided(node.parts, focus, by=False)],
    ast.Or: lambda self, node, focus: [self.decided(node.parts, focus, by=True)],
    ast.Operation: operation,
    ast.Sequence: MessageEvaluator.sequence,
    ast.Conditional: MessageEvaluator.conditional,
    ast.Quantified: quantified,
    ast.Cast: cast_value,
    ast.Typed: typed,
    ast.FunctionCall: MessageEvaluator.call,
    ast.Constructor: lambda _, constructor, focus: [Construction(constructor, focus)],
    ast.Markup: detached,
    ast.Computed: detached,
    ast.Flwor: lambda self, flwor, focus: list(flwor_items(self, flwor, focus)),
    ast.Part: MessageEvaluator.part,
    ast.Typeswitch: typeswitch,
    ast.TryCatch: try_catch,
    ast.UserCall: user_call,
    ast.Transform: transform,
    ast.Update: update,
}
