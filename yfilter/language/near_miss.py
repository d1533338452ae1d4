"""What was probably meant by a step that leads nowhere: something nearly the same that is there.

The same question of a message (explain.py) and of a schema (language/schema_check.py): ``names``
says which names a step with any name leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from yfilter.language.query_ast import ANY, ANY_NAME, LocationStep, NameTest, NodeKind

Names = Callable[[LocationStep], Collection[tuple[str, str]]]
"""Of the nodes to which a step leads, the (namespace, local name)."""

_KINDS = {NodeKind.ELEMENT: "an element", NodeKind.ATTRIBUTE: "an attribute"}


def near_miss(step: LocationStep, names: Names) -> str:
    """A sentence about the step, with what to write instead; "" where nothing is like it."""
    test = step.test
    if test is None or test.local == ANY or step.kind not in _KINDS or step.axis is not None:
        return ""
    wider = replace(step, test=ANY_NAME, predicates=())
    here = names(wider)
    return (
        _of_another_namespace(step, test, here)
        or _of_another_case(step, test, here)
        or _of_another_kind(step, test, names)
        or _deeper(step, test, names)
    )


def _of_another_namespace(
    step: LocationStep, test: NameTest, here: Collection[tuple[str, str]], where: str = ""
) -> str:
    found = sorted(ns for ns, local in here if local == test.local and ns != test.namespace)
    if not found or test.namespace == ANY:
        return ""
    namespace = found[0]
    said = f'there is {_shown(step, test.local)}{where} in the namespace "{namespace}"'
    if not namespace:
        return (
            f"there is {_shown(step, test.local)}{where} in no namespace: write Q{{}}{test.local}"
        )
    if step.kind is NodeKind.ATTRIBUTE:
        return f'{said}: begin with declare namespace n = "{namespace}"; and write @n:{test.local}'
    return f'{said}: begin with declare default element namespace "{namespace}";'


def _of_another_case(step: LocationStep, test: NameTest, here: Collection[tuple[str, str]]) -> str:
    folded = test.local.casefold()
    found = sorted({local for _, local in here if local.casefold() == folded} - {test.local})
    return f"there is {_shown(step, found[0])}, and upper case is not lower case" if found else ""


def _of_another_kind(step: LocationStep, test: NameTest, names: Names) -> str:
    other = NodeKind.ELEMENT if step.kind is NodeKind.ATTRIBUTE else NodeKind.ATTRIBUTE
    found = names(replace(step, kind=other, test=ANY_NAME, predicates=()))
    if all(local != test.local for _, local in found):
        return ""
    written = f"@{test.local}" if other is NodeKind.ATTRIBUTE else test.local
    return f"there is {_KINDS[other]} of that name: write {written}"


def _deeper(step: LocationStep, test: NameTest, names: Names) -> str:
    if step.descendant:
        return ""
    found = names(replace(step, descendant=True, test=ANY_NAME, predicates=()))
    shown = _shown(step, test.local)
    if any(test.accepts(*name) for name in found):
        return f"there is {shown} further down: write //{shown.strip('<>')}"
    return _of_another_namespace(step, test, found, " further down,")


def _shown(step: LocationStep, local: str) -> str:
    return f"@{local}" if step.kind is NodeKind.ATTRIBUTE else f"<{local}>"
