"""Return template + bindings -> the results of one profile for one message.

The engine has matched the profile's matching path and hands over the elements that it bound to
the first variable.  What is left is done here: the other clauses, the whole ``where``, and the
``return``.

=======================  ======================================================================
the profile is           results
=======================  ======================================================================
a path                   the message, once, when the path selects anything
a constructor            one document, when one of its decisive parts yields anything
                         (``matching_path.decisive_parts``)
anything else            one document for each item of its value, in order
=======================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from formats.element_stream import ElementStream
from formats.text import to_text
from yfilter.language.budget import Budget
from yfilter.language.construction import written
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.flwor_evaluation import flwor_items
from yfilter.language.matching_path import MatchingPart, decisive_parts, is_path, matching_part
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
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import (
    Constructor,
    Expression,
    Flwor,
    Markup,
    Origin,
    PathExpression,
    Profile,
)
from yfilter.language.result_plan import NoPiece, ResultPlan, is_plain_message, result_plan

_FOCUS = Focus(DOCUMENT, 1, 1, {})


def render(
    profile: Profile,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """The results of ``profile`` for the message, each a well-formed document in UTF-8.

    ``bindings`` are the elements of the profile's matching path (``matching_path.py``), in any
    order.  Empty means that the profile does not match after all.  Raises MatchLimitExceeded.
    """
    if not bindings:
        return []
    part, is_message, plan = _known(profile)
    if is_message:
        return [_whole_text(stream)]
    if plan is not None and is_plain_message(stream):
        return plan.results(stream, sorted(set(bindings)), Budget(limits))
    try:
        return _documents(profile, part, MessageEvaluator(stream, limits), bindings)
    except DynamicError:
        return []


def render_with_parts(
    profile: Profile,
    put_in: Profile,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """As ``render``, of a message with pieces; ``put_in`` is the profile with its parts."""
    if not bindings:
        return []
    part = matching_part(profile)
    plan = None if part.has_remainder else _plan_with_parts(put_in)
    if plan is not None and part.binds and is_plain_message(stream):
        try:
            return plan.results(stream, sorted(set(bindings)), Budget(limits))
        except NoPiece:
            pass
    try:
        return _documents(put_in, part, MessageEvaluator(stream, limits), bindings)
    except DynamicError:
        return []


_plan_with_parts = lru_cache(maxsize=4096)(result_plan)


@lru_cache(maxsize=4096)
def _known(profile: Profile) -> tuple[MatchingPart, bool, ResultPlan | None]:
    """Its matching part, whether that alone says that the message is delivered, its plan."""
    part = matching_part(profile)
    if part.has_remainder:
        return part, False, None
    return part, is_path(profile.body), result_plan(profile) if part.binds else None


def _documents(
    profile: Profile, part: MatchingPart, evaluator: MessageEvaluator, bindings: Sequence[int]
) -> list[bytes]:
    body = profile.body
    if is_path(body):
        if not evaluator.value(body, _FOCUS):
            return []
        return [_whole_text(evaluator.stream)]
    first = [element_node(binding) for binding in sorted(set(bindings))] if part.binds else None
    if isinstance(body, Constructor):
        return _enclosing(body, evaluator, first)
    if isinstance(body, Flwor):
        items: Iterable[Item] = flwor_items(evaluator, body, _FOCUS, first)
    else:
        items = evaluator.value(body, _FOCUS)
    found = []
    for item in items:
        try:
            found.append(_document(evaluator, item))
        except DynamicError:
            continue
    return found


def _whole_text(stream: ElementStream) -> bytes:
    """The message as it came; that asked for last is kept, for very many profiles want it."""
    if not _LAST or _LAST[0][0] is not stream:
        _LAST[:] = [(stream, to_text(stream))]
    return _LAST[0][1]


_LAST: list[tuple[ElementStream, bytes]] = []


def _enclosing(
    body: Constructor, evaluator: MessageEvaluator, first: list[Node] | None
) -> list[bytes]:
    """The document, if a decisive part yields anything; each of them is evaluated once."""
    decisive, rewritten = _with_variables(body)
    values: dict[str, Value] = {}
    for name, part in decisive:
        if isinstance(part, Flwor):
            values[name] = list(flwor_items(evaluator, part, _FOCUS, first))
        else:
            values[name] = evaluator.value(part, _FOCUS)
    if not any(values.values()):
        return []
    return [written(evaluator, [Construction(rewritten, _FOCUS._replace(variables=values))])]


@lru_cache(maxsize=4096)
def _with_variables(body: Constructor) -> tuple[tuple[tuple[str, Expression], ...], Constructor]:
    """The decisive parts by the variables that stand for them in the constructor."""
    decisive = {part: f"decisive {number}" for number, part in enumerate(decisive_parts(body))}
    content = tuple(
        PathExpression(Origin.VARIABLE, (), decisive[part])
        if not isinstance(part, str | Constructor | Markup) and part in decisive
        else part
        for part in body.content
    )
    named = tuple((name, part) for part, name in decisive.items())
    return named, replace(body, content=content)


def _document(evaluator: MessageEvaluator, item: Item) -> bytes:
    if item == DOCUMENT:
        text = _whole_text(evaluator.stream)
        evaluator.charge_bytes(len(text))
        return text
    is_element = isinstance(item, Construction | Written) or (
        isinstance(item, Node) and item.type in (NodeType.ELEMENT, NodeType.DOCUMENT)
    )
    if not is_element:
        raise DynamicError("SENR0001", "this is no document")
    return written(evaluator, [item])
