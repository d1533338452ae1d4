"""Results by the interpreter, for the engine that runs where nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from formats.element_stream import ElementStream
from tests.oracle.evaluation import MessageEvaluator
from tests.oracle.flwor_evaluation import flwor_items
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.budget import NOT_BEGUN
from yfilter.language.evaluator import written
from yfilter.language.failures import failure_of
from yfilter.language.nodes import (
    DOCUMENT,
    Construction,
    DynamicError,
    Focus,
    Item,
    Node,
    NodeType,
    Value,
    Written,
    element_node,
)
from yfilter.language.profile_limits import EvaluationLimits

_FOCUS = Focus(DOCUMENT, 1, 1, {})


class Asked(NamedTuple):
    """A profile, and whether it ``binds``: its results are made of given bindings."""

    profile: ast.Profile
    binds: bool = False


def interpreted(
    asked: Asked,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits,
    whole_message: Callable[[], bytes],
    began: float = NOT_BEGUN,
) -> list[bytes]:
    """The documents of a profile; ``bindings`` ascend; ``began``: when somebody has begun
    to make them.  Raises MatchLimitExceeded."""
    evaluator = MessageEvaluator(stream, limits)
    evaluator.began = began
    return interpreted_by(evaluator, asked, bindings, whole_message)


def interpreted_by(
    evaluator: MessageEvaluator,
    asked: Asked,
    bindings: Sequence[int],
    whole_message: Callable[[], bytes],
) -> list[bytes]:
    """The same, by an evaluator that has evaluated nothing else."""
    try:
        return _documents(asked, evaluator, bindings, whole_message)
    except DynamicError:
        return []


def _documents(
    asked: Asked,
    evaluator: MessageEvaluator,
    bindings: Sequence[int],
    whole_message: Callable[[], bytes],
) -> list[bytes]:
    body = asked.profile.body
    if body.is_path():
        if not evaluator.value(body, _FOCUS):
            return []
        return [whole_message()]
    first = [element_node(binding) for binding in bindings] if asked.binds else None
    if isinstance(body, ast.Constructor):
        return _enclosing(body, evaluator, first)
    cut: MatchLimitExceeded | None = None
    if isinstance(body, ast.Flwor):
        clause = body.clauses[0]
        if first is None and failure_of(body) is not None and isinstance(clause, ast.ForClause):
            first, cut = _failing(evaluator, clause.path)
        items: Iterable[Item] = flwor_items(evaluator, body, _FOCUS, first)
    else:
        items = evaluator.value(body, _FOCUS)
    found: list[bytes] = []
    try:
        for item in items:
            try:
                found.append(_document(evaluator, item, whole_message))
            except DynamicError:
                continue
        if cut is not None:
            raise cut
    except MatchLimitExceeded as error:
        error.made, error.of = found, len(first or ())
        error.unseen = [] if cut is None else cut.unseen
        raise
    return found


def _failing(
    evaluator: MessageEvaluator, path: ast.Expression
) -> tuple[list[Node], MatchLimitExceeded | None]:
    """The nodes of which failures are told, one looked at behind the other, as far as a bound
    lets it."""
    base, condition = path.divided()
    nodes = evaluator.nodes(evaluator.value(base, _FOCUS))
    if condition is None:
        return nodes, None
    found: list[Node] = []
    for at, node in enumerate(nodes):
        try:
            if evaluator.holds(condition, node, {}):
                found.append(node)
        except MatchLimitExceeded as cut:
            cut.unseen = [each.number for each in nodes[at:]]
            evaluator.go_on()
            return found, cut
    return found, None


def _enclosing(
    body: ast.Constructor, evaluator: MessageEvaluator, first: list[Node] | None
) -> list[bytes]:
    """The document, if a decisive part yields anything; each of them is evaluated once."""
    decisive, rewritten = _with_variables(body)
    values: dict[str, Value] = {}
    for name, part in decisive:
        if isinstance(part, ast.Flwor):
            values[name] = list(flwor_items(evaluator, part, _FOCUS, first))
        else:
            values[name] = evaluator.value(part, _FOCUS)
    if not any(values.values()):
        return []
    return [written(evaluator, [Construction(rewritten, _FOCUS._replace(variables=values))])]


@lru_cache(maxsize=4096)
def _with_variables(
    body: ast.Constructor,
) -> tuple[tuple[tuple[str, ast.Expression], ...], ast.Constructor]:
    """The decisive parts by the variables that stand for them in the constructor."""
    decisive = {part: f"decisive {number}" for number, part in enumerate(body.decisive_parts())}
    content = tuple(
        ast.variable(decisive[part])
        if not isinstance(part, str | ast.Constructor | ast.Markup) and part in decisive
        else part
        for part in body.content
    )
    named = tuple((name, part) for part, name in decisive.items())
    return named, replace(body, content=content)


def _document(evaluator: MessageEvaluator, item: Item, whole_message: Callable[[], bytes]) -> bytes:
    if item == DOCUMENT:
        text = whole_message()
        evaluator.charge_bytes(len(text))
        return text
    is_element = isinstance(item, Construction | Written) or (
        isinstance(item, Node) and item.type in (NodeType.ELEMENT, NodeType.DOCUMENT)
    )
    if not is_element:
        raise DynamicError("SENR0001", "this is no document")
    return written(evaluator, [item])
