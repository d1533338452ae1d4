# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""MessageColumns: the columns of one message, for compiled code.

Those of the element stream, and what is found in one pass over its content: the text nodes of each
element as a chain (``text_first`` of an element, ``text_next`` of a text node, -1 at the end), and
the content within each element, from ``within_first`` to before ``within_last``.

The string value of an element is one run of the content's bytes, unless a comment or processing
instruction lies within (``only_text`` is false then).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.element_stream import ElementStream
from yfilter.index.columns import ints


class MessageColumns:
    """``bind_columns`` to one message after another; the columns of its own are kept."""

    def __init__(self) -> None:
        self.elements = 0
        self.deepest = 0
        self.text_first = self.within_first = self.within_last = ints(258)
        self.text_next = ints(1025)
        self.within_first = ints(258)
        self.within_last = ints(258)

    def bind_columns(self, stream: ElementStream) -> cython.int:
        """Look at a message."""
        self._stream = stream
        self.elements = len(stream)
        self.name = stream.element_name
        self.parent = stream.element_parent
        self.depth = stream.element_depth
        self.end = stream.element_end
        self.attribute_start = stream.attribute_start
        self.attribute_name = stream.attribute_name
        self.attribute_offset = stream.attribute_offset
        self.attribute_values = stream.attribute_values
        self.content_kind = stream.content_kind
        self.content_parent = stream.content_parent
        self.content_next = stream.content_next
        self.content_offset = stream.content_offset
        self.content_values = stream.content_values
        if self.elements >= len(self.text_first) - 1:
            self.text_first = ints(2 * self.elements + 2)
            self.within_first = ints(2 * self.elements + 2)
            self.within_last = ints(2 * self.elements + 2)
        if len(self.content_kind) > len(self.text_next):
            self.text_next = ints(2 * len(self.content_kind) + 1)
        self._link_contents()
        return 0

    def _link_contents(self) -> cython.int:
        """The text nodes of each element as a chain; the content within each as a range."""
        count: cython.int = len(self.content_kind)
        element: cython.int
        content: cython.int = 0
        parent: cython.int
        self.only_text = True
        self.deepest = 0
        for element in range(self.elements):
            self.text_first[element] = -1
            self.deepest = max(self.deepest, self.depth[element])
            while content < count and self.content_next[content] <= element:
                content += 1
            self.within_first[element] = content
            self.within_last[element] = content
        for content in range(count - 1, -1, -1):
            parent = self.content_parent[content]
            if parent < 0:
                continue
            self.within_last[parent] = max(self.within_last[parent], content + 1)
            if self.content_kind[content] == 0:
                self.text_next[content] = self.text_first[parent]
                self.text_first[parent] = content
            else:
                self.only_text = False
        for element in range(self.elements - 1, 0, -1):
            parent = self.parent[element]
            self.within_last[parent] = max(self.within_last[parent], self.within_last[element])
        return 0
