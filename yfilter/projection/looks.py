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

from yfilter.language import query_ast as ast
from yfilter.language.functions import signature_of
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

_OF_NAMES = frozenset(("name", "local-name", "namespace-uri"))
_BEYOND = frozenset(("root", "lang", "svrl:location"))
_KINDS = {ast.Use.THERE: Kind.NODE, ast.Use.VALUE: Kind.VALUE, ast.Use.COPY: Kind.SUBTREE}
_DOWNWARD = (None, ast.Axis.SELF, ast.Axis.DESCENDANT, ast.Axis.DESCENDANT_OR_SELF)


class Looks:
    """Collects what is looked at, by whether that is said from the binding or from the message."""

    def __init__(self, binding: Steps, variables: Mapping[str, Places] | None = None) -> None:
        """``variables``: the places of variables that are bound around.  The attribute ``known``
        has the places of expressions, by identity, which the walk does not enter."""
        self.at_binding: dict[Kept, None] = {}
        self.in_message: dict[Kept, None] = {}
        self._binding = binding
        self.known: dict[int, Places] = {}
        self._variables = dict(variables or {})  # none hides another one
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

    def value(self, expression: ast.Expression, use: Kind, context: Places = (DOCUMENT,)) -> Places:
        """The places of an expression's value, of which ``use`` is made; LooksEverywhere."""
        if expression.is_location:
            return self._path(expression, use, context)
        match expression:
            case ast.Mapped(left, right) | ast.SimpleMap(left, right):
                return self.value(right, use, self.value(left, Kind.NODE, context))
            case ast.FunctionCall():
                self._look_by(expression, context)
            case ast.UserCall():
                return self._user_call(expression, use, context)
            case ast.Typed(_, type_) if type_.kind is ast.NodeKind.DOCUMENT:
                raise LooksEverywhere
            case ast.Typeswitch(_, cases):
                types = [type_ for case in cases for type_ in case.types]
                if any(type_.kind is ast.NodeKind.DOCUMENT for type_ in types):
                    raise LooksEverywhere
        found: list[Place] = []
        for part, how, binds in expression.part_uses():
            places = self.known.get(id(part))
            if places is None:
                places = self.value(part, _KINDS.get(how, use), context)
            is_nodes = how in (ast.Use.PASSED, ast.Use.THERE)
            self._variables.update(dict.fromkeys(binds, places if is_nodes else ()))
            found += places if how is ast.Use.PASSED else ()
        return _distinct(found)

    def _user_call(self, call: ast.UserCall, use: Kind, context: Places) -> Places:
        """What a variable was declared as; all that is in the arguments of a function that looks
        at nothing else."""
        if call.library:
            self._declare(call.library)
        if call.is_variable:
            if call.name not in self._declared:
                raise LooksEverywhere
            self.mark(self._declared[call.name], use)
            return self._declared[call.name]
        arguments = (self.value(each, Kind.SUBTREE, context) for each in call.arguments)
        places = _distinct(place for found in arguments for place in found)
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
            self._declared[one.name] = self.value(one.body, Kind.NODE, ())

    def _look_by(self, call: ast.FunctionCall, context: Places) -> None:
        """Marks the places that a function looks at besides its arguments."""
        name, signature = call.name, signature_of(call.name)
        if name == "svrl:location":  # which counts siblings, of everything that is around
            self.mark((Place(False, ((True, ast.ANY_NAME),)),), Kind.NODE)
        elif signature is None or name in _BEYOND:
            raise LooksEverywhere
        elif not call.arguments and signature.context:
            self.mark(context, Kind.NODE if name in _OF_NAMES else Kind.VALUE)

    # --- paths ----------------------------------------------------------------------------

    def _path(self, path: ast.Expression, use: Kind, context: Places) -> Places:
        match path.origin:
            case ast.Origin.MESSAGE:
                places: Places = (DOCUMENT,)
            case ast.Origin.CONTEXT:
                places = context
            case ast.Origin.VARIABLE:
                places = self._variables.get(path.refers(), ())
            case ast.Origin.EXPRESSION:
                (start,) = path.same_focus()
                places = self.value(start, Kind.NODE, context)
        for step in path.steps:
            places = _distinct(found for place in places for found in self._step(place, step))
            self.conditions(step.predicates, places)
        self.mark(places, use)
        return places

    def conditions(self, predicates: tuple[ast.Expression, ...], places: Places) -> None:
        """Predicates on what is at ``places``: all of these are there to be counted."""
        if predicates:
            self.mark(places, Kind.NODE)
        for predicate in predicates:
            self.value(predicate, Kind.NODE, places)

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
        if isinstance(part, ast.FunctionCall) and part.name in _BEYOND:
            return False
        if part.origin is ast.Origin.MESSAGE or (
            isinstance(part, ast.UserCall) and part.is_variable
        ):
            return False
        if any(
            step.kind is ast.NodeKind.PARENT or step.axis not in _DOWNWARD for step in part.steps
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
