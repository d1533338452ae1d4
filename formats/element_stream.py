"""ElementStream: a message in memory as columns, one entry per element, attribute or text.

The paper's element stream format (section 4.3.2): parsed once at the root broker, matched,
cut and forwarded without ever becoming a tree of objects.  Elements are numbered in document
order (pre-order); everything else points at these numbers.

::

    <a x="1">t<b/>u</a>      element   0:a  1:b
                             parent       -1     0
                             depth         0     1
                             end           2     2      one past the last descendant
                             content   0:"t" (parent 0, next 1)   1:"u" (parent 0, next 2)

A piece of content (text, comment, processing instruction) knows its parent element (-1 outside
the root element) and ``next``, the number of the element that would start next after it; the two
together give its place among its siblings.  Values lie end to end in one UTF-8 run with an offset
column, so that the wire form is the columns themselves.

Invariants: ``parent[e] < e``; ``element_end`` nests; ``content_next`` never decreases; text
nodes are maximal (no two adjacent ones) and never empty; offsets never decrease; names are
distinct; the prefix ``xml`` is never declared; and it can be written as XML.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType

from formats.names import QualifiedName


class ContentKind(IntEnum):
    """What a piece of content is; a processing instruction's value is ``target data``."""

    TEXT = 0
    COMMENT = 1
    PROCESSING_INSTRUCTION = 2


NO_PIECES: Mapping[tuple[int, str], bytes] = MappingProxyType({})
_FEW_DECLARATIONS = 16  # looked at one after the other


class ElementStream:
    """One message as columns; read-only once built (see ElementStreamBuilder).

    E elements, A attributes, C pieces of content, N namespace declarations; ``array('i')``
    unless said otherwise.
    """

    __slots__ = (
        "accepted",
        "attribute_name",
        "attribute_offset",
        "attribute_start",
        "attribute_values",
        "content_kind",
        "content_next",
        "content_offset",
        "content_parent",
        "content_values",
        "declaration_element",
        "declarations",
        "element_depth",
        "element_end",
        "element_name",
        "element_parent",
        "names",
        "pieces",
    )

    def __init__(self) -> None:
        self.names: list[QualifiedName] = []  # distinct, in order of first use
        self.element_name = array("i")  # [E] index into names
        self.element_parent = array("i")  # [E] -1 for the root element
        self.element_depth = array("i")  # [E] 0 for the root element
        self.element_end = array("i")  # [E]
        self.attribute_start = array("i", [0])  # [E + 1] first attribute of an element
        self.attribute_name = array("i")  # [A] index into names
        self.attribute_offset = array("i", [0])  # [A + 1] into attribute_values
        self.attribute_values = b""
        self.declaration_element = array("i")  # [N] never decreases
        self.declarations: list[tuple[str, str]] = []  # [N] (prefix, namespace); "" undeclares
        self.content_kind = array("B")  # [C] ContentKind
        self.content_parent = array("i")  # [C]
        self.content_next = array("i")  # [C]
        self.content_offset = array("i", [0])  # [C + 1] into content_values
        self.content_values = b""
        # What was computed on the way of some elements, beside the message: (element, digest of
        # the expression) -> markup; see yfilter/projection/parts.py.
        self.pieces: Mapping[tuple[int, str], bytes] = NO_PIECES
        # When the root broker accepted the message, in microseconds of the epoch; 0: that is
        # unknown; None: nobody has said so far.
        self.accepted: int | None = None

    def __len__(self) -> int:
        """The number of elements."""
        return len(self.element_name)

    def name_of(self, element: int) -> QualifiedName:
        return self.names[self.element_name[element]]

    def children_of(self, element: int) -> Iterator[int]:
        """The child elements of an element, in document order."""
        child = element + 1
        end = self.element_end[element]
        while child < end:
            yield child
            child = self.element_end[child]

    def attributes_of(self, element: int) -> range:
        """The numbers of an element's attributes."""
        return range(self.attribute_start[element], self.attribute_start[element + 1])

    def attribute_value(self, attribute: int) -> str:
        first, last = self.attribute_offset[attribute], self.attribute_offset[attribute + 1]
        return self.attribute_values[first:last].decode()

    def content_value(self, content: int) -> str:
        first, last = self.content_offset[content], self.content_offset[content + 1]
        return self.content_values[first:last].decode()

    def content_within(self, element: int) -> range:
        """The numbers of all content in an element's subtree, in document order."""
        # What stands before the element has a smaller ``next``.  What follows its end has at
        # least ``end``; such a piece belongs here only if its parent does.
        end = self.element_end[element]
        first = bisect_left(self.content_next, element + 1)
        last = bisect_left(self.content_next, end, first)
        count = len(self.content_next)
        while (
            last < count
            and self.content_next[last] == end
            and element <= self.content_parent[last] < end
        ):
            last += 1
        return range(first, last)

    def text_nodes_of(self, element: int) -> Iterator[int]:
        """The text nodes that are children of an element."""
        for content in self.content_within(element):
            if (
                self.content_parent[content] == element
                and self.content_kind[content] == ContentKind.TEXT
            ):
                yield content

    def string_value(self, element: int) -> str:
        """XPath's string-value: all text in the subtree, end to end."""
        return "".join(
            self.content_value(content)
            for content in self.content_within(element)
            if self.content_kind[content] == ContentKind.TEXT
        )

    def declarations_of(self, element: int) -> Sequence[tuple[str, str]]:
        """The (prefix, namespace) pairs declared on the element itself."""
        first = bisect_left(self.declaration_element, element)
        last = bisect_left(self.declaration_element, element + 1, first)
        return self.declarations[first:last]

    def namespaces_in_scope(self, element: int) -> dict[str, str]:
        """prefix -> namespace of all declarations in force on an element, without ``xml``."""
        scope: dict[str, str] = {}
        if len(self.declarations) <= _FEW_DECLARATIONS:
            for declared, (prefix, uri) in zip(
                self.declaration_element, self.declarations, strict=True
            ):
                if declared <= element < self.element_end[declared]:
                    scope[prefix] = uri
        else:
            lineage = []
            while element >= 0:
                lineage.append(element)
                element = self.element_parent[element]
            for ancestor in reversed(lineage):
                scope.update(self.declarations_of(ancestor))
        return {prefix: uri for prefix, uri in scope.items() if uri}

    def written_size(self) -> int:
        """Bytes of all values, names and namespaces, each as often as it stands in the message.

        A wire form names a name once and a number for each use; without a bound on this a small
        message could become a text of any size.
        """
        name_sizes = [len(str(name).encode()) for name in self.names]
        return (
            len(self.attribute_values)
            + len(self.content_values)
            + sum(name_sizes[name] for name in self.element_name)
            + sum(name_sizes[name] for name in self.attribute_name)
            + sum(len(prefix.encode()) + len(uri.encode()) for prefix, uri in self.declarations)
        )
