"""Compiler: an expression becomes operators.

=======================================  ==================================================
an expression                            becomes
=======================================  ==================================================
a location path                          ``Path``; a position in brackets a ``Position``
a path compared with literals            ``SomeValue`` with a value test
``contains(path, "x")`` and its like     ``FirstValue`` with a value test
``path contains text "x"``               ``SomeValue`` with a value test, else ``SomeString``
a path compared with a path              ``PathJoin``, by a hash of values
``count(path) > 2``, ``exists``, ``not`` ``CountIs``, ``Exists``, ``Not``
``and``, ``or``, ``some``, ``every``     ``Both``, ``Ranging``
``a | b``, ``a except b``, ``a << b``    ``Combined``, ``NodeComparison``
FLWOR                                    ``Let``, ``Binding``, ``OrderBy``, ``GroupBy``
what is about items that are no nodes    operators of items.py; constructors, ``try``, updates
of the message, or makes such            and calls of recursive functions, too
other functions, arithmetic, casts       ``TextCall``, ``NumberCall``, ``Arithmetic``, …
constructors                             ``ElementOf``, ``AttributeOf``, ``TextOf``, ``Static``
the results of a profile                 ``Result``
=======================================  ==================================================

What depends on the message alone is one operator for all expressions that have it, and found out
once a message (``OperatorTable.shared``); a sum and the like once for each node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from math import isnan
from typing import Any, NamedTuple, Protocol, TypeAlias

from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.language import query_ast as ast
from yfilter.language.failures import tells_failures
from yfilter.language.function_library import STRING_FUNCTIONS, substring_at
from yfilter.language.functions import ANYTHING, ATOMS, FUNCTIONS, NODES
from yfilter.language.matching_path import matching_part
from yfilter.language.nodes import AnyUri
from yfilter.language.patterns import compile_pattern
from yfilter.language.query_ast import MIRRORED
from yfilter.language.trees import by_identity, changed, split
from yfilter.operators import items, returns
from yfilter.operators import operators as op

# -------------------------------------------------------------------------------------------------
# Literals in conditions: what they ask of a value, or of a position.


_POSITION = ast.FunctionCall("position", ())
_SPACE = re.compile("[ \t\r\n]")


def literals(expression: ast.Expression) -> list[Any] | None:
    """The values of a literal, of a sequence of literals, or of a list of codes in one: declared,
    or ``tokenize`` of a text at white space."""
    while isinstance(expression, ast.UserCall):
        declared = expression.variable_value()
        if declared is None:
            return None
        expression = declared
    match expression:
        case ast.FunctionCall("tokenize", (ast.Literal(str(text)), ast.Literal(r"\s"))):
            return _SPACE.split(text) if text else []
    parts = split(expression, ast.Sequence)
    values = [part.value for part in parts if isinstance(part, ast.Literal)]
    return values if values and len(values) == len(parts) else None


def literal_test(relation: ast.Operator, values: list[Any]) -> op.ValueTest | None:
    """What accepts an untyped value that compares so with some of these; None where pairs of
    values have to be looked at."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return _text_test(relation, texts)
    if texts or len(values) > 1:
        return None
    number = ast.double_of(values[0])
    return None if isnan(number) else op.NumberTest(relation, number)


def _text_test(relation: ast.Operator, texts: list[str]) -> op.ValueTest | None:
    if len(texts) == 1:
        if relation in (ast.Operator.EQ, ast.Operator.NE):
            return op.EqualTo(texts[0], relation is ast.Operator.EQ)
        return op.Ordered(relation, texts[0])
    return op.OneOf(text.encode() for text in texts) if relation is ast.Operator.EQ else None


def position_of(scratch: op.Scratch, predicate: ast.Expression) -> op.Position | None:
    """A predicate of the kinds ``2``, ``last()``, ``last() - 1``, ``position() < 3``."""
    relation, place = ast.Operator.EQ, predicate
    if isinstance(predicate, ast.Comparison):
        relation, left, place = predicate.operator, predicate.left, predicate.right
        if place == _POSITION:
            relation, left, place = MIRRORED[relation], place, left
        if left != _POSITION:
            return None
    match place:
        case ast.Literal(value) if not isinstance(value, str):
            return op.Position(scratch, relation, float(value))
        case ast.FunctionCall("last", ()):
            return op.Position(scratch, relation, 0, from_last=True)
        case ast.Operation("-", (ast.FunctionCall("last", ()), ast.Literal(int(value)))):
            return op.Position(scratch, relation, value, from_last=True)
        case _:
            return None


# -------------------------------------------------------------------------------------------------


_AXES = {
    ast.Axis.SELF: op.SELF,
    ast.Axis.PARENT: op.PARENT,
    ast.Axis.DESCENDANT: op.DESCENDANT,
    ast.Axis.DESCENDANT_OR_SELF: op.DESCENDANT_OR_SELF,
    ast.Axis.ANCESTOR: op.ANCESTOR,
    ast.Axis.ANCESTOR_OR_SELF: op.ANCESTOR_OR_SELF,
    ast.Axis.FOLLOWING_SIBLING: op.FOLLOWING_SIBLING,
    ast.Axis.PRECEDING_SIBLING: op.PRECEDING_SIBLING,
    ast.Axis.FOLLOWING: op.FOLLOWING,
    ast.Axis.PRECEDING: op.PRECEDING,
}
# The axis of a step that names none, and of one behind ``//``.
_SHORT_AXES = {
    ast.NodeKind.SELF: (op.SELF, op.SELF),
    ast.NodeKind.PARENT: (op.PARENT, op.PARENT),
    ast.NodeKind.ATTRIBUTE: (op.ATTRIBUTE, op.ATTRIBUTES_BELOW),
}
_TESTS = {
    ast.NodeKind.ELEMENT: op.ELEMENTS,
    ast.NodeKind.ATTRIBUTE: op.ATTRIBUTES,
    ast.NodeKind.TEXT: op.TEXTS,
    ast.NodeKind.COMMENT: op.COMMENTS,
    ast.NodeKind.PROCESSING_INSTRUCTION: op.INSTRUCTIONS,
    ast.NodeKind.DOCUMENT: op.DOCUMENTS,
}
_ANY_BELOW = op.PathStep(op.DESCENDANT_OR_SELF, op.ANY_KIND)
_TEXT_TESTS: dict[str, Callable[[str], op.ValueTest]] = {
    "contains": op.Contains,
    "starts-with": op.StartsWith,
    "ends-with": op.EndsWith,
}
# Functions that make a text of a text, and of literals.
_SPELLINGS = frozenset(
    (
        *("normalize-space", "lower-case", "upper-case", "translate"),
        *("substring-before", "substring-after", "substring"),
    )
)
# Functions of texts alone, whose arguments are each one text.
_TEXT_FUNCTIONS = frozenset(
    (
        *("contains", "starts-with", "ends-with", "normalize-space", "lower-case", "upper-case"),
        *("translate", "substring-before", "substring-after", "string-length"),
    )
)
_NAME_PARTS: dict[str, Callable[[QualifiedName], str]] = {
    "name": str,
    "local-name": lambda name: name.local,
    "namespace-uri": lambda name: AnyUri(name.namespace),
}
_NODE_TYPES = (ast.NodeKind.ELEMENT, ast.NodeKind.ATTRIBUTE, ast.NodeKind.NODE)
_MANY = 1 << 62
_CALLS_MAX = 256  # of declared functions that are put in the place of their names
# The ``xml:lang`` that is in force at the context node.
_LANG = ast.LocationStep(False, ast.NodeKind.ATTRIBUTE, ast.NameTest(XML_NAMESPACE, "lang"))
_AROUND = ast.LocationStep(
    False,
    ast.NodeKind.ELEMENT,
    ast.ANY_NAME,
    (ast.PathExpression(ast.Origin.CONTEXT, (_LANG,)), ast.Literal(1)),
    ast.Axis.ANCESTOR_OR_SELF,
)
_BELOW = ast.LocationStep(False, ast.NodeKind.NODE, None, (), ast.Axis.DESCENDANT_OR_SELF)
LANGUAGE = ast.PathExpression(ast.Origin.CONTEXT, (_AROUND, _LANG))
_MAKERS = ast.Constructor | ast.Computed | ast.Markup | ast.Transform | ast.Part
# What is looked up by its nodes, and what is not worth it, or new each time.
_KEPT_OTHERWISE = (ast.PathExpression, ast.Mapped, ast.SimpleMap, ast.Literal, *_MAKERS.__args__)
_ARITHMETIC = frozenset(("+", "-", "*", "div", "idiv", "mod"))
_AGGREGATES = frozenset(("sum", "min", "max", "avg"))

