"""JoinProgram: the pattern of a graph profile as a chain of operators (join.py).

Made once a profile, in two passes: forwards, what is bound where, and the patterns of each basic
graph pattern in the order in which most is given of each when its turn comes; backwards, the chain
itself.  A condition stands as soon as its variables are bound.  A group whose meaning would change
if it began with what is bound outside becomes a table of its own (group_variables.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from formats.graph.vocabulary import RDF_TYPE
from yfilter.graph import join as op
from yfilter.graph import query_ast as sparql
from yfilter.graph.filter_functions import (
    FUNCTIONS,
    TermValue,
    compared,
    effective_truth,
    negated,
    of_truth,
    value_of,
)
from yfilter.graph.group_variables import (
    NONE,
    Variables,
    certain,
    filters_of,
    has_exists,
    is_inlinable,
    mentioned,
    pattern_variables,
    possible,
    without_filters,
)
from yfilter.language import query_ast as ast
from yfilter.language.budget import Budget
from yfilter.language.query_ast import Operator as Relation

# -------------------------------------------------------------------------------------------------
# Expressions of filters as functions of a Run, with SPARQL's logic of three values.
#
# A condition gives True, False or None, an error; an expression a value or None.  Both are made
# once for a program (join_program.py); what they look at are the run's slots.


class FilterCompiler:
    """``slot_of`` gives the slot of a variable, ``exists`` the chain of a group in EXISTS."""

    def __init__(
        self,
        slot_of: Callable[[sparql.Variable], int],
        exists: Callable[[sparql.Group], op.Operator],
    ) -> None:
        self._slot_of = slot_of
        self._exists = exists

    def condition(self, expression: ast.Expression) -> op.Condition:
        """The effective boolean value of an expression."""
        match expression:
            case ast.And(parts):
                return _joined([self.condition(part) for part in parts], decisive=False)
            case ast.Or(parts):
                return _joined([self.condition(part) for part in parts], decisive=True)
            case ast.FunctionCall("not", (operand,)):
                inner = self.condition(operand)
                return lambda run: negated(inner(run))
            case ast.Comparison(left, operator, right):
                one, other = self.expression(left), self.expression(right)
                return lambda run: compared(one(run), operator, other(run))
            case sparql.Membership(operand, choices, is_negated):
                found = _membership(self.expression(operand), [*map(self.expression, choices)])
                return (lambda run: negated(found(run))) if is_negated else found
            case sparql.Exists(group, is_negated):
                head = self._exists(group)
                return lambda run: run.exists(head) is not is_negated
            case ast.FunctionCall("bound", (sparql.Variable() as variable,)):
                slot = self._slot_of(variable)
                return lambda run: bool(run.is_bound(slot))
            case _:
                value = self.expression(expression)
                return lambda run: effective_truth(value(run))

    def expression(self, expression: ast.Expression) -> op.Expression:
        """The value of an expression."""
        match expression:
            case sparql.Variable():
                slot = self._slot_of(expression)
                return lambda run: run.value(slot)
            case sparql.Iri() | sparql.LiteralTerm():
                constant = value_of(expression)
                return lambda _run: constant
            case ast.FunctionCall("bound" | "not"):
                return self._truth(expression)
            case ast.FunctionCall("if", (condition, one, other)):
                test = self.condition(condition)
                return _choice(test, self.expression(one), self.expression(other))
            case ast.FunctionCall("coalesce", arguments):
                return _first_of([*map(self.expression, arguments)])
            case ast.FunctionCall(name, arguments):
                return _call(name, [*map(self.expression, arguments)])
            case _:
                return self._truth(expression)

    def _truth(self, expression: ast.Expression) -> op.Expression:
        condition = self.condition(expression)
        return lambda run: of_truth(condition(run))


def _joined(parts: list[op.Condition], decisive: bool) -> op.Condition:
    """``decisive`` where some part is, else an error where some part is one, else the opposite."""

    def hold(run: op.Run) -> bool | None:
        truth: bool | None = not decisive
        for part in parts:
            found = part(run)
            if found is decisive:
                return decisive
            if found is None:
                truth = None
        return truth

    return hold


def _membership(operand: op.Expression, choices: list[op.Expression]) -> op.Condition:
    def hold(run: op.Run) -> bool | None:
        value = operand(run)
        truth: bool | None = False
        for choice in choices:
            run.budget.charge()
            found = compared(value, Relation.EQ, choice(run))
            if found is True:
                return True
            if found is None:
                truth = None
        return truth

    return hold


def _choice(test: op.Condition, one: op.Expression, other: op.Expression) -> op.Expression:
    def value(run: op.Run) -> TermValue | None:
        truth = test(run)
        if truth is None:
            return None
        return one(run) if truth else other(run)

    return value


def _first_of(parts: list[op.Expression]) -> op.Expression:
    def value(run: op.Run) -> TermValue | None:
        for part in parts:
            found = part(run)
            if found is not None:
                return found
        return None

    return value


def _call(name: str, arguments: list[op.Expression]) -> op.Expression:
    called = FUNCTIONS[name]

    def value(run: op.Run) -> TermValue | None:
        values = []
        for argument in arguments:
            found = argument(run)
            if found is None:
                return None
            values.append(found)
        return called(values, run.budget)

    return value


# -------------------------------------------------------------------------------------------------


Step: TypeAlias = "Callable[[op.Operator], op.Operator]"
"""Puts an operator in front of the one that follows."""


@dataclass(frozen=True)
class _Place:
    """Where in a profile a group stands.

    ``graph``: the slot of its graph; ``bound``: what is bound for sure when it begins;
    ``outside``: what may be bound then and is not to be seen; ``given``: what EXISTS gives.
    """

    graph: int = op.SLOT_UNBOUND
    bound: Variables = NONE
    outside: Variables = NONE
    given: Variables = NONE


class JoinProgram:
    """Solutions are rows of term numbers, one a column; see Run for numbers below 0."""

    def __init__(self, where: sparql.Group, columns: Sequence[sparql.Variable]) -> None:
        self._slots: dict[sparql.Variable, int] = {}
        self._constants: dict[sparql.Iri | sparql.LiteralTerm, int] = {}
        self._made: set[int] = set()  # slots of constants that solutions may have
        self._slot_count = op.SLOTS_FIRST
        self._sources = 0
        self.columns = tuple(columns)
        emit = op.Emit([self._slot(variable) for variable in columns])
        self._head = self._group(where, _Place(), emit)
        self._known = [
            (slot, op.key_of(term), term if slot in self._made else None)
            for term, slot in self._constants.items()
        ]

    def holds(self, graph: op.MessageGraph, budget: Budget) -> bool:
        """Whether there is a solution; MatchLimitExceeded if that takes more than the budget."""
        run = self._begin(graph, budget, first_only=True)
        return bool(run.run(self._head))

    def solutions(self, graph: op.MessageGraph, budget: Budget) -> op.Run:
        """All solutions, in the ``rows`` of the run; each is a tuple of the budget."""
        run = self._begin(graph, budget, first_only=False)
        run.run(self._head)
        return run

    def _begin(self, graph: op.MessageGraph, budget: Budget, *, first_only: bool) -> op.Run:
        run = op.Run(graph, budget, self._slot_count, self._sources, first_only)
        for slot, key, made in self._known:
            number = graph.find_key(key)
            if number < 0 and made is not None:
                number = run.number_of(made)
            run.set_slot(slot, number)
        return run

    def _group(self, group: sparql.Group, place: _Place, following: op.Operator) -> op.Operator:
        """The chain of a group that may begin with what is bound."""
        return _chain(self._steps(group.elements, filters_of(group), place), following)

    def _steps(
        self,
        elements: Sequence[sparql.GroupElement],
        conditions: Sequence[ast.Expression],
        place: _Place,
        seen: Variables = NONE,
        before: Variables = NONE,
    ) -> list[Step]:
        """``seen``: what the conditions may look at besides, as those of OPTIONAL; of that is bound
        for sure what is in ``before``."""
        steps: list[Step] = []
        early = {
            number: mentioned(condition)
            for number, condition in enumerate(conditions)
            if not has_exists(condition)
        }
        sure: Variables = NONE  # what the group itself has bound
        maybe: Variables = NONE
        patterns: list[sparql.TriplePattern] = []

        def here() -> _Place:
            return replace(
                place, bound=place.bound | sure, outside=(place.outside | maybe) - place.given
            )

        def test(condition: ast.Expression) -> Step:
            visible = place.given | maybe | seen
            within = replace(here(), given=visible, outside=place.outside - visible)
            compiler = FilterCompiler(self._slot, lambda group: self._exists(group, within))
            made = compiler.condition(condition)
            return lambda following: op.Test(made, following)

        def test_what_is_bound() -> None:
            for number, needed in list(early.items()):
                if needed <= sure | before:
                    del early[number]
                    steps.append(test(conditions[number]))

        test_what_is_bound()
        for element in (*elements, None):
            if isinstance(element, sparql.TriplePattern):
                patterns.append(element)
                continue
            if isinstance(element, sparql.Filter):
                continue
            for pattern in in_order(patterns, place.bound | sure):
                steps.append(self._pattern(pattern, place.graph))
                sure |= pattern_variables(pattern)
                maybe |= sure
                test_what_is_bound()
            patterns = []
            if element is not None:
                steps += self._element(element, here(), sure, maybe)
                sure |= certain(element)
                maybe |= possible(element)
                test_what_is_bound()
        late = [
            condition
            for number, condition in enumerate(conditions)
            if number in early or has_exists(condition)
        ]
        return [*steps, *map(test, late)]

    def _element(
        self, element: sparql.GroupElement, here: _Place, sure: Variables, maybe: Variables
    ) -> list[Step]:
        match element:
            case sparql.Group():
                return [self._joined(element, here)]
            case sparql.Alternatives(groups):
                return [self._alternatives(groups, here)]
            case sparql.Optionally(group):
                return [self._optional(group, here, sure, maybe)]
            case sparql.Minus(group):
                return self._minus(group, here, sure, maybe)
            case sparql.InGraph(graph, group):
                return self._in_graph(graph, group, here)
            case sparql.Values(variables, rows):
                return [self._values(variables, rows)]
            case sparql.Bind(value, variable):
                return [self._bind(value, variable, here, maybe)]
            case _:
                raise AssertionError(element)

    def _joined(self, group: sparql.Group, here: _Place) -> Step:
        """A group within a group."""
        if is_inlinable(group, here.outside):
            return lambda following: self._group(group, here, following)
        table = self._table(group, here)
        return lambda following: op.JoinTable(table, following)

    def _alternatives(self, groups: Sequence[sparql.Group], here: _Place) -> Step:
        branches = [self._joined(group, here) for group in groups]
        return lambda following: op.Branches([branch(following) for branch in branches])

    def _optional(
        self, group: sparql.Group, here: _Place, sure: Variables, maybe: Variables
    ) -> Step:
        """LeftJoin: the conditions of the group see what is bound before it, too."""
        flag = self._new_slot()
        conditions = filters_of(group)
        bare = without_filters(group)
        if is_inlinable(bare, here.outside):
            inner = self._steps(bare.elements, conditions, here, maybe, sure)
        else:
            inner = [self._joined(bare, here)]
            inner += self._steps((), conditions, here, maybe | possible(bare))
        return lambda following: op.Optionally(
            _chain(inner, op.Raise(flag, following)), flag, following
        )

    def _minus(
        self, group: sparql.Group, here: _Place, sure: Variables, maybe: Variables
    ) -> list[Step]:
        if not possible(group) & maybe:
            return []  # no variable in common: nothing is taken away
        if certain(group) & sure and is_inlinable(group, here.outside):
            inner = self._group(group, here, op.Found())
            return [lambda following: op.Without(inner, following)]
        table = self._table(group, here)
        return [lambda following: op.WithoutTable(table, following)]

    def _in_graph(
        self, graph: sparql.Iri | sparql.Variable, group: sparql.Group, here: _Place
    ) -> list[Step]:
        if isinstance(graph, sparql.Iri):
            slot = self._constant(graph)
            inner = replace(here, graph=slot)
            return [
                lambda following: op.IsGraph(slot, following),
                self._joined(group, inner),
            ]
        slot = self._new_slot()
        variable = self._slot(graph)
        inner = replace(
            here,
            graph=slot,
            bound=here.bound | {graph},
            outside=here.outside | ({graph} - here.given),
        )
        return [
            lambda following: op.EachGraph(slot, variable, following),
            self._joined(group, inner),
        ]

    def _values(
        self,
        variables: Sequence[sparql.Variable],
        rows: Sequence[tuple[sparql.Iri | sparql.LiteralTerm | None, ...]],
    ) -> Step:
        slots = [self._slot(variable) for variable in variables]
        placed = []
        for row in rows:
            places = [op.SLOT_UNBOUND if term is None else self._constant(term) for term in row]
            self._made.update(places)
            placed.append(tuple(places))
        return lambda following: op.EachRow(slots, placed, following)

    def _bind(
        self,
        value: ast.Expression,
        variable: sparql.Variable,
        here: _Place,
        maybe: Variables,
    ) -> Step:
        within = replace(here, given=here.given | maybe, outside=here.outside - maybe)
        compiler = FilterCompiler(self._slot, lambda group: self._exists(group, within))
        made = compiler.expression(value)
        slot = self._slot(variable)
        return lambda following: op.Assign(made, slot, following)

    def _exists(self, group: sparql.Group, within: _Place) -> op.Operator:
        return self._joined(group, within)(op.Found())

    def _table(self, group: sparql.Group, here: _Place) -> op.Table:
        """The group for itself: nothing is bound but what EXISTS gives."""
        columns = [self._slot(variable) for variable in sorted(possible(group), key=_by_name)]
        hidden = [self._slot(variable) for variable in here.outside]
        place = _Place(here.graph, here.bound & here.given, NONE, here.given)
        inner = self._group(group, place, op.Collect(columns))
        return op.Table(inner, columns, hidden, here.graph, bool(here.given))

    def _pattern(self, pattern: sparql.TriplePattern, graph: int) -> Step:
        below = op.SLOT_UNBOUND
        prop = self._slot(pattern.property)
        source = op.SOURCE_STATED
        if pattern.closure is sparql.Closure.INSTANCE:
            source, prop = op.SOURCE_CLASSES, op.SLOT_ANY
        elif pattern.closure is sparql.Closure.PROPERTY:
            source, below, prop = op.SOURCE_ABOVE, prop, self._constant(sparql.Iri(pattern.above))
        elif pattern.closure is sparql.Closure.INSTANCE_ABOVE:
            return self._of_class(pattern, graph)
        self._sources |= 1 << source
        places = (self._slot(pattern.subject), prop, self._slot(pattern.object))
        return lambda following: op.MatchTriple(source, graph, places, below, following)

    def _of_class(self, pattern: sparql.TriplePattern, graph: int) -> Step:
        """Of a class, or of one above it."""
        self._sources |= 1 << op.SOURCE_OWN_CLASSES
        subject = self._slot(pattern.subject)
        assert isinstance(pattern.object, sparql.Iri)
        classes = [
            self._constant(one) for one in (pattern.object, *map(sparql.Iri, pattern.classes))
        ]
        return lambda following: op.MatchClass(graph, subject, classes, following)

    def _slot(self, term: sparql.Term) -> int:
        if not isinstance(term, sparql.Variable):
            return self._constant(term)
        found = self._slots.get(term)
        if found is None:
            found = self._slots[term] = self._new_slot()
        return found

    def _constant(self, term: sparql.Iri | sparql.LiteralTerm) -> int:
        found = self._constants.get(term)
        if found is None:
            found = self._constants[term] = self._new_slot()
        return found

    def _new_slot(self) -> int:
        self._slot_count += 1
        return self._slot_count - 1


def in_order(
    patterns: Sequence[sparql.TriplePattern], bound: Variables
) -> list[sparql.TriplePattern]:
    """The patterns of a basic graph pattern, the next always the one of which most is given."""
    given = set(bound)
    of_variable: dict[sparql.Variable, list[int]] = {}
    for place, pattern in enumerate(patterns):
        for variable in pattern_variables(pattern):
            of_variable.setdefault(variable, []).append(place)
    waiting = [(*_cost(pattern, given), place) for place, pattern in enumerate(patterns)]
    heapify(waiting)
    ordered: dict[int, sparql.TriplePattern] = {}
    while waiting:
        *_, place = heappop(waiting)
        if place in ordered:  # costs fall, and stand there as often
            continue
        ordered[place] = patterns[place]
        for variable in pattern_variables(patterns[place]) - given:
            given.add(variable)
            for other in of_variable[variable]:
                if other not in ordered:
                    heappush(waiting, (*_cost(patterns[other], given), other))
    return list(ordered.values())


def _cost(pattern: sparql.TriplePattern, bound: Set[sparql.Variable]) -> tuple[int, int]:
    """How much a pattern is thought to find, less by what is given of it; what hangs together with
    what is bound comes before what does not."""
    given = [
        not isinstance(each, sparql.Variable) or each in bound
        for each in (pattern.subject, pattern.property, pattern.object)
    ]
    cost = _COSTS[given[0], given[1], given[2]]
    is_type = pattern.property == sparql.Iri(RDF_TYPE) or pattern.closure is sparql.Closure.INSTANCE
    if is_type and not given[0]:
        cost += 3  # a class has many instances
    return cost, int(bound.isdisjoint(pattern_variables(pattern)))


_COSTS = {
    (True, True, True): 0,
    (True, False, True): 1,
    (True, True, False): 2,
    (False, True, True): 4,
    (True, False, False): 5,
    (False, False, True): 6,
    (False, True, False): 8,
    (False, False, False): 20,
}


def _chain(steps: Sequence[Step], following: op.Operator) -> op.Operator:
    for step in reversed(steps):
        following = step(following)
    return following


def _by_name(variable: sparql.Variable) -> str:
    return variable.name
