"""Can a profile ever match a message that is valid against a schema?

::

    schema   <!ELEMENT order (item*)> <!ELEMENT item (price)> <!ELEMENT price (#PCDATA)>
    profile  /order/item[prise < 20]
                         ^ <item> has no child 'prise'; expected 'price'

The profile is followed over the *places* that the schema has.  An expression
has a set of places, or is unknown; where it would have none in any valid message, the step at
which that happens is ``_Impossible``.  All that is not understood counts as possible: a profile
that matches some valid message never gets a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import IntEnum
from typing import NamedTuple, NoReturn, TypeAlias

from formats.allowed_content import Allowed, AllowedContent
from formats.schema_model import ANY, Name, TextContent, Values, collapsed
from yfilter.errors import ProfileRefused
from yfilter.graph.graph_query import is_graph_query, parse_graph_query
from yfilter.language import query_ast as ast
from yfilter.language.functions import Kinds
from yfilter.language.namespaces import ShortNames
from yfilter.language.near_miss import near_miss
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS, checked_text
from yfilter.language.query_ast import Axis, LocationStep, NameTest, NodeKind
from yfilter.language.query_parser import QueryParser, prefixes_of
from yfilter.language.query_text import unparse

# -------------------------------------------------------------------------------------------------
# Places: all nodes that could be there under the schema: the document, an element that follows a
# declaration, an attribute of one, its text, or its comments and processing instructions.  A step
# leads to every place that it could reach in some valid message, and perhaps to more.


NO_NAME = Name("", "")


class PlaceKind(IntEnum):
    DOCUMENT = 0
    ELEMENT = 1
    ATTRIBUTE = 2
    TEXT = 3
    OTHER = 4  # a comment or processing instruction


class Place(NamedTuple):
    """``declaration`` of the element, or of the one that holds the node; -1 for the document.

    ``attribute``: the name of an attribute, else NO_NAME.
    """

    kind: PlaceKind
    declaration: int
    attribute: Name = NO_NAME


MESSAGE = Place(PlaceKind.DOCUMENT, -1)
_KINDS = {
    NodeKind.ELEMENT: (PlaceKind.ELEMENT,),
    NodeKind.ATTRIBUTE: (PlaceKind.ATTRIBUTE,),
    NodeKind.TEXT: (PlaceKind.TEXT,),
    NodeKind.COMMENT: (PlaceKind.OTHER,),
    NodeKind.PROCESSING_INSTRUCTION: (PlaceKind.OTHER,),
    NodeKind.DOCUMENT: (PlaceKind.DOCUMENT,),
}


class SchemaPlaces:
    """The places of one schema."""

    def __init__(self, model: AllowedContent) -> None:
        self._model = model
        self._parents: dict[int, set[int]] = {}
        for number, declaration in enumerate(model.declarations):
            for child in declaration.children:
                self._parents.setdefault(child, set()).add(number)
        self._below: dict[int, frozenset[int]] = {}

    def declaration(self, place: Place) -> Allowed | None:
        """Of an element, or of what holds another node; None for the document."""
        return None if place.declaration < 0 else self._model.declarations[place.declaration]

    def after_step(self, place: Place, step: LocationStep) -> set[Place]:
        """Where a step from one place leads; its predicates are not looked at."""
        starts: Iterable[Place] = (place,)
        if step.descendant:
            starts = self._descendants_or_self(place)
        reached = {there for start in starts for there in self._along(start, step)}
        return {there for there in reached if self._passes(there, step.kind, step.test)}

    def values(self, place: Place) -> Values:
        """The string values that a node can have, collapsed; None where they are not listed."""
        declaration = self.declaration(place)
        if declaration is None:
            return None
        nothing = frozenset(("",))
        if place.kind is PlaceKind.ATTRIBUTE:
            return declaration.attributes.get(place.attribute)
        is_blank = declaration.text is not TextContent.ANY
        if place.kind is PlaceKind.TEXT:
            return nothing if is_blank else None
        if place.kind is PlaceKind.ELEMENT:
            return nothing if is_blank and not declaration.children else declaration.values
        return None

    # -- axes

    def _along(self, place: Place, step: LocationStep) -> Iterator[Place]:
        match step.axis:
            case None:
                yield from self._by_kind(place, step.kind)
            case Axis.SELF:
                yield place
            case Axis.PARENT:
                yield from self._parents_of(place)
            case Axis.DESCENDANT | Axis.DESCENDANT_OR_SELF:
                if step.axis is Axis.DESCENDANT_OR_SELF:
                    yield place
                for above in self._descendants_or_self(place):
                    yield from self._children(above)
            case Axis.ANCESTOR | Axis.ANCESTOR_OR_SELF:
                if step.axis is Axis.ANCESTOR_OR_SELF:
                    yield place
                yield from self._ancestors(place)
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                for parent in self._parents_of(place):
                    yield from self._children(parent)
            case Axis.FOLLOWING | Axis.PRECEDING:
                for above in self._descendants_or_self(MESSAGE):
                    yield from self._children(above)

    def _by_kind(self, place: Place, kind: NodeKind) -> Iterator[Place]:
        if kind is NodeKind.SELF:
            yield place
        elif kind is NodeKind.PARENT:
            yield from self._parents_of(place)
        elif kind is NodeKind.ATTRIBUTE:
            yield from self._attributes(place)
        else:
            yield from self._children(place)

    def _attributes(self, place: Place) -> Iterator[Place]:
        declaration = self.declaration(place)
        if declaration is None or place.kind is not PlaceKind.ELEMENT:
            return
        for name in declaration.attributes:
            yield Place(PlaceKind.ATTRIBUTE, place.declaration, name)
        if declaration.any_attribute:
            yield Place(PlaceKind.ATTRIBUTE, place.declaration, Name(ANY, ANY))

    def _children(self, place: Place) -> Iterator[Place]:
        if place.kind is PlaceKind.DOCUMENT:
            yield Place(PlaceKind.OTHER, -1)
            yield from (Place(PlaceKind.ELEMENT, root) for root in self._model.roots)
        declaration = self.declaration(place)
        if declaration is None or place.kind is not PlaceKind.ELEMENT:
            return
        yield from (Place(PlaceKind.ELEMENT, child) for child in declaration.children)
        if declaration.text is not TextContent.NONE:
            yield Place(PlaceKind.TEXT, place.declaration)
            yield Place(PlaceKind.OTHER, place.declaration)

    def _descendants_or_self(self, place: Place) -> Iterator[Place]:
        """The place and all elements below it."""
        yield place
        if place.kind not in (PlaceKind.ELEMENT, PlaceKind.DOCUMENT):
            return
        below = self._below.get(place.declaration)
        if below is None:
            found: set[int] = set()
            waiting = [there.declaration for there in self._elements_in(place)]
            while waiting:
                number = waiting.pop()
                if number not in found:
                    found.add(number)
                    waiting += self._model.declarations[number].children
            below = self._below[place.declaration] = frozenset(found)
        yield from (Place(PlaceKind.ELEMENT, number) for number in below)

    def _elements_in(self, place: Place) -> Iterator[Place]:
        return (there for there in self._children(place) if there.kind is PlaceKind.ELEMENT)

    def _parents_of(self, place: Place) -> Iterator[Place]:
        if place.kind is PlaceKind.DOCUMENT:
            return
        if place.kind is not PlaceKind.ELEMENT:
            yield MESSAGE if place.declaration < 0 else Place(PlaceKind.ELEMENT, place.declaration)
            return
        if place.declaration in self._model.roots:
            yield MESSAGE
        for parent in self._parents.get(place.declaration, ()):
            yield Place(PlaceKind.ELEMENT, parent)

    def _ancestors(self, place: Place) -> set[Place]:
        found: set[Place] = set()
        waiting = list(self._parents_of(place))
        while waiting:
            above = waiting.pop()
            if above not in found:
                found.add(above)
                waiting += self._parents_of(above)
        return found

    # -- node tests

    def _passes(self, place: Place, kind: NodeKind, test: NameTest | None) -> bool:
        if kind in (NodeKind.SELF, NodeKind.PARENT, NodeKind.NODE):
            return True
        if place.kind not in _KINDS[kind]:
            return False
        if test is None or kind not in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
            return True
        return any(name.meets(test.namespace, test.local) for name in self.names(place))

    def names(self, place: Place) -> tuple[Name, ...]:
        """The names that an element or attribute there can have."""
        if place.kind is PlaceKind.ATTRIBUTE:
            return (place.attribute,)
        declaration = self.declaration(place)
        is_element = place.kind is PlaceKind.ELEMENT and declaration is not None
        return declaration.names if is_element and declaration else ()


# -------------------------------------------------------------------------------------------------
# A profile parsed once more, with the place of each step in its text.


class LocatedSteps:
    """``body``: the profile's expression; ``offset`` says where in ``text`` a step of it stands."""

    def __init__(self, text: str) -> None:
        self.text = checked_text(text, DEFAULT_PROFILE_LIMITS)
        parser = _LocatingParser(self.text, DEFAULT_PROFILE_LIMITS)
        self.body: ast.Expression = parser.profile()
        self._offsets = parser.offsets

    def offset(self, step: ast.LocationStep) -> int:
        _, offset = self._offsets.get(id(step), (step, -1))
        if offset < 0:  # the parser put it together with another one: the first that looks like it
            same = [at for known, at in self._offsets.values() if known.test == step.test]
            offset = min(same, default=0)
        return offset