_FAR_AXES = frozenset(_AXES) - {ast.Axis.SELF, ast.Axis.PARENT}

# What names are bound to; ``.`` is the context, where that is no node of the message for sure.
Bound: TypeAlias = Any  # an operators.Variable, ItemVariable or NodesVariable
Scope: TypeAlias = Mapping[str, Bound]
_NOTHING: Scope = {}


class Returned(NamedTuple):
    """A profile as its results are made; ``binds``: of bindings of its first ``for`` clause, on
    which ``where`` is not asked again, if it holds for all of them."""

    profile: ast.Profile
    binds: bool


class About(NamedTuple):
    """A dear expression about one node, which many profiles may have: the context node, or that of
    a variable.  ``is_part``: it is a part of a constructor, about the element of the binding, and
    its text is kept instead of its values."""

    expression: ast.Expression
    variable: str
    is_part: bool = False


_RETURNED_MAX = 4_096
_ANYWHERE = ast.PathExpression(
    ast.Origin.MESSAGE, (ast.LocationStep(True, ast.NodeKind.ELEMENT, ast.ANY_NAME),)
)
_BINDINGS = "bindings of the first clause"  # a variable


@lru_cache(maxsize=_RETURNED_MAX)
def returned(profile: ast.Profile) -> Returned:
    """What is left of a profile when ``MatchingPart.bound`` is known: equal for profiles with the
    same results of their bindings."""
    part = matching_part(profile)
    flwor = profile.flwor
    if flwor is None or not part.bound:
        return Returned(profile, False)
    first, *others = flwor.clauses
    assert isinstance(first, ast.ForClause)
    where = None if part.where_holds else flwor.where
    clauses = (replace(first, path=_ANYWHERE), *others)
    return Returned(_with_flwor(profile, replace(flwor, clauses=clauses, where=where)), True)


def _with_flwor(profile: ast.Profile, flwor: ast.Flwor) -> ast.Profile:
    body = profile.body
    if not isinstance(body, ast.Constructor):
        return ast.Profile(flwor, profile.text)
    content = tuple(flwor if part is profile.flwor else part for part in body.content)
    return ast.Profile(replace(body, content=content), profile.text)


class Holder(Protocol):
    """Who holds symbols, attributes and shared operators for what is compiled."""

    scratch: op.Scratch

    def symbol(self, test: ast.NameTest) -> int: ...
    def shared(self, expression: ast.Expression | About) -> op.Operator: ...


class NotCompiled(Exception):
    """It is no path on the columns of the message."""


