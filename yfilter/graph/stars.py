"""A graph pattern as paths over the striped graph, which the index finds among very many.

A pattern is taken apart into alternatives, and the triples of each into *stars*: those with one
subject.  A star is an element of a subject with conditions; the one that selects most is the last
step, the others are conditions of the root::

    SELECT * WHERE { ?c rss:items ?s . ?s ?li ?i . ?i dc:creator "Ann" FILTER(?i != ?c) }

        stars    ?c  d[rss:items]      ?s  d      ?i  d[dc:creator[@v = "Ann"]]
        path     /g[d[rss:items]]/d[dc:creator[@v = "Ann"]]

A path never says more than its alternative.  It says as much, and is *exact*, where no variable
stands in two places but as the subject of one star, and the filters are of one variable each and
can be said of the attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple, Protocol, TypeAlias, cast

from formats.graph import striped
from formats.graph.property_names import property_name
from formats.graph.vocabulary import RDF_TYPE
from yfilter.graph import query_ast as sparql
from yfilter.graph.group_variables import has_exists, variables_of
from yfilter.graph.term_conditions import (
    GRAPH_NAME,
    NEVER,
    OBJECT,
    SUBJECT,
    Place,
    all_of,
    any_of,
    attribute,
    compared,
    condition_of,
    term_condition,
    terms_condition,
)
from yfilter.language import query_ast as ast
from yfilter.language.trees import split

ALTERNATIVES_MAX = 32  # paths of a query; a routing query has no more disjuncts
VALUES_MAX = 256  # terms of VALUES that stand in a path

GraphOf: TypeAlias = "sparql.Iri | sparql.Variable | None"
"""Of which graph a triple is: a named one, any named one, the default one."""


class GraphPart(NamedTuple):
    """``paths``: a graph with a solution is selected by one of them.  ``is_exact``: and each
    graph that one selects has a solution."""

    paths: tuple[ast.Expression, ...]
    is_exact: bool


class _Origin(Protocol):
    """How a query was made, and its part can be."""

    @property
    def where(self) -> sparql.Group: ...

    def part(self) -> GraphPart: ...


def graph_part(query: sparql.GraphQuery) -> GraphPart:
    """What the engine looks for to find the graphs that have a solution."""
    known = cast("_Origin | None", query.known_part)
    if known is not None and known.where is query.where and not query.whole:
        return known.part()
    found = _alternatives(query.where, None)
    bound = {variable for branch in found.branches for variable in branch.variables}
    is_exact = found.is_exact and not query.whole and found.uncertain.isdisjoint(bound)
    ways_max = ALTERNATIVES_MAX // max(1, len(found.branches))
    compiled = [_Compiler(branch, ways_max) for branch in found.branches]
    paths = tuple(path for one in compiled for path in one.paths())
    if len(paths) > 1:
        paths = tuple(dict.fromkeys(paths))
    return GraphPart(paths or (_NO_GRAPH,), is_exact and all(one.is_exact for one in compiled))


# -- alternatives


@dataclass(frozen=True, slots=True)
class _Branch:
    """One alternative.  ``filters`` are of one variable each, which some triple gives a value;
    ``values``: one of these terms is that of the variable."""

    triples: tuple[tuple[sparql.TriplePattern, GraphOf], ...] = ()
    filters: tuple[ast.Expression, ...] = ()
    values: tuple[tuple[sparql.Variable, tuple[sparql.Iri | sparql.LiteralTerm, ...]], ...] = ()
    is_exact: bool = True

    @property
    def certain(self) -> set[sparql.Variable]:
        """The variables that a triple gives a value."""
        return {
            term
            for triple, graph in self.triples
            for term in (triple.subject, triple.property, triple.object, graph)
            if isinstance(term, sparql.Variable)
        }

    @property
    def variables(self) -> set[sparql.Variable]:
        return self.certain | {variable for variable, _ in self.values}

    def with_other(self, other: _Branch) -> _Branch:
        return _Branch(
            self.triples + other.triples,
            self.filters + other.filters,
            self.values + other.values,
            self.is_exact and other.is_exact,
        )


@dataclass(slots=True)
class _Found:
    """Alternatives; ``uncertain``: variables that what is left out may give a value."""

    branches: list[_Branch] = field(default_factory=lambda: [_Branch()])
    uncertain: set[sparql.Variable] = field(default_factory=set)
    is_exact: bool = True

    def add(self, others: list[_Branch]) -> None:
        """One of the others, too; they are left out where there are too many."""
        if len(self.branches) * len(others) > ALTERNATIVES_MAX:
            self.is_exact = False
        else:
            pairs = product(self.branches, others)
            self.branches = [branch.with_other(other) for branch, other in pairs]

    def add_groups(self, groups: tuple[sparql.Group, ...], graph: GraphOf) -> None:
        """One of some groups, too."""
        others: list[_Branch] = []
        for group in groups:
            found = _alternatives(group, graph)
            others += found.branches
            self.uncertain |= found.uncertain
            self.is_exact &= found.is_exact
        self.add(others)

    def add_values(self, values: sparql.Values) -> None:
        branch = _Branch(is_exact=len(values.variables) < 2 or len(values.rows) < 2)
        for place, variable in enumerate(values.variables):
            column = [row[place] for row in values.rows]
            terms = tuple(dict.fromkeys(term for term in column if term is not None))
            if None in column or len(terms) > VALUES_MAX:
                branch = replace(branch, is_exact=False)
            else:
                branch = replace(branch, values=(*branch.values, (variable, terms)))
        self.add([branch] if values.rows else [])

    def add_filter(self, condition: ast.Expression, graph: GraphOf) -> None:
        """A conjunct of a filter of the group, when all else of it is there."""
        match condition:
            case ast.And(parts):
                for part in parts:
                    self.add_filter(part, graph)
            case sparql.Exists(group, False):
                self.add_groups((group,), graph)
                self.is_exact = False
            case _:
                filtered = [way for one in self.branches for way in _filtered(one, condition)]
                if len(filtered) <= ALTERNATIVES_MAX:
                    self.branches = filtered
                else:
                    self.is_exact = False


def _alternatives(group: sparql.Group, graph: GraphOf) -> _Found:
    found = _Found()
    triples = tuple((one, graph) for one in group.elements if isinstance(one, sparql.TriplePattern))
    if triples:
        found.branches = [_Branch(triples)]
    for element in group.elements:
        match element:
            case sparql.TriplePattern():
                pass
            case sparql.Group():
                found.add_groups((element,), graph)
            case sparql.Alternatives(groups):
                found.add_groups(groups, graph)
            case sparql.InGraph(named, inner):
                if not any(isinstance(part, sparql.TriplePattern) for part in inner.elements):
                    found.is_exact = False  # there has to be such a graph
                found.add_groups((inner,), named)
            case sparql.Values():
                found.add_values(element)
            case sparql.Optionally(inner):
                found.uncertain.update(set(variables_of(inner)) - _given_before(group, element))
            case sparql.Bind(_, variable):
                found.uncertain.add(variable)
            case sparql.Minus():
                found.is_exact = False
            case sparql.Filter():
                pass
    for element in group.elements:
        if isinstance(element, sparql.Filter):
            found.add_filter(element.condition, graph)
    return found


def _given_before(group: sparql.Group, element: sparql.GroupElement) -> set[sparql.Variable]:
    """The variables that triples in front of an element give a value."""
    before = group.elements[: group.elements.index(element)]
    return _Branch(
        tuple((one, None) for one in before if isinstance(one, sparql.TriplePattern))
    ).certain


def _filtered(branch: _Branch, condition: ast.Expression) -> list[_Branch]:
    """The branch with a filter: several of them for what is said of one variable or another."""
    variables = set(variables_of(condition))
    if len(variables) == 1 and variables <= branch.certain and not has_exists(condition):
        return [replace(branch, filters=(*branch.filters, condition))]
    if isinstance(condition, ast.Or) and not has_exists(condition):
        ways = []
        for part in condition.parts:
            way = branch
            for conjunct in split(part, ast.And):
                (way,) = _filtered(way, conjunct) if not _is_choice(conjunct) else (_vague(way),)
            ways.append(way)
        return ways if any(way.filters != branch.filters for way in ways) else [_vague(branch)]
    return [_vague(branch)]


def _is_choice(condition: ast.Expression) -> bool:
    return isinstance(condition, ast.Or) and len(set(variables_of(condition))) > 1


def _vague(branch: _Branch) -> _Branch:
    return replace(branch, is_exact=False)


# -- the path of one alternative


def _step(name: str, *predicates: ast.Expression) -> ast.LocationStep:
    """A child of striped graphs themselves."""
    test = ast.NameTest(striped.GRAPH_NAMESPACE, name)
    return ast.LocationStep(False, ast.NodeKind.ELEMENT, test, predicates)


_ROOT = _step(striped.GRAPH)
_NO_GRAPH = ast.absolute(_step(striped.GRAPH, attribute(striped.BLANK)))
_TYPE = sparql.Iri(RDF_TYPE)
_CLASS = OBJECT._replace(is_object=False)  # no literal is a class
# What a condition is thought to save: a part of all messages with the star.
_EQUAL, _OF_TYPE, _OTHER, _THERE = 8, 3, 2, 1
_ONE_SUBJECT = 40


@dataclass(slots=True)
class _Slot:
    """Where a term stands in a star; ``ways``: the steps to its element, none for the star's own.

    ``conditions`` are of that element."""

    place: Place
    ways: tuple[tuple[ast.LocationStep, ...], ...]
    conditions: list[ast.Expression] = field(default_factory=list)
    is_any_property: bool = False

    def predicates(self) -> Iterator[ast.Expression]:
        """What the star's element has to have."""
        known = _conjuncts(all_of(self.conditions))
        if not self.ways:
            yield from known
        elif known or not self.is_any_property:
            yield any_of(
                ast.relative(*steps[:-1], steps[-1].with_predicates(known)) for steps in self.ways
            )


