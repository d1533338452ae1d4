"""Memo: what an evaluation of one message remembers, so that joins do not look at every pair.

::

    for $v in distinct-values(//x/@k)   all //x are found once, and entered into an
    let $g := //x[@k = $v]              index by @k, in which each $v is looked up
    for $a in //x, $b in //y            the items of //y by @ref, for each $a/@id
    where $a/@id = $b/@ref
    //x[@k = //y/@k]                    the values of //y/@k, once

What is remembered is so from a value on, say that of a variable, which is known to be the same one
by its identity: lists of items never change.  What an index cannot say exactly is found as
everything else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.oracle.equality_index import EqualityIndex
from yfilter.language import query_ast as ast
from yfilter.language.nodes import Atom, DynamicError, Focus, Item, Node, Value
from yfilter.language.trees import flat


class _Known:
    """What is remembered of one expression, by the value that it starts from."""

    __slots__ = (
        "cost",
        "expression",
        "is_hopeless",
        "is_new",
        "items",
        "join",
        "origin",
        "places",
        "steps",
    )

    def __init__(self, expression: object, origin: Value) -> None:
        self.expression = expression
        self.is_new = True
        self.is_hopeless = False  # nothing can be remembered of it
        self.steps: tuple[ast.LocationStep, ...] = ()  # of a path, before the join
        self.join: _Join | None = None
        self.restart(origin)

    def restart(self, origin: Value) -> None:
        self.origin = origin
        self.cost = 0  # visits
        self.items: Value | None = None
        self.places: EqualityIndex | None = None


class _Join:
    """An equality of what depends on an item, ``key``, with what does not, ``probe``."""

    __slots__ = ("key", "later", "probe", "step")

    def __init__(
        self,
        key: ast.Expression,
        probe: ast.Expression,
        step: int = 0,
        later: tuple[ast.Expression, ...] = (),
    ) -> None:
        self.key = key
        self.probe = probe
        self.step = step  # of a path: the step whose predicate it is
        self.later = later  # the other predicates, which are still to be asked


class Memo:
    """For one evaluator; each question is answered None where nothing is known."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator
        self._known: dict[int, _Known] = {}

    def path(
        self,
        path: ast.Expression,
        origin: Value,
        focus: Focus,
        follow: Callable[[Value, tuple[ast.LocationStep, ...], Focus], Value],
        *,
        is_free: bool,
    ) -> Value | None:
        """What a path selects from a value; ``follow`` takes steps from one.

        ``is_free``: what is known is not looked at, and costs nothing.
        """
        known = self._of(path, origin)
        if known.is_new:
            known.is_new = False
            split = _split(path)
            if split is None:
                known.is_hopeless = True
            else:
                known.steps, known.join = split
        if known.is_hopeless:
            return None
        join = known.join
        if known.items is None:
            left = self._evaluator.visits_left
            known.items = follow(origin, known.steps, focus)
            known.cost = left - self._evaluator.visits_left
        elif join is None and not is_free:
            self._evaluator.charge(known.cost)
        if join is None:
            return known.items
        if known.places is None:
            known.places = self._index(
                known.items, join.key, lambda item: Focus(item, 1, 1, {}, focus.functions)
            )
        places = self._look_up(known.places, join.probe, focus)
        if places is None:
            return None
        items: Value = [known.items[place] for place in places]
        rest: tuple[ast.LocationStep, ...] = path.steps[join.step + 1 :]
        if join.later:
            rest = (ast.LocationStep(False, ast.NodeKind.SELF, None, join.later), *rest)
        return follow(items, rest, focus) if rest else items

    def some_equal(self, comparison: ast.Comparison, left: Value, right: Value) -> bool | None:
        """Whether some item on the left equals one on the right."""
        few, many = (left, right) if len(left) < len(right) else (right, left)
        evaluator = self._evaluator
        known = self._again(comparison, many)
        places = None
        if known is not None:
            if known.places is None:
                known.places = EqualityIndex(enumerate([atom] for atom in evaluator.atoms(many)))
            places = known.places.places(evaluator.atoms(few))
        evaluator.charge(1 + len(few) if places is not None else len(many))
        return None if places is None else bool(places)

    def joined(
        self,
        clause: object,
        variable: str,
        value: Value,
        conditions: Iterable[ast.Expression],
        focus: Focus,
    ) -> Iterator[tuple[int, Item]] | None:
        """The items of a value, with their positions, for which all conditions can hold."""
        known = self._of(clause, value)
        if known.is_hopeless:
            return None
        join = known.join
        if join is None:
            join = known.join = _join_of(conditions, variable, focus)
        if join is None:
            known.is_hopeless = True
            return None
        if known.places is None:
            known.places = self._index(
                value,
                join.key,
                lambda item: Focus(None, 1, 1, {variable: [item]}, focus.functions),
            )
        places = self._look_up(known.places, join.probe, focus)
        return None if places is None else ((place + 1, value[place]) for place in places)

    def constant(self, expression: ast.Expression, focus: Focus) -> Value | None:
        """The value of what depends on nothing but the message; a path is remembered where it is
        followed."""
        known = self._again(expression, ())
        if known is None:
            return None
        if known.items is None:
            if expression.free_variables() or expression.uses_context() or expression.constructs:
                known.is_hopeless = True
                return None
            known.items = self._evaluator.value(expression, focus)
        self._evaluator.charge()
        return known.items

    def _of(self, expression: object, origin: Value) -> _Known:
        """What is known of an expression that starts from a value."""
        known = self._known.get(id(expression))
        if known is None or known.expression is not expression:
            known = self._known[id(expression)] = _Known(expression, origin)
        elif known.origin is not origin:
            known.restart(origin)
        return known

    def _again(self, expression: object, origin: Value) -> _Known | None:
        """The same, if it started there the last time too, and anything can be known."""
        before = self._known.get(id(expression))
        is_again = before is not None and before.origin is origin
        known = self._of(expression, origin)
        return known if is_again and known is before and not known.is_hopeless else None

    def _index(
        self, items: Value, key: ast.Expression, focus_of: Callable[[Any], Focus]
    ) -> EqualityIndex:
        step = _attribute_step(key)
        nodes = [item for item in items if isinstance(item, Node)] if step is not None else []
        if step is not None and len(nodes) == len(items):
            # PERF: what is done below, for the keys that most joins have.
            evaluator, axes = self._evaluator, self._evaluator.axes
            return EqualityIndex(
                (place, [evaluator.atom(found) for found in axes.own(node, step)])
                for place, node in enumerate(nodes)
            )

        def atoms(item: Item) -> list[Atom]:
            self._evaluator.charge()
            try:
                return self._evaluator.atoms(self._evaluator.value(key, focus_of(item)))
            except DynamicError:  # the condition does not hold
                return []

        return EqualityIndex((place, atoms(item)) for place, item in enumerate(items))

    def _look_up(
        self, index: EqualityIndex, probe: ast.Expression, focus: Focus
    ) -> Sequence[int] | None:
        try:
            value = self._evaluator.value(probe, focus)
            found = index.places(self._evaluator.atoms(value))
        except DynamicError:
            return ()
        self._evaluator.charge(1 + len(found or ()))
        return found