class _LocatingParser(QueryParser):
    """Notes where each step begins; the step is kept so that its id stays its own."""

    offsets: dict[int, tuple[ast.LocationStep, int]]

    def _step(self, kinds: Kinds, descendant: bool) -> ast.LocationStep:
        if not hasattr(self, "offsets"):
            self.offsets = {}
        offset = self.lexer.peek().offset
        step = super()._step(kinds, descendant)
        self.offsets[id(step)] = (step, offset)
        return step


# Places looked at for one profile; one that takes more gets no warning.
PLACES_MAX = 200_000


class SchemaCheck:
    """One schema, for any number of profiles."""

    def __init__(self, model: AllowedContent) -> None:
        self._places = SchemaPlaces(model)

    def warning(self, text: str) -> ProfileRefused | None:
        """Why a profile can match no valid message: the first step of it that is impossible under
        the schema, which says nothing about graphs; raises one for a text that is no profile."""
        if is_graph_query(text):
            parse_graph_query(text)
            return None
        located = LocatedSteps(text)
        try:
            _Walk(self._places).need_result(located.body)
        except _Impossible as impossible:
            place = located.text, located.offset(impossible.step)
            hint = self._hint(impossible.places, impossible.step)
            names = ShortNames(prefixes_of(text))
            reason, expected = map(names.short, (impossible.reason, impossible.expected))
            hint = "\n    ".join(filter(None, (hint, *names.declared())))
            return ProfileRefused("never-matches", reason, *place, expected, hint)
        except (_TooMuch, RecursionError):
            pass
        return None

    def _hint(self, places: frozenset[Place], step: ast.LocationStep) -> str:
        def names(wider: ast.LocationStep) -> set[tuple[str, str]]:
            reached = (there for place in places for there in self._places.after_step(place, wider))
            return {
                (name.namespace, name.local)
                for place in reached
                for name in self._places.names(place)
                if name.local != ast.ANY
            }

        return near_miss(step, names)


