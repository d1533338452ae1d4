"""The needs of a profile: what of a message its results can be made of.

::

    for $e in /feed/entry                         the binding: /feed/entry
    where $e/category/@term = "xml"               its condition, as far as linear paths can say it
      and not($e/@draft) and /feed/@lang = "en"   kept below a binding where that holds:
    return <hit>{$e/title}</hit>                    @draft, category/@term, title
                                                  kept in any message: /feed/@lang

The binding is the last step of the first ``for`` that has conditions.  An element where they fail
comes to nothing, there or on what is left of the message (needs.py).  A profile without such a
``for``, or with positions in it, has needs from the document node, under the condition of its
routing query; so has one that delivers the message itself, which needs all of it.

A profile of the graph reading needs all of every RDF/XML document, whatever it asks of the graph
that is derived from that; and of striped graphs, of which nothing is ever cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import (
    ANY_DOCUMENT,
    Conjunction,
    conjunctions_of,
    routing_query,
)
from yfilter.engine.readings import RDF_XML_ROOT, Reading, reading_of
from yfilter.engine.tree_patterns import element_test
from yfilter.language import query_ast as ast
from yfilter.language.functions import signature_of
from yfilter.language.matching_path import matching_part, matching_path
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps

# -------------------------------------------------------------------------------------------------
# An abstract run of an expression: its value is the *places* that its nodes can be at, never fewer
# than the nodes; what is done with them is marked there, as closely as it asks (``Kind``):
#
#     count($e/link)          $e/link           NODE       that they are there
#     $e/price > 5            $e/price          VALUE      their text
#     <hit>{$e/title}</hit>   $e/title          SUBTREE    a copy
#     $e/a[2]                 $e/a              NODE       all of them are counted
#     $e/../@id               parent of $e      ATTRIBUTE
#     $e/following::a         //a               NODE       wherever they are


PLACES_MAX = 256  # of one value; beyond that, everything is looked at


class UsesEverything(Exception):
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
_SYSTEM = ast.NameTest("", "srsName")  # of places, which may stand above them
_KINDS = {ast.Use.THERE: Kind.NODE, ast.Use.VALUE: Kind.VALUE, ast.Use.COPY: Kind.SUBTREE}
_DOWNWARD = (None, ast.Axis.SELF, ast.Axis.DESCENDANT, ast.Axis.DESCENDANT_OR_SELF)


class PathUsage:
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
        """The places of an expression's value, of which ``use`` is made; UsesEverything."""
        if expression.is_location:
            return self._path(expression, use, context)
        match expression:
            case ast.Mapped(left, right) | ast.SimpleMap(left, right):
                return self.value(right, use, self.value(left, Kind.NODE, context))
            case ast.FunctionCall():
                self._use_by(expression, context)
            case ast.UserCall():
                return self._user_call(expression, use, context)
            case ast.Typed(_, type_) if type_.kind is ast.NodeKind.DOCUMENT:
                raise UsesEverything
            case ast.Typeswitch(_, cases):
                types = [type_ for case in cases for type_ in case.types]
                if any(type_.kind is ast.NodeKind.DOCUMENT for type_ in types):
                    raise UsesEverything
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
                raise UsesEverything
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
            raise UsesEverything
        for one in variables:
            self._declared[one.name] = self.value(one.body, Kind.NODE, ())

    def _use_by(self, call: ast.FunctionCall, context: Places) -> None:
        """Marks the places that a function looks at besides its arguments."""
        name, signature = call.name, signature_of(call.name)
        if name == "svrl:location":  # which counts siblings, of everything that is around
            self.mark((Place(False, ((True, ast.ANY_NAME),)),), Kind.NODE)
        elif name.startswith("place:"):
            self.mark((Place(False, ((True, ast.ANY_NAME),)),), Kind.ATTRIBUTE, _SYSTEM)
        elif signature is None or name in _BEYOND:
            raise UsesEverything
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
            raise UsesEverything
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
        raise UsesEverything
    return found


CONDITIONS_MAX = 32  # alternatives of one profile; beyond that, what they have in common
NEED_LENGTH_MAX = 64 * 1024  # characters of its text; any frame can carry one

_WHOLE = Kept((), Kind.SUBTREE)
RDF_XML = Need(((False, RDF_XML_ROOT),), None, (_WHOLE,))
_TRIVIAL = {ANY_DOCUMENT, Conjunction.parse("//*")}


def needs_of(profile: ast.Profile) -> tuple[Need, ...]:
    """The needs, in order of their text; none when no message has results."""
    if reading_of(matching_path(profile).steps) is Reading.GRAPH:
        return (RDF_XML,)
    if _calls_root(profile.body):
        return (EVERYTHING,)
    try:
        needs = _needs_of(profile)
    except (UsesEverything, RecursionError):
        needs = _in_message(profile, (_WHOLE,))
    return tuple(sorted({_within_bounds(need) for need in needs}, key=str))