class Compiler:
    """``operator`` of an expression, whose names ``holder`` keeps.

    ``strict``: all errors are raised, as within ``try``; nothing is shared then."""

    def __init__(self, holder: Holder, *, strict: bool = False) -> None:
        self._holder = holder
        self._scratch = holder.scratch
        self._strict = strict
        self.nowhere = items.NoContext(self._scratch)  # the context where there is none at all
        self._is_apart = False  # within ``_apart``
        self._is_within = False  # a function, which may call itself
        self._calls = 0
        self._depth = items.Depth()
        self._cells: list[Bound] = []  # the variables of the function that is compiled
        # The paths from the message that ``let`` binds variables to, by the variables' identity.
        self._lets: dict[int, ast.PathExpression] = {}
        self._functions: dict[object, tuple[object, items.Function]] = {}
        # Paths that were tried before, by their identity and that of the scope.
        self._paths: dict[tuple[int, int, bool], tuple[object, object, op.Path | None]] = {}

    def operator(self, expression: ast.Expression, scope: Scope = _NOTHING) -> op.Operator:
        """An expression whose variables are in scope."""
        return _COMPILED[type(expression)](self, expression, scope)

    def once(self, expression: ast.Expression | Returned | About) -> op.Operator:
        """An expression without free variables, made for all who ask for it."""
        if isinstance(expression, Returned):
            return self._result(*expression)
        if isinstance(expression, About):
            return self._about(*expression)
        operator = self.operator(expression)
        if _is_shared(expression):
            return op.OncePerMessage(operator)
        if _is_aggregate(expression):  # each number that it is compared with asks for it
            return op.Remembered(self._scratch, operator, users=2)
        return operator

    def _about(self, expression: ast.Expression, variable: str, is_part: bool) -> op.Operator:
        if is_part:
            scope = {variable: self._scratch.binding}
            return returns.BindingPart(self._scratch, self.operator(expression, scope))
        if not variable:
            return op.Remembered(self._scratch, self.operator(expression))
        node = self._variable()
        return op.Remembered(self._scratch, self.operator(expression, {variable: node}), node)

    def _part(self, expression: ast.Expression, scope: Scope) -> op.Operator:
        """As ``operator``, shared where it depends on the message alone."""
        if self._calls_back(expression):
            return self.operator(expression, scope)
        if (
            self._is_shared(expression) and not isinstance(expression, ast.Literal | ast.Sequence)
        ) or (not self._strict and _is_aggregate(expression) and "." not in scope):
            return self._holder.shared(expression)
        if self._strict or not _is_dear(expression):
            return self.operator(expression, scope)
        variables, uses_context = expression.free_variables(), expression.uses_context()
        if uses_context and not variables and "." not in scope:
            return self._holder.shared(About(expression, ""))
        if len(variables) == 1 and not uses_context:
            (name,) = variables
            if isinstance(scope[name], op.Variable):
                return op.AtNode(scope[name], self._holder.shared(About(expression, name)))
        return self.operator(expression, scope)

    def _is_shared(self, expression: ast.Expression) -> bool:
        """Whether all who ask for it are to have one value; within ``try`` only a declared variable
        is, whose nodes are the same each time."""
        is_variable = isinstance(expression, ast.UserCall) and expression.is_variable
        is_apart = not (self._strict or self._calls_back(expression))
        return (is_variable or is_apart) and _is_shared(expression)

    def _calls_back(self, expression: ast.Expression) -> bool:
        """Whether it may call the function that is being compiled.  A shared operator has a
        compiler of its own, which would compile that function again, and so on."""
        waiting = [expression] if self._is_within else []
        while waiting:
            part = waiting.pop()
            if not isinstance(part, ast.UserCall):
                waiting += (*part.same_focus(), *part.new_focus())
            elif not part.is_variable:
                return True
        return False

    def _variable(self) -> op.Variable:
        self._cells.append(op.Variable())
        return self._cells[-1]

    def _items(self) -> op.ItemVariable:
        self._cells.append(op.ItemVariable(self._scratch))
        return self._cells[-1]

    def _nodes_variable(self) -> op.NodesVariable:
        self._cells.append(op.NodesVariable(self._scratch))
        return self._cells[-1]

    def _tried(self, operator: op.Operator) -> op.Operator:
        """A tuple that raises an error gives nothing."""
        return operator if self._strict else op.Tried(operator)

    def _conditions(self, parts: tuple[ast.Expression, ...], scope: Scope) -> list[op.Operator]:
        return [self._part(part, scope) for part in parts]

    # -- paths

    def path(self, expression: ast.Expression, scope: Scope) -> op.Path:
        """A location path, or nodes that are combined; NotCompiled where these are items that no
        step has found."""
        key = id(expression), id(scope), self._is_apart
        if key not in self._paths:
            try:
                found = self._new_path(expression, scope)
            except NotCompiled:
                found = None
            self._paths[key] = expression, scope, found
        path = self._paths[key][2]
        if path is None:
            raise NotCompiled
        return path

    def _new_path(self, expression: ast.Expression, scope: Scope) -> op.Path:
        if not isinstance(expression, ast.PathExpression):
            return op.Path(self._scratch, [], op.FROM_NODES, None, self._nodes(expression, scope))
        origin, variable, source = op.FROM_CONTEXT, None, None
        steps = expression.steps
        given: op.Operator | None = None  # items, of which only a step makes nodes
        here = scope.get(".")
        if expression.origin is ast.Origin.MESSAGE:
            origin = op.FROM_MESSAGE
            if here is self.nowhere and self._strict:
                raise NotCompiled
            if self._strict and (isinstance(here, op.ItemVariable) or self._is_apart):
                origin, source = op.FROM_NODES, op.RootHere(self._scratch, *filter(None, (here,)))
        elif expression.origin is ast.Origin.VARIABLE:
            bound = scope.get(expression.variable)
            said = self._lets.get(id(bound))
            if said is not None and (joined := _filtered(said, steps)) is not None:
                return self.path(joined, scope)
            if isinstance(bound, op.NodesVariable):
                origin, source = op.FROM_NODES, bound
            elif isinstance(bound, op.Variable):
                origin, variable = op.FROM_VARIABLE, bound
            else:
                given = bound
        elif expression.start is not None:
            origin = op.FROM_NODES
            try:
                source = self._given(expression.start, scope)
            except NotCompiled:
                if len(steps) == (bool(steps) and steps[0].is_self):
                    raise
                given = self._part(expression.start, scope)
        else:
            given = here
        if given is None:
            return self._path_from(origin, variable, source, steps, scope)
        is_filtered = bool(steps) and steps[0].is_self
        if len(steps) == is_filtered or isinstance(given, items.NoContext):
            raise NotCompiled
        if is_filtered:
            given, steps = self._filtered(given, steps[0], scope), steps[1:]
        is_of_context = expression.origin is ast.Origin.CONTEXT
        nodes = op.NodesOf(self._scratch, given, "XPTY0020" if is_of_context else "XPTY0019")
        with self._apart():
            return self._path_from(op.FROM_NODES, None, nodes, steps, scope)

    def _path_from(
        self,
        origin: int,
        variable: op.Variable | None,
        source: op.Nodes | None,
        steps: tuple[ast.LocationStep, ...],
        scope: Scope,
    ) -> op.Path:
        scope = _at_node(scope)
        if source is not None and steps and steps[0].is_self:
            parts = tuple(self._predicate(part, scope) for part in steps[0].predicates)
            source, steps = op.Selected(source, parts), steps[1:]
        rows = [row for step in steps for row in self._steps(step, scope)]
        return op.Path(self._scratch, rows, origin, variable, source)

    def _nodes(self, expression: ast.Expression, scope: Scope) -> op.Nodes:
        """A path, or paths combined or begun anew at each node; NotCompiled."""
        match expression:
            case ast.Operation("|" | "intersect" | "except" as name, operands):
                parts = [self._as_nodes(operand, scope) for operand in operands]
                return op.Combined(self._scratch, name, parts)
            case ast.Sequence(operands):
                parts = [self._given(operand, scope) for operand in operands]
                return op.Combined(self._scratch, ",", parts)
            case ast.Mapped(ast.PathExpression() as left, ast.Operation("|", operands)) if (
                paths := _distributed(left, operands)
            ):
                return op.Combined(self._scratch, "|", [self._given(each, scope) for each in paths])
            case ast.Mapped(left, right) if not right.uses_position():
                with self._apart():
                    of_each = self._nodes(right, _at_node(scope))
                return op.Each(self._as_nodes(left, scope), of_each)
            case ast.FunctionCall("root", arguments):
                (argument,) = arguments or (ast.DOT,)
                return op.RootOf(self._scratch, self._nodes(argument, scope))
            case ast.UserCall() if self._is_shared(expression):
                once = self._holder.shared(expression)
                if isinstance(once, op.OncePerMessage) and isinstance(once.operand, op.Nodes):
                    return once.operand
                raise NotCompiled
            case ast.UserCall():
                called = self._inlined(expression, scope)
                if not isinstance(called, op.Nodes):
                    raise NotCompiled
                return called
            case ast.FunctionCall("zero-or-one", (checked,)):
                return op.AtMostOne(self._nodes(checked, scope))
            case ast.PathExpression():
                return self.path(expression, scope)
            case _:
                raise NotCompiled

    def _given(self, expression: ast.Expression, scope: Scope) -> op.Nodes:
        """``_nodes``; those that depend on the message alone are found once for all who ask."""
        if expression.stands_alone() and not (self._strict or self._calls_back(expression)):
            once = self._holder.shared(expression)
            if isinstance(once, op.OncePerMessage) and isinstance(once.operand, op.Path):
                return once.operand
        return self._nodes(expression, scope)

    def _as_nodes(self, expression: ast.Expression, scope: Scope) -> op.Nodes:
        """An expression whose items have to be nodes."""
        try:
            return self._given(expression, scope)
        except NotCompiled:
            return op.NodesOf(self._scratch, self._part(expression, scope))

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """The context of what is compiled may be in a constructed tree."""
        outer, self._is_apart = self._is_apart, True
        try:
            yield
        finally:
            self._is_apart = outer

    def _steps(self, step: ast.LocationStep, scope: Scope) -> list[op.PathStep]:
        """A step, behind that which ``//`` stands for where positions count."""
        predicates = [self._predicate(predicate, scope) for predicate in step.predicates]
        positional = step.is_positional
        is_below = step.descendant and not positional
        if step.axis is not None:
            axis = _AXES[step.axis]
        else:
            axis = _SHORT_AXES.get(step.kind, (op.CHILD, op.DESCENDANT))[is_below]
        name = 0
        if step.kind is ast.NodeKind.PROCESSING_INSTRUCTION and step.test is not None:
            predicates.insert(0, op.Targets(self._scratch, step.test.local))
        elif step.test is not None and step.test != ast.ANY_NAME:
            name = self._holder.symbol(step.test)
        test = _TESTS.get(step.kind, op.ANY_KIND)
        last = op.PathStep(axis, test, name, tuple(predicates), positional)
        return [_ANY_BELOW, last] if step.descendant and positional else [last]

    def _predicate(self, predicate: ast.Expression, scope: Scope) -> op.Operator:
        placed = position_of(self._scratch, predicate)
        if placed is not None:
            return placed
        condition = self._part(predicate, scope)
        may_be_number = "." in scope or predicate.may_be_number()
        return op.Numbered(self._scratch, condition) if may_be_number else condition

    def _path_operator(self, expression: ast.PathExpression, scope: Scope) -> op.Operator:
        try:
            return self.path(expression, scope)
        except NotCompiled:
            pass
        if expression.origin is ast.Origin.VARIABLE:
            source = scope[expression.variable]
        elif expression.start is not None:
            source = self._part(expression.start, scope)
        else:
            source = scope["."]
        if not expression.steps or isinstance(source, items.NoContext):
            return source
        return self._filtered(source, expression.steps[0], scope)

    def _filtered(self, source: op.Operator, step: ast.LocationStep, scope: Scope) -> op.Operator:
        """``(items)[predicate]…``."""
        for predicate in step.predicates:
            context = self._items() if predicate.asks_item() else None
            inner = _at_node(scope) if context is None else {**scope, ".": context}
            condition = self._predicate(predicate, inner)
            is_fixed = context is None and not predicate.uses_position()
            source = op.Filtered(self._scratch, source, condition, is_fixed, context)
        return source

    def _simple_map(self, expression: ast.SimpleMap, scope: Scope) -> op.Operator:
        left, right = expression.left, expression.right
        if (
            left == ast.MESSAGE
            and isinstance(right, ast.PathExpression)
            and right.origin is ast.Origin.CONTEXT
        ):
            return self.operator(replace(right, origin=ast.Origin.MESSAGE), scope)
        return self._for_each(left, right, scope, is_path=False)

    def _mapped(self, expression: ast.Mapped, scope: Scope) -> op.Operator:
        of_any_kind = dict.fromkeys(scope, ANYTHING)
        found = expression.right.kinds(of_any_kind, NODES)
        try:
            if not found & ATOMS:
                return self.path(expression, scope)
        except NotCompiled:
            pass
        return self._for_each(expression.left, expression.right, scope, is_path=bool(found & NODES))

    def _for_each(
        self, left: ast.Expression, right: ast.Expression, scope: Scope, *, is_path: bool
    ) -> op.Operator:
        try:
            if not (is_path or right.uses_position()):
                nodes = self._nodes(left, scope)
                with self._apart():
                    return op.ForEachNode(nodes, self.operator(right, _at_node(scope)))
        except NotCompiled:
            pass
        context = self._items()
        source = self._as_nodes(left, scope) if is_path else self._part(left, scope)
        made = self.operator(right, {**scope, ".": context})
        return op.EachItem(self._scratch, context, source, made, is_path)

    # -- conditions

    def _comparison(self, expression: ast.Comparison, scope: Scope) -> op.Operator:
        left, relation, right = expression.left, expression.operator, expression.right
        if literals(left) is not None:
            left, relation, right = right, MIRRORED[relation], left
        values = literals(right)
        call = left if isinstance(left, ast.FunctionCall) else None
        try:
            if values is not None and call is not None and call.name == "count":
                (number,) = values
                if isinstance(number, str):
                    raise NotCompiled
                return op.CountIs(self.path(call.arguments[0], scope), relation, float(number))
            if values is not None:
                if not self._strict and (found := self._compared(left, relation, values, scope)):
                    return found
            elif isinstance(right, ast.FunctionCall) and right.name in ("true", "false"):
                if not self._strict and relation in (ast.Operator.EQ, ast.Operator.NE):
                    wanted = (right.name == "true") == (relation is ast.Operator.EQ)
                    return op.SomeValue(self.path(left, scope), op.TrueOrFalse(wanted))
            elif relation is ast.Operator.EQ and (parts := _of_union(left, right)):
                return op.Both(self._scratch, self._conditions(parts, scope), some=True)
            else:
                return op.PathJoin(self.path(left, scope), relation, self.path(right, scope))
        except (NotCompiled, ValueError):
            pass
        return op.ItemComparison(
            self._scratch, self._part(left, scope), relation, self._part(right, scope)
        )

    def _compared(
        self, left: ast.Expression, relation: ast.Operator, values: list[Any], scope: Scope
    ) -> op.Operator | None:
        """Some value of ``left`` compares so with literals; NotCompiled."""
        test = literal_test(relation, values)
        if test is None or isinstance(left, ast.PathExpression):
            return test and op.SomeValue(self.path(left, scope), test)
        if isinstance(left, ast.Mapped):
            if not _is_text(left.right) or left.right.uses_position():
                return None
            nodes = self._nodes(left.left, scope)
            return op.SomeNode(nodes, self._text_condition(left.right, test, _at_node(scope)))
        if isinstance(left, ast.FunctionCall) and left.name == "string-length":
            (number,) = values
            if isinstance(number, str):
                return None
            length = op.LengthTest(relation, float(number))
            return self._text_condition(
                left.arguments[0] if left.arguments else ast.DOT, length, scope
            )
        if all(isinstance(value, str) for value in values) and _is_text(left):
            return self._text_condition(left, test, scope)
        return op.SomeValue(self.path(left, scope), test)

    def _text_condition(
        self, text: ast.Expression, test: op.ValueTest, scope: Scope
    ) -> op.Operator:
        """A test of a text of the first node of a path; NotCompiled."""
        functions: list[Callable[[str], str]] = []
        while isinstance(text, ast.FunctionCall) and text.name in _SPELLINGS:
            first, *rest = text.arguments or (ast.DOT,)
            places = [one.value for one in rest if isinstance(one, ast.Literal)]
            if len(places) < len(rest):
                raise NotCompiled
            functions.insert(0, _spelling(text.name, places))
            text = first
        if functions:
            test = op.Spelled(functions, test)
        match text:
            case ast.FunctionCall("name" | "local-name" | "namespace-uri" as name, arguments):
                path = self.path(arguments[0] if arguments else ast.DOT, scope)
                return op.NamedSo(op.NameOf(path, _NAME_PARTS[name]), test)
            case ast.FunctionCall("string", arguments):
                text = arguments[0] if arguments else ast.DOT
        return op.FirstValue(self.path(text, scope), test)

    def _junction(self, expression: ast.And | ast.Or, scope: Scope) -> op.Operator:
        parts = self._conditions(expression.parts, scope)
        return op.Both(self._scratch, parts, isinstance(expression, ast.Or))

    def _quantified(self, expression: ast.Quantified, scope: Scope) -> op.Operator:
        (name, source), *others = expression.bindings
        asked = expression if self._strict else expression.as_condition()
        if asked is not expression:
            compiled = self.operator(asked, scope)
            return (
                compiled
                if isinstance(asked, ast.Comparison)
                else op.Not(self._scratch, op.Not(self._scratch, compiled))
            )
        rest: ast.Expression = expression.condition
        if others:
            rest = ast.Quantified(expression.every, tuple(others), expression.condition)
        if source == ast.DOT and name not in rest.free_variables():
            inner = self._part(rest, scope)
            return (
                op.Not(self._scratch, op.Not(self._scratch, inner))
                if self._strict
                else op.Guarded(self._scratch, inner)
            )
        outer = op.Variable()
        around = scope if "." in scope else {**scope, f".{name}": outer}
        try:
            looked_up = source
            if not (self._strict or expression.every or isinstance(rest, ast.Quantified)):
                looked_up = _looked_up(name, source, split(rest, ast.And), around)
            nodes: op.Operator = self.path(looked_up, around)
            variable: Bound = self._variable()
        except NotCompiled:
            variable = self._items()
            nodes = self._part(source, scope)
        inner = self._part(rest, {**scope, name: variable})
        return op.Ranging(self._scratch, variable, nodes, inner, outer, expression.every)

    def _conditional(self, expression: ast.Conditional, scope: Scope) -> op.Operator:
        parts = (expression.condition, expression.consequence, expression.alternative)
        return op.Chosen(*self._conditions(parts, scope))

    def _flwor(self, expression: ast.Flwor, scope: Scope) -> op.Operator:
        sorted_tuples: list[tuple[op.Gathered, Scope]] = []

        def returned(inner: Scope) -> op.Operator:
            return self._tried(self._part(expression.result, inner))

        def gathered(inner: Scope) -> op.Operator:
            keys = [self._part(key.key, inner) for key in expression.order]
            variables = _bound_between(scope, inner).values()
            end = op.Gathered(self._scratch, list(variables), keys)
            sorted_tuples.append((end, inner))
            return end

        end = gathered if expression.order else returned
        clauses = _with_where(expression.clauses, expression.where)
        if expression.group is None:
            tuples = self._tuples(clauses, scope, end)
        else:
            tuples = self._grouped(clauses, expression.group, scope, end)
        if not expression.order:
            return tuples
        ((last, inner),) = sorted_tuples
        orders = [(key.descending, key.empty_greatest) for key in expression.order]
        return op.OrderBy(self._scratch, tuples, last, returned(inner), orders)

    def _grouped(
        self,
        clauses: tuple[ast.Clause, ...],
        group: ast.Grouping,
        scope: Scope,
        end: Callable[[Scope], op.Operator],
    ) -> op.Operator:
        """Groups of the tuples of clauses, with the clauses behind and ``end``."""
        grouped: dict[str, Any] = {name: self._items() for name, _ in group.keys}
        ends: list[op.Gathered] = []
        variables: list[Any] = []  # of a group, with all the items

        def gathered(inner: Scope) -> op.Operator:
            keys = []
            given = dict(inner)
            for name, value in group.keys:
                keys.append(self._part(ast.variable(name) if value is None else value, given))
                given[name] = grouped[name]
            bound = _bound_between(scope, inner)
            others = [name for name in bound if name not in grouped]
            names = list(grouped.values())
            ends.append(op.Gathered(self._scratch, [bound[one] for one in others], keys, names))
            for name in others:
                is_items = isinstance(bound[name], op.ItemVariable)
                grouped[name] = self._items() if is_items else self._nodes_variable()
                variables.append(grouped[name])
            return ends[0]

        source = self._tuples(clauses, scope, gathered)
        behind = {**scope, **grouped}
        rest = self._tuples(_with_where(group.clauses, group.where), behind, end)
        return op.GroupBy(self._scratch, source, ends[0], rest, variables)

    def _tuples(
        self, clauses: tuple[ast.Clause, ...], scope: Scope, end: Callable[[Scope], op.Operator]
    ) -> op.Operator:
        """What ``end`` makes of the tuples of clauses; one that raises an error gives nothing."""
        if not clauses:
            return end(scope)
        clause, *others = clauses
        if isinstance(clause, ast.WhereClause):
            rest = self._tuples(tuple(others), scope, end)
            condition = self._part(clause.condition, scope)
            return self._tried(op.Chosen(condition, rest, op.Constant(self._scratch, [])))
        is_let = isinstance(clause, ast.LetClause)
        value = clause.value if isinstance(clause, ast.LetClause) else clause.path
        if isinstance(clause, ast.ForClause) and not (clause.position or self._strict):
            parts = _conditions_on(clause.variable, others, scope)
            ranged = self._from_message(value, scope)
            if (found := _looked_up(clause.variable, ranged, parts, scope)) is not ranged:
                value = found
        source, variable = self._bound(value, None, scope, is_let=is_let)
        inner = {**scope, clause.variable: variable}
        if isinstance(clause, ast.LetClause):
            said = self._from_message(value, scope)
            if isinstance(said, ast.PathExpression) and said.origin is ast.Origin.MESSAGE:
                self._lets[id(variable)] = said
            rest = self._tuples(tuple(others), inner, end)
            return self._tried(op.Let(self._scratch, variable, source, rest))
        place = self._items() if clause.position else None
        if place is not None:
            inner[clause.position] = place
        rest = self._tuples(tuple(others), inner, end)
        return self._tried(op.Binding(self._scratch, variable, source, rest, place))

    def _from_message(self, path: ast.Expression, scope: Scope) -> ast.Expression:
        """``$v/…`` as the path from the message that it is where ``let`` binds ``$v`` to one."""
        if not isinstance(path, ast.PathExpression) or path.origin is not ast.Origin.VARIABLE:
            return path
        said = self._lets.get(id(scope.get(path.variable)))
        is_filtered = bool(path.steps) and path.steps[0].is_self
        if said is None or is_filtered or said.free_variables():
            return path
        return replace(said, steps=(*said.steps, *path.steps))

    def _bound(
        self,
        value: ast.Expression,
        type_: ast.SequenceType | None,
        scope: Scope,
        *,
        is_let: bool = True,
    ) -> tuple[op.Operator, op.Variable | op.ItemVariable | op.NodesVariable]:
        """A value as a declared type has it, and the variable that it is bound to."""
        source: op.Operator
        try:
            source = self.path(value, scope)
        except NotCompiled:
            source = self._part(value, scope)
        source = self._declared(source, type_)
        if not isinstance(source, op.Nodes):
            return source, self._items()
        return source, self._nodes_variable() if is_let else self._variable()

    def _declared(self, operator: op.Operator, type_: ast.SequenceType | None) -> op.Operator:
        """An argument or a result as its type says."""
        if type_ is None or (isinstance(operator, op.Condition) and type_.name == "xs:boolean"):
            return operator
        is_of_any_name = type_.test in (None, ast.ANY_NAME)
        is_node_type = type_.kind in _NODE_TYPES and is_of_any_name
        if not isinstance(operator, op.Nodes) or not is_node_type:
            return op.Declared(operator, type_)
        kinds = (type_.kind is kind for kind in _NODE_TYPES[:2])
        least, most = type_.occurrence in ("", "+"), 1 if type_.occurrence in ("", "?") else _MANY
        return op.OfKind(operator, *kinds, least, most)

    def _user_call(self, call: ast.UserCall, scope: Scope) -> op.Operator:
        """A declared function or variable in the place of its name; one that calls itself, or is
        called by very many, is called."""
        try:
            return self._inlined(call, scope)
        except NotCompiled:
            pass
        key = call.name, len(call.arguments), id(call.library), self._strict
        arguments = self._conditions(call.arguments, scope)
        if key not in self._functions:
            declared = _declaration(call)
            outer, self._cells = self._cells, []
            was_within, self._is_within = self._is_within, True
            parameters = [self._items() for _ in declared.parameters]
            body = changed(declared.body, lambda part: _with_library(part, call.library))
            function = items.Function(declared, parameters, _height(body))
            self._functions[key] = call.library, function
            names = [name for name, _ in declared.parameters]
            bound = dict(zip(names, parameters, strict=True))
            function.body = self.operator(body, {".": self._no_context(), **bound})
            function.cells, self._cells = self._cells, outer
            self._is_within = was_within
        return items.Called(self._scratch, self._depth, self._functions[key][1], arguments)

    def _inlined(self, call: ast.UserCall, scope: Scope) -> op.Operator:
        declared = _declaration(call)
        self._calls += 1
        if self._calls > _CALLS_MAX or _recursive(call.library):
            raise NotCompiled
        body = changed(declared.body, lambda part: _with_library(part, call.library))
        parameters = []
        inner: dict[str, Any] = {".": self._no_context()}
        for (name, type_), argument in zip(declared.parameters, call.arguments, strict=True):
            source, inner[name] = self._bound(argument, type_, scope)
            parameters.append((inner[name], source))
        is_of_variable = isinstance(body, ast.UserCall) and body.is_variable
        made = self._part(body, inner) if is_of_variable else self.operator(body, inner)
        operator = self._declared(made, declared.result)
        for variable, source in reversed(parameters):
            binding = op.Let(self._scratch, variable, source, operator)
            operator = (
                op.LetNodes(self._scratch, binding) if isinstance(operator, op.Nodes) else binding
            )
        return operator

    def _no_context(self) -> items.NoContext:
        return items.NoContext(self._scratch)

    # -- functions and operators

    def _call(self, expression: ast.FunctionCall, scope: Scope) -> op.Operator:
        name, arguments = expression.name, expression.arguments
        if name in ("position", "last"):
            is_absent = isinstance(scope.get("."), items.NoContext)
            return self._no_context() if is_absent else op.Place(self._scratch, name == "last")
        if not arguments and name in FUNCTIONS and FUNCTIONS[name].context:
            arguments = (ast.DOT,)
        match name, arguments:
            case "true" | "false", ():
                return op.Constant(self._scratch, [name == "true"])
            case "not" | "empty" | "boolean" | "exists", (operand,):
                return self._truth(name, operand, scope)
        made = op.ToDecimal if name == "xs:decimal" else op.Call
        if self._strict:
            operators = [self.operator(argument, scope) for argument in arguments]
            return made(self._scratch, name, operators, strict=True)
        try:
            return self._call_on_columns(expression, arguments, scope)
        except NotCompiled:
            pass
        operators = [self._part(argument, scope) for argument in arguments]
        if name in _TEXT_FUNCTIONS:
            return op.TextCall(self._scratch, STRING_FUNCTIONS[name], operators)
        if name in ("concat", "string"):
            return op.Concatenated(self._scratch, str, operators)
        places = [one.value for one in arguments[1:] if isinstance(one, ast.Literal)]
        if name == "substring" and len(places) == len(arguments) - 1:
            return op.TextCall(self._scratch, substring_at(*places), operators[:1])
        if name in op.NUMBER_CALLS:
            return op.NumberCall(self._scratch, name, operators)
        return made(self._scratch, name, operators)

    def _call_on_columns(
        self, expression: ast.FunctionCall, arguments: tuple[ast.Expression, ...], scope: Scope
    ) -> op.Operator:
        """A function of nodes of the message that needs no objects; NotCompiled."""
        name = expression.name
        if name == "lang" and isinstance(arguments[0], ast.Literal) and arguments[1] == ast.DOT:
            test = op.LanguageIs(str(arguments[0].value))
            return op.SomeValue(self.path(LANGUAGE, scope), test)
        match name, arguments:
            case "name" | "local-name" | "namespace-uri", (ast.PathExpression() as named,):
                return op.NameOf(self.path(named, scope), _NAME_PARTS[name])
            case "zero-or-one", (ast.PathExpression(),):
                return self.path(expression, scope)
            case "root", _:
                return self.path(expression, scope)
            case _ if (found := expression.word_condition()) is not None:
                has_words = op.HasWords(*found[1:])
                try:
                    return op.SomeValue(self.path(found.source, scope), has_words)
                except NotCompiled:
                    operand = self._part(found.source, scope)
                    return op.SomeString(operand, has_words)
        if name == "count":
            return op.CountOf(self.path(arguments[0], scope))
        if (tested := _tested(name, arguments)) is not None:
            return self._text_condition(*tested, scope)
        raise NotCompiled

    def _truth(self, name: str, operand: ast.Expression, scope: Scope) -> op.Operator:
        inner = self._is_any_text(operand, scope) if name in ("not", "boolean") else None
        if inner is None:
            inner = self._part(operand, scope)
        asked = inner.operand if isinstance(inner, op.OncePerMessage) else inner
        if name in ("exists", "empty") and not isinstance(asked, op.Nodes):
            inner = op.Exists(self._scratch, inner)
        if name in ("not", "empty"):
            return op.Not(self._scratch, inner)
        return op.Not(self._scratch, op.Not(self._scratch, inner))

    def _is_any_text(self, text: ast.Expression, scope: Scope) -> op.Operator | None:
        """Whether a text that a function makes has any characters; None for others."""
        if self._strict or not _is_text(text):
            return None
        try:
            return self._text_condition(text, op.LengthTest(ast.Operator.GT, 0), scope)
        except NotCompiled:
            return None

    def _operation(self, expression: ast.Operation, scope: Scope) -> op.Operator:
        try:
            return self._operation_on_columns(expression, scope)
        except NotCompiled:
            pass
        name, operands = expression.name, self._conditions(expression.operands, scope)
        if name in ast.VALUE_COMPARISONS:
            return op.ValueComparison(operands[0], ast.VALUE_COMPARISONS[name], operands[1])
        if name in _ARITHMETIC:
            return op.Arithmetic(name, *operands)
        if name == "negate":
            return op.Negated(*operands)
        return op.Range(self._scratch, *operands)

    def _operation_on_columns(self, expression: ast.Operation, scope: Scope) -> op.Operator:
        """An operation on nodes of the message that needs no objects; NotCompiled."""
        name, operands = expression.name, expression.operands
        match name, operands:
            case _, (compared, _) if name in ast.VALUE_COMPARISONS:
                values = literals(operands[1])
                if values is not None and len(values) == 1 and isinstance(values[0], str):
                    test = literal_test(ast.VALUE_COMPARISONS[name], values)
                    if test is not None and isinstance(compared, ast.PathExpression):
                        return op.OnlyValue(self.path(compared, scope), test)
                    if test is not None and _is_text(compared) and not self._strict:
                        return self._text_condition(compared, test, scope)
            case "|" | "intersect" | "except", _:
                return self.path(expression, scope)
            case "to", (ast.Literal(1), ast.FunctionCall("count", (counted,))):
                return op.Places(self._scratch, self.path(counted, scope))
            case "is" | "<<" | ">>", (one, other):
                return op.NodeComparison(
                    name, self._as_nodes(one, scope), self._as_nodes(other, scope)
                )
        raise NotCompiled

    def _cast(self, expression: ast.Cast, scope: Scope) -> op.Operator:
        operand = self._part(expression.operand, scope)
        made = op.Castable if expression.castable else op.CastTo
        return made(expression.type, expression.optional, operand)

    # -- items of any kind

    def _typed(self, expression: ast.Typed, scope: Scope) -> op.Operator:
        operand = self._part(expression.operand, scope)
        if expression.treat:
            return items.Treated(self._scratch, operand, expression)
        return op.OfType(operand, expression.type)

    def _typeswitch(self, expression: ast.Typeswitch, scope: Scope) -> op.Operator:
        cases = []
        for case in expression.cases:
            variable = self._items()
            inner = {**scope, case.variable: variable} if case.variable else scope
            cases.append(items.Case(case.types, variable, self._part(case.result, inner)))
        return items.Typeswitch(self._scratch, self._part(expression.operand, scope), cases)

    def _try_catch(self, expression: ast.TryCatch, scope: Scope) -> op.Operator:
        outer, self._strict = self._strict, True
        outer_paths, self._paths = self._paths, {}
        try:
            body = self.operator(expression.body, scope)
        finally:
            self._strict, self._paths = outer, outer_paths
        variables = [self._items() for _ in ast.ERROR_VARIABLES]
        inner = {**scope, **dict(zip(ast.ERROR_VARIABLES, variables, strict=True))}
        clauses = [(each.names, self._part(each.result, inner)) for each in expression.clauses]
        return items.TryCatch(self._scratch, body, clauses, variables)

    def _piece(self, expression: ast.Part, scope: Scope) -> op.Operator:
        element = scope[expression.variable]
        made = self.operator(expression.expression, {ast.PART_VARIABLE: element})
        return returns.PartOf(element, expression.digest, made)

    def _transform(self, expression: ast.Transform, scope: Scope) -> op.Operator:
        copies = []
        for copy in expression.copies:
            source, variable = self._part(copy.value, scope), self._items()
            copies.append((variable, source))
            scope = {**scope, copy.variable: variable}
        changes = self._part(expression.changes, scope)
        return items.Transform(self._scratch, copies, changes, self._part(expression.result, scope))

    def _update(self, expression: ast.Update, scope: Scope) -> op.Operator:
        source = expression.source
        if isinstance(source, ast.Expression):
            source = self._part(source, scope)
        target = self._part(expression.target, scope)
        return items.Update(self._scratch, expression.kind, target, source)

    def _sequence(self, expression: ast.Literal | ast.Sequence, scope: Scope) -> op.Operator:
        values = literals(expression)
        if values is not None or isinstance(expression, ast.Literal):
            return op.Constant(self._scratch, values)
        return op.Joined(self._scratch, *self._conditions(expression.parts, scope))

    # -- constructors and results

    def _element(
        self, expression: ast.Constructor, scope: Scope, *, encloses: bool = False
    ) -> returns.ElementOf:
        """``encloses``: what its decisive parts yield decides whether it is a result."""
        decisive = list(map(id, expression.decisive_parts())) if encloses else []
        parts: dict[int, op.Operator] = {}

        def compiled(part: str | ast.Expression) -> str | op.Operator:
            if isinstance(part, str):
                return part
            operator = self._constructed_part(part, scope)
            parts[id(part)] = operator
            if isinstance(operator, returns.ElementOf) and isinstance(part, ast.Constructor):
                parts.update(operator.operand.parts)  # it is written with this one
            return returns.Decisive(self._scratch, operator) if id(part) in decisive else operator

        values = [[compiled(part) for part in value] for _, value in expression.attributes]
        content = [compiled(part) for part in expression.content]
        made = items.Constructed(self._scratch, self._depth, expression, parts)
        attributes = [
            returns.AttributeOf(name, value, made)
            for (name, _), value in zip(expression.attributes, values, strict=True)
        ]
        return returns.ElementOf(expression, attributes, content, made)

    def _constructed_part(self, part: ast.Expression, scope: Scope) -> op.Operator:
        """As ``_part``, shared where it depends on the element of the binding alone."""
        is_bound = [*scope.values()] == [self._scratch.binding]
        if is_bound and not (isinstance(part, _MAKERS) or self._is_shared(part)):
            (name,) = scope
            return self._holder.shared(About(part, name, is_part=True))
        return self._part(part, scope)

    def _markup(self, expression: ast.Markup, scope: Scope) -> op.Operator:
        made = items.Constructed(self._scratch, self._depth, expression, {})
        return returns.Static(expression.written(plain=True), made)

    def _computed(self, expression: ast.Computed, scope: Scope) -> op.Operator:
        name = expression.name
        content = self._part(expression.content, scope)
        parts = {id(expression.content): content}
        if isinstance(name, ast.Expression):
            parts[id(name)] = self._part(name, scope)
        made = items.Constructed(self._scratch, self._depth, expression, parts)
        if expression.kind is ast.NodeKind.TEXT:
            return returns.TextOf(self._scratch, made, content)
        is_attribute = expression.kind is ast.NodeKind.ATTRIBUTE
        if is_attribute and isinstance(name, QualifiedName) and not name.namespace:
            return returns.AttributeOf(name, [content], made)
        return made

    def _result(self, profile: ast.Profile, binds: bool) -> op.Operator:
        """The results of a profile."""
        body, flwor = profile.body, profile.flwor
        if body.is_path():
            return returns.Result(self._truth("exists", body, _NOTHING), is_message=True)
        first = flwor.clauses[0] if flwor is not None and flwor.clauses else None
        if flwor is None or not isinstance(first, ast.ForClause):
            return self._written_once(body, _NOTHING, None)
        others = flwor.clauses[1:]
        is_plain = not first.position and not flwor.order and flwor.group is None
        if binds and body is flwor and is_plain:
            each = self._scratch.binding
            rest = self._flwor(replace(flwor, clauses=others), {first.variable: each})
            return returns.Result(rest, each)
        fails = tells_failures(profile)
        if not binds and not fails:
            return self._written_once(body, _NOTHING, None)
        all_of_them = self._nodes_variable()
        clauses = (replace(first, path=ast.variable(_BINDINGS)), *others)
        bound = _with_flwor(profile, replace(flwor, clauses=clauses)).body
        base: op.Operator | None = None
        condition: op.Operator | None = None
        if not binds:
            path, asked = first.path.divided()
            base = self._part(path, _NOTHING)
            condition = None if asked is None else self._part(asked, _NOTHING)
        return self._written_once(bound, {_BINDINGS: all_of_them}, all_of_them, base, condition)

    def _written_once(
        self,
        body: ast.Expression,
        scope: Scope,
        variable: op.NodesVariable | None,
        base: op.Operator | None = None,
        condition: op.Operator | None = None,
    ) -> op.Operator:
        encloses = isinstance(body, ast.Constructor)
        operator: op.Operator
        if isinstance(body, ast.Constructor):
            operator = self._element(body, scope, encloses=True)
        else:
            operator = self.operator(body, scope)
        return returns.Result(operator, variable, encloses=encloses, base=base, condition=condition)


