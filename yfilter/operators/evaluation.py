"""Evaluation: any number of expressions on one message, within one budget."""

from __future__ import annotations

from typing import Any

from formats.element_stream import ElementStream
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import DOCUMENT, DynamicError, Node, Value, Variables
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Expression, NameTest
from yfilter.operators import operators as op
from yfilter.operators.compiler import About, Compiler

_NONE: Variables = {}


class Evaluation:
    """Expressions are compiled once; ``strict``: every error is raised, as within ``try``."""

    def __init__(
        self,
        stream: ElementStream,
        limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
        *,
        strict: bool = False,
    ) -> None:
        self.stream = stream
        self._strict = strict
        columns = op.MessageColumns()
        columns.bind_columns(stream)
        self._table = op.OperatorTable(columns, limits, Compiler)
        self.scratch = self._table.scratch
        self.scratch.begin()
        self.scratch.restart()
        self.scratch.strict = strict
        self._known: dict[tuple[object, ...], tuple[Expression, op.Operator, dict[str, Any]]] = {}
        self._shared: dict[Expression | About, op.Operator] = {}
        self._has_new_names = False

    def renew(self) -> None:
        """All of the budget may be spent again, on other expressions."""
        self._known.clear()
        self.scratch.restart()

    @property
    def trees(self) -> Evaluator:
        """The trees of the message, and the budget."""
        found: Evaluator = self.scratch.evaluator()
        return found

    def value(
        self, expression: Expression, context: Node | None = DOCUMENT, variables: Variables = _NONE
    ) -> Value:
        """The items; DynamicError, MatchLimitExceeded.  ``context``: a node of the message."""
        key = id(expression), context is None, *variables
        known = self._known.get(key)
        if known is None:
            scope: dict[str, Any] = {name: op.ItemVariable(self.scratch) for name in variables}
            compiler = Compiler(self, strict=self._strict)
            if context is None:
                scope["."] = compiler.nowhere
            operator = compiler.operator(expression, scope)
            known = self._known[key] = expression, operator, scope
        if self._has_new_names:
            self.scratch.translate()
            self._has_new_names = False
        for name, items in variables.items():
            known[2][name]._items = list(items)
        found: Value = known[1].value_at(self.scratch.number_of(context or DOCUMENT))
        return found

    def holds(
        self, condition: Expression, context: Node = DOCUMENT, variables: Variables = _NONE
    ) -> bool:
        """Whether it holds; one that raises an error does not."""
        try:
            return op.effective_boolean(self.value(condition, context, variables))
        except DynamicError:
            if self._strict:
                raise
            return False

    def select(
        self, path: Expression, context: Node = DOCUMENT, variables: Variables = _NONE
    ) -> list[Node]:
        """The nodes that a path selects, in document order, each once."""
        return self.trees.nodes(self.value(path, context, variables))

    # -- for the compiler

    def symbol(self, test: NameTest) -> int:
        self._has_new_names = True
        symbol: int = self._table.new_symbol(test)
        return symbol

    def shared(self, expression: Expression | About) -> op.Operator:
        found = self._shared.get(expression)
        if found is None:
            found = self._shared[expression] = Compiler(self, strict=self._strict).once(expression)
        return found
