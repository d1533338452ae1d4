"""Location steps of the interpreter, node by node straight on the columns of a message."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from formats.element_stream import ContentKind, ElementStream
from yfilter.language.nodes import Node, NodeType, element_node
from yfilter.language.query_ast import Axis, LocationStep, NameTest, NodeKind

_CONTENT_KINDS = {
    NodeKind.TEXT: ContentKind.TEXT,
    NodeKind.COMMENT: ContentKind.COMMENT,
    NodeKind.PROCESSING_INSTRUCTION: ContentKind.PROCESSING_INSTRUCTION,
}
_CONTENT_TESTS = {content: kind.value for kind, content in _CONTENT_KINDS.items()}


class MessageAxes:
    """Steps on the trees of one evaluation; ``visit`` is called for each node looked at."""

    def __init__(
        self,
        streams: Sequence[ElementStream],
        visit: Callable[[], None],
        tops: Mapping[int, Node],
    ) -> None:
        """``tops``: of trees that begin within their columns, the node that nothing is above."""
        self._streams = streams
        self._visit = visit
        self.tops = tops
        self._accepted: dict[tuple[int, NameTest], frozenset[int]] = {}
        self._ordinals: dict[Node, str] = {}  # of nodes among their like, for locations
        self._families: dict[int, dict[Node, list[Node]]] = {}
        self._looked_below: dict[int, int] = {}
        self._orders: dict[int, list[Node]] = {}

    def step(self, start: Node, step: LocationStep) -> Iterator[Node]:
        """What the step selects from one node, without its predicates."""
        if step.axis is not None:
            return self._filtered(self.on_axis(start, step.axis), step)
        match step.kind:
            case NodeKind.SELF:
                return iter((start,))
            case NodeKind.PARENT:
                return self.parent(start)
            case NodeKind.ELEMENT:
                return self._elements(start, step)
            case NodeKind.ATTRIBUTE:
                below = step.descendant
                return self._attributes(start, step) if below else iter(self.own(start, step))
            case NodeKind.TEXT:
                return self._texts(start, step)
            case _:
                axis = self._descendants if step.descendant else self._children
                return self._filtered(axis(start), step)

    def self_or_descendants(self, start: Node) -> Iterator[Node]:
        yield start
        yield from self._descendants(start)

    def parent(self, node: Node) -> Iterator[Node]:
        stream = self._streams[node.tree]
        top = self.tops.get(node.tree)
        if node == top:
            return
        if node.type is NodeType.ATTRIBUTE:
            yield element_node(node.position, node.tree)
            return
        if node.type is NodeType.DOCUMENT:
            return
        parents = stream.content_parent if node.type is NodeType.CONTENT else stream.element_parent
        parent = parents[node.number]
        if parent >= 0:
            yield element_node(parent, node.tree)
        elif node.tree == 0 or (top is not None and top.type is NodeType.DOCUMENT):
            yield Node(-1, NodeType.DOCUMENT, 0, node.tree)  # a constructed element has none

    def on_axis(self, node: Node, axis: Axis) -> Iterator[Node]:
        match axis:
            case Axis.SELF:
                yield node
            case Axis.PARENT:
                yield from self.parent(node)
            case Axis.DESCENDANT:
                yield from self._descendants(node)
            case Axis.DESCENDANT_OR_SELF:
                yield from self.self_or_descendants(node)
            case Axis.ANCESTOR | Axis.ANCESTOR_OR_SELF:
                if axis is Axis.ANCESTOR_OR_SELF:
                    yield node
                yield from self._ancestors(node)
            case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
                yield from self._siblings(node, axis is Axis.FOLLOWING_SIBLING)
            case Axis.FOLLOWING:
                yield from self._following(node)
            case Axis.PRECEDING:
                yield from self._preceding(node)

    # -- the common steps, straight on the columns

    def _elements(self, start: Node, step: LocationStep) -> Iterator[Node]:
        tree = start.tree
        stream = self._streams[tree]
        candidates: Iterable[int]
        if start.type is NodeType.DOCUMENT:
            candidates = range(len(stream)) if step.descendant else (0,)
        elif start.type is not NodeType.ELEMENT:
            return
        elif step.descendant:
            candidates = range(start.number + 1, stream.element_end[start.number])
        else:
            candidates = stream.children_of(start.number)
        accepted = self._names_accepted(tree, step)
        for element in candidates:
            self._visit()
            if stream.element_name[element] in accepted:
                yield Node(element, NodeType.ELEMENT, element, tree)

    def _attributes(self, start: Node, step: LocationStep) -> Iterator[Node]:
        tree = start.tree
        stream = self._streams[tree]
        accepted = self._names_accepted(tree, step)
        for element in self._own_or_below(start, step):
            for attribute in stream.attributes_of(element):
                self._visit()
                if stream.attribute_name[attribute] in accepted:
                    yield Node(element, NodeType.ATTRIBUTE, attribute, tree)

    def own(self, start: Node, step: LocationStep) -> list[Node]:
        """PERF: the attributes of one node that a step selects; joins read very many."""
        if start.type is not NodeType.ELEMENT:
            return []
        element, tree = start.number, start.tree
        stream = self._streams[tree]
        accepted, names = self._names_accepted(tree, step), stream.attribute_name
        found = []
        for attribute in range(
            stream.attribute_start[element], stream.attribute_start[element + 1]
        ):
            self._visit()
            if names[attribute] in accepted:
                found.append(Node(element, NodeType.ATTRIBUTE, attribute, tree))
        return found

    def _texts(self, start: Node, step: LocationStep) -> Iterator[Node]:
        tree = start.tree
        stream = self._streams[tree]
        for element in self._own_or_below(start, step):
            self._visit()
            for content in stream.text_nodes_of(element):
                self._visit()
                yield Node(stream.content_next[content], NodeType.CONTENT, content, tree)

    def _own_or_below(self, start: Node, step: LocationStep) -> range:
        """The elements that a step to attributes or text looks at."""
        stream = self._streams[start.tree]
        if start.type is NodeType.DOCUMENT:
            return range(len(stream)) if step.descendant else range(0)
        if start.type is not NodeType.ELEMENT:
            return range(0)
        last = stream.element_end[start.number] if step.descendant else start.number + 1
        return range(start.number, last)

    # -- the other axes

    def _content(self, pieces: Iterable[int], tree: int) -> list[Node]:
        stream = self._streams[tree]
        return [Node(stream.content_next[piece], NodeType.CONTENT, piece, tree) for piece in pieces]

    def _descendants(self, node: Node) -> Iterator[Node]:
        """Elements and content below a node, in document order."""
        stream, tree = self._streams[node.tree], node.tree
        if node.type is NodeType.DOCUMENT:
            elements, pieces = range(len(stream)), range(len(stream.content_next))
        elif node.type is NodeType.ELEMENT:
            elements = range(node.number + 1, stream.element_end[node.number])
            pieces = stream.content_within(node.number)
        else:
            return
        content = self._content(pieces, tree)
        waiting = 0
        for element in elements:
            while waiting < len(content) and content[waiting].position <= element:
                self._visit()
                yield content[waiting]
                waiting += 1
            self._visit()
            yield element_node(element, tree)
        for piece in content[waiting:]:
            self._visit()
            yield piece

    def _children(self, node: Node) -> Iterator[Node]:
        for child in self._children_of(node):
            self._visit()
            yield child

    def _children_of(self, node: Node) -> list[Node]:
        """Looked for below the node; once that was much, they are found for a whole tree."""
        if node.type not in (NodeType.DOCUMENT, NodeType.ELEMENT):
            return []
        tree, stream = node.tree, self._streams[node.tree]
        known = self._families.get(tree)
        if known is not None:
            return known.get(node, [])
        is_all = node.type is NodeType.DOCUMENT
        size = len(stream) if is_all else stream.element_end[node.number] - node.number
        self._looked_below[tree] = looked = self._looked_below.get(tree, 0) + size
        if looked <= 2 * len(stream):
            found = self._descendants(node)
            return [below for below in found if next(self.parent(below)) == node]
        known = self._families[tree] = {}
        for below in self._descendants(self.root(node)):
            known.setdefault(next(self.parent(below)), []).append(below)
        return known.get(node, [])

    def _order_of(self, node: Node) -> list[Node]:
        """All nodes of its tree but the attributes, in document order."""
        known = self._orders.get(node.tree)
        if known is None:
            known = self._orders[node.tree] = list(self.self_or_descendants(self.root(node)))
        return known

    def _ancestors(self, node: Node) -> Iterator[Node]:
        while True:
            above = next(self.parent(node), None)
            if above is None:
                return
            self._visit()
            yield above
            node = above

    def _siblings(self, node: Node, following: bool) -> Iterator[Node]:
        parent = next(self.parent(node), None)
        if parent is None or node.type is NodeType.ATTRIBUTE:
            return
        siblings = self._children_of(parent)
        place = bisect_left(siblings, node)
        places = range(place + 1, len(siblings)) if following else range(place - 1, -1, -1)
        for place in places:
            self._visit()
            yield siblings[place]

    def _following(self, node: Node) -> Iterator[Node]:
        order = self._order_of(node)
        if node.type is NodeType.DOCUMENT:
            return
        first = bisect_right(order, node)
        if node.type is NodeType.ELEMENT:
            stream, number = self._streams[node.tree], node.number
            elements = stream.element_end[number] - number - 1
            first += elements + len(stream.content_within(number))
        for place in range(first, len(order)):
            self._visit()
            yield order[place]

    def _preceding(self, node: Node) -> Iterator[Node]:
        order, above = self._order_of(node), set(self._ancestors(node))
        for place in range(bisect_left(order, node) - 1, -1, -1):
            self._visit()
            if order[place] not in above:
                yield order[place]

    def root(self, node: Node) -> Node:
        for above in self._ancestors(node):
            node = above
        return node

    def location(self, node: Node) -> str:
        """A path to the node, whose names are as they are written; "" of a document."""
        steps = []
        while (parent := next(self.parent(node), None)) is not None:
            self._visit()
            if node.type is NodeType.ATTRIBUTE:
                steps.append(f"@{self._named(node)}")
            else:
                if node not in self._ordinals:
                    self._count(node, parent)
                steps.append(f"{self._named(node)}{self._ordinals[node]}")
            node = parent
        top = "" if node.type is NodeType.DOCUMENT else self._named(node)
        return "/".join((top, *reversed(steps)))

    def _count(self, node: Node, parent: Node) -> None:
        """Learns the place of a node among siblings of its name, as a predicate, and with it that
        of all these, or of all texts, comments and instructions of its tree: once, so that many
        are linear.  A text that is the only one has none."""
        stream, tree = self._streams[node.tree], node.tree
        places: dict[tuple[int, str], list[Node]] = {}
        if node.type is NodeType.CONTENT:
            nodes = self._content(range(len(stream.content_next)), tree)
        elif parent.type is NodeType.DOCUMENT:
            nodes = [node]
        else:
            nodes = [element_node(child, tree) for child in stream.children_of(parent.number)]
        for each in nodes:
            self._visit()
            above = stream.content_parent[each.number] if each.type is NodeType.CONTENT else 0
            places.setdefault((above, self._named(each)), []).append(each)
        for (_, name), alike in places.items():
            for place, each in enumerate(alike, 1):
                is_only = name == "text()" and len(alike) == 1
                self._ordinals[each] = "" if is_only else f"[{place}]"

    def _named(self, node: Node) -> str:
        stream, number = self._streams[node.tree], node.number
        if node.type is NodeType.ELEMENT:
            return str(stream.name_of(number))
        if node.type is NodeType.ATTRIBUTE:
            return str(stream.names[stream.attribute_name[number]])
        return _CONTENT_TESTS[ContentKind(stream.content_kind[number])]

    # -- node tests

    def _filtered(self, nodes: Iterator[Node], step: LocationStep) -> Iterator[Node]:
        return (node for node in nodes if self._passes(node, step))

    def _passes(self, node: Node, step: LocationStep) -> bool:
        stream = self._streams[node.tree]
        kind, test = step.kind, step.test
        if kind is NodeKind.NODE:
            return True
        if kind is NodeKind.DOCUMENT:
            return node.type is NodeType.DOCUMENT
        if kind is NodeKind.ELEMENT:
            return node.type is NodeType.ELEMENT and (
                stream.element_name[node.number] in self._names_accepted(node.tree, step)
            )
        if kind is NodeKind.ATTRIBUTE:
            return node.type is NodeType.ATTRIBUTE and (
                stream.attribute_name[node.number] in self._names_accepted(node.tree, step)
            )
        if node.type is not NodeType.CONTENT:
            return False
        if stream.content_kind[node.number] != _CONTENT_KINDS[kind]:
            return False
        return test is None or stream.content_value(node.number).split(" ")[0] == test.local

    def _names_accepted(self, tree: int, step: LocationStep) -> frozenset[int]:
        test = step.test
        assert test is not None
        accepted = self._accepted.get((tree, test))
        if accepted is None:
            accepted = self._accepted[tree, test] = frozenset(
                number
                for number, name in enumerate(self._streams[tree].names)
                if test.accepts(name.namespace, name.local)
            )
        return accepted