class _Compiler:
    """Makes the paths of one alternative, ``ways_max`` of them at most."""

    def __init__(self, branch: _Branch, ways_max: int) -> None:
        self.is_exact = branch.is_exact
        self._ways_max = max(1, ways_max)
        self._stars: dict[tuple[GraphOf, sparql.Term], list[_Slot]] = {}
        self._slots: dict[sparql.Variable, list[_Slot]] = {}
        self._places: Counter[sparql.Variable] = Counter()
        for triple, graph in branch.triples:
            self._add(triple, graph)
        if any(count > 1 for count in self._places.values()):
            self.is_exact = False
        for condition in branch.filters:
            self._filter(condition)
        if any(map(_may_be_closed_only, self._stars.values())):
            self.is_exact = False
        for variable, terms in branch.values:
            if variable in self._places and variable not in self._slots:
                self.is_exact = False
            for slot in self._slots.get(variable, ()):
                slot.conditions.append(terms_condition(terms, slot.place))

    def paths(self) -> list[ast.Expression]:
        """None where nothing has a solution."""
        stars = [
            (key[0], [predicate for slot in slots for predicate in slot.predicates()])
            for key, slots in self._stars.items()
        ]
        if any(NEVER in _all_parts(predicates) for _, predicates in stars):
            self.is_exact = True
            return []
        if not stars:
            return [ast.absolute(_ROOT)]
        choices = [[[one] for one in predicates] for _, predicates in stars]
        names = [striped.SUBJECT if graph is None else striped.NAMED_SUBJECT for graph, _ in stars]
        if any(_has_choice(one) for _, predicates in stars for one in predicates):
            choices = [[list(_ways(one)) for one in predicates] for _, predicates in stars]
        if prod(len(ways) for star in choices for ways in star) > self._ways_max:
            choices = [[[one] for one in predicates] for _, predicates in stars]
        return [
            _path(
                [
                    _step(name, *_conjuncts(all_of(star)))
                    for name, star in zip(names, chosen, strict=True)
                ]
            )
            for chosen in product(*(product(*star) for star in choices))
        ]

    def _add(self, triple: sparql.TriplePattern, graph: GraphOf) -> None:
        slots = self._star(graph, triple.subject)
        place = OBJECT
        ways: tuple[tuple[ast.LocationStep, ...], ...] = (_property_steps(triple.property),)
        match triple.closure:
            case sparql.Closure.INSTANCE:
                place, ways = _CLASS, ((_step(striped.CLOSURE), _step(striped.CLASS)),)
            case sparql.Closure.PROPERTY:
                above = compared(striped.PROPERTY_IRI, ast.Operator.EQ, triple.above)
                closed = (_step(striped.CLOSURE), _step(striped.PROPERTY_ABOVE, above))
                ways = (_property_steps(sparql.Iri(triple.above)), closed)
            case sparql.Closure.INSTANCE_ABOVE:
                slots.append(self._of_class(triple))
                return
        if isinstance(triple.property, sparql.Variable):
            self._places[triple.property] += 1
        is_any = (
            isinstance(triple.property, sparql.Variable) and triple.closure is sparql.Closure.NONE
        )
        slot = _Slot(place, ways, is_any_property=is_any)
        self._fill(slot, triple.object)
        slots.append(slot)

    def _of_class(self, triple: sparql.TriplePattern) -> _Slot:
        """Of a class, or of one above it."""
        assert isinstance(triple.object, sparql.Iri)
        own = _step(striped.CLASS, attribute(striped.OWN))
        slot = _Slot(_CLASS, ((_step(striped.CLOSURE), own),))
        if len(triple.classes) < VALUES_MAX:
            terms = (triple.object, *map(sparql.Iri, triple.classes))
            slot.conditions.append(terms_condition(terms, _CLASS))
        else:
            self.is_exact = False
        return slot

    def _star(self, graph: GraphOf, subject: sparql.Term) -> list[_Slot]:
        slots = self._stars.get((graph, subject))
        if slots is None:
            slots = self._stars[graph, subject] = []
            for place, term in ((SUBJECT, subject), (GRAPH_NAME, graph)):
                if term is not None:
                    slot = _Slot(place, ())
                    self._fill(slot, term)
                    slots.append(slot)
        return slots

    def _fill(self, slot: _Slot, term: sparql.Term) -> None:
        if isinstance(term, sparql.Variable):
            self._places[term] += 1
            self._slots.setdefault(term, []).append(slot)
        elif isinstance(term, sparql.LiteralTerm) and not slot.place.is_object:
            slot.conditions.append(NEVER)
        else:
            slot.conditions.append(term_condition(term, slot.place))

    def _filter(self, condition: ast.Expression) -> None:
        variable = next(variables_of(condition))
        slots = self._slots.get(variable, [])
        if not slots:  # a property
            self.is_exact = False
        for slot in slots:
            said = condition_of(condition, slot.place)
            if said.condition is not None:
                slot.conditions.append(said.condition)
            if not said.is_exact or slot.is_any_property:
                self.is_exact = False


