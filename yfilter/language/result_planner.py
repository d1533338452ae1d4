"""Makes the ResultPlan of a profile from its tree.

A plan is about what is left of a profile when its bindings are known, so profiles that differ in
the path of their first ``for`` clause, or in a ``where`` that the engine has answered, have one
plan.  What rows cannot say, the interpreter is asked for, expression by expression: where an
expression is all that stands between braces, or a condition, and none of its items is an attribute
or a document.  Where that does not help either, all of the profile is the interpreter's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from formats.columns import declaration
from formats.escapes import escaped_text
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.language import results as rows
from yfilter.language.matching_path import is_path, matching_part
from yfilter.language.plan_draft import PlanDraft, Row, Scope, Unsaid, Value
from yfilter.language.query_ast import (
    ANY_NAME,
    PART_VARIABLE,
    Computed,
    Conditional,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    LocationStep,
    Markup,
    NameTest,
    NodeKind,
    Origin,
    Part,
    PathExpression,
    Profile,
    Sequence,
)
from yfilter.language.results import ResultPlan

PLANS_MAX = 4_096

_ANYWHERE = PathExpression(Origin.MESSAGE, (LocationStep(True, NodeKind.ELEMENT, ANY_NAME),))


@lru_cache(maxsize=PLANS_MAX)
def result_plan(profile: Profile) -> ResultPlan:
    """The plan of a profile; one for all profiles with the same results of their bindings."""
    part = matching_part(profile)
    if is_path(profile.body) and not part.has_remainder:
        return WHOLE_MESSAGE
    return plan_of_bound(profile) if part.binds else ResultPlan(profile, False)


@lru_cache(maxsize=PLANS_MAX)
def plan_of_bound(profile: Profile) -> ResultPlan:
    """The plan of a profile for what ``MatchingPart.bound`` selects, where that is known."""
    part = matching_part(profile)
    flwor = profile.flwor
    if not part.bound or flwor is None:
        return ResultPlan(profile, False)
    first, *others = flwor.clauses
    assert isinstance(first, ForClause)
    where = None if part.where_holds else flwor.where
    alike = replace(flwor, clauses=(replace(first, path=_ANYWHERE), *others), where=where)
    return plan_of_bindings(_with_flwor(profile, flwor, alike))


@lru_cache(maxsize=PLANS_MAX)
def plan_of_bindings(profile: Profile) -> ResultPlan:
    """The plan of a profile that is given what its first ``for`` clause binds."""
    plan = ResultPlan(profile, True)
    try:
        _Planner().make(plan)
    except (Unsaid, RecursionError):
        plan = ResultPlan(profile, True)
    return plan


WHOLE_MESSAGE = ResultPlan(Profile(_ANYWHERE), False, True)


def _with_flwor(profile: Profile, flwor: Flwor, other: Flwor) -> Profile:
    body = profile.body
    if not isinstance(body, Constructor):
        return Profile(other, profile.text)
    content = tuple(other if part is flwor else part for part in body.content)
    return Profile(replace(body, content=content), profile.text)


class _Planner(PlanDraft):
    """Makes one plan."""

    def make(self, plan: ResultPlan) -> None:
        flwor = plan.profile.flwor
        assert flwor is not None
        self._flwor = flwor
        self._slots = 1
        first = flwor.clauses[0]
        assert isinstance(first, ForClause)
        if first.position or flwor.order or flwor.group is not None:
            raise Unsaid
        bound = (0, rows.NODE_ELEMENT)
        body = plan.profile.body
        if isinstance(body, Constructor):
            column = self.fill(plan, self._constructor(body, Scope({})))
            plan.each = column[rows.ROW_KIND :: rows.ROW_WIDTH].index(rows.ROW_EACH) + 1
            plan.around = 0
        else:
            scope = Scope({}).with_variable(first.variable, bound)
            self.fill(plan, self._documents(self._loops(flwor, 1, scope)))
            plan.each = 0

    # -- what is written

    def _enclosed(self, expression: Expression, scope: Scope) -> Row:
        """What stands between braces in content."""
        if expression is self._flwor:
            return self._each(expression, scope)
        try:
            return self._items(expression, scope)
        except Unsaid:
            return self.foreign(rows.ROW_FOREIGN, expression, scope)

    def _items(self, expression: Expression, scope: Scope) -> Row:
        match expression:
            case PathExpression(Origin.VARIABLE, (), variable) if isinstance(
                value := scope.variables.get(variable), Value
            ):
                return self._items(value.expression, value.scope)
            case PathExpression():
                path, _ = self.path(expression, scope)
                return self.row(rows.ROW_NODES, path, self.context(scope))
            case FunctionCall("data", (PathExpression() as inner,)) if self.is_path(inner, scope):
                return self.row(rows.ROW_DATA, self.path(inner, scope)[0])
            case Constructor():
                return self._constructor(expression, scope)
            case Markup():
                return self._markup(expression)
            case Computed(NodeKind.TEXT, None, content):
                return self.row(rows.ROW_TEXT, self._values(content, scope))
            case Sequence(parts):
                return self.row(rows.ROW_ITEMS, *(self._items(part, scope) for part in parts))
            case Conditional(condition, consequence, alternative):
                return self.row(
                    rows.ROW_IF,
                    self.condition(condition, scope, errors_are_false=False),
                    self._items(consequence, scope),
                    self._items(alternative, scope),
                )
            case Flwor():
                return self._loops(expression, 0, scope)
            case Part(variable, digest, inner):
                return self._part(variable, digest, inner, scope)
            case _:
                return self.string(expression, scope)

    def _values(self, expression: Expression, scope: Scope) -> Row:
        """What is written as strings."""
        row = self._items(expression, scope)
        if _any(row, {rows.ROW_ELEMENT, rows.ROW_STATIC, rows.ROW_TEXT, rows.ROW_PART}):
            raise Unsaid
        return row

    def _loops(self, flwor: Flwor, at: int, scope: Scope) -> Row:
        """The clauses of a FLWOR expression from one on, then what it returns."""
        if flwor.order or flwor.group is not None:
            raise Unsaid
        if at == len(flwor.clauses):
            result = self._items(flwor.result, scope)
            return self._where(flwor.where, result, scope) if flwor.where is not None else result
        clause = flwor.clauses[at]
        match clause:
            case ForClause(_, PathExpression(Origin.MESSAGE)):
                raise Unsaid  # a join, which the interpreter does by hash
            case ForClause(variable, PathExpression() as source, ""):
                path, kind = self.path(source, scope)
                slot = self.slot()
                inner = self._loops(flwor, at + 1, scope.with_variable(variable, (slot, kind)))
                return self.row(rows.ROW_FOR, path, slot, inner)
            case LetClause(variable, value):
                self._items(value, scope)  # used or not, it never raises an error
                self._repeats = True
                bound = Value(value, scope)
                return self._loops(flwor, at + 1, scope.with_variable(variable, bound))
            case ForClause():
                raise Unsaid
            case _:
                return self._where(clause.condition, self._loops(flwor, at + 1, scope), scope)

    def _where(self, condition: Expression, then: Row, scope: Scope) -> Row:
        holds = self.condition(condition, scope, errors_are_false=True)
        return self.row(rows.ROW_IF, holds, then, self.row(rows.ROW_ITEMS))

    def _each(self, flwor: Flwor, scope: Scope) -> Row:
        """What is written for each binding, within a constructor."""
        first = flwor.clauses[0]
        assert isinstance(first, ForClause)
        inner = self._loops(flwor, 1, scope.with_variable(first.variable, (0, rows.NODE_ELEMENT)))
        if self._has_attributes(inner):
            raise Unsaid
        return self.row(rows.ROW_EACH, int(self._is_elements(inner)), inner)

    def _part(self, variable: str, digest: str, inner: Expression, scope: Scope) -> Row:
        bound = scope.variables.get(variable)
        if not isinstance(bound, tuple) or self.context(scope):
            raise Unsaid
        number = self.constant(digest)
        otherwise = self._enclosed(inner, Scope({PART_VARIABLE: bound}))
        return self.row(rows.ROW_PART, number, bound[0], otherwise)

    # -- constructors

    def _constructor(self, constructor: Constructor, scope: Scope) -> Row:
        start, scope = self._start_tag(constructor, scope)
        in_tag = [
            self._attribute(name, tuple(self._value_part(part, scope) for part in value))
            for name, value in constructor.attributes
        ]
        content: list[Row] = []
        copied = False
        for part in constructor.content:
            if not content and isinstance(part, Computed) and part.kind is NodeKind.ATTRIBUTE:
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

    def _content(self, part: str | Expression, scope: Scope) -> Row:
        if isinstance(part, str):
            return self.row(rows.ROW_STATIC, self.text(escaped_text(part).encode()))
        return self._enclosed(part, scope)

    def _start_tag(self, constructor: Constructor, scope: Scope) -> tuple[bytes, Scope]:
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
        test = self.test(NameTest(name.namespace, name.local))
        return self.row(rows.ROW_ATTRIBUTE, self.text(f' {name}="'.encode()), test, *value)

    def _value_part(self, part: str | Expression, scope: Scope) -> Row:
        if isinstance(part, str):
            return self.row(rows.ROW_ATOM, self.text(part.encode()))
        try:
            return self._values(part, scope)
        except Unsaid:
            return self.foreign(rows.ROW_FOREIGN, part, scope)

    def _computed_attribute(self, computed: Computed, scope: Scope) -> Row:
        name = computed.name
        if not isinstance(name, QualifiedName) or name.namespace or name.local == "xmlns":
            raise Unsaid
        return self._attribute(name, (self._value_part(computed.content, scope),))

    def _markup(self, markup: Markup) -> Row:
        if markup.kind is NodeKind.COMMENT:
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
