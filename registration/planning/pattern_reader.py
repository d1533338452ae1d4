"""PatternReader: the values that a message has at each pattern, all found in one pass.

The structures of the patterns are one trie; going through the elements in document order, every
element is handed the trie nodes that its parent reached, as in the NFA of the engine::

    /a/@x   /a/b/@y   //b/.          node 0 --/a--> 1 (@x) --/b--> 2 (@y)
                                     node 0 --//b-> 3 (.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from formats.element_stream import ElementStream
from registration.planning.exclusiveness import Pattern, canonical_value
from registration.planning.occurrence import pattern_path
from yfilter.engine.readings import Reading, reading_of, readings_of
from yfilter.language.query_ast import ANY, ANY_NAME, LocationStep, NameTest, NodeKind


@dataclass(slots=True)
class _Node:
    """``edges`` by local name (ANY for every one): name test, whether ``//``, and where to."""

    edges: dict[str, list[tuple[NameTest, bool, _Node]]] = field(default_factory=dict)
    descends: bool = False  # whether some edge is ``//``
    targets: list[tuple[LocationStep | None, Pattern]] = field(default_factory=list)

    def next(self, step: LocationStep) -> _Node:
        test = step.test or ANY_NAME
        edges = self.edges.setdefault(test.local, [])
        for known, descendant, node in edges:
            if known == test and descendant == step.descendant:
                return node
        node = _Node()
        edges.append((test, step.descendant, node))
        self.descends |= step.descendant
        return node


class PatternReader:
    """Reads messages for a fixed set of patterns."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._roots: dict[Reading, _Node] = {}
        for pattern in patterns:
            steps, value = pattern_path(pattern)
            node = self._roots.setdefault(reading_of(steps), _Node())
            for step in steps:
                node = node.next(step)
            node.targets.append((value, pattern))

    def values(self, message: ElementStream) -> dict[Pattern, list[str]]:
        """Canonical values by pattern, in document order, as often as they occur; of patterns of
        graphs in the message's graph."""
        found: dict[Pattern, list[str]] = {}
        readings = readings_of(message)
        for reading, root in self._roots.items():
            stream = readings.of(reading)
            if stream is not None:
                _read(stream, root, found)
        return found


def _read(stream: ElementStream, root: _Node, found: dict[Pattern, list[str]]) -> None:
    """Go through a message; what is found is added."""
    reached: list[tuple[_Node, ...]] = []  # at each element
    inherited: list[tuple[_Node, ...]] = []  # with // edges, at it or above
    at_start = (root,) if root.descends else ()
    for element in range(len(stream)):
        parent = stream.element_parent[element]
        here = reached[parent] if parent >= 0 else (root,)
        above = inherited[parent] if parent >= 0 else at_start
        nodes = tuple(_step(here, above, stream, element))
        reached.append(nodes)
        new = tuple(node for node in nodes if node.descends and node not in above)
        inherited.append(above + new if new else above)
        for node in nodes:
            for value, pattern in node.targets:
                texts = list(_texts(stream, element, value))
                if texts:
                    found.setdefault(pattern, []).extend(map(canonical_value, texts))


def _step(
    here: tuple[_Node, ...], above: tuple[_Node, ...], stream: ElementStream, element: int
) -> Iterator[_Node]:
    """The nodes that an element reaches, each once."""
    if not here and not above:
        return
    name = stream.name_of(element)
    seen: set[int] = set()
    for nodes, through_descendant in ((here, False), (above, True)):
        for node in nodes:
            for key in (name.local, ANY):
                for test, descendant, target in node.edges.get(key, ()):
                    if (
                        descendant == through_descendant
                        and id(target) not in seen
                        and test.accepts(name.namespace, name.local)
                    ):
                        seen.add(id(target))
                        yield target


def _texts(stream: ElementStream, element: int, value: LocationStep | None) -> Iterator[str]:
    if value is None:
        yield stream.string_value(element)
    elif value.kind is NodeKind.TEXT:
        for content in stream.text_nodes_of(element):
            yield stream.content_value(content)
    elif value.test is not None:
        for attribute in stream.attributes_of(element):
            name = stream.names[stream.attribute_name[attribute]]
            if value.test.accepts(name.namespace, name.local):
                yield stream.attribute_value(attribute)