def _tested(
    name: str, arguments: tuple[ast.Expression, ...]
) -> tuple[ast.Expression, op.ValueTest] | None:
    """The text that a call of a function of texts is about, and the test that it is."""
    match name, arguments:
        case "contains" | "starts-with" | "ends-with", (text, ast.Literal(str(part))):
            return text, _TEXT_TESTS[name](part)
        case "contains", (
            ast.Literal(str(text)),
            ast.FunctionCall("concat", (ast.Literal(str(before)), part, ast.Literal(str(after)))),
        ):
            return part, op.Within(text, before, after)
        case "matches", (text, *others):
            constants = [str(one.value) for one in others if isinstance(one, ast.Literal)]
            if len(constants) == len(others):
                pattern = compile_pattern(*constants)
                return (text, op.Matches(pattern)) if pattern.is_quick else None
    return None  # a pattern that is not quick has to be ended by a budget


def _is_text(expression: ast.Expression) -> bool:
    """Whether it is a call of a function that gives one text."""
    return isinstance(expression, ast.FunctionCall) and (
        expression.name in _SPELLINGS
        or expression.name in _NAME_PARTS
        or expression.name == "string"
    )


def _spelling(name: str, places: list[Any]) -> Callable[[str], str]:
    """A function of one text, with its other arguments."""
    if name == "substring":
        return substring_at(*places)
    function: Callable[..., str] = STRING_FUNCTIONS[name]
    return (lambda text: function(text, *places)) if places else function