class _Impossible(Exception):
    """No valid message has what the step asks for."""

    def __init__(
        self,
        step: ast.LocationStep,
        reason: str,
        expected: str,
        places: frozenset[Place] = frozenset(),
    ) -> None:
        """``places``: from which the step leads nowhere."""
        super().__init__(reason)
        self.step = step
        self.places = places
        self.reason = reason
        self.expected = expected


class _TooMuch(Exception):
    """More than PLACES_MAX."""


# The places of an expression's nodes; None where the nodes, or values, are not known.
_Value: TypeAlias = frozenset[Place] | None


@dataclass(frozen=True, slots=True)
class _Scope:
    """``variables``: an _Impossible stands for the empty sequence."""

    context: Place | None
    variables: Mapping[str, _Value | _Impossible]

    def bound(self, name: str, value: _Value | _Impossible) -> _Scope:
        return replace(self, variables={**self.variables, name: value})


_OF_ONE_WITH_ONE = frozenset((*ast.VALUE_COMPARISONS, "is", "<<", ">>"))
_IN_STRING = frozenset(("contains", "starts-with", "ends-with"))


class _Walk:
    """One profile over the places of a schema."""

    def __init__(self, places: SchemaPlaces) -> None:
        self._places = places
        self._left = PLACES_MAX

    def need_result(self, body: ast.Expression) -> None:
        """Raises _Impossible for a profile that can have no result."""
        scope = _Scope(MESSAGE, {})
        if isinstance(body, ast.Constructor):
            self._some_of(body.decisive_parts(), lambda part: self._value(part, scope))
        else:
            self._value(body, scope)

    # -- values: _Impossible for what is always empty

    def _value(self, expression: ast.Expression, scope: _Scope) -> _Value:
        match expression:
            case _ if expression.is_location:
                return self._path(expression, scope)
            case ast.Mapped(left, right):
                before = self._value(left, scope)
                if before is None:
                    return None
                return self._some_of(
                    sorted(before), lambda place: self._value(right, replace(scope, context=place))
                )
            case ast.Operation("|", parts) | ast.Sequence(parts) if parts:
                return self._some_of(parts, lambda part: self._value(part, scope))
            case ast.Operation("intersect", (left, right)):
                self._value(right, scope)
                return self._value(left, scope)
            case ast.Operation("except", (left, _)):
                return self._value(left, scope)
            case ast.Conditional() | ast.Typeswitch():
                for name in expression.binds():
                    scope = scope.bound(name, None)
                return self._some_of(expression.outcomes(), lambda part: self._value(part, scope))
            case ast.Flwor():
                return self._flwor(expression, scope)
            case ast.Transform(copies):
                self._value(copies[0].value, scope)  # of which there has to be one
                return None
            case _:
                return None

    def _some_of(
        self,
        parts: Iterable[ast.Expression] | Iterable[Place],
        value_of: Callable[..., _Value],
    ) -> _Value:
        """The values of all parts together; impossible when each of them is."""
        found: set[Place] = set()
        is_unknown = False
        first: _Impossible | None = None
        is_possible = False
        for part in parts:
            self._charge()
            try:
                value = value_of(part)
            except _Impossible as impossible:
                first = first or impossible
                continue
            is_possible = True
            is_unknown |= value is None
            found.update(value or ())
        if first is not None and not is_possible:
            raise first
        return None if is_unknown else frozenset(found)

    def _path(self, path: ast.Expression, scope: _Scope) -> _Value:
        value = self._origin(path, scope)
        for step in path.steps:
            if value is None:
                return None
            reached: set[Place] = set()
            for place in value:
                there = self._places.after_step(place, step)
                self._charge(1 + len(there))
                reached |= there
            if not reached:
                raise _Impossible(step, *_why_no_step(self._places, value, step), value)
            value = self._filtered(reached, step.predicates, scope)
        return value

    def _origin(self, path: ast.Expression, scope: _Scope) -> _Value:
        match path.origin:
            case ast.Origin.MESSAGE:
                return frozenset((MESSAGE,))
            case ast.Origin.CONTEXT:
                return None if scope.context is None else frozenset((scope.context,))
            case ast.Origin.VARIABLE:
                value = scope.variables.get(path.refers())
                if isinstance(value, _Impossible):
                    raise value
                return value
            case ast.Origin.EXPRESSION:
                (start,) = path.same_focus()
                return self._value(start, scope)

    def _filtered(
        self, places: set[Place], predicates: tuple[ast.Expression, ...], scope: _Scope
    ) -> frozenset[Place]:
        """The places where each predicate can hold, one by one."""

        def keep(place: Place) -> _Value:
            for predicate in predicates:
                self._need(predicate, replace(scope, context=place))
            return frozenset((place,))

        if not predicates:
            return frozenset(places)
        return self._some_of(sorted(places), keep) or frozenset()

    def _flwor(self, flwor: ast.Flwor, scope: _Scope) -> _Value:
        for clause in flwor.clauses:
            match clause:
                case ast.ForClause(variable, path, position):
                    scope = scope.bound(variable, self._value(path, scope))
                    if position:
                        scope = scope.bound(position, None)
                case ast.LetClause(variable, value):
                    try:
                        scope = scope.bound(variable, self._value(value, scope))
                    except _Impossible as impossible:
                        scope = scope.bound(variable, impossible)
                case _:
                    self._need(clause.condition, scope)
        if flwor.where is not None:
            self._need(flwor.where, scope)
        if flwor.group is not None:
            return None
        return self._value(flwor.result, scope)

    # -- conditions: _Impossible for what never holds

    def _need(self, condition: ast.Expression, scope: _Scope) -> None:
        self._charge()
        match condition:
            case ast.And(parts):
                for part in parts:
                    self._need(part, scope)
            case ast.Or(parts):
                self._need_one(parts, scope)
            case ast.Conditional(_, consequence, alternative):
                self._need_one((consequence, alternative), scope)
            case ast.Comparison(left, operator, right):
                self._need_pair(left, right, scope, is_equality=operator is ast.Operator.EQ)
            case ast.Operation(name, (left, right)) if name in _OF_ONE_WITH_ONE:
                self._need_pair(left, right, scope, is_equality=name == "eq")
            case ast.FunctionCall("boolean", (inner,)):
                self._need(inner, scope)
            case ast.FunctionCall("exists", (inner,)):
                self._value(inner, scope)
            case ast.FunctionCall(name, (inner, ast.Literal(str(part)))) if (
                name in _IN_STRING and part
            ):
                self._value(inner, scope)
            case ast.Quantified(False, bindings, satisfied):
                for variable, source in bindings:
                    scope = scope.bound(variable, self._value(source, scope))
                self._need(satisfied, scope)
            case ast.FunctionCall() | ast.Operation() if not _selects(condition):
                pass
            case _:
                self._value(condition, scope)

    def _need_one(self, parts: Iterable[ast.Expression], scope: _Scope) -> None:
        def hold(part: ast.Expression) -> _Value:
            self._need(part, scope)
            return None

        self._some_of(parts, hold)

    def _need_pair(
        self, left: ast.Expression, right: ast.Expression, scope: _Scope, *, is_equality: bool
    ) -> None:
        """Both sides of a comparison; and where values are listed, one that is asked for."""
        values = self._value(left, scope), self._value(right, scope)
        if not is_equality:
            return
        for side, value, other in ((left, values[0], right), (right, values[1], left)):
            asked = _strings(other)
            if asked is None or not value:
                continue
            listed = [self._places.values(place) for place in value]
            possible = {text for one in listed if one is not None for text in one}
            if None not in listed and not possible & asked:
                self._refuse_values(side, possible, asked)

    def _refuse_values(self, side: ast.Expression, possible: set[str], asked: set[str]) -> None:
        if side.steps:
            raise _Impossible(side.steps[-1], *_why_no_value(side.steps[-1], possible, asked))

    def _charge(self, amount: int = 1) -> None:
        self._left -= amount
        if self._left < 0:
            self._stop()

    def _stop(self) -> NoReturn:
        raise _TooMuch


