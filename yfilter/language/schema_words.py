"""What is said of a step that a schema makes impossible, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches

from formats.schema_model import ANY, Name
from yfilter.language.query_ast import (
    ANY_NAME,
    LocationStep,
    NodeKind,
    Origin,
    PathExpression,
)
from yfilter.language.query_text import unparse
from yfilter.language.schema_places import Place, PlaceKind, SchemaPlaces

_SHOWN_MAX = 6
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"  # allowed wherever an XSD is, seldom meant


def why_no_step(
    places: SchemaPlaces, before: Iterable[Place], step: LocationStep
) -> tuple[str, str]:
    """(reason, expected) for a step that leads nowhere."""
    before = list(before)
    shown = _shown(step)
    where = _where(places, before)
    if step.axis is not None or step.kind not in (NodeKind.ELEMENT, NodeKind.ATTRIBUTE):
        return f"under the schema {shown} selects nothing from {where}", ""
    wider = replace(step, test=ANY_NAME, predicates=())
    names = {
        name
        for place in before
        for there in places.after_step(place, wider)
        for name in places.names(there)
    }
    kind = "attribute" if step.kind is NodeKind.ATTRIBUTE else "element"
    place = "below" if step.descendant else "in"
    if before and before[0].kind is PlaceKind.DOCUMENT and not step.descendant:
        reason = f"under the schema a message is never {shown}"
    else:
        reason = f"under the schema there is no {kind} {shown} {place} {where}"
    return reason, _expected(names, step)


def why_no_value(
    step: LocationStep, possible: Collection[str], asked: Collection[str]
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


def _shown(step: LocationStep) -> str:
    alone = replace(step, predicates=(), descendant=False)
    return unparse(PathExpression(Origin.CONTEXT, (alone,)))


def _where(places: SchemaPlaces, before: list[Place]) -> str:
    names = sorted({name.local for place in before for name in places.names(place)} - {ANY})
    if any(place.kind is PlaceKind.DOCUMENT for place in before) or not names:
        return "the message"
    if len(names) > _SHOWN_MAX:
        return f"<{names[0]}> and {len(names) - 1} other elements"
    marked = [f"<{name}>" for name in names]
    return _either(marked)


def _expected(names: set[Name], step: LocationStep) -> str:
    """The names nearest to the one asked for; one in another namespace is written in full."""
    test = step.test
    known = sorted(name for name in names if name.local != ANY and name.namespace != _INSTANCE)
    if test is None or not known:
        return ""
    sign = "@" if step.kind is NodeKind.ATTRIBUTE else ""
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