def _uses_beside(flwor: ast.Flwor) -> bool:
    """Whether the first clause has positions, or axes that do not lead down: then what is beside
    its elements is kept as well."""
    first = flwor.clauses[0]
    return isinstance(first, ast.ForClause) and any(
        step.is_positional or step.axis is not None for step in first.path.steps
    )


def _within_bounds(need: Need) -> Need:
    """What is too long to be told, without its condition, or else everything."""
    if len(need.text) > NEED_LENGTH_MAX:
        need = Need(need.binding, None, need.kept)
    return need if len(need.text) <= NEED_LENGTH_MAX else EVERYTHING


def _needs_of(profile: ast.Profile) -> list[Need]:
    if profile.body.is_path():
        return _in_message(profile, (_WHOLE,))
    part = matching_part(profile)
    if profile.flwor is not None and part.binds and not _uses_beside(profile.flwor):
        return _of_binding(profile, profile.flwor, part.path)
    usage = PathUsage(())
    usage.value(profile.body, Kind.SUBTREE)
    return _in_message(profile, _plainest(usage.in_message))


def _of_binding(profile: ast.Profile, flwor: ast.Flwor, path: ast.Expression) -> list[Need]:
    """``path``: what the first clause binds, with ``where`` among the conditions of its last
    step."""
    steps = path.steps
    structure = tuple((step.descendant, element_test(step)) for step in steps)
    conditional = [number for number, step in enumerate(steps, 1) if step.predicates]
    length = conditional[-1] if conditional else len(steps)
    first = (_place(structure, len(steps), length),)
    usage = PathUsage(structure[:length])
    usage.known[id(flwor.clauses[0].part_use().part)] = first
    for number, step in enumerate(steps, 1):
        place = _place(structure, number, length)
        usage.conditions(step.predicates, (place,))
    usage.mark((BINDING, *first), Kind.NODE)
    _use_around(usage, profile.body, flwor)
    conditions = _conditions(steps[length - 1].predicates, steps[length:])
    kept = _plainest(usage.at_binding)
    needs = [Need(structure[:length], condition, kept) for condition in conditions]
    elsewhere = _plainest(usage.in_message)
    copied = tuple(one for one in elsewhere if one.kind is Kind.SUBTREE)
    needs += _in_message(profile, copied) if copied else []
    others = tuple(one for one in elsewhere if one.kind is not Kind.SUBTREE)
    return [*needs, Need((), None, others)] if others else needs


def _plainest(marked: Iterable[Kept]) -> tuple[Kept, ...]:
    """Without what is kept for another's sake."""
    kept = set(marked)
    return tuple(one for one in kept if not any(other.covers(one) for other in kept - {one}))


def _place(structure: Steps, number: int, length: int) -> Place:
    """Where the first steps of the ``for`` lead, said from the binding if they go that far."""
    if number < length:
        return Place(False, structure[:number])
    return BINDING._replace(steps=structure[length:number])


def _use_around(usage: PathUsage, body: ast.Expression, flwor: ast.Flwor) -> None:
    """The FLWOR, and what stands beside it in the constructor that is the whole profile."""
    usage.value(flwor, Kind.SUBTREE)
    if isinstance(body, ast.Constructor):
        beside = tuple(part for part in body.content if part is not flwor)
        usage.value(replace(body, content=beside), Kind.SUBTREE)


def _conditions(
    predicates: tuple[ast.Expression, ...], later: tuple[ast.LocationStep, ...]
) -> tuple[Conjunction | None, ...]:
    """Of which one holds at an element that the predicates let through and the path goes on
    from; ``/*`` is that element."""
    own = tuple(predicate for predicate in predicates if not _starts_at_message(predicate))
    element = ast.LocationStep(False, ast.NodeKind.ELEMENT, ast.ANY_NAME, own)
    path = ast.absolute(element, *later)
    return _or_none(conjunctions_of(path, CONDITIONS_MAX))


def _in_message(profile: ast.Profile, kept: tuple[Kept, ...]) -> list[Need]:
    conditions = _or_none(routing_query(profile, CONDITIONS_MAX))
    return [Need((), condition, kept) for condition in conditions]


def _or_none(conditions: tuple[Conjunction, ...]) -> tuple[Conjunction | None, ...]:
    return (None,) if _TRIVIAL & set(conditions) else conditions


def _starts_at_message(expression: ast.Expression) -> bool:
    return any(part.origin is ast.Origin.MESSAGE for part in expression.within())


def _calls_root(expression: ast.Expression) -> bool:
    """root() may stand in a condition, of which then nothing can be said."""
    return any(
        isinstance(part, ast.FunctionCall) and part.name in ("root", "svrl:location")
        for part in expression.within()
    )