@lru_cache(maxsize=4096)
def _property_steps(verb: sparql.Iri | sparql.Variable) -> tuple[ast.LocationStep, ...]:
    if isinstance(verb, sparql.Variable):
        return (ast.LocationStep(False, ast.NodeKind.ELEMENT, ast.ANY_NAME),)
    name = property_name(verb.value)
    if name is None:
        iri = compared(striped.PROPERTY_IRI, ast.Operator.EQ, verb.value)
        return (_step(striped.OTHER_PROPERTY, iri),)
    return (ast.LocationStep(False, ast.NodeKind.ELEMENT, ast.NameTest(*name)),)


def _may_be_closed_only(star: list[_Slot]) -> bool:
    """Whether the star asks for any property, and perhaps of what has classes only: the taxonomies
    may list an object of which nothing is said."""
    loose = [slot for slot in star if slot.is_any_property and not slot.conditions]
    own = [slot for slot in star if not slot.ways or slot.place is _CLASS]
    is_asked = any(slot.conditions or slot.ways for slot in own)
    return bool(loose) and is_asked and len(loose) + len(own) == len(star)


def _path(stars: list[ast.LocationStep]) -> ast.Expression:
    """The star that selects most is the last step, the others are conditions of the root."""
    if len(stars) == 1:
        return ast.absolute(_ROOT, stars[0])
    best = max(range(len(stars)), key=lambda place: _weight(stars[place]))
    others = dict.fromkeys(
        ast.relative(star)
        for place, star in enumerate(stars)
        if place != best and (star.predicates or star.test != stars[best].test)
    )
    return ast.absolute(_step(striped.GRAPH, *others), stars[best])


