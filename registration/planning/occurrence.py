"""How often a pattern can occur in a message, as the schemas of the sources say.

The paper's second observation (section 4.4): repetition spoils exclusiveness, so the best pattern
is one that "can appear at most once in any message, as dictated by the schema".
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TypeAlias

from formats.content_model import ContentModel
from registration.planning.exclusiveness import Pattern
from yfilter.language.query_ast import ANY, LocationStep, NodeKind
from yfilter.language.query_parser import parse_path

# Elements by local name, and how many of them there can be.
_Elements: TypeAlias = dict[str, float]


def pattern_path(pattern: Pattern) -> tuple[tuple[LocationStep, ...], LocationStep | None]:
    """The element steps of a pattern, and the step to its value; None: the string value."""
    path = parse_path(pattern)
    last = path.steps[-1]
    if last.kind is NodeKind.ELEMENT:  # "/a/b/." is read as "/a/b"
        return path.steps, None
    return path.steps[:-1], None if last.kind is NodeKind.SELF else last


class SchemaOccurrences:
    """Answers for one content model; remembers what stands below each element."""

    def __init__(self, model: ContentModel) -> None:
        self._model = model
        self._reachable: dict[str, frozenset[str]] = {}
        self._below: dict[str, _Elements] = {}

    def at_most(self, pattern: Pattern) -> float:
        """How many values a valid message can have at the pattern: 0, 1, ... or ``inf``."""
        steps, value = pattern_path(pattern)
        return max((self._from_root(root, steps, value) for root in self._model.roots), default=inf)

    def _from_root(
        self, root: str, steps: tuple[LocationStep, ...], value: LocationStep | None
    ) -> float:
        elements: _Elements = {root: 1.0}
        for index, step in enumerate(steps):
            if index > 0 or step.descendant:
                inner = self._descendants if step.descendant else self._children
                found = inner(elements)
                # "//a" may be the root element itself.
                elements = _added((elements, found)) if index == 0 else found
            elements = _accepted(elements, step)
        if value is not None and value.kind is NodeKind.TEXT:
            # Text between child elements is as many nodes.
            return sum(inf if self._has_children(name) else n for name, n in elements.items())
        return sum(elements.values())

    def _has_children(self, name: str) -> bool:
        return self._model.may_contain_anything(name) or bool(self._model.children[name])

    def _children(self, elements: _Elements) -> _Elements:
        parts: list[_Elements] = []
        for name, count in elements.items():
            if self._model.may_contain_anything(name):
                parts.append({ANY: inf})
            inside = self._model.children.get(name, {})
            parts.append({child: count * times for child, times in inside.items() if times})
        return _added(parts)

    def _descendants(self, elements: _Elements) -> _Elements:
        return _added(
            {below: count * times for below, times in self._all_below(name).items()}
            for name, count in elements.items()
        )

    def _all_below(self, name: str) -> _Elements:
        """Everything below one element; endless what can stand in itself, and what that holds."""
        if name not in self._below:
            reached = self._all_reachable(name)
            if any(map(self._model.may_contain_anything, (name, *reached))):
                self._below[name] = {**dict.fromkeys(self._model.children, inf), ANY: inf}
            elif name in reached:
                self._below[name] = dict.fromkeys(reached, inf)
            else:
                inside = self._children({name: 1.0})
                self._below[name] = _added((inside, self._descendants(inside)))
        return self._below[name]

    def _all_reachable(self, name: str) -> frozenset[str]:
        if name not in self._reachable:
            found: set[str] = set()
            frontier = [name]
            while frontier:
                new = self._model.children.get(frontier.pop(), {}).keys() - found
                found |= new
                frontier.extend(new)
            self._reachable[name] = frozenset(found)
        return self._reachable[name]


def _accepted(elements: _Elements, step: LocationStep) -> _Elements:
    wanted = step.test.local if step.test is not None else ANY
    if wanted == ANY:
        return elements
    # An element whose content is not known may have contained it.
    count = elements.get(wanted, 0.0) + elements.get(ANY, 0.0)
    return {wanted: count} if count else {}


def _added(parts: Iterable[_Elements]) -> _Elements:
    total: _Elements = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, 0.0) + count
    return total
