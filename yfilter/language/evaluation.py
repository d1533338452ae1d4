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
from dataclasses import replace
from typing import Any

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded
from yfilter.language import function_library
from yfilter.language.atoms import is_number
from yfilter.language.budget import POINTER_BYTES
from yfilter.language.call_evaluation import try_catch, typeswitch, user_call
from yfilter.language.construction import detached, holder, written
from yfilter.language.evaluator import Evaluator, effective_boolean
from yfilter.language.flwor_evaluation import flwor_items
from yfilter.language.general_comparison import some_pair
from yfilter.language.memo import FEW, Memo, is_worth
from yfilter.language.nodes import (
    DOCUMENT,
    NODES,
    Construction,
    Detached,
    DynamicError,
    Focus,
    Item,
    Node,
    NodeType,
    Value,
    Variables,
    Written,
    document_order,
    element_node,
)
from yfilter.language.operator_evaluation import cast_value, operation, quantified
from yfilter.language.pending_updates import transform, update
from yfilter.language.positions import is_positional
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import (
    PART_VARIABLE,
    And,
    Cast,
    Comparison,
    Computed,
    Conditional,
    Constructor,
    Expression,
    Flwor,
    FunctionCall,
    Literal,
    LocationStep,
    Mapped,
    Markup,
    NodeKind,
    Operation,
    Operator,
    Or,
    Origin,
    Part,
    PathExpression,
    Quantified,
    Sequence,
    SimpleMap,
    Transform,
    TryCatch,
    Typed,
    Typeswitch,
    Update,
    UserCall,
)
from yfilter.language.type_evaluation import typed


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
        self._positional: dict[int, tuple[LocationStep, bool]] = {}
        self._literals: dict[int, tuple[Sequence, Value]] = {}
        self.memo = None if strict else Memo(self)

    def evaluate(self, expression: Expression, context: Node, variables: Variables) -> Value:
        return self.value(expression, Focus(context, 1, 1, variables))

    def holds(self, condition: Expression, context: Node, variables: Variables) -> bool:
        return self.condition(condition, Focus(context, 1, 1, variables))

    def select(self, path: PathExpression, context: Node, variables: Variables) -> list[Node]:
        """The nodes that ``path`` selects, in document order, each once."""
        return self.nodes(self.evaluate(path, context, variables))

    def value(self, expression: Expression, focus: Focus) -> Value:
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

    def shared(self, expression: Expression, focus: Focus) -> Value:
        """As ``value``, for those who do not look at every item: what is known costs nothing."""
        if self.memo is None:
            return self.value(expression, focus)
        if isinstance(expression, PathExpression):
            return self.path(expression, focus, is_free=True)
        known = self.memo.constant(expression, focus)
        return self.value(expression, focus) if known is None else known

    def joined(
        self,
        clause: object,
        variable: str,
        value: Value,
        conditions: Iterable[Expression],
        focus: Focus,
    ) -> Iterator[tuple[int, Item]] | None:
        """The items of a value for which equalities among conditions hold, with their positions."""
        if self.memo is None or len(value) <= FEW:
            return None
        return self.memo.joined(clause, variable, value, conditions, focus)

    def path(self, path: PathExpression, focus: Focus, *, is_free: bool = False) -> Value:
        value = self._origin(path, focus)
        if not path.steps:
            return value
        if self.memo is not None and is_worth(path):
            known = self.memo.path(path, value, focus, self._follow, is_free=is_free)
            if known is not None:
                return known
        return self._follow(value, path.steps, focus)

    def _follow(self, value: Value, steps: tuple[LocationStep, ...], focus: Focus) -> Value:
        if steps and steps[0].kind is NodeKind.SELF and steps[0].axis is None:
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

    def _origin(self, path: PathExpression, focus: Focus) -> Value:
        match path.origin:
            case Origin.MESSAGE:
                item = focus.item
                inside = isinstance(item, Construction) or (
                    isinstance(item, Node) and item.tree > 0
                )
                if self.strict and inside:
                    raise DynamicError("XPDY0050", "the context item is in no document")
                if self.strict and item is None and focus.functions is None:
                    raise DynamicError("XPDY0002", "no context item")
                return _DOCUMENTS
            case Origin.VARIABLE:
                return focus.variables[path.variable]
            case Origin.CONTEXT:
                if focus.item is None:
                    raise DynamicError("XPDY0002", "no context item")
                if path.steps and not isinstance(focus.item, NODES):
                    first = path.steps[0]
                    if first.kind is not NodeKind.SELF or first.axis is not None:
                        raise DynamicError("XPTY0020", "a step from what is no node")
                return [focus.item]
            case Origin.EXPRESSION:
                assert path.start is not None
                return self.value(path.start, focus)

    def _after_step(
        self, nodes: list[Node], step: LocationStep, focus: Focus, *, is_ordered: bool
    ) -> list[Node]:
        if is_ordered and step.axis is None and not step.predicates:
            # PERF: what is found is in order, of one node and of the attributes of many.
            is_element = step.kind is NodeKind.ELEMENT
            if len(nodes) == 1 and (is_element or not step.descendant):
                return list(self.axes.step(nodes[0], step))
            if step.kind is NodeKind.ATTRIBUTE and not step.descendant:
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

    def _is_positional(self, step: LocationStep) -> bool:
        known = self._positional.get(id(step))
        if known is None or known[0] is not step:
            known = self._positional[id(step)] = (step, any(map(is_positional, step.predicates)))
        return known[1]

    def _filtered(
        self, items: list[Any], predicates: tuple[Expression, ...], focus: Focus
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

    def _accepts(self, predicate: Expression, focus: Focus) -> bool:
        """A number in brackets is a position, anything else a condition."""
        try:
            value = self.shared(predicate, focus)
            if len(value) == 1 and is_number(value[0]):  # type: ignore[arg-type]
                return bool(value[0] == focus.position)
            return effective_boolean(value, strict=self.strict)
        except DynamicError:
            if self.strict:
                raise
            return False

    def mapped(self, mapped: Mapped, focus: Focus) -> Value:
        found = self._each(self.nodes(self.value(mapped.left, focus)), mapped.right, focus)
        is_node = [isinstance(item, NODES) for item in found]
        if not any(is_node):
            return found
        if not all(is_node):
            raise DynamicError("XPTY0018", "a step yields both nodes and values")
        return sorted(set(self.nodes(found)), key=document_order)

    def simple_map(self, mapped: SimpleMap, focus: Focus) -> Value:
        return self._each(self.value(mapped.left, focus), mapped.right, focus)

    def _each(self, items: Value, expression: Expression, focus: Focus) -> list[Item]:
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

    def decided(self, parts: tuple[Expression, ...], focus: Focus, *, by: bool) -> bool:
        """Whether a part is ``by``, whatever is an error in the others."""
        error: DynamicError | None = None
        for part in parts:
            try:
                if self.truth(part, focus) is by:
                    return True
            except DynamicError as raised:
                if self.strict:
                    raise
                error = raised
        if error is not None:
            raise error
        return False

    def comparison(self, expression: Comparison, focus: Focus) -> Value:
        if expression.operator is Operator.EQ and self.memo is not None:
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

    def call(self, call: FunctionCall, focus: Focus) -> Value:
        return function_library.call(self, call, focus)

    def sequence(self, sequence: Sequence, focus: Focus) -> Value:
        known = self._literals.get(id(sequence))
        if known is not None and known[0] is sequence:
            return known[1]
        found: list[Item] = []
        for part in sequence.parts:
            value = self.value(part, focus)
            self.charge_memory(POINTER_BYTES * len(value))
            self.charge(len(value))
            found += value
        if len(found) > FEW and all(isinstance(part, Literal) for part in sequence.parts):
            self._literals[id(sequence)] = sequence, found
        return found

    def conditional(self, expression: Conditional, focus: Focus) -> Value:
        chosen = (
            expression.consequence
            if self.truth(expression.condition, focus)
            else expression.alternative
        )
        return self.value(chosen, focus)

    def part(self, part: Part, focus: Focus) -> Value:
        """As it came with the message, if it did."""
        (bound,) = value = focus.variables[part.variable]
        if isinstance(bound, Node) and bound.tree == 0 and bound.type is NodeType.ELEMENT:
            piece = self.stream.pieces.get((bound.number, part.digest))
            if piece is not None:
                return [Written(NodeKind.NODE, None, "", markup=piece)] if piece else []
        return self.value(part.expression, Focus(DOCUMENT, 1, 1, {PART_VARIABLE: value}))


_DOCUMENTS: Value = [DOCUMENT]


def _without_descendant(step: LocationStep) -> LocationStep:
    return LocationStep(False, step.kind, step.test, step.predicates)


_HANDLERS: dict[type, Callable[[MessageEvaluator, Any, Focus], Value]] = {
    PathExpression: MessageEvaluator.path,
    Mapped: MessageEvaluator.mapped,
    SimpleMap: MessageEvaluator.simple_map,
    Literal: lambda _, literal, __: [literal.value],
    Comparison: MessageEvaluator.comparison,
    And: lambda self, node, focus: [not self.decided(node.parts, focus, by=False)],
    Or: lambda self, node, focus: [self.decided(node.parts, focus, by=True)],
    Operation: operation,
    Sequence: MessageEvaluator.sequence,
    Conditional: MessageEvaluator.conditional,
    Quantified: quantified,
    Cast: cast_value,
    Typed: typed,
    FunctionCall: MessageEvaluator.call,
    Constructor: lambda _, constructor, focus: [Construction(constructor, focus)],
    Markup: detached,
    Computed: detached,
    Flwor: lambda self, flwor, focus: list(flwor_items(self, flwor, focus)),
    Part: MessageEvaluator.part,
    Typeswitch: typeswitch,
    TryCatch: try_catch,
    UserCall: user_call,
    Transform: transform,
    Update: update,
}