_COMPILED: dict[type, Callable[[Compiler, Any, Scope], op.Operator]] = {
    ast.PathExpression: Compiler._path_operator,
    ast.Mapped: Compiler._mapped,
    ast.SimpleMap: Compiler._simple_map,
    ast.Literal: Compiler._sequence,
    ast.Comparison: Compiler._comparison,
    ast.And: Compiler._junction,
    ast.Or: Compiler._junction,
    ast.Operation: Compiler._operation,
    ast.Sequence: Compiler._sequence,
    ast.Conditional: Compiler._conditional,
    ast.Quantified: Compiler._quantified,
    ast.Flwor: Compiler._flwor,
    ast.Cast: Compiler._cast,
    ast.Typed: Compiler._typed,
    ast.UserCall: Compiler._user_call,
    ast.FunctionCall: Compiler._call,
    ast.Typeswitch: Compiler._typeswitch,
    ast.TryCatch: Compiler._try_catch,
    ast.Constructor: Compiler._element,
    ast.Markup: Compiler._markup,
    ast.Computed: Compiler._computed,
    ast.Part: Compiler._piece,
    ast.Transform: Compiler._transform,
    ast.Update: Compiler._update,
}


def _at_node(scope: Scope) -> Scope:
    """A scope in which the context is a node of the message."""
    if "." not in scope:
        return scope
    return {name: bound for name, bound in scope.items() if name != "."}


