"""Needs: what of a message a profile can ever look at (section 4.2.2, as document projection).

A need is about the elements of one *binding* path.  Where its *condition* holds, the *kept* paths
from the binding are kept::

    for $e in /feed/entry                       binding    /feed/entry
    where $e/category/@term = "xml"             condition  /*/category[@term = "xml"]
    return <hit>{$e/title}</hit>                kept       attribute category/@term
                                                           node      .
                                                           subtree   title

In a condition ``/*`` is the bound element itself.  A binding without steps is the document node;
then the condition's paths are those of the message, and ``subtree .`` is the whole message.

What is kept stands below its ancestors, which stay as bare elements: their names and namespaces.

======================  ===========================================================================
kind                    kept
======================  ===========================================================================
``NODE``                the element, bare
``ATTRIBUTE``           the element, and its attributes of the test
``VALUE``               the element with all below it, but for attributes
``SUBTREE``             the element with all below it
``PART``                the element, and the value of an expression there, or all that this looks at
======================  ===========================================================================

**Touched.**  Conditions look at attributes and string values of elements that may be there for
another need's sake.  So wherever an element of a condition's path is kept, what the condition
looks at there is kept too (``looked_at``).  A condition that does not hold on a message then cannot
hold on what is left of it.

So whatever else is kept, a profile whose needs are kept has the same results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

from yfilter.engine.linear_paths import CONJUNCTION_LIMITS, Conjunction, StructuralStep
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.query_parser import parse_expression
from yfilter.language.query_text import unparse

_RETURN = " return "

Steps: TypeAlias = tuple[StructuralStep, ...]


class Kind(IntEnum):
    """How much of the elements at the end of a path is kept; see above."""

    NODE = 0
    ATTRIBUTE = 1
    VALUE = 2
    SUBTREE = 3
    PART = 4

    @property
    def is_deep(self) -> bool:
        """Whether elements below are kept as closely."""
        return self in (Kind.VALUE, Kind.SUBTREE)

    def includes(self, other: Kind) -> bool:
        """Whether this is as close a look, whatever the attributes."""
        return self == other or other is Kind.NODE or self is Kind.SUBTREE


@dataclass(frozen=True, slots=True)
class Kept:
    """A path that is kept; no steps are the binding itself.

    ``attribute`` with ATTRIBUTE only; ``part`` with PART only, an expression's text (parts.py).
    """

    steps: Steps
    kind: Kind
    attribute: ast.NameTest | None = None
    part: str = ""

    def __hash__(self) -> int:
        # PERF: that of an IntEnum is a call.
        return hash((self.steps, int(self.kind), self.attribute, self.part))

    def __str__(self) -> str:
        steps = _location_steps(self.steps)
        if self.attribute is not None:
            steps = (*steps, ast.LocationStep(False, ast.NodeKind.ATTRIBUTE, self.attribute))
        path = unparse(ast.relative(*steps))
        part = f"{_RETURN}{self.part}" if self.part else ""
        return f"{self.kind.name.lower()} {path}{part}"

    def covers(self, other: Kept) -> bool:
        """Whether all that ``other`` keeps is kept; a no may be wrong."""
        if self.kind is Kind.PART:
            return self == other
        if self.steps == other.steps:
            attribute = self.attribute in (None, other.attribute)
            return self.kind.includes(other.kind) and (attribute or other.kind is Kind.NODE)
        is_above = self.steps == other.steps[: len(self.steps)]
        return is_above and self.kind.is_deep and self.kind.includes(other.kind)

    @classmethod
    def parse(cls, text: str) -> Kept:
        """Read what ``str()`` wrote; ProfileRefused for anything else."""
        return _parse_kept(text)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Need:
    """One need; equal to another with the same ``text``, which ``parse`` reads back.

    ``condition`` None always holds.
    """

    binding: Steps
    condition: Conjunction | None
    kept: tuple[Kept, ...]
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_text = {str(kept): kept for kept in self.kept}
        texts = sorted(by_text)
        object.__setattr__(self, "kept", tuple(by_text[text] for text in texts))
        condition = "" if self.condition is None else self.condition.text
        parts = [_path_text(self.binding), condition, texts]
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        object.__setattr__(self, "text", text)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Need) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def paths(self) -> tuple[str, ...]:
        """What is kept, as paths from the message; without the message itself."""
        steps = [(self.binding + kept.steps, kept.attribute) for kept in self.kept]
        return tuple(_path_text(*each) for each in steps if each[0])

    @classmethod
    def parse(cls, text: str) -> Need:
        """Read what ``str()`` wrote; ProfileRefused for anything else."""
        try:
            binding, condition, kept = json.loads(text)
            need = cls(
                _parse_path(binding),
                Conjunction.parse(condition) if condition else None,
                tuple(map(Kept.parse, kept)),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _no_need(text) from error
        if need.text != text:
            raise _no_need(text)
        return need


def looked_at(selection: ast.Expression) -> Iterator[Kept]:
    """Of a condition that its element decides, from there: its attributes, or its text and string
    value."""
    if selection.origin is ast.Origin.CONTEXT:
        last = selection.steps[-1] if selection.steps else None
        if last is not None and last.kind is ast.NodeKind.ATTRIBUTE:
            yield Kept((), Kind.ATTRIBUTE, last.test)
        else:
            yield Kept((), Kind.VALUE)
        for step in selection.steps:
            if step.kind is ast.NodeKind.SELF:
                for predicate in step.predicates:
                    yield from looked_at(predicate)
    elif isinstance(selection, ast.FunctionCall) and not selection.arguments:
        yield Kept((), Kind.VALUE)  # string(), number(): of the element
    for part in selection.same_focus():
        yield from looked_at(part)


def _location_steps(steps: Steps) -> tuple[ast.LocationStep, ...]:
    return tuple(
        ast.LocationStep(descendant, ast.NodeKind.ELEMENT, test) for descendant, test in steps
    )


def _path_text(steps: Steps, attribute: ast.NameTest | None = None) -> str:
    """ "" for the document node."""
    found = _location_steps(steps)
    if attribute is not None:
        found = (*found, ast.LocationStep(False, ast.NodeKind.ATTRIBUTE, attribute))
    return unparse(ast.absolute(*found)) if found else ""


@lru_cache(maxsize=4096)
def _parse_path(text: str) -> Steps:
    return _steps_of(parse_expression(text, CONJUNCTION_LIMITS), ast.Origin.MESSAGE) if text else ()


@lru_cache(maxsize=4096)
def _parse_kept(text: str) -> Kept:
    kind_name, _, path_text = text.partition(" ")
    kind = Kind[kind_name.upper()]
    path_text, _, part = path_text.partition(_RETURN)
    path = parse_expression(path_text, CONJUNCTION_LIMITS)
    attribute = None
    if kind is Kind.ATTRIBUTE and path.steps:
        last = path.steps[-1]
        if last.descendant or last.kind is not ast.NodeKind.ATTRIBUTE:
            raise _no_need(text)
        attribute = last.test
    kept = Kept(
        _steps_of(path, ast.Origin.CONTEXT, 0 if attribute is None else 1), kind, attribute, part
    )
    if str(kept) != text:
        raise _no_need(text)
    return kept


def _steps_of(path: ast.Expression, origin: ast.Origin, without: int = 0) -> Steps:
    """The steps of elements; ``without`` so many at the end."""
    if path.origin is not origin:
        raise _no_need(unparse(path))
    steps: list[StructuralStep] = []
    for step in path.steps[: len(path.steps) - without]:
        if (
            step.kind is not ast.NodeKind.ELEMENT
            or step.test is None
            or step.predicates
            or step.axis
        ):
            raise _no_need(unparse(path))
        steps.append((step.descendant, step.test))
    return tuple(steps)


def _no_need(text: str) -> ProfileRefused:
    return ProfileRefused(
        "not-a-need", "not a need as brokers tell each other", text[:200], expected="a need's text"
    )


EVERYTHING = Need((), None, (Kept((), Kind.SUBTREE),))
