"""Looks: which places of a message an expression looks at, and how closely.

An abstract run of the interpreter: the value of an expression is the *places* that its nodes can
be at, and whatever is done with them is marked there, as closely as it asks (``Kind``)::

    count($e/link)          $e/link           NODE       that they are there
    $e/price > 5            $e/price          VALUE      their text
    <hit>{$e/title}</hit>   $e/title          SUBTREE    a copy
    $e/a[2]                 $e/a              NODE       all of them are counted
    $e/../@id               parent of $e      ATTRIBUTE
    $e/following::a         //a               NODE       wherever they are

Predicates are looked at, and taken to hold.  So the places are never fewer than the nodes, and a
path selects the same nodes in whatever keeps all that is at them.  What is not understood looks at
everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from formats.names import QualifiedName
from yfilter.language import query_ast as ast
from yfilter.language.functions import ArgumentKind, signature_of
from yfilter.projection.needs import Kept, Kind, Steps

PLACES_MAX = 256  # of one value; beyond that, everything is looked at


class LooksEverywhere(Exception):
    """The places cannot be told, or there are too many."""


class Place(NamedTuple):
    """Elements: those at ``steps`` from the binding, or from the document node.

    ``leaf``: attributes or texts of these elements, which are looked at already.
    """

    from_binding: bool
    steps: Steps
    leaf: bool = False


Places: TypeAlias = tuple[Place, ...]

DOCUMENT = Place(False, ())
BINDING = Place(True, ())
_NOTHING: Places = ()

_OF_THEIR_ARGUMENTS = frozenset(
    (
        *("head", "tail", "reverse", "subsequence", "insert-before", "remove", "unordered"),
        *("zero-or-one", "one-or-more", "exactly-one", "trace"),
    )
)
_COUNTED = frozenset(("count", "exists", "empty"))
_OF_NAMES = frozenset(("name", "local-name", "namespace-uri"))
_BEYOND = frozenset(("root", "lang", "svrl:location"))
_NODE_OPERATIONS = frozenset(("|", "intersect", "except"))
_PLACED = frozenset(("is", "<<", ">>"))
_DOWNWARD = (None, ast.Axis.SELF, ast.Axis.DESCENDANT, ast.Axis.DESCENDANT_OR_SELF)


class Scope(NamedTuple):
    """What variables and the context item can be."""

    variables: Mapping[str, Places]
    context: Places

    def with_variable(self, name: str, places: Places) -> Scope:
        return Scope({**self.variables, name: places}, self.context)


class Looks:
    """Collects what is looked at, by whether that is said from the binding or from the message."""

    def __init__(self, binding: Steps) -> None:
        self.at_binding: dict[Kept, None] = {}
        self.in_message: dict[Kept, None] = {}
        self._binding = binding
        self._library: tuple[ast.FunctionDeclaration, ...] = ()
        self._declared: dict[str, Places] = {}  # of declared variables

    def mark(self, places: Places, kind: Kind, attribute: ast.NameTest | None = None) -> None:
        for place in places:
            if place.leaf or (place == DOCUMENT and kind is Kind.NODE):
                continue
            if place == DOCUMENT:
                self.in_message[Kept((), Kind.SUBTREE)] = None
                continue
            marked = self.at_binding if place.from_binding else self.in_message
            marked[Kept(place.steps, kind, attribute)] = None

    def value(self, expression: ast.Expression, use: Kind, scope: Scope) -> Places:
        """The places of an expression's value, of which ``use`` is made; LooksEverywhere."""
        match expression:
            case ast.PathExpression():
                return self._path(expression, use, scope)
            case ast.Mapped(left, right) | ast.SimpleMap(left, right):
                context = self.value(left, Kind.NODE, scope)
                return self.value(right, use, Scope(scope.variables, context))
            case ast.FunctionCall():
                return self._call(expression, use, scope)
            case ast.Operation(name, operands):
                if name in _NODE_OPERATIONS:
                    return self._all(operands, use, scope)
                return self._none(operands, Kind.NODE if name in _PLACED else Kind.VALUE, scope)
            case ast.Sequence(parts):
                return self._all(parts, use, scope)
            case ast.Comparison() | ast.Cast():
                return self._none(expression.same_focus(), Kind.VALUE, scope)
            case ast.Conditional(condition, consequence, alternative):
                self.value(condition, Kind.NODE, scope)
                return self._all((consequence, alternative), use, scope)
            case ast.Typed(operand):
                if expression.type.kind is ast.NodeKind.DOCUMENT:
                    raise LooksEverywhere
                return self.value(operand, use, scope)
            case ast.TryCatch(body, clauses):
                found = self.value(body, use, scope)
                for name in ast.ERROR_VARIABLES:
                    scope = scope.with_variable(name, found)  # a value goes with an error
                handled = self._all([clause.result for clause in clauses], use, scope)
                return _distinct((*found, *handled))
            case ast.Typeswitch():
                return self._typeswitch(expression, use, scope)
            case ast.UserCall():
                return self._user_call(expression, use, scope)
            case ast.Transform(copies, changes, result):
                for copy in copies:
                    self.value(copy.value, Kind.SUBTREE, scope)
                    scope = scope.with_variable(copy.variable, ())
                self.value(changes, Kind.NODE, scope)
                return self.value(result, use, scope)
            case ast.Update():
                return self._none(expression.same_focus(), Kind.SUBTREE, scope)
            case ast.Constructor() | ast.Computed():
                return self._constructed(expression, scope)
            case ast.Quantified(_, bindings, condition):
                for variable, source in bindings:
                    places = self.value(source, Kind.NODE, scope)
                    scope = scope.with_variable(variable, places)
                return self._none((condition,), Kind.NODE, scope)
            case ast.Flwor():
                return self.flwor(expression, use, scope)
            case _:  # conditions, literals, markup
                return self._none(expression.same_focus(), Kind.NODE, scope)

    def flwor(
        self, flwor: ast.Flwor, use: Kind, scope: Scope, first: Places | None = None
    ) -> Places:
        """``first``: what the first clause binds, where that is known already."""
        scope = self._clauses(flwor.clauses, flwor.where, scope, first)
        if flwor.group is not None:
            for name, value in flwor.group.keys:
                if value is None:
                    self.mark(scope.variables[name], Kind.VALUE)
                else:
                    self.value(value, Kind.VALUE, scope)
                scope = scope.with_variable(name, ())
            scope = self._clauses(flwor.group.clauses, flwor.group.where, scope, None)
        for key in flwor.order:
            self.value(key.key, Kind.VALUE, scope)
        return self.value(flwor.result, use, scope)

    def _clauses(
        self,
        clauses: tuple[ast.Clause, ...],
        where: ast.Expression | None,
        scope: Scope,
        first: Places | None,
    ) -> Scope:
        for clause in clauses:
            if isinstance(clause, ast.ForClause):
                bound = self.value(clause.path, Kind.NODE, scope) if first is None else first
                first = None
                scope = scope.with_variable(clause.variable, bound)
                if clause.position:
                    scope = scope.with_variable(clause.position, ())
            elif isinstance(clause, ast.LetClause):
                bound = self.value(clause.value, Kind.NODE, scope)
                scope = scope.with_variable(clause.variable, bound)
            else:
                self.value(clause.condition, Kind.NODE, scope)
        if where is not None:
            self.value(where, Kind.NODE, scope)
        return scope

    # --- parts ----------------------------------------------------------------------------

    def _all(self, parts: Iterable[ast.Expression], use: Kind, scope: Scope) -> Places:
        return _distinct(place for part in parts for place in self.value(part, use, scope))

    def _none(self, parts: Iterable[ast.Expression], use: Kind, scope: Scope) -> Places:
        """Parts that are looked at, of a value that is no node of the message."""
        for part in parts:
            self.value(part, use, scope)
        return ()

    def _constructed(self, expression: ast.Constructor | ast.Computed, scope: Scope) -> Places:
        if isinstance(expression, ast.Computed):
            if expression.name is not None and not isinstance(expression.name, QualifiedName):
                self.value(expression.name, Kind.VALUE, scope)
            is_copy = expression.kind is ast.NodeKind.ELEMENT
            self.value(expression.content, Kind.SUBTREE if is_copy else Kind.VALUE, scope)
            return ()
        for _, value in expression.attributes:
            self._none((part for part in value if not isinstance(part, str)), Kind.VALUE, scope)
        inside = (part for part in expression.content if not isinstance(part, str))
        return self._none(inside, Kind.SUBTREE, scope)

    def _typeswitch(self, switch: ast.Typeswitch, use: Kind, scope: Scope) -> Places:
        operand = self.value(switch.operand, Kind.NODE, scope)
        found: list[Place] = []
        for case in switch.cases:
            if any(type_.kind is ast.NodeKind.DOCUMENT for type_ in case.types):
                raise LooksEverywhere
            inner = scope.with_variable(case.variable, operand) if case.variable else scope
            found += self.value(case.result, use, inner)
        return _distinct(found)

    def _user_call(self, call: ast.UserCall, use: Kind, scope: Scope) -> Places:
        """What a variable was declared as; all that is in the arguments of a function that looks
        at nothing else."""
        if call.library:
            self._declare(call.library)
        if call.is_variable:
            if call.name not in self._declared:
                raise LooksEverywhere
            self.mark(self._declared[call.name], use)
            return self._declared[call.name]
        places = self._all(call.arguments, Kind.SUBTREE, scope)
        inside = [one for place in places if not place.leaf for one in _and_below(place)]
        return _distinct((*places, *inside, *_leaves(tuple(inside))))

    def _declare(self, library: tuple[ast.FunctionDeclaration, ...]) -> None:
        if library == self._library:
            return
        self._library = library
        variables = [one for one in library if one.name.startswith("$")]
        if not all(_stays_inside(one.body) for one in library if one not in variables):
            raise LooksEverywhere
        for one in variables:
            self._declared[one.name] = self.value(one.body, Kind.NODE, Scope({}, ()))

    def _call(self, call: ast.FunctionCall, use: Kind, scope: Scope) -> Places:
        name, signature = call.name, signature_of(call.name)
        if name == "svrl:location":  # which counts siblings, of everything that is around
            self.mark((Place(False, ((True, ast.ANY_NAME),)),), Kind.NODE)
            return self._none(call.arguments, Kind.NODE, scope)
        if signature is None or name in _BEYOND:
            raise LooksEverywhere
        if name in _OF_THEIR_ARGUMENTS:
            return self._all(call.arguments, use, scope)
        if not call.arguments and signature.context:
            self.mark(scope.context, Kind.NODE if name in _OF_NAMES else Kind.VALUE)
        for index, argument in enumerate(call.arguments):
            match signature.argument(index):
                case ArgumentKind.CONDITION | ArgumentKind.NODES:
                    self.value(argument, Kind.NODE, scope)
                case ArgumentKind.ITEMS:
                    self.value(argument, Kind.NODE if name in _COUNTED else Kind.SUBTREE, scope)
                case _:
                    self.value(argument, Kind.VALUE, scope)
        return ()

    # --- paths ----------------------------------------------------------------------------

    def _path(self, path: ast.PathExpression, use: Kind, scope: Scope) -> Places:
        match path.origin:
            case ast.Origin.MESSAGE:
                places: Places = (DOCUMENT,)
            case ast.Origin.CONTEXT:
                places = scope.context
            case ast.Origin.VARIABLE:
                places = scope.variables[path.variable]
            case ast.Origin.EXPRESSION:
                assert path.start is not None
                places = self.value(path.start, Kind.NODE if path.steps else use, scope)
        for step in path.steps:
            places = _distinct(found for place in places for found in self._step(place, step))
            self.conditions(step.predicates, places, scope)
        self.mark(places, use)
        return places

    def conditions(
        self, predicates: tuple[ast.Expression, ...], places: Places, scope: Scope
    ) -> None:
        """Predicates on what is at ``places``: all of these are there to be counted."""
        if predicates:
            self.mark(places, Kind.NODE)
            self._none(predicates, Kind.NODE, Scope(scope.variables, places))

    def _step(self, place: Place, step: ast.LocationStep) -> Places:
        if step.axis is not None:
            return self._on_axis(place, step, step.axis)
        match step.kind:
            case ast.NodeKind.SELF | ast.NodeKind.DOCUMENT:
                return (place,)
            case ast.NodeKind.PARENT:
                self.mark((place,), Kind.NODE)
                return self._parents(place)
        if place.leaf:
            return ()
        match step.kind:
            case ast.NodeKind.ELEMENT:
                assert step.test is not None
                return (_below(place, step.descendant, step.test),)
            case ast.NodeKind.ATTRIBUTE:
                around = _and_below(place) if step.descendant else (place,)
                owners = tuple(owner for owner in around if owner != DOCUMENT)
                self.mark(owners, Kind.ATTRIBUTE, step.test)
                return _leaves(owners)
            case ast.NodeKind.TEXT:
                self.mark((place,), Kind.VALUE)
                return _leaves(_and_below(place) if step.descendant else (place,))
            case _:  # comments, processing instructions, node()
                self.mark((place,), Kind.SUBTREE)
                leaves = _leaves(_and_below(place) if step.descendant else (place,))
                return (_below(place, step.descendant, ast.ANY_NAME), *leaves)

    def _on_axis(self, place: Place, step: ast.LocationStep, axis: ast.Axis) -> Places:
        if axis is ast.Axis.SELF:
            return (place,)
        if step.kind is ast.NodeKind.ELEMENT:
            test, document = step.test or ast.ANY_NAME, _NOTHING
        elif step.kind is ast.NodeKind.NODE and axis in (
            ast.Axis.PARENT,
            ast.Axis.ANCESTOR,
            ast.Axis.ANCESTOR_OR_SELF,
        ):
            test, document = ast.ANY_NAME, (DOCUMENT,)
        else:
            raise LooksEverywhere
        self.mark((place,), Kind.NODE)
        anywhere = Place(False, ((True, test),))
        match axis:
            case ast.Axis.PARENT:
                return self._parents(place)
            case ast.Axis.DESCENDANT | ast.Axis.DESCENDANT_OR_SELF:
                found: Places = () if place.leaf else (_below(place, True, test),)
                return found if axis is ast.Axis.DESCENDANT else (*found, place)
            case ast.Axis.ANCESTOR:
                return (anywhere, *document)
            case ast.Axis.ANCESTOR_OR_SELF:
                return (anywhere, place, *document)
            case _:
                return (anywhere,)

    def _parents(self, place: Place) -> Places:
        if place.leaf:
            return (place._replace(leaf=False),)
        if not place.steps and place.from_binding:
            place = Place(False, self._binding)
        if not place.steps:
            return ()
        above = place._replace(steps=place.steps[:-1])
        return _and_below(above) if place.steps[-1][0] else (above,)


def _stays_inside(expression: ast.Expression) -> bool:
    """Whether it comes to no node that is not in a node that it is given."""
    for part in expression.within():
        match part:
            case ast.FunctionCall(name) if name in _BEYOND:
                return False
            case ast.UserCall() if part.is_variable:
                return False
            case ast.PathExpression(ast.Origin.MESSAGE):
                return False
            case ast.PathExpression(_, steps) if any(
                step.kind is ast.NodeKind.PARENT or step.axis not in _DOWNWARD for step in steps
            ):
                return False
    return True


def _below(place: Place, descendant: bool, test: ast.NameTest) -> Place:
    return Place(place.from_binding, (*place.steps, (descendant, test)))


def _and_below(place: Place) -> Places:
    return (place, _below(place, True, ast.ANY_NAME))


def _leaves(places: Places) -> Places:
    return tuple(place._replace(leaf=True) for place in places)


def _distinct(places: Iterable[Place]) -> Places:
    found = tuple(dict.fromkeys(places))
    if len(found) > PLACES_MAX:
        raise LooksEverywhere
    return found