def _declaration(call: ast.UserCall) -> ast.FunctionDeclaration:
    key = call.name, len(call.arguments)
    return next(one for one in call.library if (one.name, len(one.parameters)) == key)


def _height(expression: ast.Expression) -> int:
    """How deep expressions are in each other in one."""
    inner = (*expression.same_focus(), *expression.new_focus())
    return 1 + max(map(_height, inner), default=0)


def _bound_between(outer: Scope, inner: Scope) -> dict[str, Any]:
    """The variables of a scope that are not those of the scope around it."""
    return {name: bound for name, bound in inner.items() if outer.get(name) is not bound}


def _with_where(
    clauses: tuple[ast.Clause, ...], where: ast.Expression | None
) -> tuple[ast.Clause, ...]:
    return clauses if where is None else (*clauses, ast.WhereClause(where))


def _of_union(left: ast.Expression, right: ast.Expression) -> tuple[ast.Expression, ...]:
    """``a = (b | c)/d`` as ``a = b/d`` and ``a = c/d``, of which one has to hold."""
    for one, other in ((left, right), (right, left)):
        steps: tuple[ast.LocationStep, ...] = ()
        union = other
        if isinstance(other, ast.PathExpression) and other.start is not None:
            steps, union = other.steps, other.start
            if steps and steps[0].is_self:
                continue  # a predicate, in which positions count among all
        if isinstance(union, ast.Operation) and union.name == "|":
            parts = [
                replace(part, steps=part.steps + steps)
                for part in union.operands
                if isinstance(part, ast.PathExpression)
            ]
            if isinstance(one, ast.PathExpression) and len(parts) == len(union.operands):
                return tuple(ast.Comparison(one, ast.Operator.EQ, part) for part in parts)
    return ()


