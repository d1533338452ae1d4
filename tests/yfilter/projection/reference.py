"""What a message keeps for needs, by the letter of needs.py, on lxml's tree and with its XPath."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from lxml import etree

from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.language.query_ast import Origin, PathExpression
from yfilter.language.query_text import unparse
from yfilter.projection.needs import Kept, Kind, Need, Steps, looked_at

KEPT = 1  # the element is there
CONTENT = 2  # its own text, comments and processing instructions are, too
ATTRIBUTES = 4  # all its attributes are, too

NODE, VALUE, SUBTREE = KEPT, KEPT | CONTENT, KEPT | CONTENT | ATTRIBUTES


class Reference:
    """Marks of elements and (element, attribute name) kept."""

    def __init__(self, document: bytes, needs: list[Need]) -> None:
        self.tree = etree.fromstring(document).getroottree()
        self.elements = [node for node in self.tree.iter() if isinstance(node.tag, str)]
        self.marks = dict.fromkeys(self.elements, 0)
        self.attributes: set[tuple[Any, str]] = set()
        for need in needs:
            self._keep(need)
        self.marks[self.elements[0]] |= KEPT
        for element in reversed(self.elements):
            if self.marks[element] and element.getparent() is not None:
                self.marks[element.getparent()] |= KEPT
        changed = True
        while changed:
            before = (dict(self.marks), set(self.attributes))
            for need in needs:
                self._touch(need)
            changed = before != (self.marks, self.attributes)

    def left(self) -> bytes:
        """What is kept, canonical."""
        return bytes(etree.tostring(self._copied(self.elements[0]), method="c14n"))

    def _copied(self, element: Any) -> Any:
        mark = self.marks[element]
        copy = etree.Element(element.tag)
        for name, value in element.attrib.items():
            if mark & ATTRIBUTES or (element, name) in self.attributes:
                copy.set(name, value)
        copy.text = element.text if mark & CONTENT else None
        for child in element:
            if not isinstance(child.tag, str):
                if mark & CONTENT:
                    copy.append(deepcopy(child))
                continue
            if self.marks[child]:
                copy.append(self._copied(child))
                copy[-1].tail = child.tail if mark & CONTENT else None
        return copy

    def _keep(self, need: Need) -> None:
        bound = self._select(need.binding) if need.binding else [None]
        for binding in bound:
            if need.condition is not None and not all(
                self._holds(path, binding) for path in need.condition.paths
            ):
                continue
            for kept in need.kept:
                if binding is None and not kept.steps:
                    found = [self.elements[0]]
                else:
                    found = self._select(kept.steps, binding)
                for element in found:
                    self._mark(element, kept.kind, kept.attribute)

    def _touch(self, need: Need) -> None:
        if need.condition is None:
            return
        for kept in touched(need.condition):
            steps = need.binding + kept.steps[1:] if need.binding else kept.steps
            for element in self._select(steps):
                if self.marks[element]:
                    self._mark(element, kept.kind, kept.attribute)

    def _holds(self, path: LinearPath, binding: Any) -> bool:
        if binding is None:
            return bool(self.tree.xpath(_text(path.expression.steps, Origin.MESSAGE)))
        first, *rest = path.expression.steps
        own = "".join(f"[{unparse(predicate)}]" for predicate in first.predicates)
        inner = _text(tuple(rest), Origin.CONTEXT)
        return bool(binding.xpath(f"self::*{own}{inner.removeprefix('.')}"))

    def _select(self, steps: Steps, binding: Any = None) -> list[Any]:
        text = "".join(f"{'//' if deep else '/'}{_name(test)}" for deep, test in steps)
        start = self.tree if binding is None else binding
        return list(start.xpath(text if binding is None else f".{text}"))

    def _mark(self, element: Any, kind: Kind, attribute: Any) -> None:
        match kind:
            case Kind.NODE:
                self.marks[element] |= NODE
            case Kind.ATTRIBUTE:
                self.marks[element] |= NODE
                self.attributes.update(
                    (element, name) for name in element.attrib if _name(attribute) in ("*", name)
                )
            case _:
                mark = VALUE if kind is Kind.VALUE else SUBTREE
                for below in element.iter():
                    if isinstance(below.tag, str):
                        self.marks[below] |= mark


def _text(steps: tuple[Any, ...], origin: Origin) -> str:
    if not steps:
        return "."
    text = unparse(PathExpression(origin, steps))
    return text if origin is Origin.MESSAGE or text.startswith(".") else f"./{text}"


def _name(test: Any) -> str:
    return str(test.local)


def touched(condition: Conjunction) -> tuple[Kept, ...]:
    """What a condition looks at, at the elements of its paths: ATTRIBUTE and VALUE only.

    The steps are those of the condition, so the first is ``/*``, the bound element, when the
    binding is not the document node.
    """
    found: dict[Kept, None] = {}
    for path in condition.paths:
        for number, step in enumerate(path.steps, 1):
            steps = tuple(before.structure for before in path.steps[:number])
            for selection in step.selections:
                looks = (replace(kept, steps=steps) for kept in looked_at(selection))
                found.update(dict.fromkeys(looks))
    return tuple(found)
