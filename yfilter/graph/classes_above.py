"""The classes above those that a graph profile asks for with ``a/^rdfs:subClassOf*``.

Which they are the taxonomies say, that brokers on a message's way need not know for it: a profile
says them itself, by comments in front, one for each class that has any::

    # above <http://topics.example/Fog>: <http://topics.example/Weather> <http://topics.example/Topic>
    SELECT ?post { ?post a/^rdfs:subClassOf* <http://topics.example/Fog> }

Whoever knows the taxonomies writes them (graph_query.py, ``with_classes_above``).  Without one a
class has none above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from yfilter.graph.query_ast import Closure, Iri, TriplePattern
from yfilter.language.trees import Tree, changed, nodes_of

_LINE = re.compile(
    r"^[ \t]*#[ \t]*above[ \t]+<([^<>\s]*)>[ \t]*:((?:[ \t]*<[^<>\s]*>)*)[ \t]*(?:\r\n?|\n|$)",
    re.MULTILINE,
)
_IRI = re.compile(r"<([^<>\s]*)>")


def said_above(comments: str) -> dict[str, tuple[str, ...]]:
    """The classes above each, as comments say them."""
    return {found[1]: tuple(_IRI.findall(found[2])) for found in _LINE.finditer(comments)}


def without_above(comments: str) -> str:
    """The comments without these."""
    return _LINE.sub("", comments)


def asked_above(tree: object) -> dict[str, tuple[str, ...]]:
    """The classes of which those above are asked for, each with these."""
    return {
        node.object.value: node.classes
        for node in nodes_of(tree)
        if isinstance(node, TriplePattern)
        and node.closure is Closure.INSTANCE_ABOVE
        and isinstance(node.object, Iri)
    }


def filled(tree: Tree, above: Mapping[str, tuple[str, ...]]) -> Tree:
    """The tree with the classes above those that it asks for."""

    def fill(node: object) -> object:
        match node:
            case TriplePattern(_, _, Iri(name), Closure.INSTANCE_ABOVE):
                return replace(node, classes=above.get(name, ()))
        return node

    return changed(tree, fill)


def above_text(asked: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """The comments of (class, those above it)."""
    return "".join(
        f"# above <{name}>: {' '.join(f'<{one}>' for one in classes)}\n"
        for name, classes in asked
        if classes
    )