def _distributed(
    left: ast.PathExpression, operands: tuple[ast.Expression, ...]
) -> list[ast.PathExpression]:
    """``a/(b | c)`` as ``a/b`` and ``a/c``, ``a//(b | c)`` as ``a//b`` and ``a//c``; empty where an
    operand is no path from its context."""
    *before, last = left.steps or (None,)
    is_below = last is not None and replace(last, descendant=False) == _BELOW
    paths = []
    for each in operands:
        if not isinstance(each, ast.PathExpression) or each.origin is not ast.Origin.CONTEXT:
            return []
        if each.start is not None or not each.steps:
            return []
        first, *rest = each.steps
        is_short = first.axis is None and first.kind in (ast.NodeKind.ELEMENT, ast.NodeKind.TEXT)
        if is_below and is_short and not first.descendant and not first.is_positional:
            steps = (*before, replace(first, descendant=True), *rest)
        else:
            steps = (*left.steps, first, *rest)
        paths.append(replace(left, steps=steps))
    return paths


def _conditions_on(
    variable: str, clauses: Iterable[ast.Clause], scope: Scope
) -> Iterator[ast.Expression]:
    """The conditions of ``where`` among the clauses behind a variable, as far as the names of the
    scope, and its own, mean the same."""
    for clause in clauses:
        if isinstance(clause, ast.WhereClause):
            yield from split(clause.condition, ast.And)
        elif not {*clause.binds()}.isdisjoint((variable, *scope)):
            return


