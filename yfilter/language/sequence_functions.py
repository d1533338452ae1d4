"""The functions on sequences; arguments arrive as function_library.py says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isnan
from typing import Any

from yfilter.language.atoms import comparable, is_number, to_double
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import (
    Atom,
    Construction,
    Detached,
    DynamicError,
    Float,
    Item,
    Node,
    NodeType,
    Opaque,
)
from yfilter.language.number_functions import rounded
from yfilter.language.query_ast import LocationStep, NodeKind

_CHILDREN = LocationStep(False, NodeKind.NODE, None)


def _distinct_values(atoms: list[Atom]) -> list[Atom]:
    found: dict[Any, Atom] = {}
    floats = [atom for atom in atoms if isinstance(atom, float)]
    are_single = all(isinstance(atom, Float) for atom in floats)
    for atom in atoms:
        # As floats if there is one, which an xs:decimal is converted to where they are compared.
        key = atom
        if floats and isinstance(atom, Decimal):
            key = Float(to_double(atom)) if are_single else to_double(atom)
        found.setdefault(identity_of(key), atom)
    return list(found.values())


def identity_of(atom: Atom) -> Any:
    """Equal for values that are equal; NaN equals itself here."""
    if isinstance(atom, str):
        return ("string", str(atom))
    if isinstance(atom, bool):
        return ("boolean", atom)
    if is_number(atom):
        return "NaN" if isinstance(atom, float) and isnan(atom) else ("number", atom)
    if isinstance(atom, Opaque):
        return (atom.primitive, atom.key)
    return (atom.type, atom.instant) if not isinstance(atom, int | float) else atom  # type: ignore[union-attr]


def _index_of(atoms: list[Atom], wanted: Atom | None) -> list[int]:
    found = []
    for index, atom in enumerate(atoms, 1):
        try:
            one, other = comparable(atom, wanted)  # type: ignore[arg-type]
        except (DynamicError, AttributeError):
            continue
        if one == other:
            found.append(index)
    return found


def _subsequence(items: list[Item], start: Any, length: Any = None) -> list[Item]:
    if start is None:
        return []
    first = float(rounded(start))
    last = float("inf") if length is None else first + float(rounded(length))
    return [item for place, item in enumerate(items, 1) if first <= place < last]


def _insert_before(items: list[Item], position: Any, inserted: list[Item]) -> list[Item]:
    place = min(max(int(position or 1), 1), len(items) + 1) - 1
    return [*items[:place], *inserted, *items[place:]]


def _remove(items: list[Item], position: Any) -> list[Item]:
    return [item for place, item in enumerate(items, 1) if place != position]


def _of_length(code: str, least: int, most: int | None) -> Callable[[list[Item]], list[Item]]:
    def checked(items: list[Item]) -> list[Item]:
        if len(items) < least or (most is not None and len(items) > most):
            raise DynamicError(code, f"a sequence of {len(items)} items")
        return list(items)

    return checked


def deep_equal(evaluator: Evaluator, one: Any, other: Any) -> bool:
    """Whether two sequences are equal, item by item, elements with all that is in them."""
    if len(one) != len(other):
        return False
    return all(_equal(evaluator, a, b) for a, b in zip(one, other, strict=True))


def _equal(evaluator: Evaluator, one: Item, other: Item) -> bool:
    one = evaluator.materialised(one) if isinstance(one, Construction) else one
    other = evaluator.materialised(other) if isinstance(other, Construction) else other
    if isinstance(one, Node) and isinstance(other, Node):
        return bool(_shape(evaluator, one) == _shape(evaluator, other))
    if isinstance(one, Detached) and isinstance(other, Detached):
        is_named_alike = _meaning(evaluator, one) == _meaning(evaluator, other)
        return one.kind is other.kind and is_named_alike and one.value == other.value
    if isinstance(one, Node | Detached) or isinstance(other, Node | Detached):
        return False
    return len(_distinct_values([one, other])) == 1


def _shape(evaluator: Evaluator, node: Node) -> Any:
    """A value that is equal for nodes that are."""
    stream = evaluator.streams[node.tree]
    evaluator.charge()
    if node.type is NodeType.ATTRIBUTE:
        return ("@", *_meaning(evaluator, node), evaluator.string_value(node))
    if node.type is NodeType.CONTENT:
        return (stream.content_kind[node.number], stream.content_value(node.number))
    children = [
        _shape(evaluator, child)
        for child in evaluator.axes.step(node, _CHILDREN)
        if child.type is not NodeType.CONTENT or stream.content_kind[child.number] == 0
    ]
    if node.type is NodeType.DOCUMENT:
        return children
    attributes = {
        (stream.names[stream.attribute_name[number]][1:], stream.attribute_value(number))
        for number in stream.attributes_of(node.number)
    }
    return (*_meaning(evaluator, node), attributes, children)


def _meaning(evaluator: Evaluator, item: Node | Detached) -> tuple[str, ...]:
    """Namespace and local name; nothing where it has no name."""
    name = evaluator.name_of(item)
    return () if name is None else name[1:]


SEQUENCE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": len,
    "exists": bool,
    "empty": lambda items: not items,
    "distinct-values": _distinct_values,
    "index-of": _index_of,
    "reverse": lambda items: list(reversed(items)),
    "head": lambda items: list(items[:1]),
    "tail": lambda items: list(items[1:]),
    "subsequence": _subsequence,
    "insert-before": _insert_before,
    "remove": _remove,
    "data": list,
    "zero-or-one": _of_length("FORG0003", 0, 1),
    "one-or-more": _of_length("FORG0004", 1, None),
    "exactly-one": _of_length("FORG0005", 1, 1),
}
