"""Operators that construct and change nodes, call functions and ask for types.

A context that may be no node is a variable of the scope, ``.``, as every variable that is bound to
items (``ItemVariable``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from formats.names import QualifiedName
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.atoms import qname
from yfilter.language.budget import CALL_COST, deep_recursion
from yfilter.language.evaluator import as_declared, detached, is_of_type
from yfilter.language.namespaces import ERROR_NAMESPACE
from yfilter.language.nodes import (
    Construction,
    DynamicError,
    Item,
    Node,
    Value,
)
from yfilter.language.updates import PendingUpdates, renamed
from yfilter.operators import operators as op

LEVELS_MAX = 6_000  # of expressions in each other, calls of declared functions included


class NoContext(op.Evaluated):
    """The context item, or what is asked of it, in the body of a declared function."""

    def evaluate(self, node: int) -> Value:
        raise DynamicError("XPDY0002", "no context item")


def _listed(value: Value) -> list[Item]:
    """A value that a variable is bound to; no list of items changes."""
    return value if isinstance(value, list) else list(value)


# -------------------------------------------------------------------------------------------------
# Types and errors.


class Treated(op.Evaluated):
    """``treat as``, and the declared type of a variable."""

    def __init__(self, scratch: op.Scratch, operand: op.Operator, typed: ast.Typed) -> None:
        super().__init__(scratch, (operand,))
        self._type = typed.type
        self._code = "XPTY0004" if typed.declared else "XPDY0050"

    def evaluate(self, node: int) -> Value:
        value: Value = self.operand.value_at(node)
        if not is_of_type(self.scratch.evaluator(), value, self._type):
            raise DynamicError(self._code, "a value of another type than the one declared")
        return value


class Case(NamedTuple):
    """Of ``typeswitch``; ``variable`` is bound to its operand, no types are any."""

    types: tuple[ast.SequenceType, ...]
    variable: op.ItemVariable
    result: op.Operator


class Typeswitch(op.Evaluated):
    def __init__(self, scratch: op.Scratch, operand: op.Operator, cases: Sequence[Case]) -> None:
        bound = [case.variable for case in cases]
        super().__init__(scratch, (operand, *(case.result for case in cases)), bound)
        self._cases = cases

    def evaluate(self, node: int) -> Value:
        value = self.operand.value_at(node)
        evaluator = self.scratch.evaluator()
        for types, variable, result in self._cases:
            if not types or any(is_of_type(evaluator, value, type_) for type_ in types):
                variable._items = _listed(value)
                found: Value = result.value_at(node)
                return found
        raise AssertionError("a typeswitch without a default")


class TryCatch(op.Evaluated):
    """Within ``try`` errors are raised as in XQuery, whatever becomes of them elsewhere: ``body``
    is compiled so that they are."""

    def __init__(
        self,
        scratch: op.Scratch,
        body: op.Operator,
        clauses: Sequence[tuple[tuple[ast.NameTest, ...], op.Operator]],
        variables: Sequence[op.ItemVariable],
    ) -> None:
        """``variables``: what a clause binds, in the order of ERROR_VARIABLES."""
        super().__init__(scratch, (body, *(result for _, result in clauses)), variables)
        self._body = body
        self._clauses = clauses
        self._variables = variables

    def evaluate(self, node: int) -> Value:
        scratch, evaluator = self.scratch, self.scratch.evaluator()
        outer = scratch.strict
        top = scratch.position, scratch.size
        scratch.strict = evaluator.strict = True
        try:
            value: Value = self._body.value_at(node)
            for item in value:
                if isinstance(item, Construction):
                    evaluator.materialised(item)  # else its errors would come behind the try
            return value
        except DynamicError as error:
            raised = error
        finally:
            scratch.strict = evaluator.strict = outer
            scratch.position, scratch.size = top
        for names, result in self._clauses:
            if any(test.accepts(raised.namespace, raised.local) for test in names):
                prefix = "err:" if raised.namespace == ERROR_NAMESPACE else ""
                name = qname(raised.namespace, prefix + raised.local)
                bound = ([name], [raised.reason], list(raised.value))
                for variable, items in zip(self._variables, bound, strict=True):
                    variable._items = items
                found: Value = result.value_at(node)
                return found
        raise raised


# -------------------------------------------------------------------------------------------------
# Calls of declared functions that are not put in the place of their names.


class Function:
    """A declared function; ``body`` is compiled after those that call it know it, and ``cells`` are
    all variables that are bound in it."""

    def __init__(self, declared: ast.FunctionDeclaration, parameters: Any, height: int) -> None:
        self.types = [type_ for _, type_ in declared.parameters]
        self.result = declared.result
        self.parameters: list[op.ItemVariable] = parameters
        self.cells: list[Any] = list(parameters)
        self.body: op.Operator | None = None
        self.height = height
        self.calls = 0  # in each other, just now


class Depth:
    """How deep in calls of declared functions an evaluation is."""

    def __init__(self) -> None:
        self.calls = self.levels = 0


class Called(op.Evaluated):
    def __init__(
        self,
        scratch: op.Scratch,
        depth: Depth,
        function: Function,
        arguments: Sequence[op.Operator],
    ) -> None:
        super().__init__(scratch, arguments)
        self._depth = depth
        self._function = function
        self._arguments = arguments

    def evaluate(self, node: int) -> Value:
        evaluator, function, depth = self.scratch.evaluator(), self._function, self._depth
        calls_max = evaluator.limits.calls_max
        if depth.calls >= calls_max or depth.levels > LEVELS_MAX:
            raise MatchLimitExceeded(
                "too-many-calls",
                f"a profile's functions call each other more than {calls_max} deep",
            )
        evaluator.charge(CALL_COST)
        values = [
            as_declared(evaluator, argument.value_at(node), type_)
            for argument, type_ in zip(self._arguments, function.types, strict=True)
        ]
        scratch = self.scratch
        outer = scratch.position, scratch.size
        held = [op.held_by(cell) for cell in function.cells] if function.calls else []
        depth.calls += 1
        depth.levels += function.height
        function.calls += 1
        try:
            for variable, value in zip(function.parameters, values, strict=True):
                variable._items = _listed(value)
            assert function.body is not None
            if depth.calls == 1:
                with deep_recursion():
                    found = function.body.value_at(node)
            else:
                found = function.body.value_at(node)
            return as_declared(evaluator, found, function.result)
        finally:
            function.calls -= 1
            depth.levels -= function.height
            depth.calls -= 1
            scratch.position, scratch.size = outer
            for cell, before in zip(function.cells, held, strict=False):
                op.hold(cell, before)


# -------------------------------------------------------------------------------------------------
# Constructors and parts; how they are written is in evaluator.py.


class Closure:
    """What a constructed element is written with: all that its content refers to."""

    def __init__(self, made: Constructed, node: int) -> None:
        self._made = made
        self._node = node
        scratch = made.scratch
        self._focus = scratch.position, scratch.size
        self._bound = [(variable, op.held_by(variable)) for variable in made.free]
        self._calls = made.depth.calls, made.depth.levels

    def value(self, expression: ast.Expression) -> Value:
        """Of an expression in the constructor, which is known by its identity."""
        made, scratch = self._made, self._made.scratch
        outer = scratch.position, scratch.size
        around = [(variable, op.held_by(variable)) for variable, _ in self._bound]
        calls = made.depth.calls, made.depth.levels
        made.depth.calls, made.depth.levels = self._calls
        scratch.position, scratch.size = self._focus
        for variable, held in self._bound:
            op.hold(variable, held)
        try:
            found: Value = made.parts[id(expression)].value_at(self._node)
            return found
        finally:
            made.depth.calls, made.depth.levels = calls
            scratch.position, scratch.size = outer
            for variable, held in around:
                op.hold(variable, held)


class Constructed(op.Evaluated):
    """A constructor of any kind; ``parts`` are the expressions in it, by their identity."""

    def __init__(
        self,
        scratch: op.Scratch,
        depth: Depth,
        expression: ast.Constructor | ast.Markup | ast.Computed,
        parts: Mapping[int, op.Operator],
    ) -> None:
        super().__init__(scratch, parts.values())
        self.depth = depth
        self._expression = expression
        self.parts = parts

    def evaluate(self, node: int) -> Value:
        closure: Any = Closure(self, node)
        if isinstance(self._expression, ast.Constructor):
            return [Construction(self._expression, closure)]
        return detached(self.scratch.evaluator(), self._expression, closure)


# -------------------------------------------------------------------------------------------------
# ``copy … modify … return …``; what becomes of a copy is in updates.py.


class Transform(op.Evaluated):
    def __init__(
        self,
        scratch: op.Scratch,
        copies: Sequence[tuple[op.ItemVariable, op.Operator]],
        changes: op.Operator,
        result: op.Operator,
    ) -> None:
        values = [value for _, value in copies]
        super().__init__(scratch, (*values, changes, result), [one for one, _ in copies])
        self._copies = copies
        self._changes = changes
        self._result = result

    def evaluate(self, node: int) -> Value:
        evaluator = self.scratch.evaluator()
        copies: list[tuple[op.ItemVariable, Node]] = []
        for variable, source in self._copies:
            nodes = evaluator.nodes(source.value_at(node))
            if len(nodes) != 1:
                raise DynamicError("XUTY0013", "'copy' takes one node")
            evaluator.charge()
            copy = evaluator.tree(evaluator.streams[nodes[0].tree], nodes[0])
            copies.append((variable, copy))
            variable._items = [copy]
        pending = PendingUpdates(evaluator, {copy.tree for _, copy in copies})
        outer, evaluator.pending = evaluator.pending, pending
        try:
            self._changes.value_at(node)
        finally:
            evaluator.pending = outer
        for variable, copy in copies:
            variable._items = [pending.applied(copy)]
        found: Value = self._result.value_at(node)
        return found


class Update(op.Evaluated):
    """Nothing: what is said is added to what is pending."""

    def __init__(
        self,
        scratch: op.Scratch,
        kind: ast.UpdateKind,
        target: op.Operator,
        source: op.Operator | QualifiedName,
    ) -> None:
        parts = (target,) if isinstance(source, QualifiedName) else (target, source)
        super().__init__(scratch, parts)
        self._kind = kind
        self._target = target
        self._source = source

    def evaluate(self, node: int) -> Value:
        evaluator, kind, source = self.scratch.evaluator(), self._kind, self._source
        pending = evaluator.pending
        assert isinstance(pending, PendingUpdates)  # the parser lets it stand in ``modify`` only
        targets = evaluator.nodes(self._target.value_at(node))
        if kind is ast.UpdateKind.DELETE:
            for target in targets:
                pending.delete(target)
            return []
        if len(targets) != 1:
            code = "XUTY0008" if targets else "XUDY0027"
            raise DynamicError(code, f"'{kind.value[0]}' takes one node")
        target = targets[0]
        if isinstance(source, QualifiedName):
            pending.rename(target, source)
        elif kind is ast.UpdateKind.RENAME:
            pending.rename(target, renamed(source.atom_at(node)))
        elif kind is ast.UpdateKind.REPLACE_VALUE:
            value = source.value_at(node)
            pending.replace_value(target, " ".join(map(evaluator.string, value)))
        elif kind is ast.UpdateKind.REPLACE:
            pending.replace(target, source.value_at(node))
        else:
            pending.insert(target, kind, source.value_at(node))
        return []