def _looked_up(
    variable: str, source: ast.Expression, conditions: Iterable[ast.Expression], scope: Scope
) -> ast.Expression:
    """The path that a variable ranges over with ``[key = other]`` of a condition ``$v/key = other``
    behind it, by which its nodes are looked up; the condition is asked of these all the same.

    The context node of ``other`` is the variable ``.v`` of the scope, if it has that."""
    if not isinstance(source, ast.PathExpression) or not source.steps:
        return source
    for part in conditions:
        if not isinstance(part, ast.Comparison) or part.operator is not ast.Operator.EQ:
            continue
        for key, other in ((part.left, part.right), (part.right, part.left)):
            if not isinstance(key, ast.PathExpression) or not isinstance(other, ast.PathExpression):
                continue
            is_key = key.origin is ast.Origin.VARIABLE and key.variable == variable
            if not is_key or any(part.free_variables() for part in key.new_focus()):
                continue
            if not other.free_variables() <= scope.keys() - {variable} or other.start is not None:
                continue
            if any(part.free_variables() for part in other.new_focus()):
                continue
            probe = other
            if other.origin is ast.Origin.CONTEXT:
                if f".{variable}" not in scope:
                    continue
                probe = replace(other, origin=ast.Origin.VARIABLE, variable=f".{variable}")
            own_key = replace(key, origin=ast.Origin.CONTEXT, variable="")
            equal = ast.Comparison(own_key, ast.Operator.EQ, probe)
            *before, last = source.steps
            last = replace(last, predicates=(*last.predicates, equal))
            return replace(source, steps=(*before, last))
    return source


def _filtered(
    path: ast.PathExpression, steps: tuple[ast.LocationStep, ...]
) -> ast.PathExpression | None:
    """``$all[@k = $v]/…`` as a path from the message, whose nodes are looked up by their keys;
    None where that is no join."""
    if not steps or not steps[0].is_self or steps[0].is_positional or not path.steps:
        return None
    if path.free_variables() or not any(part.free_variables() for part in steps[0].predicates):
        return None
    *before, last = path.steps
    last = replace(last, predicates=(*last.predicates, *steps[0].predicates))
    return replace(path, steps=(*before, last, *steps[1:]))


def _is_shared(expression: ast.Expression) -> bool:
    """Whether it has one value for all who ask, of which nodes are the same each time."""
    if not expression.stands_alone():
        return False
    is_variable = isinstance(expression, ast.UserCall) and expression.is_variable
    return is_variable or not any(isinstance(part, _MAKERS) for part in expression.within())


def _is_aggregate(expression: ast.Expression) -> bool:
    """Whether it is what many profiles may compare with different numbers: a sum and the like."""
    return (
        isinstance(expression, ast.FunctionCall)
        and expression.name in _AGGREGATES
        and len(expression.arguments) == 1
        and isinstance(expression.arguments[0], ast.PathExpression)
        and not expression.free_variables()
        and not expression.uses_position()
    )


def _is_dear(expression: ast.Expression) -> bool:
    """Whether its atomic values are worth to be kept for a node: it looks far, or at many values,
    and no part of it that is kept does so for it."""
    if isinstance(expression, _KEPT_OTHERWISE):
        return False
    parts = expression.same_focus()
    if not isinstance(expression, ast.Flwor | ast.Quantified) and not any(map(_is_far, parts)):
        return False
    of_any_kind = dict.fromkeys(expression.free_variables(), ANYTHING)
    return (
        not expression.kinds(of_any_kind, NODES) & NODES
        and not expression.uses_position()
        and not any(isinstance(part, _MAKERS) for part in expression.within())
    )


def _is_far(part: ast.Expression) -> bool:
    """Whether it selects nodes far from its context, or by conditions on others."""
    if not isinstance(part, ast.PathExpression):
        return isinstance(part, ast.Flwor)
    return part.start is None and any(
        step.descendant
        or step.axis in _FAR_AXES
        or any(
            isinstance(inner, ast.PathExpression) for p in step.predicates for inner in p.within()
        )
        for step in part.steps
    )


def _with_library(part: Any, library: tuple[ast.FunctionDeclaration, ...]) -> object:
    is_call = isinstance(part, ast.UserCall) and not part.library
    return replace(part, library=library) if is_call else part


@by_identity(256)
def _recursive(library: tuple[ast.FunctionDeclaration, ...]) -> bool:
    """Whether a declaration calls itself, by way of others too."""
    calls = {
        one.name: {part.name for part in one.body.within() if isinstance(part, ast.UserCall)}
        for one in library
    }
    while leaves := [name for name, called in calls.items() if not called & calls.keys()]:
        for name in leaves:
            del calls[name]
    return bool(calls)