def _weight(star: ast.LocationStep) -> int:
    return sum(map(_weight_of, star.predicates))


def _weight_of(predicate: ast.Expression) -> int:
    step = predicate.steps[-1] if predicate.steps else None
    if step is not None and step.kind is ast.NodeKind.ELEMENT:
        is_type = step.test in (_TYPE_TEST, _CLASS_TEST)
        return _THERE + sum(_OF_TYPE if is_type else _weight_of(one) for one in step.predicates)
    match predicate:
        case ast.Comparison(left, ast.Operator.EQ) if len(left.steps) == 1:
            is_subject = left.steps[0].test == ast.NameTest("", striped.IRI_SUBJECT)
            return _ONE_SUBJECT if is_subject else _EQUAL
        case ast.Or(parts):
            return min(map(_weight_of, parts))
    return _OTHER


_TYPE_TEST = _property_steps(_TYPE)[0].test
_CLASS_TEST = _step(striped.CLASS).test


def _conjuncts(condition: ast.Expression | None) -> tuple[ast.Expression, ...]:
    return () if condition is None else split(condition, ast.And)


def _ways(predicate: ast.Expression) -> Iterator[ast.Expression]:
    """Predicates of which one holds where this one does, without "or" in them."""
    if not _has_choice(predicate):
        yield predicate
        return
    match predicate:
        case ast.Or(parts):
            for part in parts:
                yield from _ways(part)
        case ast.And(parts):
            for chosen in product(*map(_ways, parts)):
                known = all_of(chosen)
                assert known is not None
                yield known
        case _ if (step := predicate.steps[-1]).kind is ast.NodeKind.ELEMENT:
            for chosen in product(*map(_ways, step.predicates)):
                parts = tuple(part for one in chosen for part in _conjuncts(one))
                last = replace(step, predicates=parts)
                yield predicate.with_steps((*predicate.steps[:-1], last))
        case _:
            yield predicate


def _has_choice(predicate: ast.Expression) -> bool:
    if isinstance(predicate, ast.Or | ast.And):
        return isinstance(predicate, ast.Or) or any(map(_has_choice, predicate.parts))
    return any(map(_has_choice, predicate.steps[-1].predicates)) if predicate.steps else False


def _all_parts(predicates: Iterable[ast.Expression]) -> Iterator[ast.Expression]:
    """The predicates, and those of the elements that they lead to."""
    for predicate in predicates:
        yield predicate
        yield from (one for step in predicate.steps for one in step.predicates)
