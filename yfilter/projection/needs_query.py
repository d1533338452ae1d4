"""Needs as a query: what a link's messages are cut down to, in XQuery, for people.

::

    <feed>{
      for $n in $msg/feed/entry
      where $n/category[@term = "xml"] or $n/category[@term = "json"]
      return
        <entry>{
          for $a in $n/category return <category>{$a/@term}</category>,
          $n/title
        }</entry>
    }</feed>

An element that is kept bare is a constructor of its name, one whose text is kept ``string``; a part
stands where it is computed, or what it looks at is kept instead (transformer.py).  The
query says what is kept, each need by itself; a cut message has all of it in its own place once, and
what conditions look at beside (needs.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from yfilter.engine.linear_paths import Conjunction, StructuralStep
from yfilter.language import query_ast as ast
from yfilter.language.query_ast import (
    variable as variable_path,
)
from yfilter.language.query_text import unparse
from yfilter.projection.needs import EVERYTHING, Kept, Kind, Need, Steps

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
