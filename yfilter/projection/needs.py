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
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

from yfilter.engine.linear_paths import CONJUNCTION_LIMITS, Conjunction, StructuralStep
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.query_ast import (
    variable as variable_path,
)
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

# -------------------------------------------------------------------------------------------------
# Needs as a query, for people, in XQuery:
#
#     <feed>{
#       for $n in $msg/feed/entry
#       where $n/category[@term = "xml"] or $n/category[@term = "json"]
#       return
#         <entry>{
#           for $a in $n/category return <category>{$a/@term}</category>,
#           $n/title
#         }</entry>
#     }</feed>
#
# An element that is kept bare is a constructor of its name, one whose text is kept ``string``; a
# part stands where it is computed.  The query says each need by itself; a cut message has all of
# them in their own places once, and what conditions look at beside.


CONDITIONS_SHOWN = 8  # of one for clause
NEEDS_SHOWN = 50  # for clauses
_INDENT = "  "
_BOUND = re.compile(rf"\${ast.PART_VARIABLE}\b")


def as_xquery(needs: Iterable[Need]) -> str:
    """A query of at most NEEDS_SHOWN parts; what is left out is said in comments."""
    groups: dict[tuple[Steps, tuple[Kept, ...]], list[Conjunction | None]] = {}
    for need in sorted(needs, key=str):
        groups.setdefault((need.binding, need.kept), []).append(need.condition)
    parts = [_part(*group, conditions) for group, conditions in groups.items()]
    if not parts:
        return "()"
    if EVERYTHING in needs:
        return "$msg"
    shown = parts[:NEEDS_SHOWN]
    lines = [line for part in shown[:-1] for line in _with_comma(part)] + shown[-1]
    if len(parts) > NEEDS_SHOWN:
        lines.append(f"(: and {len(parts) - NEEDS_SHOWN} more :)")
    roots = {binding[0][1].local for binding, _ in groups if binding and binding[0][1].is_full}
    tag = roots.pop() if len(roots) == 1 else "message"
    return "\n".join((f"<{tag}>{{", *(_INDENT + line for line in lines), f"}}</{tag}>"))


@dataclass(slots=True)
class _Place:
    """What is kept of the elements at a place, and places below."""

    kind: Kind = Kind.NODE
    attributes: list[ast.NameTest] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    below: dict[StructuralStep, _Place] = field(default_factory=dict)

    def mark(self, steps: Steps, kept: Kept) -> None:
        if steps:
            self.below.setdefault(steps[0], _Place()).mark(steps[1:], kept)
        elif kept.attribute is not None:
            self.attributes.append(kept.attribute)
        elif kept.part:
            self.parts.append(kept.part)
        else:
            self.kind = max(self.kind, kept.kind)


def _part(
    binding: Steps, kept: tuple[Kept, ...], conditions: list[Conjunction | None]
) -> list[str]:
    place = _Place()
    for one in kept:
        place.mark(one.steps, one)
    if not binding:
        head = [f"if ({condition}) then" for condition in _any_of(conditions, None)]
        lines = _content(place, "msg", "a") if place.kind is Kind.NODE else ["$msg"]
        return [*head, "(", *(_INDENT + line for line in lines), ") else ()"] if head else lines
    head = [f"for $n in {_path('msg', binding)}"]
    head += [f"where {condition}" for condition in _any_of(conditions, "n")]
    return [*head, "return", *(_INDENT + line for line in _element(place, "n", binding[-1], "a"))]


def _any_of(conditions: list[Conjunction | None], bound: str | None) -> Iterator[str]:
    """The condition, if there is one."""
    known = [condition for condition in conditions if condition is not None]
    if len(known) == len(conditions):
        said = " or ".join(_condition(one, bound) for one in known[:CONDITIONS_SHOWN])
        more = len(known) - CONDITIONS_SHOWN
        yield said + (f" (: or {more} more :)" if more > 0 else "")


def _condition(condition: Conjunction, bound: str | None) -> str:
    if bound is None:
        return condition.text
    said = []
    for path in condition.paths:
        first, *rest = (step.location_step for step in path.steps)
        own = (ast.LocationStep(False, ast.NodeKind.SELF, None, first.predicates),)
        steps = (*(own if first.predicates else ()), *rest)
        said.append(unparse(variable_path(bound, *steps)))
    return " and ".join(said)


def _element(place: _Place, variable: str, step: StructuralStep, next_name: str) -> list[str]:
    """An element with what is kept of it."""
    if place.kind is Kind.SUBTREE:
        return [f"${variable}"]
    tag = step[1].local if step[1].is_full else "element"
    content = _content(place, variable, next_name)
    if not content:
        return [f"<{tag}/>"]
    if len(content) == 1:
        return [f"<{tag}>{{{content[0]}}}</{tag}>"]
    return [f"<{tag}>{{", *(_INDENT + line for line in content), f"}}</{tag}>"]


def _content(place: _Place, variable: str, next_name: str) -> list[str]:
    parts = [
        [_path(variable, (), ast.LocationStep(False, ast.NodeKind.ATTRIBUTE, test))]
        for test in place.attributes
    ]
    if place.kind is Kind.VALUE:
        parts.append([f"string(${variable})"])
    parts += [[_BOUND.sub(f"${variable}", part)] for part in place.parts]
    for step, below in place.below.items():
        path = _path(variable, (step,))
        if below.kind is Kind.SUBTREE:
            parts.append([path])
            continue
        first, *others = _element(below, next_name, step, chr(ord(next_name) + 1))
        parts.append([f"for ${next_name} in {path} return {first}", *others])
    return [line for part in parts[:-1] for line in _with_comma(part)] + (
        parts[-1] if parts else []
    )


def _with_comma(lines: list[str]) -> list[str]:
    return [*lines[:-1], f"{lines[-1]},"]


def _path(variable: str, steps: Steps, last: ast.LocationStep | None = None) -> str:
    located = tuple(ast.LocationStep(deep, ast.NodeKind.ELEMENT, test) for deep, test in steps)
    located += () if last is None else (last,)
    if variable == "msg":
        return "$msg" + unparse(ast.absolute(*located))
    return unparse(variable_path(variable, *located))
