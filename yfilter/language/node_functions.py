"""Functions of XPath 2.0 about what is in force at a node: its language, its namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.characters import is_colonless_name
from formats.names import XML_NAMESPACE
from yfilter.language.atoms import qname
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import Atom, DynamicError, Node, NodeType, Value, document_order
from yfilter.language.query_ast import ANY_NAME, Axis, LocationStep, NodeKind

_AROUND = LocationStep(False, NodeKind.ELEMENT, ANY_NAME, (), Axis.ANCESTOR_OR_SELF)


def _lang(evaluator: Evaluator, node: Node, wanted: Atom | None) -> Value:
    language = None
    for element in _around(evaluator, node):
        stream = evaluator.streams[element.tree]
        for number in stream.attributes_of(element.number):
            name = stream.names[stream.attribute_name[number]]
            if (name.namespace, name.local) == (XML_NAMESPACE, "lang"):
                language = stream.attribute_value(number).lower()
    asked = str(wanted or "").lower()
    return [language is not None and (language == asked or language.startswith(f"{asked}-"))]


def _node_name(evaluator: Evaluator, node: Node) -> Value:
    name = evaluator.name_of(node)
    return [] if name is None else [qname(name.namespace, str(name))]


def _resolve_qname(evaluator: Evaluator, node: Node, text: Atom | None) -> Value:
    if text is None:
        return []
    if node.type is not NodeType.ELEMENT:
        raise DynamicError("XPTY0004", "an element is wanted")
    lexical = str(text).strip()
    prefix, colon, local = lexical.rpartition(":")
    if not is_colonless_name(local) or (colon and not is_colonless_name(prefix)):
        raise DynamicError("FOCA0002", f"{lexical[:80]!r} is no name")
    scope = evaluator.streams[node.tree].namespaces_in_scope(node.number)
    evaluator.charge(len(scope))
    namespace = XML_NAMESPACE if prefix == "xml" else scope.get(prefix, "")
    if prefix and not namespace:
        raise DynamicError("FONS0004", "a prefix that is not declared there")
    return [qname(namespace, lexical)]


def _around(evaluator: Evaluator, node: Node) -> list[Node]:
    """The elements around a node, the outermost first."""
    if node.type is not NodeType.ELEMENT:
        node = next(evaluator.axes.step(node, PARENT), node)
    return sorted(evaluator.axes.step(node, _AROUND), key=document_order)


PARENT = LocationStep(False, NodeKind.ELEMENT, ANY_NAME, (), Axis.PARENT)

# Their last argument is the node, the one before it, if any, a string.
NODE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lang": _lang,
    "node-name": _node_name,
    "resolve-QName": _resolve_qname,
}
