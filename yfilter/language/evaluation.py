"""Evaluates expressions of the profile language over an ElementStream.

XPath 2.0 / XQuery 1.0 without schema types.  What a comparison compares follows from its sides:

=====================  =======================================================================
node, number           the node's string value as xs:double, numerically
node, string or node   string values, by code point
string, string         by code point
number, number         numerically
=====================  =======================================================================

A comparison holds when some pair of items does.  One deviation from XPath: where XPath raises an
error because a value is not a number, that pair does not hold (``!=`` included), since a message
cannot be answered with an error.

A value is a sequence of items: Node, str, int (xs:integer), float (xs:double), bool.  Nodes sort
in document order.  Every node that a step looks at is counted against
``EvaluationLimits.visits_max``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from math import isnan
from typing import TypeVar

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.language.nodes import (
    DOCUMENT,
    Item,
    Node,
    NodeType,
    Value,
    Variables,
    WrittenNumber,
    element_node,
)
from yfilter.language.numbers import number_text, parse_double
from yfilter.language.patterns import compile_pattern
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import (
    And,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Operator,
    Or,
    Origin,
    PathExpression,
)

__all__ = [
    "DOCUMENT",
    "Evaluator",
    "Item",
    "Node",
    "NodeType",
    "Value",
    "Variables",
    "effective_boolean",
    "element_node",
    "evaluate",
    "holds",
    "select",
]


def holds(
    condition: Expression,
    stream: ElementStream,
    element: int,
    variables: Variables | None = None,
) -> bool:
    """Whether ``condition`` holds with ``element`` as the context item."""
    evaluator = Evaluator(stream)
    return effective_boolean(evaluator.evaluate(condition, element_node(element), variables or {}))


def select(
    path: PathExpression,
    stream: ElementStream,
    context: Node = DOCUMENT,
    variables: Variables | None = None,
) -> list[Node]:
    """The nodes that ``path`` selects, in document order, each once."""
    return Evaluator(stream).select(path, context, variables or {})


def evaluate(
    expression: Expression,
    stream: ElementStream,
    context: Node = DOCUMENT,
    variables: Variables | None = None,
) -> Value:
    """The items of any expression but a constructor or FLWOR (those are ``result.render``'s)."""
    return Evaluator(stream).evaluate(expression, context, variables or {})


def effective_boolean(value: Value) -> bool:
    """XPath's effective boolean value: nodes exist; a string is not empty; a number is not 0."""
    if not value:
        return False
    first = value[0]
    if isinstance(first, Node):
        return True
    if isinstance(first, float):
        return not isnan(first) and first != 0
    return bool(first)


class Evaluator:
    """Evaluates any number of expressions on one message, within one bound of visited nodes."""

    def __init__(
        self, stream: ElementStream, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS
    ) -> None:
        self.stream = stream
        self._visits_left = limits.visits_max
        self._accepted: dict[NameTest, frozenset[int]] = {}

    def evaluate(self, expression: Expression, context: Node, variables: Variables) -> Value:
        match expression:
            case PathExpression(Origin.VARIABLE, ()):
                return variables[expression.variable]
            case PathExpression():
                return self.select(expression, context, variables)
            case Literal(value, written):
                return [WrittenNumber(float(value), written)] if written else [value]
            case Comparison(left, comparison, right):
                return [
                    self._compare(
                        self.evaluate(left, context, variables),
                        comparison,
                        self.evaluate(right, context, variables),
                    )
                ]
            case And(parts):
                return [all(self.holds(part, context, variables) for part in parts)]
            case Or(parts):
                return [any(self.holds(part, context, variables) for part in parts)]
            case FunctionCall(name, arguments):
                values = [self.evaluate(argument, context, variables) for argument in arguments]
                return [_CALLS[name](self, values or [[context]])]
        raise TypeError(f"{type(expression).__name__} is not a condition")

    def holds(self, condition: Expression, context: Node, variables: Variables) -> bool:
        return effective_boolean(self.evaluate(condition, context, variables))

    def select(self, path: PathExpression, context: Node, variables: Variables) -> list[Node]:
        """The nodes that ``path`` selects, in document order, each once."""
        nodes: list[Node]
        if path.origin is Origin.MESSAGE:
            nodes = [DOCUMENT]
        elif path.origin is Origin.VARIABLE:
            nodes = [item for item in variables[path.variable] if isinstance(item, Node)]
        else:
            nodes = [context]
        for step in path.steps:
            found = {node for start in nodes for node in self._step(start, step)}
            nodes = sorted(
                node
                for node in found
                if all(self.holds(predicate, node, variables) for predicate in step.predicates)
            )
        return nodes

    # -- values

    def string_value(self, node: Node) -> str:
        """XPath's string value of a node."""
        stream = self.stream
        match node.type:
            case NodeType.ELEMENT:
                return stream.string_value(node.number)
            case NodeType.ATTRIBUTE:
                return stream.attribute_value(node.number)
            case NodeType.TEXT:
                return stream.content_value(node.number)
            case NodeType.DOCUMENT:
                return stream.string_value(0)

    def string(self, item: Item) -> str:
        """``fn:string`` of one item."""
        match item:
            case Node():
                return self.string_value(item)
            case str():
                return item
            case bool():
                return "true" if item else "false"
            case WrittenNumber():
                return item.written
            case _:
                return number_text(item)

    def first_string(self, value: Value) -> str:
        return self.string(value[0]) if value else ""

    # -- steps

    def _step(self, start: Node, step: LocationStep) -> Iterator[Node]:
        match step.kind:
            case NodeKind.SELF:
                yield start
            case NodeKind.PARENT:
                yield from self._parent(start)
            case NodeKind.ELEMENT:
                yield from self._elements(start, step)
            case NodeKind.ATTRIBUTE:
                yield from self._attributes(start, step)
            case NodeKind.TEXT:
                yield from self._texts(start, step)

    def _parent(self, node: Node) -> Iterator[Node]:
        if node.type is NodeType.ATTRIBUTE:
            yield element_node(node.position)
        elif node.type is NodeType.TEXT:
            yield element_node(self.stream.content_parent[node.number])
        elif node.type is NodeType.ELEMENT:
            parent = self.stream.element_parent[node.number]
            yield element_node(parent) if parent >= 0 else DOCUMENT

    def _elements(self, start: Node, step: LocationStep) -> Iterator[Node]:
        stream = self.stream
        candidates: Iterable[int]
        if start.type is NodeType.DOCUMENT:
            candidates = range(len(stream)) if step.descendant else (0,)
        elif start.type is not NodeType.ELEMENT:
            return
        elif step.descendant:
            candidates = range(start.number + 1, stream.element_end[start.number])
        else:
            candidates = stream.children_of(start.number)
        accepted = self._names_accepted(step)
        for element in candidates:
            self._visit()
            if stream.element_name[element] in accepted:
                yield element_node(element)

    def _attributes(self, start: Node, step: LocationStep) -> Iterator[Node]:
        stream = self.stream
        accepted = self._names_accepted(step)
        for element in self._self_or_descendants(start, step):
            for attribute in stream.attributes_of(element):
                self._visit()
                if stream.attribute_name[attribute] in accepted:
                    yield Node(element, NodeType.ATTRIBUTE, attribute)

    def _texts(self, start: Node, step: LocationStep) -> Iterator[Node]:
        stream = self.stream
        for element in self._self_or_descendants(start, step):
            self._visit()
            for content in stream.text_nodes_of(element):
                self._visit()
                yield Node(stream.content_next[content], NodeType.TEXT, content)

    def _self_or_descendants(self, start: Node, step: LocationStep) -> range:
        """The elements that a step to attributes or text looks at."""
        if start.type is NodeType.DOCUMENT:
            return range(len(self.stream)) if step.descendant else range(0)
        if start.type is not NodeType.ELEMENT:
            return range(0)
        last = self.stream.element_end[start.number] if step.descendant else start.number + 1
        return range(start.number, last)

    def _names_accepted(self, step: LocationStep) -> frozenset[int]:
        assert step.test is not None
        accepted = self._accepted.get(step.test)
        if accepted is None:
            accepted = self._accepted[step.test] = frozenset(
                number
                for number, name in enumerate(self.stream.names)
                if step.test.accepts(name.namespace, name.local)
            )
        return accepted

    def _visit(self) -> None:
        self._visits_left -= 1
        if self._visits_left < 0:
            raise MatchLimitExceeded(
                "too-many-visits", "a condition looks at too many nodes of this message"
            )

    # -- comparisons

    def _compare(self, left: Value, comparison: Operator, right: Value) -> bool:
        if not left or not right:
            return False
        if _is_numeric(left) or _is_numeric(right):
            return _some_numbers(self._numbers(left), comparison, self._numbers(right))
        return _some_pair(self._strings(left), comparison, self._strings(right))

    def _numbers(self, value: Value) -> list[float]:
        """The items as xs:double, without those that are none."""
        numbers = []
        for item in value:
            number = (
                parse_double(self.string(item)) if isinstance(item, Node | str) else float(item)
            )
            if number is not None:
                numbers.append(number)
        return numbers

    def _strings(self, value: Value) -> list[str]:
        return [self.string(item) for item in value]


# -- comparisons of values, each side without the items that cannot be compared


def _is_numeric(value: Value) -> bool:
    return not isinstance(value[0], Node | str)


_Comparable = TypeVar("_Comparable", str, float)


def _some_numbers(left: list[float], comparison: Operator, right: list[float]) -> bool:
    """As _some_pair, where NaN differs from every number, itself included, and has no order."""
    proper_left = [number for number in left if not isnan(number)]
    proper_right = [number for number in right if not isnan(number)]
    has_nan = len(proper_left) < len(left) or len(proper_right) < len(right)
    if comparison is Operator.NE and has_nan:
        return bool(left and right)
    return _some_pair(proper_left, comparison, proper_right)


def _some_pair(left: list[_Comparable], comparison: Operator, right: list[_Comparable]) -> bool:
    """Whether some pair compares so, without looking at every pair."""
    if not left or not right:
        return False
    match comparison:
        case Operator.EQ:
            return not set(left).isdisjoint(right)
        case Operator.NE:
            return len({*left, *right}) > 1
        case Operator.LT:
            return min(left) < max(right)
        case Operator.LE:
            return min(left) <= max(right)
        case Operator.GT:
            return max(left) > min(right)
        case Operator.GE:
            return max(left) >= min(right)


# -- functions; the arguments are values, the context item when there were none


def _number(evaluator: Evaluator, arguments: list[Value]) -> float:
    if not arguments[0]:
        return float("nan")
    item = arguments[0][0]
    if not isinstance(item, Node | str):
        return float(item)
    number = parse_double(evaluator.string(item))
    return float("nan") if number is None else number


def _matches(evaluator: Evaluator, arguments: list[Value]) -> bool:
    subject, pattern, *flags = map(evaluator.first_string, arguments)
    return compile_pattern(pattern, "".join(flags)).search(subject)


def _string_join(evaluator: Evaluator, arguments: list[Value]) -> str:
    separator = evaluator.first_string(arguments[1])
    return separator.join(map(evaluator.string, arguments[0]))


def _of_strings(function: Callable[..., Item]) -> Callable[[Evaluator, list[Value]], Item]:
    """A function of strings, each the first item of its argument."""

    def call(evaluator: Evaluator, arguments: list[Value]) -> Item:
        return function(*map(evaluator.first_string, arguments))

    return call


def _normalize_space(text: str) -> str:
    return " ".join(part for part in re.split("[ \\t\\n\\r]+", text) if part)


_CALLS: dict[str, Callable[[Evaluator, list[Value]], Item]] = {
    "not": lambda _, arguments: not effective_boolean(arguments[0]),
    "contains": _of_strings(lambda text, part: part in text),
    "starts-with": _of_strings(str.startswith),
    "ends-with": _of_strings(str.endswith),
    "matches": _matches,
    "normalize-space": _of_strings(_normalize_space),
    "lower-case": _of_strings(str.lower),
    "upper-case": _of_strings(str.upper),
    "string-length": _of_strings(len),
    "count": lambda _, arguments: len(arguments[0]),
    "number": _number,
    "string": _of_strings(str),
    "concat": _of_strings(lambda *parts: "".join(parts)),
    "string-join": _string_join,
}
