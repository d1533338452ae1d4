"""Makes the ResultPlan of a profile from its tree.

A plan is about what is left of a profile when its bindings are known, so profiles that differ in
the path of their first ``for`` clause, or in a ``where`` that the engine has answered, have one
plan.  What rows cannot say, the interpreter is asked for, expression by expression: where an
expression is all that stands between braces, or a condition, and none of its items is an attribute
or a document.  Where that does not help either, all of the profile is the interpreter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import permutations
from typing import TypeAlias

from formats.columns import declaration
from formats.escapes import escaped_text
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.language import query_ast as ast
from yfilter.language import results as rows
from yfilter.language.atoms import atom_text, is_number, to_double
from yfilter.language.comparison import MIRRORED
from yfilter.language.function_library import STRING_FUNCTIONS
from yfilter.language.item_kinds import ANYTHING, ItemKind, Kinds
from yfilter.language.matching_path import is_path, matching_part, uses_variable
from yfilter.language.results import Foreign, ResultPlan
from yfilter.language.trees import split

# -------------------------------------------------------------------------------------------------
# PlanDraft: the tables of a ResultPlan while it is made: rows, paths, strings, conditions.
#
# What no row says raises Unsaid.  Most of it the interpreter can be asked for (``foreign``).


ROWS_MAX = 4_096  # of a plan; a profile that needs more is the interpreter's

_NODE_KINDS = {
    ast.NodeKind.ELEMENT: rows.NODE_ELEMENT,
    ast.NodeKind.ATTRIBUTE: rows.NODE_ATTRIBUTE,
    ast.NodeKind.TEXT: rows.NODE_TEXT,
}
_AXES = {
    (ast.NodeKind.ELEMENT, False): rows.AXIS_CHILD,
    (ast.NodeKind.ELEMENT, True): rows.AXIS_BELOW,
    (ast.NodeKind.ATTRIBUTE, False): rows.AXIS_ATTRIBUTE,
    (ast.NodeKind.ATTRIBUTE, True): rows.AXIS_ATTRIBUTE_BELOW,
    (ast.NodeKind.TEXT, False): rows.AXIS_TEXT,
    (ast.NodeKind.TEXT, True): rows.AXIS_TEXT_BELOW,
}
_ITEM_KINDS = {
    rows.NODE_ELEMENT: ItemKind.ELEMENT,
    rows.NODE_ATTRIBUTE: ItemKind.ATTRIBUTE,
    rows.NODE_TEXT: ItemKind.TEXT,
}
_COMPARISONS = {one: getattr(rows, f"IS_{one.name}") for one in ast.Operator}
_STRING_TESTS = {
    "contains": rows.ROW_CONTAINS,
    "starts-with": rows.ROW_STARTS,
    "ends-with": rows.ROW_ENDS,
}
_CALLED = (
    *("normalize-space", "lower-case", "upper-case", "translate", "string-length"),
    *("substring-before", "substring-after"),
)


class Unsaid(Exception):
    """No row says this."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row before it has a number."""

    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    parts: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """What a variable is by ``let``: an expression, where it was said."""

    expression: ast.Expression
    scope: Scope


@dataclass(frozen=True, slots=True)
class Atom:
    """The value of a variable of distinct strings: the string of a node in a slot."""

    slot: int
    kind: int


