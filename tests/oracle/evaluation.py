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

from formats.element_stream import ElementStream
from formats.names import QualifiedName
from tests.oracle.axes import MessageAxes
from tests.oracle.equality_index import FEW
from tests.oracle.flwor_evaluation import flwor_items
from tests.oracle.memo import Memo, is_worth
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
)
from yfilter.language.budget import (
    CALL_COST,
    ELEMENTPATH_COST,
    POINTER_BYTES,
    deep_recursion,
)
from yfilter.language.evaluator import (
    Evaluator,
    as_declared,
    detached,
    effective_boolean,
    is_of_type,
    some_pair,
)
from yfilter.language.function_library import integers
from yfilter.language.functions import FUNCTIONS, TYPES
from yfilter.language.namespaces import ERROR_NAMESPACE
from yfilter.language.nodes import (
    DOCUMENT,
    NODES,
    Construction,
    DynamicError,
    Focus,
    Functions,
    Item,
    Library,
    Node,
    NodeType,
    Opaque,
    Value,
    Variables,
    Written,
)
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.temporal import Temporal
from yfilter.language.updates import PendingUpdates, renamed

# -------------------------------------------------------------------------------------------------
# Evaluates ``instance of``, ``treat as`` and the types that clauses declare.


def typed(evaluator: MessageEvaluator, expression: ast.Typed, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    matches = is_of_type(evaluator, value, expression.type)
    if not expression.treat:
        return [matches]
    if not matches:
        code = "XPTY0004" if expression.declared else "XPDY0050"
        raise DynamicError(code, "a value of another type than the one declared")
    return value


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Evaluates calls of declared functions, declared variables, ``typeswitch`` and ``try``.
#
# A call within a call is one deeper, up to ``EvaluationLimits.calls_max``.  Elements that a
# function constructs are written after it has returned; they know how deep they are by their focus.


def user_call(evaluator: MessageEvaluator, call: ast.UserCall, focus: Focus) -> Value:
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


def _called(evaluator: MessageEvaluator, call: ast.UserCall, focus: Focus, depth: int) -> Value:
    table = _table(evaluator, call, focus)
    function = table[call.name, len(call.arguments)]
    variables = {
        name: as_declared(evaluator, evaluator.value(argument, focus), type_)
        for (name, type_), argument in zip(function.parameters, call.arguments, strict=True)
    }
    inside = Focus(None, 1, 1, variables, Functions(table, depth))
    return as_declared(evaluator, evaluator.value(function.body, inside), function.result)


def _table(evaluator: MessageEvaluator, call: ast.UserCall, focus: Focus) -> Library:
    """The declared functions and variables that a call sees."""
    if call.library:
        return evaluator.declared.table(call.library)
    assert focus.functions is not None  # only what is declared has calls without a library
    return focus.functions.table


def _declared_variable(evaluator: MessageEvaluator, call: ast.UserCall, focus: Focus) -> Value:
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


def typeswitch(evaluator: MessageEvaluator, expression: ast.Typeswitch, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    for case in expression.cases:
        if not case.types or any(is_of_type(evaluator, value, type_) for type_ in case.types):
            if case.variable:
                variables = {**focus.variables, case.variable: value}
                focus = focus._replace(variables=variables)
            return evaluator.value(case.result, focus)
    raise AssertionError("a typeswitch without a default")


def try_catch(evaluator: MessageEvaluator, expression: ast.TryCatch, focus: Focus) -> Value:
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


def function_call(evaluator: MessageEvaluator, call_: ast.FunctionCall, focus: Focus) -> Value:
    """The value of a function call; DynamicError for arguments that it cannot take."""
    name = call_.name
    if name in ("position", "last"):
        if focus.item is None:
            raise DynamicError("XPDY0002", f"{name}() without a context item")
        return [focus.position if name == "position" else focus.size]
    value_of = evaluator.shared if name == "index-of" else evaluator.value
    values = [value_of(argument, focus) for argument in call_.arguments]
    if not values and name in FUNCTIONS and FUNCTIONS[name].context:
        if focus.item is None:
            raise DynamicError("XPDY0002", f"{name}() without a context item")
        values = [[focus.item]]
    return function_library.applied(evaluator, name, values)


# -------------------------------------------------------------------------------------------------
# Evaluates operators, casts and quantified expressions.


def operation(evaluator: MessageEvaluator, operation: ast.Operation, focus: Focus) -> Value:
    name = operation.name
    values = (evaluator.value(operand, focus) for operand in operation.operands)
    if name in ("|", "intersect", "except"):
        return _combined(name, *(set(evaluator.nodes(value)) for value in values))
    if name in ("is", "<<", ">>"):
        return _placed(name, *(evaluator.nodes(value) for value in values))
    operands = []
    for value in values:
        atom = evaluator.one_atom(value)
        if atom is None:
            return []  # the operands behind it are not looked at
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


def document_order(node: Node) -> tuple[int, Node]:
    return node.tree, node


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


def cast_value(evaluator: MessageEvaluator, expression: ast.Cast, focus: Focus) -> Value:
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


def quantified(evaluator: MessageEvaluator, expression: ast.Quantified, focus: Focus) -> Value:
    wanted = not expression.every
    for variables in _assignments(evaluator, expression, 0, focus):
        inner = focus._replace(variables=variables)
        if evaluator.condition(expression.condition, inner) is wanted:
            return [wanted]
    return [not wanted]


def _assignments(
    evaluator: MessageEvaluator, expression: ast.Quantified, index: int, focus: Focus
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
# Evaluates ``copy … modify … return …``.


def transform(evaluator: MessageEvaluator, expression: ast.Transform, focus: Focus) -> Value:
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


def update(evaluator: MessageEvaluator, expression: ast.Update, focus: Focus) -> Value:
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
            source = renamed(evaluator.one_atom(evaluator.value(source, focus)))
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


def _bound(focus: Focus, variable: str, item: Item) -> Focus:
    return focus._replace(variables={**focus.variables, variable: [item]})


# -------------------------------------------------------------------------------------------------


class DeclaredValues:
    """What one evaluation knows of libraries: ``values`` of variables, or their errors, by the
    identity of the declaration."""

    __slots__ = ("_tables", "values")

    def __init__(self) -> None:
        self.values: dict[int, Value | DynamicError] = {}
        self._tables: dict[int, tuple[tuple[ast.FunctionDeclaration, ...], Library]] = {}

    def table(self, library: tuple[ast.FunctionDeclaration, ...]) -> Library:
        """The same one for equal libraries."""
        known = self._tables.get(id(library))
        if known is None:
            equal = (table for other, table in self._tables.values() if other == library)
            table = next(equal, None)
            if table is None:
                table = {(one.name, len(one.parameters)): one for one in library}
            known = self._tables[id(library)] = library, table
        return known[1]


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
        self.axes = MessageAxes(self.streams, self.charge, self.tops)
        self.declared = DeclaredValues()
        self._positional: dict[int, tuple[ast.LocationStep, bool]] = {}
        self._literals: dict[int, tuple[ast.Sequence, Value]] = {}
        self.memo = None if strict else Memo(self)

    def condition(self, condition: ast.Expression, focus: Focus) -> bool:
        """Whether it holds; one that raises an error does not."""
        try:
            return self.truth(condition, focus)
        except DynamicError:
            if self.strict:
                raise
            return False

    def evaluate(self, expression: ast.Expression, context: Node, variables: Variables) -> Value:
        return self.value(expression, Focus(context, 1, 1, variables))

    def holds(self, condition: ast.Expression, context: Node, variables: Variables) -> bool:
        return self.condition(condition, Focus(context, 1, 1, variables))

    def select(self, path: ast.Expression, context: Node, variables: Variables) -> list[Node]:
        """The nodes that ``path`` selects, in document order, each once."""
        return self.nodes(self.evaluate(path, context, variables))

    def value(self, expression: ast.Expression, focus: Focus) -> Value:
        return _HANDLERS[type(expression)](self, expression, focus)

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
        return function_call(self, call, focus)

    @property
    def _is_lazy(self) -> bool:
        """Whether it is within ``try``: there an error behind what decides is none."""
        return self.strict and self.memo is not None

    def truth(self, condition: ast.Expression, focus: Focus) -> bool:
        if not (self._is_lazy and isinstance(condition, ast.PathExpression) and condition.steps):
            return effective_boolean(self.value(condition, focus))
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