def is_worth(path: ast.Expression) -> bool:
    """Whether following it again costs more than remembering it."""
    if path.origin is ast.Origin.MESSAGE:
        return True
    first = path.steps[0]
    is_short = len(path.steps) == 1 and not first.descendant and not first.predicates
    is_of_variable = path.origin is ast.Origin.VARIABLE or any(
        isinstance(start, ast.UserCall) and start.is_variable for start in path.same_focus()
    )
    return is_of_variable and not (is_short and first.kind is not ast.NodeKind.ELEMENT)


def _split(path: ast.Expression) -> tuple[tuple[ast.LocationStep, ...], _Join | None] | None:
    """The steps before the first predicate with variables in it, and the join that this is.

    All steps if there is no such predicate; None if it is no join.
    """
    for number, step in enumerate(path.steps):
        dependent = [part for part in step.predicates if part.free_variables()]
        if not dependent:
            continue
        join = None if step.is_positional else _join_in(dependent[0])
        if join is None:
            return None
        before = tuple(part for part in step.predicates if part not in dependent)
        is_whole = isinstance(dependent[0], ast.Comparison)
        later = tuple(dependent[1:] if is_whole else dependent)
        bare = ast.LocationStep(step.descendant, step.kind, step.test, before, step.axis)
        is_filter = step.is_self and not before
        steps = path.steps[:number] if is_filter else (*path.steps[:number], bare)
        return steps, _Join(*join, number, later)
    return path.steps, None


def _attribute_step(key: ast.Expression) -> ast.LocationStep | None:
    """The step of a key that is an attribute of the item, ``@k`` or ``$b/@k``."""
    if len(key.steps) != 1:
        return None
    step = key.steps[0]
    is_of_item = key.origin in (ast.Origin.CONTEXT, ast.Origin.VARIABLE)
    is_plain = step.axis is None and not step.descendant and not step.predicates
    return step if is_of_item and is_plain and step.kind is ast.NodeKind.ATTRIBUTE else None


def _equalities(
    conditions: Iterable[ast.Expression],
) -> Iterator[tuple[ast.Expression, ast.Expression]]:
    """The sides of the equalities that all have to hold, either one first."""
    for part in flat(conditions, ast.And):
        match part:
            case ast.Comparison(left, ast.Operator.EQ, right):
                yield from ((left, right), (right, left))


def _join_in(predicate: ast.Expression) -> tuple[ast.Expression, ast.Expression] | None:
    """Key and probe of an equality that a predicate is, or is a part of."""
    for key, probe in _equalities((predicate,)):
        if not key.free_variables() and not probe.uses_context():
            return key, probe
    return None


def _join_of(conditions: Iterable[ast.Expression], variable: str, focus: Focus) -> _Join | None:
    """Of what depends on the variable alone with what depends on others bound already."""
    others = focus.variables.keys() - {variable}
    for key, probe in _equalities(conditions):
        is_key = key.free_variables() == {variable} and not key.uses_context()
        if is_key and probe.free_variables() <= others:
            return _Join(key, probe)
    return None