Bound: TypeAlias = "tuple[int, int] | Atom | Value"


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables are slots, (slot, kind of node), or values; ``context`` is a slot, in predicates.

    ``context_number`` is that of what prefixes mean: ``namespaces``.
    """

    variables: Mapping[str, Bound]
    context: tuple[int, int] | None = None
    namespaces: Mapping[str, str] = field(default_factory=lambda: {"": ""})

    def with_variable(self, name: str, bound: Bound) -> Scope:
        return replace(self, variables={**self.variables, name: bound})


class PlanDraft:
    """Of one plan."""

    def __init__(self) -> None:
        self._paths: list[tuple[int, int, int, int]] = []
        self._steps: list[tuple[int, int, int, int]] = []
        self._predicates: list[tuple[int, int | Row, int]] = []
        self._tests: dict[ast.NameTest, int] = {}
        self._texts: dict[bytes, int] = {}
        self._constants: list[object] = []
        self._foreign: list[Foreign] = []
        self._contexts: list[dict[str, str]] = [{"": ""}]
        self._joins: dict[tuple[object, ...], tuple[int, int, int]] = {}
        self._slots = 0
        self._made = 0
        self._repeats = False

    def fill(self, plan: ResultPlan, whole: Row) -> list[int]:
        """Gives a plan its columns, ``whole`` being the first row; that of the rows."""
        column: list[int] = []
        self._lay(column, whole)
        predicates: list[int] = []
        for kind, number, slot in self._predicates:
            if isinstance(number, Row):
                predicates += (kind, len(column) // rows.ROW_WIDTH, slot)
                self._lay(column, number)
            else:
                predicates += (kind, number, slot)
        paths = [number for path in self._paths for number in path]
        steps = [number for step in self._steps for number in step]
        plan.tests, plan.texts = tuple(self._tests), tuple(self._texts)
        plan.constants, plan.foreign = tuple(self._constants), tuple(self._foreign)
        plan.contexts, plan.joins = tuple(self._contexts), tuple(self._joins.values())
        plan.slots = self._slots
        plan.set_columns(column, paths, steps, predicates)
        plan.repeats = self._repeats
        return column

    def _lay(self, column: list[int], row: Row) -> None:
        """Gives a row and its parts their numbers."""
        start = len(column)
        column += (row.kind, row.a, row.b, row.c, 0)
        for part in row.parts:
            self._lay(column, part)
        column[start + rows.ROW_NEXT] = len(column) // rows.ROW_WIDTH

    def row(self, kind: int, *fields: int | Row) -> Row:
        """``fields``: a, b and c, as far as they are not 0, then the parts."""
        self._made += 1
        if self._made > ROWS_MAX:
            raise Unsaid
        numbers = [one for one in fields if isinstance(one, int)]
        a, b, c = (*numbers, 0, 0, 0)[:3]
        return Row(kind, a, b, c, tuple(one for one in fields if isinstance(one, Row)))

    # -- strings

    def string(self, expression: ast.Expression, scope: Scope) -> Row:
        """One string."""
        match expression:
            case ast.Literal(value):
                return self.row(rows.ROW_ATOM, self.text(atom_text(value).encode()))
            case ast.PathExpression(ast.Origin.VARIABLE, (), variable) if isinstance(
                bound := scope.variables.get(variable), Value
            ):
                return self.string(bound.expression, bound.scope)
            case ast.PathExpression(ast.Origin.VARIABLE, (), variable) if isinstance(
                bound := scope.variables.get(variable), Atom
            ):
                return self.row(rows.ROW_STRING, self._laid(bound.slot, bound.kind, [])[0])
            case ast.FunctionCall("string", (argument,)):
                return self._argument(argument, scope)
            case ast.FunctionCall("string", ()) if scope.context is not None:
                return self._argument(ast.PathExpression(ast.Origin.CONTEXT, ()), scope)
            case ast.FunctionCall("concat", arguments):
                return self.row(rows.ROW_CONCAT, *(self._argument(one, scope) for one in arguments))
            case ast.FunctionCall("count", (ast.PathExpression() as path,)) if self.is_path(
                path, scope
            ):
                return self.row(rows.ROW_COUNT, self.path(path, scope)[0])
            case ast.FunctionCall("name" | "local-name" as name, (ast.PathExpression() as path,)):
                number, _kind = self.path(path, scope)
                return self.row(rows.ROW_NAME, number, int(name == "name"))
            case ast.FunctionCall(name, arguments) if name in _CALLED and arguments:
                number = self.constant(STRING_FUNCTIONS[name])
                converted = [self._argument(one, scope, is_string=True) for one in arguments]
                return self.row(rows.ROW_CALL, number, *converted)
            case ast.Comparison() | ast.And() | ast.Or() | ast.FunctionCall():
                return self.row(rows.ROW_TRUTH, self.said(expression, scope))
            case _:
                raise Unsaid

    def _argument(
        self, expression: ast.Expression, scope: Scope, *, is_string: bool = False
    ) -> Row:
        """The string of an argument: of its first node, or of its value.

        ``is_string``: a number or a truth value would be an error.
        """
        if isinstance(expression, ast.PathExpression) and self.is_path(expression, scope):
            return self.row(rows.ROW_STRING, self.path(expression, scope)[0])
        if is_string and not self._is_string(expression, scope):
            raise Unsaid
        return self.string(expression, scope)

    def _is_string(self, expression: ast.Expression, scope: Scope) -> bool:
        match expression:
            case ast.PathExpression(ast.Origin.VARIABLE, (), variable):
                value = scope.variables.get(variable)
                if isinstance(value, Value):
                    return self._is_string(value.expression, value.scope)
                return isinstance(value, Atom)
            case ast.Literal(value):
                return isinstance(value, str)
            case ast.FunctionCall(name):
                return name in ("string", "concat", "name", "local-name") or (
                    name in _CALLED and name != "string-length"
                )
        return False

    # -- conditions

    def condition(self, condition: ast.Expression, scope: Scope, *, errors_are_false: bool) -> Row:
        try:
            return self.said(condition, scope)
        except Unsaid:
            return self.foreign(rows.ROW_FOREIGN_TRUTH, condition, scope, errors_are_false)

    def said(self, condition: ast.Expression, scope: Scope) -> Row:
        """A condition that never raises an error."""
        match condition:
            case ast.And(parts) | ast.Or(parts):
                kind = rows.ROW_AND if isinstance(condition, ast.And) else rows.ROW_OR
                return self.row(kind, *(self.said(part, scope) for part in parts))
            case ast.FunctionCall("not" | "empty" as name, (inner,)):
                if name == "empty" and not self.is_path(inner, scope):
                    raise Unsaid
                return self.row(rows.ROW_NOT, self.said(inner, scope))
            case ast.FunctionCall("exists", (inner,)) if self.is_path(inner, scope):
                return self.said(inner, scope)
            case ast.FunctionCall("boolean", (inner,)):
                return self.said(inner, scope)
            case ast.FunctionCall("true" | "false" as name, ()):
                return self.row(rows.ROW_CONSTANT, int(name == "true"))
            case ast.FunctionCall(name, (one, other)) if name in _STRING_TESTS:
                strings = [self._argument(part, scope, is_string=True) for part in (one, other)]
                return self.row(_STRING_TESTS[name], *strings)
            case ast.Comparison(left, operator, right):
                return self._comparison(left, operator, right, scope)
            case ast.PathExpression() if self.is_path(condition, scope):
                return self.row(rows.ROW_EXISTS, self.path(condition, scope)[0])
            case _:
                raise Unsaid

    def _comparison(
        self, left: ast.Expression, operator: ast.Operator, right: ast.Expression, scope: Scope
    ) -> Row:
        if isinstance(left, ast.Literal) and not isinstance(right, ast.Literal):
            return self._comparison(right, MIRRORED[operator], left, scope)
        right = self._literal(right, scope)
        comparison = _COMPARISONS[operator]
        if is_number(right.value):
            if isinstance(left, ast.FunctionCall) and left.name == "count":
                counted = self.string(left, scope).a
                constant = self.constant(right.value)
                return self.row(rows.ROW_COUNTED, counted, comparison, constant)
            if not isinstance(left, ast.PathExpression):
                raise Unsaid
            path, _ = self.path(left, scope)
            constant = self.constant(to_double(right.value))
            return self.row(rows.ROW_NUMBERS, path, comparison, constant)
        constant = self.constant(str(right.value).encode())
        if isinstance(left, ast.PathExpression) and self.is_path(left, scope):
            path, _ = self.path(left, scope)
            return self.row(rows.ROW_STRINGS, path, comparison, constant)
        if not self._is_string(left, scope):
            raise Unsaid
        string = self.string(left, scope)
        return self.row(rows.ROW_COMPARED, 0, comparison, constant, string)

    def _literal(self, expression: ast.Expression, scope: Scope) -> ast.Literal:
        if isinstance(expression, ast.PathExpression) and not expression.steps:
            value = scope.variables.get(expression.variable)
            if isinstance(value, Value):
                return self._literal(value.expression, value.scope)
        if not isinstance(expression, ast.Literal):
            raise Unsaid
        return expression

    def constant(self, value: object) -> int:
        self._constants.append(value)
        return len(self._constants) - 1

    # -- paths

    def is_path(self, expression: ast.Expression, scope: Scope) -> bool:
        """Whether it is a path, or a variable that stands for one."""
        while isinstance(expression, ast.PathExpression):
            if expression.steps or expression.origin is not ast.Origin.VARIABLE:
                return True
            value = scope.variables.get(expression.variable)
            if not isinstance(value, Value):
                return not isinstance(value, Atom)
            expression, scope = value.expression, value.scope
        return False

    def path(self, path: ast.PathExpression, scope: Scope) -> tuple[int, int]:
        """The number of a path, and the kind of its nodes."""
        slot, kind, steps = self._ways(path, scope)
        if slot == -1 and not steps:
            raise Unsaid  # the document
        return self._laid(slot, kind, steps)

    def _laid(
        self, slot: int, kind: int, steps: list[tuple[int, int, int, int]]
    ) -> tuple[int, int]:
        first = len(self._steps)
        self._steps += steps
        found = (slot, first, len(self._steps), kind)
        self._paths.append(found)
        self._made += len(steps)
        if self._made > ROWS_MAX:
            raise Unsaid
        return len(self._paths) - 1, kind

    def _ways(
        self, path: ast.PathExpression, scope: Scope
    ) -> tuple[int, int, list[tuple[int, int, int, int]]]:
        """Slot, kind of the nodes, and steps."""
        steps: list[tuple[int, int, int, int]] = []
        kind = rows.NODE_ELEMENT
        if path.origin is ast.Origin.MESSAGE:
            slot = -1
        elif path.origin is ast.Origin.CONTEXT and scope.context is not None:
            slot, kind = scope.context
        elif path.origin is ast.Origin.VARIABLE:
            bound = scope.variables.get(path.variable)
            if isinstance(bound, Value):
                if not isinstance(bound.expression, ast.PathExpression):
                    raise Unsaid
                slot, kind, steps = self._ways(bound.expression, bound.scope)
            elif isinstance(bound, tuple):
                slot, kind = bound
            else:
                raise Unsaid
        else:
            raise Unsaid
        for place, step in enumerate(path.steps):
            if path.origin is ast.Origin.MESSAGE and slot == -1:
                joined = self._joined(path.steps[: place + 1], scope)
                if joined is not None:
                    (slot, kind), steps = joined, []
                    continue
            if kind != rows.NODE_ELEMENT or step.axis is not None or step.kind not in _NODE_KINDS:
                raise Unsaid
            kind = _NODE_KINDS[step.kind]
            axis = _AXES[step.kind, step.descendant]
            first = len(self._predicates)
            found = [self._predicate(step, part, kind, scope) for part in step.predicates]
            first = len(self._predicates)
            self._predicates += found
            test = self.test(step.test or ast.ANY_NAME)
            steps.append((axis, test, first, len(self._predicates)))
        return slot, kind, steps

    def _joined(self, steps: tuple[ast.LocationStep, ...], scope: Scope) -> tuple[int, int] | None:
        """Slot and kind of a join: the last predicate says that a key is equal to a value."""
        match steps[-1].predicates[-1:]:
            case (ast.Comparison(key, ast.Operator.EQ, value),):
                if isinstance(value, ast.PathExpression) and value.origin is ast.Origin.CONTEXT:
                    key, value = value, key
            case _:
                return None
        last = replace(steps[-1], predicates=steps[-1].predicates[:-1])
        path = ast.PathExpression(ast.Origin.MESSAGE, (*steps[:-1], last))
        if not isinstance(key, ast.PathExpression) or key.origin is not ast.Origin.CONTEXT:
            return None
        if not isinstance(value, ast.PathExpression) or value.origin is not ast.Origin.VARIABLE:
            return None
        bound = scope.variables.get(value.variable)
        within = replace(value, origin=ast.Origin.CONTEXT, variable="")
        if not isinstance(bound, tuple | Atom) or any(map(uses_variable, (path, key, within))):
            return None
        known = path, key, value, bound
        if known not in self._joins:
            base, kind = self.path(path, scope)
            keys, _ = self.path(key, replace(scope, context=(self.slot(), kind)))
            if isinstance(bound, tuple):
                values, _ = self.path(value, scope)
            elif not value.steps:
                values, _ = self._laid(bound.slot, bound.kind, [])
            else:
                raise Unsaid
            self._joins[known] = base, keys, values
        kind = self._paths[self._joins[known][0]][rows.PATH_KIND]
        return -2 - [*self._joins].index(known), kind

    def _predicate(
        self, step: ast.LocationStep, predicate: ast.Expression, kind: int, scope: Scope
    ) -> tuple[int, int | Row, int]:
        if predicate.is_positional():
            if step.descendant:
                raise Unsaid
            if predicate == ast.FunctionCall("last", ()):
                return rows.PREDICATE_LAST, 0, 0
            position = predicate.value if isinstance(predicate, ast.Literal) else None
            if not isinstance(position, int) or not 0 < position < 1 << 30:
                raise Unsaid
            return rows.PREDICATE_POSITION, position, 0
        slot = self.slot()
        inner = replace(scope, context=(slot, kind))
        return rows.PREDICATE_CONDITION, self.said(predicate, inner), slot

    def slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def test(self, test: ast.NameTest) -> int:
        return self._tests.setdefault(test, len(self._tests))

    def text(self, text: bytes) -> int:
        return self._texts.setdefault(text, len(self._texts))

    # -- what the interpreter is asked

    def foreign(
        self, kind: int, expression: ast.Expression, scope: Scope, errors_are_false: bool = False
    ) -> Row:
        """What the interpreter is asked."""
        if scope.context is not None or self.context(scope):
            raise Unsaid
        slots: dict[str, tuple[str, int, int]] = {}
        values: dict[str, ast.Expression] = {}
        self._used(expression, scope, slots, values)
        kinds: dict[str, Kinds] = {name: _ITEM_KINDS[kind] for name, _, kind in slots.values()}
        for name, value in values.items():
            kinds[name] = value.kinds(kinds, ANYTHING)
        of_items = expression.kinds(kinds, ANYTHING)
        if kind == rows.ROW_FOREIGN and of_items & (ItemKind.ATTRIBUTE | ItemKind.DOCUMENT):
            raise Unsaid
        self._foreign.append(Foreign(expression, tuple(slots.values()), tuple(values.items())))
        return self.row(kind, len(self._foreign) - 1, int(errors_are_false))

    def _used(
        self,
        expression: ast.Expression,
        scope: Scope,
        slots: dict[str, tuple[str, int, int]],
        values: dict[str, ast.Expression],
    ) -> None:
        """The variables of a scope that occur in an expression, perhaps bound there anew."""
        if isinstance(expression, ast.Part):
            raise Unsaid
        if isinstance(expression, ast.PathExpression) and expression.origin is ast.Origin.VARIABLE:
            name = expression.variable
            bound = scope.variables.get(name)
            if isinstance(bound, Value):
                if name not in values:
                    self._used(bound.expression, bound.scope, slots, values)
                    if slots.get(name) or any(
                        scope.variables.get(slot) != bound.scope.variables.get(slot)
                        for slot in bound.scope.variables
                    ):
                        raise Unsaid  # a name that means two things
                    values[name] = bound.expression
            elif isinstance(bound, Atom):
                raise Unsaid
            elif bound is not None:
                slots[name] = (name, *bound)
        for part in (*expression.same_focus(), *expression.new_focus()):
            self._used(part, scope, slots, values)

    def context(self, scope: Scope) -> int:
        namespaces = dict(scope.namespaces)
        if namespaces not in self._contexts:
            self._contexts.append(namespaces)
        return self._contexts.index(namespaces)

    def node_kind(self, row: Row) -> int:
        return self._paths[row.a][rows.PATH_KIND]


# -------------------------------------------------------------------------------------------------


PLANS_MAX = 4_096

_ANYWHERE = ast.PathExpression(
    ast.Origin.MESSAGE, (ast.LocationStep(True, ast.NodeKind.ELEMENT, ast.ANY_NAME),)
)


@lru_cache(maxsize=PLANS_MAX)
def result_plan(profile: ast.Profile) -> ResultPlan:
    """The plan of a profile; one for all profiles with the same results of their bindings."""
    part = matching_part(profile)
    if is_path(profile.body) and not part.has_remainder:
        return WHOLE_MESSAGE
    return plan_of_bound(profile)


@lru_cache(maxsize=PLANS_MAX)
def plan_of_bound(profile: ast.Profile) -> ResultPlan:
    """The plan of a profile for what ``MatchingPart.bound`` selects, where that is known."""
    part = matching_part(profile)
    flwor = profile.flwor
    if flwor is None or not flwor.clauses:
        return ResultPlan(profile, False)
    first, *others = flwor.clauses
    if _distinct(first) is not None:
        return _planned(profile, False)
    if not part.bound:
        return ResultPlan(profile, False)
    assert isinstance(first, ast.ForClause)
    where = None if part.where_holds else flwor.where
    alike = replace(flwor, clauses=(replace(first, path=_ANYWHERE), *others), where=where)
    return plan_of_bindings(_with_flwor(profile, flwor, alike))


@lru_cache(maxsize=PLANS_MAX)
def plan_of_bindings(profile: ast.Profile) -> ResultPlan:
    """The plan of a profile that is given what its first ``for`` clause binds."""
    return _planned(profile, True)


def _planned(profile: ast.Profile, binds: bool) -> ResultPlan:
    plan = ResultPlan(profile, binds)
    try:
        _Planner().make(plan)
    except (Unsaid, RecursionError):
        plan = ResultPlan(profile, binds)
    return plan


def _distinct(clause: object) -> ast.PathExpression | None:
    """The path of which a ``for`` clause ranges over the distinct strings."""
    match clause:
        case ast.ForClause(_, ast.FunctionCall("distinct-values", (ast.PathExpression() as path,))):
            return path
    return None


WHOLE_MESSAGE = ResultPlan(ast.Profile(_ANYWHERE), False, True)


def _with_flwor(profile: ast.Profile, flwor: ast.Flwor, other: ast.Flwor) -> ast.Profile:
    body = profile.body
    if not isinstance(body, ast.Constructor):
        return ast.Profile(other, profile.text)
    content = tuple(other if part is flwor else part for part in body.content)
    return ast.Profile(replace(body, content=content), profile.text)


class _Planner(PlanDraft):
    """Makes one plan."""

    def make(self, plan: ResultPlan) -> None:
        flwor = plan.profile.flwor
        assert flwor is not None
        self._flwor = flwor
        self._slots = 1
        first = flwor.clauses[0]
        assert isinstance(first, ast.ForClause)
        if first.position or flwor.order or flwor.group is not None:
            raise Unsaid
        body = plan.profile.body
        if isinstance(body, ast.Constructor):
            column = self.fill(plan, self._constructor(body, Scope({})))
            plan.each = column[rows.ROW_KIND :: rows.ROW_WIDTH].index(rows.ROW_EACH) + 1
            plan.around = 0
        else:
            self.fill(plan, self._documents(self._of_binding(flwor, Scope({}))))
            plan.each = 0

    # -- what is written

    def _enclosed(self, expression: ast.Expression, scope: Scope) -> Row:
        """What stands between braces in content."""
        if expression is self._flwor:
            return self._each(expression, scope)
        try:
            return self._items(expression, scope)
        except Unsaid:
            return self.foreign(rows.ROW_FOREIGN, expression, scope)

    def _items(self, expression: ast.Expression, scope: Scope) -> Row:
        match expression:
            case ast.PathExpression(ast.Origin.VARIABLE, (), variable) if isinstance(
                value := scope.variables.get(variable), Value
            ):
                return self._items(value.expression, value.scope)
            case ast.PathExpression() if self.is_path(expression, scope):
                path, _ = self.path(expression, scope)
                return self.row(rows.ROW_NODES, path, self.context(scope))
            case ast.FunctionCall("data", (ast.PathExpression() as inner,)) if self.is_path(
                inner, scope
            ):
                return self.row(rows.ROW_DATA, self.path(inner, scope)[0])
            case ast.Constructor():
                return self._constructor(expression, scope)
            case ast.Markup():
                return self._markup(expression)
            case ast.Computed(ast.NodeKind.TEXT, None, content):
                return self.row(rows.ROW_TEXT, self._values(content, scope))
            case ast.Sequence(parts):
                return self.row(rows.ROW_ITEMS, *(self._items(part, scope) for part in parts))
            case ast.Conditional(condition, consequence, alternative):
                return self.row(
                    rows.ROW_IF,
                    self.condition(condition, scope, errors_are_false=False),
                    self._items(consequence, scope),
                    self._items(alternative, scope),
                )
            case ast.Flwor():
                return self._loops(expression, 0, scope)
            case ast.Part(variable, digest, inner):
                return self._part(variable, digest, inner, scope)
            case _:
                return self.string(expression, scope)

    def _values(self, expression: ast.Expression, scope: Scope) -> Row:
        """What is written as strings."""
        row = self._items(expression, scope)
        if _any(row, {rows.ROW_ELEMENT, rows.ROW_STATIC, rows.ROW_TEXT, rows.ROW_PART}):
            raise Unsaid
        return row

    def _of_binding(self, flwor: ast.Flwor, scope: Scope) -> Row:
        """What is written for each binding: an element of the first clause, or once."""
        first = flwor.clauses[0]
        assert isinstance(first, ast.ForClause)
        if _distinct(first) is not None:
            return self._loops(flwor, 0, scope)
        return self._loops(flwor, 1, scope.with_variable(first.variable, (0, rows.NODE_ELEMENT)))

    def _loops(self, flwor: ast.Flwor, at: int, scope: Scope) -> Row:
        """The clauses of a FLWOR expression from one on, then what it returns."""
        if flwor.order or flwor.group is not None:
            raise Unsaid
        if at == len(flwor.clauses):
            result = self._items(flwor.result, scope)
            return self._where(flwor.where, result, scope) if flwor.where is not None else result
        clause = flwor.clauses[at]
        if (distinct := _distinct(clause)) is not None and isinstance(clause, ast.ForClause):
            path, kind = self.path(distinct, scope)
            atom = Atom(self.slot(), kind)
            inner = self._loops(flwor, at + 1, scope.with_variable(clause.variable, atom))
            return self.row(rows.ROW_FOR, path, atom.slot, 1, inner)
        match clause:
            case ast.ForClause(variable, ast.PathExpression() as source, ""):
                if source.origin is ast.Origin.MESSAGE and not uses_variable(source):
                    source, flwor = self._by_key(flwor, at, scope)
                path, kind = self.path(source, scope)
                slot = self.slot()
                inner = self._loops(flwor, at + 1, scope.with_variable(variable, (slot, kind)))
                return self.row(rows.ROW_FOR, path, slot, inner)
            case ast.LetClause(variable, value):
                self._items(value, scope)  # used or not, it never raises an error
                self._repeats = True
                bound = Value(value, scope)
                return self._loops(flwor, at + 1, scope.with_variable(variable, bound))
            case ast.ForClause():
                raise Unsaid
            case _:
                return self._where(clause.condition, self._loops(flwor, at + 1, scope), scope)

    def _by_key(
        self, flwor: ast.Flwor, at: int, scope: Scope
    ) -> tuple[ast.PathExpression, ast.Flwor]:
        """The path of a ``for`` clause with an equality of ``where`` as its last predicate, and
        the rest.  Raises Unsaid if there is none: looking at all pairs is the interpreter's."""
        clause, *later = flwor.clauses[at:]
        assert isinstance(clause, ast.ForClause) and isinstance(clause.path, ast.PathExpression)
        hidden = {getattr(other, "variable", "") for other in later}
        here = {clause.variable} - hidden
        before = scope.variables.keys() - hidden - here
        conjuncts = () if flwor.where is None else split(flwor.where, ast.And)
        for conjunct in conjuncts:
            if not isinstance(conjunct, ast.Comparison) or conjunct.operator is not ast.Operator.EQ:
                continue
            for key, value in permutations((conjunct.left, conjunct.right)):
                if not isinstance(key, ast.PathExpression) or key.variable not in here:
                    continue
                if isinstance(value, ast.PathExpression) and value.variable in before:
                    inner = replace(key, origin=ast.Origin.CONTEXT, variable="")
                    equality = ast.Comparison(inner, ast.Operator.EQ, value)
                    rest = tuple(other for other in conjuncts if other is not conjunct)
                    where = ast.And(rest) if len(rest) > 1 else rest[0] if rest else None
                    path = clause.path.with_predicates((equality,))
                    return path, replace(flwor, where=where)
        raise Unsaid

    def _where(self, condition: ast.Expression, then: Row, scope: Scope) -> Row:
        holds = self.condition(condition, scope, errors_are_false=True)
        return self.row(rows.ROW_IF, holds, then, self.row(rows.ROW_ITEMS))

    def _each(self, flwor: ast.Flwor, scope: Scope) -> Row:
        """What is written for each binding, within a constructor."""
        inner = self._of_binding(flwor, scope)
        if self._has_attributes(inner):
            raise Unsaid
        return self.row(rows.ROW_EACH, int(self._is_elements(inner)), inner)

    def _part(self, variable: str, digest: str, inner: ast.Expression, scope: Scope) -> Row:
        bound = scope.variables.get(variable)
        if not isinstance(bound, tuple) or self.context(scope):
            raise Unsaid
        number = self.constant(digest)
        otherwise = self._enclosed(inner, Scope({ast.PART_VARIABLE: bound}))
        return self.row(rows.ROW_PART, number, bound[0], otherwise)

    # -- constructors

    def _constructor(self, constructor: ast.Constructor, scope: Scope) -> Row:
        start, scope = self._start_tag(constructor, scope)
        in_tag = [
            self._attribute(name, tuple(self._value_part(part, scope) for part in value))
            for name, value in constructor.attributes
        ]
        content: list[Row] = []
        copied = False
        for part in constructor.content:
            if (
                not content
                and isinstance(part, ast.Computed)
                and part.kind is ast.NodeKind.ATTRIBUTE
            ):
                row = self._computed_attribute(part, scope)
                if copied:
                    raise Unsaid
                if row.a not in {other.a for other in in_tag}:
                    in_tag.append(row)
                continue
            row = self._content(part, scope)
            if not self._has_attributes(row):
                content.append(row)
            elif content or not self._is_attributes(row):
                raise Unsaid
            else:
                copied = True
                in_tag.append(row)
        end = self.text(f"</{constructor.name}>".encode())
        tag = self.text(start)
        return self.row(rows.ROW_ELEMENT, tag, end, len(in_tag), *in_tag, *content)

    def _content(self, part: str | ast.Expression, scope: Scope) -> Row:
        if isinstance(part, str):
            return self.row(rows.ROW_STATIC, self.text(escaped_text(part).encode()))
        return self._enclosed(part, scope)

    def _start_tag(self, constructor: ast.Constructor, scope: Scope) -> tuple[bytes, Scope]:
        """The start of the tag with its declarations, and the scope inside."""
        names = [constructor.name, *(name for name, _ in constructor.attributes)]
        own: dict[str, str] = dict(constructor.declarations)
        for name in names:
            if name.namespace == XML_NAMESPACE or (name.local == "xmlns" and not name.prefix):
                raise Unsaid
            is_told = name is constructor.name or bool(name.prefix)
            if is_told and own.setdefault(name.prefix, name.namespace) != name.namespace:
                raise Unsaid
        if "xml" in own or len(own) < len(dict(constructor.declarations)):
            raise Unsaid
        declared = [pair for pair in own.items() if scope.namespaces.get(pair[0], None) != pair[1]]
        start = f"<{constructor.name}".encode() + b"".join(
            declaration(prefix, namespace) for prefix, namespace in declared
        )
        if declared:
            scope = replace(scope, namespaces={**scope.namespaces, **own})
        return start, scope

    def _attribute(self, name: QualifiedName, value: tuple[Row, ...]) -> Row:
        test = self.test(ast.NameTest(name.namespace, name.local))
        return self.row(rows.ROW_ATTRIBUTE, self.text(f' {name}="'.encode()), test, *value)

    def _value_part(self, part: str | ast.Expression, scope: Scope) -> Row:
        if isinstance(part, str):
            return self.row(rows.ROW_ATOM, self.text(part.encode()))
        try:
            return self._values(part, scope)
        except Unsaid:
            return self.foreign(rows.ROW_FOREIGN, part, scope)

    def _computed_attribute(self, computed: ast.Computed, scope: Scope) -> Row:
        name = computed.name
        if not isinstance(name, QualifiedName) or name.namespace or name.local == "xmlns":
            raise Unsaid
        return self._attribute(name, (self._value_part(computed.content, scope),))

    def _markup(self, markup: ast.Markup) -> Row:
        if markup.kind is ast.NodeKind.COMMENT:
            text = f"<!--{markup.value}-->"
        else:
            text = f"<?{markup.target} {markup.value}?>" if markup.value else f"<?{markup.target}?>"
        return self.row(rows.ROW_STATIC, self.text(text.encode()))

    # -- what a row is

    def _is_elements(self, row: Row) -> bool:
        """Whether it yields nothing but elements, each a document."""
        if row.kind == rows.ROW_NODES:
            return self.node_kind(row) == rows.NODE_ELEMENT
        return row.kind == rows.ROW_ELEMENT or (
            row.kind in _AROUND and all(map(self._is_elements, _yielding(row)))
        )

    def _is_attributes(self, row: Row) -> bool:
        """Whether it yields nothing but attributes, if anything."""
        if row.kind == rows.ROW_NODES:
            return self.node_kind(row) == rows.NODE_ATTRIBUTE
        return row.kind in _AROUND and all(map(self._is_attributes, _yielding(row)))

    def _has_attributes(self, row: Row) -> bool:
        if row.kind == rows.ROW_NODES:
            return self.node_kind(row) == rows.NODE_ATTRIBUTE
        return row.kind in _AROUND and any(map(self._has_attributes, _yielding(row)))

    def _documents(self, row: Row) -> Row:
        """Without what is no document."""
        if row.kind == rows.ROW_ELEMENT:
            return row
        if row.kind == rows.ROW_NODES and self.node_kind(row) == rows.NODE_ELEMENT:
            return row
        if row.kind not in _AROUND:
            if row.kind == rows.ROW_FOREIGN:
                raise Unsaid
            return self.row(rows.ROW_ITEMS)
        if row.kind == rows.ROW_IF:
            condition, *others = row.parts
            return replace(row, parts=(condition, *map(self._documents, others)))
        return replace(row, parts=tuple(map(self._documents, row.parts)))


_AROUND = {rows.ROW_ITEMS, rows.ROW_IF, rows.ROW_FOR, rows.ROW_PART}


def _yielding(row: Row) -> tuple[Row, ...]:
    """The parts whose items are the row's."""
    return row.parts[1:] if row.kind == rows.ROW_IF else row.parts


def _any(row: Row, kinds: set[int]) -> bool:
    return row.kind in kinds or any(_any(part, kinds) for part in row.parts)