def _selects(expression: ast.Expression) -> bool:
    """Whether an operation's condition is that it yields any node."""
    return isinstance(expression, ast.Operation) and expression.name in ("|", "intersect", "except")


def _strings(expression: ast.Expression) -> set[str] | None:
    """The strings of a literal, or of a sequence of them, white space collapsed."""
    parts = expression.literals()
    found = {collapsed(part.value) for part in parts if isinstance(part.value, str)}
    return found if found and all(isinstance(part.value, str) for part in parts) else None


_SHOWN_MAX = 6
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"  # allowed wherever an XSD is, seldom meant


def _why_no_step(
    places: SchemaPlaces, before: Iterable[Place], step: ast.LocationStep
) -> tuple[str, str]:
    """(reason, expected) for a step that leads nowhere."""
    before = list(before)
    shown = _shown(step)
    where = _where(places, before)
    if step.axis is not None or step.kind not in (ast.NodeKind.ELEMENT, ast.NodeKind.ATTRIBUTE):
        return f"under the schema {shown} selects nothing from {where}", ""
    wider = replace(step, test=ast.ANY_NAME, predicates=())
    names = {
        name
        for place in before
        for there in places.after_step(place, wider)
        for name in places.names(there)
    }
    kind = "attribute" if step.kind is ast.NodeKind.ATTRIBUTE else "element"
    place = "below" if step.descendant else "in"
    if before and before[0].kind is PlaceKind.DOCUMENT and not step.descendant:
        reason = f"under the schema a message is never {shown}"
    else:
        reason = f"under the schema there is no {kind} {shown} {place} {where}"
    return reason, _expected(names, step)


