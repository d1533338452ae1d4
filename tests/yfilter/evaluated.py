"""Single expressions of profiles on one message, by the interpreter."""

from __future__ import annotations

from formats.element_stream import ElementStream
from tests.oracle.evaluation import MessageEvaluator
from yfilter.language.nodes import DOCUMENT, Node, Value, Variables, element_node
from yfilter.language.query_ast import Expression, PathExpression


def holds(
    condition: Expression,
    stream: ElementStream,
    element: int,
    variables: Variables | None = None,
) -> bool:
    """Whether ``condition`` holds with ``element`` as the context item."""
    return MessageEvaluator(stream).holds(condition, element_node(element), variables or {})


def select(
    path: PathExpression,
    stream: ElementStream,
    context: Node = DOCUMENT,
    variables: Variables | None = None,
) -> list[Node]:
    """The nodes that ``path`` selects, in document order, each once."""
    return MessageEvaluator(stream).select(path, context, variables or {})


def evaluate(
    expression: Expression,
    stream: ElementStream,
    context: Node = DOCUMENT,
    variables: Variables | None = None,
) -> Value:
    """The items of any expression; DynamicError where it raises one."""
    return MessageEvaluator(stream).evaluate(expression, context, variables or {})
