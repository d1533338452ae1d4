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

from collections.abc import Iterable
from dataclasses import replace

from yfilter.engine.linear_paths import (
    ANY_DOCUMENT,
    Conjunction,
    conjunctions_of,
    routing_query,
)
from yfilter.engine.readings import RDF_XML_ROOT, Reading, reading_of
from yfilter.engine.step_conditions import element_test
from yfilter.language import query_ast as ast
from yfilter.language.matching_path import matching_part, matching_path
from yfilter.projection.looks import BINDING, Looks, LooksEverywhere, Place
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps

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
    except (LooksEverywhere, RecursionError):
        needs = _in_message(profile, (_WHOLE,))
    return tuple(sorted({_within_bounds(need) for need in needs}, key=str))


def _looks_beside(flwor: ast.Flwor) -> bool:
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
    if profile.flwor is not None and part.binds and not _looks_beside(profile.flwor):
        return _of_binding(profile, profile.flwor, part.path)
    looks = Looks(())
    looks.value(profile.body, Kind.SUBTREE)
    return _in_message(profile, _plainest(looks.in_message))


def _of_binding(profile: ast.Profile, flwor: ast.Flwor, path: ast.Expression) -> list[Need]:
    """``path``: what the first clause binds, with ``where`` among the conditions of its last
    step."""
    steps = path.steps
    structure = tuple((step.descendant, element_test(step)) for step in steps)
    conditional = [number for number, step in enumerate(steps, 1) if step.predicates]
    length = conditional[-1] if conditional else len(steps)
    first = (_place(structure, len(steps), length),)
    looks = Looks(structure[:length])
    looks.known[id(flwor.clauses[0].part_use().part)] = first
    for number, step in enumerate(steps, 1):
        place = _place(structure, number, length)
        looks.conditions(step.predicates, (place,))
    looks.mark((BINDING, *first), Kind.NODE)
    _look_around(looks, profile.body, flwor)
    conditions = _conditions(steps[length - 1].predicates, steps[length:])
    kept = _plainest(looks.at_binding)
    needs = [Need(structure[:length], condition, kept) for condition in conditions]
    elsewhere = _plainest(looks.in_message)
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


def _look_around(looks: Looks, body: ast.Expression, flwor: ast.Flwor) -> None:
    """The FLWOR, and what stands beside it in the constructor that is the whole profile."""
    looks.value(flwor, Kind.SUBTREE)
    if isinstance(body, ast.Constructor):
        beside = tuple(part for part in body.content if part is not flwor)
        looks.value(replace(body, content=beside), Kind.SUBTREE)


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