def _why_no_value(
    step: ast.LocationStep, possible: Collection[str], asked: Collection[str]
) -> tuple[str, str]:
    """(reason, expected) for a comparison with a value that is not among those listed."""
    shown = _shown(step)
    values = " or ".join(f'"{text}"' for text in sorted(asked)[:_SHOWN_MAX])
    nearest = [one for text in asked for one in get_close_matches(text, possible, n=1)]
    expected = nearest or sorted(text for text in possible if text)
    return (
        f"under the schema {shown} is never {values}",
        _either([f'"{text}"' for text in expected]),
    )


def _shown(step: ast.LocationStep) -> str:
    alone = replace(step, predicates=(), descendant=False)
    return unparse(ast.relative(alone))


def _where(places: SchemaPlaces, before: list[Place]) -> str:
    names = sorted({name.local for place in before for name in places.names(place)} - {ast.ANY})
    if any(place.kind is PlaceKind.DOCUMENT for place in before) or not names:
        return "the message"
    if len(names) > _SHOWN_MAX:
        return f"<{names[0]}> and {len(names) - 1} other elements"
    marked = [f"<{name}>" for name in names]
    return _either(marked)


def _expected(names: set[Name], step: ast.LocationStep) -> str:
    """The names nearest to the one asked for; one in another namespace is written in full."""
    test = step.test
    known = sorted(name for name in names if name.local != ast.ANY and name.namespace != _INSTANCE)
    if test is None or not known:
        return ""
    sign = "@" if step.kind is ast.NodeKind.ATTRIBUTE else ""
    same = [name for name in known if name.local == test.local]
    if same:
        return _either([f"{sign}Q{{{name.namespace}}}{name.local}" for name in same])
    locals_ = sorted({name.local for name in known})
    close = get_close_matches(test.local, locals_, n=1)
    return _either([f"{sign}{local}" for local in close or locals_])


def _either(words: list[str]) -> str:
    if len(words) > _SHOWN_MAX:
        words = [*words[:_SHOWN_MAX], "…"]
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
